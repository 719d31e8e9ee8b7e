package models

import (
	"github.com/ollama/ollama/api"
)

// The types below are how a template sees messages and tools: the fields that Ollama's templates use, where {{ .Function }}
// or {{ .Arguments }} alone are JSON in the caller's own order.

type message struct {
	Role, Content, Thinking string
	Images                  []api.ImageData
	ToolCalls               []toolCall
	ToolName, ToolCallID    string
}

type toolCall struct {
	ID       string
	Function calledFunction
}

type calledFunction struct {
	Index     int
	Name      string
	Arguments arguments
}

// arguments is a map, so that templates can go through it.
type arguments map[string]any

func (a arguments) String() string {
	if len(a) == 0 {
		return "{}"
	}
	return toJSON(map[string]any(a), true)
}

// MarshalJSON makes {} of no arguments: a model would learn null from it.
func (a arguments) MarshalJSON() ([]byte, error) {
	if len(a) == 0 {
		return []byte("{}"), nil
	}
	return []byte(toJSON(map[string]any(a), false)), nil
}

func messageOf(m api.Message) *message {
	return &message{
		Role: m.Role, Content: m.Content, Thinking: m.Thinking, Images: m.Images, ToolCalls: callsOf(m.ToolCalls),
		ToolName: m.ToolName, ToolCallID: m.ToolCallID,
	}
}

func callsOf(calls []api.ToolCall) (out []toolCall) {
	for _, c := range calls {
		f := c.Function
		out = append(out, toolCall{ID: c.ID, Function: calledFunction{Index: f.Index, Name: f.Name, Arguments: f.Arguments.ToMap()}})
	}
	return out
}

type tools []tool

func (t tools) String() string { return toJSON(t, true) }

type tool struct {
	Type     string
	Items    any
	Function function

	original api.Tool
}

func (t tool) String() string               { return toJSON(t.original, true) }
func (t tool) MarshalJSON() ([]byte, error) { return []byte(toJSON(t.original, false)), nil }

type function struct {
	Name        string
	Description string
	Parameters  parameters

	original api.ToolFunction
}

func (f function) String() string               { return toJSON(f.original, true) }
func (f function) MarshalJSON() ([]byte, error) { return []byte(toJSON(f.original, false)), nil }

type parameters struct {
	Type       string
	Defs       any
	Items      any
	Required   []string
	Properties properties

	original api.ToolFunctionParameters
}

func (p parameters) String() string               { return toJSON(p.original, true) }
func (p parameters) MarshalJSON() ([]byte, error) { return []byte(toJSON(p.original, false)), nil }

// properties is a map, so that templates can go through it, in the order of the names.
type properties map[string]api.ToolProperty

func (p properties) String() string {
	if p == nil {
		return "{}"
	}
	return toJSON(map[string]api.ToolProperty(p), true)
}

func toolsOf(all []api.Tool) (out tools) {
	for _, t := range all {
		f := t.Function
		if f.Parameters.Type == "" { // clients leave it out for a function without parameters; models expect it
			f.Parameters.Type = "object"
		}
		if f.Parameters.Properties == nil {
			f.Parameters.Properties = api.NewToolPropertiesMap()
		}
		if t.Type == "" {
			t.Type = "function"
		}
		t.Function = f
		p := f.Parameters
		out = append(out, tool{Type: t.Type, Items: t.Items, original: t, Function: function{
			Name: f.Name, Description: f.Description, original: f,
			Parameters: parameters{Type: p.Type, Defs: p.Defs, Items: p.Items, Required: p.Required, Properties: p.Properties.ToMap(), original: p},
		}})
	}
	return out
}
