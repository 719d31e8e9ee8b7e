package lakecopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
	"sluice/store"
)

// Result of a COPY, exactly the fields of the contract.
type Result struct {
	JobID             string `json:"job_id"`
	RunID             string `json:"run_id"`
	RowsWritten       int64  `json:"rows_written"`
	FilesWritten      int64  `json:"files_written"`
	BytesWritten      int64  `json:"bytes_written"`
	PartitionsTouched int64  `json:"partitions_touched"`
}

// settleTime bounds what must finish although the caller left: taking files back and recording the outcome.
const settleTime = 30 * time.Second

// job is one run of COPY. The goroutine of Copy owns it.
type job struct {
	service   *Service
	who       access.Principal
	asker     *access.CopyAsker // who asked for it, where who approved it; nil: nobody else
	lake      *lake
	stmt      sqlguard.Copy
	path      string // the target, clean
	run       store.Run
	shape     *shape
	files     []finished
	rows      int64
	undecided bool // what the record says is not known: touch nothing, the next start does
}

// Copy runs one COPY and returns when its files are published, or nothing is. text is the whole statement, for the run's
// record. Errors are *fault.Error with a Kind; a caller who left gets Canceled without one.
func (s *Service) Copy(ctx context.Context, who access.Principal, src Source, stmt sqlguard.Copy, text string) (Result, error) {
	if stmt.Explain {
		return Result{}, fault.Bug("lakecopy: EXPLAIN COPY is not for Copy")
	}
	leave, err := s.runs.begin()
	if err != nil {
		return Result{}, err
	}
	defer leave()
	lake, target, err := s.admit(who, src, stmt)
	if err != nil {
		return Result{}, err
	}
	return s.copy(ctx, permit{who: who, lake: lake, path: target, may: mayRead(who, src)}, src, stmt, text)
}

// permit is a COPY that was let in.
type permit struct {
	who   access.Principal
	asker *access.CopyAsker // who asked for it, where who approved it; nil: nobody else
	lake  *lake
	path  string // the target, clean
	job   string // id of the job; "" is the run's
	may   func(sqlguard.Relation) bool
}

func (s *Service) copy(ctx context.Context, p permit, src Source, stmt sqlguard.Copy, text string) (Result, error) {
	approved, err := src.Approve(ctx, stmt.Query, sqlguard.CopySource, p.may)
	if err != nil {
		return Result{}, sourceError(ctx, err, stmt.QueryAt)
	}
	id := s.newID()
	if !validID(id) {
		return Result{}, fault.Bug("lakecopy: %q is no id", id)
	}
	j := &job{service: s, who: p.who, asker: p.asker, lake: p.lake, stmt: stmt, path: p.path, run: store.Run{
		ID: id, JobID: cmp.Or(p.job, id), // this version has no queue: a COPY is a job of one run
		Principal: p.who.KeyID, Owner: p.who.Owner, Database: src.Name(), Statement: text,
		Connection: p.lake.Name, Path: p.path, State: store.Running, StartedAt: s.now(),
	}}
	if err := s.journal.InsertRun(ctx, j.run); err != nil {
		return Result{}, fmt.Errorf("lakecopy: record the run: %w", err)
	}
	err = j.do(ctx, src, approved)
	if err := j.settle(ctx, err); err != nil {
		return Result{}, err
	}
	return Result{
		JobID: j.run.JobID, RunID: j.run.ID, RowsWritten: j.run.Rows, FilesWritten: j.run.Files, BytesWritten: j.run.Bytes,
		PartitionsTouched: j.run.Partitions,
	}, nil
}

// admit checks who may copy where, before the query is even looked at.
func (s *Service) admit(who access.Principal, src Source, stmt sqlguard.Copy) (*lake, string, error) {
	if err := access.MayCopyFrom(who, src.Name(), s.moment()); err != nil {
		return nil, "", err
	}
	target, err := access.Path(stmt.Path)
	if err != nil {
		return nil, "", err
	}
	// Before the connection is looked for: whoever has no grant there does not learn whether it exists.
	if err := access.MayWriteLake(who, access.Folder{Connection: stmt.Connection, Path: target}); err != nil {
		return nil, "", err
	}
	lake, err := s.destination(stmt, target)
	return lake, target, err
}

// destination is the lake of a COPY, when its settings let anybody write to the target.
func (s *Service) destination(stmt sqlguard.Copy, target string) (*lake, error) {
	lake, err := s.lake(stmt.Connection)
	if err != nil {
		return nil, err
	}
	if err := lake.mayWrite(target); err != nil {
		return nil, err
	}
	return lake, checkOptions(stmt)
}

