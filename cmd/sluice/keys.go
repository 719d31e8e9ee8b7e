package main

import (
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func keysCmd() *cobra.Command {
	return group(&cobra.Command{Use: "keys", Short: "List, make and delete API keys (admin)"}, keysListCmd(), keysCreateCmd(), keysDeleteCmd())
}

func keysListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List keys, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var got data[[]gateway.KeyInfo]
			if err := newClient().call(cmd.Context(), "GET", "/v1/keys", nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var rows [][]string
			for _, k := range got.Data {
				rows = append(rows, []string{k.ID, k.Name, k.Role, k.Owner, k.CreatedAt})
			}
			return printTable(cmd.OutOrStdout(), []string{"ID", "NAME", "ROLE", "OWNER", "CREATED"}, rows)
		},
	}
}

func keysCreateCmd() *cobra.Command {
	var key gateway.NewKey
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a key; its secret is shown this once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key.Name = args[0]
			// An absent list does not narrow; an empty one allows nothing, which no flag can mean.
			var got data[struct {
				ID  string `json:"id"`
				Key string `json:"key"`
			}]
			if err := newClient().call(cmd.Context(), "POST", "/v1/keys", key, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "id "+got.Data.ID+"; the key below is not shown again")
			fmt.Fprintln(cmd.OutOrStdout(), got.Data.Key)
			return nil
		},
	}
	cmd.Flags().StringVar(&key.Role, "role", "read_only", "restricted, read_only, read_write or admin")
	cmd.Flags().BoolVar(&key.Agent, "agent", false, "for a program that acts for a person: it never exports or changes data")
	cmd.Flags().StringSliceVar(&key.Databases, "database", nil, "only these databases")
	cmd.Flags().StringSliceVar(&key.Tables, "table", nil, "only these tables, database.table")
	cmd.Flags().StringSliceVar(&key.Models, "model", nil, "only these models")
	return cmd
}

func keysDeleteCmd() *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a key; it stops working at the next request", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return newClient().call(cmd.Context(), "DELETE", "/v1/keys/"+url.PathEscape(args[0]), nil, nil)
		},
	}
}
