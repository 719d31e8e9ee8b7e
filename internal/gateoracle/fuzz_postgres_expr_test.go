package gateoracle

// literals are what an expression may end in.
var literals = map[string][]string{
	"int":   {"1", "2", "-3", "0x1F", "1_000", "7::int", "int '4'", "CAST('5' AS integer)", "NULL::int"},
	"big":   {"1::bigint", "9000000000", "int8 '3'", "NULL::bigint"},
	"num":   {"1.5", "2.25::numeric(10, 2)", "1e3", ".5", "'3.5'::numeric", "numeric '1'", "NULL::decimal"},
	"float": {"1.5::float8", "2e0::double precision", "'NaN'::float", "float8 '0.1'", "1::real::float8"},
	"text":  {"'a'", "'it''s'", "$$x; y$$", "E'a\\n'", "U&'\\0061'", "'nextval(1)'::text", "text 'b'", "''", "'öß'", "NULL::text", "'x'::varchar(3)::text"},
	"bool":  {"true", "false", "NULL::bool", "'t'::boolean", "bool 'no'"},
	"ts":    {"timestamp '2026-01-05 10:00'", "'2026-01-02'::timestamp", "NULL::timestamp", "timestamp(0) '2026-01-05 10:00:00.7'"},
	"tz":    {"timestamptz '2026-01-05 10:00+00'", "'2026-01-02 00:00Z'::timestamp with time zone", "now()", "CURRENT_TIMESTAMP"},
	"date":  {"date '2026-01-05'", "CURRENT_DATE", "'2026-02-01'::date", "NULL::date"},
	"span":  {"interval '1 day'", "'2 hours'::interval", "INTERVAL '1' MONTH", "interval '1-2' year to month"},
	"jsonb": {`'{"a": 1, "b": [1, 2]}'::jsonb`, `jsonb '[1, "x"]'`, "'null'::jsonb", "NULL::jsonb"},
	"json":  {`'{"a": 1}'::json`, "'[1]'::json"},
	"texts": {"ARRAY['a', 'b']", "'{x,y}'::text[]", "ARRAY[]::text[]", "NULL::text[]"},
	"ints":  {"ARRAY[1, 2, 3]", "'{4,5}'::int[]", "ARRAY[]::integer[]"},
	"range": {"int4range(1, 5)", "'[2,3)'::int4range", "'empty'::int4range"},
	"vec":   {"'[1,2,3]'::vector", "'[0,0,1]'::vector(3)", "public.vector '[1,1,1]'"},
	"half":  {"'[1,2,3]'::halfvec"},
	"bytea": {`'\x0102'::bytea`, "decode('ff', 'hex')"},
	"bit":   {"B'0101'", "X'5'", "'0011'::bit(4)"},
	"mood":  {"NULL"},
}

