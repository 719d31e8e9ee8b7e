package main

import (
	"bufio"
	"bytes"
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
	ID       string `json:"id"`
	Verdict  string `json:"verdict"`
	Why      string `json:"why,omitempty"`
	Position int    `json:"position,omitempty"`
	SQL      string `json:"sql,omitempty"`
}

var profiles = map[string]sqlguard.Profile{
	"": sqlguard.ReadOnly, "read_only": sqlguard.ReadOnly, "copy_source": sqlguard.CopySource, "restricted_read": sqlguard.RestrictedRead,
}

func gateCmd() *cobra.Command {
	var schema string
	var lines bool
	cmd := &cobra.Command{
		Use:   "gate --jsonl [--schema FILE.sql]",
		Short: "Decide on statements offline: JSON lines in, verdicts out",
		Long: `Reads lines {"id","sql","dialect","profile","grants"?} and writes lines {"id","verdict","why","position"?,"sql"?}.` + "\n" +
			"This version has the gate of DuckDB, and the profiles read_only, restricted_read and copy_source; lines of others are errors.",
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
			gate, err := database.OfflineGate(cmd.Context(), string(text))
			if err != nil {
				return err
			}
			defer gate.Close()
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
				v, err := decide(cmd, gate, line)
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

// decide gives the verdict on a line; an error is a line that this version cannot decide on, which must not look like
// a refusal.
func decide(cmd *cobra.Command, gate *database.Offline, line gateLine) (verdict, error) {
	profile, ok := profiles[line.Profile]
	if !ok {
		return verdict{}, fmt.Errorf("profile %q is not there in this version", line.Profile)
	}
	if line.Dialect != "duckdb" {
		return verdict{}, fmt.Errorf("dialect %q: only duckdb is there in this version", line.Dialect)
	}
	var grants []string
	if line.Grants != nil {
		grants = append([]string{}, *line.Grants...)
	}
	approved, err := gate.Check(cmd.Context(), line.SQL, profile, grants)
	if err == nil {
		return verdict{ID: line.ID, Verdict: "allow", SQL: approved.SQL()}, nil
	}
	var f *fault.Error
	if !errors.As(err, &f) || f.Code == fault.Internal {
		return verdict{}, err
	}
	return verdict{ID: line.ID, Verdict: "deny", Why: f.Msg, Position: f.Position}, nil
}
