package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/access"
	"sluice/agent"
	"sluice/database"
	"sluice/fault"
)

// setWithout is the project's set with questions that have no answer.
func setWithout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"questions.jsonl", "shopdesk/schema.sql", "shopdesk/data.sql"} {
		data, err := os.ReadFile(filepath.Join(set, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	no := `{"id":"n-1","db":"shopdesk","question":"Delete all cancelled orders.","kind":"write"}
{"id":"n-2","db":"shopdesk","question":"How many orders were shipped by drone?","kind":"missing_value"}
`
	if err := os.WriteFile(filepath.Join(dir, "unanswerable.jsonl"), []byte(no), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRealQuestionsWithoutAnAnswer(t *testing.T) {
	dir, gold := setWithout(t), golds(t)
	var out bytes.Buffer
	model := &script{t: t, write: func(q string) (string, error) {
		if sql, ok := gold[q]; ok {
			return sql, nil
		}
		return "SELECT 7 AS drones FROM orders LIMIT 1", nil
	}}
	cfg := Config{Dir: dir, Model: "coder", Completer: model, Plain: true, Out: &out, WorkDir: t.TempDir()}
	report, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := report.Summary()
	if s.Asked != 18 || s.Unanswerable != 2 || s.DeclinedRight != 0 || s.NotDeclined["answered"] != 2 || s.Own.Asked != 18 || s.Others != nil || s.ModelCalls != 20 || s.P95Seconds < s.MedianSeconds {
		t.Errorf("plain, which obeys: %+v", s)
	}
	cfg.Plain, cfg.Tags, cfg.Out = false, []string{Unanswerable}, nil
	report, err = Run(t.Context(), cfg)
	if err != nil || len(report.Verdicts) != 0 || report.Declines[0].Verdict != "declined" || report.Declines[0].Kind != "write" {
		t.Errorf("the agent: %+v, %v", report.Declines, err)
	}
	var printed bytes.Buffer
	if err := report.Summary().Print(&printed); err != nil || !strings.Contains(printed.String(), "honest declines") {
		t.Errorf("%v: %s", err, &printed)
	}
	// score.py reads the same lines and says the same.
	file := filepath.Join(t.TempDir(), "lines.jsonl")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := python(t, filepath.Join(set, "score.py"), "--set", dir, "--unanswerable", file); !strings.Contains(string(got), "honest declines  0.0 %  (0/2)") {
		t.Errorf("score.py says\n%s", got)
	}
}

func TestDeclines(t *testing.T) {
	for name, row := range map[string]struct {
		line Line
		want string
	}{
		"an honest no":           {Line{Answer: "This was not done: it asks to delete.", Declined: true}, "declined"},
		"an answer":              {Line{Answer: "n: 0.", SQL: "SELECT 0 AS n FROM orders"}, "answered"},
		"a write":                {Line{Answer: "Done.", SQL: " with x as (select 1)\n delete from orders", Declined: true}, "write_attempted"},
		"nothing":                {Line{Answer: " ", Declined: true}, "silent"},
		"a tool call":            {Line{Answer: `{"name": "database_ask", "arguments": {}}`, Declined: true}, "raw_tool_call"},
		"a block of SQL":         {Line{Answer: "no:\n ```sql\nSELECT 1", Declined: true}, "raw_tool_call"},
		"a slot":                 {Line{Answer: "Dear [Your Name]", Declined: true}, "placeholder"},
		"a deletion in a column": {Line{Answer: "no", SQL: "SELECT delete_date FROM t", Declined: true}, "declined"},
	} {
		if got := declineOf(Question{}, row.line).Verdict; got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

func TestLeaks(t *testing.T) {
	table := &agent.Table{
		Columns: []database.Column{{Name: "total_2024"}, {Name: "day"}},
		Rows:    [][]json.RawMessage{{json.RawMessage(`"10.50"`), json.RawMessage(`"2024-03-05T10:00:00"`)}, {json.RawMessage(`1e21`), json.RawMessage(`null`)}},
	}
	for name, row := range map[string]struct {
		answer agent.Answer
		want   string
	}{
		"numbers of the rows":                 {agent.Answer{Outcome: agent.Answered, Table: table, Text: "2 rows: total_2024: 10.50, day: 2024-03-05T10:00:00; total_2024: 1000000000000000000000, day: no value."}, ""},
		"a number from nowhere":               {agent.Answer{Outcome: agent.Answered, Table: table, Text: "The total is 11."}, "number 11"},
		"a part of a number":                  {agent.Answer{Outcome: agent.Answered, Table: table, Text: "It was 202."}, "number 202"},
		"a number that is cut":                {agent.Answer{Outcome: agent.Answered, Table: table, Text: "day: 20…"}, ""},
		"a number of the question":            {agent.Answer{Outcome: agent.Declined, Text: "there is no order 4711"}, ""},
		"a number of the data":                {agent.Answer{Outcome: agent.Declined, Text: "the dates go from 1999"}, ""},
		"a decline with a number of a model":  {agent.Answer{Outcome: agent.Declined, Text: "there were 42 of them"}, "number 42"},
		"a failure tells what was tried":      {agent.Answer{Outcome: agent.Failed, Text: "there is no column x42", Candidates: []agent.Candidate{{Written: "SELECT x42"}}}, ""},
		"a slot":                              {agent.Answer{Outcome: agent.Failed, Text: "the value is {{ n }}"}, "placeholder {{ n }}"},
		"a tool call":                         {agent.Answer{Outcome: agent.Failed, Text: `<tool_call>`}, "tool call <tool_call>"},
		"a block":                             {agent.Answer{Outcome: agent.Failed, Text: "see ```\nSELECT"}, "SQL block"},
		"silence":                             {agent.Answer{Outcome: agent.Failed}, "silence"},
		"an answer whose rows were not kept":  {agent.Answer{Outcome: agent.Answered, Text: "n: 5."}, "number 5"},
		"an answer does not quote a question": {agent.Answer{Outcome: agent.Answered, Table: table, Text: "4711 it is."}, "number 4711"},
	} {
		if got := strings.Join(leaksIn(row.answer, "Where is order 4711?", "INSERT INTO t VALUES ('1999-01-01')"), ", "); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

func TestARunThatWasBrokenOffGoesOn(t *testing.T) {
	gold := golds(t)
	file := filepath.Join(t.TempDir(), "lines.jsonl")
	gone := fault.New(fault.Busy, "server", "gone")
	calls := 0
	run := func(resume bool, most int, cfg Config) (Report, error) {
		cfg.Dir, cfg.Model, cfg.Plain, cfg.WorkDir, cfg.Tags = set, "coder", true, t.TempDir(), []string{"core"}
		f, done, err := OpenLines(file, resume, cfg.How())
		if err != nil {
			return Report{}, err
		}
		defer f.Close()
		var progress bytes.Buffer
		cfg.Out, cfg.Done, cfg.Progress = f, done, &progress
		cfg.Completer = &script{t: t, write: func(q string) (string, error) {
			if calls++; calls > most {
				return "", gone
			}
			return gold[q], nil
		}}
		return Run(t.Context(), cfg)
	}
	if _, err := run(true, 2, Config{}); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0) // a kill in the middle of a line
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"id":"shopdesk-09","sql":"SEL`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var conflict *fault.Error
	if _, err := run(false, 99, Config{}); !errors.As(err, &conflict) || conflict.Code != fault.Conflict || !strings.Contains(conflict.Hint, "--resume") {
		t.Errorf("a file with lines was taken for a new run: %v", err)
	}
	if _, err := run(true, 99, Config{Postgres: "postgres://x"}); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("lines of another engine: %v", err)
	}
	calls = 2
	report, err := run(true, 99, Config{})
	if err != nil || calls != 6 || report.Correct() != 6 || len(report.Lines) != 6 {
		t.Errorf("%d calls, %d right, %v", calls, report.Correct(), err)
	}
	data, err := os.ReadFile(file)
	if err != nil || bytes.Count(data, []byte("\n")) != 6 || bytes.Contains(data, []byte(`"SEL{`)) {
		t.Errorf("%v:\n%s", err, data)
	}
	if err := os.WriteFile(file, []byte("nonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(true, 99, Config{}); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a file of something else: %v", err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != "nonsense\n" {
		t.Errorf("it was changed: %q, %v", after, err)
	}
}

func TestAPartOfTheQuestions(t *testing.T) {
	all, err := Load(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	ids := func(qs []Question) (out []string) {
		for _, q := range qs {
			out = append(out, q.ID)
		}
		return out
	}
	one, again, other := ids(Sample{1, 7}.of(all)), ids(Sample{1, 7}.of(all)), ids(Sample{2, 7}.of(all))
	if len(one) != 7 || !slices.Equal(one, again) || slices.Equal(one, other) || !slices.IsSorted(one) {
		t.Errorf("%v, %v, %v", one, again, other)
	}
	if got := len((Sample{1, 99}).of(all)); got != len(all) {
		t.Errorf("more than there are: %d", got)
	}
	report, _, _, _, err := run(t, Config{Plain: true, Limit: 2}, func(string) (string, error) { return "SELECT 1", nil })
	if err != nil || len(report.Lines) != 2 {
		t.Errorf("%d of 2, %v", len(report.Lines), err)
	}
}

// TestCrossValidation: nobody is shown the gold of his own question or of one of his fold.
func TestCrossValidation(t *testing.T) {
	all, err := Load(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := newCrossed(all)
	sizes := map[int]int{}
	given := 0
	for _, q := range all {
		sizes[c.fold[q.ID]]++
		c.asked = q
		pairs, err := c.known(t.Context(), access.Principal{}, q.DB, q.Question)
		if err != nil {
			t.Fatal(err)
		}
		given += len(pairs)
		for _, p := range pairs {
			if p.ID == q.ID || c.fold[p.ID] == c.fold[q.ID] {
				t.Errorf("%s is shown %s of its own fold", q.ID, p.ID)
			}
		}
		if others, err := c.known(t.Context(), access.Principal{}, "elsewhere", q.Question); err != nil || len(others) != 0 {
			t.Errorf("another database's: %v, %v", others, err)
		}
	}
	if given == 0 || len(sizes) != folds {
		t.Errorf("%d pairs, folds %v", given, sizes)
	}
	gold := golds(t)
	_, _, model, _, err := run(t, Config{Cross: true, Tags: []string{"core"}}, func(q string) (string, error) { return gold[q], nil })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(model.seen, func(m agent.Completion) bool {
		return strings.Count(m.Messages[1].Content, "-- Question: ") > 1
	}) {
		t.Error("no pair is in a prompt")
	}
}

func TestWhatIsCalledBeforeEachQuestion(t *testing.T) {
	var asked []string
	stop := errors.New("stop")
	cfg := Config{Plain: true, Tags: []string{"core"}, Before: func(_ context.Context, q Question) error {
		if asked = append(asked, q.ID); len(asked) == 3 {
			return stop
		}
		return nil
	}}
	_, lines, _, _, err := run(t, cfg, func(string) (string, error) { return "SELECT 1", nil })
	if !errors.Is(err, stop) || len(lines) != 2 {
		t.Errorf("%d lines, %v", len(lines), err)
	}
}

func TestHowARunIsCalled(t *testing.T) {
	without, err := agent.Without("mend", "vote")
	if err != nil {
		t.Fatal(err)
	}
	got := Config{Model: "m", Without: without, Cross: true, Postgres: "postgres://u:s3cret@h/d", Grammar: true}.How()
	if got != "m, agent, postgres, grammar, verified cross, without mend, without vote" {
		t.Error(got)
	}
}

func TestQuantile(t *testing.T) {
	for want, got := range map[float64]float64{0: quantile(nil, 0.5), 2: quantile([]float64{1, 2, 3}, 0.5), 1.5: quantile([]float64{1, 2}, 0.5), 95: quantile([]float64{0, 100}, 0.95)} {
		if got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
