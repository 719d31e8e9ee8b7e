package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
)

func TestRerank(t *testing.T) {
	p, report := loadTiny(t, "reranker", nil)
	if !report.Reranks || report.Backend != "llama" {
		t.Fatalf("report %+v", report)
	}
	documents := []string{"the cat sits", "trade and revenue", "dogs", "a dog is a dog", ""}
	for i := range 60 { // more than one batch holds
		documents = append(documents, fmt.Sprintf("word %d of revenue", i))
	}
	ask := func(query string, documents ...string) runner.RerankResponse {
		t.Helper()
		out, err := p.Rerank(t.Context(), runner.RerankRequest{Query: query, Documents: documents})
		if err != nil || len(out.Scores) != len(documents) || out.Truncated {
			t.Fatalf("%+v, %v", out, err)
		}
		return out
	}
	all := ask("where is the cat", documents...)
	tokens, different := 0, false
	for i, d := range documents {
		alone := ask("where is the cat", d)
		tokens += alone.PromptTokens
		if math.Abs(float64(all.Scores[i]-alone.Scores[0])) > 1e-3 {
			t.Errorf("document %d scores %f among others and %f alone", i, all.Scores[i], alone.Scores[0])
		}
		different = different || math.Abs(float64(all.Scores[i]-all.Scores[0])) > 1e-2
	}
	if !different || tokens != all.PromptTokens {
		t.Errorf("%d tokens in all, %d one by one; all scores the same: %t", all.PromptTokens, tokens, !different)
	}
	if other := ask("trade", documents[0]); other.Scores[0] == all.Scores[0] {
		t.Error("the query does not count")
	}
	// [CLS] query [SEP] document [SEP]: three tokens more than the texts.
	q, _ := p.Tokenize(t.Context(), "where is the cat", false)
	d, _ := p.Tokenize(t.Context(), documents[0], false)
	if one := ask("where is the cat", documents[0]); one.PromptTokens != len(q)+len(d)+3 {
		t.Errorf("a pair has %d tokens, its texts %d and %d", one.PromptTokens, len(q), len(d))
	}
	if none := ask("where is the cat"); none.PromptTokens != 0 {
		t.Errorf("no documents: %+v", none)
	}

	t.Run("a document that is too long", func(t *testing.T) {
		req := runner.RerankRequest{Query: "cat", Documents: []string{"dog", strings.Repeat("word ", 400)}}
		_, err := p.Rerank(t.Context(), req)
		runnertest.WantCode(t, err, fault.Invalid)
		req.Truncate = true
		out, err := p.Rerank(t.Context(), req)
		if err != nil || !out.Truncated || len(out.Scores) != 2 {
			t.Errorf("%+v, %v", out, err)
		}
	})
	for name, req := range map[string]runner.RerankRequest{
		"no query":                    {Query: " ", Documents: []string{"a"}},
		"a query that leaves no room": {Query: strings.Repeat("cat ", 400), Documents: []string{"a"}, Truncate: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.Rerank(t.Context(), req)
			runnertest.WantCode(t, err, fault.Invalid)
		})
	}
}

func TestOthersDoNotRerank(t *testing.T) {
	for _, name := range []string{"bert", "llama"} {
		p, report := loadTiny(t, name, nil)
		if report.Reranks {
			t.Errorf("%s: report %+v", name, report)
		}
		_, err := p.Rerank(t.Context(), runner.RerankRequest{Query: "a", Documents: []string{"b"}})
		runnertest.WantCode(t, err, fault.Invalid)
	}
}

// TestRerankOfOneWhoLeft: no document is looked at any more.
func TestRerankOfOneWhoLeft(t *testing.T) {
	e, _ := tiny(t, "reranker", nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	left := errors.New("left")
	cancel(left)
	_, err := e.Rerank(ctx, runner.RerankRequest{Query: "cat", Documents: []string{strings.Repeat("word ", 400)}})
	if !errors.Is(err, left) { // not that the document is too long: it was not looked at
		t.Errorf("error %v", err)
	}
}
