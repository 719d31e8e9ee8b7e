package agent

import (
	"errors"
	"strings"

	"sluice/fault"
)

// blamesStatement says whether an error is about the statement that the model wrote. Any other is an error of ours or of
// the machine, which no answer may hide.
func blamesStatement(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Refused, fault.Invalid, fault.TooLarge:
		return true
	}
	return false
}

// notRead says whether the gate refused because the text is something else than one query that reads: a write, a
// setting, several statements. The gate's parser found that out; what only cannot be parsed, it calls a syntax error.
func notRead(err error) bool {
	var refused *fault.Error
	return errors.As(err, &refused) && refused.Code == fault.Refused && refused.Kind == "syntax" &&
		!strings.HasPrefix(refused.Msg, "syntax error")
}
