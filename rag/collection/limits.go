package collection

import (
	"regexp"
	"strings"
	"unicode"

	"sluice/fault"
)

// Limits bound what one caller can have stored or asked. Zero values mean the defaults.
type Limits struct {
	DocumentBytes   int   // of one text; default 4 MiB
	Documents       int64 // of one collection; default 100000
	Chunks          int64 // of one collection; default 500000
	Collections     int   // in all; default 1000
	CollectionBytes int64 // of all texts of a collection; default 1 GiB
}

func (l Limits) withDefaults() Limits {
	if l.DocumentBytes == 0 {
		l.DocumentBytes = 4 << 20
	}
	if l.Documents == 0 {
		l.Documents = 100_000
	}
	if l.Chunks == 0 {
		l.Chunks = 500_000
	}
	if l.Collections == 0 {
		l.Collections = 1000
	}
	if l.CollectionBytes == 0 {
		l.CollectionBytes = 1 << 30
	}
	return l
}

const (
	maxTitle       = 500     // bytes
	maxSource      = 2000    // bytes
	maxDescription = 2000    // bytes
	maxQuery       = 8 << 10 // bytes
	maxLimit       = 50      // passages of one search
	usualLimit     = 5       // passages of a search that names no limit
	maxAbove       = 200     // bytes of title and headings that are embedded with each chunk
	maxList        = 1000    // documents of one page
)

var (
	nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)
	idForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$`)
)

func checkName(name string) error {
	if !nameForm.MatchString(name) {
		return fault.New(fault.Invalid, "collection", "a collection's name has 1 to 63 of a-z, 0-9, _, . and -, and begins with a letter or a digit")
	}
	return nil
}

// checkLine refuses a text for one line that is too long, or that holds what is not for a line.
func checkLine(what, text string, most int) error {
	const op = "collection"
	if len(text) > most {
		return fault.New(fault.TooLarge, op, "%s has %d bytes; at most %d", what, len(text), most)
	}
	if !clean(text) {
		return fault.New(fault.Invalid, op, "%s is not UTF-8, or holds a NUL", what)
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		return fault.New(fault.Invalid, op, "%s holds a line break or another control character", what)
	}
	return nil
}
