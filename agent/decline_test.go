package agent

import (
	"context"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/rag"
	"sluice/sqlguard"
)

func TestDeclinesBeforeTheModelIsAsked(t *testing.T) {
	src := shopdesk(t)
	k := knowledgeOf(t, src, everything)
	for question, want := range map[string]string{
		"Delete all customers from Bremen.":                          "asks to delete",
		"Please update the price of every tent.":                     "asks to update",
		"Could you remove the tickets that are closed?":              "asks to remove",
		"Find the customers without orders and delete them.":         "asks to delete",
		"Set the tier of customer 12 to gold":                        "asks to set",
		"Add a new agent called Bo to the support team.":             "asks to add",
		"Truncate payments":                                          "asks to truncate",
		"Why do customers cancel their orders?":                      "not why",
		"Should the products in tents be cheaper?":                   "should be done",
		"Who won the chess olympiad?":                                "is about this",
		"What is the gender of each agent?":                          "tells a gender",
		"List the products with their weights.":                      "tells a weight",
		"What is the salary of each agent?":                          "", // a comment says what we pay
		"How many orders are there?":                                 "",
		"Add up the amounts of all payments.":                        "",
		"Create a list of customers by city":                         "",
		"Update counts per month of tickets":                         "",
		"Which orders were deleted or cancelled?":                    "",
		"Set of cities that customers live in":                       "",
		"Change of the number of orders per month":                   "",
		"Drop rate of tickets by agent":                              "",
		"Which customers live in Bremen?":                            "",
		"How many products of the category tents are there?":         "",
		"What is the average cost of a product that is not in stock": "",
		"Show each email address":                                    "",
		"Give the number of tickets per topic.":                      "",
	} {
		t.Run(question, func(t *testing.T) {
			at := &ask{agent: &Agent{}, src: src, q: Ask{Question: question}, known: k, focus: k.Focus(question, "")}
			got := at.declinedUnasked()
			if got != (want != "") || !strings.Contains(at.answer.Reason, want) || got && at.answer.Outcome != Declined {
				t.Errorf("declined %t: %q (%v)", got, at.answer.Reason, at.focus.Unknown)
			}
			at.agent.cfg.Without.Decline = true
			if at.declinedUnasked() {
				t.Error("declined although that is left out")
			}
		})
	}
}

// TestNothingIsUnknownBeforeItWasLookedAt: while tables are being looked at, a word may be a value of one.
func TestNothingIsUnknownBeforeItWasLookedAt(t *testing.T) {
	src := shopdesk(t)
	p := rag.NewProfiler(rag.Config{Wait: -1})
	t.Cleanup(p.Close)
	k, err := p.Knowledge(t.Context(), onlyCatalogOf{src}, everything)
	if err != nil || k.Complete() {
		t.Fatalf("%v, complete: %t", err, k.Complete())
	}
	hides := func(string) bool { return true }
	whole := knowledgeOf(t, src, everything)
	for _, question := range []string{"Who is from Zorkville and Blefuscu?", "What is the gender of each agent?"} {
		at := &ask{agent: &Agent{}, src: src, q: Ask{Question: question}, known: k, focus: k.Focus(question, "")}
		if at.declinedUnasked() {
			t.Errorf("%s: %s", question, at.answer.Reason)
		}
		at = &ask{agent: &Agent{cfg: Config{HideValues: hides}}, src: src, q: Ask{Question: question}, known: whole, focus: whole.Focus(question, "")}
		if got := at.declinedUnasked(); got != strings.Contains(question, "gender") {
			t.Errorf("values hidden: %s: declined %t", question, got)
		}
	}
}

// onlyCatalogOf is a source that cannot be looked at.
type onlyCatalogOf struct{ *watched }

func (onlyCatalogOf) Approve(context.Context, string, sqlguard.Profile, func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	return sqlguard.Approved{}, fault.New(fault.Busy, "test", "later")
}

func TestDeclinesWhenWhatIsNamedIsNotThere(t *testing.T) {
	for name, row := range map[string]struct {
		question, sql, reason string
	}{
		"a value that nothing has": {
			"How many orders did Zebulon Quark place?",
			"SELECT COUNT(*) FROM orders JOIN customers ON orders.customer_id = customers.customer_id WHERE customers.full_name = 'Zebulon Quark'",
			"there is no 'Zebulon Quark' in customers.full_name",
		},
		"in a pattern": {
			"Which tickets are about \"teleportation\"?", "SELECT ticket_id FROM tickets WHERE topic ILIKE '%Teleportation%'",
			"there is no 'teleportation' in tickets.topic",
		},
		"a year to come": {
			"How many orders were placed in 2081?", "SELECT COUNT(*) FROM orders WHERE EXTRACT(YEAR FROM ordered_at) = 2081",
			"the dates go from",
		},
		"words that are nowhere, and nothing found": {
			"Which tickets were escalated by telephone?", "SELECT ticket_id FROM tickets WHERE topic = 'delivery' AND priority > 9",
			"nothing that you may read in 'shopdesk' tells of 'escalated', 'telephone'",
		},
		"a value that is there": {
			"How many tickets about delivery are there?", "SELECT COUNT(*) FROM tickets WHERE topic = 'delivery'", "",
		},
		"a real zero": {
			"How many payments of 0 came by paypal?", "SELECT COUNT(*) FROM payments WHERE method = 'paypal' AND amount < 0", "",
		},
		"something was found all the same": {
			"How many orders did Zebulon Quark place?", "SELECT COUNT(*) FROM orders", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			model := &play{}
			for range 6 {
				model.answers = append(model.answers, []string{row.sql})
			}
			ans := askDesk(t, Config{}, model, Ask{Question: row.question})
			want := Answered
			if row.reason != "" {
				want = Declined
			}
			if ans.Outcome != want || !strings.Contains(ans.Reason, row.reason) || (ans.Table != nil) != (want == Answered) || ans.SQL == "" {
				t.Errorf("got %+v", ans)
			}
			if want == Declined && !strings.Contains(ans.Text, "ask, for example, about") {
				t.Errorf("it does not say what could be asked: %q", ans.Text)
			}
		})
	}
}

