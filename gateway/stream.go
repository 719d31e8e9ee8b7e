package gateway

import (
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// limitedWriter is the way to a client for every answer. A client may stay connected and stop reading: without a limit,
// the write would wait for ever, and with it the lease on a model, or the connection of a database, that the handler holds.
type limitedWriter struct {
	gin.ResponseWriter
	conn  *http.ResponseController
	limit time.Duration
}

// limitWrites puts a limitedWriter under all that a request's handlers write.
func (s *server) limitWrites(c *gin.Context) {
	w := &limitedWriter{ResponseWriter: c.Writer, conn: http.NewResponseController(c.Writer), limit: s.cfg.WriteTimeout}
	c.Writer = w
	// What net/http still holds goes out when the handler has ended; after it net/http clears the deadline by itself.
	defer w.extend()
	c.Next()
}

// extend gives the client the whole limit again. A failure means that there is no connection (a test's recorder).
func (w *limitedWriter) extend() { _ = w.conn.SetWriteDeadline(time.Now().Add(w.limit)) }

// Write sends a long answer in pieces, each with the limit to itself, so that a slow client is not taken for one that has
// stopped. Once a write has failed, net/http ends the request's context, and with it the work.
func (w *limitedWriter) Write(b []byte) (n int, err error) {
	const piece = 64 << 10
	for {
		w.extend()
		m, err := w.ResponseWriter.Write(b[n:min(n+piece, len(b))])
		n += m
		if err != nil {
			return n, fault.Wrap(err, fault.Canceled, "gateway.write", "the client left, or has stopped reading")
		}
		if n == len(b) {
			return n, nil
		}
	}
}

// WriteString is Write for a text.
func (w *limitedWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Flush sends what net/http holds.
func (w *limitedWriter) Flush() {
	w.extend()
	w.ResponseWriter.Flush()
}

// beginStream sets what every streamed answer says of itself.
func beginStream(c *gin.Context, contentType string) {
	c.Header("Content-Type", contentType)
	c.Header("Cache-Control", "no-store")
	c.Header("X-Accel-Buffering", "no") // nginx would hold the stream back
	c.Status(http.StatusOK)
}

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
		beginStream(w.c, ndjsonForm)
	}
	if _, err := w.c.Writer.Write(append(b, '\n')); err != nil {
		return err
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
