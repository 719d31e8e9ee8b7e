package engine_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/internal/tinygguf"
	"sluice/runner"
)

func TestAdapterChangesTheAnswer(t *testing.T) {
	ask := func(adapters ...string) string {
		p, _ := loadTiny(t, "llama", func(r *runner.LoadRequest) { r.Adapters = adapters })
		text, _ := runnertest.Answer(t, p, runnertest.Request(chat, 12))
		return text
	}
	plain, one := ask(), ask(tinyFile(t, "lora"))
	if plain == one {
		t.Errorf("with and without the adapter: %q", plain)
	}
	second := written(t, tinygguf.LoRA(seed+1))
	if two := ask(tinyFile(t, "lora"), second); two == one || two == plain {
		t.Errorf("the second adapter of two does nothing: %q", two)
	}
}

func TestBadAdapters(t *testing.T) {
	whole := tinygguf.LoRA(seed)
	rename := func(old, name string) string { return written(t, bytes.Replace(whole, []byte(old), []byte(name), 1)) }
	for name, row := range map[string]struct{ path, say string }{
		"there is no such file":        {filepath.Join(t.TempDir(), "none.gguf"), "adapter 0"},
		"for another architecture":     {tinyFile(t, "wrong-lora"), `"qwen2"`},
		"a model":                      {tinyFile(t, "llama"), "no adapter"},
		"text":                         {written(t, []byte("hello")), "adapter 0"},
		"not lora":                     {rename("\x04\x00\x00\x00\x00\x00\x00\x00lora", "\x04\x00\x00\x00\x00\x00\x00\x00lorb"), "lorb"},
		"alpha is no float":            {rename("adapter.lora.alpha\x06", "adapter.lora.alpha\x04"), "adapter 0"},
		"a tensor the model has not":   {rename("blk.0.ffn_down.weight.lora_a", "blk.9.ffn_down.weight.lora_a"), "adapter 0"},
		"half of a pair is missing":    {rename("blk.0.ffn_down.weight.lora_a", "blk.0.ffn_downx_norm.weightx"), "adapter 0"},
		"the end of the file is cut":   {written(t, whole[:len(whole)-500]), "adapter 0"},
		"general.type is no text":      {rename("general.type\x08", "general.type\x09"), "adapter 0"},
		"adapter.type is of no length": {rename("adapter.type\x08\x00\x00\x00\x04", "adapter.type\x08\x00\x00\x00\x00"), "adapter 0"},
	} {
		t.Run(name, func(t *testing.T) {
			err := loadFails(t, runner.LoadRequest{ModelPath: tinyFile(t, "llama"), Adapters: []string{row.path}})
			runnertest.WantCode(t, err, fault.Invalid)
			if !strings.Contains(err.Error(), row.say) {
				t.Errorf("error %v; want it to say %q", err, row.say)
			}
		})
	}
}
