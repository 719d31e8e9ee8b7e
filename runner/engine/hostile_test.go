package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"sluice/fault"
	"sluice/internal/runnertest"
	"sluice/runner"
)

func repeat(open, middle, shut string, n int) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(shut, n)
}

func properties(n int, more string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"property%d":{"type":"string"}`, i)
	}
	return `{"type":"object","properties":{` + strings.Join(names, ",") + `}` + more + `}`
}

func pattern(p string) string {
	return `{"type":"string","pattern":` + fmt.Sprintf("%q", p) + `}`
}

// TestHostileSchemas: each is refused with a sentence that names the reason, and the child lives. Unchecked, they crash it, hang
// it, or leave the answer unconstrained.
func TestHostileSchemas(t *testing.T) {
	p, _ := load(t, nil)
	for name, row := range map[string]struct{ schema, want string }{
		"no JSON":                        {`{"type":`, "no JSON"},
		"two values":                     {`{} {}`, "behind"},
		"a number":                       {`7`, "must be an object"},
		"a list":                         {`[]`, "must be an object"},
		"7,000 levels":                   {repeat(`{"not":`, `{}`, `}`, 7_000), "nested"},
		"65 levels":                      {repeat(`{"items":`, `{}`, `}`, 64), "nested"},
		"too large":                      {`{"const":"` + strings.Repeat("a", 70_000) + `"}`, "bytes"},
		"an unknown type":                {`{"type":"strin"}`, `unknown type strin`},
		"an unknown type among others":   {`{"properties":{"a":{"type":["string","date"]}}}`, "at /properties/a"},
		"a type of a number":             {`{"type":7}`, "unknown type"},
		"a cyclic $ref":                  {`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`, "cyclic $ref"},
		"a cycle of two":                 {`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`, "cyclic $ref"},
		"a cycle in allOf":               {`{"allOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"$ref":"#/$defs/A"}}}`, "cyclic $ref"},
		"a cycle through anyOf":          {`{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/A"}]}}}`, "cyclic $ref"},
		"a remote $ref":                  {`{"$ref":"https://example.com/a.json"}`, "remote"},
		"a $ref to a file":               {`{"$ref":"file:///etc/passwd"}`, "remote"},
		"a $ref to the whole":            {`{"items":{"$ref":"#"}}`, "must begin with #/"},
		"a $ref to nothing":              {`{"$ref":"#/$defs/A"}`, "points to nothing"},
		"a $ref to a number":             {`{"$ref":"#/x","x":7}`, "no schema"},
		"a $ref that is a number":        {`{"$ref":7}`, "must be a string"},
		"an empty enum":                  {`{"enum":[]}`, "enum"},
		"an enum that is a number":       {`{"enum":7}`, "enum"},
		"an empty anyOf":                 {`{"anyOf":[]}`, "anyOf"},
		"properties that are a list":     {`{"properties":[]}`, "properties"},
		"600 properties":                 {properties(600, ""), "600 properties"},
		"400 optional properties":        {properties(400, ""), "too long"},
		"a property of 300 bytes":        {`{"properties":{"` + strings.Repeat("a", 300) + `":{}}}`, "300 bytes"},
		"open beside a name of bytes":    {`{"properties":{"größe":{"type":"string"}},"additionalProperties":true}`, "größe"},
		"open beside a bracket":          {`{"properties":{"a]":{"type":"string"}},"additionalProperties":{"type":"null"}}`, "a]"},
		"a huge maxLength":               {`{"type":"string","maxLength":100000}`, "maxLength"},
		"a maxItems of 1e300":            {`{"type":"array","items":{},"maxItems":1e300}`, "maxItems"},
		"a negative minItems":            {`{"type":"array","items":{},"minItems":-1}`, "minItems"},
		"lengths the wrong way round":    {`{"type":"string","minLength":5,"maxLength":2}`, "minLength is over"},
		"numbers the wrong way round":    {`{"type":"integer","minimum":9,"maximum":1}`, "no number"},
		"nothing between exclusive ones": {`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`, "no number"},
		"a minimum of -2^63":             {`{"type":"integer","minimum":-9223372036854775808}`, "2^53"},
		"a minimum that is a word":       {`{"type":"integer","minimum":"a"}`, "must be a number"},
		"a pattern of a number":          {`{"type":"string","pattern":7}`, "must be a string"},
		"an empty pattern":               {pattern(""), "must begin with"},
		"a pattern without its ends":     {pattern("a"), "must begin with"},
		"nothing to repeat":              {pattern("^*$"), "nothing before it"},
		"braces with nothing before":     {pattern("^{2}$"), "nothing before it"},
		"a bare bracket, for ever":       {pattern("^]$"), "bare ]"},
		"a group that captures nothing":  {pattern("^(?:a)$"), "(?"},
		"a group not closed":             {pattern("^(a$"), "without its )"},
		"a group not opened":             {pattern("^a)$"), "without its ("},
		"10,000 groups":                  {pattern("^" + repeat("(", "a", ")", 10_000) + "$"), "nested"},
		"nested repetitions":             {pattern("^((((a{0,200}){0,200}){0,200}){0,200})$"), "multiply"},
		"a repetition of 9999":           {pattern("^a{9999}$"), "9999"},
		"a repetition of 99999999":       {pattern("^a{99999999}$"), "whole number"},
		"a class of nothing":             {pattern("^[]$"), "empty class"},
		"a class of all but everything":  {pattern("^[^ -~]$"), "every plain character"},
		"a range the wrong way round":    {pattern("^[z-a]$"), "wrong way round"},
		"a class of digits":              {pattern(`^\d{4}$`), `[0-9]`},
		"a NUL":                          {`{"type":"string","pattern":"^\u0000$"}`, "NUL"},
		"a wrong keyword inside":         {`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"format":7}}}}}`, "does not know"},
	} {
		t.Run(name, func(t *testing.T) {
			req := runnertest.Request("A value:", 4)
			req.Schema = row.schema
			err := p.Generate(t.Context(), req, func(runner.Chunk) error { return nil })
			runnertest.WantCode(t, err, fault.Invalid)
			if err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v; want %q in it", err, row.want)
			}
		})
	}
	if err := p.Err(); err != nil {
		t.Fatalf("the child died: %v", err)
	}
	runnertest.Answer(t, p, runnertest.Request("A value:", 1))
}

