package gateway

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/fault"
)

// weatherTool and mailTool are tools as clients write them.
const (
	weatherTool = `{"type":"function","function":{"name":"get_weather","description":"the weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}}`
	mailTool    = `{"type":"function","function":{"name":"send_mail","parameters":{"type":"object","properties":{}}}}`
)

func toolsOf(t testing.TB, list ...string) []api.Tool {
	t.Helper()
	var tools []api.Tool
	if err := json.Unmarshal([]byte("["+strings.Join(list, ",")+"]"), &tools); err != nil {
		t.Fatal(err)
	}
	return tools
}

// conversed is what a dialog came to.
type conversed struct {
	content, thinking string
	calls             []api.ToolCall
	ends              []*turnEnd
	turns             []turn
	header            map[string][]string
}

// converse asks the core itself, for what no native route can ask.
func (f *fixture) converse(d dialog) (conversed, error) {
	f.t.Helper()
	var out conversed
	w := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(w)
	c.Request = httptest.NewRequestWithContext(f.t.Context(), "POST", "/", nil)
	d.truncate, d.shift = true, true
	err := newServer(f.cfg).converse(c, d, func(t turn) error {
		out.content += t.content
		out.thinking += t.thinking
		out.calls = append(out.calls, t.calls...)
		out.turns = append(out.turns, t)
		if t.end != nil {
			out.ends = append(out.ends, t.end)
		}
		return nil
	})
	out.header = w.Header()
	return out, err
}

func ask(model, content string) dialog {
	return dialog{model: model, messages: []api.Message{{Role: "user", Content: content}}}
}

func (f *fixture) chat(body map[string]any) *httptest.ResponseRecorder {
	f.t.Helper()
	if body["messages"] == nil {
		body["messages"] = sea
	}
	return f.do(call{method: "POST", path: "/api/chat", body: body})
}

func TestACachedPromptIsToldOf(t *testing.T) {
	f := withAble(t, nil)
	f.fake.cached = 3
	l := object(t, f.chat(map[string]any{"model": "tiny", "stream": false}).Body.Bytes())
	if l["prompt_cached_count"] != 3.0 || l["prompt_eval_count"].(float64) <= 3 {
		t.Errorf("%v", l)
	}
	if got, err := f.converse(ask("tiny", "one two three")); err != nil || got.ends[0].cached != 3 {
		t.Errorf("%+v, %v", got.ends, err)
	}
}

func TestThinking(t *testing.T) {
	f := withAble(t, nil)
	f.fake.script = []string{"<thi", "nk>hm, ", "yes</th", "ink>", "\n\nanswer"}
	w := f.chat(map[string]any{"model": "thinker", "stream": false, "format": "json"})
	wantStatus(t, w, 200)
	msg := object(t, w.Body.Bytes())["message"].(map[string]any)
	if msg["thinking"] != "hm, yes" || msg["content"] != "answer" {
		t.Errorf("%v", msg)
	}
	if req := f.fake.last(); !strings.Contains(req.Prompt, "/think") || req.Schema != "null" || req.After != "</think>" {
		t.Errorf("%+v", req)
	}
	wantStatus(t, f.chat(map[string]any{"model": "thinker", "think": false, "format": "json"}), 200)
	if req := f.fake.last(); !strings.Contains(req.Prompt, "/no_think") || req.After != "" {
		t.Errorf("%+v", req)
	}
	w = f.chat(map[string]any{"model": "thinker", "think": "high"})
	if w.Code != 400 || !strings.Contains(w.Body.String(), "think value") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	d := ask("tiny", "hi")
	d.think = &api.ThinkValue{Value: true}
	if _, err := f.converse(d); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "does not support thinking") {
		t.Errorf("%v", err)
	}
	d.lenientThink = true
	if _, err := f.converse(d); err != nil {
		t.Errorf("lenient: %v", err)
	}
	w = f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "thinker", "prompt": "why", "stream": false}})
	if l := object(t, w.Body.Bytes()); l["thinking"] != "hm, yes" || l["response"] != "answer" {
		t.Errorf("generate: %v", l)
	}
	w = f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "thinker", "prompt": "why", "raw": true, "stream": false}})
	if l := object(t, w.Body.Bytes()); l["response"] != "<think>hm, yes</think>\n\nanswer" {
		t.Errorf("raw: %v", l)
	}
	f.waitLoaded(idle)
}

