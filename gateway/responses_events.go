package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/openai"

	"sluice/fault"
)

// response is the answer of /v1/responses, and as far as it has come in a stream's first and last events. Strict clients
// want every field.
type response struct {
	ID                 string                             `json:"id"`
	Object             string                             `json:"object"`
	CreatedAt          int64                              `json:"created_at"` // Unix seconds
	CompletedAt        *int64                             `json:"completed_at"`
	Status             string                             `json:"status"` // in_progress, completed, incomplete, failed
	Background         bool                               `json:"background"`
	Error              *openai.ResponsesError             `json:"error"`
	IncompleteDetails  *openai.ResponsesIncompleteDetails `json:"incomplete_details"`
	Instructions       json.RawMessage                    `json:"instructions"`
	MaxOutputTokens    *int                               `json:"max_output_tokens"`
	MaxToolCalls       *int                               `json:"max_tool_calls"`
	Model              string                             `json:"model"`
	Output             []responseItem                     `json:"output"`
	ParallelToolCalls  bool                               `json:"parallel_tool_calls"`
	PreviousResponseID *string                            `json:"previous_response_id"`
	Reasoning          responsesEffort                    `json:"reasoning"`
	Store              bool                               `json:"store"` // always false: nothing is stored
	Temperature        float64                            `json:"temperature"`
	Text               responsesText                      `json:"text"`
	ToolChoice         json.RawMessage                    `json:"tool_choice"`
	Tools              []json.RawMessage                  `json:"tools"`
	TopLogprobs        int                                `json:"top_logprobs"`
	TopP               float64                            `json:"top_p"`
	Truncation         string                             `json:"truncation"`
	Usage              *openai.ResponsesUsage             `json:"usage"`
	Metadata           json.RawMessage                    `json:"metadata"`
}

