package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/store"
)

var confirmedAt = time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)

func confirming(pairs ...Pair) Config {
	return Config{Verified: func(context.Context, access.Principal, string, string) ([]Pair, error) { return pairs, nil }}
}

func gold(question string) Pair {
	return Pair{ID: "vq_1", Question: question, SQL: goldTier, By: "ann", At: confirmedAt}
}

func TestAConfirmedAnswerSaysWhoAndWhen(t *testing.T) {
	var records []Record
	cfg := confirming(Pair{Question: "How many payments?", SQL: paypal}, gold("How many customers are gold?"))
	cfg.Record = func(_ context.Context, r Record) error { records = append(records, r); return nil }
	ans := askDesk(t, cfg, &play{}, Ask{Question: "Could you tell me how many customers are gold, please?"})
	if !ans.Verified || ans.VerifiedBy != "ann" || !ans.VerifiedAt.Equal(confirmedAt) || ans.VerifiedID != "vq_1" || ans.Confirmed() != "confirmed by ann on 2026-11-30" {
		t.Errorf("%+v, %q", ans, ans.Confirmed())
	}
	if strings.Contains(ans.Text, "2026") {
		t.Errorf("a number that no row has is in the sentence: %s", ans.Text)
	}
	if len(records) != 1 || records[0].VerifiedID != "vq_1" || len(records[0].Readable) == 0 || records[0].Candidates[0].Round != "verified" {
		t.Errorf("recorded: %+v", records)
	}
	if got := (Answer{VerifiedBy: "ann"}).Confirmed(); got != "" {
		t.Errorf("nobody confirmed it, and yet: %q", got)
	}
	if got := (Answer{Verified: true, VerifiedBy: "ann\n# x"}).Confirmed(); got != "confirmed by ann # x" {
		t.Errorf("more than a line: %q", got)
	}
}

func TestNearlyTheConfirmedQuestionIsAnExampleOnly(t *testing.T) {
	for name, question := range map[string]string{
		"another value":  "How many customers are silver?",
		"a not":          "How many customers are not gold?",
		"one more limit": "How many customers are gold in 2024?",
	} {
		model := &play{answers: [][]string{{paypal}, {paypal}}}
		ans := askDesk(t, confirming(gold("How many customers are gold?")), model, Ask{Question: question})
		if ans.Verified || !strings.Contains(model.prompt(0), "How many customers are gold?") {
			t.Errorf("%s: %+v\n%s", name, ans, model.prompt(0))
		}
	}
	for name, q := range map[string]Ask{
		"with a definition":     {Question: "How many customers are gold?", Evidence: "gold is tier 3"},
		"within a conversation": {Question: "How many customers are gold?", Earlier: []Turn{{Question: "How many payments?", SQL: paypal}}},
	} {
		if ans := askDesk(t, confirming(gold("How many customers are gold?")), &play{answers: [][]string{{paypal}, {paypal}}}, q); ans.Verified {
			t.Errorf("%s it is another question: %+v", name, ans)
		}
	}
}

// TestAPersonKnowsBetterThanADecline: a question that looks like one that cannot be answered is answered when somebody confirmed how.
func TestAPersonKnowsBetterThanADecline(t *testing.T) {
	question := "Why are customers gold?"
	if ans := askDesk(t, Config{}, &play{}, Ask{Question: question}); ans.Outcome != Declined {
		t.Fatalf("it is not declined: %+v", ans)
	}
	if ans := askDesk(t, confirming(gold(question)), &play{}, Ask{Question: question}); !ans.Verified {
		t.Errorf("%+v", ans)
	}
}

func TestWhatIsConfirmedInTheStoreIsGatedAllTheSame(t *testing.T) {
	for name, sql := range map[string]string{
		"a write":        "DELETE FROM customers",
		"no table":       "SELECT 42 AS n",
		"a plan":         "EXPLAIN SELECT COUNT(*) FROM customers",
		"two":            "SELECT 1 FROM customers; SELECT 2 FROM customers",
		"one that fails": "SELECT CAST(name AS INTEGER) FROM customers",
		"gone":           "SELECT * FROM gone",
	} {
		p := gold("How many customers are gold?")
		p.SQL = sql
		model := &play{answers: [][]string{{goldTier}, {goldTier}}}
		if ans := askDesk(t, confirming(p), model, Ask{Question: p.Question}); ans.Verified || ans.VerifiedBy != "" || ans.Outcome != Answered {
			t.Errorf("%s: %+v", name, ans)
		}
	}
}

