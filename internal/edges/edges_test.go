// Package edges holds the house's floor plan as a test: which room may import which, and which heavy dependency a
// room alone may import. To change the plan, change the tables here and the picture in docs/ARCHITECTURE.md together.
package edges

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// rooms: what each folder may import of ours. A folder below a room (agent/eval) has its own line or its room's.
var rooms = map[string][]string{
	".":                     {}, // models.yaml, embedded
	"fault":                 {},
	"units":                 {}, // quantities that people type
	"config":                {"fault", "units"},
	"access":                {"fault"},
	"sqlguard":              {"fault"},
	"runner":                {"fault"},
	"runner/grammar":        {"fault"},
	"runner/engine":         {"runner", "runner/grammar", "fault"},
	"models":                {"fault", "units"},
	"models/reply":          {"models", "fault"},
	"models/registry":       {"models", "fault", "units"},
	"scheduler":             {"scheduler/fit", "scheduler/remote", "models", "runner", "fault", "units"},
	"scheduler/fit":         {"models", "runner"},
	"scheduler/inventory":   {"runner", "fault", "units"},
	"scheduler/remote":      {"models", "runner", "fault"},
	"store":                 {"access", "fault"},
	"database":              {"database/duckdb", "database/postgres", "sqlguard", "fault"},
	"database/duckdb":       {"sqlguard", "fault"},
	"database/postgres":     {"sqlguard", "fault"},
	"database/pgrole":       {"fault"},
	"rag":                   {"access", "sqlguard", "database", "models", "store", "fault"},
	"agent":                 {"access", "rag", "sqlguard", "database", "models", "store", "fault"},
	"rag/collection":        {"access", "database/duckdb", "fault"},
	"agent/eval":            {"agent", "access", "rag", "sqlguard", "database", "fault"},
	"lakecopy":              {"access", "sqlguard", "database", "store", "fault"},
	"gateway":               {"access", "agent", "scheduler", "scheduler/remote", "runner", "units", "lakecopy", "rag", "rag/collection", "models", "models/reply", "models/registry", "sqlguard", "database", "fault"},
	"cmd/sluice":            {".", "access", "agent", "agent/eval", "config", "database", "database/pgrole", "fault", "gateway", "lakecopy", "models", "models/registry", "rag", "rag/collection", "runner", "scheduler", "scheduler/fit", "scheduler/inventory", "scheduler/remote", "sqlguard", "store", "units"},
	"cmd/sluice-runner":     {"runner", "runner/engine", "fault"},
	"internal/edges":        {},
	"internal/runnertest":   {"runner", "fault"},
	"internal/e2e":          {},
	"internal/fakerunner":   {"runner", "fault"},
	"internal/gatefuzz":     {},
	"internal/gateoracle":   {},
	"internal/pgtest":       {},
	"internal/tinygguf":     {},
	"internal/registrytest": {},
	"bench/sched":           {"bench/beside", "models", "runner", "scheduler/fit"},
	"internal/archlist":     {},
	"bench/beside":          {},
	"bench/engine":          {"bench/beside"},
	"bench/agent":           {"agent", "agent/eval", "bench/beside", "fault"},
	"bench/rag":             {"bench/beside", "rag/collection"},
	"bench/gate":            {"bench/beside", "database", "fault", "sqlguard", "store"},
}

// alone: a dependency (by import path prefix) and the only rooms that may import it.
var alone = map[string][]string{
	"github.com/gin-gonic/gin":               {"gateway"},
	"github.com/hashicorp/golang-lru":        {"scheduler"},
	"github.com/NVIDIA/go-nvml":              {"scheduler/inventory"},
	"github.com/distribution":                {"internal/registrytest"},
	"github.com/ollama/ollama/llama":         {"runner/engine"},
	"github.com/ollama/ollama/runner":        {"runner/engine"},
	"github.com/ollama/ollama/model/models":  {"runner/engine"},
	"github.com/ollama/ollama/model/parsers": {"models", "models/reply"},
	"github.com/ollama/ollama/openai":        {"gateway"},
	"github.com/ollama/ollama/anthropic":     {"gateway"},
	"github.com/prometheus":                  {"gateway"},
	"github.com/google/jsonschema-go":        {"gateway"},
	"github.com/ollama/ollama/ml":            {"runner/engine"},
	"github.com/ollama/ollama/fs/ggml":       {"models", "runner/engine"},
	"github.com/ollama/ollama/convert":       {"models"},
	"github.com/tmc/langchaingo":             {"agent", "rag"},
	"github.com/pgvector/pgvector-go":        {"rag/collection", "bench/rag"},
	"github.com/pganalyze/pg_query_go":       {"sqlguard", "bench/gate"}, // the latter measures it
	"github.com/duckdb":                      {"database/duckdb"},
	"github.com/apache/arrow-go/v18/parquet": {"lakecopy"},
	"modernc.org/sqlite":                     {"store"},
	"github.com/pressly/goose":               {"store"},
	"github.com/goccy/go-yaml":               {"config", "models", "scheduler/inventory", "gateway"},
	"github.com/spf13/cobra":                 {"cmd/sluice"},
	"github.com/jackc/pgx":                   {"database/postgres", "database/pgrole", "internal/pgtest", "store", "rag/collection", "bench/rag", "agent/eval"},
	"golang.org/x/crypto":                    {"store"},
}

