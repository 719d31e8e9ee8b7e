package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"sluice/access"
	"sluice/agent"
	"sluice/fault"
)

// Config of a run.
type Config struct {
	Dir       string              // the question set
	Tags      []string            // only questions that have all of them
	Sample    Sample              // only a part of those
	Limit     int                 // only the first of those; 0 all
	Keep      func(Question) bool // only those, before the sample is drawn; nil all
	Model     string
	Plain     bool             // the prompt of testdata/nl2sql/plain_prompt.txt: schema.sql as it is in place of the schema card
	Without   agent.Techniques // what the agent does without
	Grammar   bool             // bind the model to the grammar of the schema, which the agent that serves does not
	Cross     bool             // golds of other questions as verified pairs, by cross-validation
	Completer agent.Completer
	Postgres  string        // URL of a server to build the databases on, whose user may make databases and roles; "" DuckDB files
	Done      []Line        // of a run that was broken off: they are judged, and not asked again
	Out       io.Writer     // one line of JSON for each question; nil none
	Progress  io.Writer     // one line of text for each question; nil none
	WorkDir   string        // where databases are built; "" the system's temporary folder
	Timeout   time.Duration // for one question; default 10m, so that a slow machine does not change the score

	Before func(context.Context, Question) error // is called before each question, outside of its time; nil not
}

// How describes the run: what must be equal for two halves of it to make one.
func (c Config) How() string {
	parts := []string{c.Model, "agent", "duckdb"}
	if c.Plain {
		parts[1] = "plain"
	}
	if c.Postgres != "" {
		parts[2] = "postgres"
	}
	if c.Grammar {
		parts = append(parts, "grammar")
	}
	if c.Cross {
		parts = append(parts, "verified cross")
	}
	for _, name := range namesOf(c.Without) {
		parts = append(parts, "without "+name)
	}
	return strings.Join(parts, ", ")
}

// namesOf lists the techniques that are left out, by the names that agent.Without knows them under.
func namesOf(t agent.Techniques) (names []string) {
	v := reflect.ValueOf(t)
	for i := range v.NumField() {
		if v.Field(i).Bool() {
			names = append(names, strings.ToLower(v.Type().Field(i).Name))
		}
	}
	return names
}

// asker is who asks in a run: the person who started it, on files of their own. Read-only, since that is all that an
// ask may ever do.
var asker = access.Trusted("sluice eval", access.ReadOnly)

// session is a run on its way.
type session struct {
	cfg     Config
	who     *agent.Agent
	judge   *Judge
	crossed *crossed
	report  Report
	asked   int
	began   time.Time
}

// Run asks every question of the set and judges the answers. The report holds the verdicts so far also when err is not nil.
func Run(ctx context.Context, cfg Config) (report Report, err error) {
	all, err := LoadAll(cfg.Dir, nil)
	if err != nil {
		return Report{}, err
	}
	questions, err := LoadAll(cfg.Dir, cfg.Tags)
	if err != nil {
		return Report{}, err
	}
	if cfg.Keep != nil {
		questions = slices.DeleteFunc(questions, func(q Question) bool { return !cfg.Keep(q) })
	}
	questions = cfg.Sample.of(questions)
	if cfg.Limit > 0 {
		questions = questions[:min(cfg.Limit, len(questions))]
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Minute
	}
	r := &session{cfg: cfg, crossed: newCrossed(all), began: time.Now()}
	if cfg.Postgres == "" {
		r.judge, err = NewJudge(cfg.Dir, cfg.WorkDir)
	} else {
		r.judge, err = NewPostgresJudge(ctx, cfg.Dir, cfg.Postgres)
	}
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, r.judge.Close()) }()
	who := agent.Config{Completer: cfg.Completer, Model: cfg.Model, Timeout: cfg.Timeout, Without: cfg.Without, Grammar: cfg.Grammar}
	if cfg.Cross {
		who.Verified = r.crossed.known
	}
	if r.who, err = agent.New(who); err != nil {
		return Report{}, fault.Wrap(err, fault.Invalid, "eval.Run", "%s", err)
	}
	defer r.who.Close()
	done := map[string]Line{}
	for _, l := range cfg.Done {
		done[l.ID] = l
	}
	for i, q := range questions {
		line, old := done[q.ID]
		if !old {
			if line, err = r.ask(ctx, q); err != nil {
				return r.report, err
			}
		}
		if err := r.judged(ctx, q, line); err != nil {
			return r.report, err
		}
		if old {
			continue
		}
		r.asked++
		rest := questions[i+1:]
		if err := r.tell(line, len(rest), doneAmong(rest, done)); err != nil {
			return r.report, fmt.Errorf("eval: write the result of %s: %w", q.ID, err)
		}
	}
	return r.report, nil
}

