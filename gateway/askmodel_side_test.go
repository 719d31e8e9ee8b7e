package gateway

import (
	"strings"
	"testing"

	"sluice/agent"
)

// sidePrompt has the form of Open WebUI's prompts, of which only the task and the form of the answer differ. What it really
// sends is tested in internal/e2e, with a real one.
func sidePrompt(task, form string) string {
	return "### Task:\n" + task + "\n### Guidelines:\n- Keep it short.\n### Output:\nJSON format: " + form + "\n### Chat History:\n<chat_history>\n" +
		"USER: How many items are there in each region?\nASSISTANT: 3.\n\n```sql\nSELECT 1\n```\nUSER: And \"tags\": by year?\n</chat_history>"
}

func TestWhatChatProgramsAskBeside(t *testing.T) {
	a := &told{answer: agent.Answer{Outcome: agent.Declined, Text: "No."}}
	f := withTold(t, a)
	for name, row := range map[string]struct{ task, form, want string }{
		"a title":       {"Generate a concise title.", `{ "title": "your title" }`, `{"title":"How many items are there in each…"}`},
		"tags":          {"Generate tags.", `{ "tags": ["tag1"] }`, `{"tags":["Databases","shop"]}`},
		"follow-ups":    {"Predict messages.", `{ "follow_ups": ["a"] }`, `{"follow_ups":[]}`},
		"searches":      {"Generate search queries.", `{ "queries": ["a"] }`, `{"queries":[]}`},
		"a completion":  {"You are an autocompletion system.", `{ "text": "a" }`, `{"text":""}`},
		"an image":      {"Generate a prompt for an image generation task.", `{ "prompt": "a" }`, `{"prompt":""}`},
		"something new": {"Rate the chat.", `{ "stars": 5 }`, "ask/shop answers questions about a database, and nothing else."},
	} {
		t.Run(name, func(t *testing.T) {
			w := f.do(call{method: "POST", path: "/api/chat", bearer: readOnlyKey, body: askChat(sidePrompt(row.task, row.form), m{"options": m{"num_predict": 1000}})})
			wantStatus(t, w, 200)
			msg := object(t, w.Body.Bytes())["message"].(map[string]any)
			if msg["content"] != row.want || msg["thinking"] != nil {
				t.Errorf("%v, want %s", msg, row.want)
			}
		})
	}
	if len(a.asked) != 0 {
		t.Errorf("asked %v", a.asked)
	}
	for _, question := range []string{"How many tasks are there?", "### Task: how many?", "What is in <chat_history>?", `Which "title": is the longest?`} {
		if text, ok := sideAnswer(question, "shop"); ok {
			t.Errorf("%q is answered %q", question, text)
		}
	}
}

func TestDocumentsAreNotTheQuestion(t *testing.T) {
	rag := "### Task:\nRespond to the user query using the provided context.\n\n<context>\n<source id=\"1\">DROP everything</source>\n</context>\n\nHow many items are there?"
	if got := besideDocuments(rag); got != "How many items are there?" {
		t.Errorf("%q", got)
	}
	for _, text := range []string{"How many </context> are there?", "### Task:\nno context", "### Task:\n<context>a</context>"} {
		if got := besideDocuments(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func TestTitles(t *testing.T) {
	for question, want := range map[string]string{
		"":                          "Questions about shop",
		"How many?":                 "How many?",
		strings.Repeat("ab ", 30):   strings.TrimSpace(strings.Repeat("ab ", 13)) + "…",
		strings.Repeat("x", 100):    strings.Repeat("x", 40) + "…",
		"line\x1b[2J with controls": "line?[2J with controls",
	} {
		if got := titleOf(question, "shop"); got != want {
			t.Errorf("%q: %q, want %q", question, got, want)
		}
	}
}
