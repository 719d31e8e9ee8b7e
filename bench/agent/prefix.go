package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"sluice/agent"
	"sluice/agent/eval"
	"sluice/bench/beside"
)

// prefixDatabases is how many databases agent.prefix looks at: the first of the set with two questions.
const prefixDatabases = 3

// prefix is the share of the schema's tokens that the second question about a database reads again, of the database where it is
// most. The first question meets a cold model.
func (m *measure) prefix(ctx context.Context, b *beside.Bench) (float64, error) {
	size := m.sizes[0]
	server, err := b.Server(ctx, beside.Setup{Ours: true, Loaded: 1})
	if err != nil {
		return 0, err
	}
	questions, err := eval.Load(m.set, m.tags)
	if err != nil {
		return 0, err
	}
	byDB, order := map[string][]string{}, []string{}
	for _, q := range questions {
		if byDB[q.DB] = append(byDB[q.DB], q.ID); len(byDB[q.DB]) == 2 {
			order = append(order, q.DB)
		}
	}
	if len(order) == 0 {
		return 0, errors.New("no database has two questions")
	}
	worst := 0.0
	for _, db := range order[:min(len(order), prefixDatabases)] {
		share, err := m.readAgain(ctx, &remote{server: server}, size, byDB[db][:2])
		if err != nil {
			return 0, fmt.Errorf("%s: %w", db, err)
		}
		fmt.Printf("  %-28s %.3f\n", db, share)
		worst = max(worst, share)
	}
	return worst, nil
}

// readAgain asks two questions, and compares the tokens of the second prompt's schema with those that were cached.
func (m *measure) readAgain(ctx context.Context, model *remote, size string, ids []string) (float64, error) {
	second := -1 // the second question's first call
	cfg := eval.Config{Dir: m.set, Model: size, Completer: model, Progress: os.Stderr, Keep: func(q eval.Question) bool { return q.ID == ids[0] || q.ID == ids[1] },
		Before: func(ctx context.Context, q eval.Question) error {
			if q.ID == ids[1] {
				second = len(model.calls)
				return nil
			}
			return model.forget(ctx, size, numCtx)
		}}
	if _, err := eval.Run(ctx, cfg); err != nil {
		return 0, err
	}
	if second <= 0 || second >= len(model.calls) {
		return 0, errors.New("a question was decided without the model")
	}
	asked := model.calls[second]
	schema, err := model.schemaTokens(ctx, asked.Completion)
	if err != nil {
		return 0, err
	}
	fmt.Printf("  prompt %d tokens, schema %d, cached %d\n", asked.prompt, schema, asked.cached)
	return float64(max(0, schema-asked.cached)) / float64(schema), nil
}

// schemaTokens counts the tokens of a prompt up to the end of its schema: those of the prompt that is cut there.
func (r *remote) schemaTokens(ctx context.Context, c agent.Completion) (int, error) {
	var cut agent.Completion
	for _, msg := range c.Messages {
		if at := strings.LastIndex(msg.Content, "\n);\n"); msg.Role == "user" && at >= 0 {
			cut.Messages = append(cut.Messages, agent.Message{Role: "user", Content: msg.Content[:at+3]})
			break
		}
		cut.Messages = append(cut.Messages, msg)
	}
	if len(cut.Messages) == len(c.Messages) {
		return 0, errors.New("the prompt has no schema")
	}
	cut.Model, cut.NumCtx, cut.MaxTokens = c.Model, c.NumCtx, 1
	if _, err := r.Complete(ctx, cut); err != nil {
		return 0, err
	}
	return r.calls[len(r.calls)-1].prompt, nil
}
