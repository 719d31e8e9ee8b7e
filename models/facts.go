package models

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/format"
	"github.com/ollama/ollama/fs/ggml"

	"sluice/fault"
)

// shortArray is the longest list that /api/show gives when it is not verbose.
const shortArray = 5

// keepArray is the longest list that is kept for the facts: more layers than any model has.
const keepArray = 1024

// decode reads a GGUF file's metadata. Invalid with the reason when it is damaged, never a panic. Lists longer than keep
// are left out; -1 keeps all.
func decode(f *os.File, keep int) (g *ggml.GGML, err error) {
	fi, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	h, err := readHeader(f, fi.Size())
	if err != nil {
		return nil, err
	}
	if h.split.sharded() {
		return nil, fault.New(fault.Invalid, "models.decode", "the GGUF file is %s of a model: create the model from all of them", h.split)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	err = guarded(func() error {
		g, err = ggml.Decode(f, keep)
		return err
	})
	return g, err
}

// guarded runs code of the decoder, which panics on some damaged values.
func guarded(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fault.Wrap(fmt.Errorf("panic: %v", r), fault.Invalid, "models.decode", "the GGUF file is damaged")
		}
	}()
	err = run()
	if err != nil && !errors.As(err, new(*fault.Error)) {
		err = fault.New(fault.Invalid, "models.decode", "the GGUF file is damaged: %s", err)
	}
	return err
}

// factsOf reads a blob's facts, once.
func (s *Store) factsOf(digest string) (Facts, error) {
	f, err := s.openBlob(digest)
	if err != nil {
		return Facts{}, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return Facts{}, fmt.Errorf("models: %w", err)
	}
	key := blobKey{digest, fi.Size()}
	s.cacheMu.Lock()
	facts, ok := s.facts[key]
	s.cacheMu.Unlock()
	if ok {
		return facts, nil
	}
	g, err := decode(f, keepArray)
	if err != nil {
		return Facts{}, err
	}
	if facts, err = readFacts(g); err != nil {
		return Facts{}, err
	}
	s.cacheMu.Lock()
	s.facts[key] = facts
	s.cacheMu.Unlock()
	return facts, nil
}

func (s *Store) openBlob(digest string) (*os.File, error) {
	path, err := s.blobPath(digest)
	if err != nil {
		return nil, err
	}
	f, err := openFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fault.Wrap(err, fault.Invalid, "models.openBlob", "blob %s is missing", digest)
	}
	if err != nil {
		return nil, fmt.Errorf("models: %w", err)
	}
	return f, nil
}

func readFacts(g *ggml.GGML) (f Facts, err error) {
	err = guarded(func() error {
		kv := g.KV()
		arch := kv.Architecture()
		pool, pooling := kv[arch+".pooling_type"]
		f = Facts{
			Architecture:    arch,
			Family:          arch,
			ParameterSize:   format.HumanNumber(kv.ParameterCount()),
			Quantization:    quantization(kv),
			ContextLength:   positive(kv.Uint("context_length")),
			EmbeddingLength: positive(kv.Uint("embedding_length")),
			BlockCount:      positive(kv.Uint("block_count")),
			HeadsKV:         positive(kv.UintOrMaxArrayValue("attention.head_count_kv", 1)),
			Pooling:         pooling,
			Reranks:         pool == uint32(poolingRank),
			Vision:          kv.Uint("vision.block_count") > 0,
			Layout:          readLayout(kv, g.Tensors().Items()),
		}
		return nil
	})
	return f, err
}

// poolingRank is llama.cpp's LLAMA_POOLING_TYPE_RANK.
const poolingRank = 4

// quantization names the file type. The decoder takes 0 for absent, but it is F32.
func quantization(kv ggml.KV) string {
	if t, ok := kv["general.file_type"].(uint32); ok && t == 0 {
		return "F32"
	}
	return kv.FileType().String()
}

// positive is n, or 0 (not known) when it is beyond what any model has: 2^32-1 is a way to say nothing.
func positive(n uint32) int {
	if n > math.MaxInt32 {
		return 0
	}
	return int(n)
}

// Info gives what /api/show adds: the GGUF key-values and, when verbose, tensors; long arrays are empty unless verbose.
// The values are strings, bools, numbers, []any, and nil for a number that JSON does not have.
func (s *Store) Info(m *Model, verbose bool) (kv map[string]any, tensors []api.Tensor, err error) {
	keep := shortArray
	if verbose {
		keep = -1
	}
	g, err := m.decode(keep)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, fault.Wrap(err, fault.NotFound, "models.Info", "model '%s' not found", m.Name)
	}
	if err != nil {
		return nil, nil, err
	}
	kv = map[string]any{}
	err = guarded(func() error {
		for key, v := range g.KV() {
			// show gives the name and the template in fields of their own
			if key != "general.name" && key != "tokenizer.chat_template" {
				kv[key] = plain(key, v)
			}
		}
		if verbose {
			for _, t := range g.Tensors().Items() {
				tensors = append(tensors, api.Tensor{Name: t.Name, Type: t.Type(), Shape: t.Shape})
			}
		}
		return nil
	})
	return kv, tensors, err
}

// plain makes a value of the decoder one that JSON has. Its lists are of an unexported type that can only be marshalled.
func plain(key string, v any) any {
	switch v := v.(type) {
	case string, bool, uint8, int8, uint16, int16, uint32, int32, uint64, int64:
		return v
	case float32:
		return finite(float64(v), v)
	case float64:
		return finite(v, v)
	}
	list := []any{}
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		slog.Debug("a list in a GGUF file has no JSON form", "key", key, "error", err)
	}
	if list == nil || err != nil { // null is a list that was too long to keep
		return []any{}
	}
	return list
}

func finite(f float64, v any) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return v
}
