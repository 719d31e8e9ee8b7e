package lakecopy

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sluice/access"
	"sluice/database"
	"sluice/fault"
	"sluice/sqlguard"
)

// externalLab is a lake with a database that reads it back through external tables.
type externalLab struct {
	*lab
	src *database.Source
}

func newExternalLab(t *testing.T) *externalLab {
	root := filepath.Join(t.TempDir(), "lake")
	l := newLab(t, root, "")
	return &externalLab{l, openSource(t, database.Config{Name: "shop", LakeRoots: []string{root}}, l.service)}
}

// run does a whole statement; a query gives its rows as text.
func (l *externalLab) run(t *testing.T, who access.Principal, text string) (rows [][]string, scans []sqlguard.Scan, err error) {
	t.Helper()
	ctx := t.Context()
	stmt, err := sqlguard.Classify(text)
	switch {
	case err != nil:
		return nil, nil, err
	case stmt.Copy != nil:
		_, err = l.service.Copy(ctx, who, l.src, *stmt.Copy, text)
		return nil, nil, err
	case stmt.Create != nil:
		return nil, nil, l.service.CreateExternal(ctx, who, l.src, *stmt.Create)
	case stmt.Drop != nil:
		return nil, nil, l.service.DropExternal(ctx, who, "shop", *stmt.Drop)
	}
	approved, err := l.src.Approve(ctx, stmt.Query, sqlguard.ReadOnly, mayRead(who, l.src))
	if err != nil {
		return nil, nil, err
	}
	reader, err := l.src.Run(ctx, approved)
	if err != nil {
		return nil, nil, err
	}
	defer reader.Release()
	for reader.Next() {
		batch := reader.RecordBatch()
		for i := range int(batch.NumRows()) {
			var row []string
			for _, column := range batch.Columns() {
				row = append(row, strings.Clone(column.ValueStr(i))) // it lies in the engine's memory
			}
			rows = append(rows, row)
		}
	}
	return rows, approved.Scans(), reader.Err()
}

