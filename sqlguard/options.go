package sqlguard

import (
	"slices"
	"strconv"
	"strings"

	"sluice/fault"
)

// The defaults and bounds of COPY's numbers. A row group of one row is slow but right; beyond the upper bounds a writer
// would hold more in memory than a gateway should.
const (
	defaultRowGroup = 122880
	maxRowGroup     = 10_000_000 // rows
	defaultFileMB   = 128
	maxFileMB       = 4096 // MB (10^6 bytes)
)

// options reads WITH (NAME = value, …). Each option has a function that reads its value and gives "", or says what is
// wrong. It tells which options were given.
func (r *reader) options(known map[string]func(*reader) string) (map[string]bool, error) {
	given := map[string]bool{}
	if !r.accept("WITH") {
		return given, nil
	}
	if err := r.need("("); err != nil {
		return nil, err
	}
	for {
		t := r.next()
		if !t.word() {
			r.i--
			return nil, r.syntax("the name of an option is missing")
		}
		name := strings.ToUpper(t.text)
		read, ok := known[name]
		switch {
		case !ok:
			return nil, badOption(t, clip(t.text), "is not an option here; there are "+optionNames(known))
		case given[name]:
			return nil, badOption(t, name, "is given twice")
		}
		if err := r.need("="); err != nil {
			return nil, err
		}
		at := r.peek()
		if wrong := read(r); wrong != "" {
			return nil, badOption(at, name, wrong)
		}
		given[name] = true
		if r.accept(")") {
			return given, nil
		}
		if err := r.need(","); err != nil {
			return nil, err
		}
	}
}

func optionNames(known map[string]func(*reader) string) string {
	var names []string
	for n := range known {
		names = append(names, n)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func badOption(at token, name, wrong string) error {
	err := fault.New(fault.Invalid, "sqlguard.Classify", "option %s %s", name, wrong)
	err.Kind, err.Position = "option", at.start+1
	return err
}

func copyOptions(c *Copy) map[string]func(*reader) string {
	mode := string(c.Mode)
	return map[string]func(*reader) string{
		"CONNECTION":   stringOption(&c.Connection),
		"PARTITION_BY": namesOption(&c.PartitionBy),
		"MODE": func(r *reader) string {
			wrong := wordOption(&mode, string(OverwritePartitions), string(Append))(r)
			c.Mode = Mode(mode)
			return wrong
		},
		"COMPRESSION":    wordOption(&c.Compression, "zstd", "snappy", "gzip", "lz4", "none"),
		"ROW_GROUP_SIZE": numberOption(&c.RowGroupSize, maxRowGroup),
		"FILE_TARGET_MB": numberOption(&c.FileTargetMB, maxFileMB),
	}
}

func stringOption(into *string) func(*reader) string {
	return func(r *reader) string {
		s, ok := r.next().literal()
		if !ok || s == "" {
			return "must be a plain string in single quotes"
		}
		*into = s
		return ""
	}
}

// wordOption takes one of a list of words, quoted as a string or bare.
func wordOption(into *string, words ...string) func(*reader) string {
	return func(r *reader) string {
		t := r.next()
		s, ok := t.literal()
		if !ok && t.word() {
			s = t.text
		}
		if s = strings.ToLower(s); !slices.Contains(words, s) {
			return "must be one of " + strings.Join(words, ", ")
		}
		*into = s
		return ""
	}
}

func numberOption(into *int, most int) func(*reader) string {
	return func(r *reader) string {
		t := r.next()
		n, err := strconv.Atoi(t.text)
		if !digits(t.text) || err != nil || n < 1 || n > most {
			return "must be a whole number from 1 to " + strconv.Itoa(most)
		}
		*into = n
		return ""
	}
}

// namesOption takes (name, …). Quoted names keep what is in the quotes.
func namesOption(into *[]string) func(*reader) string {
	const wrong = "must be a list of columns in parentheses"
	return func(r *reader) string {
		if !r.accept("(") {
			return wrong
		}
		for {
			s, ok := r.next().name()
			if !ok {
				return wrong
			}
			*into = append(*into, s)
			if r.accept(")") {
				return ""
			}
			if !r.accept(",") {
				return wrong
			}
		}
	}
}
