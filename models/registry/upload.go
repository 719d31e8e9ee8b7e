package registry

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ollama/ollama/types/model"

	"sluice/fault"
	"sluice/models"
)

// commitPatience multiplies Config.Stall while the registry checks a whole blob that it got: it answers when it has hashed it.
const commitPatience = 20

// upload is one blob on its way into a registry: in chunks, one after the other, each of which can be sent again.
type upload struct {
	remote *remote
	blob   models.Blob
	file   *os.File

	completed atomic.Int64
	location  *url.URL // of the upload, as the registry said last
	sent      int64    // bytes that the registry has
	sums      [][]byte // MD5 of each chunk that went to a storage server, which Ollama's registry wants to know
}

func (u *upload) run(ctx context.Context) error {
	has, err := u.there(ctx)
	if err != nil || has {
		return err
	}
	lost := 0
	for {
		err := u.all(ctx)
		if !errors.Is(err, errUploadLost) {
			return err
		}
		if lost++; lost >= u.remote.c.cfg.Tries {
			return fault.Wrap(err, fault.Busy, "registry.upload", "the registry %s forgets the upload again and again", u.remote.base.Host)
		}
		u.location, u.sent, u.sums = nil, 0, nil
	}
}

// there asks whether the registry has the blob.
func (u *upload) there(ctx context.Context) (has bool, err error) {
	err = u.remote.c.again(ctx, func() (bool, error) {
		resp, err := u.ask(ctx, call{method: http.MethodHead, url: u.remote.url("blobs", u.blob.Digest)}, 1)
		if err != nil {
			return false, err
		}
		switch resp.StatusCode {
		case http.StatusOK:
			has = true
		case http.StatusNotFound:
		default:
			return false, refused(resp)
		}
		discard(resp)
		return false, nil
	})
	return has, err
}

// ask sends a request without a body, and waits for the answer patience times as long as for bytes.
func (u *upload) ask(ctx context.Context, q call, patience int) (*http.Response, error) {
	ctx, watch := u.remote.c.watch(ctx)
	watch.timer.Reset(watch.stall * time.Duration(patience))
	resp, err := u.remote.do(ctx, q)
	if err != nil {
		defer watch.stop()
		return nil, watch.why(err)
	}
	resp.Body = &stopping{resp.Body, watch}
	return resp, nil
}

// all begins an upload, sends what the registry does not have, and commits it.
func (u *upload) all(ctx context.Context) error {
	mounted, err := u.begin(ctx)
	if err != nil || mounted {
		return err
	}
	for u.sent < u.blob.Size {
		broken := false
		err := u.remote.c.again(ctx, func() (bool, error) {
			before := u.sent
			if broken {
				if err := u.position(ctx); err != nil {
					return false, err
				}
			}
			broken = true
			err := u.chunk(ctx)
			return u.sent > before, err
		})
		if err != nil {
			return err
		}
	}
	return u.commit(ctx)
}

// begin asks for an upload, or for the blob of another repository of the same registry.
func (u *upload) begin(ctx context.Context) (mounted bool, err error) {
	where := u.remote.url("blobs", "uploads/")
	if n := model.ParseName(u.blob.From); u.blob.From != "" && n.IsValid() && strings.EqualFold(n.Host, u.remote.base.Host) {
		where.RawQuery = url.Values{"mount": {u.blob.Digest}, "from": {n.Namespace + "/" + n.Model}}.Encode()
	}
	err = u.remote.c.again(ctx, func() (bool, error) {
		resp, err := u.ask(ctx, call{method: http.MethodPost, url: where}, 1)
		if err != nil {
			return false, err
		}
		switch resp.StatusCode {
		case http.StatusCreated:
			mounted = true
			discard(resp)
			return false, nil
		case http.StatusAccepted:
			return false, u.follow(resp)
		}
		return false, refused(resp)
	})
	u.completed.Store(0)
	return mounted, err
}

// follow takes the place of the next request from an answer, which it closes.
func (u *upload) follow(resp *http.Response) error {
	defer discard(resp)
	next := resp.Header.Get("Docker-Upload-Location") // Ollama's, beside the Location of a storage server
	if next == "" {
		next = resp.Header.Get("Location")
	}
	if next == "" && u.location != nil {
		return nil
	}
	to, err := resp.Request.URL.Parse(next)
	if err != nil || next == "" {
		return fault.New(fault.Conflict, "registry.upload", "the registry %s names no place for an upload", u.remote.base.Host)
	}
	if err := u.remote.mayGo(&u.remote.base, to); err != nil {
		return err
	}
	u.location = to
	return nil
}

