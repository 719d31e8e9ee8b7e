package registrytest

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/sirupsen/logrus"
)

// Options of a registry. The zero value is an open one on a free port of loopback, in a
// temporary folder (its own storage in memory takes seconds for some megabytes).
type Options struct {
	Listen string // "": 127.0.0.1:0
	Dir    string // a folder to keep it in; "": a temporary one
	TLS    bool   // with a certificate of its own, see Registry.Roots
	Login  *Login // nil: anyone may do anything
}

// Registry is a running one. Its methods are safe for concurrent use.
type Registry struct {
	URL  string // http://127.0.0.1:PORT
	Host string // 127.0.0.1:PORT

	app    *handlers.App
	server *httptest.Server
	closed chan struct{}
	login  *Login
	temp   string // a folder to remove

	mu       sync.Mutex
	rules    []*Rule
	requests []*Request
	open     func(*http.Request) bool
}

var quiet = sync.OnceFunc(func() {
	logrus.SetOutput(io.Discard) // the registry logs every request to it
})

// Start starts a registry.
func Start(o Options) (*Registry, error) {
	quiet()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("registrytest: %w", err)
	}
	storage := configuration.Storage{
		"delete":      configuration.Parameters{"enabled": true},
		"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}}, // else a goroutine that never ends
	}
	r := &Registry{closed: make(chan struct{}), login: o.Login}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "sluice-registry-"); err != nil {
			_ = listener.Close()
			return nil, fmt.Errorf("registrytest: %w", err)
		}
		r.temp = o.Dir
	}
	storage["filesystem"] = configuration.Parameters{"rootdirectory": o.Dir}
	r.app = handlers.NewApp(context.Background(), &configuration.Configuration{Version: "0.1", Storage: storage})
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(r.serve))
	_ = r.server.Listener.Close() // ours instead
	r.server.Listener = listener
	if o.TLS {
		r.server.StartTLS()
	} else {
		r.server.Start()
	}
	r.URL, r.Host = r.server.URL, listener.Addr().String()
	return r, nil
}

// Close stops it. Requests that stall are let go.
func (r *Registry) Close() {
	close(r.closed)
	r.server.CloseClientConnections()
	r.server.Close()
	_ = r.app.Shutdown() // it only closes proxies, and this is none
	if r.temp != "" {
		_ = os.RemoveAll(r.temp) // a temporary folder: what stays is not missed
	}
}

// Roots gives the certificate to trust when Options.TLS is set.
func (r *Registry) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(r.server.Certificate())
	return pool
}

// Handler is the registry without the harm.
func (r *Registry) Handler() http.Handler { return r.app }

// Request is what was asked and what was sent.
type Request struct {
	Method, Path  string
	Digest        string // "sha256:…" when it was about a blob
	From          int64  // of the range that was asked, 0 without one
	To            int64  // its last byte, -1 without one
	Status        int
	Sent          int64  // bytes of the body
	Authorization string // as sent
}

// Requests gives all requests so far whose method and path match; "" matches everything, the path by a part of it.
func (r *Registry) Requests(method, part string) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Request
	for _, q := range r.requests {
		if (method == "" || q.Method == method) && strings.Contains(q.Path, part) {
			out = append(out, *q)
		}
	}
	return out
}

// Sent gives how many bytes of a blob were sent in all.
func (r *Registry) Sent(digest string) (n int64) {
	for _, q := range r.Requests(http.MethodGet, digest) {
		n += q.Sent
	}
	return n
}

// Forget forgets the requests so far.
func (r *Registry) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// Open lets requests pass without a login.
func (r *Registry) Open(pass func(*http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = pass
}

func (r *Registry) isOpen(q *http.Request) bool {
	r.mu.Lock()
	pass := r.open
	r.mu.Unlock()
	return pass != nil && pass(q)
}

func (r *Registry) serve(w http.ResponseWriter, q *http.Request) {
	log := &Request{Method: q.Method, Path: q.URL.Path, To: -1, Authorization: q.Header.Get("Authorization")}
	if _, digest, ok := strings.Cut(q.URL.Path, "/blobs/sha256:"); ok {
		log.Digest = "sha256:" + digest
	}
	if _, err := fmt.Sscanf(q.Header.Get("Range"), "bytes=%d-%d", &log.From, &log.To); err != nil && log.From == 0 {
		log.To = -1
	}
	r.mu.Lock()
	r.requests = append(r.requests, log)
	r.mu.Unlock()

	body := &writer{ResponseWriter: w, registry: r, request: q, log: log, at: log.From}
	if r.login != nil && !r.isOpen(q) && r.login.refuses(body, q) {
		return
	}
	for _, rule := range r.matching(q, log) {
		switch rule.Do {
		case Answer:
			if rule.take() {
				rule.answer(body)
				return
			}
		case Instead:
			if rule.take() {
				rule.Handler.ServeHTTP(body, q)
				return
			}
		case NoRange:
			if q.Header.Get("Range") != "" && rule.take() {
				q.Header.Del("Range")
				body.at = 0
			}
		default:
			body.rules = append(body.rules, rule)
		}
	}
	r.app.ServeHTTP(body, q)
}
