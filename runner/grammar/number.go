package grammar

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// maxDigits bounds the digits before the point, and those behind it.
const maxDigits = 16

// interval is what minimum, maximum, their exclusive forms and multipleOf say together. A nil end is without bound.
type interval struct {
	low, high         *big.Rat
	lowOpen, highOpen bool // the end itself is not in it
	fraction          int  // digits behind the point, at most
	bounded           bool
}

// readRange intersects the bounds of schemas.
func readRange(nodes []*node) (*interval, error) {
	r := &interval{fraction: maxDigits}
	for _, n := range nodes {
		for _, m := range n.members {
			if keywords[m.name] != tNumber|tInteger {
				continue
			}
			if m.value.kind == 'b' && strings.HasPrefix(m.name, "exclusive") {
				continue // draft 4: it changes minimum or maximum, below
			}
			x, ok := m.value.number()
			if !ok {
				return nil, refuse(n.path, "%s must be a number", m.name)
			}
			r.bounded = true
			if m.name == "multipleOf" {
				digits := fractionDigits(x)
				if digits < 0 {
					return nil, unsupported(n, "multipleOf", "except for 1, 0.1, 0.01 and so on")
				}
				r.fraction = min(r.fraction, digits)
				continue
			}
			open := strings.HasPrefix(m.name, "exclusive")
			if old := n.get("exclusive" + strings.ToUpper(m.name[:1]) + m.name[1:]); !open && old != nil && old.kind == 'b' {
				open = old.yes
			}
			if strings.HasSuffix(strings.ToLower(m.name), "minimum") {
				if r.low == nil || x.Cmp(r.low) > 0 || x.Cmp(r.low) == 0 && open {
					r.low, r.lowOpen = x, open
				}
			} else if r.high == nil || x.Cmp(r.high) < 0 || x.Cmp(r.high) == 0 && open {
				r.high, r.highOpen = x, open
			}
		}
	}
	return r, nil
}

// fractionDigits gives k for 10^-k, else -1.
func fractionDigits(x *big.Rat) int {
	step := big.NewRat(1, 1)
	for k := range maxDigits {
		if x.Cmp(step) == 0 {
			return k
		}
		step.Mul(step, big.NewRat(1, 10))
	}
	return -1
}

func (r *interval) holds(x *big.Rat) bool {
	if r.low != nil && (x.Cmp(r.low) < 0 || r.lowOpen && x.Cmp(r.low) == 0) ||
		r.high != nil && (x.Cmp(r.high) > 0 || r.highOpen && x.Cmp(r.high) == 0) {
		return false
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(r.fraction)), nil)
	return !r.bounded || r.fraction == maxDigits || new(big.Rat).Mul(x, new(big.Rat).SetInt(scale)).IsInt()
}

// before: whether all of r is under all of s.
func (r *interval) before(s *interval) bool {
	if r.high == nil || s.low == nil {
		return false
	}
	cmp := r.high.Cmp(s.low)
	return cmp < 0 || cmp == 0 && (r.highOpen || s.lowOpen)
}

// number writes an integer or a number within its bounds. "" when there is none.
func (c *compiler) number(f *form, _ string) (string, error) {
	r, err := readRange(f.nodes)
	if err != nil {
		return "", err
	}
	whole := f.types&tNumber == 0
	switch {
	case !r.bounded && whole:
		return c.primitive("integer"), nil
	case !r.bounded:
		return c.primitive("number"), nil
	case whole:
		r.fraction = 0
	}
	limit := new(big.Rat).SetInt(new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(maxDigits), nil), big.NewInt(1)))
	low, high := *r, *r
	if r.low == nil || r.low.Cmp(new(big.Rat).Neg(limit)) < 0 {
		low.low, low.lowOpen = new(big.Rat).Neg(limit), false
	}
	if r.high == nil || r.high.Cmp(limit) > 0 {
		high.high, high.highOpen = limit, false
	}
	lo, loOpen, hi, hiOpen := low.low, low.lowOpen, high.high, high.highOpen
	var out []string
	zero := new(big.Rat)
	if lo.Sign() < 0 { // the part under zero, by its distance from zero
		from, fromOpen := zero, true
		if hi.Sign() < 0 {
			from, fromOpen = new(big.Rat).Neg(hi), hiOpen
		}
		part, err := magnitude(f, from, new(big.Rat).Neg(lo), fromOpen, loOpen, r.fraction)
		if err != nil {
			return "", err
		}
		if part != "" {
			out = append(out, `"-" (`+part+")")
		}
	}
	if hi.Sign() >= 0 {
		from, fromOpen := lo, loOpen
		if lo.Sign() < 0 {
			from, fromOpen = zero, false
		}
		part, err := magnitude(f, from, hi, fromOpen, hiOpen, r.fraction)
		if err != nil {
			return "", err
		}
		if part != "" {
			out = append(out, part)
		}
	}
	if len(out) == 0 {
		c.reason = fmt.Sprintf(" (no number is within the bounds at %s)", f.path)
	}
	return strings.Join(out, " | "), nil
}