// expressions may pass for a reader: templates in which {int} stands for an expression of that type.
var expressions = map[string][]string{
	"int": {"({int} + {int})", "({int} - {int})", "({int} * 2)", "({int} % 7)", "({int} / 3)", "length({text})", "abs({int})", "coalesce({int}, {int})", "CASE WHEN {bool} THEN {int} ELSE {int} END", "{one}", "array_length({texts}, 1)",
		"cardinality({ints})", "position('a' IN {text})", "({ints})[1]", "extract(year FROM {ts})::int", "({int})::int", "CAST({num} AS integer)", "strpos({text}, 'b')", "greatest({int}, {int}, 1)", "least({int}, 5)", "nullif({int}, 0)",
		"ascii({text})", "char_length({text})", "octet_length({text})", "sign({int})::int", "mod({int}, 5)", "({date} - {date})", "jsonb_array_length('[1,2]'::jsonb)", "({int} & 7)", "({int} | 1)", "({int} # 3)", "(~ {int})",
		"(- {int})", "(@ {int})", "width_bucket({num}, 0, 10, 4)", "lower({range})", "upper({range})", "array_position({ints}, {int})", "num_nonnulls({int}, {text})", "bit_length({text})", "regexp_count({text}, 'a')", "({jsonb} ->> 'a')::int",
		"({int} OPERATOR(pg_catalog.+) {int})", "pg_catalog.abs({int})", "\"abs\"({int})", "ABS({int})", "array_ndims({ints})", "gcd({int}, 6)", "date_part('day', {ts})::int", "json_array_length('[1]'::json)"},
	"big":   {"({big} + {int})", "({big} * 2)", "{int}::bigint", "round({num})::bigint", "coalesce({big}, 1)", "(SELECT count(*) FROM orders WHERE {bool})", "abs({big})", "div({num}, 2)::int8", "factorial({small})::bigint", "floor({float})::bigint"},
	"num":   {"({num} + {num})", "({num} * {int})", "round({num}, 2)", "({num} / 3)", "ceil({num})", "floor({num})", "abs({num})", "power({num}, 2)", "trunc({num}, 1)", "coalesce({num}, 0)", "{int}::numeric", "CASE {text} WHEN 'a' THEN {num} END", "extract(epoch FROM {ts})", "to_number('12', '99')", "greatest({num}, {num})", "({num})::numeric(12, 3)", "sqrt(abs({num}))", "mod({num}, 2)"},
	"float": {"({float} + {float})", "sqrt(abs({float}))", "ln(2.0::float8)", "{int}::float8", "pi()", "sin({float})", "atan2({float}, 1)", "date_part('year', {ts})", "degrees({float})", "({vec} <-> {vec})", "({vec} <=> {vec})", "({vec} <#> {vec})", "({vec} <+> {vec})", "l2_distance({vec}, {vec})", "cosine_distance({vec}, {vec})", "vector_norm({vec})", "({half} <-> {half})", "({vec} OPERATOR(public.<->) {vec})"},
	"text": {"lower({text})", "to_jsonb({row})::text", "({row})::text", "(row_to_json(ROW({int}, {text})) ->> 'f2')", "concat({row}, {text})", "upper({text})", "({text} || {text})", "substring({text} FROM 1 FOR 2)", "substr({text}, 1, 2)", "replace({text}, 'a', 'b')", "trim(BOTH ' ' FROM {text})", "coalesce({text}, 'x')", "concat({text}, {int}, {num})", "concat_ws('-', {text}, {text})", "left({text}, 2)", "right({text}, 1)", "{int}::text", "to_char({ts}, 'YYYY-MM')", "to_char({num}, '999D9')",
		"split_part({text}, ',', 1)", "md5({text})", "initcap({text})", "reverse({text})", "lpad({text}, 5, '0')", "rpad({text}, 4)", "repeat({text}, {small})", "regexp_replace({text}, '[0-9]+', '#', 'g')", "format('%s-%s', {text}, {int})", "CASE WHEN {bool} THEN {text} ELSE {text} END", "({jsonb} ->> 'a')", "({jsonb} #>> '{{b,0}}')", "array_to_string({texts}, ',')", "({texts})[1]",
		"overlay({text} PLACING 'zz' FROM 1 FOR 1)", "translate({text}, 'ab', 'xy')", "chr(65)", "quote_literal({text})", "jsonb_typeof({jsonb})", "nullif({text}, '')", "greatest({text}, 'm')", "({text} COLLATE \"C\")", "encode({bytea}, 'hex')", "to_hex({int})", "starts_with({text}, 'a')::text", "btrim({text}, 'x')", "ltrim({text})", "unistr('a')", "regexp_substr({text}, 'a+')",
		"normalize({text}, NFC)"},
	"bool": {"({int} = {int})", "({int} < {int})", "({row} IS NOT NULL)", "({row} = {row})", "({row} IS DISTINCT FROM NULL)", "({text} = {text})", "({text} LIKE 'a%')", "({num} >= {num})", "NOT {bool}", "({bool} AND {bool})", "({bool} OR {bool})", "({text} IS NULL)", "({int} IS NOT NULL)", "({int} BETWEEN 1 AND {int})", "({int} IN (1, 2, {int}))", "({int} IN ({rows}))", "EXISTS ({rows})", "NOT EXISTS ({texted})", "({text} NOT IN ('x', {text}))", "({int} = ANY ({ints}))", "({int} > ALL (ARRAY[1, 2]))",
		"({text} ILIKE '%B%' ESCAPE '!')", "({text} ~ '^a')", "({text} !~* 'b')", "({text} SIMILAR TO 'a(b|c)%')", "({ts} > {ts})", "({date} <= {date})", "({ts} < {ts} + {span})", "({texts} @> ARRAY['a'])", "({ints} && {ints})", "({jsonb} ? 'a')", "({jsonb} @> '{{\"a\": 1}}')", "({jsonb} @? '$.a')", "({bool} IS TRUE)", "({bool} IS NOT UNKNOWN)", "({int} IS DISTINCT FROM {int})", "(({int}, {text}) = ({int}, {text}))", "(ROW({int}, 1) < ROW(2, {int}))",
		"({range} @> {int})", "({range} && {range})", "isempty({range})", "(({date}, {date}) OVERLAPS ({date}, {date}))", "({int} = SOME ({rows}))", "({int} >= ALL ({rows}))", "(({int}, {text}) IN (SELECT 1, 'a'))", "({jsonb} ?| ARRAY['a'])", "({text} ^@ 'a')", "({int} <> {int})", "({int} != 3)", "({bytea} = {bytea})", "coalesce({bool}, false)", "({text} IS NFC NORMALIZED)", "({text} IS JSON)", "starts_with({text}, 'a')", "isfinite({ts})", "({float} > 1)", "({tz} > {tz})", "({int} BETWEEN SYMMETRIC 5 AND {int})",
		"({text} IN ({texted}))", "jsonb_path_exists({jsonb}, '$.a')", "({ts} IN ({ts}, {ts}))", "({int} NOT BETWEEN 1 AND 2)", "to_tsvector('simple', {text}) @@ to_tsquery('simple', 'a')"},
	"ts":    {"date_trunc('month', {ts})", "({ts} + {span})", "({ts} - {span})", "{date}::timestamp", "greatest({ts}, {ts})", "coalesce({ts}, {ts})", "({tz} AT TIME ZONE 'UTC')", "date_bin('15 minutes', {ts}, timestamp '2001-01-01')", "make_timestamp(2026, 1, 1, 0, 0, 0)", "LOCALTIMESTAMP", "to_timestamp('2026', 'YYYY')::timestamp", "timezone('UTC', {tz})"},
	"tz":    {"({tz} + {span})", "({ts} AT TIME ZONE 'Europe/Paris')", "date_trunc('day', {tz})", "to_timestamp(0)", "{ts}::timestamptz", "least({tz}, {tz})", "make_timestamptz(2026, 1, 1, 0, 0, 0, 'UTC')", "transaction_timestamp()"},
	"date":  {"{ts}::date", "({date} + 1)", "({date} - {small})", "make_date(2026, 1, {small})", "to_date('2026-01-01', 'YYYY-MM-DD')", "CASE WHEN {bool} THEN {date} END", "date({ts})", "CURRENT_DATE"},
	"span":  {"({ts} - {ts})", "({span} * 2)", "age({ts}, {ts})", "make_interval(days => {small})", "justify_days({span})", "({span} + {span})", "age({tz})", "justify_hours({span})"},
	"jsonb": {"jsonb_build_object('a', {int}, 'b', {text})", "to_jsonb({text})", "({jsonb} -> 'a')", "({jsonb} || {jsonb})", "({jsonb} - 'a')", "jsonb_set({jsonb}, '{{a}}', '2')", "jsonb_build_array({int}, {text})", "({jsonb} #> '{{b}}')", "jsonb_path_query_first({jsonb}, '$.b[*]')", "jsonb_strip_nulls({jsonb})", "({jsonb})['a']", "{json}::jsonb", "jsonb_path_query_array({jsonb}, '$.b')", "jsonb_extract_path({jsonb}, 'a')"},
	"json":  {"to_json({int})", "json_build_object('k', {text})", "row_to_json(ROW(1, {text}))", "({json} -> 'a')", "array_to_json({ints})", "JSON_OBJECT('a': {int})", "JSON_ARRAY({int}, {text})", "JSON_ARRAY(SELECT 1)", "json_build_array({int})", "JSON_SCALAR({int})", "JSON('{{}}')"},
	"texts": {"({texts} || 'x'::text)", "string_to_array({text}, ',')", "array_append({texts}, {text})", "ARRAY({texted})", "regexp_split_to_array({text}, 'a')", "({texts})[1:2]", "array_remove({texts}, 'a')", "array_cat({texts}, {texts})", "ARRAY[{text}, {text}]", "regexp_match({text}, 'a')", "array_replace({texts}, 'a', 'b')"},
	"ints":  {"ARRAY[{int}, {int}]", "({ints} || {int})", "array_prepend({int}, {ints})", "ARRAY({rows})", "array_fill({int}, ARRAY[2])", "({ints})[2:]", "trim_array(ARRAY[1, 2], 1)"},
	"range": {"int4range({small}, 20)", "({range} * {range})", "({range} + int4range(1, 3))", "range_merge({range}, {range})"},
	"vec":   {"({vec} + {vec})", "({vec} - {vec})", "({vec} * {vec})", "l2_normalize({vec})", "ARRAY[1, 2, {int}]::vector", "{vec}::vector(3)", "subvector({vec}, 1, 3)"},
	"bytea": {"({bytea} || {bytea})", "sha256({bytea})", "decode(md5({text}), 'hex')", "convert_to({text}, 'UTF8')", "substring({bytea} FROM 1 FOR 1)", "set_byte('\\x01'::bytea, 0, 7)"},
	"bit":   {"({bit} & {bit})", "(~ {bit})"},
}

