package gateway

import (
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/ollama/ollama/api"

	"sluice/agent"
	"sluice/fault"
)

// converseAsk answers a dialog with ask/<database>: the last message is the question, the turns before it are the conversation.
// Its steps are the thinking, its answer is made of rows. System prompts, tools and sampling options say nothing to it and are
// left alone, as clients send them to every model; what would have to change the answer is refused.
func (s *server) converseAsk(c *gin.Context, d dialog, emit func(turn) error) error {
	start := s.now()
	src, err := s.askSource(c, d.model)
	if err != nil {
		return err
	}
	end := func(reason string, loaded bool) error {
		// No token is counted: they are those of another model, in several calls.
		return emit(turn{end: &turnEnd{reason: reason, loaded: loaded, counters: countersOf(s.now().Sub(start), 0, noUsage, false)}})
	}
	switch {
	case len(d.messages) == 0 && d.keepAlive.unloads():
		return end("unload", true) // nothing of its own is loaded
	case len(d.messages) == 0:
		return end("load", true)
	}
	if err := d.suitsAsk(); err != nil {
		return err
	}
	question, earlier, err := askTurns(d.messages)
	if err != nil {
		return err
	}
	if text, ok := sideAnswer(question, src.Name()); ok {
		if err := emit(turn{content: text}); err != nil {
			return err
		}
		return end("stop", false)
	}
	q := agent.Ask{Who: anyModel(principal(c)), Question: question, Earlier: earlier}
	if thinks := d.think == nil || d.think.Value == nil || d.think.Bool(); thinks {
		q.OnEvent = func(e agent.Event) {
			line := stepLine(e)
			if line == "" {
				return
			}
			if err := emit(turn{thinking: line}); err != nil {
				noteFailure(c, err) // who left ends the request's context, and with it the work
			}
		}
	}
	a, err := s.askAudited(c, src, q)
	if err != nil {
		return err
	}
	for _, piece := range markdownOf(a) {
		if err := emit(turn{content: piece}); err != nil {
			return err
		}
	}
	return end("stop", false)
}

// suitsAsk refuses what the answer could not heed, so that nobody takes it for something else.
func (d *dialog) suitsAsk() error {
	no := func(what, hint string) error {
		return &fault.Error{Code: fault.Invalid, Op: "gateway.askmodel", Msg: printable(d.model, 200) + " " + what, Hint: hint}
	}
	schema, err := schemaOf(d.format)
	switch {
	case err != nil:
		return err
	case schema != "":
		return no("answers in words and a table, not in a format of the caller's", "POST /v1/database/ask answers in JSON")
	case d.choice.mode == "required":
		return no("calls no tools", "leave tool_choice out")
	case d.n > 1:
		return no("gives one answer", "leave n out")
	case d.debugOnly:
		return no("has no prompt of its own to show", "")
	case len(d.messages[len(d.messages)-1].Images) > 0:
		return fault.New(fault.Invalid, "gateway.askmodel", "%q does not support images", printable(d.model, 200))
	}
	return nil
}

// completeAsk answers a text as the only question of a conversation.
func (s *server) completeAsk(c *gin.Context, t textRequest, emit func(turn) error) error {
	d := dialog{model: t.model, format: t.format, keepAlive: t.keepAlive, think: t.think, n: t.n, debugOnly: t.debugOnly}
	if t.suffix != "" {
		if err := s.onlyAsks(c, t.model); err != nil {
			return err
		}
	}
	if t.prompt != "" {
		msg := api.Message{Role: "user", Content: t.prompt}
		for _, image := range t.images {
			msg.Images = append(msg.Images, image)
		}
		d.messages = []api.Message{msg}
	}
	return s.converseAsk(c, d, emit)
}

// maxAskTurns is how much of a conversation the agent is handed; it looks at fewer.
const maxAskTurns = 8

// askTurns reads a conversation: its question, and before it the questions that an answer of ours with SQL followed. All of it
// comes from the caller: the agent lets the SQL pass the gate again.
func askTurns(messages []api.Message) (question string, earlier []agent.Turn, err error) {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != "user" {
		last--
	}
	if last < 0 || strings.TrimSpace(messages[last].Content) == "" {
		return "", nil, &fault.Error{Code: fault.Invalid, Op: "gateway.askmodel", Msg: "there is no question in the conversation", Hint: "send it as the last message, of the role user"}
	}
	asked := ""
	for _, m := range messages[:last] {
		switch m.Role {
		case "user":
			asked = besideDocuments(m.Content)
		case "assistant":
			if sql := sqlOf(m.Content); sql != "" && asked != "" {
				earlier = append(earlier, agent.Turn{Question: asked, SQL: sql})
				asked = ""
			}
		}
	}
	return besideDocuments(messages[last].Content), earlier[max(0, len(earlier)-maxAskTurns):], nil
}

// sqlOf gives the SQL of an answer of ours: what stands in its last block that says so, "" none.
func sqlOf(answer string) string {
	sql, fence := "", ""
	var block []string
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, "\r\n")
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3 && strings.EqualFold(strings.TrimSpace(line[len(ticks):]), "sql"):
			fence, block = ticks, nil
		case fence != "" && line == fence:
			sql, fence = strings.TrimSpace(strings.Join(block, "\n")), ""
		case fence != "":
			block = append(block, line)
		}
	}
	return sql
}

// stepLine tells a step in a short line; "" what is part of the answer. Statements are the model's text and errors quote
// it, so neither may become anything but text where thinking is rendered.
func stepLine(e agent.Event) string {
	const most = 300
	text := strings.Join(strings.Fields(e.Text), " ")
	switch e.Stage {
	case "answer":
		return ""
	case "candidate":
		return "Candidate: " + codeSpan(printable(text, most)) + "\n\n"
	}
	line := strings.ToUpper(e.Stage[:min(1, len(e.Stage))]) + e.Stage[min(1, len(e.Stage)):]
	if text != "" {
		line += ": " + mdText(printable(text, most), false)
	}
	return line + "\n\n"
}
