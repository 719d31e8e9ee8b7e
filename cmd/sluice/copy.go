package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func copyCmd() *cobra.Command {
	var database string
	cmd := &cobra.Command{
		Use: "copy SQL", Short: "Run COPY (query) TO LAKE 'path' WITH (…) and wait for it; see and decide what agents ask to have copied", Args: cobra.MinimumNArgs(1),
		Long: "Run COPY (query) TO LAKE 'path' WITH (…) and wait for it. With an agent's key nothing is copied: it becomes a copy\n" +
			"request, which a person sees with `sluice copy requests` and decides with `sluice copy approve` or `deny`.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := newClient()
			db, err := c.pickDatabase(cmd, database)
			if err != nil {
				return err
			}
			var got data[json.RawMessage]
			body := map[string]any{"database": db, "sql": strings.Join(args, " "), "wait": true}
			if err := c.call(cmd.Context(), "POST", "/v1/lake/copy", body, &got); err != nil {
				return err
			}
			return printCopy(cmd, got.Data)
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "database; may be left out when there is only one")
	cmd.AddCommand(copyRequestsCmd(), copyApproveCmd(), copyDenyCmd(), copyWithdrawCmd())
	return cmd
}

// printCopy shows what became of a COPY: what it wrote, or the request that it became.
func printCopy(cmd *cobra.Command, raw json.RawMessage) error {
	if wantJSON(cmd) {
		return printJSON(cmd, raw)
	}
	var r struct {
		RunID      string       `json:"run_id"`
		Rows       int64        `json:"rows_written"`
		Files      int64        `json:"files_written"`
		Bytes      int64        `json:"bytes_written"`
		Partitions int64        `json:"partitions_touched"`
		Outcome    string       `json:"outcome"`
		Request    *copyRequest `json:"copy_request"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if r.RunID == "" && r.Outcome != "" && r.Request != nil {
		_, err := fmt.Fprintf(out, "nothing was copied yet: a person has to approve it until %s: sluice copy approve %s\n", at(&r.Request.ExpiresAt), oneLine(r.Request.ID))
		return err
	}
	_, err := fmt.Fprintf(out, "copied %d rows in %d file(s), %d partition(s), %s (run %s)\n", r.Rows, r.Files, r.Partitions, bytesText(r.Bytes), r.RunID)
	return err
}
