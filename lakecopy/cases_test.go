package lakecopy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
	"sluice/store"
)

// lakeCase is a line of testdata/lakecopy/lakecopy.jsonl; its README is the vocabulary.
type lakeCase struct {
	ID     string   `json:"id"`
	Source string   `json:"source"`
	Setup  []string `json:"setup"`
	Pre    []string `json:"pre"`
	Copy   string   `json:"copy"`
	User   string   `json:"user"`
	Expect struct {
		Untouched []string `json:"untouched"`
	} `json:"expect"`
	raw json.RawMessage
}

func loadCases(t *testing.T) []lakeCase {
	t.Helper()
	text, err := os.ReadFile("../testdata/lakecopy/lakecopy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var cases []lakeCase
	for line := range bytes.Lines(text) {
		var c lakeCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		c.raw = bytes.Clone(bytes.TrimSpace(line))
		cases = append(cases, c)
	}
	return cases
}

// TestRealReadersAgreeOnTheCases runs the cases of the DuckDB source through the real gate and database, read back by other programs.
func TestRealReadersAgreeOnTheCases(t *testing.T) {
	ran := 0
	var lines bytes.Buffer
	for _, c := range loadCases(t) {
		if c.Source != "duckdb" {
			continue // PostgreSQL is no source of this version
		}
		ran++
		t.Run(c.ID, func(t *testing.T) { runCase(t, c, &lines) })
	}
	if ran < 60 {
		t.Errorf("only %d cases ran", ran)
	}
	readCasesBack(t, &lines, ran)
}

func runCase(t *testing.T, c lakeCase, lines *bytes.Buffer) {
	base, err := os.MkdirTemp(lakesDir(t), "case")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "lake")
	l := newLab(t, root, c.User)
	zone := ""
	for _, setup := range c.Setup {
		name, ok := strings.CutPrefix(setup, "SET TimeZone='")
		if !ok {
			t.Fatalf("a setup that this test does not know: %s", setup)
		}
		zone = strings.TrimSuffix(name, "'")
	}
	src := openSource(t, database.Config{Name: "shop", SessionTimezone: zone}, nil)
	for _, text := range c.Pre {
		if _, err := l.copy(t.Context(), src, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	before := snapshot(t, base)
	result, err := l.copy(t.Context(), src, c.Copy)
	after := snapshot(t, base)

	var kind any
	if err != nil {
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind == "" || e.Msg == "" || fault.CodeOf(err) == fault.Internal {
			t.Errorf("an error without a kind or a sentence: %v", err)
		} else {
			kind = e.Kind
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("a failed COPY changed files:\n%v\n%v", before, after)
		}
	}
	for name := range after {
		if _, had := before[name]; !had && (!strings.HasPrefix(name, "lake/t/") || strings.Contains(name, ".sluice")) {
			t.Errorf("a file outside of the target: %s", name)
		}
	}
	for _, folder := range c.Expect.Untouched {
		if a, b := below(before, "lake/"+folder), below(after, "lake/"+folder); len(a) == 0 || !reflect.DeepEqual(a, b) {
			t.Errorf("%s changed: %v %v", folder, a, b)
		}
	}
	line, err := json.Marshal(map[string]any{"case": c.raw, "root": root, "rows": result.RowsWritten, "error": kind})
	if err != nil {
		t.Fatal(err)
	}
	lines.Write(append(line, '\n'))
}

// lakesDir outlives a case, for the reader that looks at all of them at the end.
func lakesDir(t *testing.T) string {
	t.Helper()
	if casesDir == "" {
		t.Fatal("no folder for the lakes")
	}
	return casesDir
}

var casesDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "lakecopy")
	if err != nil {
		panic(err)
	}
	casesDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func readCasesBack(t *testing.T, lines *bytes.Buffer, ran int) {
	t.Helper()
	cmd, err := python(t.Context(), "testdata/readback.py")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stderr = lines, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("readback.py: %v", err)
	}
	judged := 0
	for scan := bufio.NewScanner(bytes.NewReader(out)); scan.Scan(); judged++ {
		var verdict struct {
			ID       string
			Problems []string
		}
		if err := json.Unmarshal(scan.Bytes(), &verdict); err != nil {
			t.Fatal(err)
		}
		for _, problem := range verdict.Problems {
			t.Errorf("%s: %s", verdict.ID, problem)
		}
	}
	if judged != ran {
		t.Errorf("readback.py judged %d of %d cases", judged, ran)
	}
}

// python runs a script by the interpreter that has pyarrow and duckdb.
func python(ctx context.Context, args ...string) (*exec.Cmd, error) {
	name := os.Getenv("SLUICE_TEST_PYTHON")
	if name == "" {
		return nil, errors.New("SLUICE_TEST_PYTHON must name a Python that has pyarrow and duckdb; `make test` sets it")
	}
	return exec.CommandContext(ctx, name, args...), nil
}

// emptyDatabase is a DuckDB file with one small table.
var emptyDatabase = sync.OnceValues(func() ([]byte, error) {
	file := filepath.Join(casesDir, "empty.duckdb")
	if err := database.CreateFile(context.Background(), file, "CREATE TABLE items AS SELECT i AS id FROM range(3) r(i)"); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

// lab is a lake with its service and an admin to use it.
type lab struct {
	service *Service
	store   *store.Store
	root    string
	who     access.Principal
}

func newLab(t testing.TB, root, user string) *lab {
	t.Helper()
	journal, err := store.Open(context.Background(), filepath.Join(t.TempDir(), "control.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { journal.Close() })
	allowed := []string{"/"}
	if user == "limited" {
		allowed = []string{"ok/*", "t/*"}
	}
	dest := Connection{Name: "dest", URL: "file://" + root, WriteAllowlist: allowed, Managed: []string{"tables/"}}
	service, err := New(context.Background(), Config{Connections: []Connection{dest}, Journal: journal, Rights: rightsOf(trusted()), FreshFor: longFresh})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	return &lab{service: service, store: journal, root: root, who: trusted()}
}

// copy runs a whole statement as the server does.
func (l *lab) copy(ctx context.Context, src Source, text string) (Result, error) {
	stmt, err := sqlguard.Classify(text)
	if err != nil {
		return Result{}, err
	}
	if stmt.Copy == nil {
		return Result{}, errors.New("not a COPY")
	}
	return l.service.Copy(ctx, l.who, src, *stmt.Copy, text)
}

func openSource(t testing.TB, cfg database.Config, ext database.Externals) *database.Source {
	t.Helper()
	cfg.Kind, cfg.Path = "duckdb", filepath.Join(t.TempDir(), "source.duckdb")
	content, err := emptyDatabase()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.Path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := database.Open(context.Background(), cfg, ext)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// snapshot maps every file below a folder, by slash-separated name, to its content.
func snapshot(t testing.TB, base string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(base, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(base, name)
		if entry.Type()&fs.ModeSymlink != 0 {
			files[filepath.ToSlash(rel)] = "a link"
			return nil
		}
		content, err := os.ReadFile(name)
		files[filepath.ToSlash(rel)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func below(files map[string]string, folder string) map[string]string {
	out := map[string]string{}
	for name, content := range files {
		if strings.HasPrefix(name, folder+"/") {
			out[name] = content
		}
	}
	return out
}
