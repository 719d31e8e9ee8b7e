package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"sluice/agent"
)

// TestTheClientAsksForSeveralUnderAGrammar: an evaluation's prompts reach the server with all that a Completion says.
func TestTheClientAsksForSeveralUnderAGrammar(t *testing.T) {
	var got map[string]any
	answer := `{"message":{"role":"assistant","content":"SELECT 1"},"done":true}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = nil
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(answer)); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	t.Setenv("SLUICE_URL", srv.URL)
	c := newClient()
	ask := agent.Completion{Model: "tiny", Messages: []agent.Message{{Role: "user", Content: "x"}, {Role: "assistant", Content: "```sql\n"}}, Temperature: 0.7, Seed: 2, MaxTokens: 9, NumCtx: 64, Stop: []string{"```"}}
	texts, err := c.Complete(t.Context(), ask)
	options, _ := got["options"].(map[string]any)
	if err != nil || !slices.Equal(texts, []string{"SELECT 1"}) || got["n"] != nil || options["grammar"] != nil || options["draft"] != nil || options["seed"] != 2.0 || got["truncate"] != false {
		t.Errorf("%q, %v: %v", texts, err, got)
	}
	answer = `{"message":{"role":"assistant","content":"SELECT 1"},"done":true,"choices":[{"index":0,"content":"SELECT 1"},{"index":1,"content":"SELECT 2"}]}`
	ask.N, ask.Grammar, ask.Expect = 2, `root ::= "a"`, true
	texts, err = c.Complete(t.Context(), ask)
	options, _ = got["options"].(map[string]any)
	if err != nil || !slices.Equal(texts, []string{"SELECT 1", "SELECT 2"}) || got["n"] != 2.0 || options["grammar"] != `root ::= "a"` || options["draft"] != "expect" {
		t.Errorf("%q, %v: %v", texts, err, got)
	}
}

func TestEvalNamesTheTechniques(t *testing.T) {
	cmd := evalNL2SQLCmd()
	cmd.SetArgs([]string{t.TempDir(), "--without", "luck"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "focus") {
		t.Errorf("got %v", err)
	}
}

func TestEvalSaysWhatIsWrongWithItsFlags(t *testing.T) {
	t.Setenv("SLUICE_EVAL_POSTGRES", "")
	for want, args := range map[string][]string{
		"duckdb or postgres":   {"--engine", "mysql"},
		"SLUICE_EVAL_POSTGRES": {"--engine", "postgres"},
		"for --engine":         {"--postgres", "postgres://h/d"},
		"SEED/N":               {"--sample", "40"},
		"it is cross":          {"--verified", "all"},
		"needs --out":          {"--resume"},
		"one call without":     {"--plain", "--without", "mend"},
		"number of questions":  {"--limit", "-1"},
	} {
		cmd := evalNL2SQLCmd()
		cmd.SetArgs(append([]string{t.TempDir(), "--model", "m"}, args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		var usage usageError
		if err := cmd.Execute(); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}
