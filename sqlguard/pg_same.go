package sqlguard

import (
	"reflect"
	"strconv"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// pgSame tells whether the parser's JSON of a text is exactly one statement, and that statement the given one but for the
// places of its parts in the text.
//
// The parser writes its trees as protobuf and as JSON from one list of fields (pg_query_outfuncs_defs.c), so neither has
// what the other lacks; JSON takes it a quarter of the time. What this reader does not expect is a difference.
func pgSame(json string, stmt *pg_query.Node) bool {
	r := pgReader{s: json}
	raw := reflect.ValueOf(&pg_query.RawStmt{Stmt: stmt}).Elem()
	return r.take(`{"version":`) && r.skipNumber() && r.take(`,"stmts":[`) && r.message(raw, pgLayouts()[raw.Type()]) && r.take(`]}`) && r.at == len(r.s)
}

// pgReader reads the parser's JSON, which has no spaces between its parts.
type pgReader struct {
	s  string
	at int
}

// take passes over a text when it comes next.
func (r *pgReader) take(text string) bool {
	if !strings.HasPrefix(r.s[r.at:], text) {
		return false
	}
	r.at += len(text)
	return true
}

// message tells whether an object comes next that says the same as a message.
func (r *pgReader) message(m reflect.Value, l *pgLayout) bool {
	if m.Field(l.unknown).Len() > 0 || !r.take("{") {
		return false
	}
	var seen uint64 // the fields that the object had, as bits
	next := 0       // the fields come in the order of the grammar's file
	for !r.take("}") {
		if seen != 0 && !r.take(",") {
			return false
		}
		name, ok := r.name()
		if !ok {
			return false
		}
		i := l.find(name, next, m)
		if i < 0 || seen&(1<<i) != 0 || !r.value(&l.fields[i], m) {
			return false
		}
		seen |= 1 << i
		next = i + 1
	}
	for i := range l.fields {
		if f := &l.fields[i]; seen&(1<<i) == 0 && !f.place && f.has(m) {
			return false
		}
	}
	return true
}

// find gives the field of a name, looking at next first, or -1. A oneof has the name of what the message has in it.
func (l *pgLayout) find(name string, next int, m reflect.Value) int {
	for i := range l.fields {
		i = (next + i) % len(l.fields)
		f := &l.fields[i]
		if f.kind == pgOneof {
			f, _ = f.member(m)
		}
		if f != nil && f.json == name {
			return i
		}
	}
	return -1
}

// value tells whether the value of a field of a message comes next. That of a place may be any number.
func (r *pgReader) value(f *pgField, m reflect.Value) bool {
	v := m.Field(f.index)
	switch f.kind {
	case pgString:
		return r.text(v.String())
	case pgBool:
		return v.Bool() && r.take("true") || !v.Bool() && r.take("false")
	case pgInt:
		return f.place && r.skipNumber() || !f.place && r.number(strconv.AppendInt(nil, v.Int(), 10))
	case pgUint:
		return r.number(strconv.AppendUint(nil, v.Uint(), 10))
	case pgEnum:
		word := f.word(m)
		return word != "" && r.text(word)
	case pgMessage:
		return !v.IsNil() && r.message(v.Elem(), f.inner)
	case pgOneof:
		in, v := f.member(m)
		return in != nil && in.kind == pgMessage && !v.IsNil() && r.message(v.Elem(), in.inner)
	case pgList:
		if !r.take("[") {
			return false
		}
		for i := range v.Len() {
			e := v.Index(i)
			if i > 0 && !r.take(",") || e.IsNil() || !r.message(e.Elem(), f.inner) {
				return false
			}
		}
		return r.take("]")
	}
	return false
}

// name reads the name of a part of an object.
func (r *pgReader) name() (string, bool) {
	if !r.take(`"`) {
		return "", false
	}
	n := strings.IndexByte(r.s[r.at:], '"')
	if n < 0 {
		return "", false
	}
	name := r.s[r.at : r.at+n]
	r.at += n
	return name, r.take(`":`)
}

// number tells whether a number comes next, written in this way.
func (r *pgReader) number(digits []byte) bool {
	begin := r.at
	return r.skipNumber() && r.s[begin:r.at] == string(digits)
}

func (r *pgReader) skipNumber() bool {
	begin := r.at
	for r.at < len(r.s) && (r.s[r.at] == '-' || '0' <= r.s[r.at] && r.s[r.at] <= '9') {
		r.at++
	}
	return r.at > begin
}

// text tells whether a string comes next that has this value.
func (r *pgReader) text(want string) bool {
	if !r.take(`"`) {
		return false
	}
	for i := 0; r.at < len(r.s); i++ {
		c := r.s[r.at]
		r.at++
		switch {
		case c == '"':
			return i == len(want)
		case c == '\\':
			var ok bool
			if c, ok = r.escaped(); !ok {
				return false
			}
		}
		if i >= len(want) || want[i] != c {
			return false
		}
	}
	return false
}

// escaped reads what stands behind a backslash. The parser escapes single bytes of ASCII.
func (r *pgReader) escaped() (byte, bool) {
	if r.at >= len(r.s) {
		return 0, false
	}
	c := r.s[r.at]
	r.at++
	if i := strings.IndexByte(`bfnrt"\`, c); i >= 0 {
		return "\b\f\n\r\t\"\\"[i], true
	}
	if c != 'u' || r.at+4 > len(r.s) {
		return 0, false
	}
	n, err := strconv.ParseUint(r.s[r.at:r.at+4], 16, 7)
	r.at += 4
	return byte(n), err == nil
}
