package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"
)

// drawer makes random schemas and, beside them, random documents that may or may not fit.
type drawer struct{ *rand.Rand }

func (d drawer) pick(list ...string) string { return list[d.Intn(len(list))] }

func (d drawer) names() []string {
	all := []string{"a", "ab", "abc", "b", "ü", "x y", "q\"t"}
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:d.Intn(5)]
}

func (d drawer) bound() string {
	return d.pick("-1200", "-37.5", "-10", "-1", "-0.25", "0", "0.5", "1", "3", "9.75", "10", "99", "100", "1234.5", "20000")
}

func (d drawer) schema(depth int) string {
	kinds := []string{"string", "length", "pattern", "format", "integer", "number", "enum", "const", "types", "any"}
	if depth > 0 {
		kinds = append(kinds, "object", "object", "object", "array", "tuple", "anyOf", "allOf", "oneOf", "ref")
	}
	switch d.pick(kinds...) {
	case "length":
		low := d.Intn(4)
		return fmt.Sprintf(`{"type":"string","minLength":%d,"maxLength":%d}`, low, low+d.Intn(4))
	case "pattern":
		return `{"type":"string","pattern":` + d.pick(`"^[a-c]{2,4}$"`, `"^(x|yz?)*-\\d+$"`, `"ab+"`, `"^\\w+@[^\\s\"]+$|^$"`, `"^(a?b?)*$"`, `"^[^a-z]{1,3}\\\\$"`, `"^\\xe9.\\/"`) + `}`
	case "format":
		return `{"type":"string","format":` + d.pick(`"date"`, `"date-time"`, `"uuid"`) + `}`
	case "integer", "number":
		kind := d.pick("integer", "number")
		s := `{"type":"` + kind + `"`
		if d.Intn(2) == 0 {
			s += `,"` + d.pick("minimum", "exclusiveMinimum") + `":` + d.bound()
		}
		if d.Intn(2) == 0 {
			s += `,"` + d.pick("maximum", "exclusiveMaximum") + `":` + d.bound()
		}
		if kind == "number" && d.Intn(4) == 0 {
			s += `,"multipleOf":0.01`
		}
		return s + "}"
	case "enum":
		return `{"enum":["city","customer","customer_id",null,1.5,true,{"a":[1]},"c\"\\\n"]}`
	case "const":
		return `{"const":` + d.pick(`"x"`, `"y"`, "7", `[1,"a"]`) + `}`
	case "types":
		return `{"type":["string","null","boolean","integer"],"maxLength":2,"minimum":5}`
	case "any":
		return d.pick("{}", "true")
	case "object":
		return d.object(depth)
	case "array":
		low := d.Intn(3)
		return fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, d.schema(depth-1), low, low+d.Intn(3))
	case "tuple":
		return fmt.Sprintf(`{"type":"array","prefixItems":[%s,%s],"items":%s}`, d.schema(depth-1), d.schema(depth-1), d.pick("false", d.schema(depth-1)))
	case "anyOf":
		return `{"anyOf":[` + d.schema(depth-1) + "," + d.schema(depth-1) + "]}"
	case "oneOf":
		return fmt.Sprintf(`{"oneOf":[{"type":"object","properties":{"k":{"const":"p"},"v":%s},"required":["k"]},{"type":"object","properties":{"k":{"enum":["q","r"]}},"required":["k"]},%s]}`,
			d.schema(depth-1), d.pick(`{"type":"null"}`, d.schema(depth-1)))
	case "allOf":
		return `{"allOf":[` + d.object(depth) + "," + d.object(depth) + "]}"
	case "ref":
		return `{"$ref":"#/$defs/T"}`
	}
	return `{"type":"string"}`
}

