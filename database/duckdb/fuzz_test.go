package duckdb_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/database"
	"sluice/database/duckdb"
	"sluice/fault"
	"sluice/sqlguard"
)

// oracle is what the gate's verdicts are held to: the engine itself, on the whole database and on one from which all that
// the caller may not read is missing.
type oracle struct {
	whole, granted *source
	path           string
	sum            [32]byte // of the whole database's file
}

// mayRead are the fuzzed caller's grants: v_orders is a view of orders. hr.salaries, audit_log, v_pay, "Order Summary" and
// main.salaries are not among them.
var mayRead = []string{"orders", "customers", "products", "v_orders"}

func newOracle(t testing.TB) *oracle {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join("..", "..", "testdata", "sqlguard", "sqlguard_schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{whole: fixture(t)}
	var left []string
	for _, s := range duckdb.TranslateSchema(string(schema)) {
		if strings.HasPrefix(s, "CREATE TABLE main.orders(") || strings.HasPrefix(s, "CREATE TABLE main.customers(") ||
			strings.HasPrefix(s, "CREATE TABLE main.products(") || strings.HasPrefix(s, "CREATE VIEW main.v_orders") {
			left = append(left, s)
		}
	}
	if len(left) != len(mayRead) {
		t.Fatalf("the granted part of the schema is %q", left)
	}
	o.granted = open(t, left...)
	o.path = o.whole.engine.Path()
	o.sum = fileSum(t, o.path)
	return o
}

func fileSum(t testing.TB, path string) [32]byte {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(b)
}

func fuzzMay(r sqlguard.Relation) bool { return r.Schema == "main" && slices.Contains(mayRead, r.Name) }

// judge passes a text through the gate. What it lets through must read nothing but what was granted, be understood by the
// engine, and run without a trace.
func (o *oracle) judge(t *testing.T, sql string, profile sqlguard.Profile) (allowed bool) {
	t.Helper()
	a, err := o.whole.Approve(t.Context(), sql, profile, fuzzMay)
	if err != nil {
		if code := fault.CodeOf(err); code != fault.Refused && code != fault.Invalid {
			t.Fatalf("%v is no refusal: %q", err, sql)
		}
		for _, secret := range []string{"salaries", "audit_log", "v_pay", "employee", "amount"} {
			if said := err.Error() + hintOf(err); strings.Contains(said, secret) && !strings.Contains(strings.ToLower(sql), secret) {
				t.Fatalf("the refusal names %s: %s\n%q", secret, said, sql)
			}
		}
		return false
	}
	for _, r := range a.Relations() {
		if !fuzzMay(r) {
			t.Fatalf("%v was not granted: %q", r, sql)
		}
	}
	failed, text, fails, err := o.whole.engine.Plan(t.Context(), a.Bindable())
	if err != nil {
		t.Fatal(err)
	}
	if failed != "" && !fails || failed == "parser" || failed == "catalog" {
		t.Fatalf("the engine does not take it: %s %s\n%q\n%s", failed, text, sql, a.SQL())
	}
	if failed == "" {
		failed, text, _, err := o.granted.engine.Plan(t.Context(), a.Bindable())
		if err != nil || failed != "" {
			t.Fatalf("it reads what was not granted: %v %s\n%q\n%s", err, text, sql, a.SQL())
		}
	}
	o.run(t, sql, a)
	return true
}

// run lets the statement run for a moment, as it does in the server.
func (o *oracle) run(t *testing.T, sql string, a sqlguard.Approved) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	params := make([]any, 0)
	if n := strings.Count(sql, "$1"); n > 0 && len(a.Bindable()) != 0 && a.Bindable() != a.SQL() {
		params = append(params, int64(3))
	}
	r, err := o.whole.RunParams(ctx, a, params)
	got, err := rowsOf(r, err)
	if err != nil && fault.CodeOf(err) == fault.Internal {
		t.Fatalf("%v\n%q\n%s", err, sql, a.SQL())
	}
	if fileSum(t, o.path) != o.sum {
		t.Fatalf("the database's file changed: %q\n%s", sql, a.SQL())
	}
	if err != nil || anyOrder.MatchString(sql) {
		return
	}
	raw, err := o.whole.engine.Raw(ctx, sql, params)
	want, err := rowsOf(raw, err)
	if err == nil && !slices.Equal(got, want) {
		t.Fatalf("the rows are %s, and %s without the gate\n%q\n%s", got, want, sql, a.SQL())
	}
}

// anyOrder finds what may have other rows each time, or takes another form on the way through the gate.
var anyOrder = regexp.MustCompile(`(?i)limit|fetch|sample|first|last|any_value|list|array|agg|arg_m|max_by|min_by|mode|nth|lag|lead|ntile|row_n|rank|over|distinct|now|current|explain|summarize|describe|rowid|hist|hash|time|local|date`)

