package gateway

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// statuses is the one map from a fault's code to an HTTP status.
var statuses = map[fault.Code]int{
	fault.Internal:        http.StatusInternalServerError,
	fault.Invalid:         http.StatusBadRequest,
	fault.Unauthenticated: http.StatusUnauthorized,
	fault.Denied:          http.StatusForbidden,
	fault.NotFound:        http.StatusNotFound,
	fault.Conflict:        http.StatusConflict,
	fault.TooLarge:        http.StatusRequestEntityTooLarge,
	fault.Refused:         http.StatusUnprocessableEntity,
	fault.Busy:            http.StatusServiceUnavailable,
	fault.Canceled:        499, // nginx's "client closed request", as Ollama has it
	fault.Unimplemented:   http.StatusNotImplemented,
}

func statusOf(code fault.Code) int {
	if status, ok := statuses[code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

// dialect is the API whose error bodies a path speaks.
type dialect int

const (
	ollamaDialect dialect = iota
	openaiDialect
	anthropicDialect
	sluiceDialect
)

func dialectOf(path string) dialect {
	rest, v1 := strings.CutPrefix(path, "/v1/")
	if !v1 {
		return ollamaDialect
	}
	family, _, _ := strings.Cut(rest, "/")
	switch family {
	case "chat", "completions", "embeddings", "models", "responses", "images", "audio", "rerank":
		return openaiDialect
	case "messages":
		return anthropicDialect
	}
	return sluiceDialect
}

// fail answers a request with an error, before any byte of another answer, and ends its handlers.
func (s *server) fail(c *gin.Context, err error) {
	status := statusOf(fault.Public(err).Code)
	if status == http.StatusServiceUnavailable && dialectOf(c.Request.URL.Path) == anthropicDialect {
		status = anthropicOverloaded
	}
	s.failStatus(c, status, err)
}

func (s *server) failStatus(c *gin.Context, status int, err error) {
	noteFailure(c, err)
	f := fault.Public(err)
	d := dialectOf(c.Request.URL.Path)
	switch f.Code {
	case fault.NotFound:
		if d == openaiDialect && c.FullPath() != "" { // what these routes do not find is a model
			f.Kind = modelNotFound
		}
	case fault.Unauthenticated:
		c.Header("WWW-Authenticate", `Bearer realm="sluice"`)
	}
	if f.Code == fault.Busy || f.RetryAfter > 0 { // a model that cannot be loaded is Invalid, and not tried again before that
		c.Header("Retry-After", strconv.Itoa(max(1, int(math.Ceil(f.RetryAfter.Seconds())))))
	}
	writeJSON(c, status, errorBody(d, status, f, requestIDOf(c)))
	c.Abort()
}

// errorBody writes a fault in a dialect.
func errorBody(d dialect, status int, f *fault.Error, requestID string) any {
	switch d {
	case openaiDialect:
		return openaiError(f)
	case anthropicDialect:
		return anthropicError(status, f, requestID)
	case sluiceDialect:
		return sluiceError(f, requestID)
	}
	return gin.H{"error": sentence(f)}
}

// sentence is a message with its hint, for dialects that have but one text.
func sentence(f *fault.Error) string {
	if f.Hint == "" {
		return f.Msg
	}
	return f.Msg + " (" + f.Hint + ")"
}

type errorEnvelope struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Code      string `json:"code"`
	Kind      string `json:"kind,omitempty"`
	Message   string `json:"message"`
	Hint      string `json:"hint,omitempty"`
	Position  int    `json:"position,omitempty"` // 1-based, in bytes
	RequestID string `json:"request_id"`
}

func sluiceError(f *fault.Error, requestID string) errorEnvelope {
	return errorEnvelope{errorDetail{Code: f.Code.String(), Kind: f.Kind, Message: f.Msg, Hint: f.Hint, Position: f.Position, RequestID: requestID}}
}

// reply answers in Sluice's envelope. meta may add to the request id.
func reply(c *gin.Context, data any, meta ...gin.H) {
	m := gin.H{"request_id": requestIDOf(c)}
	for _, more := range meta {
		for k, v := range more {
			m[k] = v
		}
	}
	writeJSON(c, http.StatusOK, gin.H{"data": data, "meta": m})
}

// writeJSON writes one JSON document. A value that has no JSON form is our bug and becomes a 500.
func writeJSON(c *gin.Context, status int, v any) {
	body, err := marshal(v)
	if err != nil {
		noteFailure(c, err)
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	c.Data(status, "application/json; charset=utf-8", body)
	if failed := c.Errors.Last(); failed != nil {
		noteFailure(c, failed.Err) // the client is gone, or does not read
	}
}

// marshal is json.Marshal without the escapes meant for HTML, which only make text longer.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
