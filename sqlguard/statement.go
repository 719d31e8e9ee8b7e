package sqlguard

import (
	"strings"

	"sluice/fault"
)

// Statement is what a caller's text turned out to be, found on its tokens alone. Exactly one field is set.
type Statement struct {
	Query  string // anything that goes to the gate as it is
	Copy   *Copy
	Create *CreateExternal
	Drop   *DropExternal
}

// Copy is COPY (query) TO LAKE 'path' WITH (...).
type Copy struct {
	Explain      bool   // EXPLAIN COPY
	Query        string // the inner text, not yet gated
	QueryAt      int    // 0-based byte offset of the inner text in the statement, for positions
	Path         string
	Connection   string
	PartitionBy  []string
	Mode         Mode
	Compression  string // zstd, snappy, gzip, lz4, none
	RowGroupSize int    // rows
	FileTargetMB int    // MB (10^6 bytes)
}

// Mode says what COPY does with files that are there already.
type Mode string

// The modes.
const (
	OverwritePartitions Mode = "overwrite_partitions"
	Append              Mode = "append"
)

// CreateExternal is CREATE EXTERNAL TABLE.
type CreateExternal struct {
	IfNotExists bool
	Name        string
	Columns     []Column // none: taken from the files
	Location    string
	PartitionBy []Column
	Connection  string
}

// DropExternal is DROP EXTERNAL TABLE.
type DropExternal struct {
	IfExists bool
	Name     string
}

// Classify finds COPY TO LAKE and external-table statements on the token stream. Errors are *fault.Error with code
// Invalid and the position: Kind "option" names a wrong option, Kind "syntax" is all else. Paths, and whether partition
// columns exist and differ, are not judged here.
//
// Strings are plain single-quoted ones, a quote in them is doubled. One trailing semicolon is allowed; a second statement is not.
func Classify(sql string) (Statement, error) {
	toks := scan(sql)
	if n := len(toks); n > 0 && toks[n-1].text == ";" {
		toks = toks[:n-1]
	}
	r := &reader{sql: sql, toks: toks}
	switch {
	case r.ahead("EXPLAIN", "COPY"), r.ahead("COPY"):
		if !toLake(toks) {
			return Statement{Query: sql}, nil
		}
		explain := r.accept("EXPLAIN")
		c, err := r.copyToLake(explain)
		return Statement{Copy: c}, err
	case r.ahead("CREATE", "EXTERNAL"):
		c, err := r.createExternal()
		return Statement{Create: c}, err
	case r.ahead("DROP", "EXTERNAL"):
		d, err := r.dropExternal()
		return Statement{Drop: d}, err
	}
	return Statement{Query: sql}, nil
}

// toLake tells whether TO LAKE stands outside all parentheses.
func toLake(toks []token) bool {
	depth := 0
	for i, t := range toks {
		switch {
		case t.text == "(":
			depth++
		case t.text == ")":
			depth--
		case depth <= 0 && t.is("TO") && i+1 < len(toks) && toks[i+1].is("LAKE"):
			return true
		}
	}
	return false
}

// reader reads tokens one after the other.
type reader struct {
	sql  string
	toks []token
	i    int
}

// peek gives the next token, or an empty one at the end of the text.
func (r *reader) peek() token {
	if r.i < len(r.toks) {
		return r.toks[r.i]
	}
	return token{start: len(r.sql), end: len(r.sql)}
}

func (r *reader) next() token {
	t := r.peek()
	r.i++
	return t
}

func (r *reader) ahead(words ...string) bool {
	for k, w := range words {
		if r.i+k >= len(r.toks) || !r.toks[r.i+k].is(w) {
			return false
		}
	}
	return true
}

// accept takes words, or symbols, when they come next.
func (r *reader) accept(words ...string) bool {
	for k, w := range words {
		if r.i+k >= len(r.toks) {
			return false
		}
		if t := r.toks[r.i+k]; !t.is(w) && t.text != w {
			return false
		}
	}
	r.i += len(words)
	return true
}

func (r *reader) need(words ...string) error {
	if !r.accept(words...) {
		return r.syntax("%s is missing", strings.Join(words, " "))
	}
	return nil
}

func (r *reader) end() error {
	if r.i < len(r.toks) {
		return r.syntax("the statement should end here")
	}
	return nil
}

// syntax is an error at the next token.
func (r *reader) syntax(format string, args ...any) error {
	t := r.peek()
	err := fault.New(fault.Invalid, "sqlguard.Classify", "syntax error: "+format, args...)
	if t.text != "" {
		err.Msg += ", before " + clip(t.text)
	} else {
		err.Msg += " at the end"
	}
	err.Kind, err.Position = kindSyntax, t.start+1
	return err
}

func clip(s string) string {
	if len(s) > 40 {
		return strings.ToValidUTF8(s[:40], "") + "…"
	}
	return s
}

func (r *reader) literal(what string) (string, error) {
	s, ok := r.peek().literal()
	if !ok {
		return "", r.syntax("%s must be a plain string in single quotes", what)
	}
	r.i++
	return s, nil
}

