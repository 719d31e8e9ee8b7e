package gatefuzz

import (
	"slices"
	"strings"
)

// Minimise drops parts of a text, longer runs first, for as long as what is left still fails. It asks at most 600 times.
func Minimise(sql string, fails func(string) bool) string {
	parts := pieces.FindAllString(sql, -1)
	asked := 0
	for size := max(1, len(parts)/2); size > 0; {
		dropped := false
		for i := 0; i+size <= len(parts); {
			less := slices.Delete(slices.Clone(parts), i, i+size)
			if asked++; asked > 600 {
				return strings.Join(parts, "")
			}
			if fails(strings.Join(less, "")) {
				parts, dropped = less, true
			} else {
				i++
			}
		}
		if !dropped || size > len(parts) {
			size /= 2
		}
	}
	return strings.Join(parts, "")
}
