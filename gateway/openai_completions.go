package gateway

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// openaiCompletionRequest is the old API's: text in, text out. As with Ollama, the text goes through the model's template
// unless raw (an extension, Ollama's) says that it is the prompt as it stands.
type openaiCompletionRequest struct {
	openaiFields
	Prompt   promptTexts `json:"prompt"`
	Suffix   string      `json:"suffix"`
	Echo     bool        `json:"echo"`
	BestOf   *int        `json:"best_of"`
	Logprobs *int        `json:"logprobs"` // how many alternatives for each token; null none at all
	Raw      bool        `json:"raw"`
}

// maxPrompts bounds how long one request holds its model.
const maxPrompts = 128

// promptTexts is a text or a list of texts.
type promptTexts []string

// errTokenIDs says why lists of numbers are no texts here (#12441).
var errTokenIDs = errors.New("token ids belong to the tokenizer of the client's model, not of this one: send the text itself")

// UnmarshalJSON reads either form.
func (p *promptTexts) UnmarshalJSON(b []byte) error {
	var one *string
	if json.Unmarshal(b, &one) == nil {
		if *p = nil; one != nil {
			*p = promptTexts{*one}
		}
		return nil
	}
	var list []string
	if json.Unmarshal(b, &list) == nil {
		*p = list
		return nil
	}
	if areTokenIDs(b) {
		return errTokenIDs
	}
	return errors.New("prompt must be a text or a list of texts")
}

// areTokenIDs tells whether a value is a list of numbers, or of such lists.
func areTokenIDs(b []byte) bool {
	var ids []float64
	var lists [][]float64
	return json.Unmarshal(b, &ids) == nil || json.Unmarshal(b, &lists) == nil
}

func (r *openaiCompletionRequest) check() error {
	if err := r.openaiFields.check(); err != nil {
		return err
	}
	best := r.generated()
	switch {
	case len(r.Prompt) == 0:
		return invalid("prompt is missing")
	case len(r.Prompt) > maxPrompts:
		return invalid("%d prompts: at most %d go into one request", len(r.Prompt), maxPrompts)
	case r.Suffix == "" && slices.Contains(r.Prompt, ""):
		return invalid("prompt[%d] is empty", slices.Index(r.Prompt, ""))
	case r.Logprobs != nil && (*r.Logprobs < 0 || *r.Logprobs > 20):
		return invalid("logprobs must be between 0 and 20")
	case r.Echo && r.Logprobs != nil:
		return invalid("echo and logprobs do not go together: the probabilities of a prompt's tokens are not computed")
	case best < r.answers() || best > maxAnswers:
		return invalid("best_of must be between n and %d", maxAnswers)
	case best > r.answers() && r.Stream:
		return invalid("best_of above n cannot be streamed: which answers are the best is known at the end")
	}
	return nil
}

// generated is how many answers are made of each prompt, of which the n best are given.
func (r *openaiCompletionRequest) generated() int {
	if r.BestOf != nil {
		return *r.BestOf
	}
	return r.answers()
}

// text is the request for one of the prompts.
func (r *openaiCompletionRequest) text(prompt string, options map[string]any) textRequest {
	t := textRequest{model: r.Model, prompt: prompt, suffix: r.Suffix, raw: r.Raw, plain: true, options: options, keepAlive: r.KeepAlive,
		truncate: r.truncates(), shift: r.shifts(), n: r.generated(), held: !r.Stream, logprobs: r.Logprobs != nil || r.generated() > r.answers()}
	if r.Logprobs != nil {
		t.topLogprobs = *r.Logprobs
	}
	return t
}

type textCompletion struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"`
	Created           int64        `json:"created"` // Unix seconds
	Model             string       `json:"model"`
	SystemFingerprint string       `json:"system_fingerprint"`
	Choices           []textChoice `json:"choices"`
	Usage             *openaiUsage `json:"usage,omitempty"`
}

type textChoice struct {
	Text         string        `json:"text"`
	Index        int           `json:"index"`
	Logprobs     *textLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"` // null but on the last piece
}

// textLogprobs are tokens in the old API's form: lists side by side.
type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters of the answer
}

