package lakecopy

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"

	"sluice/fault"
	"sluice/sqlguard"
)

// floats makes a source of (x DOUBLE, n STRUCT(l DOUBLE[])), a batch per list of values.
func floats(mem memory.Allocator, batches ...[]float64) *rowsSource {
	nested := arrow.StructOf(arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64), Nullable: true})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "n", Type: nested, Nullable: true},
	}, nil)
	src := &rowsSource{schema: schema}
	for _, values := range batches {
		builder := array.NewRecordBuilder(mem, schema)
		for _, v := range values {
			builder.Field(0).(*array.Float64Builder).Append(v)
			list := builder.Field(1).(*array.StructBuilder).FieldBuilder(0).(*array.ListBuilder)
			builder.Field(1).(*array.StructBuilder).Append(true)
			list.Append(true)
			list.ValueBuilder().(*array.Float64Builder).Append(-v)
		}
		src.batches = append(src.batches, builder.NewRecordBatch())
		builder.Release()
	}
	return src
}

// The first NaN of a float column ends the file; the next has no statistics for it, nested ones included, until the end.
func TestNaN(t *testing.T) {
	l := newCrashLab(t)
	service := l.start(&steps{})
	defer service.Close()
	plain := make([]float64, joinRows)
	for i := range plain {
		plain[i] = float64(i) + 0.5
	}
	broken := slices.Clone(plain)
	broken[7] = math.NaN()
	src := floats(memory.DefaultAllocator, plain, broken, plain)
	result, err := service.Copy(t.Context(), l.who, src, statement("t"), "COPY")
	if err != nil {
		t.Fatal(err)
	}
	if result.FilesWritten != 2 || result.RowsWritten != 3*joinRows {
		t.Fatalf("result %+v", result)
	}
	files := l.visible("t")
	for i, name := range names(files) {
		reader, err := file.NewParquetReader(strings.NewReader(files[name]))
		if err != nil {
			t.Fatal(err)
		}
		meta := reader.MetaData()
		for column, want := range map[int]string{0: "x", 1: "n.l.list.element"} {
			chunk, err := meta.RowGroup(0).ColumnChunk(column)
			if err != nil {
				t.Fatal(err)
			}
			if got := chunk.PathInSchema().String(); got != want {
				t.Fatalf("column %d is %s", column, got)
			}
			stats, err := chunk.StatsSet()
			if err != nil || stats != (i == 0) {
				t.Errorf("file %d, column %s: statistics %v, %v", i+1, want, stats, err)
			}
		}
		reader.Close()
	}
}

