package main

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func keysCmd() *cobra.Command {
	return group(&cobra.Command{Use: "keys", Short: "List, make, change and delete API keys: your own, or as an admin everybody's"},
		keysListCmd(), keysCreateCmd(), keysChangeCmd(), keysDeleteCmd())
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
				rows = append(rows, []string{k.ID, printable(k.Name), k.Role, printable(k.Owner), keyText(k), whenText(k.LastUsed), whenText(k.ExpiresAt), whenText(&k.CreatedAt)})
			}
			return printTable(cmd.OutOrStdout(), []string{"ID", "NAME", "ROLE", "OWNER", "NARROWED TO", "LAST USED", "ENDS", "CREATED"}, rows)
		},
	}
}

// keyText says what a key is narrowed to.
func keyText(k gateway.KeyInfo) string {
	var parts []string
	if k.Agent {
		parts = append(parts, "agent")
	}
	for _, list := range [][]string{k.Databases, k.Tables, k.Models} {
		switch {
		case list == nil:
		case len(list) == 0:
			parts = append(parts, "nothing")
		default:
			parts = append(parts, strings.Join(list, ","))
		}
	}
	if k.ActsFor != nil {
		parts = append(parts, "acts for "+k.ActsFor.Header)
	}
	if len(parts) == 0 {
		return "-"
	}
	return printable(strings.Join(parts, " "))
}

func keysCreateCmd() *cobra.Command {
	var key gateway.NewKey
	var life, actsFor string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a key; its secret is shown this once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key.Name = args[0]
			if life != "" {
				l, err := gateway.ParseLife(life)
				if err != nil {
					return usageError{fmt.Errorf("--expires-in: %q is no time such as 12h or 90d", life)}
				}
				key.ExpiresIn = &l
			}
			if actsFor != "" {
				key.ActsFor = &gateway.ActsFor{Header: actsFor}
			}
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
	cmd.Flags().StringVar(&key.Owner, "owner", "", "for another user (admin)")
	cmd.Flags().StringSliceVar(&key.Databases, "database", nil, "only these databases")
	cmd.Flags().StringSliceVar(&key.Tables, "table", nil, "only these tables, database.table")
	cmd.Flags().StringSliceVar(&key.Models, "model", nil, "only these models")
	cmd.Flags().StringVar(&life, "expires-in", "", "how long it lives, such as 12h or 90d; default: until it is deleted")
	cmd.Flags().StringVar(&actsFor, "acts-for", "", "it acts for the user that this header of a request names, such as X-OpenWebUI-User-Email (admin)")
	return cmd
}

func keysChangeCmd() *cobra.Command {
	var name, role, life string
	var forever bool
	lists := map[string]*[]string{"database": {}, "table": {}, "model": {}}
	cmd := &cobra.Command{
		Use: "change ID", Short: "Change a key's name, lists or end, or lower its role", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body := map[string]any{}
			set := func(flag, field string, value any) {
				if cmd.Flags().Changed(flag) {
					body[field] = value
				}
			}
			set("name", "name", name)
			set("role", "role", role)
			for flag, list := range lists {
				set(flag, flag+"s", *list)
				if all, _ := cmd.Flags().GetBool("all-" + flag + "s"); all {
					body[flag+"s"] = nil
				}
			}
			set("expires-in", "expires_in", life)
			if forever {
				body["expires_in"] = nil
			}
			if len(body) == 0 {
				return usageError{errors.New("there is nothing to change: see sluice keys change --help")}
			}
			return carryOut[gateway.KeyInfo](cmd, "PATCH", "/v1/keys/"+url.PathEscape(args[0]), body, "changed key "+printable(args[0]))
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "another name")
	cmd.Flags().StringVar(&role, "role", "", "a lower role")
	for _, flag := range []string{"database", "table", "model"} {
		cmd.Flags().StringSliceVar(lists[flag], flag, nil, "only these "+flag+"s")
		cmd.Flags().Bool("all-"+flag+"s", false, "all "+flag+"s of its owner")
	}
	cmd.Flags().StringVar(&life, "expires-in", "", "how long it lives from now on, such as 12h or 90d")
	cmd.Flags().BoolVar(&forever, "no-expiry", false, "until it is deleted")
	cmd.MarkFlagsMutuallyExclusive("expires-in", "no-expiry")
	return cmd
}

func keysDeleteCmd() *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a key; it stops working at the next request", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return carryOut[map[string]string](cmd, "DELETE", "/v1/keys/"+url.PathEscape(args[0]), nil, "deleted key "+printable(args[0]))
		},
	}
}
