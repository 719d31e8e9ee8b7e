package gateoracle

import (
	"strings"
	"testing"

	"sluice/sqlguard"
)

// TestRealOracleFindsWhatAGateMayMiss shows the oracle each kind of violation, as if a gate had admitted it.
func TestRealOracleFindsWhatAGateMayMiss(t *testing.T) {
	o := newOracle(t, fuzzGrants, caseSchema(t), traps)
	o.db.Exec(`GRANT EXECUTE ON FUNCTION public.leak(orders), public.spy(int, int), public.spell(mood) TO ` + o.reader.ParameterStatus("session_authorization") + `;
GRANT USAGE ON SEQUENCE public.numbers TO PUBLIC; GRANT USAGE ON SCHEMA hr TO PUBLIC; GRANT INSERT, UPDATE ON orders TO PUBLIC`)
	cases := map[string]struct {
		sql, text string // text: what the gate wrote, if it is something else
		profile   sqlguard.Profile
		want      string
	}{
		"a harmless query":                            {sql: "SELECT id FROM public.orders", want: ""},
		"a harmless view":                             {sql: "SELECT id FROM public.v_orders", want: ""},
		"a view of a view":                            {sql: "SELECT id FROM public.v_late", want: ""},
		"a harmless parameter":                        {sql: "SELECT id FROM public.orders WHERE total > $1", want: ""},
		"an extension's operator":                     {sql: "SELECT id FROM public.items ORDER BY embedding OPERATOR(public.<->) '[1,2,3]' LIMIT 1", want: ""},
		"a mistake of the caller's own":               {sql: "SELECT id + 'x' FROM public.orders", want: ""},
		"a sequence":                                  {sql: "SELECT nextval('public.numbers')", want: "volatile"},
		"a setting":                                   {sql: "SELECT set_config('statement_timeout', '0', false)", want: "setting"},
		"a setting that outlives the transaction":     {sql: "SELECT set_config('work_mem', '1MB', false)", want: "volatile"},
		"an advisory lock":                            {sql: "SELECT pg_advisory_lock(7)", want: "lock"},
		"an advisory lock of the transaction":         {sql: "SELECT pg_advisory_xact_lock(7)", want: "lock"},
		"a transaction id":                            {sql: "SELECT txid_current()", want: "setting"},
		"a message":                                   {sql: "SELECT pg_notify('a', 'b')", want: "volatile"},
		"column notation":                             {sql: "SELECT o.leak FROM public.orders o", want: "error 42703"}, // the pinned search_path hides it
		"a function of the user's":                    {sql: "SELECT public.leak(o) FROM public.orders o", want: "function"},
		"an operator of the user's":                   {sql: "SELECT 1 OPERATOR(public.<~~>) 2", want: "touched"},
		"a cast of the user's":                        {sql: "SELECT mood::int FROM public.tickets", want: "function"},
		"a table that was not granted":                {sql: "SELECT * FROM hr.salaries", want: "error 42501"},
		"the same in a CTE that no plan has":          {sql: "WITH s AS (SELECT * FROM hr.salaries) SELECT 1", want: "relation"},
		"its row type":                                {sql: "SELECT NULL::hr.salaries", want: "row type"},
		"an array of it":                              {sql: "SELECT NULL::hr.salaries[]", want: "row type"},
		"a column of it in a column list":             {sql: "SELECT 1 FROM jsonb_to_recordset('[]') AS x(a hr.salaries)", want: "row type"},
		"a view of it":                                {sql: "SELECT * FROM public.v_pay", want: "error 42501"},
		"the server's catalogue":                      {sql: "SELECT relname FROM pg_catalog.pg_class", want: "relation"},
		"a name that the catalogue resolves":          {sql: "SELECT 'hr.salaries'::regclass", want: "reg type"},
		"the definition of a view":                    {sql: "SELECT pg_get_viewdef('public.v_pay'::regclass)", want: "leaky"},
		"a table as XML":                              {sql: "SELECT table_to_xml('public.orders', true, true, '')", want: "leaky"},
		"SQL in a text":                               {sql: "SELECT query_to_xml('SELECT 1', true, true, '')", want: "volatile"},
		"a write":                                     {sql: "INSERT INTO public.orders(id) VALUES (99) RETURNING id", want: "error 25006"},
		"a write in a CTE":                            {sql: "WITH w AS (UPDATE public.orders SET total = 0 RETURNING id) SELECT * FROM w", want: "error 25006"},
		"a row lock":                                  {sql: "SELECT id FROM public.orders FOR UPDATE", want: "error 25006"},
		"two statements":                              {sql: "SELECT 1; SELECT 2", want: "error 42601"},
		"an unknown table":                            {sql: "SELECT 1 FROM public.nowhere", want: "error 42P01"},
		"an unknown column":                           {sql: "SELECT nope FROM public.orders", want: "error 42703"},
		"a deparser that loses a condition":           {sql: "SELECT id FROM orders WHERE id < 5", text: "SELECT id FROM public.orders", want: "rows"},
		"a deparser that loses a name":                {sql: "SELECT id AS x FROM orders", text: "SELECT id FROM public.orders", want: "columns"},
		"a deparser that changes a type":              {sql: "SELECT id FROM orders", text: "SELECT id::bigint AS id FROM public.orders", want: "columns"},
		"a deparser that makes a name of the search":  {sql: "SELECT lower('A')", text: "SELECT lowered('A')", want: "error 42883 for "},
		"a deparser that leaves a name to the search": {sql: "SELECT id FROM orders", text: "SELECT id FROM orders", want: "error 42P01"},
		"the time, for a restricted reader":           {sql: "SELECT now()", profile: sqlguard.RestrictedRead, want: "clock"},
		"the time by keyword":                         {sql: "SELECT CURRENT_TIMESTAMP", profile: sqlguard.RestrictedRead, want: "clock"},
		"a restricted reader's own name":              {sql: "SELECT CURRENT_USER", profile: sqlguard.RestrictedRead, want: "who"},
		"today, for a restricted reader":              {sql: "SELECT CURRENT_DATE - 1 FROM public.orders WHERE placed_at > CURRENT_DATE", profile: sqlguard.RestrictedRead, want: ""},
		"a connection that ends":                      {sql: "SELECT pg_terminate_backend(pg_backend_pid())", want: "connection"},
	}
	for name, c := range cases {
		text := c.text
		if text == "" {
			text = c.sql
		}
		if c.profile == sqlguard.NoProfile {
			c.profile = sqlguard.ReadOnly
		}
		got := o.admitted(t, c.sql, text, c.profile, false)
		if c.want == "" && len(got) > 0 || !strings.Contains(","+kinds(got), ","+c.want) {
			t.Errorf("%s: %v, want %q\n%s", name, got, c.want, c.sql)
		}
	}
	if o.held(t) != o.state {
		t.Error("the database changed")
	}
	o.db.Exec("UPDATE orders SET total = 0 WHERE id = 1")
	if o.held(t) == o.state {
		t.Error("a change goes unseen")
	}
}
