package gateway

import (
	"errors"

	"github.com/gin-gonic/gin"

	"sluice/fault"
)

// openaiKinds are OpenAI's error types and codes. Its SDKs choose their exception by the status; programs read the code.
var openaiKinds = map[fault.Code]struct{ kind, code string }{
	fault.Invalid:         {"invalid_request_error", ""},
	fault.Unauthenticated: {"invalid_request_error", "invalid_api_key"},
	fault.Denied:          {"permission_error", "insufficient_permissions"},
	fault.NotFound:        {"invalid_request_error", ""},
	fault.TooLarge:        {"invalid_request_error", "request_too_large"},
	fault.Busy:            {"server_error", "overloaded"},
	fault.Internal:        {"server_error", ""},
	fault.Unimplemented:   {"invalid_request_error", "unsupported"},
}

// Kinds of faults for which OpenAI has a code of its own; programs act on it.
const (
	modelNotFound = "model_not_found"
	promptTooLong = "prompt_too_long"
)

// openaiError writes a fault as the OpenAI API does, as a body or as the last event of a stream.
func openaiError(f *fault.Error) gin.H {
	kind, ok := openaiKinds[f.Code]
	if !ok {
		kind.kind = "api_error"
	}
	body := gin.H{"message": sentence(f), "type": kind.kind, "param": nil, "code": nil}
	if kind.code != "" {
		body["code"] = kind.code
	}
	switch f.Kind {
	case modelNotFound:
		body["code"], body["param"] = modelNotFound, "model"
	case promptTooLong:
		body["code"] = "context_length_exceeded"
	}
	return gin.H{"error": body}
}

// endOpenAI closes a chat's or a completion's stream: with [DONE], or with the error that cut it short. The SDKs raise on an error
// object, and a [DONE] behind it would tell others that the answer is whole.
func (w *sseStream) endOpenAI(err error) {
	switch {
	case err == nil:
		err = w.write("", []byte("[DONE]"))
	case !w.started:
		w.s.fail(w.c, err)
		return
	default:
		noteFailure(w.c, err)
		f := fault.Public(err)
		_ = w.send("", openaiError(f)) // a failed write changes nothing: the client is gone, and the error is in the log
		return
	}
	if err != nil {
		noteFailure(w.c, err)
	}
}

// at says in which part of the request a fault lies.
func at(err error, where string) error {
	var f *fault.Error
	if err == nil || !errors.As(err, &f) {
		return err
	}
	told := *f
	told.Msg = where + ": " + f.Msg
	return &told
}
