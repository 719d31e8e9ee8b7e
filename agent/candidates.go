package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"sluice/fault"
	"sluice/sqlguard"
)

// How the candidates after the first are drawn.
const (
	warmth     = 0.7
	warmSeed   = 2
	slowestRun = 15 * time.Second // of one candidate on the database, or a quarter of the ask's time
)

// try is a candidate on its way.
type try struct {
	Candidate
	at       time.Time
	round    *round
	approved sqlguard.Approved
	table    *Table
	key      string       // of its result
	refusal  *fault.Error // why it did not run
	write    bool         // it is no read
	doubts   []doubt      // what speaks against it, of one that ran
}

// sql is the statement as it was tried last.
func (t *try) sql() string {
	if t.Mended != "" {
		return t.Mended
	}
	return t.Written
}

// round is one way of asking for statements.
type round struct {
	name     string
	short    bool // its card has the focus and no more
	messages []llms.MessageContent
	grammar  string
}

// solve has the model write statements until some work or the bounds are reached. done says that the ask is decided.
func (k *ask) solve(ctx context.Context) (done bool, err error) {
	first, err := k.focusRound()
	if err != nil {
		return false, err
	}
	if done, err := k.draw(ctx, first); err != nil || done {
		return done, err
	}
	if k.any(Ran, Empty) {
		return false, nil
	}
	if done, err := k.repair(ctx, first); err != nil || done || k.any(Ran, Empty) {
		return done, err
	}
	whole, err := k.wholeRound()
	if err != nil || whole.same(first) || !k.affords(ctx) {
		return false, err
	}
	if done, err := k.once(ctx, whole, 0, 1); err != nil || done {
		return done, err
	}
	return k.declinedByModel(), nil
}

func (r *round) same(other *round) bool {
	if r.grammar != other.grammar || len(r.messages) != len(other.messages) {
		return false
	}
	for i := range r.messages {
		a, errA := textOf(r.messages[i])
		b, errB := textOf(other.messages[i])
		if errA != nil || errB != nil || a != b {
			return false
		}
	}
	return true
}

// draw asks for the likeliest statement and for others besides.
func (k *ask) draw(ctx context.Context, r *round) (done bool, err error) {
	if done, err := k.once(ctx, r, 0, 1); err != nil || done {
		return done, err
	}
	more := k.agent.cfg.Candidates - 1
	if more > 0 && !k.off().Candidates && k.affords(ctx) && !(k.off().Vote && k.any(Ran)) && !k.settled() {
		if done, err := k.once(ctx, r, warmth, more); err != nil || done {
			return done, err
		}
	}
	return k.declinedByModel(), nil
}

// settled says whether the likeliest statement found something and little speaks against it: then others would only cost time.
func (k *ask) settled() bool {
	return !k.off().Doubt && len(k.tries) == 1 && k.tries[0].Verdict == Ran && k.against(k.tries[0]) < likely
}

// once is one call of the model, and what comes of its answers.
func (k *ask) once(ctx context.Context, r *round, temperature float64, n int) (done bool, err error) {
	stop := k.during("candidate", "having "+k.answer.Model+" write SQL")
	texts, err := k.write(ctx, r.messages, r.grammar, temperature, n, r.name == "repair")
	stop()
	if err != nil {
		return false, err
	}
	for _, text := range texts {
		if done, err := k.consider(ctx, &try{Candidate: Candidate{Written: statement(text), Round: r.name, Votes: 1, Reason: cannot(text)}, round: r, at: time.Now()}); err != nil || done {
			return done, err
		}
	}
	return false, nil
}

// write calls the model. A runner that cannot keep the grammar, or cannot give several answers, is asked for less, once and
// for all of this ask.
func (k *ask) write(ctx context.Context, messages []llms.MessageContent, grammar string, temperature float64, n int, expect bool) ([]string, error) {
	for {
		if k.free {
			grammar, n = "", 1
		}
		seed := plainSeed
		if temperature > 0 {
			seed = warmSeed
		}
		stop, penalty := guidedStop, 1.0
		if k.q.Schema != "" { // the plain prompt, which is measured as it is
			stop, penalty = plainStop, 0
		}
		resp, err := k.model.GenerateContent(ctx, messages, llms.WithTemperature(temperature), llms.WithSeed(seed), llms.WithMaxTokens(plainMaxTokens),
			llms.WithStopWords(stop), llms.WithRepetitionPenalty(penalty), llms.WithN(n), llms.WithMetadata(map[string]any{numCtx: k.agent.cfg.NumCtx, grammarKey: grammar, expectKey: expect}))
		if code := fault.CodeOf(err); err != nil && (code == fault.Invalid || code == fault.Unimplemented) && (grammar != "" || n > 1) && ctx.Err() == nil {
			k.free = true
			continue
		}
		if err != nil {
			return nil, err
		}
		texts := make([]string, len(resp.Choices))
		for i, c := range resp.Choices {
			texts[i] = c.Content
		}
		return texts, nil
	}
}

