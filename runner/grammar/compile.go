package grammar

import (
	"fmt"
	"strings"

	"sluice/fault"
)

// Bounds of a schema and of what is made from it.
const (
	maxSchemaBytes  = 1 << 20
	maxSchemaDepth  = 128
	maxGrammarBytes = 1 << 20    // of Compile's result
	maxForms        = 500        // ways to choose among the anyOf and oneOf that hold for one value
	maxSteps        = 500_000    // schemas looked at, pairs of alternatives compared
	maxWork         = 20_000_000 // of comparing listed values and properties, in units of about 20 ns
	maxCount        = 1_000_000  // minLength, maxItems and their like
	maxRepetition   = 2000       // llama.cpp's own bound of one {m,n}
)

// Compile turns a JSON Schema into a grammar in GBNF whose every text is JSON that the schema allows. "" gives "". null and
// "json" give any JSON object, which is what Ollama's format "json" means; true and {} give any JSON value.
//
// A schema that cannot be kept exactly is refused with fault.Invalid, naming keyword and path, such as
// `"not" at $.properties.x is not supported`. The result is at most 1 MiB, never cut, and passes the structural part of [Check].
func Compile(schema string) (string, error) {
	text := strings.TrimSpace(schema)
	switch text {
	case "":
		return "", nil
	case "json", `"json"`, "null":
		text = `{"type":"object"}`
	}
	if len(text) > maxSchemaBytes {
		return "", refuse("", "it has %d bytes; at most %d", len(text), maxSchemaBytes)
	}
	root, err := decode(text)
	if err != nil {
		return "", err
	}
	if root.kind != 'o' && root.kind != 'b' {
		return "", refuse("", "it must be an object")
	}
	c := &compiler{root: root, memo: map[string]string{}, has: map[string]bool{}, regex: map[*node]*regex{}}
	top, possible, err := c.value([]*node{root}, "root")
	if err != nil {
		return "", err
	}
	if !possible {
		return "", refuse("", "no value can satisfy it%s", c.reason)
	}
	grammar, err := c.write(top)
	if err != nil {
		return "", err
	}
	if err := check(grammar, ours); err != nil {
		var mistake *mistakeError
		if asMistake(err, &mistake) {
			return "", refuse("", "its grammar cannot be used (%s); it has too many alternatives or optional properties, or no finite answer", mistake.what)
		}
		return "", err
	}
	return grammar, nil
}

// refuse is the refusal of a schema. path may be "".
func refuse(path, format string, args ...any) error {
	at := ""
	if path != "" {
		at = " at " + path
	}
	return fault.New(fault.Invalid, "grammar.Compile", "the format's JSON schema cannot be used%s: %s", at, fmt.Sprintf(format, args...))
}

// unsupported is the refusal of a keyword. hint may be "".
func unsupported(n *node, keyword, hint string) error {
	e := fault.New(fault.Invalid, "grammar.Compile", "format: %q at %s is not supported", keyword, n.path)
	if hint != "" {
		e.Msg += "; " + hint
	}
	return e
}

type rule struct{ name, body string }

// compiler holds the rules made so far. memo knows the expression of each set of schemas that must hold together, so that a
// schema is compiled once, and one that refers to itself ends.
type compiler struct {
	root   *node
	memo   map[string]string
	rules  []rule
	has    map[string]bool
	size   int
	names  int
	steps  int // of work that may multiply, so far
	worked int // of values and properties compared
	regex  map[*node]*regex
	reason string // why the last impossible value was one
}

// rule adds a rule and gives its name. What is already there under the same words is not looked for: memo does that.
func (c *compiler) rule(name, body string) (string, error) {
	c.rules = append(c.rules, rule{name, body})
	if c.size += len(name) + len(body) + len(" ::= \n"); c.size > maxGrammarBytes {
		return "", refuse("", "its grammar would have over %d bytes; it has too many properties, alternatives or values", maxGrammarBytes)
	}
	return name, nil
}

// spend bounds work that a small schema can multiply.
func (c *compiler) spend(at *node) error {
	if c.steps++; c.steps > maxSteps {
		return refuse(at.path, "its schemas refer to each other, or have alternatives, too often")
	}
	return nil
}

// work bounds what values and properties that are compared with each other cost: a list of values times a list of keywords, or
// times the length of a pattern, is minutes in a schema of half a megabyte.
func (c *compiler) work(units int, path string) error {
	if c.worked += units; c.worked > maxWork {
		return refuse(path, "comparing its values, patterns or properties with each other takes too long; list fewer")
	}
	return nil
}

