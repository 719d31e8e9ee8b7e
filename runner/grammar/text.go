package grammar

import (
	"maps"
	"slices"
	"strings"
)

// formats are written as regular expressions. Each matches only what the format allows; the less usual spellings of mail addresses
// and URLs are left out.
var formats = map[string]string{
	"date": `^` + day + `$`, "time": `^` + clock + `$`, "date-time": `^` + day + `T` + clock + `$`,
	"uuid":     `^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`,
	"email":    `^[A-Za-z0-9_+-]{1,30}(\.[A-Za-z0-9_+-]{1,30}){0,5}@` + host + `\.[a-zA-Z]{2,10}$`,
	"hostname": `^` + host + `$`,
	"ipv4":     `^` + octet + `(\.` + octet + `){3}$`,
	"ipv6":     `^[0-9a-fA-F]{1,4}(:[0-9a-fA-F]{1,4}){7}$`,
	"uri":      `^[a-z][a-z0-9+.-]{0,15}://` + host + `(:[1-9][0-9]{0,3})?(/` + urlChar + `*)*(\?(` + urlChar + `|[/?])*)?(#(` + urlChar + `|[/?])*)?$`,
	"duration": `^P([0-9]{1,4}W|[0-9]{1,4}D|([0-9]{1,4}D)?T([0-9]{1,4}H([0-9]{1,4}M([0-9]{1,4}S)?)?|[0-9]{1,4}M([0-9]{1,4}S)?|[0-9]{1,4}S)|[0-9]{1,4}Y([0-9]{1,2}M([0-9]{1,3}D)?)?|[0-9]{1,4}M([0-9]{1,3}D)?)$`,
}

const (
	day = `([0-9]{4}-(0[13578]-(0[1-9]|[12][0-9]|3[01])|1[02]-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))` +
		`|([0-9][0-9](0[48]|[2468][048]|[13579][26])|(0[048]|[2468][048]|[13579][26])00)-02-29)`
	clock   = `([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])`
	label   = `[a-zA-Z0-9]([a-zA-Z0-9]|-[a-zA-Z0-9]){0,29}`
	host    = label + `(\.` + label + `){0,3}`
	octet   = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	urlChar = `([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})`
)

// sizes are formats of OpenAPI that say how a program holds a value, not what it looks like.
var sizes = []string{"int32", "int64", "uint32", "uint64", "int", "uint", "float", "double", "decimal", "password", "binary"}

// text writes a string: by its pattern or format, or by its length.
func (c *compiler) text(f *form, hint string) (string, error) {
	least, most, err := limits(f.nodes, "minLength", "maxLength")
	if err != nil {
		return "", err
	}
	var re *regex
	for _, n := range f.nodes {
		for _, keyword := range []string{"pattern", "format"} {
			v := n.get(keyword)
			if v == nil {
				continue
			}
			if keyword == "format" && slices.Contains(sizes, v.text) {
				continue
			}
			if re != nil && re.source != v.text {
				return "", unsupported(n, keyword, "beside another pattern or format")
			}
			if keyword == "pattern" {
				re, err = readPattern(v)
			} else {
				re, err = readFormat(n, v)
			}
			if err != nil {
				return "", err
			}
			if low, high := re.lengths(); least > low || most >= 0 && (high < 0 || high > most) {
				return "", unsupported(n, keyword, "beside a minLength or maxLength that it does not keep by itself; write the length into the pattern, as in {1,20}")
			}
		}
	}
	if re != nil {
		return c.pattern(re, hint)
	}
	if least == 0 && most < 0 {
		return c.primitive("string"), nil
	}
	body, err := c.repetition(c.primitive("char"), least, most)
	return `"\"" ` + body + ` "\""`, err
}

func readFormat(n, v *node) (*regex, error) {
	source, ok := formats[v.text]
	if v.kind != 's' || !ok {
		return nil, unsupported(n, "format", "with "+v.json()+"; there are "+strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
	}
	re, err := parsePattern(source)
	if err != nil {
		return nil, err // a mistake in the table above; a test compiles each
	}
	re.source = v.text
	return re, nil
}

// readPattern parses a schema's pattern.
func readPattern(v *node) (*regex, error) {
	if v.kind != 's' {
		return nil, refuse(v.path, "pattern must be a string")
	}
	re, err := parsePattern(v.text)
	if err != nil {
		return nil, refuse(v.path, "pattern %s: %v", v.json(), err)
	}
	return re, nil
}
