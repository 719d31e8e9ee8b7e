package main

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func ragSearchCmd() *cobra.Command {
	var q gateway.PassageQuery
	var filter []string
	cmd := &cobra.Command{
		Use: "search QUESTION", Short: "Find the passages that say most about a question", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			q.Query = strings.Join(args, " ")
			if q.Filter, err = metadataOf(filter); err != nil {
				return err
			}
			var got data[gateway.PassagesInfo]
			if err := newClient().call(cmd.Context(), "POST", "/v1/rag/search", q, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			if len(got.Data.TextOnly) > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "searched by words alone, as their vectors are being made anew: %s\n", strings.Join(got.Data.TextOnly, ", "))
			}
			if len(got.Data.Passages) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "nothing found")
			}
			out := cmd.OutOrStdout()
			for i, p := range got.Data.Passages {
				above := p.Title
				if p.Heading != "" && p.Heading != p.Title {
					above += " › " + strings.TrimPrefix(p.Heading, p.Title+" › ")
				}
				fmt.Fprintf(out, "%d. %s  [%s/%s %.2f]\n", i+1, printable(above), p.Collection, p.Document, p.Score)
				if p.Source != "" {
					fmt.Fprintf(out, "   %s\n", printable(p.Source))
				}
				for line := range strings.SplitSeq(printable(p.Text), "\n") {
					fmt.Fprintf(out, "   %s\n", line)
				}
				fmt.Fprintln(out)
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&q.Collections, "collection", "c", nil, "search these only; default: all that you may read")
	cmd.Flags().StringVarP(&q.Database, "database", "d", "", "search those that explain this database only")
	cmd.Flags().IntVarP(&q.Limit, "limit", "n", 0, "passages, at most 50 (default 5)")
	cmd.Flags().StringArrayVar(&filter, "filter", nil, "NAME=VALUE that a document's metadata must have; may be given several times")
	return cmd
}

func ragDocumentsCmd() *cobra.Command {
	return &cobra.Command{
		Use: "documents COLLECTION", Short: "List a collection's documents", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, all := newClient(), []gateway.DocumentInfo{}
			for cursor := ""; ; {
				var page struct {
					Data []gateway.DocumentInfo
					Meta struct {
						NextCursor string `json:"next_cursor"`
					}
				}
				path := collectionPath(args[0], "documents") + "?limit=1000&cursor=" + url.QueryEscape(cursor)
				if err := c.call(cmd.Context(), "GET", path, nil, &page); err != nil {
					return err
				}
				all = append(all, page.Data...)
				if cursor = page.Meta.NextCursor; cursor == "" {
					break
				}
			}
			if wantJSON(cmd) {
				return printJSON(cmd, all)
			}
			var rows [][]string
			for _, d := range all {
				rows = append(rows, []string{d.ID, printable(d.Title), printable(d.Source), bytesText(d.Bytes), fmt.Sprint(d.Chunks), whenText(&d.AddedAt)})
			}
			return printTable(cmd.OutOrStdout(), []string{"ID", "TITLE", "SOURCE", "SIZE", "CHUNKS", "ADDED"}, rows)
		},
	}
}

func ragShowCmd() *cobra.Command {
	return &cobra.Command{
		Use: "show COLLECTION ID", Short: "Print a document's text", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var got data[gateway.DocumentInfo]
			if err := newClient().call(cmd.Context(), "GET", collectionPath(args[0], "documents", args[1]), nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			fmt.Fprintln(cmd.OutOrStdout(), printable(got.Data.Text))
			return nil
		},
	}
}

func ragRemoveCmd() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "rm COLLECTION [ID…]", Short: "Delete documents, or with --all the collection", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return usageError{fmt.Errorf("name the documents to delete, or give --all to delete the whole collection")}
			}
			if all {
				return carryOut[map[string]string](cmd, "DELETE", collectionPath(args[0]), nil, "deleted "+printable(args[0]))
			}
			for _, id := range args[1:] {
				if err := carryOut[map[string]string](cmd, "DELETE", collectionPath(args[0], "documents", id), nil, "deleted "+printable(id)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "delete the collection with all its documents")
	return cmd
}
