/* ddblock_remote--1.0.0.sql */

--
-- ddblock's functions for a database that cannot load ddblock, such as one of Amazon RDS: a lock
-- server, a PostgreSQL of one's own with ddblock, holds the locks.  Each call is one UPDATE of its
-- view ddb_remote through postgres_fdw.  See doc/recipes/managed.md.
--
-- It is installed by CREATE EXTENSION, by pg_tle, or by psql -1 -f.
--

-- Nobody's function or operator in another schema takes the place of PostgreSQL's.
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);

CREATE SCHEMA ddblock;

COMMENT ON SCHEMA ddblock IS 'locks of a lock server';

--
-- Calls.  Only the functions below may use these two.  A caller of ddb_remote_call() could acquire a
-- lock while the COMMIT of its last holder is not visible yet.
--

CREATE FUNCTION ddblock.ddb_remote_call(function text, arguments jsonb DEFAULT NULL)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	-- With the collation of a caller's argument, the UPDATE would not be shipped.
	called CONSTANT text COLLATE "default" := function;
	answer jsonb;
BEGIN
	UPDATE ddblock.ddb_remote AS r SET arguments = ddb_remote_call.arguments
	WHERE r.function = called RETURNING r.result INTO answer;
	IF NOT FOUND THEN
		RAISE feature_not_supported USING
			MESSAGE = format('the lock server does not offer %s()', function),
			HINT = 'Upgrade ddblock there.';
	END IF;
	RETURN answer;
END $$;

--
-- postgres_fdw commits at the lock server just before this database commits, and the next holder may
-- be granted the lock then.  So a transaction that holds a lock takes an advisory lock, too, which
-- ends when its COMMIT is visible, and each holder waits for that one after the grant.
--
-- The block with an EXCEPTION clause is a subtransaction.  Without it, the advisory lock would belong
-- to the cursor that has called, and could end before the transaction.  COLLATE: a name has the same
-- hash in every collation.
--
CREATE FUNCTION ddblock.ddb_remote_acquire(function text, name text, mode text, scope text, arguments jsonb)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	answer CONSTANT jsonb := ddblock.ddb_remote_call(function, jsonb_build_object('name', name) || arguments);
	lock CONSTANT bigint := hashtextextended(name COLLATE "C", 0);
BEGIN
	IF answer = 'false' THEN
		RETURN answer;
	END IF;
	BEGIN
		IF mode = 'shared' THEN
			PERFORM pg_advisory_xact_lock_shared(lock);
		ELSE
			PERFORM pg_advisory_xact_lock(lock);
		END IF;
		IF scope = 'session' THEN
			RAISE SQLSTATE 'DDBLK';  -- gives the advisory lock back
		END IF;
	EXCEPTION WHEN SQLSTATE 'DDBLK' THEN
		NULL;
	END;
	RETURN answer;
END $$;

-- lock_timeout ends a call that waits: it is sent with the call.
CREATE FUNCTION ddblock.ddb_remote_wait(wait interval)
RETURNS interval LANGUAGE plpgsql AS $$
BEGIN
	RETURN least(wait, nullif(current_setting('lock_timeout')::interval, '0'));
END $$;

--
-- Locks
--

CREATE FUNCTION ddblock.ddb_lock_acquire(
	name text, lease interval DEFAULT NULL, wait interval DEFAULT NULL, data bytea DEFAULT NULL,
	at_least interval DEFAULT NULL, at_most interval DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_lock_acquire', name, 'exclusive', 'session',
		jsonb_build_object('lease', lease, 'wait', ddblock.ddb_remote_wait(wait), 'data', data, 'at_least', at_least,
		'at_most', at_most));
END $$;

CREATE FUNCTION ddblock.ddb_lock_try_acquire(
	name text, lease interval DEFAULT NULL, data bytea DEFAULT NULL, at_least interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_lock_try_acquire', name, 'exclusive', 'session',
		jsonb_build_object('lease', lease, 'data', data, 'at_least', at_least, 'at_most', at_most));
END $$;

CREATE FUNCTION ddblock.ddb_lock_acquire_shared(
	name text, lease interval DEFAULT NULL, wait interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_lock_acquire_shared', name, 'shared', 'session',
		jsonb_build_object('lease', lease, 'wait', ddblock.ddb_remote_wait(wait), 'at_most', at_most));
END $$;

CREATE FUNCTION ddblock.ddb_lock_try_acquire_shared(
	name text, lease interval DEFAULT NULL, at_most interval DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_lock_try_acquire_shared', name, 'shared', 'session',
		jsonb_build_object('lease', lease, 'at_most', at_most));
