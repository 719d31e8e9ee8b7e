package gateway

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/database"
	"sluice/fault"
)

// maxJSON bounds a JSON result in bytes: it is put together in memory, because how it ends is only known at its end.
const maxJSON = 64 << 20

// table is a result as JSON, cut at the cap of rows.
type table struct {
	Columns   []database.Column   `json:"columns"`
	Rows      [][]json.RawMessage `json:"rows"`
	RowCount  int                 `json:"row_count"`
	Truncated bool                `json:"truncated"`
}

// collect reads a result up to a number of rows. One that is larger than a number of bytes is an error: cut there, it
// would look as if its rows were wanted.
func collect(reader array.RecordReader, most, bytes int) (table, error) {
	got, err := database.Collect(reader, most, bytes)
	if err == nil && got.Cut == database.CutBytes {
		err = &fault.Error{Code: fault.TooLarge, Op: "gateway.result", Msg: fmt.Sprintf("the result is larger than %d MiB", bytes>>20),
			Hint: "ask for fewer rows or columns, or stream it with Accept: application/x-ndjson"}
	}
	return table{Columns: got.Columns, Rows: got.Rows, RowCount: len(got.Rows), Truncated: got.Cut == database.CutRows}, err
}
