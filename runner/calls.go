package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sluice/fault"
)

// reapGrace is how long a broken connection may wait to learn that the child died. The kernel closes a dying process's
// sockets before it can be waited for.
const reapGrace = 2 * time.Second

// Load loads a model; progress (0..1, and 1 at the end) may be nil. The end of ctx and Stop kill the child, because llama.cpp cannot
// be interrupted in a load. A refusal by the engine, such as a damaged file, is a *fault.Error; where memory ran out on the way, it is a
// fault.TooLarge of KindMemory. A crash is the error that Generate tells of.
func (p *Process) Load(ctx context.Context, req LoadRequest, progress func(float32)) (LoadReport, error) {
	var report *LoadReport
	defer p.loads()()
	kills := oomKills()
	err := stream(ctx, p, "loading the model", pathLoad, req, func(e LoadEvent) (bool, error) {
		switch {
		case e.Error != nil:
			return true, fromWire(e.Error)
		case e.Report != nil:
			report = e.Report
			if progress != nil {
				progress(1)
			}
			return true, nil
		case progress != nil:
			progress(e.Progress)
		}
		return false, nil
	})
	if ctx.Err() != nil {
		p.end()
		return LoadReport{}, fmt.Errorf("runner: load: %w", context.Cause(ctx))
	}
	if err != nil {
		return LoadReport{}, killedForMemory(err, kills, oomKills())
	}
	return *report, nil
}

// Generate streams a completion. An error of emit, or the end of ctx, ends the generation in the child. When the child dies
// in between, the error is a *fault.Error with code Busy whose cause is an *ExitError.
func (p *Process) Generate(ctx context.Context, req GenerateRequest, emit func(Chunk) error) error {
	defer p.begin()()
	return stream(ctx, p, "answering", pathGenerate, req, func(c Chunk) (bool, error) {
		if c.Error != nil {
			return true, fromWire(c.Error)
		}
		return c.Done, emit(c)
	})
}

// Embed embeds texts. It fails as Generate does.
func (p *Process) Embed(ctx context.Context, req EmbedRequest) (EmbedResponse, error) {
	var out EmbedResponse
	err := p.call(ctx, "embedding", pathEmbed, req, &out)
	return out, err
}

// Rerank scores documents. It fails as Generate does.
func (p *Process) Rerank(ctx context.Context, req RerankRequest) (RerankResponse, error) {
	var out RerankResponse
	err := p.call(ctx, "reranking", pathRerank, req, &out)
	return out, err
}

// SetThreads changes how many cores the child computes on, from its next batch on.
func (p *Process) SetThreads(ctx context.Context, n int) error {
	return p.call(ctx, "changing threads", pathThreads, threadsBody{Threads: n}, &struct{}{})
}

// Ping returns when the engine is between two batches, or idle.
func (p *Process) Ping(ctx context.Context) error {
	return p.call(ctx, "answering a ping", pathPing, struct{}{}, &struct{}{})
}

// Tokenize gives the token ids of a text; special adds those that the tokenizer puts around it (BOS, EOS).
func (p *Process) Tokenize(ctx context.Context, text string, special bool) ([]int, error) {
	var out tokensBody
	err := p.call(ctx, "tokenizing", pathTokenize, textBody{Text: text, Special: special}, &out)
	return out.Tokens, err
}

// Detokenize gives the text of token ids. An id that the model does not have is Invalid.
func (p *Process) Detokenize(ctx context.Context, tokens []int) (string, error) {
	var out textBody
	err := p.call(ctx, "detokenizing", pathDetokenize, tokensBody{Tokens: tokens}, &out)
	return out.Text, err
}

// stream sends a call and hands each line to next, until next says that it was the last one.
func stream[Line any](ctx context.Context, p *Process, doing, path string, in any, next func(Line) (last bool, err error)) error {
	body, err := p.post(ctx, doing, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	dec := json.NewDecoder(body)
	for {
		var line Line
		if err := dec.Decode(&line); err != nil {
			return p.broken(ctx, doing, err)
		}
		if last, err := next(line); last || err != nil {
			return err
		}
		// What the child sent before it heard of the caller's leaving may be whole in the buffer: it is not read on.
		if ctx.Err() != nil {
			return fmt.Errorf("runner: %s: %w", doing, context.Cause(ctx))
		}
	}
}

// call sends a call that is answered with one object.
func (p *Process) call(ctx context.Context, doing, path string, in, out any) error {
	defer p.begin()()
	body, err := p.post(ctx, doing, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(out); err != nil {
		return p.broken(ctx, doing, err)
	}
	return nil
}

// post sends a request and gives the body of a good answer.
func (p *Process) post(ctx context.Context, doing, path string, in any) (io.ReadCloser, error) {
	payload, err := json.Marshal(in)
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "runner", "the request cannot be sent to the model's runner")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://runner"+path, bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("runner: %w", err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, p.broken(ctx, doing, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var f failure
	if err := json.NewDecoder(resp.Body).Decode(&f); err != nil {
		return nil, p.broken(ctx, doing, fmt.Errorf("status %d: %w", resp.StatusCode, err))
	}
	if f.Error == nil {
		return nil, fault.Bug("the runner answered %s with status %d and no error", path, resp.StatusCode)
	}
	return nil, fromWire(f.Error)
}

// broken says why an exchange ended early: the caller left, the child died, or neither, which is a bug.
func (p *Process) broken(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("runner: %s: %w", doing, context.Cause(ctx))
	}
	late := time.NewTimer(reapGrace)
	defer late.Stop()
	select {
	case <-p.done:
	case <-ctx.Done():
		return fmt.Errorf("runner: %s: %w", doing, context.Cause(ctx))
	case <-late.C:
		return fmt.Errorf("runner: %s: the stream ended without a last line: %w", doing, err)
	}
	var exit *ExitError
	if errors.As(p.err, &exit) {
		return died(doing, exit)
	}
	return &fault.Error{
		Code: fault.Busy, Op: "runner", RetryAfter: time.Second, Err: err,
		Msg: fmt.Sprintf("the model's runner was stopped while %s; the next request loads the model again", doing),
	}
}