// TestWhatTheDataHasNoWordsFor is declined when every statement names what is not there, and fails when something else is wrong.
func TestWhatTheDataHasNoWordsFor(t *testing.T) {
	for name, row := range map[string]struct {
		question, sql string
		want          Outcome
	}{
		"no such column":            {"Which tickets were escalated by telephone?", "SELECT ticket_id FROM tickets WHERE escalated_telephonically", Declined},
		"no such table":             {"Which tickets were escalated by telephone?", "SELECT escalation_id FROM telephony", Declined},
		"a mistake of another kind": {"Which tickets were escalated by telephone?", "SELECT ticket_id FROM tickets WHERE priority = DATE 'x'", Failed},
		"all words are there":       {"Which tickets are about delivery?", "SELECT xyzzy FROM tickets", Failed},
	} {
		t.Run(name, func(t *testing.T) {
			model := completer(func(Completion) (string, error) { return row.sql, nil })
			ans, err := newAgent(t, Config{Completer: model}).Ask(t.Context(), shopdesk(t), Ask{Who: admin(), Question: row.question})
			if err != nil || ans.Outcome != row.want || ans.Table != nil || row.want == Declined && !strings.Contains(ans.Reason, "'telephone'") {
				t.Errorf("%+v, %v", ans, err)
			}
		})
	}
}

// TestTheModelMaySayNo: most of the candidates must. Its own words are never shown.
func TestTheModelMaySayNo(t *testing.T) {
	const question = "How many orders flew by zeppelin or dirigible?"
	for name, row := range map[string]struct {
		answers [][]string
		want    Outcome
		reason  string
	}{
		"all of them":          {[][]string{{"-- CANNOT: no column tells how an order travels."}, {"-- CANNOT: no column tells how an order travels.", "-- CANNOT: nothing"}}, Declined, "do not hold what is asked for"},
		"one of three":         {[][]string{{paypal}, {paypal, "-- CANNOT: I do not know"}}, Answered, ""},
		"one of three, first":  {[][]string{{"-- CANNOT: I do not know"}, {paypal, paypal}}, Answered, ""},
		"with a number":        {[][]string{{"-- CANNOT: there are 37 orders"}, {"-- CANNOT: there are 37 orders", "-- CANNOT: no"}}, Declined, "do not hold what is asked for"},
		"with a slot":          {[][]string{{"-- CANNOT: [your reason]"}, {"-- CANNOT: [your reason]"}}, Declined, "do not hold what is asked for"},
		"no reason":            {[][]string{{"-- CANNOT:"}, {"-- CANNOT:"}}, Declined, "do not hold what is asked for"},
		"it is no comment":     {[][]string{{"CANNOT: x"}, {"CANNOT: x"}, {"CANNOT: x"}, {"CANNOT: x"}, {"CANNOT: x"}}, Failed, ""},
		"another comment only": {[][]string{{"-- sorry"}, {"-- sorry"}, {"-- sorry"}}, Failed, "wrote no SQL"},
	} {
		t.Run(name, func(t *testing.T) {
			model := &play{answers: row.answers}
			ans := askDesk(t, Config{}, model, Ask{Question: question})
			if ans.Outcome != row.want || !strings.Contains(ans.Reason, row.reason) {
				t.Errorf("got %+v", ans)
			}
			if p := model.prompt(0); !strings.Contains(p, "-- CANNOT: and why") || !newRecogniser(t, model.seen[0].Grammar).derives("-- CANNOT: x") {
				t.Errorf("it was not told that it may:\n%s", p)
			}
		})
	}
	model := &play{answers: [][]string{{paypal}, {paypal}}}
	askDesk(t, Config{}, model, Ask{Question: "How many payments came by paypal?"})
	if strings.Contains(model.prompt(0), "CANNOT") || newRecogniser(t, model.seen[0].Grammar).derives("-- CANNOT: x") {
		t.Error("it may say no to a question that has nothing doubtful")
	}
}

// TestAWishToWriteIsWrittenFreely: what may be meant as a change meets no grammar, so that the gate sees what the model
// makes of it.
func TestAWishToWriteIsWrittenFreely(t *testing.T) {
	model := &play{answers: [][]string{{"INSERT INTO orders VALUES (1)"}}}
	ans := askDesk(t, Config{}, model, Ask{Question: "Record orders for the customer 7"})
	if ans.Outcome != Declined || model.seen[0].Grammar != "" || ans.SQL != "" {
		t.Errorf("got %+v", ans)
	}
}

func TestSentencesHaveNoNumberOfTheirOwn(t *testing.T) {
	table := &Table{Columns: nil, Rows: nil}
	if got := described(table, "there are 12 rows", "instead"); got != "instead" {
		t.Errorf("got %q", got)
	}
	if got := described(table, "No rows match.", "instead"); got != "No rows match." {
		t.Errorf("got %q", got)
	}
}
