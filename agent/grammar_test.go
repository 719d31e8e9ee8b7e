package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice/database"
	"sluice/rag"
	"sluice/runner/grammar"
	"sluice/sqlguard"
)

// desk is the project's own database of a web shop, built once for all tests, which only read it.
var desk struct {
	once sync.Once
	src  *database.Source
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if desk.src != nil {
		if err := errors.Join(desk.src.Close(), os.RemoveAll(desk.dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func shopdesk(t testing.TB) *watched {
	t.Helper()
	desk.once.Do(func() {
		scripts := make([]string, 2)
		for i, name := range []string{"schema.sql", "data.sql"} {
			text, err := os.ReadFile(filepath.Join("../testdata/nl2sql/shopdesk", name))
			if err != nil {
				desk.err = err
				return
			}
			scripts[i] = string(text)
		}
		if desk.dir, desk.err = os.MkdirTemp("", "agent-"); desk.err != nil {
			return
		}
		path := filepath.Join(desk.dir, "shopdesk.duckdb")
		if desk.err = database.CreateFile(context.Background(), path, scripts...); desk.err == nil {
			desk.src, desk.err = database.Open(context.Background(), database.Config{Name: "shopdesk", Kind: "duckdb", Path: path}, nil)
		}
	})
	if desk.err != nil {
		t.Fatal(desk.err)
	}
	return &watched{Source: desk.src}
}

func opened(t testing.TB, name string, scripts ...string) *watched {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".duckdb")
	if err := database.CreateFile(t.Context(), path, scripts...); err != nil {
		t.Fatal(err)
	}
	src, err := database.Open(t.Context(), database.Config{Name: name, Kind: "duckdb", Path: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	})
	return &watched{Source: src}
}

func everything(sqlguard.Relation) bool { return true }

func knowledgeOf(t testing.TB, src *watched, may func(sqlguard.Relation) bool) *rag.Knowledge {
	t.Helper()
	p := rag.NewProfiler(rag.Config{})
	t.Cleanup(p.Close)
	k, err := p.Knowledge(t.Context(), src, may)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func nothingTaken(string) bool { return false }

type goldQuestion struct {
	ID, Question, Evidence, DB string
	Gold                       []string
}

func goldQuestions(t testing.TB) (out []goldQuestion) {
	t.Helper()
	data, err := os.ReadFile("../testdata/nl2sql/questions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		var q goldQuestion
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			t.Fatal(err)
		}
		out = append(out, q)
	}
	return out
}

// capitals writes functions in capitals, as the grammars do, and the field of EXTRACT.
func capitals(t *testing.T, sql string) string {
	t.Helper()
	ts, ok := tokens(sql)
	if !ok {
		t.Fatalf("not read: %s", sql)
	}
	var edits []edit
	for i, w := range ts {
		if w.kind == word && (i+1 < len(ts) && ts[i+1].is("(") || i > 1 && ts[i-1].is("(") && ts[i-2].is("EXTRACT")) {
			edits = append(edits, edit{w.start, w.end, strings.ToUpper(w.text)})
		}
	}
	return apply(sql, edits...)
}

// spelledOut writes a statement as the focus grammar does: each column with its table, tables without aliases. ok is false
// where that cannot be: a column of something else than a table.
func spelledOut(k *rag.Knowledge, sql string) (string, bool) {
	ts, ok := tokens(sql)
	if !ok {
		return "", false
	}
	s := &statementText{mender: mender{k: k}, sql: sql, ts: ts, blocks: blocks(ts)}
	var edits []edit
	for i := 0; i < len(ts); i++ {
		ref, ok := referenceAt(ts, i)
		b := within(s.blocks, i)
		if !ok || b == nil {
			continue
		}
		if ts[i].kind == word && strings.ToUpper(ts[i].text) == ts[i].text && ts[i].text != strings.ToLower(ts[i].text) {
			continue // a keyword, or a function in capitals
		}
		alias := slices.IndexFunc(b.sources, func(n named) bool { return n.aliased && n.name == ts[i].text })
		if ref.qualifier == "" && alias >= 0 && i > 0 && (ts[i-1].is("AS") || strings.EqualFold(ts[i-1].text, b.sources[alias].table)) {
			start := ts[i-1].end
			if ts[i-1].is("AS") {
				start = ts[i-2].end
			}
			edits = append(edits, edit{start, ts[i].end, ""})
			continue
		}
		if i > 0 && ts[i-1].is("AS") {
			continue
		}
		if column, ok := s.meant(b, ref); ok {
			edits = append(edits, edit{ts[ref.first].start, ts[ref.last].end, k.Identifier(column.Relation.Name) + "." + k.Identifier(column.Column)})
			i = ref.last
		}
	}
	return apply(sql, edits...), true
}

// TestTheWideGrammarAdmitsTheGolds: what is right may be written.
func TestTheWideGrammarAdmitsTheGolds(t *testing.T) {
	src := shopdesk(t)
	k := knowledgeOf(t, src, everything)
	text := wideGrammar(k, sqlguard.DuckDB, nothingTaken, false)
	if err := grammar.Check(text); err != nil {
		t.Fatalf("the engine does not take it: %v\n%s", err, text)
	}
	wide := newRecogniser(t, text)
	n, focus := 0, 0
	for _, q := range goldQuestions(t) {
		f := k.Focus(q.Question, q.Evidence)
		narrow := newRecogniser(t, focusGrammar(k, f.Tables, f.Joins, sqlguard.DuckDB, false))
		for _, gold := range q.Gold {
			n++
			gold = capitals(t, gold)
			if !wide.derives(gold) {
				t.Errorf("%s: %s", q.ID, wide.stuck())
			}
			if plain, ok := spelledOut(k, gold); ok && narrow.derives(plain) {
				focus++
			}
		}
	}
	t.Logf("%d golds, the wide grammar has %d bytes; with tables' names before the columns, the focus grammars have %d of them", n, len(text), focus)
	if 2*focus < n {
		t.Errorf("the focus grammars have %d of %d golds", focus, n)
	}
}

// TestTheFocusGrammar shows what it has and what it has not.
func TestTheFocusGrammar(t *testing.T) {
	src := shopdesk(t)
	k := knowledgeOf(t, src, everything)
	main := func(names ...string) (out []sqlguard.Relation) {
		for _, n := range names {
			out = append(out, sqlguard.Relation{Schema: "main", Name: n})
		}
		return out
	}
	joinsOf := func(tables []sqlguard.Relation) (out []rag.Join) {
		in := map[sqlguard.Relation]bool{}
		for _, r := range tables {
			in[r] = true
		}
		for _, j := range k.Joins() {
			if in[j.From.Relation] && in[j.To.Relation] {
				out = append(out, j)
			}
		}
		return out
	}
	for name, row := range map[string]struct {
		tables []sqlguard.Relation
		sql    string
		want   bool
	}{
		"a count":                     {main("orders"), "SELECT COUNT(*) FROM orders WHERE orders.status = 'CANC'", true},
		"a name for it":               {main("orders"), "SELECT COUNT(*) AS n FROM orders;", true},
		"a column of no table":        {main("orders"), "SELECT status FROM orders", false},
		"a column of another table":   {main("orders"), "SELECT orders.full_name FROM orders", false},
		"a table out of focus":        {main("orders"), "SELECT customers.city FROM customers", false},
		"a join on the key":           {main("orders", "customers"), "SELECT customers.city, COUNT(*) FROM customers JOIN orders ON orders.customer_id = customers.customer_id GROUP BY customers.city ORDER BY COUNT(*) DESC LIMIT 3", true},
		"a join on something else":    {main("orders", "customers"), "SELECT COUNT(*) FROM customers JOIN orders ON orders.order_id = customers.customer_id", false},
		"a table beside a table":      {main("orders", "customers"), "SELECT COUNT(*) FROM customers, orders", false},
		"a case":                      {main("orders"), "SELECT 100.0 * SUM(CASE WHEN orders.status = 'RTRN' THEN 1 ELSE 0 END) / COUNT(*) FROM orders", true},
		"a filter":                    {main("orders"), "SELECT COUNT(*) FILTER (WHERE orders.status = 'RTRN')::FLOAT / COUNT(*) AS share FROM orders", true},
		"a window":                    {main("orders"), "SELECT orders.order_id, RANK() OVER (PARTITION BY orders.channel ORDER BY orders.ordered_at DESC) AS place FROM orders", true},
		"an anti-join":                {main("orders", "customers"), "SELECT customers.full_name FROM customers WHERE NOT EXISTS (SELECT orders.order_id FROM orders WHERE orders.customer_id = customers.customer_id)", true},
		"a subquery in FROM":          {main("orders"), "SELECT AVG(sub1.n) FROM (SELECT orders.customer_id, COUNT(*) AS n FROM orders GROUP BY orders.customer_id) AS sub1", true},
		"a table with itself":         {main("agents"), "SELECT agents.agent_name FROM agents JOIN agents AS other_agents ON agents.lead_id = other_agents.agent_id WHERE other_agents.agent_name = 'Mira Holt'", true},
		"a union":                     {main("orders", "customers"), "SELECT orders.order_id FROM orders UNION ALL SELECT customers.customer_id FROM customers ORDER BY 1", true},
		"a date":                      {main("orders"), "SELECT DATE_TRUNC('month', orders.ordered_at) AS m, COUNT(*) FROM orders WHERE orders.ordered_at >= '2024-01-01' AND orders.ordered_at < DATE '2025-01-01' GROUP BY m ORDER BY m", true},
		"an extract":                  {main("orders"), "SELECT COUNT(*)\nFROM orders\nWHERE EXTRACT(YEAR FROM orders.ordered_at) = 2024", true},
		"a between":                   {main("orders"), "SELECT COUNT(*) FROM orders WHERE orders.order_id BETWEEN 1 AND 10 AND NOT orders.status IN ('CANC', 'RTRN')", true},
		"a write":                     {main("orders"), "DELETE FROM orders", false},
		"two statements":              {main("orders"), "SELECT COUNT(*) FROM orders; SELECT COUNT(*) FROM orders", false},
		"prose":                       {main("orders"), "Sorry, I cannot do that.", false},
		"that it cannot, not offered": {main("orders"), "-- CANNOT: there is no such column", false},
	} {
		t.Run(name, func(t *testing.T) {
			text := focusGrammar(k, row.tables, joinsOf(row.tables), sqlguard.DuckDB, false)
			if err := grammar.Check(text); err != nil {
				t.Fatalf("the engine does not take it: %v\n%s", err, text)
			}
			r := newRecogniser(t, text)
			if got := r.derives(row.sql); got != row.want {
				t.Errorf("%t: %s", got, r.stuck())
			}
			if cannot := newRecogniser(t, focusGrammar(k, row.tables, joinsOf(row.tables), sqlguard.DuckDB, true)); !cannot.derives("-- CANNOT: there is no such column") {
				t.Error("the offered form cannot be written")
			}
		})
	}
}

// TestNoTableOutsideTheGrantsCanBeWritten draws statements of both grammars and has the gate, with all rights, say which
// tables they read.
func TestNoTableOutsideTheGrantsCanBeWritten(t *testing.T) {
	src := shopdesk(t)
	granted := map[string]bool{"orders": true, "customers": true}
	may := func(r sqlguard.Relation) bool { return granted[r.Name] }
	k := knowledgeOf(t, src, may)
	catalog, err := src.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := k.Focus("customers and their orders", "")
	for name, text := range map[string]string{
		"focus": focusGrammar(k, f.Tables, f.Joins, sqlguard.DuckDB, false),
		"wide":  wideGrammar(k, sqlguard.DuckDB, takenIn(catalog), false),
	} {
		t.Run(name, func(t *testing.T) {
			for _, hidden := range []string{"agents", "products", "payments", "tickets", "order_items", "cost_price", "lead_id"} {
				if strings.Contains(text, hidden) {
					t.Errorf("%s stands in the grammar", hidden)
				}
			}
			d := newDrawer(t, text, rand.New(rand.NewSource(5)))
			read := 0
			for range 1500 {
				sql := d.text(25)
				approved, err := src.Approve(t.Context(), sql, sqlguard.ReadOnly, everything)
				if err != nil {
					continue // most make no sense: what counts is what passes
				}
				read++
				for _, r := range approved.Relations() {
					if !may(r) {
						t.Errorf("%s reads %s", sql, r.Name)
					}
				}
			}
			if read < 4 {
				t.Errorf("only %d of the statements passed the gate", read)
			}
			// And directly: a hidden table where a table stands.
			r := newRecogniser(t, text)
			for _, hidden := range []string{"agents", "order_items", "zz_unknown"} {
				for _, sql := range []string{"SELECT COUNT(*) FROM " + hidden, "SELECT COUNT(*) FROM orders JOIN " + hidden + " ON orders.order_id = " + hidden + ".order_id",
					"SELECT COUNT(*) FROM orders, " + hidden, "WITH " + hidden + " AS (SELECT COUNT(*) FROM orders) SELECT COUNT(*) FROM " + hidden} {
					if r.derives(sql) {
						t.Errorf("it may be written: %s", sql)
					}
				}
			}
		})
	}
}

// TestAHiddenTablesNameIsNoNameForWith: the names that WITH may give are those of no table.
func TestAHiddenTablesNameIsNoNameForWith(t *testing.T) {
	src := opened(t, "cte", "CREATE TABLE a (x INTEGER); CREATE TABLE ranked (secret INTEGER);")
	k := knowledgeOf(t, src, func(r sqlguard.Relation) bool { return r.Name == "a" })
	catalog, err := src.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]bool{
		"SELECT x FROM ranked":                                  false,
		"WITH ranked AS (SELECT x FROM a) SELECT x FROM ranked": false,
		"WITH base AS (SELECT x FROM a) SELECT x FROM base":     true,
	} {
		if r := newRecogniser(t, wideGrammar(k, sqlguard.DuckDB, takenIn(catalog), false)); r.derives(sql) != want {
			t.Errorf("%s: %s", sql, r.stuck())
		}
	}
}
