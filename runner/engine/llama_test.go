package engine

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ollama/ollama/llama"
	"github.com/ollama/ollama/ml"

	"sluice/internal/tinygguf"
)

// tinyNative loads a model of random weights without an engine, and reads some tokens.
func tinyNative(t *testing.T) (*llama.Model, *llama.Context, *native) {
	t.Helper()
	path, err := tinygguf.Write(t.TempDir(), "llama", 1)
	if err != nil {
		t.Fatal(err)
	}
	model, ctx, n := bareNative(t, path, true, llama.NewContextParams(256, 8, 2, 1, ml.FlashAttentionDisabled, "f16"))
	batch, err := llama.NewBatch(8, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(batch.Free)
	for i, id := range []int{5, 6, 7} {
		batch.Add(id, nil, i, i == 2, 0)
	}
	if err := ctx.Decode(batch); err != nil {
		t.Fatal(err)
	}
	ctx.Synchronize()
	return model, ctx, n
}

// bareNative loads a model without an engine, and makes its context.
func bareNative(t *testing.T, path string, mmap bool, params llama.ContextParams) (*llama.Model, *llama.Context, *native) {
	t.Helper()
	llama.BackendInit()
	model, err := llama.LoadModelFromFile(filepath.Clean(path), llama.ModelParams{UseMmap: mmap})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { llama.FreeModel(model) })
	ctx, err := llama.NewContextWithModel(model, params)
	if err != nil {
		t.Fatal(err)
	}
	n := newNative(model, ctx)
	t.Cleanup(n.free)
	return model, ctx, n
}

// TestHandMadeDeclarations: what llama.go declares is what the library has, seen through calls whose results are known otherwise.
func TestHandMadeDeclarations(t *testing.T) {
	model, ctx, n := tinyNative(t)
	if n.n != model.NumVocab() || n.n == 0 {
		t.Errorf("a vocabulary of %d; the wrapper says %d", n.n, model.NumVocab())
	}
	logits := n.logits(2)
	if !slices.Equal(logits, ctx.GetLogitsIth(2)) {
		t.Error("other logits than the wrapper's")
	}
	n.setThreads(2)
	if n.threads() != 2 {
		t.Errorf("%d threads", n.threads())
	}
	if n.forgetful() || n.weights() < 1000 {
		t.Errorf("forgetful %t, %d bytes", n.forgetful(), n.weights())
	}
	if c := ctx.GetEmbeddingsIth(2); len(c) != model.NEmbd() {
		t.Errorf("an embedding of %d", len(c))
	}
	// The layout of llama_token_data and llama_token_data_array: a chain that keeps the best must find it, and one that keeps
	// all must draw each in the end.
	s := newChain(sampling{temp: 1, topP: 1, typicalP: 1, topK: 1, seed: 1})
	defer s.free()
	if id := s.draw(n.all(logits)); id != argmax(logits) {
		t.Errorf("top_k 1 draws %d, the best is %d", id, argmax(logits))
	}
	open := newChain(sampling{temp: 1, topP: 1, typicalP: 1, seed: 1})
	defer open.free()
	even := make([]float32, n.n)
	seen := map[int]bool{}
	for range 20 * n.n {
		seen[open.draw(n.all(even))] = true
	}
	if seen[-1] || len(seen) < n.n*9/10 {
		t.Errorf("of %d tokens alike %d were drawn", n.n, len(seen))
	}
}

func TestChoosingInC(t *testing.T) {
	_, _, n := tinyNative(t)
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		logits := make([]float32, 1+r.IntN(n.n))
		for i := range logits {
			logits[i] = float32(r.NormFloat64())
			if round%3 == 0 {
				logits[i] = float32(r.IntN(4)) // many alike
			}
		}
		order := make([]int, len(logits))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case logits[a] > logits[b]:
				return -1
			case logits[a] < logits[b]:
				return 1
			}
			return 0
		})
		if got := argmax(logits); got != order[0] {
			t.Fatalf("argmax %d, want %d", got, order[0])
		}
		best := n.best(logits, 1+r.IntN(len(logits)))
		for i := range best.n {
			// Of those alike at the end of the list any may be in it.
			if id, logit := best.at(i); logit != logits[order[i]] || logits[id] != logit {
				t.Fatalf("best %d is %d (%f), want %d (%f)", i, id, logit, order[i], logits[order[i]])
			}
		}
		if best.top() != order[0] || n.all(logits).top() != order[0] {
			t.Fatalf("top %d and %d, want %d", best.top(), n.all(logits).top(), order[0])
		}
		sum := 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l))
		}
		if got, want := logSumExp(logits, logits[order[0]]), math.Log(sum); math.Abs(got-want) > 1e-4 {
			t.Fatalf("log sum exp %f, want %f", got, want)
		}
	}
	nan := float32(math.NaN())
	if got := argmax([]float32{nan, 1, nan}); got != 1 {
		t.Errorf("beside NaN the most is %d", got)
	}
	if got := argmax([]float32{nan, nan}); got != -1 {
		t.Errorf("of NaN the most is %d", got)
	}
}

func TestGrammarInC(t *testing.T) {
	model, _, n := tinyNative(t)
	if _, ok := newGrammar(n.vocab, `root ::= (`); ok {
		t.Error("half a rule is a grammar")
	}
	g, ok := newGrammar(n.vocab, `root ::= "a" [bc]`)
	if !ok {
		t.Fatal("no grammar")
	}
	defer g.free()
	id := func(text string) int {
		ids, err := model.Tokenize(text, false, true)
		if err != nil || len(ids) != 1 {
			t.Fatalf("%q is %v, %v", text, ids, err)
		}
		return ids[0]
	}
	even := make([]float32, n.n)
	for range 2 {
		if !g.allows(id("a")) || g.allows(id("b")) {
			t.Error("a must be first")
		}
		g.accept(id("a"))
		c := g.mask(n.all(even))
		for i := range c.n {
			if token, _ := c.at(i); model.TokenToPiece(token) != "b" && model.TokenToPiece(token) != "c" {
				t.Errorf("%q is left behind a", model.TokenToPiece(token))
			}
		}
		if c.n < 2 {
			t.Errorf("%d tokens are left", c.n)
		}
		g.accept(id("c"))
		c = g.mask(n.all(even))
		for i := range c.n {
			if token, _ := c.at(i); !model.TokenIsEog(token) {
				t.Errorf("%q is left at the end", model.TokenToPiece(token))
			}
		}
		g.reset()
	}
}
