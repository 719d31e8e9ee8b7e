package sqlguard

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v6"
	"github.com/pganalyze/pg_query_go/v6/parser"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sluice/fault"
)

// pgTexts are all texts that the tests of this package have: the cases, the golden files, and what fuzzing found.
func pgTexts(t testing.TB) (out []string) {
	for _, c := range pgCases(t) {
		out = append(out, c.SQL)
	}
	golden, err := filepath.Glob(filepath.Join("testdata", "postgres", "*"))
	if err != nil || len(golden) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, path := range golden {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split(string(text), "\n\n") {
			if head, _, ok := strings.Cut(part, "\n----"); ok {
				_, sql, _ := strings.Cut(head, "\n")
				out = append(out, sql)
			}
		}
	}
	found, err := filepath.Glob(filepath.Join("testdata", "fuzz", "FuzzPostgres*", "*"))
	if err != nil || len(found) == 0 {
		t.Fatal("no fuzzed texts", err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, quoted, _ := strings.Cut(string(text), "string(")
		sql, err := strconv.Unquote(strings.TrimSuffix(strings.TrimSpace(quoted), ")"))
		if err != nil {
			t.Fatal(path, err)
		}
		out = append(out, sql)
	}
	return out
}

// forgetAllPlaces clears what a tree says of places in the text, by protobuf's own reflection.
func forgetAllPlaces(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Kind() == protoreflect.Int32Kind && strings.HasSuffix(string(f.Name()), "location"):
			m.Clear(f)
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				forgetAllPlaces(v.List().Get(i).Message())
			}
		default:
			forgetAllPlaces(v.Message())
		}
		return true
	})
}

// slowlySame is what pgSame tells, by the parser's protobuf and protobuf's own comparison.
func slowlySame(t testing.TB, sql string, stmt *pg_query.Node) bool {
	again, err := pg_query.Parse(sql)
	if err != nil || len(again.Stmts) != 1 {
		return false
	}
	a, b := proto.Clone(stmt), proto.Clone(again.Stmts[0].Stmt)
	forgetAllPlaces(a.ProtoReflect())
	forgetAllPlaces(b.ProtoReflect())
	return proto.Equal(a, b)
}

// checkTrees holds pgParse, pgPrinted and pgSame to the library's own Parse and Deparse on a text.
func checkTrees(t testing.TB, sql string) (printed bool) {
	if checkBytes(sql) != nil {
		return false
	}
	want, err := pg_query.Parse(sql)
	got, gotErr := pgParse(sql)
	if err == nil && deeper(want.ProtoReflect(), maxMessages) {
		if gotErr == nil {
			t.Errorf("%.300q nests too deeply, but is read", sql)
		}
		return false
	}
	if (err == nil) != (gotErr == nil) || err == nil && !proto.Equal(got, want) {
		t.Fatalf("%.300q: %v and %v\n%.3000s\n%.3000s", sql, gotErr, err, protojson.Format(got), protojson.Format(want))
	}
	if err != nil || len(want.Stmts) != 1 {
		return false
	}
	text, err := pg_query.Deparse(want)
	if gotText, gotErr := pgPrinted(got); gotText != text || (err == nil) != (gotErr == nil) {
		t.Fatalf("%.300q is printed as\n%.3000s\nwhere the library has\n%.3000s\n%v, %v", sql, gotText, text, gotErr, err)
	}
	again, err2 := parser.ParseToJSON(text)
	if err != nil || err2 != nil {
		return false
	}
	if mine, slow := pgSame(again, got.Stmts[0].Stmt), slowlySame(t, text, want.Stmts[0].Stmt); mine != slow {
		t.Fatalf("%.300q and %.300q: same %t, by the library %t", sql, text, mine, slow)
	}
	return true
}

