package gateway

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"sluice/agent"
	"sluice/sqlguard"
)

// TestAStreamIsCancelledInTheMiddle: its client is told, or the connection breaks off where the form has no place for that.
func TestAStreamIsCancelledInTheMiddle(t *testing.T) {
	f := withPersons(t, &scripted{})
	ann := f.login(t, "ann")
	srv := httptest.NewServer(f.handler)
	defer srv.Close()
	for _, form := range []string{ndjsonForm, csvForm, arrowForm} {
		t.Run(form, func(t *testing.T) {
			body := `{"database":"shop","sql":"SELECT a.range AS n, repeat('x', 1000) AS x FROM range(100000) a, range(100000) b"}`
			r, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/v1/query/execute", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			st := &started{f: f, requestID: rand.Text(), done: make(chan struct{})}
			r.Header.Set("Authorization", "Bearer "+ann)
			r.Header.Set("Accept", form)
			r.Header.Set("X-Request-Id", st.requestID)
			res, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			in := bufio.NewReader(res.Body)
			if _, err := in.Peek(1000); err != nil { // then nothing is read for a while, so that it does not end
				t.Fatal(err)
			}
			e := st.wait(t, ann)
			if e["rows"].(float64) < 1 {
				t.Errorf("rows so far: %v", e["rows"])
			}
			data[m](t, f.json("DELETE", "/v1/queries/"+e["id"].(string), ann, nil))
			var line string
			for err == nil {
				var next string
				if next, err = in.ReadString('\n'); next != "" {
					line = next
				}
			}
			if form != ndjsonForm {
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("the stream ends as if it were whole: %v", err)
				}
				return
			}
			if !errors.Is(err, io.EOF) || !strings.Contains(line, `"code":"canceled"`) || !strings.Contains(line, "cancelled by 'ann'") || res.Trailer.Get(failedHeader) != "canceled" {
				t.Errorf("%v, trailers %v: %.200s", err, res.Trailer, line)
			}
		})
	}
}

// TestTheListOfStatements: those that run longest come first, and a client that leaves takes its statement with it.
func TestTheListOfStatements(t *testing.T) {
	f := withPersons(t, &scripted{})
	ann := f.login(t, "ann")
	if list := data[[]any](t, f.json("GET", "/v1/queries", ann, nil)); list == nil || len(list) != 0 {
		t.Errorf("nothing runs: %v", list)
	}
	first := f.start(execute(ann, "", endlessSQL))
	first.id(t, ann)
	second := f.start(execute(ann, "", endlessSQL))
	second.id(t, ann)
	var ids []string
	for _, e := range data[[]any](t, f.json("GET", "/v1/queries", ann, nil)) {
		ids = append(ids, e.(m)["id"].(string))
	}
	if fmt.Sprint(ids) != fmt.Sprint([]string{first.query, second.query}) {
		t.Errorf("the list is %v, of %s and %s", ids, first.query, second.query)
	}
	if list := data[[]any](t, f.json("GET", "/v1/queries?limit=1", ann, nil)); len(list) != 1 || list[0].(m)["id"] != first.query {
		t.Errorf("one: %v", list)
	}
	failure(t, f.json("GET", "/v1/queries?limit=0", ann, nil), 400, "invalid")
	wantSeries(t, scrape(t, f), map[string]float64{`sluice_statements_running`: 2})
	first.leave()
	<-first.done
	if e := failure(t, first.w, 499, "canceled"); strings.Contains(e["message"].(string), "by") {
		t.Errorf("who left is told %v", e)
	}
	if e := first.running(t, ann); e != nil {
		t.Errorf("who left still runs: %v", e)
	}
	second.cancel(t, ann)
	data[m](t, f.sql(ann, "SELECT 1"))
	f.sql(ann, "SELECT nothing FROM item")
	f.sql(ann, "SELECT 'x'::INTEGER")
	f.sql(ann, createSQL)
	wantSeries(t, scrape(t, f), map[string]float64{`sluice_statements_total{kind="query",outcome="ok"}`: 1, `sluice_statements_total{kind="query",outcome="refused"}`: 1,
		`sluice_statements_total{kind="query",outcome="invalid"}`: 1, `sluice_statements_total{kind="query",outcome="canceled"}`: 2, `sluice_statements_total{kind="external",outcome="denied"}`: 1})
}

func TestWhatIsShownOfAStatement(t *testing.T) {
	f := withShop(t)
	for _, sql := range []string{"EXPLAIN SELECT id FROM item", "SELECT id FROM item"} {
		a, err := f.cfg.Sources["shop"].Approve(t.Context(), sql, sqlguard.ReadOnly, func(sqlguard.Relation) bool { return true })
		if err != nil {
			t.Fatal(err)
		}
		if got := shown(a); !strings.EqualFold(strings.Fields(got)[0], strings.Fields(sql)[0]) || strings.Count(strings.ToUpper(got), "EXPLAIN") != strings.Count(sql, "EXPLAIN") {
			t.Errorf("%s is shown as %s", sql, got)
		}
	}
}

// TestAReaderEndsItsStatementOnce, with its last holder.
func TestAReaderEndsItsStatementOnce(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	batch := b.NewRecordBatch()
	defer batch.Release()
	inner, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch, batch})
	if err != nil {
		t.Fatal(err)
	}
	var ends []error
	st := &statement{}
	w := watch(&failingReader{RecordReader: inner}, st, func(err error) { ends = append(ends, err) })
	w.Retain()
	for w.Next() {
	}
	if w.Release(); len(ends) != 0 || st.rows.Load() != 3 {
		t.Errorf("ends %v, %d rows", ends, st.rows.Load())
	}
	if w.Release(); len(ends) != 1 || ends[0] == nil {
		t.Errorf("ends %v", ends)
	}
}

// TestAnAskIsOneThing: whoever cancels a statement of it gets no other statement of it running.
func TestAnAskIsOneThing(t *testing.T) {
	f := withShop(t)
	again := make(chan error, 1)
	f.cfg.Agent = asker(func(ctx context.Context, src agent.Source, q agent.Ask) (agent.Answer, error) {
		run := func() error {
			a, err := src.Approve(ctx, endlessSQL, agent.ProfileOf(q.Who), func(sqlguard.Relation) bool { return true })
			if err != nil {
				return err
			}
			rows, err := src.Run(ctx, a)
			if err != nil {
				return err
			}
			defer rows.Release()
			for rows.Next() {
			}
			return rows.Err()
		}
		err := run()
		again <- run() // as a second candidate
		return agent.Answer{}, err
	})
	var err error
	if f.handler, err = New(f.cfg); err != nil {
		t.Fatal(err)
	}
	st := f.start(call{method: "POST", path: "/v1/database/ask", bearer: adminKey, body: m{"database": "shop", "question": "how many?"}})
	failure(t, st.cancel(t, adminKey), 499, "canceled")
	if err := <-again; err == nil {
		t.Error("a second statement ran")
	}
}

// asker is an agent that a test writes.
type asker func(context.Context, agent.Source, agent.Ask) (agent.Answer, error)

func (a asker) Ask(ctx context.Context, src agent.Source, q agent.Ask) (agent.Answer, error) {
	return a(ctx, src, q)
}
