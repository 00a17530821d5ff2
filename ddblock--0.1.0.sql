/* ddblock--0.1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION ddblock" to load this file. \quit

--
-- Acquiring
--

CREATE FUNCTION ddb_lock_acquire(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	data bytea DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_acquire(text, interval, interval, bytea) IS
'acquire a session-scoped lock, waiting at most "wait" for it; returns its fencing token';

CREATE FUNCTION ddb_lock_try_acquire(
	name text,
	lease interval DEFAULT NULL,
	data bytea DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_try_acquire(text, interval, bytea) IS
'acquire a session-scoped lock if it is free; returns its fencing token, or null if it is not';

CREATE FUNCTION ddb_xact_lock_acquire(
	name text,
	lease interval DEFAULT NULL,
	wait interval DEFAULT NULL,
	data bytea DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_xact_lock_acquire(text, interval, interval, bytea) IS
'acquire a lock until the transaction ends, waiting at most "wait" for it; returns its fencing token';

CREATE FUNCTION ddb_xact_lock_try_acquire(
	name text,
	lease interval DEFAULT NULL,
	data bytea DEFAULT NULL)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_xact_lock_try_acquire(text, interval, bytea) IS
'acquire a lock until the transaction ends if it is free; returns its fencing token, or null if it is not';

--
-- Releasing
--

CREATE FUNCTION ddb_lock_release(name text)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_release(text) IS
'undo one session-scoped acquisition; false, with a warning, if there was none or the lease was lost';

CREATE FUNCTION ddb_lock_release_all()
RETURNS integer
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_release_all() IS
'undo all session-scoped acquisitions; returns the number of locks held so';

--
-- What this session holds
--

CREATE FUNCTION ddb_lock_renew(name text, lease interval DEFAULT NULL)
RETURNS timestamp with time zone
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_renew(text, interval) IS
'renew a lease now, and change its length if "lease" is given; returns until when it is valid';

CREATE FUNCTION ddb_lock_token(name text)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_token(text) IS
'fencing token of a lock that this session holds, or null';

CREATE FUNCTION ddb_lock_require(name text)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_require(text) IS
'fencing token of a lock that this session holds, or error LK001';

--
-- Fence
--

-- In the order of bytes: no change of the system's collations harms the index.
CREATE TABLE ddb_fences (
	resource text COLLATE "C" PRIMARY KEY,
	token bigint NOT NULL CHECK (token > 0));

COMMENT ON TABLE ddb_fences IS
'highest fencing token of each resource; written by ddb_fence()';
COMMENT ON COLUMN ddb_fences.resource IS
'what is protected, as named to ddb_fence()';
COMMENT ON COLUMN ddb_fences.token IS
'no transaction with a lower token commits';

SELECT pg_catalog.pg_extension_config_dump('ddb_fences', '');

CREATE FUNCTION ddb_fence(resource text, token bigint)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL UNSAFE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp;

COMMENT ON FUNCTION ddb_fence(text, bigint) IS
'refuse this transaction, error LK002, if a higher fencing token is recorded for "resource", and record this one; the transaction cannot commit once a call has failed or was rolled back to a savepoint';

--
-- The lock table
--

CREATE FUNCTION ddb_lock_info(
	name text,
	OUT held boolean,
	OUT owner text,
	OUT database text,
	OUT usename text,
	OUT application_name text,
	OUT pid integer,
	OUT host text,
	OUT acquired_at timestamp with time zone,
	OUT lease interval,
	OUT token bigint,
	OUT data bytea,
	OUT version text)
RETURNS record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_info(text) IS
'who holds a lock, read consistently from DynamoDB';

CREATE FUNCTION ddb_lock_table_create(
	read_units bigint DEFAULT NULL,
	write_units bigint DEFAULT NULL)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_table_create(bigint, bigint) IS
'create the lock table in DynamoDB, on-demand or with provisioned capacity, and wait until it is active';

--
-- Operator's tools
--

CREATE FUNCTION ddb_lock_list(
	prefix text DEFAULT '',
	watch interval DEFAULT NULL,
	OUT name text,
	OUT state text,
	OUT owner text,
	OUT database text,
	OUT usename text,
	OUT application_name text,
	OUT pid integer,
	OUT host text,
	OUT acquired_at timestamp with time zone,
	OUT released_at timestamp with time zone,
	OUT lease interval,
	OUT token bigint,
	OUT version text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_list(text, interval) IS
'items of the whole lock table: "held", "released", or "dead-looking" if this session has seen a holder not renew for its whole lease; "watch" looks twice, so long apart';

CREATE FUNCTION ddb_lock_purge(older_than interval)
RETURNS bigint
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_purge(interval) IS
'delete items of locks released that long ago, at least a day; returns how many';

CREATE FUNCTION ddb_lock_force_release(name text)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_lock_force_release(text) IS
'take a lock away from its holder, who may believe to hold it until its next renewal: two holders can overlap, and only fencing tokens tell them apart; false if it was free';

--
-- Views
--

CREATE FUNCTION ddb_locks(
	OUT name text,
	OUT pid integer,
	OUT database text,
	OUT usename text,
	OUT scope text,
	OUT depth bigint,
	OUT token bigint,
	OUT acquired_at timestamp with time zone,
	OUT lease interval,
	OUT time_left interval,
	OUT renewals bigint,
	OUT waiters integer,
	OUT state text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_locks() IS
'locks that sessions of this cluster hold or wait for';

CREATE VIEW ddb_locks AS SELECT * FROM ddb_locks();

COMMENT ON VIEW ddb_locks IS
'locks that sessions of this cluster hold or wait for';

CREATE FUNCTION ddb_stats(
	OUT operation text,
	OUT requests bigint,
	OUT errors bigint,
	OUT throttles bigint,
	OUT retries bigint,
	OUT replies bigint,
	OUT latency_total interval,
	OUT latency_histogram bigint[],
	OUT consumed_units double precision,
	OUT leases_held bigint,
	OUT leases_lost bigint,
	OUT waiters bigint,
	OUT last_loss_at timestamp with time zone,
	OUT last_loss text,
	OUT since timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION ddb_stats() IS
'counters of this cluster''s requests to DynamoDB since the server started';

CREATE VIEW ddb_stats AS SELECT * FROM ddb_stats();

COMMENT ON VIEW ddb_stats IS
'counters of this cluster''s requests to DynamoDB since the server started';

COMMENT ON COLUMN ddb_stats.latency_histogram IS
'replies that took less than 0.5 ms, 1 ms, 2 ms, and so on, doubling; the last element counts the rest';

--
-- Privileges: a lock costs money, and its name may tell something
--

REVOKE ALL ON FUNCTION ddb_lock_acquire(text, interval, interval, bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_try_acquire(text, interval, bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_xact_lock_acquire(text, interval, interval, bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_xact_lock_try_acquire(text, interval, bytea) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_release(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_release_all() FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_renew(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_token(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_require(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_fence(text, bigint) FROM PUBLIC;
REVOKE ALL ON ddb_fences FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_info(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_table_create(bigint, bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_list(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_purge(interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_lock_force_release(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_locks() FROM PUBLIC;
REVOKE ALL ON FUNCTION ddb_stats() FROM PUBLIC;
REVOKE ALL ON ddb_locks FROM PUBLIC;
REVOKE ALL ON ddb_stats FROM PUBLIC;

GRANT EXECUTE ON FUNCTION ddb_locks() TO pg_monitor;
GRANT EXECUTE ON FUNCTION ddb_stats() TO pg_monitor;
GRANT SELECT ON ddb_locks TO pg_monitor;
GRANT SELECT ON ddb_stats TO pg_monitor;
