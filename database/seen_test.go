package database

import (
	"fmt"
	"testing"

	"sluice/fault"
	"sluice/sqlguard"
)

// TestSeenStatementsAreDecidedForEachCaller: what one caller was allowed is no right of another.
func TestSeenStatementsAreDecidedForEachCaller(t *testing.T) {
	s := open(t, "CREATE TABLE a (id INTEGER); CREATE TABLE b (id INTEGER)")
	const sql = "SELECT * FROM a JOIN b USING (id) WHERE id > now()::VARCHAR::INTEGER"
	first, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
	if err != nil || again.SQL() != first.SQL() || len(again.Relations()) != 2 {
		t.Errorf("%v %+v", err, again)
	}
	if len(s.seen.entries) != 1 {
		t.Errorf("%d statements are remembered", len(s.seen.entries))
	}
	for name, may := range map[string]func(sqlguard.Relation) bool{
		"who may read one of two": func(r sqlguard.Relation) bool { return r.Name == "a" }, "who may read nothing": func(sqlguard.Relation) bool { return false }, "nobody": nil,
	} {
		if _, err := s.Approve(t.Context(), sql, sqlguard.ReadOnly, may); fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Approve(t.Context(), sql, sqlguard.RestrictedRead, everything); fault.CodeOf(err) != fault.Refused {
		t.Errorf("a restricted reader: %v", err)
	}
	for i := range maxSeen + 10 {
		if _, err := s.Approve(t.Context(), fmt.Sprintf("SELECT %d", i), sqlguard.ReadOnly, everything); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.seen.entries) != maxSeen || len(s.seen.order) != maxSeen {
		t.Errorf("%d statements are remembered, %d in order", len(s.seen.entries), len(s.seen.order))
	}
}

// TestSeenForgetsWithTheCatalogue: names may mean something else after a change of the catalogue.
func TestSeenForgetsWithTheCatalogue(t *testing.T) {
	s := open(t, "CREATE TABLE a (id INTEGER)")
	approve(t, s, "SELECT id FROM a")
	cat, err := s.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := *cat
	if _, ok := s.seen.find("SELECT id FROM a", sqlguard.ReadOnly, cat, everything); !ok {
		t.Error("the statement was not remembered")
	}
	if _, ok := s.seen.find("SELECT id FROM a", sqlguard.ReadOnly, &other, everything); ok {
		t.Error("it is remembered although the catalogue is another")
	}
}
