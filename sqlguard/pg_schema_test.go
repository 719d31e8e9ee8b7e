package sqlguard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"sluice/fault"
)

const pgSchemaText = `
-- A file of the kind that people have.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SCHEMA crm CREATE TABLE seller (id smallserial PRIMARY KEY, name varchar(40) NOT NULL, rate numeric(4,3), bits bit(3), "Mixed Case" text);
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE base (id bigint GENERATED ALWAYS AS IDENTITY, made timestamptz(3) NOT NULL DEFAULT now());
CREATE TABLE contact (LIKE crm.seller, city character(2), at timestamp, t time(0), tags text[], spans interval, feel mood,
	embedding vector(3), alive boolean NOT NULL, doc jsonb, ratio double precision, PRIMARY KEY (id, city));
CREATE TABLE child (note text) INHERITS (base);
ALTER TABLE child ADD COLUMN contact_id smallint, ADD COLUMN contact_city char(2), ADD CONSTRAINT c FOREIGN KEY (contact_id, contact_city) REFERENCES contact;
ALTER TABLE child ADD seller smallint NOT NULL REFERENCES crm.seller (id), ALTER note TYPE varchar(10), ALTER note SET NOT NULL;
ALTER TABLE child ALTER contact_id SET NOT NULL;
ALTER TABLE child ALTER contact_id DROP NOT NULL;
ALTER TABLE contact DROP COLUMN bits;
CREATE TABLE gone (x int);
DROP TABLE IF EXISTS gone, never;
CREATE TABLE list (k int, v text) PARTITION BY LIST (k);
CREATE TABLE list_1 PARTITION OF list FOR VALUES IN (1);
CREATE VIEW summary AS SELECT s.name, count(*), max(c.ratio) AS top, c.doc ->> 'x', upper(s.name), c.tags[1], (c.id + 1)::text
	FROM crm.seller s JOIN contact c USING (id) GROUP BY 1, c.doc, c.tags, c.id;
CREATE VIEW everything (first, second) AS SELECT *, 1 AS one FROM crm.seller;
CREATE MATERIALIZED VIEW totals AS SELECT name, rate FROM crm.seller WITH NO DATA;
CREATE TABLE copied AS SELECT id, name AS called FROM crm.seller;
CREATE OR REPLACE VIEW totals2 AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT * FROM n;
COMMENT ON TABLE contact IS 'people';
COMMENT ON COLUMN crm.seller.rate IS 'share of the price';
CREATE INDEX ON contact (city);
CREATE FUNCTION public.add(a int) RETURNS int LANGUAGE sql AS 'SELECT a + 1';
INSERT INTO list VALUES (1, 'x');
GRANT SELECT ON contact TO PUBLIC;
`

// The server says what a file of statements makes; the gate's reading must agree.
func TestRealSchemaFile(t *testing.T) {
	fixture, err := os.ReadFile(filepath.Join("..", "testdata", "sqlguard", "sqlguard_schema.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"the case files' schema": string(fixture), "the rest of the statements": pgSchemaText} {
		t.Run(name, func(t *testing.T) {
			conn := pgServer(t)
			if _, err := conn.Exec(t.Context(), text); err != nil {
				t.Fatal(err)
			}
			cat, err := PostgresSchema(text)
			if err != nil {
				t.Fatal(err)
			}
			want := serverSchema(t, conn)
			var got []string
			for _, table := range cat.Tables {
				got = append(got, tableText(table))
			}
			slices.Sort(got)
			if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
				t.Errorf("got\n%s\nthe server has\n%s", g, w)
			}
		})
	}
}

// tableText shows what PostgresSchema knows of a relation. A view has no types.
func tableText(t Table) string {
	var cols, keys []string
	for _, c := range t.Columns {
		text := c.Name
		if c.Type != "" {
			text += " " + c.Type
		}
		if !c.Nullable {
			text += " NOT NULL"
		}
		if c.Comment != "" {
			text += " -- " + c.Comment
		}
		cols = append(cols, text)
	}
	for _, f := range t.Foreign {
		keys = append(keys, fmt.Sprintf("%s -> %s.%s(%s)", strings.Join(f.Columns, ","), f.References.Schema, f.References.Name, strings.Join(f.Referenced, ",")))
	}
	slices.Sort(keys)
	return fmt.Sprintf("%s.%s view=%v (%s) key=%s foreign=%s comment=%s", t.Schema, t.Name, t.View, strings.Join(cols, "; "), strings.Join(t.PrimaryKey, ","), strings.Join(keys, " "), t.Comment)
}

