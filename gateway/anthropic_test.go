package gateway

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice/fault"
)

func TestAnthropicMessagesBecomeOllamas(t *testing.T) {
	image := base64.StdEncoding.EncodeToString([]byte("PNG"))
	body := `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be kind."}],"messages":[
		{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + image + `"}},{"type":"text","text":"b"}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"c"},
			{"type":"tool_use","id":"t1","name":"f","input":{"z":1,"a":{"b":[2]}}},{"type":"tool_use","id":"t2","name":"g"}]},
		{"role":"user","content":[{"type":"text","text":"wait"},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":"broken"},
			{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"r1"},{"type":"text","text":"r2"}]},{"type":"text","text":"go on"},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"}}]}]}`
	var req anthropicRequest
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	d, err := req.dialog()
	if err != nil {
		t.Fatal(err)
	}
	got, err := marshal(d.messages)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"system","content":"Be brief.\nBe kind."},{"role":"user","content":"a\nb","images":["` + image + `"]},` +
		`{"role":"assistant","content":"c","thinking":"hm","tool_calls":[{"id":"t1","function":{"index":0,"name":"f","arguments":{"z":1,"a":{"b":[2]}}}},{"id":"t2","function":{"index":1,"name":"g","arguments":{}}}]},` +
		`{"role":"user","content":"wait"},{"role":"tool","content":"Error: broken","tool_name":"g","tool_call_id":"t2"},{"role":"tool","content":"r1\nr2","tool_name":"f","tool_call_id":"t1"},{"role":"user","content":"go on\ndoc"}]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if d.think.Bool() || !d.lenientThink || d.options["num_predict"] != 9 {
		t.Errorf("%+v", d)
	}
}

