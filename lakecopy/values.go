package lakecopy

import (
	"context"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/compute"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func asItIs(_ memory.Allocator, a arrow.Array) (arrow.Array, error) {
	a.Retain()
	return a, nil
}

// wrapped puts an extension type around its storage.
func wrapped(out arrow.ExtensionType) convert {
	return func(_ memory.Allocator, a arrow.Array) (arrow.Array, error) {
		return array.NewExtensionArrayWithStorage(out, a), nil
	}
}

// retyped gives the same buffers under another type, with other children.
func retyped(dt arrow.DataType, from arrow.ArrayData, children []arrow.ArrayData) arrow.Array {
	data := array.NewData(dt, from.Len(), from.Buffers(), children, from.NullN(), from.Offset())
	defer data.Release()
	return array.MakeFromData(data)
}

// checked lets an array through as it is when every value that is not NULL passes.
func checked(check func(arrow.Array) error) convert {
	return func(_ memory.Allocator, a arrow.Array) (arrow.Array, error) {
		if err := check(a); err != nil {
			return nil, err
		}
		a.Retain()
		return a, nil
	}
}

func infinite(name string) error {
	return hinted(fail(KindRange, "column %s holds infinity, which other readers of Parquet take for a date far away", name),
		"replace infinite dates and timestamps in the SELECT, for example by NULL")
}

func finiteDate(name string) func(arrow.Array) error {
	return func(a arrow.Array) error {
		values := a.(*array.Date32)
		for i, v := range values.Date32Values() {
			if (v == math.MaxInt32 || v <= -math.MaxInt32) && values.IsValid(i) {
				return infinite(name)
			}
		}
		return nil
	}
}

func finiteTimestamps(name string, values *array.Timestamp) error {
	for i, v := range values.TimestampValues() {
		if (v == math.MaxInt64 || v <= -math.MaxInt64) && values.IsValid(i) {
			return infinite(name)
		}
	}
	return nil
}

func milliseconds(mem memory.Allocator, name string, out *arrow.TimestampType, values *array.Timestamp) (arrow.Array, error) {
	builder := array.NewTimestampBuilder(mem, out)
	defer builder.Release()
	builder.Reserve(values.Len())
	for i, v := range values.TimestampValues() {
		switch {
		case values.IsNull(i):
			builder.AppendNull()
		case v > math.MaxInt64/1000 || v < math.MinInt64/1000:
			return nil, fail(KindRange, "column %s holds a timestamp that does not fit Parquet's milliseconds", name)
		default:
			builder.Append(v * 1000)
		}
	}
	return builder.NewArray(), nil
}

// withinDay refuses 24:00:00, which Parquet's TIME does not know.
func withinDay(name string, unit arrow.TimeUnit) func(arrow.Array) error {
	day := arrow.Time64(86_400_000_000)
	if unit == arrow.Nanosecond {
		day *= 1000
	}
	return func(a arrow.Array) error {
		values := a.(*array.Time64)
		for i, v := range values.Time64Values() {
			if (v < 0 || v >= day) && values.IsValid(i) {
				return fail(KindRange, "column %s holds the time 24:00:00, which Parquet does not know", name)
			}
		}
		return nil
	}
}

func tooWide(name string) error {
	return hinted(fail(KindRange, "column %s holds a number of more than 38 digits, which DECIMAL(38,0) does not hold", name),
		"cast it to VARCHAR, or to DOUBLE if digits may be lost")
}

// fitsDecimal checks what a source need not: without lossless conversion DuckDB labels a HUGEINT of 39 digits
// decimal128(38,0).
func fitsDecimal(name string, precision int32) func(arrow.Array) error {
	return func(a arrow.Array) error {
		values := a.(*array.Decimal128)
		for i, v := range values.Values() {
			if !v.FitsInPrecision(precision) && values.IsValid(i) {
				return tooWide(name)
			}
		}
		return nil
	}
}

