package rag

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"sluice/database"
	"sluice/fault"
	"sluice/internal/pgtest"
	"sluice/sqlguard"
)

func facts(t *testing.T, k *Knowledge, c ColumnRef) Facts {
	t.Helper()
	f, ok := k.Facts(c)
	if !ok || !f.Profiled {
		t.Fatalf("%v is not known: %+v", c, f)
	}
	return f
}

// wantShopdesk says what there is to know of the shop, whatever the engine.
func wantShopdesk(t *testing.T, k *Knowledge, schema string) {
	t.Helper()
	at := func(table, column string) ColumnRef {
		return ColumnRef{sqlguard.Relation{Schema: schema, Name: table}, column}
	}
	tier := facts(t, k, at("customers", "tier"))
	if got := slices.Sorted(slices.Values(tier.Values)); !slices.Equal(got, []string{"B", "G", "S"}) || !tier.Complete || tier.Distinct != 3 || tier.Sampled || tier.Key {
		t.Errorf("customers.tier: %+v", tier)
	}
	name := facts(t, k, at("agents", "agent_name"))
	if name.Distinct != 7 || !name.Complete || !name.Key || !slices.Contains(name.Values, "Lea Fournier") {
		t.Errorf("agents.agent_name: %+v", name)
	}
	if lead := facts(t, k, at("agents", "lead_id")); lead.Distinct != 2 || lead.Key || lead.Values != nil {
		t.Errorf("agents.lead_id: %+v", lead)
	}
	if day := facts(t, k, at("customers", "signup_date")); day.Min == "" || day.Min >= day.Max || len(day.Min) != len("2024-01-31") {
		t.Errorf("customers.signup_date: %+v", day)
	}
	if id := facts(t, k, at("order_items", "order_id")); id.Key {
		t.Errorf("a part of a key is taken for one: %+v", id)
	}
}

func TestProfileOfDuckDB(t *testing.T) {
	wantShopdesk(t, know(t, duck(t, shopdesk(t)...), everyone), "main")
}

