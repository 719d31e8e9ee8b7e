package models

import (
	"errors"
	"fmt"
	"math/bits"
	"os"

	"sluice/fault"
)

// maxTensorName is longer than llama.cpp takes (63 bytes) and than any model has.
const maxTensorName = 1 << 10

// tensor is one entry of a GGUF file's list.
type tensor struct {
	name   string
	shape  []uint64
	kind   uint32
	offset uint64 // from the beginning of the data
	bytes  uint64 // that it takes
}

// tensorKinds are ggml's types of tensors by number (ggml.h, enum ggml_type): a row is of whole blocks.
var tensorKinds = map[uint32]struct{ elements, bytes uint64 }{
	0: {1, 4}, 1: {1, 2}, 30: {1, 2}, 28: {1, 8}, // F32, F16, BF16, F64
	24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, // I8, I16, I32, I64
	2: {32, 18}, 3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 8: {32, 34}, 9: {32, 36}, // Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1
	10: {256, 84}, 11: {256, 110}, 12: {256, 144}, 13: {256, 176}, 14: {256, 210}, 15: {256, 292}, // Q2_K … Q6_K, Q8_K
	16: {256, 66}, 17: {256, 74}, 22: {256, 82}, // IQ2_XXS, IQ2_XS, IQ2_S
	18: {256, 98}, 21: {256, 110}, 19: {256, 50}, 29: {256, 56}, // IQ3_XXS, IQ3_S, IQ1_S, IQ1_M
	20: {32, 18}, 23: {256, 136}, 34: {256, 54}, 35: {256, 66}, // IQ4_NL, IQ4_XS, TQ1_0, TQ2_0
	39: {32, 17}, 4: {32, 17}, // MXFP4, and its number in files that were made before it had one
}

var errUnknownType = errors.New("which this version does not know")

func (h *header) tensor() error {
	name, err := h.text(maxTensorName)
	if err != nil {
		return err
	}
	if h.names[name] {
		return fmt.Errorf("tensor %.80q is there twice", name)
	}
	h.names[name] = true
	t := tensor{name: name}
	if t.shape, err = h.shape(name); err != nil {
		return err
	}
	if t.kind, err = h.u32(); err != nil {
		return err
	}
	if t.offset, err = h.u64(); err != nil {
		return err
	}
	kind, ok := tensorKinds[t.kind]
	if !ok {
		return fmt.Errorf("tensor %.80q is of type %d, %w", name, t.kind, errUnknownType)
	}
	row := uint64(1)
	if len(t.shape) > 0 {
		row = t.shape[0]
	}
	if row%kind.elements != 0 {
		return fmt.Errorf("tensor %.80q has rows of %d elements, and its type has blocks of %d", name, row, kind.elements)
	}
	elements := uint64(1)
	for _, d := range t.shape {
		elements *= d // shape has checked the product
	}
	// fewer than 2^56 elements, and no type takes more than 8 bytes for one
	t.bytes = elements / kind.elements * kind.bytes
	h.tensors = append(h.tensors, t)
	return nil
}

// shape reads dimensions. A dimension of 0 is refused: llama.cpp divides by it.
func (h *header) shape(name string) ([]uint64, error) {
	dims, err := h.u32()
	if err != nil {
		return nil, err
	}
	if dims > maxDims {
		return nil, fmt.Errorf("tensor %.80q has %d dimensions", name, dims)
	}
	shape, elements := make([]uint64, dims), uint64(1)
	for i := range shape {
		if shape[i], err = h.u64(); err != nil {
			return nil, err
		}
		if shape[i] == 0 {
			return nil, fmt.Errorf("tensor %.80q has no elements", name)
		}
		over, product := bits.Mul64(elements, shape[i])
		if over != 0 || product >= 1<<56 {
			return nil, fmt.Errorf("tensor %.80q is too large", name)
		}
		elements = product
	}
	return shape, nil
}

// bounds makes sure that the file has the bytes of every tensor.
func (h *header) bounds() error {
	h.data = padded(h.read, h.align)
	end := uint64(0)
	for _, t := range h.tensors {
		if t.offset > h.size {
			return fmt.Errorf("tensor %.80q begins after the end of the file", t.name)
		}
		end = max(end, h.data+t.offset+t.bytes) // no file has 2^63 bytes, and the other two are below 2^60
	}
	if end > h.size {
		return fmt.Errorf("it is cut short: its tensors take %d bytes, and it has %d", end, h.size)
	}
	return nil
}

// padded is the first multiple of align, a power of two, that is not below n.
func padded(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// CheckGGUF tells whether a GGUF file is whole and tame, so that a runner may see it: its header is well formed and bounded, and
// the bytes of all its tensors are in the file. It reads the header only. Invalid with the reason, Unimplemented when the
// tensors are of a type that this version does not know, NotFound when there is no such file; the messages do not have the path.
func CheckGGUF(path string) error {
	fi, err := os.Stat(path)
	if err != nil {
		return fault.Wrap(err, fault.NotFound, "models.CheckGGUF", "there is no such file")
	}
	if !fi.Mode().IsRegular() { // opening a pipe would wait
		return fault.New(fault.Invalid, "models.CheckGGUF", "it is not a file")
	}
	f, err := openFile(path)
	if err != nil {
		return fmt.Errorf("models: %w", err)
	}
	defer f.Close()
	g, err := decode(f, keepArray)
	if err == nil {
		_, err = readFacts(g)
	}
	return err
}
