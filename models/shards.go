package models

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"sluice/fault"
)

// The keys by which llama.cpp tells the shards of one model. The first shard has all other keys too, the others often no more
// than these.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// maxShards is more than any published model has.
const maxShards = 1024

// split says which part of a model a file is. The zero value is a whole model.
type split struct {
	no      int // from 0
	count   int
	tensors int // of all shards; 0: not said
}

// sharded tells that a file is one of several.
func (s split) sharded() bool { return s.count > 1 }

func (s split) String() string { return fmt.Sprintf("shard %d of %d", s.no+1, s.count) }

// shardKey reads one of the three keys, which have one type each: llama.cpp aborts on another one.
func (h *header) shardKey(key string, kind uint32) error {
	from := h.keyAt
	defer func() { h.shardKeys = append(h.shardKeys, span{from, h.read}) }()
	if key == keySplitTensors {
		if kind != ggufInt32 {
			return fmt.Errorf("%s is not an int32", key)
		}
		n, err := h.u32()
		if err == nil && n > maxTensors {
			err = fmt.Errorf("%d tensors are too many", n)
		}
		h.split.tensors = int(n)
		return err
	}
	if kind != ggufUint16 {
		return fmt.Errorf("%s is not a uint16", key)
	}
	n, err := h.u16()
	if key == keySplitNo {
		h.split.no = int(n)
		return err
	}
	if n > maxShards {
		return fmt.Errorf("%d shards are too many", n)
	}
	h.split.count = int(n)
	return err
}

// shard is a file of a sharded model.
type shard struct {
	label string // its name as the caller knows it, for messages
	path  string
	head  *header
}

// readShard reads a GGUF file's header; the file need not be a shard.
func readShard(label, path string) (shard, error) {
	f, err := openFile(path)
	if err != nil {
		return shard{}, fmt.Errorf("models: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return shard{}, fmt.Errorf("models: %w", err)
	}
	head, err := readHeader(f, fi.Size())
	if err != nil {
		return shard{}, named(label, err)
	}
	return shard{label, path, head}, nil
}

// named says which of several files is meant.
func named(label string, err error) error {
	return fault.Wrap(err, fault.CodeOf(err), "models.shards", "%s: %s", shown(label), fault.Public(err).Msg)
}

// inOrder sorts the shards of one model by what their keys say. Invalid when one is missing, there twice, or of another model.
func inOrder(shards []shard) ([]shard, error) {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "models.inOrder", format, args...)
	}
	first := shards[0]
	if !first.head.split.sharded() {
		return nil, bad("%s is no shard, but a whole model", shown(first.label))
	}
	out := make([]shard, first.head.split.count)
	tensors := 0
	for _, s := range shards {
		is, want := s.head.split, first.head.split
		if is.count != want.count || is.tensors != want.tensors {
			return nil, bad("%s and %s are not of one model: %s, %s", shown(first.label), shown(s.label), want, is)
		}
		if other := out[is.no]; other.head != nil {
			return nil, bad("%s is there twice: %s and %s", is, shown(other.label), shown(s.label))
		}
		out[is.no] = s
		tensors += len(s.head.tensors)
	}
	if missing := absent(out); missing != "" {
		return nil, bad("of %d shards of the model these are missing: %s", len(out), missing)
	}
	if want := first.head.split.tensors; want > 0 && want != tensors {
		return nil, bad("the shards have %d tensors in all, and say that there are %d", tensors, want)
	}
	return out, nil
}

// absent lists the numbers of the shards that are not there.
func absent(shards []shard) string {
	var missing []string
	for i, s := range shards {
		if s.head == nil {
			missing = append(missing, strconv.Itoa(i+1))
		}
	}
	const most = 10
	if len(missing) > most {
		missing = append(missing[:most], fmt.Sprintf("and %d more", len(missing)-most))
	}
	return strings.Join(missing, ", ")
}

// shardForm is how llama.cpp names shards, and finds them again.
var shardForm = regexp.MustCompile(`^(.+)-([0-9]{5})-of-([0-9]{5})\.gguf$`)

// shardName reads a shard's file name: the model's part of it, the shard's number from 1, and how many there are.
func shardName(file string) (base string, no, count int, ok bool) {
	m := shardForm.FindStringSubmatch(file)
	if m == nil {
		return "", 0, 0, false
	}
	no, _ = strconv.Atoi(m[2]) // five digits
	count, _ = strconv.Atoi(m[3])
	return m[1], no, count, no > 0 && no <= count && count <= maxShards
}

// ShardFiles gives the files of which a GGUF file on this machine is one, in order, by llama.cpp's way to name them
// (x-00001-of-00003.gguf); a file of another name is alone. It does not look whether they are there.
func ShardFiles(path string) []string {
	base, _, count, ok := shardName(filepath.Base(path))
	if !ok {
		return []string{path}
	}
	out := make([]string, count)
	for i := range out {
		out[i] = filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%05d-of-%05d.gguf", base, i+1, count))
	}
	return out
}
