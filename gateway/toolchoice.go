package gateway

import (
	"crypto/rand"
	"encoding/json"
	"slices"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/models"
)

// toolsHeader tells that a conversation was answered without the tools that came with it. Open WebUI sends 36 tools with
// every chat of its browser page, whatever the model can do: a refusal would mean that no chat works at all.
const toolsHeader = "X-Sluice-Tools"

const (
	toolsIgnored = "ignored"  // the model has no tools
	toolsLeftOut = "left-out" // they do not fit into the context
)

// tellTools says in a header and in the log why there will be no calls.
func (s *server) tellTools(c *gin.Context, why string) {
	c.Header(toolsHeader, why)
	s.cfg.Log.Warn("answered without the tools of the request", "request_id", requestIDOf(c), "tools", why)
}

// toolsFor are the tools that the model shall see: none where no call is wanted, or where the model has no tools and no
// call is required.
func (s *server) toolsFor(c *gin.Context, m *models.Model, d *dialog) ([]api.Tool, error) {
	const op = "gateway.tools"
	required := d.choice.mode == "required"
	switch {
	case required && len(d.tools) == 0:
		return nil, fault.New(fault.Invalid, op, "a tool call is required, but there are no tools")
	case required && d.choice.name != "" && !slices.ContainsFunc(d.tools, func(t api.Tool) bool { return t.Function.Name == d.choice.name }):
		return nil, fault.New(fault.Invalid, op, "the required tool %q is not among the tools", printable(d.choice.name, 200))
	case len(d.tools) == 0 || d.choice.mode == "none":
		return nil, nil
	case can(m, "tools"):
		tools := slices.Clone(d.tools)
		for i := range tools {
			tools[i] = withParameters(tools[i])
		}
		return tools, nil
	case required:
		return nil, &fault.Error{Code: fault.Invalid, Op: op, Msg: `"` + printable(d.model, 200) + `" does not support tools`,
			Hint: "a call can only be required of a model whose capabilities have tools"}
	}
	s.tellTools(c, toolsIgnored)
	return nil, nil
}

// withParameters gives a tool without parameters an empty object of them, as templates and renderers expect, and its type.
func withParameters(tool api.Tool) api.Tool {
	tool.Type = "function"
	if tool.Function.Parameters.Type == "" {
		tool.Function.Parameters.Type = "object"
	}
	if tool.Function.Parameters.Properties == nil {
		tool.Function.Parameters.Properties = api.NewToolPropertiesMap()
	}
	return tool
}

// newCallID names a call, as Ollama does: "call_" and 8 characters.
func newCallID() string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	for i, b := range id {
		id[i] = alphabet[int(b)%len(alphabet)]
	}
	return "call_" + string(id)
}

// forcedCall is an answer that must be a call: the schema leaves the model no other word.
type forcedCall struct {
	schema string
	names  []string
}

// forceCall makes the schema of a call of the tool of this name, or of any of them.
func forceCall(tools []api.Tool, name string) (*forcedCall, error) {
	f := &forcedCall{}
	var calls []any
	for _, t := range tools {
		if name != "" && t.Function.Name != name || t.Function.Name == "" {
			continue
		}
		args, err := argumentSchema(t.Function.Parameters)
		if err != nil {
			return nil, err
		}
		calls = append(calls, callSchema{Type: "object", Required: []string{"name", "arguments"},
			Properties: callProperties{Name: constSchema{t.Function.Name}, Arguments: args}})
		f.names = append(f.names, t.Function.Name)
	}
	var whole any
	switch len(calls) {
	case 0:
		return nil, fault.New(fault.Invalid, "gateway.tools", "a tool call is required, but no tool has a name")
	case 1:
		whole = calls[0]
	default:
		whole = map[string]any{"anyOf": calls}
	}
	text, err := marshal(whole)
	f.schema = string(text)
	return f, err
}

// callSchema is written with its properties in this order: the model names the tool before it gives arguments.
type callSchema struct {
	Type                 string         `json:"type"`
	Properties           callProperties `json:"properties"`
	Required             []string       `json:"required"`
	AdditionalProperties bool           `json:"additionalProperties"`
}

type callProperties struct {
	Name      constSchema `json:"name"`
	Arguments any         `json:"arguments"`
}

type constSchema struct {
	Const string `json:"const"`
}

// read reads the finished text of a forced call. One that a limit cut off is none.
func (f *forcedCall) read(text string) (api.ToolCall, bool) {
	var call struct {
		Name      string                        `json:"name"`
		Arguments api.ToolCallFunctionArguments `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(text), &call); err != nil || !slices.Contains(f.names, call.Name) {
		return api.ToolCall{}, false
	}
	return api.ToolCall{Function: api.ToolCallFunction{Name: call.Name, Arguments: call.Arguments}}, true
}
