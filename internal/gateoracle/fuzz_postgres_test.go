package gateoracle

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/gatefuzz"
	"sluice/internal/pgtest"
	"sluice/sqlguard"
)

var profiles = []sqlguard.Profile{sqlguard.ReadOnly, sqlguard.RestrictedRead, sqlguard.CopySource}

// secrets are names that a refusal may not tell to somebody who did not write them.
var secrets = []string{"salaries", "order_items", "v_pay", "Order Summary", "employee", "amount", "unit_price", "Customer Name"}

// judge passes a text through the gate, and what comes out of it through the oracle.
func (o *oracle) judge(t testing.TB, sql string, profile sqlguard.Profile) (allowed bool, out []violation, refusal error) {
	t.Helper()
	a, err := o.check(t.Context(), sql, profile)
	if out = promised(o.may, sql, a, err); err != nil || o.db == nil {
		return err == nil, out, err
	}
	out = append(out, o.admitted(t, sql, a.SQL(), profile, a.Explain())...)
	return true, out, nil
}

// promised is what the gate itself says of its verdict, without a server.
func promised(may func(sqlguard.Relation) bool, sql string, a sqlguard.Approved, err error) (out []violation) {
	if err == nil {
		for _, r := range a.Relations() {
			if !may(r) {
				out = append(out, bad("not granted", "%v was not granted", r))
			}
		}
		return out
	}
	if code := fault.CodeOf(err); code != fault.Refused && code != fault.Invalid {
		out = append(out, bad("not a refusal", "%v", err))
	}
	said := err.Error()
	if f, ok := err.(*fault.Error); ok {
		said += f.Hint
		if f.Position > len(sql)+1 {
			out = append(out, bad("position", "the place %d is behind the text: %v", f.Position, err))
		}
	}
	if strings.Contains(strings.ToUpper(sql), "U&") {
		return out // its escapes may have written the name
	}
	for _, s := range secrets {
		if strings.Contains(said, s) && !strings.Contains(strings.ToLower(sql), strings.ToLower(s)) {
			out = append(out, bad("secret", "the refusal names %s: %s", s, said))
		}
	}
	return out
}

// report shortens a text to what still has its first violation, and says how to run it again.
func (o *oracle) report(t testing.TB, sql string, profile sqlguard.Profile, found []violation) string {
	t.Helper()
	kind := found[0].kind
	least := gatefuzz.Minimise(sql, func(less string) bool {
		_, v, _ := o.judge(t, less, profile)
		return slices.ContainsFunc(v, func(one violation) bool { return one.kind == kind })
	})
	_, v, _ := o.judge(t, least, profile)
	a, _ := o.check(t.Context(), least, profile)
	return fmt.Sprintf("%s\nprofile %d, shortest %q\nas %s\nwhole %q", list(v), profile, least, a.SQL(), sql)
}

func list(v []violation) string {
	var out []string
	for _, one := range v {
		out = append(out, one.kind+": "+one.text)
	}
	return strings.Join(out, "\n")
}