// magnitude writes the numbers from lo to hi, both at least 0.
func magnitude(f *form, lo, hi *big.Rat, loOpen, hiOpen bool, fraction int) (string, error) {
	if lo.Cmp(hi) > 0 || lo.Cmp(hi) == 0 && (loOpen || hiOpen) {
		return "", nil
	}
	if fraction == 0 { // whole numbers: move the ends to the nearest inside
		first, last := ceil(lo), floor(hi)
		if loOpen && lo.IsInt() {
			first++
		}
		if hiOpen && hi.IsInt() {
			last--
		}
		return strings.Join(wholes(first, last), " | "), nil
	}
	a, fa, ok := split(lo)
	b, fb, ok2 := split(hi)
	if !ok || !ok2 {
		return "", refuse(f.path, "a bound has over %d digits behind its point", maxDigits-1)
	}
	if len(fa) > fraction || len(fb) > fraction {
		return "", refuse(f.path, "a bound is finer than multipleOf")
	}
	var out []string
	add := func(whole []string, fr fractions) {
		if tail, ok := fr.write(); ok && len(whole) > 0 {
			out = append(out, "("+strings.Join(whole, " | ")+")"+tail)
		}
	}
	if a == b {
		add(wholes(a, a), between(fa, fb, loOpen, hiOpen, fraction))
	} else {
		add(wholes(a, a), atLeast(fa, loOpen, fraction))
		add(wholes(a+1, b-1), atLeast("", false, fraction))
		add(wholes(b, b), atMost(fb, hiOpen, fraction))
	}
	return strings.Join(out, " | "), nil
}

func floor(x *big.Rat) int64 { return new(big.Int).Quo(x.Num(), x.Denom()).Int64() } // x >= 0

func ceil(x *big.Rat) int64 {
	if x.IsInt() {
		return floor(x)
	}
	return floor(x) + 1
}

// split gives the whole part and the digits behind the point, without zeros at their end.
func split(x *big.Rat) (whole int64, fraction string, ok bool) {
	text := x.FloatString(maxDigits - 1)
	back, _ := new(big.Rat).SetString(text)
	before, behind, _ := strings.Cut(text, ".")
	whole, err := strconv.ParseInt(before, 10, 64)
	return whole, strings.TrimRight(behind, "0"), err == nil && back.Cmp(x) == 0
}

// wholes lists alternatives for the whole numbers from lo to hi, which are at least 0.
func wholes(lo, hi int64) []string {
	var out []string
	if lo > hi {
		return nil
	}
	if lo == 0 {
		out = append(out, `"0"`)
		lo = 1
	}
	for lo <= hi {
		low := strconv.FormatInt(lo, 10)
		end := pow10(len(low)) - 1
		if lo == pow10(len(low)-1) && end <= hi { // all of this length, and perhaps of the next ones
			most := len(low)
			for most < maxDigits && pow10(most+1)-1 <= hi {
				most++
			}
			out = append(out, "[1-9]"+some(len(low)-1, most-1))
			lo = pow10(most)
			continue
		}
		end = min(end, hi)
		out = append(out, sameLength(low, strconv.FormatInt(end, 10)))
		lo = end + 1
	}
	return out
}

func pow10(n int) int64 {
	out := int64(1)
	for range n {
		out *= 10
	}
	return out
}

// some digits, from low to high of them.
func some(low, high int) string {
	switch {
	case high == 0:
		return ""
	case low == high:
		return fmt.Sprintf(" [0-9]{%d}", low)
	}
	return fmt.Sprintf(" [0-9]{%d,%d}", low, high)
}

func digitRange(low, high byte) string {
	if low == high {
		return `"` + string(low) + `"`
	}
	return "[" + string(low) + "-" + string(high) + "]"
}

// sameLength writes the numbers between two of the same number of digits.
func sameLength(low, high string) string {
	if low == high {
		return literal(low)
	}
	i := 0
	for low[i] == high[i] {
		i++
	}
	prefix := ""
	if i > 0 {
		prefix = literal(low[:i]) + " "
	}
	a, b, n := low[i], high[i], len(low)-i-1
	if n == 0 {
		return prefix + digitRange(a, b)
	}
	var out []string
	if strings.Trim(low[i+1:], "0") != "" {
		out = append(out, digitRange(a, a)+" ("+sameLength(low[i+1:], strings.Repeat("9", n))+")")
		a++
	}
	last := ""
	if strings.Trim(high[i+1:], "9") != "" {
		last = digitRange(b, b) + " (" + sameLength(strings.Repeat("0", n), high[i+1:]) + ")"
		b--
	}
	if a <= b {
		out = append(out, digitRange(a, b)+some(n, n))
	}
	if last != "" {
		out = append(out, last)
	}
	return prefix + "(" + strings.Join(out, " | ") + ")"
}
