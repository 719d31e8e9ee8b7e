package collection

import (
	"regexp"
	"strings"
)

// kind is what a block of a document is, as far as cutting it goes.
type kind int

const (
	prose kind = iota
	code
	table
)

// block is a part of a document that stays whole where it fits.
type block struct {
	kind    kind
	heading string // those above it, outermost first
	text    string // with line breaks inside, none at the ends
}

const separator = " › "

var (
	atxForm   = regexp.MustCompile(`^ {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#*)?[ \t]*$`)
	fenceForm = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})[^`]*$")
	underForm = regexp.MustCompile(`^ {0,3}(=+|-{2,})[ \t]*$`)
)

// blocks cuts a document into paragraphs, code blocks and tables, and notes the headings above each. A plain text has
// paragraphs only.
func blocks(text, format string) []block {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text), "\n")
	p := &blockParser{markdown: format == FormatMarkdown}
	for i := 0; i < len(lines); i++ {
		i = p.line(lines, i)
	}
	p.end()
	return p.out
}

type blockParser struct {
	markdown bool
	out      []block
	open     []string // lines of the paragraph that goes on
	above    [6]string
}

// line takes a line, or several that belong together, and gives the index of the last one taken.
func (p *blockParser) line(lines []string, i int) int {
	line := lines[i]
	if strings.TrimSpace(line) == "" {
		p.end()
		return i
	}
	if !p.markdown {
		p.open = append(p.open, line)
		return i
	}
	if m := fenceForm.FindStringSubmatch(line); m != nil {
		return p.fence(lines, i, m[1])
	}
	if m := atxForm.FindStringSubmatch(line); m != nil {
		p.end()
		p.head(len(m[1]), m[2])
		return i
	}
	if m := underForm.FindStringSubmatch(line); m != nil && len(p.open) == 1 {
		title := p.open[0]
		p.open = nil
		level := 1
		if m[1][0] == '-' {
			level = 2
		}
		p.head(level, title)
		return i
	}
	if isRow(line) && i+1 < len(lines) && isRule(lines[i+1]) {
		p.end()
		last := i
		for last+1 < len(lines) && isRow(lines[last+1]) {
			last++
		}
		p.add(table, lines[i:last+1])
		return last
	}
	p.open = append(p.open, line)
	return i
}

// fence takes a code block to its closing fence, or to the end.
func (p *blockParser) fence(lines []string, i int, mark string) int {
	p.end()
	last := i + 1
	for last < len(lines) {
		end := strings.TrimSpace(lines[last])
		if len(end) >= len(mark) && strings.Trim(end, mark[:1]) == "" {
			break
		}
		last++
	}
	last = min(last, len(lines)-1)
	p.add(code, lines[i:last+1])
	return last
}

func isRow(line string) bool { return strings.Contains(line, "|") && strings.TrimSpace(line) != "" }

// isRule says whether a line is the one below a table's header.
func isRule(line string) bool {
	return strings.Contains(line, "-") && strings.Contains(line, "|") && strings.Trim(line, "|-: \t") == ""
}

func (p *blockParser) head(level int, title string) {
	p.above[level-1] = cut(strings.Join(strings.Fields(title), " "), maxTitle)
	for i := level; i < len(p.above); i++ {
		p.above[i] = ""
	}
}

func (p *blockParser) end() {
	if len(p.open) > 0 {
		p.add(prose, p.open)
		p.open = nil
	}
}

func (p *blockParser) add(k kind, lines []string) {
	var path []string
	for _, h := range p.above {
		if h != "" {
			path = append(path, h)
		}
	}
	text := strings.Trim(strings.Join(lines, "\n"), "\n")
	if strings.TrimSpace(text) != "" {
		p.out = append(p.out, block{kind: k, heading: strings.Join(path, separator), text: text})
	}
}
