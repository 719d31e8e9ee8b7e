package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sluice/config"
	"sluice/database"
	"sluice/database/pgrole"
)

// roleFlags are those of --print-role-sql.
type roleFlags struct {
	print    bool
	database string
	schemas  []string
	role     string
}

func (f *roleFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.print, "print-role-sql", false, "print a script for psql that makes a PostgreSQL role which only reads, and do nothing else")
	cmd.Flags().StringVar(&f.database, "database", "", "with --print-role-sql: the database of the settings whose schemas the role reads")
	cmd.Flags().StringSliceVar(&f.schemas, "schemas", nil, "with --print-role-sql: the schemas that the role reads (default public)")
	cmd.Flags().StringVar(&f.role, "role", pgrole.DefaultName, "with --print-role-sql: the role's name")
	cmd.MarkFlagsMutuallyExclusive("database", "schemas")
}

// check refuses flags that would be for nothing.
func (f *roleFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"database", "schemas", "role"} {
		if cmd.Flags().Changed(name) && !f.print {
			return usageError{fmt.Errorf("--%s goes with --print-role-sql", name)}
		}
	}
	return nil
}

// script writes the script. Settings are read only where one of their databases is named.
func (f *roleFlags) script(w io.Writer, load func() (*config.Config, error)) error {
	schemas, timeout := f.schemas, time.Minute
	if f.database != "" {
		cfg, err := load()
		if err != nil {
			return usageError{err}
		}
		db, ok := cfg.Databases[f.database]
		if !ok || db.Kind != database.KindPostgres {
			return usageError{fmt.Errorf("the settings have no PostgreSQL database %s", f.database)}
		}
		schemas, timeout = db.Schemas, time.Duration(cfg.Limits.StatementTimeout)
	}
	if len(schemas) == 0 {
		schemas = []string{"public"}
	}
	text, err := pgrole.Script(f.role, schemas, timeout)
	if err != nil {
		return usageError{errors.New(describe(err))}
	}
	_, err = io.WriteString(w, text)
	return err
}