func TestWritersAndMemoryStayBounded(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	l := newCrashLab(t)
	service := l.start(&steps{})
	defer service.Close()
	service.mem = mem
	// Two joined batches of 250 partitions each: more than may be open at once.
	mixed := func() string {
		var b strings.Builder
		for i := range joinRows {
			fmt.Fprintf(&b, "r%03d ", i*7919%250)
		}
		return b.String()
	}
	src := regions(mem, 0, mixed(), mixed())
	defer src.release()
	result, err := service.Copy(t.Context(), l.who, src, statement("t", "region"), "COPY")
	if err != nil {
		t.Fatal(err)
	}
	if result.RowsWritten != 2*joinRows || result.PartitionsTouched != 250 || result.FilesWritten != 250 {
		t.Errorf("result %+v", result)
	}
	var rows, bytes int64
	for name, content := range l.visible("t") {
		n, _, err := readBackBytes(content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rows += n
		bytes += int64(len(content))
	}
	if rows != result.RowsWritten || bytes != result.BytesWritten {
		t.Errorf("%d rows and %d bytes on disk, result %+v", rows, bytes, result)
	}
}

// When memory is short, rows go to files early, the largest partitions first, and never to more than 100 at once.
func TestOpenFilesStayBounded(t *testing.T) {
	l := newCrashLab(t)
	s := &steps{}
	service := l.start(s)
	defer service.Close()
	service.holdBytes = 256 << 10
	var mixed strings.Builder
	for i := range joinRows {
		fmt.Fprintf(&mixed, "r%03d ", i*7919%250)
	}
	src := regions(memory.DefaultAllocator, 0, mixed.String(), mixed.String(), mixed.String())
	result, err := service.Copy(t.Context(), l.who, src, statement("t", "region"), "COPY")
	if err != nil {
		t.Fatal(err)
	}
	if s.mostOpen != maxOpen || s.open != 0 {
		t.Errorf("%d files were open at once, and %d still are", s.mostOpen, s.open)
	}
	if result.FilesWritten <= 250 {
		t.Errorf("%d files: no partition was closed and opened again", result.FilesWritten)
	}
	var rows int64
	for name, content := range l.visible("t") {
		n, _, err := readBackBytes(content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rows += n
	}
	if rows != 3*joinRows {
		t.Errorf("%d rows on disk", rows)
	}
}

// A failure at every step frees all memory, too.
func TestNoLeakAfterAFailure(t *testing.T) {
	for k := 1; ; k++ {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		l := newCrashLab(t)
		s := &steps{failAt: k}
		service := l.start(s)
		service.mem, service.holdBytes = mem, 1 // so that files of several partitions are open when it fails
		src := regions(mem, 0, "eu us ap", "eu eu")
		_, err := service.Copy(t.Context(), l.who, src, statement("t", "region"), "COPY")
		service.Close()
		src.release()
		mem.AssertSize(t, 0)
		if s.n < k {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

func TestLimits(t *testing.T) {
	l := newCrashLab(t)
	service := l.start(&steps{})
	defer service.Close()
	var many strings.Builder
	for i := range maxPartitions + 1 {
		fmt.Fprintf(&many, "r%d ", i)
	}
	for sentence, src := range map[string]*rowsSource{
		"too many partitions":      regions(memory.DefaultAllocator, 0, many.String()),
		"a value that is too long": regions(memory.DefaultAllocator, 0, strings.Repeat("x", 249)),
		"escapes make it too long": regions(memory.DefaultAllocator, 0, strings.Repeat("/", 90)),
	} {
		_, err := service.Copy(t.Context(), l.who, src, statement("t", "region"), "COPY")
		if kindOf(err) != string(KindLimit) {
			t.Errorf("%s: %v", sentence, err)
		}
		if files := names(snapshot(t, l.root)); len(files) > 0 {
			t.Errorf("%s: left behind: %v", sentence, files)
		}
	}
	if _, err := service.Copy(t.Context(), l.who, regions(memory.DefaultAllocator, 0, strings.Repeat("x", 248)), statement("t", "region"), "COPY"); err != nil {
		t.Errorf("a folder name of 255 bytes: %v", err)
	}
}

// What lies in the target already decides whether a COPY fits there.
func TestLayout(t *testing.T) {
	for sentence, row := range map[string]struct {
		lay  func(dir string) error
		by   []string
		mode sqlguard.Mode
		kind Kind
	}{
		"nothing there":                      {func(string) error { return nil }, []string{"region"}, sqlguard.OverwritePartitions, ""},
		"files beside partition folders":     {touch("old.parquet"), []string{"region"}, sqlguard.OverwritePartitions, KindSchema},
		"partition folders beside files":     {touch("region=eu/old.parquet"), nil, sqlguard.OverwritePartitions, KindSchema},
		"another key":                        {touch("country=eu/old.parquet"), []string{"region"}, sqlguard.OverwritePartitions, KindSchema},
		"partitioned further":                {touch("region=eu/y=1/old.parquet"), []string{"region"}, sqlguard.OverwritePartitions, KindSchema},
		"the key in other case":              {touch("Region=eu/old.parquet"), []string{"region"}, sqlguard.OverwritePartitions, KindSchema},
		"the same value written otherwise":   {touch("region=%65u/old.parquet"), []string{"region"}, sqlguard.OverwritePartitions, KindSchema},
		"hidden files are nobody's business": {touch("_SUCCESS", ".x/y.parquet"), []string{"region"}, sqlguard.OverwritePartitions, ""},
		"other files are nobody's business":  {touch("README.md"), []string{"region"}, sqlguard.OverwritePartitions, ""},
		"a folder with no key":               {touch("notes/x.txt"), []string{"region"}, sqlguard.OverwritePartitions, ""},
		"an append beside what is no file":   {touch("region=eu/old.parquet"), []string{"region"}, sqlguard.Append, KindSchema},
		"a link in the target":               {link("region=eu"), []string{"region"}, sqlguard.OverwritePartitions, KindPath},
		"a linked file in the target":        {link("x.parquet"), nil, sqlguard.OverwritePartitions, KindPath},
		"the target is a link":               {func(dir string) error { return os.Symlink("..", dir) }, nil, sqlguard.OverwritePartitions, KindPath},
		"the target is a file":               {func(dir string) error { return os.WriteFile(dir, nil, 0o644) }, nil, sqlguard.OverwritePartitions, KindPath},
	} {
		t.Run(sentence, func(t *testing.T) {
			l := newCrashLab(t)
			service := l.start(&steps{})
			defer service.Close()
			if err := os.MkdirAll(filepath.Join(l.root, "t"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := row.lay(filepath.Join(l.root, "t", "x")); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, l.root)
			stmt := statement("t/x", row.by...)
			stmt.Mode = row.mode
			_, err := service.Copy(t.Context(), l.who, regions(memory.DefaultAllocator, 1, "eu"), stmt, "COPY")
			if kindOf(err) != string(row.kind) || (err == nil) != (row.kind == "") {
				t.Errorf("got %v", err)
			}
			if err != nil && !same(before, snapshot(t, l.root)) {
				t.Error("a refused COPY changed files")
			}
		})
	}
}

func touch(names ...string) func(string) error {
	return func(dir string) error {
		for _, name := range names {
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(at, []byte("not a Parquet file"), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
}

func link(name string) func(string) error {
	return func(dir string) error {
		if err := os.MkdirAll(filepath.Join(filepath.Dir(dir), "elsewhere"), 0o755); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return os.Symlink("../elsewhere", filepath.Join(dir, name))
	}
}

// Overwrites of one target at the same time serialise: what is left is one of them, whole.
func TestConcurrentOverwrites(t *testing.T) {
	l := newLab(t, t.TempDir(), "")
	var wait sync.WaitGroup
	errs := make(chan error, 8)
	for i := range cap(errs) {
		wait.Go(func() {
			target := []string{"t", "t/region=eu"}[i/7] // the last one writes below the others' target
			by := [][]string{{"region"}, nil}[i/7]
			_, err := l.service.Copy(t.Context(), l.who, regions(memory.DefaultAllocator, int64(100*i), "eu us eu"), statement(target, by...), "COPY")
			errs <- err
		})
	}
	wait.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	perFolder := map[string]int{}
	for name := range below(snapshot(t, l.root), "t") {
		perFolder[filepath.Dir(name)]++
	}
	if perFolder["t/region=eu"] != 1 || perFolder["t/region=us"] != 1 || len(perFolder) != 2 {
		t.Errorf("files per folder %v", perFolder)
	}
}

// Close must not let the Journal be closed under a run that still has to record how it ended.
func TestCloseWaitsForRuns(t *testing.T) {
	l := newCrashLab(t)
	service := l.start(&steps{})
	src := regions(memory.DefaultAllocator, 1, "eu", "us")
	defer src.release()
	inside, release := make(chan struct{}), make(chan struct{})
	src.onBatch = func(i int) {
		if i == 0 {
			close(inside)
			<-release
		}
	}
	copied, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := service.Copy(t.Context(), l.who, src, statement("t"), "COPY")
		copied <- err
	}()
	<-inside
	go func() { closed <- service.Close() }()
	src2 := regions(memory.DefaultAllocator, 1, "eu")
	defer src2.release()
	for { // Close has begun when no new run may
		if _, err := service.Copy(t.Context(), l.who, src2, statement("u"), "COPY"); err != nil {
			if fault.CodeOf(err) != fault.Busy {
				t.Fatal(err)
			}
			break
		}
	}
	select {
	case err := <-closed:
		t.Fatalf("Close did not wait: %v", err)
	default:
	}
	close(release)
	if err := <-copied; err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	runs, err := l.store.UnsettledRuns(t.Context())
	if err != nil || len(runs) != 0 {
		t.Errorf("unsettled %v, %v", runs, err)
	}
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	l := newCrashLab(t)
	service := l.start(&steps{})
	leave, err := service.runs.begin()
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	service.patience = time.Nanosecond
	if err := service.Close(); fault.CodeOf(err) != fault.Busy {
		t.Errorf("%v", err)
	}
}
