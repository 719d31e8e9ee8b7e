package lakecopy

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sampleRows bounds the rows looked at to judge a column, in each file's first batch.
const sampleRows = 2048

// trait is what a sample tells of a column.
type trait struct {
	dictionary bool // few distinct values: a dictionary pays. On others its hash table costs a third of the time for nothing
	bloom      bool // mostly distinct text or whole numbers: a bloom filter can rule files out
}

// traits judges the columns of a file's first batch. Floats and booleans never get a bloom filter (readers lose -0.0, and
// a boolean has two values); bytes neither, as DuckDB before 1.5 misreads such a filter (duckdb 23053).
func traits(batch arrow.RecordBatch) []trait {
	out := make([]trait, batch.NumCols())
	for i, column := range batch.Columns() {
		if !countable(column.DataType()) {
			continue
		}
		distinct, seen := distinctValues(column)
		id := column.DataType().ID()
		out[i] = trait{
			dictionary: seen > 0 && distinct*5 <= seen,
			bloom:      (id == arrow.STRING || id == arrow.INT64) && distinct*2 > seen,
		}
	}
	return out
}

func countable(dt arrow.DataType) bool {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32,
		arrow.UINT64, arrow.DECIMAL128, arrow.DATE32, arrow.TIMESTAMP, arrow.TIME64:
		return true
	}
	return false
}

// distinctValues counts the values that are not NULL in a sample spread over the column, and the distinct ones.
func distinctValues(column arrow.Array) (distinct, seen int) {
	if column.NullN() == column.Len() {
		return 0, 0 // there may be no values' memory at all
	}
	step := max(1, column.Len()/sampleRows)
	value := valueBytes(column)
	values := map[string]struct{}{}
	for i := 0; i < column.Len(); i += step {
		if column.IsNull(i) {
			continue
		}
		seen++
		values[string(value(i))] = struct{}{}
	}
	return len(values), seen
}

// valueBytes gives the bytes that hold each value of a countable column.
func valueBytes(column arrow.Array) func(i int) []byte {
	switch column := column.(type) {
	case *array.String:
		return func(i int) []byte { return []byte(column.Value(i)) }
	case *array.Binary:
		return column.Value
	}
	width := column.DataType().(arrow.FixedWidthDataType).Bytes()
	raw := column.Data().Buffers()[1].Bytes()
	offset := column.Data().Offset()
	return func(i int) []byte { return raw[(offset+i)*width : (offset+i+1)*width] }
}

// nanColumns adds to found the Parquet paths of all float columns, nested ones too, that hold a NaN.
func nanColumns(batch arrow.RecordBatch, found map[string]bool) {
	for i, column := range batch.Columns() {
		nanIn(batch.ColumnName(i), column, found)
	}
}

func nanIn(path string, a arrow.Array, found map[string]bool) {
	switch a := a.(type) {
	case *array.Float32:
		for i, v := range a.Float32Values() {
			if v != v && a.IsValid(i) {
				found[path] = true
				return
			}
		}
	case *array.Float64:
		for i, v := range a.Float64Values() {
			if v != v && a.IsValid(i) {
				found[path] = true
				return
			}
		}
	case *array.List:
		nanIn(path+".list.element", a.ListValues(), found)
	case *array.Map:
		nanIn(path+".key_value.key", a.Keys(), found)
		nanIn(path+".key_value.value", a.Items(), found)
	case *array.Struct:
		for i, field := range a.DataType().(*arrow.StructType).Fields() {
			nanIn(path+"."+field.Name, a.Field(i), found)
		}
	}
}