// TestRealGateAgainstTheServer judges statements of the grammar and cases with parts exchanged, other ones each time: some
// hundreds, or as many as fit into SLUICE_TEST_GATE_SECONDS. SLUICE_TEST_GATE_SEED repeats a run.
func TestRealGateAgainstTheServer(t *testing.T) {
	o := newOracle(t, fuzzGrants, caseSchema(t), traps)
	seed, more := gatefuzz.Seed(t), gatefuzz.Budget(t, 600)
	material := texts(t)
	for n := range 150 {
		material = append(material, (&grammar{Choices: gatefuzz.RandomChoices(rand.New(rand.NewPCG(seed, uint64(n)<<32)), 60)}).statement())
	}
	mutator := gatefuzz.NewMutator(material...)
	last := filepath.Join(os.TempDir(), "sluice-gate-last-"+o.db.Name+".sql") // for whoever finds the process dead
	defer os.Remove(last)
	c := counted{refusals: map[string][]string{}}
	failures := map[string]bool{}
	for n := 0; more(n) && len(failures) < 40; n++ {
		rnd := rand.New(rand.NewPCG(seed, uint64(n)))
		profile := profiles[rnd.IntN(3)]
		var g *grammar
		sql := ""
		if n%3 != 0 {
			g = &grammar{Choices: gatefuzz.RandomChoices(rnd, 200)}
			sql = g.statement()
		} else {
			sql = mutator.Next(rnd)
		}
		if err := os.WriteFile(last, []byte(fmt.Sprintf("-- seed %d, statement %d, profile %d\n%s", seed, n, profile, sql)), 0o600); err != nil {
			t.Fatal(err)
		}
		allowed, found, refusal := o.judge(t, sql, profile)
		if len(found) > 0 {
			if key := found[0].kind + found[0].text; !failures[key] {
				failures[key] = true
				t.Errorf("seed %d, statement %d: %s", seed, n, o.report(t, sql, profile, found))
			}
		}
		c.count(t, o, g, sql, profile, allowed, refusal)
		if n%500 == 499 && o.held(t) != o.state {
			t.Fatalf("seed %d: the database changed before statement %d", seed, n)
		}
	}
	if o.held(t) != o.state {
		t.Errorf("seed %d: the database changed", seed)
	}
	c.say(t, o, seed)
}

// counted is how many statements there were, by generator, and which legitimate ones were refused.
type counted struct {
	made, allowed, mutated, mutatedAllowed int
	plain, plainRun, refused               int // not odd; those that the server runs; those of them that the gate refuses
	refusals                               map[string][]string
}

func (c *counted) count(t testing.TB, o *oracle, g *grammar, sql string, profile sqlguard.Profile, allowed bool, refusal error) {
	t.Helper()
	one := 0
	if allowed {
		one = 1
	}
	if g == nil {
		c.mutated++
		c.mutatedAllowed += one
		return
	}
	c.made++
	c.allowed += one
	if g.odd || profile == sqlguard.RestrictedRead || profile == sqlguard.CopySource && strings.Contains(sql, "$1") { // no parameters in a COPY
		return
	}
	c.plain++
	if allowed {
		c.plainRun++
		return
	}
	if o.understood(t, sql) {
		c.plainRun++
		c.refused++
		why := short(refusal.Error())
		c.refusals[why] = append(c.refusals[why], sql)
	}
}

// understood says whether the reader could run it, as the server has it.
func (o *oracle) understood(t testing.TB, sql string) bool {
	o.begin(t, originalPath)
	r := o.prepare(t, o.reader, sql)
	o.rollback(t)
	return r.parsed
}

func (c *counted) say(t *testing.T, o *oracle, seed uint64) {
	t.Helper()
	t.Logf("seed %d: of %d made statements %d are allowed (%d%%), of %d mutated ones %d; of %d harmless ones %d parse at the server, and %d of these are refused (%.2f%%)",
		seed, c.made, c.allowed, 100*c.allowed/max(1, c.made), c.mutated, c.mutatedAllowed, c.plain, c.plainRun, c.refused, 100*float64(c.refused)/float64(max(1, c.plainRun)))
	whys := slices.SortedFunc(maps.Keys(c.refusals), func(a, b string) int { return len(c.refusals[b]) - len(c.refusals[a]) })
	for _, why := range whys[:min(30, len(whys))] {
		all := c.refusals[why]
		least := slices.MinFunc(all, func(a, b string) int { return len(a) - len(b) })
		least = gatefuzz.Minimise(least, func(less string) bool {
			_, err := o.check(t.Context(), less, sqlguard.ReadOnly)
			return err != nil && short(err.Error()) == why && o.understood(t, less)
		})
		t.Logf("refused although harmless, %d times: %s\n  %s", len(all), why, least)
	}
	if c.allowed*5 < c.made || c.allowed*50 > c.made*49 || c.mutatedAllowed*50 < c.mutated {
		t.Errorf("a generator of nothing but one verdict proves nothing: of %d made, %d are allowed, of %d mutated, %d", c.made, c.allowed, c.mutated, c.mutatedAllowed)
	}
	if c.refused > 8+c.plainRun/50 {
		t.Errorf("%d of %d statements that a reader may run are refused", c.refused, c.plainRun)
	}
}

