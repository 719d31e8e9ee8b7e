package engine_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/internal/tinygguf"
	"sluice/runner"
)

const chat = "<|im_start|>user\nHello world<|im_end|>\n<|im_start|>assistant\n"

func TestFallbackLoadsWhatLlamaCannot(t *testing.T) {
	_, report := loadTiny(t, "olmo3", nil)
	if report.Backend != "ollama" || report.Parallel != 2 || report.NumCtx != runnertest.NumCtx || report.TrainCtx != 2048 {
		t.Errorf("report %+v", report)
	}
	if report.Vision || report.Pooled || report.Embedding != 64 || report.Memory[0].Weights < 400_000 || report.Memory[0].KV == 0 || report.Memory[0].Compute == 0 {
		t.Errorf("report %+v", report)
	}
}

// TestBothEnginesAgree: the same weights, in llama.cpp's layout and in one that only the fallback engine reads, answer alike. So
// the fallback's batches, cache and positions are right.
func TestBothEnginesAgree(t *testing.T) {
	llama, a := loadTiny(t, "llama", nil)
	other, b := loadTiny(t, "mistral3", nil)
	if a.Backend != "llama" || b.Backend != "ollama" {
		t.Fatalf("they run on %q and %q", a.Backend, b.Backend)
	}
	if len(a.Memory) != 1 || len(b.Memory) != 1 || a.Memory[0].KV != b.Memory[0].KV || b.Memory[0].Weights == 0 || b.Memory[0].Compute == 0 {
		t.Errorf("they take %+v and %+v; want caches of one size", a.Memory, b.Memory)
	}
	for _, prompt := range []string{chat, "The answer is", strings.Repeat("one two three ", 40)} {
		req := runnertest.Request(prompt, 40)
		req.Logprobs, req.TopLogprobs = true, 3
		wantText, want, wantLast := answer(t, llama, req)
		gotText, got, last := answer(t, other, req)
		if gotText != wantText || len(got) != len(want) || last.Usage.PromptTokens != wantLast.Usage.PromptTokens {
			t.Errorf("%q: %q after %d tokens; llama.cpp says %q after %d", prompt, gotText, last.Usage.PromptTokens, wantText, wantLast.Usage.PromptTokens)
			continue
		}
		for i := range got {
			if math.Abs(got[i].Logprob-want[i].Logprob) > 0.05 || !bytes.Equal(got[i].Bytes, want[i].Bytes) || len(got[i].Top) != 3 {
				t.Errorf("%q: token %d is %+v; llama.cpp says %+v", prompt, i, got[i], want[i])
			}
		}
	}
}

// answer collects an answer with its log probabilities.
func answer(t *testing.T, p *runner.Process, req runner.GenerateRequest) (text string, logprobs []runner.Logprob, last runner.Chunk) {
	t.Helper()
	err := p.Generate(t.Context(), req, func(c runner.Chunk) error {
		text += c.Text
		logprobs = append(logprobs, c.Logprobs...)
		last = c
		return nil
	})
	if err != nil || !last.Done || last.Usage == nil {
		t.Fatalf("%v; the last chunk is %+v", err, last)
	}
	return text, logprobs, last
}

