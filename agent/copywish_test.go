package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
)

// TestWhatAWishToCopySays reads sentences: what is to be copied, where to, and how.
func TestWhatAWishToCopySays(t *testing.T) {
	over, app := sqlguard.OverwritePartitions, sqlguard.Append
	for question, want := range map[string]struct {
		subject, path, connection, partition string
		mode                                 sqlguard.Mode
	}{
		"export the orders of May to lake exports/may":                                             {"Show the orders of May", "exports/may", "", "", over},
		"Export the orders of May to the lake, folder exports/may.":                                {"Show the orders of May", "exports/may", "", "", over},
		"Please export all tickets to 'exports/tickets'":                                           {"Show all tickets", "exports/tickets", "", "", over},
		"copy all tickets into the data lake at exports/tickets":                                   {"Show all tickets", "exports/tickets", "", "", over},
		"copy all tickets to exports/tickets in the lake":                                          {"Show all tickets", "exports/tickets", "", "", over},
		"Could you copy the tickets of 'Berlin' to \"exports/b\" please?":                          {"Show the tickets of 'Berlin'", "exports/b", "", "", over},
		"export tickets in 'Berlin/East' to 'exports/b'":                                           {"Show tickets in 'Berlin/East'", "exports/b", "", "", over},
		"export tickets to lake exports/t via connection local":                                    {"Show tickets", "exports/t", "local", "", over},
		"export tickets to lake exports/t on the local connection":                                 {"Show tickets", "exports/t", "local", "", over},
		"export tickets to connection local, folder exports/t":                                     {"Show tickets", "exports/t", "local", "", over},
		"export tickets to exports/t partitioned by status":                                        {"Show tickets", "exports/t", "", "status", over},
		"export tickets to exports/t, partitioned by status and team, through connection 'local'.": {"Show tickets", "exports/t", "local", "status team", over},
		"export tickets to exports/t partition by (status, team)":                                  {"Show tickets", "exports/t", "", "status team", over},
		"export tickets to exports/t partitioned by status and append to what is there":            {"Show tickets", "exports/t", "", "status", app},
		"export tickets to exports/t in append mode":                                               {"Show tickets", "exports/t", "", "", app},
		"export tickets to exports/t, overwriting what is there":                                   {"Show tickets", "exports/t", "", "", over},
		"append the tickets of today to lake exports/t":                                            {"Show the tickets of today", "exports/t", "", "", app},
		"Save the tickets as Parquet to exports/t":                                                 {"Show the tickets", "exports/t", "", "", over},
		"export to lake exports/t the tickets of May":                                              {"Show the tickets of May", "exports/t", "", "", over},
		"List the tickets of May and export them to exports/t":                                     {"List the tickets of May", "exports/t", "", "", over},
		"How many tickets are open per team? Export that to exports/t":                             {"How many tickets are open per team", "exports/t", "", "", over},
		"export them to exports/t":                                                                 {"", "exports/t", "", "", over},
		"export the result to lake exports/t":                                                      {"", "exports/t", "", "", over},
		"export the tickets to the lake":                                                           {"Show the tickets", "", "", "", over},
		"export the tickets to the lake folder exports":                                            {"Show the tickets", "exports", "", "", over},
		"export the tickets to lake exports":                                                       {"Show the tickets", "exports", "", "", over},
		"export the tickets to s3://bucket/x":                                                      {"Show the tickets", "s3://bucket/x", "", "", over},
		"export the tickets to ../../etc":                                                          {"Show the tickets", "../../etc", "", "", over},
		"export the tickets to /etc/cron.d":                                                        {"Show the tickets", "/etc/cron.d", "", "", over},
	} {
		w, ok := copyWishIn(question)
		if !ok {
			t.Errorf("%s: no wish", question)
			continue
		}
		got := [...]string{w.subject, w.path, w.connection, strings.Join(w.partition, " "), string(w.mode)}
		if told := [...]string{want.subject, want.path, want.connection, want.partition, string(want.mode)}; got != told {
			t.Errorf("%s:\ngot  %q\nwant %q", question, got, told)
		}
	}
	for _, question := range []string{
		"How many tickets were exported to the lake?", "Which tickets were copied?", "What is the share of exports per team?", "list the tickets in 'a/b'",
		"Show the ratio of open to closed tickets", "copy tickets", "export the tickets", "write the names of all teams", "Put the teams in order of tickets",
		"save the number of tickets to 5/2024", "", "export", "Show tickets whose path is exports/t", "store names and their tickets",
	} {
		if w, ok := copyWishIn(question); ok {
			t.Errorf("%q is a wish: %+v", question, w)
		}
	}
}

// door is a CopyDoor whose rights a test writes.
type door struct {
	places   []string
	refuse   error // of Places
	deny     error // of Request
	asked    []string
	requests []string
}

func (d *door) Places(path string) ([]string, error) {
	d.asked = append(d.asked, path)
	return d.places, d.refuse
}