END $$;

CREATE FUNCTION ddblock.ddb_xact_lock_acquire(
	name text, lease interval DEFAULT NULL, wait interval DEFAULT NULL, data bytea DEFAULT NULL,
	at_least interval DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_xact_lock_acquire', name, 'exclusive', 'transaction',
		jsonb_build_object('lease', lease, 'wait', ddblock.ddb_remote_wait(wait), 'data', data, 'at_least', at_least));
END $$;

CREATE FUNCTION ddblock.ddb_xact_lock_try_acquire(
	name text, lease interval DEFAULT NULL, data bytea DEFAULT NULL, at_least interval DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_xact_lock_try_acquire', name, 'exclusive', 'transaction',
		jsonb_build_object('lease', lease, 'data', data, 'at_least', at_least));
END $$;

CREATE FUNCTION ddblock.ddb_xact_lock_acquire_shared(
	name text, lease interval DEFAULT NULL, wait interval DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_xact_lock_acquire_shared', name, 'shared', 'transaction',
		jsonb_build_object('lease', lease, 'wait', ddblock.ddb_remote_wait(wait)));
END $$;

CREATE FUNCTION ddblock.ddb_xact_lock_try_acquire_shared(name text, lease interval DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_acquire('ddb_xact_lock_try_acquire_shared', name, 'shared', 'transaction',
		jsonb_build_object('lease', lease));
END $$;

--
-- Semaphores.  Permits protect no data, so nobody waits for a COMMIT.
--

CREATE FUNCTION ddblock.ddb_semaphore_acquire(
	name text, max_permits integer, permits integer DEFAULT 1, lease interval DEFAULT NULL,
	wait interval DEFAULT NULL, at_most interval DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_call('ddb_semaphore_acquire',
		jsonb_build_object('name', name, 'max_permits', max_permits, 'permits', permits, 'lease', lease,
		'wait', ddblock.ddb_remote_wait(wait), 'at_most', at_most));
END $$;

CREATE FUNCTION ddblock.ddb_semaphore_try_acquire(
	name text, max_permits integer, permits integer DEFAULT 1, lease interval DEFAULT NULL,
	at_most interval DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_call('ddb_semaphore_try_acquire',
		jsonb_build_object('name', name, 'max_permits', max_permits, 'permits', permits, 'lease', lease,
		'at_most', at_most));
END $$;

CREATE FUNCTION ddblock.ddb_xact_semaphore_acquire(
	name text, max_permits integer, permits integer DEFAULT 1, lease interval DEFAULT NULL,
	wait interval DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_call('ddb_xact_semaphore_acquire',
		jsonb_build_object('name', name, 'max_permits', max_permits, 'permits', permits, 'lease', lease,
		'wait', ddblock.ddb_remote_wait(wait)));
END $$;

CREATE FUNCTION ddblock.ddb_xact_semaphore_try_acquire(
	name text, max_permits integer, permits integer DEFAULT 1, lease interval DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_call('ddb_xact_semaphore_try_acquire',
		jsonb_build_object('name', name, 'max_permits', max_permits, 'permits', permits, 'lease', lease));
END $$;

--
-- What this session holds
--

CREATE FUNCTION ddblock.ddb_lock_release(name text, keep boolean DEFAULT true, nowait boolean DEFAULT false)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	released CONSTANT boolean := ddblock.ddb_remote_call('ddb_lock_release',
		jsonb_build_object('name', name, 'keep', keep, 'nowait', nowait));
BEGIN
	IF NOT released THEN
		RAISE WARNING USING
			MESSAGE = format('lock "%s" is not held by this session', name),
			DETAIL = 'It was not acquired for the session, or its lease was lost: see the log of the lock server.';
	END IF;
	RETURN released;
END $$;

CREATE FUNCTION ddblock.ddb_lock_release_all()
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_call('ddb_lock_release_all');
END $$;

CREATE FUNCTION ddblock.ddb_lock_token(name text)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_call('ddb_lock_token', jsonb_build_object('name', name));
END $$;

CREATE FUNCTION ddblock.ddb_lock_require(name text)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
	RETURN ddblock.ddb_remote_call('ddb_lock_require', jsonb_build_object('name', name));
END $$;

-- Less the time that the answer has taken.
CREATE FUNCTION ddblock.ddb_lock_remaining(name text)
RETURNS interval LANGUAGE plpgsql AS $$
DECLARE
	asked_at CONSTANT timestamp with time zone := clock_timestamp();
	remaining CONSTANT interval := ddblock.ddb_remote_call('ddb_lock_remaining',
		jsonb_build_object('name', name)) #>> '{}';
BEGIN
	RETURN CASE WHEN remaining IS NOT NULL
		THEN greatest(remaining - (clock_timestamp() - asked_at), '0') END;
END $$;

--
-- The fence: the same statements as ddblock's
--

CREATE TABLE ddblock.ddb_fences (
	resource text COLLATE "C" PRIMARY KEY,
	token bigint NOT NULL DEFAULT 0 CHECK (token >= 0),
	shared_token bigint NOT NULL DEFAULT 0 CHECK (shared_token >= 0));

COMMENT ON TABLE ddblock.ddb_fences IS
'Highest fencing tokens of each resource, written by ddb_fence_check() and ddb_fence_check_shared().';

CREATE FUNCTION ddblock.ddb_remote_check(argument text, value text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	must CONSTANT text := CASE
		WHEN value IS NULL THEN 'not be null'
		WHEN value = '' THEN 'not be empty'
		WHEN octet_length(value) > 2048 THEN 'not be longer than 2048 bytes' END;
BEGIN
	IF must IS NOT NULL THEN
		RAISE invalid_parameter_value USING MESSAGE = format('argument "%s" must %s', argument, must);
	END IF;
END $$;

CREATE FUNCTION ddblock.ddb_remote_check(argument text, value bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM ddblock.ddb_remote_check(argument, value::text);
	IF value <= 0 THEN
		RAISE invalid_parameter_value USING MESSAGE = format('argument "%s" must be greater than 0', argument);
	END IF;
END $$;

-- higher: the token that makes this one stale, or NULL; recorded: whether the row is as it was
-- written, and nobody's rule or trigger has changed that.
CREATE FUNCTION ddblock.ddb_remote_refuse(resource text, token bigint, higher bigint, recorded boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF higher IS NOT NULL THEN
		RAISE SQLSTATE 'LK002' USING
			MESSAGE = format('fencing token for resource "%s" is stale', resource),
			DETAIL = format('Token %s is recorded, token %s was given.', higher, token),
			HINT = 'Somebody else has held the lock since. Roll the transaction back, and acquire the lock again.';
	ELSIF recorded IS NOT TRUE THEN
		RAISE object_not_in_prerequisite_state USING
			MESSAGE = format('token %s for resource "%s" is not recorded', token, resource),
			HINT = 'Remove the rules and triggers from the tables in schema "ddblock".';
	END IF;
END $$;

-- Writes the row even if the token is not higher: the row's lock makes transactions with higher
-- tokens wait until this one has ended.
CREATE FUNCTION ddblock.ddb_fence_check(resource text, token bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	fence ddblock.ddb_fences;
BEGIN
	PERFORM ddblock.ddb_remote_check('resource', resource), ddblock.ddb_remote_check('token', token);
	INSERT INTO ddblock.ddb_fences AS f (resource, token)
	VALUES (ddb_fence_check.resource, ddb_fence_check.token)
	ON CONFLICT ON CONSTRAINT ddb_fences_pkey DO UPDATE SET token = greatest(f.token, EXCLUDED.token)
	RETURNING f.* INTO fence;
	PERFORM ddblock.ddb_remote_refuse(resource, token,
		CASE WHEN fence.token > token THEN fence.token
			WHEN fence.shared_token >= token THEN fence.shared_token END,
		fence.token >= token);
END $$;

-- Transactions of one shared lock's sessions only share a lock of the row once its token is recorded.
CREATE FUNCTION ddblock.ddb_fence_check_shared(resource text, token bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	fence ddblock.ddb_fences;
BEGIN
	PERFORM ddblock.ddb_remote_check('resource', resource), ddblock.ddb_remote_check('token', token);
	SELECT f.* INTO fence FROM ddblock.ddb_fences AS f
	WHERE f.resource = ddb_fence_check_shared.resource AND f.shared_token >= ddb_fence_check_shared.token
	FOR SHARE;
	IF NOT FOUND THEN
		INSERT INTO ddblock.ddb_fences AS f (resource, shared_token)
		VALUES (ddb_fence_check_shared.resource, ddb_fence_check_shared.token)
		ON CONFLICT ON CONSTRAINT ddb_fences_pkey DO UPDATE
		SET shared_token = greatest(f.shared_token, EXCLUDED.shared_token)
		RETURNING f.* INTO fence;
	END IF;
	PERFORM ddblock.ddb_remote_refuse(resource, token,
		CASE WHEN fence.token >= token THEN fence.token END, fence.shared_token >= token);
END $$;

--
-- Jobs of the lock server's queues whose work is done here
--

CREATE TABLE ddblock.ddb_queue_done (
	queue text COLLATE "C",
	resource text COLLATE "C",
	number bigint NOT NULL CHECK (number > 0),
	pushed_at timestamp with time zone,
	token bigint NOT NULL CHECK (token > 0),
	PRIMARY KEY (queue, resource));

COMMENT ON TABLE ddblock.ddb_queue_done IS
'The last job of each resource whose work is done in this database, written by ddb_queue_mark_done().';

CREATE FUNCTION ddblock.ddb_queue_mark_done(
	queue text, resource text, number bigint, pushed_at timestamp with time zone, token bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	once boolean;
	recorded bigint;
	same boolean;
BEGIN
	PERFORM ddblock.ddb_remote_check('queue', queue), ddblock.ddb_remote_check('resource', resource),
		ddblock.ddb_remote_check('number', number), ddblock.ddb_remote_check('token', token);
	INSERT INTO ddblock.ddb_queue_done AS d VALUES (queue, resource, number, pushed_at, token)
	ON CONFLICT ON CONSTRAINT ddb_queue_done_pkey DO UPDATE
	SET number = EXCLUDED.number, pushed_at = EXCLUDED.pushed_at, token = EXCLUDED.token
	WHERE d.token <= EXCLUDED.token
		AND (d.number, d.pushed_at) IS DISTINCT FROM (EXCLUDED.number, EXCLUDED.pushed_at);
	once := FOUND;
	SELECT d.token, (d.number, d.pushed_at) IS NOT DISTINCT FROM
		(ddb_queue_mark_done.number, ddb_queue_mark_done.pushed_at) INTO recorded, same
	FROM ddblock.ddb_queue_done AS d
	WHERE d.queue = ddb_queue_mark_done.queue AND d.resource = ddb_queue_mark_done.resource;
	PERFORM ddblock.ddb_remote_refuse(format('queue/%s/%s', queue, resource), token,
		CASE WHEN recorded > token THEN recorded END, same);
	RETURN once;
END $$;

--
-- Who may use it
--

CREATE FUNCTION ddblock.ddb_role_setup(role name)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	granted CONSTANT text[] := '{
		ddb_lock_acquire, ddb_lock_try_acquire, ddb_xact_lock_acquire, ddb_xact_lock_try_acquire,
		ddb_lock_acquire_shared, ddb_lock_try_acquire_shared,
		ddb_xact_lock_acquire_shared, ddb_xact_lock_try_acquire_shared,
		ddb_semaphore_acquire, ddb_semaphore_try_acquire,
		ddb_xact_semaphore_acquire, ddb_xact_semaphore_try_acquire,
		ddb_lock_release, ddb_lock_release_all,
		ddb_lock_token, ddb_lock_require, ddb_lock_remaining,
		ddb_fence_check, ddb_fence_check_shared, ddb_queue_mark_done}';
	object regprocedure;
BEGIN
	PERFORM ddblock.ddb_remote_check('role', role::text);
	IF EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role) THEN
		RAISE NOTICE USING ERRCODE = 'duplicate_object', MESSAGE = format('role "%s" already exists', role);
	ELSE
		EXECUTE format('CREATE ROLE %I NOLOGIN', role);
	END IF;
	EXECUTE format('GRANT USAGE ON SCHEMA ddblock TO %I', role);
	FOR object IN
		SELECT p.oid FROM pg_proc p
		WHERE p.pronamespace = 'ddblock'::regnamespace AND p.proname = ANY (granted)
	LOOP
		EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', object, role);
	END LOOP;
END $$;

--
-- What holds for all functions: they reach the lock server, and the tables, as their owner.  PUBLIC
-- may use none.
--

DO $$
DECLARE
	object regprocedure;
BEGIN
	PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
	FOR object IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'ddblock'::regnamespace LOOP
		EXECUTE format('ALTER FUNCTION %s VOLATILE PARALLEL UNSAFE COST 10000 SECURITY DEFINER '
			'SET search_path = pg_catalog, pg_temp', object);
		EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', object);
	END LOOP;
	-- Whoever calls this one grants with his own privileges.
	ALTER FUNCTION ddblock.ddb_role_setup(name) SECURITY INVOKER;
	-- An extension's tables are dumped only if it says so.
	BEGIN
		PERFORM pg_extension_config_dump('ddblock.ddb_fences', '');
		PERFORM pg_extension_config_dump('ddblock.ddb_queue_done', '');
	EXCEPTION WHEN feature_not_supported THEN
		NULL;  -- psql runs this script
	END;
END $$;
