package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ollama/ollama/anthropic"
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// anthropicMessage is a message of a request: its content is a text, or blocks.
type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// anthropicBlock is a block of a request's content. Which fields count depends on its type.
type anthropicBlock struct {
	Type      string                 `json:"type"`
	Text      string                 `json:"text"`
	Thinking  string                 `json:"thinking"`
	Source    *anthropic.ImageSource `json:"source"`
	ID        string                 `json:"id"`
	Name      string                 `json:"name"`
	Input     json.RawMessage        `json:"input"`
	ToolUseID string                 `json:"tool_use_id"`
	Content   json.RawMessage        `json:"content"`
	IsError   bool                   `json:"is_error"`
}

// anthropicConversation reads the system prompt and the messages.
func anthropicConversation(system json.RawMessage, messages []anthropicMessage) ([]api.Message, error) {
	r := anthropicReader{names: map[string]string{}}
	if given(system) {
		if err := r.system(system); err != nil {
			return nil, err
		}
	}
	for i, m := range messages {
		if err := r.message(fmt.Sprintf("messages.%d", i), m); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

// anthropicReader makes Ollama's messages of Anthropic's.
type anthropicReader struct {
	out   []api.Message
	names map[string]string // of tools, by the ids of their calls
}

func (r *anthropicReader) system(content json.RawMessage) error {
	blocks, err := anthropicBlocks("system", content)
	if err != nil {
		return err
	}
	text, err := onlyText("system", blocks)
	if err == nil && text != "" {
		r.out = append(r.out, api.Message{Role: "system", Content: text})
	}
	return err
}

func (r *anthropicReader) message(where string, m anthropicMessage) error {
	blocks, err := anthropicBlocks(where+".content", m.Content)
	if err != nil {
		return err
	}
	switch m.Role {
	case "assistant":
		return r.assistant(where, blocks)
	case "user", "system":
		if len(blocks) == 0 {
			return invalidAnthropic("%s.content: must not be empty", where)
		}
		return r.user(where, m.Role, blocks)
	}
	return invalidAnthropic("%s.role: %q is neither user nor assistant", where, printable(m.Role, 40))
}

// anthropicBlocks reads content: a text is one text block.
func anthropicBlocks(where string, content json.RawMessage) ([]anthropicBlock, error) {
	content = bytes.TrimSpace(content)
	var err error
	var blocks []anthropicBlock
	switch {
	case len(content) > 0 && content[0] == '"':
		blocks = []anthropicBlock{{Type: "text"}}
		err = json.Unmarshal(content, &blocks[0].Text)
	case len(content) > 0 && content[0] == '[':
		err = json.Unmarshal(content, &blocks)
	default:
		return nil, invalidAnthropic("%s: must be a text or a list of blocks", where)
	}
	if err != nil {
		return nil, invalidAnthropic("%s: %s", where, jsonProblem(err))
	}
	return blocks, nil
}

// assistant is one message: what the model thought, said and called in a turn belongs together.
func (r *anthropicReader) assistant(where string, blocks []anthropicBlock) error {
	msg := api.Message{Role: "assistant"}
	for i, b := range blocks {
		switch b.Type {
		case "text":
			msg.Content += b.Text
		case "thinking":
			msg.Thinking += b.Thinking
		case "redacted_thinking": // only Anthropic can read it
		case "tool_use":
			if b.ID == "" || b.Name == "" {
				return invalidAnthropic("%s.content.%d: a tool_use block needs id and name", where, i)
			}
			args := api.NewToolCallFunctionArguments()
			if input := bytes.TrimSpace(b.Input); len(input) > 0 && string(input) != "null" {
				if err := json.Unmarshal(input, &args); err != nil {
					return invalidAnthropic("%s.content.%d.input: must be an object", where, i)
				}
			}
			r.names[b.ID] = b.Name
			msg.ToolCalls = append(msg.ToolCalls, api.ToolCall{ID: b.ID, Function: api.ToolCallFunction{Index: len(msg.ToolCalls), Name: b.Name, Arguments: args}})
		default:
			return unknownBlock(fmt.Sprintf("%s.content.%d", where, i), b.Type)
		}
	}
	r.out = append(r.out, msg)
	return nil
}

// user keeps the order of the blocks: a tool's result is a message of its own, and what the person says after it comes
// after it. Ollama puts what was said before the results, as if the model had been interrupted.
func (r *anthropicReader) user(where, role string, blocks []anthropicBlock) error {
	var msg *api.Message // that text and images go to
	flush := func() {
		if msg != nil {
			r.out = append(r.out, *msg)
			msg = nil
		}
	}
	for i, b := range blocks {
		at := fmt.Sprintf("%s.content.%d", where, i)
		if b.Type == "tool_result" {
			flush()
			result, err := r.toolResult(at, b)
			if err != nil {
				return err
			}
			r.out = append(r.out, result)
			continue
		}
		if msg == nil {
			msg = &api.Message{Role: role}
		}
		if err := addBlock(msg, at, b); err != nil {
			return err
		}
	}
	flush()
	return nil
}

// addBlock adds what a person said or showed.
func addBlock(msg *api.Message, at string, b anthropicBlock) error {
	switch b.Type {
	case "text":
		msg.Content = onNewLine(msg.Content, b.Text)
	case "image":
		image, err := anthropicImage(at, b.Source)
		if err != nil {
			return err
		}
		msg.Images = append(msg.Images, image)
	case "document":
		if b.Source == nil || b.Source.Type != "text" {
			return invalidAnthropic("%s.source: only documents of type text can be read, not files and addresses", at)
		}
		msg.Content = onNewLine(msg.Content, b.Source.Data)
	default:
		return unknownBlock(at, b.Type)
	}
	return nil
}

// toolResult is what a tool answered. An error is told to the model in words: there is no field for it in a prompt.
func (r *anthropicReader) toolResult(at string, b anthropicBlock) (api.Message, error) {
	msg := api.Message{Role: "tool", ToolCallID: b.ToolUseID, ToolName: r.names[b.ToolUseID]}
	if b.ToolUseID == "" {
		return msg, invalidAnthropic("%s.tool_use_id: field required", at)
	}
	if given(b.Content) {
		blocks, err := anthropicBlocks(at+".content", b.Content)
		if err != nil {
			return msg, err
		}
		for i, part := range blocks {
			if err := addBlock(&msg, fmt.Sprintf("%s.content.%d", at, i), part); err != nil {
				return msg, err
			}
		}
	}
	if b.IsError {
		msg.Content = "Error: " + msg.Content
	}
	return msg, nil
}

func anthropicImage(at string, source *anthropic.ImageSource) (api.ImageData, error) {
	if source == nil || source.Type != "base64" {
		return nil, &fault.Error{Code: fault.Invalid, Op: "gateway.anthropic", Msg: at + ".source: an image must come as base64",
			Hint: "addresses are not fetched: the server would call them on the caller's behalf"}
	}
	data, err := base64.StdEncoding.DecodeString(source.Data)
	if err != nil || len(data) == 0 {
		return nil, invalidAnthropic("%s.source.data: not valid base64", at)
	}
	return data, nil
}

func onlyText(at string, blocks []anthropicBlock) (string, error) {
	text := ""
	for i, b := range blocks {
		if b.Type != "text" {
			return "", unknownBlock(fmt.Sprintf("%s.%d", at, i), b.Type)
		}
		text = onNewLine(text, b.Text)
	}
	return text, nil
}

// onNewLine adds a block to a text: blocks are not one sentence.
func onNewLine(text, more string) string {
	if text == "" || more == "" || strings.HasSuffix(text, "\n") {
		return text + more
	}
	return text + "\n" + more
}

func unknownBlock(at, kind string) error {
	return invalidAnthropic("%s.type: %q cannot be used here", at, printable(kind, 40))
}
