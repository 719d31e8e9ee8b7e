package gateway

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Life is how long a key lives. On the wire it is seconds, or a text such as "12h" or "90d".
type Life time.Duration

const (
	day      = 24 * time.Hour
	mostLife = 100 * 365 * day // what a time can hold
)

// ParseLife reads a text: a Go duration, or days.
func ParseLife(text string) (Life, error) {
	d, err := time.ParseDuration(text)
	if number, days := strings.CutSuffix(text, "d"); days {
		var n float64
		n, err = strconv.ParseFloat(number, 64)
		d = time.Duration(math.Min(n, 1e6) * float64(day))
	}
	if err != nil || d <= 0 || d > mostLife {
		return 0, fmt.Errorf("expires_in must be a time above zero, such as 12h or 90d")
	}
	return Life(d), nil
}

// UnmarshalJSON reads seconds, or a text as ParseLife does.
func (l *Life) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		var seconds float64
		if err := json.Unmarshal(b, &seconds); err != nil {
			return fmt.Errorf("expires_in must be seconds, or a text such as 12h or 90d")
		}
		text = strconv.FormatFloat(math.Min(seconds, 1e10), 'f', -1, 64) + "s"
	}
	got, err := ParseLife(text)
	*l = got
	return err
}

// MarshalJSON writes it as a text.
func (l Life) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(l).String()) }