var aggregates = map[string][]string{
	"int":   {"max({int})", "min({int})", "count(*)::int", "mode() WITHIN GROUP (ORDER BY {int})", "percentile_disc(0.5) WITHIN GROUP (ORDER BY {int})", "bit_or({int})", "(array_agg({int} ORDER BY {int} DESC))[1]"},
	"big":   {"count(*)", "count(DISTINCT {text})", "count({row})", "count({row}) FILTER (WHERE {row} IS NOT NULL)", "sum({int})", "count({int}) FILTER (WHERE {bool})", "regr_count(1, 2)", "rank(3) WITHIN GROUP (ORDER BY {int})", "sum(DISTINCT {int})"},
	"num":   {"sum({num})", "avg({num})", "max({num})", "avg({int})", "sum({num}) FILTER (WHERE {bool})", "round(stddev({num}), 2)", "variance({int})", "sum({big})"},
	"float": {"avg({float})", "percentile_cont(0.5) WITHIN GROUP (ORDER BY {float})", "corr({float}, {float})", "max({float})", "regr_slope({float}, {float})"},
	"text":  {"max({text})", "string_agg({text}, ',' ORDER BY {text})", "min({text})", "mode() WITHIN GROUP (ORDER BY {text})", "string_agg(DISTINCT {text}, '')"},
	"bool":  {"bool_and({bool})", "bool_or({bool})", "every({bool})", "count(*) > 1"},
	"ts":    {"max({ts})", "min({ts})"}, "tz": {"max({tz})", "min({tz})"}, "date": {"max({date})", "min({date})"}, "span": {"sum({span})", "avg({span})"},
	"jsonb": {"jsonb_agg({int})", "jsonb_object_agg('k', {int})", "jsonb_agg({text} ORDER BY {int})"},
	"json":  {"json_agg({int})", "json_object_agg('k', {text})", "JSON_ARRAYAGG({int})", "JSON_OBJECTAGG('k': {int})"},
	"texts": {"array_agg({text})", "array_agg(DISTINCT {text})"}, "ints": {"array_agg({int})", "array_agg({int} ORDER BY {int})"}, "range": {"range_intersect_agg({range})"},
	"vec": {"avg({vec})", "sum({vec})"}, "half": {"avg({half})"}, "bytea": {"string_agg({bytea}, ''::bytea)", "max({bytea})"}, "bit": {"bit_and({bit})"}, "mood": {"NULL"},
}

