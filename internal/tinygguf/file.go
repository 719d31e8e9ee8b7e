package tinygguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
)

// GGUF's types of values and of tensors that are used here.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9

	tensorF32 = 0
	tensorF16 = 1

	alignment = 32
	version   = 3
)

// file collects keys and tensors, in the order in which they are written.
type file struct {
	rng     *rand.Rand
	keys    bytes.Buffer
	nkeys   uint64
	tensors []tensor
}

// tensor has its dimensions as GGUF does: the fastest first, so a matrix from n to m numbers is {n, m}.
type tensor struct {
	name string
	dims []int
	data []float32
	half bool // stored as F16
}

func newFile(seed uint64, arch string) *file {
	f := &file{rng: rand.New(rand.NewPCG(seed, 0x736c75696365))}
	f.set("general.architecture", arch)
	f.set("general.name", "tiny "+arch)
	return f
}

// set adds a key. The value's Go type decides how it is written.
func (f *file) set(key string, value any) {
	f.nkeys++
	putString(&f.keys, key)
	putValue(&f.keys, value)
}

func putValue(b *bytes.Buffer, value any) {
	switch v := value.(type) {
	case int:
		put(b, uint32(typeUint32), uint32(v))
	case float64:
		put(b, uint32(typeFloat32), float32(v))
	case bool:
		put(b, uint32(typeBool), v)
	case string:
		put(b, uint32(typeString))
		putString(b, v)
	case []string:
		put(b, uint32(typeArray), uint32(typeString), uint64(len(v)))
		for _, s := range v {
			putString(b, s)
		}
	case []int32:
		put(b, uint32(typeArray), uint32(typeInt32), uint64(len(v)), v)
	case []float32:
		put(b, uint32(typeArray), uint32(typeFloat32), uint64(len(v)), v)
	case []bool:
		put(b, uint32(typeArray), uint32(typeBool), uint64(len(v)), v)
	default:
		panic(fmt.Sprintf("tinygguf: a value of type %T", value))
	}
}

func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err) // a value without a fixed size: a mistake in this package
		}
	}
}

func putString(b *bytes.Buffer, s string) {
	put(b, uint64(len(s)))
	b.WriteString(s)
}

// add adds a tensor of given numbers, and gives them back to be changed.
func (f *file) add(name string, data []float32, dims ...int) []float32 {
	f.tensors = append(f.tensors, tensor{name: name, dims: dims, data: data})
	return data
}

// random adds a tensor of normally distributed numbers around 0.
func (f *file) random(name string, deviation float64, dims ...int) []float32 {
	return f.add(name, f.normal(deviation, dims...), dims...)
}

func (f *file) normal(deviation float64, dims ...int) []float32 {
	n := 1
	for _, d := range dims {
		n *= d
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(f.rng.NormFloat64() * deviation)
	}
	return data
}

// linear adds a matrix that keeps the size of what passes through it.
func (f *file) linear(name string, from, to int) []float32 {
	return f.random(name, 1/math.Sqrt(float64(from)), from, to)
}

// same adds a tensor of n equal numbers.
func (f *file) same(name string, value float32, n int) {
	data := make([]float32, n)
	for i := range data {
		data[i] = value
	}
	f.add(name, data, n)
}

// half stores the last tensor in 16 bits.
func (f *file) half() { f.tensors[len(f.tensors)-1].half = true }

// bytes is the whole file.
func (f *file) bytes() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	put(&b, uint32(version), uint64(len(f.tensors)), f.nkeys)
	b.Write(f.keys.Bytes())
	offset := 0
	for _, t := range f.tensors {
		kind, width := uint32(tensorF32), 4
		if t.half {
			kind, width = tensorF16, 2
		}
		putString(&b, t.name)
		put(&b, uint32(len(t.dims)))
		for _, d := range t.dims {
			put(&b, uint64(d))
		}
		put(&b, kind, uint64(offset))
		offset = align(offset + width*len(t.data))
	}
	for _, t := range f.tensors {
		b.Write(make([]byte, align(b.Len())-b.Len()))
		if !t.half {
			put(&b, t.data)
			continue
		}
		for _, x := range t.data {
			put(&b, float16(x))
		}
	}
	b.Write(make([]byte, align(b.Len())-b.Len()))
	return b.Bytes()
}

func align(n int) int { return (n + alignment - 1) / alignment * alignment }

// float16 rounds towards zero. Weights here are far from what 16 bits cannot hold, but for the smallest, which become 0.
func float16(x float32) uint16 {
	bits := math.Float32bits(x)
	sign := uint16(bits >> 16 & 0x8000)
	exponent := int(bits>>23&0xff) - 127 + 15
	switch {
	case exponent <= 0:
		return sign
	case exponent >= 31:
		return sign | 0x7bff
	}
	return sign | uint16(exponent)<<10 | uint16(bits>>13&0x3ff)
}
