package config

import (
	"fmt"
	"strconv"
	"time"
)

// variable is a setting that the environment may give. Ollama's name is looked at when ours is not set.
type variable struct {
	ours, ollama string
	set          func(c *Config, v string) error
}

var variables = []variable{
	{"SLUICE_HOST", "OLLAMA_HOST", func(c *Config, v string) error { c.Listen = hostPort(v); return nil }},
	{"SLUICE_HOME", "", text(func(c *Config) *string { return &c.Home })},
	{"SLUICE_CONTROL", "", text(func(c *Config) *string { return &c.Control })},
	{"SLUICE_RUNNER", "", text(func(c *Config) *string { return &c.Runner })},
	{"SLUICE_BACKENDS", "", text(func(c *Config) *string { return &c.Backends })},
	{"SLUICE_MODELS", "OLLAMA_MODELS", text(func(c *Config) *string { return &c.ModelsDir })},
	{"SLUICE_ADMIN_KEY", "", text(func(c *Config) *string { return &c.AdminKey })},
	{"SLUICE_LOG", "", text(func(c *Config) *string { return &c.LogLevel })},
	{"SLUICE_KEEP_ALIVE", "OLLAMA_KEEP_ALIVE", func(c *Config, v string) (err error) { c.KeepAlive, err = seconds(v); return err }},
	{"SLUICE_LOAD_TIMEOUT", "OLLAMA_LOAD_TIMEOUT", func(c *Config, v string) (err error) { c.LoadTimeout, err = seconds(v); return err }},
	{"SLUICE_NUM_PARALLEL", "OLLAMA_NUM_PARALLEL", count(func(c *Config) *int { return &c.NumParallel })},
	{"SLUICE_MAX_LOADED_MODELS", "OLLAMA_MAX_LOADED_MODELS", count(func(c *Config) *int { return &c.MaxLoaded })},
	{"SLUICE_MAX_QUEUE", "OLLAMA_MAX_QUEUE", count(func(c *Config) *int { return &c.MaxQueue })},
	{"SLUICE_CONTEXT_LENGTH", "OLLAMA_CONTEXT_LENGTH", count(func(c *Config) *int { return &c.NumCtx })},
}

func (c *Config) readEnv(env func(string) string) []error {
	var problems []error
	for _, v := range variables {
		name, value := v.ours, env(v.ours)
		if value == "" && v.ollama != "" {
			name, value = v.ollama, env(v.ollama)
		}
		if value == "" {
			continue
		}
		if err := v.set(c, value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", name, err))
		}
	}
	return problems
}

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error { *field(c) = v; return nil }
}

// count reads a positive number. 0 means "as the program thinks best" in Ollama, which is our default.
func count(field func(*Config) *int) func(*Config, string) error {
	return func(c *Config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number", v)
		}
		if n > 0 {
			*field(c) = n
		}
		return nil
	}
}

// seconds reads a duration, or a bare number of seconds, as Ollama does for its variables.
func seconds(v string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(v, 64); err == nil && n > -1e9 && n < 1e9 {
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a duration such as 5m nor a number of seconds", v)
	}
	return d, nil
}
