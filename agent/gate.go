package agent

import (
	"errors"

	"sluice/fault"
	"sluice/sqlguard"
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
// setting, several statements. The gate's parser found that out; it is never guessed from words.
func notRead(err error) bool { return errors.Is(err, sqlguard.ErrNotQuery) }
