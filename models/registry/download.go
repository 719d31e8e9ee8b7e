package registry

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ollama/ollama/format"

	"sluice/fault"
	"sluice/models"
)

// noteEvery is how often the journal is brought up to date, which costs a sync of the disk. What came since is fetched again
// after a kill.
const noteEvery = 2 * time.Second

// lockEvery is how often a file that another process fetches is asked for.
const lockEvery = 200 * time.Millisecond

// download is one blob on its way into the store.
type download struct {
	remote *remote
	blob   models.Blob
	path   string
	file   *os.File // locked

	completed atomic.Int64 // bytes that are there, good or not
	parts     []*part

	mu         sync.Mutex
	etag       string
	anyVersion bool // the version was other once, the digest decides
}

// run gets the blob into its file. fetched is called when all bytes are there for the first time. errPublished: another process got the
// blob into the store meanwhile.
func (d *download) run(ctx context.Context, fetched func()) error {
	if err := d.open(ctx); err != nil {
		return err
	}
	if d.remote.c.cfg.Store.Intact(d.blob) {
		d.completed.Store(d.blob.Size)
		return errPublished
	}
	d.load()
	if err := d.file.Truncate(d.blob.Size); err != nil {
		return d.diskError(ctx, err)
	}
	if err := d.all(ctx); err != nil {
		return d.remote.unreachable(err)
	}
	fetched()
	d.remote.c.at("fetched")
	if err := d.verify(ctx); err != nil {
		return d.remote.unreachable(err)
	}
	if err := d.remote.c.cfg.Store.CheckFile(d.blob, d.file); err != nil {
		if fault.CodeOf(err) == fault.Invalid {
			d.remove()
		}
		return fmt.Errorf("registry: %w", err)
	}
	d.remote.c.at("verified")
	return nil
}

// open takes the file for us alone: another pull, of another process on the same folder, may have it.
func (d *download) open(ctx context.Context) error {
	for {
		f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR|noFollow, 0o644)
		if isLink(err) && os.Remove(d.path) == nil { // it is not ours, and what it leads to even less
			continue
		}
		if err != nil {
			return d.diskError(ctx, err)
		}
		ours, err := lock(f)
		if err != nil {
			_ = f.Close()
			return d.diskError(ctx, err)
		}
		if ours {
			// It may have become a blob while it was waited for.
			have, err1 := f.Stat()
			named, err2 := os.Stat(d.path)
			if err1 == nil && err2 == nil && os.SameFile(have, named) {
				d.file = f
				return nil
			}
		}
		_ = f.Close()
		if !ours {
			if err := sleep(ctx, lockEvery); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// load takes up what the journal says, or begins anew.
func (d *download) load() {
	j, err := readJournal(d.path+journalSuffix, d.blob.Digest, d.blob.Size)
	if fi, statErr := d.file.Stat(); err != nil || statErr != nil || fi.Size() == 0 {
		d.divide()
		return
	}
	d.etag = j.ETag
	d.parts = nil
	for _, p := range j.Parts {
		sum, _ := hex.DecodeString(p.SHA256) // checked by readJournal
		d.parts = append(d.parts, &part{offset: p.Offset, size: p.Size, done: p.Done, sum: sum})
		d.completed.Add(p.Done)
	}
}

// divide makes new parts, of which nothing is there.
func (d *download) divide() {
	size := max(d.remote.c.cfg.PartBytes, (d.blob.Size+maxParts-1)/maxParts)
	d.cut(size)
}

func (d *download) cut(size int64) {
	d.parts = nil
	d.completed.Store(0)
	for at := int64(0); at < d.blob.Size; at += size {
		d.parts = append(d.parts, &part{offset: at, size: min(size, d.blob.Size-at)})
	}
}

// all gets every part that is not whole. A registry that ignores ranges gets the blob asked for in one; one whose blob has changed
// meanwhile is asked anew, once.
func (d *download) all(ctx context.Context) error {
	for changed := false; ; {
		err := d.missing(ctx)
		switch {
		case errors.Is(err, errNoRange) && len(d.parts) > 1:
			d.cut(d.blob.Size)
		case errors.Is(err, errChanged) && !changed:
			changed = true
			d.mu.Lock()
			d.etag, d.anyVersion = "", true
			d.mu.Unlock()
			d.divide()
		case errors.Is(err, errChanged):
			return fault.Wrap(err, fault.Conflict, "registry.download", "the registry %s has blob %s with another size than the %d bytes that the manifest says",
				d.remote.base.Host, d.blob.Digest, d.blob.Size)
		default:
			return err
		}
	}
}

// missing gets the parts that are not whole, several at a time, and keeps the journal.
func (d *download) missing(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var todo []*part
	for _, p := range d.parts {
		if !p.whole() {
			todo = append(todo, p)
		}
	}
	if len(todo) == 0 {
		return nil
	}
	if err := d.note(); err != nil {
		return d.diskError(ctx, err)
	}
	next := make(chan *part, len(todo))
	for _, p := range todo {
		next <- p
	}
	close(next)
	var workers sync.WaitGroup
	for range min(len(todo), d.remote.c.cfg.Parallel) {
		workers.Go(func() {
			for p := range next {
				if err := d.fetch(ctx, p); err != nil {
					cancel(err)
					return
				}
				d.remote.c.at("part")
			}
		})
	}
	stop := make(chan struct{})
	var notes sync.WaitGroup
	notes.Go(func() {
		tick := time.NewTicker(d.remote.c.note)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if err := d.note(); err != nil {
					cancel(d.diskError(ctx, err))
				}
			}
		}
	})
	workers.Wait()
	close(stop)
	notes.Wait()
	err := context.Cause(ctx)
	if noteErr := d.note(); noteErr != nil && err == nil {
		err = d.diskError(ctx, noteErr)
	}
	return err
}