func (d drawer) object(depth int) string {
	var props, required []string
	for _, name := range d.names() {
		q, _ := json.Marshal(name)
		props = append(props, string(q)+":"+d.schema(depth-1))
		if d.Intn(2) == 0 {
			required = append(required, string(q))
		}
	}
	s := `{"type":"object","properties":{` + strings.Join(props, ",") + `},"required":[` + strings.Join(required, ",") + "]"
	switch d.Intn(4) {
	case 0:
		s += `,"additionalProperties":false`
	case 1:
		s += `,"additionalProperties":` + d.pick("true", d.schema(0))
	}
	return s + "}"
}

// whole adds the definition that references go to, a tree.
func (d drawer) whole(depth int) string {
	return `{"allOf":[` + d.schema(depth) + `],"$defs":{"T":{"type":"object","properties":{"v":{"type":"integer"},"l":{"$ref":"#/$defs/T"},"r":{"anyOf":[{"$ref":"#/$defs/T"},{"type":"null"}]}},"required":["v"]}}}`
}

func (d drawer) document(depth int) any {
	n := 8
	if depth > 0 {
		n = 11
	}
	switch d.Intn(n) {
	case 0:
		return nil
	case 1:
		return d.Intn(2) == 0
	case 2, 3:
		return json.Number(d.bound())
	case 4:
		return d.pick("city", "customer", "customer_", "x", "p", "q", "ab", "abc", "", "c\"\\\n")
	case 5:
		return d.pick("2024-02-29", "2023-02-29", "2024-02-29T10:00:00Z", "yz-12", "zabbz")
	case 6:
		return json.Number(d.pick("7", "0.01", "0.001", "12", "-3", "9.75", "9.76", "1200", "99.9999"))
	case 7:
		return d.pick("aab", "é1/", "AB\\", "a@b")
	case 8:
		list := []any{}
		for range d.Intn(4) {
			list = append(list, d.document(depth-1))
		}
		return list
	}
	m := map[string]any{}
	for _, name := range append(d.names(), d.pick("k", "v", "l", "r")) {
		m[name] = d.document(depth - 1)
	}
	return m
}

// TestDerivationsAreValid: whatever a compiled grammar derives is JSON that an independent validator accepts, and what the validator
// refuses is not derived.
func TestDerivationsAreValid(t *testing.T) {
	compiled, derived, refused := 0, 0, 0
	for seed := range int64(3000) {
		d := drawer{rand.New(rand.NewSource(seed))}
		schema := d.whole(1 + int(seed%3))
		gbnf, err := Compile(schema)
		if err != nil {
			continue // a oneOf that overlaps, bounds that exclude each other
		}
		compiled++
		root, err := parseJSON(schema)
		if err != nil {
			t.Fatal(err)
		}
		draw, rec := newDeriver(t, gbnf, d.Rand), newRecogniser(t, gbnf)
		for i := range 12 {
			text := draw.text(5 + 20*i)
			doc, err := parseJSON(text)
			if err != nil {
				if strings.Contains(err.Error(), "twice") {
					continue // two further properties of one name; only the last counts
				}
				t.Fatalf("seed %d: %v: %q\n%s\n%s", seed, err, text, schema, gbnf)
			}
			if derived++; !valid(root, root, doc) {
				t.Fatalf("seed %d: %s is derived but not valid\n%s\n%s", seed, text, schema, gbnf)
			}
			if len(text) < 300 && !rec.derives(text) {
				t.Fatalf("seed %d: the recogniser does not know %s\n%s", seed, text, gbnf)
			}
		}
		for range 12 {
			doc := d.document(2)
			text, _ := json.Marshal(doc)
			doc, _ = parseJSON(string(text))
			if !valid(root, root, doc) {
				if refused++; rec.derives(string(text)) {
					t.Fatalf("seed %d: %s is not valid, but derivable\n%s\n%s", seed, text, schema, gbnf)
				}
			}
		}
	}
	t.Logf("%d schemas, %d derivations, %d wrong documents", compiled, derived, refused)
	if compiled < 1500 || derived < 10_000 || refused < 10_000 {
		t.Errorf("too few to say anything: %d schemas, %d derivations, %d wrong documents", compiled, derived, refused)
	}
}
