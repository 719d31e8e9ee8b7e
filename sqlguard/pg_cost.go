package sqlguard

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// PostgreSQL stops a statement at its timeout and writes to disk what does not fit into work_mem. What neither bounds is
// the memory of one value, so a call that makes a large one is bounded here, and so are rows from nothing. Measured on
// PostgreSQL 18: format('%1000000000s', 1) takes 1 GB and is deaf for a second after its timeout, array_fill(0,
// ARRAY[100000000]) 400 MB, factorial(32177) 1.3 s. Numbers that a statement computes from its data become an error of
// the row in which they are over pgMaxComputed.
const (
	pgMaxComputed  = 9_999      // the largest numeric(4, 0)
	pgMaxSeries    = 10_000_000 // rows of generate_series with bounds in the statement; that many take 2 s
	pgMaxFactorial = 1_000      // 2,568 digits
)

// pgBounded are the functions with an argument that says how much they make.
var pgBounded = map[string]bound{
	"repeat":    {1, maxTextSize, true, true},
	"lpad":      {1, maxTextSize, false, true},
	"rpad":      {1, maxTextSize, false, true},
	"bpchar":    {1, maxTextSize, false, true},
	"bit":       {1, maxTextSize, false, true},
	"factorial": {0, pgMaxFactorial, false, true},
}

// pgCost decides whether a call is cheap enough. It writes a cast around a size that the statement computes.
func (w *pgWalker) pgCost(call *pg_query.FuncCall, name string) error {
	at, args := int(call.Location), call.Args
	if b, ok := pgBounded[name]; ok && len(args) > b.arg {
		size, err := w.size(call, name, b.arg, b.most)
		if err != nil {
			return err
		}
		return w.grow(at, size, b.times)
	}
	switch {
	case name == "generate_series":
		if rows, ok := pgSeries(args); ok && rows > pgMaxSeries {
			return refuse(at, kindQuery, "take a shorter range or a longer step", "this generate_series makes more than %d rows", pgMaxSeries)
		}
	case name == "array_fill" && len(args) > 1:
		return w.arrayFill(call)
	case name == "format" && len(args) > 0:
		widths, times, ok := pgFormat(args[0])
		if !ok || widths > maxWidths {
			return refuse(at, kindQuery, "write the format as a literal, as in format('%-20s|', x)",
				"the format of format must be a literal without computed widths, and its widths may add up to %d", maxWidths)
		}
		return w.grow(at, times, true)
	case (name == "replace" || name == "regexp_replace") && len(args) > 2:
		if s, ok := pgText(args[2]); ok && len(s) > 16 { // short ones are ordinary cleaning
			return w.grow(at, int64(len(s)), true)
		}
	case name == "array_to_string" && len(args) > 1:
		if s, ok := pgText(args[1]); ok && len(s) > 16 {
			return w.grow(at, int64(len(s)), true)
		}
	}
	return nil
}

// size reads the argument of a call that says how much it makes, and bounds one that is computed.
func (w *pgWalker) size(call *pg_query.FuncCall, name string, arg int, most int64) (int64, error) {
	at := int(call.Location)
	if call.FuncVariadic || slices.ContainsFunc(call.Args, func(n *pg_query.Node) bool { return n.GetNamedArgExpr() != nil }) {
		return 0, refuse(at, kindQuery, "give them by their places", "the arguments of %s must stand in their order", name)
	}
	if size, ok := pgConstant(call.Args[arg]); ok {
		if size > float64(most) {
			return 0, refuse(at, kindQuery, "write a number up to "+strconv.FormatInt(most, 10)+" there", "argument %d of %s may be at most %d", arg+1, name, most)
		}
		return int64(max(size, 0)), nil
	}
	call.Args[arg] = pgNarrow(call.Args[arg])
	return pgMaxComputed, nil
}

// pgNarrow writes a cast around a number of rows' data: (x)::numeric(4, 0)::int4 fails when x is over pgMaxComputed.
func pgNarrow(n *pg_query.Node) *pg_query.Node {
	cast := func(n *pg_query.Node, name string, mods ...*pg_query.Node) *pg_query.Node {
		return &pg_query.Node{Node: &pg_query.Node_TypeCast{TypeCast: &pg_query.TypeCast{Arg: n, Location: -1, TypeName: &pg_query.TypeName{
			Names: []*pg_query.Node{pg_query.MakeStrNode("pg_catalog"), pg_query.MakeStrNode(name)}, Typmods: mods, Typemod: -1, Location: -1}}}}
	}
	return cast(cast(n, "numeric", pg_query.MakeAConstIntNode(4, -1), pg_query.MakeAConstIntNode(0, -1)), "int4")
}

