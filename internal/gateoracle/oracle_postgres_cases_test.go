package gateoracle

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/gatefuzz"
	"sluice/sqlguard"
)

// fuzzGrants are what the fuzzed caller may read. order_items, hr.salaries, v_pay and "Order Summary" are not among them.
var fuzzGrants = []string{"public.orders", "public.customers", "public.products", "public.v_orders", "public.v_late", "public.audit_log", "public.items", "public.tickets"}

// caseOracles gives an oracle for the grants of each case; those with the same share one.
func caseOracles(t testing.TB) func(gatefuzz.Case) *oracle {
	made := map[string]*oracle{}
	return func(c gatefuzz.Case) *oracle {
		grants := slices.Clone(c.Grants)
		if c.Grants == nil {
			grants = []string{"public.customers", "public.products", "public.orders", "public.order_items", "hr.salaries", "public.audit_log", `public."Order Summary"`, "public.v_orders", "public.v_pay"}
		}
		slices.Sort(grants)
		key := strings.Join(grants, ",")
		if made[key] == nil {
			made[key] = newOracle(t, grants, caseSchema(t))
		}
		return made[key]
	}
}

// TestRealCasesRun passes the cases that are PostgreSQL's through the gate. Each allowed one runs from its deparsed form with
// exactly its grants, and with the rows and names that its superuser gets for the original text.
func TestRealCasesRun(t *testing.T) {
	oracleOf := caseOracles(t)
	allowed, denied, lines := 0, 0, 0
	for _, c := range gatefuzz.Cases(t, caseFolder) {
		if c.Dialect != "postgres" && c.Dialect != "both" {
			continue
		}
		lines++
		o, profile := oracleOf(c), profileOf(t, c)
		a, err := o.check(t.Context(), c.SQL, profile)
		switch {
		case c.Verdict == "deny" && err == nil:
			t.Errorf("%s: allowed, although: %s\n%s\nas %s", c.ID, c.Why, c.SQL, a.SQL())
		case c.Verdict == "deny":
			denied++
			if fault.CodeOf(err) != fault.Refused {
				t.Errorf("%s: %v is not a refusal", c.ID, err)
			}
		case err != nil:
			t.Errorf("%s: %v, although: %s\n%s", c.ID, err, c.Why, c.SQL)
		default:
			allowed++
			for _, v := range append(o.admitted(t, c.SQL, a.SQL(), profile, a.Explain()), o.besideSuperuser(t, c.SQL, a)...) {
				t.Errorf("%s: %s: %s\n%s\nas %s", c.ID, v.kind, v.text, c.SQL, a.SQL())
			}
		}
	}
	t.Logf("%d allowed and run, %d denied", allowed, denied)
	if allowed+denied != lines || lines < 313 {
		t.Errorf("%d allowed and %d denied of %d cases, of which there were 313 once", allowed, denied, lines)
	}
}

// TestRealAllowedCasesAreHarmless shows the allowed cases' own texts to the oracle: it must not find fault with what may pass.
func TestRealAllowedCasesAreHarmless(t *testing.T) {
	oracleOf := caseOracles(t)
	for _, c := range gatefuzz.Cases(t, caseFolder) {
		if c.Verdict != "allow" || c.Dialect != "postgres" && c.Dialect != "both" {
			continue
		}
		o := oracleOf(c)
		o.path = originalPath // no gate has qualified the names
		for _, v := range o.admitted(t, c.SQL, c.SQL, profileOf(t, c), false) {
			t.Errorf("%s: %s: %s\n%s", c.ID, v.kind, v.text, c.SQL)
		}
	}
}

var ordered = regexp.MustCompile(`(?is)ORDER BY[^()]*;?\s*$`)

// besideSuperuser compares with the rows of the original, run by the superuser.
func (o *oracle) besideSuperuser(t testing.TB, sql string, a sqlguard.Approved) (out []violation) {
	t.Helper()
	o.begin(t, deparsedPath)
	got := o.prepare(t, o.reader, a.SQL())
	if got.parsed {
		got = o.execute(t, o.reader, got)
	}
	o.rollback(t)
	if err := o.own.Exec(t.Context(), "SET search_path = public").Close(); err != nil {
		t.Fatal(err)
	}
	want := o.prepare(t, o.own, sql)
	if want.parsed {
		want = o.execute(t, o.own, want)
	}
	if got.code != "" || want.code != "" {
		out = append(out, bad("error", "%s; the superuser's original: %s", cmp.Or(got.message, "none"), cmp.Or(want.message, "none")))
	}
	if ordered.MatchString(sql) && got.seq != want.seq {
		out = append(out, bad("order", "the rows begin %q, the superuser's %q", got.some, want.some))
	}
	return append(out, compare(got, want, a.Explain(), sql)...)
}
