package grammar

import (
	"strings"
	"testing"

	"sluice/fault"
)

// Each of these, 60 to 200 bytes long, kept llama.cpp busy for more than 15 seconds over one token, and so everybody else who
// used the model.
func TestCheckRefusesWhatMultiplies(t *testing.T) {
	for name, gbnf := range map[string]string{
		"a recursion that may end in two ways":     `root ::= " " root "b" | " " root "c" | "x"`,
		"a loop over two equal alternatives":       `root ::= ("=" | "=")* "x"`,
		"a loop in a loop":                         `root ::= ("a"+)+ "b"`,
		"two loops that overlap in a loop":         `root ::= (([a-m]+ | [h-z]+))* "."`,
		"behind a long beginning":                  "root ::= \"" + strings.Repeat("z", 300) + "\" x\nx ::= (\"a\" | \"a\")* \"b\"",
		"in two rules":                             "root ::= p | q | \"x\"\np ::= \"(\" root \"p\"\nq ::= \"(\" root \"q\"",
		"on the way back":                          `root ::= "a" root ("=" | "=") | "c"`,
		"a bounded loop":                           `root ::= ("a" | "a"){0,500} "x"`,
		"beside a harmless loop with many letters": `root ::= ([a-z] "." | "(" ("=" | "=")+ ")")*`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := Check(gbnf); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "too many ways from here on") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestCheckAcceptsWhatDoesNotMultiply(t *testing.T) {
	for name, gbnf := range map[string]string{
		"alternatives that begin alike": `root ::= ("abc1" | "abc2" | "abd")* "."`,
		"a class and its escapes":       `root ::= "\"" ([^"\\] | "\\" ["\\nrt])* "\""`,
		"loops in a row":                `root ::= [a-z]* " " [a-z]* " " [a-z]*`,
		"long bounded loops in a row":   `root ::= [a-z]{500} [a-z]{0,500}`,
		"nested brackets":               `root ::= "(" root ")" | "[" root "]" | ""`,
		"any text around a word":        `root ::= .* "needle" .*`,
	} {
		if err := Check(gbnf); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCompileRefusesWhatMultiplies(t *testing.T) {
	for name, schema := range map[string]string{
		"alternatives that differ behind what recurs": `{"$defs":{"e":{"anyOf":[{"type":"array","prefixItems":[{"$ref":"#/$defs/e"},{"type":"integer"}]},
			{"type":"array","prefixItems":[{"$ref":"#/$defs/e"},{"type":"null"}]},{"type":"boolean"}]}},"$ref":"#/$defs/e"}`,
		"a pattern whose alternatives overlap": `{"type":"string","pattern":"^(a|aa)+$"}`,
	} {
		if _, err := Compile(schema); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "too many ways") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestCompileAcceptsWhatDoesNotMultiply(t *testing.T) {
	for name, schema := range map[string]string{
		"alternatives that are told apart first": `{"$defs":{"e":{"anyOf":[{"type":"object","properties":{"op":{"const":"add"},"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}},"required":["op","l","r"]},
			{"type":"object","properties":{"op":{"const":"mul"},"l":{"$ref":"#/$defs/e"},"r":{"$ref":"#/$defs/e"}},"required":["op","l","r"]},{"type":"number"}]}},"$ref":"#/$defs/e"}`,
		"classes that overlap":        `{"type":"string","pattern":"^(\\w|[a-z]|é)+$"}`,
		"a text of a million letters": `{"type":"array","items":{"type":"string","maxLength":1000000}}`,
		"texts and dates":             `{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"string","format":"date"}]}}`,
		"a loop in a loop":            `{"type":"string","pattern":"^(a+)+b$"}`,
		"words around a word":         `{"type":"string","pattern":"foo.*bar"}`,
		"any value":                   `{}`,
	} {
		if _, err := Compile(schema); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Half a megabyte of values, or a long list of alternatives, must not keep a core busy for minutes. A pattern over it did for three.
func TestCompileBoundsComparing(t *testing.T) {
	text := `"` + strings.Repeat("a", 5000) + `",`
	for name, schema := range map[string]string{
		"a pattern and long values": `{"type":"string","pattern":"^(a|aa|aaa)*b$","enum":[` + strings.Repeat(text, 99) + `"b"]}`,
		"a long pattern and values": `{"type":"string","pattern":"^(` + strings.Repeat("ab|", 1300) + `b)$","enum":[` + strings.Repeat(`"b",`, 50_000) + `"b"]}`,
		"keywords and values":       `{"allOf":[` + strings.Repeat(`{"minLength":1},`, 400) + `{}],"enum":[` + strings.Repeat(`"b",`, 100_000) + `"b"]}`,
	} {
		if _, err := Compile(schema); fault.CodeOf(err) != fault.Invalid || !strings.Contains(err.Error(), "takes too long") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
