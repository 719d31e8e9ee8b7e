package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

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

	Candidates int        // statements for one question, the first without chance; default 3
	Repairs    int        // times that the model gets to see an error; default 2
	Calls      int        // calls of the model for one question at most; default 6
	CardTokens int        // up to which length the card of a whole schema is in each prompt, instead of that of a question's tables; default 400
	Without    Techniques // what is left out; the zero value leaves out nothing

	// Grammar binds the model to the grammar of the granted schema. It is off by default: on 14 questions, a model of 0.5B gave
	// 3 right answers under it, and 8 when it wrote freely and was mended afterwards. The gate guards either way.
	Grammar bool

	// Profiler knows the databases. nil has the Agent make one, which Close ends; then HideValues says of which databases no
	// value may be shown to a model.
	Profiler   *rag.Profiler
	HideValues func(database string) bool

	// Verified finds questions like this one whose SQL a person confirmed, the nearest first. nil knows none. What it gives
	// passes the gate for the asker before the model sees it.
	Verified func(ctx context.Context, who access.Principal, database, question string) ([]Pair, error)

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
	for _, d := range []struct {
		at  *int
		def int
	}{{&c.NumCtx, plainNumCtx}, {&c.Candidates, 3}, {&c.Repairs, 2}, {&c.Calls, 6}, {&c.CardTokens, 400}} {
		if *d.at == 0 {
			*d.at = d.def
		}
	}
	if !c.Grammar {
		c.Without.Grammar = true
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
	for name, n := range map[string]int{"MaxRows": c.MaxRows, "MaxBytes": c.MaxBytes, "NumCtx": c.NumCtx, "Candidates": c.Candidates,
		"Repairs": c.Repairs, "Calls": c.Calls, "CardTokens": c.CardTokens} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("%s is %d", name, n))
		}
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout is %s", c.Timeout))
	}
	return errors.Join(errs...)
}

// Agent answers questions.
type Agent struct {
	cfg Config
	own *rag.Profiler // ended by Close; nil when it is another's
}

// New checks the configuration and makes an agent, which Close ends.
func New(cfg Config) (*Agent, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	a := &Agent{cfg: cfg}
	if cfg.Profiler == nil {
		a.own = rag.NewProfiler(rag.Config{HideValues: cfg.HideValues})
		a.cfg.Profiler = a.own
	}
	return a, nil
}

// Close ends what the Agent does in the background and waits for it. It must come before the databases are closed.
func (a *Agent) Close() {
	if a.own != nil {
		a.own.Close()
	}
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
	read := access.MayRead(q.Who, src.Name(), src.DefaultSchema())
	may := func(r sqlguard.Relation) bool { return read(r.Schema, r.Name) }
	at := &ask{
		agent: a, src: src, q: q, may: may, answer: Answer{ID: a.cfg.NewID(), Model: name}, timings: map[string]time.Duration{},
		model: &llm{completer: a.cfg.Completer, name: name, now: time.Now},
	}
	err = at.run(limited)
	late := errors.Is(context.Cause(limited), errTooLong)
	switch {
	case ctx.Err() != nil: // the caller left; whatever broke, broke by that
		return Answer{}, a.broken(ctx, at, started, Cancelled, fault.Wrap(context.Cause(ctx), fault.Canceled, "agent.Ask", "the request was cancelled"))
	case err != nil && late && at.choose(): // what is there by now
	case err != nil && late:
		at.fail("it took over " + a.cfg.Timeout.String() + ", which is the limit; the last step was: " + at.step)
	case err != nil:
		return Answer{}, a.broken(ctx, at, started, Errored, fmt.Errorf("agent: ask %s: %w", src.Name(), err))
	}
	if err := at.requestCopy(ctx); err != nil {
		return Answer{}, a.broken(ctx, at, started, Errored, fmt.Errorf("agent: ask %s: %w", src.Name(), err))
	}
	at.close()
	at.tell("answer", at.answer.Text)
	return at.answer, a.record(ctx, at, started)
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

func (a *Agent) record(ctx context.Context, k *ask, started time.Time) error {
	if a.cfg.Record == nil {
		return nil
	}
	ans := k.answer
	err := a.cfg.Record(context.WithoutCancel(ctx), Record{
		ID: ans.ID, At: started, Took: a.cfg.Now().Sub(started), KeyID: k.q.Who.KeyID, Owner: k.q.Who.Owner, Database: k.src.Name(),
		Question: k.asked(), Model: ans.Model, Written: ans.Written, SQL: ans.SQL, Outcome: ans.Outcome, Reason: ans.Reason,
		ModelCalls: ans.ModelCalls, Attempts: ans.Attempts, Candidates: ans.Candidates, Tables: k.focus.Tables, Agreed: k.agreed(),
		Timings: k.timings, Readable: k.readable(), VerifiedID: ans.VerifiedID,
		Follows: k.q.Evidence != "" || len(k.q.Earlier) > 0,
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
	model  *llm
	step   string // what is being done, for a failure by time
	answer Answer

	copy    *copyWish // nil: none
	known   *rag.Knowledge
	taken   func(name string) bool // whether a table has that name, whoever may read it
	focus   rag.Focus
	earlier []earlierTurn
	pairs   []Pair
	tries   []*try
	free    bool // the model's runner has no grammars
	timings map[string]time.Duration
}

// run takes the steps. It returns an error only for what is not the question's fault.
func (k *ask) run(ctx context.Context) error {
	if k.q.Schema != "" {
		return k.plain(ctx)
	}
	if k.wishesCopy() {
		return nil
	}
	if ok, err := k.know(ctx); err != nil || !ok {
		return err
	}
	if done, err := k.verified(ctx); err != nil || done { // before a decline: a person knows better
		return err
	}
	if k.declinedUnasked() {
		return nil
	}
	if done, err := k.solve(ctx); err != nil || done {
		return err
	}
	if !k.choose() {
		if !k.declinedUntold() {
			k.fail(k.tried())
		}
		return nil
	}
	k.declinedAfter()
	return nil
}

// close puts what is known of all candidates into the answer.
func (k *ask) close() {
	k.answer.ModelCalls = k.model.calls
	k.timings["model"] = k.model.took
	k.answer.Attempts, k.answer.Candidates = len(k.tries), nil
	for _, t := range k.tries {
		k.answer.Candidates = append(k.answer.Candidates, t.Candidate)
	}
	if k.answer.Written == "" && len(k.tries) > 0 {
		k.answer.Written = k.tries[0].Written
	}
}

// during measures a step.
func (k *ask) during(stage, step string) func() {
	k.step = step
	started := time.Now()
	return func() { k.timings[stage] += time.Since(started) }
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
