package gateway

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/runner"
)

const chatPath = "/v1/chat/completions"

// with makes a chat request: a model, a question, and what is added as pairs of key and value.
func with(pairs ...any) map[string]any {
	body := map[string]any{"model": "tiny", "messages": []any{map[string]any{"role": "user", "content": "hi"}}}
	for i := 0; i < len(pairs); i += 2 {
		body[pairs[i].(string)] = pairs[i+1]
	}
	return body
}

// sseData parses a stream without event names, such as a chat's, and tells whether [DONE] ended it.
func sseData(t testing.TB, w *httptest.ResponseRecorder) (chunks []map[string]any, done bool) {
	t.Helper()
	wantStatus(t, w, 200)
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("content type %q", got)
	}
	body, whole := bytes.CutSuffix(w.Body.Bytes(), []byte("\n\n"))
	if !whole {
		t.Fatalf("the last event does not end: %q", body)
	}
	for part := range bytes.SplitSeq(body, []byte("\n\n")) {
		data, ok := bytes.CutPrefix(part, []byte("data: "))
		if !ok || done || bytes.Contains(data, []byte("\n")) {
			t.Fatalf("not one data line, or behind [DONE]: %q", part)
		}
		if string(data) == "[DONE]" {
			done = true
			continue
		}
		chunks = append(chunks, object(t, data))
	}
	return chunks, done
}

// dig walks into parsed JSON: texts are keys, numbers indexes.
func dig(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func TestChatCompletionGivesTheRunnerWhatWasAsked(t *testing.T) {
	png := "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("picture"))
	schema := map[string]any{"type": "object"}
	cases := map[string]struct {
		body map[string]any
		want func(runner.GenerateRequest) any
		is   any
	}{
		"OpenAI's defaults go before Ollama's": {with(), func(r runner.GenerateRequest) any { return fmt.Sprint(r.Sampling.Temperature, r.Sampling.TopP) }, "1 1"},
		"temperature and top_p":                {with("temperature", 0, "top_p", 0.5), func(r runner.GenerateRequest) any { return fmt.Sprint(r.Sampling.Temperature, r.Sampling.TopP) }, "0 0.5"},
		"max_tokens":                           {with("max_tokens", 2), func(r runner.GenerateRequest) any { return r.NumPredict }, 2},
		"max_completion_tokens":                {with("max_completion_tokens", 3), func(r runner.GenerateRequest) any { return r.NumPredict }, 3},
		"the newer name goes before":           {with("max_tokens", 2, "max_completion_tokens", 3), func(r runner.GenerateRequest) any { return r.NumPredict }, 3},
		"no limit is a context":                {with("max_tokens", -1), func(r runner.GenerateRequest) any { return r.NumPredict }, 64},
		"stop as a text":                       {with("stop", "x"), func(r runner.GenerateRequest) any { return r.Stop }, []string{"x"}},
		"stop as a list, without empty texts":  {with("stop", []string{"", "x", "y"}), func(r runner.GenerateRequest) any { return r.Stop }, []string{"x", "y"}},
		"seed":                                 {with("seed", 7), func(r runner.GenerateRequest) any { return r.Sampling.Seed }, 7},
		"penalties": {with("frequency_penalty", 0.5, "presence_penalty", 0.25), func(r runner.GenerateRequest) any {
			return fmt.Sprint(r.Sampling.FrequencyPenalty, r.Sampling.PresencePenalty)
		}, "0.5 0.25"},
		"options, behind OpenAI's own names":  {with("options", map[string]any{"top_k": 3, "seed": 1}, "seed", 2), func(r runner.GenerateRequest) any { return fmt.Sprint(r.Sampling.TopK, r.Sampling.Seed) }, "3 2"},
		"options go before OpenAI's defaults": {with("options", map[string]any{"temperature": 0.25}), func(r runner.GenerateRequest) any { return fmt.Sprint(r.Sampling.Temperature) }, "0.25"},
		"json_object":                         {with("response_format", map[string]any{"type": "json_object"}), func(r runner.GenerateRequest) any { return r.Schema }, "null"},
		"json_schema":                         {with("response_format", map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "x", "strict": true, "schema": schema}}), func(r runner.GenerateRequest) any { return r.Schema }, `{"type":"object"}`},
		"text":                                {with("response_format", map[string]any{"type": "text"}), func(r runner.GenerateRequest) any { return r.Schema }, ""},
		"n":                                   {with("n", 3), func(r runner.GenerateRequest) any { return r.N }, 3},
		"logprobs":                            {with("logprobs", true, "top_logprobs", 2), func(r runner.GenerateRequest) any { return fmt.Sprint(r.Logprobs, r.TopLogprobs) }, "true 2"},
		"truncate and shift":                  {with("truncate", false, "shift", false), func(r runner.GenerateRequest) any { return fmt.Sprint(r.Truncate, r.Shift) }, "false false"},
		"unknown fields are ignored":          {with("user", "u", "logit_bias", map[string]any{"1": 2}, "store", true, "metadata", map[string]any{}), func(r runner.GenerateRequest) any { return r.Prompt }, "user: hi "},
		"developer is system":                 {with("messages", []any{map[string]any{"role": "developer", "content": "d"}, map[string]any{"role": "user", "content": "u"}}), func(r runner.GenerateRequest) any { return r.Prompt }, "system: d user: u "},
		"parts are one message":               {with("messages", []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "a"}, map[string]any{"type": "text", "text": "b"}}}}), func(r runner.GenerateRequest) any { return r.Prompt }, "user: a\nb "},
		"text and image are one message": {with("model", "seer", "messages", []any{map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": "what?"}, map[string]any{"type": "image_url", "image_url": map[string]any{"url": png}}}}}), func(r runner.GenerateRequest) any {
			return fmt.Sprintf("%d %s %d", len(r.Images), r.Images[0], strings.Count(r.Prompt, "user:"))
		}, "1 picture 1"},
		"calls and their results": {with("model", "caller", "tools", []any{tool("f")}, "messages", []any{map[string]any{"role": "user", "content": "u"},
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": "call_1", "type": "function", "function": map[string]any{"name": "f", "arguments": `{"a":1,"b":2}`}}}},
			map[string]any{"role": "tool", "tool_call_id": "call_1", "content": "r"}}), func(r runner.GenerateRequest) any {
			return strings.Contains(r.Prompt, `{"name": "f", "arguments": {"a": 1, "b": 2}}`) && strings.Contains(r.Prompt, "tool: r")
		}, true},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			f := withAble(t, nil)
			wantStatus(t, f.do(call{method: "POST", path: chatPath, body: row.body}), 200)
			if got := row.want(f.fake.last()); !reflect.DeepEqual(got, row.is) {
				t.Errorf("%v, want %v", got, row.is)
			}
		})
	}
}

