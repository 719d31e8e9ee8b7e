package reply

import (
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/models"
)

// Each row is the answer of a model in its family's form; the reader must make the same of it however it is cut.
func TestCalls(t *testing.T) {
	const paris = `[{"get_weather":{"city":"Paris"}}]`
	const both = `[{"get_weather":{"city":"Paris"}},{"get_weather":{"city":"Rome"}}]`
	type row struct {
		answer string
		want   outcome
	}
	call := func(answer, calls string) row { return row{answer, outcome{calls: calls}} }
	text := func(answer string) row { return row{answer, outcome{content: answer}} }
	rows := map[string]row{
		// every family's form
		"Hermes, Qwen 2.5":                 call("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>", paris),
		"Hermes, two":                      call("<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>", both),
		"Hermes, two in one tag":           call("<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}</tool_call>", both),
		"Hermes, a list in the tag":        call(`<tool_call>[{"name": "get_weather", "arguments": {"city": "Paris"}},{"name": "get_weather", "arguments": {"city": "Rome"}}]</tool_call>`, both),
		"Hermes without the end":           call(`<tool_call>{"name": "get_weather", "arguments": {"city": "Paris"}}`, paris),
		"Hermes without the beginning":     call("{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>", paris),
		"Hermes with the fence of another": call("<tool_call>\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\n</tool_call>", paris),
		"Nemotron Mini":                    call(`<toolcall> {"name": "get_weather", "arguments": {"city": "Paris"}} </toolcall>`, paris),
		"Granite, Phi 4":                   call(`<|tool_call|>[{"name": "get_weather", "arguments": {"city": "Paris"}}]<|/tool_call|>`, paris),
		"Llama 3.1":                        call(`{"name": "get_weather", "parameters": {"city": "Paris"}}`, paris),
		"Llama 3.1, several":               call(`{"name": "get_weather", "parameters": {"city": "Paris"}}; {"name": "get_weather", "parameters": {"city": "Rome"}}`, both),
		"Llama 3.1, python tag":            call(`<|python_tag|>{"type": "function", "name": "get_weather", "parameters": {"city": "Paris"}}<|eom_id|>`, paris),
		"Llama 3.1, function tag":          call(`<function=get_weather>{"city": "Paris"}</function>`, paris),
		"Mistral":                          call(`[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "get_weather", "arguments": {"city": "Rome"}}]`, both),
		"Mistral, closed":                  call(`[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Paris"}}][/TOOL_CALLS]`, paris),
		"Mistral Small":                    call(`[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}[TOOL_CALLS]get_weather[ARGS]{"city": "Rome"}`, both),
		"Mistral Small with an id":         call(`[TOOL_CALLS]get_weather[CALL_ID]abc123def[ARGS]{"city": "Paris"}`, paris),
		"Mistral without args":             call(`[TOOL_CALLS]get_weather{"city": "Paris"}`, paris),
		"Command R":                        call("Action: ```json\n[\n    {\n        \"tool_name\": \"get_weather\",\n        \"parameters\": {\"city\": \"Paris\"}\n    }\n]```", paris),
		"Firefunction":                     call(` functools[{"name": "get_weather", "arguments": {"city": "Paris"}}]`, paris),
		"Qwen 3 Coder":                     call("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>", paris),
		"Qwen 3 Coder, typed":              call("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=night>\ntrue\n</parameter>\n</function>\n</tool_call>", `[{"get_weather":{"city":"Paris","days":3,"night":true}}]`),
		"Qwen 3 Coder without its tag":     call("<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>", paris),
		"Qwen 3 Coder, inner end left out": call("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</tool_call>", paris),
		"Qwen 3 Coder writes a page":       call("<tool_call>\n<function=write_file>\n<parameter=path>\na.html\n</parameter>\n<parameter=text>\n<p class=\"x\">a & b < c</p>\n{\"name\": 1}\n</parameter>\n</function>\n</tool_call>", `[{"write_file":{"path":"a.html","text":"\u003cp class=\"x\"\u003ea \u0026 b \u003c c\u003c/p\u003e\n{\"name\": 1}"}}]`),
		"GLM 4.6":                          call("<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>", paris),
		"DeepSeek V3.1":                    call("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Rome\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>", both),
		"DeepSeek R1, Cogito":              call("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{\"city\": \"Paris\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>", paris),
		"DeepSeek, inner end left out":     call("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{\"city\": \"Paris\"}<｜tool▁calls▁end｜>", paris),
		"LFM 2":                            call(`<|tool_call_start|>[get_weather(city="Paris"), get_weather(city="Rome")]<|tool_call_end|>`, both),
		"OLMo 3":                           call("<function_calls>\nget_weather(city=\"Paris\")\nget_weather(city=\"Rome\")\n</function_calls>", both),
		"Function Gemma":                   call("<start_function_call>call:get_weather{city:<escape>Paris<escape>}<end_function_call>", paris),

		// what qwen2.5-coder 0.5B (Q4_K_M) wrote at temperature 0 to the prompt of models/testdata/qwen_tools_prompt.txt
		"a real call":        call("```json\n{\n    \"name\": \"get_weather\",\n    \"arguments\": {\n        \"city\": \"Paris\",\n        \"days\": 1\n    }\n}\n```", `[{"get_weather":{"city":"Paris","days":1}}]`),
		"a real explanation": text("To call the weather tool, you can use the following code:\n\n```json\n{\n    \"name\": \"get_weather\",\n    \"arguments\": {\n        \"city\": \"London\",\n        \"days\": 5\n    }\n}\n```\n\nThis will return a json object with the function name \"get_weather\" and arguments {\"city\": \"London\", \"days\": 5}."),

		// forms that models mix
		"bare":                             call(`{"name": "get_weather", "arguments": {"city": "Paris"}}`, paris),
		"bare, several":                    call("{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}", both),
		"a list":                           call(`[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "get_weather", "arguments": {"city": "Rome"}}]`, both),
		"a fence":                          call("```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```", paris),
		"a fence without a language":       call("```\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\n", paris),
		"a fence around tags":              call("```xml\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call>\n```", paris),
		"a fence that was cut":             call("```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n``", paris),
		"OpenAI's form":                    call(`{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}`, paris),
		"OpenAI's whole message":           call(`{"tool_calls": [{"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}]}`, paris),
		"the name as the key, in a tag":    call(`<tool_call>{"get_weather": {"city": "Paris"}}</tool_call>`, paris),
		"arguments first":                  call(`{"arguments": {"city": "Paris"}, "name": "get_weather"}`, paris),
		"no arguments":                     call(`{"name": "say_hello"}`, `[{"say_hello":{}}]`),
		"null for arguments":               call(`<tool_call>{"name": "say_hello", "arguments": null}</tool_call>`, `[{"say_hello":{}}]`),
		"a text for arguments":             call(`<tool_call>{"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}</tool_call>`, paris),
		"a name that begins another":       call(`<tool_call>{"name": "get_weather_now", "arguments": {}}</tool_call>`, `[{"get_weather_now":{}}]`),
		"a name that begins another, bare": call(`[TOOL_CALLS]get_weather_now[ARGS]{}`, `[{"get_weather_now":{}}]`),
		"a line break inside a string":     call("<tool_call>{\"name\": \"write_file\", \"arguments\": {\"text\": \"a\n\tb\"}}</tool_call>", `[{"write_file":{"text":"a\n\tb"}}]`),
		"braces and tags inside a string":  call(`{"name": "write_file", "arguments": {"text": "}{ \"</tool_call>\" <tool_call>"}}`, `[{"write_file":{"text":"}{ \"\u003c/tool_call\u003e\" \u003ctool_call\u003e"}}]`),
		"an id too long for a float":       call(`{"name": "get_weather", "arguments": {"city": 12345678901234567890, "x": [9007199254740993], "y": 1.5}}`, `[{"get_weather":{"city":12345678901234567890,"x":[9007199254740993],"y":1.5}}]`),
		"nested arguments":                 call(`<tool_call>{"name": "get_weather", "arguments": {"city": {"name": "say_hello", "arguments": {}}}}</tool_call>`, `[{"get_weather":{"city":{"arguments":{},"name":"say_hello"}}}]`),

		// text around calls
		"text before a tag":             {"Let me look.\n\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call>", outcome{content: "Let me look.", calls: paris}},
		"text behind a call":            {"<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call>\nDone.", outcome{content: "Done.", calls: paris}},
		"text on both sides of tags":    {"One. <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call> Two.", outcome{content: "One.  Two.", calls: paris}},
		"a line of its own in a text":   {"I look:\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\nand wait.", outcome{content: "I look:\n\nand wait.", calls: paris}},
		"at the end of a sentence":      {"Calling: {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}", outcome{content: "Calling:", calls: paris}},
		"a fence at the end":            {"I look it up:\n\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\n", outcome{content: "I look it up:", calls: paris}},
		"two fences at the end":         {"I look:\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n```", outcome{content: "I look:", calls: both}},
		"a comma behind a call is text": {"{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}, so there.", outcome{content: ", so there.", calls: paris}},
		"a call and one of nobody's":    {"<tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}</tool_call><tool_call>{\"name\": \"nobody\", \"arguments\": {}}</tool_call>", outcome{content: "<tool_call>{\"name\": \"nobody\", \"arguments\": {}}</tool_call>", calls: paris}},

		// what only looks like a call
		"plain text":                      text("Hello, how are you? {not json} [1] a < b and `code`.\n\n"),
		"an unknown tool":                 text(`{"name": "nobody", "arguments": {"city": "Paris"}}`),
		"an unknown tool in tags":         text("<tool_call>\n{\"name\": \"nobody\", \"arguments\": {\"x\": {\"name\": \"get_weather\", \"arguments\": {}}}}\n</tool_call>"),
		"an unknown tool of Mistral":      text(`[TOOL_CALLS]nobody[ARGS]{"city": "Paris"}`),
		"an unknown tool of Qwen 3 Coder": text("<tool_call>\n<function=nobody>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>"),
		"an unknown tool of GLM":          text("<tool_call>nobody\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n</tool_call>"),
		"an unknown tool of DeepSeek":     text("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>nobody<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
		"an unknown tool of LFM":          text(`<|tool_call_start|>[nobody(city="Paris")]<|tool_call_end|>`),
		"a list with one unknown tool":    text(`[{"name": "get_weather", "arguments": {"city": "Paris"}}, {"name": "nobody", "arguments": {}}]`),
		"the other way round":             text("[\n{\"name\": \"nobody\", \"arguments\": {}},\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n]"),
		"a JSON answer":                   text(`{"title": "Weather", "tags": ["a", {"name": "get_weather", "arguments": {}}]}`),
		"a JSON answer with a name":       text(`{"name": "Bob", "age": 3}`),
		"a tool's name and other facts":   text(`{"name": "get_weather", "version": 3, "author": "Bob"}`),
		"a JSON answer over lines":        text("{\n  \"title\": \"x\",\n  \"next\":\n{\"name\": \"get_weather\", \"arguments\": {}}\n}"),
		"an example in a sentence":        text("You would send {\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}} to it."),
		"an example in backticks":         text("You would send `{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}`"),
		"an example in an explanation":    text("To call it, write:\n\n```json\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\n\nThen wait for the answer."),
		"a program that holds one":        text("```python\nprint(1)\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\n```\n"),
		"a program with tags":             text("```python\nx = \"<tool_call>\"\n<tool_call>{\"name\": \"get_weather\", \"arguments\": {}}</tool_call>\n```\nSo."),
		"the tags' names in a sentence":   text("I use the <tool_call> tag, [TOOL_CALLS] or Action: as told; functools is a module; <function=x> too. <function"),
		"a link and a list":               text("See [the page](http://x) and [1, 2, {\"a\": 1}]."),
		"a call that was cut":             text(`<tool_call>{"name": "get_weather", "arguments": {"city": "Par`),
		"a bare call that was cut":        text(`{"name": "get_weather", "arguments": {"city": "Paris"}`),
		"XML that was cut":                text("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis"),
		"XML that is wrong":               text("<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</wrong>\n</parameter\n</function>\n</tool_call>"),
		"broken JSON":                     text(`<tool_call>{"name": "get_weather", "arguments": {"city": Paris}}</tool_call>`),
		"arguments that are a list":       text(`<tool_call>{"name": "get_weather", "arguments": ["Paris"]}</tool_call>`),
		"an empty tag":                    text("<tool_call></tool_call>"),
		"a tag alone":                     text("<tool_call>"),
		"half a tag":                      text("Well <tool_c"),
		"only white space":                text(" \n\n "),
		"nothing":                         text(""),
		"emoji":                           text("😊 日本語 – é"),
	}
	m := modelOf(t, "llama", plainTemplate, "")
	c := models.Conversation{Messages: []api.Message{{Role: "user", Content: "x"}}, Tools: weather(t)}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := read(t, m, c, row.answer); got != row.want {
				t.Fatalf("of %q\ngot  %+q\nwant %+q", row.answer, got, row.want)
			}
			for _, pieces := range splits(row.answer) {
				if got := read(t, m, c, pieces...); got != row.want {
					t.Fatalf("in pieces %q\ngot  %+q\nwant %+q", pieces, got, row.want)
				}
			}
			without := models.Conversation{Messages: c.Messages}
			if got := read(t, m, without, row.answer); got != (outcome{content: row.answer}) {
				t.Errorf("without tools: %+q", got)
			}
		})
	}
}

