package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"sluice/access"
	"sluice/fault"
	"sluice/rag"
	"sluice/sqlguard"
)

// maxQuestion bounds question and evidence, in bytes: more would not fit beside a schema in a small model's context.
const maxQuestion = 16 << 10

// Config is what an Agent needs.
type Config struct {
	Completer Completer
	Model     string        // the model when an ask names none; "" none
	Approved  []string      // models that may be asked; empty any
	MaxRows   int           // cap of an answer's table; default 1000
	MaxBytes  int           // cap of its cells as JSON, in bytes; default 8 MiB
	Timeout   time.Duration // for one ask, model and database together; default 60s
	NumCtx    int           // tokens of context; default 8192

	// Record keeps an ask for the Learning Loop; nil keeps none. An ask that cannot be recorded is an error.
	Record func(context.Context, Record) error
	Now    func() time.Time
	NewID  func() string // of an ask; default "ask_" and 26 random characters
}

func (c Config) withDefaults() Config {
	if c.MaxRows == 0 {
		c.MaxRows = 1000
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 8 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = time.Minute
	}
	if c.NumCtx == 0 {
		c.NumCtx = plainNumCtx
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.NewID == nil {
		c.NewID = func() string { return "ask_" + rand.Text() }
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Completer == nil {
		errs = append(errs, errors.New("Completer is missing"))
	}
	if c.MaxRows < 0 {
		errs = append(errs, fmt.Errorf("MaxRows is %d", c.MaxRows))
	}
	if c.MaxBytes < 0 {
		errs = append(errs, fmt.Errorf("MaxBytes is %d", c.MaxBytes))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout is %s", c.Timeout))
	}
	if c.NumCtx < 0 {
		errs = append(errs, fmt.Errorf("NumCtx is %d", c.NumCtx))
	}
	return errors.Join(errs...)
}

// Agent answers questions.
type Agent struct{ cfg Config }

// New checks the configuration and makes an agent.
func New(cfg Config) (*Agent, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return &Agent{cfg: cfg}, nil
}

// Ask answers a question about a source. What comes of the question itself is an Answer, also when it is declined or
// fails. An error is what came in the way: no right to the database or the model, no such model, a busy machine, a
// caller who left.
func (a *Agent) Ask(ctx context.Context, src Source, q Ask) (Answer, error) {
	started := a.cfg.Now()
	if err := validate(q); err != nil {
		return Answer{}, err
	}
	if !access.MayDatabase(q.Who, src.Name()) { // the same words as for a database that does not exist
		return Answer{}, fault.New(fault.NotFound, "agent.Ask", "database '%s' not found", src.Name())
	}
	name, err := a.choose(q.Who, q.Model)
	if err != nil {
		return Answer{}, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, a.cfg.Timeout, errTooLong)
	defer cancel()
	read := access.MayRead(q.Who, src.Name())
	may := func(r sqlguard.Relation) bool { return read(r.Schema, r.Name) }
	at := &ask{agent: a, src: src, q: q, may: may, answer: Answer{ID: a.cfg.NewID(), Model: name}}
	err = at.run(limited)
	switch {
	case ctx.Err() != nil: // the caller left; whatever broke, broke by that
		return Answer{}, fault.Wrap(context.Cause(ctx), fault.Canceled, "agent.Ask", "the request was cancelled")
	case err != nil && errors.Is(context.Cause(limited), errTooLong):
		at.fail("it took over " + a.cfg.Timeout.String() + ", which is the limit; the last step was: " + at.step)
	case err != nil:
		return Answer{}, fmt.Errorf("agent: ask %s: %w", src.Name(), err)
	}
	at.tell("answer", at.answer.Text)
	return at.answer, a.record(ctx, src.Name(), q, at.answer, started)
}

var errTooLong = errors.New("agent: the ask took too long")

func validate(q Ask) error {
	switch {
	case strings.TrimSpace(q.Question) == "":
		return fault.New(fault.Invalid, "agent.Ask", "question is empty")
	case len(q.Question)+len(q.Evidence) > maxQuestion:
		return fault.New(fault.TooLarge, "agent.Ask", "question is longer than %d bytes", maxQuestion)
	case q.MaxRows < 0:
		return fault.New(fault.Invalid, "agent.Ask", "max_rows is negative")
	}
	return nil
}

func (a *Agent) record(ctx context.Context, database string, q Ask, ans Answer, started time.Time) error {
	if a.cfg.Record == nil {
		return nil
	}
	err := a.cfg.Record(context.WithoutCancel(ctx), Record{
		ID: ans.ID, At: started, Took: a.cfg.Now().Sub(started), KeyID: q.Who.KeyID, Owner: q.Who.Owner, Database: database,
		Question: q.Question, Model: ans.Model, Written: ans.Written, SQL: ans.SQL, Outcome: ans.Outcome, Reason: ans.Reason,
		ModelCalls: ans.ModelCalls,
	})
	if err != nil {
		return fmt.Errorf("agent: record the ask: %w", err)
	}
	return nil
}

// ask is one question on its way.
type ask struct {
	agent  *Agent
	src    Source
	q      Ask
	may    func(sqlguard.Relation) bool
	step   string // what is being done, for a failure by time
	answer Answer
}

func (k *ask) run(ctx context.Context) error {
	card, ok, err := k.schema(ctx)
	if err != nil || !ok {
		return err
	}
	if err := k.candidate(ctx, card); err != nil {
		return err
	}
	if k.answer.Written == "" {
		k.fail("the model wrote no SQL")
		return nil
	}
	approved, ok, err := k.gate(ctx)
	if err != nil || !ok {
		return err
	}
	return k.rows(ctx, approved)
}

// schema makes the schema card. ok is false when there is nothing that the asker may read.
func (k *ask) schema(ctx context.Context) (card string, ok bool, err error) {
	k.step = "reading the schema"
	if k.q.Schema != "" {
		k.tell("schema", "given")
		return k.q.Schema, true, nil
	}
	catalog, err := k.src.Catalog(ctx)
	if err != nil {
		return "", false, err
	}
	tables := readable(catalog, k.may)
	if len(tables) == 0 {
		k.decline("there is no table in '" + k.src.Name() + "' that you may read")
		return "", false, nil
	}
	k.tell("schema", plural(len(tables), "table"))
	return rag.Card(tables), true, nil
}

// candidate has the model write one statement.
func (k *ask) candidate(ctx context.Context, card string) error {
	k.step = "having " + k.answer.Model + " write SQL"
	messages, err := plainPrompt(card, k.q.Question, k.q.Evidence)
	if err != nil {
		return err
	}
	m := &llm{completer: k.agent.cfg.Completer, name: k.answer.Model}
	resp, err := m.GenerateContent(ctx, messages, llms.WithTemperature(0), llms.WithSeed(plainSeed), llms.WithMaxTokens(plainMaxTokens),
		llms.WithStopWords(plainStop), llms.WithMetadata(map[string]any{numCtx: k.agent.cfg.NumCtx}))
	k.answer.ModelCalls = m.calls
	if err != nil {
		return err
	}
	k.answer.Attempts = 1
	k.answer.Written = statement(resp.Choices[0].Content)
	k.tell("candidate", k.answer.Written)
	return nil
}

// statement trims what the model wrote to one statement's text, which is empty when it wrote only comments.
func statement(text string) string {
	text = strings.TrimSpace(strings.TrimRight(strings.TrimSpace(text), ";"))
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "--") {
			return text
		}
	}
	return ""
}

