package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"github.com/ollama/ollama/types/model"

	"sluice/fault"
	"sluice/models"
)

const (
	maxHops     = 10
	maxManifest = 1 << 20
	maxMessage  = 200 // of what a registry says, in an error of ours

	manifestPatience = 4 // multiplies Config.Stall, for all of a manifest

	acceptManifest = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"
)

// remote is a model's place in a registry. It is safe for concurrent use.
type remote struct {
	c         *Client
	base      url.URL // scheme and host
	repo, tag string
	cred      *Credential

	slots chan struct{} // one for each part of this registry that may be fetched now

	mu            sync.Mutex
	authorization string // the header of the last login
	place         place  // 0: not known yet
}

func newRemote(c *Client, scheme string, n model.Name) *remote {
	r := &remote{c: c, base: url.URL{Scheme: scheme, Host: n.Host}, repo: n.Namespace + "/" + n.Model, tag: n.Tag, slots: c.slotsOf(n.Host)}
	for host, cred := range c.cfg.Credentials {
		if strings.EqualFold(host, n.Host) {
			r.cred = &cred
			if cred.Token != "" {
				r.authorization = "Bearer " + cred.Token
			}
		}
	}
	return r
}

// url of something of the repository. The parts of a valid name and digests need no escaping.
func (r *remote) url(parts ...string) *url.URL {
	u := r.base
	u.Path = "/v2/" + r.repo + "/" + strings.Join(parts, "/")
	return &u
}

// call is a request that may have to be sent more than once.
type call struct {
	method string
	url    *url.URL
	header http.Header
	body   func() io.Reader // nil: none
	length int64
}

// do sends a request, logs in when it must, and follows redirects of GET and HEAD by our rules: none from TLS to plain HTTP,
// none from a public registry to a private address, no credential to another host. The answer's status is any but 401 with a
// challenge that could be met; the caller closes its body.
func (r *remote) do(ctx context.Context, q call) (*http.Response, error) {
	at := q.url
	loggedIn := false
	for hops := 0; hops <= maxHops; hops++ {
		resp, sent, err := r.send(ctx, q, at)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusUnauthorized && sameHost(at, &r.base) && !loggedIn:
			loggedIn = true
			challenges := resp.Header.Values("WWW-Authenticate")
			discard(resp)
			if err := r.login(ctx, challenges, sent); err != nil {
				return nil, err
			}
			continue
		case resp.StatusCode < 300 || resp.StatusCode >= 400 || resp.StatusCode == http.StatusNotModified,
			q.method != http.MethodGet && q.method != http.MethodHead:
			return resp, nil
		}
		next, err := resp.Location()
		discard(resp)
		if err != nil {
			return nil, fault.New(fault.Conflict, "registry.do", "the registry %s redirects to nowhere", r.base.Host)
		}
		if err := r.mayGo(at, next); err != nil {
			return nil, err
		}
		at = next
	}
	return nil, fault.New(fault.Conflict, "registry.do", "the registry %s redirects more than %d times", r.base.Host, maxHops)
}

// mayGo refuses a redirect that leaves TLS.
func (r *remote) mayGo(from, to *url.URL) error {
	switch {
	case to.Scheme == "https":
	case to.Scheme == "http" && from.Scheme == "http" && (sameHost(from, to) || loopbackHost(to.Host) || listed(r.c.cfg.Insecure, to.Host)):
	default:
		return fault.New(fault.Denied, "registry.do", "the registry %s sends us to %s without TLS", r.base.Host, to.Host)
	}
	return nil
}

// send sends a request once. sent is the credential that it carried.
func (r *remote) send(ctx context.Context, q call, at *url.URL) (resp *http.Response, sent string, err error) {
	var body io.Reader
	if q.body != nil {
		body = q.body()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, at.String(), body)
	if err != nil {
		return nil, "", fault.Wrap(bare(err), fault.Conflict, "registry.send", "the registry %s names a place that is not a URL", r.base.Host)
	}
	req.ContentLength = q.length
	for k, v := range q.header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", "sluice")
	if sameHost(at, &r.base) {
		r.mu.Lock()
		sent = r.authorization
		r.mu.Unlock()
		if sent != "" {
			req.Header.Set("Authorization", sent)
		}
	}
	way, err := r.via(req)
	if err != nil {
		return nil, "", err
	}
	client := &http.Client{Transport: way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err = client.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, "", cause
		}
		return nil, "", bare(err)
	}
	return resp, sent, nil
}

// bare takes the URL out of an error: what storage servers are asked is signed in the query.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// discard ends an answer that is not read further.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	_ = resp.Body.Close()
}

// refused makes an error of an answer, whose body it closes.
func refused(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<10)) // what could be read is said
	_ = resp.Body.Close()
	var said struct {
		Errors []struct{ Code, Message string }
		Error  string
	}
	e := &statusError{status: resp.StatusCode, retryAfter: retryAfter(resp.Header)}
	if json.Unmarshal(data, &said) == nil {
		if len(said.Errors) > 0 {
			e.text = said.Errors[0].Message
		} else {
			e.text = said.Error
		}
	}
	e.text = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return -1
	}, strings.ToValidUTF8(e.text, ""))
	if len(e.text) > maxMessage {
		e.text = strings.ToValidUTF8(e.text[:maxMessage], "") + "…"
	}
	return e
}

// manifest gets the manifest's bytes and the blobs that it names.
func (r *remote) manifest(ctx context.Context) (data []byte, blobs []models.Blob, err error) {
	err = r.c.again(ctx, func() (bool, error) {
		data, err = r.manifestOnce(ctx)
		return false, err
	})
	if err != nil {
		var status *statusError
		if errors.As(err, &status) && status.status == http.StatusNotFound {
			return nil, nil, fault.Wrap(err, fault.NotFound, "registry.manifest", "pull model manifest: file does not exist")
		}
		return nil, nil, r.unreachable(err)
	}
	blobs, err = models.ManifestBlobs(data)
	if err != nil {
		return nil, nil, fmt.Errorf("registry: %s/%s:%s: %w", r.base.Host, r.repo, r.tag, err)
	}
	return data, blobs, nil
}

func (r *remote) manifestOnce(ctx context.Context) ([]byte, error) {
	ctx, stop := context.WithTimeoutCause(ctx, manifestPatience*r.c.cfg.Stall, errStalled) // byte by byte it could take a year
	defer stop()
	ctx, watch := r.c.watch(ctx)
	defer watch.stop()
	resp, err := r.do(ctx, call{method: http.MethodGet, url: r.url("manifests", r.tag), header: http.Header{"Accept": {acceptManifest}}})
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refused(resp)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(watch.reader(io.LimitReader(resp.Body, maxManifest+1)))
	if err != nil {
		return nil, watch.why(err)
	}
	if len(data) > maxManifest {
		return nil, fault.New(fault.Invalid, "registry.manifest", "the manifest is malformed: it is larger than 1 MiB")
	}
	if said := resp.Header.Get("Docker-Content-Digest"); strings.HasPrefix(said, "sha256:") && said != digestOf(data) {
		return nil, errors.New("the manifest is not what its digest says")
	}
	return data, nil
}
