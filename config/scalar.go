package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span written as Go writes them: 90s, 15m, 1h30m.
type Duration time.Duration

// UnmarshalYAML reads "60s".
func (d *Duration) UnmarshalYAML(b []byte) error {
	v, err := time.ParseDuration(unquote(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 60s or 5m", unquote(b))
	}
	*d = Duration(v)
	return nil
}

// Seconds is a time span as Ollama writes it: 5m, or a bare number of seconds, also a negative one.
type Seconds time.Duration

// UnmarshalYAML reads "5m", 300 and -1.
func (s *Seconds) UnmarshalYAML(b []byte) error {
	d, err := seconds(unquote(b))
	*s = Seconds(d)
	return err
}

// seconds reads what Seconds may be.
func seconds(v string) (time.Duration, error) {
	if n, err := strconv.ParseFloat(v, 64); err == nil && n > -1e9 && n < 1e9 {
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a duration such as 5m nor a number of seconds", v)
	}
	return d, nil
}

// Size is a number of bytes, written with a unit: 32MiB, 1GiB, 10MB, 4096.
type Size int64

var units = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// UnmarshalYAML reads "32MiB".
func (s *Size) UnmarshalYAML(b []byte) error {
	text := unquote(b)
	for _, u := range units {
		number, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > (1<<62)/u.bytes {
			break
		}
		*s = Size(n * u.bytes)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 32MiB", text)
}

func unquote(b []byte) string { return strings.Trim(strings.TrimSpace(string(b)), `"'`) }
