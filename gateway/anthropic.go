package gateway

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/anthropic"
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// anthropicOverloaded is Anthropic's status for "try again later"; its SDKs do so for every status from 500 up.
const anthropicOverloaded = 529

// anthropicRequest is the body of /v1/messages. What Anthropic's clients send besides (metadata, service_tier, betas) says
// nothing to a model and is ignored. The module's own type reads content into maps, which lose the order of arguments.
type anthropicRequest struct {
	Model         string                    `json:"model"`
	MaxTokens     *int                      `json:"max_tokens"`
	System        json.RawMessage           `json:"system"`
	Messages      []anthropicMessage        `json:"messages"`
	Stream        bool                      `json:"stream"`
	Temperature   *float64                  `json:"temperature"`
	TopP          *float64                  `json:"top_p"`
	TopK          *int                      `json:"top_k"`
	StopSequences []string                  `json:"stop_sequences"`
	Tools         []anthropic.Tool          `json:"tools"`
	ToolChoice    *anthropic.ToolChoice     `json:"tool_choice"`
	Thinking      *anthropic.ThinkingConfig `json:"thinking"`
	OutputFormat  *anthropicFormat          `json:"output_format"`
	OutputConfig  struct {
		Format *anthropicFormat `json:"format"`
		Effort string           `json:"effort"` // how long to think, where that is asked for
	} `json:"output_config"`

	// Ours, as on the other /v1 routes.
	KeepAlive *keepAlive     `json:"keep_alive"`
	Options   map[string]any `json:"options"`
	Truncate  *bool          `json:"truncate"`
	Shift     *bool          `json:"shift"`
}

// anthropicFormat asks for an answer that fits a JSON Schema.
type anthropicFormat struct {
	Type   string          `json:"type"` // json_schema
	Schema json.RawMessage `json:"schema"`
}