// responseItem is an item of the output: a message, a call or a thought. The lists of a kind are there even when empty.
type responseItem struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Status    string          `json:"status"`
	Role      string          `json:"role,omitempty"`
	Content   *[]responsePart `json:"content,omitempty"`
	CallID    string          `json:"call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Summary   *[]summaryPart  `json:"summary,omitempty"`
	Encrypted string          `json:"encrypted_content,omitempty"` // the same text: some clients send a thought back only with it
}

type responsePart struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Annotations []struct{}      `json:"annotations"`
	Logprobs    []tokenLogprobs `json:"logprobs"`
}

type summaryPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// responseEvents turns the pieces of an answer into the events of a stream, and builds the response on the way.
type responseEvents struct {
	response response
	req      *responsesRequest
	now      func() time.Time
	send     func(event string, v any) error
	seq      int
	begun    bool
	ended    bool

	open     *responseItem // the message or the thought that is being written
	text     strings.Builder
	logprobs []tokenLogprobs
}

func newResponseEvents(r *responsesRequest, now func() time.Time, send func(string, any) error) *responseEvents {
	or := func(v *float64) float64 {
		if v == nil {
			return 1
		}
		return *v
	}
	res := response{ID: newID("resp_"), Object: "response", CreatedAt: now().Unix(), Status: "in_progress", Instructions: r.Instructions, MaxOutputTokens: r.MaxOutputTokens,
		Model: r.Model, Output: []responseItem{}, ParallelToolCalls: r.ParallelToolCalls == nil || *r.ParallelToolCalls, Temperature: or(r.Temperature), TopP: or(r.TopP),
		ToolChoice: r.ToolChoice, Tools: r.functions, TopLogprobs: r.TopLogprobs, Truncation: r.Truncation, Metadata: r.Metadata}
	if r.Reasoning != nil {
		res.Reasoning = *r.Reasoning
	}
	res.Text.Format = &responsesFormat{Type: "text"}
	if r.Text != nil && r.Text.Format != nil && r.Text.Format.Type != "" {
		res.Text.Format = r.Text.Format
	}
	if res.Tools == nil {
		res.Tools = []json.RawMessage{}
	}
	if !given(res.ToolChoice) {
		res.ToolChoice = json.RawMessage(`"auto"`)
	}
	if !given(res.Metadata) {
		res.Metadata = json.RawMessage(`{}`)
	}
	if res.Truncation == "" {
		res.Truncation = "auto"
	}
	return &responseEvents{response: res, req: r, now: now, send: send}
}

// event sends an event with its number.
func (e *responseEvents) event(kind string, v gin.H) error {
	v["type"], v["sequence_number"] = kind, e.seq
	e.seq++
	return e.send(kind, v)
}

func (e *responseEvents) begin() error {
	if e.begun {
		return nil
	}
	e.begun = true
	if err := e.event("response.created", gin.H{"response": e.response}); err != nil {
		return err
	}
	return e.event("response.in_progress", gin.H{"response": e.response})
}

// take writes a piece.
func (e *responseEvents) take(t turn) error {
	err := e.begin()
	if err == nil && t.thinking != "" {
		err = e.think(t.thinking)
	}
	if err == nil && (t.content != "" || len(t.logprobs) > 0 && e.req.logprobs() && t.thinking == "" && len(t.calls) == 0) {
		err = e.say(t.content, t.logprobs)
	}
	for _, call := range t.calls {
		if err == nil {
			err = e.call(call)
		}
	}
	if err == nil && t.end != nil {
		err = e.end(t.end)
	}
	return err
}

// index is the place in the output of the item that is being written.
func (e *responseEvents) index() int { return len(e.response.Output) }

// add announces an item.
func (e *responseEvents) add(item responseItem) error {
	return e.event("response.output_item.added", gin.H{"output_index": e.index(), "item": item})
}

// done closes an item: it is part of the response from here on.
func (e *responseEvents) done(item responseItem) error {
	err := e.event("response.output_item.done", gin.H{"output_index": e.index(), "item": item})
	e.response.Output = append(e.response.Output, item)
	return err
}

// switchTo closes what is being written unless it is of the kind, and begins an item of the kind.
func (e *responseEvents) switchTo(kind string, item responseItem, part string, with gin.H) error {
	if e.open != nil && e.open.Type == kind {
		return nil
	}
	if err := e.close("completed"); err != nil {
		return err
	}
	item.Type, item.Status = kind, "in_progress"
	e.open = &item
	if err := e.add(item); err != nil {
		return err
	}
	return e.event(part, e.place(with))
}

// place adds where in the output something stands.
func (e *responseEvents) place(with gin.H) gin.H {
	with["item_id"], with["output_index"] = e.open.ID, e.index()
	if e.open.Type == "reasoning" {
		with["summary_index"] = 0
	} else {
		with["content_index"] = 0
	}
	return with
}

func (e *responseEvents) think(text string) error {
	if err := e.switchTo("reasoning", responseItem{ID: newID("rs_"), Summary: &[]summaryPart{}}, "response.reasoning_summary_part.added",
		gin.H{"part": summaryPart{Type: "summary_text"}}); err != nil {
		return err
	}
	e.text.WriteString(text)
	return e.event("response.reasoning_summary_text.delta", e.place(gin.H{"delta": text}))
}

func (e *responseEvents) say(text string, logprobs []api.Logprob) error {
	if err := e.switchTo("message", responseItem{ID: newID("msg_"), Role: "assistant", Content: &[]responsePart{}}, "response.content_part.added",
		gin.H{"part": textPart("", nil)}); err != nil {
		return err
	}
	e.text.WriteString(text)
	list := []tokenLogprobs{}
	if e.req.logprobs() {
		list = tokenLogprobsOf(logprobs)
		e.logprobs = append(e.logprobs, list...)
	}
	if text == "" && len(list) == 0 {
		return nil
	}
	return e.event("response.output_text.delta", e.place(gin.H{"delta": text, "logprobs": list}))
}

func textPart(text string, logprobs []tokenLogprobs) responsePart {
	if logprobs == nil {
		logprobs = []tokenLogprobs{}
	}
	return responsePart{Type: "output_text", Text: text, Annotations: []struct{}{}, Logprobs: logprobs}
}

func (e *responseEvents) call(call api.ToolCall) error {
	if err := e.close("completed"); err != nil {
		return err
	}
	item := responseItem{ID: newID("fc_"), Type: "function_call", Status: "in_progress", CallID: call.ID, Name: call.Function.Name, Arguments: new(string)}
	if err := e.add(item); err != nil {
		return err
	}
	arguments := call.Function.Arguments.String()
	where := func(v gin.H) gin.H {
		v["item_id"], v["output_index"] = item.ID, e.index()
		return v
	}
	if err := e.event("response.function_call_arguments.delta", where(gin.H{"delta": arguments})); err != nil {
		return err
	}
	if err := e.event("response.function_call_arguments.done", where(gin.H{"name": item.Name, "arguments": arguments})); err != nil {
		return err
	}
	item.Status, item.Arguments = "completed", &arguments
	return e.done(item)
}

// close ends the message or the thought that is being written.
func (e *responseEvents) close(status string) error {
	if e.open == nil {
		return nil
	}
	item, text := *e.open, e.text.String()
	var err error
	if item.Type == "reasoning" {
		part := summaryPart{Type: "summary_text", Text: text}
		item.Summary = &[]summaryPart{part}
		if slices.Contains(e.req.Include, "reasoning.encrypted_content") {
			item.Encrypted = text
		}
		if err = e.event("response.reasoning_summary_text.done", e.place(gin.H{"text": text})); err == nil {
			err = e.event("response.reasoning_summary_part.done", e.place(gin.H{"part": part}))
		}
	} else {
		part := textPart(text, e.logprobs)
		item.Content = &[]responsePart{part}
		if err = e.event("response.output_text.done", e.place(gin.H{"text": text, "logprobs": part.Logprobs})); err == nil {
			err = e.event("response.content_part.done", e.place(gin.H{"part": part}))
		}
	}
	if err != nil {
		return err
	}
	item.Status = status
	e.open, e.logprobs = nil, nil
	e.text.Reset()
	return e.done(item)
}

// end closes the response: as complete, or as cut short by a limit.
func (e *responseEvents) end(end *turnEnd) error {
	if e.open == nil && len(e.response.Output) == 0 { // an empty answer is an answer
		if err := e.say("", nil); err != nil {
			return err
		}
	}
	e.ended = true
	r := &e.response
	event := "response.completed"
	r.Status = "completed"
	if end.reason == "length" {
		event, r.Status = "response.incomplete", "incomplete"
		r.IncompleteDetails = &openai.ResponsesIncompleteDetails{Reason: "max_output_tokens"}
	}
	if err := e.close(r.Status); err != nil {
		return err
	}
	u := usageOf(end)
	r.Usage = &openai.ResponsesUsage{InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens, TotalTokens: u.TotalTokens,
		InputTokensDetails: openai.ResponsesInputTokensDetails{CachedTokens: u.PromptTokensDetails.CachedTokens}}
	at := e.now().Unix()
	r.CompletedAt = &at
	return e.event(event, gin.H{"response": *r})
}

// fail closes a stream that has begun with the error that ended it. What there is of the answer goes along.
func (e *responseEvents) fail(f *fault.Error) error {
	if err := e.close("incomplete"); err != nil {
		return err
	}
	code := "server_error"
	if f.Code == fault.Invalid {
		code = "invalid_prompt"
	}
	e.response.Status, e.response.Error = "failed", &openai.ResponsesError{Code: code, Message: sentence(f)}
	return e.event("response.failed", gin.H{"response": e.response})
}
