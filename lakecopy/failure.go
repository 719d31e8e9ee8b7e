package lakecopy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"sluice/fault"
)

// Kind is the finer class of a failed COPY, part of the contract.
type Kind string

// The kinds.
const (
	KindSyntax  Kind = "syntax"
	KindOption  Kind = "option"
	KindPath    Kind = "path"
	KindAuth    Kind = "auth"
	KindColumns Kind = "columns"
	KindType    Kind = "type"
	KindRange   Kind = "range"
	KindLimit   Kind = "limit"
	KindSchema  Kind = "schema"
	KindQuery   Kind = "query"
	KindIO      Kind = "io"
)

// codes says what the caller can do about each kind. A disk that is full or read-only is a state of the server that
// somebody has to change (Conflict), not a fault of the program, so its sentence reaches the caller.
var codes = map[Kind]fault.Code{
	KindSyntax: fault.Invalid, KindOption: fault.Invalid, KindPath: fault.Invalid, KindAuth: fault.Denied,
	KindColumns: fault.Invalid, KindType: fault.Invalid, KindRange: fault.Invalid, KindLimit: fault.TooLarge,
	KindSchema: fault.Conflict, KindQuery: fault.Invalid, KindIO: fault.Conflict,
}

// fail makes an error of a kind; the text is for the caller.
func fail(kind Kind, format string, args ...any) *fault.Error {
	return &fault.Error{Code: codes[kind], Op: "lakecopy", Kind: string(kind), Msg: fmt.Sprintf(format, args...)}
}

func hinted(e *fault.Error, hint string) *fault.Error {
	e.Hint = hint
	return e
}

// diskError classifies a failed file operation. The caller learns what was being done and the system's reason, never an
// absolute path of the server.
func diskError(doing string, err error) error {
	if err == nil {
		return nil
	}
	var e *fault.Error
	if errors.As(err, &e) {
		return err
	}
	reason := "the file operation failed"
	var errno syscall.Errno
	if errors.As(err, &errno) {
		reason = errno.Error()
	} else if errors.Is(err, fs.ErrExist) {
		reason = "the file exists already"
	}
	out := fail(KindIO, "the lake could not %s: %s", doing, reason)
	out.Err = err
	return out
}

// sourceError classifies a failure of the query: the source's own classification and sentence stay, what has none is
// kept from the caller. shift moves a position in the inner query to one in the whole statement.
func sourceError(ctx context.Context, err error, shift int) error {
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		out := fail(KindQuery, "the query failed while its rows were read")
		out.Code, out.Err = fault.Internal, err
		return out
	}
	out := *e
	if out.Kind == "" {
		out.Kind = string(KindQuery)
	}
	if out.Position > 0 {
		out.Position += shift
	}
	return &out
}

func canceled(ctx context.Context) error {
	return fault.Wrap(context.Cause(ctx), fault.Canceled, "lakecopy", "the COPY was cancelled; nothing was published")
}

// kindOf reads the kind that a run records; a cancelled run has none.
func kindOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// isDisk says whether the system refused a file operation.
func isDisk(err error) bool {
	var errno syscall.Errno
	var path *fs.PathError
	return errors.As(err, &errno) || errors.As(err, &path)
}
