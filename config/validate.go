package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// names of databases and connections stand in SQL text, URLs and folders.
var nameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)

// validate returns everything that is wrong.
func (c *Config) validate() []error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		add("listen: %q is not host:port", c.Listen)
	}
	if c.Control != "sqlite" {
		add("control: %q: only sqlite is there in this version", c.Control)
	}
	if r := c.Auth.OllamaRoutes; r != "open" && r != "key" {
		add("auth.ollama_routes: %q is neither open nor key", r)
	}
	if c.Auth.FreshFor <= 0 || time.Duration(c.Auth.FreshFor) > 12*time.Hour {
		add("auth.fresh_for: must be more than 0 and at most 12h, which is how long a login lasts")
	}
	if c.Limits.Rows < 1 {
		add("limits.rows: must be at least 1")
	}
	if c.Limits.Body < 1 {
		add("limits.body: must be at least 1 byte")
	}
	if c.Limits.StatementTimeout <= 0 {
		add("limits.statement_timeout: must be more than 0")
	}
	if n := len(c.Audit.Key); n > 0 && n < minAuditKey {
		add("audit.key: it has %d bytes, and needs %d; `openssl rand -hex 32` makes one", n, minAuditKey)
	}
	if u, err := url.Parse(c.Rag.Store); c.Rag.Store != "embedded" && (err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "") {
		add("rag.store: it is neither embedded nor postgres://user:password@host:5432/database") // not repeated: it may hold a password
	}
	if c.Rag.EmbedModel == "" {
		add("rag.embed_model: it names the model that makes the vectors, such as all-minilm")
	}
	if c.Agent.Candidates < 1 || c.Agent.Candidates > 8 {
		add("agent.candidates: %d: 1 to 8", c.Agent.Candidates)
	}
	if c.Agent.MaxRows < 1 {
		add("agent.max_rows: must be at least 1")
	}
	if c.Agent.Timeout <= 0 {
		add("agent.timeout: must be more than 0")
	}
	if !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel) {
		add("log: %q is none of debug, info, warn, error", c.LogLevel)
	}
	for key, n := range map[string]int{"max_queue": c.Engine.MaxQueue, "context_length": c.Engine.ContextLength} {
		if n < 1 {
			add("engine.%s: must be at least 1", key)
		}
	}
	if c.Engine.MaxLoaded < 0 {
		add("engine.max_loaded_models: must be from 0, which is as many as fit into memory")
	}
	problems = append(problems, c.validateRemotes()...)
	for _, host := range slices.Sorted(maps.Keys(c.Registries)) {
		r := c.Registries[host]
		if u, err := url.Parse("http://" + host); err != nil || u.Host != host || u.Hostname() == "" {
			add("registries: %q is not a host, or host:port", host)
		}
		if (r.User == "") != (r.Password == "") || r.User != "" && r.Token != "" {
			add("registries.%s: it takes a user and their password, or a token, or nothing", host)
		}
	}
	if n := c.Engine.NumParallel; n < 0 || n > maxParallel {
		add("engine.num_parallel: must be from 0, which is as many as fit well, to %d", maxParallel)
	}
	if t := c.Engine.KVCacheType; !slices.Contains([]string{"", "f16", "q8_0", "q4_0"}, t) {
		add("engine.kv_cache_type: %q is none of f16, q8_0, q4_0", t)
	}
	problems = append(problems, c.validateDatabases()...)
	for _, name := range slices.Sorted(maps.Keys(c.Lake.Connections)) {
		if !nameForm.MatchString(name) {
			add("lake.connections.%s: a name has letters, digits, _ and -, and at most 63 of them", name)
		}
		u, err := url.Parse(c.Lake.Connections[name].URL)
		if err != nil || u.Scheme != "file" || u.Host != "" || !filepath.IsAbs(u.Path) {
			add("lake.connections.%s.url: only file:///absolute/folder is there in this version", name)
		}
	}
	return problems
}

// validateRemotes looks at the servers elsewhere.
func (c *Config) validateRemotes() (problems []error) {
	seen := map[string]bool{}
	for i := range c.Remotes {
		r := &c.Remotes[i]
		bad := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("remotes[%d]: %s", i, fmt.Sprintf(format, args...)))
		}
		if !nameForm.MatchString(r.Name) {
			bad("name: %q has other than letters, digits, _ and -, or more than 63 of them", r.Name)
		}
		if seen[r.Name] {
			bad("name: %s is there twice", r.Name)
		}
		seen[r.Name] = true
		if r.Kind != "openai" && r.Kind != "ollama" {
			bad("kind: %q is neither openai nor ollama", r.Kind)
		}
		if u, err := url.Parse(r.URL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
			bad("url: it must be http://host:port or https://host, without a password in it") // not repeated: it may hold one
		}
		if r.Slots < 0 {
			bad("slots: must not be negative")
		}
	}
	return problems
}