// TestTextIsNotHeldBack holds that what cannot become a call comes out at once: people watch the answer grow.
func TestTextIsNotHeldBack(t *testing.T) {
	rows := map[string]struct{ said, content, thinking string }{
		"signs of programs":        {"a < b && f(x) { return [1] } // `x`", "a < b && f(x) { return [1] } // `x`", ""},
		"a program":                {"```go\nfunc f() {", "```go\nfunc f() {", ""},
		"a JSON answer":            {`{"title": "x`, `{"title": "x`, ""},
		"a name of nobody's":       {`{"name": "Bob", "age`, `{"name": "Bob", "age`, ""},
		"a tag and a sentence":     {"The <tool_call> tag is", "The <tool_call> tag is", ""},
		"a word that is a tag":     {"Action: go on", "Action: go on", ""},
		"a call of nobody's":       {`<tool_call>{"name": "nobody", "arg`, `<tool_call>{"name": "nobody", "arg`, ""},
		"a thought":                {"<think>I mu", "", "I mu"},
		"a thought about a tag":    {"<think>Action: use <tool_call> now", "", "Action: use <tool_call> now"},
		"a call may still come":    {`Well {"name": "get_weather", "arguments"`, "Well", ""},
		"a call in a thought, may": {"<think>So <tool_call>{", "", "So "},
	}
	m := modelOf(t, "llama", thinkTemplate, "")
	c := models.Conversation{Messages: []api.Message{{Role: "user", Content: "x"}}, Tools: weather(t)}
	for name, row := range rows {
		prompt, err := m.Prompt(c)
		if err != nil {
			t.Fatal(err)
		}
		if p := New(m, c, prompt).Add(row.said, false); p.Content != row.content || p.Thinking != row.thinking {
			t.Errorf("%s: %+v, want %+v", name, p, row)
		}
	}
}
