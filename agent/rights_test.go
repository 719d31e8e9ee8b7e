package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"sluice/access"
	"sluice/fault"
	"sluice/sqlguard"
)

func TestTheGateDeclinesWhatIsNotARead(t *testing.T) {
	src := shop(t)
	for _, sql := range []string{
		"DELETE FROM orders",
		"DELETE FROM orders WHERE status = 'CANC' RETURNING *",
		"UPDATE orders SET total = 0",
		"INSERT INTO orders VALUES (9, 1, NULL, 'NEW', 1)",
		"INSERT INTO orders SELECT * FROM orders",
		"DROP TABLE orders",
		"TRUNCATE orders",
		"ALTER TABLE orders ADD COLUMN x INTEGER",
		"CREATE TABLE t AS SELECT * FROM orders",
		"CREATE MACRO f() AS 1",
		"WITH gone AS (SELECT 1) DELETE FROM orders",
		"/* SELECT */ DELETE FROM orders",
		"COPY orders TO 'orders.csv'",
		"COPY (SELECT * FROM orders) TO LAKE 'x' WITH (CONNECTION = 'local')",
		"ATTACH 'other.duckdb' AS other",
		"INSTALL httpfs",
		"SET enable_external_access = true",
		"PRAGMA database_list",
		"CALL pragma_version()",
		"EXPORT DATABASE 'out'",
		"CHECKPOINT",
		"BEGIN TRANSACTION",
	} {
		t.Run(sql, func(t *testing.T) {
			ans := askShop(t, src, sql, Ask{Question: "Please tell me the number of orders."}) // the wish to write is in no word
			if ans.Outcome != Declined || ans.Reason == "" || ans.SQL != "" || ans.Table != nil || ans.Written == "" {
				t.Errorf("got %+v", ans)
			}
			if !strings.Contains(ans.Text, ans.Reason) {
				t.Errorf("the answer keeps the reason back: %q", ans.Text)
			}
		})
	}
	if ran := src.beside(t); len(ran) != 0 {
		t.Errorf("executed: %q", ran)
	}
}

// TestOnlyTheFirstStatementCounts: the model is stopped behind it, so that whatever comes after it is nowhere.
func TestOnlyTheFirstStatementCounts(t *testing.T) {
	src := shop(t)
	ans := askShop(t, src, "SELECT COUNT(*) AS n FROM orders; DELETE FROM orders", Ask{Question: "How many orders?"})
	if ans.Outcome != Answered || strings.Contains(ans.Written, "DELETE") {
		t.Errorf("got %+v", ans)
	}
	ans = askShop(t, src, "SELECT 42 AS n; DELETE FROM orders", Ask{Question: "How many orders?"})
	if ans.Outcome != Failed || !strings.Contains(ans.Reason, "reads no table") {
		t.Errorf("a number that was read nowhere: %+v", ans)
	}
	for _, sql := range src.beside(t) {
		if strings.Contains(sql, "DELETE") {
			t.Errorf("executed: %q", sql)
		}
	}
}

func TestReadsThatEscapeAreNotExecuted(t *testing.T) {
	src := shop(t)
	for _, sql := range []string{
		"SELECT * FROM read_csv('/etc/passwd')",
		"SELECT * FROM '/etc/passwd'",
		`SELECT * FROM "orders.csv"`,
		"SELECT content FROM read_text('/etc/hostname')",
		"SELECT * FROM duckdb_secrets()",
		"SELECT * FROM information_schema.tables",
		"SELECT getenv('HOME')",
		"SELECT * FROM query('DELETE FROM orders')",
		"SELECT nextval('s') FROM orders",
		"SELECT * FROM other.orders",
		"SELECT nothing FROM orders",
		"SELECT * FROM orders WHERE (",
		"Sorry, I cannot do that.",
		"EXPLAIN SELECT * FROM orders",
		"EXPLAIN ANALYZE DELETE FROM orders",
	} {
		t.Run(sql, func(t *testing.T) {
			ans := askShop(t, src, sql, Ask{})
			if ans.Outcome == Answered || ans.Reason == "" || ans.SQL != "" || ans.Table != nil || !strings.Contains(ans.Text, ans.Reason) {
				t.Errorf("got %+v", ans)
			}
		})
	}
	if ran := src.beside(t); len(ran) != 0 {
		t.Errorf("executed: %q", ran)
	}
}

