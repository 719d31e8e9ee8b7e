package main

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"sluice/gateway"
)

func grantsCmd() *cobra.Command {
	return group(&cobra.Command{Use: "grants", Short: "List, give and take away rights (admin)"}, grantsListCmd(), grantsAddCmd(), grantsRemoveCmd())
}

func grantsListCmd() *cobra.Command {
	var principal string
	cmd := &cobra.Command{
		Use: "list", Short: "List grants; without being an admin, your own", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/v1/grants"
			if principal != "" {
				path += "?principal=" + url.QueryEscape(principal)
			}
			var got data[[]gateway.GrantInfo]
			if err := newClient().call(cmd.Context(), "GET", path, nil, &got); err != nil {
				return err
			}
			if wantJSON(cmd) {
				return printJSON(cmd, got.Data)
			}
			var rows [][]string
			for _, g := range got.Data {
				rows = append(rows, []string{g.ID, printable(g.Principal), g.Kind, printable(grantText(g.NewGrant)), printable(g.CreatedBy), whenText(&g.CreatedAt)})
			}
			return printTable(cmd.OutOrStdout(), []string{"ID", "PRINCIPAL", "KIND", "WHAT", "GIVEN BY", "GIVEN"}, rows)
		},
	}
	cmd.Flags().StringVar(&principal, "principal", "", "only those of this user, or of the key with this id")
	return cmd
}

// grantText says what a grant is on.
func grantText(g gateway.NewGrant) string {
	switch {
	case g.Table != "":
		return g.Database + "." + g.Table
	case g.Database != "":
		return g.Database
	case g.Connection != "":
		return g.Connection + ":" + g.Path
	case g.Access != "":
		return g.Name + " (" + g.Access + ")"
	}
	return g.Name
}

func grantsAddCmd() *cobra.Command {
	var g gateway.NewGrant
	cmd := &cobra.Command{
		Use: "add PRINCIPAL KIND", Short: "Give a right to a user, or to the key with this id", Args: cobra.ExactArgs(2),
		Long: "Give a right, from the next request on:\n\n" +
			"  sluice grants add alice database   --database shop\n" +
			"  sluice grants add alice table      --database shop --table orders\n" +
			"  sluice grants add alice lake_write --connection local --path exports/alice\n" +
			"  sluice grants add alice lake_read  --connection local --path exports\n" +
			"  sluice grants add alice agent_copy --connection local --path exports/alice\n" +
			"  sluice grants add alice collection --name manuals --access read\n" +
			"  sluice grants add alice model      --name qwen2.5:7b",
		RunE: func(cmd *cobra.Command, args []string) error {
			g.Principal, g.Kind = args[0], args[1]
			what := strings.TrimSpace(cmp.Or(grantText(g), "nothing"))
			return carryOut[gateway.GrantInfo](cmd, "POST", "/v1/grants", g, printable(fmt.Sprintf("gave %s %s on %s", g.Principal, g.Kind, what)))
		},
	}
	cmd.Flags().StringVar(&g.Database, "database", "", "of a database or table grant")
	cmd.Flags().StringVar(&g.Table, "table", "", "of a table grant: table, or schema.table")
	cmd.Flags().StringVar(&g.Connection, "connection", "", "of a grant on a lake's folder")
	cmd.Flags().StringVar(&g.Path, "path", "", "the folder, which includes all below; / for all")
	cmd.Flags().StringVar(&g.Name, "name", "", "of the collection or the model")
	cmd.Flags().StringVar(&g.Access, "access", "", "of a collection: read or write")
	return cmd
}

func grantsRemoveCmd() *cobra.Command {
	return &cobra.Command{
		Use: "rm ID", Short: "Take a right away, from the next request on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return carryOut[map[string]string](cmd, "DELETE", "/v1/grants/"+url.PathEscape(args[0]), nil, "took "+printable(args[0])+" away")
		},
	}
}
