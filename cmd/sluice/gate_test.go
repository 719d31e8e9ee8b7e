package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// gate runs sluice gate on lines and gives the verdicts.
func gate(t *testing.T, lines string, args ...string) ([]verdict, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(append([]string{"gate", "--jsonl"}, args...))
	root.SetIn(strings.NewReader(lines))
	root.SetOut(&out)
	err := root.ExecuteContext(t.Context())
	var all []verdict
	s := bufio.NewScanner(&out)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		var v verdict
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all, err
}

// TestGateDecidesOnEveryCase: 352 of 352 verdicts.
func TestGateDecidesOnEveryCase(t *testing.T) {
	folder := filepath.Join("..", "..", "testdata", "sqlguard")
	text, err := os.ReadFile(filepath.Join(folder, "sqlguard.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := gate(t, string(text), "--schema", filepath.Join(folder, "sqlguard_schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		var want struct{ ID, SQL, Dialect, Verdict, Why string }
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		if i >= len(got) {
			t.Fatalf("%d verdicts", len(got))
		}
		v := got[i]
		switch {
		case v.ID != want.ID || v.Verdict != want.Verdict:
			t.Errorf("%s: %s (%s), want %s, as %s\n%.500s", want.ID, v.Verdict, v.Why, want.Verdict, want.Why, want.SQL)
		case v.Verdict == "deny" && (v.Why == "" || v.SQL != "" || v.DuckDBSQL != ""), v.Verdict == "allow" && (v.Why != "" || v.SQL == "" || (v.DuckDBSQL != "") != (want.Dialect == "both")):
			t.Errorf("%s: %+v", want.ID, v)
		default:
			right++
		}
	}
	t.Logf("%d of %d verdicts are right", right, len(got))
	if right != len(got) || right < 352 {
		t.Errorf("%d of %d verdicts are right, of which there were 352 once", right, len(got))
	}
}

func TestGateOfBothDialects(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "schema.sql")
	if err := os.WriteFile(schema, []byte("CREATE TABLE public.orders (id int, total numeric);"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := func(dialect, sql, rest string) string {
		b, err := json.Marshal(map[string]string{"id": "x", "dialect": dialect, "sql": sql, "profile": "read_only"})
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(b), "}") + rest + "}\n"
	}
	for name, c := range map[string]struct {
		line, verdict string
		why           []string // what it says
	}{
		"both allow":                              {line("both", "SELECT total FROM orders", ""), "allow", nil},
		"each has its own schema's name":          {line("duckdb", "SELECT total FROM main.orders", ""), "allow", nil},
		"and the other's is not there":            {line("postgres", "SELECT total FROM main.orders", ""), "deny", []string{"main"}},
		"both refuse":                             {line("both", "SELECT * FROM nowhere", ""), "deny", []string{"postgres: ", "; duckdb: ", "nowhere"}},
		"one refuses":                             {line("both", "SELECT list_sum([1, 2])", ""), "deny", []string{"postgres: "}},
		"the other refuses":                       {line("both", "SELECT to_char(DATE '2026-01-01', 'YYYY')", ""), "deny", []string{"duckdb: "}},
		"a grant without a schema is each's own":  {line("both", "SELECT total FROM orders", `,"grants":["orders"]`), "allow", nil},
		"a grant with one is for its dialect":     {line("both", "SELECT total FROM orders", `,"grants":["public.orders"]`), "deny", []string{"duckdb: "}},
		"an empty list of grants allows nothing":  {line("postgres", "SELECT total FROM orders", `,"grants":[]`), "deny", []string{"orders"}},
		"one gate's refusal has no dialect in it": {line("postgres", "DELETE FROM orders", ""), "deny", []string{"DELETE"}},
	} {
		got, err := gate(t, c.line, "--schema", schema)
		if err != nil || len(got) != 1 || got[0].Verdict != c.verdict {
			t.Errorf("%s: %+v, %v", name, got, err)
			continue
		}
		for _, w := range c.why {
			if !strings.Contains(got[0].Why, w) {
				t.Errorf("%s: %q does not say %q", name, got[0].Why, w)
			}
		}
		if strings.Contains(c.line, `"postgres"`) && strings.Contains(got[0].Why, "postgres: ") || len(c.why) == 1 && strings.Contains(got[0].Why, "; ") {
			t.Errorf("%s: %q", name, got[0].Why)
		}
	}
	if got, err := gate(t, line("postgres", "SELECT total FROM orders", "")); err != nil || got[0].Verdict != "deny" {
		t.Errorf("without a schema: %+v, %v", got, err)
	}
	for name, bad := range map[string]string{"a dialect": `{"id":"x","sql":"SELECT 1","dialect":"mysql"}`, "a profile": `{"id":"x","sql":"SELECT 1","dialect":"duckdb","profile":"writes"}`, "no JSON": "SELECT 1"} {
		if got, err := gate(t, line("duckdb", "SELECT 1", "")+bad); err == nil || len(got) != 1 || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s that is not there: %+v, %v", name, got, err)
		}
	}
}
