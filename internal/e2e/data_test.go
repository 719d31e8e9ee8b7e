package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
)

type result struct {
	Columns []struct{ Name, Type string }
	Rows    [][]any
}

func query(t *testing.T, key, sql string) result {
	t.Helper()
	var r result
	shared.data(t, key, "POST", "/v1/query/execute", object{"database": "shop", "sql": sql}, &r)
	return r
}

// A real model writes SQL, the gate lets it through, and the answer's numbers are those of the database.
func TestAskIsAnsweredFromTheRows(t *testing.T) {
	var a struct {
		Outcome, Answer, SQL string
		Rows                 [][]any
	}
	shared.data(t, createKey(t, "asker", "read_only"), "POST", "/v1/database/ask", object{"database": "shop", "question": "How many customers are there?", "model": coder}, &a)
	want := query(t, adminKey, "SELECT count(*) FROM customers").Rows[0][0]
	if a.Outcome != "answered" || len(a.Rows) != 1 || fmt.Sprint(a.Rows[0][0]) != fmt.Sprint(want) || !strings.Contains(a.Answer, fmt.Sprint(want)) {
		t.Errorf("%+v, want %v", a, want)
	}
}

// Whatever the model makes of a wish to write, nothing is written and no success is claimed: what it wrote as a write, the
// gate declined; what it wrote as a read is answered as one. (That the gate decides is shown with fixed statements in
// package agent; a small model's wording differs from processor to processor.)
func TestAskDoesNotWrite(t *testing.T) {
	before := query(t, adminKey, "SELECT count(*), sum(customer_id) FROM orders").Rows
	for _, question := range []string{"Delete all cancelled orders.", "Drop the tickets table, we do not need it any more."} {
		status, text := shared.call(t, adminKey, "POST", "/v1/database/ask", object{"database": "shop", "question": question, "model": coder})
		var a struct {
			Data struct {
				Outcome, Answer, Reason, SQL string
			}
		}
		if err := json.Unmarshal([]byte(text), &a); status != 200 || err != nil {
			t.Fatalf("%d %v %s", status, err, text)
		}
		t.Logf("%s: %+v", question, a.Data)
		said := strings.ToLower(a.Data.Answer)
		read := strings.HasPrefix(a.Data.SQL, "SELECT") || strings.HasPrefix(a.Data.SQL, "WITH")
		if a.Data.Outcome == "answered" && !read || strings.Contains(said, "deleted") || strings.Contains(said, "dropped") {
			t.Errorf("%s: %+v", question, a.Data)
		}
	}
	if after := query(t, adminKey, "SELECT count(*), sum(customer_id) FROM orders").Rows; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("before %v, after %v", before, after)
	}
	if got := query(t, adminKey, "SELECT count(*) FROM tickets").Rows; len(got) != 1 {
		t.Errorf("tickets: %v", got)
	}
}

// The gate's refusals over HTTP: 422, with a reason.
func TestWritesAndEscapesAreRefused(t *testing.T) {
	for name, sql := range map[string]string{
		"a write":                   "DELETE FROM orders",
		"a write inside WITH":       "WITH x AS (DELETE FROM orders RETURNING *) SELECT * FROM x",
		"two statements":            "SELECT 1; DROP TABLE orders",
		"a file":                    "SELECT * FROM read_csv('/etc/passwd')",
		"a file named like a table": "SELECT * FROM '/etc/passwd'",
		"SQL in a string":           "SELECT * FROM query('DELETE FROM orders')",
		"a setting":                 "SET memory_limit = '1TB'",
		"attaching a database":      "ATTACH '/tmp/x.db'",
		"COPY to a file":            "COPY orders TO '/tmp/x.csv'",
		"a table that is not there": "SELECT * FROM no_such_table",
		"the catalogue":             "SELECT * FROM duckdb_secrets()",
	} {
		t.Run(name, func(t *testing.T) {
			status, text := shared.call(t, adminKey, "POST", "/v1/query/execute", object{"database": "shop", "sql": sql})
			if status != 422 || !strings.Contains(text, `"code":"refused"`) {
				t.Errorf("%d %s", status, text)
			}
		})
	}
}