func TestFewAndShortExamples(t *testing.T) {
	var pairs []Pair
	for _, what := range []string{"one", "two", "three", "four", "five"} {
		pairs = append(pairs, gold("How many customers are gold in "+what+"?"))
	}
	pairs[0].SQL += " -- " + strings.Repeat("x", maxPairBytes)
	model := &play{answers: [][]string{{goldTier}, {goldTier}}}
	askDesk(t, confirming(pairs...), model, Ask{Question: "How many customers are gold in Rome?"})
	p := model.prompt(0)
	if got := strings.Count(p, "How many customers are gold in "); got != maxPairs+1 || strings.Contains(p, "in one?") || strings.Contains(p, "in five?") {
		t.Errorf("%d questions in\n%s", got, p)
	}
}

func TestAnAskThatCameToNothingIsRecorded(t *testing.T) {
	for name, row := range map[string]struct {
		fails func(context.CancelCauseFunc) error
		want  Outcome
		code  fault.Code
	}{
		"the caller left": {func(leave context.CancelCauseFunc) error { leave(context.Canceled); return context.Canceled }, Cancelled, fault.Canceled},
		"a busy machine":  {func(context.CancelCauseFunc) error { return fault.New(fault.Busy, "test", "the queue is full") }, Errored, fault.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancelCause(t.Context())
			defer leave(nil)
			var records []Record
			a := newAgent(t, Config{Completer: completer(func(Completion) (string, error) { return "", row.fails(leave) }),
				Record: func(ctx context.Context, r Record) error { records = append(records, r); return ctx.Err() }})
			_, err := a.Ask(ctx, shopdesk(t), Ask{Who: admin(), Question: "How many customers are gold?"})
			if fault.CodeOf(err) != row.code {
				t.Errorf("error %v", err)
			}
			if len(records) != 1 || records[0].Outcome != row.want || records[0].Reason == "" || records[0].SQL != "" || len(records[0].Readable) == 0 || records[0].ModelCalls == 0 {
				t.Errorf("recorded: %+v", records)
			}
		})
	}
	broken := errors.New("disk full")
	a := newAgent(t, Config{Completer: completer(func(Completion) (string, error) { return "", fault.New(fault.Busy, "test", "the queue is full") }),
		Record: func(context.Context, Record) error { return broken }})
	if _, err := a.Ask(t.Context(), shopdesk(t), Ask{Who: admin(), Question: "How many customers are gold?"}); fault.CodeOf(err) != fault.Busy || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("neither is hidden by the other: %v", err)
	}
}

func TestWhatIsKeptOfARecord(t *testing.T) {
	var kept Asked
	cfg := Config{Record: func(_ context.Context, r Record) error { kept = r.Asked(); return nil }}
	ans := askDesk(t, cfg, &play{answers: [][]string{{goldTier}, {goldTier}}}, Ask{Question: "How many customers are gold?"})
	if kept.ID != ans.ID || kept.Outcome != "answered" || kept.ExecutedSQL != ans.SQL || len(kept.Candidates) != len(ans.Candidates) || kept.Candidates[0].Verdict == "" ||
		len(kept.Readable) == 0 || len(kept.Tables) == 0 || len(kept.Timings) == 0 || kept.Follows {
		t.Errorf("%+v", kept)
	}
	askDesk(t, cfg, &play{answers: [][]string{{goldTier}, {goldTier}}}, Ask{Question: "And gold?", Evidence: "x"})
	if !kept.Follows || !slices.ContainsFunc(kept.Candidates, func(c store.Candidate) bool { return c.Written != "" }) {
		t.Errorf("%+v", kept)
	}
}
