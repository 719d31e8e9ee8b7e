package grammar

import (
	"fmt"
	"strings"
	"testing"

	"sluice/fault"
)

func TestCompile(t *testing.T) {
	for name, row := range map[string]struct {
		schema    string
		derives   []string
		derivesNo []string
	}{
		"null is any object":       {`null`, []string{`{}`, `{"a": [1, true, null, "x\n"]}`, "{\n  \"a\": 1\n}"}, []string{`7`, `[]`, `{"a":}`, `{"a":1,}`, ``}},
		"json is any object":       {`"json"`, []string{`{"a":1}`}, []string{`"a"`}},
		"true is any value":        {`true`, []string{`7`, `"a"`, `[[]]`, `{"a":{}}`, `-1.5e-3`, `null`}, []string{`07`, `.5`, `'a'`, `nul`}},
		"an empty schema too":      {`{"title":"x","description":"y","$schema":"z","default":3,"examples":[1],"$comment":"c","deprecated":true,"readOnly":true}`, []string{`7`, `{}`}, []string{`{`}},
		"blanks are bounded":       {`{}`, []string{"{ \"a\": 1\n}"}, []string{"{  }", "{\n\n\n}", " {}", "{} "}},
		"properties in order":      {`{"properties":{"b":{"type":"integer"},"a":{"type":"integer"}},"required":["b","a"]}`, []string{`{"b":1,"a":2}`}, []string{`{"a":2,"b":1}`, `{"b":1}`, `{"b":1,"a":2,"c":3}`}},
		"optional properties":      {`{"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"required":["b"]}`, []string{`{"b":2}`, `{"a":1,"b":2}`, `{"b":2,"c":3}`, `{"a":1, "b":2, "c":3}`}, []string{`{}`, `{"a":1,"c":3}`, `{,"b":2}`, `{"a":1"b":2}`}},
		"all optional":             {`{"properties":{"a":{"const":1},"b":{"const":2}}}`, []string{`{}`, `{"a":1}`, `{"b":2}`, `{"a":1,"b":2}`}, []string{`{"b":2,"a":1}`, `{,}`, `{"a":1,}`}},
		"further properties":       {`{"properties":{"ab":{"const":1}},"additionalProperties":{"type":"boolean"}}`, []string{`{}`, `{"ab":1,"abc":true}`, `{"a":false,"é":true}`, `{"":true}`}, []string{`{"ab":true}`, `{"x":1}`, `{"\u0061b":true}`}},
		"required but not listed":  {`{"type":"object","required":["x"]}`, []string{`{"x":1}`, `{"x":[],"y":2}`}, []string{`{}`, `{"y":2}`}},
		"a map":                    {`{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2}`, []string{`{"a":1}`, `{"a":1,"b":2}`}, []string{`{}`, `{"a":1,"b":2,"c":3}`, `{"a":"x"}`}},
		"a forbidden property":     {`{"type":"object","properties":{"a":false,"b":true}}`, []string{`{}`, `{"b":1}`}, []string{`{"a":1}`}},
		"enum and const":           {`{"enum":["city","customer","customer_id","",null,7,{"b":1,"a":[true]},"q\"\\\n\u0001é"]}`, []string{`"city"`, `"customer"`, `"customer_id"`, `""`, `null`, `7`, `{"b":1,"a":[true]}`, `"q\"\\\n\u0001é"`}, []string{`"custom"`, `"customer_i"`, `city`, `8`}},
		"enum beside other limits": {`{"type":["string","integer"],"enum":["a","abc",1,9,null],"maxLength":2,"maximum":5}`, []string{`"a"`, `1`}, []string{`"abc"`, `9`, `null`}},
		"an enum with a pattern":   {`{"enum":["a1","b","c22"],"pattern":"\\d$"}`, []string{`"a1"`, `"c22"`}, []string{`"b"`}},
		"a list of types":          {`{"type":["string","null"],"maxLength":1}`, []string{`null`, `"a"`, `""`}, []string{`"ab"`, `1`}},
		"anyOf beside properties":  {`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, []string{`{"a":1}`, `{"b":1}`, `{"a":1,"b":1}`}, []string{`{}`}},
		"allOf merges":             {`{"allOf":[{"properties":{"a":{"type":"integer","minimum":2}},"required":["a"]},{"properties":{"a":{"maximum":4},"b":{"type":"null"}}}]}`, []string{`{"a":3}`, `{"a":4,"b":null}`}, []string{`{"a":1}`, `{"a":5}`, `{"b":null}`}},
		"allOf with a closed one":  {`{"allOf":[{"properties":{"a":true},"additionalProperties":false},{"properties":{"b":true}}]}`, []string{`{"a":1}`, `{}`}, []string{`{"b":1}`}},
		"$ref with a sibling":      {`{"properties":{"a":{"$ref":"#/definitions/x~1y","description":"d","maximum":3}},"required":["a"],"definitions":{"x/y":{"type":"integer","minimum":2}}}`, []string{`{"a":2}`, `{"a":3}`}, []string{`{"a":4}`, `{"a":1}`}},
		"a tree":                   {`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"allOf":[{"$ref":"#/$defs/n"}]}}},"required":["v"]}}}`, []string{`{"v":1}`, `{"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]}`}, []string{`{"kids":[]}`, `{"v":1,"kids":[1]}`}},
		"a schema that is itself":  {`{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"]}`, []string{`{"next":null}`, `{"next":{"next":null}}`}, []string{`{}`}},
		"a list":                   {`{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`, []string{`[1]`, `[1, 2,3]`}, []string{`[]`, `[1,2,3,4]`, `["a"]`, `[1,]`}},
		"a tuple":                  {`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]}`, []string{`[1,"a"]`}, []string{`["a",1]`, `[1,"a",2]`}},
		"a tuple with more":        {`{"type":"array","items":[{"type":"integer"}],"additionalItems":{"type":"null"},"maxItems":3}`, []string{`[1]`, `[1,null,null]`}, []string{`[1,2]`, `[1,null,null,null]`}},
		"no items":                 {`{"type":"array","items":false}`, []string{`[]`, `[ ]`}, []string{`[1]`}},
		"any items":                {`{"type":"array"}`, []string{`[]`, `[1,"a",[{}]]`}, []string{`[1 2]`}},
		"lengths":                  {`{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"é😀x"`, `"\u00e9\n"`, `"\ud83d\ude00a"`}, []string{`"a"`, `"abcd"`, `"\ud83d\ude00"`}},
		"escapes":                  {`{"type":"string"}`, []string{`"\"\\\/\b\f\n\r\t\u00AF\uD7FF\ue000"`}, []string{`"\x"`, `"\ud83d"`, "\"\n\"", `"\u12"`}},
		"integers in bounds":       {`{"type":"integer","minimum":-12,"exclusiveMaximum":1250}`, []string{`-12`, `-1`, `0`, `9`, `999`, `1000`, `1249`}, []string{`-13`, `1250`, `01`, `-0`, `9999`}},
		"an integer over a bound":  {`{"type":"integer","minimum":37}`, []string{`37`, `99`, `100`, `123456789012`}, []string{`36`, `-40`, `4`}},
		"bounds of an int64":       {`{"type":"integer","minimum":-9223372036854775808,"maximum":9223372036854775807}`, []string{`-9007199254740993`, `0`, `9999999999999999`}, []string{`1.5`}},
		"numbers in bounds":        {`{"type":"number","minimum":0,"maximum":1}`, []string{`0`, `0.75`, `1`, `1.0`, `0.0`}, []string{`1.01`, `-0.5`, `2`, `1.`, `0.`}},
		"numbers in open bounds":   {`{"type":"number","exclusiveMinimum":-2.5,"exclusiveMaximum":0.25}`, []string{`-2.49`, `-2`, `0.2499`, `0`}, []string{`-2.5`, `-2.50`, `0.25`, `0.3`, `-3`}},
		"draft 4's exclusive":      {`{"type":"integer","minimum":3,"exclusiveMinimum":true}`, []string{`4`}, []string{`3`}},
		"cents":                    {`{"type":"number","multipleOf":0.01,"minimum":0}`, []string{`1.25`, `3`}, []string{`1.255`}},
		"a pattern":                {`{"type":"string","pattern":"^[A-Z][a-z]+(-[0-9]{2,4})?\\.(sql|csv)$"}`, []string{`"Orders-2024.csv"`, `"Ab.sql"`}, []string{`"orders.csv"`, `"Ab-1.sql"`, `"Ab.sql "`}},
		"a pattern's classes":      {`{"type":"string","pattern":"^\\d{4}\\w\\s[^\\d\"]$"}`, []string{`"1234a b"`, `"1234a\tb"`}, []string{`"12a4a b"`, `"1234a 5"`, `"1234a \""`}},
		"a pattern that escapes":   {`{"type":"string","pattern":"^a\\-b[\\]\\\\\"^-]\\/\\u00e9$"}`, []string{`"a-b]/é"`, `"a-b\\/é"`, `"a-b\"/é"`, `"a-b^/é"`, `"a-b-/é"`}, []string{`"a-bc/é"`}},
		"a pattern without ends":   {`{"type":"string","pattern":"b+"}`, []string{`"b"`, `"abba"`}, []string{`""`, `"a"`}},
		"anchors for each way":     {`{"type":"string","pattern":"^a|b$"}`, []string{`"ax"`, `"xb"`}, []string{`"xa"`, `"bx"`}},
		"groups of many kinds":     {`{"type":"string","pattern":"^(?:a|(?<n>b)){2,3}?(c|)$"}`, []string{`"ab"`, `"babc"`}, []string{`"a"`, `"abab"`}},
		"loops over nothing":       {`{"type":"string","pattern":"^((a?b*)*|c?)*$"}`, []string{`""`, `"abba"`, `"c"`, `"acb"`}, []string{`"d"`}},
		"a length that it keeps":   {`{"type":"string","pattern":"^[a-z]{2,5}$","minLength":1,"maxLength":5}`, []string{`"ab"`}, []string{`"a"`}},
		"dates":                    {`{"type":"string","format":"date"}`, []string{`"2024-02-29"`, `"2000-02-29"`, `"2023-12-31"`}, []string{`"2023-02-29"`, `"1900-02-29"`, `"2023-04-31"`, `"2023-13-01"`, `"2023-1-1"`}},
		"times":                    {`{"type":"string","format":"date-time"}`, []string{`"2024-01-31T23:59:59.123Z"`, `"2024-01-31T00:00:00+01:30"`}, []string{`"2024-01-31T24:00:00Z"`, `"2024-01-31T10:00:00"`}},
		"uuid":                     {`{"format":"uuid"}`, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"123e4567"`}},
		"a size of OpenAPI":        {`{"type":"integer","format":"int32"}`, []string{`5`}, []string{`"5"`}},
		"a discriminator":          {`{"oneOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/d"},{"type":"null"}],"discriminator":{"propertyName":"k"},"$defs":{"c":{"type":"object","properties":{"k":{"const":"c"},"x":{"type":"integer"}},"required":["k"]},"d":{"type":"object","properties":{"k":{"const":"d"}},"required":["k"]}}}`, []string{`{"k":"c","x":1}`, `{"k":"d"}`, `null`}, []string{`{"k":"e"}`, `{"k":"d","x":1}`}},
		"oneOf of ranges":          {`{"oneOf":[{"type":"integer","maximum":3},{"type":"integer","exclusiveMinimum":3}]}`, []string{`3`, `4`}, []string{`"a"`}},
		"unevaluatedProperties":    {`{"allOf":[{"properties":{"a":true}}],"properties":{"b":true},"unevaluatedProperties":false}`, []string{`{"a":1}`, `{"b":1}`}, []string{`{"c":1}`}},
		"keywords of other types":  {`{"type":"string","uniqueItems":true,"minimum":"x","patternProperties":{}}`, []string{`"a"`}, []string{`1`}},
	} {
		t.Run(name, func(t *testing.T) {
			gbnf, err := Compile(row.schema)
			if err != nil {
				t.Fatal(err)
			}
			r := newRecogniser(t, gbnf)
			for _, text := range row.derives {
				if !r.derives(text) {
					t.Errorf("%s is not derived\n%s", text, gbnf)
				}
			}
			for _, text := range row.derivesNo {
				if r.derives(text) {
					t.Errorf("%s is derived\n%s", text, gbnf)
				}
			}
		})
	}
	if gbnf, err := Compile(" "); gbnf != "" || err != nil {
		t.Errorf("no schema gave %q, %v", gbnf, err)
	}
}

func nested(open, inner, close string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(close, n)
}

func manyProperties(n int, more string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(`"property%d":{"type":"string"}`, i)
	}
	return `{"type":"object","properties":{` + strings.Join(names, ",") + `}` + more + `}`
}

func usesOf(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`"p%d":{"$ref":"#/$defs/h"}`, i)
	}
	return strings.Join(out, ",")
}

func withPattern(p string) string { return `{"type":"string","pattern":` + quote(p) + `}` }

func TestCompileRefuses(t *testing.T) {
	for name, row := range map[string]struct{ schema, want string }{
		"no JSON":                        {`{"type":`, "no JSON"},
		"two values":                     {`{} {}`, "behind"},
		"a number":                       {`7`, "must be an object"},
		"a list":                         {`[]`, "must be an object"},
		"broken UTF-8":                   {"{\"title\":\"\xff\"}", "UTF-8"},
		"a name twice":                   {`{"type":"string","type":"null"}`, `"type" is there twice`},
		"7,000 levels":                   {nested(`{"not":`, `{}`, `}`, 7_000), "nested"},
		"too large":                      {`{"const":"` + strings.Repeat("a", 1<<20) + `"}`, "bytes"},
		"nothing is allowed":             {`false`, "no value can satisfy"},
		"an unknown type":                {`{"type":"strin"}`, `unknown type "strin"`},
		"an unknown type among others":   {`{"properties":{"a":{"type":["string","date"]}}}`, "at $.properties.a"},
		"a path that must be quoted":     {`{"properties":{"a b":{"items":{"type":7}}}}`, `at $.properties["a b"].items`},
		"types that exclude each other":  {`{"allOf":[{"type":"string"},{"type":"null"}]}`, "exclude each other"},
		"a cyclic $ref":                  {`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`, "cyclic $ref"},
		"a cycle of two":                 {`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{"$ref":"#/$defs/A"}}}`, "cyclic $ref"},
		"a cycle in allOf":               {`{"allOf":[{"$ref":"#/$defs/A"}],"$defs":{"A":{"$ref":"#/$defs/A"}}}`, "cyclic $ref"},
		"a cycle through anyOf":          {`{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/A"}]}}}`, "cyclic $ref"},
		"a tree without leaves":          {`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, "no finite answer"},
		"a remote $ref":                  {`{"$ref":"https://example.com/a.json"}`, "remote"},
		"a $ref to a file":               {`{"$ref":"file:///etc/passwd"}`, "remote"},
		"a $ref to nothing":              {`{"$ref":"#/$defs/A"}`, "points to nothing"},
		"a $ref to a number":             {`{"$ref":"#/x","x":7}`, "no schema"},
		"a $ref that is a number":        {`{"$ref":7}`, "must be a string"},
		"an empty enum":                  {`{"enum":[]}`, "enum"},
		"an enum that is a number":       {`{"enum":7}`, "enum"},
		"an empty anyOf":                 {`{"anyOf":[]}`, "anyOf"},
		"an anyOf of a number":           {`{"anyOf":[7]}`, "must be a schema"},
		"properties that are a list":     {`{"properties":[]}`, "properties"},
		"required that is a word":        {`{"type":"object","required":"a"}`, "list of names"},
		"not":                            {`{"type":"object","properties":{"x":{"not":{"type":"null"}}}}`, `format: "not" at $.properties.x is not supported`},
		"if":                             {`{"if":{"type":"string"},"then":{"maxLength":1}}`, `"if" at $ is not`},
		"patternProperties":              {`{"type":"object","patternProperties":{"^a":{}}}`, `"patternProperties" at $`},
		"uniqueItems":                    {`{"properties":{"l":{"type":"array","uniqueItems":true}}}`, `"uniqueItems" at $.properties.l`},
		"an unknown format":              {`{"type":"string","format":"iri"}`, `"format" at $ is not supported; with "iri"; there are date`},
		"a step of 3":                    {`{"type":"integer","multipleOf":3}`, `"multipleOf" at $`},
		"oneOf that overlaps":            {`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, `"oneOf" at $ is not supported; here, because`},
		"oneOf of lists":                 {`{"oneOf":[{"type":"array","items":{"type":"string"}},{"type":"array","items":{"type":"null"}}]}`, "write anyOf"},
		"required but forbidden":         {`{"type":"object","required":["a"],"additionalProperties":false}`, `property "a"`},
		"20,000 optional properties":     {manyProperties(20_000, ""), "too many"},
		"a maxLength beyond all":         {`{"type":"string","maxLength":100000000}`, "maxLength"},
		"a maxItems of 1e300":            {`{"type":"array","items":{},"maxItems":1e300}`, "maxItems"},
		"a huge exponent":                {`{"type":"array","items":{},"maxItems":1e999999999}`, "maxItems"},
		"a negative minItems":            {`{"type":"array","items":{},"minItems":-1}`, "minItems"},
		"lengths the wrong way round":    {`{"type":"string","minLength":5,"maxLength":2}`, "minLength is over"},
		"numbers the wrong way round":    {`{"type":"integer","minimum":9,"maximum":1}`, "no number"},
		"nothing between exclusive ones": {`{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":2}`, "no number"},
		"a minimum that is a word":       {`{"type":"integer","minimum":"a"}`, "must be a number"},
		"too many alternatives":          {`{"allOf":[` + strings.Repeat(`{"anyOf":[{"maxLength":1},{"maxLength":2},{"maxLength":3}]},`, 7) + `{}]}`, "alternatives"},
		"alternatives used again":        {`{"properties":{` + usesOf(3000) + `},"$defs":{"h":{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"maxLength":3},`, 400), ",") + `]}}}`, "too often"},
		"a pattern of a number":          {`{"type":"string","pattern":7}`, "must be a string"},
		"a pattern with a length":        {`{"type":"string","pattern":"^a*$","maxLength":3}`, "write the length into the pattern"},
		"two patterns":                   {`{"allOf":[{"type":"string","pattern":"^a$"},{"pattern":"^b$"}]}`, "beside another"},
		"nothing to repeat":              {withPattern("^*$"), "nothing before it"},
		"a bare bracket":                 {withPattern("^]$"), "bare ]"},
		"looking ahead":                  {withPattern("^(?=a)$"), "(?"},
		"a reference":                    {withPattern(`^(a)\1$`), `\1`},
		"a boundary":                     {withPattern(`^\ba$`), `\b`},
		"an anchor in the middle":        {withPattern(`^(^a)$`), "^ in the middle"},
		"a group not closed":             {withPattern("^(a$"), "$ in the middle"},
		"a group not opened":             {withPattern("^a)$"), "without its ("},
		"1,000 groups":                   {withPattern("^" + nested("(", "a", ")", 1000) + "$"), "nested"},
		"nested repetitions":             {withPattern("^((((a{0,200}){0,200}){0,200}){0,200})$"), "multiply"},
		"a repetition of 9999":           {withPattern("^a{9999}$"), "9999"},
		"a repetition twice":             {withPattern("^a{2}{3}$"), "put that into a group"},
		"a class of nothing":             {withPattern("^[]$"), "empty class"},
		"a class of all but everything":  {withPattern(`^[^\s\S]$`), "every character"},
		"a range the wrong way round":    {withPattern("^[z-a]$"), "wrong way round"},
		"a NUL":                          {withPattern("^\x00$"), "NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			gbnf, err := Compile(row.schema)
			if fault.CodeOf(err) != fault.Invalid || !strings.Contains(fault.Public(err).Msg, row.want) {
				t.Errorf("error %v; want invalid with %q in it\n%.500s", err, row.want, gbnf)
			}
			if gbnf != "" {
				t.Errorf("a grammar beside an error")
			}
		})
	}
}

