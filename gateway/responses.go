package gateway

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/zstd"
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// responsesRequest is a request of POST /v1/responses. Nothing is stored here: what refers to an earlier response is
// refused, and store is not heeded. Unknown fields are ignored.
type responsesRequest struct {
	Model              string            `json:"model"`
	Input              json.RawMessage   `json:"input"`        // a text or items
	Instructions       json.RawMessage   `json:"instructions"` // a text or items
	MaxOutputTokens    *int              `json:"max_output_tokens"`
	Temperature        *float64          `json:"temperature"`
	TopP               *float64          `json:"top_p"`
	Tools              []json.RawMessage `json:"tools"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls  *bool             `json:"parallel_tool_calls"`
	Text               *responsesText    `json:"text"`
	Reasoning          *responsesEffort  `json:"reasoning"`
	Include            []string          `json:"include"`
	TopLogprobs        int               `json:"top_logprobs"`
	Truncation         string            `json:"truncation"`
	Metadata           json.RawMessage   `json:"metadata"`
	Stream             bool              `json:"stream"`
	Background         bool              `json:"background"`
	PreviousResponseID string            `json:"previous_response_id"`
	Conversation       json.RawMessage   `json:"conversation"`
	Prompt             json.RawMessage   `json:"prompt"`

	KeepAlive *keepAlive     `json:"keep_alive"` // Ollama's, as extensions
	Options   map[string]any `json:"options"`
	Shift     *bool          `json:"shift"`

	functions []json.RawMessage // out: the tools that can be called
}

type responsesText struct {
	Format *responsesFormat `json:"format"`
}

type responsesFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Strict *bool           `json:"strict,omitempty"`
}

type responsesEffort struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

// openaiResponses is POST /v1/responses. Streamed or not, the answer is built by the same events.
func (s *server) openaiResponses(c *gin.Context) {
	var req responsesRequest
	err := s.unzstd(c)
	if err == nil {
		err = decode(c, &req)
	}
	var d dialog
	if err == nil {
		d, err = req.dialog()
	}
	if err != nil {
		s.fail(c, err)
		return
	}
	out := sseStream{s: s, c: c}
	send := out.send
	if !req.Stream {
		send = func(string, any) error { return nil }
	}
	ev := newResponseEvents(&req, s.now, send)
	err = s.converse(c, d, ev.take)
	if err == nil && !ev.ended {
		err = fault.Bug("a response has no end")
	}
	switch {
	case err != nil && !out.started:
		s.fail(c, err)
	case err != nil:
		noteFailure(c, err)
		_ = ev.fail(fault.Public(err)) // a failed write changes nothing: the client is gone, and the error is in the log
	case !req.Stream:
		writeJSON(c, http.StatusOK, ev.response)
	}
}

// unzstd unpacks a body that came packed, as Codex sends it. The limit of a body is also that of what comes out: a few
// bytes can stand for gigabytes.
func (s *server) unzstd(c *gin.Context) error {
	switch coding := strings.ToLower(c.Request.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return nil
	case "zstd":
	default:
		return invalid("the content encoding %q is not read here: send the body as it is, or packed with zstd", printable(coding, 40))
	}
	// One at a time: without it the decoder starts goroutines that outlive a request which fails early.
	dec, err := zstd.NewReader(c.Request.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8<<20))
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "gateway.responses", "the request body could not be unpacked")
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, dec.IOReadCloser(), s.cfg.MaxBody)
	c.Request.Header.Del("Content-Encoding")
	return nil
}

// dialog reads the request in no API's dialect. The answer is held even where it streams: the last event has all of it.
func (r *responsesRequest) dialog() (dialog, error) {
	d := dialog{model: r.Model, keepAlive: r.KeepAlive, held: true, shift: r.Shift == nil || *r.Shift,
		// Without a word the oldest turns are left out, as in Ollama, and a header says so.
		truncate: r.Truncation != "disabled"}
	const stateless = "nothing is stored here: send the whole conversation in input"
	switch {
	case r.PreviousResponseID != "":
		return d, invalid("previous_response_id: %s", stateless)
	case given(r.Conversation):
		return d, invalid("conversation: %s", stateless)
	case given(r.Prompt):
		return d, invalid("prompt: no prompts are stored here: send instructions and input")
	case r.Background:
		return d, invalid("background: a response is made while its request waits; use stream to see it come")
	case r.TopLogprobs < 0 || r.TopLogprobs > 20:
		return d, invalid("top_logprobs must be between 0 and 20")
	case r.Truncation != "" && r.Truncation != "auto" && r.Truncation != "disabled":
		return d, invalid("truncation %q is none of auto, disabled", printable(r.Truncation, 40))
	}
	var err error
	if d.messages, err = r.conversation(); err != nil {
		return d, err
	}
	if d.tools, err = r.tools(); err != nil {
		return d, err
	}
	if d.choice, err = choiceOf(r.ToolChoice, d.tools); err != nil {
		return d, err
	}
	d.choice.one = r.ParallelToolCalls != nil && !*r.ParallelToolCalls
	if d.format, err = r.format(); err != nil {
		return d, err
	}
	d.options, err = openaiOptions(r.Options, r.MaxOutputTokens, "max_output_tokens", map[string]*float64{"temperature": r.Temperature, "top_p": r.TopP}, nil, nil)
	if err != nil {
		return d, err
	}
	d.logprobs = r.logprobs()
	d.topLogprobs = r.TopLogprobs
	if r.Reasoning != nil && r.Reasoning.Effort != nil {
		d.lenientThink = true // Codex sends it to every model
		d.think, err = effort(*r.Reasoning.Effort)
	}
	return d, err
}

func (r *responsesRequest) logprobs() bool {
	return r.TopLogprobs > 0 || slices.Contains(r.Include, "message.output_text.logprobs")
}

func (r *responsesRequest) format() (json.RawMessage, error) {
	if r.Text == nil || r.Text.Format == nil {
		return nil, nil
	}
	switch f := r.Text.Format; f.Type {
	case "", "text":
		return nil, nil
	case "json_object":
		return json.RawMessage(`"json"`), nil
	case "json_schema":
		if !given(f.Schema) {
			return nil, invalid("text.format json_schema needs schema")
		}
		return f.Schema, nil
	default:
		return nil, invalid("text.format %q is none of text, json_object, json_schema", printable(f.Type, 40))
	}
}

// tools are the functions among the tools. The others (web_search, …) are run by OpenAI itself: a client that sends them with
// every request is answered without them.
func (r *responsesRequest) tools() ([]api.Tool, error) {
	var tools []api.Tool
	for i, raw := range r.Tools {
		var t struct {
			Type        string                     `json:"type"`
			Name        string                     `json:"name"`
			Description string                     `json:"description"`
			Parameters  api.ToolFunctionParameters `json:"parameters"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, badTool(err, i)
		}
		if t.Type != "function" {
			continue
		}
		if t.Name == "" {
			return nil, invalid("tools[%d]: name is missing", i)
		}
		r.functions = append(r.functions, raw)
		tools = append(tools, api.Tool{Function: api.ToolFunction{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	return tools, nil
}
