package registry

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/internal/registrytest"
	"sluice/models"
)

func TestPullTellsWhatOllamaTells(t *testing.T) {
	r := seeded(t)
	c := newClient(t, t.TempDir(), r, nil)
	var lines []api.ProgressResponse
	tell := func(p api.ProgressResponse) { lines = append(lines, p) }
	if err := c.Pull(t.Context(), Transfer{Name: "big", Insecure: true}, tell); err != nil {
		t.Fatal(err)
	}
	wantModel(t, c, r, "big")
	data, err := r.Manifest("library/big", "latest")
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := models.ManifestBlobs(data)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pulling manifest"}
	for _, b := range blobs {
		want = append(want, "pulling "+b.Digest[7:19])
	}
	want = append(want, "verifying sha256 digest", "writing manifest", "success")
	if got := statuses(lines); !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	last := map[string]api.ProgressResponse{}
	for _, l := range lines {
		if l.Digest == "" {
			continue
		}
		if l.Completed < last[l.Digest].Completed || l.Completed > l.Total {
			t.Errorf("%+v after %+v", l, last[l.Digest])
		}
		last[l.Digest] = l
	}
	for _, b := range blobs {
		if l := last[b.Digest]; l.Total != b.Size || l.Completed != b.Size {
			t.Errorf("the last line of a blob of %d bytes is %+v", b.Size, l)
		}
	}
	wantParts(t, r, map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1})

	r.Forget()
	mustPull(t, c, "big")
	if got := r.Requests("", "/blobs/"); len(got) != 0 {
		t.Errorf("what is there was asked for again: %+v", got)
	}
}

func TestADamagedByteCostsItsPart(t *testing.T) {
	all := map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
	with := func(more map[int]int) map[int]int {
		out := maps.Clone(all)
		maps.Copy(out, more)
		return out
	}
	cases := map[string]struct {
		fault *registrytest.Fault
		disk  int64 // a byte that changes on the disk once all bytes are there
		want  map[int]int
	}{
		"on the disk": {disk: 2*partBytes + 99, want: with(map[int]int{2: 2})},
		// It is not known which part: they are tried in their order, and those behind it stay.
		"in transit":                {fault: &registrytest.Fault{Do: registrytest.Flip, At: 2*partBytes + 7, Times: 1}, want: with(map[int]int{0: 2, 1: 2, 2: 2})},
		"in transit, the last byte": {fault: &registrytest.Fault{Do: registrytest.Flip, At: partBytes - 1, Times: 1}, want: with(map[int]int{0: 2})},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seeded(t)
			if row.fault != nil {
				row.fault.Path = digestOf(bigFile)
				r.Add(*row.fault)
			}
			c := newClient(t, t.TempDir(), r, nil)
			var once sync.Once
			c.at = func(point string) {
				if point == "fetched" && row.disk > 0 {
					once.Do(func() { flip(t, partialFile(t, c), row.disk) })
				}
			}
			mustPull(t, c, "big")
			wantModel(t, c, r, "big")
			wantParts(t, r, row.want)
		})
	}
}

func TestARegistryThatServesWrongBytesIsTold(t *testing.T) {
	r := seeded(t)
	r.Add(registrytest.Fault{Do: registrytest.Flip, Path: digestOf(big(t)), At: 3 * partBytes})
	c := newClient(t, t.TempDir(), r, nil)
	wantFault(t, c.pull(t.Context(), "big"), fault.Conflict, "digest mismatch", r.Host, digestOf(bigFile))
	wantNothing(t, c)
	if sent, most := r.Sent(digestOf(bigFile)), int64(2*len(bigFile)); sent > most {
		t.Errorf("%d bytes were sent for a blob of %d", sent, len(bigFile))
	}
	if _, err := os.Stat(partialFile(t, c)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the wrong bytes are kept")
	}
}

// etag changes the ETag of what a handler answers.
func etag(next http.Handler, tag string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		next.ServeHTTP(&tagged{w, tag}, q)
	})
}

type tagged struct {
	http.ResponseWriter
	tag string
}

