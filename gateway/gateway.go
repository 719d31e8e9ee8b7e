package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/access"
	"sluice/agent"
	"sluice/database"
	"sluice/lakecopy"
	"sluice/models"
	"sluice/scheduler"
)

// OllamaLevel is the version that /api/version reports: the level of Ollama's API that is spoken here. Clients parse
// it as dotted integers and want 0.6.4 or newer; Sluice's own version is in the header X-Sluice-Version.
const OllamaLevel = "0.17.4"

// Keys finds the principal of a bearer, and manages keys.
type Keys interface {
	// Principal gives the key's principal, or an error with code Unauthenticated.
	Principal(ctx context.Context, bearer string) (access.Principal, error)
	// Create makes a key that belongs to the owner of the creating key. The secret is shown this once.
	Create(ctx context.Context, by access.Principal, k NewKey) (id, key string, err error)
	// List gives all keys without their secrets.
	List(ctx context.Context) ([]KeyInfo, error)
	// Delete removes a key; NotFound when there is none of this id.
	Delete(ctx context.Context, id string) error
}

// NewKey is the request of POST /v1/keys. A list that is absent does not narrow; an empty one allows nothing.
type NewKey struct {
	Name      string   `json:"name"`
	Role      string   `json:"role"`
	Agent     bool     `json:"agent,omitempty"`
	Databases []string `json:"databases,omitempty"`
	Tables    []string `json:"tables,omitempty"`
	Models    []string `json:"models,omitempty"`
}

// KeyInfo describes a key without its secret. A null list does not narrow.
type KeyInfo struct {
	ID        string   `json:"id"`
	Owner     string   `json:"owner"`
	Name      string   `json:"name"`
	Role      string   `json:"role"`
	Agent     bool     `json:"agent"`
	Databases []string `json:"databases"`
	Tables    []string `json:"tables"`
	Models    []string `json:"models"`
	CreatedAt string   `json:"created_at"`
}

// Asker answers questions; *agent.Agent is one.
type Asker interface {
	Ask(ctx context.Context, src agent.Source, q agent.Ask) (agent.Answer, error)
}

// Config of the gateway.
type Config struct {
	Version   string                      // Sluice's own, for the header X-Sluice-Version
	Models    *models.Store               // required
	Scheduler *scheduler.Scheduler        // required
	Sources   map[string]*database.Source // by name
	Agent     Asker                       // nil: ask answers that it is not configured
	Lake      *lakecopy.Service           // nil: COPY and external tables answer that no lake is configured
	Keys      Keys                        // required

	OpenOllama bool     // ollama_routes: open
	OpenAdmin  bool     // the routes that change models are open too, under the same conditions
	Loopback   bool     // the server listens on loopback
	Origins    []string // allowed besides Ollama's defaults, each with at most one *
	MaxRows    int      // cap of a JSON result of /v1/query/execute; default 10000
	MaxBody    int64    // bytes of a request body, blobs excepted; default 32 MiB

	StatementTimeout time.Duration // of one query; 0: no limit
	WriteTimeout     time.Duration // for a client to take 64 KiB of an answer; default 30s

	Log *slog.Logger
}

func (cfg Config) withDefaults() Config {
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.MaxRows == 0 {
		cfg.MaxRows = 10000
	}
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 32 << 20
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = 30 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return cfg
}

func (cfg Config) validate() error {
	var problems []error
	need := func(missing bool, what string) {
		if missing {
			problems = append(problems, errors.New(what))
		}
	}
	need(cfg.Models == nil, "Models is required")
	need(cfg.Scheduler == nil, "Scheduler is required")
	need(cfg.Keys == nil, "Keys is required")
	need(cfg.MaxRows < 0, "MaxRows must be positive")
	need(cfg.MaxBody < 0, "MaxBody must be positive")
	need(cfg.StatementTimeout < 0, "StatementTimeout must be positive")
	need(cfg.WriteTimeout < 0, "WriteTimeout must be positive")
	return errors.Join(append(problems, checkOrigins(cfg.Origins))...)
}

type server struct {
	cfg      Config
	now      func() time.Time
	hostname string // of this machine: Host may name it
	meters   *metrics
}

// New builds the handler. It reports every mistake of the configuration at once.
func New(cfg Config) (http.Handler, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return newServer(cfg).handler(), nil
}

func newServer(cfg Config) *server {
	s := &server{cfg: cfg, now: time.Now, hostname: machineName()}
	s.meters = newMetrics(s)
	return s
}

func (s *server) handler() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false // a redirect would answer before the credential was looked at
	r.Use(s.requestID, s.meters.middleware(), s.accessLog, s.limitWrites, s.recover, s.checkHost, s.checkOrigin)
	for _, rt := range s.routes() {
		r.Handle(rt.method, rt.path, s.allow(rt.class), s.limitBody(rt), rt.handle)
	}
	r.NoRoute(s.noRoute)
	r.NoMethod(s.noMethod)
	return r
}
