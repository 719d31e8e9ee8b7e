package lakecopy

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// one makes a column of a type with the values that fill appends.
func one(mem memory.Allocator, dt arrow.DataType, fill func(array.Builder)) arrow.Array {
	builder := array.NewBuilder(mem, dt)
	defer builder.Release()
	fill(builder)
	return builder.NewArray()
}

func TestConvertedValues(t *testing.T) {
	us := &arrow.TimestampType{Unit: arrow.Microsecond}
	for sentence, row := range map[string]struct {
		dt   arrow.DataType
		fill func(array.Builder)
		out  string // type in the file
		want string
	}{
		"an instant loses its session's zone, not its value": {&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "America/New_York"},
			func(b array.Builder) { b.(*array.TimestampBuilder).Append(1719792000000000) }, "timestamp[us, tz=UTC]", "[1719792000000000]"},
		"seconds become milliseconds": {&arrow.TimestampType{Unit: arrow.Second},
			func(b array.Builder) { b.(*array.TimestampBuilder).Append(-5); b.AppendNull() }, "timestamp[ms]", "[-5000 (null)]"},
		"an infinity under NULL is nothing": {us,
			func(b array.Builder) {
				b.(*array.TimestampBuilder).AppendValues([]arrow.Timestamp{math.MaxInt64}, []bool{false})
			}, "timestamp[us]", "[(null)]"},
		"an interval is exact": {arrow.FixedWidthTypes.MonthDayNanoInterval,
			func(b array.Builder) {
				b.(*array.MonthDayNanoIntervalBuilder).Append(arrow.MonthDayNanoInterval{Months: 14, Days: -3, Nanoseconds: 1_000_001_000})
				b.AppendNull()
			}, "struct<months: int32 nullable, days: int32 nullable, microseconds: int64 nullable>", "{[14 (null)] [-3 (null)] [1000001 (null)]}"},
		"an enum is its text": {&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String},
			func(b array.Builder) {
				for _, s := range []string{"new", "paid", "new"} {
					if err := b.(*array.BinaryDictionaryBuilder).AppendString(s); err != nil {
						panic(err)
					}
				}
				b.AppendNull()
			}, "utf8", `["new" "paid" "new" (null)]`},
		"an array of fixed length is a list": {arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32),
			func(b array.Builder) {
				list := b.(*array.FixedSizeListBuilder)
				items := list.ValueBuilder().(*array.Int32Builder)
				list.Append(true)
				items.AppendValues([]int32{1, 2}, nil)
				list.AppendNull()
				list.Append(true)
				items.Append(3)
				items.AppendNull()
			}, "list<element: int32, nullable>", "[[1 2] (null) [3 (null)]]"},
		"what has no type is a column of NULLs": {arrow.Null, func(b array.Builder) { b.AppendNull() }, "int32", "[(null)]"},
		"38 digits fit": {&arrow.Decimal128Type{Precision: 38},
			func(b array.Builder) {
				n, _ := decimal128.FromString("-99999999999999999999999999999999999999", 38, 0)
				b.(*array.Decimal128Builder).Append(n)
			}, "decimal(38, 0)", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			in := one(mem, row.dt, row.fill)
			defer in.Release()
			dt, values, err := conversion("c", arrow.Field{Name: "c", Type: row.dt, Nullable: true})
			if err != nil {
				t.Fatal(err)
			}
			if dt.String() != row.out {
				t.Errorf("type %s, want %s", dt, row.out)
			}
			out, err := values(mem, in)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Release()
			if !arrow.TypeEqual(out.DataType(), dt) {
				t.Errorf("the values are %s", out.DataType())
			}
			got := out.String()
			if stamps, ok := out.(*array.Timestamp); ok {
				got = numbers(stamps)
			}
			if row.want != "" && got != row.want {
				t.Errorf("values %s, want %s", got, row.want)
			}
			// A slice gives the slice, so no conversion may count from the wrong row.
			if in.Len() > 1 {
				cut := array.NewSlice(in, 1, int64(in.Len()))
				defer cut.Release()
				part, err := values(mem, cut)
				if err != nil {
					t.Fatal(err)
				}
				defer part.Release()
				want := array.NewSlice(out, 1, int64(out.Len()))
				defer want.Release()
				if !array.Equal(part, want) {
					t.Errorf("a slice gives %s, want %s", part, want)
				}
			}
		})
	}
}

func numbers(stamps *array.Timestamp) string {
	builder := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range stamps.Len() {
		if stamps.IsNull(i) {
			builder.AppendNull()
			continue
		}
		builder.Append(int64(stamps.Value(i)))
	}
	return builder.NewArray().String()
}

