package gateoracle

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"sluice/sqlguard"
)

// server is what the server's catalogue says of the things that a tree names by OID.
type server struct {
	functions map[uint32]function
	operators map[uint32]uint32 // the operator's function
	types     map[uint32]dataType
	relations map[uint32]string
	reserved  map[string]bool
}

type function struct {
	schema, name string
	volatile     string // i, s, v
	extension    string // the one that brought it
}

type dataType struct {
	schema, name, extension string
	relation                uint32 // a row type's
	element                 uint32
}

func readServer(t testing.TB, c *pgx.Conn) server {
	t.Helper()
	s := server{map[uint32]function{}, map[uint32]uint32{}, map[uint32]dataType{}, map[uint32]string{}, map[string]bool{}}
	const extension = `coalesce((SELECT e.extname FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.deptype = 'e' AND d.objid = x.oid AND d.classid = x.tableoid), '')::text`
	for _, r := range query(t, c, `SELECT x.oid, n.nspname::text, x.proname::text, x.provolatile::text, `+extension+` FROM pg_proc x JOIN pg_namespace n ON n.oid = x.pronamespace`) {
		s.functions[r[0].(uint32)] = function{r[1].(string), r[2].(string), r[3].(string), r[4].(string)}
	}
	for _, r := range query(t, c, `SELECT oid, oprcode::oid FROM pg_operator`) {
		s.operators[r[0].(uint32)] = r[1].(uint32)
	}
	for _, r := range query(t, c, `SELECT x.oid, n.nspname::text, x.typname::text, `+extension+`, x.typrelid, x.typelem FROM pg_type x JOIN pg_namespace n ON n.oid = x.typnamespace`) {
		s.types[r[0].(uint32)] = dataType{r[1].(string), r[2].(string), r[3].(string), r[4].(uint32), r[5].(uint32)}
	}
	for _, r := range query(t, c, `SELECT c.oid, quote_ident(n.nspname)||'.'||quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace`) {
		s.relations[r[0].(uint32)] = r[1].(string)
	}
	for _, r := range query(t, c, `SELECT word FROM pg_get_keywords() WHERE catcode <> 'U'`) {
		s.reserved[r[0].(string)] = true
	}
	return s
}

// ident quotes like quote_ident.
func (s server) ident(name string) string {
	if q := quote(name); s.reserved[name] && q == name {
		return `"` + name + `"`
	} else {
		return q
	}
}

var (
	oneOID   = regexp.MustCompile(`:([a-z_]+) (\d+)\b`)
	listOIDs = regexp.MustCompile(`:([a-z_]+) \(o ([\d ]+)\)`)
	clocks   = regexp.MustCompile(`\{SQLVALUEFUNCTION :op (\d+)`)
	// leaky stable functions, by rule 4 of the reference
	leaky = regexp.MustCompile(`^(pg_|has_|inet_(client|server)_|current_|session_|to_reg|row_security|txid_|getdatabase|getpg|version$|(col|obj|shobj)_description|binary_upgrade)|(_to_xml|_xmlschema|_and_xmlschema)$`)
)

const (
	currentDate = 0 // SVFOP_CURRENT_DATE
	localTime   = 8 // the last of those that are clocks: SVFOP_LOCALTIMESTAMP_N; then come those of who asks
)

// readTree has the server resolve the statement as a function's body and looks at every OID in it.
func (o *oracle) readTree(t testing.TB, text string, params []uint32, profile sqlguard.Profile) (out []violation) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	var types []string
	for _, p := range params {
		types = append(types, o.known.types[p].schema+`."`+o.known.types[p].name+`"`)
	}
	tx, err := o.super.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, "SET LOCAL search_path = "+o.path); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "CREATE FUNCTION gate_oracle.f("+strings.Join(types, ", ")+") RETURNS void BEGIN ATOMIC\n"+text+"\n; END"); err != nil {
		if code := codeOf(err); code == "42P18" || code == "54001" { // a parameter of no type; a stack
			return nil
		}
		return []violation{bad("tree", "the server cannot keep it as a body: %v", err)}
	}
	var tree string
	if err := tx.QueryRow(ctx, "SELECT prosqlbody::text FROM pg_proc WHERE proname = 'f' AND pronamespace = 'gate_oracle'::regnamespace").Scan(&tree); err != nil {
		t.Fatal(err)
	}
	return o.judgeTree(tree, profile)
}

