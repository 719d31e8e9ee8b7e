package eval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agent"
	"sluice/fault"
)

// script is a model that knows what to write for each question.
type script struct {
	t     *testing.T
	seen  []agent.Completion
	write func(question string) (string, error)
}

func (s *script) Complete(_ context.Context, c agent.Completion) ([]string, error) {
	s.seen = append(s.seen, c)
	user := c.Messages[1].Content
	question := user[strings.LastIndex(user, "-- Question: ")+len("-- Question: "):]
	question, _, _ = strings.Cut(question, "\n")
	text, err := s.write(question)
	return []string{text}, err
}

func run(t *testing.T, cfg Config, write func(string) (string, error)) (Report, []Line, *script, string, error) {
	t.Helper()
	var out, progress bytes.Buffer
	model := &script{t: t, write: write}
	cfg.Dir, cfg.Model, cfg.Completer, cfg.Out, cfg.Progress, cfg.WorkDir = set, "coder", model, &out, &progress, t.TempDir()
	report, err := Run(t.Context(), cfg)
	var lines []Line
	for text := range bytes.Lines(out.Bytes()) {
		var line Line
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	left, globErr := filepath.Glob(filepath.Join(cfg.WorkDir, "*"))
	if globErr != nil || len(left) != 0 {
		t.Errorf("the databases were left behind: %v", left)
	}
	return report, lines, model, progress.String(), err
}

func golds(t *testing.T) map[string]string {
	byText := map[string]string{}
	for _, q := range questions(t) {
		byText[q.Question] = q.Gold[0]
	}
	return byText
}

func TestRunPlain(t *testing.T) {
	gold := golds(t)
	report, lines, model, progress, err := run(t, Config{Plain: true, Tags: []string{"core"}}, func(q string) (string, error) {
		if strings.HasPrefix(q, "What share") {
			return "DELETE FROM orders;", nil
		}
		return gold[q] + ";\n```\nand so on", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := len(report.Verdicts)
	if n != 6 || report.Correct() != n-1 || len(lines) != n || strings.Count(progress, "\n") != n {
		t.Fatalf("%d of %d right, %d lines, progress:\n%s", report.Correct(), n, len(lines), progress)
	}
	schema, err := os.ReadFile(filepath.Join(set, "shopdesk/schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range model.seen {
		if !strings.HasPrefix(c.Messages[1].Content, string(schema)+"\n\n-- Question: ") {
			t.Errorf("the prompt does not begin with schema.sql as it is:\n%s", c.Messages[1].Content)
		}
		if c.Temperature != 0 || c.MaxTokens != 300 || c.NumCtx != 8192 || strings.Join(c.Stop, " ") != "``` <|im_end|>" || c.Model != "coder" {
			t.Errorf("decoding %d: %+v", i, c)
		}
	}
	for i, line := range lines {
		switch {
		case line.ModelCalls != 1 || line.Answer == "" || strings.HasSuffix(line.SQL, ";"):
			t.Errorf("line %d: %+v", i, line)
		case strings.HasPrefix(line.SQL, "DELETE"):
			if !line.Declined || line.Outcome != agent.Declined || report.Verdicts[i].Class() != "error" {
				t.Errorf("a write: %+v, %s", line, report.Verdicts[i].Verdict)
			}
		case line.Declined || line.Outcome != agent.Answered || report.Verdicts[i].Verdict != "correct":
			t.Errorf("a gold: %+v, %s", line, report.Verdicts[i].Verdict)
		}
	}
}

func TestRunWithTheAgentsOwnCard(t *testing.T) {
	report, lines, model, _, err := run(t, Config{Tags: []string{"own", "value_map"}}, func(string) (string, error) { return "DROP TABLE orders", nil })
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != len(report.Verdicts) || len(lines) == 0 {
		t.Fatalf("%d lines, %d verdicts", len(lines), len(report.Verdicts))
	}
	for i, line := range lines {
		if !line.Declined || line.SQL != "" || report.Verdicts[i].Verdict != "empty" {
			t.Errorf("%+v, %s", line, report.Verdicts[i].Verdict)
		}
	}
	card := model.seen[0].Messages[1].Content
	for _, part := range []string{"CREATE TABLE order_items (", "PRIMARY KEY (order_id, line_no)", "REFERENCES orders(order_id)", "SHIP = shipped"} {
		if !strings.Contains(card, part) {
			t.Errorf("the card lacks %q:\n%s", part, card)
		}
	}
}

func TestRunStopsAtAnErrorOfTheModel(t *testing.T) {
	gold, calls := golds(t), 0
	gone := fault.New(fault.NotFound, "models", "model 'coder' not found")
	report, lines, _, _, err := run(t, Config{Plain: true}, func(q string) (string, error) {
		if calls++; calls == 3 {
			return "", gone
		}
		return gold[q], nil
	})
	if !errors.Is(err, gone) || len(report.Verdicts) != 2 || len(lines) != 2 {
		t.Errorf("%d verdicts, %d lines, %v", len(report.Verdicts), len(lines), err)
	}
}

func TestAPromptThatDoesNotFitIsAFailureOfTheQuestion(t *testing.T) {
	for name, refusal := range map[string]error{
		"the engine's":  fault.New(fault.Invalid, "engine.Generate", "the input length exceeds the context length: the prompt has 9000 tokens, the context 8192"),
		"the scheduler": fault.New(fault.TooLarge, "scheduler", "the prompt is longer than the context"),
	} {
		report, lines, _, _, err := run(t, Config{Plain: true, Tags: []string{"core"}}, func(string) (string, error) { return "", refusal })
		if err != nil || len(lines) != 6 || report.Correct() != 0 || lines[0].Outcome != agent.Failed || lines[0].Answer == "" {
			t.Errorf("%s: %+v, %v", name, lines, err)
		}
	}
}

func TestLoadRefusesABrokenSet(t *testing.T) {
	for name, row := range map[string]struct {
		line string
		tags []string
	}{
		"not JSON":                  {"{", nil},
		"no id":                     {`{"db":"a","gold":["SELECT 1"]}`, nil},
		"no gold":                   {`{"id":"a","db":"a"}`, nil},
		"a database outside":        {`{"id":"a","db":"../a","gold":["SELECT 1"]}`, nil},
		"a database in a folder":    {`{"id":"a","db":"b/a","gold":["SELECT 1"]}`, nil},
		"no question":               {"", nil},
		"no question with that tag": {`{"id":"a","db":"a","gold":["SELECT 1"],"tags":["x"]}`, []string{"y"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "questions.jsonl"), []byte(row.line+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir, row.tags); fault.CodeOf(err) != fault.Invalid {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "nowhere"), nil); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("a set that is not there: %v", err)
	}
}