// TestFallbackContract is what every runner promises, but for the embeddings of models that answer.
func TestFallbackContract(t *testing.T) {
	p, _ := loadTiny(t, "olmo3", nil)
	full, _ := runnertest.Answer(t, p, runnertest.Request(chat, 30))

	t.Run("num_predict is exact", func(t *testing.T) {
		for _, n := range []int{0, 1, 5} {
			text, last := runnertest.Answer(t, p, runnertest.Request(chat, n))
			if last.Usage.EvalTokens != n || last.DoneReason != "length" || !strings.HasPrefix(full, text) {
				t.Errorf("num_predict %d: %q, %d tokens, done %s", n, text, last.Usage.EvalTokens, last.DoneReason)
			}
		}
	})
	t.Run("a prompt read before is cached but for one token", func(t *testing.T) {
		text, last := runnertest.Answer(t, p, runnertest.Request(chat, 30))
		if text != full || last.Usage.CachedTokens != last.Usage.PromptTokens-1 {
			t.Errorf("%q, usage %+v; want %q", text, *last.Usage, full)
		}
	})
	t.Run("a stop string ends the answer and is cut", func(t *testing.T) {
		at := strings.IndexFunc(full, func(r rune) bool { return r >= 'a' && r <= 'z' })
		stop := full[at : at+1]
		req := runnertest.Request(chat, 30)
		req.Stop, req.Logprobs = []string{"never in it", stop}, true
		text, logprobs, last := answer(t, p, req)
		if text != full[:strings.Index(full, stop)] || last.DoneReason != "stop" || len(logprobs) == 0 {
			t.Errorf("stop %q in %q gave %q with %d log probabilities, done %s", stop, full, text, len(logprobs), last.DoneReason)
		}
	})
	t.Run("a context that ends stops the answer", func(t *testing.T) {
		left := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		req := runnertest.Request(chat, -1)
		req.Shift = true
		err := p.Generate(ctx, req, func(runner.Chunk) error { cancel(left); return nil })
		if !errors.Is(err, left) {
			t.Errorf("error %v", err)
		}
		runnertest.Answer(t, p, runnertest.Request(chat, 1))
	})
	t.Run("a full context ends the answer, or shifts", func(t *testing.T) {
		for _, shift := range []bool{false, true} {
			req := runnertest.Request(strings.Repeat("one ", 200), 120)
			req.Shift = shift
			_, last := runnertest.Answer(t, p, req)
			if over := last.Usage.PromptTokens+last.Usage.EvalTokens > runnertest.NumCtx+1; last.DoneReason == "length" && over != shift {
				t.Errorf("shift %t: usage %+v", shift, *last.Usage)
			}
		}
	})
	t.Run("a prompt that is too long is refused or cut", func(t *testing.T) {
		req := runnertest.Request(strings.Repeat("word ", 2*runnertest.NumCtx), 1)
		err := p.Generate(t.Context(), req, func(runner.Chunk) error { return nil })
		runnertest.WantCode(t, err, fault.Invalid)
		req.Truncate = true
		_, last := runnertest.Answer(t, p, req)
		if !last.Usage.Truncated || last.Usage.PromptTokens != runnertest.NumCtx {
			t.Errorf("usage %+v", *last.Usage)
		}
	})
	t.Run("an empty prompt is refused", func(t *testing.T) {
		err := p.Generate(t.Context(), runnertest.Request("", 1), func(runner.Chunk) error { return nil })
		runnertest.WantCode(t, err, fault.Invalid)
	})
	t.Run("token ids go back to the text", func(t *testing.T) {
		const text = "Grüße aus Köln, 日本語 and 👋"
		ids, err := p.Tokenize(t.Context(), text, false)
		if err != nil || len(ids) == 0 {
			t.Fatalf("tokenize: %v, %v", ids, err)
		}
		if back, err := p.Detokenize(t.Context(), ids); err != nil || back != text {
			t.Errorf("detokenize: %q, %v", back, err)
		}
		for _, id := range []int{-1, 1 << 30} {
			_, err = p.Detokenize(t.Context(), []int{ids[0], id})
			runnertest.WantCode(t, err, fault.Invalid)
		}
	})
	t.Run("more callers than sequences are all served alike", func(t *testing.T) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				text := ""
				err := p.Generate(t.Context(), runnertest.Request(chat, 30), func(c runner.Chunk) error { text += c.Text; return nil })
				if err != nil || text != full {
					t.Errorf("%q, %v; alone it was %q", text, err, full)
				}
			})
		}
		wg.Wait()
	})
	t.Run("several answers to one prompt", func(t *testing.T) {
		req := runnertest.Request(chat, 10)
		req.N = 3
		texts := map[int]string{}
		err := p.Generate(t.Context(), req, func(c runner.Chunk) error { texts[c.Index] += c.Text; return nil })
		if err != nil || len(texts) != 3 || texts[0] != texts[1] || texts[1] != texts[2] || !strings.HasPrefix(full, texts[0]) {
			t.Errorf("%v, %v", texts, err)
		}
	})
	t.Run("threads change, and a ping comes back", func(t *testing.T) {
		if err := errors.Join(p.SetThreads(t.Context(), 2), p.SetThreads(t.Context(), 1), p.Ping(t.Context())); err != nil {
			t.Error(err)
		}
		runnertest.WantCode(t, p.SetThreads(t.Context(), 0), fault.Invalid)
	})
	t.Run("what it cannot do is refused", func(t *testing.T) {
		_, err := p.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a"}})
		runnertest.WantCode(t, err, fault.Invalid)
		_, err = p.Rerank(t.Context(), runner.RerankRequest{Query: "a", Documents: []string{"b"}})
		runnertest.WantCode(t, err, fault.Invalid)
		req := runnertest.Request(chat+"[img-0]", 1)
		req.Images = [][]byte{picture(t, red, 8, 8)}
		runnertest.WantCode(t, p.Generate(t.Context(), req, func(runner.Chunk) error { return nil }), fault.Invalid)
	})
}