// TestCompileGrowsEvenly: what llama.cpp's converter cuts or writes with the square of its size.
func TestCompileGrowsEvenly(t *testing.T) {
	for name, row := range map[string]struct {
		schema string
		bytes  int
	}{
		"1,000 optional properties":  {manyProperties(1000, ""), 200_000},
		"1,000 beside further ones":  {manyProperties(1000, `,"additionalProperties":true`), 300_000},
		"a string of a million":      {`{"type":"string","minLength":5,"maxLength":1000000}`, 60_000},
		"lists in lists":             {`{"type":"array","maxItems":200,"items":{"type":"array","maxItems":200,"items":{"type":"string","maxLength":2000}}}`, 3000},
		"1,400 columns of an enum":   {`{"enum":["` + strings.Join(columns(100, 14), `","`) + `"]}`, 30_000},
		"one definition, often used": {`{"properties":{` + strings.TrimSuffix(strings.Repeat(`"p":{"$ref":"#/$defs/d"},`, 1), ",") + `},"$defs":{"d":` + manyProperties(50, "") + `}}`, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			gbnf, err := Compile(row.schema)
			if err != nil || len(gbnf) > row.bytes {
				t.Errorf("%d bytes, at most %d: %v", len(gbnf), row.bytes, err)
			}
		})
	}
}

