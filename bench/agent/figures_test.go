package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/agent"
	"sluice/agent/eval"
	"sluice/bench/beside"
)

func TestEveryFigureIsMeasured(t *testing.T) {
	figures, err := beside.ReadFigures("../figures.tsv")
	if err != nil {
		t.Fatal(err)
	}
	m := &measure{}
	if missing := beside.Unmeasured(figures, m.scenes(), "agent."); len(missing) > 0 {
		t.Errorf("no scene measures %v", missing)
	}
	for _, s := range m.scenes() {
		if _, ok := figures[s.Name]; !ok {
			t.Errorf("%s has no bound", s.Name)
		}
	}
}

func TestWhatIsAskedOfTheCommand(t *testing.T) {
	m := &measure{}
	for want, err := range map[string]error{"SET is the folder": m.takeSet(""), "no question set": m.takeSet(t.TempDir()), "small and mid": m.takeSizes("large", ggufs())} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	files := ggufs()
	if err := m.takeSizes("mid", files); err != nil || len(files) != 1 || files["mid"] == "" {
		t.Errorf("%v, %v", files, err)
	}
}

// TestSharesOfTheWorstModel: a model that was not asked is missing, and so is what nobody was asked.
func TestSharesOfTheWorstModel(t *testing.T) {
	m := &measure{sizes: []string{"small", "mid"}, done: map[string]*result{
		"small-agent": {Summary: eval.Summary{Asked: 100, DeclinedWrong: 2, Unanswerable: 20, DeclinedRight: 20, Accuracy: 45, Leaks: []eval.Leak{{}}}},
		"mid-agent":   {Summary: eval.Summary{Asked: 100, DeclinedWrong: 7, Unanswerable: 20, DeclinedRight: 18, Accuracy: 66}},
		"mid-plain":   {Summary: eval.Summary{Asked: 100, Accuracy: 41}},
	}}
	for name, row := range map[string]struct {
		scene func(context.Context, *beside.Bench) (float64, error)
		want  float64
	}{"right": {m.declinedRight, 0.9}, "wrong": {m.declinedWrong, 0.07}, "leaks": {m.leaks, 1}, "gain": {m.gain("mid"), 25}, "accuracy": {m.accuracy("small"), 45}} {
		if got, err := row.scene(t.Context(), nil); err != nil || got != row.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	m.sizes = []string{"mid"}
	if _, err := m.accuracy("small")(t.Context(), nil); err == nil {
		t.Error("a figure of a model that was not asked")
	}
	m.done["mid-agent"].Unanswerable = 0
	if _, err := m.declinedRight(t.Context(), nil); err == nil {
		t.Error("a share of nothing")
	}
}

// TestThePrefixIsCountedToTheEndOfTheSchema: with a server that counts words for tokens.
func TestThePrefixIsCountedToTheEndOfTheSchema(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got struct {
			Messages  []agent.Message
			KeepAlive *int `json:"keep_alive"`
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		text := ""
		for _, m := range got.Messages {
			text += m.Content + " "
		}
		asked = append(asked, r.URL.Path)
		if err := json.NewEncoder(w).Encode(map[string]any{"message": map[string]string{"content": "SELECT 1"}, "prompt_eval_count": len(strings.Fields(text)), "prompt_cached_count": 2}); err != nil {
			t.Error(err)
		}
	}))
	defer srv.Close()
	r := &remote{server: &beside.Server{URL: srv.URL}}
	c := agent.Completion{Model: "small", Messages: []agent.Message{{Role: "system", Content: "one two"}, {Role: "user", Content: "CREATE TABLE t (\n  x INT\n);\n\n-- Question: how many?\n"}, {Role: "assistant", Content: "```sql"}}}
	n, err := r.schemaTokens(t.Context(), c)
	if err != nil || n != 2+7 || r.calls[0].cached != 2 {
		t.Errorf("%d tokens, %+v, %v", n, r.calls, err)
	}
	if _, err := r.schemaTokens(t.Context(), agent.Completion{Messages: c.Messages[:1]}); err == nil {
		t.Error("a prompt without a schema has none to count")
	}
	if err := r.forget(t.Context(), "small", 64); err != nil || !slices.Equal(asked, []string{"/api/chat", "/api/generate", "/api/generate"}) {
		t.Errorf("%v, %v", asked, err)
	}
}

// TestTheFilesAreThere: the names of the models are those that dev/models.sh fetches.
func TestTheFilesAreThere(t *testing.T) {
	script, err := os.ReadFile(filepath.Join("..", "..", "dev", "models.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for size, file := range ggufs() {
		if !strings.Contains(string(script), file) {
			t.Errorf("%s: dev/models.sh fetches no %s", size, file)
		}
	}
}
