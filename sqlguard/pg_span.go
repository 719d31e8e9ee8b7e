package sqlguard

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// pgSeries counts the rows of generate_series(…), when its arguments are constants: numbers, or two times and an interval.
// Times count roughly, a month as 30 days. What it cannot read is bounded by the statement's timeout.
func pgSeries(args []*pg_query.Node) (rows float64, ok bool) {
	if len(args) < 2 {
		return 0, false
	}
	step := 1.0
	from, ok1 := pgConstant(args[0])
	to, ok2 := pgConstant(args[1])
	if len(args) > 2 {
		var isTime bool
		if step, isTime = pgInterval(args[2]); isTime {
			from, ok1 = pgMoment(args[0])
			to, ok2 = pgMoment(args[1])
		} else if step, ok = pgConstant(args[2]); !ok {
			return 0, false
		}
	}
	switch {
	case math.IsInf(to, 1) && ok2 && step > 0, math.IsInf(to, -1) && ok2 && step < 0:
		return math.Inf(1), true
	case !ok1 || !ok2 || step == 0: // a step of 0 is the server's error
		return 0, false
	}
	return (to-from)/step + 1, true
}

// pgConstant computes a number that stands in the statement: literals, casts of them to numbers, + - * / ^, power.
func pgConstant(n *pg_query.Node) (float64, bool) {
	switch {
	case n.GetAConst() != nil:
		switch v := n.GetAConst().Val.(type) {
		case *pg_query.A_Const_Ival:
			return float64(v.Ival.GetIval()), true
		case *pg_query.A_Const_Fval:
			return figure(v.Fval.GetFval())
		case *pg_query.A_Const_Sval:
			return figure(v.Sval.GetSval())
		}
	case n.GetTypeCast() != nil:
		names := n.GetTypeCast().GetTypeName().GetNames()
		if len(names) > 0 && pgNumbers[names[len(names)-1].GetString_().GetSval()] && len(n.GetTypeCast().TypeName.ArrayBounds) == 0 {
			return pgConstant(n.GetTypeCast().Arg)
		}
	case n.GetAExpr() != nil && n.GetAExpr().Kind == pg_query.A_Expr_Kind_AEXPR_OP:
		x := n.GetAExpr()
		b, ok := pgConstant(x.Rexpr)
		a := 0.0
		if x.Lexpr != nil && ok {
			a, ok = pgConstant(x.Lexpr)
		}
		return compute(x.Name[len(x.Name)-1].GetString_().GetSval(), a, b, ok)
	case n.GetFuncCall() != nil:
		f := n.GetFuncCall()
		if name := f.Funcname[len(f.Funcname)-1].GetString_().GetSval(); len(f.Args) == 2 && (name == "power" || name == "pow") {
			a, ok1 := pgConstant(f.Args[0])
			b, ok2 := pgConstant(f.Args[1])
			return compute("^", a, b, ok1 && ok2)
		}
	}
	return 0, false
}

var pgNumbers = map[string]bool{"int2": true, "int4": true, "int8": true, "numeric": true, "float4": true, "float8": true}

func compute(op string, a, b float64, ok bool) (float64, bool) {
	x := 0.0
	switch op {
	case "+":
		x = a + b
	case "-":
		x = a - b
	case "*":
		x = a * b
	case "/":
		x = a / b
	case "^":
		x = math.Pow(a, b)
	default:
		ok = false
	}
	return x, ok && !math.IsNaN(x)
}

// figure reads a number as PostgreSQL writes it: 1e6, 0xFF, 1_000.
func figure(s string) (float64, bool) {
	s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
	if f, err := strconv.ParseFloat(s, 64); err == nil || math.IsInf(f, 0) {
		return f, !math.IsNaN(f)
	}
	if i, ok := new(big.Int).SetString(s, 0); ok {
		f, _ := new(big.Float).SetInt(i).Float64()
		return f, true
	}
	return 0, false
}

var (
	momentText   = regexp.MustCompile(`^\s*(\d{4,6})-(\d{1,2})-(\d{1,2})(?:[ Tt]+(\d{1,2}):(\d{2})(?::(\d{2}(?:\.\d+)?))?)?`)
	durationText = regexp.MustCompile(`^(?:\s*([+-]?[\d.]+)\s*([A-Za-zµ]+))+\s*$`)
	durationPart = regexp.MustCompile(`([+-]?[\d.]+)\s*([A-Za-zµ]+)`)
	clockText    = regexp.MustCompile(`^\s*([+-]?)(\d+):(\d{2})(?::(\d{2}(?:\.\d+)?))?\s*$`)
)

// pgMoment reads a date or a timestamp in seconds.
func pgMoment(n *pg_query.Node) (float64, bool) {
	s, ok := pgText(n)
	if !ok {
		return 0, false
	}
	switch strings.ToLower(strings.TrimSpace(s)) {
	case "infinity":
		return math.Inf(1), true
	case "-infinity":
		return math.Inf(-1), true
	}
	m := momentText.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	part := func(i int) float64 { f, _ := strconv.ParseFloat(m[i], 64); return f } // an absent part is 0
	days := part(1)*365.25 + part(2)*30.44 + part(3)
	return days*86400 + part(4)*3600 + part(5)*60 + part(6), true
}

// pgUnits are the lengths of an interval's units in seconds.
var pgUnits = map[string]float64{
	"microsecond": 1e-6, "usec": 1e-6, "us": 1e-6, "millisecond": 1e-3, "msec": 1e-3, "ms": 1e-3, "second": 1, "sec": 1, "s": 1,
	"minute": 60, "min": 60, "m": 60, "hour": 3600, "hr": 3600, "h": 3600, "day": 86400, "d": 86400, "week": 7 * 86400, "w": 7 * 86400,
	"month": 30 * 86400, "mon": 30 * 86400, "year": 365 * 86400, "yr": 365 * 86400, "y": 365 * 86400, "decade": 3650 * 86400, "century": 36500 * 86400,
}

// pgFieldUnits are the lengths by the modifier that the grammar gives to INTERVAL '1' DAY.
var pgFieldUnits = map[int32]float64{1 << 2: 365 * 86400, 1 << 1: 30 * 86400, 1 << 3: 86400, 1 << 10: 3600, 1 << 11: 60, 1 << 12: 1}

// pgInterval reads an interval in seconds: '1 day 2 hours', '00:15:00', INTERVAL '1' DAY.
func pgInterval(n *pg_query.Node) (float64, bool) {
	s, ok := pgText(n)
	if !ok {
		return 0, false
	}
	if m := clockText.FindStringSubmatch(s); m != nil {
		h, _ := strconv.ParseFloat(m[2], 64)
		minutes, _ := strconv.ParseFloat(m[3], 64)
		sec, _ := strconv.ParseFloat(m[4], 64)
		total := h*3600 + minutes*60 + sec
		if m[1] == "-" {
			total = -total
		}
		return total, true
	}
	if durationText.MatchString(s) {
		total := 0.0
		for _, m := range durationPart.FindAllStringSubmatch(s, -1) {
			count, err := strconv.ParseFloat(m[1], 64)
			unit := strings.ToLower(m[2])
			length, known := pgUnits[unit]
			if !known {
				length, known = pgUnits[strings.TrimSuffix(unit, "s")]
			}
			if err != nil || !known {
				return 0, false
			}
			total += count * length
		}
		return total, true
	}
	if mods := n.GetTypeCast().GetTypeName().GetTypmods(); len(mods) == 1 {
		count, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		length, known := pgFieldUnits[mods[0].GetAConst().GetIval().GetIval()]
		return count * length, err == nil && known
	}
	return 0, false
}
