package gateway

import (
	"context"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
	reading "sluice/models/reply" // reply is a function here
	"sluice/runner"
	"sluice/scheduler"
)

// completeText goes on from a text, or fills a gap in one, as converse answers a dialog: the same errors, turns and ends.
func (s *server) completeText(c *gin.Context, t textRequest, emit func(turn) error) (err error) {
	defer s.catch(c, &err)
	if isAsk(t.model) {
		return s.completeAsk(c, t, emit)
	}
	start := s.now()
	m, err := s.model(c, t.model)
	if err != nil {
		return err
	}
	if t.prompt == "" && t.suffix == "" && t.keepAlive.unloads() {
		return s.unload(c, m, emit)
	}
	ask, err := asked{name: t.model, verb: "generate", think: t.think, format: t.format, options: t.options,
		logprobs: t.logprobs, topLogprobs: t.topLogprobs, n: t.n}.check(m)
	if err == nil {
		err = t.check(m)
	}
	if err != nil {
		return err
	}
	lease, opts, err := s.lease(c, m, t.options, t.keepAlive, prefixOfText(c, m.Name, t.system, t.prompt, t.images))
	if err != nil {
		return err
	}
	defer lease.Release()
	if t.prompt == "" && t.suffix == "" {
		return emit(turn{end: &turnEnd{reason: "load", loaded: true, counters: countersOf(s.now().Sub(start), lease.LoadDuration(), noUsage, false)}})
	}

	ctx := c.Request.Context()
	fit, chat, err := s.textPrompt(c, &t, m, lease, ask)
	if err != nil {
		return err
	}
	if t.debugOnly {
		return emit(turn{end: debugEnd(fit.prompt)})
	}
	run := answering{s: s, c: c, m: m, lease: lease, start: start, note: fit.note(), held: t.held, emit: emit}
	after := ""
	// What was asked for as text is text, unless thinking was asked for. A gap is filled with what stands there.
	if t.suffix == "" && (!t.raw || t.think.Bool()) {
		conv := models.Conversation{Messages: []api.Message{{Role: "user", Content: t.prompt}}, Think: ask.think}
		bound := ask.schema != "" || ask.grammar != ""
		if bound {
			fit.prompt = reading.Open(m, conv, fit.prompt)
		}
		run.readers = make([]*reading.Reader, max(1, t.n))
		for i := range run.readers {
			run.readers[i] = reading.New(m, conv, fit.prompt)
		}
		if bound {
			after = run.readers[0].After()
		}
	}
	what := scheduler.Completion{Prompt: fit.prompt.Text, Owner: wordOf(principal(c)), Images: fit.prompt.Images, Options: opts, Schema: ask.schema, Grammar: ask.grammar, After: after,
		Logprobs: t.logprobs, TopLogprobs: t.topLogprobs, N: t.n, Truncate: t.truncate, Shift: t.shift, Chat: chat}
	if !t.raw && chat == nil {
		// the old way to go on with a conversation: the next request sends this list back
		run.context = func(answer string) ([]int, error) { return lease.Runner().Tokenize(ctx, fit.prompt.Text+answer, false) }
	}
	return run.generate(what)
}

// textPrompt makes the prompt, and for a lease elsewhere what its server makes one of.
func (s *server) textPrompt(c *gin.Context, t *textRequest, m *models.Model, lease *scheduler.Lease, ask asked) (fitted, *runner.Chat, error) {
	ctx := c.Request.Context()
	if lease.Report().Chats {
		if t.debugOnly && !t.asText(lease.Report()) {
			if err := readable(m); err != nil {
				return fitted{}, nil, err
			}
			prompt, err := t.render(ctx, m, lease, ask.think)
			return fitted{prompt: prompt}, nil, err
		}
		prompt, chat, err := t.elsewhere(m, ask, lease.Report())
		return fitted{prompt: prompt}, chat, err
	}
	prompt, err := t.render(ctx, m, lease, ask.think)
	if err != nil || t.debugOnly {
		return fitted{prompt: prompt}, nil, err
	}
	fit, err := fitter{numCtx: lease.Report().NumCtx, truncate: t.truncate, tokenize: lease.Runner().Tokenize}.text(ctx, prompt)
	if err == nil {
		s.tellTruncated(c, fit)
	}
	return fit, nil, err
}

// check refuses what this model cannot do, and what does not go together.
func (t *textRequest) check(m *models.Model) error {
	const op = "gateway.generate"
	if t.suffix != "" && !t.raw {
		if err := mustSupport(m, t.model, "insert", "insert"); err != nil {
			return err
		}
	}
	switch {
	case t.raw && (t.template != "" || t.system != "" || len(t.context) > 0):
		return fault.New(fault.Invalid, op, "raw mode does not support template, system, or context")
	case t.raw && t.suffix != "":
		return &fault.Error{Code: fault.Invalid, Op: op, Msg: "raw mode does not support suffix", Hint: "write the model's own fill-in-the-middle tokens into the prompt"}
	case len(t.images) > 0 && !can(m, "vision"):
		return fault.New(fault.Invalid, op, "%q does not support images", printable(t.model, 200))
	}
	return checkTokens("context", t.context)
}

// render makes the prompt: the caller's own text when raw, else what the template makes of it, after the conversation
// that an earlier answer's context stands for.
func (t *textRequest) render(ctx context.Context, m *models.Model, l *scheduler.Lease, think *api.ThinkValue) (models.Rendered, error) {
	if t.raw {
		return models.Rendered{Text: t.prompt, Images: t.images}, nil
	}
	prompt, err := m.GeneratePrompt(models.Generation{Prompt: t.prompt, System: t.system, Template: t.template, Suffix: t.suffix, Images: t.images, Think: think})
	if err != nil || len(t.context) == 0 {
		return prompt, err
	}
	before, err := l.Runner().Detokenize(ctx, t.context)
	prompt.Text = before + prompt.Text
	return prompt, err
}
