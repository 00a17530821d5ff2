--
-- DROP EXTENSION, in whatever way, loses neither locks nor fencing tokens nor jobs.
--
CREATE DATABASE regress_ddblock_drop;
SELECT current_database() AS database \gset
\c regress_ddblock_drop
CREATE SCHEMA locks;
CREATE ROLE regress_ddblock_owner SUPERUSER;
SET ROLE regress_ddblock_owner;
CREATE EXTENSION ddblock SCHEMA locks;
RESET ROLE;
SET search_path = locks, public;
SET client_min_messages = warning;	-- what else a drop cascades to
CREATE FUNCTION public.failure(statement text, OUT code text, OUT message text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    message := 'it does not fail';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT;
END $$;
CREATE VIEW public.ways AS
    SELECT way, code, message
      FROM unnest(ARRAY['DROP EXTENSION ddblock',
                        'DROP EXTENSION ddblock CASCADE',
                        'DROP SCHEMA locks CASCADE',
                        'DROP OWNED BY regress_ddblock_owner']) AS way, failure(way);

-- While this session holds a lock
SELECT ddb_lock_acquire('drop/a') > 0 AS acquired;
SELECT * FROM ways;
SELECT ddb_lock_release('drop/a');

-- ... or a transaction does
BEGIN;
SELECT ddb_xact_lock_acquire('drop/b') > 0 AS acquired;
DO $$
DECLARE
    detail text;
    hint text;
BEGIN
    DROP EXTENSION ddblock;
EXCEPTION WHEN object_in_use THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RAISE WARNING '%', replace(detail, pg_backend_pid()::text, 'N') USING HINT = hint;
END $$;
ROLLBACK;

-- While there are fencing tokens
SELECT ddb_fence_check('r', 5);
SELECT * FROM ways;
SELECT ddb_fence_check('s', 5);
DROP EXTENSION ddblock;
SELECT ddb_fence_check('r', 4);

-- Other tables of that name are nobody's history.
CREATE SCHEMA other;
CREATE TABLE other.ddb_fences AS SELECT * FROM ddb_fences;
DROP TABLE other.ddb_fences;

TRUNCATE locks.ddb_fences;

-- While jobs have not been pushed
SELECT ddb_queue_push_on_commit('q', 'r', '1');
SELECT * FROM ways;
DROP EXTENSION ddblock;
TRUNCATE locks.ddb_outbox;

-- While it is recorded what work is done
SELECT ddb_queue_mark_done('q', 'r', 1, '2026-01-01 00:00:00+00', 5);
SELECT * FROM ways;
SELECT ddb_queue_mark_done('q', 's', 1, '2026-01-01 00:00:00+00', 5);
DROP EXTENSION ddblock;
DELETE FROM locks.ddb_queue_done;

-- With none of these it goes.
BEGIN;
DROP OWNED BY regress_ddblock_owner;
ROLLBACK;
BEGIN;
DROP SCHEMA locks CASCADE;
ROLLBACK;
DROP EXTENSION ddblock;
SELECT count(*) FROM pg_extension WHERE extname = 'ddblock';

-- A whole database goes with what is in it.
CREATE EXTENSION ddblock SCHEMA locks;
SELECT ddb_fence_check('r', 5);
\c :database
DROP DATABASE regress_ddblock_drop;
DROP ROLE regress_ddblock_owner;
