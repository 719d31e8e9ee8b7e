package eval

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const set = "../../testdata/nl2sql"

func judgeOf(t *testing.T) *Judge {
	t.Helper()
	j, err := NewJudge(set, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func questions(t *testing.T) map[string]Question {
	t.Helper()
	all, err := Load(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]Question{}
	for _, q := range all {
		byID[q.ID] = q
	}
	return byID
}

func TestGoldsAreCorrect(t *testing.T) {
	j := judgeOf(t)
	for id, q := range questions(t) {
		for i, gold := range q.Gold {
			v, err := j.Verdict(t.Context(), q, gold)
			if err != nil || v.Verdict != "correct" {
				t.Errorf("%s gold %d: %q, %v", id, i+1, v.Verdict, err)
			}
		}
	}
}

// score judges statements by the id of their question, as score.py does: a question without one is judged as empty.
func score(t *testing.T, predictions map[string]string) (report Report) {
	t.Helper()
	all, err := Load(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := judgeOf(t)
	for _, q := range all {
		verdict, err := j.Verdict(t.Context(), q, predictions[q.ID])
		if err != nil {
			t.Fatal(err)
		}
		report.Verdicts = append(report.Verdicts, verdict)
	}
	return report
}

func TestNothingIsNeverRight(t *testing.T) {
	report := score(t, nil)
	if len(report.Verdicts) != 18 || report.Correct() != 0 {
		t.Errorf("%d of %d right", report.Correct(), len(report.Verdicts))
	}
}

// mutation is a line of mutations.jsonl.
type mutation struct {
	Case string `json:"case"`
	SQL  string `json:"sql"`
	Question
}

func mutations(t *testing.T) []mutation {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(set, "mutations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	byID := questions(t)
	var out []mutation
	for line := range bytes.Lines(data) {
		var m mutation
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		base, ok := byID[m.ID]
		if !ok {
			t.Fatalf("%s: no question %s", m.Case, m.ID)
		}
		if m.Gold != nil { // a line's own golds come without the question's sort keys
			base.Gold, base.OrderKey = m.Gold, nil
		}
		if m.Tags != nil {
			base.Tags = m.Tags
		}
		if m.OrderKey != nil {
			base.OrderKey = m.OrderKey
		}
		m.Question = base
		out = append(out, m)
	}
	return out
}

func class(verdict string) string { return Verdict{Verdict: verdict}.Class() }

func TestVerdictsEqualScorePy(t *testing.T) {
	var want []string
	golden, err := os.ReadFile(filepath.Join(set, "mutations.verdicts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(golden, &want); err != nil {
		t.Fatal(err)
	}
	cases := mutations(t)
	if len(cases) != len(want) || len(want) < 60 {
		t.Fatalf("%d mutations, %d verdicts", len(cases), len(want))
	}
	j := judgeOf(t)
	for i, m := range cases {
		t.Run(m.Case, func(t *testing.T) {
			got, err := j.Verdict(t.Context(), m.Question, m.SQL)
			if err != nil {
				t.Fatal(err)
			}
			// The text of an error is the engine's there and the gate's here; the verdict is that it is one.
			if got.Class() != class(want[i]) {
				t.Errorf("%s\ngot %s, score.py says %s", m.SQL, got.Verdict, want[i])
			}
			if got.Class() == "error" && len(strings.TrimPrefix(got.Verdict, "error: ")) < 5 {
				t.Errorf("an error without a reason: %q", got.Verdict)
			}
		})
	}
}

// python is the interpreter that score.py runs with. Where it is set it must work; make test sets it.
func python(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), os.Getenv("SLUICE_TEST_PYTHON"), args...).Output()
	if err != nil {
		var stderr []byte
		if exit, ok := err.(*exec.ExitError); ok {
			stderr = exit.Stderr
		}
		t.Fatalf("%s: %v\n%s", args, err, stderr)
	}
	return out
}

func TestRealScorePySaysTheSame(t *testing.T) {
	if os.Getenv("SLUICE_TEST_PYTHON") == "" {
		t.Fatal("SLUICE_TEST_PYTHON must name a Python that has duckdb; `make test` sets it")
	}
	golden, err := os.ReadFile(filepath.Join(set, "mutations.verdicts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if got := python(t, "testdata/verdicts.py", set); !bytes.Equal(got, golden) {
		t.Errorf("score.py's verdicts are not the committed ones:\n%s", got)
	}
	predictions, report := scored(t)
	var printed bytes.Buffer
	if err := report.Print(&printed); err != nil {
		t.Fatal(err)
	}
	if got := python(t, filepath.Join(set, "score.py"), predictions); string(got) != printed.String() {
		t.Errorf("score.py prints\n%s\nSluice prints\n%s", got, printed.String())
	}
}

// scored writes a file of mixed predictions, one a question, and scores them.
func scored(t *testing.T) (file string, report Report) {
	t.Helper()
	predictions := map[string]string{}
	var lines bytes.Buffer
	for _, m := range mutations(t) { // the last of each question that keeps the question's own golds
		if q := questions(t)[m.ID]; len(q.Gold) == len(m.Gold) && q.Gold[0] == m.Gold[0] {
			predictions[m.ID] = m.SQL
		}
	}
	predictions["shopdesk-08"] = "SELECT COUNT(* FROM tickets"
	predictions["shopdesk-17"] = "SELECT 42"
	predictions["shopdesk-18"] = "SELECT * FROM orders WHERE FALSE"
	for id, sql := range predictions {
		line, err := json.Marshal(map[string]string{"id": id, "sql": sql})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	file = filepath.Join(t.TempDir(), "predictions.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, score(t, predictions)
}

func TestReportPrintsAsScorePyDoes(t *testing.T) {
	_, report := scored(t)
	var printed bytes.Buffer
	if err := report.Print(&printed); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/report.golden") // what score.py printed
	if err != nil {
		t.Fatal(err)
	}
	if printed.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", printed.String(), want)
	}
}
