package main

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

// answer is what came of one request, and when.
type answer struct {
	texts  map[int]string // by the answer's index
	pieces []string       // of the lines
	gaps   []float64      // logarithms of the first choice's probability over the second's, where they were asked for
	begin  time.Time
	times  []time.Time // of each line with text
	end    time.Time
	tokens int // generated
	prompt int
}

func (a *answer) text() string         { return a.texts[0] }
func (a *answer) first() time.Duration { return a.times[0].Sub(a.begin) }

// rate is tokens a second from the first to the last.
func (a *answer) rate() float64 {
	return float64(a.tokens-1) / a.times[len(a.times)-1].Sub(a.times[0]).Seconds()
}

// gap is the longest time without a token.
func (a *answer) gap() time.Duration {
	var most time.Duration
	for i := 1; i < len(a.times); i++ {
		most = max(most, a.times[i].Sub(a.times[i-1]))
	}
	return most
}

// request is one to /api/generate.
type request struct {
	model, prompt string
	tokens        int
	options       map[string]any
	fields        map[string]any
}

// ask sends a request and reads its stream to the end.
func (s *server) ask(ctx context.Context, r request) (*answer, error) {
	options := map[string]any{"num_ctx": 4096, "num_thread": runtime.NumCPU(), "temperature": 0, "seed": 1, "repeat_penalty": 1, "num_predict": r.tokens}
	for k, v := range r.options {
		options[k] = v
	}
	body := map[string]any{"model": r.model, "prompt": r.prompt, "raw": true, "stream": true, "options": options}
	for k, v := range r.fields {
		body[k] = v
	}
	a := &answer{begin: time.Now(), texts: map[int]string{}}
	resp, err := s.post(ctx, "/api/generate", body)
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
			return nil, fmt.Errorf("%s: %s", s.name(), line.Error)
		}
		if line.Response != "" {
			a.times = append(a.times, time.Now())
			a.texts[line.Index] += line.Response
			a.pieces = append(a.pieces, line.Response)
		}
		for _, l := range line.Logprobs {
			if len(l.Top) > 1 {
				a.gaps = append(a.gaps, l.Top[0].Logprob-l.Top[1].Logprob)
			}
		}
		if line.Done {
			ended = true
			a.end = time.Now()
			a.tokens, a.prompt = a.tokens+line.Eval, max(a.prompt, line.Prompt)
		}
	}
	switch {
	case lines.Err() != nil:
		return a, lines.Err()
	case !ended || len(a.times) == 0:
		return a, fmt.Errorf("%s: the stream ended without an answer", s.name())
	}
	return a, nil
}

// askAll sends requests at the same time, and says how long all took.
func (s *server) askAll(ctx context.Context, requests []request) ([]*answer, time.Duration, error) {
	answers, errs := make([]*answer, len(requests)), make([]error, len(requests))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, r := range requests {
		wg.Go(func() { answers[i], errs[i] = s.ask(ctx, r) })
	}
	wg.Wait()
	return answers, time.Since(begin), errors.Join(errs...)
}

// warm loads the model.
func (s *server) warm(ctx context.Context, model string) error {
	_, err := s.ask(ctx, request{model: model, prompt: "Hello", tokens: 2})
	if err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	return nil
}

func warmAll(ctx context.Context, servers ...*server) error {
	for _, s := range servers {
		if err := s.warm(ctx, "q05"); err != nil {
			return err
		}
	}
	return nil
}

func chatML(text string) string {
	return "<|im_start|>user\n" + strings.TrimSpace(text) + "<|im_end|>\n<|im_start|>assistant\n"
}
