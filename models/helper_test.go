package models

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
)

const (
	qwenFile   = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
	smollmFile = "smollm2-135m-instruct-q4_1.gguf"
)

// realFile finds a real model. One that is missing is a failure: a test that skips itself is a test nobody runs.
func realFile(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("SLUICE_TEST_MODELS")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(home, ".cache", "sluice", "models")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run dev/models.sh, or say where the models are with SLUICE_TEST_MODELS", err)
	}
	return path
}

// real is a store with both real models, made once: hashing half a gigabyte takes a while.
var real struct {
	once  sync.Once
	dir   string
	store *Store
	err   error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if real.dir != "" {
		os.RemoveAll(real.dir)
	}
	os.Exit(code)
}

func realStore(t *testing.T) *Store {
	t.Helper()
	paths := map[string]string{"qwen2.5-coder:0.5b": realFile(t, qwenFile), "smollm2:135m": realFile(t, smollmFile)}
	real.once.Do(func() {
		if real.dir, real.err = os.MkdirTemp("", "sluice-models-"); real.err != nil {
			return
		}
		if real.store, real.err = OpenStore(real.dir); real.err != nil {
			return
		}
		for name, path := range paths {
			var digest string
			if digest, real.err = real.store.LinkBlob(t.Context(), path); real.err != nil {
				return
			}
			req := CreateRequest{Name: name, Files: map[string]string{filepath.Base(path): digest}}
			if real.err = real.store.Create(t.Context(), req, nil); real.err != nil {
				return
			}
		}
	})
	if real.err != nil {
		t.Fatal(real.err)
	}
	return real.store
}

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const chatMLJinja = "{% for m in messages %}<|im_start|>{% endfor %} a template that no index has, long enough to be far from all of them: " +
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

// tinyGGUF is a whole file with one small tensor, written by the module's own writer. changes set or, with nil, drop keys.
func tinyGGUF(t testing.TB, changes map[string]any) []byte {
	t.Helper()
	kv := ggml.KV{
		"general.architecture": "llama", "general.type": "model", "general.name": "Tiny", "general.file_type": uint32(7),
		"llama.context_length": uint32(2048), "llama.embedding_length": uint32(32), "llama.block_count": uint32(1),
		"llama.attention.head_count": uint32(4), "llama.attention.head_count_kv": uint32(2),
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a", "b", "c", "d", "e", "f", "g"},
		"tokenizer.ggml.token_type": []int32{1, 1, 1, 1, 1, 1, 1}, "tokenizer.ggml.scores": []float32{0, 0, 0, 0, 0, 0, 0},
		"tokenizer.chat_template": chatMLJinja,
	}
	for key, v := range changes {
		if v == nil {
			delete(kv, key)
		} else {
			kv[key] = v
		}
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "tiny.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tensors := []*ggml.Tensor{{Name: "token_embd.weight", Kind: 0, Shape: []uint64{4, 2}, WriterTo: bytes.NewReader(make([]byte, 32))}}
	if err := ggml.WriteGGUF(f, kv, tensors); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func addBlob(t testing.TB, s *Store, data []byte) string {
	t.Helper()
	d := digestOf(data)
	if err := s.AddBlob(t.Context(), d, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	return d
}

// tinyModel creates a model of its own GGUF file: seed makes the file differ.
func tinyModel(t testing.TB, s *Store, name, seed string) {
	t.Helper()
	d := addBlob(t, s, tinyGGUF(t, map[string]any{"general.name": seed}))
	if err := s.Create(t.Context(), CreateRequest{Name: name, Files: map[string]string{"x.gguf": d}}, nil); err != nil {
		t.Fatal(err)
	}
}

func wantFault(t *testing.T, err error, code fault.Code, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %s with %q", code, text)
	}
	if got := fault.CodeOf(err); got != code {
		t.Errorf("code is %s, want %s: %v", got, code, err)
	}
	if msg := fault.Public(err).Msg; !strings.Contains(msg, text) {
		t.Errorf("message is %q, want it to have %q", msg, text)
	}
}

func blobs(t testing.TB, s *Store) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, e := range entries {
		out[e.Name()] = true
	}
	return out
}

// rawGGUF writes a header byte by byte, for what the module's writer would never write.
type rawGGUF struct{ bytes.Buffer }

func raw(version uint32, tensors, keys uint64) *rawGGUF {
	r := &rawGGUF{}
	r.WriteString("GGUF")
	return r.num(version).num(tensors).num(keys)
}

func (r *rawGGUF) num(v any) *rawGGUF {
	_ = binary.Write(&r.Buffer, binary.LittleEndian, v) // into memory
	return r
}

func (r *rawGGUF) str(s string) *rawGGUF {
	r.num(uint64(len(s))).WriteString(s)
	return r
}

// key writes a key and its type.
func (r *rawGGUF) key(name string, kind uint32) *rawGGUF { return r.str(name).num(kind) }

func (r *rawGGUF) arch() *rawGGUF { return r.key("general.architecture", ggufString).str("llama") }
