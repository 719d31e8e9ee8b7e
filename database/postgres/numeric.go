package postgres

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// A numeric on the wire is a header (number of groups, weight, sign, display scale: 16 bits each), then groups of four
// decimal digits: the value is the sum of group[i] · 10000^(weight-i). Trailing zero groups are not sent, so the groups
// say nothing of the scale, and the weight may be below zero: 0.0012 is the group 12 with the weight -1.
// (src/backend/utils/adt/numeric.c, numeric_send)
const (
	numericHeader = 8
	signPositive  = 0x0000
	signNegative  = 0x4000
	// 0xC000 NaN, 0xD000 Infinity, 0xF000 -Infinity
)

type numericFault int

const (
	numericFits numericFault = iota
	numericSpecial
	numericInexact
	numericTooWide
	numericBroken
)

var pow10 = [...]uint64{1, 10, 100, 1000, 10000}

// decimal reads a numeric as an integer of at most precision digits, scale of them behind the point. More digits behind it are
// an error when it must be exact, else rounded as the server's round() does: half away from zero.
func decimal(src []byte, precision, scale int32, exact bool) (decimal128.Num, numericFault) {
	if len(src) < numericHeader {
		return decimal128.Num{}, numericBroken
	}
	groups := int(binary.BigEndian.Uint16(src))
	weight := int(int16(binary.BigEndian.Uint16(src[2:])))
	sign := binary.BigEndian.Uint16(src[4:])
	switch {
	case len(src) != numericHeader+2*groups:
		return decimal128.Num{}, numericBroken
	case sign != signPositive && sign != signNegative:
		return decimal128.Num{}, numericSpecial
	}
	var n u128
	var up bool                   // the digit behind the last one is 5 or more
	next := 4*weight + int(scale) // the power of ten, of the result's units, that the group stands for
	for i := range groups {
		d := uint64(binary.BigEndian.Uint16(src[numericHeader+2*i:]))
		ok := true
		switch {
		case next >= 0:
			ok = n.shift(4, d)
		case next > -4:
			cut := pow10[-next]
			if d%cut != 0 && exact {
				return decimal128.Num{}, numericInexact
			}
			up = 2*(d%cut) >= cut
			ok = n.shift(4+next, d/cut)
		case d != 0 && exact:
			return decimal128.Num{}, numericInexact
		case next == -4:
			up = d >= 5000
		}
		if !ok {
			return decimal128.Num{}, numericTooWide
		}
		next -= 4
	}
	if up && !n.shift(0, 1) {
		return decimal128.Num{}, numericTooWide
	}
	if next += 4; groups == 0 || n == (u128{}) {
		next = 0
	}
	for ; next > 0; next -= 4 { // zero groups that were not sent
		if !n.shift(min(next, 4), 0) {
			return decimal128.Num{}, numericTooWide
		}
	}
	if n.hi > 1<<63-1 {
		return decimal128.Num{}, numericTooWide
	}
	out := decimal128.New(int64(n.hi), n.lo)
	if (n.hi != 0 || precision < 20) && !out.FitsInPrecision(precision) {
		return decimal128.Num{}, numericTooWide
	}
	if sign == signNegative {
		out = out.Negate()
	}
	return out, numericFits
}

// u128 is an unsigned integer of 128 bits.
type u128 struct{ hi, lo uint64 }

// shift multiplies by 10^digits, digits ≤ 4, and adds a number. It is false when the result has no room.
func (n *u128) shift(digits int, add uint64) bool {
	by := pow10[digits]
	carry, lo := bits.Mul64(n.lo, by)
	over, hi := bits.Mul64(n.hi, by)
	hi, c := bits.Add64(hi, carry, 0)
	lo, c2 := bits.Add64(lo, add, 0)
	hi, c3 := bits.Add64(hi, 0, c2)
	n.hi, n.lo = hi, lo
	return over == 0 && c == 0 && c3 == 0
}