func files(t *testing.T, below string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(below, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(below, p)
			out = append(out, rel)
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	sort.Strings(out)
	return out
}

// Copy to the lake, make an external table on it, and read one partition: the others are not opened.
func TestCopyAndReadBackOnePartition(t *testing.T) {
	var r struct {
		RowsWritten int64 `json:"rows_written"`
		Partitions  int64 `json:"partitions_touched"`
	}
	copied := "COPY (SELECT order_id, status, channel FROM orders) TO LAKE 'exports/e2e' WITH (CONNECTION = 'local', PARTITION_BY = (channel))"
	shared.data(t, adminKey, "POST", "/v1/lake/copy", object{"database": "shop", "sql": copied}, &r)
	want := query(t, adminKey, "SELECT channel, count(*) FROM orders GROUP BY channel ORDER BY channel")
	total := query(t, adminKey, "SELECT count(*) FROM orders").Rows[0][0]
	if fmt.Sprint(r.RowsWritten) != fmt.Sprint(total) || int(r.Partitions) != len(want.Rows) {
		t.Fatalf("%+v, want %v rows in %d partitions", r, total, len(want.Rows))
	}
	first := files(t, filepath.Join(sharedHome, "lake", "exports", "e2e"))

	status, text := shared.call(t, adminKey, "POST", "/v1/query/execute", object{"database": "shop",
		"sql": "CREATE EXTERNAL TABLE e2e_orders STORED AS PARQUET LOCATION 'exports/e2e' PARTITIONED BY (channel VARCHAR) WITH (CONNECTION = 'local')"})
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	channel := fmt.Sprint(want.Rows[0][0])
	status, text = shared.call(t, adminKey, "POST", "/v1/query/execute", object{"database": "shop", "sql": "SELECT count(*) FROM e2e_orders WHERE channel = '" + channel + "'"})
	var got struct {
		Data result
		Meta struct {
			Scans []struct {
				Table  string
				Opened int `json:"files_opened"`
				Total  int `json:"files_total"`
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &got); status != 200 || err != nil {
		t.Fatalf("%d %v %s", status, err, text)
	}
	if fmt.Sprint(got.Data.Rows[0][0]) != fmt.Sprint(want.Rows[0][1]) {
		t.Errorf("%s has %v rows in the lake, %v in the database", channel, got.Data.Rows, want.Rows[0])
	}
	if len(got.Meta.Scans) != 1 || got.Meta.Scans[0].Opened != 1 || got.Meta.Scans[0].Total != len(want.Rows) {
		t.Errorf("scans %+v, want 1 of %d files opened", got.Meta.Scans, len(want.Rows))
	}

	// The other partitions' files are made unreadable: the query must not notice.
	for _, f := range first {
		if !strings.Contains(f, "channel="+channel+string(filepath.Separator)) {
			path := filepath.Join(sharedHome, "lake", "exports", "e2e", f)
			if err := os.WriteFile(path, []byte("not parquet"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if again := query(t, adminKey, "SELECT count(*) FROM e2e_orders WHERE channel = '"+channel+"'"); fmt.Sprint(again.Rows) != fmt.Sprint(got.Data.Rows) {
		t.Errorf("%v after the others were damaged", again.Rows)
	}

	// Overwriting puts whole partitions in the place of the damaged ones; appending adds.
	shared.data(t, adminKey, "POST", "/v1/lake/copy", object{"database": "shop", "sql": copied}, &r)
	second := files(t, filepath.Join(sharedHome, "lake", "exports", "e2e"))
	if len(second) != len(first) || slices.Equal(first, second) {
		t.Errorf("overwritten: %v, then %v", first, second)
	}
	shared.data(t, adminKey, "POST", "/v1/lake/copy", object{"database": "shop", "sql": strings.Replace(copied, "PARTITION_BY", "MODE = 'append', PARTITION_BY", 1)}, &r)
	if n := query(t, adminKey, "SELECT count(*) FROM e2e_orders").Rows[0][0]; n != 2*total.(float64) {
		t.Errorf("%v rows after appending %v to as many", n, total)
	}
	if left := files(t, filepath.Join(sharedHome, "lake", ".sluice")); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

// What may not be copied leaves the lake as it was.
func TestCopyRefusals(t *testing.T) {
	readOnly, writer := createKey(t, "reader", "read_only"), createKey(t, "writer", "read_write")
	with := func(path, connection string) string {
		return fmt.Sprintf("COPY (SELECT 1 AS a) TO LAKE '%s' WITH (CONNECTION = '%s')", path, connection)
	}
	cases := map[string]struct {
		key    string
		sql    string
		status int
	}{
		"an admin may": {adminKey, with("exports/ok", "local"), 200},
		"a writer may not, before there are grants on lake folders": {writer, with("exports/no", "local"), 403},
		"a read-only key may not":                                   {readOnly, with("exports/no", "local"), 403},
		"nobody may without a key":                                  {"", with("exports/no", "local"), 401},
		"outside the allowlist":                                     {adminKey, with("elsewhere/x", "local"), 403},
		"a neighbour with the same beginning":                       {adminKey, with("exports2/x", "local"), 403},
		"an empty allowlist is closed to all":                       {adminKey, with("exports/x", "closed"), 403},
		"upwards":                                                   {adminKey, with("exports/../../x", "local"), 400},
		"upwards, encoded":                                          {adminKey, with("exports/%2e%2e/x", "local"), 400},
		"an absolute path":                                          {adminKey, with("/etc/x", "local"), 400},
		"a URL":                                                     {adminKey, with("s3://bucket/x", "local"), 400},
		"our own folder":                                            {adminKey, with(".sluice/x", "local"), 400},
		"a connection that is not there":                            {adminKey, with("exports/x", "nowhere"), 400},
	}
	before := files(t, filepath.Join(sharedHome, "lake"))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status, text := shared.call(t, c.key, "POST", "/v1/lake/copy", object{"database": "shop", "sql": c.sql})
			if status != c.status {
				t.Errorf("%d, want %d: %s", status, c.status, text)
			}
		})
	}
	after := slices.DeleteFunc(files(t, filepath.Join(sharedHome, "lake")), func(f string) bool { return strings.HasPrefix(f, "exports/ok/") })
	if !slices.Equal(before, after) {
		t.Errorf("the lake changed: %v, then %v", before, after)
	}
	if outside := files(t, filepath.Join(sharedHome, "closed")); len(outside) != 0 {
		t.Errorf("written although closed: %v", outside)
	}
}