func TestAnthropicParametersBecomeOllamas(t *testing.T) {
	tools := `"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b"]}},{"type":"custom","name":"g","input_schema":{}}]`
	for name, row := range map[string]struct {
		more string
		ok   func(d dialog) bool
	}{
		"sampling": {`"temperature":0,"top_p":0.5,"top_k":3,"stop_sequences":["x","\n"]`, func(d dialog) bool {
			return fmt.Sprint(d.options["temperature"], d.options["top_p"], d.options["top_k"], d.options["stop"]) == "0 0.5 3 [x \n]"
		}},
		"options and keep_alive beside it": {`"options":{"num_ctx":2048,"temperature":1},"temperature":0.5,"keep_alive":"-1"`, func(d dialog) bool {
			return d.options["num_ctx"] == 2048.0 && d.options["temperature"] == 0.5 && d.keepAlive.Duration == -1
		}},
		"thinking":                   {`"thinking":{"type":"enabled","budget_tokens":1024}`, func(d dialog) bool { return d.think.Bool() && d.lenientThink }},
		"how long to think":          {`"thinking":{"type":"adaptive"},"output_config":{"effort":"max"}`, func(d dialog) bool { return d.think.String() == "high" }},
		"an effort without thinking": {`"output_config":{"effort":"low"}`, func(d dialog) bool { return !d.think.Bool() }},
		"no thinking":                {`"thinking":{"type":"disabled"}`, func(d dialog) bool { return !d.think.Bool() }},
		"tools": {tools, func(d dialog) bool {
			return len(d.tools) == 2 && d.tools[1].Function.Name == "g" && d.choice == toolChoice{}
		}},
		"any tool":     {tools + `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`, func(d dialog) bool { return d.choice == toolChoice{mode: "required", one: true} }},
		"this tool":    {tools + `,"tool_choice":{"type":"tool","name":"g"}`, func(d dialog) bool { return d.choice == toolChoice{mode: "required", name: "g"} }},
		"no tool":      {tools + `,"tool_choice":{"type":"none"}`, func(d dialog) bool { return d.choice == toolChoice{mode: "none"} }},
		"a schema":     {`"output_format":{"type":"json_schema","schema":{"type":"object"}}`, func(d dialog) bool { return string(d.format) == `{"type":"object"}` }},
		"a new schema": {`"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`, func(d dialog) bool { return string(d.format) == `{"type":"object"}` }},
		"ignored":      {`"metadata":{"user_id":"u"},"service_tier":"auto","container":null,"betas":["x"]`, func(d dialog) bool { return d.format == nil && d.tools == nil }},
	} {
		var req anthropicRequest
		if err := json.Unmarshal([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a"}],`+row.more+`}`), &req); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d, err := req.dialog(); err != nil || !row.ok(d) {
			t.Errorf("%s: %v, %+v", name, err, d)
		}
	}
}

func TestAnthropicRequestsThatAreRefused(t *testing.T) {
	f := newFixture(t, nil)
	ok := `"messages":[{"role":"user","content":"a"}]`
	block := func(b string) string { return `"max_tokens":1,"messages":[{"role":"user","content":[` + b + `]}]` }
	for name, row := range map[string]struct{ body, says string }{
		"no max_tokens":            {ok, "max_tokens: field required"},
		"max_tokens 0":             {`"max_tokens":0,` + ok, "greater than 0"},
		"no messages":              {`"max_tokens":1`, "at least one message"},
		"empty messages":           {`"max_tokens":1,"messages":[]`, "at least one message"},
		"a role of its own":        {`"max_tokens":1,"messages":[{"role":"tool","content":"a"}]`, "messages.0.role"},
		"content is a number":      {`"max_tokens":1,"messages":[{"role":"user","content":5}]`, "messages.0.content"},
		"no content":               {`"max_tokens":1,"messages":[{"role":"user"}]`, "messages.0.content"},
		"empty content":            {`"max_tokens":1,"messages":[{"role":"user","content":[]}]`, "must not be empty"},
		"a block is a text":        {block(`"a"`), "messages.0.content"},
		"an unknown block":         {block(`{"type":"video"}`), "messages.0.content.0.type"},
		"an image by its address":  {block(`{"type":"image","source":{"type":"url","url":"http://x/"}}`), "base64"},
		"an image that is none":    {block(`{"type":"image","source":{"type":"base64","data":"%"}}`), "messages.0.content.0.source.data"},
		"a file as a document":     {block(`{"type":"document","source":{"type":"base64","data":"JVBERi0="}}`), "documents of type text"},
		"a result of no call":      {block(`{"type":"tool_result","content":"a"}`), "tool_use_id"},
		"system is a number":       {`"max_tokens":1,"system":5,` + ok, "system"},
		"an image as system":       {`"max_tokens":1,"system":[{"type":"image"}],` + ok, "system.0.type"},
		"a call without its name":  {`"max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x"}]}]`, "id and name"},
		"arguments are a list":     {`"max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":[1]}]}]`, "input: must be an object"},
		"Anthropic's own tool":     {`"max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}],` + ok, "web_search_20250305"},
		"a tool without a schema":  {`"max_tokens":1,"tools":[{"name":"f"}],` + ok, "tools.0.input_schema"},
		"a schema that is a text":  {`"max_tokens":1,"tools":[{"name":"f","input_schema":"x"}],` + ok, "tools.0.input_schema"},
		"a tool twice":             {`"max_tokens":1,"tools":[{"name":"f","input_schema":{}},{"name":"f","input_schema":{}}],` + ok, "twice"},
		"a choice without tools":   {`"max_tokens":1,"tool_choice":{"type":"any"},` + ok, "needs tools"},
		"a choice of no tool":      {`"max_tokens":1,"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"g"},` + ok, "there is no tool"},
		"an unknown choice":        {`"max_tokens":1,"tool_choice":{"type":"must"},` + ok, "tool_choice.type"},
		"an empty stop":            {`"max_tokens":1,"stop_sequences":[""],` + ok, "stop_sequences.0"},
		"a format without schema":  {`"max_tokens":1,"output_format":{"type":"json_schema"},` + ok, "output_config.format"},
		"temperature is a text":    {`"max_tokens":1,"temperature":"hot",` + ok, "temperature"},
		"top_k of the wrong type":  {`"max_tokens":1,"top_k":1.5,` + ok, "top_k"},
		"an option of wrong type":  {`"max_tokens":1,"options":{"num_ctx":"x"},` + ok, "num_ctx"},
		"a keep_alive of no sense": {`"max_tokens":1,"keep_alive":"soon",` + ok, "keep_alive"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range []string{"false", "true"} {
				w := f.do(call{method: "POST", path: "/v1/messages", body: `{"model":"tiny","stream":` + stream + `,` + row.body + `}`})
				anthropicFailure(t, w, 400, "invalid_request_error", row.says)
			}
		})
	}
	anthropicFailure(t, f.do(call{method: "POST", path: "/v1/messages", body: `{"model":"none","max_tokens":1,` + ok + `}`}), 404, "not_found_error", "none")
	anthropicFailure(t, f.do(call{method: "POST", path: "/v1/messages", body: `{"model":"encoder","max_tokens":1,` + ok + `}`}), 400, "invalid_request_error", "encoder")
	anthropicFailure(t, f.do(call{method: "POST", path: "/v1/messages", body: `{`}), 400, "invalid_request_error", "JSON")
	anthropicFailure(t, f.do(call{method: "POST", path: "/v1/messages/count_tokens", body: `{"model":"none",` + ok + `}`}), 404, "not_found_error", "none")
	anthropicFailure(t, f.do(call{method: "POST", path: "/v1/messages/count_tokens", body: `{"model":"tiny"}`}), 400, "invalid_request_error", "messages")
}

