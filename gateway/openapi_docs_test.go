package gateway

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDocsListEveryRoute: the table of docs/API.md is that of the document, row by row.
func TestDocsListEveryRoute(t *testing.T) {
	page, err := os.ReadFile("../docs/API.md")
	if err != nil {
		t.Fatal(err)
	}
	var had []string
	for line := range strings.SplitSeq(string(page), "\n") {
		if strings.HasPrefix(line, "| `") {
			had = append(had, line)
		}
	}
	classes := map[string]class{}
	for _, rt := range newServer(newFixture(t, nil).cfg.withDefaults()).routes() {
		classes[rt.method+" "+rt.path] = rt.class
	}
	words := map[class]string{public: "anybody", inference: "a key, or anybody while open", manage: "admin", member: "a key or login", person: "a login, or an admin's key", adminOnly: "admin"}
	var want []string
	for _, name := range slices.Sorted(maps.Keys(operations())) {
		method, path := cutMethod(name)
		want = append(want, fmt.Sprintf("| `%s %s` | %s | %s |", method, openapiPath(path), words[classes[name]], operations()[name].summary))
	}
	byPath := func(a, b string) int {
		key := func(row string) string {
			_, path, _ := strings.Cut(row, " /")
			path, _, _ = strings.Cut(path, "`")
			return path
		}
		return strings.Compare(key(a), key(b))
	}
	slices.SortStableFunc(want, byPath)
	if !slices.Equal(had, want) {
		t.Errorf("the table of docs/API.md should be\n%s", strings.Join(want, "\n"))
	}
}
