package main

import (
	"context"
	"encoding/json"
	"fmt"

	"sluice/agent"
	"sluice/bench/beside"
)

// remote is a model on the server that is measured. It keeps what each call cost.
type remote struct {
	server *beside.Server
	calls  []call
}

type call struct {
	agent.Completion
	prompt, cached int // tokens of the prompt, and those of them that were not read again
}

type reply struct {
	Message struct {
		Content string `json:"content"`
	} `json:"message"`
	Choices []struct {
		Content string `json:"content"`
	} `json:"choices"`
	Prompt int `json:"prompt_eval_count"`
	Cached int `json:"prompt_cached_count"`
}

// Complete asks for what `sluice eval` asks for.
func (r *remote) Complete(ctx context.Context, q agent.Completion) ([]string, error) {
	messages := make([]map[string]string, 0, len(q.Messages))
	for _, m := range q.Messages {
		messages = append(messages, map[string]string{"role": m.Role, "content": m.Content})
	}
	options := map[string]any{"temperature": q.Temperature, "seed": q.Seed, "num_predict": q.MaxTokens, "num_ctx": q.NumCtx, "stop": q.Stop}
	if q.RepeatPenalty > 0 {
		options["repeat_penalty"] = q.RepeatPenalty
	}
	if q.Grammar != "" {
		options["grammar"] = q.Grammar
	}
	if q.Expect {
		options["draft"] = "expect"
	}
	request := map[string]any{"model": q.Model, "messages": messages, "stream": false, "truncate": false, "keep_alive": -1, "options": options}
	if q.N > 1 {
		request["n"] = q.N
	}
	var got reply
	if err := r.post(ctx, "/api/chat", request, &got); err != nil {
		return nil, err
	}
	r.calls = append(r.calls, call{q, got.Prompt, got.Cached})
	texts := []string{got.Message.Content}
	for i, choice := range got.Choices {
		if i == 0 {
			texts[0] = choice.Content
			continue
		}
		texts = append(texts, choice.Content)
	}
	return texts, nil
}

func (r *remote) post(ctx context.Context, path string, request, out any) error {
	resp, err := r.server.Post(ctx, path, request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// forget makes the model cold: its runner ends, and another loads it anew, with nothing in its cache.
func (r *remote) forget(ctx context.Context, model string, numCtx int) error {
	for _, request := range []map[string]any{
		{"model": model, "keep_alive": 0, "stream": false},
		{"model": model, "keep_alive": -1, "stream": false, "options": map[string]any{"num_ctx": numCtx}},
	} {
		var done struct {
			Reason string `json:"done_reason"`
		}
		if err := r.post(ctx, "/api/generate", request, &done); err != nil {
			return err
		}
	}
	return nil
}
