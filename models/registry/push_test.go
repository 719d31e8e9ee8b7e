package registry

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/internal/registrytest"
	"sluice/models"
)

// from is a client of a store with the model.
func from(t *testing.T, r *registrytest.Registry, name string, file []byte, change func(*Config)) *client {
	t.Helper()
	c := newClient(t, t.TempDir(), r, change)
	create(t, c.store, name, file, "Be brief.")
	return c
}

// TestPushThenPull takes tens of megabytes there and back, with the default parts.
func TestPushThenPull(t *testing.T) {
	r := startRegistry(t, registrytest.Options{})
	file := gguf(t, 40<<20, 9)
	defaults := func(cfg *Config) { cfg.PartBytes = 0 }
	a := from(t, r, "there", file, defaults)
	var lines []api.ProgressResponse
	push := func() []string {
		lines = nil
		if err := a.Push(t.Context(), Transfer{Name: "there", Insecure: true}, func(p api.ProgressResponse) { lines = append(lines, p) }); err != nil {
			t.Fatal(err)
		}
		return statuses(lines)
	}
	said := push()
	data, full, err := a.store.Manifest("there")
	if err != nil {
		t.Fatal(err)
	}
	if full != "registry.ollama.ai/library/there:latest" {
		t.Errorf("its whole name is %s", full)
	}
	blobs, err := models.ManifestBlobs(data)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"retrieving manifest"}
	for _, b := range blobs {
		want = append(want, "pushing "+b.Digest[7:19])
	}
	want = append(want, "pushing manifest", "success")
	if !slices.Equal(said, want) {
		t.Errorf("the lines are %q, want %q", said, want)
	}
	b := newClient(t, t.TempDir(), r, defaults)
	mustPull(t, b, "there")
	wantModel(t, b, r, "there")
	x, err := a.store.Get("there")
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.store.Get("there")
	if err != nil {
		t.Fatal(err)
	}
	if x.Digest != y.Digest || x.Size != y.Size || x.System != y.System || x.Template != y.Template {
		t.Errorf("there it was %+v, here it is %+v", x, y)
	}
	r.Forget()
	push()
	if again := r.Requests("POST", ""); len(again) != 0 {
		t.Errorf("what the registry has is sent again: %+v", again)
	}
}

func TestPushGoesOnAfterFailures(t *testing.T) {
	cases := map[string]func(r *registrytest.Registry) registrytest.Fault{
		"a chunk is refused": func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Do: registrytest.Answer, Method: "PATCH", Status: 503, Times: 1}
		},
		"the connection ends in a chunk": func(r *registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Do: registrytest.Instead, Method: "PATCH", Times: 1, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				q.Body = io.NopCloser(io.MultiReader(io.LimitReader(q.Body, 300_000), failing{}))
				r.Handler().ServeHTTP(w, q)
				panic(http.ErrAbortHandler)
			})}
		},
		"the answer to a chunk is lost": func(r *registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Do: registrytest.Instead, Method: "PATCH", Times: 1, Handler: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
				r.Handler().ServeHTTP(&nowhere{header: http.Header{}}, q)
				panic(http.ErrAbortHandler)
			})}
		},
		"the registry forgets the upload": func(*registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Do: registrytest.Answer, Method: "PATCH", Status: 404, Times: 2}
		},
		"the answer to the commit is lost": func(r *registrytest.Registry) registrytest.Fault {
			return registrytest.Fault{Do: registrytest.Instead, Method: "PUT", Path: "/blobs/", Times: 1, Handler: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
				r.Handler().ServeHTTP(&nowhere{header: http.Header{}}, q)
				panic(http.ErrAbortHandler)
			})}
		},
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := startRegistry(t, registrytest.Options{})
			rule := r.Add(f(r))
			a := from(t, r, "big", big(t), nil)
			if err := a.Push(t.Context(), Transfer{Name: "big", Insecure: true}, nil); err != nil {
				t.Fatal(err)
			}
			if rule.Hits() == 0 {
				t.Error("nothing went wrong")
			}
			b := newClient(t, t.TempDir(), r, nil)
			mustPull(t, b, "big")
			wantModel(t, b, r, "big")
		})
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n *nowhere) WriteHeader(int)             {}

// TestUploadsToAStorageServer: Ollama's registry sends each chunk elsewhere, with 307, and wants the MD5 of all at the end.
func TestUploadsToAStorageServer(t *testing.T) {
	for name, reads := range map[string]bool{"the registry reads what it sends elsewhere": true, "it answers at once": false} {
		t.Run(name, func(t *testing.T) { uploadElsewhere(t, reads) })
	}
}

