package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/agent"
	"sluice/database"
	"sluice/lakecopy"
	"sluice/models"
	"sluice/rag/collection"
	"sluice/scheduler"
)

// OllamaLevel is the version that /api/version reports: the level of Ollama's API that is spoken here. Clients parse
// it as dotted integers and want 0.6.4 or newer; Sluice's own version is in the header X-Sluice-Version.
const OllamaLevel = "0.17.4"

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
	Accounts  Accounts                    // required
	Ledger    Ledger                      // required
	Learning  Learning                    // nil: the routes of the Learning Loop answer that this server keeps no questions
	Registry  Registry                    // nil: pull and push answer that there is none
	Warnings  func() []string             // what /readyz tells besides its own; nil: nothing

	Collections *collection.Service // nil: the routes of documents answer that this server keeps none

	CopyRequests CopyRequests // nil: a COPY that an agent sends is refused

	OpenOllama bool     // ollama_routes: open
	OpenAdmin  bool     // the routes that change models are open too, under the same conditions
	Loopback   bool     // the server listens on loopback
	Origins    []string // allowed besides Ollama's defaults, each with at most one *
	MaxRows    int      // cap of a JSON result of /v1/query/execute; default 10000
	MaxBody    int64    // bytes of a request body, blobs excepted; default 32 MiB

	FreshFor         time.Duration // for how long a password counts as given just now; default 15m
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
	if cfg.FreshFor == 0 {
		cfg.FreshFor = 15 * time.Minute
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
	need(cfg.Accounts == nil, "Accounts is required")
	need(cfg.Ledger == nil, "Ledger is required")
	need(cfg.MaxRows < 0, "MaxRows must be positive")
	need(cfg.MaxBody < 0, "MaxBody must be positive")
	need(cfg.FreshFor < 0, "FreshFor must be positive")
	need(cfg.StatementTimeout < 0, "StatementTimeout must be positive")
	need(cfg.WriteTimeout < 0, "WriteTimeout must be positive")
	return errors.Join(append(problems, checkOrigins(cfg.Origins))...)
}

type server struct {
	cfg      Config
	now      func() time.Time
	started  time.Time
	hostname string // of this machine: Host may name it
	meters   *metrics
	attempts *attempts // to log in
	running  *running  // statements
	away     known     // models of servers elsewhere
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
	s := &server{cfg: cfg, now: time.Now, started: time.Now(), hostname: machineName(), attempts: newAttempts(), running: newRunning()}
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
