package config

import (
	"fmt"
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

func unquote(b []byte) string { return strings.Trim(strings.TrimSpace(string(b)), `"'`) }