func (w *tagged) WriteHeader(status int) {
	w.Header().Set("ETag", w.tag)
	w.ResponseWriter.WriteHeader(status)
}

func TestWhatRegistriesDo(t *testing.T) {
	one := map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1}
	cases := map[string]struct {
		faults func(r *registrytest.Registry) []registrytest.Fault
		change func(*Config)
		want   map[int]int // nil: any
		waits  time.Duration
	}{
		"ranges are ignored": {faults: func(*registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.NoRange}}
		}},
		"ranges are ignored, and the whole is cut once": {faults: func(*registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.NoRange}, {Do: registrytest.Cut, At: 5*partBytes + 1, Times: 1}}
		}},
		"a part is cut twice": {faults: func(*registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Cut, At: partBytes + 1000, Times: 1}, {Do: registrytest.Cut, At: partBytes + 600_000, Times: 1}}
		}, want: map[int]int{0: 1, 1: 3, 2: 1, 3: 1, 4: 1, 5: 1}},
		"503 twice": {faults: func(*registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Answer, Status: 503, Times: 2}}
		}},
		"429 with a time": {faults: func(*registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Answer, Status: 429, RetryAfter: "17", Times: 1}}
		}, waits: 17 * time.Second},
		"it falls silent": {faults: func(*registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Stall, At: 2*partBytes + 70_000, Times: 1}}
		}, change: func(c *Config) { c.Stall = 2 * time.Second }, want: map[int]int{0: 1, 1: 1, 2: 2, 3: 1, 4: 1, 5: 1}},
		"another version, once": {faults: func(r *registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Instead, Handler: etag(r.Handler(), `"other"`), Times: 1}}
		}},
		"another version each time": {faults: func(r *registrytest.Registry) []registrytest.Fault {
			n := 0
			var mu sync.Mutex
			return []registrytest.Fault{{Do: registrytest.Instead, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				mu.Lock()
				n++
				tag := string(rune('a' + n%20))
				mu.Unlock()
				etag(r.Handler(), tag).ServeHTTP(w, q)
			})}}
		}},
		"the wrong range": {faults: func(r *registrytest.Registry) []registrytest.Fault {
			return []registrytest.Fault{{Do: registrytest.Instead, Times: 1, Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				w.Header().Set("Content-Range", "bytes 5-9/10")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write([]byte("hello"))
			})}}
		}},
		"nothing goes wrong": {faults: func(*registrytest.Registry) []registrytest.Fault { return nil }, want: one},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := seeded(t)
			for _, f := range row.faults(r) {
				f.Path = digestOf(bigFile)
				r.Add(f)
			}
			c := newClient(t, t.TempDir(), r, row.change)
			mustPull(t, c, "big")
			wantModel(t, c, r, "big")
			if row.want != nil {
				wantParts(t, r, row.want)
			}
			if row.waits > 0 && !slices.Contains(c.waits, row.waits) {
				t.Errorf("it waited %v, want %v among them", c.waits, row.waits)
			}
		})
	}
}

func TestWhatCannotBePulled(t *testing.T) {
	r := seeded(t)
	cases := map[string]struct {
		name  string
		fault *registrytest.Fault
		setup func(*client)
		code  fault.Code
		text  []string
	}{
		"no such model":       {name: "nothere", code: fault.NotFound, text: []string{"pull model manifest: file does not exist"}},
		"the registry is ill": {name: "big", fault: &registrytest.Fault{Do: registrytest.Answer, Status: 502}, code: fault.Busy, text: []string{r.Host, "502"}},
		"a blob is gone":      {name: "big", fault: &registrytest.Fault{Do: registrytest.Answer, Path: "/blobs/", Status: 404}, code: fault.Conflict, text: []string{"404"}},
		"a blob is longer than the manifest says": {name: "big", code: fault.Conflict, text: []string{"another size", "bytes that the manifest says"},
			fault: &registrytest.Fault{Do: registrytest.Instead, Path: "/blobs/", Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(append(slices.Clone(bigFile), 0)))
			})}},
		"a disk that is full": {name: "big", setup: func(c *client) { c.free = func(string) (uint64, error) { return 1_000_000, nil } },
			code: fault.Conflict, text: []string{"not enough disk space", "5.3 MB more", "1 MB free"}},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			if row.fault != nil {
				rule := r.Add(*row.fault)
				defer r.Remove(rule)
			}
			c := newClient(t, t.TempDir(), r, nil)
			if row.setup != nil {
				row.setup(c)
			}
			err := c.pull(t.Context(), row.name)
			wantFault(t, err, row.code, row.text...)
			if row.code == fault.Busy {
				if fe := fault.Public(err); fe.RetryAfter == 0 {
					t.Error("it does not say when to try again")
				}
				if len(c.waits) != 5 {
					t.Errorf("it waited %d times between six tries", len(c.waits))
				}
			}
			wantNothing(t, c)
		})
	}
}

