package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sluice/units"
)

// Config is every setting of a server. Its YAML form is the contract.
type Config struct {
	Listen     string              `yaml:"listen"`   // host:port
	Home       string              `yaml:"home"`     // folder of everything below that is not set
	Control    string              `yaml:"control"`  // "sqlite": home/control.db
	Runner     string              `yaml:"runner"`   // sluice-runner; default: beside the program
	Backends   string              `yaml:"backends"` // folders of ggml backend libraries (CUDA …), as in PATH; "": those linked in
	Auth       Auth                `yaml:"auth"`
	Limits     Limits              `yaml:"limits"`
	Models     string              `yaml:"models"`     // catalogue, models.yaml; "": the built-in one
	Folders    []string            `yaml:"folders"`    // of GGUF files that are served as they are, without an import
	Registries map[string]Registry `yaml:"registries"` // by host: may be asked besides those of the catalogue
	Databases  map[string]Database `yaml:"databases"`
	Lake       Lake                `yaml:"lake"`
	Rag        Rag                 `yaml:"rag"`
	Agent      Agent               `yaml:"agent"`
	Audit      Audit               `yaml:"audit"`
	Remotes    []Remote            `yaml:"remotes"`

	Engine   Engine `yaml:"engine"`
	LogLevel string `yaml:"log"` // debug, info, warn, error

	ModelsDir string   `yaml:"-"` // OLLAMA_MODELS; default home/models
	AdminKey  string   `yaml:"-"` // SLUICE_ADMIN_KEY: the bootstrap admin key
	Origins   []string `yaml:"-"` // OLLAMA_ORIGINS: further origins of browser pages
}

// Engine is how models are loaded. The keys are the names of Ollama's variables.
type Engine struct {
	NumParallel    int           `yaml:"num_parallel"`      // requests that a model answers at a time; 0: 4, fewer with a long context
	MaxLoaded      int           `yaml:"max_loaded_models"` // models at a time; 0: as many as fit into memory
	GPUOverhead    units.Bytes   `yaml:"gpu_overhead"`      // kept free on each GPU
	MaxQueue       int           `yaml:"max_queue"`         // waiting requests
	KeepAlive      units.Seconds `yaml:"keep_alive"`        // of an idle model; 0: it goes at once; negative: never
	ContextLength  int           `yaml:"context_length"`    // tokens, when a request names none
	LoadTimeout    units.Seconds `yaml:"load_timeout"`      // of a load without progress; 0 and less: no limit
	KVCacheType    string        `yaml:"kv_cache_type"`     // "f16", "q8_0", "q4_0"; "": f16
	FlashAttention *bool         `yaml:"flash_attention"`   // nil: the engine chooses
}

// maxParallel is what a batch of the engine has room for.
const maxParallel = 64

// Auth says who may call without a key, and when a password is asked for again.
type Auth struct {
	OllamaRoutes string `yaml:"ollama_routes"` // "open" (on loopback only) or "key"
	OpenAdmin    bool   `yaml:"open_admin"`    // pull, create, delete … without a key too

	// FreshFor is for how long a password counts as given just now: COPY, and changes of users, keys and grants, ask for that.
	FreshFor Duration `yaml:"fresh_for"`
}

// Limits bound what a request may use.
type Limits struct {
	Memory           units.Bytes `yaml:"memory"`            // of all loaded models together, main memory and GPUs; 0: what the devices have
	Rows             int         `yaml:"rows"`              // of /v1/query/execute
	StatementTimeout Duration    `yaml:"statement_timeout"` // of one statement
	Body             units.Bytes `yaml:"body"`              // of a request's body
}

// Database is one source.
type Database struct {
	Kind            string   `yaml:"kind"`             // "duckdb" or "postgres"
	Path            string   `yaml:"path"`             // DuckDB's file, relative to home
	URL             string   `yaml:"url"`              // PostgreSQL's, postgres://user:password@host:5432/database; a secret: it is never shown
	Schemas         []string `yaml:"schemas"`          // PostgreSQL's, whose tables are seen; default public
	Writable        bool     `yaml:"writable"`         // whether those with the role read_write may change it, through /v1/query/execute alone
	SessionTimezone string   `yaml:"session_timezone"` // default UTC
	Implicit        bool     `yaml:"-"`                // nobody named it: it is made when it is missing
}

// Lake is where COPY … TO LAKE may write.
type Lake struct {
	Connections map[string]Connection `yaml:"connections"`
}

// Connection is one lake root. An empty WriteAllowlist disables COPY there for everybody.
type Connection struct {
	URL            string   `yaml:"url"`
	WriteAllowlist []string `yaml:"write_allowlist"`
	Managed        []string `yaml:"managed"`
}

// Rag keeps documents and searches them.
type Rag struct {
	Store      string `yaml:"store"`       // "embedded": home/rag.duckdb; or the postgres:// URL of a database with pgvector, a secret
	EmbedModel string `yaml:"embed_model"` // makes the vectors
}