// TestPostgresTrees: our reading, printing and comparing of trees give what the library's own give.
func TestPostgresTrees(t *testing.T) {
	printed := 0
	for _, sql := range pgTexts(t) {
		if checkTrees(t, sql) {
			printed++
		}
	}
	// Kinds of statements that stand nowhere else, and the characters that JSON escapes.
	for _, sql := range []string{
		"CREATE TABLE a (b int PRIMARY KEY, c text DEFAULT 'x' CHECK (c <> ''), FOREIGN KEY (b) REFERENCES d (e) ON DELETE CASCADE)", "COPY a FROM STDIN",
		"INSERT INTO a (b) VALUES (1), (DEFAULT) ON CONFLICT (b) DO UPDATE SET b = excluded.b WHERE a.b > 0 RETURNING *", "ALTER TABLE a ADD COLUMN b numeric(3,1)[] NOT NULL",
		"MERGE INTO a USING b ON a.x = b.x WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT DEFAULT VALUES", "CREATE INDEX ON a USING gin (b jsonb_path_ops) WHERE c",
		"CREATE FUNCTION f(a int, OUT b text) RETURNS text LANGUAGE sql COST 3.5 AS 'SELECT $1'", "SET a = 'b', 1.5, -2", "DO 'x'", "VACUUM (FULL true) a", "LISTEN a",
		"SELECT E'\\b\\f\\n\\r\\t\\x01\\x7f\"\\\\/<>&\\u2028é', '', U&'\\0041', \"a\"\"b\", \"<é>\" FROM \"\\\"", "SELECT -0, 0, 00, 2147483648, -2147483648, .5, 1e400, true, false, NULL, B'01', X'f'",
	} {
		if checkTrees(t, sql) {
			printed++
		}
	}
	if printed < 250 {
		t.Errorf("only %d texts were printed", printed)
	}
}

// FuzzPostgresTrees is TestPostgresTrees on whatever comes.
func FuzzPostgresTrees(f *testing.F) {
	for _, sql := range pgTexts(f) {
		if len(sql) < 2000 {
			f.Add(sql)
		}
	}
	f.Fuzz(func(t *testing.T, sql string) { checkTrees(t, sql) })
}

// saysSame tells whether a JSON text says what a message does.
func saysSame(text string, m protoreflect.Message) bool {
	l, v := pgLayoutOf(m)
	r := pgReader{s: text}
	return r.message(v, l) && r.at == len(text)
}

