package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"sluice/fault"
)

// unavailable is the Kind of a failure that another server, or this one later, would not have.
const unavailable = "unavailable"

// retryAfter is what a caller is told who asked a server that is not there: as often as it is asked whether it is well again.
const retryAfter = 2 * time.Second

// Unavailable tells whether a request failed because its server cannot be reached, broke or took too long, before the first byte of the
// answer: it may be given to another server without anybody noticing.
func Unavailable(err error) bool {
	var f *fault.Error
	return errors.As(err, &f) && f.Kind == unavailable
}

// errAnswered marks a failure that the server told itself: it is there, and can answer others.
var errAnswered = errors.New("the server answered so")

// lost is a server that did not answer. The cause names its address, which is for the log.
func (s *Server) lost(cause error) error {
	return &fault.Error{Code: fault.Busy, Kind: unavailable, Op: "remote", RetryAfter: retryAfter, Err: cause,
		Msg: fmt.Sprintf("the server %q, which runs this model, does not answer", s.cfg.Name)}
}

// brokeOff is an answer whose rest never came.
func (s *Server) brokeOff(cause error) error {
	return &fault.Error{Code: fault.Busy, Op: "remote", RetryAfter: retryAfter, Err: cause,
		Msg: fmt.Sprintf("the server %q, which runs this model, broke off in the middle of its answer", s.cfg.Name)}
}

// cannot is what a server of this kind has no word for.
func (s *Server) cannot(format string, args ...any) error {
	return fault.New(fault.Unimplemented, "remote", "%s by the server %q, which runs this model", fmt.Sprintf(format, args...), s.cfg.Name)
}

// canceled is the end of a request whose caller left.
func canceled(ctx context.Context) error {
	return fault.Wrap(context.Cause(ctx), fault.Canceled, "remote", "the request was cancelled")
}

// refusal reads the answer of a request that failed. body is its beginning.
func (s *Server) refusal(status int, h http.Header, body []byte) error {
	said, told := s.message(body)
	code := fault.Invalid
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		s.cfg.Log.Error("a server elsewhere refuses our key: set the right one under remotes", "remote", s.cfg.Name, "status", status)
		return fault.Wrap(fmt.Errorf("%s answers %d", s.cfg.Name, status), fault.Internal, "remote", "the server elsewhere refuses our key")
	case status == http.StatusNotFound && !told || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented:
		return s.cannot("this is not offered")
	case status == http.StatusNotFound:
		code = fault.NotFound
	case status == http.StatusConflict:
		code = fault.Conflict
	case status == http.StatusRequestEntityTooLarge:
		code = fault.TooLarge
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return &fault.Error{Code: fault.Busy, Op: "remote", RetryAfter: retryAfterOf(h), Err: fmt.Errorf("status %d: %s", status, said),
			Msg: fmt.Sprintf("the server %q, which runs this model, is busy", s.cfg.Name)}
	case status == http.StatusRequestTimeout || status >= 500:
		msg := fmt.Sprintf("the server %q, which runs this model, failed", s.cfg.Name)
		if told { // Ollama answers so to a schema that it does not take, and others to much that the caller can change
			msg += ": " + said
		}
		return &fault.Error{Code: fault.Busy, Kind: unavailable, Op: "remote", RetryAfter: retryAfter, Err: fmt.Errorf("%w: status %d: %s", s.blame(status), status, said), Msg: msg}
	case status < 400:
		return s.lost(fmt.Errorf("status %d: it sends requests to somewhere else; write that address into its url", status))
	}
	return fault.New(code, "remote", "the server %q says: %s", s.cfg.Name, said)
}

// blame tells a server that failed from a proxy before one that is gone.
func (s *Server) blame(status int) error {
	if status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
		return errors.New("a proxy answers for it")
	}
	return errAnswered
}

// retryAfterOf reads a number of seconds, within reason.
func retryAfterOf(h http.Header) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || n < 1 {
		return retryAfter
	}
	return time.Duration(min(n, 3600)) * time.Second
}

// message is the sentence in an error body, without our key: a server may repeat what it was sent, and the sentence goes to clients.
func (s *Server) message(body []byte) (said string, told bool) {
	if s.cfg.Key != "" {
		body = bytes.ReplaceAll(body, []byte(s.cfg.Key), []byte("[key]")) // before it is cut to its length
	}
	said, told = message(body)
	if s.cfg.Key != "" { // it may have been written with escapes
		said = strings.ReplaceAll(said, s.cfg.Key, "[key]")
	}
	return said, told
}

// message finds the sentence in an error body: Ollama's {"error": "…"}, OpenAI's {"error": {"message": "…"}}, vLLM's {"message": "…"}.
// told is whether there was one of them; else it is the text itself. FastAPI's {"detail": "Not Found"} is that of a route.
func message(body []byte) (said string, told bool) {
	var all struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &all) != nil {
		return clean(string(body)), false
	}
	var inner struct {
		Message string `json:"message"`
	}
	var text string
	switch {
	case len(all.Error) > 0 && json.Unmarshal(all.Error, &text) == nil && text != "":
	case len(all.Error) > 0 && json.Unmarshal(all.Error, &inner) == nil && inner.Message != "":
		text = inner.Message
	case all.Message != "":
		text = all.Message
	default:
		if json.Unmarshal(all.Detail, &text) != nil {
			text = string(all.Detail)
		}
		return clean(text), false
	}
	return clean(text), true
}

// clean is a foreign text as part of a sentence of ours: one line, not long.
func clean(text string) string {
	const most = 400
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "�"), func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }), " ")
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	if text == "" {
		return "nothing more"
	}
	return text
}
