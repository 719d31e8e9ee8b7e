package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"
)

// event is one of a stream's events.
type event struct {
	name string
	data map[string]any
}

// eventsOf parses server-sent events strictly: a name and one line of data each, and nothing else.
func eventsOf(t testing.TB, w *httptest.ResponseRecorder) []event {
	t.Helper()
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("Content-Type %q: %.200s", got, w.Body)
	}
	var out []event
	for block := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
		sc := bufio.NewScanner(strings.NewReader(block))
		sc.Buffer(nil, 1<<20)
		var ls []string
		for sc.Scan() {
			ls = append(ls, sc.Text())
		}
		name, ok := strings.CutPrefix(ls[0], "event: ")
		if len(ls) != 2 || !ok || !strings.HasPrefix(ls[1], "data: ") {
			t.Fatalf("not an event: %q", block)
		}
		e := event{name: name, data: object(t, []byte(strings.TrimPrefix(ls[1], "data: ")))}
		if e.data["type"] != name {
			t.Errorf("event %s has type %v", name, e.data["type"])
		}
		out = append(out, e)
	}
	return out
}

// accumulate does what Anthropic's SDKs do with a stream, and is as strict about the order of its events.
func accumulate(t testing.TB, events []event) map[string]any {
	t.Helper()
	var msg map[string]any
	var blocks []map[string]any
	open, ended := -1, false
	partial := ""
	for i, e := range events {
		index := -1
		if n, ok := e.data["index"].(float64); ok {
			index = int(n)
		}
		switch e.name {
		case "message_start":
			if i != 0 {
				t.Fatalf("message_start is event %d", i)
			}
			msg = e.data["message"].(map[string]any)
			for _, key := range []string{"stop_reason", "stop_sequence"} {
				if v, ok := msg[key]; !ok || v != nil {
					t.Errorf("message_start has %s %v", key, v)
				}
			}
		case "content_block_start":
			if open >= 0 || index != len(blocks) {
				t.Fatalf("block %d starts while %d is open, after %d blocks", index, open, len(blocks))
			}
			open, partial = index, ""
			blocks = append(blocks, e.data["content_block"].(map[string]any))
		case "content_block_delta":
			if index != open {
				t.Fatalf("a delta of block %d while %d is open", index, open)
			}
			b, d := blocks[index], e.data["delta"].(map[string]any)
			switch fmt.Sprint(b["type"], " ", d["type"]) {
			case "text text_delta":
				b["text"] = b["text"].(string) + d["text"].(string)
			case "thinking thinking_delta":
				b["thinking"] = b["thinking"].(string) + d["thinking"].(string)
			case "tool_use input_json_delta":
				partial += d["partial_json"].(string)
				b["input"] = json.RawMessage(partial)
			default:
				t.Fatalf("delta %v in a block %v", d, b)
			}
		case "content_block_stop":
			if index != open {
				t.Fatalf("block %d stops while %d is open", index, open)
			}
			if blocks[index]["type"] == "tool_use" {
				blocks[index]["input"] = object(t, []byte(partial))
			}
			open = -1
		case "message_delta":
			if open >= 0 {
				t.Fatal("the message ends in an open block")
			}
			for k, v := range e.data["delta"].(map[string]any) {
				msg[k] = v
			}
			for k, v := range e.data["usage"].(map[string]any) {
				msg["usage"].(map[string]any)[k] = v
			}
		case "message_stop":
			ended = i == len(events)-1
		default:
			t.Fatalf("event %s", e.name)
		}
	}
	if !ended {
		t.Fatal("message_stop is not the last event")
	}
	content := []any{}
	for _, b := range blocks {
		content = append(content, b)
	}
	msg["content"] = content
	return msg
}

