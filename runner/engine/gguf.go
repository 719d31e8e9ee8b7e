package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"sluice/fault"
)

// fileFacts are what a GGUF file's header says, as far as loading needs it.
type fileFacts struct {
	size  int64 // of the file
	arch  string
	ints  map[string]int64   // scalar numbers and booleans
	lists map[string][]int64 // short arrays of numbers, such as the heads of each layer
	vocab int
	kinds map[string]ggufKind // of every key
}

// ggufKind is the type of a value; of an array, also that of its elements.
type ggufKind struct{ value, element uint32 }

// readFacts reads a header and refuses what would abort llama.cpp's loader instead of failing in it: five keys of the wrong
// type or length (gguf.cpp:183 and :818, llama-vocab.cpp:2089 of v0.17.4). Other damage it reports by itself.
func readFacts(path string) (fileFacts, error) {
	f, err := os.Open(path)
	if err != nil {
		return fileFacts{}, fault.Wrap(err, fault.Invalid, "engine.Load", "the model file cannot be opened")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return fileFacts{}, fault.Wrap(err, fault.Invalid, "engine.Load", "the model file is not a file")
	}
	r := &ggufReader{in: bufio.NewReaderSize(f, 1<<20), left: info.Size()}
	facts, err := r.header()
	var known *fault.Error
	if err != nil && !errors.As(err, &known) {
		err = fault.Wrap(err, fault.Invalid, "engine.Load", "the model file is no readable GGUF file: %v", err)
	}
	facts.size = info.Size()
	return facts, err
}

// GGUF's types of values.
const (
	ggufUint8 = iota
	ggufInt8
	ggufUint16
	ggufInt16
	ggufUint32
	ggufInt32
	ggufFloat32
	ggufBool
	ggufString
	ggufArray
	ggufUint64
	ggufInt64
	ggufFloat64
)

// width in bytes of a type's values, 0 where it has none.
var width = map[uint32]int64{
	ggufUint8: 1, ggufInt8: 1, ggufBool: 1, ggufUint16: 2, ggufInt16: 2, ggufUint32: 4, ggufInt32: 4, ggufFloat32: 4,
	ggufUint64: 8, ggufInt64: 8, ggufFloat64: 8,
}

// maxList is the longest array of numbers that is kept: layers, not tokens.
const maxList = 4096

// ggufReader reads a header. No length in it is believed beyond what the file has left.
type ggufReader struct {
	in   *bufio.Reader
	left int64
}

func (r *ggufReader) bytes(n int64) ([]byte, error) {
	if n < 0 || n > r.left {
		return nil, fmt.Errorf("a length of %d, with %d bytes left", n, r.left)
	}
	r.left -= n
	b := make([]byte, n)
	_, err := io.ReadFull(r.in, b)
	return b, err
}

// number reads a value of a fixed width. A float is given as 0: no float matters here.
func (r *ggufReader) number(kind uint32) (int64, error) {
	n, ok := width[kind]
	if !ok {
		return 0, fmt.Errorf("unknown type %d", kind)
	}
	b, err := r.bytes(n)
	if err != nil {
		return 0, err
	}
	switch kind {
	case ggufUint8, ggufBool:
		return int64(b[0]), nil
	case ggufInt8:
		return int64(int8(b[0])), nil
	case ggufUint16:
		return int64(binary.LittleEndian.Uint16(b)), nil
	case ggufInt16:
		return int64(int16(binary.LittleEndian.Uint16(b))), nil
	case ggufUint32:
		return int64(binary.LittleEndian.Uint32(b)), nil
	case ggufInt32:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	case ggufUint64, ggufInt64:
		return int64(binary.LittleEndian.Uint64(b)), nil
	}
	return 0, nil
}

func (r *ggufReader) text() (string, error) {
	n, err := r.number(ggufUint64)
	if err != nil {
		return "", err
	}
	b, err := r.bytes(n)
	return string(b), err
}

func (r *ggufReader) header() (fileFacts, error) {
	facts := fileFacts{ints: map[string]int64{}, lists: map[string][]int64{}, kinds: map[string]ggufKind{}, vocab: -1}
	magic, err := r.bytes(4)
	if err != nil || string(magic) != "GGUF" {
		return facts, errors.New("it does not begin with GGUF")
	}
	version, err := r.number(ggufUint32)
	if err != nil {
		return facts, err
	}
	if version != 2 && version != 3 {
		return facts, fmt.Errorf("version %d", version)
	}
	if _, err := r.number(ggufUint64); err != nil { // tensors
		return facts, err
	}
	keys, err := r.number(ggufUint64)
	if err != nil {
		return facts, err
	}
	tokenTypes := -1
	for range keys {
		key, err := r.text()
		if err != nil {
			return facts, err
		}
		kind, err := r.number(ggufUint32)
		if err != nil {
			return facts, err
		}
		n, err := r.value(&facts, key, uint32(kind))
		if err != nil {
			return facts, fmt.Errorf("key %q: %w", key, err)
		}
		if key == "tokenizer.ggml.token_type" {
			tokenTypes = n
		}
	}
	if facts.arch == "" {
		return facts, errors.New("it does not name its architecture")
	}
	if tokenTypes >= 0 && facts.vocab >= 0 && tokenTypes < facts.vocab {
		return facts, fmt.Errorf("it has %d tokens and the types of %d", facts.vocab, tokenTypes)
	}
	return facts, nil
}

