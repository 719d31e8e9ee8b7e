package beside

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Answer is what came of one request, and when.
type Answer struct {
	Texts  map[int]string // by the answer's index
	Pieces []string       // of the lines
	Gaps   []float64      // logarithms of the first choice's probability over the second's, where they were asked for
	Begin  time.Time
	Times  []time.Time // of each line with text
	End    time.Time
	Tokens int // generated
	Prompt int // tokens
}

// Text of the first answer.
func (a *Answer) Text() string { return a.Texts[0] }

// First is the time to the first token.
func (a *Answer) First() time.Duration { return a.Times[0].Sub(a.Begin) }

// Rate is tokens a second from the first to the last.
func (a *Answer) Rate() float64 {
	return float64(a.Tokens-1) / a.Times[len(a.Times)-1].Sub(a.Times[0]).Seconds()
}

// Decoding is tokens a second after the first token. Several may come in one line, so the first line counts none.
func (a *Answer) Decoding() float64 {
	return float64(a.Tokens-1) / a.End.Sub(a.Times[0]).Seconds()
}

// Gap is the longest time without a token.
func (a *Answer) Gap() time.Duration {
	var most time.Duration
	for i := 1; i < len(a.Times); i++ {
		most = max(most, a.Times[i].Sub(a.Times[i-1]))
	}
	return most
}

// Request is one to /api/generate.
type Request struct {
	Model, Prompt string
	Tokens        int // of the answer at most
	Options       map[string]any
	Fields        map[string]any // of the body
}

// Ask sends a request and reads its stream to the end.
func (s *Server) Ask(ctx context.Context, r Request) (*Answer, error) {
	options := map[string]any{"num_ctx": 4096, "num_thread": runtime.NumCPU(), "temperature": 0, "seed": 1, "repeat_penalty": 1, "num_predict": r.Tokens}
	for k, v := range r.Options {
		options[k] = v
	}
	body := map[string]any{"model": r.Model, "prompt": r.Prompt, "raw": true, "stream": true, "options": options}
	for k, v := range r.Fields {
		body[k] = v
	}
	a := &Answer{Begin: time.Now(), Texts: map[int]string{}}
	resp, err := s.Post(ctx, "/api/generate", body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	ended := false
	for lines.Scan() {
		var line struct {
			Response, Error string
			Index           int
			Done            bool
			Prompt          int `json:"prompt_eval_count"`
			Eval            int `json:"eval_count"`
			Logprobs        []struct {
				Top []struct{ Logprob float64 } `json:"top_logprobs"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		if line.Error != "" {
			return nil, fmt.Errorf("%s: %s", s.Name(), line.Error)
		}
		if line.Response != "" {
			a.Times = append(a.Times, time.Now())
			a.Texts[line.Index] += line.Response
			a.Pieces = append(a.Pieces, line.Response)
		}
		for _, l := range line.Logprobs {
			if len(l.Top) > 1 {
				a.Gaps = append(a.Gaps, l.Top[0].Logprob-l.Top[1].Logprob)
			}
		}
		if line.Done {
			ended = true
			a.End = time.Now()
			a.Tokens, a.Prompt = a.Tokens+line.Eval, max(a.Prompt, line.Prompt)
		}
	}
	switch {
	case lines.Err() != nil:
		return a, lines.Err()
	case !ended || len(a.Times) == 0:
		return a, fmt.Errorf("%s: the stream ended without an answer", s.Name())
	}
	return a, nil
}

// AskAll sends requests at the same time, and says how long all took.
func (s *Server) AskAll(ctx context.Context, requests []Request) ([]*Answer, time.Duration, error) {
	answers, errs := make([]*Answer, len(requests)), make([]error, len(requests))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, r := range requests {
		wg.Go(func() { answers[i], errs[i] = s.Ask(ctx, r) })
	}
	wg.Wait()
	return answers, time.Since(begin), errors.Join(errs...)
}

// Warm loads the model.
func (s *Server) Warm(ctx context.Context, model string) error {
	_, err := s.Ask(ctx, Request{Model: model, Prompt: "Hello", Tokens: 2})
	if err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return nil
}

func WarmAll(ctx context.Context, servers ...*Server) error {
	for _, s := range servers {
		if err := s.Warm(ctx, "q05"); err != nil {
			return err
		}
	}
	return nil
}

// ChatML is a prompt of one turn, as Qwen and SmolLM2 were trained on.
func ChatML(text string) string {
	return "<|im_start|>user\n" + strings.TrimSpace(text) + "<|im_end|>\n<|im_start|>assistant\n"
}
