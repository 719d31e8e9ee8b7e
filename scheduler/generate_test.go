package scheduler

import (
	"context"
	"reflect"
	"testing"

	"sluice/models"
	"sluice/runner"
)

// recording keeps the request that it gets.
type recording struct {
	Runner
	got runner.GenerateRequest
}

func (r *recording) Generate(_ context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	r.got = req
	return emit(runner.Chunk{Text: "yes", Done: true})
}

// TestEveryOptionReachesTheRunner sets each field apart from the others, so that none can be lost or swapped.
func TestEveryOptionReachesTheRunner(t *testing.T) {
	r := &recording{}
	lease := &Lease{runner: r, report: runner.LoadReport{NumCtx: 100}}
	c := Completion{Prompt: "p", Owner: "o", Images: [][]byte{{1}, {2, 3}}, Schema: "null", Grammar: "g", After: "a", Logprobs: true, TopLogprobs: 11, N: 12, Draft: runner.DraftExpect, Truncate: true, Options: models.Options{
		NumPredict: 17, NumKeep: 5, Stop: []string{"END"}, Temperature: 0.1, TopK: 2, TopP: 0.3, MinP: 0.4, TypicalP: 0.5, RepeatLastN: 6,
		RepeatPenalty: 0.7, PresencePenalty: 0.8, FrequencyPenalty: 0.9, Seed: 10,
	}}
	text := ""
	if err := lease.Generate(t.Context(), c, func(ch runner.Chunk) error { text += ch.Text; return nil }); err != nil || text != "yes" {
		t.Fatalf("%q, %v", text, err)
	}
	want := runner.GenerateRequest{Prompt: "p", Owner: "o", Images: [][]byte{{1}, {2, 3}}, Grammar: "g", After: "a", Logprobs: true, TopLogprobs: 11, N: 12, Draft: runner.DraftExpect, NumPredict: 17, NumKeep: 5, Stop: []string{"END"}, Schema: "null", Truncate: true, Sampling: runner.Sampling{
		Temperature: 0.1, TopK: 2, TopP: 0.3, MinP: 0.4, TypicalP: 0.5, RepeatLastN: 6, RepeatPenalty: 0.7, PresencePenalty: 0.8, FrequencyPenalty: 0.9, Seed: 10}}
	if !reflect.DeepEqual(r.got, want) {
		t.Errorf("got  %+v\nwant %+v", r.got, want)
	}
	c.Truncate, c.Shift, c.Options.NumPredict = false, true, -1
	if err := lease.Generate(t.Context(), c, func(runner.Chunk) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if r.got.Truncate || !r.got.Shift || r.got.NumPredict != 100 {
		t.Errorf("got %+v", r.got)
	}
}

func TestNumPredictIsBounded(t *testing.T) {
	for asked, want := range map[int]int{-1: 100, -2: 100, 0: 100, 5: 5, 1000: 1000, 1001: 1000} {
		if got := numPredict(asked, 100); got != want {
			t.Errorf("%d: %d, want %d", asked, got, want)
		}
	}
}

func TestWithoutAKnownContextTheServerBoundsIt(t *testing.T) {
	for asked, want := range map[int]int{-1: -1, -2: -1, 0: -1, 5: 5} {
		if got := numPredict(asked, 0); got != want {
			t.Errorf("%d: %d, want %d", asked, got, want)
		}
	}
}

func TestTheOptionDraft(t *testing.T) {
	for option, want := range map[string]runner.Draft{"": "", "auto": "", "off": runner.DraftOff, "expect": runner.DraftExpect} {
		if got := draft(Completion{Options: models.Options{Draft: option}}); got != want {
			t.Errorf("option %q: %q, want %q", option, got, want)
		}
		if got := draft(Completion{Draft: runner.DraftOff, Options: models.Options{Draft: option}}); got != runner.DraftOff {
			t.Errorf("option %q: %q goes before what the caller said", option, got)
		}
	}
}