// gate passes the statement through the gate. A refusal because it is not a read is a decline, decided by the gate's
// parser and not by words; any other refusal is the model's mistake, so a failure.
func (k *ask) gate(ctx context.Context) (approved sqlguard.Approved, ok bool, err error) {
	k.step = "passing the gate"
	if special, err := sqlguard.Classify(k.answer.Written); err != nil || special.Query == "" {
		reason := "COPY TO LAKE and external tables are for statements that somebody sends, not for questions"
		k.tell("gate", "refused: "+reason)
		k.decline(reason)
		return sqlguard.Approved{}, false, nil
	}
	approved, err = k.src.Approve(ctx, k.answer.Written, sqlguard.ReadOnly, k.may)
	switch {
	case err == nil && approved.Explain():
		k.fail(k.answer.Model + " wrote an EXPLAIN, which gives a plan and no answer")
		return sqlguard.Approved{}, false, nil
	case err == nil:
		k.answer.SQL = approved.Shown()
		k.tell("gate", "allowed")
		return approved, true, nil
	case ctx.Err() != nil || !blamesStatement(err):
		return sqlguard.Approved{}, false, err
	}
	reason := fault.Public(err).Msg
	k.tell("gate", "refused: "+reason)
	if notRead(err) {
		k.decline(reason)
	} else {
		k.fail("the SQL that " + k.answer.Model + " wrote was refused: " + reason)
	}
	return sqlguard.Approved{}, false, nil
}

// rows runs the approved statement and puts its rows into words.
func (k *ask) rows(ctx context.Context, approved sqlguard.Approved) error {
	k.step = "reading rows"
	limit := k.agent.cfg.MaxRows
	if k.q.MaxRows > 0 {
		limit = min(limit, k.q.MaxRows)
	}
	table, err := read(ctx, k.src, approved, limit, k.agent.cfg.MaxBytes)
	if err != nil {
		if ctx.Err() != nil || !blamesStatement(err) {
			return err
		}
		k.fail("the database could not run the SQL that " + k.answer.Model + " wrote: " + fault.Public(err).Msg)
		return nil
	}
	k.tell("rows", plural(len(table.Rows), "row"))
	k.answer.Outcome, k.answer.Table = Answered, table
	k.answer.Text = presentable(describe(table), plural(len(table.Rows), "row")+", shown in the table.")
	return nil
}

func (k *ask) decline(reason string) {
	k.answer.Outcome, k.answer.Reason = Declined, presentable(reason, "the gate refused the statement")
	k.answer.Text = "This was not done: " + k.answer.Reason + ". Questions only read data."
}

func (k *ask) fail(reason string) {
	k.answer.Outcome, k.answer.Reason = Failed, presentable(reason, "the statement that the model wrote did not work")
	k.answer.Text = "I could not answer this: " + k.answer.Reason + "."
}

func (k *ask) tell(stage, text string) {
	if k.q.OnEvent != nil {
		k.q.OnEvent(Event{Stage: stage, Text: text})
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
