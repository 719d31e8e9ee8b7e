package sqlguard

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// pgLayout is how the messages of one kind lie in memory: all fields that the grammar's file gives them. protobuf's own
// reflection finds the same with a closure and an allocation for each field, which took longer than the parser.
type pgLayout struct {
	name    string       // of the message
	goType  reflect.Type // the struct
	unknown int          // the struct's field with what the grammar does not know
	at      int          // the struct's field with the place in the text, -1 when there is none
	fields  []pgField
}

// pgField is a field of a message, or a oneof of it, which holds one of its members.
type pgField struct {
	index int    // in the struct
	name  string // in the grammar's file; a oneof has none
	json  string // in the parser's JSON
	tag   uint64 // in protobuf's wire format
	kind  pgKind
	place bool // where something stands in the text
	words []string
	inner *pgLayout // of a message, or of each in a list
	// members are those of a oneof, by the type that wraps them, and by the name in JSON.
	members map[reflect.Type]*pgField
	named   map[string]*pgField
	wrapper reflect.Type // of a member of a oneof
}

type pgKind int

const (
	pgString  pgKind = iota
	pgBool           //
	pgInt            // 32 and 64 bits
	pgUint           // 32 and 64 bits
	pgEnum           // words has its words by number, "" where there is none
	pgMessage        // a pointer
	pgList           // of pointers to messages
	pgOneof          // of messages
	pgOther          // no query has one: numbers with a fraction, lists of numbers
)

// pgLayouts are those of all messages that a tree can hold.
var pgLayouts = sync.OnceValue(func() map[reflect.Type]*pgLayout {
	all := map[reflect.Type]*pgLayout{}
	pgAddLayout(all, reflect.TypeFor[pg_query.ParseResult]())
	return all
})

// pgLayoutOf finds the layout of a message and where the message lies.
func pgLayoutOf(m protoreflect.Message) (*pgLayout, reflect.Value) {
	v := reflect.ValueOf(m.Interface()).Elem()
	return pgLayouts()[v.Type()], v
}

// pgReflect gives the message that a pointer among the fields of another points to.
func pgReflect(v reflect.Value) protoreflect.Message {
	return v.Interface().(protoreflect.ProtoMessage).ProtoReflect()
}

// pgAddLayout reads a struct that protoc-gen-go made, and those below it. It panics when it does not find each field of the
// grammar's file in the struct: the library has another version then, and the first test says so.
func pgAddLayout(all map[reflect.Type]*pgLayout, t reflect.Type) *pgLayout {
	if l := all[t]; l != nil {
		return l
	}
	m := reflect.New(t).Interface().(protoreflect.ProtoMessage).ProtoReflect()
	d := m.Descriptor()
	l := &pgLayout{name: string(d.Name()), goType: t, unknown: -1, at: -1}
	all[t] = l
	found := 0
	for i := range t.NumField() {
		f := t.Field(i)
		name := pgTagName(f)
		switch {
		case f.Name == "unknownFields":
			l.unknown = i
		case f.Tag.Get("protobuf_oneof") != "":
			o := pgField{index: i, kind: pgOneof, members: map[reflect.Type]*pgField{}, named: map[string]*pgField{}}
			fields := d.Oneofs().ByName(protoreflect.Name(f.Tag.Get("protobuf_oneof"))).Fields()
			for k := range fields.Len() {
				m.Set(fields.Get(k), m.NewField(fields.Get(k)))
				wrapper := reflect.ValueOf(m.Interface()).Elem().Field(i).Elem().Type()
				member := pgReadField(all, fields.Get(k), 0, wrapper.Elem().Field(0).Type)
				member.wrapper = wrapper.Elem()
				o.members[wrapper], o.named[member.json] = &member, &member
				found++
			}
			l.fields = append(l.fields, o)
		case name != "":
			l.fields = append(l.fields, pgReadField(all, d.Fields().ByName(protoreflect.Name(name)), i, f.Type))
			found++
			if name == "location" && l.fields[len(l.fields)-1].place {
				l.at = i
			}
		}
	}
	if l.unknown < 0 || found != d.Fields().Len() || len(l.fields) > 64 {
		panic(fmt.Sprintf("sqlguard: the message %s has %d fields, of which %d were found", d.Name(), d.Fields().Len(), found))
	}
	return l
}

