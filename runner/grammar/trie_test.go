package grammar

import (
	"math/rand"
	"slices"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for name, row := range map[string]struct {
		words []string
		want  string
	}{
		"nothing":              {nil, ``},
		"one":                  {[]string{"city"}, `"city"`},
		"one twice":            {[]string{"city", "city"}, `"city"`},
		"the empty word":       {[]string{""}, `""`},
		"shared beginnings":    {[]string{"customer", "city", "customer_id"}, `("c" ("ity" | "ustomer" ("_id")?))`},
		"apart":                {[]string{"b", "a"}, `("a" | "b")`},
		"one begins the other": {[]string{"a", "ab"}, `("a" ("b")?)`},
		"with the empty word":  {[]string{"", "a"}, `("a")?`},
		"escapes":              {[]string{"a\"\\\n\x01é"}, `"a\"\\\n\x01é"`},
		"what has no token":    {[]string{"a\x00", "\xff", "b"}, `"b"`},
	} {
		if got := Names(row.words); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// TestNamesDerivesTheWords: exactly them, however deep they share their beginnings.
func TestNamesDerivesTheWords(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 300 {
		var words []string
		for range 1 + rng.Intn(40) {
			w := make([]byte, rng.Intn(60))
			for i := range w {
				w[i] = "aab"[rng.Intn(3)]
				if rng.Intn(20) > 0 {
					w[i] = 'a'
				}
			}
			words = append(words, string(w))
		}
		gbnf := `root ::= "<" ` + Names(words) + ` ">"`
		if err := Check(gbnf); err != nil {
			t.Fatalf("%v\n%s", err, gbnf)
		}
		r := newRecogniser(t, gbnf)
		for _, w := range words {
			if !r.derives("<" + w + ">") {
				t.Fatalf("%q is not derived\n%s", w, gbnf)
			}
			for _, other := range []string{w + "a", strings.TrimSuffix(w, "a"), "b" + w} {
				if r.derives("<"+other+">") != slices.Contains(words, other) {
					t.Fatalf("%q among %q\n%s", other, words, gbnf)
				}
			}
		}
	}
}
