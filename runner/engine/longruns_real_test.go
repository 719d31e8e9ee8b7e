package engine_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/internal/tinygguf"
	"sluice/runner"
)

// Up to a million of anything without a break: llama.cpp alone ends the process at 40,000.
func TestTextsWithoutABreak(t *testing.T) {
	qwen := filepath.Join(filepath.Dir(model), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
	p, _ := load(t, func(r *runner.LoadRequest) { r.ModelPath = qwen })
	for one, n := range map[string]int{
		"a": 1_000_000, " ": 1_000_000, "\n": 100_000, "é": 100_000, "中": 100_000, "e\u0301": 100_000, "\u0301": 100_000, "🙂": 100_000,
		"-": 100_000, "7": 100_000, "/\n": 100_000, "a。": 100_000,
	} {
		text := strings.Repeat(one, n)
		ids, err := p.Tokenize(t.Context(), text, true)
		if err != nil {
			t.Fatalf("%q: %v", one, err)
		}
		if back, err := p.Detokenize(t.Context(), ids); err != nil || back != text {
			t.Errorf("%q: %d bytes came back of %d, %v", one, len(back), len(text), err)
		}
	}
}

// pre is how the rules that split words are named; each is another regular expression.
var pre = []string{
	"llama-bpe", "deepseek-llm", "deepseek-v3", "deepseek-coder", "falcon", "starcoder", "gpt-2", "qwen2", "bloom", "viking", "tekken",
	"chameleon", "gpt-4o", "kimi-k2", "superbpe", "bailingmoe", "seed-coder", "grok-2", "afmoe", "default",
}

// The child is asked for texts with runs just below the bound under every rule, and far above.
func TestEveryRuleThatSplitsWords(t *testing.T) {
	whole := string(tinygguf.Llama(seed))
	const old = "tokenizer.ggml.pre\x08\x00\x00\x00\x09\x00\x00\x00\x00\x00\x00\x00llama-bpe"
	if !strings.Contains(whole, old) {
		t.Fatal("the tiny model names its rule otherwise")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, name := range pre {
		t.Run(name, func(t *testing.T) {
			key := "tokenizer.ggml.pre\x08\x00\x00\x00" + string([]byte{byte(len(name))}) + "\x00\x00\x00\x00\x00\x00\x00" + name
			p, _ := load(t, func(r *runner.LoadRequest) {
				r.ModelPath = written(t, moved(whole, old, key))
			})
			for _, one := range []string{"a", "A", "é", "7", "-", " ", "\n", "/\n", "a7", "a-", "中", "\u0301", " a", "-a", "　。"} {
				text := strings.Repeat(one, 5_000)
				ids, err := p.Tokenize(t.Context(), text+"x", true)
				if err != nil {
					t.Fatalf("%q: %v", one, err)
				}
				if back, err := p.Detokenize(t.Context(), ids[1:]); err != nil || back != text+"x" {
					t.Errorf("%q: %d bytes came back of %d, %v", one, len(back), len(text)+1, err)
				}
			}
			for range 3 {
				var b strings.Builder
				for range 10 {
					b.WriteString(strings.Repeat([]string{"a", "1", "é", "中", " ", "\n", "🙂", "-", "<|im_end|>", "'s"}[r.IntN(10)], 1+r.IntN(5000)))
				}
				ids, err := p.Tokenize(t.Context(), b.String(), false)
				if err != nil {
					t.Fatal(err)
				}
				if back, err := p.Detokenize(t.Context(), ids); err != nil || strings.ReplaceAll(back, "<|im_end|>", "") != strings.ReplaceAll(b.String(), "<|im_end|>", "") {
					t.Errorf("a text of %d bytes came back with %d, %v", b.Len(), len(back), err)
				}
			}
		})
	}
}

// moved replaces a key of a tiny model by a longer or shorter one, and pads the key before the tensors' data with another's name.
func moved(whole, old, key string) []byte {
	const name = "general.name\x08\x00\x00\x00\x0a\x00\x00\x00\x00\x00\x00\x00tiny llama"
	by := len(old) - len(key)
	longer := "general.name\x08\x00\x00\x00" + string([]byte{byte(10 + by)}) + "\x00\x00\x00\x00\x00\x00\x00" + strings.Repeat("t", 10+by)
	return []byte(strings.Replace(strings.Replace(whole, old, key, 1), name, longer, 1))
}

// Where no run is too long, tokens are those of llama.cpp; and where one is, only those in it differ.
func TestTextsAroundALongRunAreTokenizedAsEver(t *testing.T) {
	p, _ := load(t, nil)
	tokens := func(text string) []int {
		ids, err := p.Tokenize(t.Context(), text, false)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	// A run that is cut where it is split anyway: the tokens are those of its parts.
	parts := []string{strings.Repeat("ab", 600), strings.Repeat("7", 900), strings.Repeat("cd", 300), "<|im_end|>", strings.Repeat("e", 1500)}
	var want []int
	for _, s := range parts {
		want = append(want, tokens(s)...)
	}
	if got := tokens(strings.Join(parts, "")); !slices.Equal(got, want) {
		t.Errorf("%d tokens, want %d", len(got), len(want))
	}
	before, after := "SELECT name FROM users; <|im_start|>", " and behind it, others' words."
	long := strings.Repeat("z", 9000)
	got := tokens(before + long + after)
	a, b := tokens(before), tokens(after)
	if !slices.Equal(got[:len(a)-1], a[:len(a)-1]) || !slices.Equal(got[len(got)-len(b):], b) {
		t.Error("the text around the run has other tokens")
	}
}
