package sqlguard

import (
	"regexp"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v6"
)

// PostgreSQL reads the clock where a text becomes a time: 'now', ' TODAY ', 'tomorrow 10:00'. A restricted reader may not. What a
// statement puts together, as in ('no' || 'w')::timestamp, is not seen.

var (
	pgTimes      = regexp.MustCompile(`^_?(date|time|timetz|timestamp|timestamptz|(date|ts|tstz)(multi)?range)$`)
	pgClockWords = []string{"now", "today", "tomorrow", "yesterday"}
	pgTimeWords  = []string{"am", "pm", "z", "utc", "gmt", "allballs"}
)

// clockWords tells whether a text has a word that is a clock, and whether all else in it belongs to a time.
func clockWords(s string) (some, alone bool) {
	alone = true
	for _, word := range strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
		if slices.Contains(pgClockWords, word) {
			some = true
		} else if word[0] > '9' && !slices.Contains(pgTimeWords, word) {
			alone = false
		}
	}
	return some, alone
}

// clockCast decides on a cast of a text to a time.
func (w *pgWalker) clockCast(m *pg_query.TypeCast) error {
	if w.req.Profile != RestrictedRead {
		return nil
	}
	name, _ := lastName(m.TypeName.GetNames())
	s, isText := pgText(m.Arg)
	if pgTimes.MatchString(name) && isText {
		if some, _ := clockWords(s); some {
			return clock(s, pgPlace(m.ProtoReflect()), "write CURRENT_DATE, or a date")
		}
	}
	if c := m.Arg.GetAConst(); c != nil && !pgTimes.MatchString(name) {
		if w.plain == nil {
			w.plain = map[*pg_query.A_Const]bool{}
		}
		w.plain[c] = true
	}
	return nil
}

// clockConstant refuses a text without a cast that is a clock beside a time, as in placed_at < 'now'.
func (w *pgWalker) clockConstant(m *pg_query.A_Const) error {
	if w.req.Profile != RestrictedRead || m.GetSval() == nil || w.plain[m] {
		return nil
	}
	s := m.GetSval().GetSval()
	if some, alone := clockWords(s); some && alone {
		return clock(s, int(m.Location), "write CURRENT_DATE or a date; where a text is meant, '"+strings.ReplaceAll(s, "'", "''")+"'::text")
	}
	return nil
}

func clock(s string, at int, hint string) error {
	return refuse(at, kindQuery, hint, "%q may be a clock, which a restricted reader may not read", s)
}
