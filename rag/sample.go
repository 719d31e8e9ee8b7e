package rag

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// class is what kind of values a type has, as far as it matters here. Types are named differently by each engine.
type class int

const (
	otherClass class = iota // neither counted nor shown
	textClass
	wholeClass // integers
	numberClass
	dateClass // dates and timestamps
	boolClass
	uuidClass
	namedClass // a type that the database defined itself: perhaps an enumeration, which is text
)

// classOf reads a type's SQL name, as DuckDB or PostgreSQL writes it.
func classOf(typ string) class {
	t := strings.ToLower(strings.TrimSpace(typ))
	if strings.HasSuffix(t, "]") {
		return otherClass
	}
	if strings.HasPrefix(t, "enum(") {
		return textClass
	}
	head, _, _ := strings.Cut(t, "(")
	switch strings.TrimSpace(head) {
	case "varchar", "text", "char", "character", "character varying", "bpchar", "name", "string", "citext":
		return textClass
	case "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint":
		return wholeClass
	case "decimal", "numeric", "real", "float", "double", "double precision":
		return numberClass
	case "date", "timestamp", "timestamp without time zone", "timestamp with time zone", "timestamp_s", "timestamp_ms", "timestamp_ns":
		return dateClass
	case "boolean":
		return boolClass
	case "uuid":
		return uuidClass
	case "time", "time without time zone", "time with time zone", "interval", "json", "jsonb", "xml", "bytea", "blob", "bit", "bit varying",
		"struct", "map", "union", "list", "vector", "halfvec", "sparsevec", "point", "line", "lseg", "box", "path", "polygon", "circle",
		"tsvector", "tsquery", "inet", "cidr", "macaddr", "money", "oid", "variant", "geometry", "bignum":
		return otherClass
	}
	if strings.HasPrefix(t, "timestamp") {
		return dateClass
	}
	return namedClass
}

// text says whether values of the class are looked up as text.
func (c class) text() bool { return c == textClass || c == namedClass }

// maxValue is the length in characters of the longest value that is kept: longer ones are prose, which nobody quotes whole.
const maxValue = 120

// A result that a profile reads is bounded, whatever a table holds.
const (
	maxSampleBytes = 8 << 20
	maxTableValues = 20_000 // of all text columns of one table
)

// sampler looks at tables through the gate of their source.
type sampler struct {
	cfg Config
	src Source
	may func(sqlguard.Relation) bool
}

// tableFacts is what was found out about a table. It never changes.
type tableFacts struct {
	columns []columnFacts
	index   *valueIndex // nil when values are hidden
}

type columnFacts struct {
	class    class
	rows     int64 // that are not NULL
	distinct int64
	unique   bool // different in every row that was seen, and every row was
	sampled  bool
	values   []string
	complete bool // values is all
	prose    bool // some values were too long to keep
	min, max string
}

// table looks at one table. Columns of types that cannot be compared are left out; when a type of the database's own turns
// out to be one, they are all left out.
func (s sampler) table(ctx context.Context, t sqlguard.Table, hide bool, budget int) (*tableFacts, error) {
	classes := make([]class, len(t.Columns))
	named := false
	for i, c := range t.Columns {
		if OneLine(c.Name, 0) == c.Name { // the gate refuses control characters, and nobody can ask for such a column
			classes[i] = classOf(c.Type)
		}
		named = named || classes[i] == namedClass
	}
	facts, err := s.look(ctx, t, classes, hide, budget)
	if err == nil || !named || ctx.Err() != nil {
		return facts, err
	}
	for i := range classes {
		if classes[i] == namedClass {
			classes[i] = otherClass
		}
	}
	return s.look(ctx, t, classes, hide, budget)
}

func (s sampler) look(ctx context.Context, t sqlguard.Table, classes []class, hide bool, budget int) (*tableFacts, error) {
	facts := &tableFacts{columns: make([]columnFacts, len(classes))}
	for i := range classes {
		facts.columns[i].class = classes[i]
	}
	if err := s.counts(ctx, t, facts, hide); err != nil {
		return nil, err
	}
	if hide {
		return facts, nil
	}
	if err := s.values(ctx, t, facts, budget); err != nil {
		return nil, err
	}
	facts.index = newValueIndex(t, facts)
	return facts, nil
}

