package duckdb

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sluice/fault"
)

// The engine runs with arrow_lossless_conversion, or it would label 39-digit integers as decimals of 38 and write a UUID
// as text. What comes out in its own packing is turned here into plain Arrow types: booleans, DECIMAL(38,0), text. UUID
// and JSON keep their extension name in the field's metadata.

// SQLTypeKey is the key of a field's metadata that names the SQL type where the Arrow type does not tell: HUGEINT and
// UHUGEINT, which are DECIMAL(38,0) in Arrow. It is not an extension: who does not know it reads a decimal.
const SQLTypeKey = "sluice:sql_type"

// converter turns one column of the engine's Arrow into ours.
type converter func(in arrow.Array) (arrow.Array, error)

// extension gives the Arrow extension name of a field, with the engine's type name for its own packings.
func extension(f arrow.Field) string {
	name, _ := f.Metadata.GetValue("ARROW:extension:name")
	if name != "arrow.opaque" {
		return name
	}
	meta, _ := f.Metadata.GetValue("ARROW:extension:metadata")
	var opaque struct {
		Type string `json:"type_name"`
	}
	if err := json.Unmarshal([]byte(meta), &opaque); err != nil {
		return name
	}
	return "duckdb." + opaque.Type
}

// converted gives our schema for the engine's, and how to get there: nil for a column that stays as it is.
func converted(s *arrow.Schema) (*arrow.Schema, []converter, error) {
	fields := make([]arrow.Field, s.NumFields())
	convs := make([]converter, s.NumFields())
	for i, f := range s.Fields() {
		var err error
		if fields[i], convs[i], err = convertField(f); err != nil {
			return nil, nil, err
		}
	}
	return arrow.NewSchema(fields, nil), convs, nil
}

func convertField(f arrow.Field) (arrow.Field, converter, error) {
	plain := func(t arrow.DataType) arrow.Field { return arrow.Field{Name: f.Name, Type: t, Nullable: f.Nullable} }
	switch ext := extension(f); ext {
	case "arrow.bool8":
		return plain(arrow.FixedWidthTypes.Boolean), boolColumn, nil
	case "duckdb.hugeint", "duckdb.uhugeint":
		out := plain(&arrow.Decimal128Type{Precision: 38})
		out.Metadata = arrow.NewMetadata([]string{SQLTypeKey}, []string{strings.ToUpper(strings.TrimPrefix(ext, "duckdb."))})
		return out, wideColumn(f.Name, ext == "duckdb.uhugeint"), nil
	case "duckdb.bit":
		return plain(arrow.BinaryTypes.String), textColumn(bitText), nil
	case "duckdb.time_tz":
		return plain(arrow.BinaryTypes.String), textColumn(timeTZText), nil
	case "", "arrow.uuid", "arrow.json":
	default:
		return f, nil, typeError(f.Name, strings.ToUpper(strings.TrimPrefix(ext, "duckdb.")))
	}
	return convertNested(f)
}

func typeError(column, typ string) error {
	err := fault.New(fault.Invalid, "database.Run", "column %s has the type %s, which cannot be returned", column, typ)
	err.Kind, err.Hint = "type", "cast it to another type, such as VARCHAR"
	return err
}

// convertNested converts the children of lists, structs and maps.
func convertNested(f arrow.Field) (arrow.Field, converter, error) {
	nested, ok := f.Type.(arrow.NestedType)
	if !ok {
		return f, nil, nil
	}
	fields := slices.Clone(nested.Fields())
	convs := make([]converter, len(fields))
	changed := false
	for i := range fields {
		was := fields[i]
		var err error
		if fields[i], convs[i], err = convertField(was); err != nil {
			return f, nil, err
		}
		changed = changed || convs[i] != nil
	}
	if !changed {
		return f, nil, nil
	}
	switch t := f.Type.(type) {
	case *arrow.ListType:
		f.Type = arrow.ListOfField(fields[0])
	case *arrow.FixedSizeListType:
		f.Type = arrow.FixedSizeListOfField(t.Len(), fields[0])
	case *arrow.StructType:
		f.Type = arrow.StructOf(fields...)
	case *arrow.MapType:
		entry, ok := fields[0].Type.(*arrow.StructType)
		if !ok {
			return f, nil, typeError(f.Name, "MAP")
		}
		f.Type = arrow.MapOfWithMetadata(entry.Field(0).Type, entry.Field(0).Metadata, entry.Field(1).Type, entry.Field(1).Metadata)
	default:
		return f, nil, typeError(f.Name, strings.ToUpper(t.Name()))
	}
	typ := f.Type
	return f, func(in arrow.Array) (arrow.Array, error) {
		data := in.Data()
		children := slices.Clone(data.Children())
		for i, conv := range convs {
			if conv == nil {
				continue
			}
			child := array.MakeFromData(children[i])
			out, err := conv(child)
			child.Release()
			if err != nil {
				return nil, err
			}
			defer out.Release()
			children[i] = out.Data()
		}
		made := array.NewData(typ, data.Len(), data.Buffers(), children, data.NullN(), data.Offset())
		defer made.Release()
		return array.MakeFromData(made), nil
	}, nil
}

