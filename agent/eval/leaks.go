package eval

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sluice/agent"
)

// A leak is something in an answer's text that no person must read: an unfilled slot, a raw tool call, a block of SQL in
// place of an answer, or a number that nobody read. The agent sees to that itself; this is a second look, by other code.

var number = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)

// leaksIn lists the leaks of an answer. Numbers of an answered question must stand in its result, or count its rows and
// columns; those of a decline or failure in the texts that it may quote: the question, the database's own scripts, what was
// tried.
func leaksIn(a agent.Answer, quotable ...string) (leaks []string) {
	if m := placeholder.FindString(a.Text); m != "" {
		leaks = append(leaks, "placeholder "+m)
	}
	if m := toolCall.FindString(a.Text); m != "" {
		leaks = append(leaks, "tool call "+strings.TrimSpace(m))
	}
	if strings.Contains(a.Text, "```") {
		leaks = append(leaks, "SQL block")
	}
	if strings.TrimSpace(a.Text) == "" {
		leaks = append(leaks, "silence")
	}
	var source numbersOf
	if a.Outcome == agent.Answered && a.Table != nil {
		source.table(a.Table)
	} else {
		for _, c := range a.Candidates {
			quotable = append(quotable, c.Written, c.Mended, c.SQL)
		}
		for _, text := range quotable {
			source.text(text)
		}
	}
	for _, at := range number.FindAllStringIndex(a.Text, -1) {
		cut := strings.HasPrefix(strings.TrimLeft(a.Text[at[1]:], "0123456789."), "…")
		if n := a.Text[at[0]:at[1]]; !source.has(n, cut) {
			leaks = append(leaks, "number "+n)
		}
	}
	return leaks
}

// numbersOf are the numbers of texts, each as it was written.
type numbersOf struct{ seen map[string]bool }

func (s *numbersOf) add(n string) {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[n] = true
}

func (s *numbersOf) text(text string) {
	for _, n := range number.FindAllString(text, -1) {
		s.add(n)
	}
}

func (s *numbersOf) table(t *agent.Table) {
	for _, n := range []int{len(t.Rows), len(t.Columns), 3, len(t.Columns) - 6} { // 3 rows and 6 columns are told at most
		s.add(strconv.Itoa(n))
	}
	for _, c := range t.Columns {
		s.text(c.Name)
	}
	for _, row := range t.Rows {
		for _, cell := range row {
			var text string
			if json.Unmarshal(cell, &text) == nil {
				s.text(text)
				continue
			}
			s.text(string(cell))
			if f, err := strconv.ParseFloat(string(cell), 64); err == nil {
				s.text(strconv.FormatFloat(f, 'f', -1, 64))
			}
		}
	}
}

// has says whether a number is known; of one that was cut, its beginning.
func (s *numbersOf) has(n string, cut bool) bool {
	if s.seen[n] || !cut {
		return s.seen[n]
	}
	for known := range s.seen {
		if strings.HasPrefix(known, n) {
			return true
		}
	}
	return false
}

// limits are the agent's own numbers, which a failure may name: how long it had.
func limits(cfg Config) string { return cfg.Timeout.String() }

func sortedLeaks(lines []Line) (out []Leak) {
	for _, l := range lines {
		for _, what := range l.Leaks {
			out = append(out, Leak{ID: l.ID, What: what})
		}
	}
	slices.SortStableFunc(out, func(a, b Leak) int { return strings.Compare(a.What, b.What) })
	return out
}

// Leak is one of a run.
type Leak struct {
	ID   string `json:"id"`
	What string `json:"what"`
}
