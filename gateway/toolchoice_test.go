package gateway

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/fault"
)

var callID = regexp.MustCompile(`^call_[a-z0-9]{8}$`)

func TestACallIsACallInTheStreamAndInOnePiece(t *testing.T) {
	f := withAble(t, nil)
	f.fake.script = []string{"<tool", "_call>\n{\"name\": \"get_weather\", \"argum", "ents\": {\"city\": \"Köln\", \"days\": 2}}\n</tool_call>",
		"\n<tool_call>\n{\"name\": \"send_mail\", \"arguments\": {}}\n</tool_call>"}
	tools := []json.RawMessage{json.RawMessage(weatherTool), json.RawMessage(mailTool)}
	for _, model := range []string{"caller", "thinker"} {
		for _, stream := range []bool{true, false} {
			w := f.chat(map[string]any{"model": model, "tools": tools, "stream": stream, "think": false})
			wantStatus(t, w, 200)
			body := w.Body.Bytes()
			if !stream {
				body = append(body, '\n')
			}
			ls := lines(t, body)
			var calls []map[string]any
			for _, l := range ls {
				msg := l["message"].(map[string]any)
				if text := msg["content"].(string); strings.Contains(text, "get_weather") || msg["role"] != "assistant" {
					t.Errorf("%s: raw call in the text: %v", model, l)
				}
				list, _ := msg["tool_calls"].([]any)
				for _, c := range list {
					calls = append(calls, c.(map[string]any))
				}
			}
			if len(calls) != 2 || (len(ls) == 1) == stream {
				t.Fatalf("%s, stream %v: %d calls in %s", model, stream, len(calls), w.Body)
			}
			for i, name := range []string{"get_weather", "send_mail"} {
				fn := calls[i]["function"].(map[string]any)
				if fn["name"] != name || fn["index"] != float64(i) || !callID.MatchString(calls[i]["id"].(string)) {
					t.Errorf("call %d: %v", i, calls[i])
				}
			}
			if args := calls[0]["function"].(map[string]any)["arguments"].(map[string]any); args["city"] != "Köln" || args["days"] != 2.0 {
				t.Errorf("arguments %v", args)
			}
			if calls[0]["id"] == calls[1]["id"] {
				t.Error("two calls of one id")
			}
			lastLine(t, ls[len(ls)-1], "stop")
			if w.Header().Get(toolsHeader) != "" || !strings.Contains(f.fake.last().Prompt, "get_weather") {
				t.Errorf("%s: the tools are not in the prompt %q", model, f.fake.last().Prompt)
			}
		}
	}
}

