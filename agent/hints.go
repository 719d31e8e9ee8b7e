package agent

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sluice/rag"
)

// hints say, in SQL, what some wordings of a question mean: periods of time, large numbers in words, ratios, ranks. Small
// models know the words and fail at the forms. They are general English, and none is about a database.
func (k *ask) hints() []string {
	q := strings.ToLower(rag.OneLine(k.q.Question, 0))
	var out []string
	if k.datesInFocus() {
		out = append(out, periods(q)...)
		if m := byPeriod.FindStringSubmatch(q); m != nil {
			unit := strings.TrimSuffix(m[1]+periodic[m[2]], "s")
			out = append(out, "By "+unit+": date_trunc('"+unit+"', the date)")
		}
	}
	out = append(out, largeNumbers(q)...)
	switch {
	case percent.MatchString(q):
		out = append(out, "A percentage: SUM(CASE WHEN the condition THEN 1 ELSE 0 END) * 100.0 / COUNT(*)")
	case ratioOf.MatchString(q):
		out = append(out, "A ratio of counts: SUM(CASE WHEN condition 1 THEN 1 ELSE 0 END) * 1.0 / SUM(CASE WHEN condition 2 THEN 1 ELSE 0 END)")
	}
	if ranked.MatchString(q) {
		out = append(out, "A rank: RANK() OVER (ORDER BY the value DESC)")
	}
	return out
}

var (
	byPeriod = regexp.MustCompile(`\b(?:(?:each|per|by|every|of the|over the) (day|week|month|quarter|year)s?|(daily|weekly|monthly|quarterly|yearly|annual|annually|month-over-month|year-over-year))\b`)
	periodic = map[string]string{"daily": "day", "weekly": "week", "monthly": "month", "quarterly": "quarter", "yearly": "year", "annual": "year", "annually": "year",
		"month-over-month": "month", "year-over-year": "year"}

	percent = regexp.MustCompile(`\b(percent|percentage|proportion|fraction)\b|%`)
	ratioOf = regexp.MustCompile(`\bratio of\b.*\b(number|with|who|that|which|have|has)\b`) // of rows; one of columns needs no help
	ranked  = regexp.MustCompile(`\b(rank|ranks|ranked|ranking)\b`)

	quarter = regexp.MustCompile(`\b(?:(first|1st|second|2nd|third|3rd|fourth|4th|last) quarter(?: of| in|,)? (\d{4})|q([1-4])(?: of| in|,)? (\d{4}))\b`)
	month   = regexp.MustCompile(`\b(january|february|march|april|may|june|july|august|september|october|november|december),? (?:of )?(\d{4})\b`)
	year    = regexp.MustCompile(`\b(?:in|during|for|of|year) (\d{4})\b`)

	ordinal = map[string]int{"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": 4}
	months  = []string{"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}

	large = regexp.MustCompile(`\b(a|an|one|two|three|four|five|six|seven|eight|nine|ten|\d+(?:\.\d+)?|half a) ((?:hundred|thousand|million|billion)(?: (?:thousand|million|billion))?)\b`)
	scale = map[string]float64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9}
)

// datesInFocus says whether a table of the focus has a date or a time.
func (k *ask) datesInFocus() bool {
	for _, r := range k.focus.Tables {
		t, _ := k.known.Table(r)
		for _, c := range t.Columns {
			if typ := strings.ToUpper(c.Type); strings.HasPrefix(typ, "DATE") || strings.HasPrefix(typ, "TIMESTAMP") {
				return true
			}
		}
	}
	return false
}

// periods gives the dates of quarters, months and years that are named. A year within a quarter or month is not given by
// itself.
func periods(q string) (out []string) {
	say := func(words string, year, firstMonth, n int) {
		end, endYear := firstMonth+n, year
		if end > 12 {
			end, endYear = end-12, year+1
		}
		out = append(out, fmt.Sprintf("%s: >= '%04d-%02d-01' AND < '%04d-%02d-01'", words, year, firstMonth, endYear, end))
	}
	for _, m := range quarter.FindAllStringSubmatch(q, -1) {
		n, y := ordinal[m[1]], m[2]
		if m[3] != "" {
			n, _ = strconv.Atoi(m[3])
			y = m[4]
		}
		at, _ := strconv.Atoi(y)
		say(m[0], at, 3*n-2, 3)
	}
	q = quarter.ReplaceAllString(q, " ")
	for _, m := range month.FindAllStringSubmatch(q, -1) {
		at, _ := strconv.Atoi(m[2])
		for i, name := range months {
			if name == m[1] {
				say(m[0], at, i+1, 1)
			}
		}
	}
	q = month.ReplaceAllString(q, " ")
	for _, m := range year.FindAllStringSubmatch(q, -1) {
		if at, _ := strconv.Atoi(m[1]); at >= 1800 && at < 2200 {
			say(m[0], at, 1, 12)
		}
	}
	return out
}

// largeNumbers writes numbers in digits that a question has in words.
func largeNumbers(q string) (out []string) {
	for _, m := range large.FindAllStringSubmatch(q, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		switch {
		case err == nil:
		case m[1] == "half a":
			n = 0.5
		default:
			n = 1
			if d, ok := numberWord[m[1]]; ok {
				n, _ = strconv.ParseFloat(d, 64)
			}
		}
		for _, w := range strings.Fields(m[2]) {
			n *= scale[w]
		}
		out = append(out, m[0]+" = "+strconv.FormatFloat(n, 'f', -1, 64))
	}
	return out
}
