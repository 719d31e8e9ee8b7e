package grammar

import (
	"fmt"
	"strings"
)

// fractions are the digits that may stand behind a point, as alternatives that are not empty. none: no digit is fine too.
type fractions struct {
	ways []string
	none bool
}

// write gives the point and what follows. false: nothing fits.
func (f fractions) write() (string, bool) {
	switch {
	case len(f.ways) == 0:
		return "", f.none
	case f.none:
		return ` ("." (` + strings.Join(f.ways, " | ") + "))?", true
	}
	return ` "." (` + strings.Join(f.ways, " | ") + ")", true
}

// after puts a digit before. Without further digits the fraction is the digit and zeros.
func (f fractions) after(digit byte) []string {
	switch {
	case len(f.ways) == 0 && !f.none:
		return nil
	case len(f.ways) == 0:
		return []string{digitRange(digit, digit)}
	}
	tail := " (" + strings.Join(f.ways, " | ") + ")"
	if f.none {
		tail += "?"
	}
	return []string{digitRange(digit, digit) + tail}
}

// digit gives the first of the digits, 0 behind the last.
func digit(s string) byte {
	if s == "" {
		return '0'
	}
	return s[0]
}

func rest(s string) string { return s[min(1, len(s)):] }

// atLeast is 0.x >= 0.a (open: >), with at most left digits. a has no zeros at its end.
func atLeast(a string, open bool, left int) fractions {
	var f fractions
	if a == "" && !open {
		f.none = true
		if left > 0 {
			f.ways = []string{fmt.Sprintf("[0-9]{1,%d}", left)}
		}
		return f
	}
	if left == 0 {
		return f
	}
	d := digit(a)
	if d < '9' {
		f.ways = append(f.ways, digitRange(d+1, '9')+some(0, left-1))
	}
	f.ways = append(f.ways, atLeast(rest(a), open, left-1).after(d)...)
	return f
}

// atMost is 0.x <= 0.b (open: <).
func atMost(b string, open bool, left int) fractions {
	var f fractions
	if b == "" {
		if !open {
			f.none = true
			if left > 0 {
				f.ways = []string{fmt.Sprintf(`"0"{1,%d}`, left)}
			}
		}
		return f
	}
	f.none = true
	if left == 0 {
		return f
	}
	d := digit(b)
	if d > '0' {
		f.ways = append(f.ways, digitRange('0', d-1)+some(0, left-1))
	}
	f.ways = append(f.ways, atMost(rest(b), open, left-1).after(d)...)
	return f
}

// between is both.
func between(a, b string, aOpen, bOpen bool, left int) fractions {
	if a == "" && !aOpen {
		return atMost(b, bOpen, left)
	}
	var f fractions
	if left == 0 || a == "" && b == "" {
		return f
	}
	x, y := digit(a), digit(b)
	if x == y {
		f.ways = between(rest(a), rest(b), aOpen, bOpen, left-1).after(x)
		return f
	}
	f.ways = atLeast(rest(a), aOpen, left-1).after(x)
	if x+1 <= y-1 {
		f.ways = append(f.ways, digitRange(x+1, y-1)+some(0, left-1))
	}
	f.ways = append(f.ways, atMost(rest(b), bOpen, left-1).after(y)...)
	return f
}