// Templates and renderers walk over the parameters of a tool, and models have seen tools with an object of them.
func TestAToolWithoutParametersHasAnEmptyObjectOfThem(t *testing.T) {
	f := withAble(t, nil)
	for path, tool := range map[string]string{
		"/api/chat": `{"function":{"name":"now"}}`, "/v1/chat/completions": `{"type":"function","function":{"name":"now"}}`,
		"/v1/responses": `{"type":"function","name":"now"}`, "/v1/messages": `{"name":"now","input_schema":{}}`,
	} {
		wantStatus(t, f.try(path, "caller", "hi", `,"tools":[`+tool+`]`), 200)
		if p := f.fake.last().Prompt; !strings.Contains(p, `"parameters": {"type": "object", "properties": {}}`) {
			t.Errorf("%s: %q", path, p)
		}
	}
	m, err := f.cfg.Models.Get("caller")
	if err != nil {
		t.Fatal(err)
	}
	d := dialog{tools: toolsOf(t, `{"function":{"name":"now"}}`)}
	got, err := newServer(f.cfg).toolsFor(nil, m, &d)
	if err != nil || len(got) != 1 || got[0].Type != "function" || got[0].Function.Parameters.Type != "object" || got[0].Function.Parameters.Properties == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTextThatOnlyLooksLikeACallStaysText(t *testing.T) {
	f := withAble(t, nil)
	for name, text := range map[string]string{
		"prose": "I would call get_weather for you.", "another tool": `{"name": "delete_all", "arguments": {}}`, "braces": "a {b} c", "unfinished": `{"name": "get_weather", "argu`,
	} {
		f.fake.script = []string{text[:len(text)/2], text[len(text)/2:]}
		d := ask("caller", "hi")
		d.tools = toolsOf(t, weatherTool)
		got, err := f.converse(d)
		if err != nil || got.content != text || len(got.calls) != 0 || got.ends[0].called {
			t.Errorf("%s: %q, %v, %v", name, got.content, got.calls, err)
		}
	}
}

func TestAModelWithoutToolsAnswersWithoutThem(t *testing.T) {
	f := withAble(t, nil)
	for _, stream := range []bool{true, false} {
		w := f.chat(map[string]any{"model": "tiny", "tools": []json.RawMessage{json.RawMessage(weatherTool)}, "stream": stream})
		if w.Code != 200 || w.Header().Get(toolsHeader) != "ignored" || strings.Contains(f.fake.last().Prompt, "get_weather") {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	if !strings.Contains(f.log.String(), `"tools":"ignored"`) {
		t.Error("the log says nothing")
	}
	d := ask("tiny", "hi")
	d.tools, d.choice = toolsOf(t, weatherTool), toolChoice{mode: "required"}
	if _, err := f.converse(d); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), `"tiny" does not support tools`) {
		t.Errorf("required: %v", err)
	}
	d.choice = toolChoice{mode: "none"}
	if got, err := f.converse(d); err != nil || len(got.header[toolsHeader]) != 0 {
		t.Errorf("none: %v, %v", got.header, err)
	}
	f.waitLoaded(idle)
}

// manyTools are more than a small context holds, as Open WebUI sends them.
func manyTools(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"type":"function","function":{"name":"tool_%d","description":"%s","parameters":{"type":"object","properties":{}}}}`, i, strings.Repeat("word ", 20)))
	}
	return list
}

func TestToolsThatDoNotFitAreLeftOut(t *testing.T) {
	f := withAble(t, nil)
	d := ask("caller", "a short question")
	d.tools = toolsOf(t, manyTools(36)...)
	got, err := f.converse(d)
	if err != nil || fmt.Sprint(got.header[toolsHeader]) != "[left-out]" || got.header[truncatedHeader] != nil {
		t.Fatalf("%v, %v", got.header, err)
	}
	if p := f.fake.last().Prompt; strings.Contains(p, "tool_") || !strings.Contains(p, "a short question") {
		t.Errorf("prompt %q", p)
	}
	f.fake.script = []string{`{"name": "tool_1", "arguments": {}}`} // it never saw the tool
	if got, err := f.converse(d); err != nil || len(got.calls) != 0 || got.content == "" {
		t.Errorf("%+v, %v", got, err)
	}
	d.choice = toolChoice{mode: "required"}
	if _, err := f.converse(d); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "the tools take") {
		t.Errorf("required: %v", err)
	}

	// Tools that would leave next to nothing to talk with do not fit either.
	d = ask("caller", "hi")
	d.tools = toolsOf(t, fmt.Sprintf(`{"type":"function","function":{"name":"f","description":"%s","parameters":{"type":"object","properties":{}}}}`, strings.Repeat("w ", 45)))
	if got, err := f.converse(d); err != nil || fmt.Sprint(got.header[toolsHeader]) != "[left-out]" {
		t.Errorf("%v, %v, %q", got.header, err, f.fake.last().Prompt)
	}

	// Tools that fit stay, and a conversation that is too long beside them loses its oldest turns.
	d = dialog{model: "caller", tools: toolsOf(t, weatherTool)}
	for i := range 12 {
		d.messages = append(d.messages, api.Message{Role: "user", Content: fmt.Sprintf("question%d %s", i, strings.Repeat("w ", 8))})
	}
	got, err = f.converse(d)
	if p := f.fake.last().Prompt; err != nil || got.header[toolsHeader] != nil || got.header[truncatedHeader] == nil || !strings.Contains(p, "get_weather") || strings.Contains(p, "question0 ") || !strings.Contains(p, "question11 ") {
		t.Errorf("%v, %v, %q", got.header, err, p)
	}
	f.waitLoaded(idle)
}

func TestChoiceOfTools(t *testing.T) {
	f := withAble(t, nil)
	d := ask("caller", "hi")
	d.tools = toolsOf(t, weatherTool, mailTool)

	d.options = map[string]any{"stop": []any{"Bonn"}}
	d.choice = toolChoice{mode: "none"}
	if _, err := f.converse(d); err != nil || strings.Contains(f.fake.last().Prompt, "get_weather") || len(f.fake.last().Stop) != 1 {
		t.Errorf("none: %v, %+v", err, f.fake.last())
	}

	f.fake.script = []string{`{"name": "get_we`, `ather", "arguments": {"city": "Bonn"}}`}
	for name, choice := range map[string]toolChoice{"any": {mode: "required"}, "named": {mode: "required", name: "get_weather"}} {
		d.choice, d.format = choice, json.RawMessage(`{"type":"string"}`) // a call has its own form
		got, err := f.converse(d)
		if err != nil || len(got.calls) != 1 || got.content != "" || got.calls[0].Function.Name != "get_weather" || !callID.MatchString(got.calls[0].ID) {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if city, _ := got.calls[0].Function.Arguments.Get("city"); city != "Bonn" || !got.ends[0].called || got.ends[0].reason != "stop" {
			t.Errorf("%s: %v, %+v", name, city, got.ends[0])
		}
		req := f.fake.last()
		if len(req.Stop) > 0 { // it may stand in an argument
			t.Errorf("%s: %q would cut the call", name, req.Stop)
		}
		if !json.Valid([]byte(req.Schema)) || !strings.Contains(req.Prompt, "get_weather") {
			t.Errorf("%s: schema %s", name, req.Schema)
		}
		if both := strings.Contains(req.Schema, "send_mail"); both != (choice.name == "") {
			t.Errorf("%s: schema %s", name, req.Schema)
		}
		if strings.Index(req.Schema, `"name"`) > strings.Index(req.Schema, `"arguments"`) {
			t.Errorf("the arguments come before the name: %s", req.Schema)
		}
	}

	f.fake.script = []string{`{"name": "get_weather", "argum`} // a limit cut it off
	if got, err := f.converse(d); err != nil || len(got.calls) != 0 || got.content != "" || got.ends[0].called {
		t.Errorf("half a call: %+v, %v", got, err)
	}

	d.choice = toolChoice{mode: "required", name: "no_such"}
	if _, err := f.converse(d); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "no_such") {
		t.Errorf("a tool that is not there: %v", err)
	}
	d.tools = nil
	if _, err := f.converse(d); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("no tools: %v", err)
	}
	f.waitLoaded(idle)
}