func texts(t testing.TB) (out []string) {
	t.Helper()
	for _, c := range gatefuzz.Cases(t, caseFolder) {
		if c.Dialect != "duckdb" {
			out = append(out, c.SQL)
		}
	}
	return append(out, attacks(t)...)
}

// fuzzed is the oracle of a fuzz target. Without a server, as in `make check`, only what the gate itself promises is held.
func fuzzed(f *testing.F) *oracle {
	f.Helper()
	if os.Getenv(pgtest.Variable) != "" {
		return newOracle(f, fuzzGrants, caseSchema(f), traps)
	}
	o := &oracle{grants: map[string]bool{}, catalog: &sqlguard.Catalog{Engine: "postgres", DefaultSchema: "public", Search: []string{"public"}, Extensions: map[string]string{"vector": "public"}, Functions: []string{"leak"}}}
	for _, g := range fuzzGrants {
		o.grants[g] = true
	}
	for _, table := range tables {
		one := sqlguard.Table{Relation: sqlguard.Relation{Schema: "public", Name: table.name}}
		for _, c := range table.cols {
			one.Columns = append(one.Columns, sqlguard.Column{Name: strings.Trim(c.name, `"`), Type: "text", Nullable: true})
		}
		o.catalog.Tables = append(o.catalog.Tables, one)
	}
	o.catalog.Tables = append(o.catalog.Tables, sqlguard.Table{Relation: sqlguard.Relation{Schema: "hr", Name: "salaries"}, Columns: []sqlguard.Column{{Name: "amount", Type: "numeric"}}})
	return o
}

// FuzzPostgresCheck changes the cases byte by byte.
func FuzzPostgresCheck(f *testing.F) {
	o := fuzzed(f)
	for _, sql := range texts(f) {
		f.Add(sql)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if _, found, _ := o.judge(t, sql, sqlguard.ReadOnly); len(found) > 0 {
			t.Fatalf("%s\n%q", list(found), sql)
		}
	})
}

// FuzzPostgresGrammar changes the choices of the grammar.
func FuzzPostgresGrammar(f *testing.F) {
	o := fuzzed(f)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		b := make([]byte, 20+rnd.IntN(150))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		g := &grammar{Choices: gatefuzz.NewChoices(choices)}
		sql := g.statement()
		if _, found, _ := o.judge(t, sql, profiles[g.Pick(3)]); len(found) > 0 {
			t.Fatalf("%s\n%q", list(found), sql)
		}
	})
}

// TestRealGrammarIsUnderstood holds the grammar to the server: most of what it writes without mischief must parse there, or
// it proves little.
func TestRealGrammarIsUnderstood(t *testing.T) {
	o := newOracle(t, fuzzGrants, caseSchema(t), traps)
	seed := gatefuzz.Seed(t)
	plain, parsed, why := 0, 0, map[string][]string{}
	for n := range 1000 {
		g := &grammar{Choices: gatefuzz.RandomChoices(rand.New(rand.NewPCG(seed, uint64(n))), 200)}
		sql := g.statement()
		if g.odd {
			continue
		}
		plain++
		o.begin(t, originalPath)
		r := o.prepare(t, o.reader, sql)
		o.rollback(t)
		if r.parsed {
			parsed++
			continue
		}
		why[r.message] = append(why[r.message], sql)
	}
	t.Logf("seed %d: of 1000 statements %d are harmless, of which %d parse", seed, plain, parsed)
	if plain < 300 || parsed*4 < plain*3 {
		t.Errorf("of 1000 statements only %d are harmless, of which only %d parse", plain, parsed)
	}
	for message, all := range why {
		t.Logf("%d times %s\n  %s", len(all), message, slices.MinFunc(all, func(a, b string) int { return len(a) - len(b) }))
	}
}
