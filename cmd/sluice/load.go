package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sluice/database"
)

func loadCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "load FILE.duckdb SCRIPT.sql...",
		Short: "Make a new DuckDB file from SQL scripts, to be named in the settings",
		Long:  "Make a new DuckDB file from SQL scripts. It works on its own, not through the server: the file must not exist yet.",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var scripts []string
			for _, path := range args[1:] {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				scripts = append(scripts, string(text))
			}
			if err := database.CreateFile(cmd.Context(), args[0], scripts...); err != nil {
				return err
			}
			fmt.Fprintln(cmd.ErrOrStderr(), "made "+args[0])
			return nil
		},
	}
}
