package gateway

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ollama/ollama/api"
)

// inputItem is an item of a conversation: a message, a call, its result, or a thought.
type inputItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Output    json.RawMessage `json:"output"` // a text, or parts
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
	Encrypted string `json:"encrypted_content"`
}

// conversation reads instructions and input.
func (r *responsesRequest) conversation() ([]api.Message, error) {
	system, err := conversationOf(r.Instructions, "instructions", "system")
	if err != nil {
		return nil, err
	}
	messages, err := conversationOf(r.Input, "input", "user")
	if err != nil {
		return nil, err
	}
	if len(messages) == 0 {
		return nil, invalid("input must not be empty")
	}
	return append(system, messages...), nil
}

// conversationOf reads a text, which is of the role, or items. A thought, the text after it and the calls after that are one
// message of the assistant, as models' templates have it.
func conversationOf(raw json.RawMessage, field, role string) ([]api.Message, error) {
	if !given(raw) {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return nil, nil
		}
		return []api.Message{{Role: role, Content: text}}, nil
	}
	var items []inputItem
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, invalid("%s must be a text or a list of items: %s", field, jsonProblem(err))
	}
	in := inputReader{called: map[string]string{}}
	for i, item := range items {
		if err := in.add(item); err != nil {
			return nil, at(err, fmt.Sprintf("%s[%d]", field, i))
		}
	}
	in.flush()
	return in.messages, nil
}

// inputReader is a conversation as far as its items were read.
type inputReader struct {
	messages []api.Message
	thought  string            // of the message of the assistant that is to come
	called   map[string]string // a call's id → its function
}

func (in *inputReader) add(item inputItem) error {
	kind := item.Type
	if kind == "" && item.Role != "" {
		kind = "message"
	}
	switch kind {
	case "message":
		role, err := roleOf(item.Role)
		if err != nil {
			return err
		}
		if !given(item.Content) {
			return invalid("content is missing")
		}
		msg := api.Message{Role: role}
		if msg.Content, msg.Images, err = contentOf(item.Content); err != nil {
			return err
		}
		if role == "assistant" {
			msg.Thinking, in.thought = in.thought, ""
		}
		in.flush()
		in.messages = append(in.messages, msg)
	case "function_call":
		msg := in.assistant()
		call, err := callOf(item.CallID, item.Name, item.Arguments, len(msg.ToolCalls))
		if err != nil {
			return err
		}
		in.called[item.CallID] = item.Name
		msg.ToolCalls = append(msg.ToolCalls, call)
	case "function_call_output":
		output, images, err := contentOf(item.Output)
		if err != nil {
			return err
		}
		in.flush()
		in.messages = append(in.messages, api.Message{Role: "tool", Content: output, Images: images, ToolCallID: item.CallID, ToolName: in.called[item.CallID]})
	case "reasoning":
		if in.thought != "" {
			in.thought += "\n"
		}
		in.thought += item.thought()
	case "item_reference":
		return invalid("nothing is stored here, so there is no item to refer to: send the item itself")
	default:
		return invalid("an item of the type %q cannot be read here", printable(item.Type, 40))
	}
	return nil
}

// thought is the text of a thought: our own goes out readable both ways.
func (item inputItem) thought() string {
	var texts []string
	for _, s := range item.Summary {
		texts = append(texts, s.Text)
	}
	if len(texts) == 0 && item.Encrypted != "" {
		return item.Encrypted
	}
	return strings.Join(texts, "\n")
}

// assistant is the assistant's message that is being read: a new one after anybody else's, and after a new thought.
func (in *inputReader) assistant() *api.Message {
	last := len(in.messages) - 1
	if last < 0 || in.messages[last].Role != "assistant" || in.thought != "" {
		in.messages = append(in.messages, api.Message{Role: "assistant", Thinking: in.thought})
		in.thought = ""
		last++
	}
	return &in.messages[last]
}

// flush makes a message of a thought that nothing followed.
func (in *inputReader) flush() {
	if in.thought != "" {
		in.assistant()
	}
}
