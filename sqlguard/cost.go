package sqlguard

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The engine's memory limit does not see the texts that a function makes within one step, and an interrupt waits until
// a function is through with a chunk of 2048 rows. So what one call can make or take is bounded here, by numbers that
// must stand in the statement. Measured on DuckDB 1.5.5: two texts of 1 MB take jaro_similarity 4.5 s, a text of 10 kB
// with LIKE '%a_%a_%b' over 15 s (stopped then), printf('%1000000000d', 1) 2 GB.
const (
	maxTextSize = 10_000    // times of repeat, characters of lpad, and such
	maxComputed = 999       // the same, when the statement computes it from what it reads
	maxListSize = 1_000_000 // elements of a list that range makes
	maxGrowth   = 1_000_000 // product of the sizes in a statement, because one call may work on what another made
	maxWidths   = 1_000     // sum of widths and precisions in a format
	maxShort    = 256       // characters of a text that may be compared with another at a cost of their product
	longText    = 100       // bytes of a literal from which on it counts as a size
	maxMatched  = 1_000     // growth of a statement with a pattern of more than linear time
)

// bound is the argument of a function that says how much it makes.
type bound struct {
	arg   int // from 0; a call without it is not bounded
	most  int64
	times bool // what it makes is as many times its other argument; else as large as the number says

	computed bool // a size that the statement computes may be up to maxComputed; else it must be a number
}

var bounded = map[string]bound{
	"repeat":             {1, maxTextSize, true, true},
	"list_resize":        {1, maxTextSize, true, true},
	"array_resize":       {1, maxTextSize, true, true},
	"lpad":               {1, maxTextSize, false, true},
	"rpad":               {1, maxTextSize, false, true},
	"bitstring":          {1, maxTextSize, false, false},
	"equi_width_bins":    {2, maxTextSize, false, false},
	"approx_top_k":       {1, maxTextSize, false, false},
	"reservoir_quantile": {2, maxTextSize, false, false},
}

// quadratic tells of how many arguments at least must be short: these take time as the product of two lengths, and
// damerau_levenshtein memory as well.
var quadratic = map[string]int{
	"levenshtein": 1, "editdist3": 1, "jaro_similarity": 1, "jaro_winkler_similarity": 1, "damerau_levenshtein": 2,
}

// growth is what the bounded calls of a statement can make together.
type growth struct {
	times, size int64
}

// cost decides whether a call is cheap enough for one step of the engine.
func (w *walker) cost(n node, sc *scope) error {
	name, args := fold(str(n, "function_name")), list(n, "children")
	if b, ok := bounded[name]; ok && len(args) > b.arg {
		size, ok := wholeNumber(args[b.arg])
		if !ok && b.computed {
			w.narrows = append(w.narrows, narrowing{call: n, arg: b.arg})
			return w.grow(n, maxComputed, b.times)
		}
		if !ok || size > b.most {
			hint := "write a number up to " + strconv.FormatInt(b.most, 10) + " there"
			if name == "repeat" {
				hint += "; bar(x, min, max, width) draws a bar of x"
			}
			return refuse(place(n), kindQuery, hint, "argument %d of %s must be a number in the statement, and at most %d", b.arg+1, name, b.most)
		}
		return w.grow(n, size, b.times)
	}
	if short, ok := quadratic[name]; ok {
		found := 0
		for _, a := range args {
			if isShort(a) {
				found++
			}
		}
		if found < short {
			return refuse(place(n), kindQuery, "compare with a literal, or cut the texts: "+name+"(left(a, 200), left(b, 200))",
				"%s of long texts takes too long; %d of its arguments must be a literal or left(…, n) with at most %d characters", name, short, maxShort)
		}
	}
	if slices.Contains(folds, name) {
		return w.fold(n)
	}
	if times := multiplying[name]; times > 0 {
		return w.grow(n, times, true)
	}
	switch name {
	case "range", "generate_series":
		span, ok := span(args)
		if !ok || span > maxListSize {
			return refuse(place(n), kindQuery, "write "+name+" in FROM, or numbers in the statement",
				"as a value, %s must have literal bounds and at most %d elements", name, maxListSize)
		}
		return w.grow(n, span, true)
	case "format", "printf":
		widths, times, ok := formatSize(name, args)
		if !ok || widths > maxWidths {
			return refuse(place(n), kindQuery, "write the format as a literal, as in printf('%05d', x)",
				"the format of %s must be a literal without computed widths, and its widths may add up to %d", name, maxWidths)
		}
		return w.grow(n, times, true)
	case "replace", "regexp_replace":
		if len(args) > 2 {
			if s, ok := textLiteral(args[2]); ok && len(s) > 16 { // short ones are ordinary cleaning
				return w.grow(n, int64(len(s)), true)
			}
		}
	}
	if p, ok := patterns[name]; ok && len(args) > 1 {
		return w.pattern(n, p, args[1], sc)
	}
	return nil
}

// grow notes what a call can make.
func (w *walker) grow(n node, size int64, times bool) error {
	size = max(size, 1)
	if times {
		w.growth.times = max(w.growth.times, 1) * size // both factors are at most a million
	} else {
		w.growth.size = max(w.growth.size, size)
	}
	return w.grown(n)
}

// grown refuses when the sizes of the statement so far are too large together.
func (w *walker) grown(n node) error {
	g := max(w.growth.times, 1) * max(w.growth.size, 1)
	switch {
	case w.growth.times > 1 && g > maxGrowth:
		return refuse(place(n), kindQuery, "make shorter texts and lists",
			"the sizes that the statement asks its functions for, multiplied, are over %d", maxGrowth)
	case w.backtracks && w.growth.times > 1 && g > maxMatched:
		return refuse(place(n), kindQuery, "use regexp_matches, or several patterns with one % at each end",
			"a pattern with several %% may not meet texts that the statement makes long")
	}
	return nil
}

