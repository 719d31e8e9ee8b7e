package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sluice/access"
	"sluice/agent"
	"sluice/fault"
)

// Config of a run.
type Config struct {
	Dir       string   // the question set
	Tags      []string // only questions that have all of them
	Model     string
	Plain     bool             // the prompt of testdata/nl2sql/plain_prompt.txt: schema.sql as it is in place of the schema card
	Without   agent.Techniques // what the agent does without
	Grammar   bool             // bind the model to the grammar of the schema, which the agent that serves does not
	Completer agent.Completer
	Out       io.Writer     // one line of JSON for each question; nil none
	Progress  io.Writer     // one line of text for each question; nil none
	WorkDir   string        // where databases are built; "" the system's temporary folder
	Timeout   time.Duration // for one question; default 10m, so that a slow machine does not change the score
}

// Line is what Out gets for each question.
type Line struct {
	ID         string        `json:"id"`
	SQL        string        `json:"sql"` // as the model wrote it; empty when the agent declined, but for Plain
	Answer     string        `json:"answer"`
	Outcome    agent.Outcome `json:"outcome"`
	Declined   bool          `json:"declined"`
	Seconds    float64       `json:"seconds"`
	ModelCalls int           `json:"model_calls"`
}

// asker is who asks in a run: the person who started it, on files of their own. Read-only, since that is all that an
// ask may ever do.
var asker = access.Trusted("sluice eval", access.ReadOnly)

// Run asks every question of the set and judges the answers. The report holds the verdicts so far also when err is not nil.
func Run(ctx context.Context, cfg Config) (report Report, err error) {
	questions, err := Load(cfg.Dir, cfg.Tags)
	if err != nil {
		return Report{}, err
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Minute
	}
	judge, err := NewJudge(cfg.Dir, cfg.WorkDir)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, judge.Close()) }()
	who, err := agent.New(agent.Config{Completer: cfg.Completer, Model: cfg.Model, Timeout: cfg.Timeout, Without: cfg.Without, Grammar: cfg.Grammar})
	if err != nil {
		return Report{}, fault.Wrap(err, fault.Invalid, "eval.Run", "%s", err)
	}
	defer who.Close()
	for _, q := range questions {
		line, err := ask(ctx, cfg, who, judge, q)
		if err != nil {
			return report, err
		}
		verdict, err := judge.Verdict(ctx, q, line.SQL)
		if err != nil {
			return report, err
		}
		report.Verdicts = append(report.Verdicts, verdict)
		if err := tell(cfg, report, len(questions), line, verdict); err != nil {
			return report, fmt.Errorf("eval: write the result of %s: %w", q.ID, err)
		}
	}
	return report, nil
}

func ask(ctx context.Context, cfg Config, who *agent.Agent, judge *Judge, q Question) (Line, error) {
	src, err := judge.databases.source(ctx, q.DB)
	if err != nil {
		return Line{}, err
	}
	ask := agent.Ask{Who: asker, Question: q.Question, Evidence: q.Evidence}
	if cfg.Plain {
		if ask.Schema, err = judge.databases.script(q.DB, "schema.sql"); err != nil {
			return Line{}, err
		}
	}
	started := time.Now()
	answer, err := who.Ask(ctx, src, ask)
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.TooLarge: // such as a prompt that does not fit: wrong for this question, and no reason to stop
		answer, err = agent.Answer{Outcome: agent.Failed, Text: fault.Public(err).Msg, ModelCalls: 1}, nil
	}
	if err != nil {
		return Line{}, fmt.Errorf("eval: ask %s: %w", q.ID, err)
	}
	line := Line{
		ID: q.ID, SQL: answer.Written, Answer: answer.Text, Outcome: answer.Outcome, Declined: answer.Outcome == agent.Declined,
		Seconds: time.Since(started).Seconds(), ModelCalls: answer.ModelCalls,
	}
	if line.Declined && !cfg.Plain {
		line.SQL = "" // a decline offers no statement; the plain prompt's prediction is all that the model wrote
	}
	return line, nil
}

func tell(cfg Config, report Report, of int, line Line, verdict Verdict) error {
	if cfg.Out != nil {
		data, err := json.Marshal(line)
		if err != nil {
			return err
		}
		if _, err := cfg.Out.Write(append(data, '\n')); err != nil {
			return err
		}
	}
	if cfg.Progress == nil {
		return nil
	}
	percent, _ := report.Accuracy()
	_, err := fmt.Fprintf(cfg.Progress, "%d/%d %s %s: %d right so far (%.1f %%), %.1f s, %s\n", len(report.Verdicts), of, verdict.ID,
		line.Outcome, report.Correct(), percent, line.Seconds, verdict.Verdict)
	return err
}
