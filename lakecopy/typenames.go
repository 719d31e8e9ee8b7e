package lakecopy

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// duckName gives the type that DuckDB reads a Parquet column as, from the column's Arrow type. An error has kind type.
func duckName(column string, dt arrow.DataType) (string, error) {
	switch dt := dt.(type) {
	case *arrow.BooleanType:
		return "BOOLEAN", nil
	case *arrow.Int8Type:
		return "TINYINT", nil
	case *arrow.Int16Type:
		return "SMALLINT", nil
	case *arrow.Int32Type:
		return "INTEGER", nil
	case *arrow.Int64Type:
		return "BIGINT", nil
	case *arrow.Uint8Type:
		return "UTINYINT", nil
	case *arrow.Uint16Type:
		return "USMALLINT", nil
	case *arrow.Uint32Type:
		return "UINTEGER", nil
	case *arrow.Uint64Type:
		return "UBIGINT", nil
	case *arrow.Float32Type:
		return "FLOAT", nil
	case *arrow.Float64Type:
		return "DOUBLE", nil
	case *arrow.StringType, *arrow.LargeStringType:
		return "VARCHAR", nil
	case *arrow.BinaryType, *arrow.LargeBinaryType, *arrow.FixedSizeBinaryType:
		return "BLOB", nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("DECIMAL(%d,%d)", dt.Precision, dt.Scale), nil
	case *arrow.Date32Type:
		return "DATE", nil
	case *arrow.Time32Type, *arrow.Time64Type:
		return "TIME", nil
	case *arrow.TimestampType:
		switch {
		case dt.TimeZone != "":
			return "TIMESTAMP WITH TIME ZONE", nil
		case dt.Unit == arrow.Nanosecond:
			return "TIMESTAMP_NS", nil
		}
		return "TIMESTAMP", nil
	case *extensions.UUIDType:
		return "UUID", nil
	case *extensions.JSONType:
		return "JSON", nil
	case *arrow.ListType:
		item, err := duckName(column, dt.Elem())
		return item + "[]", err
	case *arrow.MapType:
		key, err := duckName(column, dt.KeyType())
		if err != nil {
			return "", err
		}
		item, err := duckName(column, dt.ItemType())
		return "MAP(" + key + ", " + item + ")", err
	case *arrow.StructType:
		fields := make([]string, dt.NumFields())
		for i, field := range dt.Fields() {
			text, err := duckName(column, field.Type)
			if err != nil {
				return "", err
			}
			fields[i] = quoted(field.Name) + " " + text
		}
		return "STRUCT(" + strings.Join(fields, ", ") + ")", nil
	}
	return "", fail(KindType, "column %s of the file is a %s, which an external table cannot read", column, typeText(dt))
}

var (
	blanks = regexp.MustCompile(`\s+`)
	signs  = regexp.MustCompile(` ?([(),]) ?`)
)

// aliases are the other names of DuckDB's types, in the form that sameType compares.
var aliases = map[string]string{
	"INT": "INTEGER", "INT4": "INTEGER", "SIGNED": "INTEGER", "INT8": "BIGINT", "LONG": "BIGINT", "INT2": "SMALLINT", "SHORT": "SMALLINT",
	"INT1": "TINYINT", "TEXT": "VARCHAR", "STRING": "VARCHAR", "CHAR": "VARCHAR", "BPCHAR": "VARCHAR", "BOOL": "BOOLEAN", "LOGICAL": "BOOLEAN",
	"FLOAT4": "FLOAT", "REAL": "FLOAT", "FLOAT8": "DOUBLE", "DOUBLE PRECISION": "DOUBLE", "BYTEA": "BLOB", "BINARY": "BLOB", "VARBINARY": "BLOB",
	"TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE", "DATETIME": "TIMESTAMP", "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP", "TIMESTAMP_US": "TIMESTAMP",
	"DECIMAL": "DECIMAL(18,3)", "NUMERIC": "DECIMAL(18,3)",
}

// canonical gives one spelling to a type that a person declared.
func canonical(declared string) string {
	text := strings.ToUpper(blanks.ReplaceAllString(strings.TrimSpace(declared), " "))
	text = signs.ReplaceAllString(text, "$1")
	if rest, ok := strings.CutSuffix(text, "[]"); ok {
		return canonical(rest) + "[]"
	}
	if name, ok := aliases[text]; ok {
		return name
	}
	if width, ok := strings.CutPrefix(text, "NUMERIC("); ok {
		text = "DECIMAL(" + width
	}
	if strings.HasPrefix(text, "VARCHAR(") || strings.HasPrefix(text, "CHAR(") {
		return "VARCHAR" // DuckDB ignores the length
	}
	if width, ok := strings.CutPrefix(text, "DECIMAL("); ok && !strings.Contains(width, ",") {
		text = "DECIMAL(" + strings.TrimSuffix(width, ")") + ",0)"
	}
	return text
}

// sameType says whether a declared type is the one that the engine reads.
func sameType(declared, read string) bool { return canonical(declared) == canonical(read) }
