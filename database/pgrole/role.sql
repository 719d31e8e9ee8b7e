-- A role for Sluice that reads these schemas of one database, and can do nothing else:
--   {{list}}
--
-- Run it in that database, as its owner or as a superuser:
--   sluice doctor --print-role-sql | psql -v password='…' 'postgres://admin@host/database'
-- and name the role in the settings:
--   url: "postgres://{{name}}:${PASSWORD}@host:5432/database?sslmode=verify-full"
--
-- It may be run again, as after new tables or functions. It is one transaction: after an error nothing has changed.
--
-- Two things change for other roles. Nobody but a schema's owner may make tables in these schemas any more unless that was
-- granted, which is the rule since PostgreSQL 15; and nobody may call your own functions because everybody may. Roles that
-- need them get them back with: GRANT EXECUTE ON FUNCTION … TO …;
\set ON_ERROR_STOP on
BEGIN;

-- 1. It can log in, and has no other right of its own.
SELECT format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS NOINHERIT', {{text}})
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {{text}}) \gexec
ALTER ROLE {{role}} PASSWORD :'password';

-- 2. It reads every table and view of the schemas, those of tomorrow too, and calls no function of yours: one that is
-- declared SECURITY DEFINER acts with its owner's rights. What an extension brought stays callable.
DO $sluice$
DECLARE
  reader CONSTANT text := {{text}};
  schemas CONSTANT text[] := {{schemas}};
  s text;
  owner text;
  f regprocedure;
BEGIN
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), reader);
  FOREACH s IN ARRAY schemas LOOP
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', s);
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', s, reader);
    EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', s, reader);
    FOR owner IN
      SELECT r.rolname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_roles r ON r.oid = c.relowner
      WHERE c.relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = s) UNION SELECT current_user
    LOOP
      BEGIN
        EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I IN SCHEMA %I GRANT SELECT ON TABLES TO %I', owner, s, reader);
      EXCEPTION WHEN insufficient_privilege THEN
        RAISE WARNING 'tables that % will make in % are not readable by themselves: run this again as % or as a superuser', owner, s, owner;
      END;
    END LOOP;
  END LOOP;
  FOR f IN
    SELECT p.oid FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND has_schema_privilege(reader, n.oid, 'USAGE')
      AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend x WHERE x.classid = 'pg_catalog.pg_proc'::regclass AND x.objid = p.oid AND x.deptype = 'e')
  LOOP
    EXECUTE format('REVOKE EXECUTE ON ROUTINE %s FROM PUBLIC', f);
  END LOOP;
END $sluice$;

-- 3. Its sessions write nothing, wait for little, and find no name but the system's. Sluice sets the same for each statement.
ALTER ROLE {{role}} SET default_transaction_read_only = on;
ALTER ROLE {{role}} SET statement_timeout = '{{timeout}}';
ALTER ROLE {{role}} SET lock_timeout = '10s';
ALTER ROLE {{role}} SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE {{role}} SET search_path = pg_catalog, pg_temp;
-- How much of the disk one session may fill with sorting. Only a superuser can set this one.
DO $sluice$
BEGIN
  ALTER ROLE {{role}} SET temp_file_limit = '4GB';
EXCEPTION WHEN insufficient_privilege THEN
  RAISE WARNING 'temp_file_limit is not set: only a superuser can, with ALTER ROLE {{inside}} SET temp_file_limit = ''4GB''';
END $sluice$;

-- 4. What it could do all the same. A role that was there before may have more than this script gave it.
DO $sluice$
DECLARE
  reader CONSTANT text := {{text}};
  more text;
BEGIN
  SELECT concat_ws(', ', CASE WHEN rolsuper THEN 'SUPERUSER' END, CASE WHEN rolcreatedb THEN 'CREATEDB' END, CASE WHEN rolcreaterole THEN 'CREATEROLE' END,
    CASE WHEN rolreplication THEN 'REPLICATION' END, CASE WHEN rolbypassrls THEN 'BYPASSRLS' END) INTO more
  FROM pg_catalog.pg_roles WHERE rolname = reader;
  IF more <> '' THEN
    RAISE EXCEPTION 'the role % was there before, and is %', reader, more USING HINT = 'take that from it with ALTER ROLE, or choose another name with --role';
  END IF;
  SELECT string_agg(g.rolname, ', ') INTO more FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles g ON g.oid = m.roleid JOIN pg_catalog.pg_roles r ON r.oid = m.member
  WHERE r.rolname = reader;
  IF more <> '' THEN
    RAISE EXCEPTION 'the role % is a member of %, and can become it', reader, more USING HINT = 'REVOKE that, or choose another name with --role';
  END IF;
  SELECT string_agg(c.oid::regclass::text, ', ') INTO more FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND (has_table_privilege(reader, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') OR has_any_column_privilege(reader, c.oid, 'INSERT, UPDATE'));
  IF more <> '' THEN
    RAISE WARNING 'the role % may write to %, which everybody may, or it was granted before', reader, more
      USING HINT = 'REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON … FROM PUBLIC';
  END IF;
END $sluice$;
COMMIT;
