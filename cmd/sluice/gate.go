package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// gateLine is a statement to decide on; a verdict is a decision.
type gateLine struct {
	ID      string    `json:"id"`
	SQL     string    `json:"sql"`
	Dialect string    `json:"dialect"`
	Profile string    `json:"profile"`
	Grants  *[]string `json:"grants"` // absent: every relation of the schema; a list is exact
}

type verdict struct {
	ID        string `json:"id"`
	Verdict   string `json:"verdict"`
	Why       string `json:"why,omitempty"`
	Position  int    `json:"position,omitempty"`
	SQL       string `json:"sql,omitempty"`        // what would run; for both dialects PostgreSQL's
	DuckDBSQL string `json:"duckdb_sql,omitempty"` // for both dialects, DuckDB's
}

var profiles = map[string]sqlguard.Profile{
	"": sqlguard.ReadOnly, "read_only": sqlguard.ReadOnly, "copy_source": sqlguard.CopySource, "restricted_read": sqlguard.RestrictedRead, "write": sqlguard.Write,
}

func gateCmd() *cobra.Command {
	var schema string
	var lines bool
	cmd := &cobra.Command{
		Use:   "gate --jsonl [--schema FILE.sql]",
		Short: "Decide on statements offline: JSON lines in, verdicts out",
		Long: `Reads lines {"id","sql","dialect","profile","grants"?} and writes lines {"id","verdict","why","position"?,"sql"?}.` + "\n" +
			"Dialects are postgres, duckdb and both, which allows what both gates allow. Profiles are read_only, restricted_read, copy_source and write. A line of another is an error.\n" +
			"Without grants every relation of the schema may be read; a list is exact. The schema's public is main for DuckDB.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !lines {
				return usageError{errors.New("--jsonl is missing; see sluice gate --help")}
			}
			text := []byte(nil)
			if schema != "" {
				var err error
				if text, err = os.ReadFile(schema); err != nil {
					return err
				}
			}
			gates := &offlineGates{schema: string(text), open: map[sqlguard.Dialect]*database.Offline{}}
			defer gates.close()
			in := bufio.NewScanner(cmd.InOrStdin())
			in.Buffer(nil, 64<<20)
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetEscapeHTML(false)
			for n := 1; in.Scan(); n++ {
				if len(bytes.TrimSpace(in.Bytes())) == 0 {
					continue
				}
				var line gateLine
				if err := json.Unmarshal(in.Bytes(), &line); err != nil {
					return fmt.Errorf("line %d: %w", n, err)
				}
				v, err := gates.decide(cmd.Context(), line)
				if err != nil {
					return fmt.Errorf("line %d: %w", n, err)
				}
				if err := out.Encode(v); err != nil {
					return err
				}
			}
			return in.Err()
		},
	}
	cmd.Flags().BoolVar(&lines, "jsonl", false, "read JSON lines from stdin")
	cmd.Flags().StringVar(&schema, "schema", "", "SQL file that makes the relations statements may read")
	return cmd
}

// offlineGates are opened when a line needs them: a schema that one dialect cannot read is no other's trouble.
type offlineGates struct {
	schema string
	open   map[sqlguard.Dialect]*database.Offline
}

func (g *offlineGates) of(ctx context.Context, d sqlguard.Dialect) (*database.Offline, error) {
	if o := g.open[d]; o != nil {
		return o, nil
	}
	o, err := database.OfflineGate(ctx, d, g.schema)
	if err != nil {
		return nil, fmt.Errorf("the schema, read for %s: %w", d, err)
	}
	g.open[d] = o
	return o, nil
}

func (g *offlineGates) close() {
	for _, o := range g.open {
		o.Close()
	}
}

// dialects are those that a line's dialect asks.
var dialects = map[string][]sqlguard.Dialect{
	"postgres": {sqlguard.Postgres}, "duckdb": {sqlguard.DuckDB}, "both": {sqlguard.Postgres, sqlguard.DuckDB},
}

// decide gives the verdict on a line; an error is a line that this version cannot decide on, which must not look like
// a refusal.
func (g *offlineGates) decide(ctx context.Context, line gateLine) (verdict, error) {
	profile, ok := profiles[line.Profile]
	if !ok {
		return verdict{}, fmt.Errorf("profile %q is not there in this version", line.Profile)
	}
	asked, ok := dialects[line.Dialect]
	if !ok {
		return verdict{}, fmt.Errorf("dialect %q is none of postgres, duckdb, both", line.Dialect)
	}
	var grants []string
	if line.Grants != nil {
		grants = append([]string{}, *line.Grants...)
	}
	v := verdict{ID: line.ID, Verdict: "allow"}
	for _, d := range asked {
		gate, err := g.of(ctx, d)
		if err != nil {
			return verdict{}, err
		}
		approved, err := gate.Check(ctx, line.SQL, profile, grants)
		var f *fault.Error
		switch {
		case err == nil && d == sqlguard.DuckDB && len(asked) > 1:
			v.DuckDBSQL = approved.SQL()
		case err == nil:
			v.SQL = approved.SQL()
		case !errors.As(err, &f) || f.Code != fault.Refused && f.Code != fault.Invalid:
			return verdict{}, err
		default:
			v.refuse(d, f, len(asked) > 1)
		}
	}
	if v.Verdict == "deny" {
		v.SQL, v.DuckDBSQL = "", ""
	}
	return v, nil
}

// refuse adds what one gate says, with its name where there are two. The place is the first one's.
func (v *verdict) refuse(d sqlguard.Dialect, f *fault.Error, named bool) {
	why := f.Msg
	if named {
		why = string(d) + ": " + why
	}
	if v.Verdict == "deny" {
		v.Why += "; " + why
		return
	}
	v.Verdict, v.Why, v.Position = "deny", why, f.Position
}
