package collection

import (
	"context"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sluice/access"
	"sluice/fault"
	"sluice/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hashing is an embedder whose vectors are near where texts share words: each term adds to a dimension that its hash chooses.
type hashing struct {
	mu      sync.Mutex
	digests map[string]string
	dims    map[string]int
	texts   int                        // embedded so far
	before  func(texts []string) error // asked before each batch
}

func newHashing() *hashing {
	return &hashing{digests: map[string]string{"minilm": "d1"}, dims: map[string]int{"minilm": 64}}
}

func (h *hashing) set(model, digest string, dims int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.digests[model], h.dims[model] = digest, dims
}

func (h *hashing) Digest(_ context.Context, model string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.digests[model] == "" {
		return "", fault.New(fault.NotFound, "hashing", "no model")
	}
	return h.digests[model], nil
}

func (h *hashing) Count(_ context.Context, _ string, texts []string) ([]int, error) {
	return nil, fault.New(fault.Unimplemented, "hashing", "no tokenizer")
}

func (h *hashing) Embed(ctx context.Context, model string, texts []string) ([][]float32, error) {
	h.mu.Lock()
	before := h.before
	h.mu.Unlock()
	if before != nil {
		if err := before(texts); err != nil {
			return nil, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts += len(texts)
	out := make([][]float32, len(texts))
	for i, t := range texts {
		v := make([]float32, h.dims[model])
		v[0] = 0.01
		for _, w := range terms(t) {
			f := fnv.New32a()
			fmt.Fprint(f, h.digests[model], w)
			v[f.Sum32()%uint32(len(v))]++
		}
		out[i] = v
	}
	return out, ctx.Err()
}

func (h *hashing) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.texts
}

// inBoth runs a test with each store.
func inBoth(t *testing.T, test func(t *testing.T, s Store)) {
	t.Run("embedded", func(t *testing.T) { test(t, embeddedStore(t, t.TempDir())) })
	t.Run("postgres", func(t *testing.T) { test(t, postgresStore(t, pgtest.New(t).URL)) })
}

func embeddedStore(t *testing.T, dir string) Store {
	t.Helper()
	s, err := OpenEmbedded(t.Context(), filepath.Join(dir, "rag.duckdb"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func postgresStore(t *testing.T, url string) *Postgres {
	t.Helper()
	s, err := NewPostgres(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func service(t *testing.T, s Store, h *hashing, change func(*Config)) *Service {
	t.Helper()
	cfg := Config{Store: s, Embedder: h, Model: "minilm", Look: time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	svc, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func user(name string, role access.Role, grants ...access.Grant) access.Principal {
	return access.Principal{KeyID: "k-" + name, Owner: name, Name: name, Role: role, Holders: []access.Holder{{User: name, Role: role, Grants: grants}}}
}

func grant(name, how string) access.Grant {
	return access.Grant{Kind: access.GrantCollection, Name: name, Access: how}
}

var (
	ann  = user("ann", access.ReadWrite)
	root = user("root", access.Admin)
)

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantCode(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if err == nil || fault.CodeOf(err) != code {
		t.Errorf("the error is %v, want %s", err, code)
	}
}

// eventually waits for a state that a goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.After(20 * time.Second); !ok(); {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
