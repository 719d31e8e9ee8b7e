package gateway

import (
	"encoding/json"

	"github.com/ollama/ollama/api"
)

// dialog is a request for the next turn of a conversation, in no API's dialect.
type dialog struct {
	model     string // as asked for
	messages  []api.Message
	tools     []api.Tool
	choice    toolChoice
	format    json.RawMessage // as "format" of /api/chat has it; nil or null: free text
	options   map[string]any  // Ollama's names
	keepAlive *keepAlive
	think     *api.ThinkValue
	truncate  bool
	shift     bool

	logprobs    bool
	topLogprobs int
	n           int // answers; 0 is 1

	// lenientThink drops think for a model that cannot, instead of refusing: Anthropic's clients send it to every model.
	lenientThink bool

	debugOnly bool // render the prompt and say so at the end (turnEnd.debug), instead of answering it
	held      bool // the answer is kept until it is whole: it has a bound in bytes
}

// toolChoice says whether the answer must be a tool call.
type toolChoice struct {
	mode string // "" or "auto": the model decides; "none": no calls; "required": a call
	name string // with "required": of this tool
	one  bool   // at most one call (parallel_tool_calls: false)
}

// turn is a piece of an answer. Exactly one turn of each answer, its last, has end.
type turn struct {
	index    int // which of n answers
	content  string
	thinking string
	calls    []api.ToolCall // with ids; Function.Index counts from 0 over the answer
	logprobs []api.Logprob
	end      *turnEnd
}

// turnEnd is how an answer ended.
type turnEnd struct {
	reason   string // "stop", "length"; calls do not change it: each dialect has its own word for them
	stop     string // the request's or the model's stop text that ended it; "" the model did
	called   bool   // a tool was called
	loaded   bool   // nothing was asked: the model was loaded ("load") or let go ("unload"), as reason says
	counters *counters
	cached   int // tokens of the prompt that were not read again

	context []int          // of completeText: tokens that stand for prompt and answer; nil when raw
	debug   *api.DebugInfo // the rendered prompt, where only that was asked for
}

// textRequest is a request to go on from a text, or to fill a gap in one, in no API's dialect.
type textRequest struct {
	model     string // as asked for
	prompt    string // "": load the model, or let it go, as keepAlive says
	suffix    string // what comes after the gap
	system    string // in place of the model's own
	template  string // in place of the model's own
	raw       bool   // the prompt is not put into a template
	plain     bool   // nor by a server elsewhere that speaks OpenAI's API, whose completions have none
	images    [][]byte
	format    json.RawMessage
	options   map[string]any
	keepAlive *keepAlive
	think     *api.ThinkValue
	truncate  bool
	shift     bool

	logprobs    bool
	topLogprobs int
	n           int   // answers; 0 is 1
	context     []int // of an earlier answer, to go on from

	debugOnly bool
	held      bool
}
