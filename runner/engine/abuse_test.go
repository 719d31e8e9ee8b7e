package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sluice/fault"
	"sluice/runner"
)

// The ways to read a text of this grammar double with every 26 letters: too slowly for grammar.Check to see, and fast enough to keep
// the engine from everybody after 370 letters.
func TestGrammarWhoseWaysMultiplyEndsItsAnswerOnly(t *testing.T) {
	p, _ := load(t, nil)
	const letters = "abcdefghijklmnopqrstuvwxyz"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := p.Generate(ctx, runner.GenerateRequest{Prompt: "The letters are abc", NumPredict: 2000,
		Grammar: `root ::= "` + letters + `" root "b" | "` + letters + `" root "c" | "999999999999"`}, func(runner.Chunk) error { return nil })
	if fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "too many ways") {
		t.Errorf("error %v", err)
	}
	if err := p.Generate(ctx, runner.GenerateRequest{Prompt: "hi", NumPredict: 2}, func(runner.Chunk) error { return nil }); err != nil {
		t.Errorf("another's request: %v", err)
	}
}