// checkOptions refuses what the statement's reader should have refused, as a wrong number here would be a wrong file.
func checkOptions(stmt sqlguard.Copy) error {
	if _, ok := codecs[stmt.Compression]; !ok {
		return fail(KindOption, "COMPRESSION is not one of zstd, snappy, gzip, lz4, none")
	}
	switch {
	case stmt.Mode != sqlguard.OverwritePartitions && stmt.Mode != sqlguard.Append:
		return fail(KindOption, "MODE is not one of overwrite_partitions, append")
	case stmt.RowGroupSize <= 0:
		return fail(KindOption, "ROW_GROUP_SIZE must be above zero")
	case stmt.FileTargetMB <= 0:
		return fail(KindOption, "FILE_TARGET_MB must be above zero")
	}
	return nil
}

func mayRead(who access.Principal, src Source) func(sqlguard.Relation) bool {
	may := access.MayRead(who, src.Name(), src.DefaultSchema())
	return func(r sqlguard.Relation) bool { return may(r.Schema, r.Name) }
}

// do reads the query into staged files and publishes them.
func (j *job) do(ctx context.Context, src Source, approved sqlguard.Approved) error {
	reader, err := src.Run(ctx, approved)
	if err != nil {
		return sourceError(ctx, err, j.stmt.QueryAt)
	}
	defer reader.Release()
	j.shape, err = newShape(reader.Schema(), j.stmt.PartitionBy)
	if err != nil {
		return err
	}
	if err := j.write(ctx, reader); err != nil {
		return err
	}
	return j.publish(ctx)
}

// write stages the whole result.
func (j *job) write(ctx context.Context, reader array.RecordReader) (err error) {
	dir := j.lake.dir
	if _, err := makeDirs(dir, stageFolder(j.run.ID)); err != nil {
		return diskError("make the stage", err)
	}
	staged := 0
	mem := j.service.mem
	r := &router{
		format: format{schema: j.shape.files, codec: codecs[j.stmt.Compression], rowGroup: int64(j.stmt.RowGroupSize), mem: mem},
		keys:   j.shape.keys, columns: j.shape.columns, dir: dir, target: int64(j.stmt.FileTargetMB) * 1_000_000, memory: j.service.holdBytes,
		convert: func(batch arrow.RecordBatch) (arrow.RecordBatch, error) { return j.shape.batch(mem, batch) },
		next: func() string {
			staged++
			return path.Join(stageFolder(j.run.ID), fmt.Sprintf("%05d.inprogress", staged))
		},
		parts: map[string]*part{},
	}
	defer func() {
		if err != nil {
			r.abandon()
		}
	}()
	for reader.Next() {
		if ctx.Err() != nil {
			return canceled(ctx)
		}
		if err := r.add(ctx, reader.RecordBatch()); err != nil {
			return err
		}
	}
	if err := reader.Err(); err != nil {
		return sourceError(ctx, err, j.stmt.QueryAt)
	}
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	if err := r.end(ctx); err != nil {
		return err
	}
	if r.rows == 0 && j.shape.keys == nil {
		if err := r.schemaOnly(j.shape); err != nil {
			return err
		}
	}
	j.files, j.rows = r.files, r.rows
	return nil
}

// settle records how the run ended and removes its stage. It works although the caller may have left.
func (j *job) settle(ctx context.Context, err error) error {
	if j.undecided {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), settleTime, errors.New("lakecopy: settling a run took over "+settleTime.String()))
	defer cancel()
	if gone := j.lake.dir.RemoveAll(stageFolder(j.run.ID)); gone != nil && err == nil && j.run.State == store.Committed {
		// The data is published. A stage that stays is found by its age at a later start.
		return nil
	}
	if j.run.State == store.Committed {
		return err
	}
	if err == nil {
		err = fault.Bug("lakecopy: run %s ended neither committed nor failed", j.run.ID)
	}
	shown := fault.Public(err)
	failed := j.run
	failed.State, failed.Kind, failed.Error, failed.EndedAt = store.Aborted, kindOf(err), shown.Msg, j.service.now()
	failed.Rows, failed.Files, failed.Bytes, failed.Partitions = 0, 0, 0, 0
	if record := j.service.journal.UpdateRun(ctx, failed); record != nil {
		// It stays running in the record; the next start finds and aborts it. The caller needs the first error.
		return errors.Join(err, fmt.Errorf("lakecopy: record the abort: %w", record))
	}
	return err
}
