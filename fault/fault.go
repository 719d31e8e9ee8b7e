package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error is an error with a code. Msg and Hint are written for the caller; Err, the cause, is for the log only.
type Error struct {
	Code       Code
	Op         string        // where it was classified, such as "sqlguard.Check"; for the log
	Msg        string        // one sentence for the caller
	Hint       string        // what to do instead, when that is known
	Kind       string        // a finer class, such as the kind of a failed COPY ("path", "option", ...)
	Position   int           // 1-based byte position in the caller's text, 0 when unknown
	RetryAfter time.Duration // when to try again: with Busy, and while a model that failed to load rests
	Err        error         // the cause; never shown to the caller
}

// Error gives the whole text, cause included, for logs.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op + ": ")
	}
	b.WriteString(e.Msg)
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error with a code and a message for the caller.
func New(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// Wrap classifies a cause. The message is for the caller, the cause for the log.
func Wrap(err error, code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Msg: fmt.Sprintf(format, args...), Err: err}
}

// Bug reports something that cannot happen. It is an Internal error in production.
func Bug(format string, args ...any) *Error {
	return &Error{Code: Internal, Op: "bug", Msg: fmt.Sprintf(format, args...)}
}

// CodeOf reads the code of an error. A context that ended is Canceled; an unclassified error is Internal.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return Internal
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Internal
}

// Public gives the error that may be shown to a caller: the classified one without its cause, or a bare Internal.
func Public(err error) *Error {
	var e *Error
	if errors.As(err, &e) && e.Code != Internal {
		shown := *e
		shown.Err, shown.Op = nil, ""
		return &shown
	}
	if CodeOf(err) == Canceled {
		return &Error{Code: Canceled, Msg: "the request was cancelled"}
	}
	return &Error{Code: Internal, Msg: "internal error; the server's log has the details under this request id"}
}
