package lakecopy

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// shape is what the query's columns become: the columns of the files, and the partition folders.
type shape struct {
	schema  *arrow.Schema // of a converted batch, partition columns included
	files   *arrow.Schema // of the files
	columns []int         // the files' columns in a converted batch
	keys    *keyer        // nil: not partitioned
	convert []convert
}

// newShape checks names and types before a row is read. Its errors have kind columns or type.
func newShape(source *arrow.Schema, partitionBy []string) (*shape, error) {
	s := &shape{}
	place := map[string]int{} // lower-case name → position: readers do not tell v from V
	fields := make([]arrow.Field, source.NumFields())
	for i, field := range source.Fields() {
		folded := strings.ToLower(field.Name)
		if field.Name == "" {
			return nil, fail(KindColumns, "a column of the query has no name; name it with AS")
		}
		if _, twice := place[folded]; twice {
			return nil, hinted(fail(KindColumns, "the query gives two columns named %s", field.Name),
				"name them apart with AS; names that differ only in case are the same to many readers")
		}
		place[folded] = i
		out, values, err := conversion(field.Name, field)
		if err != nil {
			return nil, err
		}
		fields[i] = arrow.Field{Name: field.Name, Type: out, Nullable: true}
		s.convert = append(s.convert, values)
	}
	s.schema = arrow.NewSchema(fields, nil)

	inPath := map[int]bool{}
	for _, name := range partitionBy {
		position, ok := place[strings.ToLower(name)]
		if !ok {
			return nil, fail(KindColumns, "partition column %s is not among the columns of the query", name)
		}
		if inPath[position] {
			return nil, fail(KindColumns, "column %s is twice in PARTITION_BY", name)
		}
		inPath[position] = true
		field := fields[position]
		if hidden(field.Name) {
			return nil, hinted(fail(KindColumns, "partition column %s begins with _ or ., and readers skip such folders", field.Name), "rename it with AS")
		}
		text, err := textOf(field.Name, field.Type)
		if err != nil {
			return nil, err
		}
		if s.keys == nil {
			s.keys = &keyer{}
		}
		s.keys.columns = append(s.keys.columns, position)
		s.keys.names = append(s.keys.names, field.Name)
		s.keys.texts = append(s.keys.texts, text)
		s.keys.known = append(s.keys.known, map[string]string{})
	}
	var kept []arrow.Field
	for i, field := range fields {
		if !inPath[i] {
			kept = append(kept, field)
			s.columns = append(s.columns, i)
		}
	}
	if len(kept) == 0 {
		return nil, fail(KindColumns, "every column is in PARTITION_BY, so the files would hold none")
	}
	s.files = arrow.NewSchema(kept, nil)
	return s, nil
}

// partitionNames gives the partition columns in path order.
func (s *shape) partitionNames() []string {
	if s.keys == nil {
		return nil
	}
	return s.keys.names
}

// batch converts a batch of the source. Its errors have kind range. The caller releases the result.
func (s *shape) batch(mem memory.Allocator, in arrow.RecordBatch) (arrow.RecordBatch, error) {
	columns := make([]arrow.Array, 0, len(s.convert))
	defer func() { release(columns) }()
	for i, values := range s.convert {
		column, err := values(mem, in.Column(i))
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	return array.NewRecordBatch(s.schema, columns, in.NumRows()), nil
}

// emptyBatch has the files' columns and no rows.
func (s *shape) emptyBatch(mem memory.Allocator) arrow.RecordBatch {
	builder := array.NewRecordBuilder(mem, s.files)
	defer builder.Release()
	return builder.NewRecordBatch()
}
