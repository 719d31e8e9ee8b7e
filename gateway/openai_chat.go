package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

type openaiChatRequest struct {
	openaiFields
	Messages          []openaiMessage   `json:"messages"`
	Tools             []json.RawMessage `json:"tools"`
	ToolChoice        json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls *bool             `json:"parallel_tool_calls"`
	ResponseFormat    *struct {
		Type       string          `json:"type"`
		Schema     json.RawMessage `json:"schema"` // llama.cpp's, with json_object
		JSONSchema *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	} `json:"response_format"`
	Reasoning *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	ReasoningEffort string          `json:"reasoning_effort"`
	Think           *api.ThinkValue `json:"think"` // Ollama's, as an extension
	Logprobs        bool            `json:"logprobs"`
	TopLogprobs     int             `json:"top_logprobs"`
}

// openaiChat is POST /v1/chat/completions.
func (s *server) openaiChat(c *gin.Context) {
	var req openaiChatRequest
	if err := decode(c, &req); err != nil {
		s.fail(c, err)
		return
	}
	d, err := req.dialog()
	if err != nil {
		s.fail(c, err)
		return
	}
	answers := newChatAnswers(&req, s.fingerprint(), s.now().Unix())
	if !req.Stream {
		err := s.converse(c, d, answers.take)
		if err == nil {
			err = answers.missing()
		}
		if err != nil {
			s.fail(c, err)
			return
		}
		writeJSON(c, 200, answers.whole())
		return
	}
	out := sseStream{s: s, c: c}
	err = s.converse(c, d, func(t turn) error {
		for _, chunk := range answers.chunks(t) {
			if err := out.send("", chunk); err != nil {
				return err
			}
		}
		return answers.take(turn{index: t.index, end: t.end})
	})
	if err == nil {
		err = answers.missing()
	}
	if err == nil && req.usageWanted() {
		if err = out.send("", answers.usageChunk()); err != nil {
			noteFailure(c, err)
			return
		}
	}
	out.endOpenAI(err)
}

// dialog reads the request in no API's dialect.
func (r *openaiChatRequest) dialog() (dialog, error) {
	d := dialog{model: r.Model, keepAlive: r.KeepAlive, truncate: r.truncates(), shift: r.shifts(), n: r.answers(), think: r.Think,
		logprobs: r.Logprobs, topLogprobs: r.TopLogprobs, held: !r.Stream}
	switch {
	case len(r.Messages) == 0:
		return d, invalid("messages must not be empty")
	case r.TopLogprobs < 0 || r.TopLogprobs > 20:
		return d, invalid("top_logprobs must be between 0 and 20")
	case r.TopLogprobs > 0 && !r.Logprobs:
		return d, invalid("top_logprobs needs logprobs: true")
	}
	err := r.check()
	if err == nil {
		d.messages, err = openaiMessages(r.Messages)
	}
	if err == nil {
		d.tools, err = chatTools(r.Tools)
	}
	if err == nil {
		d.choice, err = choiceOf(r.ToolChoice, d.tools)
	}
	if err == nil {
		d.format, err = r.format()
	}
	if err == nil {
		d.options, err = r.ollamaOptions()
	}
	if err != nil {
		return d, err
	}
	d.choice.one = r.ParallelToolCalls != nil && !*r.ParallelToolCalls
	word := r.ReasoningEffort
	if r.Reasoning != nil && r.Reasoning.Effort != "" {
		word = r.Reasoning.Effort
	}
	if word != "" {
		// A length is a wish, and only some models know lengths: others think, or answer at once.
		d.lenientThink = true
		d.think, err = effort(word)
	}
	return d, err
}

func (r *openaiChatRequest) format() (json.RawMessage, error) {
	if r.ResponseFormat == nil {
		return nil, nil
	}
	f := r.ResponseFormat
	switch strings.ToLower(strings.TrimSpace(f.Type)) {
	case "", "text":
		return nil, nil
	case "json_object":
		if given(f.Schema) {
			return f.Schema, nil
		}
		return json.RawMessage(`"json"`), nil
	case "json_schema":
		if f.JSONSchema == nil || !given(f.JSONSchema.Schema) {
			return nil, invalid("response_format json_schema needs json_schema.schema")
		}
		return f.JSONSchema.Schema, nil
	}
	return nil, invalid("response_format %q is none of text, json_object, json_schema", printable(f.Type, 40))
}

// given tells whether a value is there and not null.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// chatTools reads tools as chat/completions has them.
func chatTools(raw []json.RawMessage) ([]api.Tool, error) {
	var tools []api.Tool
	for i, text := range raw {
		var tool api.Tool
		if err := json.Unmarshal(text, &tool); err != nil {
			return nil, badTool(err, i)
		}
		if tool.Type != "" && tool.Type != "function" {
			return nil, invalid("tools[%d]: a tool of the type %q cannot be called here, only functions", i, printable(tool.Type, 40))
		}
		if tool.Function.Name == "" {
			return nil, invalid("tools[%d]: function.name is missing", i)
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

func badTool(err error, i int) error {
	return fault.Wrap(err, fault.Invalid, "gateway.openai", "tools[%d] cannot be read: name and description are texts, parameters is a JSON Schema of an object", i)
}

// choiceOf reads tool_choice: a word, or a function as chat/completions ({"function":{"name"}}) or responses ({"name"}) name it.
func choiceOf(raw json.RawMessage, tools []api.Tool) (toolChoice, error) {
	if !given(raw) {
		return toolChoice{}, nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		switch {
		case word == "auto" || word == "none":
			return toolChoice{mode: word}, nil
		case word == "required" && len(tools) == 0:
			return toolChoice{}, invalid("tool_choice is required, but there are no functions in tools")
		case word == "required":
			return toolChoice{mode: word}, nil
		}
		return toolChoice{}, invalid("tool_choice %q is none of none, auto, required", printable(word, 40))
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if err := json.Unmarshal(raw, &named); err != nil || named.Type != "" && named.Type != "function" || named.Name+named.Function.Name == "" {
		return toolChoice{}, invalid(`tool_choice must be "none", "auto", "required" or {"type":"function"} with the name of one of the tools`)
	}
	name := named.Function.Name
	if name == "" {
		name = named.Name
	}
	if !slices.ContainsFunc(tools, func(t api.Tool) bool { return t.Function.Name == name }) {
		return toolChoice{}, invalid("tool_choice names the function %q, which is not in tools", printable(name, 80))
	}
	return toolChoice{mode: "required", name: name}, nil
}