func TestAForcedCallMayBeThoughtAbout(t *testing.T) {
	f := withAble(t, nil)
	f.fake.script = []string{"<think>mail", " it</think>\n\n", `{"name": "send_mail", "arguments": {}}`}
	d := ask("thinker", "hi")
	d.tools, d.choice = toolsOf(t, weatherTool, mailTool), toolChoice{mode: "required"}
	got, err := f.converse(d)
	if err != nil || got.thinking != "mail it" || len(got.calls) != 1 || got.content != "" || f.fake.last().After != "</think>" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOnlyTheFirstCallWhereOneIsWanted(t *testing.T) {
	f := withAble(t, nil)
	one := "<tool_call>\n{\"name\": \"send_mail\", \"arguments\": {}}\n</tool_call>"
	f.fake.script = []string{one, one, one}
	d := ask("caller", "hi")
	d.tools = toolsOf(t, weatherTool, mailTool)
	if got, err := f.converse(d); err != nil || len(got.calls) != 3 || got.calls[2].Function.Index != 2 {
		t.Fatalf("%+v, %v", got.calls, err)
	}
	d.choice.one = true
	if got, err := f.converse(d); err != nil || len(got.calls) != 1 || got.content != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCallIDsDiffer(t *testing.T) {
	var ids []string
	for range 100 {
		ids = append(ids, newCallID())
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 100 || !callID.MatchString(ids[0]) {
		t.Errorf("%d different ids, %s", n, ids[0])
	}
}
