package engine

import (
	"bufio"
	"fmt"
	"os"

	"github.com/ollama/ollama/llama"

	"sluice/fault"
	"sluice/runner"
)

// loadAdapters applies LoRA files to the context, before its first batch.
func (m *loaded) loadAdapters(lctx *llama.Context, req runner.LoadRequest) error {
	if len(req.Adapters) == 0 {
		return nil
	}
	facts, err := readFacts(req.ModelPath)
	if err != nil {
		return err
	}
	for i, path := range req.Adapters {
		if err := checkAdapter(i, path, facts.arch); err != nil {
			return err
		}
		// The number of threads is not used by the module.
		if err := m.model.ApplyLoraFromFile(lctx, path, 1, 1); err != nil {
			return fault.Wrap(err, fault.Invalid, "engine.Load",
				"adapter %d cannot be applied: its tensors do not fit this model; the server's log says which", i)
		}
	}
	return nil
}

// checkAdapter refuses what llama.cpp refuses with a bare failure, or dies of.
func checkAdapter(i int, path, arch string) error {
	facts, err := readFacts(path)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "engine.Load", "adapter %d: %v", i, err)
	}
	texts, err := readTexts(path)
	switch {
	case err != nil:
		return fault.Wrap(err, fault.Invalid, "engine.Load", "adapter %d cannot be read", i)
	case texts["general.type"] != "adapter":
		return fault.New(fault.Invalid, "engine.Load", "adapter %d is no adapter: its general.type is %q", i, texts["general.type"])
	case texts["adapter.type"] != "lora":
		return fault.New(fault.Invalid, "engine.Load", "adapter %d is of the type %q; only lora can be applied", i, texts["adapter.type"])
	case facts.arch != arch:
		return fault.New(fault.Invalid, "engine.Load", "adapter %d is for the architecture %q; the model has %q", i, facts.arch, arch)
	}
	return nil
}

// floats are keys that llama.cpp aborts on when they are of another type.
var floats = map[string]bool{"adapter.lora.alpha": true}

// readTexts gives the texts in a file's header by key. The file has passed readFacts.
func readTexts(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &ggufReader{in: bufio.NewReaderSize(f, 1<<16), left: info.Size()}
	if err := r.skip(4 + 4 + 8); err != nil { // magic, version, tensors
		return nil, err
	}
	keys, err := r.number(ggufUint64)
	if err != nil {
		return nil, err
	}
	texts := map[string]string{}
	rest := fileFacts{ints: map[string]int64{}, lists: map[string][]int64{}, kinds: map[string]ggufKind{}}
	for range keys {
		key, err := r.text()
		if err != nil {
			return nil, err
		}
		kind, err := r.number(ggufUint32)
		if err != nil {
			return nil, err
		}
		if floats[key] && kind != ggufFloat32 {
			return nil, fmt.Errorf("key %q has the wrong type", key)
		}
		if kind != ggufString {
			if _, err := r.value(&rest, key, uint32(kind)); err != nil {
				return nil, err
			}
			continue
		}
		if texts[key], err = r.text(); err != nil {
			return nil, err
		}
	}
	return texts, nil
}
