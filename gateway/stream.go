package gateway

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// ndjson writes a stream of JSON objects, one a line. Nothing goes out before the first line, so that an error before
// it is a status of its own.
type ndjson struct {
	s       *server
	c       *gin.Context
	started bool
}

// line writes one object and flushes it. Its error means that the client is gone.
func (w *ndjson) line(v any) error {
	b, err := marshal(v)
	if err != nil {
		return err
	}
	if !w.started {
		w.started = true
		w.c.Header("Content-Type", "application/x-ndjson")
		w.c.Header("Cache-Control", "no-store")
		w.c.Status(http.StatusOK)
	}
	if _, err := w.c.Writer.Write(append(b, '\n')); err != nil {
		return fault.Wrap(err, fault.Canceled, "gateway.stream", "the client left")
	}
	w.c.Writer.Flush()
	return nil
}

// fail ends the stream: with a status when nothing is out yet, else with a last line.
func (w *ndjson) fail(err error) {
	if !w.started {
		w.s.fail(w.c, err)
		return
	}
	noteFailure(w.c, err)
	f := fault.Public(err)
	// A failed write changes nothing: the client is gone, and the error is in the log.
	_ = w.line(errorBody(ollamaDialect, 0, f, requestIDOf(w.c)))
}