// position asks the registry what it has of the upload.
func (u *upload) position(ctx context.Context) error {
	resp, err := u.ask(ctx, call{method: http.MethodGet, url: u.location}, 1)
	if err != nil {
		return err
	}
	switch resp.StatusCode {
	case http.StatusNoContent, http.StatusOK, http.StatusAccepted:
	case http.StatusNotFound:
		discard(resp)
		return errUploadLost
	default:
		return refused(resp)
	}
	said := resp.Header.Get("Range")
	if err := u.follow(resp); err != nil {
		return err
	}
	var from, to int64
	if _, err := fmt.Sscanf(strings.TrimPrefix(said, "bytes="), "%d-%d", &from, &to); err != nil || from != 0 || to < 0 || to >= u.blob.Size {
		return errUploadLost
	}
	u.sent = to + 1
	if to == 0 { // of nothing and of one byte registries say the same
		u.sent = 0
	}
	u.completed.Store(u.sent)
	return nil
}

// chunk sends the next bytes.
func (u *upload) chunk(ctx context.Context) error {
	size := min(u.remote.c.cfg.PartBytes, u.blob.Size-u.sent)
	ctx, watch := u.remote.c.watch(ctx)
	defer watch.stop()
	// A server may answer before it has read all: then the body is still being read while the next one is sent. They share nothing.
	from, sum := u.sent, md5.New()
	body := func() io.Reader {
		sum = md5.New()
		u.completed.Store(from)
		return watch.reader(&counter{io.TeeReader(io.NewSectionReader(u.file, from, size), sum), &u.completed})
	}
	resp, err := u.remote.do(ctx, call{
		method: http.MethodPatch, url: u.location, body: body, length: size,
		header: http.Header{
			"Content-Type": {"application/octet-stream"}, "Content-Range": {fmt.Sprintf("%d-%d", u.sent, u.sent+size-1)},
			"X-Redirect-Uploads": {"1"},
		},
	})
	if err != nil {
		return watch.why(err)
	}
	watch.alive()
	switch resp.StatusCode {
	case http.StatusAccepted, http.StatusNoContent, http.StatusCreated:
		err = u.follow(resp)
	case http.StatusTemporaryRedirect:
		if err = u.elsewhere(ctx, watch, resp, body, size); err == nil {
			u.sums = append(u.sums, sum.Sum(nil))
		}
	case http.StatusRequestedRangeNotSatisfiable, http.StatusNotFound:
		discard(resp)
		return errUploadLost
	default:
		return refused(resp)
	}
	if err != nil {
		return err
	}
	u.sent += size
	u.completed.Store(u.sent)
	return nil
}

// elsewhere sends a chunk to the storage server that the registry names, which gets no credential.
func (u *upload) elsewhere(ctx context.Context, watch *stallWatch, resp *http.Response, body func() io.Reader, size int64) error {
	to, err := resp.Location()
	if err == nil {
		err = u.remote.mayGo(&u.remote.base, to)
	}
	if err := errors.Join(err, u.follow(resp)); err != nil {
		return err
	}
	put, _, err := u.remote.send(ctx, call{
		method: http.MethodPut, body: body, length: size, header: http.Header{"Content-Type": {"application/octet-stream"}},
	}, to)
	if err != nil {
		return watch.why(err)
	}
	if put.StatusCode < 200 || put.StatusCode > 299 {
		return refused(put)
	}
	discard(put)
	return nil
}

// commit ends the upload. The registry compares the digest.
func (u *upload) commit(ctx context.Context) error {
	return u.remote.c.again(ctx, func() (bool, error) {
		to := *u.location
		query := to.Query()
		query.Set("digest", u.blob.Digest)
		if len(u.sums) > 0 {
			all := md5.New()
			for _, sum := range u.sums {
				all.Write(sum)
			}
			query.Set("etag", fmt.Sprintf("%x-%d", all.Sum(nil), len(u.sums)))
		}
		to.RawQuery = query.Encode()
		resp, err := u.ask(ctx, call{method: http.MethodPut, url: &to, header: http.Header{"Content-Type": {"application/octet-stream"}}}, commitPatience)
		if err != nil {
			return false, err
		}
		switch resp.StatusCode {
		case http.StatusCreated, http.StatusNoContent, http.StatusOK:
			discard(resp)
			return false, nil
		case http.StatusNotFound: // the answer to an earlier try was lost, or the upload was
			discard(resp)
			if has, err := u.there(ctx); err != nil || has {
				return false, err
			}
			return false, errUploadLost
		}
		return false, refused(resp)
	})
}
