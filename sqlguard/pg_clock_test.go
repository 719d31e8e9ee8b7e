package sqlguard

import (
	"testing"

	"sluice/fault"
)

// What PostgreSQL 18 takes for a reading of the clock where a time is wanted.
func TestPgClocksInTexts(t *testing.T) {
	for sql, passes := range map[string]bool{
		"SELECT 'now'::timestamp":                       false,
		"SELECT timestamptz ' NOW '":                    false,
		"SELECT date 'Today'":                           false,
		"SELECT CAST('tomorrow 10:00' AS timestamp)":    false,
		"SELECT 'yesterday'::text::date":                false,
		"SELECT '{2026-01-01,now}'::timestamp[]":        false,
		"SELECT '[now,2030-01-01)'::tstzrange":          false,
		"SELECT time 'now'":                             false,
		"SELECT id FROM orders WHERE placed_at < 'now'": false,
		"SELECT id FROM orders WHERE placed_at BETWEEN 'yesterday' AND 'today 12:00 PM'": false,
		"SELECT date_trunc('day', 'now')":                                                false,
		"SELECT date '2026-01-31', timestamp 'epoch', date 'infinity'":                   true,
		"SELECT id FROM orders WHERE placed_at < CURRENT_DATE":                           true,
		"SELECT id FROM orders WHERE status = 'now'::text":                               true,
		"SELECT id FROM orders WHERE status = 'right now, please'":                       true,
		"SELECT id FROM orders WHERE status = 'nowhere'":                                 true,
		"SELECT 'now'::varchar, 'today'::jsonb":                                          true,
	} {
		_, err := pgCheck(t, sql, RestrictedRead, nil)
		if passes != (err == nil) || err != nil && fault.CodeOf(err) != fault.Refused {
			t.Errorf("%s: %v", sql, err)
		}
		if _, err := pgCheck(t, sql, ReadOnly, nil); err != nil {
			t.Errorf("%s, by others: %v", sql, err)
		}
	}
}