// note makes durable what is there, and then writes down what that is.
func (d *download) note() error {
	d.mu.Lock()
	j := &journal{Version: journalVersion, Digest: d.blob.Digest, Size: d.blob.Size, ETag: d.etag}
	d.mu.Unlock()
	for _, p := range d.parts {
		done, sum := p.state()
		jp := journalPart{Offset: p.offset, Size: p.size, Done: done}
		if done > 0 {
			jp.SHA256 = hex.EncodeToString(sum)
		}
		j.Parts = append(j.Parts, jp)
	}
	if err := d.file.Sync(); err != nil {
		return err
	}
	return j.write(d.path + journalSuffix)
}

// diskError classifies an error of our own disk.
func (d *download) diskError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return diskFault(d.blob.Size, err)
}

// diskFault says what is the matter with the models folder, with a file of so many bytes. No path is told.
func diskFault(size int64, err error) error {
	const op = "registry.download"
	err = fmt.Errorf("%w: %w", errDisk, err)
	switch {
	case noSpace(err):
		return fault.Wrap(err, fault.Conflict, op, "the disk of the models folder is full: what was fetched is kept; make room and pull again")
	case tooLarge(err):
		return fault.Wrap(err, fault.Conflict, op, "the models folder cannot hold a file of %s: its file system, or a limit on this server's process, allows no such file",
			format.HumanBytes(size))
	}
	return fault.Wrap(err, fault.Conflict, op, "the models folder cannot be written: %s", why(err))
}

// remove forgets the file.
func (d *download) remove() {
	_ = os.Remove(d.path) // what stays is removed when it is old
	_ = os.Remove(d.path + journalSuffix)
}

// close ends the use of the file. A journal whose file has become a blob goes.
func (d *download) close() {
	if d.file == nil {
		return
	}
	if _, err := os.Stat(d.path); errors.Is(err, os.ErrNotExist) || d.remote.c.cfg.Store.Intact(d.blob) {
		d.remove()
	}
	_ = d.file.Close() // its bytes were synced before they were said to be there
}