// serverSchema asks the server for the same texts. Relations made by a query have no types there.
func serverSchema(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		SELECT n.nspname || '.' || c.relname || ' view=' || CASE WHEN c.relkind IN ('v', 'm') THEN 'true' ELSE 'false' END || ' (' ||
			(SELECT string_agg(a.attname || CASE WHEN c.relkind IN ('v', 'm') OR c.relname = 'copied' THEN '' ELSE ' ' || format_type(a.atttypid, a.atttypmod) END ||
				CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END || coalesce(' -- ' || col_description(c.oid, a.attnum), ''), '; ' ORDER BY a.attnum)
			 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) || ') key=' ||
			coalesce((SELECT string_agg(a.attname, ',' ORDER BY k.i) FROM pg_constraint p, unnest(p.conkey) WITH ORDINALITY AS k(n, i), pg_attribute a
				WHERE p.conrelid = c.oid AND p.contype = 'p' AND a.attrelid = c.oid AND a.attnum = k.n), '') || ' foreign=' ||
			coalesce((SELECT string_agg(x, ' ' ORDER BY x COLLATE "C") FROM (SELECT
				(SELECT string_agg(a.attname, ',' ORDER BY k.i) FROM unnest(p.conkey) WITH ORDINALITY AS k(n, i) JOIN pg_attribute a ON a.attrelid = p.conrelid AND a.attnum = k.n)
				|| ' -> ' || rn.nspname || '.' || r.relname || '(' ||
				(SELECT string_agg(a.attname, ',' ORDER BY k.i) FROM unnest(p.confkey) WITH ORDINALITY AS k(n, i) JOIN pg_attribute a ON a.attrelid = p.confrelid AND a.attnum = k.n) || ')' AS x
				FROM pg_constraint p JOIN pg_class r ON r.oid = p.confrelid JOIN pg_namespace rn ON rn.oid = r.relnamespace WHERE p.conrelid = c.oid AND p.contype = 'f') f), '')
			|| ' comment=' || coalesce(obj_description(c.oid, 'pg_class'), '') AS line
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') AND c.relkind IN ('r', 'p', 'v', 'm') ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func TestPostgresSchemaFails(t *testing.T) {
	cases := map[string]struct {
		text string
		says string
		at   int
	}{
		"a slip of the pen":             {"CREATE TABLE t (id int);\nCREATE TABEL u (id int)", "TABEL", 33},
		"a view over what is not there": {"CREATE VIEW v AS SELECT * FROM nowhere", "nowhere", 1},
		"a relation twice":              {"CREATE TABLE t (id int); CREATE TABLE t (id int)", "made twice", 25},
		"a new name":                    {"CREATE TABLE t (id int); ALTER TABLE t RENAME TO u", "last name", 25},
		"a new schema":                  {"CREATE TABLE t (id int); ALTER TABLE t SET SCHEMA s", "last schema", 25},
		"a table of a type":             {"CREATE TABLE t OF kind", "write the columns", 1},
		"a zero byte":                   {"CREATE TABLE t (id int)\x00", "zero byte", 0},
		"a parent that comes later":     {"CREATE TABLE t () INHERITS (parent)", "parent is not made before t", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := PostgresSchema(c.text)
			f, ok := err.(*fault.Error)
			if !ok || f.Code != fault.Invalid || !strings.Contains(f.Msg, c.says) || f.Position != c.at {
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestPostgresSchemaOfAViewThatTheGateRefuses(t *testing.T) {
	cat, err := PostgresSchema("CREATE TABLE t (id int); CREATE VIEW v (a, b) AS SELECT id, mine(id) FROM t; CREATE EXTENSION vector SCHEMA ext; CREATE FUNCTION mine(int) RETURNS int LANGUAGE sql AS 'SELECT 1'")
	if err != nil {
		t.Fatal(err)
	}
	v := cat.find("", "", "v", exactly)
	if v == nil || len(v.Columns) != 2 || v.Columns[1].Name != "b" || !v.View {
		t.Errorf("got %+v", v)
	}
	if cat.Extensions["vector"] != "ext" || !slices.Equal(cat.Functions, []string{"mine"}) {
		t.Errorf("got %v, %v", cat.Extensions, cat.Functions)
	}
	if empty, err := PostgresSchema(""); err != nil || len(empty.Tables) != 0 || empty.Search[0] != "public" {
		t.Errorf("an empty file: %+v, %v", empty, err)
	}
}