func boolColumn(in arrow.Array) (arrow.Array, error) {
	src, ok := in.(*array.Int8)
	if !ok {
		return nil, fault.Bug("a boolean column came as %s", in.DataType())
	}
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(src.Len())
	for i := range src.Len() {
		if src.IsNull(i) {
			b.UnsafeAppendBoolToBitmap(false)
			continue
		}
		b.UnsafeAppend(src.Value(i) != 0)
	}
	return b.NewArray(), nil
}

func wideColumn(name string, unsigned bool) converter {
	return func(in arrow.Array) (arrow.Array, error) {
		src, ok := in.(*array.FixedSizeBinary)
		if !ok {
			return nil, fault.Bug("a HUGEINT column came as %s", in.DataType())
		}
		b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 38})
		defer b.Release()
		b.Reserve(src.Len())
		for i := range src.Len() {
			if src.IsNull(i) {
				b.AppendNull()
				continue
			}
			v := src.Value(i)
			high, low := int64(binary.LittleEndian.Uint64(v[8:])), binary.LittleEndian.Uint64(v)
			n := decimal128.New(high, low)
			if (unsigned && high < 0) || !n.FitsInPrecision(38) {
				err := fault.New(fault.Invalid, "database.Run", "column %s has an integer of more than 38 digits", name)
				err.Kind, err.Hint = "range", "cast it to DOUBLE or VARCHAR"
				return nil, err
			}
			b.Append(n)
		}
		return b.NewArray(), nil
	}
}

// textColumn makes text of values that the engine hands out in its own packing.
func textColumn(text func([]byte) string) converter {
	return func(in arrow.Array) (arrow.Array, error) {
		src, ok := in.(interface{ Value(int) []byte })
		if !ok {
			return nil, fault.Bug("a packed column came as %s", in.DataType())
		}
		b := array.NewStringBuilder(memory.DefaultAllocator)
		defer b.Release()
		for i := range in.Len() {
			if in.IsNull(i) {
				b.AppendNull()
				continue
			}
			b.Append(text(src.Value(i)))
		}
		return b.NewArray(), nil
	}
}

// bitText unpacks a BIT: the first byte counts the unused high bits of the second.
func bitText(v []byte) string {
	if len(v) < 2 {
		return ""
	}
	var b strings.Builder
	for i := int(v[0]); i < 8*(len(v)-1); i++ {
		b.WriteByte('0' + v[1+i/8]>>(7-i%8)&1)
	}
	return b.String()
}

// timeTZText unpacks a TIMETZ: 40 bits of microseconds, then 24 bits of offset, counted down from the largest one.
func timeTZText(v []byte) string {
	if len(v) < 8 {
		return ""
	}
	const most = 16*3600 - 1 // seconds
	bits := binary.LittleEndian.Uint64(v)
	micros, offset := int64(bits>>24), most-int(bits&0xFFFFFF)
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	out := timeOfDay(micros) + sign + fmt.Sprintf("%02d", offset/3600)
	if m := offset / 60 % 60; m != 0 {
		out += fmt.Sprintf(":%02d", m)
	}
	return out
}

// timeOfDay writes microseconds since midnight. SQL's end of the day is 24:00:00, another value than 00:00:00.
func timeOfDay(micros int64) string {
	if micros == (24 * time.Hour).Microseconds() {
		return "24:00:00"
	}
	return time.UnixMicro(micros).UTC().Format("15:04:05.999999")
}
