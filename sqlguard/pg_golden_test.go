package sqlguard

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"sluice/fault"
)

// TestPostgresGolden shows what the gate makes of each text: the command is the profile, `grants` a list of relations.
// `go test ./sqlguard -rewrite` accepts a change. What is approved must be approved again as it is.
func TestPostgresGolden(t *testing.T) {
	datadriven.Walk(t, filepath.Join("testdata", "postgres"), func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			profile, ok := profileNames[d.Cmd]
			if !ok {
				t.Fatalf("%s: the profile %s is unknown", d.Pos, d.Cmd)
			}
			var grants []string
			for _, a := range d.CmdArgs {
				if a.Key == "grants" {
					grants = append([]string{}, a.Vals...)
				}
			}
			a, err := pgCheck(t, d.Input, profile, grants)
			var f *fault.Error
			switch {
			case err == nil:
				pgStable(t, d.Pos, a, profile, grants)
				var reads []string
				for _, r := range a.Relations() {
					reads = append(reads, r.Schema+"."+r.Name)
				}
				explain, shown := "", ""
				if a.Explain() {
					explain = "explain: "
				}
				if a.Shown() != a.SQL() {
					shown = "shown: " + a.Shown() + "\n"
				}
				return fmt.Sprintf("%s%s\n%sreads: %s\n", explain, a.SQL(), shown, strings.Join(reads, ", "))
			case errors.As(err, &f) && f.Code == fault.Refused:
				out := fmt.Sprintf("%s (%s)\n", f.Msg, f.Kind)
				if f.Hint != "" {
					out += "hint: " + f.Hint + "\n"
				}
				if f.Position > 0 {
					rest := d.Input[min(f.Position-1, len(d.Input)):]
					out += fmt.Sprintf("at %d: %.40s\n", f.Position, rest)
				}
				return out
			}
			t.Errorf("%s: %v is no refusal", d.Pos, err)
			return err.Error() + "\n"
		})
	})
}