func anthropicFailure(t testing.TB, w *httptest.ResponseRecorder, status int, kind, says string) {
	t.Helper()
	body := object(t, w.Body.Bytes())
	e, _ := body["error"].(map[string]any)
	message, _ := e["message"].(string)
	if w.Code != status || body["type"] != "error" || e["type"] != kind || !strings.Contains(message, says) || body["request_id"] == nil || body["request_id"] != w.Header().Get("request-id") {
		t.Errorf("status %d: %s\nwant %d, %s and %q", w.Code, w.Body, status, kind, says)
	}
}

func messagesCall(more map[string]any) call {
	body := map[string]any{"model": "tiny", "max_tokens": 9, "messages": []map[string]any{{"role": "user", "content": "the sea"}}}
	for k, v := range more {
		body[k] = v
	}
	return call{method: "POST", path: "/v1/messages", body: body, header: map[string]string{"anthropic-version": "2023-06-01"}}
}

func TestMessagesAreAnswered(t *testing.T) {
	f := newFixture(t, nil)
	whole := f.do(messagesCall(nil))
	wantStatus(t, whole, 200)
	streamed := f.do(messagesCall(map[string]any{"stream": true}))
	wantStatus(t, streamed, 200)
	for name, msg := range map[string]map[string]any{"whole": object(t, whole.Body.Bytes()), "streamed": accumulate(t, eventsOf(t, streamed))} {
		usage := msg["usage"].(map[string]any)
		if id, _ := msg["id"].(string); !strings.HasPrefix(id, "msg_") || msg["model"] != "tiny" || msg["role"] != "assistant" || msg["stop_reason"] != "end_turn" ||
			usage["input_tokens"].(float64) < 1 || usage["output_tokens"] != 3.0 || fmt.Sprint(msg["content"]) != "[map[text:one two 三👋 type:text]]" {
			t.Errorf("%s: %v", name, msg)
		}
	}
	if whole.Header().Get("request-id") == "" {
		t.Error("no request-id header")
	}
	w := f.do(messagesCall(map[string]any{"max_tokens": 2}))
	if msg := object(t, w.Body.Bytes()); msg["stop_reason"] != "max_tokens" || f.fake.last().NumPredict != 2 {
		t.Errorf("max_tokens 2: %s", w.Body)
	}
	w = f.do(messagesCall(map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1024}}))
	wantStatus(t, w, 200) // to a model that cannot think: Claude's clients send it to every model
}

func TestMessagesThatFailInMidStreamEndInAnErrorEvent(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.failAt, f.fake.err = 2, &fault.Error{Code: fault.Busy, Op: "fake", Msg: "the runner was killed"}
	w := f.do(messagesCall(map[string]any{"stream": true}))
	wantStatus(t, w, 200)
	events := eventsOf(t, w)
	last := events[len(events)-1]
	e, _ := last.data["error"].(map[string]any)
	if last.name != "error" || e["type"] != "overloaded_error" || !strings.Contains(fmt.Sprint(e["message"]), "killed") || events[0].name != "message_start" {
		t.Errorf("ends with %v", last)
	}
	for _, ev := range events {
		if ev.name == "message_stop" {
			t.Error("a failed message has message_stop: clients take it for whole")
		}
	}
	w = f.do(messagesCall(nil))
	anthropicFailure(t, w, 529, "overloaded_error", "killed")
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	f.fake.failAt = 1
	w = f.do(messagesCall(map[string]any{"stream": true}))
	anthropicFailure(t, w, 529, "overloaded_error", "killed") // nothing was out: a status, not an event
}

func TestMessagesOfAClientThatLeavesEnd(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.hold, f.fake.ended = make(chan struct{}), make(chan error, 1)
	srv := httptest.NewServer(f.handler)
	defer srv.Close()
	body, err := json.Marshal(messagesCall(map[string]any{"stream": true}).body)
	if err != nil {
		t.Fatal(err)
	}
	res, err := srv.Client().Post(srv.URL+"/v1/messages", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(res.Body, make([]byte, 20)); err != nil { // the first event came while the rest is held
		t.Fatal(err)
	}
	_ = res.Body.Close()
	select {
	case err := <-f.fake.ended:
		if err == nil {
			t.Error("the generation went on to its end")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the generation goes on")
	}
	f.waitLoaded(idle)
}

func TestTokensOfMessagesAreCounted(t *testing.T) {
	f := newFixture(t, nil)
	counted := messagesCall(map[string]any{"system": "Be brief."})
	counted.path = "/v1/messages/count_tokens"
	body := counted.body.(map[string]any)
	delete(body, "max_tokens") // not asked for here
	w := f.do(counted)
	wantStatus(t, w, 200)
	body["max_tokens"] = 5
	asked := f.do(messagesCall(body))
	wantStatus(t, asked, 200)
	n, used := object(t, w.Body.Bytes())["input_tokens"], object(t, asked.Body.Bytes())["usage"].(map[string]any)["input_tokens"]
	if n != used || n.(float64) < 6 {
		t.Errorf("counted %v, used %v", n, used)
	}
}