func (d *door) Request(_ context.Context, ask, statement string) (access.CopyRequest, error) {
	if d.deny != nil {
		return access.CopyRequest{}, d.deny
	}
	d.requests = append(d.requests, statement)
	stmt, err := sqlguard.Classify(statement)
	if err != nil || stmt.Copy == nil || ask == "" {
		return access.CopyRequest{}, fmt.Errorf("not a COPY: %q: %w", statement, err)
	}
	return access.CopyRequest{ID: "copyreq_1", Folder: access.Folder{Connection: stmt.Copy.Connection, Path: stmt.Copy.Path}, SQL: stmt.Copy.Query,
		ExpiresAt: time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)}, nil
}

func TestAWishToCopyBecomesARequest(t *testing.T) {
	const sql = "SELECT order_id, status FROM orders"
	for sentence, row := range map[string]struct {
		question, model string
		places          []string
		want            string // the statement, without line breaks
	}{
		"a SELECT of the model": {"export all orders to lake exports/o", sql, []string{"local"},
			"COPY ( SELECT order_id, status FROM shop.main.orders ) TO LAKE 'exports/o' WITH (CONNECTION = 'local')"},
		"with columns and mode": {"export all orders to lake exports/o partitioned by STATUS and append", sql, []string{"local"},
			`COPY ( SELECT order_id, status FROM shop.main.orders ) TO LAKE 'exports/o' WITH (CONNECTION = 'local', PARTITION_BY = ("status"), MODE = 'append')`},
		"a COPY of the model, whose destination is not looked at": {"export all orders to lake exports/o",
			"COPY (" + sql + ") TO LAKE 'elsewhere' WITH (CONNECTION = 'other', MODE = 'append')", []string{"local"},
			"COPY ( SELECT order_id, status FROM shop.main.orders ) TO LAKE 'exports/o' WITH (CONNECTION = 'local')"},
		"a connection that is named": {"export all orders to lake exports/o via connection second", sql, []string{"local", "second"},
			"COPY ( SELECT order_id, status FROM shop.main.orders ) TO LAKE 'exports/o' WITH (CONNECTION = 'second')"},
		"a connection that is named in passing": {"export all orders to lake exports/o on second", sql, []string{"local", "second"},
			"COPY ( SELECT order_id, status FROM shop.main.orders ) TO LAKE 'exports/o' WITH (CONNECTION = 'second')"},
		"a statement in place of a question": {"COPY (SELECT 1 AS a) TO LAKE 'exports/o' WITH (CONNECTION = 'local')", "SELECT nothing", []string{"local"},
			"COPY (SELECT 1 AS a) TO LAKE 'exports/o' WITH (CONNECTION = 'local')"},
		"a quote in the path": {`export all orders to lake "exports/o'x"`, sql, []string{"local"},
			"COPY ( SELECT order_id, status FROM shop.main.orders ) TO LAKE 'exports/o''x' WITH (CONNECTION = 'local')"},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := &door{places: row.places}
			ans := askShop(t, shop(t), row.model, Ask{Question: row.question, Copy: d})
			if got := strings.Join(strings.Fields(strings.Join(d.requests, "; ")), " "); got != row.want {
				t.Errorf("requested %s\nwant      %s", got, row.want)
			}
			if ans.Outcome != CopyRequested || ans.Copy == nil || ans.Copy.ID != "copyreq_1" || ans.Table != nil || ans.SQL == "" || !strings.Contains(ans.Text, "Nothing was copied yet") ||
				!strings.Contains(ans.Text, "copyreq_1") {
				t.Errorf("got %+v", ans)
			}
		})
	}
}