// intervalType holds an interval exactly. Parquet's own INTERVAL has unsigned milliseconds and few readers.
var intervalType = arrow.StructOf(
	arrow.Field{Name: "months", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	arrow.Field{Name: "days", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	arrow.Field{Name: "microseconds", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
)

func interval(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
	values := a.(*array.MonthDayNanoInterval)
	builder := array.NewStructBuilder(mem, intervalType)
	defer builder.Release()
	months := builder.FieldBuilder(0).(*array.Int32Builder)
	days := builder.FieldBuilder(1).(*array.Int32Builder)
	micros := builder.FieldBuilder(2).(*array.Int64Builder)
	for i, v := range values.MonthDayNanoIntervalValues() {
		if values.IsNull(i) {
			builder.AppendNull()
			continue
		}
		builder.Append(true)
		months.Append(v.Months)
		days.Append(v.Days)
		micros.Append(v.Nanoseconds / 1000) // a source counts microseconds
	}
	return builder.NewArray(), nil
}

// decoded looks the values of a dictionary (an ENUM) up.
func decoded(values convert) convert {
	return func(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
		dict := a.(*array.Dictionary)
		ctx := compute.WithAllocator(context.Background(), mem)
		plain, err := compute.TakeArray(ctx, dict.Dictionary(), dict.Indices())
		if err != nil {
			return nil, err
		}
		defer plain.Release()
		return values(mem, plain)
	}
}

// list converts the items of a LIST or the entries of a MAP and keeps the offsets.
func list(dt arrow.DataType, items convert) convert {
	return func(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
		raw := array.MakeFromData(a.Data().Children()[0])
		defer raw.Release()
		inner, err := items(mem, raw)
		if err != nil {
			return nil, err
		}
		defer inner.Release()
		return retyped(dt, a.Data(), []arrow.ArrayData{inner.Data()}), nil
	}
}

// fixedList makes a LIST of an ARRAY[n]. A NULL array has n items too; they are left out, for a writer walks offsets.
func fixedList(dt arrow.DataType, n int, items convert) convert {
	return func(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
		fixed := a.(*array.FixedSizeList)
		positions := array.NewInt64Builder(mem)
		defer positions.Release()
		offsets := array.NewInt32Builder(mem)
		defer offsets.Release()
		offsets.Append(0)
		for i := range fixed.Len() {
			if fixed.IsValid(i) {
				for j := range n {
					positions.Append(int64((fixed.Offset()+i)*n + j))
				}
			}
			offsets.Append(int32(positions.Len()))
		}
		take := positions.NewArray()
		defer take.Release()
		raw, err := compute.TakeArray(compute.WithAllocator(context.Background(), mem), fixed.ListValues(), take)
		if err != nil {
			return nil, err
		}
		defer raw.Release()
		inner, err := items(mem, raw)
		if err != nil {
			return nil, err
		}
		defer inner.Release()
		ends := offsets.NewArray()
		defer ends.Release()
		valid := validity(mem, a)
		if valid != nil {
			defer valid.Release()
		}
		data := array.NewData(dt, a.Len(), []*memory.Buffer{valid, ends.Data().Buffers()[1]}, []arrow.ArrayData{inner.Data()}, a.NullN(), 0)
		defer data.Release()
		return array.MakeFromData(data), nil
	}
}

// validity copies the validity bits of an array to a buffer that begins at its first row; nil when nothing is NULL.
func validity(mem memory.Allocator, a arrow.Array) *memory.Buffer {
	if a.NullN() == 0 {
		return nil
	}
	buffer := memory.NewResizableBuffer(mem)
	buffer.Resize((a.Len() + 7) / 8)
	memory.Set(buffer.Bytes(), 0)
	for i := range a.Len() {
		if a.IsValid(i) {
			buffer.Bytes()[i/8] |= 1 << (i % 8)
		}
	}
	return buffer
}

// children converts the fields of a STRUCT or of a MAP's entries.
func children(dt *arrow.StructType, items ...convert) convert {
	return func(mem memory.Allocator, a arrow.Array) (arrow.Array, error) {
		inner := make([]arrow.ArrayData, len(items))
		defer func() {
			for _, data := range inner {
				if data != nil {
					data.Release()
				}
			}
		}()
		for i, item := range items {
			// The children of the data, not the fields of the array: those are cut to the array's offset already.
			raw := array.MakeFromData(a.Data().Children()[i])
			out, err := item(mem, raw)
			raw.Release()
			if err != nil {
				return nil, err
			}
			inner[i] = out.Data()
			inner[i].Retain()
			out.Release()
		}
		return retyped(dt, a.Data(), inner), nil
	}
}
