package sqlguard

import "slices"

// multiplying are functions whose text is as many times as long as their argument, so that ten of them, one in the
// other, make gigabytes of a word.
var multiplying = map[string]int64{"bin": 8, "to_binary": 8, "hex": 2, "to_hex": 2, "url_encode": 3}

// folds apply a lambda to what it made before, once for each element. Measured: (a, b) -> a || a over 31 elements takes
// 8 GB, which the engine's limit does not see.
var folds = []string{"list_reduce", "array_reduce", "reduce"}

// foldSafe are the functions that may stand in such a lambda: what they make is no longer than their arguments.
var foldSafe = []string{"+", "-", "*", "/", "//", "%", "&", "|", "<<", ">>", "@", "abs", "add", "subtract", "multiply", "divide", "mod", "xor", "round", "floor",
	"ceil", "ceiling", "trunc", "sqrt", "pow", "power", "exp", "ln", "log", "least", "greatest", "lower", "upper", "trim", "ltrim", "rtrim", "left", "right",
	"length", "len", "nullif", "gcd", "lcm", "list_contains", "contains", "starts_with", "hash"}

// foldJoins are allowed as well, when the text so far comes once into each.
var foldJoins = []string{"||", "concat", "list_append", "array_append", "list_prepend", "array_prepend", "list_concat", "array_concat"}

// fold decides on list_reduce(list, (sofar, element) -> expression).
func (w *walker) fold(n node) error {
	for _, a := range list(n, "children") {
		lambda, _ := a.(node)
		if str(lambda, "class") != "LAMBDA" {
			continue
		}
		sofar := under(lambda, "lhs")
		if params := list(sofar, "children"); len(params) > 0 {
			sofar, _ = params[0].(node)
		}
		names := strs(sofar, "column_names")
		if len(names) != 1 || !foldable(lambda["expr"], names[0]) {
			return refuse(place(n), kindQuery, "use list_sum, list_max, array_to_string or list_transform",
				"the lambda of %s may only compute, compare and add the element to what came before", fold(str(n, "function_name")))
		}
	}
	return nil
}

func foldable(v any, sofar string) bool {
	switch v := v.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !foldable(e, sofar) })
	case node:
		name := fold(str(v, "function_name"))
		switch class := str(v, "class"); {
		case class == "LAMBDA", class == "SUBQUERY":
			return false
		case class == "FUNCTION" && slices.Contains(foldJoins, name):
			if mentions(v, sofar) > 1 {
				return false
			}
		case class == "FUNCTION" && !slices.Contains(foldSafe, name):
			return false
		case class == "OPERATOR" && str(v, "type") == "ARRAY_CONSTRUCTOR":
			return false
		}
		for _, e := range v {
			if !foldable(e, sofar) {
				return false
			}
		}
	}
	return true
}

// mentions counts where a name stands below a node.
func mentions(v any, name string) (count int) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			count += mentions(e, name)
		}
	case node:
		if names := strs(v, "column_names"); len(names) > 0 && fold(names[0]) == fold(name) {
			count++
		}
		for _, e := range v {
			count += mentions(e, name)
		}
	}
	return count
}
