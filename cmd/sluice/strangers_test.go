package main

import (
	"bytes"
	"errors"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/ollama/ollama/api"

	"sluice/models"
	"sluice/models/reply"
)

// TestLibrariesLogNothingOfAnswers has the module's parsers read calls that they cannot read, and log that.
func TestLibrariesLogNothingOfAnswers(t *testing.T) {
	var out bytes.Buffer
	before, flags, writer := slog.Default(), log.Flags(), log.Writer()
	defer func() {
		slog.SetDefault(before)
		log.SetFlags(flags)
		log.SetOutput(writer)
	}()
	setDefaultLog(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))

	tool := api.Tool{Type: "function", Function: api.ToolFunction{Name: "f"}}
	m := &models.Model{Name: "m", Template: "{{ range .Tools }}{{ . }}{{ end }}{{ range .Messages }}{{ .Content }}{{ end }}"}
	answers := []string{
		`<|tool_call_start|>[my hidden word]<|tool_call_end|>`,
		`<function_calls>my hidden word(</function_calls>`,
		`<tool_call><function=f><parameter=my hidden word</function></tool_call>`,
	}
	for _, answer := range answers {
		r := reply.New(m, models.Conversation{Tools: []api.Tool{tool}}, models.Rendered{})
		if part := r.Add(answer, true); !strings.Contains(part.Content, "hidden") {
			t.Errorf("%s: %+v", answer, part)
		}
	}
	if !strings.Contains(out.String(), "model/parsers.") {
		t.Errorf("no parser logged anything: %s", out.String())
	}
	log.Print("a line of the package log, hidden")
	slog.With("a", "hidden").WithGroup("hidden").Info("", "b", 1)
	if strings.Contains(strings.ReplaceAll(out.String(), "left out", ""), "hidden") {
		t.Errorf("the log has what a model wrote: %s", out.String())
	}

	out.Reset()
	slog.Error("a bug", "error", errors.New("our own"))
	if !strings.Contains(out.String(), `"msg":"a bug","error":"our own"`) {
		t.Errorf("our own record is changed: %s", out.String())
	}
}
