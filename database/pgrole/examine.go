package pgrole

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"sluice/fault"
)

// Role is what the role of a URL is and may do, beyond reading.
type Role struct {
	Version    string   // of the server
	Name       string   // of the role
	Attributes []string // SUPERUSER, CREATEDB, CREATEROLE, REPLICATION, BYPASSRLS
	System     []string // the system's roles that it is a member of, such as pg_read_server_files
	Writes     []string // tables and views that it may write to, the first few of them
	Creates    []string // schemas that it may make tables in
	Definers   []string // SECURITY DEFINER functions that it may call, the first few of them
}

// few is how many names of a kind are looked for: enough to tell what is meant.
const few = 4

// The queries are constants. An array is written as text for no other reason than that it is shown.
const (
	roleQuery = `SELECT current_setting('server_version'), r.rolname::text,
	array_remove(ARRAY[CASE WHEN r.rolsuper THEN 'SUPERUSER' END, CASE WHEN r.rolcreatedb THEN 'CREATEDB' END, CASE WHEN r.rolcreaterole THEN 'CREATEROLE' END,
		CASE WHEN r.rolreplication THEN 'REPLICATION' END, CASE WHEN r.rolbypassrls THEN 'BYPASSRLS' END], NULL),
	CASE WHEN r.rolsuper THEN '{}' ELSE ARRAY(SELECT g.rolname::text FROM pg_catalog.pg_roles g WHERE starts_with(g.rolname, 'pg_')
		AND g.rolname NOT IN ('pg_database_owner', 'pg_read_all_data') AND pg_has_role(r.oid, g.oid, 'MEMBER') ORDER BY 1) END
	FROM pg_catalog.pg_roles r WHERE r.rolname = current_user`
	writesQuery = `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'USAGE')
		AND (has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') OR has_any_column_privilege(c.oid, 'INSERT, UPDATE')) ORDER BY 1 LIMIT $1`
	createsQuery = `SELECT n.nspname::text FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND has_schema_privilege(n.oid, 'CREATE')
	ORDER BY 1 LIMIT $1`
	definersQuery = `SELECT format('%I.%I', n.nspname, p.proname) FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
	WHERE p.prosecdef AND p.prorettype <> 'pg_catalog.trigger'::regtype AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
		AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')
		AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend x WHERE x.classid = 'pg_catalog.pg_proc'::regclass AND x.objid = p.oid AND x.deptype = 'e') ORDER BY 1 LIMIT $1`
)

// Examine logs in with a source's URL and looks at its role, in a read-only transaction. Its errors do not show the URL.
func Examine(ctx context.Context, url string) (Role, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	failed := func(err error) (Role, error) {
		return Role{}, fault.Wrap(err, fault.Busy, "pgrole.Examine", "the role cannot be looked at")
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return Role{}, fault.New(fault.Invalid, "pgrole.Examine", "the url cannot be read") // its error shows parts of it
	}
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return failed(err)
	}
	defer func() { _ = c.Close(context.WithoutCancel(ctx)) }() // the transaction ends with it
	tx, err := c.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return failed(err)
	}
	var r Role
	if err := tx.QueryRow(ctx, roleQuery).Scan(&r.Version, &r.Name, &r.Attributes, &r.System); err != nil {
		return failed(err)
	}
	r.Version, _, _ = strings.Cut(r.Version, " ") // behind it stands who packed it
	for query, into := range map[string]*[]string{writesQuery: &r.Writes, createsQuery: &r.Creates, definersQuery: &r.Definers} {
		rows, err := tx.Query(ctx, query, few)
		if err != nil {
			return failed(err)
		}
		if *into, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return failed(err)
		}
	}
	return r, nil
}
