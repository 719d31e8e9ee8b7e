package sqlguard

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"
)

// pgParse gives the tree of a text, as pg_query.Parse does. It reads the parser's JSON, because writing protobuf takes the
// parser four times as long as that, and most of its time. An error is a *parser.Error, or errUnreadable.
func pgParse(sql string) (*pg_query.ParseResult, error) {
	json, err := parser.ParseToJSON(sql)
	if err != nil {
		return nil, err
	}
	r, tree := pgReader{s: json}, &pg_query.ParseResult{}
	v := reflect.ValueOf(tree).Elem()
	if !utf8.ValidString(json) || !r.readMessage(v, pgLayouts()[v.Type()], maxMessages) || r.at != len(json) {
		return nil, errUnreadable
	}
	return tree, nil
}

// errUnreadable is what a tree gives that nests too deeply, or has what pgReader does not expect: no query has.
var errUnreadable = errors.New("sqlguard: the parser's tree cannot be read")

// readMessage reads an object into an empty message. Messages may nest as deeply as depth says.
func (r *pgReader) readMessage(m reflect.Value, l *pgLayout, depth int) bool {
	if depth < 0 || !r.take("{") {
		return false
	}
	next := 0
	for first := true; !r.take("}"); first = false {
		if !first && !r.take(",") {
			return false
		}
		name, ok := r.name()
		if !ok {
			return false
		}
		i, f := l.named(name, next)
		if f == nil || l.fields[i].has(m) || !r.readValue(m.Field(l.fields[i].index), f, depth) {
			return false
		}
		next = i + 1
	}
	return true
}

// named gives the field of a name and its number, looking at next first. That of a member of a oneof is the oneof's.
func (l *pgLayout) named(name string, next int) (int, *pgField) {
	for k := range l.fields {
		i := (next + k) % len(l.fields)
		f := &l.fields[i]
		if f.kind == pgOneof {
			f = f.named[name]
		}
		if f != nil && f.json == name {
			return i, f
		}
	}
	return 0, nil
}

// readValue reads the value of a field, or of the member of a oneof, to where it belongs.
func (r *pgReader) readValue(v reflect.Value, f *pgField, depth int) bool {
	switch f.kind {
	case pgString:
		s, ok := r.readText()
		v.SetString(s)
		return ok
	case pgBool:
		yes := r.take("true")
		v.SetBool(yes)
		return yes || r.take("false")
	case pgInt:
		begin := r.at
		r.skipNumber()
		n, err := strconv.ParseInt(r.s[begin:r.at], 10, v.Type().Bits())
		v.SetInt(n)
		return err == nil
	case pgUint:
		begin := r.at
		r.skipNumber()
		n, err := strconv.ParseUint(r.s[begin:r.at], 10, v.Type().Bits())
		v.SetUint(n)
		return err == nil
	case pgEnum:
		word, ok := r.readText()
		n := slices.Index(f.words, word)
		v.SetInt(int64(n))
		return ok && word != "" && n >= 0
	case pgMessage:
		in := reflect.New(f.inner.goType)
		if f.wrapper != nil {
			w := reflect.New(f.wrapper)
			w.Elem().Field(0).Set(in)
			v.Set(w)
		} else {
			v.Set(in)
		}
		return r.readMessage(in.Elem(), f.inner, depth-1)
	case pgList:
		return r.readList(v, f, depth)
	}
	return false
}

func (r *pgReader) readList(v reflect.Value, f *pgField, depth int) bool {
	if !r.take("[") {
		return false
	}
	nodes, areNodes := v.Addr().Interface().(*[]*pg_query.Node)
	for first := true; !r.take("]"); first = false {
		if !first && !r.take(",") {
			return false
		}
		var in reflect.Value
		if areNodes {
			n := &pg_query.Node{}
			*nodes = append(*nodes, n)
			in = reflect.ValueOf(n)
		} else {
			in = reflect.New(f.inner.goType)
			v.Set(reflect.Append(v, in))
		}
		if !r.readMessage(in.Elem(), f.inner, depth-1) {
			return false
		}
	}
	return true
}

// readText reads a string. It is a part of the whole text where it has nothing escaped.
func (r *pgReader) readText() (string, bool) {
	if !r.take(`"`) {
		return "", false
	}
	n := strings.IndexByte(r.s[r.at:], '"')
	if n < 0 {
		return "", false
	}
	if plain := r.s[r.at : r.at+n]; strings.IndexByte(plain, '\\') < 0 {
		r.at += n + 1
		return plain, true
	}
	var b strings.Builder
	for r.at < len(r.s) {
		c := r.s[r.at]
		r.at++
		switch c {
		case '"':
			return b.String(), true
		case '\\':
			var ok bool
			if c, ok = r.escaped(); !ok {
				return "", false
			}
		}
		b.WriteByte(c)
	}
	return "", false
}
