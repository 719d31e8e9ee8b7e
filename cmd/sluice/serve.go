package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice/agent"
	"sluice/config"
	"sluice/database"
	"sluice/gateway"
	"sluice/lakecopy"
	"sluice/models"
	"sluice/rag/collection"
	"sluice/scheduler"
	"sluice/store"
)

// stopGrace is how long streams and copies may go on after a signal before they are ended.
const stopGrace = 20 * time.Second

func serveCmd() *cobra.Command {
	var settings settingsFlags
	var pullDefaults bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Start the server", Args: cobra.NoArgs,
		Long: "Start the server. Settings: flags, SLUICE_* and OLLAMA_* variables, the file, defaults (docs/SETTINGS.md).\n" +
			"SIGHUP reads the file and the catalogue of models again and takes over what can change while it runs.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			loadFile, err := settings.loader()
			if err != nil {
				return err
			}
			load := func() (*config.Config, error) { return loadFile(settings.file) }
			cfg, err := load()
			if err != nil {
				return usageError{err}
			}
			s, err := newServer(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			s.load, s.pullDefaults = load, pullDefaults
			return s.serve(cmd.Context())
		},
	}
	settings.add(cmd)
	cmd.Flags().BoolVar(&pullDefaults, "pull-defaults", false, "of each role (chat, sql, embed) without an installed model, get the catalogue's first that fits this machine, in the background")
	return cmd
}

// server holds the running parts, in the order in which they start.
type server struct {
	cfg  *config.Config
	load func() (*config.Config, error) // reads the settings again

	pullDefaults bool // was asked for

	log         *slog.Logger
	level       *slog.LevelVar // of log
	lock        *os.File
	store       *store.Store
	accounts    *store.Accounts
	ledger      *store.Ledger
	lake        *lakecopy.Service
	databases   map[string]*database.Source
	reach       *reach // of the databases
	asker       *agent.Agent
	catalogue   catalogue
	sources     *sources // of models
	installed   *models.Store
	inventory   scheduler.Inventory
	scheduler   *scheduler.Scheduler
	collections *collection.Service
	defaults    *defaultPuller
	handler     http.Handler
	listener    net.Listener
}

// newServer starts everything but the listener's loop. On an error all that had started is closed again.
func newServer(ctx context.Context, cfg *config.Config) (*server, error) {
	level := &slog.LevelVar{}
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	setDefaultLog(log)
	s := &server{cfg: cfg, log: log, level: level, databases: map[string]*database.Source{}}
	if err := s.start(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// start fills the server part by part.
func (s *server) start(ctx context.Context) (err error) {
	cfg := s.cfg
	// The port first: a mistaken second start must fail before it touches anything.
	if s.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
		return fmt.Errorf("%w (is another server running? --listen 127.0.0.1:0 takes a free port)", err)
	}
	if err = os.MkdirAll(cfg.Home, 0o700); err != nil {
		return err
	}
	if s.lock, err = lockHome(cfg.Home); err != nil {
		return err
	}
	if s.store, err = store.Open(ctx, filepath.Join(cfg.Home, "control.db")); err != nil {
		return err
	}
	s.accounts = store.NewAccounts(s.store, nil)
	if err = s.openLedger(ctx); err != nil {
		return err
	}
	if err = bootstrap(ctx, s.store, s.ledger, cfg.AdminKey, os.Stderr); err != nil {
		return err
	}
	if err = s.openLake(ctx); err != nil {
		return err
	}
	if err = s.store.SettleCopyRequests(ctx, time.Now()); err != nil { // after the lake settled its runs
		return err
	}
	if err = s.openDatabases(ctx); err != nil {
		return err
	}
	if err = s.openModels(); err != nil {
		return err
	}
	if err = s.newScheduler(); err != nil {
		return err
	}
	if err = s.openCollections(ctx); err != nil {
		return err
	}
	completer := &completer{models: s.installed, scheduler: s.scheduler}
	asker, err := agent.New(agent.Config{
		Completer: completer, Model: cfg.Agent.Model, Approved: cfg.Agent.ApprovedModels, MaxRows: cfg.Agent.MaxRows,
		Timeout: time.Duration(cfg.Agent.Timeout), Record: agent.RecordIn(s.store), Verified: agent.VerifiedIn(s.store), Candidates: cfg.Agent.Candidates,
		HideValues: func(string) bool { return !cfg.Agent.ShowValues },
	})
	if err != nil {
		return err
	}
	s.asker = asker
	s.handler, err = gateway.New(gateway.Config{
		Version: version, Models: s.installed, Scheduler: s.scheduler, Sources: s.databases,
		Agent:    &defaultModel{asker: asker, cfg: cfg, installed: s.installed, catalogue: &s.catalogue, memory: s.memory},
		Registry: s.sources, Warnings: s.warnings, Lake: s.lake, CopyRequests: s.store, Accounts: s.accounts, Ledger: auditLedger{s.ledger}, Learning: s.store, FreshFor: time.Duration(cfg.Auth.FreshFor),
		OpenOllama: cfg.Auth.OllamaRoutes == "open", OpenAdmin: cfg.Auth.OpenAdmin, Loopback: cfg.Loopback(),
		MaxRows: cfg.Limits.Rows, MaxBody: int64(cfg.Limits.Body), StatementTimeout: time.Duration(cfg.Limits.StatementTimeout),
		Origins: cfg.Origins, Log: s.log, Collections: s.collections,
	})
	return err
}

// lockHome keeps a second server off the same home: it would take this one's running copies for dead ones and settle
// them. The lock ends with the process, however it ends.
func lockHome(home string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(home, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("another server uses %s (choose another folder with --home)", home)
	}
	return f, nil
}

func (s *server) openLake(ctx context.Context) (err error) {
	s.lake, err = lakecopy.New(ctx, lakecopy.Config{Connections: s.connections(), Journal: auditedJournal{s.store, s.ledger}, Rights: s.accounts, FreshFor: time.Duration(s.cfg.Auth.FreshFor)})
	return err
}

func (s *server) connections() []lakecopy.Connection {
	var out []lakecopy.Connection
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Lake.Connections)) {
		c := s.cfg.Lake.Connections[name]
		out = append(out, lakecopy.Connection{Name: name, URL: c.URL, WriteAllowlist: c.WriteAllowlist, Managed: c.Managed})
	}
	return out
}