func TestRefusedValues(t *testing.T) {
	for sentence, row := range map[string]struct {
		dt   arrow.DataType
		fill func(array.Builder)
	}{
		"an infinite date":        {arrow.FixedWidthTypes.Date32, func(b array.Builder) { b.(*array.Date32Builder).Append(math.MaxInt32) }},
		"a date before all":       {arrow.FixedWidthTypes.Date32, func(b array.Builder) { b.(*array.Date32Builder).Append(-math.MaxInt32) }},
		"an infinite timestamp":   {arrow.FixedWidthTypes.Timestamp_us, func(b array.Builder) { b.(*array.TimestampBuilder).Append(math.MaxInt64) }},
		"a timestamp before all":  {arrow.FixedWidthTypes.Timestamp_ns, func(b array.Builder) { b.(*array.TimestampBuilder).Append(-math.MaxInt64) }},
		"infinite seconds":        {arrow.FixedWidthTypes.Timestamp_s, func(b array.Builder) { b.(*array.TimestampBuilder).Append(math.MaxInt64) }},
		"seconds that overflow":   {arrow.FixedWidthTypes.Timestamp_s, func(b array.Builder) { b.(*array.TimestampBuilder).Append(math.MaxInt64 / 999) }},
		"24:00:00":                {arrow.FixedWidthTypes.Time64us, func(b array.Builder) { b.(*array.Time64Builder).Append(86_400_000_000) }},
		"24:00:00 in nanoseconds": {arrow.FixedWidthTypes.Time64ns, func(b array.Builder) { b.(*array.Time64Builder).Append(86_400_000_000_000) }},
		"an integer of 39 digits": {&arrow.Decimal128Type{Precision: 38}, func(b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.New(math.MaxInt64, math.MaxUint64))
		}},
		"an infinite date in a list": {arrow.ListOf(arrow.FixedWidthTypes.Date32), func(b array.Builder) {
			b.(*array.ListBuilder).Append(true)
			b.(*array.ListBuilder).ValueBuilder().(*array.Date32Builder).Append(math.MaxInt32)
		}},
	} {
		t.Run(sentence, func(t *testing.T) {
			mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
			defer mem.AssertSize(t, 0)
			in := one(mem, row.dt, row.fill)
			defer in.Release()
			_, values, err := conversion("c", arrow.Field{Name: "c", Type: row.dt})
			if err != nil {
				t.Fatal(err)
			}
			out, err := values(mem, in)
			if kindOf(err) != string(KindRange) {
				t.Errorf("gave %v, %v", out, err)
			}
		})
	}
}

func TestShape(t *testing.T) {
	int32s, text := arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String
	field := func(name string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Nullable: true}
	}
	marked := func(name, extension string, dt arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: dt, Metadata: arrow.NewMetadata([]string{"ARROW:extension:name"}, []string{extension})}
	}
	for sentence, row := range map[string]struct {
		fields []arrow.Field
		by     []string
		kind   Kind
	}{
		"plain":                           {[]arrow.Field{field("a", int32s), field("b", text)}, nil, ""},
		"a partition column in any case":  {[]arrow.Field{field("a", int32s), field("Region", text)}, []string{"REGION"}, ""},
		"the same name twice":             {[]arrow.Field{field("v", int32s), field("v", text)}, nil, KindColumns},
		"names that differ in case":       {[]arrow.Field{field("v", int32s), field("V", text)}, nil, KindColumns},
		"no name":                         {[]arrow.Field{field("", int32s)}, nil, KindColumns},
		"an unknown partition column":     {[]arrow.Field{field("a", int32s)}, []string{"b"}, KindColumns},
		"a partition column twice":        {[]arrow.Field{field("a", int32s), field("b", text)}, []string{"a", "A"}, KindColumns},
		"nothing left for the files":      {[]arrow.Field{field("a", int32s), field("b", text)}, []string{"b", "a"}, KindColumns},
		"a partition column readers skip": {[]arrow.Field{field("a", int32s), field("_b", text)}, []string{"_b"}, KindColumns},
		"partitions by a float":           {[]arrow.Field{field("a", int32s), field("f", arrow.PrimitiveTypes.Float64)}, []string{"f"}, KindType},
		"partitions by bytes":             {[]arrow.Field{field("a", int32s), field("f", arrow.BinaryTypes.Binary)}, []string{"f"}, KindType},
		"partitions by a list":            {[]arrow.Field{field("a", int32s), field("f", arrow.ListOf(int32s))}, []string{"f"}, KindType},
		"partitions by an interval":       {[]arrow.Field{field("a", int32s), field("f", arrow.FixedWidthTypes.MonthDayNanoInterval)}, []string{"f"}, KindType},
		"partitions by JSON":              {[]arrow.Field{field("a", int32s), marked("f", "arrow.json", text)}, []string{"f"}, KindType},
		"partitions by a uuid":            {[]arrow.Field{field("a", int32s), marked("f", "arrow.uuid", &arrow.FixedSizeBinaryType{ByteWidth: 16})}, []string{"f"}, ""},
		"a union":                         {[]arrow.Field{field("u", arrow.SparseUnionOf([]arrow.Field{field("n", int32s)}, []arrow.UnionTypeCode{0}))}, nil, KindType},
		"a union in a struct":             {[]arrow.Field{field("s", arrow.StructOf(field("u", arrow.SparseUnionOf([]arrow.Field{field("n", int32s)}, []arrow.UnionTypeCode{0}))))}, nil, KindType},
		"a struct without fields":         {[]arrow.Field{field("s", arrow.StructOf())}, nil, KindType},
		"a packing that nobody unpacked":  {[]arrow.Field{marked("o", "arrow.opaque", arrow.BinaryTypes.Binary)}, nil, KindType},
		"bytes of fixed length unmarked":  {[]arrow.Field{field("o", &arrow.FixedSizeBinaryType{ByteWidth: 16})}, nil, KindType},
		"a UUID that is none":             {[]arrow.Field{marked("o", "arrow.uuid", text)}, nil, KindType},
		"a decimal of more than 38":       {[]arrow.Field{field("d", &arrow.Decimal256Type{Precision: 50, Scale: 2})}, nil, KindType},
	} {
		_, err := newShape(arrow.NewSchema(row.fields, nil), row.by)
		if kindOf(err) != string(row.kind) || (err == nil) != (row.kind == "") {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}
