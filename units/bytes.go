package units

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Bytes is a number of bytes, written like 8GiB, 398MB or 4096.
type Bytes uint64

var (
	bytesForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?) ?([kKMGT]i?)?B?$`)
	factors   = map[string]float64{
		"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
	}
)

// ParseBytes reads a size. Units are decimal (kB, MB, GB, TB) or binary (KiB, MiB, GiB, TiB).
func ParseBytes(text string) (Bytes, error) {
	m := bytesForm.FindStringSubmatch(text)
	if m != nil && factors[m[2]] != 0 {
		n, err := strconv.ParseFloat(m[1], 64)
		if err == nil && n*factors[m[2]] < math.MaxInt64 {
			return Bytes(n * factors[m[2]]), nil
		}
	}
	return 0, fmt.Errorf("%q is not a size such as 8GiB or 398MB", text)
}

// UnmarshalYAML reads what ParseBytes reads; an empty text is 0.
func (b *Bytes) UnmarshalYAML(text []byte) (err error) {
	if t := unquote(text); t != "" {
		*b, err = ParseBytes(t)
	}
	return err
}

// String writes decimal units, as downloads and files are counted: "4.7 GB".
func (b Bytes) String() string {
	return scaled(float64(b), []string{"TB", "GB", "MB", "kB"}, 1e12, 1e3)
}

// Memory writes binary units, as memory is counted: "4.4 GiB".
func (b Bytes) Memory() string {
	return scaled(float64(b), []string{"TiB", "GiB", "MiB", "KiB"}, 1<<40, 1<<10)
}

func scaled(n float64, names []string, factor, step float64) string {
	for _, name := range names {
		if n >= factor {
			return strconv.FormatFloat(math.Round(n/factor*10)/10, 'f', -1, 64) + " " + name
		}
		factor /= step
	}
	return strconv.FormatFloat(n, 'f', -1, 64) + " B"
}

func unquote(b []byte) string { return strings.Trim(strings.TrimSpace(string(b)), `"'`) }
