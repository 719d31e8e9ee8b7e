package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/models"
)

// Push puts a model into a registry. tell gets Ollama's progress lines, and may be nil. Denied for a host that is not in Config.Hosts
// and when the registry wants another login, NotFound when there is no such model here. Blobs that the registry has are not sent.
func (c *Client) Push(ctx context.Context, t Transfer, tell func(api.ProgressResponse)) error {
	if tell == nil {
		tell = func(api.ProgressResponse) {}
	}
	r, err := c.remote(t)
	if err != nil {
		return err
	}
	tell(api.ProgressResponse{Status: "retrieving manifest"})
	data, _, err := c.cfg.Store.Manifest(t.Name)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	blobs, err := models.ManifestBlobs(data)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	defer c.cfg.Store.Pin(blobs)()
	for _, b := range blobs {
		if err := r.pushBlob(ctx, b, tell); err != nil {
			return err
		}
	}
	tell(api.ProgressResponse{Status: "pushing manifest"})
	if err := r.putManifest(ctx, data); err != nil {
		return r.unreachable(err)
	}
	tell(api.ProgressResponse{Status: "success"})
	return nil
}

// pushBlob sends one blob and tells how far it is.
func (r *remote) pushBlob(ctx context.Context, b models.Blob, tell func(api.ProgressResponse)) error {
	f, err := r.c.cfg.Store.OpenBlob(b)
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	defer f.Close()
	u := &upload{remote: r, blob: b, file: f}
	done := make(chan error, 1)
	go func() { done <- u.run(ctx) }()
	told, toldAt := int64(0), time.Now()
	tell(line("pushing", b, 0))
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done: // also when ctx ended: the file is in use until then
			if err != nil {
				return r.unreachable(err)
			}
			tell(line("pushing", b, b.Size))
			return nil
		case <-tick.C:
			if n := u.completed.Load(); n != told || time.Since(toldAt) >= tellIdle {
				told, toldAt = n, time.Now()
				tell(line("pushing", b, n))
			}
		}
	}
}

func (r *remote) putManifest(ctx context.Context, data []byte) error {
	mediaType := "application/vnd.docker.distribution.manifest.v2+json"
	if bytes.Contains(data, []byte(`"application/vnd.oci.image.manifest.v1+json"`)) {
		mediaType = "application/vnd.oci.image.manifest.v1+json"
	}
	return r.c.again(ctx, func() (bool, error) {
		ctx, watch := r.c.watch(ctx)
		defer watch.stop()
		resp, err := r.do(ctx, call{
			method: http.MethodPut, url: r.url("manifests", r.tag), header: http.Header{"Content-Type": {mediaType}},
			body: func() io.Reader { return watch.reader(bytes.NewReader(data)) }, length: int64(len(data)),
		})
		if err != nil {
			return false, watch.why(err)
		}
		if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
			return false, refused(resp)
		}
		discard(resp)
		return false, nil
	})
}

// counter is a reader that counts what was read, for progress.
type counter struct {
	r io.Reader
	n *atomic.Int64
}

// Read reads and counts.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	return n, err
}

var errUploadLost = errors.New("the registry has forgotten the upload")
