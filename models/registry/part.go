package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"sync"
)

const (
	readSize = 256 << 10
	maxETag  = 1 << 10
)

var (
	// errNoRange: the registry sends the whole blob, whatever part was asked for.
	errNoRange = errors.New("the registry ignores ranges")
	// errChanged: the blob is not what it was when its first part came, or what the manifest says of its size.
	errChanged = errors.New("the blob has another size or version than before")
	// errDisk: our own disk failed, which no further try mends.
	errDisk = errors.New("the models folder cannot be written")
)

// part is a range of a blob.
type part struct {
	offset, size int64

	mu   sync.Mutex
	done int64
	sum  []byte    // of the done bytes; of a part that is not whole, only until it goes on
	hash hash.Hash // of the done bytes, while it is being fetched; nil: to be computed from the disk
}

func (p *part) whole() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done == p.size
}

// state gives how much of it is there, and the SHA-256 of that.
func (p *part) state() (done int64, sum []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hash != nil {
		return p.done, p.hash.Sum(nil)
	}
	return p.done, p.sum
}

// reset forgets what is there.
func (d *download) reset(p *part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.completed.Add(-p.done)
	p.done, p.sum, p.hash = 0, nil, sha256.New()
}

// resume makes the hash go on from the bytes on the disk, or the part begin anew when they are not what the journal says.
func (d *download) resume(ctx context.Context, p *part) error {
	p.mu.Lock()
	done, sum, ready := p.done, p.sum, p.hash != nil
	p.mu.Unlock()
	if ready {
		return nil
	}
	h := sha256.New()
	n, err := io.Copy(h, &ctxReader{ctx, io.NewSectionReader(d.file, p.offset, done)})
	if err != nil {
		return d.diskError(ctx, err)
	}
	if n != done || done > 0 && string(h.Sum(nil)) != string(sum) {
		d.reset(p)
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hash = h
	return nil
}

// fetch gets what is missing of a part, in as many tries as it takes while bytes come.
func (d *download) fetch(ctx context.Context, p *part) error {
	if err := d.resume(ctx, p); err != nil {
		return err
	}
	return d.remote.c.again(ctx, func() (bool, error) {
		select { // not kept while we wait for the next try, which may be long
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case d.remote.slots <- struct{}{}:
		}
		defer func() { <-d.remote.slots }()
		before, _ := p.state()
		err := d.stream(ctx, p)
		after, _ := p.state()
		return after > before, err
	})
}

// stream gets bytes of a part over one connection.
func (d *download) stream(ctx context.Context, p *part) error {
	ctx, watch := d.remote.c.watch(ctx)
	defer watch.stop()
	done, _ := p.state()
	alone := p.size == d.blob.Size
	header := http.Header{"Accept-Encoding": {"identity"}}
	if !alone || done > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", p.offset+done, p.offset+p.size-1))
	}
	resp, err := d.remote.do(ctx, call{method: http.MethodGet, url: d.remote.url("blobs", d.blob.Digest), header: header})
	if err != nil {
		return watch.why(err)
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusPartialContent:
		var from, to, total int64
		_, err := fmt.Sscanf(resp.Header.Get("Content-Range"), "bytes %d-%d/%d", &from, &to, &total)
		if err != nil || from != p.offset+done || total != d.blob.Size {
			return errChanged
		}
	case http.StatusOK:
		if !alone {
			return errNoRange
		}
		if resp.ContentLength >= 0 && resp.ContentLength != d.blob.Size {
			return errChanged
		}
		d.reset(p)
	case http.StatusRequestedRangeNotSatisfiable:
		return errChanged
	default:
		return refused(resp)
	}
	if err := d.sameVersion(resp); err != nil {
		return err
	}
	watch.alive()
	return d.receive(watch, p, resp.Body)
}

// sameVersion compares what the registry says of the blob with what it said before.
func (d *download) sameVersion(resp *http.Response) error {
	etag := resp.Header.Get("ETag")
	if etag == "" || strings.HasPrefix(etag, "W/") || len(etag) > maxETag {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.etag != "" && d.etag != etag && !d.anyVersion {
		return errChanged
	}
	d.etag = etag
	return nil
}

// receive writes a body to where it belongs. Nobody else changes p.done meanwhile, only reads it.
func (d *download) receive(watch *stallWatch, p *part, body io.Reader) error {
	buf := make([]byte, readSize)
	for p.done < p.size {
		n, err := body.Read(buf[:min(int64(len(buf)), p.size-p.done)])
		if n > 0 {
			watch.alive()
			if _, err := d.file.WriteAt(buf[:n], p.offset+p.done); err != nil {
				return d.diskError(watch.ctx, err)
			}
			p.mu.Lock()
			p.hash.Write(buf[:n])
			p.done += int64(n)
			p.mu.Unlock()
			d.completed.Add(int64(n))
		}
		if err != nil && p.done < p.size {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return watch.why(err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum, p.hash = p.hash.Sum(nil), nil
	return nil
}

// ctxReader ends a long read of our own disk when ctx ends.
type ctxReader struct {
	ctx context.Context //nolint:containedctx // of one copy
	r   io.Reader
}

// Read reads until ctx ends.
func (c *ctxReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
