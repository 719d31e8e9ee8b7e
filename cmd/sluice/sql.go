package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

func sqlCmd() *cobra.Command {
	var database, format string
	var maxRows int
	cmd := &cobra.Command{
		Use: "sql [SQL]", Short: "Run a statement (from stdin when left out)", Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args, " ")
			if text == "" {
				b, err := io.ReadAll(cmd.InOrStdin())
				if err != nil {
					return err
				}
				text = string(b)
			}
			c := newClient()
			db, err := c.pickDatabase(cmd, database)
			if err != nil {
				return err
			}
			body := map[string]any{"database": db, "sql": text}
			if maxRows > 0 {
				body["max_rows"] = maxRows
			}
			return c.execute(cmd, body, format)
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "database; may be left out when there is only one")
	cmd.Flags().StringVar(&format, "format", "table", "table, csv or ndjson")
	cmd.Flags().IntVar(&maxRows, "max-rows", 0, "cut the result after so many rows")
	return cmd
}

func (c *client) execute(cmd *cobra.Command, body map[string]any, format string) error {
	accept := map[string]string{"csv": "text/csv", "ndjson": "application/x-ndjson", "table": ""}
	kind, ok := accept[format]
	if !ok {
		return usageError{fmt.Errorf("--format %q: table, csv or ndjson", format)}
	}
	resp, err := c.send(cmd.Context(), "POST", "/v1/query/execute", body, kind)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if kind != "" && strings.HasPrefix(resp.Header.Get("Content-Type"), kind) {
		if _, err := io.Copy(cmd.OutOrStdout(), resp.Body); err != nil {
			return fmt.Errorf("the result is not whole: %w", err)
		}
		// The status was sent before the rows were known; the trailers say how it ended.
		if resp.Trailer.Get("X-Sluice-Failed") != "" {
			return errors.New("the result is not whole: its last line says why")
		}
		if resp.Trailer.Get("X-Sluice-Truncated") != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "cut by --max-rows: there are more rows")
		}
		return nil
	}
	var got data[json.RawMessage]
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return err
	}
	if wantJSON(cmd) {
		return printJSON(cmd, got)
	}
	var result struct {
		Columns   []column            `json:"columns"`
		Rows      [][]json.RawMessage `json:"rows"`
		RowCount  int64               `json:"row_count"`
		Truncated bool                `json:"truncated"`
		RunID     string              `json:"run_id"`
		Outcome   string              `json:"outcome"` // of a COPY that an agent's key sent
		Created   string              `json:"created"`
		Dropped   string              `json:"dropped"`
		Command   string              `json:"command"` // of a write
	}
	if err := json.Unmarshal(got.Data, &result); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch {
	case result.RunID != "" || result.Outcome != "":
		return printCopy(cmd, got.Data)
	case result.Created != "" || result.Dropped != "":
		what, name := "created", result.Created
		if name == "" {
			what, name = "dropped", result.Dropped
		}
		_, err := fmt.Fprintln(out, what+" external table "+name)
		return err
	case result.Command != "" && len(result.Columns) == 0:
		return printWritten(out, result.Command, result.RowCount)
	case len(result.Columns) == 0: // the plan of EXPLAIN COPY
		return printJSON(cmd, got.Data)
	}
	if err := printRows(out, result.Columns, result.Rows); err != nil {
		return err
	}
	more := ""
	if result.Truncated {
		more = ", cut: there are more (--max-rows, or --format csv for all)"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d row(s)%s\n", result.RowCount, more)
	var scans []struct {
		Table  string `json:"table"`
		Opened int    `json:"files_opened"`
		Total  int    `json:"files_total"`
	}
	if json.Unmarshal(got.Meta.Scans, &scans) == nil {
		for _, s := range scans {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: opened %d of %d files\n", s.Table, s.Opened, s.Total)
		}
	}
	return nil
}

// printWritten tells what a write did: of a change of tables there are no rows.
func printWritten(out io.Writer, command string, rows int64) error {
	switch command {
	case "INSERT", "UPDATE", "DELETE", "TRUNCATE":
		_, err := fmt.Fprintf(out, "%s: %d row(s)\n", command, rows)
		return err
	}
	_, err := fmt.Fprintf(out, "%s: done\n", command)
	return err
}

func printRows(out io.Writer, columns []column, rows [][]json.RawMessage) error {
	var header []string
	for _, c := range columns {
		header = append(header, c.Name)
	}
	var lines [][]string
	for _, r := range rows {
		var line []string
		for _, v := range r {
			line = append(line, cell(v))
		}
		lines = append(lines, line)
	}
	return printTable(out, header, lines)
}
