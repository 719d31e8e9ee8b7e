package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/ollama/ollama/api"

	"sluice/fault"
	"sluice/runner"
)

const responsesPath = "/v1/responses"

// said makes a request: a model, an input, and what is added as pairs of key and value.
func said(pairs ...any) map[string]any {
	body := with(append([]any{"input", "hi"}, pairs...)...)
	delete(body, "messages")
	return body
}

// sseEvents parses a stream of named events, whose names must be the type in their data, numbered from 0.
func sseEvents(t testing.TB, w *httptest.ResponseRecorder) []map[string]any {
	t.Helper()
	wantStatus(t, w, 200)
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("content type %q", got)
	}
	var out []map[string]any
	for part := range bytes.SplitSeq(bytes.TrimSuffix(w.Body.Bytes(), []byte("\n\n")), []byte("\n\n")) {
		name, data, ok := bytes.Cut(part, []byte("\ndata: "))
		if !ok || !bytes.HasPrefix(name, []byte("event: ")) {
			t.Fatalf("not an event: %q", part)
		}
		v := object(t, data)
		if v["type"] != string(name[len("event: "):]) || v["sequence_number"] != float64(len(out)) {
			t.Fatalf("event %d is %s: %v", len(out), name, v)
		}
		out = append(out, v)
	}
	return out
}

// replay builds a response from its events as the SDKs do, and fails where they would.
func replay(t testing.TB, events []map[string]any) map[string]any {
	t.Helper()
	var items []any
	item := func(e map[string]any) map[string]any {
		i := int(e["output_index"].(float64))
		if i != len(items)-1 {
			t.Fatalf("%s is about item %d of %d", e["type"], i, len(items))
		}
		it := items[i].(map[string]any)
		if id, there := e["item_id"]; there && id != it["id"] {
			t.Fatalf("%s is about %v, not %v", e["type"], id, it["id"])
		}
		return it
	}
	parts := map[string]string{} // item id → text so far
	for i, e := range events {
		switch kind := e["type"].(string); kind {
		case "response.created", "response.in_progress":
			if want := []string{"response.created", "response.in_progress"}; i > 1 || kind != want[i] || dig(e, "response", "status") != "in_progress" {
				t.Fatalf("event %d is %s: %v", i, kind, e)
			}
		case "response.output_item.added":
			if int(e["output_index"].(float64)) != len(items) || dig(e, "item", "status") != "in_progress" {
				t.Fatalf("%v", e)
			}
			items = append(items, e["item"])
		case "response.content_part.added", "response.reasoning_summary_part.added":
			if _, twice := parts[item(e)["id"].(string)]; twice {
				t.Fatalf("a second part: %v", e)
			}
			parts[item(e)["id"].(string)] = ""
		case "response.output_text.delta", "response.reasoning_summary_text.delta", "response.function_call_arguments.delta":
			parts[item(e)["id"].(string)] += e["delta"].(string)
		case "response.output_text.done", "response.reasoning_summary_text.done":
			if e["text"] != parts[item(e)["id"].(string)] {
				t.Fatalf("%s: %q, the pieces are %q", kind, e["text"], parts[item(e)["id"].(string)])
			}
		case "response.function_call_arguments.done":
			if e["arguments"] != parts[item(e)["id"].(string)] {
				t.Fatalf("%v", e)
			}
		case "response.content_part.done", "response.reasoning_summary_part.done":
			if dig(e, "part", "text") != parts[item(e)["id"].(string)] {
				t.Fatalf("%v", e)
			}
		case "response.output_item.done":
			if it := item(e); dig(e, "item", "id") != it["id"] || dig(e, "item", "type") != it["type"] {
				t.Fatalf("%v", e)
			}
			items[len(items)-1] = e["item"]
		case "response.completed", "response.incomplete", "response.failed":
			res := e["response"].(map[string]any)
			if i != len(events)-1 || "response."+res["status"].(string) != kind {
				t.Fatalf("event %d of %d is %s: %v", i, len(events), kind, e)
			}
			if items == nil {
				items = []any{}
			}
			if !reflect.DeepEqual(res["output"], items) {
				t.Fatalf("the events make\n%v\nthe response has\n%v", items, res["output"])
			}
			return res
		default:
			t.Fatalf("an event that nobody knows: %v", e)
		}
	}
	t.Fatal("the stream does not end")
	return nil
}