// serve answers until ctx ends, then stops the parts in the reverse order of starting: no new requests, those in
// flight get their grace, then runners, then sources, then the control store.
func (s *server) serve(ctx context.Context) error {
	defer s.close()
	schedulerCtx, stopScheduler := context.WithCancel(context.WithoutCancel(ctx))
	schedulerDone := make(chan error, 1)
	go func() { schedulerDone <- s.scheduler.Run(schedulerCtx) }()
	stopDefaults := s.startDefaults(ctx)
	defer stopDefaults()
	stopFollowing := s.followModel(schedulerCtx)
	defer stopFollowing()

	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	web := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	webDone := make(chan error, 1)
	go func() { webDone <- web.Serve(s.listener) }()
	fmt.Fprintf(os.Stderr, "sluice listens on http://%s\n", s.listener.Addr())

	signal.Ignore(syscall.SIGPIPE) // who read our log has gone: that must not end the server
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	var err error
	for running := true; running; {
		select {
		case err = <-webDone:
			running = false
		case <-ctx.Done():
			s.log.Info("stopping", "grace", stopGrace.String())
			running = false
		case <-hangup: // a closed terminal sends it too, and must not end the server uncleanly
			s.reload()
		}
	}
	stopDefaults()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if web.Shutdown(grace) != nil {
		endRequests() // cancels what is still in flight; a copy that was not yet published leaves nothing behind
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if web.Shutdown(late) != nil {
			web.Close()
		}
	}
	stopFollowing()
	stopScheduler()
	if stopped := <-schedulerDone; err == nil && stopped != nil && !errors.Is(stopped, context.Canceled) {
		err = stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// startDefaults begins to pull the default models where that was asked for. The function that it gives ends that, and waits.
func (s *server) startDefaults(ctx context.Context) (stop func()) {
	if !s.pullDefaults {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.defaults.Run(ctx)
	}()
	return func() { cancel(); <-done }
}

func (s *server) close() {
	if s.listener != nil {
		s.listener.Close()
	}
	if s.lake != nil {
		if err := s.lake.Close(); err != nil {
			s.log.Warn("closing the lake", "error", err)
		}
	}
	if s.asker != nil {
		s.asker.Close() // it may be looking at the databases
	}
	if s.collections != nil {
		if err := s.collections.Close(); err != nil {
			s.log.Warn("closing the store of documents", "error", err)
		}
	}
	for name, src := range s.databases {
		if err := src.Close(); err != nil {
			s.log.Warn("closing a database", "database", name, "error", err)
		}
	}
	if s.ledger != nil {
		if err := s.ledger.Close(); err != nil {
			s.log.Warn("closing the audit ledger", "error", err)
		}
	}
	if s.store != nil {
		if err := s.store.Close(); err != nil {
			s.log.Warn("closing the control store", "error", err)
		}
	}
	if s.lock != nil {
		s.lock.Close()
	}
}
