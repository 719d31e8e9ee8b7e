package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func learningVerifiedCmd() *cobra.Command {
	var database string
	var p pages
	cmd := &cobra.Command{
		Use: "verified [ID]", Short: "List questions with confirmed SQL that serve you, as an admin all; or show one", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return showVerified(cmd, args[0])
			}
			var got paged[gateway.VerifiedInfo]
			if err := newClient().call(cmd.Context(), "GET", "/v1/learning/verified?"+p.query(map[string]string{"database": database}), nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var rows [][]string
			for _, v := range got.Data {
				rows = append(rows, []string{v.ID, printable(v.Database), servesText(v), printable(v.VerifiedBy), whenText(&v.VerifiedAt), shortLine(v.Question, 80)})
			}
			err := printTable(cmd.OutOrStdout(), []string{"ID", "DATABASE", "FOR", "CONFIRMED BY", "CONFIRMED", "QUESTION"}, rows)
			got.more(cmd)
			return err
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "only those of this database")
	p.add(cmd)
	return cmd
}

func servesText(v gateway.VerifiedInfo) string {
	switch {
	case v.Shared:
		return "everybody"
	case v.KeyID != "":
		return printable(v.Owner + ", with " + v.KeyID)
	}
	return printable(v.Owner)
}

func showVerified(cmd *cobra.Command, id string) error {
	var got data[gateway.VerifiedInfo]
	if err := newClient().call(cmd.Context(), "GET", "/v1/learning/verified/"+url.PathEscape(id), nil, &got); err != nil {
		return err
	}
	v := got.Data
	if wantJSON(cmd) {
		return printJSON(cmd, v)
	}
	text := fmt.Sprintf("question   %s\ndatabase   %s\nfor        %s\nconfirmed  by %s, %s\n", printable(v.Question), printable(v.Database), servesText(v), printable(v.VerifiedBy), whenText(&v.VerifiedAt))
	for _, more := range [][2]string{{"name", v.Name}, {"note", v.Note}, {"from", v.FromAsk}, {"sql", v.SQL}, {"hidden", v.Hidden}} {
		if more[1] != "" {
			text += fmt.Sprintf("%-10s %s\n", more[0], printable(more[1]))
		}
	}
	_, err := fmt.Fprint(cmd.OutOrStdout(), text)
	return err
}

func learningAddCmd() *cobra.Command {
	var req gateway.NewVerified
	cmd := &cobra.Command{
		Use: "add QUESTION SQL", Short: "Confirm the SQL of a question that was not asked yet", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if req.Database, err = newClient().pickDatabase(cmd, req.Database); err != nil {
				return err
			}
			req.Question, req.SQL = args[0], args[1]
			return carryOut[gateway.VerifiedInfo](cmd, "POST", "/v1/learning/verified", req, "confirmed: the question is answered so from now on")
		},
	}
	cmd.Flags().StringVarP(&req.Database, "database", "d", "", "database; may be left out when there is only one")
	cmd.Flags().StringVar(&req.Name, "name", "", "a short name")
	cmd.Flags().StringVar(&req.Note, "note", "", "why")
	cmd.Flags().BoolVar(&req.Shared, "shared", false, "for everybody who may read what it reads (admin)")
	return cmd
}

func learningRemoveCmd() *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Aliases: []string{"rm"}, Short: "Withdraw the confirmed SQL of a question", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return carryOut[map[string]string](cmd, "DELETE", "/v1/learning/verified/"+url.PathEscape(args[0]), nil, "withdrew "+printable(args[0]))
		},
	}
}

func learningExportCmd() *cobra.Command {
	var database, out string
	var shared bool
	cmd := &cobra.Command{
		Use: "export", Short: "Write the questions with confirmed SQL that serve you as a file", Args: cobra.NoArgs,
		Long: "Write the questions with confirmed SQL that serve you as a file, YAML in the form of Snowflake's verified queries\n(docs/LEARNING.md), or JSON with --json.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := url.Values{}
			if database != "" {
				q.Set("database", database)
			}
			if cmd.Flags().Changed("shared") {
				q.Set("shared", fmt.Sprint(shared))
			}
			accept := "application/yaml"
			if wantJSON(cmd) {
				accept = "application/json"
			}
			resp, err := newClient().send(cmd.Context(), "GET", "/v1/learning/export?"+q.Encode(), nil, accept)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				return fmt.Errorf("the server closed the stream: %w", err)
			}
			if out == "" || out == "-" {
				_, err = cmd.OutOrStdout().Write(text)
				return err
			}
			if err := writeWhole(out, text); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "wrote "+out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "only those of this database")
	cmd.Flags().StringVar(&out, "out", "", "file; default: stdout")
	cmd.Flags().BoolVar(&shared, "shared", false, "only those that serve everybody; --shared=false: only your own")
	return cmd
}

// writeWhole writes a file or leaves the one that was there.
func writeWhole(path string, text []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	if err == nil {
		err = tmp.Sync()
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

func learningImportCmd() *cobra.Command {
	var database string
	var shared, partial, dry bool
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Confirm the questions of a file; - reads stdin", Args: cobra.ExactArgs(1),
		Long: "Confirm the questions of a file, YAML or JSON of the form that export writes. Each statement must pass the gate for you.\n" +
			"All or nothing, unless --partial; a file that was imported before changes nothing.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var text []byte
			var err error
			if args[0] == "-" {
				text, err = io.ReadAll(cmd.InOrStdin())
			} else {
				text, err = os.ReadFile(args[0])
			}
			if err != nil {
				return err
			}
			q := url.Values{}
			if database != "" {
				q.Set("database", database)
			}
			for flag, on := range map[string]bool{"shared": shared, "partial": partial, "dry-run": dry} {
				if cmd.Flags().Changed(flag) {
					q.Set(strings.ReplaceAll(flag, "-", "_"), fmt.Sprint(on))
				}
			}
			var got data[gateway.Imported]
			if err := newClient().call(cmd.Context(), http.MethodPost, "/v1/learning/import?"+q.Encode(), bytes.NewReader(text), &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), importedText(got.Data))
			return nil
		},
	}
	cmd.Flags().StringVarP(&database, "database", "d", "", "database of the entries that name none")
	cmd.Flags().BoolVar(&shared, "shared", false, "for everybody who may read what they read (admin)")
	cmd.Flags().BoolVar(&partial, "partial", false, "import what is not refused")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "import nothing, and say what would become of each")
	return cmd
}

func importedText(i gateway.Imported) string {
	text := ""
	for at, e := range i.Entries {
		if e.Status == "refused" {
			text += fmt.Sprintf("refused: entry %d (%s): %s\n", at+1, shortLine(e.Question, 80), printable(e.Error))
		}
	}
	if i.DryRun {
		text += "nothing was imported; it would be: "
	}
	return text + fmt.Sprintf("%d added, %d replaced, %d unchanged, %d refused", i.Added, i.Replaced, i.Unchanged, i.Refused)
}