// narrowing is a computed size that gets a cast.
type narrowing struct {
	call node
	arg  int
}

// castSizes writes the casts of computed sizes into the tree: a DECIMAL(3,0) ends at 999, and a larger value is an error
// of the row that has it.
func (w *walker) castSizes() {
	for _, x := range w.narrows {
		args := slices.Clone(list(x.call, "children"))
		arg, _ := args[x.arg].(node)
		short := node{"class": "CAST", "type": "OPERATOR_CAST", "alias": "", "child": arg, "try_cast": false,
			"cast_type": node{"id": "DECIMAL", "type_info": node{"type": "DECIMAL_TYPE_INFO", "width": json.Number("3"), "scale": json.Number("0")}}}
		args[x.arg] = node{"class": "CAST", "type": "OPERATOR_CAST", "alias": str(arg, "alias"), "child": short, "try_cast": false,
			"cast_type": node{"id": "INTEGER", "type_info": nil}}
		arg["alias"] = ""
		x.call["children"] = args
	}
}

// literalSize notes a long literal, which other calls may multiply.
func (w *walker) literalSize(n node) error {
	if s, ok := textLiteral(n); ok && len(s) > longText {
		return w.grow(n, int64(len(s)), false)
	}
	return nil
}

// wholeNumber reads an integer literal, perhaps under a cast to an integer type.
func wholeNumber(v any) (int64, bool) {
	n, _ := v.(node)
	switch str(n, "class") {
	case "CAST":
		if id := str(under(n, "cast_type"), "id"); strings.HasSuffix(id, "INT") || id == "INTEGER" {
			return wholeNumber(n["child"])
		}
	case "CONSTANT":
		value := under(n, "value")
		if id := str(under(value, "type"), "id"); strings.HasSuffix(id, "INT") || id == "INTEGER" {
			if x, ok := value["value"].(json.Number); ok {
				i, err := x.Int64()
				return i, err == nil
			}
		}
	}
	return 0, false
}

func textLiteral(v any) (string, bool) {
	n, _ := v.(node)
	if str(n, "class") != "CONSTANT" {
		return "", false
	}
	s, ok := under(n, "value")["value"].(string)
	return s, ok
}

// isShort tells of a text that it has at most maxShort characters, whatever the data.
func isShort(v any) bool {
	if s, ok := textLiteral(v); ok {
		return len(s) <= maxShort
	}
	n, _ := v.(node)
	if str(n, "class") != "FUNCTION" {
		return false
	}
	args := list(n, "children")
	switch fold(str(n, "function_name")) {
	case "lower", "upper", "trim", "strip_accents":
		return len(args) == 1 && isShort(args[0])
	case "left":
		size, ok := int64(0), false
		if len(args) == 2 {
			size, ok = wholeNumber(args[1])
		}
		return ok && 0 <= size && size <= maxShort // a negative number cuts from the other end
	}
	return false
}

var (
	printfSpec = regexp.MustCompile(`%(?:%|(\d+)\$)?([^A-Za-z%]*)`)
	formatSpec = regexp.MustCompile(`\{([^{}:]*)(:[^{}]*)?\}`)
	figures    = regexp.MustCompile(`\d+`)
)

// formatSize reads a literal format, or those that a CASE chooses from: the largest sum of widths and precisions, and how
// often one may repeat an argument.
func formatSize(name string, args []any) (widths, times int64, ok bool) {
	if len(args) == 0 {
		return 0, 0, false
	}
	texts, ok := choices(args[0])
	for _, text := range texts {
		w, t, read := literalFormat(name, text)
		widths, times, ok = max(widths, w), max(times, t), ok && read
	}
	return widths, times, ok
}

// choices gives the literals of which one is the value of an expression.
func choices(v any) ([]string, bool) {
	if s, ok := textLiteral(v); ok {
		return []string{s}, true
	}
	n, _ := v.(node)
	if str(n, "class") != "CASE" {
		return nil, false
	}
	out, ok := choices(n["else_expr"])
	for _, c := range list(n, "case_checks") {
		check, _ := c.(node)
		then, literal := choices(check["then_expr"])
		out, ok = append(out, then...), ok && literal
	}
	return out, ok
}

func literalFormat(name, text string) (widths, times int64, ok bool) {
	uses := map[string]int64{}
	var specs []string
	if name == "printf" {
		for _, m := range printfSpec.FindAllStringSubmatch(text, -1) {
			uses[m[1]]++
			specs = append(specs, m[2])
		}
	} else {
		text = strings.NewReplacer("{{", "", "}}", "").Replace(text)
		found := formatSpec.FindAllStringSubmatch(text, -1)
		if strings.Count(text, "{") != len(found) {
			return 0, 0, false // a width in braces of its own is computed
		}
		for _, m := range found {
			uses[m[1]]++
			specs = append(specs, m[2])
		}
	}
	times = 1
	for position, n := range uses {
		if position != "" {
			times = max(times, n)
		}
	}
	for _, s := range specs {
		if strings.Contains(s, "*") && name == "printf" {
			return 0, 0, false
		}
		for _, d := range figures.FindAllString(s, -1) {
			w, err := strconv.ParseInt(d, 10, 32)
			if err != nil {
				return 0, 0, false
			}
			widths += w
		}
	}
	return widths, times, true
}
