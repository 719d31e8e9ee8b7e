package models

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"sluice/fault"
)

// Bounds of a header. The largest real vocabulary has 262,144 tokens and makes a header of some 12 MiB.
const (
	maxHeader  = 256 << 20
	maxKeys    = 1 << 16
	maxKey     = 1 << 16
	maxString  = 16 << 20
	maxTensors = 1 << 16 // llama.cpp compares every pair of names: some seconds for so many
	maxDims    = 4       // GGML_MAX_DIMS
)

// headStart is where the key-values begin, behind four bytes GGUF, the version and two counts.
const headStart = 24

// The types of GGUF values.
const (
	ggufUint16 = 2
	ggufUint32 = 4
	ggufInt32  = 5
	ggufString = 8
	ggufArray  = 9
)

// widths of the scalar types, in bytes, by type number.
var widths = map[uint32]uint64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// checkHeader walks a GGUF header without keeping it. What passes can be read by fs/ggml without an allocation that the
// file does not pay for with its own size, has none of the keys in a form on which llama.cpp aborts (architecture, alignment,
// tokens, their types and scores, the numbers of a shard), and has all the bytes of its tensors.
func checkHeader(r io.Reader, size int64) error {
	_, err := readHeader(r, size)
	return err
}

// readHeader is checkHeader that says what it found.
func readHeader(r io.Reader, size int64) (*header, error) {
	h := &header{
		r: bufio.NewReaderSize(io.LimitReader(r, maxHeader), 64<<10), size: uint64(size), seen: map[string]bool{},
		perTok: map[string]uint64{}, names: map[string]bool{}, align: 32,
	}
	err := h.walk()
	if errors.Is(err, errUnknownType) {
		return nil, fault.New(fault.Unimplemented, "models.checkHeader", "the GGUF file cannot be used: %s", err)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, "models.checkHeader", "the GGUF file is damaged: %s", err)
	}
	return h, nil
}

// header is the walk, and what it leaves.
type header struct {
	r    *bufio.Reader
	read uint64 // bytes so far
	size uint64 // of the file

	seen   map[string]bool // keys
	arch   bool
	tokens uint64            // length of tokenizer.ggml.tokens
	perTok map[string]uint64 // lengths of the lists that go beside it
	names  map[string]bool   // of tensors

	version   uint32
	keys      uint64 // how many key-values there are
	keysEnd   uint64 // the byte behind them
	align     uint64
	keyAt     uint64 // the byte at which the present key begins
	split     split
	shardKeys []span // where the keys are that say split
	tensors   []tensor
	data      uint64 // the byte at which the tensors' data begins
}

func (h *header) walk() error {
	magic, err := h.bytes(4)
	if err != nil {
		return err
	}
	if string(magic) != "GGUF" {
		return fmt.Errorf("it does not begin with GGUF")
	}
	if h.version, err = h.u32(); err != nil {
		return err
	}
	if h.version != 2 && h.version != 3 {
		return fmt.Errorf("version %d is not supported", h.version)
	}
	tensors, err := h.u64()
	if err != nil {
		return err
	}
	if h.keys, err = h.u64(); err != nil {
		return err
	}
	if tensors > maxTensors || h.keys > maxKeys {
		return fmt.Errorf("%d tensors and %d keys are too many", tensors, h.keys)
	}
	for range h.keys {
		if err := h.keyValue(); err != nil {
			return err
		}
	}
	h.keysEnd = h.read
	if h.split.no > 0 && h.split.no >= h.split.count {
		return fmt.Errorf("it says to be %s", h.split)
	}
	if !h.arch && h.split.no == 0 {
		return fmt.Errorf("general.architecture is missing")
	}
	for key, n := range h.perTok {
		if n != h.tokens {
			return fmt.Errorf("%s has %d entries for %d tokens", key, n, h.tokens)
		}
	}
	for range tensors {
		if err := h.tensor(); err != nil {
			return err
		}
	}
	return h.bounds()
}

