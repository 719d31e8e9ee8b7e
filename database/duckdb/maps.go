package duckdb

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	duck "github.com/duckdb/duckdb-go-bindings"
)

// restoreMaps puts back what the import of an Arrow schema loses: the extension names of a map's keys and values,
// without which a boolean in a map would pass for a number. They are asked for from the engine's own type.
func restoreMaps(opts duck.ArrowOptions, f arrow.Field, lt duck.LogicalType) (arrow.Field, error) {
	switch t := f.Type.(type) {
	case *arrow.MapType:
		key, value := duck.MapTypeKeyType(lt), duck.MapTypeValueType(lt)
		defer duck.DestroyLogicalType(&key)
		defer duck.DestroyLogicalType(&value)
		s, err := arrowSchema(opts, []duck.LogicalType{key, value}, []string{"key", "value"})
		if err != nil {
			return f, err
		}
		k, err := restoreMaps(opts, s.Field(0), key)
		if err != nil {
			return f, err
		}
		v, err := restoreMaps(opts, s.Field(1), value)
		f.Type = arrow.MapOfWithMetadata(k.Type, k.Metadata, v.Type, v.Metadata)
		return f, err
	case *arrow.ListType:
		child := duck.ListTypeChildType(lt)
		defer duck.DestroyLogicalType(&child)
		elem, err := restoreMaps(opts, t.ElemField(), child)
		f.Type = arrow.ListOfField(elem)
		return f, err
	case *arrow.FixedSizeListType:
		child := duck.ArrayTypeChildType(lt)
		defer duck.DestroyLogicalType(&child)
		elem, err := restoreMaps(opts, t.ElemField(), child)
		f.Type = arrow.FixedSizeListOfField(t.Len(), elem)
		return f, err
	case *arrow.StructType:
		fields := slices.Clone(t.Fields())
		for i := range fields {
			child := duck.StructTypeChildType(lt, duck.IdxT(i))
			var err error
			fields[i], err = restoreMaps(opts, fields[i], child)
			duck.DestroyLogicalType(&child)
			if err != nil {
				return f, err
			}
		}
		f.Type = arrow.StructOf(fields...)
	}
	return f, nil
}
