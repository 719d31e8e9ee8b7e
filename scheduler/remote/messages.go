package remote

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ollama/ollama/api"
)

// openaiMessage is a message of chat/completions.
type openaiMessage struct {
	Role       string       `json:"role"`
	Content    any          `json:"content"` // a text, parts, or null beside calls
	ToolCalls  []openaiCall `json:"tool_calls,omitempty"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
}

type openaiCall struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON
	} `json:"function"`
}

type openaiPart struct {
	Type     string          `json:"type"`
	Text     string          `json:"text,omitempty"`
	ImageURL *openaiImageURL `json:"image_url,omitempty"`
}

type openaiImageURL struct {
	URL string `json:"url"`
}

// openaiMessages writes a conversation. OpenAI knows which call a result is of by its id, which Ollama's clients do not send: those
// without one are numbered, and the results taken in the order of the calls, or by the tool's name.
func openaiMessages(all []api.Message) []openaiMessage {
	type open struct{ id, tool string }
	var waiting []open // calls without a result so far
	var out []openaiMessage
	for i, msg := range all {
		m := openaiMessage{Role: msg.Role, Content: content(msg)}
		if len(msg.ToolCalls) > 0 {
			waiting = nil
			if msg.Content == "" {
				m.Content = nil
			}
		}
		for k, call := range msg.ToolCalls {
			c := openaiCall{Index: k, ID: call.ID, Type: "function"}
			if c.ID == "" {
				c.ID = fmt.Sprintf("call_%d_%d", i, k)
			}
			c.Function.Name, c.Function.Arguments = call.Function.Name, call.Function.Arguments.String()
			if c.Function.Arguments == "" {
				c.Function.Arguments = "{}"
			}
			m.ToolCalls = append(m.ToolCalls, c)
			waiting = append(waiting, open{c.ID, call.Function.Name})
		}
		if msg.Role == "tool" {
			m.ToolCallID = msg.ToolCallID
			at := -1
			for k, w := range waiting {
				switch {
				case msg.ToolCallID != "" && w.id == msg.ToolCallID:
					at = k
				case msg.ToolCallID == "" && at < 0 && (msg.ToolName == "" || msg.ToolName == w.tool):
					at = k
				}
			}
			if at < 0 && msg.ToolCallID == "" && len(waiting) > 0 {
				at = 0
			}
			if at >= 0 {
				m.ToolCallID = waiting[at].id
				waiting = append(waiting[:at:at], waiting[at+1:]...)
			}
		}
		out = append(out, m)
	}
	return out
}

// content is a text, or parts where there are images.
func content(msg api.Message) any {
	if len(msg.Images) == 0 {
		return msg.Content
	}
	var parts []openaiPart
	if msg.Content != "" {
		parts = append(parts, openaiPart{Type: "text", Text: msg.Content})
	}
	for _, image := range msg.Images {
		parts = append(parts, openaiPart{Type: "image_url", ImageURL: &openaiImageURL{dataURL(image)}})
	}
	return parts
}

func dataURL(image []byte) string {
	return "data:" + http.DetectContentType(image) + ";base64," + base64.StdEncoding.EncodeToString(image)
}

// arguments reads the arguments of a call. None are an empty object. What is no JSON object cannot be a call's.
func arguments(text string) (args api.ToolCallFunctionArguments, ok bool) {
	args = api.NewToolCallFunctionArguments()
	if text == "" || text == "null" {
		return args, true
	}
	return args, json.Unmarshal([]byte(text), &args) == nil
}
