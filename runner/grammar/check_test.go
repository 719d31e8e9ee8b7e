package grammar

import (
	"strings"
	"testing"

	"sluice/fault"
)

func TestCheckAccepts(t *testing.T) {
	for name, gbnf := range map[string]string{
		"a word":              `root ::= "yes" | "no"`,
		"comments and blanks": "# a comment\n\nroot ::= # behind\n  \"a\" |\n  \"b\" # end\n\n# last",
		"newlines in a group": "root ::= (\n \"a\"\n | \"b\"\n)+\n",
		"all escapes":         `root ::= "\x41\u00e9\U0001F600\n\r\t\\\"\[\]" [\x00-\x1F\]\[^-]`,
		"a class with a dash": `root ::= [a-] [-a] [+--] [^"\\]`,
		"repetitions":         `root ::= "a"? "b"* "c"+ "d"{2} "e"{2,} "f"{ 0 , 3 } . ("g" "h"){3}`,
		"two in a row":        `root ::= "a"{2}{3}`,
		"right recursion":     `root ::= "a" root | "b"`,
		"the middle":          `root ::= "(" root ")" | ""`,
		"llama.cpp's blanks":  "root ::= \"a\" ws \"b\"\nws ::= | \" \" | \"\\n\" [ \\t]{0,20}",
		"json.gbnf": `root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}`,
		"arithmetic.gbnf": `root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*`,
		"list.gbnf":  `root ::= item+` + "\nitem ::= \"- \" [^\\r\\n\\x0b\\x0c\\x85\\u2028\\u2029]+ \"\\n\"",
		"CRLF":       "root ::= \"a\" |\r\n \"b\"\r\nother ::= \"c\"\r\n",
		"64 groups":  "root ::= " + nested("(", `"a"`, ")", 64),
		"never ends": `root ::= "a" root`,
		"2000 times": `root ::= [a-z]{0,2000}`,
		"an unused rule that uses itself": `root ::= "a"
x ::= "b" x`,
	} {
		if err := Check(gbnf); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	for name, row := range map[string]struct{ gbnf, want string }{
		"nothing":                    {"", "no rule root"},
		"no root":                    {`start ::= "a"`, "no rule root"},
		"an undefined rule":          {"root ::= \"a\"\n  | b", "line 2, column 3: a rule's name is expected"},
		"an undefined rule inside":   {"root ::= x\nx ::= \"é\" y", "line 2, column 11: rule y is used but not defined"},
		"an underscore":              {"root ::= a_b", "column 11"},
		"a rule twice":               {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule root is defined twice"},
		"left recursion":             {`root ::= root "a" | "b"`, "rule root is left-recursive"},
		"left recursion of two":      {"root ::= a\na ::= b \"x\"\nb ::= a | \"y\"", "left-recursive"},
		"behind what may be empty":   {"root ::= e root \"x\" | \"y\"\ne ::= f\nf ::= \"\" | \"z\"", "left-recursive"},
		"behind an optional":         {`root ::= "a"? root | "b"`, "left-recursive"},
		"in a group":                 {`root ::= ("a" | (root)) "b"`, "left-recursive"},
		"itself":                     {`root ::= root`, "left-recursive"},
		"a rule that is not reached": {"root ::= \"a\"\nx ::= x", "line 2, column 7: rule x is left-recursive"},
		"a loop over nothing":        {`root ::= ("" | "a")*`, "may be empty"},
		"a loop over a loop":         {`root ::= "x" ("a"*)+`, "may be empty"},
		"a loop over an empty rule":  {"root ::= \"x\" e*\ne ::= \"a\"?", "may be empty"},
		"two operators":              {`root ::= "a"**`, "may be empty"},
		"four nested {0,200}":        {`root ::= (((("a"{0,200}){0,200}){0,200}){0,200})`, "multiply"},
		"two ways to be empty":       {`root ::= "x" ("a"? | "b"?)`, "more than one way"},
		"an optional blank rule":     {"root ::= ws? \"a\"\nws ::= \" \"*", "line 1, column 10: this can be empty in more than one way"},
		"20 doublings":               {"root ::= a0\n" + doublings(30), "too many ways"},
		"100,000 groups":             {`root ::= ` + strings.Repeat("(", 60_000), "nested over 64"},
		"65 groups":                  {"root ::= " + nested("(", `"a"`, ")", 65), "nested over 64"},
		"70,000 bytes":               {`root ::= "` + strings.Repeat("a", 70_000) + `"`, "bytes; at most 65536"},
		"a long text many times":     {`root ::= "` + strings.Repeat("a", 60_000) + `"{2000}`, "too long"},
		"2001 times":                 {`root ::= "a"{2001}`, "a repetition of 2001"},
		"more than a number":         {`root ::= "a"{99999999999999999999}`, "at most 2000"},
		"bounds the wrong way round": {`root ::= "a"{5,2}`, "wrong way round"},
		"no times":                   {`root ::= "a"{0}`, "repetition of nothing"},
		"a brace not closed":         {`root ::= "a"{2`, "} is expected, not the end"},
		"an empty brace":             {`root ::= "a"{}`, "a number is expected"},
		"nothing to repeat":          {`root ::= * "a"`, "nothing before it"},
		"an empty text repeated":     {`root ::= ""*`, "cannot be repeated"},
		"a text not closed":          {`root ::= "a`, "line 1, column 10: a string without"},
		"a class not closed":         {`root ::= [a`, "without its ]"},
		"an empty class":             {`root ::= []`, "empty class"},
		"a class of no token":        {`root ::= [^\x00-\U0010FFFF]`, "no token can match"},
		"a class of NUL":             {`root ::= [\x00]`, "no token can match"},
		"half a surrogate pair":      {`root ::= "\uD800"`, "no token has"},
		"a range the wrong way":      {`root ::= [z-a]`, "wrong way round"},
		"a number beyond":            {`root ::= "\U00110000"`, "no character"},
		"an unknown escape":          {`root ::= "\d"`, "unknown letter"},
		"too few digits":             {`root ::= "\x4"`, "hexadecimal"},
		"a group not closed":         {`root ::= ("a"`, "without its )"},
		"a group not opened":         {`root ::= "a")`, "without its ("},
		"a rule without ::=":         {`root = "a"`, "::= is expected"},
		"a token by number":          {`root ::= <[42]>`, "tokens"},
		"a token by name":            {`root ::= !<|im_end|>`, "tokens"},
		"llguidance":                 {"%llguidance {}\nstart: /a/", "llguidance"},
		"a NUL":                      {"root ::= \"a\x00\"", "NUL"},
		"broken UTF-8":               {"root ::= \"\xff\"", "UTF-8"},
		"a single quote":             {`root ::= 'a'`, `'\'' is not expected`},
		"10,000 optional in a row":   {`root ::= ` + strings.Repeat(`"a"?`, 10_000), "in a row"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(row.gbnf)
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("error %v; want invalid", err)
			}
			if !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("error %v; want %q and a line in it", err, row.want)
			}
		})
	}
}