// A random answer, whatever its pieces, makes events that SDKs can follow, and the same response as without a stream.
func TestEveryAnswerIsAStreamThatSDKsCanFollow(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var turns []turn
		calls, text, thought := 0, "", ""
		for range rnd.IntN(8) {
			tr := turn{}
			if rnd.IntN(3) == 0 {
				tr.thinking = fmt.Sprintf("t%d 👋", rnd.IntN(100))
			}
			if rnd.IntN(2) == 0 {
				tr.content = fmt.Sprintf("c%d ñ", rnd.IntN(100))
				tr.logprobs = []api.Logprob{{TokenLogprob: api.TokenLogprob{Token: tr.content, Logprob: -1}}}
			}
			if rnd.IntN(4) == 0 {
				tr.calls = []api.ToolCall{{ID: fmt.Sprintf("call_%d", calls), Function: api.ToolCallFunction{Index: calls, Name: "f"}}}
				calls++
			}
			text, thought = text+tr.content, thought+tr.thinking
			turns = append(turns, tr)
		}
		reason := []string{"stop", "length"}[rnd.IntN(2)]
		turns = append(turns, turn{end: &turnEnd{reason: reason, called: calls > 0, counters: &counters{PromptEvalCount: 2, EvalCount: 3}}})

		play := func(send func(string, any) error) *responseEvents {
			ev := newResponseEvents(&responsesRequest{TopLogprobs: 1}, time.Now, send)
			for _, tr := range turns {
				if err := ev.take(tr); err != nil {
					t.Fatal(err)
				}
			}
			return ev
		}
		var events []map[string]any
		play(func(name string, v any) error {
			b, err := marshal(v)
			if err != nil {
				return err
			}
			e := object(t, b)
			if e["type"] != name || e["sequence_number"] != float64(len(events)) {
				t.Fatalf("event %d is %s: %v", len(events), name, e)
			}
			events = append(events, e)
			return nil
		})
		streamed := replay(t, events)
		whole, err := marshal(play(func(string, any) error { return nil }).response)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := shape(streamed), shape(object(t, whole)); a != b {
			t.Errorf("seed %d: streamed\n%s\nwhole\n%s", seed, a, b)
		}
		if got, want := shape(streamed), fmt.Sprintf("thought=%q text=%q calls=%d %s", thought, text, calls, map[string]string{"stop": "completed", "length": "incomplete"}[reason]); got != want {
			t.Errorf("seed %d: %s, want %s", seed, got, want)
		}
	}
}

// shape is what a response says, without ids.
func shape(res map[string]any) string {
	thought, text, calls := "", "", 0
	for _, it := range res["output"].([]any) {
		switch dig(it, "type") {
		case "reasoning":
			thought += dig(it, "summary", 0, "text").(string)
		case "message":
			said := dig(it, "content", 0, "text").(string)
			tokens := tokens(map[string]any{"logprobs": map[string]any{"content": dig(it, "content", 0, "logprobs")}})
			if list, _ := dig(it, "content", 0, "logprobs").([]any); len(list) > 0 && strings.ReplaceAll(tokens, "=-1;", "") != said {
				return fmt.Sprintf("%q has the tokens %q", said, tokens)
			}
			text += said
		case "function_call":
			calls++
		}
	}
	return fmt.Sprintf("thought=%q text=%q calls=%d %s", thought, text, calls, res["status"])
}

