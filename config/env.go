package config

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"sluice/units"
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
	{"SLUICE_KV_CACHE_TYPE", "OLLAMA_KV_CACHE_TYPE", text(func(c *Config) *string { return &c.Engine.KVCacheType })},
	{"SLUICE_FLASH_ATTENTION", "OLLAMA_FLASH_ATTENTION", flashAttention},
	{"SLUICE_GPU_OVERHEAD", "OLLAMA_GPU_OVERHEAD", size(func(c *Config) *units.Bytes { return &c.Engine.GPUOverhead })},
	{"SLUICE_MEMORY", "", size(func(c *Config) *units.Bytes { return &c.Limits.Memory })},
	{"SLUICE_BACKENDS", "", text(func(c *Config) *string { return &c.Backends })},
	{"SLUICE_MODELS", "OLLAMA_MODELS", text(func(c *Config) *string { return &c.ModelsDir })},
	{"SLUICE_FOLDERS", "", func(c *Config, v string) error { c.Folders = filepath.SplitList(v); return nil }},
	{"SLUICE_ADMIN_KEY", "", text(func(c *Config) *string { return &c.AdminKey })},
	{"SLUICE_RAG_STORE", "", text(func(c *Config) *string { return &c.Rag.Store })},
	{"SLUICE_EMBED_MODEL", "", text(func(c *Config) *string { return &c.Rag.EmbedModel })},
	{"SLUICE_AUDIT_KEY", "", text(func(c *Config) *string { return &c.Audit.Key })},
	{"SLUICE_AUDIT_HEAD", "", text(func(c *Config) *string { return &c.Audit.Head })},
	{"SLUICE_LOG", "", text(func(c *Config) *string { return &c.LogLevel })},
	{"SLUICE_KEEP_ALIVE", "OLLAMA_KEEP_ALIVE", span(func(c *Config) *units.Seconds { return &c.Engine.KeepAlive })},
	{"SLUICE_LOAD_TIMEOUT", "OLLAMA_LOAD_TIMEOUT", span(func(c *Config) *units.Seconds { return &c.Engine.LoadTimeout })},
	{"SLUICE_NUM_PARALLEL", "OLLAMA_NUM_PARALLEL", count(func(c *Config) *int { return &c.Engine.NumParallel })},
	{"SLUICE_MAX_LOADED_MODELS", "OLLAMA_MAX_LOADED_MODELS", count(func(c *Config) *int { return &c.Engine.MaxLoaded })},
	{"SLUICE_MAX_QUEUE", "OLLAMA_MAX_QUEUE", count(func(c *Config) *int { return &c.Engine.MaxQueue })},
	{"SLUICE_CONTEXT_LENGTH", "OLLAMA_CONTEXT_LENGTH", count(func(c *Config) *int { return &c.Engine.ContextLength })},
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

func size(field func(*Config) *units.Bytes) func(*Config, string) error {
	return func(c *Config, v string) (err error) {
		*field(c), err = units.ParseBytes(v)
		return err
	}
}

func span(field func(*Config) *units.Seconds) func(*Config, string) error {
	return func(c *Config, v string) error {
		d, err := units.ParseSeconds(v)
		*field(c) = d
		return err
	}
}

// flashAttention reads what Ollama reads: a boolean.
func flashAttention(c *Config, v string) error {
	on, err := strconv.ParseBool(v)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", v)
	}
	c.Engine.FlashAttention = &on
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
