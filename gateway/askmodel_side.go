package gateway

import (
	"strings"
)

// Chat programs ask the chosen model for things beside the conversation: a title, tags, what might be asked next. They come as
// chats of one message, which holds the program's instructions and the conversation so far. To a database they are no questions:
// they would cost an ask each, and be declined.

// sideTask is how a request of a chat program is known, and what answers it.
type sideTask struct {
	marks  []string // all of them stand in the message, in small letters
	answer func(question, database string) any
}

// sideTasks are Open WebUI's own prompts (config.py, DEFAULT_*_PROMPT_TEMPLATE), as an operator has not changed them: they ask
// for a JSON object with a key that says which they are.
var sideTasks = []sideTask{
	{[]string{`"title":`}, func(question, name string) any { return map[string]string{"title": titleOf(question, name)} }},
	{[]string{`"tags":`}, func(_, name string) any { return map[string][]string{"tags": {"Databases", name}} }},
	{[]string{`"follow_ups":`}, func(_, _ string) any { return map[string][]string{"follow_ups": {}} }},
	{[]string{`"queries":`}, func(_, _ string) any { return map[string][]string{"queries": {}} }},
	{[]string{`"text":`, "autocompletion"}, func(_, _ string) any { return map[string]string{"text": ""} }},
	{[]string{`"prompt":`, "image generation"}, func(_, _ string) any { return map[string]string{"prompt": ""} }},
}

// sideAnswer answers what a chat program asks beside the conversation.
func sideAnswer(text, database string) (string, bool) {
	head, rest, ok := strings.Cut(text, "<chat_history>")
	if !ok || !strings.HasPrefix(strings.TrimSpace(head), "### Task:") {
		return "", false
	}
	asked := ""
	for line := range strings.Lines(rest) {
		if said, ok := strings.CutPrefix(line, "USER: "); ok && asked == "" {
			asked = strings.TrimSpace(said)
		}
	}
	for _, task := range sideTasks {
		found := true
		for _, mark := range task.marks {
			found = found && strings.Contains(strings.ToLower(head), mark)
		}
		if !found {
			continue
		}
		answer, err := marshal(task.answer(asked, database))
		return string(answer), err == nil
	}
	return askPrefix + database + " answers questions about a database, and nothing else.", true
}

// titleOf is the question itself, as short as a title.
func titleOf(question, database string) string {
	const most = 40
	words, n := strings.Fields(question), 0
	var title strings.Builder
	for i, w := range words {
		n += len([]rune(w)) + 1
		if n > most && i > 0 {
			title.WriteString("…")
			break
		}
		if i > 0 {
			title.WriteString(" ")
		}
		title.WriteString(printable(w, most))
	}
	if title.Len() == 0 {
		return "Questions about " + database
	}
	return title.String()
}

// besideDocuments gives the question of a message. With documents attached, Open WebUI puts its instructions and what it found in them
// before the question, in <context>: none of that is asked.
func besideDocuments(text string) string {
	if !strings.HasPrefix(strings.TrimSpace(text), "### Task:") {
		return text
	}
	if at := strings.LastIndex(text, "</context>"); at >= 0 {
		if question := strings.TrimSpace(text[at+len("</context>"):]); question != "" {
			return question
		}
	}
	return text
}
