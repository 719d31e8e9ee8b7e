package rag

import (
	"slices"
	"strings"
	"testing"

	"sluice/sqlguard"
)

func TestTokens(t *testing.T) {
	for name, row := range map[string]struct {
		in   string
		want []string
	}{
		"punctuation ends words":           {"Trail-2P (tent), new!", []string{"trail", "2p", "tent", "new"}},
		"a possessive ending goes":         {"Ada's and the agents' tickets", []string{"ada", "and", "the", "agents", "tickets"}},
		"an apostrophe inside stays":       {"O'Hara’s order", []string{"ohara", "order"}},
		"accents are folded":               {"Étienne in Malmö, ÅRE", []string{"etienne", "in", "malmo", "are"}},
		"nothing is nothing":               {" -- ", nil},
		"bytes that are no text end words": {"a\xffb", []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, w := range tokens(row.in) {
				got = append(got, w.fold)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("tokens(%q) = %q, want %q", row.in, got, row.want)
			}
		})
	}
}

func TestStem(t *testing.T) {
	for name, words := range map[string]string{
		"plurals":           "order orders ordered ordering",
		"plurals in -ies":   "delivery deliveries",
		"irregular plurals": "person people",
		"irregular verbs":   "buy bought buying",
	} {
		t.Run(name, func(t *testing.T) {
			list := strings.Fields(words)
			for _, w := range list[1:] {
				if stem(w) != stem(list[0]) {
					t.Errorf("stem(%s) = %s, stem(%s) = %s", w, stem(w), list[0], stem(list[0]))
				}
			}
		})
	}
	if stem("order") == stem("product") {
		t.Error("two words have one stem")
	}
}

func TestSplitName(t *testing.T) {
	for name, row := range map[string]struct{ in, want string }{
		"snake":                  {"order_line_no", "order line no"},
		"camel":                  {"orderLineNo", "order line no"},
		"capitals are one word":  {"parseHTTPHeader", "parse http header"},
		"digits are words":       {"Address2", "address 2"},
		"blanks and signs split": {"line no. (old)", "line no old"},
		"letters of others":      {"größe_cm", "große cm"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(splitName(row.in), " "); fold(got) != fold(row.want) {
				t.Errorf("splitName(%q) = %q, want %q", row.in, got, row.want)
			}
		})
	}
}

// Names that are written together are taken apart by the words that the schema has elsewhere.
func TestNamesWrittenTogether(t *testing.T) {
	table := func(name string, columns ...string) sqlguard.Table {
		t := sqlguard.Table{Relation: inMain(name)}
		for _, c := range columns {
			t.Columns = append(t.Columns, sqlguard.Column{Name: c})
		}
		return t
	}
	l := newLexicon([]sqlguard.Table{
		table("book", "bookid", "title"), table("shelf", "shelfid", "room"), table("bookshelf", "bookid", "shelfid"),
		table("wvLoan", "wvLnId", "wvLnBookId", "wvLnReturned"), table("wvReader", "wvRdId", "wvRdName", "wvRdSince"),
	})
	words := map[string]string{}
	for _, t := range l.tables {
		words[t.relation.Name] = strings.Join(t.name, " ")
		for _, c := range t.columns {
			words[t.relation.Name+"."+c.name] = strings.Join(c.words, " ")
		}
	}
	for name, want := range map[string]string{
		"bookshelf":         stem("book") + " " + stem("shelf"),
		"bookshelf.bookid":  stem("book") + " id",
		"book.title":        stem("title"),
		"wvLoan":            "wv " + stem("loan"), // not all tables share the prefix
		"wvLoan.wvLnBookId": stem("book") + " id",
		"wvReader.wvRdName": stem("name"),
	} {
		if words[name] != want {
			t.Errorf("%s is %q, want %q", name, words[name], want)
		}
	}
}

// PostgreSQL keeps wvLoan as wvloan: what all names begin with, and all columns of a table, is found without the capitals.
func TestPrefixesWithoutCapitals(t *testing.T) {
	var tables []sqlguard.Table
	for _, line := range []string{
		"wvreader wvrdrid wvrdrname wvrdremail wvrdrcity", "wvloan wvlnid wvlnrdrid wvlndate wvlnstatus wvlnprice", "wvbook wvbookid wvbooktitle wvbookyear",
	} {
		w := strings.Fields(line)
		table := sqlguard.Table{Relation: inMain(w[0])}
		for _, c := range w[1:] {
			table.Columns = append(table.Columns, sqlguard.Column{Name: c})
		}
		tables = append(tables, table)
	}
	l := newLexicon(tables)
	for at, want := range map[[2]int]string{{0, 1}: "name", {1, 0}: "id", {1, 1}: "rdr id", {1, 4}: stem("price"), {2, 1}: stem("title")} {
		if got := strings.Join(l.tables[at[0]].columns[at[1]].words, " "); got != want {
			t.Errorf("%s is %q, want %q", tables[at[0]].Columns[at[1]].Name, got, want)
		}
	}
	if got := strings.Join(l.tables[1].name, " "); got != stem("loan") {
		t.Errorf("the table is %q", got)
	}
	nations := newLexicon([]sqlguard.Table{{Relation: inMain("x"), Columns: []sqlguard.Column{{Name: "nature"}, {Name: "nation"}, {Name: "narrow"}}}})
	if got := strings.Join(nations.tables[0].columns[1].words, " "); got != stem("nation") {
		t.Errorf("nation is %q", got)
	}
}

func FuzzQuestion(f *testing.F) {
	for _, s := range []string{`Which "Trail" tents did Ada's friend 'O'Hara' buy?`, "“a” ‘b’ «c» `d` \xff", "'", "Ä\u0301 'x'y'", "A & B. C-D of the E"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := newQuestion(text)
		for _, p := range append(q.quotes(), q.names()...) {
			if p.from < 0 || p.from >= p.to || p.to > len(q.words) {
				t.Fatalf("the span %v of %d words of %q", p, len(q.words), text)
			}
			if written, folded, _ := q.phrase(p); written == "" || folded == "" {
				t.Fatalf("an empty phrase of %q", text)
			}
		}
		line := OneLine(text, 20)
		if strings.ContainsAny(line, "\n\r\u2028\u2029\x00") || strings.Contains(line, "<|") || strings.Contains(line, "```") || len([]rune(line)) > 21 {
			t.Fatalf("OneLine(%q) = %q", text, line)
		}
	})
}
