package edges

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// reports is how many public reports docs/COMPATIBILITY.md tells of.
const reports = 42

// outcomes that a row may have. Only what is planned may have no test.
var outcomes = map[string]bool{"fixed": true, "as Ollama, on purpose": true}

var (
	testName = regexp.MustCompile("`([^`]*\\.(?:Test|Fuzz)[^`]*)`")
	planned  = regexp.MustCompile(`^planned \(step [3-8]\)$`)
)

// TestEachReportHasATestThatExists: a page that promises what no test tries is worth nothing a year later.
func TestEachReportHasATestThatExists(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "COMPATIBILITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkReports(string(page), filepath.Join("..", "..")) {
		t.Error(problem)
	}
}

// checkReports reads the rows of the page's table and says what is wrong with them.
func checkReports(page, root string) []string {
	var problems []string
	complain := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	seen := map[int]bool{}
	for line := range strings.SplitSeq(page, "\n") {
		cells := strings.Split(strings.ReplaceAll(strings.TrimSpace(line), `\|`, "\x00"), "|")
		if len(cells) < 3 {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(cells[1]))
		if err != nil {
			continue // a heading, or another table
		}
		if len(cells) != 8 { // the empty ones before the first and behind the last bar are cells too
			complain("report %d: %d columns, not 6", n, len(cells)-2)
			continue
		}
		if seen[n] {
			complain("report %d is there twice", n)
		}
		seen[n] = true
		for i, cell := range cells[2:6] {
			if strings.TrimSpace(cell) == "" {
				complain("report %d: column %d is empty", n, i+2)
			}
		}
		outcome := strings.TrimSpace(cells[5])
		isPlanned := planned.MatchString(outcome)
		if !outcomes[outcome] && !isPlanned {
			complain("report %d: unknown outcome %q", n, outcome)
		}
		tests := testName.FindAllStringSubmatch(cells[6], -1)
		if len(tests) == 0 && !isPlanned {
			complain("report %d names no test", n)
		}
		for _, m := range tests {
			if err := findTest(root, m[1]); err != nil {
				complain("report %d: %v", n, err)
			}
		}
	}
	for n := 1; n <= reports; n++ {
		if !seen[n] {
			complain("report %d is missing", n)
		}
	}
	if len(seen) > reports {
		complain("%d reports, not %d", len(seen), reports)
	}
	return problems
}

// findTest looks for folder.TestName, or folder.TestName/sub: sub is a text of the folder's tests, or a file of its testdata.
func findTest(root, name string) error {
	folder, rest, _ := strings.Cut(name, ".")
	function, sub, hasSub := strings.Cut(rest, "/")
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: there are no tests in %s", name, folder)
	}
	foundFunction, foundSub := false, !hasSub
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		foundFunction = foundFunction || strings.Contains(string(text), "\nfunc "+function+"(")
		foundSub = foundSub || strings.Contains(string(text), strconv.Quote(sub))
	}
	if !foundSub {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "testdata", sub+".*"))
		foundSub = err == nil && len(found) > 0
	}
	switch {
	case !foundFunction:
		return fmt.Errorf("%s: there is no function %s in %s", name, function, folder)
	case !foundSub:
		return fmt.Errorf("%s: %s has no case %q", name, folder, sub)
	}
	return nil
}

// What the check must find, so that a broken one does not pass.
func TestTheCheckOfReportsFindsWhatIsMissing(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "room", "testdata"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"room/a_test.go": "package room\n\nfunc TestA(t *testing.T) {\n\tt.Run(\"a case\", nil)\n}\n", "room/testdata/scenario-x.txt": ""} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table := func(change map[int]string) string {
		var b strings.Builder
		b.WriteString("| # | Report | Symptom | Sluice | Outcome | Test |\n| --- | --- | --- | --- | --- | --- |\n")
		for n := 1; n <= reports; n++ {
			row := fmt.Sprintf("| %d | #1 | s | w | fixed | `room.TestA` |", n)
			if r, ok := change[n]; ok {
				row = r
			}
			b.WriteString(row + "\n")
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		row  string // of report 7
		want string // "": nothing
	}{
		"as it should be":               {"| 7 | #1 | a \\| b | w | fixed | `room.TestA/a case`, `room.TestA/scenario-x` |", ""},
		"planned, without a test":       {"| 7 | #1 | s | w | planned (step 3) | – |", ""},
		"planned, with a missing test":  {"| 7 | #1 | s | w | planned (step 3) | `room.TestB` |", "no function TestB"},
		"planned, but not when":         {"| 7 | #1 | s | w | planned | – |", "unknown outcome"},
		"no test":                       {"| 7 | #1 | s | w | fixed | – |", "names no test"},
		"a function that is gone":       {"| 7 | #1 | s | w | fixed | `room.TestB` |", "no function TestB"},
		"a name that only begins so":    {"| 7 | #1 | s | w | fixed | `room.Test` |", "no function Test"},
		"a case that is gone":           {"| 7 | #1 | s | w | fixed | `room.TestA/b case` |", `no case "b case"`},
		"a folder that is gone":         {"| 7 | #1 | s | w | fixed | `attic.TestA` |", "no tests in attic"},
		"a row that is gone":            {"", "report 7 is missing"},
		"a row that is there twice":     {"| 7 | #1 | s | w | fixed | `room.TestA` |\n| 7 | #1 | s | w | fixed | `room.TestA` |", "twice"},
		"an outcome that means nothing": {"| 7 | #1 | s | w | done | `room.TestA` |", "unknown outcome"},
		"a column too few":              {"| 7 | #1 | s | fixed | `room.TestA` |", "columns"},
		"an empty column":               {"| 7 | #1 |  | w | fixed | `room.TestA` |", "column 3 is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			problems := strings.Join(checkReports(table(map[int]string{7: c.row}), root), "\n")
			if c.want == "" && problems != "" || !strings.Contains(problems, c.want) {
				t.Errorf("found %q, want %q", problems, c.want)
			}
		})
	}
}
