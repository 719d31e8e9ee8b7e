package gateway

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sluice/agent"
	"sluice/fault"
)

// scripted answers each question with the next statement of a list, as a model would.
type scripted struct {
	answers []string
	err     error
	seen    []agent.Completion
}

func (s *scripted) Complete(_ context.Context, c agent.Completion) ([]string, error) {
	s.seen = append(s.seen, c)
	if s.err != nil {
		return nil, s.err
	}
	a := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return []string{a}, nil
}

func withAgent(t *testing.T, model *scripted) *fixture {
	t.Helper()
	f := withShop(t)
	a, err := agent.New(agent.Config{Completer: model, Model: "tiny"})
	if err != nil {
		t.Fatal(err)
	}
	f.cfg.Agent = a
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) ask(bearer string, more map[string]any) *httptest.ResponseRecorder {
	f.t.Helper()
	body := map[string]any{"database": "shop", "question": "How many items are there?"}
	for k, v := range more {
		body[k] = v
	}
	return f.do(call{method: "POST", path: "/v1/database/ask", bearer: bearer, body: body})
}

func TestAsk(t *testing.T) {
	model := &scripted{answers: []string{"SELECT count(*) AS n FROM item"}}
	f := withAgent(t, model)
	a := data[map[string]any](t, f.ask(readOnlyKey, nil))
	if a["outcome"] != "answered" || fmt.Sprint(a["rows"]) != "[[3]]" || fmt.Sprint(a["columns"]) != "[map[name:n type:BIGINT]]" || a["sql"] == "" ||
		a["verified"] != false || a["attempts"] != 1.0 || a["model"] == "" || a["ask_id"] == "" || a["answer"] == "" {
		t.Errorf("answer: %v", a)
	}

	model.answers = []string{"DELETE FROM item"}
	a = data[map[string]any](t, f.ask(adminKey, nil))
	if a["outcome"] == "answered" || a["reason"] == "" || a["rows"] != nil {
		t.Errorf("a write: %v", a)
	}
	if n := data[map[string]any](t, f.sql(adminKey, "SELECT count(*) FROM item"))["rows"]; fmt.Sprint(n) != "[[3]]" {
		t.Errorf("items: %v", n)
	}

	model.answers, model.seen = []string{"SELECT * FROM payroll_secret"}, nil
	a = data[map[string]any](t, f.ask(narrowKey, map[string]any{"model": "encoder"}))
	if a["outcome"] == "answered" || strings.Contains(fmt.Sprint(a), "xyzzy") {
		t.Errorf("a hidden table: %v", a)
	}
	if prompt := fmt.Sprint(model.seen[0].Messages); strings.Contains(prompt, "secret") || !strings.Contains(prompt, "item") {
		t.Errorf("the model sees what the asker may not: %s", prompt)
	}
}

func TestAskGoesOnWithAConversation(t *testing.T) {
	model := &scripted{answers: []string{"SELECT count(*) AS n FROM item"}}
	f := withAgent(t, model)
	earlier := []any{map[string]any{"question": "Which items are there?", "sql": "SELECT name FROM item"}, map[string]any{"question": "And the secret?", "sql": "SELECT * FROM payroll_secret"}}
	a := data[map[string]any](t, f.ask(narrowKey, map[string]any{"conversation": earlier, "model": "encoder"}))
	prompt := fmt.Sprint(model.seen[0].Messages)
	if a["outcome"] != "answered" || !strings.Contains(prompt, "Which items are there?") || strings.Contains(prompt, "secret") {
		t.Errorf("%v\n%s", a, prompt)
	}
}

func TestAskRefusals(t *testing.T) {
	f := withAgent(t, &scripted{answers: []string{"SELECT 1"}})
	for name, row := range map[string]struct {
		bearer string
		more   map[string]any
		status int
		code   string
	}{
		"no question":           {readOnlyKey, map[string]any{"question": " "}, 400, "invalid"},
		"no database":           {readOnlyKey, map[string]any{"database": ""}, 400, "invalid"},
		"a missing database":    {readOnlyKey, map[string]any{"database": "no-such"}, 404, "not_found"},
		"a missing model":       {readOnlyKey, map[string]any{"model": "no-such"}, 404, "not_found"},
		"a model not allowed":   {narrowKey, map[string]any{"model": "tiny"}, 404, "not_found"},
		"a conversation's id":   {readOnlyKey, map[string]any{"conversation": "c1"}, 501, "unimplemented"},
		"a turn with an answer": {readOnlyKey, map[string]any{"conversation": []any{map[string]any{"question": "q", "answer": "42"}}}, 400, "invalid"},
		"a mistyped key":        {readOnlyKey, map[string]any{"questoin": "x"}, 400, "invalid"},
		"a schema of one's own": {readOnlyKey, map[string]any{"schema": "CREATE TABLE payroll_secret (k)"}, 400, "invalid"},
	} {
		t.Run(name, func(t *testing.T) { failure(t, f.ask(row.bearer, row.more), row.status, row.code) })
	}
}

