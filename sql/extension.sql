--
-- The extension and the lock table, for this test and all others; what the
-- extension consists of; helpers that the other tests use.
--
CREATE EXTENSION ddblock;
SET client_min_messages = warning;	-- the table may be there already
SELECT ddb_lock_table_create();
RESET client_min_messages;

-- Once more does no harm.
SELECT ddb_lock_table_create();

-- Only a superuser may create the extension, and it can live in any schema.
SELECT superuser, trusted, relocatable, schema
  FROM pg_available_extension_versions
 WHERE name = 'ddblock' AND installed;

-- The functions: none is for PUBLIC, and none runs in a parallel worker.  Those that
-- only read shared memory are cheap: a query calls all others last.
SELECT p.oid::regprocedure AS function,
       provolatile AS volatility, proparallel AS parallel,
       proisstrict AS strict, procost AS cost, prosecdef AS security_definer,
       has_function_privilege('public', p.oid, 'EXECUTE') AS public
  FROM pg_proc p
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
 WHERE d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
 ORDER BY p.proname COLLATE "C", p.pronargs;

\pset format unaligned
\pset tuples_only on
SELECT format('%s(%s)%s', proname, pg_get_function_arguments(p.oid),
              ' returns ' || pg_get_function_result(p.oid))
  FROM pg_proc p
  JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
 WHERE d.deptype = 'e' AND p.prorettype <> 'record'::regtype
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
 ORDER BY p.proname COLLATE "C", p.pronargs;
\pset tuples_only off
\pset format aligned

-- What returns rows.
\d ddb_locks
\d ddb_stats
\d ddb_operations
\d ddb_status
\d ddb_fences
SELECT column_name, type
  FROM pg_proc,
       unnest(proargnames, proallargtypes::regtype[], proargmodes)
           AS c (column_name, type, mode)
 WHERE proname = 'ddb_lock_info' AND mode = 'o';

SELECT c.oid::regclass AS relation,
       has_table_privilege('public', c.oid, 'SELECT, INSERT, UPDATE, DELETE') AS public
  FROM pg_class c
  JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
 WHERE d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
 ORDER BY c.relname COLLATE "C";

-- Every object has a comment: none is listed here.
SELECT pg_describe_object(d.classid, d.objid, 0) AS without_comment
  FROM pg_depend d
 WHERE d.deptype = 'e'
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
   AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass)
   AND obj_description(d.objid, (SELECT relname FROM pg_class WHERE oid = d.classid)) IS NULL;
SELECT attrelid::regclass AS relation, attname AS column_without_comment
  FROM pg_attribute
  JOIN pg_class c ON c.oid = attrelid AND relkind <> 'S'
  JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = attrelid
 WHERE d.deptype = 'e' AND attnum > 0
   AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
   AND col_description(attrelid, attnum) IS NULL;
SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'ddblock';

--
-- Helpers
--
-- A lock that nobody frees fails one test, and does not hang them all.
SELECT current_database() AS database \gset
ALTER DATABASE :"database" SET statement_timeout = '60 s';

-- How a statement fails.
CREATE FUNCTION failure(statement text, OUT code text, OUT message text,
                        OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    message := 'it does not fail';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
        detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;

-- The locks that this session has, as the cluster's list shows them.  A lock
-- that is free may be listed for another moment, without scope or as being
-- released.
CREATE VIEW mine AS
    SELECT name, scope, depth, state FROM ddb_locks
     WHERE pid = pg_backend_pid() AND scope IS NOT NULL AND state <> 'releasing'
     ORDER BY name COLLATE "C";

-- Locks that are freed without keeping anybody waiting: here we do wait, and
-- tell whether DynamoDB has it that they are free.
CREATE FUNCTION becomes_free(lock text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    patience timestamptz := clock_timestamp() + '30 s';
BEGIN
    WHILE EXISTS (SELECT FROM ddb_locks WHERE name = lock)
          AND clock_timestamp() < patience LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN NOT (SELECT held FROM ddb_lock_info(lock));
END $$;

-- Conditional writes sent to DynamoDB so far.
CREATE FUNCTION writes() RETURNS numeric
LANGUAGE sql AS $$
    SELECT sum(requests) FROM ddb_operations
     WHERE operation IN ('acquire', 'renew', 'renew_batch', 'hand_over', 'release')
$$;
