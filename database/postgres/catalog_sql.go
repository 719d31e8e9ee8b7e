package postgres

// The catalogue's queries are constants, with the configured schemas as their argument. They see what the role may read:
// relations of its own or granted to it, whole or by columns. Left out are what belongs to an extension, such as
// pg_stat_statements, which shows what others ask, and a partition whose parent is seen, because people query that.
const (
	//
	// A table is guarded when it has row-level security, or a foreign table below it: a plan of one shows paths and names of
	// the other side.
	relationsQuery = `WITH RECURSIVE mine AS MATERIALIZED (
		SELECT c.oid, c.relnamespace, c.relname, c.relkind, c.relispartition
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = ANY ($1::text[]) AND has_schema_privilege(n.oid, 'USAGE')
		AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't' AND has_any_column_privilege(c.oid, 'SELECT')
		AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')),
		far(oid) AS (SELECT i.inhparent FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE c.relkind = 'f'
			UNION SELECT i.inhparent FROM pg_inherits i JOIN far ON far.oid = i.inhrelid)
	SELECT m.oid::int8, n.nspname, m.relname, m.relkind, coalesce(obj_description(m.oid, 'pg_class'), ''),
		row_security_active(m.oid) OR m.oid IN (SELECT oid FROM far)
	FROM mine m JOIN pg_namespace n ON n.oid = m.relnamespace
	WHERE NOT (m.relispartition AND EXISTS (SELECT FROM pg_partition_ancestors(m.oid) a JOIN mine p ON p.oid = a.relid WHERE a.relid <> m.oid))
	ORDER BY n.nspname, m.relname`

	// A domain is shown as its base type, which is also what its values come as.
	columnsQuery = `WITH RECURSIVE domains(oid, base, modifier, required) AS (
			SELECT t.oid, t.typbasetype, t.typtypmod, t.typnotnull FROM pg_type t WHERE t.typtype = 'd'
			UNION ALL SELECT d.oid, t.typbasetype, t.typtypmod, d.required OR t.typnotnull
			FROM domains d JOIN pg_type t ON t.oid = d.base AND t.typtype = 'd'),
		plain AS (SELECT d.oid, d.base, d.modifier, d.required FROM domains d JOIN pg_type t ON t.oid = d.base AND t.typtype <> 'd')
	SELECT a.attrelid::int8, a.attnum, a.attname, format_type(coalesce(p.base, a.atttypid), coalesce(p.modifier, a.atttypmod)),
		NOT (a.attnotnull OR coalesce(p.required, false)), coalesce(col_description(a.attrelid, a.attnum), '')
	FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	LEFT JOIN plain p ON p.oid = a.atttypid
	WHERE n.nspname = ANY ($1::text[]) AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped
	AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')
	ORDER BY a.attrelid, a.attnum`

	keysQuery = `SELECT k.conrelid::int8, k.contype, array_to_json(k.conkey), k.confrelid::int8, coalesce(array_to_json(k.confkey), '[]')
	FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = ANY ($1::text[]) AND k.contype IN ('p', 'f') AND (k.conparentid = 0 OR c.relispartition)
	ORDER BY k.conrelid, k.contype DESC, k.conname`

	extensionsQuery = `SELECT x.extname, n.nspname FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace WHERE x.extname = 'vector'`

	databaseQuery = `SELECT current_database()`

	// changesQuery gives a text that differs when anything did that the queries above depend on: each row of the system
	// tables carries the transaction that wrote it. It costs about 1 µs for each column of the schemas.
	changesQuery = `WITH ns AS (SELECT n.oid, n.xmin FROM pg_namespace n WHERE n.nspname = ANY ($1::text[])),
		rel AS MATERIALIZED (SELECT c.oid, c.xmin FROM pg_class c JOIN ns ON ns.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')),
		rows(source, id, xmin) AS (
			SELECT 1, oid::int8, xmin FROM ns
			UNION ALL SELECT 2, oid::int8, xmin FROM rel
			UNION ALL SELECT 3, a.attrelid::int8 * 2048 + a.attnum, a.xmin FROM pg_attribute a JOIN rel ON rel.oid = a.attrelid WHERE a.attnum > 0
			UNION ALL SELECT 4, k.oid::int8, k.xmin FROM pg_constraint k JOIN rel ON rel.oid = k.conrelid WHERE k.contype IN ('p', 'f')
			UNION ALL SELECT 5, d.objoid::int8 * 2048 + d.objsubid, d.xmin FROM pg_description d JOIN rel ON rel.oid = d.objoid WHERE d.classoid = 'pg_class'::regclass
			UNION ALL SELECT 6, t.oid::int8, t.xmin FROM pg_type t WHERE t.typtype = 'd' OR t.oid IN (SELECT a.atttypid FROM pg_attribute a JOIN rel ON rel.oid = a.attrelid WHERE a.atttypid >= 16384)
			UNION ALL SELECT 7, x.oid::int8, x.xmin FROM pg_extension x
			UNION ALL SELECT 8, m.roleid::int8 * 65536 + m.member::int8, m.xmin FROM pg_auth_members m
			UNION ALL SELECT 10, i.inhrelid::int8 * 16 + i.inhseqno, i.xmin FROM pg_inherits i JOIN rel ON rel.oid = i.inhparent
			UNION ALL SELECT 9, p.polrelid::int8, p.xmin FROM pg_policy p JOIN rel ON rel.oid = p.polrelid)
	SELECT count(*), coalesce(sum(hashint8(source * 1000003 + id)::int8 * 31 + hashint8(xmin::text::int8 * 1000003 + id)), 0)::text,
		current_database(), current_user, (SELECT r.rolsuper OR r.rolbypassrls FROM pg_roles r WHERE r.rolname = current_user)
	FROM rows`
)
