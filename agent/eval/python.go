package eval

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What score.py leaves to Python, as Python does it.

// space is str.isspace for str.strip: Unicode's white space and the four ASCII separators.
func space(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func trimRight(s string) string { return strings.TrimRightFunc(s, space) }

func trim(s string) string { return strings.TrimFunc(s, space) }

// parseFloat is float(str). Go's parser takes hexadecimal numbers as well, Python's does not; NaN is left out because it
// equals nothing.
func parseFloat(s string) (float64, bool) {
	s = trim(s)
	if strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, (err == nil || errors.Is(err, strconv.ErrRange)) && !math.IsNaN(f)
}

// hasFrom is re.search(r"\bfrom\b", sql, re.I). Go's own \b knows ASCII letters only.
func hasFrom(sql string) bool {
	lower := strings.ToLower(sql)
	word := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
	for at := 0; ; {
		i := strings.Index(lower[at:], "from")
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(lower[:at+i])
		after, _ := utf8.DecodeRuneInString(lower[at+i+4:])
		if !word(before) && !word(after) {
			return true
		}
		at += i + 4
	}
}

// repr is Python's repr of a normalised value, as str() shows it inside a list.
func repr(v value) string {
	switch v.kind {
	case null:
		return "None"
	case integer:
		return v.text
	case float:
		return floatRepr(v.num)
	}
	return stringRepr(v.text)
}

func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f != 0 && (math.Abs(f) < 1e-4 || math.Abs(f) >= 1e16):
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func stringRepr(s string) string { return quoted(s, unicode.MaxRune) }

// bytesRepr is repr(bytes): one character a byte, those beyond ASCII escaped.
func bytesRepr(data []byte) string {
	runes := make([]rune, len(data))
	for i, c := range data {
		runes[i] = rune(c)
	}
	return "b" + quoted(string(runes), 0x7e)
}

// quoted writes a Python literal. Characters above last, at most 0xff then, are written as \x escapes.
func quoted(s string, last rune) string {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f || r > last:
			b.WriteString(`\x` + hex(byte(r)))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

func hex(c byte) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[c>>4], digits[c&15]})
}
