package lakecopy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
	"sluice/store"
)

// Source is what COPY needs of a database; *database.Source is one.
type Source interface {
	Name() string
	DefaultSchema() string
	Catalog(ctx context.Context) (*sqlguard.Catalog, error)
	Approve(ctx context.Context, sql string, profile sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error)
	Run(ctx context.Context, a sqlguard.Approved) (array.RecordReader, error)
}

// Journal records runs and external tables; *store.Store is one. When UpdateRun returns nil, the run is on the disk.
type Journal interface {
	InsertRun(ctx context.Context, r store.Run) error
	UpdateRun(ctx context.Context, r store.Run) error
	Runs(ctx context.Context, limit int) ([]store.Run, error)
	UnsettledRuns(ctx context.Context) ([]store.Run, error)
	InsertExternal(ctx context.Context, e store.External) error
	DeleteExternal(ctx context.Context, database, name string) (bool, error)
	Externals(ctx context.Context, database string) ([]store.External, error)
}

// Rights tells who may do what now, however long ago it was asked before; *store.Accounts is one.
type Rights interface {
	// OfUser gives what a user may do. An error with code NotFound is a user who is not there, or is disabled.
	OfUser(ctx context.Context, name string) (access.Principal, error)
	// Again gives what a principal may do now. An error with code Unauthenticated is one that is not valid any more.
	Again(ctx context.Context, who access.Principal) (access.Principal, error)
}

// Run is one attempt of a COPY.
type Run = store.Run

// ExternalTable is a Parquet folder of a lake that is readable as a table of a database.
type ExternalTable = store.External

// Config of a Service.
type Config struct {
	Connections []Connection
	Journal     Journal
	Rights      Rights           // nil: nobody has any, so that no external table can be read
	FreshFor    time.Duration    // for how long a password counts as given just now; 0: never
	Now         func() time.Time // default time.Now
	NewID       func() string    // 26-character sortable ids; default random ULIDs
}

// Service runs COPY TO LAKE and keeps external tables. Its methods may be called from many goroutines.
type Service struct {
	connections []Connection
	lakes       map[string]*lake
	journal     Journal
	rights      Rights
	freshFor    time.Duration
	now         func() time.Time
	newID       func() string
	locks       *locks
	runs        *runs
	patience    time.Duration // of Close; smaller in tests
	mem         memory.Allocator
	holdBytes   int64 // smaller in tests
}

// lake is a connection that is open.
type lake struct {
	Connection
	root   string // absolute
	dir    folder
	closed error // why it is not: lakes of this kind are not in this version
}

// New checks the connections, all mistakes at once, opens their folders (making those that do not exist) and settles what
// an earlier process left behind. A connection of a kind that this version has not is kept; using it is Unimplemented.
func New(ctx context.Context, cfg Config) (*Service, error) {
	return open(ctx, cfg, openFolder)
}

func open(ctx context.Context, cfg Config, openDir func(string) (folder, error)) (*Service, error) {
	s := &Service{
		connections: slices.Clone(cfg.Connections), lakes: map[string]*lake{}, journal: cfg.Journal, now: cfg.Now, newID: cfg.NewID,
		rights: cfg.Rights, freshFor: cfg.FreshFor,
		locks: newLocks(), runs: newRuns(), patience: settleTime, mem: memory.DefaultAllocator, holdBytes: holdBytes,
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.newID == nil {
		s.newID = func() string { return newID(s.now()) }
	}
	var errs []error
	if s.journal == nil {
		errs = append(errs, errors.New("Journal is missing"))
	}
	for _, c := range s.connections {
		errs = append(errs, s.openLake(c, openDir))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("lakecopy: %w", errors.Join(err, s.Close()))
	}
	if err := s.recover(ctx); err != nil {
		return nil, fmt.Errorf("lakecopy: settle earlier runs: %w", errors.Join(err, s.Close()))
	}
	return s, nil
}

func (s *Service) openLake(c Connection, openDir func(string) (folder, error)) error {
	if c.Name == "" {
		return errors.New("a connection has no name")
	}
	if s.lakes[c.Name] != nil {
		return fmt.Errorf("connection %s is there twice", c.Name)
	}
	if err := c.patterns(); err != nil {
		return err
	}
	root, err := c.Root()
	if fault.CodeOf(err) == fault.Unimplemented {
		s.lakes[c.Name] = &lake{Connection: c, closed: err}
		return nil
	}
	if err != nil {
		return err
	}
	dir, err := openDir(root)
	if err != nil {
		return fmt.Errorf("connection %s: %w", c.Name, err)
	}
	s.lakes[c.Name] = &lake{Connection: c, root: root, dir: dir}
	return nil
}

// Close lets no new COPY begin, waits for those that run, for 30 s at most, and closes the lakes' folders. When it
// returns nil, every run is settled and the Journal may be closed. A caller who cannot wait cancels the runs' contexts first.
func (s *Service) Close() error {
	errs := []error{s.runs.end(s.patience)}
	for _, lake := range s.lakes {
		if lake.dir != nil {
			errs = append(errs, lake.dir.Close())
		}
	}
	return errors.Join(errs...)
}

// lake finds an open connection.
func (s *Service) lake(name string) (*lake, error) {
	found := s.lakes[name]
	if found == nil {
		return nil, fail(KindOption, "there is no connection %s", name)
	}
	return found, found.closed
}

// moment is now, for what access asks.
func (s *Service) moment() access.Moment {
	return access.Moment{Now: s.now(), FreshFor: s.freshFor}
}

// Runs lists runs, newest first, limit at most.
func (s *Service) Runs(ctx context.Context, limit int) ([]Run, error) {
	return s.journal.Runs(ctx, limit)
}

// Connections lists the configured connections.
func (s *Service) Connections() []Connection { return slices.Clone(s.connections) }
