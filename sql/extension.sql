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
-- Each is one plain sentence.
SELECT pg_describe_object(classoid, objoid, t.objsubid) AS object, description
  FROM pg_description t
  JOIN pg_depend ON classid = classoid AND objid = objoid AND deptype = 'e'
 WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
   AND (description !~ '^([A-Z"]|ddb).*[^.]\.$' OR description ~ '[.;] |\n' OR length(description) > 160);

-- No name of a parameter or a column must be quoted.
CREATE TEMP VIEW parameters AS
    SELECT p.oid::regprocedure AS function, proname, ordinality AS number, name,
           coalesce(proargmodes[ordinality], 'i') AS mode,
           coalesce(proallargtypes[ordinality], proargtypes[ordinality - 1])::regtype AS type,
           pg_get_function_arg_default(p.oid, ordinality::integer) AS default_value
      FROM pg_proc p
      JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
           AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock'),
           unnest(proargnames) WITH ORDINALITY AS n (name, ordinality);
SELECT function::text, name FROM parameters JOIN pg_get_keywords() ON word = name WHERE catcode IN ('R', 'T')
UNION ALL
SELECT proname, proname FROM pg_proc WHERE proname ~ '^ddb_' AND quote_ident(proname) <> proname;
SELECT name FROM pg_settings, unnest(string_to_array(name, '.')) AS part
  JOIN pg_get_keywords() ON word = part
 WHERE name ~ '^ddblock' AND catcode IN ('R', 'T');

-- A parameter has the same type wherever it comes.
SELECT name, array_agg(DISTINCT type ORDER BY type) AS types FROM parameters WHERE mode = 'i'
 GROUP BY name HAVING count(DISTINCT type) > 1;

-- Families: what one form has beside the other, or in another order.  A try has no wait, a
-- transaction no at_most; a procedure has the parameters of its function.
CREATE TEMP VIEW forms AS
    SELECT proname::text AS name, prorettype::regtype AS result,
           (SELECT string_agg(concat_ws(' ', p.name, type, default_value), ', ' ORDER BY number)
              FROM parameters p WHERE p.proname = pg_proc.proname AND mode = 'i' AND p.name <> 'at_most') AS without_at_most,
           (SELECT string_agg(concat_ws(' ', p.name, type, default_value), ', ' ORDER BY number)
              FROM parameters p WHERE p.proname = pg_proc.proname AND mode = 'i' AND p.name <> 'wait') AS without_wait,
           (SELECT string_agg(concat_ws(' ', p.name, type, default_value), ', ' ORDER BY number)
              FROM parameters p WHERE p.proname = pg_proc.proname AND mode = 'i') AS all_parameters
      FROM pg_proc WHERE proname ~ '^ddb_.*_(acquire|await)(_all|_shared)?$';
SELECT s.name AS session, x.name AS transaction, s.result = x.result AS same_result,
       s.without_at_most = x.all_parameters AS same_parameters, s.all_parameters <> x.all_parameters AS less
  FROM forms s JOIN forms x ON x.name = replace(s.name, 'ddb_', 'ddb_xact_') ORDER BY 1;
SELECT f.name AS function, t.name AS try, t.result, f.without_wait = t.all_parameters AS same_parameters
  FROM forms f JOIN forms t ON t.name = replace(f.name, '_acquire', '_try_acquire')
 WHERE f.name <> t.name ORDER BY 1;
SELECT f.name AS function, p.name AS procedure, f.all_parameters = p.all_parameters AS same_parameters
  FROM forms f JOIN forms p ON p.name = replace(f.name, '_acquire', '_await') WHERE f.name <> p.name ORDER BY 1;
SELECT count(*) AS forms FROM forms;
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
