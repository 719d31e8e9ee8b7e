package database

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"sluice/database/duckdb"
)

// WideInteger says whether a column, DECIMAL(38,0) in Arrow, is a HUGEINT of DuckDB, such as a sum of BIGINT. People see no
// difference; who compares with another client of DuckDB does.
func WideInteger(f arrow.Field) bool {
	_, ok := f.Metadata.GetValue(duckdb.SQLTypeKey)
	return ok
}

// extension gives the Arrow extension name of a field: UUIDs and JSON have one.
func extension(f arrow.Field) string {
	name, _ := f.Metadata.GetValue("ARROW:extension:name")
	return name
}

// ColumnType gives the SQL name of a result column's type: BIGINT, DECIMAL(18,2), TEXT, TIMESTAMPTZ, TEXT[], … Integers
// beyond 64 bits, such as a sum of BIGINT, are DECIMAL(38,0), which is also what COPY writes and an external table reads
// back. An Arrow type that no SQL type stands for is shown by its Arrow name.
func ColumnType(f arrow.Field) string {
	switch extension(f) {
	case "arrow.uuid":
		return "UUID"
	case "arrow.json":
		return "JSON"
	}
	switch t := f.Type.(type) {
	case arrow.DecimalType:
		return fmt.Sprintf("DECIMAL(%d,%d)", t.GetPrecision(), t.GetScale())
	case *arrow.TimestampType:
		return timestampType(t)
	case *arrow.DictionaryType:
		return ColumnType(arrow.Field{Name: f.Name, Type: t.ValueType})
	case *arrow.FixedSizeListType:
		return fmt.Sprintf("%s[%d]", ColumnType(t.ElemField()), t.Len())
	case *arrow.MapType:
		return "MAP(" + ColumnType(t.KeyField()) + ", " + ColumnType(t.ItemField()) + ")"
	case arrow.ListLikeType:
		return ColumnType(t.ElemField()) + "[]"
	case *arrow.StructType:
		members := make([]string, t.NumFields())
		for i, m := range t.Fields() {
			members[i] = strings.TrimPrefix(m.Name+" ", " ") + ColumnType(m)
		}
		return "STRUCT(" + strings.Join(members, ", ") + ")"
	}
	if name, ok := plainTypes[f.Type.ID()]; ok {
		return name
	}
	return strings.ToUpper(f.Type.String())
}

func timestampType(t *arrow.TimestampType) string {
	switch {
	case t.TimeZone != "":
		return "TIMESTAMPTZ"
	case t.Unit == arrow.Second:
		return "TIMESTAMP_S"
	case t.Unit == arrow.Millisecond:
		return "TIMESTAMP_MS"
	case t.Unit == arrow.Nanosecond:
		return "TIMESTAMP_NS"
	}
	return "TIMESTAMP"
}

var plainTypes = map[arrow.Type]string{
	arrow.NULL: "NULL", arrow.BOOL: "BOOLEAN", arrow.INT8: "TINYINT", arrow.INT16: "SMALLINT", arrow.INT32: "INTEGER", arrow.INT64: "BIGINT",
	arrow.UINT8: "UTINYINT", arrow.UINT16: "USMALLINT", arrow.UINT32: "UINTEGER", arrow.UINT64: "UBIGINT", arrow.FLOAT32: "FLOAT", arrow.FLOAT64: "DOUBLE",
	arrow.STRING: "TEXT", arrow.LARGE_STRING: "TEXT", arrow.STRING_VIEW: "TEXT", arrow.BINARY: "BLOB", arrow.LARGE_BINARY: "BLOB", arrow.BINARY_VIEW: "BLOB",
	arrow.FIXED_SIZE_BINARY: "BLOB", arrow.DATE32: "DATE", arrow.DATE64: "DATE", arrow.TIME32: "TIME", arrow.TIME64: "TIME",
	arrow.INTERVAL_MONTH_DAY_NANO: "INTERVAL", arrow.INTERVAL_MONTHS: "INTERVAL", arrow.INTERVAL_DAY_TIME: "INTERVAL",
}
