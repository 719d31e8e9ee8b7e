package agent

import (
	"context"
	"strings"

	"github.com/tmc/langchaingo/llms"

	"sluice/fault"
)

// llm is langchaingo's view of our models: an llms.Model over a Completer. It is made for one ask and counts its calls.
type llm struct {
	completer Completer
	name      string
	calls     int
}

var _ llms.Model = (*llm)(nil)

// numCtx is the key of llms.CallOptions.Metadata that carries the context size, for which langchaingo has no option.
const numCtx = "num_ctx"

var roles = map[llms.ChatMessageType]string{
	llms.ChatMessageTypeSystem: "system", llms.ChatMessageTypeHuman: "user", llms.ChatMessageTypeAI: "assistant",
}

// GenerateContent asks the model. What our models cannot do through this door (tools, images, several choices) is
// refused, not left out in silence.
func (m *llm) GenerateContent(ctx context.Context, messages []llms.MessageContent, options ...llms.CallOption) (*llms.ContentResponse, error) {
	opts := llms.CallOptions{Model: m.name}
	for _, set := range options {
		set(&opts)
	}
	if len(opts.Tools) > 0 || len(opts.Functions) > 0 || opts.JSONMode || opts.N > 1 || opts.CandidateCount > 1 {
		return nil, fault.New(fault.Unimplemented, "agent.GenerateContent", "tools, JSON mode and several choices are not supported here")
	}
	c := Completion{
		Model: opts.Model, Temperature: opts.Temperature, Seed: opts.Seed, MaxTokens: opts.MaxTokens, Stop: opts.StopWords,
	}
	c.NumCtx, _ = opts.Metadata[numCtx].(int)
	for _, msg := range messages {
		turn, err := textOf(msg)
		if err != nil {
			return nil, err
		}
		c.Messages = append(c.Messages, turn)
	}
	m.calls++
	text, err := m.completer.Complete(ctx, c)
	if err != nil {
		return nil, err
	}
	text = beforeStop(text, opts.StopWords)
	if opts.StreamingFunc != nil {
		if err := opts.StreamingFunc(ctx, []byte(text)); err != nil {
			return nil, err
		}
	}
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text, StopReason: "stop"}}}, nil
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
