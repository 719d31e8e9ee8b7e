package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// How much of a result the sentence tells; the table holds the rest.
const (
	factRows    = 3
	factColumns = 6
	factRunes   = 120
)

// sentence puts a result into words that a person may read: the rows, or how many there are when something in them looks
// like what no answer may hold.
func sentence(t *Table) string {
	count := plural(len(t.Rows), "row") + ", shown in the table."
	return presentable(described(t, describe(t), count), count)
}

// described gives the text when each number in it is one of the result, and what stands in for it otherwise: an answer
// never has a number that nobody read.
func described(t *Table, text, instead string) string {
	for _, n := range numbers.FindAllString(text, -1) {
		if !known(t, n) {
			return instead
		}
	}
	return text
}

// numbers are runs of digits, with the point inside of them.
var numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)

// known says whether a number stands in the result: in a cell, in a column's name, or as a count of rows or columns.
func known(t *Table, n string) bool {
	for _, c := range []int{len(t.Rows), factRows, len(t.Columns) - factColumns} {
		if n == strconv.Itoa(c) {
			return true
		}
	}
	for _, c := range t.Columns {
		if strings.Contains(c.Name, n) {
			return true
		}
	}
	for _, r := range t.Rows[:min(len(t.Rows), factRows)] {
		for _, v := range r {
			if strings.Contains(string(v), n) || strings.Contains(cell(v), n) {
				return true
			}
		}
	}
	return false
}

// describe puts a result into words. Every number in it is a cell's, or counted here.
func describe(t *Table) string {
	n := len(t.Rows)
	switch {
	case n == 0 && t.Truncated:
		return "There are rows, but the first one is too large to show."
	case n == 0:
		return "No rows match."
	case n == 1 && !t.Truncated:
		return facts(t, t.Rows[0]) + "."
	}
	count := plural(n, "row")
	if t.Truncated {
		count = "More than " + count
	}
	if n > factRows {
		count += ". The first " + strconv.Itoa(factRows)
	}
	shown := make([]string, 0, factRows)
	for _, row := range t.Rows[:min(n, factRows)] {
		shown = append(shown, facts(t, row))
	}
	return count + ": " + strings.Join(shown, "; ") + "."
}

// facts writes one row as "column: value, column: value".
func facts(t *Table, row []json.RawMessage) string {
	cells := make([]string, 0, factColumns)
	for i, v := range row[:min(len(row), factColumns)] {
		cells = append(cells, clip(t.Columns[i].Name)+": "+cell(v))
	}
	if len(row) > factColumns {
		cells = append(cells, "and "+plural(len(row)-factColumns, "more column"))
	}
	return strings.Join(cells, ", ")
}

// cell writes a value: a text as it is, a number without exponent, everything nested as JSON.
func cell(v json.RawMessage) string {
	var text string
	switch {
	case len(v) == 0 || string(v) == "null":
		return "no value"
	case json.Unmarshal(v, &text) == nil:
		return clip(text)
	}
	if f, err := strconv.ParseFloat(string(v), 64); err == nil && bytes.ContainsAny(v, "eE") {
		return clip(strconv.FormatFloat(f, 'f', -1, 64))
	}
	return clip(string(v))
}

// clip puts a text on one line and cuts it.
func clip(text string) string {
	const most = factRunes * utf8.UTFMax * 8 // blanks included; more is never looked at
	cut := len(text) > most
	if cut {
		text = strings.ToValidUTF8(text[:most], "")
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > factRunes {
		runes, cut = runes[:factRunes], true
	}
	if cut {
		return string(runes) + "…"
	}
	return string(runes)
}

// What a person must never read as an answer: an unfilled slot, a tool call, a code block. The rules are those of
// testdata/nl2sql/score.py, and any fence besides.
var (
	placeholder = regexp.MustCompile(`(?i)\[(your|insert|name|value|number|date|amount|company|x+)\b[^\]]*\]|<(value|number|name|insert|your)[^>]*>` +
		`|\{\{.*?\}\}|\bX{2,}\b|\$X\b|lorem ipsum|\bplaceholder\b`)
	toolCall = regexp.MustCompile("(?i)<tool_call>|\"(name|function|tool)\"\\s*:\\s*\"[\\w.]+\"\\s*,\\s*\"(arguments|parameters)\"|database_ask\\s*\\(|```")
)

// presentable gives the text, or what stands in for it when the text (through a cell, a column's name or a quoted piece
// of the model's SQL) looks like something that a person must never read as an answer.
func presentable(text, instead string) string {
	if placeholder.MatchString(text) || toolCall.MatchString(text) || strings.TrimSpace(text) == "" {
		return instead
	}
	return text
}