// doublings is a grammar in which each rule begins with the next in two ways: llama.cpp walks 2^n of them.
func doublings(n int) string {
	var b strings.Builder
	for i := range n {
		name, next := "a"+strings.Repeat("x", i), "a"+strings.Repeat("x", i+1)
		if i == 0 {
			name = "a0"
		}
		b.WriteString(name + " ::= " + next + " \"1\" | " + next + " \"2\"\n")
	}
	b.WriteString("a" + strings.Repeat("x", n) + " ::= \"z\"\n")
	return b.String()
}

// FuzzCheck: no text makes it fail, and what it accepts has a text to sample or an end.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`root ::= "yes" | "no"`, "root ::= (a | [^\\n]{2,3})*\na ::= \"x\" root?", "root ::= \"a\"{2}{3} . # c\r\n", `root ::= ("" | "a")*`,
		"root ::= e root\ne ::=", `root ::= <[1]> !<a>`, `root ::= [\x00-\]a-]`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, gbnf string) {
		err := Check(gbnf)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		defs, err := parse(gbnf, callers.depth)
		if err != nil || len(defs) == 0 {
			t.Fatalf("accepted, but not parsed: %v", err)
		}
		newRecogniser(t, gbnf).derives("some text") // ends only if no rule recurses without reading
	})
}
