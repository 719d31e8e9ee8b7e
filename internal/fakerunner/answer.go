package main

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"sluice/fault"
	"sluice/runner"
)

// imageTokens is what an image costs of the context.
const imageTokens = 4

// answer is one of the n answers to a prompt.
type answer struct {
	index    int
	words    []string
	text     strings.Builder // all that was drawn
	sent     int             // bytes of text that were emitted
	drawn    int             // words
	logprobs []runner.Logprob
	reason   string // how it ended; "" while it goes on
}

func (f *fake) Generate(ctx context.Context, req runner.GenerateRequest, emit func(runner.Chunk) error) error {
	begin := time.Now()
	s, prompt, err := ofPrompt(f.script, req.Prompt)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "fakerunner", "%v", err)
	}
	if err := s.check(req); err != nil {
		return err
	}
	if s.hang {
		f.mu.Lock()
		f.hung = true
		f.mu.Unlock()
		select {}
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f.compute(s.spin)
	if err := wait(ctx, s.delay); err != nil {
		return err
	}
	usage, err := f.read(prompt, len(req.Images), req.Truncate)
	if err != nil {
		return err
	}
	usage.PromptDuration = time.Since(begin)
	begin = time.Now()
	answers := s.answers(prompt, req)
	for open := len(answers); open > 0; {
		if s.rate > 0 {
			err = wait(ctx, time.Duration(float64(time.Second)/s.rate))
		}
		if err != nil || ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for _, a := range answers {
			if a.reason != "" {
				continue
			}
			if err := a.step(s, req, &usage); err != nil {
				return err
			}
			chunk := a.chunk(req)
			if a.reason != "" {
				if open--; open == 0 {
					usage.EvalDuration = time.Since(begin)
					chunk.Done, chunk.Usage = true, &usage
				}
			}
			if chunk.Text == "" && chunk.DoneReason == "" {
				continue
			}
			if err := emit(chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// compute keeps a core busy, as one long batch does.
func (f *fake) compute(d time.Duration) {
	if d <= 0 {
		return
	}
	f.batch.Lock()
	defer f.batch.Unlock()
	for begin := time.Now(); time.Since(begin) < d; {
	}
}

// check refuses what the script's model cannot, and what no model can.
func (s script) check(req runner.GenerateRequest) error {
	invalid := func(format string, args ...any) error { return fault.New(fault.Invalid, "fakerunner", format, args...) }
	switch {
	case s.pooled:
		return invalid("this model makes embeddings only; it cannot answer a prompt")
	case s.reranks:
		return invalid("this model scores pairs of texts; it cannot answer a prompt")
	case len(req.Images) > 0 && !s.vision:
		return invalid("this model does not take images")
	case req.Schema != "" && req.Grammar != "":
		return invalid("a schema and a grammar cannot both hold")
	case req.TopLogprobs < 0 || req.TopLogprobs > 20:
		return invalid("top_logprobs is %d; it must be from 0 to 20", req.TopLogprobs)
	case req.Draft != runner.DraftAuto && req.Draft != runner.DraftOff && req.Draft != runner.DraftExpect:
		return invalid("draft %q is none of off, expect", req.Draft)
	case req.N < 0:
		return invalid("n is %d; it must be at least 1", req.N)
	}
	return nil
}

// answers are what the script has the model say: its texts in turn, the count of images, or the prompt's own words.
func (s script) answers(prompt string, req runner.GenerateRequest) []*answer {
	var out []*answer
	for i := range max(1, req.N) {
		text := prompt
		switch {
		case len(s.texts) > 0:
			text = s.texts[i%len(s.texts)]
		case len(req.Images) > 0:
			text = fmt.Sprint(len(req.Images), " images:")
			for _, image := range req.Images {
				text += fmt.Sprint(" ", len(image))
			}
		}
		out = append(out, &answer{index: i, words: words(text)})
	}
	return out
}

// step draws one word, or ends the answer.
func (a *answer) step(s script, req runner.GenerateRequest, usage *runner.Usage) error {
	end := s.tokens
	if end == 0 {
		end = len(a.words)
	}
	switch n := a.drawn; {
	case req.NumPredict >= 0 && n >= req.NumPredict:
		a.reason = "length"
		return nil
	case end > 0 && n == end:
		a.reason = "stop"
		return nil
	case s.dieAfter > 0 && n == s.dieAfter:
		die()
	case s.errAfter > 0 && n == s.errAfter:
		return fault.New(fault.Busy, "fakerunner", "the script lets the answer fail")
	}
	word := fmt.Sprintf(" w%d", a.drawn)
	if a.drawn < len(a.words) {
		word = a.words[a.drawn]
	}
	a.drawn++
	usage.EvalTokens++
	a.text.WriteString(word)
	if req.Logprobs {
		a.logprobs = append(a.logprobs, logprob(word, req.TopLogprobs))
	}
	if _, stop := cut(a.text.String(), req.Stop); stop != "" {
		a.reason = "stop"
	}
	return nil
}

// chunk takes what may be sent: all that cannot be the beginning of a stop text, and all that is left at the end.
func (a *answer) chunk(req runner.GenerateRequest) runner.Chunk {
	safe, stop := cut(a.text.String(), req.Stop)
	if a.reason != "" && stop == "" {
		safe = a.text.Len()
	}
	c := runner.Chunk{Index: a.index, DoneReason: a.reason, Stop: stop}
	if safe > a.sent {
		c.Text, a.sent = a.text.String()[a.sent:safe], safe
	}
	if c.Text != "" || a.reason != "" {
		c.Logprobs, a.logprobs = a.logprobs, nil
	}
	return c
}

// logprob pretends that the word drawn had half of the probability, the next one half of the rest, and so on.
func logprob(word string, top int) runner.Logprob {
	lp := runner.Logprob{Token: word, Bytes: []byte(word), Logprob: -math.Ln2}
	for i := range top {
		alt := word
		if i > 0 {
			alt = fmt.Sprintf("%s~%d", word, i)
		}
		lp.Top = append(lp.Top, runner.Logprob{Token: alt, Bytes: []byte(alt), Logprob: -math.Ln2 * float64(i+1)})
	}
	return lp
}

// read counts the prompt, and how much of it a prompt before began with.
func (f *fake) read(prompt string, images int, truncate bool) (runner.Usage, error) {
	tokens := words(prompt)
	if len(tokens) == 0 {
		return runner.Usage{}, fault.New(fault.Invalid, "fakerunner", "the prompt is empty")
	}
	usage := runner.Usage{PromptTokens: len(tokens) + imageTokens*images}
	if usage.PromptTokens > f.numCtx {
		if !truncate {
			return usage, fault.New(fault.Invalid, "fakerunner",
				"the input length exceeds the context length: the prompt has %d tokens, the context %d", usage.PromptTokens, f.numCtx)
		}
		usage.PromptTokens, usage.Truncated = f.numCtx, true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, before := range f.held {
		n, held := 0, words(before)
		for n < min(len(held), len(tokens), usage.PromptTokens-1) && held[n] == tokens[n] {
			n++
		}
		usage.CachedTokens = max(usage.CachedTokens, n)
	}
	f.held = append(f.held, prompt)
	if len(f.held) > f.parallel {
		f.held = f.held[1:]
	}
	return usage, nil
}

// cut says how much of a text may be sent: up to the earliest stop string, or up to what may become one.
func cut(text string, stops []string) (safe int, stop string) {
	safe = len(text)
	for _, s := range stops {
		if i := strings.Index(text, s); i >= 0 && s != "" && (i < safe || stop == "") {
			safe, stop = i, s
		}
	}
	for _, s := range stops {
		for n := len(s) - 1; n > 0 && stop == ""; n-- {
			if strings.HasSuffix(text, s[:n]) {
				safe = min(safe, len(text)-n)
				break
			}
		}
	}
	return safe, stop
}
