package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
	"sluice/runner/engine"
)

const counting = "Here is a list of the numbers from one to twelve: one, two, three, four,"

func TestContract(t *testing.T) {
	runnertest.Exercise(t, func(t *testing.T) (*runner.Process, runner.LoadReport) { return load(t, nil) })
}

func TestLoadContract(t *testing.T) {
	// SmolLM2-135M: 30 layers, 3 heads of keys and values of 64 numbers each, 2 bytes a number.
	runnertest.ExerciseLoads(t, runnertest.Model{Start: start, Path: model, PerCell: 30 * 3 * (64 + 64) * 2})
}

func TestReport(t *testing.T) {
	_, report := load(t, numCtx(1<<20))
	info, err := os.Stat(model)
	if err != nil {
		t.Fatal(err)
	}
	// SmolLM2-135M: 30 layers, 3 heads of keys and values of 64 numbers each, 2 bytes a number, trained on 8192 tokens.
	if kv := uint64(30 * 3 * (64 + 64) * 2 * 8192 * runnertest.Parallel); report.NumCtx != 8192 || report.TrainCtx != 8192 || report.Memory[0].KV != kv {
		t.Errorf("report %+v; want a context of 8192 and %d bytes of KV", report, kv)
	}
	if report.Memory[0].Weights > uint64(info.Size()) || report.Memory[0].Weights < uint64(info.Size())*9/10 || report.Backend != "llama" || report.Parallel != runnertest.Parallel || report.Embedding != 576 || report.Memory[0].Compute == 0 || report.GPUBytes() != 0 {
		t.Errorf("report %+v", report)
	}
}

func TestKilledInMidStream(t *testing.T) {
	p, _ := load(t, nil)
	req := runnertest.Request(counting, -1)
	req.Shift = true
	err := p.Generate(t.Context(), req, func(runner.Chunk) error { return syscall.Kill(p.PID(), syscall.SIGKILL) })
	runnertest.WantCode(t, err, fault.Busy)
	var exit *runner.ExitError
	if !errors.As(err, &exit) || exit.Signal != "killed" || len(exit.LastLog) == 0 {
		t.Errorf("error %v", err)
	}
}

// forced is a schema with a single answer.
func forced(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"type":"object","properties":{"text":{"type":"string","enum":[` + string(quoted) + `]}},"required":["text"],"additionalProperties":false}`
}

func TestSchemaForcesTheText(t *testing.T) {
	p, _ := load(t, nil)
	for _, want := range []string{"Grüße 👋 日本語 ñ", `quotes " and \ and / `, "line\nbreak\ttab", "🇩🇪👩‍👩‍👧‍👦e\u0301"} {
		req := runnertest.Request("Say something.", 120)
		req.Schema = forced(want)
		text, last := runnertest.Answer(t, p, req)
		var got struct{ Text string }
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.Text != want || last.DoneReason != "stop" {
			t.Errorf("%q: %v, done %s; want %q", text, err, last.DoneReason, want)
		}
	}
	for _, schema := range []string{`"json"`, `null`} {
		req := runnertest.Request("A short object:", 60)
		req.Schema = schema
		text, last := runnertest.Answer(t, p, req)
		if !strings.HasPrefix(text, "{") || last.DoneReason == "stop" && !json.Valid([]byte(text)) {
			t.Errorf("schema %s gave %q, done %s", schema, text, last.DoneReason)
		}
	}
}

func TestSamplingFollowsTheSeed(t *testing.T) {
	p, _ := load(t, nil)
	draw := func(seed int, lastN int) string {
		req := runnertest.Request("Once upon a time", 12)
		req.Sampling = runner.Sampling{Temperature: 1.5, TopK: 100, TopP: 1, TypicalP: 1, Seed: seed,
			RepeatLastN: lastN, RepeatPenalty: 1.1, FrequencyPenalty: 0.1, PresencePenalty: 0.1}
		text, _ := runnertest.Answer(t, p, req)
		return text
	}
	draw(1, 64) // so that all begin at the same cache
	for _, lastN := range []int{0, 64, -1} {
		if a, b := draw(7, lastN), draw(7, lastN); a != b {
			t.Errorf("one seed gave %q and %q", a, b)
		}
		if a, b := draw(7, lastN), draw(8, lastN); a == b {
			t.Errorf("two seeds both gave %q", a)
		}
		if a, b := draw(-1, lastN), draw(-1, lastN); a == b {
			t.Errorf("two random draws both gave %q", a)
		}
	}
	hostile := runnertest.Request("Once upon a time", 3)
	hostile.Sampling = runner.Sampling{Temperature: -1, TopK: -5, TopP: -2, MinP: 7, TypicalP: -1, RepeatLastN: 64, RepeatPenalty: -3, Seed: -9}
	runnertest.Answer(t, p, hostile)
}

