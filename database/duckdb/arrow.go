package duckdb

// The bindings have these two calls only behind the build tag duckdb_arrow. A program that builds without tags is worth
// the few declarations: they are the C API's, and the library is linked by the bindings' module.

/*
#include <stdint.h>
#include <stdlib.h>

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

extern void *duckdb_to_arrow_schema(void *options, void **types, const char **names, uint64_t count, struct ArrowSchema *out);
extern void *duckdb_data_chunk_to_arrow(void *options, void *chunk, struct ArrowArray *out);
*/
import "C"

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	duck "github.com/duckdb/duckdb-go-bindings"
)

// arrowSchema gives the Arrow schema of a result's columns.
func arrowSchema(opts duck.ArrowOptions, types []duck.LogicalType, names []string) (*arrow.Schema, error) {
	n := len(types)
	ptr := unsafe.Sizeof(uintptr(0))
	cTypes := C.calloc(C.size_t(max(n, 1)), C.size_t(ptr))
	cNames := C.calloc(C.size_t(max(n, 1)), C.size_t(ptr))
	defer C.free(cTypes)
	defer C.free(cNames)
	typeList := unsafe.Slice((*unsafe.Pointer)(cTypes), n)
	nameList := unsafe.Slice((**C.char)(cNames), n)
	for i := range n {
		typeList[i] = types[i].Ptr
		nameList[i] = C.CString(names[i])
		defer C.free(unsafe.Pointer(nameList[i]))
	}
	out := (*C.struct_ArrowSchema)(C.calloc(1, C.sizeof_struct_ArrowSchema))
	defer C.free(unsafe.Pointer(out))
	defer cdata.ReleaseCArrowSchema((*cdata.CArrowSchema)(unsafe.Pointer(out)))
	if err := arrowError(C.duckdb_to_arrow_schema(opts.Ptr, (*unsafe.Pointer)(cTypes), (**C.char)(cNames), C.uint64_t(n), out)); err != nil {
		return nil, err
	}
	return cdata.ImportCArrowSchema((*cdata.CArrowSchema)(unsafe.Pointer(out)))
}

// arrowBatch turns a chunk into a record batch that owns its memory.
func arrowBatch(opts duck.ArrowOptions, schema *arrow.Schema, chunk duck.DataChunk) (arrow.RecordBatch, error) {
	out := (*C.struct_ArrowArray)(C.calloc(1, C.sizeof_struct_ArrowArray))
	defer C.free(unsafe.Pointer(out))
	defer cdata.ReleaseCArrowArray((*cdata.CArrowArray)(unsafe.Pointer(out)))
	if err := arrowError(C.duckdb_data_chunk_to_arrow(opts.Ptr, chunk.Ptr, out)); err != nil {
		return nil, err
	}
	return cdata.ImportCRecordBatchWithSchema((*cdata.CArrowArray)(unsafe.Pointer(out)), schema)
}

func arrowError(p unsafe.Pointer) error {
	data := duck.ErrorData{Ptr: p}
	defer duck.DestroyErrorData(&data)
	if !duck.ErrorDataHasError(data) {
		return nil
	}
	return &engineError{kind: duck.ErrorDataErrorType(data), msg: duck.ErrorDataMessage(data)}
}
