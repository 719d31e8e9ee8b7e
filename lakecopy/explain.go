package lakecopy

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"sluice/access"
	"sluice/sqlguard"
)

// Plan is what a COPY would do.
type Plan struct {
	Database     string       `json:"database"`
	SQL          string       `json:"sql"` // the query as it would run
	Connection   string       `json:"connection"`
	Path         string       `json:"path"`
	Mode         string       `json:"mode"`
	Compression  string       `json:"compression"`
	RowGroupSize int          `json:"row_group_size"` // rows
	FileTargetMB int          `json:"file_target_mb"` // 10^6 bytes
	PartitionBy  []string     `json:"partition_by"`
	Columns      []PlanColumn `json:"columns"`
}

// PlanColumn is a column of the query and where it goes.
type PlanColumn struct {
	Name      string `json:"name"`
	Type      string `json:"type"` // in the file, "" for a partition column
	Partition bool   `json:"partition"`
}

// Explain says what a COPY by this caller would do, with the same checks, reading no row and writing nothing. Its errors
// are those of Copy.
func (s *Service) Explain(ctx context.Context, who access.Principal, src Source, stmt sqlguard.Copy) (Plan, error) {
	lake, target, err := s.admit(who, src, stmt)
	if err != nil {
		return Plan{}, err
	}
	return s.plan(ctx, lake, target, src, stmt, mayRead(who, src))
}

func (s *Service) plan(ctx context.Context, lake *lake, target string, src Source, stmt sqlguard.Copy, may func(sqlguard.Relation) bool) (Plan, error) {
	approved, err := src.Approve(ctx, stmt.Query, sqlguard.CopySource, may)
	if err != nil {
		return Plan{}, sourceError(ctx, err, stmt.QueryAt)
	}
	// The types come from running the query for no rows. What is wrapped is the caller's text, which passes the gate like
	// any other; the approved text would not, where it scans the files of external tables.
	none, err := src.Approve(ctx, "SELECT * FROM (\n"+stmt.Query+"\n) AS q LIMIT 0", sqlguard.CopySource, may)
	if err != nil {
		return Plan{}, sourceError(ctx, err, 0)
	}
	reader, err := src.Run(ctx, none)
	if err != nil {
		return Plan{}, sourceError(ctx, err, 0)
	}
	defer reader.Release()
	shape, err := newShape(reader.Schema(), stmt.PartitionBy)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{
		Database: src.Name(), SQL: approved.Shown(), Connection: lake.Name, Path: target, Mode: string(stmt.Mode),
		Compression: stmt.Compression, RowGroupSize: stmt.RowGroupSize, FileTargetMB: stmt.FileTargetMB,
		PartitionBy: shape.partitionNames(),
	}
	types, err := parquetTypes(shape)
	if err != nil {
		return Plan{}, err
	}
	for _, field := range shape.schema.Fields() {
		text, inFile := types[field.Name]
		plan.Columns = append(plan.Columns, PlanColumn{Name: field.Name, Type: text, Partition: !inFile})
	}
	return plan, nil
}

// parquetTypes gives the type of each column in the files: the physical and the logical one, or the kind of nesting.
func parquetTypes(s *shape) (map[string]string, error) {
	f := format{schema: s.files, rowGroup: 1, mem: memory.DefaultAllocator}
	out, err := pqarrow.ToParquet(s.files, f.properties(nil, nil, 0), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, writeError(err)
	}
	types := map[string]string{}
	root := out.Root()
	for i := range root.NumFields() {
		node := root.Field(i)
		text := "STRUCT"
		if primitive, ok := node.(*schema.PrimitiveNode); ok {
			text = primitive.PhysicalType().String()
		}
		if logical := node.LogicalType(); logical != nil && !logical.IsNone() {
			text += " " + logical.String()
		}
		types[node.Name()] = text
	}
	return types, nil
}