func TestPullsShareTheWork(t *testing.T) {
	r := seeded(t)
	seed(t, r, "other", big(t), "Another prompt, the same file.")
	c := newClient(t, t.TempDir(), r, func(cfg *Config) { cfg.Parallel = 1 })
	go1 := make(chan struct{})
	c.at = func(point string) {
		if point == "part" {
			<-go1
		}
	}
	results := make([]chan error, 4)
	ctxs := make([]context.CancelFunc, 4)
	for i, name := range []string{"big", "big", "other", "big"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctxs[i], results[i] = cancel, make(chan error, 1)
		go func() { results[i] <- c.pull(ctx, name) }()
	}
	refs := func() int {
		c.Client.mu.Lock()
		defer c.Client.mu.Unlock()
		if f := c.flights[digestOf(bigFile)]; f != nil {
			return f.refs
		}
		return 0
	}
	until(t, "four pulls wait for one blob", func() bool { return refs() == 4 })
	ctxs[0]() // whoever came first leaves, the others stay
	if err := <-results[0]; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled one says %v", err)
	}
	ctxs[3]()
	<-results[3]
	close(go1)
	for _, i := range []int{1, 2} {
		if err := <-results[i]; err != nil {
			t.Error(err)
		}
	}
	if sent := r.Sent(digestOf(bigFile)); sent != int64(len(bigFile)) {
		t.Errorf("%d bytes were sent for a blob of %d", sent, len(bigFile))
	}
	for _, name := range []string{"big", "other"} {
		if _, err := c.store.Get(name); err != nil {
			t.Error(err)
		}
	}
}

func TestTheWorkEndsWithTheLastWhoWaits(t *testing.T) {
	r := seeded(t)
	stalled := r.Add(registrytest.Fault{Do: registrytest.Stall, Path: digestOf(big(t)), At: 100})
	c := newClient(t, t.TempDir(), r, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.pull(ctx, "big") }()
	<-stalled.Reached
	until(t, "the other parts are noted", func() bool { return len(r.Requests("GET", digestOf(bigFile))) >= 4 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	c.Client.mu.Lock()
	left := len(c.flights)
	c.Client.mu.Unlock()
	if left != 0 {
		t.Errorf("%d downloads go on", left)
	}
	wantNothing(t, c)
	r.Remove(stalled)
	mustPull(t, c, "big")
	wantModel(t, c, r, "big")
}

func TestTwoProcessesOnOneFolderShareTheWork(t *testing.T) {
	r := seeded(t)
	dir := t.TempDir()
	a, b := newClient(t, dir, r, nil), newClient(t, dir, r, nil)
	hold, reached := make(chan struct{}), make(chan struct{})
	var once sync.Once
	a.at = func(point string) {
		if point == "part" {
			once.Do(func() { close(reached) })
			<-hold
		}
	}
	results := make(chan error, 2)
	go func() { results <- a.pull(t.Context(), "big") }()
	<-reached
	began := make(chan struct{})
	b.at = func(point string) {
		if point == "begin" {
			close(began)
		}
	}
	go func() { results <- b.pull(t.Context(), "big") }()
	<-began
	close(hold)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	wantModel(t, a, r, "big")
	if sent := r.Sent(digestOf(bigFile)); sent != int64(len(bigFile)) {
		t.Errorf("%d bytes were sent for a blob of %d", sent, len(bigFile))
	}
}