func doneAmong(questions []Question, done map[string]Line) (n int) {
	for _, q := range questions {
		if _, ok := done[q.ID]; ok {
			n++
		}
	}
	return n
}

func (r *session) ask(ctx context.Context, q Question) (Line, error) {
	src, err := r.judge.databases.source(ctx, q.DB)
	if err != nil {
		return Line{}, err
	}
	schema, err := r.judge.databases.script(q.DB, "schema.sql")
	if err != nil {
		return Line{}, err
	}
	data, err := r.judge.databases.script(q.DB, "data.sql")
	if err != nil {
		return Line{}, err
	}
	ask := agent.Ask{Who: asker, Question: q.Question, Evidence: q.Evidence}
	if r.cfg.Plain {
		ask.Schema = schema
	}
	r.crossed.asked = q
	if r.cfg.Before != nil {
		if err := r.cfg.Before(ctx, q); err != nil {
			return Line{}, fmt.Errorf("eval: before %s: %w", q.ID, err)
		}
	}
	started := time.Now()
	answer, err := r.who.Ask(ctx, src, ask)
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.TooLarge: // such as a prompt that does not fit: wrong for this question, and no reason to stop
		answer, err = agent.Answer{Outcome: agent.Failed, Text: fault.Public(err).Msg, ModelCalls: 1}, nil
		data += answer.Text // the server's own sentence, with its own numbers
	}
	if err != nil {
		return Line{}, fmt.Errorf("eval: ask %s: %w", q.ID, err)
	}
	line := Line{
		ID: q.ID, SQL: answer.Written, Answer: answer.Text, Outcome: answer.Outcome, Declined: answer.Outcome == agent.Declined,
		Seconds: time.Since(started).Seconds(), ModelCalls: answer.ModelCalls, Verified: answer.Verified, Run: r.cfg.How(),
		Leaks: leaksIn(answer, q.Question, q.Evidence, schema, data, r.cfg.Model, limits(r.cfg)),
	}
	if line.Declined && !r.cfg.Plain {
		line.SQL = "" // a decline offers no statement; the plain prompt's prediction is all that the model wrote
	}
	return line, nil
}

// judged adds a line to the report.
func (r *session) judged(ctx context.Context, q Question, line Line) error {
	if !q.answerable() {
		r.report.Declines = append(r.report.Declines, declineOf(q, line))
	} else {
		verdict, err := r.judge.Verdict(ctx, q, line.SQL)
		if err != nil {
			return err
		}
		verdict.Declined = line.Declined
		r.report.Verdicts = append(r.report.Verdicts, verdict)
	}
	r.report.Lines = append(r.report.Lines, line)
	return nil
}

func (r *session) tell(line Line, left, done int) error {
	if r.cfg.Out != nil {
		data, err := json.Marshal(line)
		if err != nil {
			return err
		}
		if _, err := r.cfg.Out.Write(append(data, '\n')); err != nil {
			return err
		}
	}
	if r.cfg.Progress == nil {
		return nil
	}
	var verdict string
	if n := len(r.report.Verdicts); n > 0 && r.report.Verdicts[n-1].ID == line.ID {
		verdict = r.report.Verdicts[n-1].Verdict
	} else {
		verdict = r.report.Declines[len(r.report.Declines)-1].Verdict
	}
	if len(line.Leaks) > 0 {
		verdict += ", LEAKS " + strings.Join(line.Leaks, ", ")
	}
	percent, _ := r.report.Accuracy()
	eta := time.Since(r.began) / time.Duration(r.asked) * time.Duration(left-done)
	_, err := fmt.Fprintf(r.cfg.Progress, "%d/%d %s %s: %d right so far (%.1f %%), %.1f s, %s left, %s\n", len(r.report.Lines), len(r.report.Lines)+left,
		line.ID, line.Outcome, r.report.Correct(), percent, line.Seconds, eta.Round(time.Second), verdict)
	return err
}
