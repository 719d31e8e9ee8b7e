package collection

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	pgvec "github.com/pgvector/pgvector-go"

	"sluice/fault"
	"sluice/internal/pgtest"
)

// many puts a document of n chunks with vectors at random; one in a hundred has the metadata rare.
func many(t *testing.T, p *Postgres, n int) Collection {
	t.Helper()
	ctx := t.Context()
	if err := p.Create(ctx, Collection{Name: "c", Owner: "ann"}); err != nil {
		t.Fatal(err)
	}
	c := must[Collection](t)(p.Collection(ctx, "c"))
	rnd := rand.New(rand.NewPCG(1, 2))
	space := Space{Model: "m", Digest: "d", Dims: 16}
	for part := range 100 {
		var cs []Chunk
		for range n / 100 {
			cs = append(cs, Chunk{Text: "x", Terms: []string{"x"}, Vector: randomUnit(rnd, 16)})
		}
		doc := Document{ID: fmt.Sprint("d", part), Format: FormatText, Text: "x", Metadata: Metadata{"rare": part == 0}}
		if _, _, err := p.Put(ctx, Put{Collection: c.ID, Document: doc, Chunks: cs, Space: space}); err != nil {
			t.Fatal(err)
		}
		c = must[Collection](t)(p.Collection(ctx, "c"))
		space = *c.Active
	}
	err := p.change(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, "ANALYZE sluice_rag.vectors_16"); return err })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func randomUnit(rnd *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rnd.NormFloat64())
	}
	out, _ := normal(v)
	return out
}

// The search is answered by the HNSW index; a filtered one has as many rows as were asked for, which it has not without
// iterative_scan.
func TestHNSWIsUsedAndAFilteredSearchIsWhole(t *testing.T) {
	p := postgresStore(t, pgtest.New(t).URL)
	c := many(t, p, 3000)
	ctx, v := t.Context(), randomUnit(rand.New(rand.NewPCG(3, 4)), 16)
	args := []any{pgvec.NewHalfVector(v), []int64{c.Active.ID}, 10}
	err := p.read(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, ScanSettings); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, "EXPLAIN "+NearestSQL(16, false), args...)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if plan := strings.Join(lines, "\n"); !strings.Contains(plan, "Index Scan using vectors_16_near") || strings.Contains(plan, "Sort") {
			t.Errorf("the plan is\n%s", plan)
		}
		for name, want := range map[string]string{"hnsw.iterative_scan": "strict_order", "hnsw.ef_search": "400"} {
			var got string
			if err := tx.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	filtered := append(args, Metadata{"rare": true}.text())
	through := func(iterative string) int { // the index, whatever the planner thinks
		n := 0
		err := p.read(ctx, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT set_config('hnsw.iterative_scan', $1, true), set_config('enable_sort', 'off', true), set_config('hnsw.ef_search', '100', true)", iterative); err != nil {
				return err
			}
			hits, err := hitsPostgres(ctx, tx, NearestSQL(16, true), filtered...)
			n = len(hits)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if off, on := through("off"), through("strict_order"); off >= 10 || on != 10 {
		t.Errorf("%d rows without iterative_scan, %d with it: want fewer than 10, and 10", off, on)
	}
	for name, filter := range map[string]Metadata{"one in a hundred": {"rare": true}, "nearly all": {"rare": false}, "all": nil} {
		p.few = few
		exact := must[[]Hit](t)(p.Nearest(ctx, Near{Spaces: []Space{*c.Active}, Vector: v, Filter: filter, Limit: 10}))
		p.few = 20 // by the index
		hits := must[[]Hit](t)(p.Nearest(ctx, Near{Spaces: []Space{*c.Active}, Vector: v, Filter: filter, Limit: 10}))
		if len(hits) != 10 {
			t.Errorf("%s: %d hits", name, len(hits))
		}
		same := 0
		for _, h := range hits {
			if slices.ContainsFunc(exact, func(e Hit) bool { return e.Chunk == h.Chunk }) {
				same++
			}
		}
		if same < 9 {
			t.Errorf("%s: the index finds %d of the 10 nearest", name, same)
		}
		for i := 1; i < len(hits); i++ {
			if hits[i].Score > hits[i-1].Score {
				t.Errorf("%s: hit %d is better than the one before", name, i)
			}
		}
	}
	// More than there are: all of them, although the index might have given up.
	if hits := must[[]Hit](t)(p.Nearest(ctx, Near{Spaces: []Space{*c.Active}, Vector: v, Filter: Metadata{"rare": true}, Limit: 50})); len(hits) != 30 {
		t.Errorf("%d of 30 hits", len(hits))
	}
	// One connection's settings do not stay for the next transaction.
	_ = p.read(ctx, func(tx pgx.Tx) error {
		var got string
		if err := tx.QueryRow(ctx, "SELECT current_setting('hnsw.iterative_scan')").Scan(&got); err != nil || got != "off" {
			t.Errorf("iterative_scan is %q outside a search, %v", got, err)
		}
		return nil
	})
}

func TestWhatIsMissingInPostgresIsSaid(t *testing.T) {
	db := pgtest.New(t, "CREATE TABLE t (a int)")
	reader, err := NewPostgres(db.Reader("public.t"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	_, err = reader.Collections(t.Context())
	if wantCode(t, err, fault.Conflict); !strings.Contains(fault.Public(err).Hint, "CREATE EXTENSION vector") {
		t.Errorf("%v, hint %q", err, fault.Public(err).Hint)
	}
	db.Exec("CREATE SCHEMA ext; CREATE EXTENSION vector SCHEMA ext; GRANT USAGE ON SCHEMA ext TO PUBLIC")
	_, err = reader.Collections(t.Context())
	if wantCode(t, err, fault.Conflict); !strings.Contains(fault.Public(err).Hint, "CREATE on the database") {
		t.Errorf("%v, hint %q", err, fault.Public(err).Hint)
	}
	// With the extension in a schema of its own all works.
	s := service(t, postgresStore(t, db.URL), newHashing(), nil)
	fill(t, s, 3)
	if got := find(t, s, ann, Query{Text: "thing1", Limit: 1}); len(got) != 1 || got[0].Similarity == 0 {
		t.Errorf("%+v", got)
	}

	away, err := NewPostgres("postgres://user:hunter2@127.0.0.1:1/none?sslmode=disable", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	_, err = away.Collections(t.Context())
	if wantCode(t, err, fault.Busy); strings.Contains(fault.Public(err).Error(), "hunter2") {
		t.Errorf("%v", fault.Public(err))
	}
	if _, err := NewPostgres("postgres://user:hunter2@[::1/none", nil); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// Two servers make the schema at the same time; a connection that died is replaced; who leaves ends the statement.
func TestPostgresIsSharedAndSurvives(t *testing.T) {
	db := pgtest.New(t)
	a, b := postgresStore(t, db.URL), postgresStore(t, db.URL)
	errs := make(chan error, 2)
	for _, p := range []*Postgres{a, b} {
		go func() { _, err := p.Collections(context.Background()); errs <- err }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	db.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	if _, err := a.Collections(t.Context()); err != nil {
		t.Errorf("after a connection's end: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := a.read(ctx, func(tx pgx.Tx) error {
		cancel()
		_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
		return err
	})
	wantCode(t, err, fault.Canceled)
	if len(a.slots) != 0 {
		t.Errorf("%d slots are still taken", len(a.slots))
	}
}
