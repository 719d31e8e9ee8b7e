package gateway

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

const (
	requestIDKey = "sluice.request_id"
	failureKey   = "sluice.failure" // the error of this request, for the log
)

// requestID takes over the caller's X-Request-Id where it is harmless in a log and a header, or makes one.
func (s *server) requestID(c *gin.Context) {
	id := c.Request.Header.Get("X-Request-Id")
	if !saneID(id) {
		id = rand.Text()
	}
	c.Set(requestIDKey, id)
	beginTrace(c, id)
	c.Header("X-Request-Id", id)
	if dialectOf(c.Request.URL.Path) == anthropicDialect {
		c.Header("request-id", id) // where Anthropic's SDKs look for it
	}
	c.Header("X-Sluice-Version", s.cfg.Version)
	c.Header("X-Content-Type-Options", "nosniff")
}

func saneID(id string) bool {
	return len(id) >= 1 && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:") == ""
}

func requestIDOf(c *gin.Context) string { return c.GetString(requestIDKey) }

// accessLog writes one line for each request: who, what, how it went. No header, query string or body is in it.
func (s *server) accessLog(c *gin.Context) {
	start := time.Now()
	defer func() {
		level := slog.LevelInfo
		path := c.FullPath() // the route's pattern: a path of an unknown route may hold anything
		if path == "" {
			path = "unknown"
		}
		attrs := []slog.Attr{
			slog.String("request_id", requestIDOf(c)), slog.String("method", printable(c.Request.Method, 20)), slog.String("route", path),
			slog.Int("status", c.Writer.Status()), slog.Int("bytes", max(c.Writer.Size(), 0)), slog.Duration("took", time.Since(start)),
			slog.String("remote", c.Request.RemoteAddr), slog.String("key", principal(c).KeyID),
		}
		if err := failureOf(c); err != nil {
			attrs = append(attrs, slog.String("code", fault.CodeOf(err).String()), slog.String("error", logged(err)))
			if fault.CodeOf(err) == fault.Internal {
				level = slog.LevelError
			}
		}
		s.cfg.Log.LogAttrs(c.Request.Context(), level, "request", attrs...)
	}()
	c.Next()
}

// logged is an error's text for the log. Where the caller's own text is at fault, the message may quote it: then only the
// place is logged, and the caller has the message with the request id.
func logged(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		switch f.Code {
		case fault.Invalid, fault.Refused, fault.TooLarge:
			return f.Op
		}
	}
	const most = 1 << 10 // a message may quote what somebody sent
	text := err.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// recover turns a panic into an internal error. http.ErrAbortHandler passes: it is how a stream that cannot say that it
// failed is cut off.
func (s *server) recover(c *gin.Context) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(http.ErrAbortHandler)
		}
		err := s.panicked(c, p)
		if c.Writer.Written() {
			noteFailure(c, err)
			panic(http.ErrAbortHandler)
		}
		s.fail(c, err)
	}()
	c.Next()
}

// panicked logs a panic and gives it as an error.
func (s *server) panicked(c *gin.Context, p any) error {
	s.cfg.Log.Error("panic", "request_id", requestIDOf(c), "route", c.FullPath(), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return fault.Bug("panic: %v", p)
}

// catch is deferred by what answers in a stream: a panic becomes an error, so that the stream ends as its dialect has it
// instead of being cut off.
func (s *server) catch(c *gin.Context, err *error) {
	if p := recover(); p != nil {
		*err = s.panicked(c, p)
	}
}

// limitBody bounds what a handler reads of the body.
func (s *server) limitBody(rt route) gin.HandlerFunc {
	return func(c *gin.Context) {
		if c.Request.Body != nil && !rt.bigBody {
			c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, s.cfg.MaxBody)
		}
	}
}

// noteFailure keeps a request's error for its line in the log; the first one counts.
func noteFailure(c *gin.Context, err error) {
	if _, ok := c.Get(failureKey); !ok {
		c.Set(failureKey, err)
	}
}

// failureOf is the error that noteFailure kept, or nil.
func failureOf(c *gin.Context) error {
	err, _ := c.Value(failureKey).(error)
	return err
}
