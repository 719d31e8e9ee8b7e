package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice/fault"
	"sluice/store/db"
)

// RunState is where a run of COPY TO LAKE stands.
type RunState string

// The states. A run ends committed or aborted.
const (
	Running   RunState = "running"
	Committed RunState = "committed"
	Aborted   RunState = "aborted"
)

// Run is one attempt of a COPY.
type Run struct {
	ID         string // 26 characters, sortable by time
	JobID      string
	Principal  string // key id
	Owner      string
	Database   string
	Statement  string
	Connection string
	Path       string
	State      RunState
	Kind       string // of the failure
	Error      string // for the person
	Rows       int64
	Files      int64
	Bytes      int64
	Partitions int64
	StartedAt  time.Time
	EndedAt    time.Time // zero while it runs

	// Added and Replaced are set before the first file becomes visible and emptied (nil) when all is done: the files
	// that the run publishes and those that they replace, relative to the connection's root. Found after a crash, they
	// say what to take back (not committed) or what is still to be deleted (committed).
	Added    []string
	Replaced []string
}

// InsertRun stores a new run.
func (s *Store) InsertRun(ctx context.Context, r Run) error {
	return wrap("insert a run", s.writer.InsertRun(ctx, db.InsertRunParams{
		ID: r.ID, JobID: r.JobID, Principal: r.Principal, Owner: r.Owner, Database: r.Database, Statement: r.Statement,
		Connection: r.Connection, Path: r.Path, State: string(r.State), Kind: r.Kind, Error: r.Error, Rows: r.Rows,
		Files: r.Files, Bytes: r.Bytes, Partitions: r.Partitions, StartedAt: micros(r.StartedAt), EndedAt: orNull(r.EndedAt),
		Added: packed(r.Added), Replaced: packed(r.Replaced),
	}))
}

// UpdateRun stores everything that changes in the life of a run. It is on the disk when UpdateRun returns nil.
func (s *Store) UpdateRun(ctx context.Context, r Run) error {
	n, err := s.writer.UpdateRun(ctx, db.UpdateRunParams{
		State: string(r.State), Kind: r.Kind, Error: r.Error, Rows: r.Rows, Files: r.Files, Bytes: r.Bytes,
		Partitions: r.Partitions, EndedAt: orNull(r.EndedAt), Added: packed(r.Added), Replaced: packed(r.Replaced), ID: r.ID,
	})
	if err == nil && n == 0 {
		return fault.Bug("store: run %s was never inserted", r.ID)
	}
	return wrap("update a run", err)
}

// Runs lists runs, newest first, limit at most.
func (s *Store) Runs(ctx context.Context, limit int) ([]Run, error) {
	rows, err := s.reader.Runs(ctx, int64(limit))
	if err != nil {
		return nil, wrap("list runs", err)
	}
	return each(rows, run)
}

// UnsettledRuns lists the runs that are running or have files left to take back or to delete, oldest first.
func (s *Store) UnsettledRuns(ctx context.Context) ([]Run, error) {
	rows, err := s.reader.UnsettledRuns(ctx)
	if err != nil {
		return nil, wrap("list unsettled runs", err)
	}
	return each(rows, run)
}

func run(row db.LakeRun) (Run, error) {
	r := Run{
		ID: row.ID, JobID: row.JobID, Principal: row.Principal, Owner: row.Owner, Database: row.Database,
		Statement: row.Statement, Connection: row.Connection, Path: row.Path, State: RunState(row.State), Kind: row.Kind,
		Error: row.Error, Rows: row.Rows, Files: row.Files, Bytes: row.Bytes, Partitions: row.Partitions,
		StartedAt: moment(row.StartedAt),
	}
	r.EndedAt = orZero(row.EndedAt)
	var errs [2]error
	r.Added, errs[0] = unpacked(row.Added)
	r.Replaced, errs[1] = unpacked(row.Replaced)
	if err := errors.Join(errs[:]...); err != nil {
		return Run{}, fmt.Errorf("store: run %s is damaged: %w", row.ID, err)
	}
	return r, nil
}
