package postgres

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// wire writes a numeric as the server sends it.
func wire(weight int, sign uint16, groups ...uint16) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(groups)))
	b = binary.BigEndian.AppendUint16(b, uint16(weight))
	b = binary.BigEndian.AppendUint16(b, sign)
	b = binary.BigEndian.AppendUint16(b, 0)
	for _, g := range groups {
		b = binary.BigEndian.AppendUint16(b, g)
	}
	return b
}

func TestANumericIsReadExactlyOrRefused(t *testing.T) {
	cases := map[string]struct {
		src              []byte
		precision, scale int32
		want             string
		fault            numericFault
	}{
		"zero":                           {wire(0, 0), 38, 18, "0.000000000000000000", numericFits},
		"a weight below zero":            {wire(-1, 0, 12), 9, 4, "0.0012", numericFits},
		"far below zero":                 {wire(-4, 0, 1000), 38, 18, "0.000000000000100000", numericFits},
		"zeros that were not sent":       {wire(4, 0, 1), 38, 18, "10000000000000000.000000000000000000", numericFits},
		"a negative one":                 {wire(0, 0x4000, 1, 5000), 9, 2, "-1.50", numericFits},
		"38 digits":                      {wire(9, 0x4000, 99, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999), 38, 0, "-99999999999999999999999999999999999999", numericFits},
		"38 digits across the point":     {wire(4, 0, 99, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999), 38, 20, "999999999999999999.99999999999999999999", numericFits},
		"38 digits, cut in a group":      {wire(9, 0, 9, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9000), 38, 1, "9999999999999999999999999999999999999.9", numericFits},
		"a 39th digit":                   {wire(9, 0, 100), 38, 0, "", numericTooWide},
		"beyond 128 bits":                {wire(9, 0, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999, 9999), 38, 0, "", numericTooWide},
		"a weight of the largest":        {wire(32767, 0, 1), 38, 18, "", numericTooWide},
		"a digit too far behind":         {wire(-1, 0, 12), 9, 3, "", numericInexact},
		"a group too far behind":         {wire(0, 0, 1, 0, 1), 9, 4, "", numericInexact},
		"a weight of the smallest":       {wire(-32768, 0, 1), 38, 18, "", numericInexact},
		"more digits than the precision": {wire(0, 0, 1000), 3, 0, "", numericTooWide},
		"NaN":                            {wire(0, 0xC000), 38, 18, "", numericSpecial},
		"infinity":                       {wire(0, 0xD000), 38, 18, "", numericSpecial},
		"minus infinity":                 {wire(0, 0xF000), 38, 18, "", numericSpecial},
		"a header that is cut":           {[]byte{0, 1, 0}, 38, 18, "", numericBroken},
		"groups that are cut":            {wire(0, 0, 1)[:9], 38, 18, "", numericBroken},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, why := decimal(c.src, c.precision, c.scale, true)
			if why != c.fault {
				t.Fatalf("fault %d, want %d", why, c.fault)
			}
			if why == numericFits && got.ToString(c.scale) != c.want {
				t.Errorf("%s", got.ToString(c.scale))
			}
		})
	}
}

// The server's own round() is the second opinion on what is rounded for people. TestRealWhatDoesNotFit… has the copies, which are exact.
func TestRealNumericsAreRoundedForPeopleOnly(t *testing.T) {
	e := open(t)
	var list []string
	for _, s := range []string{"1::numeric/3", "2::numeric/3", "-2::numeric/3", "1::numeric/30000", "0.0000000000000000005", "-0.0000000000000000005", "0.00000000000000000049999",
		"0.9999999999999999995", "12345.67890123456789012345", "1e-30", "-1e-19", "99999999999999999999.9999999999999999994", "0.00000000000000005", "7e-18"} {
		list = append(list, "("+s+")")
	}
	from := " FROM (VALUES " + strings.Join(list, ",") + ") t(v)"
	_, got, err := value(t, e, "SELECT v"+from)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range admin(t, "SELECT round(v, 18)"+from) {
		if got[i] != r[0] {
			t.Errorf("%s: %s, the server rounds it to %s", list[i], got[i], r[0])
		}
	}
}

// The server's own text is the second opinion on numbers of every length and scale.
func TestRealNumericsAreWhatTheServerShows(t *testing.T) {
	e := open(t)
	random := rand.New(rand.NewPCG(1, 2))
	for scale := range 39 {
		var literals, want []string
		for range 40 {
			digits := make([]byte, 1+random.IntN(38))
			for i := range digits {
				digits[i] = byte('0' + random.IntN(10)*random.IntN(2))
			}
			whole := 38 - scale
			s := string(digits)
			if len(s) > whole {
				s = s[:whole] + "." + s[whole:]
			}
			if s[0] == '.' {
				s = "0" + s
			}
			if i := strings.IndexByte(s, '.'); i >= 0 && len(s)-i-1 > scale {
				s = s[:i+1+scale]
			}
			literals = append(literals, fmt.Sprintf("('%s%s')", []string{"", "-"}[random.IntN(2)], s))
		}
		sql := fmt.Sprintf("SELECT v::numeric(38,%d) FROM (VALUES %s) t(v)", scale, strings.Join(literals, ","))
		for _, r := range admin(t, sql) {
			want = append(want, r[0])
		}
		_, got, err := value(t, e, sql)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("numeric(38,%d) %s: %s, the server shows %s", scale, literals[i], got[i], want[i])
			}
		}
	}
}

func FuzzDecodersNeverPanic(f *testing.F) {
	f.Add(wire(0, 0, 1, 5000), uint8(0))
	f.Add([]byte("\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x17\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x04\x00\x00\x00\x07"), uint8(1))
	f.Add([]byte(`{a,"b\"c",NULL}`), uint8(2))
	f.Add([]byte("\x00\x01\x00\x00\x3f\x80\x00\x00"), uint8(3))
	shapes := []shape{numericShape(-1, true), listShape(plainShapes[oidInt4], ','), listShape(textShape, ','), vectorShape(false), vectorShape(true),
		plainShapes[oidJSONB], plainShapes[oidInterval], plainShapes[oidTimeTZ], plainShapes[oidUUID], listShape(numericShape(-1, true), ',')}
	f.Fuzz(func(t *testing.T, src []byte, which uint8) {
		c := plan("x", shapes[int(which)%len(shapes)])
		defer c.builder.Release()
		c.builder.Reserve(1)
		_ = c.value(src)
	})
}