func TestAHiddenTableIsNowhere(t *testing.T) {
	src := shop(t)
	who := admin()
	who.Role, who.Tables = access.ReadOnly, []string{"shop.orders", "shop.customers"}
	for name, sql := range map[string]string{
		"a fair question":                 "SELECT COUNT(*) AS n FROM orders",
		"a near name":                     "SELECT * FROM salaries",
		"another near name":               "SELECT * FROM zz_salarie",
		"a near column":                   "SELECT zz_amoun FROM orders",
		"all tables":                      "SHOW TABLES",
		"a description":                   "DESCRIBE orders",
		"the catalogue":                   "SELECT table_name FROM duckdb_tables()",
		"a reference that breaks nothing": "SELECT salary_id FROM orders",
	} {
		t.Run(name, func(t *testing.T) {
			var seen strings.Builder
			model := completer(func(c Completion) (string, error) {
				for _, m := range c.Messages {
					seen.WriteString(m.Content + "\n")
				}
				return sql, nil
			})
			ask := Ask{Who: who, Question: "What is there?", OnEvent: func(e Event) { seen.WriteString(e.Stage + e.Text + "\n") }}
			ans, err := newAgent(t, Config{Completer: model}).Ask(t.Context(), src, ask)
			if err != nil {
				seen.WriteString(err.Error() + fault.Public(err).Msg + fault.Public(err).Hint)
			}
			all, _ := json.Marshal(ans)
			seen.Write(all)
			if !strings.Contains(seen.String(), "CREATE TABLE orders") {
				t.Fatal("the model saw no schema")
			}
			for _, secret := range []string{"zz_salaries", "zz_amount", "987654"} {
				if strings.Contains(seen.String(), secret) {
					t.Errorf("%s shows in:\n%s", secret, seen.String())
				}
			}
		})
	}
	// By its right name it gets the words of a table that does not exist.
	hidden := askShop(t, src, "SELECT * FROM zz_salaries", Ask{Who: who}).Text
	missing := askShop(t, src, "SELECT * FROM zz_nowhere", Ask{Who: who}).Text
	if strings.ReplaceAll(hidden, "zz_salaries", "T") != strings.ReplaceAll(missing, "zz_nowhere", "T") {
		t.Errorf("a hidden table: %q\na missing one: %q", hidden, missing)
	}
}

