package duckdb_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice/fault"
	"sluice/sqlguard"
)

// TestGateGolden shows what the gate says and what it lets run, theme by theme. It lives here because the gate needs an
// engine's parser; the cases are sqlguard's. `go test ./database/duckdb -run Golden -rewrite` accepts a change.
func TestGateGolden(t *testing.T) {
	s := fixture(t)
	datadriven.Walk(t, filepath.Join("..", "..", "sqlguard", "testdata", "gate"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			profile := sqlguard.ReadOnly
			if d.HasArg("copy") {
				profile = sqlguard.CopySource
			}
			if d.HasArg("restricted") {
				profile = sqlguard.RestrictedRead
			}
			may := everything
			if d.HasArg("may") {
				var grants string
				d.ScanArgs(t, "may", &grants)
				may = func(r sqlguard.Relation) bool { return r.Schema+"."+r.Name == grants }
			}
			a, err := s.Approve(t.Context(), d.Input, profile, may)
			var f *fault.Error
			switch {
			case errors.As(err, &f):
				out := fmt.Sprintf("%s (%s): %s", f.Code, f.Kind, f.Msg)
				if f.Position > 0 {
					out += fmt.Sprintf("\nat %d: %s", f.Position, firstLine(d.Input[f.Position-1:]))
				}
				if f.Hint != "" {
					out += "\nhint: " + f.Hint
				}
				return out + "\n"
			case err != nil:
				return err.Error() + "\n"
			}
			out := a.SQL() + "\n"
			if a.Explain() {
				out = "EXPLAIN " + out
			}
			for _, r := range a.Relations() {
				out += "reads " + r.Schema + "." + r.Name + "\n"
			}
			r, err := s.Run(t.Context(), a)
			if err != nil {
				return out + "fails: " + err.Error() + "\n"
			}
			defer r.Release()
			for r.Next() {
			}
			if r.Err() != nil {
				return out + "fails: " + r.Err().Error() + "\n"
			}
			return out
		})
	})
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s[:min(40, len(s))]
}
