package agent

import (
	"context"
	"strings"

	"sluice/database"
	"sluice/sqlguard"
)

// read runs an approved statement and keeps its first rows, at most limit. Nothing more than one batch beyond the limit
// is read.
func read(ctx context.Context, src Source, approved sqlguard.Approved, limit int) (*Table, error) {
	reader, err := src.Run(ctx, approved)
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	table := &Table{Rows: [][]any{}}
	fields := reader.Schema().Fields()
	for _, f := range fields {
		table.Columns = append(table.Columns, TableColumn{Name: f.Name, Type: database.ColumnType(f)})
	}
	for reader.Next() {
		batch := reader.RecordBatch()
		for i := range int(batch.NumRows()) {
			if len(table.Rows) == limit {
				table.Truncated = true
				return table, nil
			}
			row := make([]any, batch.NumCols())
			for c := range row {
				row[c] = own(database.JSONValue(fields[c], batch.Column(c), i))
			}
			table.Rows = append(table.Rows, row)
		}
	}
	return table, reader.Err()
}

// own copies the texts of a cell. They point into the batch, whose memory is the engine's and gone with the next batch.
func own(cell any) any {
	switch v := cell.(type) {
	case string:
		return strings.Clone(v)
	case []any:
		for i := range v {
			v[i] = own(v[i])
		}
	case map[string]any:
		copied := make(map[string]any, len(v))
		for key, item := range v {
			copied[strings.Clone(key)] = own(item)
		}
		return copied
	}
	return cell
}
