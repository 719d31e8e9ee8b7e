package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/fs/ggml"
	"go.uber.org/goleak"

	"sluice/fault"
	"sluice/internal/registrytest"
	"sluice/models"
)

const (
	partBytes = 1 << 20
	bigBytes  = 5*partBytes + 12345 // six parts, with the header
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childJob); job != "" {
		child(job)
		return
	}
	// The registry's own queue of events, which it never ends.
	events := goleak.IgnoreTopFunction("github.com/docker/go-events.(*Broadcaster).run")
	goleak.VerifyTestMain(m, events, goleak.Cleanup(func(code int) {
		for _, dir := range seeds.dirs {
			os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

// gguf is a whole GGUF file with one tensor of random bytes.
func gguf(t testing.TB, size int, seed uint64) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	weights := make([]byte, size/4*4)
	for i := range weights {
		weights[i] = byte(rng.Uint32())
	}
	kv := ggml.KV{
		"general.architecture": "llama", "general.type": "model", "general.name": fmt.Sprint("big ", seed), "general.file_type": uint32(0),
		"llama.context_length": uint32(2048), "llama.embedding_length": uint32(4), "llama.block_count": uint32(1),
		"llama.attention.head_count": uint32(4), "llama.attention.head_count_kv": uint32(2),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a", "b"},
		"tokenizer.ggml.token_type": []int32{1, 1}, "tokenizer.ggml.scores": []float32{0, 0},
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "x.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors := []*ggml.Tensor{{Name: "token_embd.weight", Kind: 0, Shape: []uint64{uint64(size / 4)}, WriterTo: bytes.NewReader(weights)}}
	if err := ggml.WriteGGUF(f, kv, tensors); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var (
	bigOnce sync.Once
	bigFile []byte
)

// big is a file of six parts, the same for all tests.
func big(t testing.TB) []byte {
	bigOnce.Do(func() { bigFile = gguf(t, bigBytes, 1) })
	return bigFile
}

func openStore(t testing.TB, dir string) *models.Store {
	t.Helper()
	s, err := models.OpenStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// create makes a model of a file, with a system prompt that makes its manifest differ.
func create(t testing.TB, s *models.Store, name string, file []byte, system string) {
	t.Helper()
	d := digestOf(file)
	if err := s.AddBlob(t.Context(), d, bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	req := models.CreateRequest{Name: name, Files: map[string]string{"x.gguf": d}, Template: "{{ .Prompt }}", System: system, License: []string{"MIT"}}
	if err := s.Create(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
}

func startRegistry(t testing.TB, o registrytest.Options) *registrytest.Registry {
	t.Helper()
	r, err := registrytest.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// seeded is a registry with the model library/big of the big file.
func seeded(t testing.TB) *registrytest.Registry {
	t.Helper()
	r := startRegistry(t, registrytest.Options{})
	seed(t, r, "big", big(t), "Be brief.")
	return r
}

// seeds are models folders from which registries are filled, each made once.
var seeds struct {
	mu   sync.Mutex
	dirs map[string]string
}

func seed(t testing.TB, r *registrytest.Registry, name string, file []byte, system string) {
	t.Helper()
	seeds.mu.Lock()
	defer seeds.mu.Unlock()
	key := name + " " + system + digestOf(file)
	if seeds.dirs[key] == "" {
		dir, err := os.MkdirTemp("", "sluice-seed-")
		if err != nil {
			t.Fatal(err)
		}
		create(t, openStore(t, dir), name, file, system)
		if seeds.dirs == nil {
			seeds.dirs = map[string]string{}
		}
		seeds.dirs[key] = dir
	}
	if err := r.Seed(seeds.dirs[key], name, ""); err != nil {
		t.Fatal(err)
	}
}

// client is one of a registry on loopback, which waits for nothing. Its waits are in waits.
type client struct {
	*Client
	store *models.Store
	dir   string

	mu    sync.Mutex
	waits []time.Duration
}

func newClient(t testing.TB, dir string, r *registrytest.Registry, change func(*Config)) *client {
	t.Helper()
	c := &client{store: openStore(t, dir), dir: dir}
	cfg := Config{Store: c.store, Hosts: []string{r.Host}, PartBytes: partBytes, Parallel: 4}
	if change != nil {
		change(&cfg)
	}
	made, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Client = made
	c.sleep = func(ctx context.Context, d time.Duration) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waits = append(c.waits, d)
		return ctx.Err()
	}
	t.Cleanup(made.Close)
	return c
}

func (c *client) pull(ctx context.Context, name string) error {
	return c.Pull(ctx, Transfer{Name: name, Insecure: true}, nil)
}

func mustPull(t testing.TB, c *client, name string) {
	t.Helper()
	if err := c.pull(t.Context(), name); err != nil {
		t.Fatalf("pull: %v", err)
	}
}

// wantModel holds that a model is there, whole, that its manifest is the registry's byte by byte, and that nothing else is.
func wantModel(t testing.TB, c *client, r *registrytest.Registry, name string) {
	t.Helper()
	if _, err := c.store.Get(name); err != nil {
		t.Fatal(err)
	}
	data, _, err := c.store.Manifest(name)
	if err != nil {
		t.Fatal(err)
	}
	want, err := r.Manifest("library/"+name, "latest")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Errorf("the manifest is %s, and the registry's %s", data, want)
	}
	blobs, err := models.ManifestBlobs(data)
	if err != nil {
		t.Fatal(err)
	}
	files := []string{"manifests/registry.ollama.ai/library/" + name + "/latest"}
	for _, b := range blobs {
		path := "blobs/" + strings.Replace(b.Digest, ":", "-", 1)
		got, err := os.ReadFile(filepath.Join(c.dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if digestOf(got) != b.Digest {
			t.Errorf("blob %s has the digest %s", b.Digest, digestOf(got))
		}
		files = append(files, path)
	}
	slices.Sort(files)
	if have := listFiles(t, c.dir); !slices.Equal(have, files) {
		t.Errorf("the folder has\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(files, "\n"))
	}
}

func wantNothing(t testing.TB, c *client) {
	t.Helper()
	for _, f := range listFiles(t, c.dir) {
		if !strings.HasPrefix(f, ".sluice-partial/") {
			t.Errorf("there is %s", f)
		}
	}
}

func listFiles(t testing.TB, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func wantFault(t testing.TB, err error, code fault.Code, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	if got := fault.CodeOf(err); got != code {
		t.Errorf("the code is %s, want %s: %v", got, code, err)
	}
	for _, text := range texts {
		if msg := fault.Public(err).Msg; !strings.Contains(msg, text) {
			t.Errorf("the message is %q, want it to have %q", msg, text)
		}
	}
}

// until polls. A condition that does not come true is an error, not a slow machine's: the limit is long.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatal("it did not come: " + what)
		case <-tick.C:
		}
	}
}

// parts counts how often each part of the big blob was asked for, by its first byte.
func parts(r *registrytest.Registry) map[int]int {
	out := map[int]int{}
	for _, q := range r.Requests("GET", digestOf(bigFile)) {
		out[int(q.From)/partBytes]++
	}
	return out
}

func wantParts(t testing.TB, r *registrytest.Registry, want map[int]int) {
	t.Helper()
	if got := parts(r); !maps.Equal(got, want) {
		t.Errorf("the parts were asked for %v times, want %v", got, want)
	}
}

// partialFile is where the big blob is until it is whole.
func partialFile(t testing.TB, c *client) string {
	t.Helper()
	path, err := c.store.PartialPath(digestOf(bigFile))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func flip(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x40
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// doneBytes is what the journal of the big blob says.
func doneBytes(path string) (n int64) {
	data, err := os.ReadFile(path + journalSuffix)
	if err != nil {
		return 0
	}
	var j journal
	if json.Unmarshal(data, &j) != nil {
		return 0
	}
	for _, p := range j.Parts {
		n += p.Done
	}
	return n
}

func statuses(lines []api.ProgressResponse) []string {
	var out []string
	for _, l := range lines {
		if len(out) == 0 || out[len(out)-1] != l.Status {
			out = append(out, l.Status)
		}
	}
	return out
}
