package lakecopy

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// survey is what lies in the folders that a run will publish to, looked at under the publish lock.
type survey struct {
	dir    folder
	target string
	keys   []string
	seen   map[string]map[string][]string // folders looked at: value → names of partition folders
	old    []string                       // data files directly in the touched partitions
}

// look checks every touched folder and lists its data files. Another layout than the run's is refused with kind schema:
// mixed depths or keys make a folder that no reader understands.
func look(dir folder, target string, keys, touched []string) (*survey, error) {
	s := &survey{dir: dir, target: target, keys: keys, seen: map[string]map[string][]string{}}
	for _, folder := range touched {
		at := target
		if err := s.level(at, 0, folder); err != nil {
			return nil, err
		}
		if folder == "" {
			continue
		}
		for depth, segment := range strings.Split(folder, "/") {
			at = path.Join(at, segment)
			if err := s.level(at, depth+1, folder); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// level checks one folder, depth segments below the target, on the way to the partition folder wanted.
func (s *survey) level(at string, depth int, wanted string) error {
	values, looked := s.seen[at]
	if !looked {
		var err error
		if values, err = s.list(at, depth); err != nil {
			return err
		}
		s.seen[at] = values
	}
	if depth == len(s.keys) {
		return nil
	}
	// A folder that means the same value as ours and is written otherwise, by another program's escaping or with the key
	// in other case: replacing ours would leave its rows.
	ours := strings.Split(wanted, "/")[depth]
	_, value, _ := hiveValue(ours)
	for _, name := range values[valueKey(value)] {
		if name != ours {
			return fail(KindSchema, "the folders %s and %s mean the same partition; remove or rename the one that is there", name, ours)
		}
	}
	return nil
}

// list checks the entries of a folder and gives its partition folders by the value that they mean.
func (s *survey) list(at string, depth int) (map[string][]string, error) {
	exists, err := realPath(s.dir, at)
	if err != nil {
		return nil, diskError("look at a folder", err)
	}
	if !exists {
		return nil, nil
	}
	entries, err := s.dir.ReadDir(at)
	if err != nil {
		return nil, diskError("list a folder", err)
	}
	values := map[string][]string{}
	for _, entry := range entries {
		if err := s.entry(at, depth, entry); err != nil {
			return nil, err
		}
		if _, value, ok := hiveValue(entry.Name()); ok && !hidden(entry.Name()) && entry.IsDir() {
			values[valueKey(value)] = append(values[valueKey(value)], entry.Name())
		}
	}
	return values, nil
}

// valueKey keeps NULL apart from every text.
func valueKey(value *string) string {
	if value == nil {
		return "null"
	}
	return "=" + *value
}

func (s *survey) entry(at string, depth int, entry fs.DirEntry) error {
	name := entry.Name()
	leaf := depth == len(s.keys)
	switch {
	case hidden(name):
		return nil
	case entry.Type()&fs.ModeSymlink != 0:
		return fail(KindPath, "%s is a link, which a lake may not hold", path.Join(at, name))
	case isData(name) && !entry.IsDir():
		if !leaf {
			return fail(KindSchema, "%s holds data files beside partition folders; this COPY partitions by %s there", at, s.keys[depth])
		}
		s.old = append(s.old, path.Join(at, name))
	case entry.IsDir():
		key, _, ok := hiveValue(name)
		if ok && leaf {
			return fail(KindSchema, "%s is partitioned further, by %s; this COPY would put files beside those folders", at, key)
		}
		if ok && !strings.EqualFold(key, s.keys[depth]) {
			return fail(KindSchema, "%s is partitioned by %s, and this COPY partitions by %s there", at, key, s.keys[depth])
		}
	}
	return nil
}

// sampleFile finds one data file below a folder, first in name order, with the partition keys on its way. Nothing found
// is not an error.
func sampleFile(dir folder, at string) (name string, keys []string, err error) {
	exists, err := realPath(dir, at)
	if err != nil || !exists {
		return "", nil, err
	}
	entries, err := dir.ReadDir(at)
	if err != nil {
		return "", nil, err
	}
	for _, entry := range entries {
		if isData(entry.Name()) && entry.Type().IsRegular() {
			return path.Join(at, entry.Name()), nil, nil
		}
	}
	for _, entry := range entries {
		key, _, ok := hiveValue(entry.Name())
		if !ok || hidden(entry.Name()) || !entry.IsDir() {
			continue
		}
		name, below, err := sampleFile(dir, path.Join(at, entry.Name()))
		if err != nil || name != "" {
			return name, append([]string{key}, below...), err
		}
	}
	return "", nil, nil
}

// sameSchema checks an append against one file that is there: partition keys and depth, and the columns' names, types and
// order-free set. Its errors have kind schema.
func sameSchema(dir folder, target string, keys []string, files *arrow.Schema) error {
	name, has, err := sampleFile(dir, target)
	if err != nil {
		return diskError("list a folder", err)
	}
	if name == "" {
		return nil
	}
	if !slices.EqualFunc(has, keys, strings.EqualFold) {
		return fail(KindSchema, "%s is partitioned by (%s), and this COPY appends partitioned by (%s)", target, strings.Join(has, ", "), strings.Join(keys, ", "))
	}
	want, err := pqarrow.ToParquet(files, format{schema: files, rowGroup: 1, mem: memory.DefaultAllocator}.properties(nil, nil, 0), pqarrow.DefaultWriterProps())
	if err != nil {
		return writeError(err)
	}
	return withFooter(dir, name, func(r *file.Reader, _ int64) error {
		return compareColumns(target, leaves(r.MetaData().Schema), leaves(want))
	})
}

// leaves maps each leaf column's path, folded, to a text of all that its values' reading depends on.
func leaves(s *schema.Schema) map[string]string {
	out := map[string]string{}
	for i := range s.NumColumns() {
		column := s.Column(i)
		text := column.PhysicalType().String()
		if column.TypeLength() > 0 {
			text += "[" + strconv.Itoa(column.TypeLength()) + "]"
		}
		if logical := column.LogicalType(); logical != nil && !logical.IsNone() {
			text += " " + logical.String()
		}
		out[strings.ToLower(column.Path())] = text
	}
	return out
}

func compareColumns(target string, has, want map[string]string) error {
	for name, text := range want {
		there, ok := has[name]
		if !ok {
			return fail(KindSchema, "the files in %s have no column %s, so appending would give it two schemas", target, name)
		}
		if there != text {
			return fail(KindSchema, "column %s is %s in the files of %s, and %s in this COPY", name, there, target, text)
		}
	}
	for name := range has {
		if _, ok := want[name]; !ok {
			return fail(KindSchema, "the files in %s have a column %s that this COPY does not give", target, name)
		}
	}
	return nil
}