func tool(name string) map[string]any {
	return map[string]any{"type": "function", "function": map[string]any{"name": name, "description": "d", "parameters": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "integer"}}}}}
}

func TestChatCompletionRefusesWithAReason(t *testing.T) {
	user := func(content any) any { return []any{map[string]any{"role": "user", "content": content}} }
	image := func(url string) any {
		return user([]any{map[string]any{"type": "image_url", "image_url": map[string]any{"url": url}}})
	}
	cases := map[string]struct {
		body   any
		status int
		says   string
	}{
		"no messages":                    {with("messages", []any{}), 400, "messages must not be empty"},
		"a number as content":            {with("messages", user(5)), 400, "messages[0]: content must be a text or a list of parts"},
		"no content":                     {with("messages", user(nil)), 400, "messages[0]: content is missing"},
		"an unknown part":                {with("messages", user([]any{map[string]any{"type": "input_audio"}})), 400, `messages[0]: content[0]: a part of the type "input_audio"`},
		"an unknown role":                {with("messages", []any{map[string]any{"role": "usr", "content": "x"}}), 400, `messages[0]: role "usr"`},
		"an image on the net":            {with("messages", image("http://example.com/a.png")), 400, "images are not fetched from the net"},
		"a broken image":                 {with("messages", image("data:image/png;base64,?")), 400, "not valid base64"},
		"another kind of data":           {with("messages", image("data:text/html;base64,AAAA")), 400, `of the type "text/html"`},
		"an image for a blind model":     {with("messages", image("data:image/png;base64,AAAA")), 400, "does not support images"},
		"broken arguments of a call":     {with("messages", []any{map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "c", "function": map[string]any{"name": "f", "arguments": "[1]"}}}}}), 400, "messages[0].tool_calls[0]: arguments must be a text that is a JSON object"},
		"n of nothing":                   {with("n", 0), 400, "n must be"},
		"n of too many":                  {with("n", 1000), 400, "n must be"},
		"no tokens":                      {with("max_tokens", 0), 400, "max_tokens must be at least 1"},
		"a number to stop at":            {with("stop", 1), 400, "stop must be"},
		"top_logprobs alone":             {with("top_logprobs", 1), 400, "top_logprobs needs"},
		"too many top_logprobs":          {with("logprobs", true, "top_logprobs", 21), 400, "between 0 and 20"},
		"a format nobody knows":          {with("response_format", map[string]any{"type": "xml"}), 400, `response_format "xml"`},
		"a schema that is not there":     {with("response_format", map[string]any{"type": "json_schema"}), 400, "needs json_schema.schema"},
		"an effort nobody knows":         {with("reasoning_effort", "extreme"), 400, `reasoning effort "extreme"`},
		"a choice nobody knows":          {with("tool_choice", "maybe"), 400, `tool_choice "maybe"`},
		"required without tools":         {with("tool_choice", "required"), 400, "no functions in tools"},
		"a function that is not there":   {with("model", "caller", "tools", []any{tool("f")}, "tool_choice", map[string]any{"type": "function", "function": map[string]any{"name": "g"}}), 400, `"g", which is not in tools`},
		"a tool that is no function":     {with("tools", []any{map[string]any{"type": "web"}}), 400, "tools[0]"},
		"a tool without a name":          {with("tools", []any{map[string]any{"type": "function", "function": map[string]any{}}}), 400, "function.name is missing"},
		"a tool of the wrong shape":      {with("tools", []any{map[string]any{"type": "function", "function": 5}}), 400, "tools[0] cannot be read"},
		"a wrong type, by its own name":  {with("temperature", "hot"), 400, `"temperature" cannot be a string`},
		"half a body":                    {`{"model":`, 400, "not valid JSON"},
		"no body":                        {``, 400, "missing request body"},
		"no model":                       {with("model", ""), 400, "model is required"},
		"a model that is not there":      {with("model", "nobody"), 404, "nobody"},
		"the same, streamed":             {with("model", "nobody", "stream", true), 404, "nobody"},
		"a model that does not generate": {with("model", "encoder"), 400, "does not support chat"},
		"an option of the wrong type":    {with("options", map[string]any{"top_k": "x"}), 400, "top_k"},
		"keep_alive of the wrong form":   {with("keep_alive", "soon"), 400, "keep_alive"},
	}
	f := withAble(t, nil)
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			w := f.do(call{method: "POST", path: chatPath, body: row.body})
			wantStatus(t, w, row.status)
			e, _ := object(t, w.Body.Bytes())["error"].(map[string]any)
			if !strings.Contains(fmt.Sprint(e["message"]), row.says) || e["type"] != "invalid_request_error" {
				t.Errorf("%v, want %q", e, row.says)
			}
			if code := any("model_not_found"); row.status == 404 && e["code"] != code || row.status != 404 && e["code"] == code {
				t.Errorf("code %v", e["code"])
			}
		})
	}
}