// Agent answers questions about databases.
type Agent struct {
	Model          string   `yaml:"model"`           // "": the first of the catalogue's sql role that is installed and fits
	ApprovedModels []string `yaml:"approved_models"` // empty: any installed model
	MaxRows        int      `yaml:"max_rows"`
	Timeout        Duration `yaml:"timeout"`
	Candidates     int      `yaml:"candidates"`  // statements that a model writes for one question
	ShowValues     bool     `yaml:"show_values"` // whether a model gets to see values of the data; names and comments it sees always
}

// Audit says where the head of the audit ledger is kept, and with which key.
type Audit struct {
	Head string `yaml:"head"` // file; default home/ledger.head; relative to home
	Key  string `yaml:"key"`  // of the head's HMAC; "": the one in home/audit.key, made at the first start
}

// minAuditKey is the least length of the key, in bytes.
const minAuditKey = 32

// Registry is a place that models are pulled from and pushed to.
type Registry struct {
	Insecure bool   `yaml:"insecure"` // plain HTTP
	User     string `yaml:"user"`     // with Password; "": nobody
	Password string `yaml:"password"`
	Token    string `yaml:"token"` // instead of a user: a bearer that is sent as it is
}

// Remote is a server elsewhere that runs models for this one.
type Remote struct {
	Name   string   `yaml:"name"`
	Kind   string   `yaml:"kind"`   // "openai" (vLLM, llama-server, another Sluice …) or "ollama"
	URL    string   `yaml:"url"`    // http://host:port, without the /v1 or /api
	Key    string   `yaml:"key"`    // bearer; "" none
	Models []string `yaml:"models"` // that it is asked for; empty: all that it lists
	Slots  int      `yaml:"slots"`  // requests that it is given at a time; default 8
}

// Default settings. home is the user's home folder.
func defaults(home string) Config {
	return Config{
		Listen:  "127.0.0.1:11434",
		Home:    filepath.Join(home, ".sluice"),
		Control: "sqlite",
		Auth:    Auth{OllamaRoutes: "open", FreshFor: Duration(15 * time.Minute)},
		Limits:  Limits{Rows: 10000, StatementTimeout: Duration(time.Minute), Body: 32 << 20},
		Rag:     Rag{Store: "embedded", EmbedModel: "all-minilm"},
		Agent:   Agent{MaxRows: 1000, Timeout: Duration(time.Minute), Candidates: 3, ShowValues: true},
		Engine: Engine{
			MaxQueue: 512, KeepAlive: units.Seconds(5 * time.Minute), ContextLength: 4096, LoadTimeout: units.Seconds(5 * time.Minute),
		},
		LogLevel: "info",
	}
}

// Load reads the file (path "" reads none) and the variables, fills defaults and reports every mistake at once.
func Load(path, userHome string, env func(string) string) (*Config, error) {
	cfg := defaults(userHome)
	var problems []error
	if path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		problems = append(problems, cfg.readFile(path, text, env)...)
	}
	problems = append(problems, cfg.readEnv(env)...)
	cfg.fill(userHome)
	problems = append(problems, cfg.validate()...)
	if len(problems) != 0 {
		return nil, errors.Join(problems...)
	}
	return &cfg, nil
}

// fill derives what was not set: paths below home, one database and one lake to begin with.
func (c *Config) fill(userHome string) {
	c.Home = expandHome(c.Home, userHome)
	if c.ModelsDir == "" {
		c.ModelsDir = filepath.Join(c.Home, "models")
	}
	c.ModelsDir = expandHome(c.ModelsDir, userHome)
	if c.Models != "" {
		c.Models = c.below(expandHome(c.Models, userHome))
	}
	for i, folder := range c.Folders {
		c.Folders[i] = c.below(expandHome(folder, userHome))
	}
	c.Audit.Head = c.below(expandHome(cmp.Or(c.Audit.Head, "ledger.head"), userHome))
	if len(c.Databases) == 0 {
		c.Databases = map[string]Database{"data": {Kind: "duckdb", Path: "data.duckdb", Implicit: true}}
	}
	for name, db := range c.Databases {
		if db.Path != "" {
			db.Path = c.below(expandHome(db.Path, userHome))
		}
		if db.SessionTimezone == "" {
			db.SessionTimezone = "UTC"
		}
		if db.Kind == "postgres" && len(db.Schemas) == 0 {
			db.Schemas = []string{"public"}
		}
		c.Databases[name] = db
	}
	if c.Engine.LoadTimeout <= 0 {
		c.Engine.LoadTimeout = units.Seconds(365 * 24 * time.Hour) // no limit, as in Ollama
	}
	if len(c.Lake.Connections) == 0 {
		// A place to write to, but nobody may yet: write_allowlist is empty.
		c.Lake.Connections = map[string]Connection{"local": {URL: "file://" + filepath.Join(c.Home, "lake")}}
	}
}

func (c *Config) below(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Home, path)
}

func expandHome(path, userHome string) string {
	if path == "~" {
		return userHome
	}
	if len(path) > 1 && path[:2] == "~/" {
		return filepath.Join(userHome, path[2:])
	}
	return path
}
