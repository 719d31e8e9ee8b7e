package lakecopy

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"sluice/access"
	"sluice/sqlguard"
	"sluice/store"
)

// steps counts every file operation and every record of the journal, and makes one fail.
type steps struct {
	n      int
	failAt int  // 0: none
	after  bool // the step is done and its answer gets lost; else it is not done
	cut    bool // the power is cut: everything later fails too, undone
	last   string

	open, mostOpen int // staged files
}

var errCut = errors.New("injected failure")

// do runs a step, or fails it.
func (s *steps) do(what string, step func() error) error {
	s.n++
	switch {
	case s.failAt == 0 || s.n < s.failAt, !s.cut && s.n > s.failAt:
		return step()
	case s.n == s.failAt:
		s.last = what
		if s.after {
			if err := step(); err != nil {
				return err
			}
		}
	}
	return &fs.PathError{Op: what, Path: "x", Err: errCut}
}

// faultyFolder is a real folder whose operations fail as steps says.
type faultyFolder struct {
	folder
	s *steps
}

func (f faultyFolder) Mkdir(name string) error {
	return f.s.do("mkdir", func() error { return f.folder.Mkdir(name) })
}
func (f faultyFolder) Link(old, new string) error {
	return f.s.do("link", func() error { return f.folder.Link(old, new) })
}
func (f faultyFolder) Remove(name string) error {
	return f.s.do("remove", func() error { return f.folder.Remove(name) })
}
func (f faultyFolder) RemoveAll(name string) error {
	return f.s.do("remove all", func() error { return f.folder.RemoveAll(name) })
}
func (f faultyFolder) SyncDir(name string) error {
	return f.s.do("sync folder", func() error { return f.folder.SyncDir(name) })
}
func (f faultyFolder) Open(name string) (out parquet.ReaderAtSeeker, err error) {
	err = f.s.do("open", func() error { out, err = f.folder.Open(name); return err })
	return out, err
}
func (f faultyFolder) ReadDir(name string) (out []fs.DirEntry, err error) {
	err = f.s.do("list", func() error { out, err = f.folder.ReadDir(name); return err })
	return out, err
}
func (f faultyFolder) Lstat(name string) (out fs.FileInfo, err error) {
	err = f.s.do("stat", func() error { out, err = f.folder.Lstat(name); return err })
	return out, err
}
func (f faultyFolder) Create(name string) (out stagedFile, err error) {
	err = f.s.do("create", func() error { out, err = f.folder.Create(name); return err })
	if err != nil {
		return nil, err
	}
	f.s.open++
	f.s.mostOpen = max(f.s.mostOpen, f.s.open)
	return faultyFile{out, f.s}, nil
}

type faultyFile struct {
	stagedFile
	s *steps
}

func (f faultyFile) Write(p []byte) (n int, err error) {
	err = f.s.do("write", func() error { n, err = f.stagedFile.Write(p); return err })
	return n, err
}
func (f faultyFile) Close() error {
	f.s.open--
	return f.stagedFile.Close()
}
func (f faultyFile) Sync() error {
	return f.s.do("sync", func() error { return f.stagedFile.Sync() })
}

// faultyJournal is a real store whose writes fail as steps says.
type faultyJournal struct {
	Journal
	s *steps
}

func (j faultyJournal) InsertRun(ctx context.Context, r store.Run) error {
	return j.s.do("insert run", func() error { return j.Journal.InsertRun(ctx, r) })
}
func (j faultyJournal) UpdateRun(ctx context.Context, r store.Run) error {
	return j.s.do("update run "+string(r.State), func() error { return j.Journal.UpdateRun(ctx, r) })
}

// rowsSource gives rows made by hand: the source is not what fails here.
type rowsSource struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
	err     error
	onBatch func(i int)
}

func (s *rowsSource) Name() string          { return "shop" }
func (s *rowsSource) DefaultSchema() string { return "main" }
func (s *rowsSource) Catalog(context.Context) (*sqlguard.Catalog, error) {
	return &sqlguard.Catalog{DefaultSchema: "main"}, nil
}
func (s *rowsSource) Approve(context.Context, string, sqlguard.Profile, func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	return sqlguard.Approved{}, nil
}
func (s *rowsSource) Run(context.Context, sqlguard.Approved) (array.RecordReader, error) {
	reader, err := array.NewRecordReader(s.schema, s.batches)
	return &rowsReader{RecordReader: reader, source: s}, err
}

type rowsReader struct {
	array.RecordReader
	source *rowsSource
	n      int
}

func (r *rowsReader) Next() bool {
	if r.source.onBatch != nil {
		r.source.onBatch(r.n)
	}
	r.n++
	return r.RecordReader.Next()
}

func (r *rowsReader) Err() error { return errors.Join(r.RecordReader.Err(), r.source.err) }

// regions makes a source of (id BIGINT, region VARCHAR), a batch per text, each text a list of regions.
func regions(mem memory.Allocator, first int64, batches ...string) *rowsSource {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "region", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil)
	src := &rowsSource{schema: schema}
	for _, text := range batches {
		builder := array.NewRecordBuilder(mem, schema)
		for region := range strings.FieldsSeq(text) {
			builder.Field(0).(*array.Int64Builder).Append(first)
			builder.Field(1).(*array.StringBuilder).Append(region)
			first++
		}
		src.batches = append(src.batches, builder.NewRecordBatch())
		builder.Release()
	}
	return src
}

func (s *rowsSource) release() {
	for _, batch := range s.batches {
		batch.Release()
	}
}

func statement(path string, partitionBy ...string) sqlguard.Copy {
	return sqlguard.Copy{
		Query: "SELECT 1", Path: path, Connection: "dest", PartitionBy: partitionBy, Mode: sqlguard.OverwritePartitions,
		Compression: "zstd", RowGroupSize: 122880, FileTargetMB: 128,
	}
}

// crashLab is a lake whose steps can be made to fail.
type crashLab struct {
	t     *testing.T
	root  string
	store *store.Store
	who   access.Principal
	now   time.Time
}

func newCrashLab(t *testing.T) *crashLab {
	journal, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })
	return &crashLab{
		t: t, root: t.TempDir(), store: journal, now: time.Now(),
		who: trusted(),
	}
}

// start opens the service anew, as after a restart; s says what fails from then on.
func (l *crashLab) start(s *steps) *Service {
	l.t.Helper()
	healthy := steps{failAt: s.failAt, after: s.after, cut: s.cut}
	s.failAt = 0
	service, err := open(l.t.Context(), Config{
		Connections: []Connection{{Name: "dest", URL: "file://" + l.root, WriteAllowlist: []string{"/"}}},
		Journal:     faultyJournal{l.store, s}, Rights: rightsOf(l.who), FreshFor: longFresh, Now: func() time.Time { return l.now },
	}, func(dir string) (folder, error) {
		real, err := openFolder(dir)
		return faultyFolder{real, s}, err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	*s = healthy
	return service
}

// visible maps the data files of a target to their content.
func (l *crashLab) visible(target string) map[string]string {
	return below(snapshot(l.t, l.root), target)
}

func names(files map[string]string) []string {
	out := []string{}
	for name := range files {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// readBackBytes reads the footer of a file's content.
func readBackBytes(content string) (rows int64, groups int, err error) {
	reader, err := file.NewParquetReader(strings.NewReader(content))
	if err != nil {
		return 0, 0, err
	}
	defer reader.Close()
	return reader.NumRows(), reader.NumRowGroups(), nil
}
