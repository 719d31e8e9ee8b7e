package agent

import (
	"regexp"
	"slices"
	"strings"

	"sluice/sqlguard"
)

// copyWish is a wish in a question to have rows copied into the lake: "export the orders of May to lake exports/may, partitioned
// by status". Code reads where to, how and through which connection; a model gets to see only what is to be copied, and
// writes a SELECT. So nothing that a model read somewhere can choose a destination.
type copyWish struct {
	asked      string // the question as it was asked
	subject    string // what is to be copied, as a question of its own; "" not said, or "them"
	path       string // "" not said
	connection string // "" not said
	around     string // the text around the path, where a connection may be named without the word
	partition  []string
	mode       sqlguard.Mode
	whole      string // the question is itself this COPY statement
}

// copying are verbs that wish a copy when a lake, Parquet or a folder is named with them.
var copying = []string{"copy", "export", "land", "dump", "unload", "save", "write", "store", "put", "append", "archive", "materialize", "materialise"}

const (
	quotes   = "'\"`"
	bare     = `[^\s` + quotes + `]`
	inQuotes = `'[^']*'|"[^"]*"|` + "`[^`]*`"
	ident    = `(?:"[^"]+"|[A-Za-z_]\w*)`
)

var (
	piece     = regexp.MustCompile(`\S+`)
	lakeWords = regexp.MustCompile(`(?i)\b(lake|parquet)\b`)

	slashPath  = regexp.MustCompile(`(?i)\b(?:to|into|in|at|under|lake|folder|path|directory|location)\s*[:=]?\s*(` + inQuotes + `|` + bare + `*/` + bare + `*)`)
	folderName = regexp.MustCompile(`(?i)\b(?:folder|path|directory)\s*[:=]?\s*(\w[\w.=-]*)`)
	lakeName   = regexp.MustCompile(`(?i)\b(?:to|into)\s+(?:the\s+|our\s+)?(?:data\s+)?lake\s+(\w[\w.=-]*)`)
	leadIn     = regexp.MustCompile(`(?i)[\s,]*\b(?:(?:in)?to|in|at|under|on)?\s*(?:(?:the|our|my|a)\s+)?(?:(?:data\s+)?lake\b)?[\s,:]*(?:(?:in|at|under|the|to|folder|path|directory|location|connection\s+\S+)[\s:=]*)*$`)

	connectionThen = regexp.MustCompile(`(?i)[\s,]*(?:\b(?:on|over|via|using|through|with|in|of|at|to)\s+)?(?:\bthe\s+)?\bconnection\s*[:=]?\s*[` + quotes + `]?([\w.-]+)[` + quotes + `]?`)
	thenConnection = regexp.MustCompile(`(?i)[\s,]*(?:\b(?:on|over|via|using|through|with|in|of|at|to)\s+)?(?:\bthe\s+)?[` + quotes + `]?([\w-]+)[` + quotes + `]?\s+connection\b`)
	partitionIn    = regexp.MustCompile(`(?i)[\s,]*\b(?:and\s+)?partition(?:ed)?\s+by\s*\(?\s*(` + ident + `(?:\s*(?:,\s*and\s+|,|\s+and\s+)\s*` + ident + `)*)\s*\)?`)
	modeIn         = regexp.MustCompile(`(?i)[\s,]*(?:\band\s+)?(?:\b(?:in|with)\s+)?(?:\bmode\s+)?\b(append|overwrit|replac)(?:e|ing)?\b(?:\s+mode\b)?(?:\s+(?:to\s+)?what(?:ever)?\s+is\s+there(?:\s+already)?)?`)
	formatIn       = regexp.MustCompile(`(?i)[\s,]*\b(?:as|in)\s+parquet(?:\s+(?:files?|format))?\b`)
	lakeIn         = regexp.MustCompile(`(?i)[\s,]*\b(?:in|of|on|to|into)\s+(?:the\s+|our\s+)?(?:data\s+)?lake\b`)
	separator      = regexp.MustCompile(`(?i)\s*(?:,\s*and\s+|,|\s+and\s+)\s*`)
)

// notNames are words that go on with a sentence where a name could stand.
var notNames = []string{"connection", "on", "with", "using", "via", "over", "as", "in", "partition", "partitioned", "and", "folder", "path", "directory", "append", "appending",
	"overwrite", "overwriting", "replace", "replacing", "please", "to", "into", "at", "under", "through", "mode", "the"}

// pronouns stand for what was asked before.
var pronouns = []string{"it", "them", "this", "that", "these", "those", "the result", "the results", "this result", "that result", "the rows", "these rows", "those rows", "the answer", "the table"}

