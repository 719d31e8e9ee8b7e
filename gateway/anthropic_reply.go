package gateway

import (
	"errors"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// anthropicAnswer is Anthropic's message. Its fields are all there, null where nothing is known yet: clients with strict
// types refuse a message without them, which the module's own type makes.
type anthropicAnswer struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []any          `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        anthropicUsage `json:"usage"`

	stops []string // the request's stop sequences
}

// anthropicUsage counts tokens. As at Anthropic, those that came from the cache are not among the input tokens.
type anthropicUsage struct {
	InputTokens  int `json:"input_tokens"`
	CacheCreated int `json:"cache_creation_input_tokens"`
	CacheRead    int `json:"cache_read_input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// Blocks of an answer.
type (
	anthropicText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	anthropicThinking struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"` // Anthropic's own; clients want the field
	}
	anthropicToolUse struct {
		Type  string `json:"type"`
		ID    string `json:"id"`
		Name  string `json:"name"`
		Input any    `json:"input"`
	}
)

// add takes the next piece of an answer that is given whole.
func (m *anthropicAnswer) add(t turn) error {
	if t.thinking != "" {
		if last, ok := m.last().(*anthropicThinking); ok {
			last.Thinking += t.thinking
		} else {
			m.Content = append(m.Content, &anthropicThinking{Type: "thinking", Thinking: t.thinking})
		}
	}
	if t.content != "" {
		if last, ok := m.last().(*anthropicText); ok {
			last.Text += t.content
		} else {
			m.Content = append(m.Content, &anthropicText{Type: "text", Text: t.content})
		}
	}
	for _, call := range t.calls {
		m.Content = append(m.Content, &anthropicToolUse{Type: "tool_use", ID: call.ID, Name: call.Function.Name, Input: call.Function.Arguments})
	}
	if t.end != nil {
		m.end(t.end)
	}
	return nil
}

func (m *anthropicAnswer) last() any {
	if len(m.Content) == 0 {
		return nil
	}
	return m.Content[len(m.Content)-1]
}

// end says why the answer ended and what it cost. A stop text of the model's own is its way to end a turn.
func (m *anthropicAnswer) end(e *turnEnd) {
	reason := "end_turn"
	switch {
	case e.called:
		reason = "tool_use"
	case e.reason == "length":
		reason = "max_tokens"
	case e.stop != "" && slices.Contains(m.stops, e.stop):
		reason, m.StopSequence = "stop_sequence", &e.stop
	}
	m.StopReason = &reason
	if e.counters != nil {
		m.Usage.InputTokens = max(e.counters.PromptEvalCount-e.cached, 0)
		m.Usage.OutputTokens = e.counters.EvalCount
	}
	m.Usage.CacheRead = e.cached
}

// anthropicStream writes an answer as Anthropic's events: message_start, then the blocks one after the other, each with its
// index, then message_delta with reason and usage, and message_stop.
type anthropicStream struct {
	sse   sseStream
	msg   anthropicAnswer
	index int    // of the open block, or of the next one
	open  string // type of the open block, "" none
	err   error  // of the first event that could not be written; those after it are not tried
}

// add takes the next piece of an answer. Its error means that the client is gone.
func (a *anthropicStream) add(t turn) error {
	if !a.sse.started {
		// What the prompt costs is known at the end only; message_delta says it.
		a.send("message_start", gin.H{"message": a.msg})
	}
	if t.thinking != "" {
		a.openBlock("thinking", anthropicThinking{Type: "thinking"})
		a.delta(gin.H{"type": "thinking_delta", "thinking": t.thinking})
	}
	if t.content != "" {
		a.openBlock("text", anthropicText{Type: "text"})
		a.delta(gin.H{"type": "text_delta", "text": t.content})
	}
	for _, call := range t.calls {
		a.call(call)
	}
	if t.end != nil {
		a.closeBlock()
		a.msg.end(t.end)
		a.send("message_delta", gin.H{"delta": gin.H{"stop_reason": a.msg.StopReason, "stop_sequence": a.msg.StopSequence}, "usage": a.msg.Usage})
		a.send("message_stop", gin.H{})
	}
	return a.err
}

// call is a block of its own. Its arguments are text in pieces at Anthropic; here they are known at once.
func (a *anthropicStream) call(call api.ToolCall) {
	args, err := marshal(call.Function.Arguments)
	if err != nil {
		a.err = errors.Join(a.err, err)
		return
	}
	a.closeBlock()
	a.openBlock("tool_use", anthropicToolUse{Type: "tool_use", ID: call.ID, Name: call.Function.Name, Input: gin.H{}})
	a.delta(gin.H{"type": "input_json_delta", "partial_json": string(args)})
	a.closeBlock()
}

// openBlock starts a block unless one of its kind is open.
func (a *anthropicStream) openBlock(kind string, block any) {
	if a.open == kind {
		return
	}
	a.closeBlock()
	a.open = kind
	a.send("content_block_start", gin.H{"index": a.index, "content_block": block})
}

func (a *anthropicStream) closeBlock() {
	if a.open == "" {
		return
	}
	a.send("content_block_stop", gin.H{"index": a.index})
	a.open = ""
	a.index++
}

func (a *anthropicStream) delta(delta gin.H) {
	a.send("content_block_delta", gin.H{"index": a.index, "delta": delta})
}

// send writes an event, whose type is in its data too.
func (a *anthropicStream) send(event string, data gin.H) {
	data["type"] = event
	if a.err == nil {
		a.err = a.sse.send(event, data)
	}
}

// fail ends a stream that is out already. There is no message_stop behind it: the answer is not whole.
func (a *anthropicStream) fail(err error) {
	noteFailure(a.sse.c, err)
	f := fault.Public(err)
	// A failed write changes nothing: the client is gone, and the error is in the log.
	_ = a.sse.send("error", anthropicError(statusOf(f.Code), f, requestIDOf(a.sse.c)))
}
