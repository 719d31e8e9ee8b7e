package agent

import (
	"context"

	"sluice/database"
	"sluice/sqlguard"
)

// read runs an approved statement and keeps its first rows, at most so many rows and bytes. Nothing more than one batch
// beyond that is read.
func read(ctx context.Context, src Source, approved sqlguard.Approved, rows, bytes int) (*Table, error) {
	reader, err := src.Run(ctx, approved)
	if err != nil {
		return nil, err
	}
	defer reader.Release()
	got, err := database.Collect(reader, rows, bytes)
	for i, c := range got.Columns {
		if c.Name == "count_star()" { // DuckDB's name for count(*), which nobody wrote
			got.Columns[i].Name = "count"
		}
	}
	return &Table{Columns: got.Columns, Rows: got.Rows, Truncated: got.Cut != database.NotCut}, err
}