func compactJSON(t *testing.T, m protoreflect.Message) string {
	text, err := protojson.Marshal(m.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPostgresSameSeesEachField: a value in any field of any message of the grammar is seen on either side, is read, and
// is printed. Places are not; what no query has makes a difference by itself.
func TestPostgresSameSeesEachField(t *testing.T) {
	fields := 0
	for name, d := range pgNodes() {
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			fields++
			full, empty := newMessage(d), newMessage(d)
			if f.Kind() == protoreflect.DoubleKind {
				full.Set(f, protoreflect.ValueOfFloat64(1))
			} else {
				full = populated(d, f)
			}
			place := f.Kind() == protoreflect.Int32Kind && strings.HasSuffix(string(f.Name()), "location")
			other := f.IsList() && f.Message() == nil || f.Kind() == protoreflect.DoubleKind
			wide := f.Kind() == protoreflect.Int64Kind || f.Kind() == protoreflect.Uint64Kind
			text := compactJSON(t, full)
			if wide {
				text = strings.ReplaceAll(text, `"1"`, `1`) // other JSON than the parser's has them in quotes
			}
			if got := saysSame(text, full); got == other {
				t.Errorf("%s.%s: %s is the same as itself: %t", name, f.Name(), text, got)
			}
			if saysSame(text, empty) != place || saysSame("{}", full) != place {
				t.Errorf("%s.%s: a value is not seen", name, f.Name())
			}
			l, _ := pgLayoutOf(empty)
			read := newMessage(d)
			_, v := pgLayoutOf(read)
			r := pgReader{s: text}
			if ok := r.readMessage(v, l, 10); ok == other || ok && !proto.Equal(read.Interface(), full.Interface()) {
				t.Errorf("%s.%s: %s is read as %v", name, f.Name(), text, read)
			}
			w := pgBytes{}
			_, v = pgLayoutOf(full)
			back := newMessage(d)
			if ok := w.message(v, l); ok == other || ok && proto.Unmarshal(w.b[w.at:], back.Interface()) != nil {
				t.Errorf("%s.%s: printing it gives %t", name, f.Name(), ok)
			} else if ok && !proto.Equal(back.Interface(), full.Interface()) {
				t.Errorf("%s.%s: %v is printed as %v", name, f.Name(), full, back)
			}
		}
	}
	if fields < 1000 {
		t.Errorf("only %d fields", fields)
	}
}

// TestPostgresSameSeesEachChange plants a difference in each part of the trees of the cases: another number, word or name,
// and a part that is missing, twice there, or somewhere else.
func TestPostgresSameSeesEachChange(t *testing.T) {
	planted := 0
	for _, c := range pgCases(t) {
		if c.Verdict != "allow" || len(c.SQL) > 2000 {
			continue
		}
		text, err := parser.ParseToJSON(c.SQL)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := pgParse(c.SQL)
		if err != nil {
			t.Fatal(err)
		}
		stmt := tree.Stmts[0].Stmt
		if tree.Stmts[0].StmtLen != 0 {
			continue // a semicolon, which no printed text has
		}
		plant(stmt.ProtoReflect(), func(what string) {
			planted++
			if pgSame(text, stmt) {
				t.Errorf("%s: %s is not seen in %s", c.ID, what, c.SQL)
			}
		})
		if !pgSame(text, stmt) {
			t.Errorf("%s is not the same as itself", c.ID)
		}
	}
	if planted < 10_000 {
		t.Errorf("only %d differences", planted)
	}
}

// plant makes a change, calls look and takes the change back, for each part of a message.
func plant(m protoreflect.Message, look func(what string)) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Kind() == protoreflect.Int32Kind && strings.HasSuffix(string(f.Name()), "location") {
			return true
		}
		what := string(f.FullName())
		if f.IsList() {
			l := v.List()
			n := l.Len()
			kept := make([]protoreflect.Value, n)
			for i := range n {
				kept[i] = l.Get(i)
			}
			l.Append(kept[n-1])
			look(what + " with one more")
			l.Truncate(n - 1)
			look(what + " with one less")
			l.Append(kept[n-1])
			if n > 1 && !samePlaceless(kept[0], kept[n-1]) {
				l.Set(0, kept[n-1])
				l.Set(n-1, kept[0])
				look(what + " turned around")
				l.Set(0, kept[0])
				l.Set(n-1, kept[n-1])
			}
			for i := range n {
				plant(kept[i].Message(), look)
			}
			return true
		}
		m.Clear(f)
		look(what + " cleared")
		m.Set(f, v)
		switch {
		case f.Message() != nil:
			plant(v.Message(), look)
			return true
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(v.String()+"x"))
			look(what + " longer")
			m.Set(f, protoreflect.ValueOfString(v.String()[1:]))
			look(what + " shorter")
			m.Set(f, protoreflect.ValueOfString(string(v.String()[0]^1)+v.String()[1:]))
		case f.Enum() != nil:
			m.Set(f, protoreflect.ValueOfEnum(v.Enum()+1))
		case f.Kind() == protoreflect.Int32Kind:
			m.Set(f, protoreflect.ValueOfInt32(-int32(v.Int())))
		case f.Kind() == protoreflect.Uint32Kind:
			m.Set(f, protoreflect.ValueOfUint32(uint32(v.Uint())+1))
		case f.Kind() == protoreflect.BoolKind:
			return true // cleared above
		}
		look(what + " another")
		m.Set(f, v)
		return true
	})
}

func samePlaceless(a, b protoreflect.Value) bool {
	x, y := proto.Clone(a.Message().Interface()), proto.Clone(b.Message().Interface())
	forgetAllPlaces(x.ProtoReflect())
	forgetAllPlaces(y.ProtoReflect())
	return proto.Equal(x, y)
}

