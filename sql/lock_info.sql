--
-- What a session is told of its own locks, and what stands in DynamoDB.
--
-- Of a lock that nobody ever took, nothing.
SELECT * FROM ddb_lock_info('info/' || gen_random_uuid());
SELECT ddb_lock_token('info');
SELECT ddb_lock_require('info');
\echo :LAST_ERROR_SQLSTATE
SELECT ddb_lock_renew('info');
\echo :LAST_ERROR_SQLSTATE

-- Of one that is held, everything.
SELECT now() AS start \gset
SELECT ddb_lock_acquire('info', lease => '1 min', data => 'some data') AS token \gset
SELECT ddb_lock_token('info') = :token AS token, ddb_lock_require('info') = :token AS required;
SELECT held,
       owner LIKE coalesce(nullif(current_setting('ddblock.owner_name'), ''),
                           nullif(current_setting('cluster_name'), '') || '@' || host, host) || '/%'
           AS owner,
       substring(owner from '[^/]*$') ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' AS incarnation,
       datname = current_database() AS datname,
       usename = session_user AS usename,
       application_name = current_setting('application_name') AS application_name,
       pid = pg_backend_pid() AS pid,
       host <> '' AS host,
       -- by DynamoDB's clock
       acquired_at BETWEEN :'start'::timestamptz - interval '1 min'
                       AND clock_timestamp() + interval '1 min' AS acquired_at,
       lease, token = :token AS token, encode(data, 'escape') AS data,
       version ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' AS version
  FROM ddb_lock_info('info') \gx
SELECT owner, version FROM ddb_lock_info('info') \gset

-- Every write has a version of its own; one cluster has one owner name.
SELECT ddb_lock_renew('info') BETWEEN clock_timestamp() + '30 s' AND clock_timestamp() + '1 min'
       AS valid_until;
SELECT version <> :'version' AS version, owner = :'owner' AS owner, token = :token AS token,
       lease, encode(data, 'escape') AS data
  FROM ddb_lock_info('info');

-- Of one that is free again, what was left; that is nothing of the holder.
SELECT ddb_lock_release('info');
SELECT held, owner = :'owner' AS owner, datname, usename, application_name, pid, host,
       acquired_at, lease, token = :token AS token, data, version <> :'version' AS version
  FROM ddb_lock_info('info') \gx
SELECT ddb_lock_token('info');
SELECT ddb_lock_require('info');

-- A new holder does not get the last one's data, and need not wait for a
-- transaction to end to hold its lock.
SELECT ddb_lock_acquire('info') > :token AS higher_token;
SELECT data FROM ddb_lock_info('info');
BEGIN;
SELECT ddb_xact_lock_acquire('info/xact') = ddb_lock_require('info/xact') AS required;
COMMIT;
SELECT ddb_lock_require('info/xact');
SELECT ddb_lock_release('info');

--
-- Renewal
--
-- It can change the lease's length, and concerns no other lock.
SELECT ddb_lock_acquire('info', lease => '1 min') AS token \gset
SELECT ddb_lock_acquire('info/other', lease => '1 min') > 0 AS acquired;
SELECT ddb_lock_renew('info', lease => '1 day') > clock_timestamp() + '12 h' AS valid_until;
SELECT name, lease, renewals, time_left > '12 h' AS time_left
  FROM ddb_locks WHERE name IN ('info', 'info/other') ORDER BY name COLLATE "C";
SELECT ddb_lock_renew('info', lease => '1 min') < clock_timestamp() + '1 min' AS valid_until;
SELECT ddb_lock_renew('info') < clock_timestamp() + '1 min' AS valid_until;
SELECT name, lease, renewals, time_left > '12 h' AS time_left
  FROM ddb_locks WHERE name IN ('info', 'info/other') ORDER BY name COLLATE "C";
SELECT lease FROM ddb_lock_info('info');
SELECT ddb_lock_token('info') = :token AS same_token;
SELECT ddb_lock_remaining('info') BETWEEN interval '10 s' AND interval '54 s' AS remaining;
SELECT ddb_lock_release_all();
SELECT ddb_lock_remaining('info') IS NULL AS none;
BEGIN;
SELECT ddb_xact_lock_acquire('info', lease => '1 min') > 0 AS acquired;
SELECT ddb_lock_renew('info', lease => '1 day') > clock_timestamp() + '12 h' AS valid_until;
COMMIT;
SELECT ddb_lock_renew('info');

--
-- Data
--
-- Any bytes, up to 4,096 of them, through each function.
SELECT string_agg(decode(lpad(to_hex(i % 256), 2, '0'), 'hex'), '') AS bytes
  FROM generate_series(0, 4095) AS i \gset
BEGIN;
SELECT ddb_lock_acquire('data/1', data => :'bytes') > 0 AS acquired;
SELECT ddb_lock_try_acquire('data/2', data => :'bytes') AS acquired;
SELECT ddb_xact_lock_acquire('data/3', data => :'bytes') > 0 AS acquired;
SELECT ddb_xact_lock_try_acquire('data/4', data => :'bytes') AS acquired;
SELECT i, data = :'bytes' AS same_data FROM generate_series(1, 4) AS i, ddb_lock_info('data/' || i);
COMMIT;
SELECT ddb_lock_acquire('data/5', data => '\x00') > 0 AS acquired;
SELECT ddb_lock_acquire('data/6', data => '') > 0 AS acquired;
SELECT ddb_lock_acquire('data/7') > 0 AS acquired;
SELECT i, data, data IS NULL AS none FROM generate_series(5, 7) AS i, ddb_lock_info('data/' || i);

-- The next holder's replaces it.
SELECT ddb_lock_release('data/1');
SELECT ddb_lock_acquire('data/1', data => 'next') > 0 AS acquired;
SELECT encode(data, 'escape') AS data FROM ddb_lock_info('data/1');
SELECT ddb_lock_release('data/1');
SELECT ddb_lock_acquire('data/1') > 0 AS acquired;
SELECT data FROM ddb_lock_info('data/1');
SELECT ddb_lock_release_all();

-- A renewal keeps it, changes it, or removes it.
SELECT ddb_lock_acquire('data/8', data => 'first') > 0 AS acquired;
SELECT ddb_lock_renew('data/8') > now() AS renewed;
SELECT encode(data, 'escape') AS data FROM ddb_lock_info('data/8');
SELECT ddb_lock_renew('data/8', '1 min', :'bytes') > now() AS renewed;
SELECT lease, data = :'bytes' AS new_data FROM ddb_lock_info('data/8');
SELECT ddb_lock_renew('data/8') > now() AS renewed;
SELECT lease, data = :'bytes' AS same_data FROM ddb_lock_info('data/8');
SELECT ddb_lock_renew('data/8', data => '') > now() AS renewed;
SELECT data IS NULL AS none FROM ddb_lock_info('data/8');
SELECT ddb_lock_renew('data/8', data => :'bytes' || '\x00'::bytea);
\echo :LAST_ERROR_SQLSTATE
SELECT ddb_lock_acquire_shared('data/9') > 0 AS acquired;
SELECT ddb_lock_renew('data/9', data => 'x');
\echo :LAST_ERROR_SQLSTATE
SELECT ddb_lock_release_all();