var windows = map[string][]string{
	"int":   {"lag({int})", "first_value({int})", "ntile(2)", "max({int})", "lead({int}, 1, 0)", "nth_value({int}, 2)"},
	"big":   {"row_number()", "rank()", "dense_rank()", "count(*)", "sum({int})", "count({int}) FILTER (WHERE {bool})"},
	"num":   {"sum({num})", "avg({num})", "lag({num}, 1)"},
	"float": {"percent_rank()", "cume_dist()", "avg({float})"},
	"text":  {"last_value({text})", "max({text})", "lag({text})"},
}

// oddRelations may not be read.
var oddRelations = []string{"hr.salaries", "salaries", "order_items", "v_pay", "public.v_pay", `"Order Summary"`, "HR.Salaries", "postgres.hr.salaries", "pg_class", "pg_catalog.pg_authid", "information_schema.tables", "pg_stat_activity", "pg_settings", "pg_shadow",
	"pg_read_file('/etc/passwd')", "pg_ls_dir('.')", "ROWS FROM (pg_ls_dir('.'))", "query_to_xml('select * from hr.salaries', true, false, '')", "pg_get_keywords()", "dblink('a', 'b')", "leak(NULL)", "public.leak(NULL::orders)", "pg_show_all_settings()",
	"json_populate_record(NULL::hr.salaries, '{}')", "jsonb_populate_recordset(NULL::hr.salaries, '[{}]')", "jsonb_to_recordset('[]') AS x(a hr.salaries)", "XMLTABLE('/a' PASSING '<a/>' COLUMNS b hr.salaries)", "JSON_TABLE('[]', '$' COLUMNS (a hr.salaries PATH '$'))",
	"orders TABLESAMPLE BERNOULLI ((SELECT max(amount) FROM hr.salaries))", "ONLY hr.salaries", "hr.salaries *", "nowhere", "pg_temp.x", "gate_oracle.f()", "(TABLE hr.salaries)", "(SELECT amount FROM hr.salaries)", "(WITH salaries AS (SELECT 1) SELECT * FROM hr.salaries)",
	"pg_toast.pg_toast_1255", "numbers", "public.numbers", "pg_sequences", "current_schemas(true)", "generate_series(1, 100000000)", "pg_locks", "unnest(ARRAY(SELECT employee FROM hr.salaries))", "(DELETE FROM orders RETURNING id)", "pg_catalog.pg_proc", "orders_pkey", "ts_stat('select 1')"}

