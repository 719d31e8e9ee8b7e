package postgres

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

func digits(n int32) string { return strconv.Itoa(int(n)) }

// listShape is an array. Arrow's lists have one dimension and begin at the first element; PostgreSQL's types do not say
// that an array has, so it is checked for each value.
func listShape(elem shape, delimiter byte) shape {
	field := arrow.Field{Name: "item", Type: elem.arrow, Nullable: true, Metadata: elem.meta}
	s := shape{arrow: arrow.ListOfField(field), format: elem.format}
	s.add = func(b array.Builder, name string) appender {
		to := b.(*array.ListBuilder)
		l := list{name: name, to: to, elem: to.ValueBuilder(), value: elem.add(to.ValueBuilder(), name)}
		if elem.format == formatBinary {
			return l.binary
		}
		return func(src []byte) error { return l.text(src, delimiter) }
	}
	return s
}

// list adds arrays to a list column.
type list struct {
	name  string
	to    *array.ListBuilder
	elem  array.Builder
	value appender
}

func (l list) shaped() error {
	return rangeError(l.name, "an array of several dimensions or with a first index that is not 1, which a list does not show",
		"take it apart with unnest, or cast it to text")
}

// binary reads the wire format: dimensions, a flag for NULLs, the element's type, then for each dimension its size and
// first index, then each element behind its length, -1 for NULL. (src/backend/utils/adt/arrayfuncs.c, array_send)
func (l list) binary(src []byte) error {
	if len(src) < 12 {
		return broken(l.name)
	}
	switch int32(binary.BigEndian.Uint32(src)) {
	case 0:
		l.to.Append(true)
		return nil
	case 1:
	default:
		return l.shaped()
	}
	if len(src) < 20 {
		return broken(l.name)
	}
	n, first := int(int32(binary.BigEndian.Uint32(src[12:]))), int32(binary.BigEndian.Uint32(src[16:]))
	if first != 1 {
		return l.shaped()
	}
	src = src[20:]
	if n < 0 || n > len(src)/4 {
		return broken(l.name)
	}
	l.to.Append(true)
	l.elem.Reserve(n)
	for range n {
		if len(src) < 4 {
			return broken(l.name)
		}
		size := int32(binary.BigEndian.Uint32(src))
		src = src[4:]
		if size < 0 {
			l.elem.AppendNull()
			continue
		}
		if int64(size) > int64(len(src)) {
			return broken(l.name)
		}
		if err := l.value(src[:size]); err != nil {
			return err
		}
		src = src[size:]
	}
	if len(src) != 0 {
		return broken(l.name)
	}
	return nil
}

// text reads the text form, for elements that come as text: {a,"b c",NULL}, with a backslash before quotes and
// backslashes. Bounds, as in [0:1]={…}, and a brace within are more than a list. (arrayfuncs.c, array_out)
func (l list) text(src []byte, delimiter byte) error {
	if len(src) > 0 && src[0] == '[' {
		return l.shaped()
	}
	if len(src) < 2 || src[0] != '{' || src[len(src)-1] != '}' {
		return broken(l.name)
	}
	src = src[1 : len(src)-1]
	l.to.Append(true)
	if len(src) == 0 {
		return nil
	}
	for {
		switch {
		case len(src) > 0 && src[0] == '{':
			return l.shaped()
		case len(src) > 0 && src[0] == '"':
			value, rest, ok := unquote(src[1:])
			if !ok {
				return broken(l.name)
			}
			if err := l.value(value); err != nil {
				return err
			}
			src = rest
		default:
			end := bytes.IndexByte(src, delimiter)
			if end < 0 {
				end = len(src)
			}
			if value := src[:end]; strings.EqualFold(string(value), "NULL") {
				l.elem.AppendNull()
			} else if err := l.value(value); err != nil {
				return err
			}
			src = src[end:]
		}
		switch {
		case len(src) == 0:
			return nil
		case src[0] != delimiter:
			return broken(l.name)
		}
		src = src[1:]
	}
}

// unquote reads up to the closing quote.
func unquote(src []byte) (value, rest []byte, ok bool) {
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			return value, src[i+1:], true
		case '\\':
			if i++; i == len(src) {
				return nil, nil, false
			}
		}
		value = append(value, src[i])
	}
	return nil, nil, false
}

// vectorShape is pgvector's vector or halfvec: a list of floats. On the wire: the number of elements and an unused one, 16
// bits each, then the elements of 32 or 16 bits. (pgvector, src/vector.c, vector_send)
func vectorShape(halves bool) shape {
	size := 4
	if halves {
		size = 2
	}
	return shape{arrow: arrow.ListOf(arrow.PrimitiveTypes.Float32), format: formatBinary, add: func(b array.Builder, name string) appender {
		to := b.(*array.ListBuilder)
		elem := to.ValueBuilder().(*array.Float32Builder)
		return func(src []byte) error {
			if len(src) < 4 || len(src) != 4+size*int(binary.BigEndian.Uint16(src)) {
				return broken(name)
			}
			to.Append(true)
			for src = src[4:]; len(src) > 0; src = src[size:] {
				if halves {
					elem.Append(half(src))
				} else {
					elem.Append(math.Float32frombits(binary.BigEndian.Uint32(src)))
				}
			}
			return nil
		}
	}}
}