func TestAWishToCopyThatIsDeclined(t *testing.T) {
	const sql = "SELECT order_id FROM orders"
	no := fault.New(fault.Denied, "test", "you have no right to copy to 'exports/o' of any lake")
	for sentence, row := range map[string]struct {
		question, model string
		door            *door
		reason          string
	}{
		"without a place":                    {"export all orders to the lake", sql, &door{places: []string{"local"}}, "it does not say where to copy to"},
		"without a connection, of several":   {"export all orders to lake exports/o", sql, &door{places: []string{"local", "second"}}, "add one of: connection local, connection second"},
		"through one that he may not use":    {"export all orders to lake exports/o via connection third", sql, &door{places: []string{"local"}}, "you may through local"},
		"where he may not":                   {"export all orders to lake exports/o", sql, &door{refuse: no}, "you have no right to copy"},
		"without a subject":                  {"export them to lake exports/o", sql, &door{places: []string{"local"}}, "it does not say what to copy"},
		"what the door refuses":              {"export all orders to lake exports/o", sql, &door{places: []string{"local"}, deny: fault.New(fault.Refused, "test", "no such column")}, "no such column"},
		"a write of the model":               {"export all orders to lake exports/o", "DELETE FROM orders", &door{places: []string{"local"}}, ""},
		"a COPY of a write":                  {"export all orders to lake exports/o", "COPY (DELETE FROM orders) TO LAKE 'exports/o' WITH (CONNECTION = 'local')", &door{places: []string{"local"}}, ""},
		"a COPY of a COPY of a write":        {"export all orders to lake exports/o", "COPY (COPY (DROP TABLE orders) TO LAKE 'a' WITH (CONNECTION = 'local')) TO LAKE 'b' WITH (CONNECTION = 'local')", &door{places: []string{"local"}}, ""},
		"a COPY that nobody wished":          {"How many orders are there?", "COPY (" + sql + ") TO LAKE 'exports/o' WITH (CONNECTION = 'local')", &door{places: []string{"local"}}, "COPY TO LAKE and external tables"},
		"an external table of the model":     {"export all orders to lake exports/o", "CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION 'exports/o' WITH (CONNECTION = 'local')", &door{places: []string{"local"}}, "COPY TO LAKE and external tables"},
		"without anybody who takes requests": {"export all orders to lake exports/o", "COPY (" + sql + ") TO LAKE 'exports/o' WITH (CONNECTION = 'local')", nil, "COPY TO LAKE and external tables"},
	} {
		t.Run(sentence, func(t *testing.T) {
			src := shop(t)
			q := Ask{Question: row.question}
			if row.door != nil {
				q.Copy = row.door
			}
			ans := askShop(t, src, row.model, q)
			if ans.Outcome != Declined || ans.Copy != nil || ans.Table != nil || !strings.Contains(ans.Reason, row.reason) || !strings.Contains(ans.Text, ans.Reason) {
				t.Errorf("got %+v", ans)
			}
			if row.door != nil && len(row.door.requests) > 0 {
				t.Errorf("requested %q", row.door.requests)
			}
		})
	}
}

// TestExportThat copies what the turn before was answered with, and asks no model.
func TestExportThat(t *testing.T) {
	d := &door{places: []string{"local"}}
	earlier := []Turn{{Question: "Which orders are there?", SQL: "SELECT order_id FROM orders"}}
	a := newAgent(t, Config{Completer: completer(func(Completion) (string, error) { return "", errors.New("a model is asked") })})
	ans, err := a.Ask(t.Context(), shop(t), Ask{Who: admin(), Question: "export that to lake exports/o", Copy: d, Earlier: earlier})
	if err != nil || ans.Outcome != CopyRequested || len(d.requests) != 1 || !strings.Contains(d.requests[0], "SELECT order_id FROM orders") {
		t.Errorf("%+v, %v, %q", ans, err, d.requests)
	}
}

// TestARecordHasTheQuestionAsItWasAsked, although the model sees only what is to be copied.
func TestARecordHasTheQuestionAsItWasAsked(t *testing.T) {
	const question = "export all orders to lake exports/o via connection local"
	var kept []Record
	a := newAgent(t, Config{Completer: completer(func(c Completion) (string, error) {
		for _, m := range c.Messages {
			if strings.Contains(m.Content, "exports/o") {
				t.Errorf("the model sees where to: %q", m.Content)
			}
		}
		return "SELECT order_id FROM orders", nil
	}), Record: func(_ context.Context, r Record) error { kept = append(kept, r); return nil }})
	for _, d := range []*door{{places: []string{"local"}}, {places: []string{"local"}, deny: errors.New("the store is broken")}} {
		_, err := a.Ask(t.Context(), shop(t), Ask{Who: admin(), Question: question, Copy: d})
		if (err != nil) != (d.deny != nil) {
			t.Errorf("%v", err)
		}
	}
	if len(kept) != 2 || slices.ContainsFunc(kept, func(r Record) bool { return r.Question != question }) || kept[0].Outcome != CopyRequested || kept[1].Outcome != Errored {
		t.Errorf("kept %+v", kept)
	}
}

func FuzzAWishToCopy(f *testing.F) {
	for _, seed := range []string{"export the orders of May to lake exports/may, partitioned by status and append", "copy x to 'a'", "save `` to \"", "export to /", "append the to lake connection"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, question string) {
		w, ok := copyWishIn(question)
		if !ok || w.whole != "" || w.path == "" {
			return
		}
		w.connection = "local"
		stmt, err := sqlguard.Classify(w.statement("SELECT 1", nil))
		if strings.ContainsRune(w.path, 0) || err != nil && strings.Contains(err.Error(), "plain string") || stmt.Query != "" {
			return // what no statement can hold is refused there
		}
		if err != nil || stmt.Copy == nil || stmt.Copy.Path != w.path || stmt.Copy.Connection != "local" || !strings.Contains(stmt.Copy.Query, "SELECT 1") {
			t.Errorf("%q: %+v becomes %+v, %v", question, w, stmt, err)
		}
	})
}
