package gateway

import (
	"fmt"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	reading "sluice/models/reply" // reply is a function here
	"sluice/scheduler"
)

// converse answers a dialog, handing each piece to emit. Before the first emit an error may still be answered with a status
// (s.fail); after it only in the stream. The lease is taken and given back inside. Of several answers the ends come last,
// one after the other. A dialog without messages loads its model, or lets it go where keepAlive is 0.
func (s *server) converse(c *gin.Context, d dialog, emit func(turn) error) (err error) {
	const op = "gateway.converse"
	defer s.catch(c, &err)
	if isAsk(d.model) {
		return s.converseAsk(c, d, emit)
	}
	start := s.now()
	m, err := s.model(c, d.model)
	if err != nil {
		return err
	}
	if len(d.messages) == 0 && d.keepAlive.unloads() {
		return s.unload(c, m, emit)
	}
	ask, err := asked{name: d.model, verb: "chat", think: d.think, lenientThink: d.lenientThink, format: d.format, options: d.options,
		logprobs: d.logprobs, topLogprobs: d.topLogprobs, n: d.n}.check(m)
	if err != nil {
		return err
	}
	for _, msg := range d.messages {
		if len(msg.Images) > 0 && !can(m, "vision") {
			return fault.New(fault.Invalid, op, "%q does not support images", printable(d.model, 200))
		}
	}
	tools, err := s.toolsFor(c, m, &d)
	if err != nil {
		return err
	}
	var force *forcedCall
	if tools != nil && d.choice.mode == "required" {
		if force, err = forceCall(tools, d.choice.name); err != nil {
			return err
		}
	}
	lease, opts, err := s.lease(c, m, d.options, d.keepAlive, prefixOf(c, m.Name, d.messages, tools))
	if err != nil {
		return err
	}
	defer lease.Release()
	if len(d.messages) == 0 {
		return emit(turn{end: &turnEnd{reason: "load", loaded: true, counters: countersOf(s.now().Sub(start), lease.LoadDuration(), noUsage, false)}})
	}

	conv := models.Conversation{Messages: d.messages, Tools: tools, Think: ask.think}
	away := lease.Report().Chats
	var fit fitted
	switch {
	case !away:
		fit, err = s.fit(c, m, lease, &conv, d.truncate, force != nil)
	case d.debugOnly:
		if err = readable(m); err == nil {
			fit.prompt, err = m.Prompt(conv)
		}
	default:
		fit, err = unfitted(m, conv)
	}
	if err != nil {
		return err
	}
	if d.debugOnly {
		return emit(turn{end: debugEnd(fit.prompt)})
	}
	schema, grammar := ask.schema, ask.grammar
	if force != nil {
		schema, grammar = force.schema, ""
		conv.Tools = nil // the reader leaves the forced call alone: it is read as a whole
		opts.Stop = nil  // texts that end an answer would cut the call's JSON where they stand in an argument
	}
	bound := schema != "" || grammar != ""
	if bound {
		fit.prompt = reading.Open(m, conv, fit.prompt)
	}
	what := scheduler.Completion{Prompt: fit.prompt.Text, Owner: wordOf(principal(c)), Images: fit.prompt.Images, Options: opts, Schema: schema, Grammar: grammar,
		Logprobs: d.logprobs, TopLogprobs: d.topLogprobs, N: d.n, Truncate: d.truncate, Shift: d.shift}
	if away {
		what.Chat = chatElsewhere(d.messages, tools, ask, force, d.choice.name)
	}
	readers := make([]*reading.Reader, max(1, d.n))
	for i := range readers {
		readers[i] = reading.New(m, conv, fit.prompt)
	}
	if bound {
		what.After = readers[0].After()
	}
	run := answering{s: s, c: c, m: m, lease: lease, start: start, note: fit.note(), readers: readers, force: force, one: d.choice.one, held: d.held, emit: emit}
	return run.generate(what)
}

// unload lets a model go. It goes when nobody uses it any more; the answer comes at once.
func (s *server) unload(c *gin.Context, m *models.Model, emit func(turn) error) error {
	start := s.now()
	if err := s.cfg.Scheduler.Unload(c.Request.Context(), m); err != nil {
		return err
	}
	return emit(turn{end: &turnEnd{reason: "unload", loaded: true, counters: countersOf(s.now().Sub(start), 0, noUsage, false)}})
}

func debugEnd(p models.Rendered) *turnEnd {
	return &turnEnd{reason: "stop", counters: countersOf(0, 0, noUsage, false), debug: &api.DebugInfo{RenderedTemplate: p.Text, ImageCount: len(p.Images)}}
}

// fit leaves out what does not fit into the context: first the tools where they are too large for it, then the oldest
// turns. It changes conv accordingly, and says what it did in headers and in the log.
func (s *server) fit(c *gin.Context, m *models.Model, lease *scheduler.Lease, conv *models.Conversation, truncate, forced bool) (fitted, error) {
	ctx := c.Request.Context()
	fitterOf := func(tools []api.Tool) fitter {
		return fitter{numCtx: lease.Report().NumCtx, truncate: truncate, tokenize: lease.Runner().Tokenize,
			render: func(msgs []api.Message) (models.Rendered, error) {
				return m.Prompt(models.Conversation{Messages: msgs, Tools: tools, Think: conv.Think})
			}}
	}
	f := fitterOf(conv.Tools)
	if len(conv.Tools) > 0 && truncate {
		roomy, taken, err := f.hasRoomFor(ctx, conv.Messages, fitterOf(nil))
		switch {
		case err != nil:
			return fitted{}, err
		case !roomy && forced:
			return fitted{}, &fault.Error{Code: fault.Invalid, Op: "gateway.tools", Kind: promptTooLong, Hint: "raise options.num_ctx, or give fewer tools",
				Msg: fmt.Sprintf("the tools take %d tokens, the context holds %d", taken, f.numCtx)}
		case !roomy:
			s.tellTools(c, toolsLeftOut)
			conv.Tools = nil
			f = fitterOf(nil)
		}
	}
	fit, err := f.chat(ctx, conv.Messages)
	if err != nil {
		return fitted{}, err
	}
	s.tellTruncated(c, fit)
	return fit, nil
}

// countPrompt counts the tokens of a dialog's prompt, with those that the tokenizer puts around it. It loads the model.
func (s *server) countPrompt(c *gin.Context, d dialog) (int, error) {
	m, err := s.model(c, d.model)
	if err != nil {
		return 0, err
	}
	ask, err := asked{name: d.model, verb: "chat", think: d.think, lenientThink: d.lenientThink, options: d.options}.check(m)
	if err != nil {
		return 0, err
	}
	tools, err := s.toolsFor(c, m, &d)
	if err != nil {
		return 0, err
	}
	if err := readable(m); err != nil {
		return 0, err
	}
	lease, _, err := s.lease(c, m, d.options, d.keepAlive, nil)
	if err != nil {
		return 0, err
	}
	defer lease.Release()
	prompt, err := m.Prompt(models.Conversation{Messages: d.messages, Tools: tools, Think: ask.think})
	if err != nil {
		return 0, err
	}
	tokens, err := lease.Runner().Tokenize(c.Request.Context(), prompt.Text, true)
	return len(tokens) + imageTokens*len(prompt.Images), err
}
