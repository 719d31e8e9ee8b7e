package gateway

import (
	"slices"
	"strings"
	"testing"
)

// What is kept until it is whole has a bound: a few requests of many long answers would fill the memory else.
func TestAnAnswerInOnePieceHasABound(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.script = slices.Repeat([]string{strings.Repeat("x", 4<<20)}, 17) // 68 MiB
	for path := range generating {
		w := f.try(path, "tiny", "hi", `,"stream":false`)
		if w.Code != 413 || !strings.Contains(w.Body.String(), "64 MiB") {
			t.Errorf("%s: %d %.200s", path, w.Code, w.Body)
		}
	}
	w := f.try("/api/generate", "tiny", "hi", `,"stream":true`)
	if n := w.Body.Len(); w.Code != 200 || n < 68<<20 || !strings.Contains(w.Body.String()[n-1000:], `"done":true`) {
		t.Errorf("streamed: %d, %d bytes", w.Code, n)
	}
	f.waitLoaded(idle)
}

// Alternatives of tokens take far more than their text.
func TestLogProbabilitiesCountInTheBound(t *testing.T) {
	f := newFixture(t, nil)
	f.fake.script = slices.Repeat([]string{"x"}, 640) // 640 tokens, 50 answers, 21 entries each: 672000
	w := f.try("/api/generate", "tiny", "hi", `,"stream":false,"n":50,"logprobs":true,"top_logprobs":20,"options":{"num_predict":640}`)
	if w.Code != 413 {
		t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
	}
	f.waitLoaded(idle)
}
