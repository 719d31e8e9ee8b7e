package gateway

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestRerank(t *testing.T) {
	docs := []any{"about cats", map[string]any{"text": "about dogs"}, "about fish"}
	body := func(pairs ...any) map[string]any {
		b := map[string]any{"model": "encoder", "query": "dogs", "documents": docs}
		for i := 0; i < len(pairs); i += 2 {
			b[pairs[i].(string)] = pairs[i+1]
		}
		return b
	}
	order := func(v map[string]any) (indexes []int, scores []float64) {
		for _, r := range v["results"].([]any) {
			indexes = append(indexes, int(dig(r, "index").(float64)))
			scores = append(scores, dig(r, "relevance_score").(float64))
		}
		return indexes, scores
	}
	t.Run("a reranker's logits become probabilities, best first", func(t *testing.T) {
		f := newFixture(t, nil)
		f.fake.ranks = func(query, document string) float32 {
			return map[string]float32{"about cats": -1, "about dogs": 3, "about fish": 0}[document]
		}
		w := f.do(call{method: "POST", path: "/v1/rerank", body: body()})
		wantStatus(t, w, 200)
		v := object(t, w.Body.Bytes())
		indexes, scores := order(v)
		if !slices.Equal(indexes, []int{1, 2, 0}) || math.Abs(scores[0]-0.9525741) > 1e-6 || scores[1] != 0.5 || math.Abs(scores[2]-0.2689414) > 1e-6 {
			t.Errorf("%v %v", indexes, scores)
		}
		if v["method"] != "reranker" || v["model"] != "encoder" || !strings.HasPrefix(v["id"].(string), "rerank-") || dig(v, "usage", "total_tokens") != 9.0 ||
			dig(v, "results", 0, "document") != nil {
			t.Errorf("%v", v)
		}
		v = object(t, f.do(call{method: "POST", path: "/v1/rerank", body: body("top_n", 1, "return_documents", true)}).Body.Bytes())
		if list := v["results"].([]any); len(list) != 1 || dig(list[0], "document", "text") != "about dogs" {
			t.Errorf("%v", list)
		}
	})
	t.Run("an embedding model's vectors are compared", func(t *testing.T) {
		f := newFixture(t, nil)
		v := object(t, f.do(call{method: "POST", path: "/v1/rerank", body: body("documents", []string{"about cats", "dogs", "about fish"})}).Body.Bytes())
		indexes, scores := order(v)
		if indexes[0] != 1 || math.Abs(scores[0]-1) > 1e-5 || scores[1] >= scores[0] || scores[2] > scores[1] || v["method"] != "cosine" {
			t.Errorf("%v %v %v", indexes, scores, v)
		}
	})
	t.Run("what cannot be ranked is refused with a reason", func(t *testing.T) {
		f := newFixture(t, nil)
		for name, row := range map[string]struct {
			body   map[string]any
			status int
			says   string
		}{
			"no query":                  {body("query", ""), 400, "query is missing"},
			"no documents":              {body("documents", []string{}), 400, "documents must not be empty"},
			"a number as document":      {body("documents", []any{1}), 400, "documents must be texts"},
			"an object without a text":  {body("documents", []any{map[string]any{"title": "x"}}), 400, "documents must be texts"},
			"too many":                  {body("documents", strings.Split(strings.Repeat("a ", 2048), " ")), 400, "at most 2048"},
			"none wanted":               {body("top_n", 0), 400, "top_n must be"},
			"a chat model":              {body("model", "tiny"), 400, "use a reranker, or an embedding model"},
			"a model that is not there": {body("model", "nobody"), 404, "nobody"},
			"no model":                  {body("model", ""), 400, "model is required"},
		} {
			w := f.do(call{method: "POST", path: "/v1/rerank", body: row.body})
			wantStatus(t, w, row.status)
			if got := fmt.Sprint(dig(object(t, w.Body.Bytes()), "error", "message")); !strings.Contains(got, row.says) {
				t.Errorf("%s: %s", name, got)
			}
		}
		f.fake.badAt = 2
		w := f.do(call{method: "POST", path: "/v1/rerank", body: body()})
		wantStatus(t, w, 400)
		if !strings.Contains(w.Body.String(), "no usable vector") {
			t.Errorf("a vector that is none: %s", w.Body)
		}
		f.fake.ranks, f.fake.badAt = func(string, string) float32 { return float32(math.NaN()) }, 0
		g := newFixture(t, nil)
		g.fake.ranks = f.fake.ranks
		if w := g.do(call{method: "POST", path: "/v1/rerank", body: body()}); w.Code != 400 || !strings.Contains(w.Body.String(), "no usable score") {
			t.Errorf("a score that is none: %d %s", w.Code, w.Body)
		}
	})
	t.Run("on Ollama's path errors are Ollama's", func(t *testing.T) {
		f := newFixture(t, nil)
		w := f.do(call{method: "POST", path: "/api/rerank", body: body("query", "")})
		wantStatus(t, w, 400)
		if got := object(t, w.Body.Bytes())["error"]; got != "query is missing" {
			t.Errorf("%v", got)
		}
		wantStatus(t, f.do(call{method: "POST", path: "/api/rerank", body: body()}), 200)
	})
}