func TestProfileOfPostgres(t *testing.T) {
	db := pgtest.New(t, append(shopdesk(t), `CREATE TYPE mood AS ENUM ('glad', 'so so');
		CREATE TABLE "Feed Back" (id int PRIMARY KEY, "ticketId" int, mood mood, body jsonb, place point);
		INSERT INTO "Feed Back" VALUES (1, 3, 'so so', '{}', '(1,2)'), (2, 4, 'glad', '[]', NULL);
		CREATE TYPE pair AS (a json, b json);
		CREATE TABLE pairs (id int PRIMARY KEY, label text, both_of_them pair);
		INSERT INTO pairs VALUES (1, 'left', ('{}', '{}')), (2, 'right', NULL)`)...)
	src, err := database.Open(t.Context(), database.Config{Name: "shop", Kind: database.KindPostgres,
		URL: db.Reader("public.agents", "public.customers", "public.order_items", "public.orders", "public.payments", "public.products", "public.tickets", `public."Feed Back"`, "public.pairs")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	cfg := patient
	cfg.Failed = func(_, what string, err error) { t.Errorf("%s: %v", what, err) }
	k := learn(t, profiler(t, cfg), src, everyone)
	wantShopdesk(t, k, "public")
	feedback := sqlguard.Relation{Schema: "public", Name: "Feed Back"}
	if mood := facts(t, k, ColumnRef{feedback, "mood"}); !mood.Complete || !slices.Contains(mood.Values, "so so") {
		t.Errorf("the values of an enumeration are not known: %+v", mood)
	}
	if label := facts(t, k, ColumnRef{sqlguard.Relation{Schema: "public", Name: "pairs"}, "label"}); !label.Complete || label.Distinct != 2 {
		t.Errorf("a type that cannot be compared hides the other columns: %+v", label)
	}
	if !slices.ContainsFunc(k.Joins(), func(j Join) bool {
		return j.From == ColumnRef{feedback, "ticketId"} && j.To.Column == "ticket_id" && !j.Declared
	}) {
		t.Errorf("the tickets are not joined: %v", k.Joins())
	}
	if got := k.Name(feedback) + "." + k.Identifier("ticketId"); got != `"Feed Back"."ticketId"` {
		t.Errorf("a name that PostgreSQL would fold is written %s", got)
	}
	f := k.Focus("Which tickets of Jonas Beck left people in a so so mood?", "")
	if !slices.ContainsFunc(f.Links, func(l Link) bool { return l.Value == "so so" && l.Column.Column == "mood" }) {
		t.Errorf("links: %+v", f.Links)
	}
}

func TestLargeTablesAreCut(t *testing.T) {
	src := duck(t, `CREATE TABLE visits (id BIGINT PRIMARY KEY, page VARCHAR, device VARCHAR);
		INSERT INTO visits SELECT i, 'page ' || (i % 500), ['phone', 'tablet'][1 + i % 2] FROM range(3000) r(i)`)
	cfg := patient
	cfg.Rows = 1000
	cfg.Values = 60
	k := learn(t, profiler(t, cfg), src, everyone)
	page := facts(t, k, column("visits", "page"))
	if !page.Sampled || page.Complete || len(page.Values) != 60 || page.Distinct != 500 {
		t.Errorf("page: %d values, %+v", len(page.Values), Facts{Distinct: page.Distinct, Sampled: page.Sampled, Complete: page.Complete})
	}
	if id := facts(t, k, column("visits", "id")); !id.Key {
		t.Error("a declared key is one, however few rows were seen")
	}
	if device := facts(t, k, column("visits", "device")); device.Complete {
		t.Error("values of the first rows are said to be all values")
	}
	if card := k.Card(nil); !strings.Contains(card, "-- 2 of over 2 values: 'phone', 'tablet'") || !strings.Contains(card, "-- 2 of over 500 values: ") {
		t.Errorf("a cut list does not say so:\n%s", card)
	}
	f := k.Focus("How many visits of the page Zanzibar Fruits were there?", "")
	if len(f.Missing) != 1 || f.Missing[0].Text != "Zanzibar Fruits" || f.Missing[0].Complete {
		t.Errorf("what was not found in the first rows is said to be nowhere: %+v", f.Missing)
	}
	whole := know(t, src, everyone)
	if f := whole.Focus("How many visits of the page Zanzibar Fruits were there?", ""); len(f.Missing) != 1 || !f.Missing[0].Complete {
		t.Errorf("all values were seen: %+v", f.Missing)
	}
}

func TestValuesOfADatabaseAreBounded(t *testing.T) {
	src := duck(t, `CREATE TABLE a AS SELECT 'a' || i AS v FROM range(1000) r(i); CREATE TABLE b AS SELECT 'b' || i AS v FROM range(1000) r(i)`)
	cfg := patient
	cfg.Total = 600
	k := learn(t, profiler(t, cfg), src, everyone)
	a, b := facts(t, k, column("a", "v")), facts(t, k, column("b", "v"))
	if n := len(a.Values) + len(b.Values); n > 650 || n < 600 || a.Complete || b.Complete {
		t.Errorf("%d and %d values are kept", len(a.Values), len(b.Values))
	}
}

func TestHiddenValuesAreNeverRead(t *testing.T) {
	seen := &recorder{Source: duck(t, shopdesk(t)...)}
	cfg := patient
	cfg.HideValues = func(database string) bool { return database == "shop" }
	k := learn(t, profiler(t, cfg), seen, everyone)
	for _, r := range k.Relations() {
		table, _ := k.Table(r)
		for _, c := range table.Columns {
			if f := facts(t, k, ColumnRef{r, c.Name}); f.Values != nil || f.Min != "" || f.Max != "" {
				t.Errorf("%s.%s shows %v %s %s", r.Name, c.Name, f.Values, f.Min, f.Max)
			}
		}
	}
	f := k.Focus("How many orders has 'Ada Petrov' placed?", "")
	if f.Links != nil || f.Missing != nil {
		t.Errorf("a value shows: %+v", f)
	}
	if len(f.Tables) == 0 || facts(t, k, column("agents", "agent_name")).Distinct != 7 {
		t.Error("counts and names may be used")
	}
	for _, sql := range seen.statements {
		for _, word := range []string{"min(", "max(", "GROUP BY"} {
			if contains(stems(sql), stem(word)) {
				t.Errorf("a value is read: %s", sql)
			}
		}
	}
}

// recorder notes the statements that a source is asked.
type recorder struct {
	Source
	statements []string
	fail       func() error
	hold       chan struct{}
}

func (r *recorder) Approve(ctx context.Context, sql string, p sqlguard.Profile, may func(sqlguard.Relation) bool) (sqlguard.Approved, error) {
	r.statements = append(r.statements, sql)
	if p != sqlguard.ReadOnly {
		return sqlguard.Approved{}, errors.New("another profile")
	}
	return r.Source.Approve(ctx, sql, p, may)
}

func (r *recorder) Run(ctx context.Context, a sqlguard.Approved) (array.RecordReader, error) {
	if r.hold != nil {
		select {
		case <-r.hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if r.fail != nil {
		if err := r.fail(); err != nil {
			return nil, err
		}
	}
	return r.Source.Run(ctx, a)
}

func TestAnAskDoesNotWaitForAHangingTable(t *testing.T) {
	src := &recorder{Source: duck(t, shopdesk(t)...), hold: make(chan struct{})}
	p := profiler(t, Config{Wait: 20 * time.Millisecond, Statement: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k, err := p.Knowledge(ctx, src, everyone)
	if err != nil || k.Complete() {
		t.Fatalf("it waits, or knows what it cannot: %v", err)
	}
	if card := k.Card(nil); len(card) == 0 {
		t.Error("what the catalogue says is told anyway")
	}
	if f := k.Focus("How many customers are there?", ""); !slices.Equal(f.Tables, []sqlguard.Relation{inMain("customers")}) {
		t.Errorf("tables: %v", f.Tables)
	}
	close(src.hold)
	deadline := time.Now().Add(time.Minute)
	for !k.Complete() { // the work goes on in the background
		if time.Now().After(deadline) {
			t.Fatal("it never becomes known")
		}
		if k, err = p.Knowledge(t.Context(), src, everyone); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAskerWhoLeavesWaitsNoLonger(t *testing.T) {
	src := &recorder{Source: duck(t, shopdesk(t)...), hold: make(chan struct{})}
	p := profiler(t, patient)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := p.Knowledge(ctx, src, everyone)
		done <- err
	}()
	cancel()
	if err := <-done; fault.CodeOf(err) != fault.Canceled {
		t.Errorf("error: %v", err)
	}
	p.Close() // and Close ends what hangs
	p.Close()
}

func TestWhatFailsIsTriedAgainLater(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	broken := true
	var told []string
	src := &recorder{Source: duck(t, `CREATE TABLE a (x INTEGER)`), fail: func() error {
		if broken {
			return fault.New(fault.Busy, "test", "the server is down")
		}
		return nil
	}}
	cfg := patient
	cfg.Now = func() time.Time { return now }
	cfg.Failed = func(database, what string, err error) { told = append(told, database+" "+what) }
	p := profiler(t, cfg)
	for range 3 { // it is left alone for a while
		if k, err := p.Knowledge(t.Context(), src, everyone); err != nil || k.Complete() {
			t.Fatalf("complete %t, %v", k.Complete(), err)
		}
	}
	if want := []string{`shop table "main"."a"`}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	broken = false
	now = now.Add(retry)
	learn(t, p, src, everyone)
}

func TestWhatIsOldIsLookedAtAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	src := &recorder{Source: duck(t, `CREATE TABLE a (x VARCHAR); INSERT INTO a VALUES ('one')`)}
	cfg := patient
	cfg.Now = func() time.Time { return now }
	p := profiler(t, cfg)
	learn(t, p, src, everyone)
	asked := len(src.statements)
	learn(t, p, src, everyone)
	if len(src.statements) != asked {
		t.Fatal("what is known is asked again")
	}
	now = now.Add(p.cfg.Refresh)
	learn(t, p, src, everyone) // the old answer serves
	p.work.Wait()
	if len(src.statements) != 2*asked {
		t.Errorf("%d statements, want %d", len(src.statements), 2*asked)
	}
}
