package eval

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/database"
	"sluice/fault"
)

// value is a cell in the normal form of score.py: what Python's duckdb gives for it, after norm().
type value struct {
	kind kind
	num  float64 // of a number, the nearest float
	text string  // of a text; of an integer, all its digits
}

type kind int

const (
	null kind = iota
	integer
	float
	text
)

func ofInt(digits string) value {
	f, _ := strconv.ParseFloat(digits, 64) // digits of an integer never fail; HUGEINT fits a float's range
	return value{kind: integer, num: f, text: digits}
}

func ofFloat(f float64) value {
	if math.IsNaN(f) {
		return value{}
	}
	return value{kind: float, num: f}
}

// ofText copies the text, since Arrow's points into a batch that is gone when values are compared.
func ofText(s string) value { return value{kind: text, text: strings.Clone(trimRight(s))} }

func (v value) number() bool { return v.kind == integer || v.kind == float }

func (v value) asFloat() (float64, bool) {
	if v.number() {
		return v.num, true
	}
	return parseFloat(v.text)
}

// identity is equal for values that Python's dict holds to be one key.
func (v value) identity() string {
	switch v.kind {
	case null:
		return "null"
	case integer:
		return "i" + v.text
	case float:
		if i, accuracy := big.NewFloat(v.num).Int(nil); i != nil && accuracy == big.Exact {
			return "i" + i.String()
		}
		return "f" + strconv.FormatFloat(v.num, 'g', -1, 64)
	}
	return "t" + strconv.Quote(v.text)
}

// compare orders two numbers or two texts.
func compare(a, b value) int {
	if a.kind == integer && b.kind == integer {
		x, _ := new(big.Int).SetString(a.text, 10)
		y, _ := new(big.Int).SetString(b.text, 10)
		return x.Cmp(y)
	}
	switch {
	case !a.number():
		return strings.Compare(a.text, b.text)
	case a.num < b.num:
		return -1
	case a.num > b.num:
		return 1
	}
	return 0
}

// cell reads one cell of a column; the field says what its array does not: which decimals are integers.
func cell(f arrow.Field, column arrow.Array, i int) (value, error) {
	if column.IsNull(i) {
		return value{}, nil
	}
	switch c := column.(type) {
	case *array.Null:
		return value{}, nil
	case *array.Boolean:
		if c.Value(i) {
			return ofInt("1"), nil
		}
		return ofInt("0"), nil
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16, *array.Uint32, *array.Uint64:
		return ofInt(c.ValueStr(i)), nil
	case *array.Float32:
		return ofFloat(float64(c.Value(i))), nil
	case *array.Float64:
		return ofFloat(c.Value(i)), nil
	case *array.Decimal128:
		return ofDecimal(f, c.Value(i).ToString(scale(c.DataType()))), nil
	case *array.Decimal256:
		return ofDecimal(f, c.Value(i).ToString(scale(c.DataType()))), nil
	case *array.String:
		return ofText(c.Value(i)), nil
	case *array.LargeString:
		return ofText(c.Value(i)), nil
	case *array.StringView:
		return ofText(c.Value(i)), nil
	case *array.Binary:
		return ofText(bytesRepr(c.Value(i))), nil
	case *array.LargeBinary:
		return ofText(bytesRepr(c.Value(i))), nil
	case *array.FixedSizeBinary: // of DuckDB's types only UUID comes so
		v := c.Value(i)
		return ofText(fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])), nil
	case *array.Date32:
		return ofText(c.Value(i).ToTime().Format(time.DateOnly)), nil
	case *array.Timestamp:
		unit := c.DataType().(*arrow.TimestampType).Unit
		return ofTimestamp(c.Value(i).ToTime(unit)), nil
	case *array.Time32:
		return ofText(c.Value(i).ToTime(c.DataType().(*arrow.Time32Type).Unit).Format("15:04:05")), nil
	case *array.Time64:
		return ofText(isoTime(c.Value(i).ToTime(c.DataType().(*arrow.Time64Type).Unit))), nil
	case *array.MonthDayNanoInterval:
		v := c.Value(i)
		days := int64(v.Months)*30 + int64(v.Days) // a month is 30 days to Python's duckdb
		return ofFloat(float64(days*86400e6+v.Nanoseconds/1000) / 1e6), nil
	case *array.Dictionary:
		return cell(f, c.Dictionary(), c.GetValueIndex(i))
	case array.ListLike:
		return ofList(c, i)
	case *array.Struct:
		return ofStruct(c, i)
	case array.ExtensionArray:
		return cell(f, c.Storage(), i)
	}
	return value{}, fault.Bug("eval: no value for a column of type %s", column.DataType())
}

func scale(t arrow.DataType) int32 { return t.(arrow.DecimalType).GetScale() }

// ofTimestamp writes a midnight as its date, and drops the zone as score.py does.
func ofTimestamp(t time.Time) value {
	t = t.UTC().Truncate(time.Microsecond)
	if t.Equal(t.Truncate(24 * time.Hour)) {
		return ofText(t.Format(time.DateOnly))
	}
	return ofText(t.Format(time.DateOnly) + " " + isoTime(t))
}

// isoTime is Python's isoformat: microseconds are six digits or absent.
func isoTime(t time.Time) string {
	if t.Nanosecond()/1000 == 0 {
		return t.Format("15:04:05")
	}
	return t.Format("15:04:05.000000")
}

func ofList(c array.ListLike, i int) (value, error) {
	if m, ok := c.(*array.Map); ok {
		return ofMap(m, i)
	}
	start, end := c.ValueOffsets(i)
	elem := c.DataType().(arrow.ListLikeType).ElemField()
	items := make([]string, 0, end-start)
	for j := start; j < end; j++ {
		v, err := cell(elem, c.ListValues(), int(j))
		if err != nil {
			return value{}, err
		}
		items = append(items, repr(v))
	}
	return ofText("[" + strings.Join(items, ", ") + "]"), nil
}

func ofMap(c *array.Map, i int) (value, error) {
	start, end := c.ValueOffsets(i)
	items := make([]string, 0, end-start)
	for j := start; j < end; j++ {
		item, err := pair(c, int(j))
		if err != nil {
			return value{}, err
		}
		items = append(items, item)
	}
	return ofText("{" + strings.Join(items, ", ") + "}"), nil
}

func pair(c *array.Map, i int) (string, error) {
	t := c.DataType().(*arrow.MapType)
	k, err := cell(t.KeyField(), c.Keys(), i)
	if err != nil {
		return "", err
	}
	v, err := cell(t.ItemField(), c.Items(), i)
	return repr(k) + ": " + repr(v), err
}

func ofStruct(c *array.Struct, i int) (value, error) {
	fields := c.DataType().(*arrow.StructType).Fields()
	items := make([]string, len(fields))
	for f, field := range fields {
		v, err := cell(field, c.Field(f), i)
		if err != nil {
			return value{}, err
		}
		items[f] = stringRepr(field.Name) + ": " + repr(v)
	}
	return ofText("{" + strings.Join(items, ", ") + "}"), nil
}

// ofDecimal reads a DECIMAL as the float that score.py makes of it, and a HUGEINT as an integer.
func ofDecimal(f arrow.Field, digits string) value {
	if database.WideInteger(f) {
		return ofInt(digits)
	}
	num, _ := strconv.ParseFloat(digits, 64) // 76 digits at most: within a float's range
	return ofFloat(num)
}
