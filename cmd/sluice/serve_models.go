package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sluice/config"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
	"sluice/scheduler/inventory"
	"sluice/scheduler/remote"
)

// openModels opens what has to do with models on disk.
func (s *server) openModels() (err error) {
	if s.installed, err = models.OpenStore(s.cfg.ModelsDir, s.cfg.Folders...); err != nil {
		return err
	}
	known, err := loadCatalogue(s.cfg.Models)
	if err != nil {
		return err
	}
	s.catalogue.set(known)
	if s.sources, err = newSources(s.installed, known, s.cfg.Registries); err != nil {
		return err
	}
	s.defaults = &defaultPuller{
		catalogue: s.catalogue.now, registry: s.sources, memory: s.memory, log: s.log,
		installed: func(name string) bool { _, err := s.installed.Get(name); return err == nil },
	}
	return nil
}

// memory is what a model can have here at most, in bytes.
func (s *server) memory(ctx context.Context) uint64 {
	return memory(ctx, s.inventory, uint64(s.cfg.Limits.Memory))
}

func (s *server) newScheduler() (err error) {
	binary, err := runnerBinary(s.cfg.Runner)
	if err != nil {
		return err
	}
	child := runner.Config{Binary: binary, Env: s.backends(), Log: func(line string) { s.log.Debug("runner", "line", line) }}
	s.inventory, err = inventory.New(inventory.Config{
		List: func(ctx context.Context) ([]runner.Device, error) { return runner.Devices(ctx, child) },
		Log:  s.log,
	})
	if err != nil {
		return err
	}
	elsewhere, err := s.remotes()
	if err != nil {
		return err
	}
	cfg := schedulerConfig(s.cfg, s.inventory, &s.catalogue)
	cfg.Start = func(ctx context.Context) (scheduler.Runner, error) {
		p, err := runner.Start(ctx, child)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	cfg.Remotes, cfg.Log = elsewhere, s.log
	s.scheduler, err = scheduler.New(cfg)
	return err
}

// schedulerConfig is what the settings say of loading models. The doctor asks a scheduler of the same settings.
func schedulerConfig(c *config.Config, devices scheduler.Inventory, models *catalogue) scheduler.Config {
	e := c.Engine
	return scheduler.Config{
		Inventory: devices, Memory: uint64(c.Limits.Memory), GPUOverhead: uint64(e.GPUOverhead), Settings: models.settings,
		// The scheduler takes 0 for "not set"; the shortest time there is means the same as 0 does here.
		MaxLoaded: e.MaxLoaded, MaxQueue: e.MaxQueue, KeepAlive: cmp.Or(time.Duration(e.KeepAlive), 1), LoadTimeout: time.Duration(e.LoadTimeout),
		NumCtx: e.ContextLength, Parallel: e.NumParallel, KVCacheType: e.KVCacheType, FlashAttention: flashAttention(e.FlashAttention),
	}
}

// elsewhere is a server elsewhere as the scheduler needs it: package remote does not know the scheduler.
type elsewhere struct{ *remote.Server }

func (e elsewhere) Runner(m *models.Model) scheduler.Runner { return e.Server.Runner(m) }

func (s *server) remotes() (out []scheduler.Remote, err error) {
	for _, r := range s.cfg.Remotes {
		server, err := remote.New(remote.Config{Name: r.Name, Kind: r.Kind, URL: r.URL, Key: r.Key, Models: r.Models, Slots: r.Slots, Log: s.log})
		if err != nil {
			return nil, fmt.Errorf("remotes: %s: %w", r.Name, err)
		}
		out = append(out, elsewhere{server})
	}
	return out, nil
}

// flashAttention has the engine choose when nothing is set.
func flashAttention(set *bool) string {
	switch {
	case set == nil:
		return ""
	case *set:
		return "on"
	}
	return "off"
}

// backends tells the runner where ggml's backend libraries are, when there are any besides the one linked in.
func (s *server) backends() []string {
	if s.cfg.Backends == "" {
		return nil
	}
	// The libraries need each other, and those that Ollama ships do not say where the others are.
	return []string{"OLLAMA_LIBRARY_PATH=" + s.cfg.Backends, "LD_LIBRARY_PATH=" + s.cfg.Backends}
}

// runnerBinary finds sluice-runner: as configured, else beside this program.
func runnerBinary(configured string) (string, error) {
	if configured == "" {
		self, err := os.Executable()
		if err != nil {
			return "", err
		}
		configured = filepath.Join(filepath.Dir(self), "sluice-runner")
	}
	if _, err := os.Stat(configured); err != nil {
		return "", fmt.Errorf("sluice-runner, which runs the models, is not there: %w (set SLUICE_RUNNER, or build it with make build)", err)
	}
	return configured, nil
}
