package database

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Column is a column of a collected result.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"` // the SQL name
}

// Collected is a result as JSON, in memory of its own.
type Collected struct {
	Columns []Column
	Rows    [][]json.RawMessage // never nil; cells in the form of JSONValue
	Cut     Cut                 // why there are no more rows
}

// Cut says which cap ended a result early.
type Cut int

// The caps. NotCut means that the result is whole.
const (
	NotCut Cut = iota
	CutRows
	CutBytes
)

// Collect reads a result up to a number of rows and of bytes, whichever comes first, and keeps whole rows only. Bytes are
// those of the cells as JSON; a cell that would go over is not even encoded, so the memory for a result stays near the
// cap however large its cells are. One row more is looked for, to say whether the result was cut. The error is the reader's.
func Collect(reader array.RecordReader, maxRows, maxBytes int) (Collected, error) {
	fields := reader.Schema().Fields()
	out := Collected{Columns: make([]Column, len(fields)), Rows: [][]json.RawMessage{}}
	for i, f := range fields {
		out.Columns[i] = Column{Name: f.Name, Type: ColumnType(f)}
	}
	left := maxBytes
	for reader.Next() {
		batch := reader.RecordBatch()
		for i := range int(batch.NumRows()) {
			if len(out.Rows) == maxRows {
				out.Cut = CutRows
				return out, nil
			}
			row, ok, err := jsonRow(batch, i, &left)
			switch {
			case err != nil:
				return out, err
			case !ok:
				out.Cut = CutBytes
				return out, nil
			}
			out.Rows = append(out.Rows, row)
		}
	}
	return out, reader.Err()
}

// JSONRow encodes the cells of one row, in the form of JSONValue. The bytes are the caller's.
func JSONRow(batch arrow.RecordBatch, i int) ([]json.RawMessage, error) {
	row, _, err := jsonRow(batch, i, nil)
	return row, err
}

// jsonRow encodes a row and takes its bytes, a separator for each cell included, off *left; ok is false when they do not
// fit. A nil left is no cap.
func jsonRow(batch arrow.RecordBatch, i int, left *int) (row []json.RawMessage, ok bool, err error) {
	fields := batch.Schema().Fields()
	row = make([]json.RawMessage, batch.NumCols())
	for c, column := range batch.Columns() {
		if left != nil && atLeast(column, i, *left) > *left {
			return nil, false, nil
		}
		if row[c], err = encode(JSONValue(fields[c], column, i)); err != nil {
			return nil, false, fmt.Errorf("database: column %d has no JSON form: %w", c, err)
		}
		if left == nil {
			continue
		}
		if *left -= len(row[c]) + 1; *left < 0 {
			return nil, false, nil
		}
	}
	return row, true, nil
}

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	// A buffer grows by doubling; what is kept for long should not hold the rest.
	return bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// atLeast gives a lower bound of a cell's bytes as JSON, without encoding it. It stops counting beyond most.
func atLeast(arr arrow.Array, i, most int) int {
	if arr.IsNull(i) {
		return 1
	}
	switch a := arr.(type) {
	case *array.String:
		return a.ValueLen(i)
	case *array.Binary:
		return a.ValueLen(i)
	case *array.Map:
		start, end := a.ValueOffsets(i)
		return sumAtLeast(a.Keys(), int(start), int(end), most) + sumAtLeast(a.Items(), int(start), int(end), most)
	case array.ListLike:
		start, end := a.ValueOffsets(i)
		return sumAtLeast(a.ListValues(), int(start), int(end), most)
	case *array.Struct:
		n := 0
		for f := 0; f < a.NumField() && n <= most; f++ {
			n += atLeast(a.Field(f), i, most)
		}
		return n
	}
	return 1
}

func sumAtLeast(arr arrow.Array, start, end, most int) int {
	n := 0
	for j := start; j < end && n <= most; j++ {
		n += atLeast(arr, j, most)
	}
	return n
}
