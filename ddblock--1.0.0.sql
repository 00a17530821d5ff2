/* ddblock--1.0.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION ddblock" to load this file. \quit

--
-- Acquiring
--

CREATE FUNCTION ddb_lock_acquire(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	data bytea DEFAULT NULL,
	attributes jsonb DEFAULT NULL,
	only_if_exists boolean DEFAULT false,
	delete_on_release boolean DEFAULT false,
	at_least interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_acquire(text, interval, interval, bytea, jsonb, boolean, boolean, interval, interval) IS
'Acquires a session-scoped lock and returns its fencing token, after waiting for at most "wait".';

CREATE FUNCTION ddb_lock_try_acquire(
	name text,
	lease interval DEFAULT NULL,
	data bytea DEFAULT NULL,
	attributes jsonb DEFAULT NULL,
	only_if_exists boolean DEFAULT false,
	delete_on_release boolean DEFAULT false,
	at_least interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_try_acquire(text, interval, bytea, jsonb, boolean, boolean, interval, interval) IS
'Acquires a session-scoped lock if it is free, and returns whether it was.';

CREATE FUNCTION ddb_xact_lock_acquire(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	data bytea DEFAULT NULL,
	attributes jsonb DEFAULT NULL,
	only_if_exists boolean DEFAULT false,
	delete_on_release boolean DEFAULT false,
	at_least interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_lock_acquire(text, interval, interval, bytea, jsonb, boolean, boolean, interval) IS
'Acquires a lock until the transaction ends and returns its fencing token, after waiting for at most "wait".';

CREATE FUNCTION ddb_xact_lock_try_acquire(
	name text,
	lease interval DEFAULT NULL,
	data bytea DEFAULT NULL,
	attributes jsonb DEFAULT NULL,
	only_if_exists boolean DEFAULT false,
	delete_on_release boolean DEFAULT false,
	at_least interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_lock_try_acquire(text, interval, bytea, jsonb, boolean, boolean, interval) IS
'Acquires a lock until the transaction ends if it is free, and returns whether it was.';

--
-- Several locks at once
--

CREATE FUNCTION ddb_lock_acquire_all(
	names text[],
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS bigint[]
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_acquire_all(text[], interval, interval, interval) IS
'Acquires session-scoped locks, all or none, and returns their fencing tokens in the order of the names.';

CREATE FUNCTION ddb_lock_try_acquire_all(
	names text[],
	lease interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_try_acquire_all(text[], interval, interval) IS
'Acquires session-scoped locks if all of them are free, and returns whether they were.';

CREATE FUNCTION ddb_xact_lock_acquire_all(
	names text[],
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL)
RETURNS bigint[]
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_lock_acquire_all(text[], interval, interval) IS
'Acquires locks until the transaction ends, all or none, and returns their fencing tokens in the order of the names.';

CREATE FUNCTION ddb_xact_lock_try_acquire_all(
	names text[],
	lease interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_lock_try_acquire_all(text[], interval) IS
'Acquires locks until the transaction ends if all of them are free, and returns whether they were.';

--
-- Releasing
--

CREATE FUNCTION ddb_lock_release(
	name text,
	keep boolean DEFAULT true,
	nowait boolean DEFAULT false)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_release(text, boolean, boolean) IS
'Undoes one session-scoped acquisition of a lock, shared lock or permits, and returns false, with a warning, if there was none.';

CREATE FUNCTION ddb_lock_release_detached(
	name text,
	token bigint,
	keep boolean DEFAULT true)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_release_detached(text, bigint, boolean) IS
'Releases a lock that was left to the cluster, by its token, and returns false, with a warning, if there was none.';

CREATE FUNCTION ddb_lock_release_all()
RETURNS integer
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_release_all() IS
'Undoes all session-scoped acquisitions, and returns the number of locks.';

--
-- Joining and detaching
--

CREATE FUNCTION ddb_lock_join(name text, token bigint)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_join(text, bigint) IS
'Holds a lock together with the session of this cluster that has taken it, by its token.';

CREATE FUNCTION ddb_lock_detach(name text, at_most interval)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_detach(text, interval) IS
'Leaves a lock of this session to the cluster, for at most "at_most", and returns the token that releases it.';

CREATE FUNCTION ddb_lock_outlive(name text)
RETURNS interval
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_outlive(text) IS
'Keeps a lock held after the end of this session or server for the length of its lease, which it returns.';

--
-- Shared locks
--

CREATE FUNCTION ddb_lock_acquire_shared(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_acquire_shared(text, interval, interval, interval) IS
'Acquires a session-scoped lock that others may share and returns its fencing token, after waiting for at most "wait".';

CREATE FUNCTION ddb_lock_try_acquire_shared(
	name text,
	lease interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_try_acquire_shared(text, interval, interval) IS
'Acquires a session-scoped lock that others may share if nobody holds it alone or waits for that, and returns whether it could.';

CREATE FUNCTION ddb_xact_lock_acquire_shared(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_lock_acquire_shared(text, interval, interval) IS
'Acquires a lock that others may share until the transaction ends and returns its fencing token, after waiting for at most "wait".';

CREATE FUNCTION ddb_xact_lock_try_acquire_shared(
	name text,
	lease interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_lock_try_acquire_shared(text, interval) IS
'Acquires a lock that others may share until the transaction ends if nobody holds it alone or waits for that, and returns whether it could.';

--
-- Semaphores
--

CREATE FUNCTION ddb_semaphore_acquire(
	name text,
	max_permits integer,
	permits integer DEFAULT 1,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_semaphore_acquire(text, integer, integer, interval, interval, interval) IS
'Acquires session-scoped permits of a semaphore that has "max_permits" and returns a token, after waiting for at most "wait".';

CREATE FUNCTION ddb_semaphore_try_acquire(
	name text,
	max_permits integer,
	permits integer DEFAULT 1,
	lease interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_semaphore_try_acquire(text, integer, integer, interval, interval) IS
'Acquires session-scoped permits of a semaphore that has "max_permits" if so many are free, and returns whether they were.';

CREATE FUNCTION ddb_xact_semaphore_acquire(
	name text,
	max_permits integer,
	permits integer DEFAULT 1,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_semaphore_acquire(text, integer, integer, interval, interval) IS
'Acquires permits of a semaphore that has "max_permits" until the transaction ends and returns a token, after waiting for at most "wait".';

CREATE FUNCTION ddb_xact_semaphore_try_acquire(
	name text,
	max_permits integer,
	permits integer DEFAULT 1,
	lease interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_xact_semaphore_try_acquire(text, integer, integer, interval) IS
'Acquires permits of a semaphore that has "max_permits" until the transaction ends if so many are free, and returns whether they were.';

--
-- What this session holds
--

CREATE FUNCTION ddb_lock_renew(
	name text,
	lease interval DEFAULT NULL,
	data bytea DEFAULT NULL)
RETURNS timestamp with time zone
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_renew(text, interval, bytea) IS
'Renews a lease now, with another length or other data if they are given, and returns the new deadline.';

CREATE FUNCTION ddb_lock_token(name text)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_lock_token(text) IS
'Returns the fencing token of a lock that this session holds, or null.';

CREATE FUNCTION ddb_lock_require(name text)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_lock_require(text) IS
'Returns the fencing token of a lock that this session holds, or fails with LK001.';

CREATE FUNCTION ddb_lock_remaining(name text)
RETURNS interval
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_lock_remaining(text) IS
'Returns the time until the deadline of a lock that this session holds, or null.';

CREATE FUNCTION ddb_lock_monitor(
	name text,
	less_than interval,
	wait interval DEFAULT NULL)
RETURNS interval
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_monitor(text, interval, interval) IS
'Waits until this cluster''s lease on a lock has less than "less_than" left, and returns what is left.';

--
-- Procedures that wait without a snapshot
--

CREATE PROCEDURE ddb_lock_await(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	data bytea DEFAULT NULL,
	attributes jsonb DEFAULT NULL,
	only_if_exists boolean DEFAULT false,
	delete_on_release boolean DEFAULT false,
	at_least interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'ddb_lock_acquire'
LANGUAGE C;

COMMENT ON PROCEDURE ddb_lock_await(text, interval, interval, bytea, jsonb, boolean, boolean, interval, interval) IS
'Ends the transaction and acquires a session-scoped lock, waiting without a snapshot.';

CREATE PROCEDURE ddb_lock_await_all(
	names text[],
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'ddb_lock_acquire_all'
LANGUAGE C;

COMMENT ON PROCEDURE ddb_lock_await_all(text[], interval, interval, interval) IS
'Ends the transaction and acquires session-scoped locks, all or none, waiting without a snapshot.';

CREATE PROCEDURE ddb_lock_await_shared(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'ddb_lock_acquire_shared'
LANGUAGE C;

COMMENT ON PROCEDURE ddb_lock_await_shared(text, interval, interval, interval) IS
'Ends the transaction and acquires a session-scoped lock that others may share, waiting without a snapshot.';

CREATE PROCEDURE ddb_semaphore_await(
	name text,
	max_permits integer,
	permits integer DEFAULT 1,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'ddb_semaphore_acquire'
LANGUAGE C;

COMMENT ON PROCEDURE ddb_semaphore_await(text, integer, integer, interval, interval, interval) IS
'Ends the transaction and acquires session-scoped permits of a semaphore, waiting without a snapshot.';

CREATE PROCEDURE ddb_lock_await_end(
	name text,
	less_than interval,
	wait interval DEFAULT NULL)
AS 'MODULE_PATHNAME', 'ddb_lock_monitor'
LANGUAGE C;

COMMENT ON PROCEDURE ddb_lock_await_end(text, interval, interval) IS
'Ends the transaction and waits, without a snapshot, until this cluster''s lease on a lock has less than "less_than" left.';

CREATE PROCEDURE ddb_queue_await(
	queue text,
	wait interval DEFAULT NULL,
	resources text[] DEFAULT NULL)
AS 'MODULE_PATHNAME'
LANGUAGE C;

COMMENT ON PROCEDURE ddb_queue_await(text, interval, text[]) IS
'Ends the transaction and waits, without a snapshot, until ddb_queue_claim() may find a job.';

--
-- Leaders
--

CREATE FUNCTION ddb_leadership_held(name text)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_leadership_held(text) IS
'Returns whether this cluster leads, and if so, ends the transaction when it does not lead any more.';

CREATE FUNCTION ddb_leadership_require(name text)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_leadership_require(text) IS
'Returns the fencing token of a leadership as ddb_leadership_held() does, or fails with LK001.';

CREATE FUNCTION ddb_leadership_resign(
	name text,
	stand_back interval DEFAULT '1 minute',
	wait interval DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_leadership_resign(text, interval, interval) IS
'For operators: gives up a leadership, stands back from it for a time, and returns whether this cluster led.';

--
-- Fence
--

-- COLLATE "C": the index survives changes of the system's collations.
CREATE TABLE ddb_fences (
	resource text COLLATE "C" PRIMARY KEY,
	token bigint NOT NULL DEFAULT 0 CHECK (token OPERATOR(pg_catalog.>=) 0),
	shared_token bigint NOT NULL DEFAULT 0 CHECK (shared_token OPERATOR(pg_catalog.>=) 0));

COMMENT ON TABLE ddb_fences IS
'Highest fencing tokens of each resource, written by ddb_fence_check() and ddb_fence_check_shared().';
COMMENT ON COLUMN ddb_fences.resource IS
'Name of the protected resource, as given to ddb_fence_check() or ddb_fence_check_shared().';
COMMENT ON COLUMN ddb_fences.token IS
'Highest token of an exclusive lock, or 0.';
COMMENT ON COLUMN ddb_fences.shared_token IS
'Highest token of a shared lock, or 0.';

SELECT pg_catalog.pg_extension_config_dump('ddb_fences', '');

CREATE FUNCTION ddb_keep_tokens()
RETURNS trigger
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_keep_tokens() IS
'For triggers: keeps rows from a dump or from replication from lowering a token.';

CREATE TRIGGER ddb_keep_tokens BEFORE INSERT OR UPDATE OR DELETE ON ddb_fences
FOR EACH ROW EXECUTE FUNCTION ddb_keep_tokens();
CREATE TRIGGER ddb_keep_rows BEFORE TRUNCATE ON ddb_fences
FOR EACH STATEMENT EXECUTE FUNCTION ddb_keep_tokens();

-- In a subscription's processes, too.
ALTER TABLE ddb_fences ENABLE ALWAYS TRIGGER ddb_keep_tokens;
ALTER TABLE ddb_fences ENABLE ALWAYS TRIGGER ddb_keep_rows;

CREATE FUNCTION ddb_keep_extension()
RETURNS event_trigger
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION ddb_keep_extension() IS
'For triggers: loads the library, which keeps DROP EXTENSION from losing tokens and jobs.';

CREATE EVENT TRIGGER ddb_keep_extension ON ddl_command_start
WHEN TAG IN ('DROP EXTENSION', 'DROP OWNED', 'DROP SCHEMA')
EXECUTE FUNCTION ddb_keep_extension();
ALTER EVENT TRIGGER ddb_keep_extension ENABLE ALWAYS;

CREATE FUNCTION ddb_fence_check(resource text, token bigint)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_fence_check(text, bigint) IS
'Records the fencing token of a resource in this transaction, or fails with LK002 if a higher one is recorded.';

CREATE FUNCTION ddb_fence_check_shared(resource text, token bigint)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_fence_check_shared(text, bigint) IS
'Records the token of a shared lock as ddb_fence_check() does, or fails with LK002 if that of a later exclusive lock is recorded.';

--
-- Sessions of databases that cannot load ddblock: ddblock_remote calls functions here through
-- postgres_fdw, which ships an UPDATE of one row whole
--

CREATE VIEW ddb_remote AS
SELECT function, NULL::pg_catalog.jsonb AS arguments, NULL::pg_catalog.jsonb AS result
FROM pg_catalog.unnest('{
	ddb_lock_acquire, ddb_lock_try_acquire, ddb_xact_lock_acquire, ddb_xact_lock_try_acquire,
	ddb_lock_acquire_shared, ddb_lock_try_acquire_shared,
	ddb_xact_lock_acquire_shared, ddb_xact_lock_try_acquire_shared,
	ddb_semaphore_acquire, ddb_semaphore_try_acquire,
	ddb_xact_semaphore_acquire, ddb_xact_semaphore_try_acquire,
	ddb_lock_release, ddb_lock_release_all,
	ddb_lock_token, ddb_lock_require, ddb_lock_remaining}'::pg_catalog.text[]) AS function;

COMMENT ON VIEW ddb_remote IS
'A row for each function that another database may call: an UPDATE of "arguments" calls it, and returns "result".';
COMMENT ON COLUMN ddb_remote.function IS
'Name of the function.';
COMMENT ON COLUMN ddb_remote.arguments IS
'Its arguments by name, as a JSON object.';
COMMENT ON COLUMN ddb_remote.result IS
'What it has returned, as JSON.';

CREATE FUNCTION ddb_remote_guard()
RETURNS trigger
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

COMMENT ON FUNCTION ddb_remote_guard() IS
'For a trigger: lets the commit guard count the transaction as one that writes.';

-- Not a security definer: what the role of the connection may do is what counts.
CREATE FUNCTION ddb_remote()
RETURNS trigger
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
	EXECUTE format('SELECT to_jsonb(%I.%I(%s))', TG_TABLE_SCHEMA, OLD.function,
		(SELECT string_agg(format('%I => %L', key, value), ', ') FROM jsonb_each_text(NEW.arguments)))
	INTO NEW.result;
	RETURN NEW;
END $$;

COMMENT ON FUNCTION ddb_remote() IS
'For a trigger: calls the function that a row of ddb_remote names.';

CREATE TRIGGER ddb_remote_guard BEFORE UPDATE ON ddb_remote
FOR EACH STATEMENT EXECUTE FUNCTION ddb_remote_guard();
CREATE TRIGGER ddb_remote INSTEAD OF UPDATE ON ddb_remote
FOR EACH ROW EXECUTE FUNCTION ddb_remote();

--
-- The lock table
--

CREATE FUNCTION ddb_lock_info(
	name text,
	OUT held boolean,
	OUT owner text,
	OUT datname text,
	OUT usename text,
	OUT application_name text,
	OUT pid integer,
	OUT host text,
	OUT acquired_at timestamp with time zone,
	OUT lease interval,
	OUT token bigint,
	OUT data bytea,
	OUT version text,
	OUT mode text,
	OUT permits integer,
	OUT clusters text[],
	OUT attributes jsonb,
	OUT kept_until timestamp with time zone)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_info(text) IS
'Shows who holds a lock, by a consistent read from DynamoDB.';

CREATE FUNCTION ddb_lock_table_create(
	read_units bigint DEFAULT NULL,
	write_units bigint DEFAULT NULL,
	protect boolean DEFAULT true)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_table_create(bigint, bigint, boolean) IS
'For the owner: creates the lock table in DynamoDB unless it exists, and waits until it is active.';

--
-- Operator's tools
--

CREATE FUNCTION ddb_lock_list(
	prefix text DEFAULT '',
	watch interval DEFAULT NULL,
	OUT name text,
	OUT state text,
	OUT owner text,
	OUT datname text,
	OUT usename text,
	OUT application_name text,
	OUT pid integer,
	OUT host text,
	OUT acquired_at timestamp with time zone,
	OUT released_at timestamp with time zone,
	OUT lease interval,
	OUT token bigint,
	OUT version text,
	OUT mode text,
	OUT permits integer,
	OUT kept_until timestamp with time zone,
	OUT unusable text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_list(text, interval) IS
'For operators: lists the items of the lock table, and with "watch" tells by two readings which holders look dead.';

CREATE FUNCTION ddb_lock_purge(older_than interval)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_purge(interval) IS
'For operators: deletes the items of locks that were released so long ago, and returns their number.';

CREATE FUNCTION ddb_lock_force_release(name text, unusable text DEFAULT NULL)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_lock_force_release(text, text) IS
'For operators: takes a lock away from its holder, who learns of that at the next renewal, and returns whether it was held or kept.';

--
-- Views
--

CREATE FUNCTION ddb_locks(
	OUT name text,
	OUT pid integer,
	OUT datname text,
	OUT usename text,
	OUT scope text,
	OUT depth bigint,
	OUT token bigint,
	OUT acquired_at timestamp with time zone,
	OUT lease interval,
	OUT time_left interval,
	OUT renewals bigint,
	OUT waiters integer,
	OUT state text,
	OUT waiting_since timestamp with time zone,
	OUT blocked_by_pid integer,
	OUT blocked_by_owner text,
	OUT mode text,
	OUT permits integer,
	OUT joined boolean,
	OUT ends_at timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_locks() IS
'Locks that sessions of this cluster hold or wait for.';

CREATE FUNCTION ddb_operations(
	OUT operation text,
	OUT requests bigint,
	OUT errors bigint,
	OUT throttles bigint,
	OUT retries bigint,
	OUT replies bigint,
	OUT latency_total interval,
	OUT latency_histogram bigint[],
	OUT consumed_units double precision,
	OUT since timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_operations() IS
'For operators: counters of this cluster''s requests to DynamoDB, by operation.';

CREATE FUNCTION ddb_stats(
	OUT leases_held bigint,
	OUT waiters bigint,
	OUT acquired bigint,
	OUT busy bigint,
	OUT timed_out bigint,
	OUT deadlocks bigint,
	OUT lost_unreachable bigint,
	OUT lost_taken bigint,
	OUT lost_released bigint,
	OUT lost_deleted bigint,
	OUT lost_at_most bigint,
	OUT lk001 bigint,
	OUT lk002 bigint,
	OUT jobs_pushed bigint,
	OUT jobs_claimed bigint,
	OUT jobs_completed bigint,
	OUT jobs_failed bigint,
	OUT jobs_dead bigint,
	OUT leases_lost bigint,
	OUT last_loss_at timestamp with time zone,
	OUT last_loss text,
	OUT wait_total interval,
	OUT wait_histogram bigint[],
	OUT since timestamp with time zone)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_stats() IS
'For operators: counters of what this cluster''s sessions do with locks and jobs, since the server started.';

CREATE FUNCTION ddb_leaderships(
	OUT name text,
	OUT state text,
	OUT since timestamp with time zone,
	OUT token bigint,
	OUT joined integer,
	OUT leader text,
	OUT interrupts_at timestamp with time zone,
	OUT stands_again_at timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_leaderships() IS
'Locks that this cluster itself holds or wants, to lead.';

CREATE FUNCTION ddb_status(
	OUT worker_pid integer,
	OUT worker_since timestamp with time zone,
	OUT worker_starts integer,
	OUT region text,
	OUT endpoint text,
	OUT proxy text,
	OUT lock_table text,
	OUT owner text,
	OUT credentials text,
	OUT credentials_expire_at timestamp with time zone,
	OUT last_reply_at timestamp with time zone,
	OUT trouble text,
	OUT clock_ahead interval,
	OUT clock_error interval,
	OUT connections integer,
	OUT max_connections integer,
	OUT leases integer,
	OUT max_leases integer,
	OUT library_version text,
	OUT http_library text)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 100;

COMMENT ON FUNCTION ddb_status() IS
'For operators: state of this cluster''s worker, and of its link to DynamoDB.';

--
-- The views: each calls the function of its name
--

-- Another function of that name in this schema, with defaults for all its arguments, would make
-- the call ambiguous.  So each view is made while its function has a name that nobody knows.
DO $$
DECLARE
	view pg_catalog.text;
	hidden pg_catalog.text;
BEGIN
	FOREACH view IN ARRAY pg_catalog.string_to_array('ddb_locks ddb_operations ddb_stats ddb_leaderships ddb_status', ' ') LOOP
		hidden := pg_catalog.gen_random_uuid();
		EXECUTE pg_catalog.format('ALTER FUNCTION %I() RENAME TO %I', view, hidden);
		EXECUTE pg_catalog.format('CREATE VIEW %I AS SELECT * FROM %I() AS %I', view, hidden, view);
		EXECUTE pg_catalog.format('ALTER FUNCTION %I() RENAME TO %I', hidden, view);
	END LOOP;
END $$;

COMMENT ON VIEW ddb_locks IS
'Locks that sessions of this cluster hold or wait for.';
COMMENT ON COLUMN ddb_locks.name IS
'Name of the lock.';
COMMENT ON COLUMN ddb_locks.pid IS
'Process of the session that holds the lock or waits for it, or null if it is detached or a leadership.';
COMMENT ON COLUMN ddb_locks.datname IS
'The session''s database, or that of the session that detached it.';
COMMENT ON COLUMN ddb_locks.usename IS
'The session''s user, or that of the session that detached it.';
COMMENT ON COLUMN ddb_locks.scope IS
'"session", "transaction", "session+transaction", "detached" or "leadership", or null if not granted.';
COMMENT ON COLUMN ddb_locks.depth IS
'Number of acquisitions that are not undone.';
COMMENT ON COLUMN ddb_locks.token IS
'Fencing token.';
COMMENT ON COLUMN ddb_locks.acquired_at IS
'Time of the grant, by DynamoDB''s clock.';
COMMENT ON COLUMN ddb_locks.lease IS
'Length of the lease.';
COMMENT ON COLUMN ddb_locks.time_left IS
'Time until the deadline, or null if the lease is not valid.';
COMMENT ON COLUMN ddb_locks.renewals IS
'Number of renewals since the grant.';
COMMENT ON COLUMN ddb_locks.waiters IS
'Number of sessions of this cluster that wait for the lock.';
COMMENT ON COLUMN ddb_locks.state IS
'"held", "waiting", "acquiring", "releasing" or "lost".';
COMMENT ON COLUMN ddb_locks.waiting_since IS
'When a waiting session called the function that waits.';
COMMENT ON COLUMN ddb_locks.blocked_by_pid IS
'Process that holds the lock, if a session of this cluster does.';
COMMENT ON COLUMN ddb_locks.blocked_by_owner IS
'Owner of the lock, if another cluster or client holds it.';
COMMENT ON COLUMN ddb_locks.mode IS
'"exclusive", "shared" or "semaphore".';
COMMENT ON COLUMN ddb_locks.permits IS
'Permits of a semaphore that the session has or waits for.';
COMMENT ON COLUMN ddb_locks.joined IS
'Whether another session has taken the lock, and this one has joined it.';
COMMENT ON COLUMN ddb_locks.ends_at IS
'When a detached lock is released at the latest, or a session loses it because of at_most.';

COMMENT ON VIEW ddb_operations IS
'For operators: counters of this cluster''s requests to DynamoDB, by operation.';
COMMENT ON COLUMN ddb_operations.operation IS
'What the requests do.';
COMMENT ON COLUMN ddb_operations.requests IS
'Requests sent.';
COMMENT ON COLUMN ddb_operations.errors IS
'Requests that failed, or were rejected for a reason other than the lock''s state.';
COMMENT ON COLUMN ddb_operations.throttles IS
'Requests that failed because of DynamoDB''s limits.';
COMMENT ON COLUMN ddb_operations.retries IS
'Requests that repeated an earlier one.';
COMMENT ON COLUMN ddb_operations.replies IS
'Requests that got a reply.';
COMMENT ON COLUMN ddb_operations.latency_total IS
'Sum of these replies'' latencies.';
COMMENT ON COLUMN ddb_operations.latency_histogram IS
'Replies that took less than 0.5 ms, 1 ms, 2 ms, and so on, doubling, and the rest.';
COMMENT ON COLUMN ddb_operations.consumed_units IS
'Capacity units that DynamoDB reported.';
COMMENT ON COLUMN ddb_operations.since IS
'Start of the count.';

COMMENT ON VIEW ddb_stats IS
'For operators: counters of what this cluster''s sessions do with locks and jobs, since the server started.';
COMMENT ON COLUMN ddb_stats.leases_held IS
'Leases that are held now, and one more for each further hold of one, shared, joined or detached.';
COMMENT ON COLUMN ddb_stats.waiters IS
'Sessions that wait for a lock now.';
COMMENT ON COLUMN ddb_stats.acquired IS
'Locks that sessions acquired, each only once while they held it.';
COMMENT ON COLUMN ddb_stats.busy IS
'Attempts to acquire a lock without waiting, when it was not free.';
COMMENT ON COLUMN ddb_stats.timed_out IS
'Waits that ended because of "wait" or lock_timeout.';
COMMENT ON COLUMN ddb_stats.deadlocks IS
'Waits that ended because of a deadlock.';
COMMENT ON COLUMN ddb_stats.lost_unreachable IS
'Leases lost because no renewal was confirmed before the deadline.';
COMMENT ON COLUMN ddb_stats.lost_taken IS
'Leases lost because another owner took the lock over.';
COMMENT ON COLUMN ddb_stats.lost_released IS
'Leases lost because somebody else released the lock.';
COMMENT ON COLUMN ddb_stats.lost_deleted IS
'Leases lost because the lock''s item was deleted.';
COMMENT ON COLUMN ddb_stats.lost_at_most IS
'Locks lost because a session was to hold them no longer.';
COMMENT ON COLUMN ddb_stats.lk001 IS
'Errors with SQLSTATE LK001: a lease was lost, or a lock was not held.';
COMMENT ON COLUMN ddb_stats.lk002 IS
'Errors with SQLSTATE LK002: a fencing token was stale, or a fence was lost.';
COMMENT ON COLUMN ddb_stats.jobs_pushed IS
'Jobs that sessions pushed into queues.';
COMMENT ON COLUMN ddb_stats.jobs_claimed IS
'Jobs that sessions got from queues: each is an attempt.';
COMMENT ON COLUMN ddb_stats.jobs_completed IS
'Jobs that sessions completed.';
COMMENT ON COLUMN ddb_stats.jobs_failed IS
'Jobs that sessions put back with ddb_queue_fail().';
COMMENT ON COLUMN ddb_stats.jobs_dead IS
'Jobs that a session of this cluster found to have been tried too often.';
COMMENT ON COLUMN ddb_stats.leases_lost IS
'Sum of the five kinds of losses.';
COMMENT ON COLUMN ddb_stats.last_loss_at IS
'When the last lease was lost.';
COMMENT ON COLUMN ddb_stats.last_loss IS
'The last loss: which lock, whose session, and why.';
COMMENT ON COLUMN ddb_stats.wait_total IS
'Sum of the times that sessions waited for locks which they got, or until they timed out.';
COMMENT ON COLUMN ddb_stats.wait_histogram IS
'Number of these waits that took less than 1 ms, 4 ms, 16 ms and so on, and of the rest.';
COMMENT ON COLUMN ddb_stats.since IS
'Start of the count.';

COMMENT ON VIEW ddb_leaderships IS
'Locks that this cluster itself holds or wants, to lead.';
COMMENT ON COLUMN ddb_leaderships.name IS
'Name of the lock.';
COMMENT ON COLUMN ddb_leaderships.state IS
'"leading", "following", "giving up" (transactions that have joined may still run), "resting" (does not want it) or "lost".';
COMMENT ON COLUMN ddb_leaderships.since IS
'Since when.';
COMMENT ON COLUMN ddb_leaderships.token IS
'Fencing token of the leadership, or null if this cluster does not hold the lock.';
COMMENT ON COLUMN ddb_leaderships.joined IS
'Number of transactions that have joined the leadership.';
COMMENT ON COLUMN ddb_leaderships.leader IS
'Owner of the lock, as far as this cluster knows.';
COMMENT ON COLUMN ddb_leaderships.interrupts_at IS
'While giving up: when the transactions that have joined are interrupted.';
COMMENT ON COLUMN ddb_leaderships.stands_again_at IS
'While resting: when this cluster wants the lock again.';

COMMENT ON VIEW ddb_status IS
'For operators: state of this cluster''s worker, and of its link to DynamoDB.';
COMMENT ON COLUMN ddb_status.worker_pid IS
'Process of the worker, or null if none runs.';
COMMENT ON COLUMN ddb_status.worker_since IS
'When the worker started.';
COMMENT ON COLUMN ddb_status.worker_starts IS
'Number of workers since the server started: more than 1 if one has failed.';
COMMENT ON COLUMN ddb_status.region IS
'AWS Region.';
COMMENT ON COLUMN ddb_status.endpoint IS
'URL of DynamoDB.';
COMMENT ON COLUMN ddb_status.proxy IS
'URL of the proxy to DynamoDB, without user and password, or null if there is none.';
COMMENT ON COLUMN ddb_status.lock_table IS
'Name or ARN of the lock table.';
COMMENT ON COLUMN ddb_status.owner IS
'Owner of this cluster''s locks.';
COMMENT ON COLUMN ddb_status.credentials IS
'Where the credentials come from, or null if there are none.';
COMMENT ON COLUMN ddb_status.credentials_expire_at IS
'When they expire, or null if they do not.';
COMMENT ON COLUMN ddb_status.last_reply_at IS
'When DynamoDB last replied without an error.';
COMMENT ON COLUMN ddb_status.trouble IS
'Why the worker repeats requests on the lock table, or else that a copy of this cluster uses it, too.';
COMMENT ON COLUMN ddb_status.clock_ahead IS
'DynamoDB''s clock minus this machine''s clock, or null before the first reply.';
COMMENT ON COLUMN ddb_status.clock_error IS
'How far clock_ahead may be off, at most.';
COMMENT ON COLUMN ddb_status.connections IS
'Open connections to DynamoDB.';
COMMENT ON COLUMN ddb_status.max_connections IS
'ddblock.max_connections.';
COMMENT ON COLUMN ddb_status.leases IS
'Leases in use: held, or being acquired or released, or lost and not yet acknowledged.';
COMMENT ON COLUMN ddb_status.max_leases IS
'ddblock.max_leases.';
COMMENT ON COLUMN ddb_status.library_version IS
'Version of the library that the server has loaded.';
COMMENT ON COLUMN ddb_status.http_library IS
'Versions of libcurl and its TLS library.';

--
-- Queues
--

CREATE FUNCTION ddb_queue_table_create(
	read_units bigint DEFAULT NULL,
	write_units bigint DEFAULT NULL,
	protect boolean DEFAULT true)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_table_create(bigint, bigint, boolean) IS
'For the owner: creates the table of the queues in DynamoDB unless it exists, and waits until it is active.';

CREATE FUNCTION ddb_queue_push(
	queue text,
	resource text,
	payload jsonb,
	id text DEFAULT NULL,
	dedup interval DEFAULT '1 day')
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_push(text, text, jsonb, text, interval) IS
'Pushes a job at once, whatever becomes of the transaction, and returns its number, or that of the job with the same id.';

CREATE FUNCTION ddb_queue_push_all(
	queue text,
	resource text,
	payloads jsonb[],
	ids text[] DEFAULT NULL,
	dedup interval DEFAULT '1 day')
RETURNS bigint[]
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_push_all(text, text, jsonb[], text[], interval) IS
'Pushes up to 49 jobs of one resource as ddb_queue_push() does, in this order, all or none.';

CREATE FUNCTION ddb_queue_claim(
	queue text,
	wait interval DEFAULT '0',
	lease interval DEFAULT NULL,
	resources text[] DEFAULT NULL,
	max_attempts integer DEFAULT 5,
	OUT resource text,
	OUT number bigint,
	OUT payload jsonb,
	OUT id text,
	OUT attempt integer,
	OUT pushed_at timestamp with time zone,
	OUT token bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_claim(text, interval, interval, text[], integer) IS
'Claims the oldest job of a resource on which nobody works, and holds the resource''s lock.';

CREATE FUNCTION ddb_queue_complete(queue text, resource text, number bigint)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_complete(text, text, bigint) IS
'Finishes a job of this session and releases its resource when the transaction has committed.';

CREATE FUNCTION ddb_queue_fail(
	queue text,
	resource text,
	number bigint,
	error text DEFAULT NULL,
	retry_in interval DEFAULT '5 s')
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_fail(text, text, bigint, text, interval) IS
'Puts a job of this session back at once, to be due again after "retry_in".';

CREATE FUNCTION ddb_queue_depths(
	queue text,
	of_resource text DEFAULT NULL,
	OUT resource text,
	OUT depth bigint,
	OUT attempts integer,
	OUT due timestamp with time zone,
	OUT paused boolean,
	OUT last_error text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_depths(text, text) IS
'Shows how many jobs of each resource are not finished.';

CREATE FUNCTION ddb_queue_summary(
	queue text,
	OUT resources bigint,
	OUT depth bigint,
	OUT oldest interval,
	OUT overdue interval,
	OUT retrying bigint,
	OUT paused bigint,
	OUT dead bigint)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_summary(text) IS
'Shows a queue in figures, for monitoring, by reading it from DynamoDB.';

CREATE FUNCTION ddb_queue_list(
	queue text,
	of_resource text DEFAULT NULL,
	dead boolean DEFAULT false,
	OUT resource text,
	OUT number bigint,
	OUT id text,
	OUT pushed_at timestamp with time zone,
	OUT age interval,
	OUT attempts integer,
	OUT last_error text,
	OUT died_at timestamp with time zone,
	OUT payload jsonb)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_list(text, text, boolean) IS
'Lists the jobs that are not finished, oldest first for each resource, or those that were tried too often.';

CREATE FUNCTION ddb_queue_redrive(queue text, id text DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_redrive(text, text) IS
'For operators: pushes a dead job, or all of them, anew, and returns how many.';

CREATE FUNCTION ddb_queue_cancel(queue text, resource text, number bigint)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_cancel(text, text, bigint) IS
'For operators: takes out a job on which nobody works, and returns false if there is none.';

CREATE FUNCTION ddb_queue_pause(queue text, resource text)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_pause(text, text) IS
'For operators: lets no more jobs of a resource be claimed, and returns false if it was paused already.';

CREATE FUNCTION ddb_queue_resume(queue text, resource text)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_resume(text, text) IS
'For operators: lets jobs of a resource be claimed again, and returns false if it was not paused.';

CREATE FUNCTION ddb_queue_drop(queue text, resource text)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED COST 10000;

COMMENT ON FUNCTION ddb_queue_drop(text, text) IS
'For operators: takes out all jobs of a resource, also the running one, and returns how many.';

CREATE FUNCTION ddb_queue_purge(older_than interval DEFAULT '7 days')
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_queue_purge(interval) IS
'For operators: deletes what resources without jobs have left, here and in the table, and returns how many items and rows.';

-- COLLATE "C": the index survives changes of the system's collations.
CREATE TABLE ddb_queue_done (
	queue text COLLATE "C",
	resource text COLLATE "C",
	number bigint NOT NULL CHECK (number OPERATOR(pg_catalog.>) 0),
	pushed_at timestamp with time zone,
	token bigint NOT NULL CHECK (token OPERATOR(pg_catalog.>) 0),
	PRIMARY KEY (queue, resource));

COMMENT ON TABLE ddb_queue_done IS
'The last job of each resource whose work is done in this database, written by ddb_queue_mark_done().';
COMMENT ON COLUMN ddb_queue_done.queue IS
'Name of the queue.';
COMMENT ON COLUMN ddb_queue_done.resource IS
'The resource.';
COMMENT ON COLUMN ddb_queue_done.number IS
'The job''s number.';
COMMENT ON COLUMN ddb_queue_done.pushed_at IS
'When it was pushed, which tells it from a job of another queue table with the same number.';
COMMENT ON COLUMN ddb_queue_done.token IS
'Fencing token of the claim under which it was done.';

SELECT pg_catalog.pg_extension_config_dump('ddb_queue_done', '');

CREATE TRIGGER ddb_keep_tokens BEFORE INSERT OR UPDATE OR DELETE ON ddb_queue_done
FOR EACH ROW EXECUTE FUNCTION ddb_keep_tokens();
CREATE TRIGGER ddb_keep_rows BEFORE TRUNCATE ON ddb_queue_done
FOR EACH STATEMENT EXECUTE FUNCTION ddb_keep_tokens();
ALTER TABLE ddb_queue_done ENABLE ALWAYS TRIGGER ddb_keep_tokens;
ALTER TABLE ddb_queue_done ENABLE ALWAYS TRIGGER ddb_keep_rows;

CREATE FUNCTION ddb_queue_mark_done(queue text, resource text, number bigint)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_queue_mark_done(text, text, bigint) IS
'Records in this transaction that the work of this session''s job is done, and returns false if it is done already.';

CREATE FUNCTION ddb_queue_mark_done(
	queue text,
	resource text,
	number bigint,
	pushed_at timestamp with time zone,
	token bigint)
RETURNS boolean
AS 'MODULE_PATHNAME', 'ddb_queue_mark_done_token'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_queue_mark_done(text, text, bigint, timestamp with time zone, bigint) IS
'For operators: records the same of a job that another session has claimed.';

CREATE TABLE ddb_outbox (
	position bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id text NOT NULL DEFAULT pg_catalog.concat('ddblock#outbox#', pg_catalog.gen_random_uuid()),
	queue text NOT NULL,
	resource text NOT NULL,
	payload jsonb NOT NULL,
	written_at timestamp with time zone NOT NULL DEFAULT pg_catalog.now(),
	failing_since timestamp with time zone,
	tried_at timestamp with time zone,
	last_error text);

COMMENT ON TABLE ddb_outbox IS
'Jobs to be pushed, written by ddb_queue_push_on_commit() and pushed by ddb_outbox_send().';
COMMENT ON COLUMN ddb_outbox.position IS
'The order in which the jobs are pushed.';
COMMENT ON COLUMN ddb_outbox.id IS
'The id under which the job is pushed: it is pushed once, even if sending is repeated.';
COMMENT ON COLUMN ddb_outbox.queue IS
'Name of the queue.';
COMMENT ON COLUMN ddb_outbox.resource IS
'The resource.';
COMMENT ON COLUMN ddb_outbox.payload IS
'The job.';
COMMENT ON COLUMN ddb_outbox.written_at IS
'Start of the transaction that wrote it.';
COMMENT ON COLUMN ddb_outbox.failing_since IS
'When the job could not be sent for the first time, or NULL.';
COMMENT ON COLUMN ddb_outbox.tried_at IS
'When the job could not be sent the last time.';
COMMENT ON COLUMN ddb_outbox.last_error IS
'Why the job could not be sent then: SQLSTATE and message.';

COMMENT ON SEQUENCE ddb_outbox_position_seq IS
'Positions in ddb_outbox.';

SELECT pg_catalog.pg_extension_config_dump('ddb_outbox', '');
SELECT pg_catalog.pg_extension_config_dump('ddb_outbox_position_seq', '');

CREATE FUNCTION ddb_queue_push_on_commit(
	queue text,
	resource text,
	payload jsonb,
	id text DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_queue_push_on_commit(text, text, jsonb, text) IS
'Writes a job to ddb_outbox, from where ddb_outbox_send() pushes it once this transaction has committed.';

CREATE FUNCTION ddb_outbox_send(max_rows integer DEFAULT 100)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_outbox_send(integer) IS
'For operators: pushes the jobs of ddb_outbox, those of a resource in their order, and returns how many.';

--
-- The check
--

CREATE FUNCTION ddb_check_request(request text, OUT detail text, OUT hint text, OUT owners text)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE COST 10000;

COMMENT ON FUNCTION ddb_check_request(text) IS
'For ddb_check(): tries a request, which changes nothing.';

-- A row with a hint that has not failed is a warning.
CREATE FUNCTION ddb_check(OUT subject text, OUT result text, OUT detail text, OUT hint text)
RETURNS SETOF record
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 10000 ROWS 26
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	extension pg_extension;
	requests text[];
	request text;
	started timestamptz;
	times numeric[];
	s record;
	r record;
	owners text;
	blocked text;
	no_queues boolean := false;
BEGIN
	SELECT * INTO STRICT extension FROM pg_extension WHERE extname = 'ddblock';
	FOR subject, requests IN VALUES
		('library', '{}'::text[]), ('same in all clusters', '{}'), ('limits', '{}'), ('worker', '{}'), ('place', '{}'),
		('lock table', '{describe_table}'), ('credentials', '{}'), ('time-to-live', '{describe_ttl}'),
		('round trip', array_fill('read'::text, '{9}')), ('clock', '{}'), ('take-over', '{take_over}'),
		('acquire, release', '{force_release}'), ('renew', '{renew_batch}'),
		('list', CASE current_setting('ddblock.sort_separator', true) WHEN '' THEN '{scan}' ELSE '{query, scan}' END::text[]),
		('other clusters', '{}'), ('purge', '{delete}'), ('replace', '{replace}'),
		('queue table', '{queue_describe_table}'), ('queue time-to-live', '{queue_describe_ttl}'),
		('queue push', '{push}'), ('queue claim', '{find, read_head, claim}'),
		('queue complete', '{complete, check_gone}'), ('queue cancel', '{cancel}'),
		('queue list', '{list_jobs}'), ('queue purge', '{list_all}'), ('trouble', '{}')
	LOOP
		CONTINUE WHEN subject = blocked;
		SELECT '-', NULL, NULL INTO result, detail, hint;
		IF blocked IS NOT NULL OR (no_queues AND subject LIKE 'queue %') THEN
			detail := format('not tried: see "%s"', coalesce(blocked, 'queue table'));
		ELSE BEGIN
			EXECUTE format('SELECT * FROM %s.ddb_status()', extension.extnamespace::regnamespace) INTO s;
			-- These requests fail, with the error that says why.
			requests := CASE WHEN (subject = 'worker' AND s.worker_pid IS NULL) OR (subject = 'place' AND s.region IS NULL)
				THEN '{read}' ELSE requests END;
			times := '{}';
			FOREACH request IN ARRAY requests LOOP
				started := clock_timestamp();
				EXECUTE format('SELECT * FROM %s.ddb_check_request($1)', extension.extnamespace::regnamespace)
				INTO r USING request;
				times := times || round(1000 * extract(epoch FROM clock_timestamp() - started), 1);
				detail := concat_ws(', ', detail, r.detail);
				hint := r.hint;
			END LOOP;
			CASE subject
			WHEN 'library' THEN
				detail := format('%s, with %s; the extension is %s', s.library_version, s.http_library, extension.extversion);
				hint := CASE WHEN s.library_version <> extension.extversion THEN
					'ALTER EXTENSION ddblock UPDATE; or restart the server, if its library is the older one.' END;
			WHEN 'same in all clusters' THEN
				SELECT string_agg(format('%s=%s', substr(name, 9), setting), ' ' ORDER BY name) INTO detail
				FROM pg_settings WHERE name ~ '^ddblock\.(lock_table|queue_table|partition_key|sort_|global_table_)';
			WHEN 'limits' THEN
				detail := format('%s leases, %s connections to PostgreSQL', s.max_leases, current_setting('max_connections'));
				hint := CASE WHEN s.max_leases < current_setting('max_connections')::int THEN
					'Increase "ddblock.max_leases", unless few sessions hold locks at a time.' END;
			WHEN 'worker' THEN
				detail := format('process %s, since %s', s.worker_pid, s.worker_since);
			WHEN 'place' THEN
				detail := format('Region %s, endpoint %s%s', s.region, s.endpoint, ', proxy ' || s.proxy);
			WHEN 'credentials' THEN
				detail := concat_ws(', until ', s.credentials, s.credentials_expire_at);
			WHEN 'round trip' THEN
				times := ARRAY(SELECT t FROM unnest(times) t ORDER BY t);
				detail := format('%s ms (median of 9), %s ms at most; %s', times[5], times[9], r.detail);
				hint := CASE WHEN 10 * times[5] > 1000 * extract(epoch FROM current_setting('ddblock.lease_duration')::interval)
					THEN 'Set "ddblock.lease_duration" to at least ten round trips.' END;
			WHEN 'clock' THEN
				detail := coalesce('DynamoDB is ahead of this machine by ' || round(1000 * extract(epoch FROM s.clock_ahead))
					|| ' ms, give or take ' || round(1000 * extract(epoch FROM s.clock_error)) || ' ms', 'not known yet');
				hint := CASE WHEN greatest(s.clock_ahead, -s.clock_ahead) > current_setting('ddblock.clock_slack')::interval
					THEN 'Synchronize this machine''s clock.' END;
			WHEN 'list' THEN
				owners := r.owners;
			WHEN 'other clusters' THEN
				SELECT string_agg(DISTINCT split_part(o, '/', 1), ', ') INTO detail FROM regexp_split_to_table(owners, '\n') o
				WHERE split_part(o, '/', 1) NOT IN ('', split_part(s.owner, '/', 1));
				detail := coalesce(detail, 'none owns one of the first 100 items');
			WHEN 'trouble' THEN
				detail := coalesce(s.trouble, 'none');
				hint := CASE WHEN s.trouble IS NOT NULL THEN 'See the server''s log.' END;
			ELSE
			END CASE;
			result := CASE WHEN hint IS NULL THEN 'ok' ELSE 'warning' END;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			detail := concat_ws('. ', SQLSTATE || ': ' || SQLERRM, nullif(detail, ''));
			hint := nullif(hint, '');
			IF SQLSTATE LIKE 'LK%' THEN		-- the session has lost a lock
				RAISE;
			ELSIF subject = 'queue table' AND SQLSTATE = '42P01' THEN	-- it may not be needed
				no_queues := true;
			ELSIF subject NOT LIKE '%time-to-live' OR SQLSTATE <> '42501' THEN	-- only the check needs that action
				result := 'FAILED';
			END IF;
			-- The lock table's request is the first one that DynamoDB gets.
			subject := CASE WHEN SQLSTATE LIKE '28%' THEN 'credentials' ELSE subject END;
			IF subject IN ('library', 'worker', 'place', 'credentials') OR (subject = 'lock table' AND SQLSTATE <> '42501') THEN
				blocked := subject;
			END IF;
		END; END IF;
		RETURN NEXT;
	END LOOP;
END $$;

COMMENT ON FUNCTION ddb_check() IS
'For operators: tries what ddblock needs, with requests that change nothing, and says what is missing and what to do.';

--
-- Roles
--

-- A role gets nothing that neither list names.  NAME/N is the function with N arguments.
CREATE FUNCTION ddb_role_setup(role name, operator boolean DEFAULT false)
RETURNS void
LANGUAGE plpgsql VOLATILE PARALLEL UNSAFE COST 10000
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
	for_sessions CONSTANT text[] := '{
		ddb_lock_acquire, ddb_lock_try_acquire, ddb_xact_lock_acquire, ddb_xact_lock_try_acquire,
		ddb_lock_acquire_all, ddb_lock_try_acquire_all,
		ddb_xact_lock_acquire_all, ddb_xact_lock_try_acquire_all,
		ddb_lock_acquire_shared, ddb_lock_try_acquire_shared,
		ddb_xact_lock_acquire_shared, ddb_xact_lock_try_acquire_shared,
		ddb_semaphore_acquire, ddb_semaphore_try_acquire,
		ddb_xact_semaphore_acquire, ddb_xact_semaphore_try_acquire,
		ddb_lock_await, ddb_lock_await_all, ddb_lock_await_shared, ddb_semaphore_await,
		ddb_lock_release, ddb_lock_release_all, ddb_lock_release_detached,
		ddb_lock_join, ddb_lock_detach, ddb_lock_outlive,
		ddb_lock_renew, ddb_lock_token, ddb_lock_require, ddb_lock_remaining,
		ddb_lock_monitor, ddb_lock_await_end, ddb_lock_info, ddb_locks,
		ddb_fence_check, ddb_fence_check_shared,
		ddb_leadership_held, ddb_leadership_require, ddb_leaderships,
		ddb_queue_push, ddb_queue_push_all, ddb_queue_push_on_commit,
		ddb_queue_await, ddb_queue_claim, ddb_queue_complete, ddb_queue_fail, ddb_queue_mark_done/3,
		ddb_queue_depths, ddb_queue_list, ddb_queue_summary, ddb_remote}';
	for_operators CONSTANT text[] := '{
		ddb_lock_list, ddb_lock_purge, ddb_lock_force_release, ddb_leadership_resign,
		ddb_check, ddb_check_request, ddb_operations, ddb_stats, ddb_status,
		ddb_queue_cancel, ddb_queue_drop, ddb_queue_mark_done/5, ddb_queue_pause, ddb_queue_purge,
		ddb_queue_redrive, ddb_queue_resume, ddb_outbox_send}';
	granted CONSTANT text[] := for_sessions || CASE WHEN operator THEN for_operators END;
	extension oid;
	schema text;
	owner oid;
	object text;
BEGIN
	IF role IS NULL THEN
		RAISE invalid_parameter_value USING MESSAGE = 'argument "role" must not be null';
	END IF;

	-- All functions of the extension have one owner.  A GRANT by anybody else grants nothing, with
	-- only a WARNING.
	SELECT e.oid, e.extnamespace::regnamespace, p.proowner INTO STRICT extension, schema, owner
	FROM pg_extension e
		JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
		JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
	WHERE e.extname = 'ddblock' AND d.deptype = 'e' AND p.proname = 'ddb_role_setup';
	IF NOT pg_has_role(owner, 'USAGE') THEN
		RAISE insufficient_privilege USING
			MESSAGE = 'permission denied to grant privileges on ddblock''s functions',
			HINT = 'Call ddb_role_setup() as a superuser, or as the owner of the extension''s functions.';
	END IF;

	IF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role) THEN
		RAISE NOTICE USING ERRCODE = 'duplicate_object', MESSAGE = format('role "%s" already exists', role);
	ELSE
		EXECUTE format('CREATE ROLE %I NOLOGIN', role);
	END IF;
	EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I', schema, role);
	FOR object IN
		SELECT format('EXECUTE ON ROUTINE %s', p.oid::regprocedure)
		FROM pg_depend d JOIN pg_proc p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = extension AND d.deptype = 'e'
			AND (p.proname = ANY (granted) OR format('%s/%s', p.proname, p.pronargs) = ANY (granted))
		UNION ALL
		SELECT format(CASE c.relname WHEN 'ddb_remote' THEN 'SELECT, UPDATE (arguments) ON %s'
			ELSE 'SELECT ON %s' END, c.oid::regclass)
		FROM pg_depend d JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
		WHERE d.refclassid = 'pg_extension'::regclass AND d.refobjid = extension AND d.deptype = 'e'
			AND c.relkind = 'v' AND c.relname = ANY (granted)
	LOOP
		EXECUTE format('GRANT %s TO %I', object, role);
	END LOOP;
END $$;

COMMENT ON FUNCTION ddb_role_setup(name, boolean) IS
'For the owner: creates a role if it does not exist, and grants it what sessions need, and with "operator" what operators need.';

--
-- Privileges: a lock costs money, and its name may be confidential.  Of all that this script has
-- made, PUBLIC may use nothing.
--

DO $$
DECLARE
	object pg_catalog.text;
BEGIN
	FOR object IN
		SELECT pg_catalog.concat('ROUTINE ', d.objid::pg_catalog.regprocedure)
		FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
		WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
			AND e.extname OPERATOR(pg_catalog.=) 'ddblock'::pg_catalog.name
			AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
		UNION ALL
		SELECT pg_catalog.concat('TABLE ', c.oid::pg_catalog.regclass)
		FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid OPERATOR(pg_catalog.=) d.refobjid
			JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) d.objid
		WHERE d.refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
			AND e.extname OPERATOR(pg_catalog.=) 'ddblock'::pg_catalog.name
			AND d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass
			AND c.relkind OPERATOR(pg_catalog.<>) 'S'::pg_catalog."char"
	LOOP
		EXECUTE pg_catalog.concat('REVOKE ALL ON ', object, ' FROM PUBLIC');
	END LOOP;
END $$;

GRANT EXECUTE ON FUNCTION ddb_locks() TO pg_monitor;
GRANT EXECUTE ON FUNCTION ddb_operations() TO pg_monitor;
GRANT EXECUTE ON FUNCTION ddb_stats() TO pg_monitor;
GRANT EXECUTE ON FUNCTION ddb_leaderships() TO pg_monitor;
GRANT EXECUTE ON FUNCTION ddb_status() TO pg_monitor;
GRANT SELECT ON ddb_locks TO pg_monitor;
GRANT SELECT ON ddb_operations TO pg_monitor;
GRANT SELECT ON ddb_stats TO pg_monitor;
GRANT SELECT ON ddb_leaderships TO pg_monitor;
GRANT SELECT ON ddb_status TO pg_monitor;