func (l *externalLab) must(t *testing.T, text string) ([][]string, []sqlguard.Scan) {
	t.Helper()
	rows, scans, err := l.run(t, l.who, text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return rows, scans
}

// The round trip of the demo: copy, make a table on it, read it with one partition opened, drop it.
func TestExternalTable(t *testing.T) {
	l := newExternalLab(t)
	l.must(t, `COPY (SELECT i::INTEGER AS id, DATE '2024-01-01' + (i%5)::INTEGER AS d FROM range(50) r(i)) TO LAKE 't/x' WITH (CONNECTION = 'dest', PARTITION_BY = (d))`)
	l.must(t, `CREATE EXTERNAL TABLE rt (id INTEGER) STORED AS PARQUET LOCATION 't/x' PARTITIONED BY (d DATE) WITH (CONNECTION = 'dest')`)
	rows, scans := l.must(t, `SELECT count(*), sum(id) FROM rt WHERE d = DATE '2024-01-03'`)
	if !reflect.DeepEqual(rows, [][]string{{"10", "245"}}) {
		t.Errorf("rows %v", rows)
	}
	if len(scans) != 1 || scans[0].Opened != 1 || scans[0].Total != 5 {
		t.Errorf("scans %+v", scans)
	}
	// An overwrite of one partition is seen by the next query.
	l.must(t, `COPY (SELECT 1000::INTEGER AS id, DATE '2024-01-03' AS d) TO LAKE 't/x' WITH (CONNECTION = 'dest', PARTITION_BY = (d))`)
	if rows, _ := l.must(t, `SELECT count(*), max(id) FROM rt`); !reflect.DeepEqual(rows, [][]string{{"41", "1000"}}) {
		t.Errorf("after an overwrite: %v", rows)
	}
	l.must(t, `CREATE EXTERNAL TABLE IF NOT EXISTS RT STORED AS PARQUET LOCATION 't/x' WITH (CONNECTION = 'dest')`)
	l.must(t, `DROP EXTERNAL TABLE rt`)
	if _, _, err := l.run(t, l.who, `SELECT * FROM rt`); err == nil {
		t.Error("a dropped table is still there")
	}
	if files := l.service.Connections(); len(files) != 1 {
		t.Errorf("connections %v", files)
	}
	if content := snapshot(t, filepath.Join(l.root, "t")); len(content) != 5 {
		t.Errorf("dropping a table touched its files: %v", names(content))
	}
	l.must(t, `DROP EXTERNAL TABLE IF EXISTS rt`)
}

// Columns that are not declared come from the files, with the types that the engine then really reads.
func TestExternalColumnsFromTheFiles(t *testing.T) {
	l := newExternalLab(t)
	query := `SELECT true AS b, 1::TINYINT AS i1, 2::SMALLINT AS i2, 3::INTEGER AS i4, 4::BIGINT AS i8, 5::UINTEGER AS u4, 1.5::FLOAT AS f4, 2.5::DOUBLE AS f8,
		1.25::DECIMAL(9,2) AS dec, 'x' AS s, 'ab'::BLOB AS raw, DATE '2024-01-01' AS d, TIME '10:00:00' AS tm, TIMESTAMP '2024-01-01 10:00:00' AS ts,
		TIMESTAMPTZ '2024-01-01 10:00:00+00' AS tz, TIMESTAMP_NS '2024-01-01 10:00:00' AS ns, '7d3cf1b4-0d11-4b7e-9a4e-1f2c3d4e5f60'::UUID AS u,
		[1, 2] AS l, {'a': 1, 'b c': 'x'} AS st, MAP {'k': 1} AS m, 'eu' AS region, 7 AS y`
	l.must(t, `COPY (`+query+`) TO LAKE 't/types' WITH (CONNECTION = 'dest', PARTITION_BY = (region, y))`)
	l.must(t, `CREATE EXTERNAL TABLE types STORED AS PARQUET LOCATION 't/types' WITH (CONNECTION = 'dest')`)
	tables, err := l.service.Tables(t.Context(), "shop")
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	table := tables[0]
	files := filesOf(t, table)
	if table.Schema != "main" || table.Name != "types" || len(files) != 1 || !filepath.IsAbs(files[0].Path) {
		t.Errorf("table %+v", table)
	}
	if p := table.External.Partitions; len(p) != 2 || p[0].Name != "region" || p[1].Name != "y" || p[0].Type != "VARCHAR" || *files[0].Values[1] != "7" {
		t.Errorf("partitions %+v", p)
	}
	declared := map[string]string{}
	var list []string
	for _, c := range table.Columns {
		declared[c.Name] = c.Type
		list = append(list, `typeof("`+c.Name+`")`)
	}
	rows, _ := l.must(t, `SELECT `+strings.Join(list, ", ")+` FROM types`)
	for i, c := range table.Columns {
		if !sameType(strings.ReplaceAll(declared[c.Name], `"a"`, "a"), rows[0][i]) {
			t.Errorf("%s is listed as %s and read as %s", c.Name, declared[c.Name], rows[0][i])
		}
	}
}

func TestExternalRefusals(t *testing.T) {
	l := newExternalLab(t)
	l.must(t, `COPY (SELECT 1 AS id, 'eu' AS region) TO LAKE 't/p' WITH (CONNECTION = 'dest', PARTITION_BY = (region))`)
	l.must(t, `COPY (SELECT 1 AS id) TO LAKE 't/flat' WITH (CONNECTION = 'dest')`)
	l.must(t, `CREATE EXTERNAL TABLE taken STORED AS PARQUET LOCATION 't/flat' WITH (CONNECTION = 'dest')`)
	if err := os.WriteFile(filepath.Join(l.root, "t", "bad.parquet"), []byte("PAR1 no PAR1"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("t/flat", filepath.Join(l.root, "alias")); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*access.Principal)) access.Principal {
		who := l.who
		change(&who)
		return who
	}
	create := func(rest string) string {
		return `CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION ` + rest + ` WITH (CONNECTION = 'dest')`
	}
	for sentence, row := range map[string]struct {
		who  access.Principal
		text string
		code fault.Code
		kind Kind
	}{
		"nobody":                          {access.Principal{}, create(`'t/flat'`), fault.Denied, KindAuth},
		"a read_only key":                 {with(func(p *access.Principal) { p.Role = access.ReadOnly }), create(`'t/flat'`), fault.Denied, KindAuth},
		"an agent":                        {with(func(p *access.Principal) { p.Agent = true }), create(`'t/flat'`), fault.Denied, KindAuth},
		"a key of another database":       {with(func(p *access.Principal) { p.Databases = []string{"erp"} }), create(`'t/flat'`), fault.Denied, KindAuth},
		"a path that climbs":              {l.who, create(`'../t'`), fault.Invalid, KindPath},
		"the server's own folder":         {l.who, create(`'.sluice/stage'`), fault.Invalid, KindPath},
		"a managed folder":                {l.who, create(`'tables/x'`), fault.Invalid, KindPath},
		"a link":                          {l.who, create(`'alias'`), fault.Invalid, KindPath},
		"an unknown connection":           {l.who, `CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION 't/flat' WITH (CONNECTION = 'nope')`, fault.Invalid, KindOption},
		"a name that is taken":            {l.who, `CREATE EXTERNAL TABLE Taken STORED AS PARQUET LOCATION 't/flat' WITH (CONNECTION = 'dest')`, fault.Conflict, ""},
		"a name of the database's table":  {l.who, `CREATE EXTERNAL TABLE ITEMS STORED AS PARQUET LOCATION 't/flat' WITH (CONNECTION = 'dest')`, fault.Conflict, ""},
		"no file and no columns":          {l.who, create(`'t/none'`), fault.Conflict, KindSchema},
		"what is no Parquet file":         {l.who, create(`'t'`), fault.Conflict, KindSchema},
		"a column that is not there":      {l.who, `CREATE EXTERNAL TABLE n (nope INTEGER) STORED AS PARQUET LOCATION 't/flat' WITH (CONNECTION = 'dest')`, fault.Conflict, KindSchema},
		"a column of another type":        {l.who, `CREATE EXTERNAL TABLE n (id VARCHAR) STORED AS PARQUET LOCATION 't/flat' WITH (CONNECTION = 'dest')`, fault.Conflict, KindSchema},
		"partitions that are not there":   {l.who, `CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION 't/flat' PARTITIONED BY (d DATE) WITH (CONNECTION = 'dest')`, fault.Conflict, KindSchema},
		"another partition column":        {l.who, `CREATE EXTERNAL TABLE n STORED AS PARQUET LOCATION 't/p' PARTITIONED BY (d DATE) WITH (CONNECTION = 'dest')`, fault.Conflict, KindSchema},
		"a partition column in the files": {l.who, `CREATE EXTERNAL TABLE n (id INTEGER) STORED AS PARQUET LOCATION 't/none' PARTITIONED BY (ID DATE) WITH (CONNECTION = 'dest')`, fault.Invalid, KindColumns},
		"dropping what is not there":      {l.who, `DROP EXTERNAL TABLE nope`, fault.NotFound, ""},
		"dropping by an agent":            {with(func(p *access.Principal) { p.Agent = true }), `DROP EXTERNAL TABLE taken`, fault.Denied, KindAuth},
		"dropping a table of the source":  {l.who, `DROP EXTERNAL TABLE items`, fault.NotFound, ""},
	} {
		_, _, err := l.run(t, row.who, row.text)
		if fault.CodeOf(err) != row.code || kindOf(err) != string(row.kind) {
			t.Errorf("%s: %v (code %v, kind %q)", sentence, err, fault.CodeOf(err), kindOf(err))
		}
	}
	// Declared columns need no file, and the table then has no rows.
	l.must(t, `CREATE EXTERNAL TABLE later (id INTEGER) STORED AS PARQUET LOCATION 't/none' PARTITIONED BY (d DATE) WITH (CONNECTION = 'dest')`)
	tables, err := l.service.Tables(t.Context(), "shop")
	if err != nil || len(tables) != 2 || len(filesOf(t, tables[0])) != 0 || len(tables[0].Columns) != 2 {
		t.Errorf("tables %+v, %v", tables, err)
	}
}

// What lies elsewhere than the table's partition columns say is no part of it.
func TestExternalFiles(t *testing.T) {
	l := newExternalLab(t)
	l.must(t, `COPY (SELECT * FROM (VALUES (1,'a/b'),(2,NULL),(3,''),(4,'NULL')) v(id,p)) TO LAKE 't/x' WITH (CONNECTION = 'dest', PARTITION_BY = (p))`)
	l.must(t, `CREATE EXTERNAL TABLE rt STORED AS PARQUET LOCATION 't/x' WITH (CONNECTION = 'dest')`)
	if err := touch("loose.parquet", "_tmp/p=a/x.parquet", "p=a/.hidden.parquet", "p=a/_x.parquet", "p=a/deeper/x.parquet", "q=1/x.parquet", "p=a/notes.txt")(filepath.Join(l.root, "t", "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(l.root, "t", "x", "p=etc")); err != nil {
		t.Fatal(err)
	}
	tables, err := l.service.Tables(t.Context(), "shop")
	if err != nil || len(tables) != 1 {
		t.Fatalf("tables %v, %v", tables, err)
	}
	got := map[string]bool{}
	for _, f := range filesOf(t, tables[0]) {
		value := "null"
		if f.Values[0] != nil {
			value = "=" + *f.Values[0]
		}
		got[value] = true
		if !strings.HasPrefix(f.Path, l.root+"/t/x/p=") {
			t.Errorf("file %s", f.Path)
		}
	}
	if want := map[string]bool{"=a/b": true, "null": true, "=": true, "=NULL": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("values %v, want %v", got, want)
	}
	rows, _ := l.must(t, `SELECT id, coalesce(p, '<null>') FROM rt ORDER BY id`)
	if want := [][]string{{"1", "a/b"}, {"2", "<null>"}, {"3", ""}, {"4", "NULL"}}; !reflect.DeepEqual(rows, want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
	rows, scans := l.must(t, `SELECT id FROM rt WHERE p IS NULL`)
	if !reflect.DeepEqual(rows, [][]string{{"2"}}) || scans[0].Opened != 1 {
		t.Errorf("the NULL partition: %v, %+v", rows, scans)
	}
	// A name that an engine would expand takes the table away.
	if err := touch("p=a/[x].parquet")(filepath.Join(l.root, "t", "x")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := l.run(t, l.who, `SELECT * FROM rt`); kindOf(err) != string(KindPath) || !strings.Contains(err.Error(), "rt cannot be read") {
		t.Errorf("a pattern in a name: %v", err)
	}
}

func filesOf(t *testing.T, table sqlguard.Table) []sqlguard.ExternalFile {
	t.Helper()
	files, err := table.External.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A folder in trouble, or one that a COPY publishes right now, stops the statements that read it and no others.
func TestExternalTroubleStaysWithItsTable(t *testing.T) {
	l := newExternalLab(t)
	for _, name := range []string{"good", "bad", "busy"} {
		l.must(t, `COPY (SELECT 1 AS id) TO LAKE 't/`+name+`' WITH (CONNECTION = 'dest')`)
		l.must(t, `CREATE EXTERNAL TABLE `+name+` STORED AS PARQUET LOCATION 't/`+name+`' WITH (CONNECTION = 'dest')`)
	}
	if err := os.RemoveAll(filepath.Join(l.root, "t", "bad")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("good", filepath.Join(l.root, "t", "bad")); err != nil {
		t.Fatal(err)
	}
	release, err := l.service.locks.acquire(t.Context(), filepath.Join(l.root, "t", "busy"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`SELECT 1`, `SELECT count(*) FROM items`, `SELECT * FROM good`} {
		l.must(t, text)
	}
	_, _, err = l.run(t, l.who, `SELECT * FROM bad`)
	if f := fault.Public(err); f.Code != fault.Invalid || !strings.Contains(f.Msg, "external table bad cannot be read") || strings.Contains(f.Msg, l.root) {
		t.Errorf("%+v", f)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.src.Approve(gone, `SELECT * FROM busy`, sqlguard.ReadOnly, mayRead(l.who, l.src)); fault.CodeOf(err) != fault.Canceled {
		t.Errorf("while it is published, after the caller left: %v", err)
	}
	release()
	l.must(t, `SELECT * FROM busy`)
}

func TestExplainCopyOfAnExternalTable(t *testing.T) {
	l := newExternalLab(t)
	l.must(t, `COPY (SELECT i AS id, 'eu' AS region FROM range(3) r(i)) TO LAKE 't/x' WITH (CONNECTION = 'dest', PARTITION_BY = (region))`)
	l.must(t, `CREATE EXTERNAL TABLE rt STORED AS PARQUET LOCATION 't/x' WITH (CONNECTION = 'dest')`)
	stmt, err := sqlguard.Classify(`EXPLAIN COPY (SELECT id, region FROM rt WHERE region = 'eu' -- all
		) TO LAKE 't/y' WITH (CONNECTION = 'dest')`)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := l.service.Explain(t.Context(), l.who, l.src, *stmt.Copy)
	if err != nil {
		t.Fatal(err)
	}
	want := []PlanColumn{{"id", "INT64 Int(bitWidth=64, isSigned=true)", false}, {"region", "BYTE_ARRAY String", false}}
	if !reflect.DeepEqual(plan.Columns, want) {
		t.Errorf("columns %+v", plan.Columns)
	}
}

func TestExplainCopy(t *testing.T) {
	l := newExternalLab(t)
	text := `EXPLAIN COPY (SELECT i AS id, 'x' AS s, 'eu' AS region, 1.5::DECIMAL(9,2) AS d, [1] AS l FROM range(1000000000) r(i)) TO LAKE 't/x' WITH (CONNECTION = 'dest', PARTITION_BY = (REGION), COMPRESSION = snappy)`
	stmt, err := sqlguard.Classify(text)
	if err != nil || stmt.Copy == nil {
		t.Fatal(err)
	}
	if _, err := l.service.Copy(t.Context(), l.who, l.src, *stmt.Copy, text); err == nil {
		t.Error("Copy ran an EXPLAIN")
	}
	plan, err := l.service.Explain(t.Context(), l.who, l.src, *stmt.Copy)
	if err != nil {
		t.Fatal(err)
	}
	want := []PlanColumn{{"id", "INT64 Int(bitWidth=64, isSigned=true)", false}, {"s", "BYTE_ARRAY String", false}, {"region", "", true}, {"d", "INT32 Decimal(precision=9, scale=2)", false}, {"l", "STRUCT List", false}}
	if !reflect.DeepEqual(plan.Columns, want) {
		t.Errorf("columns %+v", plan.Columns)
	}
	if plan.Path != "t/x" || plan.Connection != "dest" || plan.Compression != "snappy" || !reflect.DeepEqual(plan.PartitionBy, []string{"region"}) || plan.SQL == "" {
		t.Errorf("plan %+v", plan)
	}
	if files := names(snapshot(t, l.root)); len(files) != 0 {
		t.Errorf("EXPLAIN wrote %v", files)
	}
	agent := l.who
	agent.Agent = true
	if _, err := l.service.Explain(t.Context(), agent, l.src, *stmt.Copy); kindOf(err) != string(KindAuth) {
		t.Errorf("an agent: %v", err)
	}
}

func TestTypeNames(t *testing.T) {
	for declared, read := range map[string]string{
		"int": "INTEGER", "Bigint": "BIGINT", "text": "VARCHAR", "varchar(10)": "VARCHAR", "numeric( 9 , 2 )": "DECIMAL(9,2)", "decimal(9)": "DECIMAL(9,0)",
		"double  precision": "DOUBLE", "timestamptz": "TIMESTAMP WITH TIME ZONE", "int[]": "INTEGER[]", "bool": "BOOLEAN",
	} {
		if !sameType(declared, read) {
			t.Errorf("%s is not %s", declared, read)
		}
	}
	for declared, read := range map[string]string{"int": "BIGINT", "decimal(9,2)": "DECIMAL(9,3)", "timestamp": "TIMESTAMP WITH TIME ZONE", "text": "BLOB", "int[]": "INTEGER"} {
		if sameType(declared, read) {
			t.Errorf("%s is %s", declared, read)
		}
	}
}

// Every type that a COPY takes comes back as it went, alone, in partitions, and as a file without rows. Each row is
// compared as the engine prints it.
func TestRoundTrip(t *testing.T) {
	l := newExternalLab(t)
	uuid := `'7d3cf1b4-0d11-4b7e-9a4e-1f2c3d4e5f60'::UUID`
	expressions := map[string]string{
		"uuid": uuid, "json": `'{"a":[1]}'::JSON`, "uuids": `[` + uuid + `, NULL]`, "jsons": `{'j': '[1]'::JSON, 'n': NULL::JSON}`,
		"fixed": `[1.5, NULL, 2.5]::DOUBLE[3]`, "fixed texts": `['a', 'b']::VARCHAR[2]`, "map": `MAP {'k1': 10, 'k2': NULL}`,
		"deep": `[{'a': [1, 2], 'b': MAP {'x': [DATE '2024-01-01']}}, NULL]`, "hugeint": `123456789012345678901234567890::HUGEINT`,
		"enum": `'paid'::ENUM('new', 'paid')`, "enums": `['new'::ENUM('new', 'paid'), NULL]`, "bits": `'0101'::BIT`, "booleans": `[true, NULL, false]`,
		"time": `TIME '23:59:59.999999'`, "nanoseconds": `TIMESTAMP_NS '2024-03-31 02:30:00.123456789'`, "text": `'größe 年 '`, "bytes": `'\x00\xFF'::BLOB`,
		"unsigned": `18446744073709551615::UBIGINT`, "decimal": `(-12.34)::DECIMAL(38,2)`, "infinite": `'-inf'::DOUBLE`, "small": `1.5::FLOAT`,
	}
	var columns, prints []string
	for name, sql := range expressions {
		if strings.HasPrefix(name, "fixed") { // DuckDB has no CASE for these
			columns = append(columns, sql+` AS "`+name+`"`)
			prints = append(prints, `"`+name+`"::VARCHAR`)
			continue
		}
		columns = append(columns, `CASE WHEN i % 3 = 1 THEN NULL ELSE `+sql+` END AS "`+name+`"`)
		prints = append(prints, `"`+name+`"::VARCHAR`)
	}
	query := `SELECT i, ['eu','us'][(i%2)+1] AS region, ` + strings.Join(columns, ", ") + ` FROM range(10) r(i)`
	list := `SELECT i, ` + strings.Join(prints, ", ") + ` FROM `
	want, _ := l.must(t, list+`(`+query+`) ORDER BY i`)
	for target, by := range map[string]string{"t/flat": "", "t/parts": ", PARTITION_BY = (region)"} {
		l.must(t, `COPY (`+query+`) TO LAKE '`+target+`' WITH (CONNECTION = 'dest'`+by+`)`)
		l.must(t, `CREATE EXTERNAL TABLE back STORED AS PARQUET LOCATION '`+target+`' WITH (CONNECTION = 'dest')`)
		got, _ := l.must(t, list+`back ORDER BY i`)
		for i := range want {
			if i >= len(got) || !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("%s, row %d:\n got %v\nwant %v\n  of %v", target, i, got[min(i, len(got)-1)], want[i], prints)
			}
		}
		l.must(t, `DROP EXTERNAL TABLE back`)
	}
	l.must(t, `COPY (SELECT * FROM (`+query+`) WHERE i < 0) TO LAKE 't/empty' WITH (CONNECTION = 'dest')`)
	l.must(t, `CREATE EXTERNAL TABLE back STORED AS PARQUET LOCATION 't/empty' WITH (CONNECTION = 'dest')`)
	if rows, _ := l.must(t, list+`back`); len(rows) != 0 {
		t.Errorf("an empty result has rows: %v", rows)
	}
}
