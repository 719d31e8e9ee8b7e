package remote

import (
	"context"
	"fmt"

	"sluice/fault"
)

// Tokenize gives the tokens of a text, where the server tells them: another Sluice, vLLM, SGLang and llama-server do. Else Unimplemented.
func (r *Runner) Tokenize(ctx context.Context, text string, special bool) ([]int, error) {
	path, err := r.tokenRoute("/tokenize", "count tokens")
	if err != nil {
		return nil, err
	}
	body := map[string]any{"model": r.id, "prompt": text, "add_special_tokens": special} // vLLM, SGLang
	switch r.flavour {
	case sluice:
		body = map[string]any{"model": r.id, "text": text, "special": special}
	case llamacpp:
		body = map[string]any{"content": text, "add_special": special}
	}
	var res struct {
		Tokens []int `json:"tokens"`
	}
	if _, err := r.s.call(ctx, path, body, &res, r.s.cfg.FirstByte, maxError+64*int64(len(text))); err != nil {
		return nil, r.untold(err, "count tokens")
	}
	if res.Tokens == nil && text != "" {
		return nil, r.s.lost(fmt.Errorf("no tokens for a text of %d bytes", len(text)))
	}
	return res.Tokens, nil
}

// Detokenize gives the text of tokens, as Tokenize.
func (r *Runner) Detokenize(ctx context.Context, tokens []int) (string, error) {
	path, err := r.tokenRoute("/detokenize", "tell what tokens mean")
	if err != nil {
		return "", err
	}
	var res struct {
		Prompt  string `json:"prompt"`  // vLLM
		Text    string `json:"text"`    // Sluice, SGLang
		Content string `json:"content"` // llama-server
	}
	if _, err := r.s.call(ctx, path, map[string]any{"model": r.id, "tokens": tokens}, &res, r.s.cfg.FirstByte, maxShow+256*int64(len(tokens))); err != nil {
		return "", r.untold(err, "tell what tokens mean")
	}
	return res.Prompt + res.Text + res.Content, nil
}

func (r *Runner) tokenRoute(path, what string) (string, error) {
	switch {
	case r.flavour == sluice:
		return "/api" + path, nil
	case r.s.cfg.Kind == Ollama:
		return "", r.unimplementedBy(what)
	}
	return path, nil
}

// untold is the error of a server that may have no such route, in whatever words it says so.
func (r *Runner) untold(err error, what string) error {
	if r.flavour != sluice && (isUnimplemented(err) || fault.CodeOf(err) == fault.NotFound) {
		return r.unimplementedBy(what)
	}
	return r.ended(err)
}
