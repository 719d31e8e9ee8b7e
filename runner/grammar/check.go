package grammar

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"sluice/fault"
)

// bounds are the sizes that a grammar may have.
type bounds struct {
	bytes    int
	depth    int // of groups in groups
	product  int // of repetitions in repetitions; 0: any
	elements int // in llama.cpp's form, where repetitions are written out
	paths    int // ways to a first character, over all rules
	work     int // of the searches for what multiplies, in frames: a million is half a second
	corner   int // rules entered, or left empty, before a first character
	finite   bool
}

var (
	// callers' grammars are small; see reference: 100,000 nested groups overflow the C stack, four nested {0,200} too.
	callers = bounds{bytes: 64 << 10, depth: 64, product: 10_000, elements: 1 << 20, paths: 200_000, work: 600_000, corner: 2000}
	ours    = bounds{bytes: 2 * maxGrammarBytes, depth: 200, elements: 4 << 20, paths: 10_000_000, work: 5_000_000, corner: 5000, finite: true}
)

// Check says whether llama.cpp can take a caller's grammar. One that it cannot parse, that recurses without end, that takes it
// exponential time or leaves it without a token is refused with fault.Invalid: the message has line and column (in characters), the
// hint says what to do, Position is the byte.
//
// Refused although llama.cpp takes them: a rule that is defined twice, tokens by name or number (<[42]>), and what can be empty in two
// ways (llama.cpp tries all ways at each place: the time doubles with each).
func Check(gbnf string) error {
	err := check(gbnf, callers)
	var m *mistakeError
	if !asMistake(err, &m) {
		return err
	}
	line := 1 + strings.Count(gbnf[:m.at], "\n")
	column := 1 + utf8.RuneCountInString(gbnf[strings.LastIndexByte(gbnf[:m.at], '\n')+1:m.at])
	e := fault.New(fault.Invalid, "grammar.Check", "the grammar cannot be used: line %d, column %d: %s", line, column, m.what)
	if e.Hint, e.Position = m.hint, m.at+1; m.hint != "" {
		e.Msg += "; " + m.hint
	}
	return e
}

func asMistake(err error, m **mistakeError) bool { return errors.As(err, m) }

func mistake(at int, hint, format string, args ...any) error {
	return &mistakeError{at, fmt.Sprintf(format, args...), hint}
}

func check(gbnf string, b bounds) error {
	if len(gbnf) > b.bytes {
		return mistake(0, "", "it has %d bytes; at most %d", len(gbnf), b.bytes)
	}
	if strings.HasPrefix(strings.TrimLeft(gbnf, " \t\r\n"), "%llguidance") {
		return mistake(0, "write GBNF", "llguidance grammars are not supported")
	}
	if i := strings.IndexByte(gbnf, 0); i >= 0 {
		return mistake(i, `write \x00, though no token has it`, "a NUL")
	}
	for i, r := range gbnf {
		if r == utf8.RuneError && !strings.HasPrefix(gbnf[i:], "\uFFFD") {
			return mistake(i, "send UTF-8", "broken UTF-8")
		}
	}
	rules, err := parse(gbnf, b.depth)
	if err != nil {
		return err
	}
	a := &analysis{bounds: b, rules: map[string]*facts{}}
	for _, d := range rules {
		if old := a.rules[d.name]; old != nil {
			return mistake(d.at, "give it another name, or put both alternatives into one rule", "rule %s is defined twice", d.name)
		}
		a.rules[d.name] = &facts{definition: d}
		a.order = append(a.order, a.rules[d.name])
	}
	if a.rules["root"] == nil {
		return mistake(0, "the rule named root says what the whole answer is: root ::= ...", "there is no rule root")
	}
	return a.run()
}