// environment: only the two programs read it.
var environment = map[string]bool{"Getenv": true, "LookupEnv": true, "Environ": true, "ExpandEnv": true}

func TestRoomsImportOnlyWhatThePlanAllows(t *testing.T) {
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		room := filepath.ToSlash(filepath.Dir(rel))
		seen[room] = true
		for _, problem := range check(room, path) {
			t.Errorf("%s: %s", filepath.ToSlash(rel), problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen) < 10 {
		t.Fatalf("only %d rooms were found: the walk is broken", len(seen))
	}
}

// plan gives a room's line: its own, or that of the folder above (test support below internal).
func plan(room string) ([]string, string, bool) {
	for r := room; ; r = filepath.ToSlash(filepath.Dir(r)) {
		if may, ok := rooms[r]; ok && (r != "." || room == ".") {
			return may, r, true
		}
		if r == "." {
			break
		}
	}
	return nil, room, false
}

// What the check must find, so that a broken matcher does not pass for a tidy house.
func TestTheCheckFindsWhatIsNotAllowed(t *testing.T) {
	cases := map[string]struct{ room, source, want string }{
		"a room that it may not know":            {"access", `import "sluice/store"`, "must not import store"},
		"the way back":                           {"sqlguard", `import "sluice/database"`, "must not import database"},
		"a heavy dependency of another":          {"agent", `import "github.com/gin-gonic/gin"`, "belongs to gateway alone"},
		"the engine, below its folder":           {"gateway", `import "github.com/ollama/ollama/llama"`, "belongs to runner/engine alone"},
		"the environment":                        {"lakecopy", "import \"os\"\nvar x = os.Getenv(\"HOME\")", "only cmd reads the environment"},
		"the environment under another name":     {"lakecopy", "import sys \"os\"\nvar x = sys.ExpandEnv(\"$HOME\")", "only cmd reads the environment"},
		"a folder that nobody planned":           {"helpers", `import "fmt"`, "has no line in the plan"},
		"an allowed import":                      {"agent", `import "sluice/rag"`, ""},
		"a name that only begins like another's": {"agent", `import "github.com/gin-gonic/ginx"`, ""},
		"a test, which may read the environment": {"internal/e2e", "import \"os\"\nvar x = os.Getenv(\"HOME\")", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.go")
			if err := os.WriteFile(path, []byte("package x\n"+c.source+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(check(c.room, path), "; ")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func check(room, path string) []string {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	may, line, ok := plan(room)
	if !ok {
		return []string{room + " has no line in the plan (internal/edges)"}
	}
	var problems []string
	osName := ""
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if imported == "os" {
			osName = "os"
			if spec.Name != nil {
				osName = spec.Name.Name
			}
		}
		if ours, isOurs := strings.CutPrefix(imported+"/", "sluice/"); isOurs {
			if ours = strings.TrimSuffix(ours, "/"); ours == "" {
				ours = "."
			}
			if !allowed(may, line, room, ours) {
				problems = append(problems, line+" must not import "+ours)
			}
			continue
		}
		for dependency, only := range alone {
			if under(imported, dependency) && !in(only, line) {
				problems = append(problems, line+" must not import "+imported+": it belongs to "+strings.Join(only, ", ")+" alone")
			}
		}
	}
	if osName != "" && !strings.HasPrefix(room, "cmd/") && !strings.HasPrefix(room, "internal/") && !strings.HasPrefix(room, "bench/") {
		problems = append(problems, readsEnvironment(f, osName)...)
	}
	return problems
}

func allowed(may []string, line, room, ours string) bool {
	if in(may, ours) || strings.HasPrefix(ours, line+"/") || strings.HasPrefix(room, "internal/") && strings.HasPrefix(ours, "internal/") {
		return true
	}
	return room != line && ours == line // a folder below a room may import the room
}

func in(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func under(path, prefix string) bool { return path == prefix || strings.HasPrefix(path, prefix+"/") }
