package gateway

import (
	"context"
	"fmt"
	"sort"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// truncatedHeader tells that a part of the prompt was left out: Ollama says nothing, and people wonder (#17889).
const truncatedHeader = "X-Sluice-Truncated"

// failedHeader is a trailer: a streamed result that failed in the middle.
const failedHeader = "X-Sluice-Failed"

// fitted is a prompt that the runner will take.
type fitted struct {
	prompt  string
	dropped int  // messages left out
	cut     bool // what remains is still too long: the runner keeps its beginning and its end
}

// note is the value of truncatedHeader, "" when all of the prompt is there.
func (f fitted) note() string {
	switch {
	case f.cut && f.dropped > 0:
		return fmt.Sprintf("messages=%d, cut", f.dropped)
	case f.cut:
		return "cut"
	case f.dropped > 0:
		return fmt.Sprintf("messages=%d", f.dropped)
	}
	return ""
}

// fitter makes prompts fit into a context.
type fitter struct {
	numCtx   int
	truncate bool // false: too long is an error
	render   func([]api.Message) (string, error)
	tokenize func(context.Context, string) ([]int, error)
}

// chat leaves out the oldest turns, never a system message and never the last message, until the rest fits.
// Dropping more never makes a prompt longer, so the first turn to keep is found by halving.
func (f fitter) chat(ctx context.Context, msgs []api.Message) (fitted, error) {
	prompt, err := f.render(msgs)
	if err != nil {
		return fitted{}, err
	}
	if fits, err := f.fits(ctx, prompt); err != nil || fits {
		return fitted{prompt: prompt}, err
	}
	last := len(msgs) - 1
	found := sort.Search(last, func(i int) bool { // i+1 is the first message kept
		if err != nil {
			return true
		}
		var fits bool
		if prompt, err = f.render(from(msgs, i+1)); err == nil {
			fits, err = f.fits(ctx, prompt)
		}
		return fits
	})
	if err != nil {
		return fitted{}, err
	}
	first := min(found+1, last)
	kept := from(msgs, first)
	out := fitted{dropped: len(msgs) - len(kept), cut: found >= last}
	out.prompt, err = f.render(kept)
	return out, err
}

// text checks a prompt that has no turns to leave out.
func (f fitter) text(ctx context.Context, prompt string) (fitted, error) {
	fits, err := f.fits(ctx, prompt)
	return fitted{prompt: prompt, cut: !fits}, err
}

// fits counts tokens. Where nothing may be left out, too long is an error.
func (f fitter) fits(ctx context.Context, prompt string) (bool, error) {
	const special = 8 // tokens that a tokenizer adds by itself, with room to spare
	if len(prompt)+special <= f.numCtx {
		return true, nil // a token is a byte or more
	}
	tokens, err := f.tokenize(ctx, prompt)
	if err != nil {
		return false, err
	}
	if len(tokens) > f.numCtx && !f.truncate {
		return false, &fault.Error{Code: fault.Invalid, Op: "gateway.truncate",
			Msg:  fmt.Sprintf("the prompt has %d tokens, the context holds %d", len(tokens), f.numCtx),
			Hint: "raise options.num_ctx, or leave truncate out"}
	}
	return len(tokens) <= f.numCtx, nil
}

// from is the messages from the i-th on, with the system messages before it.
func from(msgs []api.Message, i int) []api.Message {
	var kept []api.Message
	for _, m := range msgs[:i] {
		if m.Role == "system" {
			kept = append(kept, m)
		}
	}
	return append(kept, msgs[i:]...)
}
