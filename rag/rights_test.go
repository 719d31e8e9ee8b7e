package rag

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/sqlguard"
)

// The secret table has names, comments, values and references of its own, and the others refer to it.
const secret = `
CREATE TABLE payroll (payroll_id INTEGER PRIMARY KEY, agent_id INTEGER REFERENCES agents(agent_id), zyxgrade VARCHAR, iban VARCHAR);
INSERT INTO payroll VALUES (1, 1, 'Wyvern Grade', 'XX99SECRETIBAN'), (2, 2, 'Basilisk Grade', 'XX98SECRETIBAN'), (3, 3, 'Basilisk Grade', 'XX97SECRETIBAN');
COMMENT ON TABLE payroll IS 'hush money per agent';
COMMENT ON COLUMN payroll.zyxgrade IS 'the qwertgrade of an agent';
CREATE TABLE bonus (bonus_id INTEGER PRIMARY KEY, payroll_id INTEGER, euros INTEGER);
INSERT INTO bonus VALUES (1, 1, 10), (2, 2, 20), (3, 2, 30);
CREATE TABLE advance (advance_id INTEGER PRIMARY KEY, payroll_id INTEGER REFERENCES payroll(payroll_id));
INSERT INTO advance VALUES (1, 1)`

var secrets = []string{"zyxgrade", "iban", "wyvern", "basilisk", "xx99", "hush", "qwert"}

// Whoever asked before, an asker is told nothing of what he may not read: not its name, columns, comments, values or
// joins, and no score is other for its being there.
func TestNothingOfAHiddenTableShows(t *testing.T) {
	open, hidden := duck(t, shopdesk(t)...), duck(t, append(shopdesk(t), secret)...)
	questions := []string{
		"Which agents have a Wyvern Grade?", "How much hush money has Mira Holt's zyxgrade brought?", "What is the 'XX99SECRETIBAN' of the payroll?",
		"Which agents closed tickets about refunds?", "bonus and advance of each agent", "Wyvren Grade",
	}
	may := allBut("payroll", "bonus", "advance")
	for name, p := range map[string]*Profiler{"first": profiler(t, patient), "after one who may": profiler(t, patient)} {
		t.Run(name, func(t *testing.T) {
			if name != "first" {
				all := learn(t, p, hidden, everyone)
				if f := all.Focus(questions[0], ""); len(f.Links) == 0 {
					t.Fatal("one who may read it finds its values")
				}
			}
			k, want := learn(t, p, hidden, may), know(t, open, everyone)
			if k.Card(nil) != want.Card(nil) {
				t.Errorf("the card is another one:\n%s", k.Card(nil))
			}
			if got := k.Card([]sqlguard.Relation{inMain("payroll"), inMain("bonus")}); got != "" {
				t.Errorf("a table that is asked for by name shows:\n%s", got)
			}
			if got, want := joinText(k.Joins()), joinText(want.Joins()); !slices.Equal(got, want) {
				t.Errorf("joins %v, want %v", got, want)
			}
			for _, q := range questions {
				got, want := k.Focus(q, "a zyxgrade is a kind of hush money in payroll"), want.Focus(q, "a zyxgrade is a kind of hush money in payroll")
				if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Errorf("%s\n got %+v\nwant %+v", q, got, want)
				}
				for _, l := range got.Links {
					for _, s := range secrets {
						if strings.Contains(strings.ToLower(l.Value), s) {
							t.Errorf("a link shows %q", l.Value)
						}
					}
				}
			}
			if _, ok := k.Facts(column("payroll", "iban")); ok {
				t.Error("facts show")
			}
			if _, ok := k.Table(inMain("payroll")); ok {
				t.Error("the table shows")
			}
			if l, ok := k.Nearest(column("payroll", "zyxgrade"), "Wyvern Grade"); ok {
				t.Errorf("a value shows: %+v", l)
			}
		})
	}
}

// A table in the middle that may not be read hides the way through it.
func TestAHiddenTableIsNoWay(t *testing.T) {
	src := duck(t, append(shopdesk(t), secret)...)
	k := know(t, src, allBut("payroll"))
	for _, j := range k.Joins() {
		if j.From.Column == "payroll_id" || j.To.Relation == inMain("payroll") {
			t.Errorf("a join shows: %v", j)
		}
	}
	if card := k.Card(nil); strings.Contains(card, "payroll(") || strings.Contains(card, "payroll_id INT REFERENCES") {
		t.Errorf("a reference shows:\n%s", card)
	}
	if got := names(k.Focus("What bonus did each of the agents get?", "").Tables); got != "agents bonus" {
		t.Errorf("tables: %q", got)
	}
}

func TestOneWhoMayReadNothingIsToldNothing(t *testing.T) {
	src := duck(t, shopdesk(t)...)
	for name, may := range map[string]func(sqlguard.Relation) bool{
		"no relation": func(sqlguard.Relation) bool { return false },
		"no decision": nil,
	} {
		t.Run(name, func(t *testing.T) {
			k := know(t, src, may)
			f := k.Focus("How many orders has Ada Petrov placed?", "")
			if k.Card(nil) != "" || len(k.Relations()) != 0 || len(f.Tables)+len(f.Links)+len(f.Missing) != 0 {
				t.Errorf("%s %v %+v", k.Card(nil), k.Relations(), f)
			}
		})
	}
}

// Every statement is decided on with the asker's own rights, so the gate stands behind all of the above.
func TestTheGateDecidesOnEveryStatement(t *testing.T) {
	src := &recorder{Source: duck(t, append(shopdesk(t), secret)...)}
	know(t, src, allBut("payroll", "bonus", "advance"))
	for _, sql := range src.statements {
		for _, name := range []string{"payroll", "bonus", "advance"} {
			if strings.Contains(sql, name) {
				t.Errorf("a statement reads %s: %s", name, sql)
			}
		}
	}
	if len(src.statements) == 0 {
		t.Error("nothing was asked")
	}
}

func TestManyAskAtOnce(t *testing.T) {
	src := duck(t, append(shopdesk(t), secret)...)
	p := profiler(t, patient)
	want := map[bool]string{true: know(t, src, everyone).Card(nil), false: know(t, src, allBut("payroll")).Card(nil)}
	var work sync.WaitGroup
	for i := range 24 {
		work.Go(func() {
			may := everyone
			if i%2 == 1 {
				may = allBut("payroll")
			}
			k, err := p.Knowledge(t.Context(), src, may)
			if err != nil || k.Card(nil) != want[i%2 == 0] {
				t.Errorf("asker %d: %v", i, err)
				return
			}
			k.Focus("Which agents closed tickets of Ada Petrov?", "")
		})
	}
	work.Wait()
}
