package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// node is one JSON value of a schema. Its members keep their order, which becomes the order of the answer.
type node struct {
	id      int
	path    string
	kind    byte   // o, a, s, n (number), b, 0 (null)
	text    string // of a string; of a number, as written
	yes     bool   // of a boolean
	members []member
	index   map[string]*node // of the members, where they are many
	items   []*node
	parent  *node
}

type member struct {
	name  string
	value *node
}

// get finds a member of an object, or nil.
func (n *node) get(name string) *node {
	if n.index != nil {
		return n.index[name]
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// decode reads a schema. Repeated names are refused: parsers disagree about which of them holds.
func decode(text string) (*node, error) {
	if !utf8.ValidString(text) {
		return nil, refuse("", "it is no valid UTF-8")
	}
	d := &decoder{dec: json.NewDecoder(strings.NewReader(text))}
	d.dec.UseNumber()
	root, err := d.value("$", nil, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse("", "there is something behind it")
	}
	return root, nil
}

type decoder struct {
	dec *json.Decoder
	ids int
}

func (d *decoder) value(path string, parent *node, depth int) (*node, error) {
	if depth > maxSchemaDepth {
		return nil, refuse("", "it is nested over %d deep", maxSchemaDepth)
	}
	tok, err := d.dec.Token()
	if err != nil {
		return nil, refuse("", "it is no JSON: %v", err)
	}
	n := &node{id: d.ids, path: path, parent: parent}
	d.ids++
	switch v := tok.(type) {
	case string:
		n.kind, n.text = 's', v
	case json.Number:
		n.kind, n.text = 'n', v.String()
	case bool:
		n.kind, n.yes = 'b', v
	case nil:
		n.kind = '0'
	case json.Delim:
		if v == '{' {
			n.kind = 'o'
			return n, d.object(n, depth)
		}
		n.kind = 'a'
		for i := 0; d.dec.More(); i++ {
			item, err := d.value(fmt.Sprintf("%s[%d]", path, i), n, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
		if _, err := d.dec.Token(); err != nil {
			return nil, refuse("", "it is no JSON: %v", err)
		}
	}
	return n, nil
}

func (d *decoder) object(n *node, depth int) error {
	seen := map[string]bool{}
	for d.dec.More() {
		tok, err := d.dec.Token()
		if err != nil {
			return refuse("", "it is no JSON: %v", err)
		}
		name, _ := tok.(string)
		if seen[name] {
			return refuse(n.path, "%q is there twice", name)
		}
		seen[name] = true
		v, err := d.value(below(n.path, name), n, depth+1)
		if err != nil {
			return err
		}
		n.members = append(n.members, member{name, v})
	}
	if _, err := d.dec.Token(); err != nil {
		return refuse("", "it is no JSON: %v", err)
	}
	if len(n.members) > 16 {
		n.index = map[string]*node{}
		for _, m := range n.members {
			n.index[m.name] = m.value
		}
	}
	return nil
}

// below is the path of a member, such as $.properties.x or $.properties["a b"].
func below(path, name string) string {
	plain := name != ""
	for _, r := range name {
		plain = plain && (r == '_' || r == '-' || r == '$' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
	}
	if plain {
		return path + "." + name
	}
	return path + "[" + strconv.Quote(name) + "]"
}

// json writes a value compactly, as the answer must have it.
func (n *node) json() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	switch n.kind {
	case 's':
		b.WriteString(quote(n.text))
	case 'n':
		b.WriteString(n.text)
	case 'b':
		b.WriteString(strconv.FormatBool(n.yes))
	case '0':
		b.WriteString("null")
	case 'a':
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case 'o':
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quote(m.name) + ":")
			m.value.write(b)
		}
		b.WriteByte('}')
	}
}

// quote writes a JSON string with the fewest escapes, since that is how models write.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	// The encoder escapes U+2028 and U+2029, which JSON does not ask for.
	return lineEnds.Replace(strings.TrimSuffix(b.String(), "\n"))
}

var lineEnds = strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029")

// number gives a number's exact value. An exponent that would make a huge one is refused.
func (n *node) number() (*big.Rat, bool) {
	if n.kind != 'n' || len(n.text) > 64 {
		return nil, false
	}
	if _, exp, ok := strings.Cut(strings.ToLower(n.text), "e"); ok {
		if e, err := strconv.Atoi(exp); err != nil || e < -400 || e > 400 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(n.text)
}

// resolve finds what a reference points to.
func (n *node) resolve(pointer string) *node {
	if pointer == "" {
		return n
	}
	for _, name := range strings.Split(pointer, "/")[1:] {
		name = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
		switch n.kind {
		case 'o':
			n = n.get(name)
		case 'a':
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(n.items) {
				return nil
			}
			n = n.items[i]
		default:
			return nil
		}
		if n == nil {
			return nil
		}
	}
	return n
}
