package units

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Seconds is a span of time as Ollama's keep_alive has it: 5m, or a bare number of seconds, as a number or as a text. Negative is
// for ever, and always -1 here.
type Seconds time.Duration

// Forever is the Seconds of every negative span.
const Forever Seconds = -1

// ParseSeconds reads "5m", "300", "-1" and "1.5". Ollama's own type refuses bare numbers in a text, which clients send.
func ParseSeconds(text string) (Seconds, error) {
	text = strings.TrimSpace(text)
	if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(n) && !math.IsInf(n, 0) {
		return SecondsOf(n), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf(`%q is neither seconds, such as 300, nor a text such as "5m"`, shown(text))
	}
	return Seconds(max(d, time.Duration(Forever))), nil
}

// SecondsOf is n seconds; negative, or beyond what a duration holds, is Forever.
func SecondsOf(n float64) Seconds {
	if n < 0 || n > math.MaxInt64/float64(time.Second) {
		return Forever
	}
	return Seconds(n * float64(time.Second))
}

// UnmarshalYAML reads what ParseSeconds reads.
func (s *Seconds) UnmarshalYAML(text []byte) (err error) {
	*s, err = ParseSeconds(unquote(text))
	return err
}

// UnmarshalJSON reads a number of seconds, or a text that ParseSeconds reads.
func (s *Seconds) UnmarshalJSON(b []byte) (err error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case float64:
		*s = SecondsOf(v)
		return nil
	case string:
		*s, err = ParseSeconds(v)
		return err
	}
	return fmt.Errorf(`it must be seconds, such as 300, or a text such as "5m"`)
}

// shown is a text as an error may repeat it.
func shown(text string) string {
	const most = 40
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