// value reads one value and keeps it where it matters. It gives the length of an array.
func (r *ggufReader) value(facts *fileFacts, key string, kind uint32) (length int, err error) {
	facts.kinds[key] = ggufKind{value: kind}
	switch {
	case key == "general.architecture" && kind != ggufString, key == "general.alignment" && kind != ggufUint32,
		key == "tokenizer.ggml.tokens" && kind != ggufArray:
		return 0, errors.New("wrong type")
	case kind == ggufString:
		s, err := r.text()
		if key == "general.architecture" {
			facts.arch = s
		}
		return 0, err
	case kind != ggufArray:
		n, err := r.number(kind)
		facts.ints[key] = n
		return 0, err
	}
	elem, err := r.number(ggufUint32)
	if err != nil {
		return 0, err
	}
	facts.kinds[key] = ggufKind{ggufArray, uint32(elem)}
	n, err := r.number(ggufUint64)
	if err != nil {
		return 0, err
	}
	if n < 0 || n > r.left {
		return 0, fmt.Errorf("an array of %d, with %d bytes left", n, r.left)
	}
	if key == "tokenizer.ggml.tokens" {
		facts.vocab = int(n)
		return int(n), r.tokens(uint32(elem), n)
	}
	if elem == ggufString {
		for range n {
			if err := r.skipText(); err != nil {
				return 0, err
			}
		}
		return int(n), nil
	}
	w, ok := width[uint32(elem)]
	if !ok {
		return 0, fmt.Errorf("an array of unknown type %d", elem)
	}
	if n > maxList {
		return int(n), r.skip(n * w)
	}
	list := make([]int64, n)
	for i := range list {
		if list[i], err = r.number(uint32(elem)); err != nil {
			return 0, err
		}
	}
	facts.lists[key] = list
	return int(n), nil
}

// tokens checks the vocabulary: the loader aborts on other types, an empty list and duplicates.
func (r *ggufReader) tokens(elem uint32, n int64) error {
	if elem != ggufString {
		return errors.New("wrong type")
	}
	if n == 0 {
		return errors.New("no token")
	}
	if n > r.left/8 { // each has 8 bytes of length
		return fmt.Errorf("%d tokens, with %d bytes left", n, r.left)
	}
	seen := make(map[string]struct{}, min(n, 1<<18)) // no more than real vocabularies have, whatever the file says
	for range n {
		s, err := r.text()
		if err != nil {
			return err
		}
		if _, twice := seen[s]; twice {
			return fmt.Errorf("token %q is listed twice", s)
		}
		seen[s] = struct{}{}
	}
	return nil
}

func (r *ggufReader) skipText() error {
	n, err := r.number(ggufUint64)
	if err != nil {
		return err
	}
	return r.skip(n)
}

func (r *ggufReader) skip(n int64) error {
	if n < 0 || n > r.left {
		return fmt.Errorf("a length of %d, with %d bytes left", n, r.left)
	}
	r.left -= n
	_, err := io.CopyN(io.Discard, r.in, n)
	return err
}

// of is a number of the model's architecture, 0 when absent; of a list, the largest.
func (f fileFacts) of(name string) int64 {
	key := f.arch + "." + name
	if n, ok := f.ints[key]; ok {
		return n
	}
	var largest int64
	for _, n := range f.lists[key] {
		largest = max(largest, n)
	}
	return largest
}

// perLayer is a number that may differ by layer.
func (f fileFacts) perLayer(name string, layer int) int64 {
	if list := f.lists[f.arch+"."+name]; layer < len(list) {
		return list[layer]
	}
	return f.of(name)
}

// pooled says whether the model makes one vector of an input by itself and cannot answer a prompt.
func (f fileFacts) pooled() bool { return f.of("pooling_type") > 0 || f.encoder() }

// packs says whether the model pools over all tokens of a batch, which must then hold whole inputs. A decoder that takes the
// last token's vector does not: it reads its input like a prompt.
func (f fileFacts) packs() bool {
	pooling := f.of("pooling_type")
	return f.encoder() || pooling == poolingMean || pooling == poolingCLS
}

// encoder says whether the model's tokens look both ways, which leaves nothing to be cached.
func (f fileFacts) encoder() bool {
	causal, said := f.ints[f.arch+".attention.causal"]
	return said && causal == 0
}