func uploadElsewhere(t *testing.T, reads bool) {
	r := startRegistry(t, registrytest.Options{})
	var mu sync.Mutex
	now := map[string]string{}     // path of an upload to where the registry behind it wants the next request
	sums := map[string]hash.Hash{} // of the MD5 of each chunk
	count := map[string]int{}
	r.Add(registrytest.Fault{Do: registrytest.Instead, Method: "PATCH", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("X-Redirect-Uploads") != "1" {
			t.Error("it does not say that it follows")
		}
		if reads {
			_, _ = io.Copy(io.Discard, q.Body) // the bytes are wanted elsewhere
		}
		mu.Lock()
		defer mu.Unlock()
		if now[q.URL.Path] == "" {
			now[q.URL.Path] = q.URL.RequestURI()
			sums[q.URL.Path] = md5.New()
		}
		w.Header().Set("Docker-Upload-Location", q.URL.RequestURI())
		w.Header().Set("Location", "/storage?upload="+url.QueryEscape(q.URL.Path))
		w.WriteHeader(http.StatusTemporaryRedirect)
	})})
	r.Add(registrytest.Fault{Do: registrytest.Instead, Method: "PUT", Path: "/storage", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		data, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		upload := q.URL.Query().Get("upload")
		sum := md5.Sum(data)
		sums[upload].Write(sum[:])
		count[upload]++
		patch := httptest.NewRequest(http.MethodPatch, now[upload], bytes.NewReader(data))
		behind := httptest.NewRecorder()
		r.Handler().ServeHTTP(behind, patch)
		next, _ := url.Parse(behind.Header().Get("Location"))
		now[upload] = next.RequestURI()
		w.WriteHeader(http.StatusCreated)
	})})
	r.Add(registrytest.Fault{Do: registrytest.Instead, Method: "PUT", Path: "/blobs/uploads/", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if want := fmt.Sprintf("%x-%d", sums[q.URL.Path].Sum(nil), count[q.URL.Path]); q.URL.Query().Get("etag") != want {
			t.Errorf("the etag is %s, want %s", q.URL.Query().Get("etag"), want)
		}
		put := httptest.NewRequest(http.MethodPut, now[q.URL.Path]+"&digest="+url.QueryEscape(q.URL.Query().Get("digest")), nil)
		r.Handler().ServeHTTP(w, put)
	})})
	file, chunks, change := big(t), 6, func(*Config) {}
	if !reads { // more than a connection holds, so that it is still being sent when the answer comes
		file, chunks, change = gguf(t, 48<<20, 11), 3, func(cfg *Config) { cfg.PartBytes = 16 << 20 }
	}
	a := from(t, r, "big", file, change)
	if err := a.Push(t.Context(), Transfer{Name: "big", Insecure: true}, nil); err != nil {
		t.Fatal(err)
	}
	if n := len(r.Requests("PUT", "/storage")); n < chunks {
		t.Errorf("%d chunks went to the storage server", n)
	}
	b := newClient(t, t.TempDir(), r, nil)
	mustPull(t, b, "big")
	wantModel(t, b, r, "big")
}

func TestAMountIsAskedFor(t *testing.T) {
	r := seeded(t)
	c := newClient(t, t.TempDir(), r, nil)
	source := r.Host + "/library/big"
	if err := c.Pull(t.Context(), Transfer{Name: source, Insecure: true}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.store.Create(t.Context(), models.CreateRequest{Name: "mine", From: source, System: "Mine."}, nil); err != nil {
		t.Fatal(err)
	}
	r.Forget()
	if err := c.Push(t.Context(), Transfer{Name: "mine", Source: r.Host + "/me/mine", Insecure: true}, nil); err != nil {
		t.Fatal(err)
	}
	for _, q := range r.Requests("PATCH", "") {
		if q.Status != http.StatusAccepted {
			t.Errorf("%+v", q)
		}
	}
	data, err := r.Manifest("me/mine", "latest")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(digestOf(bigFile))) {
		t.Errorf("the manifest is %s", data)
	}
}

func TestPushEndsAtOnce(t *testing.T) {
	r := startRegistry(t, registrytest.Options{})
	began := r.Add(registrytest.Fault{Do: registrytest.Instead, Method: "PATCH", Handler: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body) // net/http sees a client leave only when there is nothing left to read
		<-q.Context().Done()
	})})
	c := from(t, r, "big", big(t), func(cfg *Config) { cfg.Stall = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began.Reached
		cancel()
	}()
	if err := c.Push(ctx, Transfer{Name: "big", Insecure: true}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhatCannotBePushed(t *testing.T) {
	r := startRegistry(t, registrytest.Options{})
	c := newClient(t, t.TempDir(), r, nil)
	wantFault(t, c.Push(t.Context(), Transfer{Name: "nothere", Insecure: true}, nil), fault.NotFound, "model 'nothere' not found")
	wantFault(t, c.Push(t.Context(), Transfer{Name: "not here", Insecure: true}, nil), fault.Invalid, "invalid model name")
	if all := r.Requests("", ""); len(all) != 0 {
		t.Error(fmt.Sprint("the registry was asked: ", all))
	}
}
