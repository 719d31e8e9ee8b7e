package database

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// maxExact is the largest integer that every JSON reader takes exactly: 2^53.
const maxExact = 1 << 53

// jsonValue gives a value in the form of the REST contract, ready for encoding/json: nil for NULL, integers within ±2^53
// as numbers and larger ones as strings, decimals as strings, floats as numbers but NaN and infinities as strings, dates
// as 2026-01-31, times as 10:00:00 up to 24:00:00, timestamps in RFC 3339 with Z (a TIMESTAMP without zone is shown as if
// it were UTC), both with " (BC)" at the end for years before 1, intervals in ISO 8601, binary in base64, a JSON value as
// itself, lists as arrays, structs and maps as objects, a struct without names, such as row(1, 2), as an array.
func jsonValue(arr arrow.Array, i int) any {
	if arr.IsNull(i) {
		return nil
	}
	switch a := arr.(type) {
	case *array.Boolean:
		return a.Value(i)
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return integer(a.Value(i))
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Uint64:
		if v := a.Value(i); v > maxExact {
			return strconv.FormatUint(v, 10)
		}
		return int64(a.Value(i))
	case *array.Float32:
		return float(float64(a.Value(i)), 32)
	case *array.Float64:
		return float(a.Value(i), 64)
	case *array.String:
		return a.Value(i)
	case *array.LargeString:
		return a.Value(i)
	case *array.Binary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.LargeBinary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.FixedSizeBinary:
		return base64.StdEncoding.EncodeToString(a.Value(i))
	case *array.Dictionary:
		return jsonValue(a.Dictionary(), a.GetValueIndex(i))
	case *array.Map:
		return mapValue(a, i)
	case array.ListLike:
		return listValue(a, i)
	case *array.Struct:
		return structValue(a, i)
	}
	return otherValue(arr, i)
}

// otherValue gives decimals and what has to do with time.
func otherValue(arr arrow.Array, i int) any {
	switch a := arr.(type) {
	case *array.Decimal128:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Decimal256:
		return a.Value(i).ToString(a.DataType().(*arrow.Decimal256Type).Scale)
	case *array.Date32:
		switch v := a.Value(i); v {
		case math.MaxInt32:
			return "infinity"
		case -math.MaxInt32:
			return "-infinity"
		default:
			return year(v.ToTime(), "")
		}
	case *array.Time64:
		return clock(int64(a.Value(i)) * int64(a.DataType().(*arrow.Time64Type).Unit.Multiplier()))
	case *array.Time32:
		return clock(int64(a.Value(i)) * int64(a.DataType().(*arrow.Time32Type).Unit.Multiplier()))
	case *array.Timestamp:
		switch v := a.Value(i); v {
		case math.MaxInt64:
			return "infinity"
		case -math.MaxInt64:
			return "-infinity"
		default:
			t := v.ToTime(a.DataType().(*arrow.TimestampType).Unit).UTC()
			return year(t, t.Format("T15:04:05.999999999Z"))
		}
	case *array.MonthDayNanoInterval:
		return interval(a.Value(i))
	}
	return arr.ValueStr(i)
}

// JSONValue gives one value of a column in the form of the REST contract (see jsonValue); the field says what its array
// does not: UUIDs and JSON. Text and JSON point into the batch's memory, which is the engine's: encode or copy them
// before the batch is released or the reader's next one is asked for.
func JSONValue(f arrow.Field, arr arrow.Array, i int) any {
	if arr.IsNull(i) {
		return nil
	}
	switch extension(f) {
	case "arrow.uuid":
		if a, ok := arr.(*array.FixedSizeBinary); ok && len(a.Value(i)) == 16 {
			v := a.Value(i)
			return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		}
	case "arrow.json":
		if a, ok := arr.(*array.String); ok && json.Valid([]byte(a.Value(i))) {
			return json.RawMessage(a.Value(i))
		}
	}
	return jsonValue(arr, i)
}

func integer(v int64) any {
	if v > maxExact || v < -maxExact {
		return strconv.FormatInt(v, 10)
	}
	return v
}

// float gives the shortest number that reads back as the same float of that many bits.
func float(v float64, bits int) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	case bits == 32:
		return float32(v)
	}
	return v
}

// year writes a date and what follows it. Years before 1 count back from 1 BC, as in PostgreSQL and DuckDB.
func year(t time.Time, rest string) string {
	if t.Year() < 1 {
		return fmt.Sprintf("%04d%s%s (BC)", 1-t.Year(), t.Format("-01-02"), rest)
	}
	return fmt.Sprintf("%04d%s%s", t.Year(), t.Format("-01-02"), rest)
}

// clock writes nanoseconds since midnight. SQL's end of the day is 24:00:00, another value than 00:00:00.
func clock(ns int64) string {
	if ns == int64(24*time.Hour) {
		return "24:00:00"
	}
	return time.Unix(0, ns).UTC().Format("15:04:05.999999999")
}

// interval writes an interval as an ISO 8601 duration: P1Y2M3DT4.5S.
func interval(v arrow.MonthDayNanoInterval) string {
	var b strings.Builder
	b.WriteByte('P')
	if y := v.Months / 12; y != 0 {
		fmt.Fprintf(&b, "%dY", y)
	}
	if m := v.Months % 12; m != 0 {
		fmt.Fprintf(&b, "%dM", m)
	}
	if v.Days != 0 {
		fmt.Fprintf(&b, "%dD", v.Days)
	}
	if v.Nanoseconds != 0 || b.Len() == 1 {
		sec := strconv.FormatFloat(math.Abs(float64(v.Nanoseconds%1e9))/1e9, 'f', -1, 64)
		whole, sign := v.Nanoseconds/1e9, ""
		if v.Nanoseconds < 0 {
			whole, sign = -whole, "-"
		}
		fmt.Fprintf(&b, "T%s%d%sS", sign, whole, strings.TrimPrefix(sec, "0"))
	}
	return b.String()
}

func listValue(a array.ListLike, i int) any {
	start, end := a.ValueOffsets(i)
	out := make([]any, 0, end-start)
	elem := arrow.Field{Type: a.DataType()}
	if t, ok := a.DataType().(arrow.ListLikeType); ok {
		elem = t.ElemField()
	}
	for j := start; j < end; j++ {
		out = append(out, JSONValue(elem, a.ListValues(), int(j)))
	}
	return out
}

func structValue(a *array.Struct, i int) any {
	fields := a.DataType().(*arrow.StructType).Fields()
	if !slices.ContainsFunc(fields, func(f arrow.Field) bool { return f.Name != "" }) {
		out := make([]any, len(fields))
		for j, f := range fields {
			out[j] = JSONValue(f, a.Field(j), i)
		}
		return out
	}
	out := map[string]any{}
	for j, f := range fields {
		out[f.Name] = JSONValue(f, a.Field(j), i)
	}
	return out
}

// mapValue gives an object, whose keys are text in JSON whatever they are in SQL.
func mapValue(a *array.Map, i int) any {
	start, end := a.ValueOffsets(i)
	t := a.DataType().(*arrow.MapType)
	out := map[string]any{}
	for j := start; j < end; j++ {
		out[fmt.Sprint(JSONValue(t.KeyField(), a.Keys(), int(j)))] = JSONValue(t.ItemField(), a.Items(), int(j))
	}
	return out
}
