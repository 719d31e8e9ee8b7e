package agent

import (
	"context"
	"strings"
	"time"

	"github.com/tmc/langchaingo/llms"

	"sluice/fault"
)

// llm is langchaingo's view of our models: an llms.Model over a Completer. It is made for one ask and counts its calls and
// the time that they took.
type llm struct {
	completer Completer
	name      string
	now       func() time.Time // nil does not measure
	calls     int
	took      time.Duration
}

var _ llms.Model = (*llm)(nil)

// Keys of llms.CallOptions.Metadata that carry what langchaingo has no option for.
const (
	numCtx     = "num_ctx" // int
	grammarKey = "grammar" // string
	expectKey  = "expect"  // bool
)

var roles = map[llms.ChatMessageType]string{
	llms.ChatMessageTypeSystem: "system", llms.ChatMessageTypeHuman: "user", llms.ChatMessageTypeAI: "assistant",
}

// GenerateContent asks the model. What our models cannot do through this door (tools, images) is refused, not left out in
// silence.
func (m *llm) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	opts := llms.CallOptions{Model: m.name}
	for _, set := range options {
		set(&opts)
	}
	if len(opts.Tools) > 0 || len(opts.Functions) > 0 || opts.JSONMode || opts.CandidateCount > 1 {
		return nil, fault.New(fault.Unimplemented, "agent.GenerateContent", "tools and JSON mode are not supported here")
	}
	c := Completion{
		Model: opts.Model, Temperature: opts.Temperature, Seed: opts.Seed, MaxTokens: opts.MaxTokens, Stop: opts.StopWords,
		N: opts.N, RepeatPenalty: opts.RepetitionPenalty,
	}
	c.NumCtx, _ = opts.Metadata[numCtx].(int)
	c.Grammar, _ = opts.Metadata[grammarKey].(string)
	c.Expect, _ = opts.Metadata[expectKey].(bool)
	for _, msg := range messages {
		turn, err := textOf(msg)
		if err != nil {
			return nil, err
		}
		c.Messages = append(c.Messages, turn)
	}
	texts, err := m.complete(ctx, c)
	if err != nil {
		return nil, err
	}
	var resp llms.ContentResponse
	for _, text := range texts {
		resp.Choices = append(resp.Choices, &llms.ContentChoice{Content: beforeStop(text, opts.StopWords), StopReason: "stop"})
	}
	if opts.StreamingFunc != nil {
		if err := opts.StreamingFunc(ctx, []byte(resp.Choices[0].Content)); err != nil {
			return nil, err
		}
	}
	return &resp, nil
}

func (m *llm) complete(ctx context.Context, c Completion) ([]string, error) {
	m.calls++
	if m.now != nil {
		started := m.now()
		defer func() { m.took += m.now().Sub(started) }()
	}
	texts, err := m.completer.Complete(ctx, c)
	if err == nil && len(texts) == 0 {
		return nil, fault.Bug("agent: the model gave no answer and no error")
	}
	return texts, err
}

// Call is langchaingo's older, single-prompt form of GenerateContent.
func (m *llm) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

func textOf(msg llms.MessageContent) (Message, error) {
	role, ok := roles[msg.Role]
	if !ok {
		return Message{}, fault.New(fault.Unimplemented, "agent.GenerateContent", "messages of role %s are not supported here", msg.Role)
	}
	var b strings.Builder
	for _, part := range msg.Parts {
		text, ok := part.(llms.TextContent)
		if !ok {
			return Message{}, fault.New(fault.Unimplemented, "agent.GenerateContent", "only text is supported here")
		}
		b.WriteString(text.Text)
	}
	return Message{Role: role, Content: b.String()}, nil
}

// beforeStop cuts at the first stop word. An engine that stops by tokens may hand over the word itself.
func beforeStop(text string, stops []string) string {
	for _, stop := range stops {
		if i := strings.Index(text, stop); stop != "" && i >= 0 {
			text = text[:i]
		}
	}
	return text
}
