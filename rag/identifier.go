package rag

import "strings"

// reserved are the words that neither DuckDB nor PostgreSQL takes as a bare table or column name.
var reserved = func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(`all analyse analyze and any array as asc asymmetric between both case cast check
		collate column constraint create cross current_catalog current_date current_role current_time current_timestamp
		current_user default deferrable desc describe distinct do else end except false fetch for foreign from full grant
		group having in initially inner intersect into is isnull join lambda lateral leading left like limit localtime
		localtimestamp natural not notnull null offset on only or order outer overlaps pivot pivot_longer pivot_wider
		placing primary qualify references returning right select session_user show similar some summarize symmetric
		table then to trailing true union unique unpivot user using variadic when where window with`) {
		words[w] = true
	}
	return words
}()

// Identifier writes a name as SQL: bare where that is enough, else in double quotes.
func Identifier(name string) string {
	bare := name != "" && !reserved[strings.ToLower(name)]
	for i, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r == '_':
		case r >= 'A' && r <= 'Z': // DuckDB compares names without case
		case r >= '0' && r <= '9' && i > 0:
		default:
			bare = false
		}
	}
	if bare {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