func TestFallbackGrammar(t *testing.T) {
	p, _ := loadTiny(t, "olmo3", nil)
	req := runnertest.Request(chat, 40)
	req.Grammar = `root ::= "yes" | "no" [0-9]`
	text, _ := runnertest.Answer(t, p, req)
	if text != "yes" && !(len(text) == 3 && strings.HasPrefix(text, "no")) {
		t.Errorf("grammar: %q", text)
	}
	req.Grammar, req.Schema = "", `{"enum": ["red", "green"]}`
	if text, _ = runnertest.Answer(t, p, req); strings.TrimSpace(text) != `"red"` && strings.TrimSpace(text) != `"green"` {
		t.Errorf("schema: %q", text)
	}
	req.After, req.NumPredict = "</think>", 200
	text, _ = runnertest.Answer(t, p, req)
	if _, behind, ok := strings.Cut(text, "</think>"); ok && behind != "" && !strings.HasPrefix(`"red"`, strings.TrimSpace(behind)) &&
		!strings.HasPrefix(`"green"`, strings.TrimSpace(behind)) {
		t.Errorf("behind the thought: %q", behind)
	}
	for name, grammar := range map[string]string{"no root": `a ::= "b"`, "text that is no grammar": `::=`} {
		bad := runnertest.Request(chat, 5)
		bad.Grammar = grammar
		t.Run(name, func(t *testing.T) {
			runnertest.WantCode(t, p.Generate(t.Context(), bad, func(runner.Chunk) error { return nil }), fault.Invalid)
		})
	}
	runnertest.Answer(t, p, runnertest.Request(chat, 1))
}

// TestFallbackPenalty: the module's own sampler has none.
func TestFallbackPenalty(t *testing.T) {
	p, _ := loadTiny(t, "olmo3", nil)
	req := runnertest.Request(chat, 60)
	req.Sampling.RepeatLastN, req.Sampling.PresencePenalty, req.Logprobs = -1, 1000, true
	_, logprobs, _ := answer(t, p, req)
	seen := map[string]bool{}
	for _, l := range logprobs {
		if seen[string(l.Bytes)] {
			t.Fatalf("token %q came twice", l.Bytes)
		}
		seen[string(l.Bytes)] = true
	}
}

func TestFallbackSees(t *testing.T) {
	p, report := loadTiny(t, "mistral3", nil)
	if !report.Vision {
		t.Fatalf("report %+v", report)
	}
	seeing(t, p)
}

// TestLayoutThatLlamaRefuses: the architecture is one that llama.cpp knows, the tensors are not.
func TestLayoutThatLlamaRefuses(t *testing.T) {
	file := bytes.Replace(tinygguf.Mistral3(seed), []byte("mistral3.vision.block_count"), []byte("mistral3.vision.block_counx"), 1)
	p, report := load(t, func(r *runner.LoadRequest) { r.ModelPath = written(t, file) })
	if report.Backend != "ollama" || report.Vision {
		t.Errorf("report %+v", report)
	}
	runnertest.Answer(t, p, runnertest.Request(chat, 3))
	runnertest.WantCode(t, loadFails(t, runner.LoadRequest{ModelPath: written(t, file[:len(file)-1000])}), fault.Invalid)
}

