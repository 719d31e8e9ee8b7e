package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variable is a setting that the environment may give. Ollama's name is looked at when ours is not set.
type variable struct {
	ours, ollama string
	set          func(c *Config, v string) error
}

var variables = []variable{
	{"SLUICE_HOST", "OLLAMA_HOST", func(c *Config, v string) error { c.Listen = HostPort(v); return nil }},
	{"SLUICE_HOME", "", text(func(c *Config) *string { return &c.Home })},
	{"SLUICE_CONTROL", "", text(func(c *Config) *string { return &c.Control })},
	{"SLUICE_RUNNER", "", text(func(c *Config) *string { return &c.Runner })},
	{"SLUICE_ORIGINS", "OLLAMA_ORIGINS", func(c *Config, v string) error { c.Origins = strings.Split(v, ","); return nil }},
	{"SLUICE_KV_CACHE_TYPE", "OLLAMA_KV_CACHE_TYPE", oneOf(func(c *Config) *string { return &c.KVCacheType }, "f16", "q8_0", "q4_0")},
	{"SLUICE_FLASH_ATTENTION", "OLLAMA_FLASH_ATTENTION", flashAttention},
	{"SLUICE_GPU_OVERHEAD", "OLLAMA_GPU_OVERHEAD", func(_ *Config, v string) error { return unless(v == "0", "it") }},
	{"SLUICE_BACKENDS", "", text(func(c *Config) *string { return &c.Backends })},
	{"SLUICE_MODELS", "OLLAMA_MODELS", text(func(c *Config) *string { return &c.ModelsDir })},
	{"SLUICE_ADMIN_KEY", "", text(func(c *Config) *string { return &c.AdminKey })},
	{"SLUICE_LOG", "", text(func(c *Config) *string { return &c.LogLevel })},
	{"SLUICE_KEEP_ALIVE", "OLLAMA_KEEP_ALIVE", func(c *Config, v string) (err error) { c.KeepAlive, err = seconds(v); return err }}, // 0: unload at once
	{"SLUICE_LOAD_TIMEOUT", "OLLAMA_LOAD_TIMEOUT", loadTimeout},
	{"SLUICE_NUM_PARALLEL", "OLLAMA_NUM_PARALLEL", func(_ *Config, v string) error { return unless(v == "0" || v == "1", "more than 1") }},
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

// unless refuses a setting that this version does not have: read and not obeyed, it would be a silent surprise.
func unless(ok bool, what string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%s is not there in this version", what)
}

// loadTimeout reads a duration; zero and less mean no limit, as in Ollama.
func loadTimeout(c *Config, v string) error {
	d, err := seconds(v)
	if d <= 0 {
		d = 365 * 24 * time.Hour
	}
	c.LoadTimeout = d
	return err
}

func oneOf(field func(*Config) *string, allowed ...string) func(*Config, string) error {
	return func(c *Config, v string) error {
		if !slices.Contains(allowed, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(allowed, ", "))
		}
		*field(c) = v
		return nil
	}
}

// flashAttention reads what Ollama reads: a boolean.
func flashAttention(c *Config, v string) error {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", v)
	}
	c.FlashAttention = "off"
	if on {
		c.FlashAttention = "on"
	}
	return nil
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
