package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// copyRequest is what the command reads of an entry of /v1/lake/copy/requests.
type copyRequest struct {
	ID         string `json:"id"`
	State      string `json:"state"`
	Statement  string `json:"statement"`
	SQL        string `json:"sql"`
	Database   string `json:"database"`
	Connection string `json:"connection"`
	Path       string `json:"path"`
	SHA256     string `json:"sha256"`
	Columns    []struct {
		Name      string `json:"name"`
		Type      string `json:"type"`
		Partition bool   `json:"partition"`
	} `json:"columns"`
	Owner     string     `json:"owner"`
	KeyName   string     `json:"key_name"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt time.Time  `json:"expires_at"`
	DecidedBy string     `json:"decided_by"`
	DecidedAt *time.Time `json:"decided_at"`
	Reason    string     `json:"reason"`
	RunID     string     `json:"run_id"`
	Error     string     `json:"error"`
}

func copyRequestsCmd() *cobra.Command {
	var state string
	var limit int
	cmd := &cobra.Command{
		Use: "requests [ID]", Short: "List the copies that agents asked for, newest first; with an ID, show one whole", Args: cobra.MaximumNArgs(1),
		Long: "List the copies that agents asked for, newest first: your own, those that you could approve, and for an admin all. With an\n" +
			"ID, show one whole: the statement, the query as it will run, the columns, who asked and what became of it.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := newClient()
			if len(args) == 1 {
				raw, r, err := c.copyRequest(cmd, args[0])
				if err != nil {
					return err
				}
				if wantJSON(cmd) {
					return printJSON(cmd, raw)
				}
				return printCopyRequest(cmd.OutOrStdout(), r)
			}
			query := url.Values{}
			if state != "" {
				query.Set("state", state)
			}
			if limit > 0 {
				query.Set("limit", fmt.Sprint(limit))
			}
			path := "/v1/lake/copy/requests"
			if len(query) > 0 {
				path += "?" + query.Encode()
			}
			var got data[json.RawMessage]
			if err := c.call(cmd.Context(), "GET", path, nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var all []copyRequest
			if err := json.Unmarshal(got.Data, &all); err != nil {
				return err
			}
			var rows [][]string
			for _, r := range all {
				rows = append(rows, []string{oneLine(r.ID), oneLine(r.State), oneLine(r.who()), oneLine(r.Database), oneLine(r.Connection + ":" + r.Path), at(&r.CreatedAt), at(&r.ExpiresAt)})
			}
			return printTable(cmd.OutOrStdout(), []string{"ID", "STATE", "ASKED BY", "DATABASE", "TO", "CREATED", "EXPIRES"}, rows)
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "only those: pending, approved, denied, withdrawn, expired, running, done or failed")
	cmd.Flags().IntVar(&limit, "limit", 0, "at most so many (default 100)")
	return cmd
}

func (r copyRequest) who() string {
	if r.KeyName != "" && r.KeyName != r.Owner {
		return r.Owner + " (" + r.KeyName + ")"
	}
	return r.Owner
}

func (c *client) copyRequest(cmd *cobra.Command, id string) (json.RawMessage, copyRequest, error) {
	var got data[json.RawMessage]
	var r copyRequest
	if err := c.call(cmd.Context(), "GET", "/v1/lake/copy/requests/"+url.PathEscape(id), nil, &got); err != nil {
		return nil, r, err
	}
	return got.Data, r, json.Unmarshal(got.Data, &r)
}

// printCopyRequest shows all that an approver decides on.
func printCopyRequest(out io.Writer, r copyRequest) error {
	var columns []string
	for _, c := range r.Columns {
		if c.Partition {
			columns = append(columns, c.Name+" (partition)")
			continue
		}
		columns = append(columns, c.Name+" "+c.Type)
	}
	lines := [][2]string{{"request", r.ID}, {"state", r.State}, {"asked by", r.who() + ", " + at(&r.CreatedAt)}, {"until", at(&r.ExpiresAt)}, {"database", r.Database},
		{"to", r.Connection + ":" + r.Path}, {"columns", strings.Join(columns, ", ")}, {"query", r.SQL}, {"statement", r.Statement}, {"sha256", r.SHA256}}
	if r.DecidedBy != "" {
		lines = append(lines, [2]string{"decided by", r.DecidedBy + ", " + at(r.DecidedAt)})
	}
	for _, l := range [][2]string{{"reason", r.Reason}, {"run", r.RunID}, {"error", r.Error}} {
		if l[1] != "" {
			lines = append(lines, l)
		}
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(out, "%-11s %s\n", l[0], strings.ReplaceAll(printable(l[1]), "\n", "\n            ")); err != nil {
			return err
		}
	}
	return nil
}

func copyApproveCmd() *cobra.Command {
	return &cobra.Command{
		Use: "approve ID", Short: "Approve a copy that an agent asked for: it runs now, once", Args: cobra.ExactArgs(1),
		Long: "Approve a copy that an agent asked for, and wait until it has run. That needs `sluice login` a short while ago (no key), all\n" +
			"the rights that COPY itself needs, and for what your own agents asked an agent_copy grant. It runs with the rights that\n" +
			"both you and the agent have. Exactly what is shown is approved: it was changed meanwhile, nothing runs.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c := newClient()
			_, r, err := c.copyRequest(cmd, args[0])
			if err != nil {
				return err
			}
			if !wantJSON(cmd) {
				if err := printCopyRequest(cmd.ErrOrStderr(), r); err != nil {
					return err
				}
			}
			var got data[json.RawMessage]
			if err := c.call(cmd.Context(), "POST", "/v1/lake/copy/requests/"+url.PathEscape(r.ID)+"/approve", map[string]any{"sha256": r.SHA256}, &got); err != nil {
				return err
			}
			return printCopy(cmd, got.Data)
		},
	}
}

func copyDenyCmd() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "deny ID", Short: "Deny a copy that an agent asked for", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return dismiss(cmd, "POST", "/v1/lake/copy/requests/"+url.PathEscape(args[0])+"/deny", map[string]any{"reason": reason}, "denied")
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for who asked")
	return cmd
}

func copyWithdrawCmd() *cobra.Command {
	return &cobra.Command{
		Use: "withdraw ID", Short: "Take back a copy that you, or an agent in your name, asked for", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return dismiss(cmd, "DELETE", "/v1/lake/copy/requests/"+url.PathEscape(args[0]), nil, "withdrawn")
		},
	}
}

func dismiss(cmd *cobra.Command, method, path string, body any, done string) error {
	var got data[json.RawMessage]
	if err := newClient().call(cmd.Context(), method, path, body, &got); err != nil {
		return err
	}
	if wantJSON(cmd) {
		return printJSON(cmd, got.Data)
	}
	var r copyRequest
	if err := json.Unmarshal(got.Data, &r); err != nil {
		return err
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), done+" "+oneLine(r.ID))
	return err
}

// at is a time as people read it.
func at(t *time.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}
