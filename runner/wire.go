package runner

import (
	"context"
	"errors"

	"sluice/fault"
)

// toWire packs an error for the other side. An unclassified error keeps its text: the parent is the same program, and
// its error map shows no stranger the text of an Internal fault.
func toWire(err error) *WireError {
	var f *fault.Error
	switch {
	case errors.As(err, &f):
		return &WireError{Code: f.Code.String(), Msg: f.Msg, Hint: f.Hint, Kind: f.Kind}
	case errors.Is(err, context.Canceled):
		return &WireError{Code: fault.Canceled.String(), Msg: "the request was cancelled"}
	}
	return &WireError{Code: fault.Internal.String(), Msg: err.Error()}
}

// fromWire gives back the fault. A code that this version does not know is Internal.
func fromWire(w *WireError) error {
	for _, c := range fault.Codes() {
		if c.String() == w.Code {
			return &fault.Error{Code: c, Op: "runner", Msg: w.Msg, Hint: w.Hint, Kind: w.Kind}
		}
	}
	return &fault.Error{Code: fault.Internal, Op: "runner", Msg: w.Msg}
}