// failingRecord answers, and then cannot record it.
type failingRecord struct{ secret string }

func (a failingRecord) Ask(_ context.Context, _ agent.Source, q agent.Ask) (agent.Answer, error) {
	if q.OnEvent != nil {
		q.OnEvent(agent.Event{Stage: "rows", Text: "1 row"})
		q.OnEvent(agent.Event{Stage: "answer", Text: a.secret})
	}
	return agent.Answer{ID: "ask_1", Outcome: agent.Answered, Text: a.secret}, fmt.Errorf("record the ask: disk full")
}

func TestAnAnswerThatCannotBeRecordedIsNotShown(t *testing.T) {
	f := withShop(t)
	f.cfg.Agent = failingRecord{secret: "forty-two items"}
	var err error
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	w := f.ask(readOnlyKey, nil)
	failure(t, w, 500, "internal")
	if strings.Contains(w.Body.String(), "forty-two") {
		t.Errorf("half an answer: %s", w.Body)
	}
	w = f.ask(readOnlyKey, map[string]any{"stream": true})
	wantStatus(t, w, 200)
	names, payloads := events(t, w.Body.String())
	if fmt.Sprint(names) != "[rows error]" || payloads[1]["error"].(map[string]any)["code"] != "internal" || strings.Contains(w.Body.String(), "forty-two") {
		t.Errorf("%v: %s", names, w.Body)
	}
}

func TestTheAskIDIsTheOneThatIsRecorded(t *testing.T) {
	f := withShop(t)
	var recorded []string
	a, err := agent.New(agent.Config{Completer: &scripted{answers: []string{"SELECT count(*) AS n FROM item"}}, Model: "tiny",
		Record: func(_ context.Context, r agent.Record) error { recorded = append(recorded, r.ID); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	f.cfg.Agent = a
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	shown := []string{data[map[string]any](t, f.ask(readOnlyKey, nil))["ask_id"].(string)}
	_, payloads := events(t, f.ask(readOnlyKey, map[string]any{"stream": true}).Body.String())
	shown = append(shown, payloads[len(payloads)-1]["data"].(map[string]any)["ask_id"].(string))
	if !slices.Equal(shown, recorded) || shown[0] == "" || shown[0] == shown[1] {
		t.Errorf("shown %v, recorded %v", shown, recorded)
	}
}

// events parses a stream of server-sent events.
func events(t *testing.T, body string) (names []string, payloads []map[string]any) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		name, payload, ok := strings.Cut(block, "\n")
		if !ok || !strings.HasPrefix(name, "event: ") || !strings.HasPrefix(payload, "data: ") {
			t.Fatalf("not an event: %q", block)
		}
		names = append(names, strings.TrimPrefix(name, "event: "))
		payloads = append(payloads, object(t, []byte(strings.TrimPrefix(payload, "data: "))))
	}
	return names, payloads
}

func TestAskStreamsItsEvents(t *testing.T) {
	model := &scripted{answers: []string{"SELECT count(*) AS n FROM item"}}
	f := withAgent(t, model)
	w := f.ask(readOnlyKey, map[string]any{"stream": true})
	wantStatus(t, w, 200)
	names, payloads := events(t, w.Body.String())
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") || fmt.Sprint(names) != "[schema candidate gate rows answer done]" {
		t.Errorf("%v %q", names, w.Header().Get("Content-Type"))
	}
	done := payloads[len(payloads)-1]
	if done["data"].(map[string]any)["outcome"] != "answered" || done["meta"].(map[string]any)["request_id"] != w.Header().Get("X-Request-Id") {
		t.Errorf("done: %v", done)
	}

	model.err = &fault.Error{Code: fault.Busy, Msg: "the model's runner stopped", Err: fmt.Errorf("secret log")}
	w = f.ask(readOnlyKey, map[string]any{"stream": true})
	names, payloads = events(t, w.Body.String())
	last := payloads[len(payloads)-1]["error"].(map[string]any)
	if w.Code != 200 || names[len(names)-1] != "error" || last["code"] != "busy" || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %v %v", w.Code, names, last)
	}
	failure(t, f.ask(readOnlyKey, nil), 503, "busy")
	failure(t, f.ask(readOnlyKey, map[string]any{"stream": true, "question": ""}), 400, "invalid")
}