func TestAModelOfAnotherKeyDoesNotExistForOpenAI(t *testing.T) {
	f := newFixture(t, nil)
	w := f.do(call{method: "POST", path: chatPath, body: with(), bearer: narrowKey})
	wantStatus(t, w, 404)
	other := f.do(call{method: "POST", path: chatPath, body: with("model", "nobody"), bearer: narrowKey})
	if got, want := strings.ReplaceAll(w.Body.String(), "tiny", "X"), strings.ReplaceAll(other.Body.String(), "nobody", "X"); got != want {
		t.Errorf("%s\n%s", got, want)
	}
}

func TestAChatCompletion(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.cached = 1
	w := f.do(call{method: "POST", path: chatPath, body: with("logprobs", true, "top_logprobs", 1)})
	wantStatus(t, w, 200)
	v := object(t, w.Body.Bytes())
	choice := dig(v, "choices", 0)
	for what, pair := range map[string][2]any{
		"object": {v["object"], "chat.completion"}, "model": {v["model"], "tiny"}, "role": {dig(choice, "message", "role"), "assistant"},
		"content": {dig(choice, "message", "content"), "one two 三👋"}, "finish": {dig(choice, "finish_reason"), "stop"},
		"usage":       {fmt.Sprint(v["usage"]), "map[completion_tokens:3 prompt_tokens:2 prompt_tokens_details:map[cached_tokens:1] total_tokens:5]"},
		"token":       {dig(choice, "logprobs", "content", 2, "token"), " 三👋"},
		"alternative": {dig(choice, "logprobs", "content", 0, "top_logprobs", 0, "token"), "alt0"},
		"bytes":       {fmt.Sprint(dig(choice, "logprobs", "content", 0, "bytes")), "[111 110 101]"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %v, want %v", what, pair[0], pair[1])
		}
	}
	if id := v["id"].(string); !strings.HasPrefix(id, "chatcmpl-") || len(id) < 30 {
		t.Errorf("id %q", id)
	}
	// A program walks over top_logprobs without looking.
	w = f.do(call{method: "POST", path: chatPath, body: with("logprobs", true)})
	if got := dig(object(t, w.Body.Bytes()), "choices", 0, "logprobs", "content", 0, "top_logprobs"); !reflect.DeepEqual(got, []any{}) {
		t.Errorf("top_logprobs %v", got)
	}
}

