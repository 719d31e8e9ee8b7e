package sqlguard

import (
	"slices"
	"strings"
)

// likePattern tells how the engine matches.
type likePattern struct {
	wild string // stands for any text
	fast bool   // a literal pattern without a single-character wildcard is matched in linear time
}

// patterns are the matches that try every place for every wildcard, one inside the other.
var patterns = map[string]likePattern{
	"~~": {"%", true}, "!~~": {"%", true}, "~~*": {"%", false}, "!~~*": {"%", false}, "like_escape": {"%", false}, "not_like_escape": {"%", false},
	"ilike_escape": {"%", false}, "not_ilike_escape": {"%", false}, "~~~": {"*", false},
}

// maxWildcards bounds those of a pattern: %a%b% is tried in time of the square of the text's length.
const maxWildcards = 3

// pattern decides on the pattern of a LIKE, ILIKE or GLOB.
func (w *walker) pattern(n node, p likePattern, v any, sc *scope) error {
	s, literal := textLiteral(v)
	if literal && p.fast && !strings.Contains(s, "_") {
		return nil
	}
	var params []string
	wild, ok := wildcards(p.wild, v, sc, &params)
	if len(params) > 0 {
		w.patterns = append(w.patterns, Pattern{Params: params, Wild: p.wild, Most: maxWildcards - wild})
	}
	switch {
	case !ok:
		return refuse(place(n), kindQuery, "use contains(a, b), starts_with(a, b) or regexp_matches(a, b)",
			"a pattern must be a literal or a parameter, or such joined with columns of a table")
	case wild > maxWildcards:
		return refuse(place(n), kindQuery, "use regexp_matches, or several patterns with AND", "a pattern with more than %d %s is too slow", maxWildcards, p.wild)
	case wild == maxWildcards || !literal:
		w.backtracks = true
	}
	return w.grown(n)
}

// joins are the calls that a pattern may be put together with.
var joins = []string{"||", "concat", "lower", "upper", "trim"}

// Pattern is a LIKE or such whose pattern comes with parameters: their values together may have at most so many wildcards.
type Pattern struct {
	Params []string // as the statement calls them, a repeated one repeatedly
	Wild   string
	Most   int
}

// Allows looks at the values of a statement's parameters: value gives the text of one, or "" when it is no text. The
// error is a refusal.
func (p Pattern) Allows(value func(param string) string) error {
	count := 0
	for _, name := range p.Params {
		count += strings.Count(value(name), p.Wild)
	}
	if count > p.Most {
		return refuse(noPlace, kindQuery, "use regexp_matches, or several patterns with AND",
			"the pattern of parameter %s has more than %d %s, which is too slow", p.Params[0], p.Most, p.Wild)
	}
	return nil
}

// wildcards counts those of a pattern's literals and notes its parameters. ok is false when the pattern has a part that
// the statement makes: what a table holds is no caller's choice, and a parameter is looked at when it comes.
func wildcards(wild string, v any, sc *scope, params *[]string) (count int, ok bool) {
	if s, ok := textLiteral(v); ok {
		return strings.Count(s, wild), true
	}
	n, _ := v.(node)
	switch str(n, "class") {
	case "CONSTANT":
		return 0, true
	case "COLUMN_REF":
		return 0, sc.ofTable(strs(n, "column_names"))
	case "PARAMETER":
		*params = append(*params, str(n, "identifier"))
		return 0, true
	case "CAST":
		return wildcards(wild, n["child"], sc, params)
	case "FUNCTION":
		if !slices.Contains(joins, fold(str(n, "function_name"))) {
			return 0, false
		}
		for _, a := range list(n, "children") {
			c, ok := wildcards(wild, a, sc, params)
			if !ok {
				return 0, false
			}
			count += c
		}
		return count, true
	}
	return 0, false
}

// ofTable tells that a column can only be one of a table in the catalogue.
func (s *scope) ofTable(names []string) bool {
	for ; s != nil; s = s.parent {
		same := func(n string) bool { return fold(n) == fold(names[0]) }
		if len(names) == 0 || slices.ContainsFunc(s.lambda, same) {
			return false
		}
		found := false
		for _, src := range s.sources {
			k := src.matches(names)
			if k < len(names) && (src.cols.has(names[k]) || src.cols.open && (k > 0 || len(names) == 1)) {
				if src.table == nil {
					return false
				}
				found = true
			}
		}
		if found {
			return true // the engine too prefers a column to an alias of the select list
		}
		if slices.ContainsFunc(s.aliases, same) {
			return false
		}
	}
	return false
}
