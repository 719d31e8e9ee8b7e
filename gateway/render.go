package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/gin-gonic/gin"

	"sluice/database"
	"sluice/fault"
)

// The forms in which a whole result streams.
const (
	csvForm    = "text/csv"
	ndjsonForm = "application/x-ndjson"
	arrowForm  = "application/vnd.apache.arrow.stream"
)

// accepts picks the first form of the Accept header that a result can stream in. None is JSON, in one piece.
func accepts(h http.Header) (form string, stream bool) {
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept"), ","), ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch kind = strings.ToLower(strings.TrimSpace(kind)); kind {
		case csvForm, ndjsonForm, arrowForm:
			return kind, true
		case "application/json", "*/*":
			return "", false
		}
	}
	return "", false
}

// batches is a reader whose first batch has been fetched already, and that ends after a number of rows.
type batches struct {
	array.RecordReader
	first bool // a batch is waiting
	left  int  // rows still to give; negative: all
	cut   bool // there were more
}

// next gives the next batch, or nil at the end. The caller releases it.
func (b *batches) next() arrow.RecordBatch {
	if !b.first && !b.Next() {
		return nil
	}
	b.first = false
	batch := b.RecordBatch()
	n := int(batch.NumRows())
	switch {
	case b.left < 0 || n <= b.left && n == 0:
		batch.Retain()
		return batch
	case b.left == 0:
		b.cut = true
		return nil
	}
	if n > b.left {
		n, b.cut = b.left, true
	}
	b.left -= n
	return batch.NewSlice(0, int64(n))
}

// writer writes batches in one form.
type writer interface {
	write(batch arrow.RecordBatch) error
	close() error
}

// stream writes a whole result. When it fails in the middle, NDJSON says so in a last line; the other forms have no place
// for an error, so the connection is cut off, which no client can take for the end.
func (s *server) stream(ctx context.Context, c *gin.Context, form string, in *batches) {
	contentType := form
	if form == csvForm {
		contentType += "; charset=utf-8; header=present"
	}
	c.Header("Content-Type", contentType)
	c.Header("Cache-Control", "no-store")
	c.Status(http.StatusOK)
	out, err := newWriter(form, c.Writer, in.Schema())
	for err == nil {
		batch := in.next()
		if batch == nil {
			err = ended(ctx, in.Err())
			break
		}
		err = out.write(batch)
		batch.Release()
		c.Writer.Flush()
	}
	if err == nil {
		err = out.close()
	}
	switch {
	case err == nil && in.cut:
		// As a trailer: whether max_rows cut the result is only known now.
		c.Writer.Header().Set(http.TrailerPrefix+truncatedHeader, "rows")
	case err != nil:
		noteFailure(c, err)
		if form != ndjsonForm {
			panic(http.ErrAbortHandler)
		}
		c.Writer.Header().Set(http.TrailerPrefix+failedHeader, fault.CodeOf(err).String()) // a row may look like the last line
		line, _ := marshal(sluiceError(fault.Public(err), requestIDOf(c)))
		_, _ = c.Writer.Write(append(line, '\n')) // fails only when the client left
	}
}

func newWriter(form string, w io.Writer, schema *arrow.Schema) (writer, error) {
	switch form {
	case csvForm:
		names := make([]string, schema.NumFields())
		for i, f := range schema.Fields() {
			names[i] = csvField(f.Name)
		}
		_, err := io.WriteString(w, strings.Join(names, ",")+"\r\n")
		return csvWriter{w}, err
	case ndjsonForm:
		return ndjsonWriter{w, keys(schema)}, nil
	}
	return arrowWriter{ipc.NewWriter(w, ipc.WithSchema(schema))}, nil
}

type arrowWriter struct{ w *ipc.Writer }

func (a arrowWriter) write(batch arrow.RecordBatch) error { return a.w.Write(batch) }
func (a arrowWriter) close() error                        { return a.w.Close() }

// csvWriter writes RFC 4180. NULL is an empty field, the empty text a quoted one.
type csvWriter struct{ w io.Writer }

func (cw csvWriter) close() error { return nil }

func (cw csvWriter) write(batch arrow.RecordBatch) error {
	fields := batch.Schema().Fields()
	var b bytes.Buffer
	for i := range int(batch.NumRows()) {
		for j, col := range batch.Columns() {
			if j > 0 {
				b.WriteByte(',')
			}
			field, err := csvCell(database.JSONValue(fields[j], col, i))
			if err != nil {
				return fmt.Errorf("gateway: column %d has no CSV form: %w", j, err)
			}
			b.WriteString(field)
		}
		b.WriteString("\r\n")
	}
	_, err := cw.w.Write(b.Bytes())
	return err
}

func csvCell(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return csvField(v), nil
	}
	b, err := marshal(v)
	return csvText(string(b)), err
}

// csvField is a text that is there: an empty one is quoted, to tell it from NULL.
func csvField(s string) string {
	if s == "" {
		return `""`
	}
	return csvText(s)
}

func csvText(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") && strings.TrimSpace(s) == s {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// ndjsonWriter writes an object for each row, its keys in the order of the columns.
type ndjsonWriter struct {
	w    io.Writer
	keys [][]byte
}

func (nw ndjsonWriter) close() error { return nil }

func (nw ndjsonWriter) write(batch arrow.RecordBatch) error {
	var b bytes.Buffer
	for i := range int(batch.NumRows()) {
		row, err := database.JSONRow(batch, i)
		if err != nil {
			return err
		}
		for j, cell := range row {
			b.WriteByte("{,"[min(j, 1)])
			b.Write(nw.keys[j])
			b.WriteByte(':')
			b.Write(cell)
		}
		b.WriteString("}\n")
	}
	_, err := nw.w.Write(b.Bytes())
	return err
}

// keys are the columns' names as JSON texts, each once, as an object holds a key once. A name that occurs again gets _1,
// _2, …, but never what another column is called: each column's own name stays with the first that has it.
func keys(schema *arrow.Schema) [][]byte {
	owned, given := map[string]bool{}, map[string]bool{}
	for _, f := range schema.Fields() {
		owned[f.Name] = true
	}
	out, last := make([][]byte, schema.NumFields()), map[string]int{}
	for i, f := range schema.Fields() {
		name := f.Name
		for given[name] || name != f.Name && owned[name] {
			last[f.Name]++
			name = f.Name + "_" + strconv.Itoa(last[f.Name])
		}
		given[name] = true
		out[i], _ = json.Marshal(name) // a text always has a JSON form
	}
	return out
}
