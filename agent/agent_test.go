package agent

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/rag"
	"sluice/sqlguard"
)

var rewrite = flag.Bool("rewrite", false, "accept the prompt as the golden file")

// completer is a model that a test writes.
type completer func(Completion) (string, error)

func (f completer) Complete(_ context.Context, c Completion) ([]string, error) {
	text, err := f(c)
	return slices.Repeat([]string{text}, max(1, c.N)), err
}

// writes is a model that always writes the same.
func writes(sql string) completer { return func(Completion) (string, error) { return sql, nil } }

// watched keeps what is executed on the real source behind it.
type watched struct {
	*database.Source
	mu  sync.Mutex
	ran []string
}

func (w *watched) Run(ctx context.Context, a sqlguard.Approved) (array.RecordReader, error) {
	w.mu.Lock()
	w.ran = append(w.ran, a.SQL())
	w.mu.Unlock()
	return w.Source.Run(ctx, a)
}

// beside gives what was executed beside the looks that are taken at the tables of an admin's database.
func (w *watched) beside(t *testing.T) []string {
	t.Helper()
	looks := &watched{Source: w.Source}
	p := rag.NewProfiler(rag.Config{})
	defer p.Close()
	if _, err := p.Knowledge(t.Context(), looks, everything); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(w.ran), func(sql string) bool { return slices.Contains(looks.ran, sql) })
}

const script = `
CREATE TABLE customers (customer_id INTEGER PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE zz_salaries (id INTEGER PRIMARY KEY, zz_amount DECIMAL(10,2));
CREATE TABLE orders (
  order_id INTEGER PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers(customer_id),
  salary_id INTEGER REFERENCES zz_salaries(id),
  status VARCHAR NOT NULL,
  total DECIMAL(10,2)
);
COMMENT ON COLUMN orders.status IS 'CANC = cancelled';
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bo');
INSERT INTO zz_salaries VALUES (1, 987654.32);
INSERT INTO orders VALUES (1, 1, 1, 'PAID', 10.50), (2, 1, NULL, 'CANC', 20), (3, 2, NULL, 'CANC', NULL), (4, 2, NULL, 'PAID', 5);
`

