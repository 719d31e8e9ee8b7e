package beside

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestFigure(t *testing.T) {
	least, most := Figure{least: true, limit: 0.97}, Figure{limit: 4}
	for name, row := range map[string]struct {
		f    Figure
		v    float64
		want bool
	}{
		"at a lower bound":   {least, 0.97, true},
		"under it":           {least, 0.969, false},
		"at an upper bound":  {most, 4, true},
		"over it":            {most, 4.1, false},
		"no number is short": {most, math.NaN(), false},
	} {
		if got := row.f.holds(row.v); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReadFiguresRefuses(t *testing.T) {
	for name, text := range map[string]string{"two columns": "a\t>=1\n", "no bound": "a\t1\tx\n", "another sign": "a\t==1\tx\n"} {
		path := filepath.Join(t.TempDir(), "f.tsv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFigures(path); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTimesOfAnAnswer(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	a := &Answer{Begin: at(0), Times: []time.Time{at(100), at(200), at(700), at(800)}, End: at(900), Tokens: 8}
	if a.First() != 100*time.Millisecond || a.Gap() != 500*time.Millisecond || a.Rate() != 10 || a.Decoding() != 8.75 {
		t.Errorf("first %v, gap %v, rate %v, decoding %v", a.First(), a.Gap(), a.Rate(), a.Decoding())
	}
	if m := Median([]float64{5, 1, 3}); m != 3 {
		t.Errorf("median %v", m)
	}
	if m := Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median of four %v", m)
	}
}