func TestAResponse(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.cached = 1
	w := f.do(call{method: "POST", path: responsesPath, body: said("instructions", "be brief", "metadata", map[string]any{"k": "v"}, "temperature", 0.5)})
	wantStatus(t, w, 200)
	v := object(t, w.Body.Bytes())
	for what, pair := range map[string][2]any{
		"object": {v["object"], "response"}, "status": {v["status"], "completed"}, "model": {v["model"], "tiny"},
		"text":   {dig(v, "output", 0, "content", 0, "text"), "one two 三👋"},
		"role":   {dig(v, "output", 0, "role"), "assistant"},
		"prompt": {f.fake.last().Prompt, "system: be brief user: hi "},
		"usage":  {fmt.Sprint(v["usage"]), "map[input_tokens:5 input_tokens_details:map[cached_tokens:1] output_tokens:3 output_tokens_details:map[reasoning_tokens:0] total_tokens:8]"},
		"echo":   {fmt.Sprint([]any{v["instructions"], v["metadata"], v["temperature"], v["tool_choice"], v["store"], v["tools"], v["incomplete_details"], v["error"]}), "[be brief map[k:v] 0.5 auto false [] <nil> <nil>]"},
		"format": {dig(v, "text", "format", "type"), "text"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if id := v["id"].(string); !strings.HasPrefix(id, "resp_") || len(id) < 30 {
		t.Errorf("id %q", id)
	}
	streamed := replay(t, sseEvents(t, f.do(call{method: "POST", path: responsesPath, body: said("stream", true)})))
	if shape(streamed) != shape(v) {
		t.Errorf("streamed %s, whole %s", shape(streamed), shape(v))
	}
}

func TestAResponseThatALimitCutIsIncomplete(t *testing.T) {
	f := newFixture(t, nil)
	v := object(t, f.do(call{method: "POST", path: responsesPath, body: said("max_output_tokens", 2)}).Body.Bytes())
	if v["status"] != "incomplete" || dig(v, "incomplete_details", "reason") != "max_output_tokens" || dig(v, "output", 0, "status") != "incomplete" || dig(v, "output", 0, "content", 0, "text") != "one two" {
		t.Errorf("%v", v)
	}
	replay(t, sseEvents(t, f.do(call{method: "POST", path: responsesPath, body: said("max_output_tokens", 2, "stream", true)})))
}

func TestAResponseThatFails(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.failAt, f.fake.err = 3, fault.New(fault.Busy, "fake", "the model's runner died")
	res := replay(t, sseEvents(t, f.do(call{method: "POST", path: responsesPath, body: said("stream", true)})))
	if res["status"] != "failed" || dig(res, "error", "code") != "server_error" || dig(res, "error", "message") != "the model's runner died" ||
		dig(res, "output", 0, "content", 0, "text") != "one two" || dig(res, "output", 0, "status") != "incomplete" {
		t.Errorf("%v", res)
	}
	w := f.do(call{method: "POST", path: responsesPath, body: said()})
	wantStatus(t, w, 503)
	if dig(object(t, w.Body.Bytes()), "error", "type") != "server_error" {
		t.Errorf("%s", w.Body)
	}
}

func TestAResponseWithCallsAndThoughts(t *testing.T) {
	f := withAble(t, nil)
	f.fake.script = []string{"<think>", "hm", "</think>", "<tool_call>\n", `{"name": "f", "arguments": {"a": 2}}`, "\n</tool_call>"}
	function := map[string]any{"type": "function", "name": "f", "description": "d", "strict": nil, "parameters": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}}}}
	body := said("model", "thinker", "tools", []any{map[string]any{"type": "web_search"}, function}, "reasoning", map[string]any{"effort": "medium", "summary": "auto"}, "include", []string{"reasoning.encrypted_content"})
	v := object(t, f.do(call{method: "POST", path: responsesPath, body: body}).Body.Bytes())
	if len(v["output"].([]any)) != 2 || dig(v, "output", 0, "summary", 0, "text") != "hm" || dig(v, "output", 0, "encrypted_content") != "hm" || dig(v, "output", 1, "type") != "function_call" ||
		dig(v, "output", 1, "name") != "f" || dig(v, "output", 1, "arguments") != `{"a":2}` || dig(v, "output", 1, "call_id") == nil || len(v["tools"].([]any)) != 1 {
		t.Errorf("%v", v)
	}
	body["stream"] = true
	streamed := replay(t, sseEvents(t, f.do(call{method: "POST", path: responsesPath, body: body})))
	if shape(streamed) != shape(v) {
		t.Errorf("streamed %s, whole %s", shape(streamed), shape(v))
	}
	// What came out goes in again: the thought and its call are one message, the result names its function.
	turns := []any{map[string]any{"role": "user", "content": "hi"}}
	turns = append(turns, v["output"].([]any)...)
	turns = append(turns, map[string]any{"type": "function_call_output", "call_id": dig(v, "output", 1, "call_id"), "output": "3"})
	wantStatus(t, f.do(call{method: "POST", path: responsesPath, body: said("model", "thinker", "tools", []any{function}, "input", turns)}), 200)
	prompt := f.fake.last().Prompt
	for _, part := range []string{"user: hi", "<think>hm</think>", `{"name": "f", "arguments": {"a": 2}}`, "tool: 3"} {
		if !strings.Contains(prompt, part) {
			t.Errorf("%q is not in %q", part, prompt)
		}
	}
	if strings.Count(prompt, "assistant:") != 1 {
		t.Errorf("%q", prompt)
	}
}

