package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"golang.org/x/text/width"
)

// print shows an answer: the table, the sentence, and the SQL where that is wished. What was declined or failed is the
// caller's to tell.
func (a *asking) print(raw json.RawMessage, got answer) error {
	if a.json {
		out := json.NewEncoder(a.out)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return out.Encode(raw)
	}
	if len(got.Rows) > 0 {
		if err := a.table(got); err != nil {
			return err
		}
		if got.Truncated {
			fmt.Fprintf(a.notes, "%d rows, cut: there are more\n", len(got.Rows))
		}
	}
	if got.Outcome == "answered" || got.Outcome == "copy_requested" {
		if _, err := fmt.Fprintln(a.out, printable(got.Answer)); err != nil {
			return err
		}
	}
	switch {
	case got.Verified && got.By != "":
		fmt.Fprintln(a.notes, "the SQL of this question was confirmed by "+oneLine(got.By)+" on "+got.At.UTC().Format(time.DateOnly))
	case got.Verified:
		fmt.Fprintln(a.notes, "a person has confirmed the SQL of this question")
	}
	if a.sql && got.SQL != "" {
		_, err := fmt.Fprintln(a.out, "\n"+printable(got.SQL))
		return err
	}
	return nil
}

// table prints the rows: whole where programs may read them, fitted to the window on a terminal.
func (a *asking) table(got answer) error {
	if a.width == nil {
		return printRows(a.out, got.Columns, got.Rows)
	}
	header := make([]string, len(got.Columns))
	right := make([]bool, len(got.Columns))
	for i, c := range got.Columns {
		header[i], right[i] = strings.ReplaceAll(printable(c.Name), "\n", " "), numeric.MatchString(c.Type)
	}
	rows := make([][]string, len(got.Rows))
	for i, r := range got.Rows {
		for _, v := range r {
			rows[i] = append(rows[i], cell(v))
		}
	}
	_, err := io.WriteString(a.out, fitted(header, rows, right, a.width()))
	return err
}

var numeric = regexp.MustCompile(`^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|UINTEGER|REAL|FLOAT|DOUBLE( PRECISION)?|(DECIMAL|NUMERIC).*)$`)

const (
	gap       = 2 // columns between two of the table
	narrowest = 5 // a column of the table that was made narrower
)

// fitted writes a table into so many columns of a terminal: the widest columns give way first. Where they cannot, each row
// becomes lines of "name value".
func fitted(header []string, rows [][]string, right []bool, most int) string {
	widths := make([]int, len(header))
	total := gap * (len(header) - 1)
	for i, h := range header {
		widths[i] = span(h)
		for _, r := range rows {
			if i < len(r) {
				widths[i] = max(widths[i], span(r[i]))
			}
		}
		total += widths[i]
	}
	for total > most {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= narrowest {
			return records(header, rows, most)
		}
		widths[widest]--
		total--
	}
	var b strings.Builder
	for _, r := range append([][]string{header}, rows...) {
		line := ""
		for i, text := range r[:min(len(r), len(widths))] {
			if i > 0 {
				line += strings.Repeat(" ", gap)
			}
			text = clipped(text, widths[i])
			blanks := strings.Repeat(" ", widths[i]-span(text))
			if right[i] {
				line += blanks + text
			} else {
				line += text + blanks
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func records(header []string, rows [][]string, most int) string {
	longest := 0
	for _, h := range header {
		longest = max(longest, span(h))
	}
	longest = min(longest, most/2)
	var b strings.Builder
	for n, r := range rows {
		if n > 0 {
			b.WriteString("\n")
		}
		for i, text := range r[:min(len(r), len(header))] {
			name := clipped(header[i], longest)
			b.WriteString(name + strings.Repeat(" ", longest-span(name)+gap) + clipped(text, max(narrowest, most-longest-gap)) + "\n")
		}
	}
	return b.String()
}

// span is how many columns of a terminal a text takes: CJK characters take two.
func span(text string) int {
	n := 0
	for _, r := range text {
		n += runeSpan(r)
	}
	return n
}

func runeSpan(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// clipped cuts a text to so many columns and shows that it did.
func clipped(text string, most int) string {
	if span(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeSpan(r); n > most-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// steps shows what an ask is doing: on a terminal in one line, which is gone when the answer comes; else a line for each.
type steps struct {
	out    io.Writer
	width  func() int
	silent bool
	shown  bool
}

func (s *steps) show(stage, text string) {
	text = printable(text)
	switch {
	case s.silent:
	case s.width == nil:
		fmt.Fprintf(s.out, "%-9s %s\n", stage, strings.ReplaceAll(text, "\n", "\n          "))
	default:
		s.shown = true
		fmt.Fprint(s.out, "\r\x1b[K"+dim+clipped(strings.Join(strings.Fields(stage+" "+text), " "), s.width()-1)+plain)
	}
}

func (s *steps) clear() {
	if s.shown {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}
