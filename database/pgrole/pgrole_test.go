package pgrole

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"sluice/fault"
	"sluice/internal/pgtest"
)

const shop = `CREATE TABLE orders (id integer PRIMARY KEY, total integer); INSERT INTO orders VALUES (1, 10);
CREATE SCHEMA "Pay Roll"; CREATE TABLE "Pay Roll".pay (id integer); CREATE SCHEMA other; CREATE TABLE other.secret (id integer);
CREATE FUNCTION leak(orders) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT ''leaked''';
CREATE FUNCTION other.leak(orders) RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT ''leaked''';
CREATE VIEW few AS SELECT id FROM orders`

// psql runs a script.
func psql(t *testing.T, url, script string, args ...string) (said string, err error) {
	t.Helper()
	program := filepath.Join(os.Getenv("SLUICE_TEST_PGBIN"), "psql")
	if !filepath.IsAbs(program) {
		if program, err = exec.LookPath("psql"); err != nil {
			t.Fatal("make test sets SLUICE_TEST_PGBIN, where psql is")
		}
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, append([]string{"-X", "-q", url}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(script), &out, &out
	err = cmd.Run()
	return out.String(), err
}

// as is the URL of another role.
func as(t *testing.T, db *pgtest.DB, name, password string) string {
	t.Helper()
	u, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, password)
	return u.String()
}

// dropped drops a role when the test ends, before its database goes.
func dropped(t *testing.T, db *pgtest.DB, name string) {
	t.Helper()
	t.Cleanup(func() { db.Exec("DROP OWNED BY " + identifier(name) + "; DROP ROLE " + identifier(name)) })
}

func TestRealScript(t *testing.T) {
	db := pgtest.New(t, shop)
	name, password := db.Name+` "o'x" %s\ :"y`, `a'b"c\d $x :password`
	script, err := Script(name, []string{"public", "Pay Roll"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // again is no mistake
		if said, err := psql(t, db.URL, script, "-v", "password="+password); err != nil || said != "" {
			t.Fatalf("%v\n%s\n%s", err, said, script)
		}
	}
	dropped(t, db, name)
	db.Exec("CREATE TABLE later (id integer)")
	c := db.Connect(as(t, db, name, password))
	run := func(sql string) error {
		t.Helper()
		_, err := c.Exec(t.Context(), sql)
		return err
	}
	for _, sql := range []string{"SELECT * FROM public.orders", `SELECT * FROM "Pay Roll".pay`, "SELECT * FROM public.few", "SELECT * FROM public.later", "SELECT lower('X')"} {
		if err := run(sql); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
	const denied, readOnly, unknown = "42501", "25006", "42P01"
	refused := map[string]string{
		"INSERT INTO public.orders VALUES (2)": readOnly, "CREATE TABLE public.x (id integer)": readOnly, "SELECT o.leak FROM public.orders o": "42703",
		"SELECT public.leak(o) FROM public.orders o": denied, "SELECT * FROM other.secret": denied, "SELECT other.leak(o) FROM public.orders o": denied,
		"SELECT * FROM orders": unknown, "SELECT pg_read_file('/etc/hostname')": denied,
	}
	for sql, want := range refused {
		var e *pgconn.PgError
		if err := run(sql); !errors.As(err, &e) || e.Code != want {
			t.Errorf("%s: %v, want %s", sql, err, want)
		}
	}
	// Below the settings, which the role can change, are its privileges.
	if err := run("SET default_transaction_read_only = off; SET search_path = public"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"INSERT INTO orders VALUES (2)", "UPDATE orders SET total = 0", "DELETE FROM orders", "TRUNCATE orders", "CREATE TABLE x (id integer)", "DROP TABLE orders",
		"CREATE SCHEMA x", "SELECT o.leak FROM orders o", "CREATE ROLE x", "COPY orders TO '/tmp/x'", "COPY orders TO PROGRAM 'true'", "SET temp_file_limit = -1", "SET ROLE " + identifier("postgres")} {
		var e *pgconn.PgError
		if err := run(sql); !errors.As(err, &e) || e.Code != denied {
			t.Errorf("%s: %v", sql, err)
		}
	}
	r, err := Examine(t.Context(), as(t, db, name, password))
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != name || r.Version == "" || len(r.Attributes)+len(r.System)+len(r.Writes)+len(r.Creates)+len(r.Definers) != 0 {
		t.Errorf("%+v", r)
	}
	for setting, want := range map[string]string{"statement_timeout": "1min", "lock_timeout": "10s", "idle_in_transaction_session_timeout": "1min", "temp_file_limit": "4GB"} {
		var got string
		if err := c.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, want %s, %v", setting, got, want, err)
		}
	}
}

// TestRealScriptDoesNotTrustARoleThatWasThere: nothing is changed for one that can do more.
func TestRealScriptDoesNotTrustARoleThatWasThere(t *testing.T) {
	db := pgtest.New(t, shop)
	name := db.Name + "_old"
	db.Exec("CREATE ROLE " + name + " LOGIN CREATEDB")
	dropped(t, db, name)
	script, err := Script(name, []string{"public"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for change, want := range map[string]string{
		"CREATEDB": "was there before, and is CREATEDB", "NOCREATEDB IN GROUP": "is a member of pg_monitor",
	} {
		attribute, member := strings.CutSuffix(change, " IN GROUP")
		db.Exec("ALTER ROLE " + name + " " + attribute)
		if member {
			db.Exec("GRANT pg_monitor TO " + name)
		}
		if said, err := psql(t, db.URL, script, "-v", "password=x"); err == nil || !strings.Contains(said, want) || strings.Contains(said, "WARNING") {
			t.Errorf("%s: %v\n%s", change, err, said)
		}
		db.Exec("REVOKE pg_monitor FROM " + name)
	}
	var granted bool
	if err := db.Connect(db.URL).QueryRow(t.Context(), "SELECT has_table_privilege($1, 'public.orders', 'SELECT')", name).Scan(&granted); err != nil || granted {
		t.Errorf("it was given rights all the same: %v, %v", granted, err)
	}
	db.Exec("ALTER ROLE " + name + " NOCREATEDB; GRANT INSERT ON orders TO PUBLIC")
	if said, err := psql(t, db.URL, script, "-v", "password=x"); err != nil || !strings.Contains(said, "may write to orders") {
		t.Errorf("what everybody may write: %v\n%s", err, said)
	}
}

// TestRealScriptThatFailsLeavesNothing: it is one transaction.
func TestRealScriptThatFailsLeavesNothing(t *testing.T) {
	db := pgtest.New(t, shop)
	name := db.Name + "_none"
	for what, c := range map[string]struct {
		schemas, args []string
		want          string
	}{
		"no such schema": {[]string{"public", "nowhere"}, []string{"-v", "password=x"}, `schema "nowhere" does not exist`},
		"no password":    {[]string{"public"}, nil, "syntax error"},
	} {
		script, err := Script(name, c.schemas, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if said, err := psql(t, db.URL, script, c.args...); err == nil || !strings.Contains(said, c.want) {
			t.Errorf("%s: %v\n%s", what, err, said)
		}
		var n int
		if err := db.Connect(db.URL).QueryRow(t.Context(), "SELECT count(*) FROM pg_roles WHERE rolname = $1", name).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s left %d roles, %v", what, n, err)
		}
	}
}

// TestRealScriptOfAnOwner: where nobody is a superuser, as at most providers, the owner of the database runs it, and is told
// what is left to do.
func TestRealScriptOfAnOwner(t *testing.T) {
	db := pgtest.New(t, shop)
	owner, name := db.Name+"_owner", db.Name+"_reader"
	db.Exec("CREATE ROLE " + owner + " LOGIN CREATEROLE PASSWORD 'x'; ALTER DATABASE " + db.Name + " OWNER TO " + owner + "; ALTER SCHEMA public OWNER TO " + owner +
		"; ALTER TABLE orders OWNER TO " + owner + "; ALTER VIEW few OWNER TO " + owner + "; ALTER FUNCTION leak OWNER TO " + owner)
	t.Cleanup(func() {
		db.Exec("REASSIGN OWNED BY " + owner + " TO CURRENT_USER; DROP OWNED BY " + owner + "; DROP ROLE " + owner)
	})
	dropped(t, db, name)
	script, err := Script(name, []string{"public"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	said, err := psql(t, as(t, db, owner, "x"), script, "-v", "password=y")
	if err != nil || strings.Count(said, "WARNING") != 1 || !strings.Contains(said, "temp_file_limit is not set: only a superuser can") {
		t.Fatalf("%v\n%s", err, said)
	}
	c := db.Connect(as(t, db, name, "y"))
	if _, err := c.Exec(t.Context(), "SELECT * FROM public.few"); err != nil {
		t.Error(err)
	}
	for _, sql := range []string{"SELECT public.leak(o) FROM public.orders o", "SELECT * FROM other.secret"} {
		var e *pgconn.PgError
		if _, err := c.Exec(t.Context(), sql); !errors.As(err, &e) || e.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

func TestScriptRefusesWhatIsNoName(t *testing.T) {
	for name, c := range map[string]struct {
		role    string
		schemas []string
	}{
		"no schema": {"r", nil}, "an empty schema": {"r", []string{""}}, "no role": {"", []string{"public"}}, "a line break": {"r\n\\! rm", []string{"public"}},
		"the mark of its blocks": {"r", []string{"$sluice$; DROP"}}, "a name that is too long": {strings.Repeat("x", 64), []string{"public"}},
	} {
		if _, err := Script(c.role, c.schemas, time.Minute); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRealExamine(t *testing.T) {
	db := pgtest.New(t, shop)
	root, err := Examine(t.Context(), db.URL)
	if err != nil || !slices.Contains(root.Attributes, "SUPERUSER") || len(root.Writes) != few || len(root.Creates) != 3 || len(root.System) != 0 {
		t.Errorf("the superuser: %+v, %v", root, err)
	}
	reader := db.Reader("public.orders")
	r, err := Examine(t.Context(), reader)
	if err != nil || len(r.Attributes)+len(r.System)+len(r.Writes)+len(r.Creates)+len(r.Definers) != 0 || r.Version != root.Version {
		t.Errorf("who reads: %+v, %v", r, err)
	}
	db.Exec(`GRANT UPDATE (total) ON orders TO ` + r.Name + `; GRANT pg_monitor TO ` + r.Name + `; GRANT EXECUTE ON FUNCTION leak TO ` + r.Name + `; GRANT CREATE ON SCHEMA "Pay Roll" TO ` + r.Name)
	r, err = Examine(t.Context(), reader)
	want := Role{Version: root.Version, Name: r.Name, Attributes: []string{}, System: r.System, Writes: []string{"public.orders"}, Creates: []string{"Pay Roll"}, Definers: []string{"public.leak"}}
	if err != nil || !slices.Equal(r.Writes, want.Writes) || !slices.Equal(r.Creates, want.Creates) || !slices.Equal(r.Definers, want.Definers) || !slices.Contains(r.System, "pg_monitor") {
		t.Errorf("%+v, want %+v, %v", r, want, err)
	}
}

// TestExamineTellsNoURL: whatever is wrong with it.
func TestExamineTellsNoURL(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for name, u := range map[string]string{
		"nobody there": "postgres://reader:hunter2@127.0.0.1:1/shop", "no url": "postgres://reader:hunter2@%zz/shop", "an unknown setting": "host=h password=hunter2 sslmode=maybe",
	} {
		_, err := Examine(ctx, u)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