// affords says whether another call of the model is within the bounds: their number, and the time if it takes as long as
// those before did.
func (k *ask) affords(ctx context.Context) bool {
	if k.model.calls >= k.agent.cfg.Calls {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || k.model.calls == 0 || time.Until(deadline) > k.model.took/time.Duration(k.model.calls)*3/2
}

// consider takes a candidate through the gate and the database. done says that the ask is decided by it. A statement that
// was written before counts for that one.
func (k *ask) consider(ctx context.Context, t *try) (done bool, err error) {
	for _, old := range k.tries {
		if old.Written == t.Written && (t.Written != "" || old.Verdict == t.Verdict) {
			old.Votes++
			return false, nil
		}
	}
	defer func() { t.Took = time.Since(t.at) }()
	k.tries = append(k.tries, t)
	if t.Reason != "" {
		t.Verdict = Cannot
		k.tell("candidate", "-- "+t.Reason)
		return false, nil
	}
	k.tell("candidate", presentable(t.Written, "a text that is no statement"))
	if t.Written == "" {
		t.Verdict, t.Reason = Broken, k.answer.Model+" wrote no SQL"
		return false, nil
	}
	if done, err := k.gate(ctx, t); err != nil || done || t.Verdict != "" {
		return done, err
	}
	if err := k.rows(ctx, t); err != nil {
		return false, err
	}
	return false, k.prune(ctx, t)
}

// gate passes a candidate through the gate, mended where that helps. What is not a read is a decline, decided by the
// gate's parser and not by words.
func (k *ask) gate(ctx context.Context, t *try) (done bool, err error) {
	defer k.during("gate", "passing the gate")()
	if special, err := sqlguard.Classify(t.Written); err != nil || special.Query == "" {
		if inner, ok := k.innerOfCopy(special); ok {
			t.Written = inner
			return k.gate(ctx, t)
		}
		t.Verdict, t.Reason, t.write = Refused, "COPY TO LAKE and external tables are for statements that somebody sends, not for questions", true
		k.tell("gate", "refused: "+t.Reason)
		if len(k.tries) > 1 { // not the likeliest statement
			return false, nil
		}
		k.decline(t.Reason)
		return true, nil
	}
	approved, mended, err := k.approve(ctx, t.Written)
	t.Mended = mended
	switch {
	case err == nil && approved.Explain():
		t.Verdict, t.Reason = Refused, k.answer.Model+" wrote an EXPLAIN, which gives a plan and no answer"
		k.tell("gate", "refused: "+t.Reason)
		return false, nil
	case err == nil && len(approved.Relations()) == 0: // an answer that is written into the statement is the model's, not the data's
		t.refusal = fault.New(fault.Refused, "agent.gate", "the statement reads no table")
		t.Verdict, t.Reason = Refused, t.refusal.Msg
		k.tell("gate", "refused: "+t.Reason)
		return false, nil
	case err == nil:
		t.approved, t.SQL = approved, approved.Shown()
		said := "allowed"
		if t.Mended != "" {
			said += ", mended to: " + t.SQL
		}
		k.tell("gate", said)
		return false, nil
	case ctx.Err() != nil || !blamesStatement(err):
		return false, err
	}
	t.Verdict, t.refusal, t.write = Refused, fault.Public(err), notRead(err)
	t.Reason = t.refusal.Msg
	k.tell("gate", "refused: "+t.Reason)
	if t.write && len(k.tries) == 1 { // the likeliest statement
		k.decline(t.Reason)
		return true, nil
	}
	return false, nil
}

// approve asks the gate, and again for each mending. mended is the statement that it let through or that the error is
// about, when that is not the model's.
func (k *ask) approve(ctx context.Context, written string) (approved sqlguard.Approved, mended string, err error) {
	profile := ProfileOf(k.q.Who)
	sql := written
	approved, err = k.src.Approve(ctx, sql, profile, k.may)
	if k.known == nil || k.off().Mend {
		return approved, "", err
	}
	m := mender{k: k.known, focus: k.focus, dialect: k.src.Dialect()}
	var said []string
	for n := 0; n < maxMends && err != nil && blamesStatement(err) && !notRead(err); n++ {
		mended, what, ok := m.refusal(sql, fault.Public(err))
		if !ok {
			break
		}
		next, nextErr := k.src.Approve(ctx, mended, profile, k.may)
		if nextErr != nil && !blamesStatement(nextErr) {
			return sqlguard.Approved{}, "", nextErr
		}
		sql, approved, err = mended, next, nextErr
		said = append(said, what)
	}
	if err == nil && !k.off().Values {
		if mended, what, ok := m.values(sql); ok {
			if next, nextErr := k.src.Approve(ctx, mended, profile, k.may); nextErr == nil {
				sql, approved = mended, next
				said = append(said, what)
			}
		}
	}
	if sql == written {
		return approved, "", err
	}
	return approved, sql, err
}

// rows runs a candidate.
func (k *ask) rows(ctx context.Context, t *try) error {
	defer k.during("rows", "reading rows")()
	limit := k.agent.cfg.MaxRows
	if k.q.MaxRows > 0 {
		limit = min(limit, k.q.MaxRows)
	}
	most := min(slowestRun, k.agent.cfg.Timeout/4)
	short, cancel := context.WithTimeoutCause(ctx, most, errSlow)
	defer cancel()
	table, err := read(short, k.src, t.approved, limit, k.agent.cfg.MaxBytes)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(context.Cause(short), errSlow):
		t.refusal = fault.New(fault.TooLarge, "agent.rows", "it took over %s", most)
	case err != nil && (ctx.Err() != nil || !blamesStatement(err)):
		return err
	case err != nil:
		t.refusal = fault.Public(err)
	}
	if t.refusal != nil {
		t.Verdict, t.Reason = Broken, t.refusal.Msg
		k.tell("rows", "failed: "+t.Reason)
		return nil
	}
	t.table, t.Rows, t.Verdict, t.key = table, len(table.Rows), Ran, resultKey(table)
	if nothing(table) {
		t.Verdict = Empty
	}
	if k.known != nil && !k.off().Doubt {
		t.doubts = k.doubtsOf(t.sql())
	}
	k.tell("rows", plural(len(table.Rows), "row"))
	return nil
}

var errSlow = errors.New("agent: a candidate took too long")

// any says whether a candidate has one of the verdicts.
func (k *ask) any(verdicts ...Verdict) bool {
	for _, t := range k.tries {
		for _, v := range verdicts {
			if t.Verdict == v {
				return true
			}
		}
	}
	return false
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
