package gateway

import (
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

// truncatedHeader tells that a part of the prompt was left out: Ollama says nothing, and people wonder (#17889).
const truncatedHeader = "X-Sluice-Truncated"

// failedHeader is a trailer: a streamed result that failed in the middle.
const failedHeader = "X-Sluice-Failed"

// imageTokens is what an image counts until the engine has read it: Ollama's guess.
const imageTokens = 768

// fitted is a prompt that the runner will take.
type fitted struct {
	prompt  models.Rendered
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

// tellTruncated says in a header and in the log that a part of the prompt was left out.
func (s *server) tellTruncated(c *gin.Context, fit fitted) {
	if note := fit.note(); note != "" {
		c.Header(truncatedHeader, note)
		s.cfg.Log.Warn("prompt truncated to the context", "request_id", requestIDOf(c), "truncated", note)
	}
}

// fitter makes prompts fit into a context.
type fitter struct {
	numCtx   int
	truncate bool // false: too long is an error
	render   func([]api.Message) (models.Rendered, error)
	tokenize func(context.Context, string, bool) ([]int, error)
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
	for first < last && msgs[first].Role == "tool" { // the result of a call that is left out
		first++
	}
	kept := from(msgs, first)
	out := fitted{dropped: len(msgs) - len(kept), cut: found >= last}
	out.prompt, err = f.render(kept)
	return out, err
}

// text checks a prompt that has no turns to leave out.
func (f fitter) text(ctx context.Context, prompt models.Rendered) (fitted, error) {
	fits, err := f.fits(ctx, prompt)
	return fitted{prompt: prompt, cut: !fits}, err
}

// hasRoomFor tells whether the context has room for the tools that f renders and without does not: the last message fits
// beside them, and they take at most three quarters, so that there is something to talk with. taken is what they take; 0
// where it was not necessary to count.
func (f fitter) hasRoomFor(ctx context.Context, msgs []api.Message, without fitter) (roomy bool, taken int, err error) {
	whole, err := f.render(msgs)
	if err != nil || f.surelyFits(whole, 4) {
		return true, 0, err
	}
	least := from(msgs, len(msgs)-1)
	var counts [2]int
	for i, r := range []fitter{f, without} {
		prompt, err := r.render(least)
		if err != nil {
			return false, 0, err
		}
		if counts[i], err = r.count(ctx, prompt); err != nil {
			return false, 0, err
		}
	}
	taken = counts[0] - counts[1]
	return counts[0] <= f.numCtx && taken <= f.numCtx*3/4, taken, nil
}

// surelyFits tells without counting whether a prompt fits into a context, or into a quarter (parts: 4) of it.
func (f fitter) surelyFits(prompt models.Rendered, parts int) bool {
	const special = 8                                                            // tokens that a tokenizer adds by itself, with room to spare
	return len(prompt.Images) == 0 && len(prompt.Text)+special <= f.numCtx/parts // a token is a byte or more
}

func (f fitter) count(ctx context.Context, prompt models.Rendered) (int, error) {
	tokens, err := f.tokenize(ctx, prompt.Text, true)
	return len(tokens) + imageTokens*len(prompt.Images), err
}

// fits counts tokens. Where nothing may be left out, too long is an error.
func (f fitter) fits(ctx context.Context, prompt models.Rendered) (bool, error) {
	if f.surelyFits(prompt, 1) {
		return true, nil
	}
	tokens, err := f.count(ctx, prompt)
	if err != nil {
		return false, err
	}
	if tokens > f.numCtx && !f.truncate {
		// In the words that Anthropic has for it: Claude Code finds them, and then shortens the conversation.
		return false, &fault.Error{Code: fault.Invalid, Op: "gateway.truncate", Kind: promptTooLong,
			Msg:  fmt.Sprintf("prompt is too long: %d tokens > %d maximum", tokens, f.numCtx),
			Hint: "raise the context with options.num_ctx or SLUICE_CONTEXT_LENGTH, or have the oldest turns left out with truncate: true"}
	}
	return tokens <= f.numCtx, nil
}

// from is the messages from the i-th on, with the system messages before it.
func from(msgs []api.Message, i int) []api.Message {
	kept := slices.DeleteFunc(slices.Clone(msgs[:i]), func(m api.Message) bool { return m.Role != "system" })
	return append(kept, msgs[i:]...)
}
