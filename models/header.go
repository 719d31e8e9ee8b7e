package models

import (
	"bufio"
	"encoding/binary"
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
	maxTensors = 1 << 20
	maxDims    = 4 // GGML_MAX_DIMS
)

// The types of GGUF values.
const (
	ggufUint32 = 4
	ggufString = 8
	ggufArray  = 9
)

// widths of the scalar types, in bytes, by type number.
var widths = map[uint32]uint64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// checkHeader walks a GGUF header without keeping it. What passes can be read by fs/ggml without an allocation that the
// file does not pay for with its own size, and has none of the five keys in a form on which llama.cpp aborts
// (architecture, alignment, tokens, their types and scores).
func checkHeader(r io.Reader, size int64) error {
	h := &header{r: bufio.NewReaderSize(io.LimitReader(r, maxHeader), 64<<10), size: uint64(size), keys: map[string]bool{}}
	if err := h.walk(); err != nil {
		return fault.New(fault.Invalid, "models.checkHeader", "the GGUF file is damaged: %s", err)
	}
	return nil
}

type header struct {
	r    *bufio.Reader
	read uint64 // bytes so far
	size uint64 // of the file

	keys   map[string]bool
	arch   bool
	tokens uint64            // length of tokenizer.ggml.tokens
	perTok map[string]uint64 // lengths of the lists that go beside it
}

func (h *header) walk() error {
	magic, err := h.bytes(4)
	if err != nil {
		return err
	}
	if string(magic) != "GGUF" {
		return fmt.Errorf("it does not begin with GGUF")
	}
	version, err := h.u32()
	if err != nil {
		return err
	}
	if version != 2 && version != 3 {
		return fmt.Errorf("version %d is not supported", version)
	}
	tensors, err := h.u64()
	if err != nil {
		return err
	}
	keys, err := h.u64()
	if err != nil {
		return err
	}
	if tensors > maxTensors || keys > maxKeys {
		return fmt.Errorf("%d tensors and %d keys are too many", tensors, keys)
	}
	h.perTok = map[string]uint64{}
	for range keys {
		if err := h.keyValue(); err != nil {
			return err
		}
	}
	if !h.arch {
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
	return nil
}

func (h *header) keyValue() error {
	key, err := h.text(maxKey)
	if err != nil {
		return err
	}
	if h.keys[key] {
		return fmt.Errorf("key %.80q is there twice", key)
	}
	h.keys[key] = true
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
		return err
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

func (h *header) tensor() error {
	name, err := h.text(maxKey)
	if err != nil {
		return err
	}
	dims, err := h.u32()
	if err != nil {
		return err
	}
	if dims > maxDims {
		return fmt.Errorf("tensor %.80q has %d dimensions", name, dims)
	}
	elements := uint64(1)
	for range dims {
		d, err := h.u64()
		if err != nil {
			return err
		}
		over, product := bits.Mul64(elements, d)
		// 2^56 elements of at most 8 bytes: the size in bytes cannot overflow
		if over != 0 || product >= 1<<56 {
			return fmt.Errorf("tensor %.80q is too large", name)
		}
		elements = product
	}
	if _, err := h.u32(); err != nil { // its type, which fs/ggml knows
		return err
	}
	offset, err := h.u64()
	if err == nil && offset > h.size {
		err = fmt.Errorf("tensor %.80q begins after the end of the file", name)
	}
	return err
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