func TestAStreamedChatCompletion(t *testing.T) {
	f := newFixture(t, nil)
	chunks, done := sseData(t, f.do(call{method: "POST", path: chatPath, body: with("stream", true, "stream_options", map[string]any{"include_usage": true})}))
	if !done || len(chunks) != 6 { // role, three words, end, usage
		t.Fatalf("%d chunks, [DONE] %v", len(chunks), done)
	}
	for i, c := range chunks {
		if c["id"] != chunks[0]["id"] || c["object"] != "chat.completion.chunk" || c["created"] != chunks[0]["created"] {
			t.Errorf("chunk %d: %v", i, c)
		}
		if role := dig(c, "choices", 0, "delta", "role"); (role == "assistant") != (i == 0) {
			t.Errorf("chunk %d has the role %v", i, role)
		}
		reason, there := "", false
		if choice, ok := dig(c, "choices", 0).(map[string]any); ok {
			_, there = choice["finish_reason"]
			reason, _ = choice["finish_reason"].(string)
		}
		if (reason == "stop") != (i == 4) || reason == "" && i < 4 && !there {
			t.Errorf("chunk %d: finish_reason %q, there: %v", i, reason, there)
		}
		if usage := c["usage"]; (usage != nil) != (i == 5) {
			t.Errorf("chunk %d: usage %v", i, usage)
		}
	}
	if choices := chunks[5]["choices"]; !reflect.DeepEqual(choices, []any{}) || dig(chunks[5], "usage", "total_tokens") != 5.0 {
		t.Errorf("the usage chunk: %v", chunks[5])
	}
	chunks, _ = sseData(t, f.do(call{method: "POST", path: chatPath, body: with("stream", true)}))
	if last := chunks[len(chunks)-1]; len(chunks) != 5 || last["usage"] != nil {
		t.Errorf("usage that nobody asked for: %v", last)
	}
}

func TestAnErrorInMidStreamEndsIt(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.failAt, f.fake.err = 3, fault.New(fault.Busy, "fake", "the model's runner died")
	chunks, done := sseData(t, f.do(call{method: "POST", path: chatPath, body: with("stream", true)}))
	last := chunks[len(chunks)-1]
	if done || dig(last, "error", "message") != "the model's runner died" || dig(last, "error", "type") != "server_error" {
		t.Errorf("[DONE] %v, last %v", done, last)
	}
	if dig(chunks[2], "choices", 0, "delta", "content") != " two" {
		t.Errorf("what came before is lost: %v", chunks)
	}
	f.fake.err = errors.New("the password is swordfish")
	chunks, _ = sseData(t, f.do(call{method: "POST", path: chatPath, body: with("stream", true)}))
	if text := fmt.Sprint(chunks[len(chunks)-1]); strings.Contains(text, "swordfish") || !strings.Contains(text, "internal error") {
		t.Error(text)
	}
	f.fake.failAt = 1
	wantStatus(t, f.do(call{method: "POST", path: chatPath, body: with("stream", true)}), 500)
	wantStatus(t, f.do(call{method: "POST", path: chatPath, body: with()}), 500)
}