// openaiCompletions is POST /v1/completions. Prompts are answered one after the other, in their order.
func (s *server) openaiCompletions(c *gin.Context) {
	var req openaiCompletionRequest
	err := decode(c, &req)
	if err == nil {
		err = req.check()
	}
	var options map[string]any
	if err == nil {
		options, err = req.ollamaOptions()
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	head := textCompletion{ID: newID("cmpl-"), Object: "text_completion", Created: s.now().Unix(), Model: req.Model, SystemFingerprint: s.fingerprint(), Choices: []textChoice{}}
	out := sseStream{s: s, c: c}
	var usage openaiUsage
	for i, prompt := range req.Prompt {
		answers := textAnswers{req: &req, first: i * req.answers(), prompt: prompt, answers: make([]textAnswer, req.generated())}
		err = s.completeText(c, req.text(prompt, options), func(t turn) error {
			piece, err := answers.take(t)
			if err != nil || !req.Stream || piece.Text == "" && piece.Logprobs == nil && piece.FinishReason == nil {
				return err
			}
			chunk := head
			chunk.Choices = []textChoice{piece}
			return out.send("", chunk)
		})
		if err == nil {
			err = answers.missing()
		}
		if err != nil {
			out.endOpenAI(err)
			return
		}
		usage.add(answers.usage)
		if !req.Stream {
			head.Choices = append(head.Choices, answers.best()...)
		}
	}
	if !req.Stream {
		head.Usage = &usage
		writeJSON(c, 200, head)
		return
	}
	if req.usageWanted() {
		chunk := head
		chunk.Choices, chunk.Usage = []textChoice{}, &usage
		if err := out.send("", chunk); err != nil {
			noteFailure(c, err)
			return
		}
	}
	out.endOpenAI(nil)
}

// textAnswers collects the answers to one prompt.
type textAnswers struct {
	req     *openaiCompletionRequest
	first   int // index of the first choice
	prompt  string
	answers []textAnswer
	usage   openaiUsage
}

type textAnswer struct {
	text     strings.Builder
	logprobs []api.Logprob
	length   int // characters of the tokens so far
	begun    bool
	end      *turnEnd
}

// take keeps a piece, and gives it as a stream has it.
func (a *textAnswers) take(t turn) (textChoice, error) {
	if t.index < 0 || t.index >= len(a.answers) {
		return textChoice{}, fault.Bug("a piece of answer %d of %d", t.index, len(a.answers))
	}
	one := &a.answers[t.index]
	piece := textChoice{Index: a.first + t.index, Text: t.content}
	if !one.begun && a.req.Echo {
		piece.Text = a.prompt + piece.Text
	}
	one.begun = true
	if !a.req.Stream {
		one.text.WriteString(piece.Text)
		one.logprobs = append(one.logprobs, t.logprobs...)
	}
	if a.req.Logprobs != nil && len(t.logprobs) > 0 {
		piece.Logprobs = legacyLogprobs(t.logprobs, &one.length)
	}
	if t.end != nil {
		one.end, a.usage = t.end, usageOf(t.end)
		piece.FinishReason = &t.end.reason
	}
	return piece, nil
}

func (a *textAnswers) missing() error {
	if i := slices.IndexFunc(a.answers, func(one textAnswer) bool { return one.end == nil }); i >= 0 {
		return fault.Bug("answer %d of %d has no end", i, len(a.answers))
	}
	return nil
}

// best are the n answers whose tokens were the most likely, on average, or all.
func (a *textAnswers) best() []textChoice {
	order := make([]*textAnswer, len(a.answers))
	for i := range a.answers {
		order[i] = &a.answers[i]
	}
	if n := a.req.answers(); n < len(order) {
		slices.SortStableFunc(order, func(x, y *textAnswer) int {
			switch mx, my := meanLogprob(x.logprobs), meanLogprob(y.logprobs); {
			case mx > my:
				return -1
			case mx < my:
				return 1
			}
			return 0
		})
		order = order[:n]
	}
	out := make([]textChoice, len(order))
	for i, one := range order {
		out[i] = textChoice{Index: a.first + i, Text: one.text.String(), FinishReason: &one.end.reason}
		if a.req.Logprobs != nil {
			var from int
			out[i].Logprobs = legacyLogprobs(one.logprobs, &from)
		}
	}
	return out
}

func meanLogprob(list []api.Logprob) float64 {
	sum := 0.0
	for _, l := range list {
		sum += logarithm(l.Logprob)
	}
	return sum / float64(max(1, len(list)))
}

// legacyLogprobs writes tokens that begin at character *from of the answer, and moves it behind them.
func legacyLogprobs(list []api.Logprob, from *int) *textLogprobs {
	out := &textLogprobs{Tokens: []string{}, TokenLogprobs: []float64{}, TopLogprobs: []map[string]float64{}, TextOffset: []int{}}
	for _, l := range list {
		out.Tokens = append(out.Tokens, l.Token)
		out.TokenLogprobs = append(out.TokenLogprobs, logarithm(l.Logprob))
		top := map[string]float64{}
		for _, t := range l.TopLogprobs {
			top[t.Token] = logarithm(t.Logprob)
		}
		out.TopLogprobs = append(out.TopLogprobs, top)
		out.TextOffset = append(out.TextOffset, *from)
		*from += utf8.RuneCountInString(l.Token)
	}
	return out
}
