package lakecopy

import (
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// textOf gives the function that writes a partition value as text, or an error of kind type when a type cannot be a
// folder's name: floats (NaN, two zeros), nested types, bytes, intervals, JSON. It works on converted columns.
//
// The texts are those that DuckDB casts back to the type: lower-case booleans, ISO dates, timestamps without trailing
// zeros, instants in UTC with +00 whatever the session's zone.
func textOf(name string, dt arrow.DataType) (func(arrow.Array, int) (string, error), error) {
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		return func(a arrow.Array, i int) (string, error) {
			return strconv.FormatBool(a.(*array.Boolean).Value(i)), nil
		}, nil
	case *arrow.Int8Type, *arrow.Int16Type, *arrow.Int32Type, *arrow.Int64Type,
		*arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type, *arrow.Uint64Type:
		return func(a arrow.Array, i int) (string, error) { return a.ValueStr(i), nil }, nil
	case *arrow.Decimal128Type:
		return func(a arrow.Array, i int) (string, error) {
			return a.(*array.Decimal128).Value(i).ToString(dt.Scale), nil
		}, nil
	case *arrow.StringType:
		return func(a arrow.Array, i int) (string, error) { return a.(*array.String).Value(i), nil }, nil
	case *extensions.UUIDType:
		return func(a arrow.Array, i int) (string, error) { return a.(*extensions.UUIDArray).Value(i).String(), nil }, nil
	case *arrow.Date32Type:
		return func(a arrow.Array, i int) (string, error) {
			return calendar(name, a.(*array.Date32).Value(i).ToTime(), time.DateOnly)
		}, nil
	case *arrow.Time64Type:
		return func(a arrow.Array, i int) (string, error) {
			return a.(*array.Time64).Value(i).ToTime(dt.Unit).Format("15:04:05.999999999"), nil
		}, nil
	case *arrow.TimestampType:
		layout := "2006-01-02 15:04:05.999999999"
		if dt.TimeZone != "" {
			layout += "+00"
		}
		return func(a arrow.Array, i int) (string, error) {
			return calendar(name, a.(*array.Timestamp).Value(i).ToTime(dt.Unit), layout)
		}, nil
	}
	return nil, hinted(fail(KindType, "column %s is a %s, which cannot be a partition column", name, typeText(dt)),
		"partition by booleans, whole numbers, decimals, text, uuids, dates, times or timestamps; cast in the SELECT if need be")
}

// calendar refuses years that have no four-digit ISO form: readers would not cast them back.
func calendar(name string, t time.Time, layout string) (string, error) {
	if t.Year() < 1 || t.Year() > 9999 {
		return "", fail(KindRange, "partition column %s holds a date outside the years 1 to 9999", name)
	}
	return t.UTC().Format(layout), nil
}

// keyer finds the partition folder of each row.
type keyer struct {
	columns []int // positions in the batch, in PARTITION_BY order
	names   []string
	texts   []func(arrow.Array, int) (string, error)
	known   []map[string]string // value text → folder name, per level
}

// knownLimit bounds the memory of one level's folder names.
const knownLimit = 20_000

// folders gives the partition folder of every row, such as "region=eu/y=2024".
func (k *keyer) folders(batch arrow.RecordBatch) ([]string, error) {
	out := make([]string, batch.NumRows())
	for level, position := range k.columns {
		column := batch.Column(position)
		for row := range out {
			folder, err := k.folder(level, column, row)
			if err != nil {
				return nil, err
			}
			if level > 0 {
				folder = out[row] + "/" + folder
			}
			out[row] = folder
		}
	}
	return out, nil
}

func (k *keyer) folder(level int, column arrow.Array, row int) (string, error) {
	if column.IsNull(row) {
		return hiveName(k.names[level], nil), nil
	}
	text, err := k.texts[level](column, row)
	if err != nil {
		return "", err
	}
	if folder, ok := k.known[level][text]; ok {
		return folder, nil
	}
	folder := hiveName(k.names[level], &text)
	if len(folder) > maxSegment {
		return "", fail(KindLimit, "a value of partition column %s makes a folder name longer than %d bytes", k.names[level], maxSegment)
	}
	if len(k.known[level]) < knownLimit {
		// The text may lie in the batch's own memory, which is freed before the map is.
		k.known[level][strings.Clone(text)] = folder
	}
	return folder, nil
}