var oddColumns = []string{"orders.leak", "t1.leak", "t1.pg_column_size", "t1.row_to_json", "t1", "t1.*", "(t1).id", "(t1).leak", "(t1.*)::text", "t1.ctid", "t1.xmin", "t1.tableoid::regclass", "nope", "t1.nope", "public.orders.id", "orders.id", "current_user", "user", "session_user", "current_role",
	"current_catalog", "current_schema", "t1.id.x", "(t1.id).leak", "salaries.amount", "id", "public.t1.id", "t2.text", "t1.spell", "t1.mood::int", "(SELECT (q).leak FROM (SELECT t1 AS q) w)", "(t1).mood::int", "t1.int4", "t1.jsonb", "(ARRAY[t1])[1].leak", "(array_agg(t1))[1].leak", "t1.mood", "mood", "(t1).*"}

// oddExpressions are what a gate refuses, or may refuse.
var oddExpressions = []string{"nextval('numbers')", "currval('numbers')", "lastval()", "setval('public.numbers', 1)", "set_config('work_mem', '64kB', false)", "current_setting('is_superuser')", "pg_advisory_lock(1)", "pg_try_advisory_xact_lock(1)", "pg_sleep(1)", "pg_notify('a', {text})", "txid_current()",
	"pg_current_xact_id()", "pg_backend_pid()", "pg_read_file({text})", "pg_ls_dir('.')", "lo_create(0)", "lo_get(1)", "query_to_xml({text}, true, true, '')", "table_to_xml('hr.salaries', true, true, '')", "database_to_xml(true, true, '')", "ts_rewrite('a'::tsquery, {text})", "leak(t1)", "public.leak(NULL)", "spy(1, 2)", "public.spy({int}, 2)",
	"({int} <~~> {int})", "({int} OPERATOR(public.<~~>) 2)", "({int} OPERATOR(nowhere.+) 2)", "'hr.salaries'::regclass", "{text}::regproc", "to_regclass('hr.salaries')", "pg_typeof({int})", "NULL::hr.salaries", "(NULL::hr.salaries).amount", "ROW(1, 'a', 2)::hr.salaries", "1::positive", "'sad'::mood", "version()", "inet_server_addr()", "has_table_privilege('hr.salaries', 'select')",
	"pg_get_viewdef('v_pay'::regclass)", "obj_description(1)", "pg_relation_size(1)", "pg_terminate_backend(1)", "random()", "gen_random_uuid()", "clock_timestamp()", "pg_catalog.pg_sleep(0)", "(SELECT amount FROM hr.salaries)", "EXISTS (SELECT FROM hr.salaries)", "ARRAY(TABLE hr.salaries)", "({int} = ANY (SELECT id FROM hr.salaries))", "lower(VARIADIC {texts})",
	"\"LOWER\"({text})", "public.lower({text})", "information_schema._pg_truetypid(NULL, NULL)", "pg_catalog.\"nextval\"('numbers')", "U&\"nextv\\0061l\"('numbers')", "xmlparse(document '<a/>')", "xpath('/a', '<a/>')", "cursor_to_xml('a', 1, true, true, '')", "convert_from(pg_read_binary_file('x'), 'UTF8')", "count(*)", "sum({int}) OVER (ORDER BY (SELECT max(id) FROM hr.salaries))",
	"dblink_exec('a')", "loread(1, 1)", "pg_stat_get_activity(NULL)", "pg_export_snapshot()", "setseed(0.1)", "GROUPING(t1.id)", "$7", "$1", "{int}::hr.salaries", "CAST({text} AS pg_catalog.regnamespace)", "repeat('x', 100000000)", "'a'::pg_catalog.refcursor", "int4in('1')", "textin('a')", "pg_input_is_valid('1', 'hr.salaries')", "array_agg({int})", "{text} COLLATE \"nope\"", "OLD.id", "DEFAULT",
	"(SELECT o.leak FROM orders o LIMIT 1)", "(SELECT (o).leak FROM orders o LIMIT 1)", "(SELECT o FROM order_items o LIMIT 1)", "(SELECT leak(o) FROM orders o LIMIT 1)", "now(1)", "lower({int}, 2)", "json_populate_record(NULL::orders, '{{}}')", "MERGE_ACTION()", "(SELECT mood::int FROM tickets LIMIT 1)", "(SELECT max(mood::int) FROM tickets)", "(t1 <~~> t1)", "t1::text::hr.salaries", "(t1 = NULL::hr.salaries)", "jsonb_populate_record(t1, '{{}}')", "(jsonb_populate_record(t1, '{{}}')).leak", "(ARRAY[1])[(SELECT max(id) FROM hr.salaries)]", "nullif(1, (SELECT count(*) FROM v_pay))"}