// name makes a name that no other rule has. Those of primitives have no number at their end.
func (c *compiler) name(hint string) string {
	c.names++
	var b strings.Builder
	for _, r := range hint {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			b.WriteRune(r)
		} else {
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	return fmt.Sprintf("%s-%d", b.String(), c.names)
}

func (c *compiler) write(top string) (string, error) {
	if _, err := c.rule("root", top); err != nil {
		return "", err
	}
	var b strings.Builder
	last := len(c.rules) - 1
	for i := range c.rules {
		r := c.rules[(i+last)%len(c.rules)] // root first
		b.WriteString(r.name + " ::= " + r.body + "\n")
	}
	return b.String(), nil
}

// primitives are llama.cpp's rules, changed where noted.
var primitives = map[string]struct {
	body  string
	needs []string
}{
	// Bounded, so that a small model does not go on and on with blanks.
	"space": {`| " " | "\n"{1,2} [ \t]{0,20}`, nil},
	// Escaped halves of surrogate pairs come in pairs only, so that one "char" is one character.
	"char": {`[^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] hex{3} | [dD] ([0-7] hex{2} | [89abAB] hex{2} "\\u" [dD] [c-fC-F] hex{2})))`, []string{"hex"}},
	"hex":  {`[0-9a-fA-F]`, nil},
	// Without -0, and with exponents that stay finite.
	"integer": {`"0" | "-"? [1-9] [0-9]{0,15}`, nil},
	"number":  {`"-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?`, nil},
	"string":  {`"\"" char* "\""`, []string{"char"}},
	"value":   {`object | array | string | number | "true" | "false" | "null"`, []string{"object", "array", "string", "number"}},
	"object":  {`"{" space (string ":" space value ("," space string ":" space value)* space)? "}"`, []string{"space", "string", "value"}},
	"array":   {`"[" space (value ("," space value)* space)? "]"`, []string{"space", "value"}},
}

// primitive adds one of them, with what it needs, when it is not there.
func (c *compiler) primitive(name string) string {
	if c.has[name] {
		return name
	}
	c.has[name] = true
	p := primitives[name]
	c.rules = append(c.rules, rule{name, p.body}) // few and short: no bound is needed
	for _, other := range p.needs {
		c.primitive(other)
	}
	return name
}

// repetition writes a unit, from low to high times (high < 0: without bound). unit is one rule's name that is never empty.
// Long ones are chains of blocks of a thousand, in which at most two ways are open at any time.
func (c *compiler) repetition(unit string, low, high int) (string, error) {
	const block = 1000
	switch {
	case high < 0 && low == 0:
		return unit + "*", nil
	case high < 0 && low == 1:
		return unit + "+", nil
	case high == 0:
		return "", nil
	case high > 0 && high <= block:
		return fmt.Sprintf("%s{%d,%d}", unit, low, high), nil
	}
	thousand := ""
	var err error
	if high-low > block || low > block {
		if thousand, err = c.rule(c.name(unit), fmt.Sprintf("%s{%d}", unit, block)); err != nil {
			return "", err
		}
	}
	out := ""
	if q := low / block; q > 0 && low > block {
		out = fmt.Sprintf("%s{%d}", thousand, q)
		if low%block > 0 {
			out += fmt.Sprintf(" %s{%d}", unit, low%block)
		}
	} else if low > 0 {
		out = fmt.Sprintf("%s{%d}", unit, low)
	}
	if high < 0 {
		return out + " " + unit + "*", nil
	}
	rest := high - low
	if rest == 0 {
		return out, nil
	}
	if rest <= block {
		return fmt.Sprintf("%s %s{0,%d}", out, unit, rest), nil
	}
	short, err := c.rule(c.name(unit), fmt.Sprintf("%s{0,%d}", unit, block-1))
	if err != nil {
		return "", err
	}
	chain := `""`
	if rest%block > 0 {
		chain = fmt.Sprintf("%s{0,%d}", unit, rest%block)
	}
	chain, err = c.rule(c.name(unit), chain)
	for i := 0; i < rest/block && err == nil; i++ {
		chain, err = c.rule(c.name(unit), short+" | "+thousand+" "+chain)
	}
	return out + " " + chain, err
}
