package gateway

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"sluice/agent"
	"sluice/database"
)

// How much of a result a chat shows.
const (
	chatRows    = 50
	chatColumns = 20
	chatRunes   = 200 // of a cell
)

// markdownOf writes an answer for a chat, a piece for each of its parts: the sentence, the table, how much of it is shown, the
// SQL. Cells and names of columns are data: whatever stands in them, it is shown and does nothing.
func markdownOf(a agent.Answer) []string {
	parts := []string{mdParagraphs(a.Text)}
	if a.Outcome == agent.Answered {
		if t := a.Table; t != nil && len(t.Columns) > 0 && len(t.Rows) > 0 {
			table, cut := mdTable(t)
			parts = append(parts, table)
			if note := shownNote(t, cut); note != "" {
				parts = append(parts, "*"+note+"*")
			}
		}
		if a.Verified {
			said := "A person has confirmed the SQL of this question."
			if a.VerifiedBy != "" {
				said = "The SQL of this question was " + mdText(a.Confirmed(), false) + "."
			}
			parts = append(parts, "*"+said+"*")
		}
		if a.SQL != "" {
			fence := backticks(a.SQL, 3)
			parts = append(parts, fence+"sql\n"+a.SQL+"\n"+fence)
		}
	}
	for i := range parts[:len(parts)-1] {
		parts[i] += "\n\n"
	}
	return parts
}

// shownNote says how much of a result is not in the table, "" nothing.
func shownNote(t *agent.Table, cut bool) string {
	var notes []string
	switch rows := len(t.Rows); {
	case t.Truncated:
		notes = append(notes, strconv.Itoa(min(rows, chatRows))+" of more than "+strconv.Itoa(rows)+" rows shown.")
	case rows > chatRows:
		notes = append(notes, strconv.Itoa(chatRows)+" of "+strconv.Itoa(rows)+" rows shown.")
	}
	if n := len(t.Columns); n > chatColumns {
		notes = append(notes, strconv.Itoa(chatColumns)+" of "+strconv.Itoa(n)+" columns shown.")
	}
	if cut {
		notes = append(notes, "Long values are cut.")
	}
	return strings.Join(notes, " ")
}

// mdTable writes a table's first rows and columns; cut says that a value was too long.
func mdTable(t *agent.Table) (text string, cut bool) {
	columns := t.Columns[:min(len(t.Columns), chatColumns)]
	var b strings.Builder
	for _, c := range columns {
		name, long := mdCell(c.Name)
		cut = cut || long
		b.WriteString("| " + name + " ")
	}
	b.WriteString("|\n")
	for _, c := range columns {
		if isNumber(c) && len(columns) > 1 { // alone it would stand far from its name
			b.WriteString("| ---: ")
		} else {
			b.WriteString("| --- ")
		}
	}
	b.WriteString("|")
	for _, row := range t.Rows[:min(len(t.Rows), chatRows)] {
		b.WriteString("\n")
		for _, v := range row[:min(len(row), len(columns))] {
			cell, long := mdCell(cellText(v))
			cut = cut || long
			b.WriteString("| " + cell + " ")
		}
		b.WriteString("|")
	}
	return b.String(), cut
}

var numberTypes = regexp.MustCompile(`^(TINYINT|SMALLINT|INTEGER|INT|BIGINT|HUGEINT|UTINYINT|USMALLINT|UINTEGER|UBIGINT|UHUGEINT|REAL|FLOAT|DOUBLE|DOUBLE PRECISION|(DECIMAL|NUMERIC)(\(.*\))?)$`)

func isNumber(c database.Column) bool { return numberTypes.MatchString(c.Type) }

// cellText writes a JSON value as a person reads it.
func cellText(v json.RawMessage) string {
	var text string
	switch {
	case len(v) == 0 || string(v) == "null":
		return "NULL"
	case json.Unmarshal(v, &text) == nil:
		return text
	}
	if f, err := strconv.ParseFloat(string(v), 64); err == nil && strings.ContainsAny(string(v), "eE") {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return string(v)
}

// mdCell writes a value of a table: on one line, cut at a length, without effect.
func mdCell(text string) (cell string, cut bool) {
	const most = chatRunes * 16 // blanks included; more is never looked at
	if len(text) > most {
		text, cut = strings.ToValidUTF8(text[:most], ""), true
	}
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) > chatRunes {
		runes, cut = runes[:chatRunes], true
	}
	text = mdText(string(runes), false)
	if cut {
		text += "…"
	}
	return text, cut
}

// mdParagraphs writes a text of several lines without effect.
func mdParagraphs(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = mdText(strings.TrimSpace(line), true)
	}
	return strings.Join(lines, "\n")
}

// joiner is a character without width that nothing is made of: between two that would be markup together, it leaves what a
// person sees as it is. Character references would do so by the standard, but Open WebUI shows them as they are written.
const joiner = '\u2060'

// mdText writes one line of text so that nothing in it is markup to the renderers that chat programs have: no HTML, no link or
// image, no emphasis, code, table or formula; begins says that it begins a line of the answer. Much of it is read by programs that
// render nothing, so only what has an effect is changed: single characters by a backslash; where an escaped bracket would begin a
// formula (\[ and \( do, in Open WebUI), or a tag is looked for before anything is rendered, by a joiner.
func mdText(text string, begins bool) string {
	var b strings.Builder
	runes := []rune(text)
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return ' '
		}
		return runes[i]
	}
	for i, r := range runes {
		switch {
		case r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
			r = ' ' // controls, and those that turn the direction of what follows
		case at(i-1) == ']' && strings.ContainsRune("([:", r), // links, references, where they lead
			at(i-1) == '[' && r == '^', // footnotes
			at(i-1) == '{' && r == '{', // a chat program's variables
			at(i-1) == '<' && (letter(r) || strings.ContainsRune("/!?@|", r)),
			at(i-1) == '&' && entity(runes[i:]),
			at(i-1) == '\\' && r > ' ' && r < 0x7f && !word(r):
			b.WriteRune(joiner)
		}
		switch {
		case strings.ContainsRune("\\`*~$|", r),
			r == '_' && !(word(at(i-1)) && word(at(i+1))),
			r == ':' && at(i+1) == '/' && at(i+2) == '/',
			r == '.' && www(runes, i),
			i == 0 && begins && strings.ContainsRune("#+-=>", r),
			begins && (r == '.' || r == ')') && at(i+1) == ' ' && digits(runes[:i]): // a list
			b.WriteRune('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func letter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

func word(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 0x80
}

// entity tells whether what follows an & makes a character reference of it.
func entity(runes []rune) bool {
	for i, r := range runes[:min(len(runes), 32)] {
		switch {
		case r == ';':
			return i > 0
		case !letter(r) && !(r >= '0' && r <= '9') && !(i == 0 && r == '#'):
			return false
		}
	}
	return false
}

// www tells whether the point at i is that of a link without a scheme.
func www(runes []rune, i int) bool {
	return i >= 3 && strings.EqualFold(string(runes[i-3:i]), "www")
}

func digits(runes []rune) bool {
	return len(runes) > 0 && strings.Trim(string(runes), "0123456789") == ""
}

// codeSpan writes a text as code within a line.
func codeSpan(text string) string {
	fence := backticks(text, 1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") {
		text = " " + text + " "
	}
	return fence + text + fence
}

// backticks is a fence that does not stand in the text, of so many at least.
func backticks(text string, least int) string {
	longest, run := 0, 0
	for _, r := range text {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return strings.Repeat("`", max(least, longest+1))
}
