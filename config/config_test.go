package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sluice/units"
)

func load(t *testing.T, file string, env map[string]string) (*Config, error) {
	t.Helper()
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "sluice.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(path, "/home/u", func(name string) string { return env[name] })
}

func TestDefaultsDenyCopyEverywhere(t *testing.T) {
	c, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	local := c.Lake.Connections["local"]
	if local.URL != "file:///home/u/.sluice/lake" || len(local.WriteAllowlist) != 0 {
		t.Errorf("default lake connection is %+v", local)
	}
	if c.Listen != "127.0.0.1:11434" || !c.Loopback() {
		t.Errorf("listens on %s by default", c.Listen)
	}
	if c.Databases["data"].Path != "/home/u/.sluice/data.duckdb" || c.Databases["data"].Writable {
		t.Errorf("default database is %+v", c.Databases["data"])
	}
}

func TestPrecedenceIsOursThenOllamaThenFile(t *testing.T) {
	file := "listen: 127.0.0.1:1\nhome: /srv/x\n"
	cases := map[string]struct {
		env  map[string]string
		want string
	}{
		"the file beats the default":       {nil, "127.0.0.1:1"},
		"Ollama's variable beats the file": {map[string]string{"OLLAMA_HOST": "http://0.0.0.0:2/"}, "0.0.0.0:2"},
		"our variable beats Ollama's":      {map[string]string{"OLLAMA_HOST": ":2", "SLUICE_HOST": "127.0.0.1:3"}, "127.0.0.1:3"},
		"a host alone takes Ollama's port": {map[string]string{"OLLAMA_HOST": "::1"}, "[::1]:11434"},
		"a port alone listens on loopback": {map[string]string{"OLLAMA_HOST": ":7"}, "127.0.0.1:7"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, err := load(t, file, c.env)
			if err != nil {
				t.Fatal(err)
			}
			if cfg.Listen != c.want {
				t.Errorf("listens on %s, want %s", cfg.Listen, c.want)
			}
		})
	}
}

