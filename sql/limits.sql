--
-- ddblock.max_leases: so many locks are held at a time, by all sessions.
--
SELECT count(*) FILTER (WHERE NOT becomes_free(name)) AS others FROM ddb_locks;
SELECT count(ddb_lock_acquire('limit/' || i, '1 h')) = current_setting('ddblock.max_leases')::int AS all
  FROM generate_series(1, current_setting('ddblock.max_leases')::int) AS i;
SELECT code, replace(message, current_setting('ddblock.max_leases'), 'N') AS message, hint
  FROM unnest(ARRAY['SELECT ddb_lock_acquire(''limit/more'')',
                    'SELECT ddb_lock_try_acquire(''limit/more'')',
                    'SELECT ddb_xact_lock_acquire(''limit/more'')',
                    'SELECT ddb_xact_lock_try_acquire(''limit/more'')']) AS call,
       failure(call);

-- What is held can be taken once more, and what nobody got is free.
SELECT ddb_lock_acquire('limit/1') > 0 AS acquired;
SELECT held FROM ddb_lock_info('limit/more');
SELECT ddb_lock_release('limit/2');
SELECT ddb_lock_acquire('limit/more') > 0 AS acquired;
SELECT ddb_lock_release_all() = current_setting('ddblock.max_leases')::int AS all;
SELECT count(*) FILTER (WHERE NOT becomes_free(name)) AS others FROM ddb_locks;

--
-- A replication session cannot use ddblock: it outlives the worker.
--
\c -reuse-previous=on replication=database
SELECT ddb_lock_acquire('a');
\echo :LAST_ERROR_SQLSTATE
SELECT ddb_lock_info('a');
\echo :LAST_ERROR_SQLSTATE
\c -reuse-previous=on replication=off
SELECT ddb_lock_token('a');
