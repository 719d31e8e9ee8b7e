package gateway

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	reading "sluice/models/reply" // reply is a function here
	"sluice/runner"
	"sluice/scheduler"
)

// noUsage is that of a request that computed nothing.
var noUsage runner.Usage

// answering turns a runner's chunks into turns: one generation, of one or more answers.
type answering struct {
	s     *server
	c     *gin.Context
	m     *models.Model
	lease *scheduler.Lease
	start time.Time
	note  string // what was left out of the prompt, "" nothing

	readers []*reading.Reader // one for each answer; nil: the text is the answer as it is
	force   *forcedCall       // the answer is read as a call of a tool
	one     bool              // only the first call counts
	held    bool              // all of it is kept until its end
	context func(answer string) ([]int, error)
	emit    func(turn) error

	chat    bool // it was asked for as a chat too, in case that it is answered elsewhere
	answers []oneAnswer
	first   time.Time // when the first text came
	usage   runner.Usage
	done    bool
	bytes   int // kept so far, about
}

// An answer that is kept until its end, which 128 answers of ten contexts each may be, must not fill the memory.
const (
	maxHeld      = 64 << 20 // bytes
	logprobBytes = 128      // that a token with its probability takes, about
)

// oneAnswer is what is known of one of the answers so far.
type oneAnswer struct {
	raw      strings.Builder // all its text, where somebody asks for it at the end
	forced   strings.Builder // the content of a forced call
	logprobs []api.Logprob   // of text that is held back
	calls    int
	reason   string // why it ended; "" it goes on
	stop     string // the stop text that ended it
}

// generate runs the generation to its end.
func (a *answering) generate(what scheduler.Completion) error {
	a.answers = make([]oneAnswer, max(1, what.N))
	a.chat = what.Chat != nil && len(what.Chat.Messages) > 0
	ctx := a.c.Request.Context()
	err := a.lease.Generate(ctx, what, a.take)
	switch {
	case err != nil && ctx.Err() != nil:
		return fault.Wrap(err, fault.Canceled, "gateway.answering", "the request was cancelled")
	case err != nil:
		return err
	case !a.done:
		return fault.Bug("a runner's stream ended without its last chunk")
	}
	return a.ends(ctx)
}

// take reads a chunk, and hands on what is clear by now.
func (a *answering) take(ch runner.Chunk) error {
	if ch.Index < 0 || ch.Index >= len(a.answers) {
		return fault.Bug("a chunk of answer %d of %d", ch.Index, len(a.answers))
	}
	if (ch.Text != "" || ch.Thinking != "" || len(ch.Calls) > 0) && a.first.IsZero() {
		a.first = a.s.now()
	}
	if err := a.hold(ch); err != nil {
		return err
	}
	an := &a.answers[ch.Index]
	an.logprobs = append(an.logprobs, logprobsOf(ch.Logprobs)...)
	reason := ch.DoneReason
	if ch.Done {
		a.done = true
		if ch.Usage != nil {
			a.usage = *ch.Usage
		}
		if reason == "" {
			reason = "stop"
		}
	}
	if an.reason != "" { // it has ended: this chunk is the end of all
		return nil
	}
	an.reason, an.stop = reason, ch.Stop
	if a.context != nil {
		an.raw.WriteString(ch.Text)
	}
	return a.hand(ch.Index, a.read(ch.Index, ch, reason != ""))
}

// hold counts what an answer in one piece takes.
func (a *answering) hold(ch runner.Chunk) error {
	if !a.held {
		return nil
	}
	a.bytes += len(ch.Text) + len(ch.Thinking)
	for _, l := range ch.Logprobs {
		a.bytes += logprobBytes * (1 + len(l.Top))
	}
	if a.bytes > maxHeld {
		return &fault.Error{Code: fault.TooLarge, Op: "gateway.answering", Msg: fmt.Sprintf("the answer is larger than %d MiB", maxHeld>>20),
			Hint: "stream it, or ask for fewer or shorter answers, or fewer top_logprobs"}
	}
	return nil
}

// read tells what a piece of text is. A server elsewhere that was given a chat has told already.
func (a *answering) read(i int, ch runner.Chunk, done bool) reading.Part {
	part := reading.Part{Content: ch.Text, Thinking: ch.Thinking, Calls: ch.Calls}
	if a.chat && a.lease.Report().Chats { // asked each time: another runner may have taken over before the first piece
		return part
	}
	if a.readers != nil {
		part = a.readers[i].Add(ch.Text, done)
	}
	if a.force == nil {
		return part
	}
	// The text is JSON made for us, not for a person. One that was cut off by a limit is no call; the reason says so.
	a.answers[i].forced.WriteString(part.Content)
	part.Content, part.Calls = "", nil
	if done {
		if call, ok := a.force.read(a.answers[i].forced.String()); ok {
			part.Calls = []api.ToolCall{call}
		}
	}
	return part
}

// hand emits a part, unless it is empty. Log probabilities wait for the text that they belong to.
func (a *answering) hand(i int, part reading.Part) error {
	an := &a.answers[i]
	calls := part.Calls
	if a.one && len(calls) > 0 {
		calls = calls[:min(len(calls), max(0, 1-an.calls))]
	}
	for k := range calls {
		calls[k].ID = newCallID()
		calls[k].Function.Index = an.calls
		an.calls++
	}
	if part.Content == "" && part.Thinking == "" && len(calls) == 0 {
		return nil
	}
	t := turn{index: i, content: part.Content, thinking: part.Thinking, calls: calls, logprobs: an.logprobs}
	an.logprobs = nil
	return a.emit(t)
}

// ends emits the last turn of each answer. They all have the counters of the whole request.
func (a *answering) ends(ctx context.Context) error {
	total, first := a.s.now().Sub(a.start), time.Duration(0)
	if !a.first.IsZero() {
		first = a.first.Sub(a.start)
	}
	a.s.meters.generated(a.m.Name, a.usage, first, total)
	for i := range a.answers {
		an := &a.answers[i]
		if an.reason == "" { // the runner ended all at once
			an.reason = "stop"
			if err := a.hand(i, a.read(i, runner.Chunk{}, true)); err != nil {
				return err
			}
		}
		end := &turnEnd{reason: an.reason, stop: an.stop, called: an.calls > 0, cached: a.usage.CachedTokens,
			counters: countersOf(total, a.lease.LoadDuration(), a.usage, a.note != "")}
		if a.context != nil {
			var err error
			if end.context, err = a.context(an.raw.String()); err != nil { // an answer stands without them
				a.s.cfg.Log.WarnContext(ctx, "no context on the last line", "request_id", requestIDOf(a.c), "error", err)
			}
		}
		if err := a.emit(turn{index: i, logprobs: an.logprobs, end: end}); err != nil {
			return err
		}
	}
	return nil
}

// logprobsOf writes a runner's log probabilities as Ollama has them.
func logprobsOf(in []runner.Logprob) []api.Logprob {
	one := func(l runner.Logprob) api.TokenLogprob {
		t := api.TokenLogprob{Token: l.Token, Logprob: l.Logprob}
		for _, b := range l.Bytes {
			t.Bytes = append(t.Bytes, int(b))
		}
		return t
	}
	var out []api.Logprob
	for _, l := range in {
		lp := api.Logprob{TokenLogprob: one(l)}
		for _, top := range l.Top {
			lp.TopLogprobs = append(lp.TopLogprobs, one(top))
		}
		out = append(out, lp)
	}
	return out
}
