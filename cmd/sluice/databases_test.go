package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice/config"
	"sluice/database"
	"sluice/fault"
	"sluice/internal/pgtest"
	"sluice/sqlguard"
)

// detour is an address at which a server is there or not.
type detour struct {
	t        *testing.T
	to       string // where the server really is
	address  string
	listener net.Listener
}

func newDetour(t *testing.T, to string) *detour {
	t.Helper()
	d := &detour{t: t, to: to}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d.address = l.Addr().String()
	l.Close()
	t.Cleanup(d.close)
	return d
}

// open lets connections through from now on.
func (d *detour) open() {
	d.t.Helper()
	var err error
	if d.listener, err = net.Listen("tcp", d.address); err != nil {
		d.t.Fatal(err)
	}
	l := d.listener
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", d.to)
			if err != nil {
				in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); out.Close() }()
			go func() { _, _ = io.Copy(in, out); in.Close() }()
		}
	}()
}

func (d *detour) close() {
	if d.listener != nil {
		d.listener.Close()
	}
}

// TestRealDatabaseThatComesBack: the server starts while a PostgreSQL is away, says so, and has it when it is there.
func TestRealDatabaseThatComesBack(t *testing.T) {
	db := pgtest.New(t, "CREATE TABLE orders (id integer); INSERT INTO orders VALUES (7)")
	u, err := url.Parse(db.Reader("public.orders"))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	way := newDetour(t, u.Host)
	u.Host = way.address
	var said bytes.Buffer
	s := &server{
		cfg: &config.Config{Home: t.TempDir(), Databases: map[string]config.Database{"erp": {Kind: "postgres", URL: u.String(), Schemas: []string{"public"}}}},
		log: slog.New(slog.NewJSONHandler(&said, nil)), databases: map[string]*database.Source{},
	}
	if err := s.openDatabases(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.databases["erp"].Close()
	ask := func() error {
		_, err := s.databases["erp"].Approve(t.Context(), "SELECT id FROM orders", sqlguard.ReadOnly, func(sqlguard.Relation) bool { return true })
		return err
	}
	if err := ask(); fault.CodeOf(err) != fault.Busy || !strings.Contains(describe(err), "erp cannot be reached") {
		t.Errorf("while it is away: %v", err)
	}
	if w := s.warnings(); len(w) != 1 || !strings.Contains(w[0], "1 of 1 PostgreSQL database cannot be used now") || strings.Contains(w[0], "erp") {
		t.Errorf("/readyz warns %q", w)
	}
	if log := said.String(); strings.Count(log, `"level":"WARN"`) != 1 || !strings.Contains(log, `"database":"erp"`) || strings.Contains(log, password) {
		t.Errorf("the log says %s", log)
	}
	way.open()
	if err := ask(); err != nil {
		t.Errorf("when it is there: %v", err)
	}
	s.reach.looked = time.Time{}
	if w := s.warnings(); len(w) != 0 {
		t.Errorf("/readyz still warns %q", w)
	}
	if !strings.Contains(said.String(), "can be used again") {
		t.Errorf("the log says %s", &said)
	}
}

func TestReadyAsksSeldom(t *testing.T) {
	src, err := database.Open(t.Context(), database.Config{Name: "erp", Kind: "postgres", URL: "postgres://reader:hunter2@127.0.0.1:1/erp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var said bytes.Buffer
	r := newReach(map[string]*database.Source{"erp": src}, slog.New(slog.NewTextHandler(&said, nil)))
	for range 50 {
		if w := r.warnings(); len(w) != 1 {
			t.Fatalf("%q", w)
		}
	}
	looked := r.looked
	r.warnings()
	if r.looked != looked || strings.Count(said.String(), "\n") != 1 || strings.Contains(said.String(), "hunter2") {
		t.Errorf("it looked again, or the log says %s", &said)
	}
	if w := (*reach)(nil).warnings(); w != nil {
		t.Errorf("%q", w)
	}
}

// TestRealDoctorLooksAtDatabases: what it says of a role that only reads, one that can do more, and none at all.
func TestRealDoctorLooksAtDatabases(t *testing.T) {
	db := pgtest.New(t, "CREATE TABLE orders (id integer); CREATE SCHEMA empty")
	reader := db.Reader("public.orders")
	wrong, err := url.Parse(reader)
	if err != nil {
		t.Fatal(err)
	}
	wrong.User = url.UserPassword(wrong.User.Username(), "hunter2")
	examine := func(u string, schemas ...string) (report, string) {
		d := &doctor{cfg: &config.Config{Home: t.TempDir(), Databases: map[string]config.Database{
			"erp": {Kind: "postgres", URL: u, Schemas: schemas}, "shop": {Kind: "duckdb", Path: "x"},
		}}}
		d.databases(t.Context())
		var text bytes.Buffer
		if err := d.report.print(&text); err != nil {
			t.Fatal(err)
		}
		return d.report, text.String()
	}
	r, text := examine(reader, "public")
	if len(r.Problems) != 0 || len(r.Databases) != 1 || !r.Databases[0].Reachable || r.Databases[0].Tables != 1 {
		t.Errorf("who reads: %+v", r)
	}
	wantWords(t, text, "database erp", "PostgreSQL "+r.Databases[0].Version+", as "+r.Databases[0].Role+": 1 table in public", "Nothing is wrong.")
	r, text = examine(db.URL, "public")
	if len(r.Problems) != 1 || r.Problems[0].Level != levelWarning {
		t.Errorf("the superuser: %+v", r.Problems)
	}
	wantWords(t, text, "warning: databases.erp: the role", "is a superuser", "sluice doctor --print-role-sql --database erp")
	_, text = examine(reader, "empty")
	wantWords(t, text, "may read no table in empty")
	db.Exec(`GRANT INSERT ON orders TO PUBLIC; GRANT CREATE ON SCHEMA empty TO PUBLIC`)
	_, text = examine(reader, "public")
	wantWords(t, text, "may write to public.orders", "may make tables in the schemas empty")
	for name, c := range map[string]struct{ url, want string }{
		"a wrong password": {wrong.String(), "cannot be reached: authentication failed"},
		"nobody there":     {"postgres://reader:hunter2@127.0.0.1:1/erp", "cannot be reached: the connection was refused"},
	} {
		r, text := examine(c.url, "public")
		if len(r.Problems) != 1 || r.Problems[0].Level != levelError || r.Databases[0].Reachable || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %+v", name, r)
		}
		wantWords(t, text, "error: databases.erp: the database erp "+c.want, "PostgreSQL, which cannot be used", "answers 503")
	}
}

func TestDoctorPrintsTheRolesScript(t *testing.T) {
	c := newClinic(t)
	settings := c.home + "/sluice.yaml"
	writeFile(t, settings, "databases:\n  erp: {kind: postgres, url: 'postgres://reader:hunter2@h/d', schemas: [sales, hr]}\n  shop: {kind: duckdb, path: x}\nlimits: {statement_timeout: 90s}\n")
	run := func(args ...string) (string, error) {
		var out bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"doctor"}, args...))
		root.SetOut(&out)
		root.SetErr(io.Discard)
		err := root.ExecuteContext(context.WithoutCancel(t.Context()))
		return out.String(), err
	}
	for name, want := range map[string]struct {
		args  []string
		words []string
	}{
		"by itself":          {[]string{"--print-role-sql"}, []string{"ARRAY['public']", "'sluice_reader'", "statement_timeout = '60000ms'", "PASSWORD :'password'"}},
		"schemas":            {[]string{"--print-role-sql", "--schemas", "a,b", "--role", "x"}, []string{"ARRAY['a', 'b']", "'x'"}},
		"of a database":      {[]string{"--print-role-sql", "--database", "erp", "--config", settings}, []string{"ARRAY['sales', 'hr']", "statement_timeout = '90000ms'"}},
		"nothing of the URL": {[]string{"--print-role-sql", "--database", "erp", "--config", settings}, []string{"postgres://sluice_reader:"}},
	} {
		text, err := run(want.args...)
		if err != nil || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
		wantWords(t, text, want.words...)
	}
	for name, args := range map[string][]string{
		"no such database":       {"--print-role-sql", "--database", "nope", "--config", settings},
		"one that is a file":     {"--print-role-sql", "--database", "shop", "--config", settings},
		"both":                   {"--print-role-sql", "--database", "erp", "--schemas", "a", "--config", settings},
		"no name of a role":      {"--print-role-sql", "--role", ""},
		"without the script":     {"--role", "x"},
		"a database without it":  {"--database", "erp"},
		"settings that are none": {"--print-role-sql", "--database", "erp", "--config", settings + "x"},
	} {
		if text, err := run(args...); err == nil || text != "" {
			t.Errorf("%s: %v %.200s", name, err, text)
		} else if usage := (usageError{}); name != "both" && !errors.As(err, &usage) {
			t.Errorf("%s: %v is no usage error", name, err)
		}
	}
}