// TestFallbackEmbeds: the same encoder on both engines points the same way.
func TestFallbackEmbeds(t *testing.T) {
	llama, _ := loadTiny(t, "bert", nil)
	other, report := loadTiny(t, "bert-beside", nil)
	if report.Backend != "ollama" || !report.Pooled || report.Embedding != 64 {
		t.Fatalf("report %+v", report)
	}
	inputs := []string{"the cat sits", "trade and revenue", "the cat sits", "word"}
	want, err := llama.Embed(t.Context(), runner.EmbedRequest{Inputs: inputs})
	if err != nil {
		t.Fatal(err)
	}
	got, err := other.Embed(t.Context(), runner.EmbedRequest{Inputs: inputs})
	if err != nil || len(got.Vectors) != len(inputs) || got.PromptTokens != want.PromptTokens {
		t.Fatalf("%d vectors of %d tokens, %v; llama.cpp read %d", len(got.Vectors), got.PromptTokens, err, want.PromptTokens)
	}
	for i := range inputs {
		if same := cosine(got.Vectors[i], want.Vectors[i]); same < 0.99 {
			t.Errorf("%q: cosine %f", inputs[i], same)
		}
	}
	if other := cosine(got.Vectors[0], got.Vectors[1]); other > 0.99 {
		t.Errorf("two texts have the same vector: cosine %f", other)
	}
	_, err = other.Embed(t.Context(), runner.EmbedRequest{Inputs: []string{"a", ""}})
	runnertest.WantCode(t, err, fault.Invalid)
	long := runner.EmbedRequest{Inputs: []string{strings.Repeat("word ", 300)}}
	_, err = other.Embed(t.Context(), long)
	runnertest.WantCode(t, err, fault.Invalid)
	long.Truncate = true
	if out, err := other.Embed(t.Context(), long); err != nil || !out.Truncated || out.PromptTokens != runnertest.NumCtx {
		t.Errorf("%+v, %v", out.PromptTokens, err)
	}
	runnertest.WantCode(t, other.Generate(t.Context(), runnertest.Request("a", 1), func(runner.Chunk) error { return nil }), fault.Invalid)
}

func TestUnknownArchitecture(t *testing.T) {
	for name, want := range map[string]string{"unknown": "sluice-unknown", "projector": "clip"} {
		err := loadFails(t, runner.LoadRequest{ModelPath: tinyFile(t, name)})
		runnertest.WantCode(t, err, fault.Invalid)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFallbackDamage: what makes the module panic is a refusal.
func TestFallbackDamage(t *testing.T) {
	whole := tinygguf.Olmo3(seed)
	for name, file := range map[string][]byte{
		"a tensor is missing":     bytes.Replace(whole, []byte("blk.1.ffn_up.weight"), []byte("blk.1.ffn_xx.weight"), 1),
		"the end is cut":          whole[:len(whole)-1000],
		"more layers than it has": bytes.Replace(whole, []byte("olmo3.block_count\x04\x00\x00\x00\x02"), []byte("olmo3.block_count\x04\x00\x00\x00\x09"), 1),
	} {
		t.Run(name, func(t *testing.T) {
			runnertest.WantCode(t, loadFails(t, runner.LoadRequest{ModelPath: written(t, file)}), fault.Invalid)
		})
	}
	for name, req := range map[string]runner.LoadRequest{
		"an adapter":  {ModelPath: tinyFile(t, "olmo3"), Adapters: []string{tinyFile(t, "lora")}},
		"a projector": {ModelPath: tinyFile(t, "olmo3"), Projector: tinyFile(t, "projector")},
	} {
		t.Run(name, func(t *testing.T) { runnertest.WantCode(t, loadFails(t, req), fault.Invalid) })
	}
}