// TestPostgresReaderRefuses: broken JSON, and what the parser does not write, is no tree and no sameness, and no panic.
func TestPostgresReaderRefuses(t *testing.T) {
	sql := "WITH a AS (SELECT DISTINCT \"b\"\"c\", E'\\n', -5, true FROM d WHERE e IN (1.5, NULL)) SELECT count(*) FILTER (WHERE x) OVER (ORDER BY y DESC) FROM a"
	text, err := parser.ParseToJSON(sql)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := pgParse(sql)
	if err != nil || !pgSame(text, tree.Stmts[0].Stmt) {
		t.Fatal("the whole text", err)
	}
	reads := func(text string) bool {
		l, v := pgLayoutOf((&pg_query.ParseResult{}).ProtoReflect())
		r := pgReader{s: text}
		return r.readMessage(v, l, maxMessages) && r.at == len(text)
	}
	if !reads(text) {
		t.Fatal("the whole text is not read")
	}
	places := regexp.MustCompile(`"([a-z_]*location|version)":[-0-9]+`)
	for i := range text {
		if cut := text[:i]; reads(cut) || pgSame(cut, tree.Stmts[0].Stmt) {
			t.Errorf("%s passes", cut)
		}
		for _, b := range []string{text[:i] + text[i+1:], text[:i] + `"` + text[i:], text[:i] + "}" + text[i:], text[:i] + `\` + text[i:], text[:i] + ",{" + text[i:], text[:i] + "0" + text[i:]} {
			reads(b) // it may be another tree; it only must end
			if pgSame(b, tree.Stmts[0].Stmt) && places.ReplaceAllString(b, "") != places.ReplaceAllString(text, "") {
				t.Errorf("%s is the same", b)
			}
		}
	}
	for name, b := range map[string]string{
		"nothing":             "",
		"no statement":        `{"version":170007,"stmts":[]}`,
		"two statements":      strings.Replace(text, `"stmts":[`, `"stmts":[{"stmt":{"SelectStmt":{}}},`, 1),
		"more after it":       text + " ",
		"a field twice":       strings.Replace(text, `"op":"SETOP_NONE"`, `"op":"SETOP_NONE","op":"SETOP_NONE"`, 1),
		"an unknown field":    strings.Replace(text, `"op":"SETOP_NONE"`, `"op":"SETOP_NONE","later":1`, 1),
		"an unknown word":     strings.Replace(text, `"op":"SETOP_NONE"`, `"op":"SETOP_LATER"`, 1),
		"an unknown message":  strings.Replace(text, `"SelectStmt"`, `"LaterStmt"`, 1),
		"null":                strings.Replace(text, `"op":"SETOP_NONE"`, `"op":null`, 1),
		"spaces":              strings.Replace(text, `,`, `, `, 1),
		"a member too much":   strings.Replace(text, `{"SelectStmt":{`, `{"String":{"sval":"a"},"SelectStmt":{`, 1),
		"a number too large":  strings.Replace(text, `"ival":-5`, `"ival":4294967291`, 1),
		"a number of nothing": strings.Replace(text, `"ival":-5`, `"ival":-`, 1),
	} {
		if b == text || pgSame(b, tree.Stmts[0].Stmt) {
			t.Errorf("%s: the same", name)
		}
		if name != "no statement" && name != "two statements" && reads(b) {
			t.Errorf("%s: is read", name)
		}
	}
	tree.Stmts[0].Stmt.GetSelectStmt().ProtoReflect().SetUnknown(protoreflect.RawFields{0xf8, 0x7f, 1})
	if _, err := pgPrinted(tree); pgSame(text, tree.Stmts[0].Stmt) || err == nil {
		t.Error("a part that the grammar does not know is not seen")
	}
}

// TestPostgresWalksMembers: what a message holds in a oneof of its own is walked as its fields are.
func TestPostgresWalksMembers(t *testing.T) {
	value := &pg_query.Integer{Ival: 1}
	n := &pg_query.Node{Node: &pg_query.Node_AConst{AConst: &pg_query.A_Const{Val: &pg_query.A_Const_Ival{Ival: value}}}}
	w := &pgWalker{req: Request{Catalog: pgFixture(), Profile: ReadOnly}}
	if err := w.expr(n, &scope{}); err != nil {
		t.Fatal(err)
	}
	value.ProtoReflect().SetUnknown(protoreflect.RawFields{0xf8, 0x7f, 1})
	if err := w.expr(n, &scope{}); fault.CodeOf(err) != fault.Refused {
		t.Errorf("a part of a constant that the grammar does not know passes: %v", err)
	}
}
