package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestEveryFigureIsMeasured holds the table and the scenes to each other.
func TestEveryFigureIsMeasured(t *testing.T) {
	figures, err := readFigures(filepath.Join("..", "figures.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]bool{}
	for _, s := range scenes {
		measured[s.name] = true
		if _, ok := figures[s.name]; !ok {
			t.Errorf("%s has no bound", s.name)
		}
	}
	for name := range figures {
		if !measured[name] {
			t.Errorf("%s is in the table, but not measured", name)
		}
	}
}

func TestFigure(t *testing.T) {
	least, most := figure{least: true, limit: 0.97}, figure{limit: 4}
	for name, row := range map[string]struct {
		f    figure
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
		if _, err := readFigures(path); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestTimesOfAnAnswer(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	a := &answer{begin: at(0), times: []time.Time{at(100), at(200), at(700), at(800)}, end: at(900), tokens: 8}
	if a.first() != 100*time.Millisecond || a.gap() != 500*time.Millisecond || a.rate() != 10 || a.decoding() != 8.75 {
		t.Errorf("first %v, gap %v, rate %v, decoding %v", a.first(), a.gap(), a.rate(), a.decoding())
	}
	if m := median([]float64{5, 1, 3}); m != 3 {
		t.Errorf("median %v", m)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median of four %v", m)
	}
}