func TestAllMistakesAreReportedAtOnceWithTheirLines(t *testing.T) {
	_, err := load(t, `
listen: 127.0.0.1:1
lisen: x
auth: {ollama_routes: open, opn_admin: true}
databases:
  shop: {kind: duckdb, path: a.duckdb, writeable: true}
lake:
  connections:
    l: {url: "${NOWHERE}", write_allow: []}
`, map[string]string{"OLLAMA_MAX_QUEUE": "many", "SLUICE_KEEP_ALIVE": "soon"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"line 3: unknown key lisen", "line 4: unknown key auth.opn_admin", "line 6: unknown key databases.shop.writeable",
		"line 9: unknown key lake.connections.l.write_allow", "line 9: ${NOWHERE} is not set", "OLLAMA_MAX_QUEUE", "SLUICE_KEEP_ALIVE",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

func TestValues(t *testing.T) {
	c, err := load(t, `
auth: {fresh_for: 5m}
limits: {rows: 5, statement_timeout: 90s, body: 1MiB}
agent: {model: m, approved_models: [m, n], timeout: 2m}
databases:
  shop: {kind: duckdb, path: "${WHERE}/shop.duckdb"}
`, map[string]string{"WHERE": "/data", "OLLAMA_KEEP_ALIVE": "-1", "OLLAMA_NUM_PARALLEL": "0"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.Rows != 5 || time.Duration(c.Limits.StatementTimeout) != 90*time.Second || c.Limits.Body != 1<<20 {
		t.Errorf("limits %+v", c.Limits)
	}
	if c.Agent.Model != "m" || len(c.Agent.ApprovedModels) != 2 || c.Agent.MaxRows != 1000 {
		t.Errorf("agent %+v", c.Agent)
	}
	if c.Databases["shop"].Path != "/data/shop.duckdb" {
		t.Errorf("databases %+v", c.Databases)
	}
	if time.Duration(c.Auth.FreshFor) != 5*time.Minute {
		t.Errorf("auth %+v", c.Auth)
	}
	if c.Engine.KeepAlive >= 0 || c.Engine.NumParallel != 0 {
		t.Errorf("engine %+v", c.Engine)
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]string{
		"what this version lacks is said, control": "control: postgres://x",
		"a kind that is neither":                   "databases: {a: {kind: mysql, path: x}}",
		"what this version lacks is said, s3":      "lake: {connections: {a: {url: 's3://b/c'}}}",
		"a lake root is absolute":                  "lake: {connections: {a: {url: 'file://srv/lake'}}}",
		"a name that cannot stand in a URL":        "databases: {'a/b': {kind: duckdb, path: x}}",
		"a size without sense":                     "limits: {body: 32 elephants}",
		"a time without unit":                      "limits: {statement_timeout: 60}",
		"a routes setting that is neither":         "auth: {ollama_routes: closed}",
		"a password that is never fresh":           "auth: {fresh_for: 0s}",
		"one that is fresh for ever":               "auth: {fresh_for: 24h}",
		"a listen address without port":            "listen: localhost",
		"a registry with a scheme":                 "registries: {'http://a:1': {}}",
		"a registry with a path":                   "registries: {a/b: {}}",
		"a registry's user without a password":     "registries: {a: {user: u}}",
		"a registry's user and token":              "registries: {a: {user: u, password: p, token: t}}",
	}
	for name, file := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := load(t, file, nil); err == nil {
				t.Errorf("accepted: %s", file)
			}
		})
	}
}

func TestWhatIsReadButNotThereIsRefused(t *testing.T) {
	for _, env := range []map[string]string{
		{"OLLAMA_NUM_PARALLEL": "-1"}, {"OLLAMA_NUM_PARALLEL": "65"}, {"OLLAMA_GPU_OVERHEAD": "much"}, {"SLUICE_MEMORY": "half"}, {"OLLAMA_KV_CACHE_TYPE": "q3"}, {"OLLAMA_FLASH_ATTENTION": "maybe"},
	} {
		if _, err := load(t, "", env); err == nil {
			t.Errorf("%v is accepted", env)
		}
	}
}

func TestEngineSettings(t *testing.T) {
	c, err := load(t, "", map[string]string{
		"OLLAMA_KV_CACHE_TYPE": "q8_0", "OLLAMA_FLASH_ATTENTION": "1", "OLLAMA_ORIGINS": "http://a,http://b", "OLLAMA_NUM_PARALLEL": "8", "OLLAMA_LOAD_TIMEOUT": "0",
	})
	if err != nil || len(c.Origins) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	if e := c.Engine; e.KVCacheType != "q8_0" || e.FlashAttention == nil || !*e.FlashAttention || e.NumParallel != 8 || time.Duration(e.LoadTimeout) < 1000*time.Hour {
		t.Errorf("from the variables: %+v", e)
	}
	c, err = load(t, "engine: {num_parallel: 2, max_loaded_models: 3, max_queue: 7, keep_alive: -1, context_length: 8192, load_timeout: 90s, kv_cache_type: q4_0, flash_attention: false}", map[string]string{"SLUICE_MAX_QUEUE": "9"})
	if err != nil {
		t.Fatal(err)
	}
	off := false
	want := Engine{NumParallel: 2, MaxLoaded: 3, MaxQueue: 9, KeepAlive: units.Forever, ContextLength: 8192, LoadTimeout: units.Seconds(90 * time.Second), KVCacheType: "q4_0", FlashAttention: &off}
	if !reflect.DeepEqual(c.Engine, want) {
		t.Errorf("from the file: %+v, want %+v", c.Engine, want)
	}
	c, err = load(t, "engine: {keep_alive: 10m}", nil)
	if err != nil || time.Duration(c.Engine.KeepAlive) != 10*time.Minute || c.Engine.MaxQueue != 512 || c.Engine.FlashAttention != nil {
		t.Errorf("one key leaves the others: %+v, %v", c.Engine, err)
	}
	_, err = load(t, "engine: {num_parallel: 1000, max_queue: 0, context_length: -1, kv_cache_type: q3, keepalive: 1}", nil)
	if err == nil || !strings.Contains(err.Error(), "unknown key engine.keepalive") {
		t.Errorf("a misspelt key: %v", err)
	}
	_, err = load(t, "engine: {num_parallel: 1000, max_queue: 0, context_length: -1, kv_cache_type: q3, keep_alive: 5}", nil)
	for _, want := range []string{"engine.num_parallel", "engine.max_queue", "engine.context_length", "engine.kv_cache_type"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

// A key of the contract that comes later is told apart from a misspelt one.
func TestKeysOfLaterVersionsAreNamed(t *testing.T) {
	_, err := load(t, "limits: {requests_per_principal: 8}\ntls: {cert: x}\nlake: {connections: {a: {url: 'file:///x', credentials: {}}}}\n", nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"line 1: limits.requests_per_principal is not there in this version", "tls is not", "lake.connections.a.credentials is not"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

func TestMemoryAndModelsElsewhere(t *testing.T) {
	c, err := load(t, `
limits: {memory: 8GiB}
registries:
  "127.0.0.1:5000": {insecure: true}
  registry.lan: {user: me, password: "${VLLM_KEY}"}
folders: [ggufs, /srv/models]
engine: {gpu_overhead: 512MiB}
remotes:
  - {name: vllm-a, kind: openai, url: "http://10.0.0.7:8000", key: "${VLLM_KEY}", models: [big], slots: 16}
log: debug
`, map[string]string{"VLLM_KEY": "secret", "OLLAMA_GPU_OVERHEAD": "1GiB"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Limits.Memory != 8<<30 || c.Engine.GPUOverhead != 1<<30 || c.Engine.MaxLoaded != 0 || c.LogLevel != "debug" {
		t.Errorf("memory %d, overhead %d, max loaded %d, log %s", c.Limits.Memory, c.Engine.GPUOverhead, c.Engine.MaxLoaded, c.LogLevel)
	}
	if want := map[string]Registry{"127.0.0.1:5000": {Insecure: true}, "registry.lan": {User: "me", Password: "secret"}}; !reflect.DeepEqual(c.Registries, want) {
		t.Errorf("registries %+v", c.Registries)
	}
	if want := []string{"/home/u/.sluice/ggufs", "/srv/models"}; !reflect.DeepEqual(c.Folders, want) {
		t.Errorf("folders %v, want %v", c.Folders, want)
	}
	if want := []Remote{{Name: "vllm-a", Kind: "openai", URL: "http://10.0.0.7:8000", Key: "secret", Models: []string{"big"}, Slots: 16}}; !reflect.DeepEqual(c.Remotes, want) {
		t.Errorf("remotes %+v, want %+v", c.Remotes, want)
	}
	c, err = load(t, "", map[string]string{"SLUICE_MEMORY": "3GiB", "SLUICE_FOLDERS": "/a:/b", "SLUICE_MAX_LOADED_MODELS": "2"})
	if err != nil || c.Limits.Memory != 3<<30 || len(c.Folders) != 2 || c.Engine.MaxLoaded != 2 {
		t.Errorf("from the variables: %+v, %v", c, err)
	}
	_, err = load(t, `
engine: {max_loaded_models: -1}
remotes:
  - {name: "a b", kind: vllm, url: "http://u:hunter2@h", slots: -1}
  - {name: x, kind: ollama, url: "ftp://h"}
  - {name: x, kind: ollama, url: "https://h"}
log: loud
`, nil)
	for _, want := range []string{"engine.max_loaded_models", "remotes[0]: name", "remotes[0]: kind", "remotes[0]: url", "remotes[0]: slots", "remotes[1]: url", "remotes[2]: name: x is there twice", `log: "loud"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password is told: %v", err)
	}
}

func TestLoopback(t *testing.T) {
	for listen, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "127.9.9.9:1": true,
		"0.0.0.0:1": false, ":1": false, "[::]:1": false, "10.0.0.1:1": false, "nonsense": false,
	} {
		if got := (&Config{Listen: listen}).Loopback(); got != want {
			t.Errorf("%s: loopback %v", listen, got)
		}
	}
}

func TestPostgreSQL(t *testing.T) {
	c, err := load(t, `
databases:
  erp: {kind: postgres, url: "${ERP_URL}"}
  hr:  {kind: postgres, url: "postgresql:///hr?host=/run/postgresql", schemas: [hr, "Pay Roll"], session_timezone: Europe/Zurich}
`, map[string]string{"ERP_URL": "postgres://reader:hunter2@db.lan:5432/erp?sslmode=require"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Database{
		"erp": {Kind: "postgres", URL: "postgres://reader:hunter2@db.lan:5432/erp?sslmode=require", Schemas: []string{"public"}, SessionTimezone: "UTC"},
		"hr":  {Kind: "postgres", URL: "postgresql:///hr?host=/run/postgresql", Schemas: []string{"hr", "Pay Roll"}, SessionTimezone: "Europe/Zurich"},
	}
	if !reflect.DeepEqual(c.Databases, want) {
		t.Errorf("%+v", c.Databases)
	}
}

// What is wrong with a URL is said without the URL.
func TestPostgreSQLMistakes(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"no url":                       {"{kind: postgres}", "databases.a.url: is missing"},
		"a variable that is not set":   {`{kind: postgres, url: "${NOWHERE}"}`, "${NOWHERE} is not set"},
		"a file beside it":             {"{kind: postgres, url: 'postgres://u:hunter2@h/d', path: x.duckdb}", "databases.a.path: is for kind duckdb"},
		"a url on a file":              {"{kind: duckdb, path: x, url: 'postgres://u:hunter2@h/d'}", "url and schemas are for kind postgres"},
		"schemas on a file":            {"{kind: duckdb, path: x, schemas: [main]}", "url and schemas are for kind postgres"},
		"another scheme":               {"{kind: postgres, url: 'mysql://u:hunter2@h/d'}", "databases.a.url: must be"},
		"words in place of a url":      {"{kind: postgres, url: 'host=h password=hunter2 dbname=d'}", "databases.a.url: must be"},
		"a password that is not coded": {"{kind: postgres, url: 'postgres://u:hunter2%@h/d'}", "characters such as"},
		"a port that is none":          {"{kind: postgres, url: 'postgres://u:hunter2@h:port/d'}", "databases.a.url: cannot be read"},
		"no host":                      {"{kind: postgres, url: 'postgres:///d'}", "names no host"},
		"no database":                  {"{kind: postgres, url: 'postgres://u:hunter2@h'}", "names no database"},
		"the system's schemas":         {"{kind: postgres, url: 'postgres://u:hunter2@h/d', schemas: [public, pg_catalog]}", "pg_catalog is the system's own"},
		"a schema twice":               {"{kind: postgres, url: 'postgres://u:hunter2@h/d', schemas: [a, a]}", "a is there twice"},
		"a schema without a name":      {"{kind: postgres, url: 'postgres://u:hunter2@h/d', schemas: ['']}", "a name is empty"},
		"writable is a word":           {"{kind: postgres, url: 'postgres://u:hunter2@h/d', writable: perhaps}", "writable"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, "databases: {a: "+c.file+"}", nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestWritableDatabases(t *testing.T) {
	c, err := load(t, "databases: {a: {kind: duckdb, path: a.duckdb, writable: true}, b: {kind: postgres, url: 'postgres://u@h/d', writable: true}, c: {kind: duckdb, path: c.duckdb}}", nil)
	if err != nil || !c.Databases["a"].Writable || !c.Databases["b"].Writable || c.Databases["c"].Writable {
		t.Errorf("%+v, %v", c, err)
	}
}
