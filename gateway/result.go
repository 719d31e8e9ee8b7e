package gateway

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/database"
	"sluice/fault"
)

// maxJSON bounds a JSON result in bytes: it is put together in memory, because how it ends is only known at its end.
const maxJSON = 64 << 20

type column struct {
	Name string `json:"name"`
	Type string `json:"type"` // the SQL name
}

// table is a result as JSON, cut at the cap of rows.
type table struct {
	Columns   []column            `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows"`
	RowCount  int                 `json:"row_count"`
	Truncated bool                `json:"truncated"`
}

// collect reads a result up to a number of rows and of bytes. One row more is looked for, to say whether it was cut.
func collect(reader array.RecordReader, most, bytes int) (table, error) {
	fields := reader.Schema().Fields()
	t := table{Columns: make([]column, len(fields)), Rows: [][]json.RawMessage{}}
	for i, f := range fields {
		t.Columns[i] = column{Name: f.Name, Type: database.ColumnType(f)}
	}
	size := 0
	for reader.Next() {
		batch := reader.RecordBatch()
		for i := range int(batch.NumRows()) {
			if len(t.Rows) == most {
				t.Truncated, t.RowCount = true, len(t.Rows)
				return t, nil
			}
			row, n, err := cells(batch, i)
			if err != nil {
				return t, err
			}
			if size += n; size > bytes {
				return t, &fault.Error{Code: fault.TooLarge, Op: "gateway.result", Msg: fmt.Sprintf("the result is larger than %d MiB", bytes>>20),
					Hint: "ask for fewer rows or columns, or stream it with Accept: application/x-ndjson"}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	t.RowCount = len(t.Rows)
	return t, reader.Err()
}

// cells renders a row, and tells its size in bytes.
func cells(batch arrow.RecordBatch, row int) ([]json.RawMessage, int, error) {
	fields := batch.Schema().Fields()
	out := make([]json.RawMessage, batch.NumCols())
	size := 0
	for i, col := range batch.Columns() {
		b, err := marshal(database.JSONValue(fields[i], col, row))
		if err != nil {
			return nil, 0, fmt.Errorf("gateway: column %d has no JSON form: %w", i, err)
		}
		out[i] = b
		size += len(b) + 1
	}
	return out, size, nil
}