// TestUsefulSchemas: what people write must pass, and the answer must keep to it from its first token.
func TestUsefulSchemas(t *testing.T) {
	p, _ := load(t, nil)
	for name, schema := range map[string]string{
		"a tree":                      `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["v"]}}}`,
		"lists within lists":          `{"type":"array","maxItems":200,"items":{"type":"array","maxItems":200,"items":{"type":"string","maxLength":2000}}}`,
		"unions":                      `{"anyOf":[{"type":"null"},{"type":["string","number"]},{"const":3}]}`,
		"100 optional properties":     properties(100, ""),
		"open, beside two of its own": properties(2, `,"required":["property0"],"additionalProperties":true`),
		"a pattern":                   pattern(`^[A-Z][a-z]+(-[0-9]{2,4})?\.(sql|csv)$`),
		"a negated class":             pattern(`^[^"\\]{1,20}$`),
		"numbers within bounds":       `{"type":"integer","minimum":-5,"maximum":120}`,
		"dates":                       `{"type":"string","format":"date-time"}`,
		"names beyond ASCII, closed":  `{"type":"object","properties":{"größe":{"type":"number"}},"required":["größe"],"additionalProperties":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			req := runnertest.Request("A value:", 6)
			req.Schema = schema
			text, _ := runnertest.Answer(t, p, req)
			if text == "" || !strings.ContainsAny(text[:1], `{["-n0123456789`) {
				t.Errorf("answer %q", text)
			}
		})
	}
}