// copyWishIn reads a wish; ok is false for every other question.
func copyWishIn(question string) (w copyWish, ok bool) {
	w = copyWish{asked: question, mode: sqlguard.OverwritePartitions}
	if stmt, err := sqlguard.Classify(question); err == nil && stmt.Copy != nil && !stmt.Copy.Explain {
		w.whole = strings.TrimSpace(question)
		return w, true
	}
	before, verb, object, ok := splitAtVerb(question)
	if !ok {
		return copyWish{}, false
	}
	start, end := destination(object)
	if start < 0 && !lakeWords.MatchString(object) {
		return copyWish{}, false
	}
	tail := ""
	if start >= 0 {
		w.path = strings.Trim(object[start:end], quotes)
		lead := leadIn.FindStringIndex(object[:start])
		w.around = object[lead[0]:start] + " " + object[end:]
		object, tail = object[:lead[0]], object[end:]
	}
	w.connection, _ = takeName(w.around)
	w.partition, tail = takePartitions(tail)
	_, tail = takeName(tail)
	if m := modeIn.FindStringSubmatch(tail); m != nil && strings.EqualFold(m[1], "append") || verb == "append" {
		w.mode = sqlguard.Append
	}
	for _, cut := range []*regexp.Regexp{modeIn, formatIn, lakeIn} {
		tail = cut.ReplaceAllString(tail, " ")
	}
	for _, cut := range []*regexp.Regexp{formatIn, lakeIn} {
		object = cut.ReplaceAllString(object, " ")
	}
	w.subject = subject(before, object+" "+tail)
	return w, true
}

// takeName reads "connection local" or "the local connection", and gives the text without it.
func takeName(text string) (name, rest string) {
	for _, re := range []*regexp.Regexp{connectionThen, thenConnection} {
		m := re.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		if name = strings.TrimRight(text[m[2]:m[3]], ".-"); !slices.Contains(notNames, strings.ToLower(name)) {
			return name, text[:m[0]] + " " + text[m[1]:]
		}
	}
	return "", text
}

// splitAtVerb finds the verb that a sentence, or a part of one behind "and", begins with, and what stands before and behind.
func splitAtVerb(question string) (before, verb, object string, ok bool) {
	begins, polite := true, true
	for _, at := range piece.FindAllStringIndex(question, -1) {
		w := question[at[0]:at[1]]
		bare := strings.ToLower(strings.Trim(w, `.,;:!?"'()`))
		if begins && slices.Contains(copying, bare) {
			if polite {
				return "", bare, question[at[1]:], true
			}
			return question[:at[0]], bare, question[at[1]:], true
		}
		courteous := slices.Contains(courtesy, bare)
		polite = polite && courteous
		begins = strings.ContainsAny(w[len(w)-1:], ".;!?,") || begins && courteous || slices.Contains([]string{"and", "then", "please"}, bare)
	}
	return "", "", "", false
}

// destination finds the path in what stands behind the verb: -1 when none is named. Of several the last is meant: values that
// are asked about come before it.
func destination(object string) (start, end int) {
	start, end = -1, -1
	for _, m := range slices.Backward(slashPath.FindAllStringSubmatchIndex(object, -1)) {
		text := object[m[2]:m[3]]
		if strings.ContainsAny(text[:1], quotes) {
			preposition := strings.ToLower(object[m[0]:min(m[0]+2, m[1])])
			if !strings.Contains(text, "/") && (preposition == "in" && !strings.HasPrefix(strings.ToLower(object[m[0]:]), "into") || preposition == "at" || preposition == "un") {
				continue // a value
			}
			return m[2], m[3]
		}
		trimmed := strings.TrimRight(text, `.,;:!?)`)
		if strings.Trim(trimmed, "0123456789/-.") == "" && trimmed != "/" {
			continue // a number or a date
		}
		return m[2], m[2] + len(trimmed)
	}
	for _, re := range []*regexp.Regexp{folderName, lakeName} {
		for _, m := range slices.Backward(re.FindAllStringSubmatchIndex(object, -1)) {
			text := strings.TrimRight(object[m[2]:m[3]], ".=-")
			if !slices.Contains(notNames, strings.ToLower(text)) {
				return m[2], m[2] + len(text)
			}
		}
	}
	return start, end
}

// takePartitions reads "partitioned by a, b and c", and gives the text without it.
func takePartitions(text string) (names []string, rest string) {
	m := partitionIn.FindStringSubmatchIndex(text)
	if m == nil {
		return nil, text
	}
	list, end := text[m[2]:m[3]], m[1]
	for at := 0; at < len(list); {
		next, after := len(list), len(list)
		if sep := separator.FindStringIndex(list[at:]); sep != nil {
			next, after = at+sep[0], at+sep[1]
		}
		name := list[at:next]
		if slices.Contains(notNames, strings.ToLower(name)) { // the sentence goes on
			end = m[2] + at
			break
		}
		names, at = append(names, strings.Trim(name, `"`)), after
	}
	return names, text[:m[0]] + " " + text[end:]
}

// subject makes a question of what is to be copied. "" says that none is named.
func subject(before, object string) string {
	tidy := func(s string) string {
		s = strings.Trim(strings.Join(strings.Fields(s), " "), " .,;:!?")
		for _, end := range []string{" and", " then", " please", ","} {
			s = strings.TrimSuffix(s, end)
		}
		return strings.TrimSpace(s)
	}
	before, object = tidy(before), tidy(object)
	if slices.Contains(pronouns, strings.ToLower(object)) {
		object = ""
	}
	switch {
	case before != "" && object != "":
		return before + ": " + object
	case before != "":
		return before
	case object != "":
		return "Show " + object
	}
	return ""
}