// arrayFill decides on array_fill(x, ARRAY[n, m]).
func (w *pgWalker) arrayFill(call *pg_query.FuncCall) error {
	at := int(call.Location)
	product := 1.0
	switch dims := pgUncast(call.Args[1]); {
	case dims.GetAArrayExpr() != nil:
		computed := 0
		elements := dims.GetAArrayExpr().Elements
		for i, e := range elements {
			if n, ok := pgConstant(e); ok {
				product *= max(n, 1)
				continue
			}
			elements[i] = pgNarrow(e)
			computed++
		}
		if computed > 1 {
			product *= pgMaxComputed * pgMaxComputed
		} else if computed == 1 {
			return w.grow(at, int64(min(product, maxGrowth+1))*pgMaxComputed, true)
		}
	default:
		s, ok := pgText(dims)
		figures := pgFigures.FindAllString(s, -1)
		if !ok || strings.ContainsAny(s, "[]=xXoObB_") || len(figures) == 0 {
			return refuse(at, kindQuery, "write array_fill(x, ARRAY[10])", "the sizes of array_fill must stand in the statement")
		}
		for _, f := range figures {
			n, _ := strconv.ParseFloat(f, 64) // over 1e308 it is infinite
			product *= max(n, 1)
		}
	}
	if product > maxTextSize {
		return refuse(at, kindQuery, "make a smaller array", "array_fill may make at most %d elements", maxTextSize)
	}
	return w.grow(at, int64(product), true)
}

var pgFigures = regexp.MustCompile(`\d+`)

// grow notes what a call can make, and refuses when the calls of the statement, one in the other, could make too much.
func (w *pgWalker) grow(at int, size int64, times bool) error {
	size = max(size, 1)
	if times {
		w.growth.times = min(max(w.growth.times, 1)*min(size, 10*maxGrowth), 10*maxGrowth)
	} else {
		w.growth.size = max(w.growth.size, min(size, 10*maxGrowth))
	}
	if w.growth.times > 1 && w.growth.times*max(w.growth.size, 1) > maxGrowth {
		return refuse(at, kindQuery, "make shorter texts and lists", "the sizes that the statement asks its functions for, multiplied, are over %d", maxGrowth)
	}
	return nil
}

// pgSized are the built-in types that take a size or a precision: those with a typmodin in pg_type.
var pgSized = []string{"bit", "bpchar", "interval", "numeric", "time", "timestamp", "timestamptz", "timetz", "varbit", "varchar"}

// pgTypeSize decides on the size of a built-in type, as in char(10): a value is padded to it. The error is a refusal.
func pgTypeSize(name string, typmods []*pg_query.Node, at int) error {
	if len(typmods) > 0 && !slices.Contains(pgSized, strings.TrimPrefix(name, "_")) {
		return refuse(at, kindQuery, "leave the size out", "the type %s has no size", name)
	}
	if name != "bpchar" && name != "bit" && name != "_bpchar" && name != "_bit" || len(typmods) == 0 {
		return nil
	}
	if n, ok := pgConstant(typmods[0]); !ok || n > maxTextSize {
		return refuse(at, kindQuery, "use text, or varchar(n), which is not padded", "a text of fixed length may have at most %d characters", maxTextSize)
	}
	return nil
}

var pgSpec = regexp.MustCompile(`%(?:(\d+)\$)?(-?)(\*(?:\d+\$)?|\d+)?`)

// pgFormat reads a literal format, or those that a CASE chooses from: the largest sum of widths, and how often one of them
// may repeat an argument.
func pgFormat(n *pg_query.Node) (widths, times int64, ok bool) {
	texts, ok := pgChoices(n)
	for _, text := range texts {
		uses, sum, next := map[string]int64{}, int64(0), 0
		for _, m := range pgSpec.FindAllStringSubmatch(strings.ReplaceAll(text, "%%", ""), -1) {
			if strings.HasPrefix(m[3], "*") {
				return 0, 0, false
			}
			width, _ := strconv.ParseInt(m[3], 10, 64) // too large a number gives the largest
			sum += min(width, maxWidths+1)
			if m[1] == "" {
				next++
				uses[strconv.Itoa(next)]++
			} else {
				next, _ = strconv.Atoi(m[1]) // the next without a place takes the argument after it
				uses[strconv.Itoa(next)]++
			}
		}
		widths = max(widths, sum)
		for _, u := range uses {
			times = max(times, u)
		}
	}
	return widths, max(times, 1), ok
}

// pgChoices gives the literals of which one is the value of an expression.
func pgChoices(n *pg_query.Node) ([]string, bool) {
	if s, ok := pgText(n); ok {
		return []string{s}, true
	}
	c := n.GetCaseExpr()
	if c == nil {
		return nil, false
	}
	out, ok := []string(nil), true
	if c.Defresult != nil {
		out, ok = pgChoices(c.Defresult)
	}
	for _, a := range c.Args {
		then, literal := pgChoices(a.GetCaseWhen().GetResult())
		out, ok = append(out, then...), ok && literal
	}
	return out, ok
}

// pgUncast takes the casts from an expression.
func pgUncast(n *pg_query.Node) *pg_query.Node {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	return n
}

// pgText reads a text literal, perhaps under casts.
func pgText(n *pg_query.Node) (string, bool) {
	if v, ok := pgUncast(n).GetAConst().GetVal().(*pg_query.A_Const_Sval); ok {
		return v.Sval.GetSval(), true
	}
	return "", false
}
