package store

import (
	"fmt"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
)

func somePair(id, owner, key, question string) Verified {
	return Verified{ID: id, Database: "shop", Owner: owner, KeyID: key, Question: question, SQL: "SELECT 1 FROM t", VerifiedBy: "ann", VerifiedAt: noon, FromAsk: "ask_" + id}
}

func TestVerified(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	first := somePair("v1", "ann", "", "q1")
	first.Name, first.Note = "n", "note"
	shared, key := somePair("v2", "", "", "q1"), somePair("v3", "ann", "k1", "q1")
	if _, err := s.PutVerified(ctx, []Verified{first, shared, key}); err != nil {
		t.Fatal(err)
	}
	if got, err := s.VerifiedByID(ctx, "v1"); err != nil || got != first {
		t.Errorf("%+v, %v", got, err)
	}
	other := first
	other.ID, other.SQL, other.VerifiedAt = "v9", "SELECT 2 FROM t", noon.Add(time.Hour)
	kept, err := s.PutVerified(ctx, []Verified{other})
	if err != nil || kept[0].ID != "v1" || kept[0].SQL != other.SQL {
		t.Errorf("one in the place of another: %+v, %v", kept, err)
	}
	if got, err := s.VerifiedAs(ctx, "shop", "ann", "k1", "q1"); err != nil || got.ID != "v3" {
		t.Errorf("%+v, %v", got, err)
	}
	if from, err := s.VerifiedFromAsk(ctx, "ask_v2"); err != nil || len(from) != 1 || from[0].ID != "v2" {
		t.Errorf("from an ask: %v, %v", from, err)
	}
	if from, err := s.VerifiedFromAsk(ctx, ""); len(from) != 0 || err != nil {
		t.Errorf("from no ask: %v, %v", from, err)
	}
	for name, row := range map[string]struct {
		filter VerifiedFilter
		want   string
	}{
		"an owner's":         {VerifiedFilter{Owner: "ann", Whole: true}, "[v1 v3 v2]"},
		"a key's":            {VerifiedFilter{Owner: "ann", KeyID: "k1"}, "[v1 v3 v2]"},
		"another key's":      {VerifiedFilter{Owner: "ann", KeyID: "k2"}, "[v1 v2]"},
		"another's":          {VerifiedFilter{Owner: "bob", Whole: true}, "[v2]"},
		"everybody's":        {VerifiedFilter{Everybodys: true}, "[v1 v3 v2]"},
		"another database's": {VerifiedFilter{Everybodys: true, Database: "erp"}, "[]"},
		"the page behind":    {VerifiedFilter{Everybodys: true, Before: Place{noon, "v3"}}, "[v2]"},
	} {
		row.filter.Limit = 9
		all, err := s.Verified(ctx, row.filter)
		ids := []string{}
		for _, v := range all {
			ids = append(ids, v.ID)
		}
		if err != nil || fmt.Sprint(ids) != row.want {
			t.Errorf("%s: %v, %v, want %s", name, ids, err, row.want)
		}
	}
	if err := s.DeleteVerified(ctx, "v1"); err != nil {
		t.Error(err)
	}
	if err := s.DeleteVerified(ctx, "v1"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a second time: %v", err)
	}
	for name, bad := range map[string]Verified{"no question": somePair("x", "ann", "", ""), "a key of nobody": somePair("x", "", "k1", "q")} {
		if _, err := s.PutVerified(ctx, []Verified{somePair("ok", "ann", "", "ok"), bad}); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
	if _, err := s.VerifiedByID(ctx, "ok"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("half of what was refused was stored: %v", err)
	}
}

// TestWhomAPairServes: nobody else's, no other database's, no other key's.
func TestWhomAPairServes(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	elsewhere := somePair("erp", "ann", "", "q erp")
	elsewhere.Database = "erp"
	newer := somePair("new", "ann", "", "q new")
	newer.VerifiedAt = noon.Add(time.Hour)
	if _, err := s.PutVerified(ctx, []Verified{somePair("own", "ann", "", "q own"), newer, somePair("key", "ann", "k1", "q key"), somePair("all", "", "", "q all"), somePair("bob", "bob", "", "q bob"), elsewhere}); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct{ owner, key, want string }{
		"a person":       {"ann", "login_1", "[q new q own q all]"},
		"her key":        {"ann", "k1", "[q new q own q key q all]"},
		"another person": {"bob", "k1", "[q bob q all]"},
		"nobody":         {"", "", "[q all]"},
	} {
		var seen []string
		got, err := s.VerifiedFor(ctx, "shop", row.owner, row.key, func(questions []string) []int {
			seen = questions
			return []int{len(questions) - 1}
		})
		if err != nil || fmt.Sprint(seen) != row.want || len(got) != 1 || got[0].ID != "all" {
			t.Errorf("%s: %v, %v, %v, want %s", name, seen, got, err, row.want)
		}
	}
	if got, err := s.VerifiedFor(ctx, "none", "ann", "", func([]string) []int { t.Error("asked about none"); return nil }); len(got) != 0 || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAMarkIsOneChange(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	insertAsks(t, s, someAsk("a1", "ann", noon))
	pair := somePair("v1", "ann", "", "q")
	put, err := s.MarkAsk(ctx, "a1", Mark{Mark: "right", By: "ann", At: noon, Put: &pair})
	if err != nil || *put != pair {
		t.Fatalf("%+v, %v", put, err)
	}
	broken := somePair("", "ann", "", "q2")
	if _, err := s.MarkAsk(ctx, "a1", Mark{Mark: "wrong", By: "ann", At: noon, Put: &broken, Withdraw: []string{"v1"}}); err == nil {
		t.Fatal("a broken pair was stored")
	}
	if a, _ := s.Ask(ctx, "a1"); a.Mark != "right" {
		t.Errorf("half a mark: %+v", a)
	}
	if _, err := s.VerifiedByID(ctx, "v1"); err != nil {
		t.Errorf("half a mark: %v", err)
	}
	if _, err := s.MarkAsk(ctx, "a1", Mark{Withdraw: []string{"v1", "gone"}}); err != nil {
		t.Error(err)
	}
	if a, _ := s.Ask(ctx, "a1"); a.Mark != "" || !a.MarkedAt.IsZero() {
		t.Errorf("a mark taken away: %+v", a)
	}
}

func TestADeletedUserLeavesNothingBehind(t *testing.T) {
	s, _ := opened(t)
	ctx := t.Context()
	if err := s.insertUser(ctx, access.User{Name: "ann", Role: access.ReadOnly, CreatedAt: noon}, ""); err != nil {
		t.Fatal(err)
	}
	insertAsks(t, s, someAsk("a1", "ann", noon), someAsk("a2", "bob", noon))
	if _, err := s.PutVerified(ctx, []Verified{somePair("v1", "ann", "", "q"), somePair("v2", "", "", "q")}); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteUser(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	asks, err := s.Asks(ctx, AskFilter{Everybodys: true, Limit: 9})
	pairs, err2 := s.Verified(ctx, VerifiedFilter{Everybodys: true, Limit: 9})
	if err != nil || err2 != nil || len(asks) != 1 || asks[0].ID != "a2" || len(pairs) != 1 || pairs[0].ID != "v2" {
		t.Errorf("%v %v, %v %v", asks, err, pairs, err2)
	}
}
