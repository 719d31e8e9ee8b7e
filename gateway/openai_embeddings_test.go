package gateway

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestOpenAIEmbeddings(t *testing.T) {
	f := newFixture(t, nil)
	ask := func(pairs ...any) map[string]any {
		body := map[string]any{"model": "encoder", "input": []string{"a b", "c"}}
		for i := 0; i < len(pairs); i += 2 {
			body[pairs[i].(string)] = pairs[i+1]
		}
		w := f.do(call{method: "POST", path: "/v1/embeddings", body: body})
		wantStatus(t, w, 200)
		return object(t, w.Body.Bytes())
	}
	v := ask()
	if v["object"] != "list" || v["model"] != "encoder" || dig(v, "usage", "prompt_tokens") != 3.0 || dig(v, "usage", "total_tokens") != 3.0 {
		t.Errorf("%v", v)
	}
	packed := ask("encoding_format", "base64")
	for i := range 2 {
		floats := dig(v, "data", i, "embedding").([]any)
		raw, err := base64.StdEncoding.DecodeString(dig(packed, "data", i, "embedding").(string))
		if err != nil || len(raw) != 4*len(floats) || dig(v, "data", i, "index") != float64(i) || dig(v, "data", i, "object") != "embedding" {
			t.Fatalf("%v: %d bytes for %d numbers", err, len(raw), len(floats))
		}
		length := 0.0
		for j, x := range floats {
			if got := math.Float32frombits(binary.LittleEndian.Uint32(raw[4*j:])); got != float32(x.(float64)) {
				t.Errorf("number %d is %v and %v", j, got, x)
			}
			length += x.(float64) * x.(float64)
		}
		if math.Abs(length-1) > 1e-5 {
			t.Errorf("length² %v", length)
		}
	}
	if cut := dig(ask("dimensions", 4), "data", 0, "embedding").([]any); len(cut) != 4 {
		t.Errorf("%d dimensions, want 4", len(cut))
	}
	if one := ask("input", "a"); len(one["data"].([]any)) != 1 {
		t.Errorf("%v", one)
	}
}

func TestOpenAIEmbeddingsRefuseWithAReason(t *testing.T) {
	f := newFixture(t, nil)
	for name, row := range map[string]struct {
		key    string
		value  any
		status int
		says   string
	}{
		"no input":                  {"input", nil, 400, "input is missing"},
		"an empty list":             {"input", []string{}, 400, "input must not be empty"},
		"an empty text":             {"input", "", 400, "input[0] is empty"},
		"one of several is empty":   {"input", []string{"a", ""}, 400, "input[1] is empty"},
		"token ids":                 {"input", []int{1, 2}, 400, "token ids belong to"},
		"lists of token ids":        {"input", [][]int{{1}}, 400, "token ids belong to"},
		"an object":                 {"input", map[string]any{}, 400, "must be a text or a list"},
		"too many":                  {"input", strings.Split(strings.Repeat("a ", 2049), " "), 400, "at most 2048"},
		"a format nobody knows":     {"encoding_format", "hex", 400, `encoding_format "hex"`},
		"no dimensions":             {"dimensions", 0, 400, "dimensions must be at least 1"},
		"more than there are":       {"dimensions", 9, 400, "have 8"},
		"too long, and not cut":     {"input", strings.Repeat("a ", 30), 400, "longer than the context"},
		"a model that is not there": {"model", "nobody", 404, "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			body := map[string]any{"model": "encoder", "input": "a", "truncate": false}
			body[row.key] = row.value
			w := f.do(call{method: "POST", path: "/v1/embeddings", body: body})
			wantStatus(t, w, row.status)
			if e := object(t, w.Body.Bytes())["error"]; !strings.Contains(fmt.Sprint(dig(e, "message")), row.says) || dig(e, "type") != "invalid_request_error" {
				t.Errorf("%v, want %q", e, row.says)
			}
		})
	}
}

func TestOpenAIModels(t *testing.T) {
	f := newFixture(t, nil)
	get := func(path, bearer string, status int) map[string]any {
		w := f.do(call{method: "GET", path: path, bearer: bearer})
		wantStatus(t, w, status)
		return object(t, w.Body.Bytes())
	}
	v := get("/v1/models", "", 200)
	if list := v["data"].([]any); v["object"] != "list" || len(list) != 2 {
		t.Errorf("%v", v)
	}
	if list := get("/v1/models", narrowKey, 200)["data"].([]any); len(list) != 1 || dig(list[0], "id") != "encoder:latest" {
		t.Errorf("a narrowed key sees %v", list)
	}
	for _, name := range []string{"tiny", "tiny:latest", "library/tiny", "library%2Ftiny:latest"} {
		one := get("/v1/models/"+name, "", 200)
		if one["id"] != strings.ReplaceAll(name, "%2F", "/") || one["object"] != "model" || one["owned_by"] != "library" || one["created"].(float64) < 1e9 {
			t.Errorf("%s: %v", name, one)
		}
	}
	for _, hidden := range []struct{ name, bearer string }{{"nobody", ""}, {"tiny", narrowKey}} {
		if e := get("/v1/models/"+hidden.name, hidden.bearer, 404)["error"]; dig(e, "code") != "model_not_found" || !strings.Contains(fmt.Sprint(dig(e, "message")), hidden.name) {
			t.Errorf("%v", e)
		}
	}
	for _, name := range []string{"tiny", "encoder"} {
		if err := f.cfg.Models.Delete(name); err != nil {
			t.Fatal(err)
		}
	}
	if w := f.do(call{method: "GET", path: "/v1/models"}); !strings.Contains(w.Body.String(), `"data":[]`) {
		t.Errorf("no models: %s", w.Body)
	}
}