func TestAnAnswerInAnthropicsWords(t *testing.T) {
	gin.SetMode(gin.ReleaseMode) // else it writes a page of advice
	args := api.NewToolCallFunctionArguments()
	args.Set("z", 1.0)
	args.Set("a", "<x>")
	call := func(id string, a api.ToolCallFunctionArguments) api.ToolCall {
		return api.ToolCall{ID: id, Function: api.ToolCallFunction{Name: "f", Arguments: a}}
	}
	end := func(reason string, called bool) turn {
		return turn{end: &turnEnd{reason: reason, called: called, cached: 3, counters: &counters{PromptEvalCount: 10, EvalCount: 7}}}
	}
	text := func(s string) map[string]any { return map[string]any{"type": "text", "text": s} }
	use := func(id string, input map[string]any) map[string]any {
		return map[string]any{"type": "tool_use", "id": id, "name": "f", "input": input}
	}
	for name, row := range map[string]struct {
		turns  []turn
		want   []any
		reason string
	}{
		"text":            {[]turn{{content: "Grüße"}, {content: " 👋"}, end("stop", false)}, []any{text("Grüße 👋")}, "end_turn"},
		"cut at its end":  {[]turn{{content: "a"}, end("length", false)}, []any{text("a")}, "max_tokens"},
		"nothing at all":  {[]turn{end("stop", false)}, []any{}, "end_turn"},
		"text at its end": {[]turn{{content: "a", end: end("stop", false).end}}, []any{text("a")}, "end_turn"},
		"thinking first": {[]turn{{thinking: "hm"}, {thinking: "m", content: "a"}, {content: "b"}, end("stop", false)},
			[]any{map[string]any{"type": "thinking", "thinking": "hmm", "signature": ""}, text("ab")}, "end_turn"},
		"only thinking": {[]turn{{thinking: "hm"}, end("length", false)}, []any{map[string]any{"type": "thinking", "thinking": "hm", "signature": ""}}, "max_tokens"},
		"calls between texts": {[]turn{{content: "a"}, {calls: []api.ToolCall{call("c1", args), call("c2", api.NewToolCallFunctionArguments())}}, {content: "b"}, {calls: []api.ToolCall{call("c3", args)}}, end("stop", true)},
			[]any{text("a"), use("c1", map[string]any{"z": 1.0, "a": "<x>"}), use("c2", map[string]any{}), text("b"), use("c3", map[string]any{"z": 1.0, "a": "<x>"})}, "tool_use"},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			c, _ := gin.CreateTestContext(w)
			c.Request = httptest.NewRequest("POST", "/v1/messages", nil)
			start := anthropicAnswer{ID: "msg_1", Type: "message", Role: "assistant", Model: "m", Content: []any{}}
			whole, stream := start, anthropicStream{sse: sseStream{c: c}, msg: start}
			for _, piece := range row.turns {
				if err := whole.add(piece); err != nil {
					t.Fatal(err)
				}
				if err := stream.add(piece); err != nil {
					t.Fatal(err)
				}
			}
			b, err := marshal(whole)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": row.want, "stop_reason": row.reason, "stop_sequence": nil,
				"usage": map[string]any{"input_tokens": 7.0, "cache_read_input_tokens": 3.0, "cache_creation_input_tokens": 0.0, "output_tokens": 7.0}}
			if got := object(t, b); !reflect.DeepEqual(got, want) {
				t.Errorf("whole: %v\nwant   %v", got, want)
			}
			if got := accumulate(t, eventsOf(t, w)); !reflect.DeepEqual(got, want) {
				t.Errorf("stream: %v\nwant    %v", got, want)
			}
		})
	}
}

func TestAStopSequenceIsTold(t *testing.T) {
	for name, row := range map[string]struct{ asked, ended, reason, sequence string }{
		"the request's own":        {`["END","x"]`, "END", "stop_sequence", "END"},
		"the model's own":          {`["END"]`, "<|im_end|>", "end_turn", ""},
		"none, the model ended it": {`["END"]`, "", "end_turn", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			f.fake.stop = row.ended
			for _, stream := range []string{"false", "true"} {
				w := f.do(call{method: "POST", path: "/v1/messages", body: `{"model":"tiny","max_tokens":9,"stop_sequences":` + row.asked + `,"messages":[{"role":"user","content":"hi"}],"stream":` + stream + `}`})
				wantStatus(t, w, 200)
				want := `"stop_reason":"` + row.reason + `","stop_sequence":null`
				if row.sequence != "" {
					want = `"stop_reason":"` + row.reason + `","stop_sequence":"` + row.sequence + `"`
				}
				if !strings.Contains(w.Body.String(), want) {
					t.Errorf("stream %s: want %s in %s", stream, want, w.Body)
				}
			}
		})
	}
}