func TestRightsAndModels(t *testing.T) {
	src := shop(t)
	for name, row := range map[string]struct {
		cfg   Config
		who   func(*access.Principal)
		ask   Ask
		code  fault.Code
		model string // the one that is asked, "" when it is refused
	}{
		"the configured model":                 {Config{Model: "a"}, nil, Ask{}, 0, "a"},
		"the asker's model comes first":        {Config{Model: "a"}, nil, Ask{Model: "b"}, 0, "b"},
		"an approved one, written otherwise":   {Config{Model: "a", Approved: []string{"B:latest"}}, nil, Ask{Model: "b"}, 0, "b"},
		"one that is not approved":             {Config{Model: "a", Approved: []string{"a"}}, nil, Ask{Model: "b"}, fault.Denied, ""},
		"the default needs approval too":       {Config{Model: "a", Approved: []string{"b"}}, nil, Ask{}, fault.Denied, ""},
		"a tag is part of the name":            {Config{Approved: []string{"a:1b"}}, nil, Ask{Model: "a"}, fault.Denied, ""},
		"one that the key may not use":         {Config{Model: "a"}, func(p *access.Principal) { p.Models = []string{"b"} }, Ask{}, fault.Denied, ""},
		"no model at all":                      {Config{}, nil, Ask{}, fault.Conflict, ""},
		"nobody":                               {Config{Model: "a"}, func(p *access.Principal) { *p = access.Principal{} }, Ask{}, fault.NotFound, ""},
		"a key for other databases":            {Config{Model: "a"}, func(p *access.Principal) { p.Databases = []string{"erp"} }, Ask{}, fault.NotFound, ""},
		"an empty question":                    {Config{Model: "a"}, nil, Ask{Question: " "}, fault.Invalid, ""},
		"a question longer than a model reads": {Config{Model: "a"}, nil, Ask{Question: strings.Repeat("why ", 5000)}, fault.TooLarge, ""},
	} {
		t.Run(name, func(t *testing.T) {
			asked := ""
			row.cfg.Completer = completer(func(c Completion) (string, error) { asked = c.Model; return "SELECT COUNT(*) FROM orders", nil })
			a, err := New(row.cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(a.Close)
			row.ask.Who = admin()
			if row.who != nil {
				row.who(&row.ask.Who)
			}
			if row.ask.Question == "" {
				row.ask.Question = "How many orders?"
			}
			_, err = a.Ask(t.Context(), src, row.ask)
			if asked != row.model || (err != nil) != (row.model == "") || err != nil && fault.CodeOf(err) != row.code {
				t.Errorf("asked %q, error %v", asked, err)
			}
		})
	}
}

func TestNothingToReadIsADecline(t *testing.T) {
	who := admin()
	who.Tables = []string{}
	a := newAgent(t, Config{Completer: completer(func(Completion) (string, error) { t.Error("the model was asked"); return "", nil })})
	ans, err := a.Ask(t.Context(), shop(t), Ask{Who: who, Question: "How many?"})
	if err != nil || ans.Outcome != Declined || ans.ModelCalls != 0 {
		t.Errorf("got %+v, %v", ans, err)
	}
}

// TestTheAskersRoleChoosesTheProfile: what a model writes for a restricted asker passes the stricter gate.
func TestTheAskersRoleChoosesTheProfile(t *testing.T) {
	src := shop(t)
	restricted := admin()
	restricted.Role = access.Restricted
	narrow := restricted
	narrow.Tables = []string{"shop.orders"}
	for sql, row := range map[string]struct {
		reader, restricted, narrow Outcome
		says                       string // to the restricted asker
	}{
		"SELECT COUNT(*) AS n FROM orders":                         {Answered, Answered, Answered, ""},
		"SELECT COUNT(*) AS n FROM customers":                      {Answered, Answered, Failed, ""},
		"SELECT COUNT(*) AS n FROM orders WHERE now() IS NOT NULL": {Answered, Failed, Failed, "restricted reader"},
		"SELECT current_timestamp AS n FROM orders":                {Answered, Failed, Failed, "restricted reader"},
		"EXPLAIN SELECT * FROM orders":                             {Failed, Failed, Failed, "plans"},
		"SELECT CURRENT_DATE AS n FROM orders":                     {Answered, Answered, Answered, ""},
		"DELETE FROM orders":                                       {Declined, Declined, Declined, ""},
	} {
		for who, c := range map[string]struct {
			p    access.Principal
			want Outcome
			says string
		}{"a reader": {admin(), row.reader, ""}, "restricted": {restricted, row.restricted, row.says}, "restricted to a table": {narrow, row.narrow, ""}} {
			ans := askShop(t, src, sql, Ask{Who: c.p})
			if ans.Outcome != c.want || !strings.Contains(ans.Reason, c.says) || (ans.SQL != "") != (c.want == Answered) {
				t.Errorf("%s, %s: %+v", sql, who, ans)
			}
		}
	}
	if p := ProfileOf(access.Principal{}); p != sqlguard.NoProfile {
		t.Errorf("nobody has the profile %v", p)
	}
}
