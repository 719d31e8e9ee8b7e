package store

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"sluice/fault"
	"sluice/store/db"
)

func someAsk(id, owner string, at time.Time) Ask {
	return Ask{
		ID: id, KeyID: "k1", Owner: owner, Database: "shop", Question: "how many?", WrittenSQL: "select 1", ExecutedSQL: "SELECT 1",
		Outcome: "answered", Model: "m", ModelCalls: 2, Duration: 1500 * time.Millisecond, CreatedAt: at, Attempts: 1, Agreed: true,
		Tables:     []Relation{{"main", "orders"}},
		Candidates: []Candidate{{Written: "select 1", Mended: "select 2", SQL: "SELECT 2", Round: "focus", Verdict: "ran", Reason: "r", Rows: 3, Votes: 2, TookMS: 7}},
		Timings:    map[string]time.Duration{"model": time.Second, "gate": 3 * time.Millisecond}, VerifiedID: "vq_1", Follows: true,
		Readable: []Relation{{"main", "items"}, {"main", "orders"}},
	}
}

func insertAsks(t *testing.T, s *Store, asks ...Ask) {
	t.Helper()
	for _, a := range asks {
		if err := s.InsertAsk(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAsks(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	a, b := someAsk("a1", "ann", noon), someAsk("a2", "ann", noon.Add(time.Second))
	b.Readable = []Relation{{"main", "orders"}, {"main", "items"}} // the same, in another order
	bare := Ask{ID: "a3", Owner: "bob", Database: "erp", Question: "q", Outcome: "declined", CreatedAt: noon}
	insertAsks(t, s, a, b, bare)
	if err := s.InsertAsk(ctx, a); err == nil {
		t.Error("an ask was recorded twice")
	}
	got, err := s.Ask(ctx, "a1")
	a.Scope = got.Scope
	if err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("got %+v, %v, want %+v", got, err, a)
	}
	if other, err := s.Ask(ctx, "a2"); err != nil || other.Scope != a.Scope || a.Scope == "" {
		t.Errorf("equal rights have two scopes: %q %q %v", other.Scope, a.Scope, err)
	}
	if got, err := s.Ask(ctx, "a3"); err != nil || got.Scope != "" || got.Readable != nil || len(got.Candidates) != 0 {
		t.Errorf("a bare one: %+v %v", got, err)
	}
	if _, err := s.Ask(ctx, "a4"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("one that is not there: %v", err)
	}
	right, none := "right", ""
	if _, err := s.MarkAsk(ctx, "a1", Mark{Mark: "right", By: "ann", At: noon, Note: "n"}); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		filter AskFilter
		want   string
	}{
		"nobody's":           {AskFilter{Limit: 9}, "[]"},
		"everybody's":        {AskFilter{Everybodys: true, Limit: 9}, "[a2 a3 a1]"},
		"an owner's":         {AskFilter{Owner: "ann", Limit: 9}, "[a2 a1]"},
		"a key's":            {AskFilter{Owner: "ann", KeyID: "k2", Limit: 9}, "[]"},
		"of a database":      {AskFilter{Everybodys: true, Database: "erp", Limit: 9}, "[a3]"},
		"of an outcome":      {AskFilter{Everybodys: true, Outcome: "answered", Limit: 9}, "[a2 a1]"},
		"marked right":       {AskFilter{Everybodys: true, Mark: &right, Limit: 9}, "[a1]"},
		"not marked":         {AskFilter{Everybodys: true, Mark: &none, Limit: 9}, "[a2 a3]"},
		"a page":             {AskFilter{Everybodys: true, Limit: 1}, "[a2]"},
		"the page behind it": {AskFilter{Everybodys: true, Limit: 9, Before: Place{b.CreatedAt, "a2"}}, "[a3 a1]"},
		"behind an equal":    {AskFilter{Everybodys: true, Limit: 9, Before: Place{noon, "a3"}}, "[a1]"},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := s.Asks(ctx, row.filter)
			ids := make([]string, len(all))
			for i, a := range all {
				ids[i] = a.ID
			}
			if err != nil || fmt.Sprint(ids) != row.want {
				t.Errorf("%v, %v, want %s", ids, err, row.want)
			}
		})
	}
	if got, _ := s.Ask(ctx, "a1"); got.Mark != "right" || got.MarkedBy != "ann" || !got.MarkedAt.Equal(noon) || got.Note != "n" {
		t.Errorf("marked: %+v", got)
	}
	if _, err := s.MarkAsk(ctx, "a9", Mark{Mark: "wrong"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a mark on none: %v", err)
	}
}

// TestOldAsksGo: the oldest, those beyond an owner's share and those beyond all; never a marked one.
func TestOldAsksGo(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	for i := range 6 {
		insertAsks(t, s, someAsk(fmt.Sprint("ann", i), "ann", noon.Add(time.Duration(i)*time.Minute)))
		insertAsks(t, s, someAsk(fmt.Sprint("bob", i), "bob", noon.Add(time.Duration(i)*time.Minute)))
	}
	lone := someAsk("old", "cid", noon.Add(-time.Hour))
	lone.Readable = []Relation{{"main", "alone"}}
	insertAsks(t, s, lone)
	if _, err := s.MarkAsk(ctx, "ann0", Mark{Mark: "right", By: "ann", At: noon}); err != nil {
		t.Fatal(err)
	}
	left := func() string {
		var ids []string
		all, err := s.Asks(ctx, AskFilter{Everybodys: true, Limit: 99})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			ids = append(ids, a.ID)
		}
		return fmt.Sprint(ids)
	}
	prune := func(before time.Time, all, of int64) {
		t.Helper()
		if err := s.change(ctx, func(q *db.Queries) error { return pruneAsks(ctx, q, "ann", before, all, of) }); err != nil {
			t.Fatal(err)
		}
	}
	prune(noon, 99, 3)
	if got := left(); got != "[bob5 ann5 bob4 ann4 bob3 ann3 bob2 bob1 bob0 ann0]" {
		t.Errorf("left %s", got)
	}
	if scope, err := s.AskScope(ctx, "none"); scope != nil || err != nil {
		t.Errorf("a scope that is not there: %v %v", scope, err)
	}
	var scopes int
	if err := s.read.QueryRow("SELECT count(*) FROM ask_scopes").Scan(&scopes); err != nil || scopes != 1 {
		t.Errorf("%d scopes are left, %v", scopes, err)
	}
	prune(noon, 2, 99)
	if got := left(); got != "[bob5 ann5 ann0]" {
		t.Errorf("left %s", got)
	}
}

func TestInsertingPrunes(t *testing.T) {
	s, _ := opened(t)
	insertAsks(t, s, someAsk("old", "ann", noon.Add(-keepAsksFor-time.Hour)))
	for i := range pruneAsksEach {
		insertAsks(t, s, Ask{ID: fmt.Sprint("a", i), Owner: "ann", Database: "shop", Question: "q", Outcome: "failed", CreatedAt: noon})
	}
	if _, err := s.Ask(context.Background(), "old"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("an ask of over a year ago: %v", err)
	}
}