func (r *reader) name(what string) (string, error) {
	s, ok := r.peek().name()
	if !ok {
		return "", r.syntax("%s is missing or not a name", what)
	}
	r.i++
	return s, nil
}

// copyToLake reads COPY (query) TO LAKE 'path' WITH (options).
func (r *reader) copyToLake(explain bool) (*Copy, error) {
	if err := r.need("COPY"); err != nil {
		return nil, err
	}
	if r.peek().text != "(" {
		return nil, r.syntax("COPY … TO LAKE takes a query in parentheses")
	}
	open := r.next()
	depth := 1
	for depth > 0 {
		switch r.peek().text {
		case "":
			return nil, r.syntax("a closing parenthesis is missing")
		case "(":
			depth++
		case ")":
			depth--
		case ";":
			return nil, r.syntax("only one statement may be sent")
		}
		r.i++
	}
	inner := r.sql[open.end:r.toks[r.i-1].start]
	if strings.TrimSpace(inner) == "" {
		return nil, r.syntax("the query is missing")
	}
	if err := r.need("TO", "LAKE"); err != nil {
		return nil, err
	}
	c := &Copy{Explain: explain, Query: inner, QueryAt: open.end, Mode: OverwritePartitions, Compression: "zstd",
		RowGroupSize: defaultRowGroup, FileTargetMB: defaultFileMB}
	var err error
	if c.Path, err = r.literal("the path"); err != nil {
		return nil, err
	}
	at := r.peek()
	given, err := r.options(copyOptions(c))
	if err != nil {
		return nil, err
	}
	if !given["CONNECTION"] {
		return nil, badOption(at, "CONNECTION", "is missing: name the connection to write to")
	}
	return c, r.end()
}

// createExternal reads CREATE EXTERNAL TABLE.
func (r *reader) createExternal() (*CreateExternal, error) {
	c := &CreateExternal{}
	if err := r.need("CREATE", "EXTERNAL", "TABLE"); err != nil {
		return nil, err
	}
	c.IfNotExists = r.accept("IF", "NOT", "EXISTS")
	var err error
	if c.Name, err = r.name("the table's name"); err != nil {
		return nil, err
	}
	if r.peek().text == "(" {
		if c.Columns, err = r.columns(); err != nil {
			return nil, err
		}
	}
	if err := r.need("STORED", "AS", "PARQUET", "LOCATION"); err != nil {
		return nil, err
	}
	if c.Location, err = r.literal("LOCATION"); err != nil {
		return nil, err
	}
	if r.accept("PARTITIONED", "BY") {
		if c.PartitionBy, err = r.columns(); err != nil {
			return nil, err
		}
	}
	at := r.peek()
	given, err := r.options(map[string]func(*reader) string{"CONNECTION": stringOption(&c.Connection)})
	if err != nil {
		return nil, err
	}
	if !given["CONNECTION"] {
		return nil, badOption(at, "CONNECTION", "is missing: name the connection to read from")
	}
	return c, r.end()
}

func (r *reader) dropExternal() (*DropExternal, error) {
	d := &DropExternal{}
	if err := r.need("DROP", "EXTERNAL", "TABLE"); err != nil {
		return nil, err
	}
	d.IfExists = r.accept("IF", "EXISTS")
	var err error
	if d.Name, err = r.name("the table's name"); err != nil {
		return nil, err
	}
	return d, r.end()
}

// columns reads (name type, …). A column may be NULL, so they all are Nullable.
func (r *reader) columns() ([]Column, error) {
	if err := r.need("("); err != nil {
		return nil, err
	}
	var out []Column
	for {
		name, err := r.name("the column's name")
		if err != nil {
			return nil, err
		}
		for _, c := range out {
			if fold(c.Name) == fold(name) {
				r.i--
				return nil, r.syntax("the column %s is named twice", name)
			}
		}
		typ, err := r.typ()
		if err != nil {
			return nil, err
		}
		out = append(out, Column{Name: name, Type: typ, Nullable: true})
		if r.accept(")") {
			return out, nil
		}
		if err := r.need(","); err != nil {
			return nil, err
		}
	}
}

// typ reads a type up to the comma or parenthesis that ends the column: words, numbers, parentheses and brackets only.
// Which types there are is the engine's to say.
func (r *reader) typ() (string, error) {
	var b strings.Builder
	depth := 0
	for {
		t := r.peek()
		switch {
		case t.text == "":
			return "", r.syntax("the column list does not end")
		case depth == 0 && (t.text == "," || t.text == ")"):
			if b.Len() == 0 {
				return "", r.syntax("the column's type is missing")
			}
			return b.String(), nil
		case t.text == "(" || t.text == "[":
			depth++
		case t.text == ")" || t.text == "]":
			depth--
		case t.text == "," || t.word() || digits(t.text):
		default:
			return "", r.syntax("this cannot stand in a type")
		}
		if b.Len() > 0 && (t.word() && !strings.HasSuffix(b.String(), "(")) {
			b.WriteByte(' ')
		}
		if depth == 0 || !t.word() {
			b.WriteString(strings.ToUpper(t.text))
		} else {
			b.WriteString(t.text) // a field of a struct keeps its case
		}
		r.i++
	}
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