func (h *header) keyValue() error {
	h.keyAt = h.read
	key, err := h.text(maxKey)
	if err != nil {
		return err
	}
	if h.seen[key] {
		return fmt.Errorf("key %.80q is there twice", key)
	}
	h.seen[key] = true
	kind, err := h.u32()
	if err != nil {
		return err
	}
	switch key {
	case "general.architecture":
		if kind != ggufString {
			return fmt.Errorf("general.architecture is not a string")
		}
		arch, err := h.text(maxKey)
		h.arch = arch != ""
		return err
	case "general.alignment":
		if kind != ggufUint32 {
			return fmt.Errorf("general.alignment is not a uint32")
		}
		n, err := h.u32()
		if err == nil && bits.OnesCount32(n) != 1 {
			err = fmt.Errorf("general.alignment %d is not a power of two", n)
		}
		h.align = uint64(n)
		return err
	case keySplitNo, keySplitCount, keySplitTensors:
		return h.shardKey(key, kind)
	}
	switch w := widths[kind]; {
	case w > 0:
		return h.skip(w)
	case kind == ggufString:
		_, err := h.text(maxString)
		return err
	case kind == ggufArray:
		return h.array(key)
	}
	return fmt.Errorf("key %.80q has the unknown type %d", key, kind)
}

func (h *header) array(key string) error {
	kind, err := h.u32()
	if err != nil {
		return err
	}
	n, err := h.u64()
	if err != nil {
		return err
	}
	isTokens := key == "tokenizer.ggml.tokens"
	switch key {
	case "tokenizer.ggml.tokens":
		if kind != ggufString || n == 0 {
			return fmt.Errorf("%s is not a list of strings", key)
		}
		h.tokens = n
	case "tokenizer.ggml.token_type", "tokenizer.ggml.scores":
		h.perTok[key] = n
	}
	if w := widths[kind]; w > 0 {
		over, total := bits.Mul64(n, w)
		if over != 0 {
			return fmt.Errorf("key %.80q has %d elements", key, n)
		}
		return h.skip(total)
	}
	if kind != ggufString {
		return fmt.Errorf("key %.80q is a list of the unknown type %d", key, kind)
	}
	if over, least := bits.Mul64(n, 8); over != 0 || least > h.left() {
		return fmt.Errorf("key %.80q has %d elements, more than the file has room for", key, n)
	}
	var seen map[string]struct{}
	if isTokens {
		seen = make(map[string]struct{}, min(n, 1<<18))
	}
	for range n {
		s, err := h.text(maxString)
		if err != nil {
			return err
		}
		if isTokens {
			if _, twice := seen[s]; twice {
				return fmt.Errorf("token %.80q is there twice", s)
			}
			seen[s] = struct{}{}
		}
	}
	return nil
}

// left is how much of the file is unread.
func (h *header) left() uint64 { return h.size - h.read }

// bytes reads n bytes, after it made sure that the file has them.
func (h *header) bytes(n uint64) ([]byte, error) {
	if n > h.left() {
		return nil, fmt.Errorf("it ends too early: %d bytes are missing", n-h.left())
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(h.r, b); err != nil {
		return nil, fmt.Errorf("it ends too early, or its header is larger than %d MiB", maxHeader>>20)
	}
	h.read += n
	return b, nil
}

func (h *header) skip(n uint64) error {
	if n > h.left() || n > maxHeader {
		return fmt.Errorf("it ends too early: a list of %d bytes does not fit", n)
	}
	if _, err := h.r.Discard(int(n)); err != nil {
		return fmt.Errorf("it ends too early, or its header is larger than %d MiB", maxHeader>>20)
	}
	h.read += n
	return nil
}

func (h *header) text(limit uint64) (string, error) {
	n, err := h.u64()
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", fmt.Errorf("a string of %d bytes is too long", n)
	}
	b, err := h.bytes(n)
	return string(b), err
}

func (h *header) u32() (uint32, error) {
	b, err := h.bytes(4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (h *header) u64() (uint64, error) {
	b, err := h.bytes(8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (h *header) u16() (uint16, error) {
	b, err := h.bytes(2)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint16(b), nil
}
