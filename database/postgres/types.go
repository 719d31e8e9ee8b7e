package postgres

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The OIDs of the built-in types that have a form of their own in Arrow (src/include/catalog/pg_type.dat). Every other type
// is text: what the server shows as text, never its wire format.
const (
	oidBool, oidBytea, oidChar, oidName                        = 16, 17, 18, 19
	oidInt8, oidInt2, oidInt4, oidText, oidOID                 = 20, 21, 23, 25, 26
	oidXID, oidCID, oidJSON, oidJSONB                          = 28, 29, 114, 3802
	oidFloat4, oidFloat8, oidUnknown, oidMoney                 = 700, 701, 705, 790
	oidBPChar, oidVarchar, oidDate, oidTime                    = 1042, 1043, 1082, 1083
	oidTimestamp, oidTimestampTZ, oidInterval, oidTimeTZ       = 1114, 1184, 1186, 1266
	oidNumeric, oidUUID                                        = 1700, 2950
	formatText, formatBinary                             int16 = 0, 1
)

// appender adds one value that is not NULL to a builder, which has room for it when the type has a fixed width.
type appender func(src []byte) error

// shape tells what a type becomes in Arrow, in which format its values are asked for, and how one is added to a builder
// of the Arrow type. The name is the column's, for errors.
type shape struct {
	arrow  arrow.DataType
	meta   arrow.Metadata
	format int16
	add    func(b array.Builder, name string) appender
}

// column is a column of one result.
type column struct {
	field   arrow.Field
	format  int16
	builder array.Builder
	value   appender
}

// column plans a column of the server's description. The types that it needs were learned before.
func (c *conn) column(name string, oid uint32, modifier int32) column {
	return plan(name, c.shape(oid, modifier, 0))
}

func plan(name string, s shape) column {
	b := array.NewBuilder(memory.DefaultAllocator, s.arrow)
	return column{
		field:   arrow.Field{Name: name, Type: s.arrow, Nullable: true, Metadata: s.meta},
		format:  s.format,
		builder: b,
		value:   s.add(b, name),
	}
}

// take gives what was added. The next batch begins with room for as many bytes of text as this one had.
func (c *column) take() arrow.Array {
	b, ok := c.builder.(interface {
		DataLen() int
		ReserveData(int)
	})
	if !ok {
		return c.builder.NewArray()
	}
	n := b.DataLen()
	out := c.builder.NewArray()
	b.ReserveData(n)
	return out
}

func extension(name string) arrow.Metadata {
	return arrow.NewMetadata([]string{"ARROW:extension:name", "ARROW:extension:metadata"}, []string{name, ""})
}

// plainShapes are the types that need neither a modifier nor the catalogue.
var plainShapes = map[uint32]shape{
	oidBool:        {arrow: arrow.FixedWidthTypes.Boolean, format: formatBinary, add: addBool},
	oidInt2:        {arrow: arrow.PrimitiveTypes.Int16, format: formatBinary, add: addInt2},
	oidInt4:        {arrow: arrow.PrimitiveTypes.Int32, format: formatBinary, add: addInt4},
	oidInt8:        {arrow: arrow.PrimitiveTypes.Int64, format: formatBinary, add: addInt8},
	oidOID:         {arrow: arrow.PrimitiveTypes.Int64, format: formatBinary, add: addUint4},
	oidXID:         {arrow: arrow.PrimitiveTypes.Int64, format: formatBinary, add: addUint4},
	oidCID:         {arrow: arrow.PrimitiveTypes.Int64, format: formatBinary, add: addUint4},
	oidFloat4:      {arrow: arrow.PrimitiveTypes.Float32, format: formatBinary, add: addFloat4},
	oidFloat8:      {arrow: arrow.PrimitiveTypes.Float64, format: formatBinary, add: addFloat8},
	oidText:        {arrow: arrow.BinaryTypes.String, format: formatBinary, add: addText},
	oidVarchar:     {arrow: arrow.BinaryTypes.String, format: formatBinary, add: addText},
	oidName:        {arrow: arrow.BinaryTypes.String, format: formatBinary, add: addText},
	oidBPChar:      {arrow: arrow.BinaryTypes.String, format: formatBinary, add: addPadded},
	oidBytea:       {arrow: arrow.BinaryTypes.Binary, format: formatBinary, add: addBytes},
	oidUUID:        {arrow: &arrow.FixedSizeBinaryType{ByteWidth: 16}, meta: extension("arrow.uuid"), format: formatBinary, add: addUUID},
	oidJSON:        {arrow: arrow.BinaryTypes.String, meta: extension("arrow.json"), format: formatBinary, add: addText},
	oidJSONB:       {arrow: arrow.BinaryTypes.String, meta: extension("arrow.json"), format: formatBinary, add: addJSONB},
	oidDate:        {arrow: arrow.FixedWidthTypes.Date32, format: formatBinary, add: addDate},
	oidTime:        {arrow: arrow.FixedWidthTypes.Time64us, format: formatBinary, add: addTime},
	oidTimeTZ:      {arrow: arrow.FixedWidthTypes.Time64us, format: formatBinary, add: addTimeTZ},
	oidTimestamp:   {arrow: &arrow.TimestampType{Unit: arrow.Microsecond}, format: formatBinary, add: addTimestamp},
	oidTimestampTZ: {arrow: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, format: formatBinary, add: addTimestamp},
	oidInterval:    {arrow: arrow.FixedWidthTypes.MonthDayNanoInterval, format: formatBinary, add: addInterval},
	oidChar:        textShape,
	oidUnknown:     textShape,
}

