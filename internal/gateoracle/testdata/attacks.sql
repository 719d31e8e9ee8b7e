-- One statement a line: what gates forget, and what this one did. Each is judged under every profile; all are material for the mutation.
SELECT mood::int FROM tickets
SELECT CAST(t.mood AS int) FROM tickets t
SELECT int4(mood) FROM tickets
SELECT o.leak FROM orders o
SELECT (o).leak FROM orders o
SELECT leak FROM orders
SELECT (SELECT o).leak FROM orders o
SELECT ((o)).id, (o).* FROM orders o
SELECT (ARRAY[o])[1].leak FROM orders o
SELECT (ARRAY(SELECT o FROM orders o))[1].leak
SELECT (array_agg(o))[1].leak FROM orders o
SELECT x.leak FROM (SELECT o FROM orders o) y(x), LATERAL (SELECT (x).*) z
SELECT (y.x).leak FROM (SELECT o FROM orders o) y(x)
SELECT y.x.leak FROM (SELECT o FROM orders o) y(x)
SELECT (x).leak FROM (SELECT o AS x FROM orders o) y
SELECT (coalesce(o, o)).leak FROM orders o
SELECT (CASE WHEN true THEN o END).leak FROM orders o
SELECT (max(o.*)).leak FROM orders o
SELECT (lag(o) OVER ()).leak FROM orders o
SELECT v.leak FROM v_orders v
SELECT (ROW(1,2)).f1.leak
SELECT (jsonb_populate_record(o, '{}')).leak FROM orders o
SELECT (jsonb_populate_record(NULL::orders, '{}')).id
SELECT r.leak FROM jsonb_populate_record(NULL::orders, '{}') r
SELECT r.* FROM orders o, jsonb_populate_record(o, '{}') r
SELECT r.leak FROM orders o, jsonb_populate_record(o, '{}') r
SELECT r.leak FROM orders o, unnest(ARRAY[o]) r
SELECT r.id FROM orders o, unnest(ARRAY[o]) r
SELECT o.name FROM orders o
SELECT o.text FROM orders o
SELECT (o).text FROM orders o
SELECT o.row_to_json FROM orders o
SELECT o.pg_column_size FROM orders o
SELECT t.count FROM (SELECT 1 AS a) t
SELECT x.lower FROM (SELECT 'a' AS b) x
SELECT x.b.lower FROM (SELECT 'a' AS b) x
SELECT (x.b).lower FROM (SELECT 'a'::text AS b) x
SELECT g.abs FROM generate_series(1,3) g
SELECT g.g FROM generate_series(1,3) g
SELECT g FROM generate_series(1,3) g
SELECT k.key, k.lower FROM jsonb_each('{}') k
SELECT x.lower FROM unnest(ARRAY['A']) x
SELECT (x).lower FROM unnest(ARRAY['A']) x
SELECT x.leak FROM unnest(ARRAY['A']) WITH ORDINALITY x
SELECT o.tableoid::regclass FROM orders o
SELECT ctid, xmin, tableoid FROM orders
SELECT orders.* FROM orders WHERE orders = orders
SELECT orders::text FROM orders
SELECT o::text FROM orders o
SELECT lower(o::text) FROM orders o
SELECT row_to_json(o) FROM orders o
SELECT to_jsonb(o) - 'id' FROM orders o
SELECT count(o) FROM orders o
SELECT 'now'::timestamptz
SELECT 'today'::date
SELECT 'now'::text
SELECT date 'now'
SELECT * FROM orders ORDER BY total USING <
SELECT * FROM orders ORDER BY total USING OPERATOR(public.<~~>)
SELECT 1 OPERATOR(public.<~~>) 2
SELECT 1 <~~> 2
SELECT id = ANY (ARRAY[1]) FROM orders
SELECT 1 OPERATOR(pg_catalog.=) ANY (ARRAY[1])
SELECT 1 OPERATOR(public.<~~>) ANY (ARRAY[1])
SELECT (1,2) OPERATOR(public.<~~>) (3,4)
SELECT 'a' LIKE 'b' ESCAPE (SELECT employee FROM hr.salaries)
SELECT ARRAY[1,2] OPERATOR(pg_catalog.||) 3
SELECT 'abc' COLLATE "hr.x"
SELECT 'abc' COLLATE hr."x"
SELECT 'abc' COLLATE pg_catalog."default"
SELECT 'abc' COLLATE "de-x-icu"
SELECT '1'::public.positive
SELECT '1'::positive
SELECT 'x'::"char", 'x'::char, 'x'::bpchar, 'x'::name
SELECT 'a'::pg_catalog."char"
SELECT '1'::oid, '1'::xid, '(0,1)'::tid
SELECT '{1}'::_int4
SELECT 'x'::information_schema.sql_identifier
SELECT 'x'::unknown
SELECT '1'::money, '1.1.1.1'::inet, '08:00:2b:01:02:03'::macaddr
SELECT '(1,2)'::point <-> '(3,4)'::point
SELECT xmlelement(name a, xmlattributes(1 AS b))
SELECT xmlforest(id) FROM orders
SELECT xpath('/a', '<a>x</a>'::xml)
SELECT * FROM XMLTABLE('/a' PASSING '<a/>'::xml COLUMNS b text)
SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a int PATH '$'))
SELECT * FROM JSON_TABLE('[1]', '$[*]' COLUMNS (a int PATH '$' DEFAULT (SELECT amount FROM hr.salaries) ON EMPTY))
SELECT JSON_VALUE('{"a":1}', '$.a' PASSING (SELECT max(id) FROM hr.salaries) AS x)
SELECT JSON_QUERY('{"a":1}', '$.a' RETURNING orders)
SELECT JSON_VALUE('1', '$' RETURNING regclass)
SELECT JSON_SERIALIZE('{}' RETURNING bytea)
SELECT '1' IS JSON SCALAR WITH UNIQUE KEYS
SELECT xmlserialize(CONTENT '<a/>'::xml AS orders)
SELECT xmlserialize(CONTENT '<a/>'::xml AS text)
SELECT * FROM orders TABLESAMPLE system (10) REPEATABLE (1)
SELECT * FROM orders TABLESAMPLE public.spy (10)
SELECT * FROM ONLY orders
SELECT * FROM orders *
SELECT * FROM test.public.orders
SELECT public.orders.id FROM public.orders
SELECT public.orders.id FROM orders
SELECT public.o.id FROM orders o
SELECT hr.salaries.amount FROM orders
WITH t AS (SELECT * FROM orders) SELECT t.leak FROM t
WITH RECURSIVE t(leak) AS (SELECT 1 UNION ALL SELECT leak+1 FROM t WHERE leak<3) SELECT leak, t.leak FROM t
WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a+1 FROM t WHERE a<3) SEARCH BREADTH FIRST BY a SET leak SELECT t.leak FROM t
WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a+1 FROM t WHERE a<3) CYCLE a SET c TO 1 DEFAULT 0 USING p SELECT t.c, t.p FROM t
WITH x AS (WITH y AS (SELECT 1 a) SELECT * FROM y) SELECT * FROM y
WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a
WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1 AS q) SELECT * FROM a
SELECT * FROM (WITH hr AS (SELECT 1) SELECT * FROM hr) q
(WITH x AS (SELECT 1 AS a) SELECT * FROM x) UNION SELECT id FROM x
WITH "Orders" AS (SELECT 1 AS z) SELECT * FROM orders
WITH orders AS (SELECT 1 AS z) SELECT orders.leak FROM orders
SELECT a.*, b.* FROM orders a JOIN orders b USING (id)
SELECT j.id, j.leak FROM (orders a JOIN orders b USING (id)) j
SELECT j.id FROM orders a JOIN orders b USING (id) AS j
SELECT j.leak FROM orders a JOIN orders b USING (id) AS j
SELECT a.leak FROM (orders a JOIN orders b USING (id)) AS j
SELECT * FROM orders NATURAL JOIN order_items
SELECT * FROM orders o(leak) WHERE o.leak = 1
SELECT o.id FROM orders o(leak)
SELECT * FROM orders, LATERAL (SELECT orders.leak) x
SELECT f.* FROM public.leak(NULL) f
SELECT * FROM pg_catalog.generate_series(1,2) AS (a int)
SELECT * FROM json_to_record('{}') AS x(a orders)
SELECT * FROM json_to_record('{}') AS x(a public.mood)
SELECT * FROM json_populate_recordset(NULL::orders, '[]')
SELECT GROUPING(status) FROM orders GROUP BY status
SELECT ts_headline('simple', 'a b', 'a'::tsquery)
SELECT 'a'::tsvector @@ 'a'::tsquery
SELECT lo_get(1)
SELECT array_agg(o ORDER BY o.leak) FROM orders o
SELECT sum(total) OVER (ORDER BY o.leak) FROM orders o
SELECT 1 FROM orders o GROUP BY o.leak
SELECT 1 FROM orders o HAVING max(o.leak) > 'a'
SELECT DISTINCT ON (o.leak) 1 FROM orders o
SELECT 1 FROM orders o LIMIT (SELECT count(o.leak) FROM orders o)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY o.leak) FROM orders o
SELECT count(*) FILTER (WHERE o.leak = 'x') FROM orders o
SELECT 1 FROM orders o WINDOW w AS (ORDER BY o.leak)
SELECT 1 FROM orders o FULL JOIN customers c ON o.leak = c.name
SELECT (tags[o.leak::int]) FROM products o
SELECT VARIADIC ARRAY[1]
SELECT concat(VARIADIC ARRAY['a','b'])
SELECT make_interval(days => 3, hours := 2)
SELECT lower(string => 'A')
SELECT set_config(setting_name => 'a.b', new_value => 'c', is_local => true)
SELECT * FROM (SELECT 1 UNION SELECT 2) AS "pg_class"
SELECT EXISTS (TABLE hr.salaries)
SELECT array(TABLE hr.salaries)
TABLE v_pay
SELECT * FROM pg_temp.orders
SELECT current_setting('x')
SELECT MERGE_ACTION()
SELECT 1 INTO TEMP x
SELECT overlay('abc' PLACING 'x' FROM 1), extract(epoch FROM now()), position('a' IN 'b'), trim(LEADING 'x' FROM 'xy')
SELECT EXTRACT(hr.x FROM now())
SELECT EXTRACT(nonsense FROM placed_at) FROM orders
SELECT normalize('a', NFKD), 'a' IS NFKD NORMALIZED
SELECT now() AT LOCAL
SELECT timezone('Europe/Paris', now())
SELECT U&"\006eextval"('numbers')
SELECT U&'d\0061t' UESCAPE '\'
SELECT "nextval"('numbers')
SELECT pg_catalog.  nextval  ('numbers')
SELECT * FROM generate_series(1, 1000000000)
SELECT repeat('x', 1000000000)
SELECT embedding <-> '[1,2,3]' FROM items ORDER BY 1
SELECT embedding OPERATOR(public.<->) '[1,2,3]' FROM items
SELECT public.l2_distance(embedding, embedding) FROM items
SELECT halfvec '[1]', sparsevec '{1:1}/3', '[1]'::vector::halfvec
SELECT embedding::text, embedding::real[] FROM items
SELECT binary_quantize(embedding) <~> B'101' FROM items
SELECT subvector(embedding, 1, 2), vector_dims(embedding), vector_out(embedding) FROM items
SELECT 't'::boolean, bool 'no'
SELECT u.a FROM unnest(ARRAY[1], ARRAY['x']) AS u(a, b)
SELECT embedding + embedding, embedding || '[1]', embedding * '[1,1,1]' FROM items
SELECT id FROM items WHERE embedding = '[1,1,2]' OR '[1,1,2]' <> embedding
SELECT avg(embedding), sum(half) FROM items
SELECT 'a'::tsquery <-> 'b'::tsquery
VALUES ('one'), (2, 'two')
SELECT *
SELECT fromc5 FROM (VALUES (NULL)) JOIN unnest(NULL::text[]) ON true
SELECT 1 FROM tickets JOIN public.orders USING (id) AS "J3"
SELECT (ARRAY(SELECT 1))[:]
SELECT JSON_ARRAY(SELECT 1)
SELECT 1 UNION SELECT 1, 2
SELECT id FROM orders UNION SELECT * FROM orders
INSERT INTO orders VALUES (1) RETURNING *
WITH d AS (DELETE FROM orders RETURNING id) SELECT * FROM d
SELECT * FROM orders FOR UPDATE
SELECT (NOT (id > 1)) IS NULL, (id IS DISTINCT FROM 2) IS TRUE, (id > 1 AND total IS NULL) IS NOT NULL FROM orders
SELECT true = (id IN (SELECT 1)), (NOT EXISTS (SELECT 1)) IN (true), 'true' LIKE (id IS NULL)::text FROM orders
SELECT (ARRAY(SELECT id FROM orders))[1], (COALESCE(tags, '{}'))[1], (CASE WHEN true THEN tags END)[:] FROM products
SELECT "J 3".*, "J 3" FROM orders JOIN customers USING (id) AS "J 3"
SELECT x::int FROM (SELECT mood AS x FROM tickets) y
SELECT (array_agg(mood))[1]::int FROM tickets
SELECT x = '[1,2,3]' FROM (SELECT embedding AS x FROM items) y WHERE x < x
SELECT embedding = ANY (SELECT embedding FROM items), embedding IN (SELECT embedding FROM items) FROM items
SELECT embedding IN ('[1,2,3]') FROM items
SELECT 1 OPERATOR(public.=) 2
SELECT pg_typeof.pg_typeof FROM orders o, unnest(ARRAY[o]) AS pg_typeof
SELECT pg_column_size.pg_column_size FROM (SELECT array_agg(o) AS a FROM orders o) x, unnest(a) AS pg_column_size
SELECT c.row_to_json FROM orders o, coalesce(o, o) AS c
SELECT * FROM json_to_record('{}') x
WITH RECURSIVE r(x, n) AS (SELECT ROW(1), 1 UNION ALL SELECT ROW(x), n + 1 FROM r WHERE n < 20) SELECT x FROM r
SELECT id FROM orders WHERE placed_at < 'now'
SELECT u::int FROM tickets, unnest(ARRAY[mood]) u
SELECT y.leak FROM (SELECT o.* AS leak FROM orders o) y
