package main

import (
	"context"
	"slices"
	"strings"

	"github.com/ollama/ollama/api"

	"sluice/agent"
	"sluice/fault"
	"sluice/models"
	"sluice/runner"
	"sluice/scheduler"
)

// agentOwner is for whom the agent's prompts are computed: who asked is not known here. The gateway's words are longer.
const agentOwner = "agent"

// completer gives the agent its model: the scheduler's lease, the model's own prompt template.
type completer struct {
	models    *models.Store
	scheduler *scheduler.Scheduler
}

// model finds an installed model, else one that a server elsewhere offers.
func (c *completer) model(name string) (*models.Model, error) {
	m, err := c.models.Get(name)
	if fault.CodeOf(err) != fault.NotFound {
		return m, err
	}
	for _, offered := range c.scheduler.Offered() {
		if models.SameName(offered.Name, name) {
			return offered, nil
		}
	}
	return m, err
}

func (c *completer) Complete(ctx context.Context, q agent.Completion) ([]string, error) {
	m, err := c.model(q.Model)
	if err != nil {
		return nil, err
	}
	messages := make([]api.Message, 0, len(q.Messages))
	for _, msg := range q.Messages {
		messages = append(messages, api.Message{Role: msg.Role, Content: msg.Content})
	}
	prompt, err := m.Prompt(models.Conversation{Messages: messages})
	if err != nil {
		return nil, err
	}
	request := map[string]any{"temperature": q.Temperature, "seed": q.Seed, "num_predict": q.MaxTokens, "num_ctx": q.NumCtx}
	if q.RepeatPenalty > 0 {
		request["repeat_penalty"] = q.RepeatPenalty
	}
	if q.MaxTokens <= 0 {
		request["num_predict"] = -1 // no limit of the asker's, and so none of the Modelfile's either
	}
	opts, _, err := m.Options(request)
	if err != nil {
		return nil, err
	}
	// Besides the Modelfile's own, without which many a model would write the next turn too.
	opts.Stop = append(slices.Clone(opts.Stop), q.Stop...)
	lease, err := c.scheduler.Lease(ctx, scheduler.Want{Model: m, Options: opts})
	if err != nil {
		return nil, err
	}
	defer lease.Release()
	// A schema that does not fit is refused, not truncated: cut, it would be a question about other tables.
	what := scheduler.Completion{Prompt: prompt.Text, Owner: agentOwner, Options: opts, Grammar: q.Grammar, N: q.N}
	if q.Expect {
		what.Draft = runner.DraftExpect
	}
	if lease.Report().Chats { // elsewhere, where prompts are rendered
		request["stop"] = opts.Stop
		what.Chat = &runner.Chat{Messages: messages, Options: request}
	}
	texts := make([]strings.Builder, max(1, q.N))
	err = lease.Generate(ctx, what, func(ch runner.Chunk) error {
		if ch.Index < 0 || ch.Index >= len(texts) {
			return fault.Bug("cmd: a runner gave answer %d of %d", ch.Index, len(texts))
		}
		texts[ch.Index].WriteString(ch.Text)
		return nil
	})
	out := make([]string, len(texts))
	for i := range texts {
		out[i] = texts[i].String()
	}
	return out, err
}