// anthropicMessages answers POST /v1/messages.
func (s *server) anthropicMessages(c *gin.Context) {
	var req anthropicRequest
	err := decode(c, &req)
	if err == nil {
		err = req.checkMaxTokens()
	}
	var d dialog
	if err == nil {
		d, err = req.dialog()
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	msg := anthropicAnswer{ID: "msg_" + rand.Text(), Type: "message", Role: "assistant", Model: req.Model, Content: []any{}, stops: req.StopSequences}
	if !req.Stream {
		if err := s.converse(c, d, msg.add); err != nil {
			s.fail(c, err)
			return
		}
		writeJSON(c, 200, msg)
		return
	}
	out := anthropicStream{sse: sseStream{s: s, c: c}, msg: msg}
	err = s.converse(c, d, out.add)
	switch {
	case err == nil:
	case out.sse.started:
		out.fail(err)
	default:
		s.fail(c, err)
	}
}

// anthropicCountTokens answers POST /v1/messages/count_tokens with the length of the prompt that the same body would make:
// counted with the model's own template and tokens, not estimated.
func (s *server) anthropicCountTokens(c *gin.Context) {
	var req anthropicRequest
	err := decode(c, &req)
	var d dialog
	if err == nil {
		d, err = req.dialog()
	}
	n := 0
	if err == nil {
		n, err = s.countPrompt(c, d)
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	writeJSON(c, 200, gin.H{"input_tokens": n})
}

func invalidAnthropic(format string, args ...any) error {
	return fault.New(fault.Invalid, "gateway.anthropic", format, args...)
}

func (req *anthropicRequest) checkMaxTokens() error {
	switch {
	case req.MaxTokens == nil:
		return invalidAnthropic("max_tokens: field required")
	case *req.MaxTokens < 1:
		return invalidAnthropic("max_tokens: must be greater than 0")
	}
	return nil
}

// dialog reads what is asked, in no API's words. A prompt that is too long is refused, as at Anthropic and not as in Ollama:
// its clients shorten the conversation themselves when they hear of it, and would go on without its beginning else.
func (req *anthropicRequest) dialog() (dialog, error) {
	d := dialog{model: req.Model, keepAlive: req.KeepAlive, lenientThink: true, held: !req.Stream,
		truncate: req.Truncate != nil && *req.Truncate, shift: req.Shift == nil || *req.Shift, think: req.think()}
	if len(req.Messages) == 0 {
		return d, invalidAnthropic("messages: at least one message is required")
	}
	var err error
	if d.options, err = req.options(); err != nil {
		return d, err
	}
	if d.messages, err = anthropicConversation(req.System, req.Messages); err != nil {
		return d, err
	}
	if d.tools, err = anthropicTools(req.Tools); err != nil {
		return d, err
	}
	if d.choice, err = anthropicChoice(req.ToolChoice, d.tools); err != nil {
		return d, err
	}
	d.format, err = req.format()
	return d, err
}

// think: Anthropic does not think unless asked to, and a client that does not ask cannot read thinking blocks. A budget in
// tokens cannot be kept; an effort is for models that know lengths.
func (req *anthropicRequest) think() *api.ThinkValue {
	if req.Thinking == nil || req.Thinking.Type == "disabled" {
		return &api.ThinkValue{Value: false}
	}
	switch e := strings.ToLower(req.OutputConfig.Effort); e {
	case "low", "medium", "high":
		return &api.ThinkValue{Value: e}
	case "xhigh", "max":
		return &api.ThinkValue{Value: "high"}
	}
	return &api.ThinkValue{Value: true}
}

func (req *anthropicRequest) options() (map[string]any, error) {
	options := map[string]any{}
	for k, v := range req.Options {
		options[k] = v
	}
	if req.MaxTokens != nil {
		options["num_predict"] = *req.MaxTokens
	}
	if req.Temperature != nil {
		options["temperature"] = *req.Temperature
	}
	if req.TopP != nil {
		options["top_p"] = *req.TopP
	}
	if req.TopK != nil {
		options["top_k"] = *req.TopK
	}
	if len(req.StopSequences) > 0 {
		stops := make([]any, len(req.StopSequences))
		for i, stop := range req.StopSequences {
			if stop == "" {
				return nil, invalidAnthropic("stop_sequences.%d: a stop sequence must not be empty", i)
			}
			stops[i] = stop
		}
		options["stop"] = stops
	}
	return options, nil
}

func (req *anthropicRequest) format() (json.RawMessage, error) {
	f := req.OutputFormat // the older name
	if f == nil {
		f = req.OutputConfig.Format
	}
	switch {
	case f == nil:
		return nil, nil
	case f.Type != "json_schema" || len(f.Schema) == 0 || f.Schema[0] != '{':
		return nil, invalidAnthropic(`output_config.format: must be {"type": "json_schema", "schema": {…}}`)
	}
	return f.Schema, nil
}

// anthropicTools reads tools that the client carries out itself. Those that Anthropic's servers or models know by their
// type alone have no schema, and would only be called wrongly.
func anthropicTools(tools []anthropic.Tool) ([]api.Tool, error) {
	var out []api.Tool
	seen := map[string]bool{}
	for i, t := range tools {
		tool := api.Tool{Function: api.ToolFunction{Name: t.Name, Description: t.Description}}
		switch {
		case t.Type != "" && t.Type != "custom":
			return nil, &fault.Error{Code: fault.Invalid, Op: "gateway.anthropic", Msg: fmt.Sprintf("tools.%d: tools of type %s are not there", i, printable(t.Type, 60)),
				Hint: "only tools with an input_schema, which the client carries out, can be used"}
		case t.Name == "":
			return nil, invalidAnthropic("tools.%d.name: field required", i)
		case seen[t.Name]:
			return nil, invalidAnthropic("tools: the name %q is there twice", printable(t.Name, 80))
		case len(t.InputSchema) == 0:
			return nil, invalidAnthropic("tools.%d.input_schema: field required", i)
		}
		if err := json.Unmarshal(t.InputSchema, &tool.Function.Parameters); err != nil {
			return nil, invalidAnthropic("tools.%d.input_schema: %s", i, jsonProblem(err))
		}
		seen[t.Name] = true
		out = append(out, tool)
	}
	return out, nil
}

func anthropicChoice(choice *anthropic.ToolChoice, tools []api.Tool) (toolChoice, error) {
	if choice == nil {
		return toolChoice{}, nil
	}
	out := toolChoice{one: choice.DisableParallelToolUse}
	switch choice.Type {
	case "auto":
		out.mode = "auto"
	case "none":
		out.mode = "none"
	case "any", "tool":
		out.mode = "required"
		if choice.Type == "tool" {
			out.name = choice.Name
		}
		if len(tools) == 0 {
			return out, invalidAnthropic("tool_choice: %s needs tools", choice.Type)
		}
	default:
		return out, invalidAnthropic("tool_choice.type: %q is none of auto, any, tool, none", printable(choice.Type, 40))
	}
	if choice.Type == "tool" {
		for _, t := range tools {
			if t.Function.Name == choice.Name {
				return out, nil
			}
		}
		return out, invalidAnthropic("tool_choice.name: there is no tool %q", printable(choice.Name, 80))
	}
	return out, nil
}

// anthropicError writes a fault in Anthropic's dialect.
func anthropicError(status int, f *fault.Error, requestID string) any {
	kinds := map[int]string{401: "authentication_error", 403: "permission_error", 404: "not_found_error",
		413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", anthropicOverloaded: "overloaded_error"}
	kind, ok := kinds[status]
	switch {
	case ok:
	case status < 500:
		kind = "invalid_request_error"
	default:
		kind = "api_error"
	}
	return gin.H{"type": "error", "error": gin.H{"type": kind, "message": sentence(f)}, "request_id": requestID}
}
