package lakecopy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
	"sluice/store"
)

// publish makes the staged files of a run visible, all or none, and deletes those that they replace. It returns with the
// run recorded as committed, or with everything as it was and the run still to be recorded as aborted.
//
// The order is what makes a crash harmless. Nothing old is deleted before every new file is visible and the record says
// committed; nothing new is deleted after that. See recover.go for what each record means to a restart.
func (j *job) publish(ctx context.Context) error {
	release, err := j.service.locks.acquire(ctx, path.Join(j.lake.root, j.path))
	if err != nil {
		return err
	}
	defer release()
	if err := j.prepare(); err != nil {
		return err
	}
	if err := j.still(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	// From here the caller's leaving stops nothing.
	ctx = context.WithoutCancel(ctx)
	if len(j.run.Added) == 0 {
		return j.commit(ctx)
	}
	if err := j.service.journal.UpdateRun(ctx, j.run); err != nil {
		j.run.Added, j.run.Replaced = nil, nil // nothing is visible yet
		return fmt.Errorf("lakecopy: record the files to publish: %w", err)
	}
	made, err := j.link()
	if err != nil {
		return errors.Join(err, j.takeBack(made))
	}
	if err := j.commit(ctx); err != nil {
		return j.uncommitted(ctx, made, err)
	}
	return j.clean(ctx)
}

// still asks again for the right to publish: a COPY may take long, and meanwhile its key may have been deleted or its
// grant taken away. Only freshness is not asked for again.
func (j *job) still(ctx context.Context) error {
	if j.service.rights == nil {
		return fail(KindAuth, "nobody has the right to publish files: this server knows no rights")
	}
	now, err := j.service.rights.Again(ctx, j.who)
	switch {
	case ctx.Err() != nil:
		return canceled(ctx)
	case fault.CodeOf(err) == fault.Unauthenticated:
		return fail(KindAuth, "the key or login of this COPY is not valid any more; nothing was published")
	case err != nil:
		return fmt.Errorf("lakecopy: ask again who may publish: %w", err)
	}
	target := access.Folder{Connection: j.lake.Name, Path: j.path}
	if err := access.StillMayCopy(now, j.run.Database, target); err != nil || j.asker == nil {
		return err
	}
	asker, err := j.service.askerNow(ctx, *j.asker)
	if err != nil {
		return err
	}
	return access.MayAskForCopy(asker, j.run.Database, target)
}

// prepare decides, under the lock, what is published and what is replaced.
func (j *job) prepare() error {
	if len(j.files) == 0 {
		return nil
	}
	keys := j.shape.partitionNames()
	var touched []string
	for _, file := range j.files {
		touched = append(touched, file.folder)
	}
	slices.Sort(touched)
	touched = slices.Compact(touched)
	if j.rows == 0 {
		// The one file without rows: only where the target holds no data at all.
		if name, _, err := sampleFile(j.lake.dir, j.path); err != nil {
			return diskError("list a folder", err)
		} else if name != "" {
			j.files = nil
			return nil
		}
	}
	found, err := look(j.lake.dir, j.path, keys, touched)
	if err != nil {
		return err
	}
	if j.stmt.Mode == sqlguard.Append {
		if err := sameSchema(j.lake.dir, j.path, keys, j.shape.files); err != nil {
			return err
		}
	} else if len(found.old) > 0 {
		j.run.Replaced = found.old
	}
	j.run.Added = make([]string, len(j.files))
	for i, file := range j.files {
		j.run.Added[i] = path.Join(j.path, file.folder, fileName(j.run.ID, i+1))
		j.run.Bytes += file.bytes
	}
	j.run.Rows, j.run.Files = j.rows, int64(len(j.files))
	if len(keys) > 0 {
		j.run.Partitions = int64(len(touched))
	}
	return nil
}

// fileName is the name of a published file. No two runs share an id, so no name is ever used twice.
func fileName(run string, n int) string { return fmt.Sprintf("part-%s-%05d.parquet", run, n) }

// link gives every staged file its final name and makes the names durable. It returns the folders that it made.
func (j *job) link() (made []string, err error) {
	dir := j.lake.dir
	touched := map[string]bool{}
	for i, file := range j.files {
		if parent := path.Dir(j.run.Added[i]); !touched[parent] {
			fresh, err := makeDirs(dir, parent)
			made = append(made, fresh...)
			if err != nil {
				return made, diskError("make a folder", err)
			}
			touched[parent] = true
		}
		if err := dir.Link(file.staged, j.run.Added[i]); err != nil {
			return made, diskError("publish a file", err)
		}
	}
	for _, parent := range slices.Sorted(maps.Keys(touched)) {
		if err := dir.SyncDir(parent); err != nil {
			return made, diskError("sync a folder", err)
		}
	}
	return made, nil
}

// commit is the switch: once it is on the disk, the run's files are the truth.
func (j *job) commit(ctx context.Context) error {
	done := j.run
	done.State, done.Added, done.EndedAt = store.Committed, nil, j.service.now()
	if err := j.service.journal.UpdateRun(ctx, done); err != nil {
		return fmt.Errorf("lakecopy: record the commit: %w", err)
	}
	j.run = done
	return nil
}

// uncommitted deals with a commit that could not be recorded, or was and the answer got lost. Only when the record
// certainly says aborted may the new files go; otherwise all files stay until the next start reads what the record says.
func (j *job) uncommitted(ctx context.Context, made []string, cause error) error {
	undo := j.run
	undo.State, undo.Kind = store.Aborted, string(KindIO)
	undo.Error = "the commit could not be recorded"
	if err := j.service.journal.UpdateRun(ctx, undo); err != nil {
		j.undecided = true
		out := fault.Wrap(errors.Join(cause, err), fault.Conflict, "lakecopy", "the outcome of run %s could not be recorded; the next start of the server decides it", j.run.ID)
		out.Kind = string(KindIO)
		return out
	}
	out := fail(KindIO, "the commit could not be recorded; nothing was published")
	out.Err = cause
	return errors.Join(out, j.takeBack(made))
}

// takeBack removes what link made visible. What it cannot remove stays in the run's record, for the next start.
func (j *job) takeBack(made []string) error {
	if err := removeFiles(j.lake.dir, j.run.Added); err != nil {
		return diskError("take back a file", err)
	}
	for _, dir := range slices.Backward(made) {
		if err := missing(j.lake.dir.Remove(dir)); err != nil {
			break // somebody else put something there
		}
	}
	j.run.Added, j.run.Replaced = nil, nil
	return nil
}

// removeFiles removes files that may be gone already and makes that durable.
func removeFiles(dir folder, names []string) error {
	parents := map[string]bool{}
	var errs []error
	for _, name := range names {
		if err := missing(dir.Remove(name)); err != nil {
			errs = append(errs, err)
		}
		parents[path.Dir(name)] = true
	}
	for _, parent := range slices.Sorted(maps.Keys(parents)) {
		if err := missing(dir.SyncDir(parent)); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// clean deletes the replaced files of a committed run. A failure is told, since readers outside see old rows beside the
// new ones; the record keeps the list, and the next start deletes them.
func (j *job) clean(ctx context.Context) error {
	if j.run.Replaced == nil {
		return nil
	}
	if err := removeFiles(j.lake.dir, j.run.Replaced); err != nil {
		out := fail(KindIO, "run %s is published, but files that it replaces could not be deleted yet, so readers may see old rows beside the new ones; the next start of the server deletes them", j.run.ID)
		out.Err = err
		return out
	}
	done := j.run
	done.Replaced = nil
	if err := j.service.journal.UpdateRun(ctx, done); err != nil {
		// The files are gone; that the record still lists them only makes the next start look for them again.
		return nil
	}
	j.run = done
	return nil
}

// stageFolder is where a run writes before it publishes.
func stageFolder(run string) string { return strings.Join([]string{ownFolder, "stage", run}, "/") }
