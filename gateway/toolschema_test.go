package gateway

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheSchemaOfArgumentsHoldsWhatEveryCompilerHas(t *testing.T) {
	for name, row := range map[string]struct{ params, want string }{
		"no parameters":        {`{}`, `{"type":"object"}`},
		"no properties":        {`{"type":"object","properties":null,"required":["a"]}`, `{"type":"object"}`},
		"the order stays":      {`{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["a","a","no"]}`, `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["a"]}`},
		"annotations go":       {`{"type":"object","properties":{"a":{"type":"string","description":"d","pattern":"^a\\-b$","maxLength":100000}}}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		"an enum":              {`{"type":"object","properties":{"a":{"type":"string","enum":["x","y"]}}}`, `{"type":"object","properties":{"a":{"enum":["x","y"]}}}`},
		"a list of types":      {`{"type":"object","properties":{"a":{"type":["string","null"]}}}`, `{"type":"object","properties":{"a":{"type":["string","null"]}}}`},
		"a type nobody knows":  {`{"type":"object","properties":{"a":{"type":"any"}}}`, `{"type":"object","properties":{"a":{}}}`},
		"alternatives":         {`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`},
		"items with a pattern": {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","pattern":"x"}}}}`, `{"type":"object","properties":{"a":{"items":{"type":"string"},"type":"array"}}}`},
		"a reference":          {`{"type":"object","$defs":{"P":{"type":"object","properties":{"n":{"type":"string"}},"required":["n","m"]}},"properties":{"a":{"type":"array","items":{"$ref":"#/$defs/P"}}}}`, `{"type":"object","properties":{"a":{"items":{"properties":{"n":{"type":"string"}},"required":["n"],"type":"object"},"type":"array"}}}`},
		"a reference to none":  {`{"type":"object","properties":{"a":{"type":"array","items":{"$ref":"#/$defs/P"}}}}`, `{"type":"object","properties":{"a":{"items":{},"type":"array"}}}`},
	} {
		tool := toolsOf(t, `{"type":"function","function":{"name":"f","parameters":`+row.params+`}}`)
		f, err := forceCall(tool, "")
		want := `{"type":"object","properties":{"name":{"const":"f"},"arguments":` + row.want + `},"required":["name","arguments"],"additionalProperties":false}`
		if err != nil || f.schema != want {
			t.Errorf("%s:\n%s\nwant\n%s, %v", name, f.schema, want, err)
		}
	}
	cyclic := toolsOf(t, `{"type":"function","function":{"name":"f","parameters":{"type":"object","$defs":{"A":{"$ref":"#/$defs/A"},"L":{"type":"array","items":{"$ref":"#/$defs/L"}}},"properties":{"a":{"type":"array","items":{"$ref":"#/$defs/A"}},"b":{"type":"array","items":{"$ref":"#/$defs/L"}}}}}}`)
	if f, err := forceCall(cyclic, ""); err != nil || len(f.schema) > 2000 || strings.Contains(f.schema, "$ref") {
		t.Errorf("cyclic: %v, %s", err, f.schema)
	}
	// Twenty properties that refer to where they are: without a bound 20^8 of them.
	wide := toolsOf(t, `{"type":"function","function":{"name":"f","parameters":{"type":"object","$defs":{"A":{"type":"object","properties":{`+
		wideProperties(20)+`}}},"properties":{"a":{"type":"array","items":{"$ref":"#/$defs/A"}}}}}}`)
	if f, err := forceCall(wide, ""); err != nil || len(f.schema) > 500_000 {
		t.Errorf("wide: %v, %d bytes", err, len(f.schema))
	}
	if _, err := forceCall(toolsOf(t, `{"type":"function","function":{}}`), ""); err == nil {
		t.Error("a tool without a name can be forced")
	}
}

func wideProperties(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`"p%d":{"$ref":"#/$defs/A"}`, i)
	}
	return strings.Join(out, ",")
}
