package engine_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
)

// gguf writes a header: version, counts, and keys in order.
type gguf struct{ bytes.Buffer }

func newGGUF(version uint32, tensors, keys uint64) *gguf {
	g := &gguf{}
	g.WriteString("GGUF")
	g.put(version, tensors, keys)
	return g
}

func (g *gguf) put(values ...any) *gguf {
	for _, v := range values {
		if s, ok := v.(string); ok {
			g.put(uint64(len(s)))
			g.WriteString(s)
			continue
		}
		_ = binary.Write(g, binary.LittleEndian, v)
	}
	return g
}

const (
	u32   = uint32(4)
	str   = uint32(8)
	array = uint32(9)
)

func llamaKeys(keys uint64) *gguf {
	return newGGUF(3, 0, keys+1).put("general.architecture", str, "llama")
}

// TestDamagedFiles: every one is refused with a reason, and the child lives. Several of them abort llama.cpp.
func TestDamagedFiles(t *testing.T) {
	real, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{
		"nothing in it":                  {},
		"zeros":                          make([]byte, 4096),
		"text":                           []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
		"version 1":                      newGGUF(1, 0, 0).Bytes(),
		"version 99":                     newGGUF(99, 0, 0).Bytes(),
		"2^60 keys":                      newGGUF(3, 0, 1<<60).Bytes(),
		"a key of 2^62 bytes":            newGGUF(3, 0, 1).put(uint64(1 << 62)).Bytes(),
		"an array of 2^60":               llamaKeys(1).put("a", array, u32, uint64(1<<60)).Bytes(),
		"an array of arrays":             llamaKeys(1).put("a", array, array, uint64(1)).Bytes(),
		"no architecture":                newGGUF(3, 0, 0).Bytes(),
		"an architecture of a number":    newGGUF(3, 0, 1).put("general.architecture", u32, uint32(7)).Bytes(),
		"an unknown architecture":        newGGUF(3, 0, 1).put("general.architecture", str, "none").Bytes(),
		"an alignment of a string":       llamaKeys(1).put("general.alignment", str, "32").Bytes(),
		"tokens that are a number":       llamaKeys(1).put("tokenizer.ggml.tokens", u32, uint32(7)).Bytes(),
		"tokens that are integers":       llamaKeys(1).put("tokenizer.ggml.tokens", array, u32, uint64(1), uint32(7)).Bytes(),
		"no token":                       llamaKeys(1).put("tokenizer.ggml.tokens", array, str, uint64(0)).Bytes(),
		"a token twice":                  llamaKeys(1).put("tokenizer.ggml.tokens", array, str, uint64(2), "a", "a").Bytes(),
		"fewer types than tokens":        llamaKeys(2).put("tokenizer.ggml.token_type", array, u32, uint64(1), uint32(1)).put("tokenizer.ggml.tokens", array, str, uint64(2), "a", "b").Bytes(),
		"a real model cut in its header": real[:100_000],
		"a real model cut in its middle": real[:len(real)/2],
		"a real model without its end":   real[:len(real)-1],
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.gguf")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			p := start(t)
			_, err := p.Load(t.Context(), runner.LoadRequest{ModelPath: path, NumCtx: 64, NumThread: 1, UseMmap: true}, nil)
			runnertest.WantCode(t, err, fault.Invalid)
			if p.Err() != nil {
				t.Errorf("the child died: %v", p.Err())
			}
		})
	}
}
