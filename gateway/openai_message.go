package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ollama/ollama/api"
)

// openaiMessage is a message of chat/completions as it comes in.
type openaiMessage struct {
	Role             string           `json:"role"`
	Content          json.RawMessage  `json:"content"` // a text, parts, or null
	Name             string           `json:"name"`
	Reasoning        string           `json:"reasoning"`
	ReasoningContent string           `json:"reasoning_content"` // the same under the name that other servers give it
	ToolCalls        []openaiToolCall `json:"tool_calls"`
	ToolCallID       string           `json:"tool_call_id"`
}

type openaiToolCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // a text that is JSON; some clients send the object itself
	} `json:"function"`
}

// openaiMessages reads a conversation. A message stays one message, whatever its parts: Ollama makes one of each part.
func openaiMessages(in []openaiMessage) ([]api.Message, error) {
	out := make([]api.Message, 0, len(in))
	called := map[string]string{} // a call's id → its function
	for i, m := range in {
		where := fmt.Sprintf("messages[%d]", i)
		role, err := roleOf(m.Role)
		if err != nil {
			return nil, at(err, where)
		}
		msg := api.Message{Role: role, Thinking: m.Reasoning, ToolCallID: m.ToolCallID}
		if msg.Thinking == "" {
			msg.Thinking = m.ReasoningContent
		}
		if !given(m.Content) && role != "assistant" {
			return nil, invalid("%s: content is missing", where)
		}
		if msg.Content, msg.Images, err = contentOf(m.Content); err != nil {
			return nil, at(err, where)
		}
		for j, tc := range m.ToolCalls {
			call, err := callOf(tc.ID, tc.Function.Name, tc.Function.Arguments, j)
			if err != nil {
				return nil, at(err, fmt.Sprintf("%s.tool_calls[%d]", where, j))
			}
			called[tc.ID] = tc.Function.Name
			msg.ToolCalls = append(msg.ToolCalls, call)
		}
		if role == "tool" {
			if msg.ToolName = m.Name; msg.ToolName == "" {
				msg.ToolName = called[m.ToolCallID]
			}
		}
		out = append(out, msg)
	}
	return out, nil
}

// roleOf gives a role as models' templates know it. An unknown one would be left out by most of them, in silence.
func roleOf(role string) (string, error) {
	switch r := strings.ToLower(role); r {
	case "system", "user", "assistant", "tool":
		return r, nil
	case "developer":
		return "system", nil
	case "function":
		return "tool", nil
	}
	return "", invalid("role %q is none of system, developer, user, assistant, tool", printable(role, 40))
}

// callOf reads a call that the model made earlier.
func callOf(id, name string, arguments json.RawMessage, index int) (api.ToolCall, error) {
	call := api.ToolCall{ID: id, Function: api.ToolCallFunction{Index: index, Name: name, Arguments: api.NewToolCallFunctionArguments()}}
	if name == "" {
		return call, invalid("the function's name is missing")
	}
	text := string(arguments)
	var quoted string
	if json.Unmarshal(arguments, &quoted) == nil {
		text = quoted
	}
	if text = strings.TrimSpace(text); text == "" || text == "null" {
		return call, nil
	}
	if text[0] != '{' || json.Unmarshal([]byte(text), &call.Function.Arguments) != nil {
		return call, invalid("arguments must be a text that is a JSON object")
	}
	return call, nil
}

// contentPart is a part of a message, of chat/completions or of responses.
type contentPart struct {
	Type     string          `json:"type"`
	Text     *string         `json:"text"`
	Refusal  string          `json:"refusal"`
	ImageURL json.RawMessage `json:"image_url"` // a text, or {"url"}
}

// contentOf reads a message's text and images. Texts are joined by a line break, as llama.cpp and vLLM do.
func contentOf(raw json.RawMessage) (string, []api.ImageData, error) {
	if !given(raw) {
		return "", nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil, nil
	}
	var parts []contentPart
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", nil, invalid("content must be a text or a list of parts, each with its type")
	}
	var texts []string
	var images []api.ImageData
	for i, p := range parts {
		where := fmt.Sprintf("content[%d]", i)
		switch p.Type {
		case "text", "input_text", "output_text":
			if p.Text == nil {
				return "", nil, invalid("%s: text is missing", where)
			}
			texts = append(texts, *p.Text)
		case "refusal":
			texts = append(texts, p.Refusal)
		case "image_url", "input_image":
			image, err := imageOf(p.ImageURL)
			if err != nil {
				return "", nil, at(err, where)
			}
			images = append(images, image)
		default:
			return "", nil, invalid("%s: a part of the type %q cannot be read here: only text and images", where, printable(p.Type, 40))
		}
	}
	return strings.Join(texts, "\n"), images, nil
}

// imageOf reads an image out of its data: URL. Nothing is fetched: a server that opens its callers' URLs opens what only it
// can reach.
func imageOf(raw json.RawMessage) (api.ImageData, error) {
	var url string
	if json.Unmarshal(raw, &url) != nil {
		var object struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(raw, &object) != nil || object.URL == "" {
			return nil, invalid("image_url is missing")
		}
		url = object.URL
	}
	head, data, comma := strings.Cut(url, ",")
	scheme, media, _ := strings.Cut(head, ":")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "http" || scheme == "https":
		return nil, invalid("images are not fetched from the net: send this one as data:image/png;base64,…")
	case scheme != "data" || !comma || !strings.HasSuffix(strings.ToLower(media), ";base64"):
		return nil, invalid("an image must be a URL of the form data:image/png;base64,…")
	case media[0] != ';' && !strings.HasPrefix(strings.ToLower(media), "image/"):
		return nil, invalid("an image cannot be of the type %q", printable(strings.TrimSuffix(media, ";base64"), 40))
	}
	image, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(image) == 0 {
		return nil, invalid("the image's data is not valid base64")
	}
	return image, nil
}
