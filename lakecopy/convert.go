package lakecopy

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// convert turns an array of a source into the array that the Parquet writer gets, or says why a value has no place
// there. The caller releases the result.
type convert func(memory.Allocator, arrow.Array) (arrow.Array, error)

// conversion gives the type in the file of a column, and how its values get there. Its errors have kind type: they are
// found before a row is read. Everything is nullable but the keys of a map, as the format demands.
//
// A source marks UUID and JSON by their Arrow extension names in the field's metadata. The integers of more than 64 bits
// and other packings of DuckDB's own have been made plain by package database.
func conversion(name string, field arrow.Field) (arrow.DataType, convert, error) {
	switch extension, _ := field.Metadata.GetValue("ARROW:extension:name"); extension {
	case "":
	case "arrow.uuid":
		if storage, ok := field.Type.(*arrow.FixedSizeBinaryType); ok && storage.ByteWidth == 16 {
			out := extensions.NewUUIDType()
			return out, wrapped(out), nil
		}
		return nil, nil, unsupported(name, "UUID of an unknown form")
	case "arrow.json":
		out, err := extensions.NewJSONType(field.Type)
		if err != nil || field.Type.ID() != arrow.STRING {
			return nil, nil, unsupported(name, "JSON of an unknown form")
		}
		return out, wrapped(out), nil
	default:
		return nil, nil, unsupported(name, strings.ToUpper(strings.TrimPrefix(extension, "arrow.")))
	}
	switch dt := field.Type.(type) {
	case *arrow.BooleanType, *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type,
		*arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type,
		*arrow.Float32Type, *arrow.Float64Type, *arrow.StringType, *arrow.BinaryType:
		return dt, asItIs, nil
	case *arrow.NullType:
		return arrow.PrimitiveTypes.Int32, func(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
			return array.MakeArrayOfNull(mem, arrow.PrimitiveTypes.Int32, a.Len()), nil
		}, nil
	case *arrow.Decimal128Type:
		return dt, checked(fitsDecimal(name, dt.Precision)), nil
	case *arrow.Date32Type:
		return dt, checked(finiteDate(name)), nil
	case *arrow.Time64Type:
		return dt, checked(withinDay(name, dt.Unit)), nil
	case *arrow.TimestampType:
		return timestamp(name, dt)
	case *arrow.MonthDayNanoIntervalType:
		return intervalType, interval, nil
	case *arrow.DictionaryType:
		out, values, err := conversion(name, arrow.Field{Type: dt.ValueType})
		return out, decoded(values), err
	case *arrow.ListType:
		out, items, err := conversion(name, dt.ElemField())
		if err != nil {
			return nil, nil, err
		}
		listed := arrow.ListOfField(arrow.Field{Name: "element", Type: out, Nullable: true})
		return listed, list(listed, items), nil
	case *arrow.FixedSizeListType:
		out, items, err := conversion(name, dt.ElemField())
		if err != nil {
			return nil, nil, err
		}
		listed := arrow.ListOfField(arrow.Field{Name: "element", Type: out, Nullable: true})
		return listed, fixedList(listed, int(dt.Len()), items), nil
	case *arrow.StructType:
		return structure(name, dt)
	case *arrow.MapType:
		return mapping(name, dt)
	}
	return nil, nil, unsupported(name, typeText(field.Type))
}

func unsupported(name, what string) error {
	return hinted(fail(KindType, "column %s is a %s, which has no Parquet type here", name, what),
		fmt.Sprintf("cast it in the SELECT, for example CAST(%s AS VARCHAR)", quoted(name)))
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// typeText names an Arrow type for a person.
func typeText(dt arrow.DataType) string {
	switch dt := dt.(type) {
	case *arrow.SparseUnionType, *arrow.DenseUnionType:
		return "UNION"
	case *arrow.StructType:
		if dt.NumFields() == 0 {
			return "STRUCT without fields"
		}
		return "STRUCT"
	case *arrow.ListType, *arrow.FixedSizeListType:
		return "list"
	case *arrow.MapType:
		return "MAP"
	case *arrow.MonthDayNanoIntervalType:
		return "INTERVAL"
	case *arrow.Float32Type:
		return "FLOAT"
	case *arrow.Float64Type:
		return "DOUBLE"
	case *arrow.BinaryType:
		return "BLOB"
	case *extensions.JSONType:
		return "JSON"
	}
	return dt.String()
}

func timestamp(name string, dt *arrow.TimestampType) (arrow.DataType, convert, error) {
	out := &arrow.TimestampType{Unit: dt.Unit}
	if dt.TimeZone != "" {
		// The zone is the session's and says nothing about the instant, which is counted in UTC anyway.
		out.TimeZone = "UTC"
	}
	if dt.Unit == arrow.Second {
		out.Unit = arrow.Millisecond // Parquet has no seconds
	}
	return out, func(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
		values := a.(*array.Timestamp)
		if err := finiteTimestamps(name, values); err != nil {
			return nil, err
		}
		if dt.Unit == arrow.Second {
			return milliseconds(mem, name, out, values)
		}
		return retyped(out, a.Data(), a.Data().Children()), nil
	}, nil
}

func structure(name string, dt *arrow.StructType) (arrow.DataType, convert, error) {
	if dt.NumFields() == 0 {
		return nil, nil, unsupported(name, typeText(dt))
	}
	fields := make([]arrow.Field, dt.NumFields())
	items := make([]convert, dt.NumFields())
	seen := map[string]bool{}
	for i, field := range dt.Fields() {
		out, item, err := conversion(name+"."+field.Name, field)
		if err != nil {
			return nil, nil, err
		}
		if seen[strings.ToLower(field.Name)] {
			return nil, nil, fail(KindColumns, "column %s has two fields named %s", name, field.Name)
		}
		seen[strings.ToLower(field.Name)] = true
		fields[i], items[i] = arrow.Field{Name: field.Name, Type: out, Nullable: true}, item
	}
	out := arrow.StructOf(fields...)
	return out, children(out, items...), nil
}

func mapping(name string, dt *arrow.MapType) (arrow.DataType, convert, error) {
	keyType, keys, err := conversion(name+" (its keys)", dt.KeyField())
	if err != nil {
		return nil, nil, err
	}
	itemType, items, err := conversion(name, dt.ItemField())
	if err != nil {
		return nil, nil, err
	}
	out := arrow.MapOfFields(arrow.Field{Name: "key", Type: keyType}, arrow.Field{Name: "value", Type: itemType, Nullable: true})
	return out, list(out, children(out.Elem().(*arrow.StructType), keys, items)), nil
}
