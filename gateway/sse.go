package gateway

import (
	"fmt"

	"github.com/gin-gonic/gin"
)

// sseStream writes server-sent events. Nothing goes out before the first one, so that an error before it has a
// status of its own.
type sseStream struct {
	s       *server
	c       *gin.Context
	started bool
}

// send writes one event; name is "" where the dialect has none. Its error means that the client is gone.
func (w *sseStream) send(name string, v any) error {
	b, err := marshal(v)
	if err != nil {
		return err
	}
	return w.write(name, b)
}

func (w *sseStream) write(name string, data []byte) error {
	if !w.started {
		w.started = true
		beginStream(w.c, "text/event-stream; charset=utf-8")
	}
	line := ""
	if name != "" {
		line = "event: " + name + "\n"
	}
	if _, err := w.c.Writer.WriteString(fmt.Sprintf("%sdata: %s\n\n", line, data)); err != nil {
		return err
	}
	w.c.Writer.Flush()
	return nil
}

// comment writes what no client takes for an event. It must not come first: it would be a status.
func (w *sseStream) comment(text string) error {
	if _, err := w.c.Writer.WriteString(": " + text + "\n\n"); err != nil {
		return err
	}
	w.c.Writer.Flush()
	return nil
}