func (o *oracle) judgeTree(tree string, profile sqlguard.Profile) (out []violation) {
	seen := map[string]bool{}
	for _, m := range oneOID.FindAllStringSubmatch(tree, -1) {
		if !seen[m[0]] {
			seen[m[0]] = true
			out = append(out, o.judgeOID(m[1], m[2], profile)...)
		}
	}
	for _, m := range listOIDs.FindAllStringSubmatch(tree, -1) {
		for _, oid := range strings.Fields(m[2]) {
			if !seen[m[1]+" "+oid] {
				seen[m[1]+" "+oid] = true
				out = append(out, o.judgeOID(m[1], oid, profile)...)
			}
		}
	}
	for _, m := range clocks.FindAllStringSubmatch(tree, -1) {
		op, _ := strconv.Atoi(m[1])
		switch {
		case op > localTime && profile == sqlguard.RestrictedRead:
			out = append(out, bad("who", "a restricted reader asks who it is: SQLValueFunction %d", op))
		case op != currentDate && op <= localTime && profile == sqlguard.RestrictedRead:
			out = append(out, bad("clock", "a restricted reader asks for the time: SQLValueFunction %d", op))
		}
	}
	return out
}

func (o *oracle) judgeOID(field, number string, profile sqlguard.Profile) []violation {
	n, err := strconv.ParseUint(number, 10, 32)
	oid := uint32(n)
	if err != nil || oid == 0 {
		return nil
	}
	switch field {
	case "funcid", "aggfnoid", "winfnoid", "opfuncid", "hashfuncid", "inputcollfuncid":
		return o.judgeFunction(oid, profile, "")
	case "opno", "opnos", "sortop", "eqop":
		return o.judgeFunction(o.known.operators[oid], profile, "operator ")
	case "relid":
		if name := o.known.relations[oid]; !o.grants[name] {
			return []violation{bad("relation", "the tree reads %s", name)}
		}
	case "consttype", "resulttype", "vartype", "paramtype", "funcresulttype", "funccoltypes", "ctecoltypes", "coltypes", "aggtype", "wintype", "element_typeid", "row_typeid", "refelemtype", "refrestype", "typeid":
		return o.judgeType(oid)
	}
	return nil
}

func (o *oracle) judgeFunction(oid uint32, profile sqlguard.Profile, what string) []violation {
	f, known := o.known.functions[oid]
	switch {
	case !known:
		return []violation{bad("function", "%sfunction %d is unknown", what, oid)}
	case f.schema != "pg_catalog" && f.extension != "vector":
		return []violation{bad("function", "the tree calls %s%s.%s", what, f.schema, f.name)}
	case f.volatile == "v":
		return []violation{bad("volatile", "the tree calls %s%s, which is volatile", what, f.name)}
	case f.volatile == "s" && leaky.MatchString(f.name):
		return []violation{bad("leaky", "the tree calls %s%s, which tells of the server or its session", what, f.name)}
	case profile == sqlguard.RestrictedRead && what == "" && (f.name == "now" || f.name == "statement_timestamp" || f.name == "transaction_timestamp"):
		return []violation{bad("clock", "a restricted reader calls %s", f.name)}
	}
	return nil
}

func (o *oracle) judgeType(oid uint32) []violation {
	ty := o.known.types[oid]
	if e := ty.element; e != 0 && strings.HasPrefix(ty.name, "_") {
		ty = o.known.types[e]
	}
	switch {
	case ty.relation != 0 && o.known.relations[ty.relation] != "" && !o.grants[o.known.relations[ty.relation]]:
		return []violation{bad("row type", "the tree has a row of %s", o.known.relations[ty.relation])}
	case ty.schema == "pg_catalog" && strings.HasPrefix(ty.name, "reg") && ty.name != "regconfig" && ty.name != "regdictionary": // text search names its configurations
		return []violation{bad("reg type", "the tree has a %s", ty.name)}
	}
	return nil
}
