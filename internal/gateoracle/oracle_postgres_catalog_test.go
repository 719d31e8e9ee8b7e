package gateoracle

import (
	"slices"
	"strings"
	"testing"

	"sluice/sqlguard"
)

// samples are values of the types that a call gets; other types get a NULL.
var samples = map[string]string{
	"integer": "3", "bigint": "3::bigint", "smallint": "3::smallint", "text": "'abc'::text", "numeric": "2.5", "double precision": "2.5::float8", "real": "2.5::real", "boolean": "true",
	"date": "date '2026-01-05'", "timestamp without time zone": "timestamp '2026-01-05 10:00'", "timestamp with time zone": "timestamptz '2026-01-05 10:00Z'", "interval": "interval '1 day'",
	"jsonb": `'{"a": [1, 2]}'::jsonb`, "json": `'{"a": 1}'::json`, "bytea": `'\x0102'::bytea`, "text[]": "ARRAY['a', 'b']", "integer[]": "ARRAY[1, 2]", "anyarray": "ARRAY[1, 2]", "anyelement": "1", "anycompatible": "1",
	"anycompatiblearray": "ARRAY[1, 2]", "anyrange": "int4range(1, 5)", "anynonarray": "1", `"any"`: "1", "point": "point '(1,2)'", "xml": "'<a/>'::xml", "tsvector": "'a b'::tsvector", "tsquery": "'a'::tsquery",
	"name": "'abc'::name", "oid": "'3722'::oid", "record": "ROW(1, 'a')", "inet": "'10.0.0.1'::inet", "jsonpath": "'$.a'::jsonpath", "vector": "'[1,2,3]'::vector", "anymultirange": "'{[1,3)}'::int4multirange",
}

func sample(typ string) string {
	if s := samples[typ]; s != "" {
		return s
	}
	if strings.HasPrefix(typ, "any") || typ == "internal" || typ == "cstring" {
		return "NULL"
	}
	return "NULL::" + typ
}

// TestRealEveryFunction calls every function, aggregate and operator that the server has, and makes a value of every type.
// Each passes the gate or is refused; what passes must satisfy the oracle.
func TestRealEveryFunction(t *testing.T) {
	o := newOracle(t, fuzzGrants, caseSchema(t), traps)
	admitted, refused, tight := 0, 0, map[string]bool{}
	try := func(sql, name string, harmless bool) {
		allowed, found, _ := o.judge(t, sql, sqlguard.ReadOnly)
		switch {
		case allowed:
			admitted++
		default:
			refused++
			if harmless {
				tight[name] = true
			}
		}
		if a, err := o.check(t.Context(), sql, sqlguard.RestrictedRead); err == nil { // it is the same text, and has run
			if !allowed {
				found = append(found, bad("profile", "a restricted reader may, and another one may not"))
			}
			if o.understood(t, sql) {
				found = append(found, o.readTree(t, a.SQL(), nil, sqlguard.RestrictedRead)...)
			}
		}
		if len(found) > 0 {
			a, _ := o.check(t.Context(), sql, sqlguard.ReadOnly)
			t.Errorf("%s\n%s\nas %s", list(found), sql, a.SQL())
		}
	}
	for _, r := range query(t, o.super, `SELECT p.proname::text, p.prokind::text, p.proretset, n.nspname::text, p.provolatile::text, p.pronargs::int, coalesce(string_agg(format_type(a.t, NULL), '|' ORDER BY a.i), ''),
  p.pronamespace = 'pg_catalog'::regnamespace AND p.provolatile = 'i' AND NOT EXISTS (SELECT FROM unnest(p.proargtypes::oid[] || p.prorettype) x(t) WHERE x.t::regtype::text IN ('internal', 'cstring', 'trigger', 'void', 'record') OR x.t::regtype::text ~ '^reg|oid|handler|tid|xid|aclitem|pg_|gtsvector|gbtree|pseudo|event')
  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace LEFT JOIN LATERAL unnest(p.proargtypes::oid[]) WITH ORDINALITY a(t, i) ON true
  WHERE n.nspname IN ('pg_catalog', 'public') AND p.prokind IN ('f', 'a', 'w') GROUP BY p.oid, n.nspname ORDER BY p.proname, p.oid`) {
		name, kind, set, args := r[0].(string), r[1].(string), r[2].(bool), r[6].(string)
		var values []string
		if args != "" {
			for _, a := range strings.Split(args, "|") {
				values = append(values, sample(a))
			}
		}
		if name == "interval" && len(values) == 2 {
			values[1] = "-1" // no number of digits, but a code
		}
		call := o.known.ident(name) + "(" + strings.Join(values, ", ") + ")"
		switch {
		case kind == "w":
			try("SELECT "+call+" OVER (ORDER BY id) FROM orders", name, false)
		case set:
			try("SELECT 1 FROM "+call+" AS f", name, false)
		default:
			try("SELECT "+call, name, r[7].(bool))
		}
	}
	for _, r := range query(t, o.super, `SELECT o.oprname::text, format_type(o.oprleft, NULL), format_type(o.oprright, NULL), o.oprleft = 0 FROM pg_operator o WHERE o.oprnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace)`) {
		left := sample(r[1].(string))
		if r[3].(bool) {
			left = ""
		}
		try("SELECT "+left+" "+r[0].(string)+" "+sample(r[2].(string)), "operator "+r[0].(string), false)
	}
	for _, r := range query(t, o.super, `SELECT format_type(oid, NULL), quote_ident(typname) FROM pg_type WHERE typnamespace IN ('pg_catalog'::regnamespace, 'public'::regnamespace, 'hr'::regnamespace, 'information_schema'::regnamespace)`) {
		try("SELECT NULL::"+r[0].(string), "type "+r[0].(string), false)
		try("SELECT NULL::"+r[1].(string), "type "+r[1].(string), false)
		try("SELECT '1'::"+r[0].(string)+"[]", "type "+r[0].(string), false)
	}
	var names []string
	for n := range tight {
		names = append(names, n)
	}
	slices.Sort(names)
	t.Logf("%d admitted, %d refused; of the immutable ones of ordinary types these are refused: %s", admitted, refused, strings.Join(names, " "))
	if admitted < 2500 || refused < 2000 {
		t.Errorf("only %d are admitted and %d refused", admitted, refused)
	}
}