func TestWhatAResponseGivesTheRunner(t *testing.T) {
	schema := map[string]any{"type": "object"}
	message := func(role string, content any) any { return map[string]any{"role": role, "content": content} }
	for name, row := range map[string]struct {
		body map[string]any
		want func(runner.GenerateRequest) any
		is   any
	}{
		"a schema": {said("text", map[string]any{"format": map[string]any{"type": "json_schema", "name": "x", "strict": true, "schema": schema}}), func(r runner.GenerateRequest) any { return r.Schema }, `{"type":"object"}`},
		"any JSON": {said("text", map[string]any{"format": map[string]any{"type": "json_object"}}), func(r runner.GenerateRequest) any { return r.Schema }, "null"},
		"OpenAI's defaults": {said(), func(r runner.GenerateRequest) any {
			return fmt.Sprint(r.Sampling.Temperature, r.Sampling.TopP, r.Truncate)
		}, "1 1 true"},
		"no truncation": {said("truncation", "disabled"), func(r runner.GenerateRequest) any { return r.Truncate }, false},
		"options":       {said("options", map[string]any{"top_k": 3}), func(r runner.GenerateRequest) any { return r.Sampling.TopK }, 3},
		"logprobs":      {said("include", []string{"message.output_text.logprobs"}, "top_logprobs", 2), func(r runner.GenerateRequest) any { return fmt.Sprint(r.Logprobs, r.TopLogprobs) }, "true 2"},
		"messages and their roles": {said("input", []any{message("developer", "d"), message("user", []any{map[string]any{"type": "input_text", "text": "a"}, map[string]any{"type": "input_text", "text": "b"}}),
			map[string]any{"type": "message", "role": "assistant", "content": []any{map[string]any{"type": "output_text", "text": "c"}}}, message("user", "e")}),
			func(r runner.GenerateRequest) any { return r.Prompt }, "system: d user: a\nb assistant: c user: e "},
		"an image": {said("model", "seer", "input", []any{message("user", []any{map[string]any{"type": "input_text", "text": "?"}, map[string]any{"type": "input_image", "image_url": "data:image/png;base64,cA=="}})}),
			func(r runner.GenerateRequest) any { return fmt.Sprintf("%s", r.Images) }, "[p]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withAble(t, nil)
			wantStatus(t, f.do(call{method: "POST", path: responsesPath, body: row.body}), 200)
			if got := row.want(f.fake.last()); !reflect.DeepEqual(got, row.is) {
				t.Errorf("%v, want %v", got, row.is)
			}
		})
	}
}

func TestAResponseIsRefusedWithAReason(t *testing.T) {
	f := withAble(t, nil)
	for name, row := range map[string]struct {
		body   any
		status int
		says   string
	}{
		"an earlier response":         {said("previous_response_id", "resp_1"), 400, "previous_response_id: nothing is stored here"},
		"a conversation":              {said("conversation", "c"), 400, "conversation: nothing is stored here"},
		"a stored prompt":             {said("prompt", map[string]any{"id": "p"}), 400, "no prompts are stored"},
		"in the background":           {said("background", true), 400, "background"},
		"no input":                    {said("input", nil), 400, "input must not be empty"},
		"an empty input":              {said("input", ""), 400, "input must not be empty"},
		"no items":                    {said("input", []any{}), 400, "input must not be empty"},
		"a reference":                 {said("input", []any{map[string]any{"type": "item_reference", "id": "x"}}), 400, "input[0]: nothing is stored here"},
		"an unknown item":             {said("input", []any{map[string]any{"type": "computer_call"}}), 400, `input[0]: an item of the type "computer_call"`},
		"a file":                      {said("input", []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "input_file"}}}}), 400, `"input_file" cannot be read`},
		"a call without a name":       {said("input", []any{map[string]any{"type": "function_call", "call_id": "x"}}), 400, "input[0]: the function's name"},
		"a format nobody knows":       {said("text", map[string]any{"format": map[string]any{"type": "xml"}}), 400, `text.format "xml"`},
		"a schema that is not there":  {said("text", map[string]any{"format": map[string]any{"type": "json_schema"}}), 400, "needs schema"},
		"no tokens":                   {said("max_output_tokens", 0), 400, "max_output_tokens must be"},
		"a truncation nobody knows":   {said("truncation", "some"), 400, `truncation "some"`},
		"a choice that is not there":  {said("tool_choice", map[string]any{"type": "function", "name": "g"}), 400, `"g", which is not in tools`},
		"a choice of what OpenAI has": {said("tool_choice", map[string]any{"type": "web_search"}), 400, "tool_choice must be"},
		"a model that is not there":   {said("model", "nobody", "stream", true), 404, "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			w := f.do(call{method: "POST", path: responsesPath, body: row.body})
			wantStatus(t, w, row.status)
			if e := object(t, w.Body.Bytes())["error"]; !strings.Contains(fmt.Sprint(dig(e, "message")), row.says) || dig(e, "type") != "invalid_request_error" {
				t.Errorf("%v, want %q", e, row.says)
			}
		})
	}
}

func TestAPackedBodyIsUnpackedAndBounded(t *testing.T) {
	f := newFixture(t, func(cfg *Config) { cfg.MaxBody = 1 << 20 })
	pack := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(enc.EncodeAll(text, nil))
	}
	send := func(body, coding string) *httptest.ResponseRecorder {
		return f.do(call{method: "POST", path: responsesPath, body: body, header: map[string]string{"Content-Encoding": coding}})
	}
	wantStatus(t, send(pack(said()), "zstd"), 200)
	bomb := pack(said("input", strings.Repeat("a", 64<<20)))
	if len(bomb) > 1<<16 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	wantStatus(t, send(bomb, "zstd"), 413)
	wantStatus(t, send("no zstd at all", "zstd"), 400)
	wantStatus(t, send(pack(said())[:20], "zstd"), 400)
	wantStatus(t, send("{}", "br"), 400)
}