func pgReadField(all map[reflect.Type]*pgLayout, d protoreflect.FieldDescriptor, index int, t reflect.Type) pgField {
	f := pgField{index: index, name: string(d.Name()), json: d.JSONName(), kind: pgOther, tag: protowire.EncodeTag(d.Number(), protowire.VarintType)}
	if d.Message() != nil || d.Kind() == protoreflect.StringKind {
		f.tag = protowire.EncodeTag(d.Number(), protowire.BytesType)
	}
	switch {
	case d.IsList() && d.Message() != nil:
		f.kind, f.inner = pgList, pgAddLayout(all, t.Elem().Elem())
	case d.IsList():
	case d.Message() != nil:
		f.kind, f.inner = pgMessage, pgAddLayout(all, t.Elem())
	case d.Enum() != nil:
		f.kind = pgEnum
		for i := range d.Enum().Values().Len() {
			v := d.Enum().Values().Get(i)
			for int(v.Number()) >= len(f.words) {
				f.words = append(f.words, "")
			}
			f.words[v.Number()] = string(v.Name())
		}
	case d.Kind() == protoreflect.StringKind:
		f.kind = pgString
	case d.Kind() == protoreflect.BoolKind:
		f.kind = pgBool
	case d.Kind() == protoreflect.Int32Kind, d.Kind() == protoreflect.Int64Kind:
		f.kind = pgInt
		f.place = d.Kind() == protoreflect.Int32Kind && strings.HasSuffix(f.name, "location")
	case d.Kind() == protoreflect.Uint32Kind, d.Kind() == protoreflect.Uint64Kind:
		f.kind = pgUint
	}
	return f
}

// pgTagName is the name that the grammar's file gives a struct's field, "" when it is none of its fields.
func pgTagName(f reflect.StructField) string {
	for part := range strings.SplitSeq(f.Tag.Get("protobuf"), ",") {
		if name, ok := strings.CutPrefix(part, "name="); ok {
			return name
		}
	}
	return ""
}

// has tells whether a field of a message is populated.
func (f *pgField) has(m reflect.Value) bool {
	v := m.Field(f.index)
	switch f.kind {
	case pgString, pgList:
		return v.Len() > 0
	case pgOther:
		return v.Kind() == reflect.Slice && v.Len() > 0 || v.Kind() != reflect.Slice && !v.IsZero()
	}
	return !v.IsZero()
}

// word gives the word of an enumeration that a message has in the field, "" when it is none of the grammar's.
func (f *pgField) word(m reflect.Value) string {
	if n := m.Field(f.index).Int(); n >= 0 && n < int64(len(f.words)) {
		return f.words[n]
	}
	return ""
}

// member gives what a oneof of a message holds, and its field; nil when it holds nothing.
func (f *pgField) member(m reflect.Value) (*pgField, reflect.Value) {
	v := m.Field(f.index)
	if v.IsNil() {
		return nil, v
	}
	return f.members[v.Elem().Type()], v.Elem().Elem().Field(0)
}

// deeper tells whether the messages of a message nest deeper than a bound.
func (l *pgLayout) deeper(m reflect.Value, bound int) bool {
	if bound < 0 {
		return true
	}
	for i := range l.fields {
		f := &l.fields[i]
		switch f.kind {
		case pgMessage:
			if v := m.Field(f.index); !v.IsNil() && f.inner.deeper(v.Elem(), bound-1) {
				return true
			}
		case pgOneof:
			if in, v := f.member(m); in != nil && !v.IsNil() && in.inner.deeper(v.Elem(), bound-1) {
				return true
			}
		case pgList:
			list := m.Field(f.index)
			for k := range list.Len() {
				if v := list.Index(k); !v.IsNil() && f.inner.deeper(v.Elem(), bound-1) {
					return true
				}
			}
		}
	}
	return false
}
