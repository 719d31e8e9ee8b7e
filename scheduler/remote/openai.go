package remote

import (
	"context"
	"encoding/json"

	"github.com/ollama/ollama/api"

	"sluice/runner"
)

// generateOpenAI asks chat/completions, or completions for a text.
func (r *Runner) generateOpenAI(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	path, body := "/v1/completions", r.textBody(req)
	if req.Chat != nil && len(req.Chat.Messages) > 0 {
		path, body = "/v1/chat/completions", r.chatBody(req)
	} else if len(req.Images) > 0 {
		return r.s.cannot("images in a text without a conversation are not taken")
	}
	st := &streaming{s: r.s, emit: emit}
	all := newOpenAIAnswers(st, max(1, req.N))
	if err := st.lines(ctx, path, body, all.line, all.whole); err != nil {
		return err
	}
	return all.end()
}

// common is what both routes take.
func (r *Runner) common(req runner.GenerateRequest) map[string]any {
	opts := options(req)
	body := map[string]any{"model": r.id, "stream": true, "stream_options": map[string]any{"include_usage": true}}
	for ours, theirs := range map[string]string{
		"temperature": "temperature", "top_p": "top_p", "presence_penalty": "presence_penalty", "frequency_penalty": "frequency_penalty", "stop": "stop",
	} {
		if v, ok := opts[ours]; ok {
			body[theirs] = v
		}
	}
	if n, ok := integer(opts["num_predict"]); ok && n > 0 {
		body["max_tokens"] = n
	}
	if n, ok := integer(opts["seed"]); ok && n >= 0 {
		body["seed"] = n
	}
	if req.N > 1 {
		body["n"] = req.N
	}
	r.extend(body, opts, req)
	return body
}

// extend adds what only some servers know: others refuse a field that is not OpenAI's.
func (r *Runner) extend(body, opts map[string]any, req runner.GenerateRequest) {
	names := map[string]string{}
	switch r.flavour {
	case vllm, sglang:
		names = map[string]string{"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repetition_penalty"}
	case llamacpp:
		names = map[string]string{"top_k": "top_k", "min_p": "min_p", "repeat_penalty": "repeat_penalty", "repeat_last_n": "repeat_last_n", "typical_p": "typical_p"}
	case sluice:
		if req.Grammar != "" {
			opts["grammar"] = req.Grammar
		}
		body["options"] = opts
		if !req.Truncate {
			body["truncate"] = false
		}
		if !req.Shift {
			body["shift"] = false
		}
	}
	for ours, theirs := range names {
		if v, ok := opts[ours]; ok {
			body[theirs] = v
		}
	}
}

func (r *Runner) chatBody(req runner.GenerateRequest) map[string]any {
	c := req.Chat
	body := r.common(req)
	body["messages"] = openaiMessages(c.Messages)
	if len(c.Tools) > 0 {
		body["tools"] = c.Tools
	}
	if c.Force != nil {
		delete(body, "stop") // a text that ends an answer would cut the call where it stands in an argument
		body["tool_choice"] = "required"
		if c.Force.Tool != "" {
			body["tool_choice"] = map[string]any{"type": "function", "function": map[string]any{"name": c.Force.Tool}}
		}
	}
	if f := responseFormat(c.Format); f != nil {
		body["response_format"] = f
	}
	if req.Logprobs {
		body["logprobs"] = true
		if req.TopLogprobs > 0 {
			body["top_logprobs"] = req.TopLogprobs
		}
	}
	r.think(body, c.Think)
	return body
}

// think asks for a thought, or for none, in the words of each server. OpenAI itself knows lengths only.
func (r *Runner) think(body map[string]any, think *api.ThinkValue) {
	switch {
	case think == nil || think.Value == nil:
	case r.flavour == sluice:
		body["think"] = think.Value
	case think.IsString():
		body["reasoning_effort"] = think.Value
	case r.flavour == vllm || r.flavour == sglang || r.flavour == llamacpp:
		body["chat_template_kwargs"] = map[string]any{"enable_thinking": think.Bool()}
	}
}

func (r *Runner) textBody(req runner.GenerateRequest) map[string]any {
	body := r.common(req)
	body["prompt"] = req.Prompt
	if f := responseFormat(req.Schema); f != nil {
		body["response_format"] = f
	}
	if req.Logprobs {
		body["logprobs"] = max(1, req.TopLogprobs)
	}
	return body
}

// responseFormat writes a schema as response_format has it.
func responseFormat(schema string) map[string]any {
	switch schema {
	case "":
		return nil
	case "null":
		return map[string]any{"type": "json_object"}
	}
	return map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": json.RawMessage(schema)}}
}
