package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
)

// inferenceFields are what requests to chat and generate have in common.
type inferenceFields struct {
	nameField
	Stream      *bool           `json:"stream"`
	Format      json.RawMessage `json:"format"`
	KeepAlive   *keepAlive      `json:"keep_alive"`
	Options     map[string]any  `json:"options"`
	Think       *api.ThinkValue `json:"think"`
	Truncate    *bool           `json:"truncate"`
	Shift       *bool           `json:"shift"`
	Logprobs    bool            `json:"logprobs"`
	TopLogprobs int             `json:"top_logprobs"`
	N           int             `json:"n"` // ours: answers
	DebugOnly   bool            `json:"_debug_render_only"`
}

func (f *inferenceFields) streams() bool   { return f.Stream == nil || *f.Stream }
func (f *inferenceFields) truncates() bool { return f.Truncate == nil || *f.Truncate }
func (f *inferenceFields) shifts() bool    { return f.Shift == nil || *f.Shift }

// ending is the part of a line that only the last one has, but for done.
type ending struct {
	Done       bool           `json:"done"`
	DoneReason string         `json:"done_reason,omitempty"`
	Context    []int          `json:"context,omitempty"`
	DebugInfo  *api.DebugInfo `json:"_debug_info,omitempty"`
	*counters
}

// choice is one of several answers, in an answer that comes in one piece. Ollama knows only one.
type choice struct {
	Index      int            `json:"index"`
	Content    string         `json:"content"`
	Thinking   string         `json:"thinking,omitempty"`
	ToolCalls  []api.ToolCall `json:"tool_calls,omitempty"`
	Logprobs   []api.Logprob  `json:"logprobs,omitempty"`
	DoneReason string         `json:"done_reason"`
}

// lineOf writes a turn as a line of a route's stream; choices are all answers where there are several.
type lineOf func(at time.Time, t turn, index *int, end ending, choices []choice) any

// nativeOut writes turns as Ollama's routes have them: a line for each piece, or one object at the end.
type nativeOut struct {
	lines ndjson
	n     int // answers
	whole bool
	line  lineOf

	ended   int
	answers []gathered // of an answer in one piece
	context []int      // of the first answer
}

// gathered is an answer that comes in one piece.
type gathered struct {
	content, thinking strings.Builder
	calls             []api.ToolCall
	logprobs          []api.Logprob
	reason            string
}

func (s *server) nativeOut(c *gin.Context, f *inferenceFields, line lineOf) *nativeOut {
	n := min(max(1, f.N), maxAnswers) // one beyond the bound is refused later
	return &nativeOut{lines: ndjson{s: s, c: c}, n: n, whole: !f.streams(), line: line, answers: make([]gathered, n)}
}

// turn writes or keeps a piece of an answer.
func (o *nativeOut) turn(t turn) error {
	var end ending
	if t.end != nil {
		o.ended++
		end.DoneReason = t.end.reason
		if last := o.ended == o.n || t.end.loaded || t.end.debug != nil; last {
			end = ending{Done: true, DoneReason: t.end.reason, DebugInfo: t.end.debug, counters: t.end.counters}
		}
		end.Context = t.end.context
		if t.end.loaded || t.end.debug != nil { // one object, whether a stream was asked for or not
			writeJSON(o.lines.c, http.StatusOK, o.line(o.now(), t, nil, end, nil))
			return nil
		}
	}
	if o.whole {
		o.gather(t, end)
		return nil
	}
	var index *int
	if o.n > 1 {
		index = &t.index
	}
	return o.lines.line(o.line(o.now(), t, index, end, nil))
}

// gather keeps a piece, and answers with all of them at the end.
func (o *nativeOut) gather(t turn, end ending) {
	g := &o.answers[t.index]
	g.content.WriteString(t.content)
	g.thinking.WriteString(t.thinking)
	g.calls = append(g.calls, t.calls...)
	g.logprobs = append(g.logprobs, t.logprobs...)
	if t.end == nil {
		return
	}
	g.reason = t.end.reason
	if t.index == 0 {
		o.context = end.Context
	}
	if !end.Done {
		return
	}
	var choices []choice
	if o.n > 1 {
		for i := range o.answers {
			a := &o.answers[i]
			choices = append(choices, choice{Index: i, Content: a.content.String(), Thinking: a.thinking.String(), ToolCalls: a.calls,
				Logprobs: a.logprobs, DoneReason: a.reason})
		}
	}
	first := &o.answers[0]
	end.DoneReason, end.Context = first.reason, o.context
	whole := turn{content: first.content.String(), thinking: first.thinking.String(), calls: first.calls, logprobs: first.logprobs}
	writeJSON(o.lines.c, http.StatusOK, o.line(o.now(), whole, nil, end, choices))
}

func (o *nativeOut) now() time.Time { return o.lines.s.now().UTC() }
