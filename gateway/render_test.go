package gateway

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/gin-gonic/gin"
)

func TestAResultStreamsWhole(t *testing.T) {
	f := withShop(t)
	get := func(accept, sql string, maxRows any) *httptest.ResponseRecorder {
		t.Helper()
		w := f.do(call{method: "POST", path: "/v1/query/execute", bearer: readOnlyKey, header: map[string]string{"Accept": accept}, body: map[string]any{"database": "shop", "sql": sql, "max_rows": maxRows}})
		wantStatus(t, w, 200)
		if !strings.HasPrefix(w.Header().Get("Content-Type"), strings.Split(accept, ",")[0]) {
			t.Errorf("content type %q", w.Header().Get("Content-Type"))
		}
		return w
	}
	w := get("text/csv", "SELECT id, name, note FROM item ORDER BY id", nil)
	want := "id,name,note\r\n1,pen,\r\n2,\"ink, \"\"blue\"\"\",\"\"\r\n9007199254740993,big,\"two\nlines\"\r\n"
	if w.Body.String() != want {
		t.Errorf("CSV: %q", w.Body)
	}
	records, err := csv.NewReader(get("text/csv", "SELECT * FROM sale", nil).Body).ReadAll()
	if err != nil || len(records) != 5001 { // above the cap of a JSON result
		t.Errorf("CSV: %d records, %v", len(records), err)
	}

	ls := lines(t, get("application/x-ndjson", "SELECT id, id AS id, price FROM item ORDER BY 1", nil).Body.Bytes())
	if len(ls) != 3 || fmt.Sprint(ls[0]) != "map[id:1 id_1:1 price:1.50]" {
		t.Errorf("NDJSON: %v", ls)
	}
	w = get("application/x-ndjson, application/json", "SELECT id FROM sale", 7)
	if ls := lines(t, w.Body.Bytes()); len(ls) != 7 || w.Result().Trailer.Get("X-Sluice-Truncated") != "rows" {
		t.Errorf("%d lines, trailer %v", len(ls), w.Result().Trailer)
	}

	r, err := ipc.NewReader(get("application/vnd.apache.arrow.stream", "SELECT * FROM sale", nil).Body)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	rows := int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	if rows != 5000 || r.Err() != nil {
		t.Errorf("Arrow: %d rows, %v", rows, r.Err())
	}
	w = f.do(call{method: "POST", path: "/v1/query/execute", bearer: readOnlyKey, header: map[string]string{"Accept": "text/csv"}, body: map[string]any{"database": "shop", "sql": "SELECT nothing"}})
	failure(t, w, 422, "refused")
}

func TestKeysAreEachThereOnce(t *testing.T) {
	for names, want := range map[string]string{
		"a b": "a b", "a a": "a a_1", "a a a_1": "a a_2 a_1", "a_1 a a": "a_1 a a_2", "a a_1 a_1 a": "a a_1 a_1_1 a_2", "a a a a": "a a_1 a_2 a_3",
		"a a_1_1 a_1 a a_1": "a a_1_1 a_1 a_2 a_1_2",
	} {
		var fields []arrow.Field
		for name := range strings.FieldsSeq(names) {
			fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64})
		}
		got := string(bytes.Join(keys(arrow.NewSchema(fields, nil)), []byte(" ")))
		if got = strings.ReplaceAll(got, `"`, ""); got != want {
			t.Errorf("%s: %s, want %s", names, got, want)
		}
	}
}

// failingReader gives one batch and then fails.
type failingReader struct {
	array.RecordReader
	given bool
	err   error
}

func (r *failingReader) Next() bool {
	if r.given {
		r.err = fmt.Errorf("disk of the secret server")
		return false
	}
	r.given = true
	return r.RecordReader.Next()
}
func (r *failingReader) Err() error { return r.err }

func TestAResultThatFailsInTheMiddleNeverLooksWhole(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, form := range []string{csvForm, ndjsonForm, arrowForm} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2}, nil)
		batch := b.NewRecordBatch()
		inner, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(Config{}.withDefaults())
		r := gin.New()
		r.Use(s.requestID, s.accessLog, s.recover)
		r.GET("/", func(c *gin.Context) {
			reader := &failingReader{RecordReader: inner}
			s.stream(c.Request.Context(), c, form, &batches{RecordReader: reader, first: reader.Next(), left: -1})
		})
		srv := httptest.NewServer(r)
		res, err := srv.Client().Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		srv.Close()
		if bytes.Contains(body, []byte("secret")) {
			t.Errorf("%s: %q", form, body)
		}
		if form == ndjsonForm {
			if ls := lines(t, body); err != nil || len(ls) != 3 || ls[2]["error"].(map[string]any)["code"] != "internal" {
				t.Errorf("%s: %v %s", form, err, body)
			}
		} else if err == nil {
			t.Errorf("%s: the stream ends as if it were whole: %q", form, body)
		}
		inner.Release()
		batch.Release()
		b.Release()
	}
}

func TestAResultTooLargeForJSONIsRefused(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{10, 20, 30}, nil)
	batch := b.NewRecordBatch()
	defer batch.Release()
	for most, ok := range map[int]bool{9: true, 8: false} {
		reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{batch})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := collect(reader, 100, most); (err == nil) != ok {
			t.Errorf("%d bytes: %v", most, err)
		}
		reader.Release()
	}
}

func TestAccept(t *testing.T) {
	for accept, want := range map[string]string{"": "", "*/*": "", "application/json": "", "text/html": "", "text/csv": csvForm, "TEXT/CSV;q=0.9": csvForm,
		"application/json, text/csv": "", "text/html, application/x-ndjson": ndjsonForm, "application/vnd.apache.arrow.stream": arrowForm} {
		if got, stream := accepts(http.Header{"Accept": {accept}}); got != want || stream != (want != "") {
			t.Errorf("%q: %q", accept, got)
		}
	}
}