func TestTextIsAlwaysWholeCharacters(t *testing.T) {
	p, _ := load(t, nil)
	var all strings.Builder
	for seed := range 3 {
		req := runnertest.Request("🙂👋日本", 120)
		// So hot that any token may come, halves of characters among them. Answer checks each chunk.
		req.Sampling = runner.Sampling{Temperature: 50, TopP: 1, TypicalP: 1, Seed: seed}
		text, _ := runnertest.Answer(t, p, req)
		all.WriteString(text)
	}
	if !strings.Contains(all.String(), "\uFFFD") {
		t.Error("no broken character came up; the test shows nothing")
	}
}

func TestFullContext(t *testing.T) {
	const context = 32
	p, _ := load(t, numCtx(context))
	req := runnertest.Request("One, two, three, four,", 70)
	_, last := runnertest.Answer(t, p, req)
	// The last token drawn has no place in the context and needs none.
	if want := context - last.Usage.PromptTokens + 1; last.Usage.EvalTokens != want || last.DoneReason != "length" {
		t.Errorf("without shift %d tokens, done %s; want %d, length", last.Usage.EvalTokens, last.DoneReason, want)
	}
	req.Shift = true
	req.NumKeep = 4
	_, last = runnertest.Answer(t, p, req)
	if last.Usage.EvalTokens != 70 || last.DoneReason != "length" {
		t.Errorf("with shift %d tokens, done %s", last.Usage.EvalTokens, last.DoneReason)
	}
	// What the shift left in the cache is no prefix of the prompt any more, but for the kept part.
	_, last = runnertest.Answer(t, p, req)
	if last.Usage.CachedTokens > 5 {
		t.Errorf("after a shift %d tokens count as cached", last.Usage.CachedTokens)
	}
	req.NumPredict = -1
	_, last = runnertest.Answer(t, p, req)
	if last.Usage.EvalTokens > 10*context {
		t.Errorf("an endless answer had %d tokens", last.Usage.EvalTokens)
	}
}

func TestCancelWhileThePromptIsRead(t *testing.T) {
	e := engine.New() // in this process, so that the test can see a decode end
	defer e.Close()
	if _, err := e.Load(t.Context(), runner.LoadRequest{ModelPath: model, NumCtx: 2048, NumThread: 1, UseMmap: true}, func(float32) {}); err != nil {
		t.Fatal(err)
	}
	req := runnertest.Request(strings.Repeat("word ", 1000), 0)
	left := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	decodes := 0
	if err := e.OnDecode(func([]engine.BatchPart) { decodes++; cancel(left) }); err != nil {
		t.Fatal(err)
	}
	if err := e.Generate(ctx, req, func(runner.Chunk) error { return nil }); !errors.Is(err, left) {
		t.Fatalf("error %v", err)
	}
	var last runner.Chunk
	if err := e.OnDecode(nil); err != nil { // as a job after the other, it sees that one ended
		t.Fatal(err)
	}
	if decodes != 1 {
		t.Errorf("%d batches were read after the client left", decodes-1)
	}
	if err := e.Generate(t.Context(), req, func(c runner.Chunk) error { last = c; return nil }); err != nil || last.Usage == nil {
		t.Fatalf("the same again: %+v, %v", last, err)
	}
	if u := last.Usage; u.CachedTokens == 0 || u.CachedTokens >= u.PromptTokens-1 {
		t.Errorf("usage %+v; want the reading stopped in the middle, and what was read kept", *u)
	}
}

func TestLoadOptions(t *testing.T) {
	for name, change := range map[string]func(*runner.LoadRequest){
		"a KV cache of q8_0": func(r *runner.LoadRequest) { r.KVCacheType = "q8_0" },
		"flash attention on": func(r *runner.LoadRequest) { r.FlashAttention = "on" },
		"no mmap, one token": func(r *runner.LoadRequest) { r.UseMmap = false; r.NumBatch = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := load(t, change)
			if text, _ := runnertest.Answer(t, p, runnertest.Request(counting, 3)); !strings.Contains(text, "five") {
				t.Errorf("after four it says %q", text)
			}
		})
	}
	for name, row := range map[string]struct {
		change func(*runner.LoadRequest)
		want   string
	}{
		"no context":               {numCtx(0), "num_ctx"},
		"an unknown KV type":       {func(r *runner.LoadRequest) { r.KVCacheType = "q2" }, "q2"},
		"q8_0 without flash":       {func(r *runner.LoadRequest) { r.KVCacheType, r.FlashAttention = "q8_0", "off" }, "flash attention"},
		"flash that is a guess":    {func(r *runner.LoadRequest) { r.FlashAttention = "maybe" }, "maybe"},
		"a file that is not there": {func(r *runner.LoadRequest) { r.ModelPath += ".none" }, "opened"},
		"a folder":                 {func(r *runner.LoadRequest) { r.ModelPath = filepath.Dir(r.ModelPath) }, "not a file"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			p := start(t)
			req := runner.LoadRequest{ModelPath: model, NumCtx: 64, NumThread: 1}
			row.change(&req)
			_, err := p.Load(t.Context(), req, nil)
			runnertest.WantCode(t, err, fault.Invalid)
			if err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v; want %q in it", err, row.want)
			}
			if p.Err() != nil {
				t.Errorf("the child died: %v", p.Err())
			}
		})
	}
}
