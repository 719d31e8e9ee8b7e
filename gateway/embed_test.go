package gateway

import (
	"math"
	"strings"
	"testing"
)

func vector(t *testing.T, v any) []float64 {
	t.Helper()
	var out []float64
	for _, x := range v.([]any) {
		out = append(out, x.(float64))
	}
	return out
}

func length(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

func TestEmbed(t *testing.T) {
	f := newFixture(t, nil)
	post := func(path string, body map[string]any) map[string]any {
		t.Helper()
		if body["model"] == nil {
			body["model"] = "encoder"
		}
		w := f.do(call{method: "POST", path: path, body: body})
		wantStatus(t, w, 200)
		return object(t, w.Body.Bytes())
	}
	batch := post("/api/embed", map[string]any{"input": []string{"one", "two words", "three"}, "options": map[string]any{"mirostat": nil, "num_ctx": nil}})
	if batch["prompt_eval_count"] != 4.0 || batch["total_duration"].(float64) <= 0 || batch["load_duration"].(float64) <= 0 || batch["model"] != "encoder" {
		t.Errorf("counters: %v", batch)
	}
	for i, text := range []string{"one", "two words", "three"} {
		alone := vector(t, post("/api/embed", map[string]any{"input": text})["embeddings"].([]any)[0])
		got := vector(t, batch["embeddings"].([]any)[i])
		if math.Abs(length(got)-1) > 1e-6 {
			t.Errorf("length %f", length(got))
		}
		for j := range alone {
			if alone[j] != got[j] {
				t.Errorf("%q: in the batch it is %v, alone %v", text, got, alone)
				break
			}
		}
	}
	short := vector(t, post("/api/embed", map[string]any{"input": "one", "dimensions": 3})["embeddings"].([]any)[0])
	if len(short) != 3 || math.Abs(length(short)-1) > 1e-6 {
		t.Errorf("dimensions: %v", short)
	}
	if got := vector(t, post("/api/embed", map[string]any{"input": "one", "dimensions": 99})["embeddings"].([]any)[0]); len(got) != 8 {
		t.Errorf("more dimensions than there are: %v", got)
	}
	for name, body := range map[string]map[string]any{"empty text": {"input": ""}, "empty list": {"input": []string{}}, "null": {"input": nil}, "none": {}} {
		if got := post("/api/embed", body)["embeddings"].([]any); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := post("/api/embed", map[string]any{"model": "tiny", "input": "one"})["embeddings"].([]any); len(got) != 1 { // as in Ollama
		t.Errorf("of a model that chats: %v", got)
	}
	long := strings.Repeat("word ", 20)
	w := f.do(call{method: "POST", path: "/api/embed", body: map[string]any{"model": "encoder", "input": long}})
	if w.Code != 200 || w.Header().Get("X-Sluice-Truncated") == "" || object(t, w.Body.Bytes())["truncated"] != true {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/embed", body: map[string]any{"model": "encoder", "input": long, "truncate": false}}), 400)
	for _, key := range []string{"prompt", "input"} {
		if got := vector(t, post("/api/embeddings", map[string]any{key: "one"})["embedding"]); len(got) != 8 || math.Abs(length(got)-1) < 0.1 {
			t.Errorf("embeddings by %s: %v", key, got)
		}
	}
	if got := post("/api/embeddings", map[string]any{"prompt": ""})["embedding"].([]any); len(got) != 0 {
		t.Errorf("an empty prompt: %v", got)
	}
	f.waitLoaded(idle)
}

func TestAVectorWithNaNNamesItsInput(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.nan = map[string]bool{"bad": true}
	w := f.do(call{method: "POST", path: "/api/embed", body: map[string]any{"model": "encoder", "input": []string{"good", "fine", "bad"}}})
	if w.Code != 400 || !strings.Contains(w.Body.String(), "input 2") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	wantStatus(t, f.do(call{method: "POST", path: "/api/embeddings", body: map[string]any{"model": "encoder", "prompt": "bad"}}), 400)
	f.fake.badAt = 2 // an engine that lets one through
	w = f.do(call{method: "POST", path: "/api/embed", body: map[string]any{"model": "encoder", "input": []string{"good", "fine", "well"}}})
	if w.Code != 400 || !strings.Contains(w.Body.String(), "input 1") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if unit([]float32{0, 0})[0] != 0 {
		t.Error("the zero vector does not stay zero")
	}
}
