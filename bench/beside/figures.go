package beside

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Figure is a line of figures.tsv.
type Figure struct {
	least bool // the value must be at least the limit, else at most
	limit float64
	what  string
}

func (f Figure) bound() string {
	if f.least {
		return fmt.Sprintf(">=%g", f.limit)
	}
	return fmt.Sprintf("<=%g", f.limit)
}

func (f Figure) holds(v float64) bool {
	if f.least {
		return v >= f.limit
	}
	return v <= f.limit // false for NaN too, as above
}

// ReadFigures reads figures.tsv.
func ReadFigures(path string) (map[string]Figure, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	out := map[string]Figure{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		cols := strings.Split(line, "\t")
		if len(cols) != 3 || len(cols[1]) < 3 {
			return nil, fmt.Errorf("%s:%d: want name, bound, what", path, i+1)
		}
		limit, err := strconv.ParseFloat(cols[1][2:], 64)
		if op := cols[1][:2]; err != nil || op != ">=" && op != "<=" {
			return nil, fmt.Errorf("%s:%d: bound %q", path, i+1, cols[1])
		}
		out[cols[0]] = Figure{least: cols[1][0] == '>', limit: limit, what: cols[2]}
	}
	return out, nil
}

// Median of a list that is not empty.
func Median(list []float64) float64 {
	s := slices.Sorted(slices.Values(list))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// Show prints one side's values and gives their median.
func Show(label, unit string, list []float64) float64 {
	m := Median(list)
	fmt.Printf("  %-28s %.3g %s  (", label, m, unit)
	for i, v := range list {
		if i > 0 {
			fmt.Print(" ")
		}
		fmt.Printf("%.3g", v)
	}
	fmt.Println(")")
	return m
}
