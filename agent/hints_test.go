package agent

import (
	"slices"
	"testing"
)

func TestHints(t *testing.T) {
	for question, want := range map[string][]string{
		"What was paid in the first quarter of 2023?":        {"first quarter of 2023: >= '2023-01-01' AND < '2023-04-01'"},
		"What was paid in Q4 2024?":                          {"q4 2024: >= '2024-10-01' AND < '2025-01-01'"},
		"What was paid in December 2024?":                    {"december 2024: >= '2024-12-01' AND < '2025-01-01'"},
		"What was paid in 2024?":                             {"in 2024: >= '2024-01-01' AND < '2025-01-01'"},
		"What was paid per month?":                           {"By month: date_trunc('month', the date)"},
		"Monthly payments in 2024":                           {"in 2024: >= '2024-01-01' AND < '2025-01-01'", "By month: date_trunc('month', the date)"},
		"Which payments are over half a million?":            {"half a million = 500000"},
		"Which payments are over a hundred thousand?":        {"a hundred thousand = 100000"},
		"Which payments are over 2.5 million?":               {"2.5 million = 2500000"},
		"What percentage of payments came by paypal?":        {"A percentage: SUM(CASE WHEN the condition THEN 1 ELSE 0 END) * 100.0 / COUNT(*)"},
		"What is the ratio of orders that were paid to all?": {"A ratio of counts: SUM(CASE WHEN condition 1 THEN 1 ELSE 0 END) * 1.0 / SUM(CASE WHEN condition 2 THEN 1 ELSE 0 END)"},
		"Rank the customers by what they paid":               {"A rank: RANK() OVER (ORDER BY the value DESC)"},
		"How many payments are there?":                       nil,
		"Which agents are in team 2024?":                     nil, // no date there
		"Payment 2024, order 5000 and 3 of may":              nil,
		"What is the ratio of price to cost?":                nil,
	} {
		if got := looking(t, question).hints(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", question, got)
		}
	}
}
