package sqlguard

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// span counts the elements of range(…) with literal arguments: whole numbers, or two times and an interval.
func span(args []any) (int64, bool) {
	if len(args) == 3 {
		if step, ok := interval(args[2]); ok {
			from, ok1 := moment(args[0])
			to, ok2 := moment(args[1])
			if !ok1 || !ok2 || step == 0 {
				return 0, false
			}
			return int64(to.Sub(from).Abs() / step.Abs()), true
		}
	}
	var nums []float64
	for _, a := range args {
		i, ok := wholeNumber(a)
		if !ok {
			return 0, false
		}
		nums = append(nums, float64(i))
	}
	from, to, step := 0.0, 0.0, 1.0
	switch len(nums) {
	case 1:
		to = nums[0]
	case 2:
		from, to = nums[0], nums[1]
	case 3:
		from, to, step = nums[0], nums[1], nums[2]
	default:
		return 0, false
	}
	if step == 0 {
		return 0, false
	}
	count := (to - from) / step
	return int64(min(max(count, 1), 1e18)), true
}

// moment reads DATE '…' and TIMESTAMP '…'.
func moment(v any) (time.Time, bool) {
	n, _ := v.(node)
	if id := str(under(n, "cast_type"), "id"); str(n, "class") == "CAST" && (id == "DATE" || strings.HasPrefix(id, "TIMESTAMP")) {
		return moment(n["child"])
	}
	s, ok := textLiteral(v)
	if !ok {
		return time.Time{}, false
	}
	for _, layout := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04:05-07"} {
		// Beyond these years a difference of moments is no longer a duration.
		if t, err := time.Parse(layout, s); err == nil && 1900 <= t.Year() && t.Year() < 2190 && len(s) < 40 {
			return t, true
		}
	}
	return time.Time{}, false
}

// units are the shortest lengths of the units of an interval.
var units = map[string]time.Duration{
	"microsecond": time.Microsecond, "millisecond": time.Millisecond, "second": time.Second, "minute": time.Minute, "hour": time.Hour,
	"day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 28 * 24 * time.Hour, "quarter": 90 * 24 * time.Hour, "year": 365 * 24 * time.Hour,
}

var intervalText = regexp.MustCompile(`^\s*([+-]?\d{1,4})\s+([A-Za-z]+?)s?\s*$`)

// interval reads INTERVAL 2 HOUR, which the engine's parser writes as to_hours(…), and INTERVAL '2 hours'.
func interval(v any) (time.Duration, bool) {
	n, _ := v.(node)
	switch str(n, "class") {
	case "CAST":
		s, ok := textLiteral(n["child"])
		if m := intervalText.FindStringSubmatch(s); ok && m != nil && str(under(n, "cast_type"), "id") == "INTERVAL" {
			count, err := strconv.Atoi(m[1])
			return lasting(int64(count), fold(m[2]), err == nil)
		}
	case "FUNCTION":
		name, ok := strings.CutPrefix(fold(str(n, "function_name")), "to_")
		if args := list(n, "children"); ok && len(args) == 1 {
			count, ok := intervalCount(args[0])
			return lasting(count, strings.TrimSuffix(name, "s"), ok)
		}
	}
	return 0, false
}

// lasting gives the length of some units of time, when it fits into a duration.
func lasting(count int64, unit string, ok bool) (time.Duration, bool) {
	d := units[unit]
	if !ok || d == 0 || count == math.MinInt64 || max(count, -count) > math.MaxInt64/int64(d) {
		return 0, false
	}
	return time.Duration(count) * d, true
}

// intervalCount reads the number under the casts and trunc that the engine's parser puts around it.
func intervalCount(v any) (int64, bool) {
	n, _ := v.(node)
	switch {
	case str(n, "class") == "CAST":
		return intervalCount(n["child"])
	case str(n, "class") == "FUNCTION" && fold(str(n, "function_name")) == "trunc" && len(list(n, "children")) == 1:
		return intervalCount(list(n, "children")[0])
	}
	if s, ok := textLiteral(v); ok {
		i, err := strconv.ParseInt(s, 10, 32)
		return i, err == nil
	}
	return wholeNumber(v)
}
