package tinygguf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Models are all makers by the name of their file, without .gguf.
var Models = map[string]func(seed uint64) []byte{
	"llama":       Llama,
	"qwen2":       Qwen2,
	"thinking":    Thinking,
	"olmo3":       Olmo3,
	"mistral3":    Mistral3,
	"projector":   Projector,
	"lora":        LoRA,
	"wrong-lora":  WrongLoRA,
	"bert":        BERT,
	"bert-beside": BERTBeside,
	"reranker":    Reranker,
	"unknown":     Unknown,
}

// Unknown has an architecture that nothing can load.
func Unknown(seed uint64) []byte {
	f := newFile(seed, "sluice-unknown")
	newBPE().write(f, "gpt-2")
	f.set("sluice-unknown.context_length", context)
	f.random("token_embd.weight", 1, width, 8)
	return f.bytes()
}

// Write writes a model into a folder and gives the file's path. The name is a key of Models.
func Write(dir, name string, seed uint64) (path string, err error) {
	build, ok := Models[name]
	if !ok {
		return "", fmt.Errorf("tinygguf: there is no model %q", name)
	}
	path = filepath.Join(dir, name+".gguf")
	if err := os.WriteFile(path, build(seed), 0o600); err != nil {
		return "", fmt.Errorf("tinygguf: %w", err)
	}
	return path, nil
}

// Names of the models, in order.
func Names() []string {
	names := make([]string, 0, len(Models))
	for name := range Models {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
