package main

import (
	"log/slog"
	"reflect"

	"sluice/config"
)

// reloadable are the keys whose change SIGHUP takes over; a change of any other waits for a restart, and is told of.
var reloadable = map[string]bool{"log": true, "models": true, "registries": true}

// reload reads the settings and the catalogue again, and takes over what can change while models run: the log's level, and of
// the catalogue the models' settings, roles and the registries. A loaded model keeps its context, places and devices until it
// is loaded again. With a mistake anywhere nothing changes.
func (s *server) reload() {
	cfg, err := s.load()
	if err != nil {
		s.log.Error("settings are not reloaded: the old ones hold", "error", err.Error())
		return
	}
	catalogue, err := loadCatalogue(cfg.Models)
	if err != nil {
		s.log.Error("settings are not reloaded: the old ones hold", "error", describe(err))
		return
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		s.log.Error("settings are not reloaded: the old ones hold", "error", err.Error())
		return
	}
	if err := s.sources.set(catalogue, cfg.Registries); err != nil {
		s.log.Error("settings are not reloaded: the old ones hold", "error", err.Error())
		return
	}
	s.catalogue.set(catalogue)
	if waiting := changed(s.cfg, cfg); len(waiting) > 0 {
		s.log.Warn("changed settings that a restart will take over", "keys", waiting)
	}
	s.log.Info("settings are reloaded", "models", len(catalogue.Models), "registries", catalogue.Registries, "log", cfg.LogLevel)
	s.level.Set(level)
}

// changed names the keys that differ and that are read at the start only.
func changed(old, now *config.Config) (keys []string) {
	a, b := reflect.ValueOf(*old), reflect.ValueOf(*now)
	for i := range a.NumField() {
		field := a.Type().Field(i)
		key := field.Tag.Get("yaml")
		if key == "-" {
			key = field.Name // of the environment, which does not change while a process runs; flags neither
		}
		if !reloadable[key] && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			keys = append(keys, key)
		}
	}
	return keys
}
