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

// TestHostileSchemas: each is refused with a reason, or kept to; the child lives. Unchecked, they crash it, hang it, or leave
// the answer unconstrained. What is refused, and in which words, is package grammar's to test.
func TestHostileSchemas(t *testing.T) {
	p, _ := load(t, nil)
	for name, schema := range map[string]string{
		"no JSON":                        `{"type":`,
		"two values":                     `{} {}`,
		"a number":                       `7`,
		"a list":                         `[]`,
		"7,000 levels":                   repeat(`{"not":`, `{}`, `}`, 7_000),
		"65 levels":                      repeat(`{"items":`, `{}`, `}`, 64),
		"too large":                      `{"const":"` + strings.Repeat("a", 70_000) + `"}`,
		"an unknown type":                `{"type":"strin"}`,
		"an unknown type among others":   `{"properties":{"a":{"type":["string","date"]}}}`,
		"a type of a number":             `{"type":7}`,
		"a cyclic $ref":                  `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`,
		"a cycle of two":                 `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`,
		"a cycle in allOf":               `{"allOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"$ref":"#/$defs/A"}}}`,
		"a cycle through anyOf":          `{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/A"}]}}}`,
		"a remote $ref":                  `{"$ref":"https://example.com/a.json"}`,
		"a $ref to a file":               `{"$ref":"file:///etc/passwd"}`,
		"a $ref to the whole":            `{"items":{"$ref":"#"}}`,
		"a $ref to nothing":              `{"$ref":"#/$defs/A"}`,
		"a $ref to a number":             `{"$ref":"#/x","x":7}`,
		"a $ref that is a number":        `{"$ref":7}`,
		"an empty enum":                  `{"enum":[]}`,
		"an enum that is a number":       `{"enum":7}`,
		"an empty anyOf":                 `{"anyOf":[]}`,
		"properties that are a list":     `{"properties":[]}`,
		"600 properties":                 properties(600, ""),
		"400 optional properties":        properties(400, ""),
		"a property of 300 bytes":        `{"properties":{"` + strings.Repeat("a", 300) + `":{}}}`,
		"open beside a name of bytes":    `{"properties":{"größe":{"type":"string"}},"additionalProperties":true}`,
		"open beside a bracket":          `{"properties":{"a]":{"type":"string"}},"additionalProperties":{"type":"null"}}`,
		"a huge maxLength":               `{"type":"string","maxLength":100000}`,
		"a maxItems of 1e300":            `{"type":"array","items":{},"maxItems":1e300}`,
		"a negative minItems":            `{"type":"array","items":{},"minItems":-1}`,
		"lengths the wrong way round":    `{"type":"string","minLength":5,"maxLength":2}`,
		"numbers the wrong way round":    `{"type":"integer","minimum":9,"maximum":1}`,
		"nothing between exclusive ones": `{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`,
		"a minimum of -2^63":             `{"type":"integer","minimum":-9223372036854775808}`,
		"a minimum that is a word":       `{"type":"integer","minimum":"a"}`,
		"a pattern of a number":          `{"type":"string","pattern":7}`,
		"an empty pattern":               pattern(""),
		"a pattern without its ends":     pattern("a"),
		"nothing to repeat":              pattern("^*$"),
		"braces with nothing before":     pattern("^{2}$"),
		"a bare bracket, for ever":       pattern("^]$"),
		"a group that captures nothing":  pattern("^(?:a)$"),
		"a group not closed":             pattern("^(a$"),
		"a group not opened":             pattern("^a)$"),
		"10,000 groups":                  pattern("^" + repeat("(", "a", ")", 10_000) + "$"),
		"nested repetitions":             pattern("^((((a{0,200}){0,200}){0,200}){0,200})$"),
		"a repetition of 9999":           pattern("^a{9999}$"),
		"a repetition of 99999999":       pattern("^a{99999999}$"),
		"a class of nothing":             pattern("^[]$"),
		"a class of all but everything":  pattern("^[^ -~]$"),
		"a range the wrong way round":    pattern("^[z-a]$"),
		"a class of digits":              pattern(`^\d{4}$`),
		"a NUL":                          `{"type":"string","pattern":"^\u0000$"}`,
		"a wrong keyword inside":         `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"format":7}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			req := runnertest.Request("A value:", 4)
			req.Schema = schema
			err := p.Generate(t.Context(), req, func(runner.Chunk) error { return nil })
			if err != nil {
				runnertest.WantCode(t, err, fault.Invalid)
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