// textShape is every type without a form of its own: ranges, addresses, geometry, XML, rows, enums, bits, …
var textShape = shape{arrow: arrow.BinaryTypes.String, format: formatText, add: addText}

// shape gives the shape of a type. Modifiers are those of the server: of a numeric(p,s) and of its arrays.
func (c *conn) shape(oid uint32, modifier int32, depth int) shape {
	if s, ok := plainShapes[oid]; ok {
		return s
	}
	switch oid {
	case oidNumeric:
		return numericShape(modifier, c.exact)
	case oidMoney:
		return moneyShape(c.moneyScale - 1)
	}
	t := c.types[oid]
	switch {
	case depth > 8: // no type is nested so deep
	case t.kind == 'd':
		if modifier < 0 {
			modifier = t.modifier
		}
		return c.shape(t.base, modifier, depth+1)
	case t.array:
		elem := c.shape(t.elem, modifier, depth+1)
		if elem.arrow.ID() == arrow.LIST {
			elem = textShape // an array of a domain over an array
		}
		return listShape(elem, t.delimiter)
	case t.extension == "vector" && (t.name == "vector" || t.name == "halfvec"):
		return vectorShape(t.name == "halfvec")
	}
	return textShape
}

// numericShape tells what a numeric becomes. Precision and scale are in the modifier: 16 bits each, the scale with 11 bits
// and a sign; a negative scale counts zeros before the point, one above the precision zeros behind it. Without a modifier
// it is DECIMAL(38,18), which holds a sum of bigint and most averages. A quotient has more digits when it is below 0.1: the
// server's 1/3 has 20 of them, so they are rounded off where a result is read by people, and an error where it is copied.
func numericShape(modifier int32, exact bool) shape {
	precision, scale, hint := int32(38), int32(18), "cast it, as in x::numeric(38,6), or round(x, 6)"
	if modifier >= 4 {
		precision, scale = (modifier-4)>>16&0xFFFF, (modifier-4)&0x7FF
		if scale >= 1024 {
			scale -= 2048
		}
		if scale < 0 {
			precision, scale = precision-scale, 0
		}
		precision = max(precision, scale)
		if precision > 38 {
			return textShape
		}
		hint = "cast it to double precision or text"
	}
	return shape{arrow: &arrow.Decimal128Type{Precision: precision, Scale: scale}, format: formatBinary,
		add: func(b array.Builder, name string) appender {
			return addNumeric(b.(*array.Decimal128Builder), name, precision, scale, exact, hint)
		}}
}

// moneyShape is for money, which is a count of the smallest units on the wire.
func moneyShape(scale int32) shape {
	return shape{arrow: &arrow.Decimal128Type{Precision: 19, Scale: scale}, format: formatBinary, add: addMoney}
}

// known says whether a type needs nothing from the catalogue.
func known(oid uint32) bool {
	_, plain := plainShapes[oid]
	return plain || oid == oidNumeric || oid == oidMoney || oid == 0
}