func TestImagesReachTheRunner(t *testing.T) {
	f := withAble(t, nil)
	msgs := []map[string]any{{"role": "user", "content": "what is this?", "images": []string{"aGk="}}}
	wantStatus(t, f.chat(map[string]any{"model": "seer", "messages": msgs}), 200)
	if req := f.fake.last(); len(req.Images) != 1 || string(req.Images[0]) != "hi" || !strings.Contains(req.Prompt, "[img-0]") {
		t.Errorf("%+v", req)
	}
	for _, raw := range []bool{false, true} {
		w := f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "seer", "prompt": "[img-0] what is this?", "images": []string{"aGk="}, "raw": raw}})
		wantStatus(t, w, 200)
		if req := f.fake.last(); len(req.Images) != 1 || !strings.Contains(req.Prompt, "[img-0]") {
			t.Errorf("raw %v: %+v", raw, req)
		}
	}
}

func TestSeveralAnswers(t *testing.T) {
	f := withAble(t, nil)
	f.fake.scripts = [][]string{{"a", "b", "c"}, {"x"}, nil}
	f.fake.script = []string{"p", "q"}
	for path, key := range map[string]string{"/api/chat": "message", "/api/generate": "response"} {
		body := map[string]any{"model": "tiny", "messages": sea, "prompt": "go", "n": 3}
		w := f.do(call{method: "POST", path: path, body: body})
		wantStatus(t, w, 200)
		ls, texts := lines(t, w.Body.Bytes()), make([]string, 3)
		for i, l := range ls {
			text, _ := l[key].(string)
			if msg, ok := l[key].(map[string]any); ok {
				text = msg["content"].(string)
			}
			texts[int(l["index"].(float64))] += text
			if (l["done"] == true) != (i == len(ls)-1) {
				t.Errorf("%s: line %d of %d: %v", path, i, len(ls), l)
			}
		}
		if fmt.Sprint(texts) != "[abc x pq]" {
			t.Errorf("%s: %v", path, texts)
		}
		lastLine(t, ls[len(ls)-1], "stop")
		body["stream"] = false
		l := object(t, f.do(call{method: "POST", path: path, body: body}).Body.Bytes())
		choices := l["choices"].([]any)
		if key == "response" && len(l["context"].([]any)) != len(strings.Fields(f.fake.last().Prompt+"abc")) {
			t.Errorf("the context is not the first answer's: %v", l["context"])
		}
		if lastLine(t, l, "stop"); len(choices) != 3 || choices[1].(map[string]any)["content"] != "x" || choices[2].(map[string]any)["done_reason"] != "stop" {
			t.Errorf("%s: %v", path, l)
		}
		if got := f.fake.last().N; got != 3 {
			t.Errorf("the runner was asked for %d", got)
		}
		for _, bad := range []int{-1, 129} {
			body["n"] = bad
			wantStatus(t, f.do(call{method: "POST", path: path, body: body}), 400)
		}
	}
	f.fake.lateDone = true
	if got, err := f.converse(dialog{model: "tiny", messages: ask("", "hi").messages, n: 3}); err != nil || len(got.ends) != 3 || strings.Contains(got.content, "late") {
		t.Errorf("text behind an answer's end: %+v, %v", got, err)
	}
	f.fake.lateDone = false
	got, err := f.converse(dialog{model: "tiny", messages: ask("", "hi").messages, n: 2})
	if err != nil || len(got.ends) != 2 || got.ends[0].counters == nil || got.turns[len(got.turns)-1].end == nil || got.turns[len(got.turns)-2].end == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLogProbabilitiesComeWithTheirText(t *testing.T) {
	f := withAble(t, nil)
	w := f.chat(map[string]any{"model": "tiny", "logprobs": true, "top_logprobs": 2})
	for _, l := range lines(t, w.Body.Bytes()) {
		text, lps := l["message"].(map[string]any)["content"].(string), l["logprobs"]
		if (text == "") != (lps == nil) {
			t.Fatalf("line %v", l)
		}
		if text != "" {
			first := lps.([]any)[0].(map[string]any)
			if first["token"] != text || first["logprob"] != -0.5 || len(first["top_logprobs"].([]any)) != 2 || len(first["bytes"].([]any)) != len(text) {
				t.Errorf("%v", first)
			}
		}
	}
	l := object(t, f.chat(map[string]any{"model": "tiny", "logprobs": true, "stream": false}).Body.Bytes())
	if lps := l["logprobs"].([]any); len(lps) != 3 {
		t.Errorf("in one piece: %v", lps)
	}
	// Text that is held back holds its log probabilities back.
	f.fake.script = []string{"<tool", "_call>\n{\"name\": \"send_mail\", ", "\"arguments\": {}}\n</tool_call>"}
	d := ask("caller", "hi")
	d.tools, d.logprobs = toolsOf(t, mailTool), true
	got, err := f.converse(d)
	n := 0
	for _, turn := range got.turns {
		n += len(turn.logprobs)
		if len(turn.logprobs) > 0 && len(turn.calls) == 0 && turn.end == nil {
			t.Errorf("a turn of log probabilities alone: %+v", turn)
		}
	}
	if err != nil || n != 3 || len(got.calls) != 1 {
		t.Errorf("%d log probabilities, %+v, %v", n, got, err)
	}
}

func TestWhatBindsTheAnswer(t *testing.T) {
	f := withAble(t, nil)
	const gbnf = `root ::= "yes" | "no"`
	for _, path := range []string{"/api/chat", "/api/generate"} {
		body := map[string]any{"model": "tiny", "messages": sea, "prompt": "go", "stream": false, "options": map[string]any{"grammar": gbnf, "top_k": 3}}
		wantStatus(t, f.do(call{method: "POST", path: path, body: body}), 200)
		if req := f.fake.last(); req.Grammar != gbnf || req.Schema != "" || req.Sampling.TopK != 3 {
			t.Errorf("%+v", req)
		}
		body["format"] = "json"
		if w := f.do(call{method: "POST", path: path, body: body}); w.Code != 400 || !strings.Contains(w.Body.String(), "grammar") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		body["options"] = map[string]any{"grammar": nil}
		wantStatus(t, f.do(call{method: "POST", path: path, body: body}), 200)
		body["options"] = map[string]any{"grammar": 5}
		wantStatus(t, f.do(call{method: "POST", path: path, body: body}), 400)
	}
}

func TestThePromptCanBeSeen(t *testing.T) {
	f := withAble(t, nil)
	w := f.chat(map[string]any{"model": "caller", "tools": []json.RawMessage{json.RawMessage(weatherTool)}, "_debug_render_only": true})
	wantStatus(t, w, 200)
	info := object(t, w.Body.Bytes())["_debug_info"].(map[string]any)
	if text := info["rendered_template"].(string); !strings.Contains(text, "get_weather") || !strings.Contains(text, "about the sea") {
		t.Errorf("%q", text)
	}
	w = f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "filler", "prompt": "a", "suffix": "b", "_debug_render_only": true}})
	if info := object(t, w.Body.Bytes())["_debug_info"].(map[string]any); info["rendered_template"] != "<pre>a<suf>b<mid>" {
		t.Errorf("%v", info)
	}
	if len(f.fake.requests) != 0 {
		t.Error("the runner was asked")
	}
}

func TestAGapIsFilled(t *testing.T) {
	f := withAble(t, nil)
	for _, prompt := range []string{"a", ""} { // a gap may be at the beginning
		wantStatus(t, f.do(call{method: "POST", path: "/api/generate", body: map[string]any{"model": "filler", "prompt": prompt, "suffix": "b", "stream": false}}), 200)
		if got := f.fake.last().Prompt; got != "<pre>"+prompt+"<suf>b<mid>" {
			t.Errorf("prompt %q", got)
		}
	}
}

func TestCountPrompt(t *testing.T) {
	f := withAble(t, nil)
	count := func(d dialog) int {
		t.Helper()
		c, _ := gin.CreateTestContext(httptest.NewRecorder())
		c.Request = httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		n, err := newServer(f.cfg).countPrompt(c, d)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	f.fake.special = 2
	d := ask("caller", "one two three")
	plain := count(d)
	if plain != 4+2 { // user: one two three, BOS, EOS
		t.Errorf("%d tokens", plain)
	}
	if d.tools = toolsOf(t, weatherTool); count(d) <= plain {
		t.Error("the tools do not count")
	}
	f.waitLoaded(idle)
}