func shop(t *testing.T) *watched {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.duckdb")
	if err := database.CreateFile(t.Context(), path, script); err != nil {
		t.Fatal(err)
	}
	src, err := database.Open(t.Context(), database.Config{Name: "shop", Kind: "duckdb", Path: path}, nil)
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

func admin() access.Principal {
	return access.Trusted("k1", access.Admin)
}

func newAgent(t testing.TB, cfg Config) *Agent {
	t.Helper()
	if cfg.Model == "" {
		cfg.Model = "coder"
	}
	cfg.Grammar = true // TestWithoutBeingAskedForThereIsNoGrammar has the other way
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// ask asks the shop with a model that writes sql.
func askShop(t *testing.T, src Source, sql string, q Ask) Answer {
	t.Helper()
	if q.Who.KeyID == "" {
		q.Who = admin()
	}
	if q.Question == "" {
		q.Question = "How many orders and customers are there?"
	}
	ans, err := newAgent(t, Config{Completer: writes(sql), Without: Techniques{Doubt: true}}).Ask(t.Context(), src, q) // the statements fit no question
	if err != nil {
		t.Fatalf("%q: %v", sql, err)
	}
	return ans
}

func TestAskAnswersFromTheRows(t *testing.T) {
	src := shop(t)
	for name, row := range map[string]struct{ sql, want string }{
		"one value":      {"SELECT COUNT(*) AS n FROM orders WHERE status = 'CANC';", "n: 2."},
		"a count in all": {"SELECT SUM(order_id) AS ids FROM orders", "ids: 10."},
		"nested":         {`SELECT [1, 2] AS l, {'a': 'x'} AS s, '{"k":1}'::JSON AS j FROM orders LIMIT 1`, `l: [1,2], s: {"a":"x"}, j: {"k":1}.`},
		"a sum":          {"SELECT SUM(total) AS total FROM orders", "total: 35.50."},
		"no name":        {"SELECT COUNT(*) FROM orders", "count: 4."},
		"one row":        {"SELECT name, customer_id FROM customers WHERE customer_id = 1", "name: Ada, customer_id: 1."},
		"several rows":   {"SELECT name FROM customers ORDER BY 1", "2 rows: name: Ada; name: Bo."},
		"no row":         {"SELECT name FROM customers WHERE name = 'Zoe'", "No rows match."},
		"prose is left":  {"SELECT COUNT(*) AS n FROM orders\n```\nThis counts [all] orders", "n: 4."},
	} {
		t.Run(name, func(t *testing.T) {
			ans := askShop(t, src, row.sql, Ask{})
			if ans.Outcome != Answered || ans.Text != row.want || ans.SQL == "" || ans.Table == nil {
				t.Errorf("got %+v, want the text %q", ans, row.want)
			}
			if ans.Attempts != 1 || ans.ModelCalls < 2 || ans.ModelCalls > 3 || ans.Model != "coder" || ans.Reason != "" {
				t.Errorf("got %+v", ans)
			}
		})
	}
}

func TestAskTypesAndCapsTheTable(t *testing.T) {
	src := shop(t)
	ans := askShop(t, src, "SELECT order_id, total, status FROM orders ORDER BY order_id", Ask{MaxRows: 3})
	got, err := json.Marshal(ans.Table)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"Columns":[{"name":"order_id","type":"INTEGER"},{"name":"total","type":"DECIMAL(10,2)"},{"name":"status","type":"TEXT"}],` +
		`"Rows":[[1,"10.50","PAID"],[2,"20.00","CANC"],[3,null,"CANC"]],"Truncated":true}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if ans.Text != "More than 3 rows: order_id: 1, total: 10.50, status: PAID; order_id: 2, total: 20.00, status: CANC; order_id: 3, total: no value, status: CANC." {
		t.Errorf("text %q", ans.Text)
	}
	if exact := askShop(t, src, "SELECT order_id FROM orders", Ask{MaxRows: 4}); exact.Table.Truncated || len(exact.Table.Rows) != 4 {
		t.Errorf("four rows under a cap of four: %+v", exact.Table)
	}
	small, err := newAgent(t, Config{Completer: writes("SELECT order_id FROM orders"), MaxRows: 2}).Ask(t.Context(), src, Ask{Who: admin(), Question: "How many orders?", MaxRows: 100})
	if err != nil || len(small.Table.Rows) != 2 || !small.Table.Truncated {
		t.Errorf("an ask went over the configured cap: %+v, %v", small.Table, err)
	}
}

func TestAskCapsTheBytesOfTheTable(t *testing.T) {
	src := shop(t)
	who := newAgent(t, Config{Completer: writes("SELECT 'x' || range AS v FROM range(5), (SELECT 1 FROM orders LIMIT 1)"), MaxBytes: 15})
	ans, err := who.Ask(t.Context(), src, Ask{Who: admin(), Question: "How many orders?"})
	if err != nil || len(ans.Table.Rows) != 3 || !ans.Table.Truncated || ans.Text != "More than 3 rows: v: x0; v: x1; v: x2." {
		t.Errorf("%+v, %v", ans, err)
	}
	who = newAgent(t, Config{Completer: writes("SELECT 'a long text' AS v FROM orders LIMIT 1"), MaxBytes: 5})
	if ans, err := who.Ask(t.Context(), src, Ask{Who: admin(), Question: "How many orders?"}); err != nil || len(ans.Table.Rows) != 0 || !ans.Table.Truncated || !strings.Contains(ans.Text, "too large") {
		t.Errorf("%+v, %v", ans, err)
	}
}

func TestAskFailsHonestly(t *testing.T) {
	src := shop(t)
	for name, row := range map[string]struct{ sql, reason string }{
		"the model wrote nothing":        {"", "wrote no SQL"},
		"the model wrote a code fence":   {"```sql\nSELECT 1", "wrote no SQL"},
		"the model wrote only a comment": {"-- there is no such column", "wrote no SQL"},
		"an unknown table":               {"SELECT * FROM invoices", "invoices"},
		"a value that does not convert":  {"SELECT CAST(status AS INTEGER) FROM orders", "could not run"},
	} {
		t.Run(name, func(t *testing.T) {
			ans := askShop(t, src, row.sql, Ask{})
			if ans.Outcome != Failed || !strings.Contains(ans.Reason, row.reason) || ans.Table != nil {
				t.Errorf("got %+v, want a failure with %q", ans, row.reason)
			}
		})
	}
}

func TestAnAnswerHoldsNoSlotOrToolCall(t *testing.T) {
	src := shop(t)
	for name, sql := range map[string]string{
		"a column named as a slot": `SELECT COUNT(*) AS "[Your Name]" FROM orders`,
		"a cell with a template":   "SELECT '{{ total }}' AS x FROM orders LIMIT 1",
		"a cell with a tool call":  `SELECT '{"name": "run_sql", "arguments": {}}' AS x FROM orders LIMIT 1`,
		"a cell with a code block": "SELECT repeat(chr(96), 3) || 'sql' AS x FROM orders LIMIT 1",
		"an unknown slot table":    `SELECT * FROM "[insert table]"`,
	} {
		t.Run(name, func(t *testing.T) {
			ans := askShop(t, src, sql, Ask{})
			for _, text := range []string{ans.Text, ans.Reason} {
				if placeholder.MatchString(text) || toolCall.MatchString(text) {
					t.Errorf("%s: %q", ans.Outcome, text)
				}
			}
			if ans.Text == "" {
				t.Error("silence")
			}
		})
	}
}

func TestErrorsOfTheModelPass(t *testing.T) {
	src := shop(t)
	for name, want := range map[string]error{
		"no such model": fault.New(fault.NotFound, "models", "model 'x' not found"),
		"busy":          fault.New(fault.Busy, "scheduler", "all models are busy"),
		"ours":          errors.New("pipe broke"),
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, Config{Completer: completer(func(Completion) (string, error) { return "", want })})
			if _, err := a.Ask(t.Context(), src, Ask{Who: admin(), Question: "How many orders?"}); !errors.Is(err, want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEventsTellTheSteps(t *testing.T) {
	src := shop(t)
	stages := func(sql string) (out []string) {
		askShop(t, src, sql, Ask{OnEvent: func(e Event) { out = append(out, e.Stage+": "+e.Text) }})
		return out
	}
	want := []string{"schema: 3 tables, most likely orders, customers", "candidate: SELECT COUNT(*) AS n FROM orders", "gate: allowed", "rows: 1 row", "answer: n: 4."}
	if got := stages("SELECT COUNT(*) AS n FROM orders"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got := stages("DELETE FROM orders"); len(got) != 4 || !strings.HasPrefix(got[2], "gate: refused: ") || !strings.HasPrefix(got[3], "answer: This was not done") {
		t.Errorf("got %q", got)
	}
}

func TestRecord(t *testing.T) {
	src := shop(t)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var got Record
	cfg := Config{
		Completer: writes("SELECT name FROM customers;"),
		Now:       func() time.Time { now = now.Add(time.Second); return now },
		Record:    func(_ context.Context, r Record) error { got = r; return nil },
	}
	if _, err := newAgent(t, cfg).Ask(t.Context(), src, Ask{Who: admin(), Question: "Which customers?"}); err != nil {
		t.Fatal(err)
	}
	if got.Took != time.Second || got.Question != "Which customers?" || got.Database != "shop" || got.Outcome != Answered || got.Written != "SELECT name FROM customers" || got.KeyID != "k1" {
		t.Errorf("got %+v", got)
	}
	full := errors.New("disk full")
	cfg.Record = func(context.Context, Record) error { return full }
	if _, err := newAgent(t, cfg).Ask(t.Context(), src, Ask{Who: admin(), Question: "Which customers?"}); !errors.Is(err, full) {
		t.Errorf("an ask that was not recorded: %v", err)
	}
}

// stuck is a model that answers only when its time is over.
type stuck struct{}

func (stuck) Complete(ctx context.Context, _ Completion) ([]string, error) {
	<-ctx.Done()
	return nil, fault.Wrap(ctx.Err(), fault.Canceled, "scheduler", "cancelled")
}

// onlyCatalog is a source whose model never gets to the rest of it.
type onlyCatalog struct{ Source }

func (onlyCatalog) Name() string              { return "shop" }
func (onlyCatalog) DefaultSchema() string     { return "main" }
func (onlyCatalog) Dialect() sqlguard.Dialect { return sqlguard.DuckDB }
func (onlyCatalog) Approve(context.Context, string, sqlguard.Profile, func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	return sqlguard.Approved{}, fault.New(fault.Refused, "test", "nothing passes here")
}
func (onlyCatalog) Catalog(context.Context) (*sqlguard.Catalog, error) {
	return &sqlguard.Catalog{DefaultSchema: "main", Tables: []sqlguard.Table{{Relation: sqlguard.Relation{Schema: "main", Name: "orders"}}}}, nil
}

func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAgent(t, Config{Completer: stuck{}, Timeout: 5 * time.Second})
		ans, err := a.Ask(t.Context(), onlyCatalog{}, Ask{Who: admin(), Question: "How many orders?"})
		if err != nil || ans.Outcome != Failed || !strings.Contains(ans.Reason, "5s") || !strings.Contains(ans.Reason, "coder") {
			t.Errorf("time over: %+v, %v", ans, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := a.Ask(ctx, onlyCatalog{}, Ask{Who: admin(), Question: "How many orders?"}); fault.CodeOf(err) != fault.Canceled {
			t.Errorf("the caller left: %v", err)
		}
	})
}

func TestNewReportsAllMistakes(t *testing.T) {
	_, err := New(Config{MaxRows: -1, MaxBytes: -1, Timeout: -1, NumCtx: -1, Candidates: -1, Repairs: -1, Calls: -1, CardTokens: -1})
	for _, part := range []string{"Completer", "MaxRows", "MaxBytes", "Timeout", "NumCtx", "Candidates", "Repairs", "Calls", "CardTokens"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not reported: %v", part, err)
		}
	}
}

func TestEqualRightsGiveEqualPrompts(t *testing.T) {
	src := shop(t)
	var prompts []string
	a := newAgent(t, Config{Completer: completer(func(c Completion) (string, error) {
		prompts = append(prompts, c.Messages[1].Content)
		return "SELECT 1 FROM orders", nil
	})})
	for range 3 {
		if _, err := a.Ask(t.Context(), src, Ask{Who: admin(), Question: "How many orders?"}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(prompts); n < 3 || n%3 != 0 || slices.ContainsFunc(prompts, func(p string) bool { return p != prompts[0] }) {
		t.Error("the prompt changed between two asks")
	}
	if *rewrite {
		if err := os.WriteFile("testdata/prompt.golden", []byte(prompts[0]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/prompt.golden")
	if err != nil {
		t.Fatal(err)
	}
	if prompts[0] != string(want) {
		t.Errorf("got\n%s\nwant\n%s", prompts[0], want)
	}
}
