package eval

import (
	"math"
	"testing"
)

func TestSame(t *testing.T) {
	for name, row := range map[string]struct {
		gold, pred value
		want       bool
	}{
		"NULL is NULL only":                       {value{}, ofText(""), false},
		"integers exactly":                        {ofInt("10000"), ofInt("10001"), false},
		"an integer and a float within tolerance": {ofInt("100000"), ofFloat(100001), true},
		"integers beyond 2^53":                    {ofInt("9007199254740993"), ofInt("9007199254740992"), false},
		"half a hundredth from 1 up":              {ofFloat(1), ofFloat(1.005), true},
		"half a hundredth below 1":                {ofFloat(0.9), ofFloat(0.905), false},
		"the gold decides about the hundredth":    {ofFloat(0.9999), ofFloat(1.004), false},
		"a number as text":                        {ofInt("12"), ofText(" 12 "), true},
		"a number as text within tolerance":       {ofText("12.001"), ofInt("12"), true},
		"a number as text with underscores":       {ofInt("1000"), ofText("1_000"), true},
		"a hexadecimal number is a text":          {ofInt("16"), ofText("0x10"), false},
		"a percent sign is text":                  {ofFloat(7.5), ofText("7.5%"), false},
		"NaN as text equals nothing":              {ofFloat(1), ofText("nan"), false},
		"infinity":                                {ofFloat(math.Inf(1)), ofText("inf"), true},
		"text exactly":                            {ofText("a"), ofText("A"), false},
		"texts that are numbers are texts":        {ofText("1"), ofText("1.0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := same(row.gold, row.pred); got != row.want {
				t.Errorf("same(%+v, %+v) = %v", row.gold, row.pred, got)
			}
		})
	}
}

func TestRepr(t *testing.T) {
	for name, row := range map[string]struct {
		in   value
		want string
	}{
		"None":                  {value{}, "None"},
		"an integer":            {ofInt("-3"), "-3"},
		"a whole float":         {ofFloat(2), "2.0"},
		"a large float":         {ofFloat(1e16), "1e+16"},
		"just not a large one":  {ofFloat(1e15), "1000000000000000.0"},
		"a small float":         {ofFloat(0.00001), "1e-05"},
		"minus infinity":        {ofFloat(math.Inf(-1)), "-inf"},
		"a text":                {ofText("a"), "'a'"},
		"an apostrophe":         {ofText("it's"), `"it's"`},
		"both quotes":           {ofText(`'"`), `'\'"'`},
		"control characters":    {ofText("a\n\t\x01b"), `'a\n\t\x01b'`},
		"letters outside ASCII": {ofText("é"), "'é'"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := repr(row.in); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
		})
	}
	if got := bytesRepr([]byte{'a', 0, 0xff, '\'', 0x80}); got != `b"a\x00\xff'\x80"` {
		t.Errorf("bytes: %s", got)
	}
}

func TestHasFrom(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1 FROM a": true, "select(1)from(a)": true, "From a": true, "SELECT afrom": false, "SELECT from_x": false,
		"SELECT 'äfrom'": false, "SELECT fromage, 1 from a": true, "": false, "SELECT 1\nFROM\ta": true,
	} {
		if got := hasFrom(sql); got != want {
			t.Errorf("hasFrom(%q) = %v", sql, got)
		}
	}
}

func TestDistinctTakesOneAndOnePointZeroForOne(t *testing.T) {
	rows := [][]value{{ofInt("1")}, {ofFloat(1)}, {ofText("1")}, {ofFloat(1.5)}, {value{}}, {value{}}, {ofFloat(math.Copysign(0, -1))}, {ofInt("0")}}
	if got := len(distinct(rows)); got != 5 {
		t.Errorf("%d rows left, want 1, text 1, 1.5, NULL and 0", got)
	}
}

func TestMonotone(t *testing.T) {
	for name, row := range map[string]struct {
		column []value
		want   bool
	}{
		"rising":                  {[]value{ofInt("1"), ofInt("1"), ofFloat(2)}, true},
		"falling with a NULL":     {[]value{ofText("c"), {}, ofText("a")}, true},
		"neither":                 {[]value{ofInt("1"), ofInt("3"), ofInt("2")}, false},
		"one value":               {[]value{ofInt("1"), {}}, false},
		"numbers and texts":       {[]value{ofInt("1"), ofText("2")}, false},
		"large integers close by": {[]value{ofInt("9007199254740993"), ofInt("9007199254740992"), ofInt("9007199254740994")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := monotone(row.column); got != row.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