// rowsOf gives the rows of a short result, in one order, numbers and texts alike.
func rowsOf(r array.RecordReader, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer r.Release()
	var out []string
	for r.Next() {
		batch := r.RecordBatch()
		for i := range int(min(batch.NumRows(), 5000)) {
			row, err := database.JSONRow(batch, i)
			if err != nil {
				return nil, err
			}
			out = append(out, strings.ReplaceAll(string(bytes.Join(rawBytes(row), []byte(","))), `"`, ""))
		}
	}
	slices.Sort(out)
	return out, r.Err()
}

func rawBytes(row []json.RawMessage) [][]byte {
	out := make([][]byte, len(row))
	for i, c := range row {
		out[i] = c
	}
	return out
}

func hintOf(err error) string {
	if f, ok := err.(*fault.Error); ok {
		return f.Hint
	}
	return ""
}

// FuzzCheck changes the cases byte by byte.
func FuzzCheck(f *testing.F) {
	o := newOracle(f)
	for _, c := range gateCases(f) {
		f.Add(c.SQL)
	}
	for _, sql := range slices.Concat(escapes("/nowhere"), gateOnly, ordinaryStatements, costlyStatements) {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) { o.judge(t, sql, sqlguard.ReadOnly) })
}

// FuzzGrammar writes statements of a grammar that knows what gates forget.
func FuzzGrammar(f *testing.F) {
	o := newOracle(f)
	for i := range 200 {
		h := sha256.Sum256([]byte{byte(i)})
		f.Add(bytes.Repeat(h[:], 1+i%4))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		g := &grammar{choices: choices}
		sql := g.statement()
		o.judge(t, sql, []sqlguard.Profile{sqlguard.ReadOnly, sqlguard.RestrictedRead}[g.pick(2)])
	})
}

// TestGateAgainstTheEngine judges statements of the grammar and cases with parts exchanged, other ones each time: some
// hundreds, or as many as fit into SLUICE_TEST_GATE_SECONDS. A fuzzer's search for new paths in Go does not help here,
// because most of what happens is the engine's.
func TestGateAgainstTheEngine(t *testing.T) {
	o := newOracle(t)
	seed := uint64(time.Now().UnixNano())
	rnd := rand.New(rand.NewPCG(seed, 0))
	cases := gateCases(t)
	var words []string
	for _, c := range cases {
		if len(c.SQL) < 2000 {
			words = append(words, pieces.FindAllString(c.SQL, -1)...)
		}
	}
	last := "" // for whoever finds the process dead
	more := func(n int) bool { return n < 600 }
	if s := os.Getenv("SLUICE_TEST_GATE_SECONDS"); s != "" {
		seconds, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(time.Duration(seconds) * time.Second)
		more = func(int) bool { return time.Now().Before(end) }
	}
	tries, allowed := map[string]int{}, map[string]int{}
	for n := 0; more(n); n++ {
		kind, sql := "grammar", ""
		if n%2 == 0 {
			choices := make([]byte, 16+rnd.IntN(200))
			for i := range choices {
				choices[i] = byte(rnd.Uint32())
			}
			sql = (&grammar{choices: choices}).statement()
		} else {
			kind, sql = "mutation", mutate(rnd, cases[rnd.IntN(len(cases))].SQL, words)
		}
		last = sql
		tries[kind]++
		if o.judge(t, sql, []sqlguard.Profile{sqlguard.ReadOnly, sqlguard.RestrictedRead, sqlguard.CopySource}[rnd.IntN(3)]) {
			allowed[kind]++
		}
		if t.Failed() {
			t.Fatalf("after %q, seed %d", last, seed)
		}
	}
	t.Logf("seed %d: of %v statements %v are allowed", seed, tries, allowed)
	for kind := range tries {
		if allowed[kind] < tries[kind]/50 || allowed[kind] > tries[kind]*49/50 {
			t.Errorf("a generator of nothing but one verdict proves nothing: of %d by %s, %d are allowed", tries[kind], kind, allowed[kind])
		}
	}
}

var pieces = regexp.MustCompile(`'[^']*'|"[^"]*"|\w+|\s+|.`)

// mutate exchanges, doubles, drops or quotes some parts of a statement.
func mutate(rnd *rand.Rand, sql string, words []string) string {
	parts := pieces.FindAllString(sql, -1)
	for range 1 + rnd.IntN(3) {
		if len(parts) == 0 {
			break
		}
		i := rnd.IntN(len(parts))
		switch rnd.IntN(7) {
		case 0, 1, 2:
			parts[i] = words[rnd.IntN(len(words))]
		case 3:
			parts = slices.Insert(parts, i, words[rnd.IntN(len(words))], " ")
		case 4:
			parts = slices.Delete(parts, i, i+1)
		case 5:
			parts[i] = `"` + parts[i] + `"`
		case 6:
			j := i + rnd.IntN(len(parts)-i)
			parts = slices.Insert(parts, j, parts[i:j]...)
		}
	}
	return strings.Join(parts, "")
}
