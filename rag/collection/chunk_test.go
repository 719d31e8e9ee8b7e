package collection

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func cutUp(t testing.TB, text, format string) []Chunk {
	t.Helper()
	cs, err := chunks(text, format, estimate)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func TestMarkdownIsCutWhereItsPartsEnd(t *testing.T) {
	sentence := "Every pump has a filter that somebody cleans in the spring. "
	rows := "| Code | Meaning |\n| --- | --- |\n" + strings.Repeat("| E7 | the impeller is stuck and must be freed by hand |\n", 30)
	code := "```go\n" + strings.Repeat("fmt.Println(\"one line of code\", value)\n", 40) + "```"
	cases := map[string]struct {
		text  string
		check func(t *testing.T, cs []Chunk)
	}{
		"headings are kept as a path, and end a chunk": {"# A\n\none\n\n## B\n\ntwo\n\nC\n===\n\nthree\n", func(t *testing.T, cs []Chunk) {
			want := []string{"A:one", "A › B:two", "C:three"}
			var got []string
			for _, c := range cs {
				got = append(got, c.Heading+":"+c.Text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}},
		"paragraphs that fit share a chunk": {"one\n\ntwo\n\n- three\n- four", func(t *testing.T, cs []Chunk) {
			if len(cs) != 1 || cs[0].Text != "one\n\ntwo\n\n- three\n- four" {
				t.Errorf("%+v", cs)
			}
		}},
		"a long paragraph is cut between sentences, which overlap": {strings.Repeat(sentence, 40), func(t *testing.T, cs []Chunk) {
			if len(cs) < 3 {
				t.Fatalf("%d chunks", len(cs))
			}
			for _, c := range cs {
				if !strings.HasPrefix(c.Text, "Every pump") || !strings.HasSuffix(strings.TrimSpace(c.Text), "spring.") {
					t.Errorf("%q", c.Text)
				}
			}
			total := 0
			for _, c := range cs {
				total += strings.Count(c.Text, "Every pump")
			}
			if total <= 40 {
				t.Errorf("%d sentences: nothing overlaps", total)
			}
		}},
		"a code block that fits is whole": {"text before\n\n```sql\n-- # not a heading\n\nSELECT 1\n```\n", func(t *testing.T, cs []Chunk) {
			if len(cs) != 1 || !strings.Contains(cs[0].Text, "```sql\n-- # not a heading\n\nSELECT 1\n```") {
				t.Errorf("%+v", cs)
			}
		}},
		"a long code block is cut between lines, in fences": {code, func(t *testing.T, cs []Chunk) {
			n := 0
			for _, c := range cs {
				n += strings.Count(c.Text, "Println(\"one line of code\", value)\n")
				if !strings.HasPrefix(c.Text, "```go\nfmt") || !strings.HasSuffix(c.Text, "\n```") {
					t.Errorf("%q", c.Text)
				}
			}
			if len(cs) < 2 || n != 40 {
				t.Errorf("%d chunks with %d lines", len(cs), n)
			}
		}},
		"a long table is cut between rows, each with the header": {rows, func(t *testing.T, cs []Chunk) {
			n := 0
			for _, c := range cs {
				n += strings.Count(c.Text, "| E7 |")
				if !strings.HasPrefix(c.Text, "| Code | Meaning |\n| --- | --- |\n| E7") {
					t.Errorf("%q", c.Text)
				}
			}
			if len(cs) < 2 || n != 30 {
				t.Errorf("%d chunks with %d rows", len(cs), n)
			}
		}},
		"a fence that never ends is code to the end": {"```\na\n\n# b\n", func(t *testing.T, cs []Chunk) {
			if len(cs) != 1 || cs[0].Heading != "" {
				t.Errorf("%+v", cs)
			}
		}},
		"a word without end is cut": {strings.Repeat("x", 5000), func(t *testing.T, cs []Chunk) {
			joined := ""
			for _, c := range cs {
				joined += c.Text
			}
			if len(cs) < 5 || strings.Count(joined, "x") < 5000 {
				t.Errorf("%d chunks, %d bytes", len(cs), len(joined))
			}
		}},
		"writing without blanks is cut between runes": {strings.Repeat("水泵每周清洗过滤器", 100), func(t *testing.T, cs []Chunk) {
			for _, c := range cs {
				if !utf8.ValidString(c.Text) {
					t.Errorf("%q", c.Text)
				}
			}
		}},
		"Windows' line ends are line ends": {"# A\r\n\r\none\r\n", func(t *testing.T, cs []Chunk) {
			if len(cs) != 1 || cs[0].Heading != "A" || cs[0].Text != "one" {
				t.Errorf("%+v", cs)
			}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cs := cutUp(t, c.text, FormatMarkdown)
			for _, one := range cs {
				if n, _ := estimate([]string{one.Text}); n[0] > mostTokens+mostTokens/2 {
					t.Errorf("a chunk has %d tokens", n[0])
				}
			}
			c.check(t, cs)
		})
	}
	if cs := cutUp(t, "# no heading\n\ntext", FormatText); len(cs) != 1 || cs[0].Heading != "" || cs[0].Text != "# no heading\n\ntext" {
		t.Errorf("plain text: %+v", cs)
	}
}

// Whatever is cut, nothing is lost and no chunk is too large. The project's own pages are among the seeds.
func FuzzChunks(f *testing.F) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 5 {
		f.Fatal(len(pages), err)
	}
	for _, p := range pages {
		text, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), true)
		f.Add(string(text), false)
	}
	f.Add("# a\n```\n|x|\n|-|\n", true)
	f.Fuzz(func(t *testing.T, text string, markdown bool) {
		if !clean(text) {
			return
		}
		format := FormatText
		if markdown {
			format = FormatMarkdown
		}
		all := map[string]int{}
		for _, c := range cutUp(t, text, format) {
			if !utf8.ValidString(c.Text) || strings.TrimSpace(c.Text) == "" {
				t.Fatalf("a chunk is %q", c.Text)
			}
			if n, _ := estimate([]string{c.Text}); n[0] > 2*mostTokens {
				t.Fatalf("a chunk has %d tokens: %q", n[0], c.Text)
			}
			for _, w := range strings.Fields(c.Heading + " " + c.Text) {
				all[w]++
			}
		}
		if markdown {
			return // headings' marks are not text
		}
		joined := strings.Join(slices.Collect(func(yield func(string) bool) {
			for w := range all {
				if !yield(w) {
					return
				}
			}
		}), " ")
		for w := range strings.FieldsSeq(text) {
			if len(w) < 50 && !strings.Contains(joined, w) {
				t.Fatalf("%q is lost of %q", w, text)
			}
		}
	})
}

func TestWordsAreComparedAlike(t *testing.T) {
	cases := map[string]string{
		"The Filters of the pumps":     "filter pump",
		"hnsw.iterative_scan = on":     "hnsw iterative scan",
		"Queries, boxes & 3 classes":   "query box 3 class",
		"Größe der STRASSE":            "größe strasse",
		"水泵 E7":                        "水 泵 e7",
		"":                             "",
		strings.Repeat("k", 65) + " x": "x",
	}
	for text, want := range cases {
		if got := strings.Join(terms(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestRanksAreFused(t *testing.T) {
	got := fuse([][]Hit{{{1, 0.9}, {2, 0.8}, {3, 0.7}}, {{2, 5}, {4, 4}}}, 3)
	if fmt.Sprint(got[0].Chunk, got[1].Chunk, got[2].Chunk) != "2 1 4" || got[0].Score > 1 || got[0].Score < 0.99 {
		t.Errorf("%+v", got)
	}
	if got := fuse([][]Hit{{{7, 1}}, {{7, 1}}}, 5); len(got) != 1 || got[0].Score != 1 {
		t.Errorf("first in both: %+v", got)
	}
	if got := fuse(nil, 5); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
