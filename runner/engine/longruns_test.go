package engine

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCutRuns(t *testing.T) {
	none := func() []string { return nil }
	marks := func() []string { return []string{"<|im_end|>", "<pre>"} }
	for name, row := range map[string]struct {
		text     string
		specials func() []string
		want     string // the pieces, with | between
	}{
		"words stay whole":                       {strings.Repeat("word and ", 9), none, strings.Repeat("word and ", 9)},
		"a run of letters":                       {"x aaaaaaaaaaaaaaaaaaaaaaaa", none, "x aaaaaaaaaa|aaaaaaaaaa|aaaa"},
		"of spaces":                              {strings.Repeat(" ", 25), none, strings.Repeat(" ", 10) + "|" + strings.Repeat(" ", 10) + "|     "},
		"of signs":                               {"----------------", none, "----------|------"},
		"of line ends and slashes":               {"/\n/\n/\n/\n/\n/\n/\n", none, "/\n/\n/\n/\n/\n|/\n/\n"},
		"of characters that may be of any kind":  {strings.Repeat("中", 12), none, strings.Repeat("中", 10) + "|中中"},
		"accents are not torn from ASCII":        {strings.Repeat("e\u0301", 6), none, strings.Repeat("e\u0301", 5) + "|e\u0301"},
		"where it is split anyway":               {"abcdef12ghijklmnop", none, "abcdef12|ghijklmnop"},
		"behind a sentence":                      {"中中中中。中中中中中中中", none, "中中中中|。中中中中中中中"},
		"not in a special":                       {"aaaaaaa<pre>aaaaaa", marks, "aaaaaaa|<pre>aaaaa|a"},
		"a special that is longer than the rest": {"aaaaaaaaaaaaaaaaaa<|im_end|>", marks, "aaaaaaaaaa|aaaaaaaa<|im_end|>"},
		"no character is cut":                    {strings.Repeat("\xff", 12), none, strings.Repeat("\xff", 10) + "|\xff\xff"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(cutRuns(row.text, 10, row.specials), "|"); got != strings.ReplaceAll(row.want, "<||", "<|") {
				t.Errorf("%q, want %q", got, row.want)
			}
		})
	}
}

// sampleText is a text of n random stretches of up to longest characters each.
func sampleText(r *rand.Rand, n, longest int) string {
	kinds := []string{"a", "B", "7", " ", "\n", "/", "é", "中", "\u0301", "🙂", "-", "'s", "<|im_end|>", "。", "\xe4", "\t", "x1", "."}
	var b strings.Builder
	for range n {
		b.WriteString(strings.Repeat(kinds[r.IntN(len(kinds))], 1+r.IntN(longest)))
	}
	return b.String()
}

func TestPiecesHaveNoLongRunAndNothingIsLost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	specials := func() []string { return []string{"<|im_end|>", "  ", "aaaa", "aa1"} }
	for range 2000 {
		text := sampleText(r, 1+r.IntN(12), 60)
		pieces := cutRuns(text, 20, specials)
		if strings.Join(pieces, "") != text {
			t.Fatalf("%q became %q", text, pieces)
		}
		for _, p := range pieces {
			var run [runKinds]int
			for _, c := range p {
				for kind, ok := range mayBe(c) {
					if run[kind]++; !ok {
						run[kind] = 0
					}
					if run[kind] > 20 {
						t.Fatalf("a run of %d in %q of %q", run[kind], p, text)
					}
				}
			}
			if p == "" && text != "" || utf8.ValidString(text) && !utf8.ValidString(p) {
				t.Fatalf("piece %q of %q", p, text)
			}
		}
	}
}

func TestCutWords(t *testing.T) {
	for text, want := range map[string]string{
		"aaaaaaaaa bb": "aaaa aaaa a bb", "aaaa bbbb,cccc": "aaaa bbbb,cccc", "aé中dee": "aé中d ee", "": "",
	} {
		if got := cutWords(text, 4); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// A cut where a text is split anyway changes no token.
func TestCutsWhereATextIsSplitAnywayChangeNoToken(t *testing.T) {
	model, _, n := tinyNative(t)
	tokens := func(text string) []int {
		ids, err := model.Tokenize(text, false, true)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	r := rand.New(rand.NewPCG(5, 6))
	cuts := 0
	for range 3000 {
		// Words and numbers of up to 8 characters, without spaces: some run of 20 is cut, always at the end of a word.
		text := sampleText(r, 5+r.IntN(20), 8)
		text = strings.NewReplacer("<|im_end|>", "yes", "\u0301", "", "\xe4", "").Replace(text)
		pieces := cutRuns(text, 20, n.specials)
		var got []int
		anyway := true
		for i, p := range pieces {
			got = append(got, tokens(p)...)
			if i > 0 {
				before, _ := utf8.DecodeLastRuneInString(pieces[i-1])
				first, _ := utf8.DecodeRuneInString(p)
				anyway = anyway && splitsAnyway(before, first)
			}
		}
		if !anyway || len(pieces) == 1 {
			continue
		}
		cuts++
		if want := tokens(text); !slices.Equal(got, want) {
			t.Fatalf("%q: %d tokens of %q, %d of the whole", text, len(got), pieces, len(want))
		}
	}
	if cuts < 100 {
		t.Errorf("only %d texts were cut", cuts)
	}
}