func columns(tables, each int) []string {
	var out []string
	for i := range tables {
		for j := range each {
			out = append(out, fmt.Sprintf("table_%d.%s_%d", i, []string{"id", "name", "city", "customer_id", "created_at"}[j%5], j))
		}
	}
	return out
}

func TestFormatsCompile(t *testing.T) {
	for name := range formats {
		if _, err := Compile(`{"type":"string","format":"` + name + `"}`); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCompile: whatever comes in, there is an answer, and a grammar is one that llama.cpp can take.
func FuzzCompile(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"string","maxLength":3000}},"additionalProperties":true}`,
		`{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"k":{"items":{"$ref":"#/$defs/n"}}}}}}`,
		`{"type":"number","minimum":-1.5,"exclusiveMaximum":2e3,"multipleOf":0.1}`,
		`{"type":"string","pattern":"^([a-c]?|\\d+)*x{2,}$"}`, `{"oneOf":[{"const":1},{"enum":["a","ab"]}]}`,
		`{"allOf":[{"prefixItems":[true]},{"items":{"format":"date-time"}}],"minItems":3}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, schema string) {
		gbnf, err := Compile(schema)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Fatalf("%v", err)
			}
			return
		}
		if gbnf == "" {
			return
		}
		if err := check(gbnf, ours); err != nil {
			t.Fatalf("%v\n%s", err, gbnf)
		}
		if len(gbnf) > maxGrammarBytes {
			t.Fatalf("%d bytes", len(gbnf))
		}
	})
}