// counts asks for the numbers of one table in one statement.
func (s sampler) counts(ctx context.Context, t sqlguard.Table, facts *tableFacts, hide bool) error {
	ask := []string{"count(*)"}
	for i, c := range t.Columns {
		name, f := quoted(c.Name), facts.columns[i]
		if f.class == otherClass {
			continue
		}
		ask = append(ask, "count("+name+")", "count(DISTINCT "+name+")")
		if f.class == dateClass && !hide {
			ask = append(ask, "CAST(min("+name+") AS VARCHAR)", "CAST(max("+name+") AS VARCHAR)")
		}
		if f.class.text() && !hide {
			ask = append(ask, "max(length(CAST("+name+" AS VARCHAR)))")
		}
	}
	rows, err := s.run(ctx, "SELECT "+strings.Join(ask, ", ")+" FROM "+s.some(t, "")+" AS s", 1)
	if err != nil {
		return err
	}
	if len(rows) != 1 || len(rows[0]) != len(ask) {
		return fault.Bug("rag: a count of %s gave no row of %d cells", t.Name, len(ask))
	}
	cells := rows[0]
	next := func() json.RawMessage { c := cells[0]; cells = cells[1:]; return c }
	all := whole(next())
	for i := range facts.columns {
		f := &facts.columns[i]
		if f.class == otherClass {
			continue
		}
		f.rows, f.distinct = whole(next()), whole(next())
		f.sampled = all >= int64(s.cfg.Rows)
		f.unique = !f.sampled && all > 1 && f.distinct == all
		if f.class == dateClass && !hide {
			f.min, f.max = text(next()), text(next())
		}
		if f.class.text() && !hide {
			f.prose = whole(next()) > maxValue
		}
	}
	return nil
}

// values asks for the most frequent values of all text columns of a table in one statement.
func (s sampler) values(ctx context.Context, t sqlguard.Table, facts *tableFacts, budget int) error {
	var columns []int
	for i, f := range facts.columns {
		if f.class.text() && f.distinct > 0 {
			columns = append(columns, i)
		}
	}
	if len(columns) == 0 {
		return nil
	}
	most := max(50, min(s.cfg.Values, min(maxTableValues, budget)/len(columns)))
	ask := make([]string, len(columns))
	for n, i := range columns {
		name := quoted(t.Columns[i].Name)
		ask[n] = fmt.Sprintf("SELECT %d AS c, v, n FROM (SELECT CAST(%s AS VARCHAR) AS v, count(*) AS n FROM %s AS s WHERE length(CAST(%s AS VARCHAR)) <= %d GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %d) AS g%d",
			i, name, s.some(t, name), name, maxValue, most, n)
	}
	rows, err := s.run(ctx, strings.Join(ask, " UNION ALL ")+" ORDER BY 1, 3 DESC, 2", most*len(columns))
	if err != nil {
		return err
	}
	for _, r := range rows {
		i := int(whole(r[0]))
		if i < 0 || i >= len(facts.columns) {
			return fault.Bug("rag: a value of the column %d of %s", i, t.Name)
		}
		facts.columns[i].values = append(facts.columns[i].values, text(r[1]))
	}
	for _, i := range columns {
		f := &facts.columns[i]
		f.complete = !f.sampled && int64(len(f.values)) == f.distinct
	}
	return nil
}

// contained says how many of the first values of one column there are, and how many of them another column has.
func (s sampler) contained(ctx context.Context, from, to ColumnRef) (of, in int64, err error) {
	a, b := quoted(from.Column), quoted(to.Column)
	rows, err := s.run(ctx, fmt.Sprintf(`WITH d AS (SELECT DISTINCT %s AS v FROM (SELECT %s FROM %s WHERE %s IS NOT NULL LIMIT %d) AS s LIMIT %d)
		SELECT (SELECT count(*) FROM d), (SELECT count(*) FROM d WHERE v IN (SELECT %s FROM %s WHERE %s IS NOT NULL))`,
		a, a, relation(from.Relation), a, s.cfg.Rows, maxContained, b, relation(to.Relation), b), 1)
	if err != nil {
		return 0, 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 2 {
		return 0, 0, fault.Bug("rag: no count of the values of %s in %s", from.Column, to.Column)
	}
	return whole(rows[0][0]), whole(rows[0][1]), nil
}

// maxContained is how many different values are compared to find a join.
const maxContained = 2000

// run passes a statement through the gate and collects its rows.
func (s sampler) run(ctx context.Context, sql string, most int) ([][]json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Statement, fmt.Errorf("rag: looking at %s took over %s", s.src.Name(), s.cfg.Statement))
	defer cancel()
	approved, err := s.src.Approve(ctx, sql, sqlguard.ReadOnly, s.may)
	if err != nil {
		return nil, err
	}
	reader, err := s.src.Run(ctx, approved)
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	got, err := database.Collect(reader, most, maxSampleBytes)
	if err != nil {
		return nil, err
	}
	return got.Rows, nil
}

// some is the rows of a table that are looked at: the first ones, because a sample of all would read all. column is the
// one that is needed, or "" for all of them.
func (s sampler) some(t sqlguard.Table, column string) string {
	if column == "" {
		column = "*"
	}
	return "(SELECT " + column + " FROM " + relation(t.Relation) + " LIMIT " + strconv.Itoa(s.cfg.Rows) + ")"
}

func relation(r sqlguard.Relation) string { return quoted(r.Schema) + "." + quoted(r.Name) }

// quoted writes a name so that it is a name whatever it holds.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// whole reads a count, which is a number or, beyond 2^53, a string of digits; NULL is 0.
func whole(cell json.RawMessage) int64 {
	n, err := strconv.ParseInt(strings.Trim(string(cell), `"`), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// text reads a text cell; NULL is "".
func text(cell json.RawMessage) string {
	var s string
	if json.Unmarshal(cell, &s) != nil {
		return ""
	}
	return s
}