func TestSeveralAnswersHaveTheirOwnIndexes(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.scripts = [][]string{{"a", "b"}, {"c"}, {"d", "e", "f"}}
	v := object(t, f.do(call{method: "POST", path: chatPath, body: with("n", 3)}).Body.Bytes())
	var texts []string
	for i := range 3 {
		if dig(v, "choices", i, "index") != float64(i) {
			t.Errorf("choice %d: %v", i, dig(v, "choices", i))
		}
		texts = append(texts, dig(v, "choices", i, "message", "content").(string))
	}
	if fmt.Sprint(texts) != "[ab c def]" || dig(v, "usage", "completion_tokens") != 6.0 || dig(v, "usage", "prompt_tokens") != 2.0 {
		t.Errorf("%v, %v", texts, v["usage"])
	}
	chunks, _ := sseData(t, f.do(call{method: "POST", path: chatPath, body: with("n", 3, "stream", true)}))
	streamed, roles, ends := make([]string, 3), make([]int, 3), make([]int, 3)
	for _, c := range chunks {
		i := int(dig(c, "choices", 0, "index").(float64))
		text, _ := dig(c, "choices", 0, "delta", "content").(string)
		streamed[i] += text
		if dig(c, "choices", 0, "delta", "role") != nil {
			roles[i]++
		}
		if dig(c, "choices", 0, "finish_reason") != nil {
			ends[i]++
		}
	}
	if !reflect.DeepEqual(streamed, texts) || fmt.Sprint(roles, ends) != "[1 1 1] [1 1 1]" {
		t.Errorf("%v, roles %v, ends %v", streamed, roles, ends)
	}
}

func TestToolCallsOfAChatCompletion(t *testing.T) {
	f := withAble(t, nil)
	f.fake.script = []string{"<tool_call>\n", `{"name": "f", "arguments": {"b": 1, "a": 2}}`, "\n</tool_call>", "\n<tool_call>\n", `{"name": "g", "arguments": {}}`, "\n</tool_call>"}
	body := func(more ...any) map[string]any {
		return with(append([]any{"model", "caller", "tools", []any{tool("f"), tool("g")}}, more...)...)
	}
	v := object(t, f.do(call{method: "POST", path: chatPath, body: body()}).Body.Bytes())
	choice := dig(v, "choices", 0)
	calls, _ := dig(choice, "message", "tool_calls").([]any)
	if len(calls) != 2 || dig(choice, "finish_reason") != "tool_calls" || dig(calls[0], "function", "arguments") != `{"b":1,"a":2}` ||
		dig(calls[1], "function", "name") != "g" || dig(calls[1], "function", "arguments") != "{}" || dig(choice, "message", "content") != nil {
		t.Errorf("%v", choice)
	}
	chunks, _ := sseData(t, f.do(call{method: "POST", path: chatPath, body: body("stream", true)}))
	seen := map[float64]string{}
	ids := map[any]bool{}
	for i, c := range chunks {
		list, _ := dig(c, "choices", 0, "delta", "tool_calls").([]any)
		for _, tc := range list {
			seen[dig(tc, "index").(float64)] += fmt.Sprintln(dig(tc, "type"), dig(tc, "function", "name"), dig(tc, "function", "arguments"))
			ids[dig(tc, "id")] = true
		}
		if reason := dig(c, "choices", 0, "finish_reason"); (reason != nil) != (i == len(chunks)-1) || reason != nil && reason != "tool_calls" {
			t.Errorf("chunk %d ends with %v", i, reason)
		}
	}
	if len(ids) != 2 || seen[0] != "function f {\"b\":1,\"a\":2}\n" || seen[1] != "function g {}\n" {
		t.Errorf("%v, ids %v", seen, ids)
	}
	v = object(t, f.do(call{method: "POST", path: chatPath, body: body("parallel_tool_calls", false)}).Body.Bytes())
	if calls, _ := dig(v, "choices", 0, "message", "tool_calls").([]any); len(calls) != 1 {
		t.Errorf("%d calls, want 1", len(calls))
	}
}

func TestThoughtsOfAChatCompletion(t *testing.T) {
	f := withAble(t, nil)
	f.fake.script = []string{"<think>", "hm", "</think>", "yes"}
	for level, prompt := range map[string]string{"high": "/think", "none": "/no_think"} {
		w := f.do(call{method: "POST", path: chatPath, body: with("model", "thinker", "reasoning_effort", level)})
		wantStatus(t, w, 200)
		if got := f.fake.last().Prompt; !strings.Contains(got, prompt) {
			t.Errorf("%s: %q", level, got)
		}
	}
	v := object(t, f.do(call{method: "POST", path: chatPath, body: with("model", "thinker", "reasoning", map[string]any{"effort": "low"})}).Body.Bytes())
	if msg := dig(v, "choices", 0, "message"); dig(msg, "reasoning") != "hm" || dig(msg, "content") != "yes" {
		t.Errorf("%v", msg)
	}
	f.fake.script = nil
	wantStatus(t, f.do(call{method: "POST", path: chatPath, body: with("reasoning_effort", "high")}), 200) // a wish, not a need
}
