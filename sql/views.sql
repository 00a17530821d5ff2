--
-- The views: ddb_locks, ddb_stats, ddb_operations, ddb_status.
--
SELECT now() AS start \gset
SELECT ddb_lock_acquire('view', lease => '1 min') AS token \gset
SELECT name, count(*) AS joined FROM ddb_locks JOIN pg_stat_activity USING (pid, datname, usename) GROUP BY name;
SELECT name, pid = pg_backend_pid() AS pid, datname = current_database() AS datname,
       usename = session_user AS usename, scope, depth, token = :token AS token,
       lease, acquired_at BETWEEN :'start'::timestamptz - interval '1 min'
                       AND clock_timestamp() + interval '1 min' AS acquired_at,
       time_left BETWEEN '10 s' AND '1 min' AS time_left, renewals, waiters, state
  FROM ddb_locks WHERE name = 'view' \gx
SELECT ddb_lock_renew('view') > now() AS renewed;
SELECT renewals FROM ddb_locks WHERE name = 'view';

-- What is free is not there, and neither is what was only looked at.
SELECT ddb_lock_release('view');
SELECT held FROM ddb_lock_info('view');
SELECT count(*) FROM ddb_locks WHERE name = 'view';

-- A lease counts its own renewals, not those of the one before it.
SELECT ddb_lock_acquire('view') > 0 AS acquired;
SELECT renewals FROM ddb_locks WHERE name = 'view';
SELECT ddb_lock_release('view');

-- Looking at the views sends no requests.
SELECT ddb_lock_acquire('keep', lease => '1 day') > 0 AS acquired;
SELECT count(*) FILTER (WHERE NOT becomes_free(name)) AS others
  FROM ddb_locks WHERE name <> 'keep';
SELECT sum(requests) AS before FROM ddb_operations \gset
SELECT count(*) FROM ddb_locks, ddb_stats, ddb_status;
SELECT sum(requests) - :before AS requests FROM ddb_operations;

--
-- Statistics
--
SELECT operation, requests > 0 AS requests, consumed_units > 0 AS consumed_units,
       since <= now() AS since
  FROM ddb_operations
 WHERE operation IN ('acquire', 'renew', 'release', 'read', 'describe_table',
                     'create_table', 'update_ttl');
SELECT operation FROM ddb_operations;

-- Every reply is in the histogram; what was sent was replied, or is under way.
SELECT operation AS wrong_counts
  FROM ddb_operations
 WHERE (array_length(latency_histogram, 1) = 16
        AND replies = (SELECT sum(n) FROM unnest(latency_histogram) AS n)
        AND (latency_total > '0') = (replies > 0)
        AND requests >= replies AND requests >= retries AND errors >= throttles) IS NOT TRUE;

-- One call, one count.
CREATE TEMP TABLE before AS SELECT * FROM ddb_operations;
CREATE TEMP TABLE stats_before AS SELECT * FROM ddb_stats;
SELECT ddb_lock_acquire('view', lease => '1 day') > 0 AS acquired;
SELECT ddb_lock_renew('view') > now() AS renewed;
SELECT held FROM ddb_lock_info('view');
SELECT ddb_lock_release('view');
SELECT operation, s.requests - b.requests AS requests, s.replies - b.replies AS replies,
       s.errors - b.errors AS errors, s.throttles - b.throttles AS throttles,
       s.retries - b.retries AS retries
  FROM ddb_operations s JOIN before b USING (operation)
 WHERE s.requests > b.requests;
SELECT s.acquired - b.acquired AS acquired, s.busy - b.busy AS busy,
       s.timed_out - b.timed_out AS timed_out, s.leases_lost - b.leases_lost AS leases_lost
  FROM ddb_stats s, stats_before b;

-- Leases that are held now, and waiters; the worker counts them a moment later.
CREATE FUNCTION pg_temp.leases_held_become(wanted bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    patience timestamptz := clock_timestamp() + '30 s';
BEGIN
    WHILE (wanted, 0) <> (SELECT leases_held, waiters FROM ddb_stats)
          AND clock_timestamp() < patience LOOP
        PERFORM pg_sleep(0.01);
    END LOOP;
    RETURN clock_timestamp() < patience;
END $$;
SELECT pg_temp.leases_held_become(1);
SELECT count(ddb_lock_acquire('view/' || i)) FROM generate_series(1, 9) AS i;
SELECT pg_temp.leases_held_become(10);
SELECT ddb_lock_release_all();
SELECT pg_temp.leases_held_become(0);

--
-- The worker's state; test/tap/340_views.pl has what changes it.
--
SELECT worker_pid = pid AS worker_pid,
       worker_since BETWEEN pg_postmaster_start_time() AND now() AS worker_since,
       worker_starts >= 1 AS worker_starts
  FROM ddb_status, pg_stat_activity WHERE backend_type = 'ddblock worker';
SELECT region IS NOT NULL AS region, endpoint ~ '^http' AS endpoint, proxy, lock_table,
       owner ~ '/[0-9a-f-]{36}$' AS owner, credentials IS NOT NULL AS credentials,
       credentials_expire_at, last_reply_at <= clock_timestamp() AS last_reply_at, trouble,
       clock_ahead BETWEEN '-1 min' AND '1 min' AS clock_ahead,
       clock_error BETWEEN '0' AND '1 min' AS clock_error,
       connections BETWEEN 1 AND max_connections AS connections,
       leases BETWEEN 0 AND max_leases AS leases, library_version = extversion AS library_version,
       http_library ~ '^libcurl/' AS http_library
  FROM ddb_status, pg_extension WHERE extname = 'ddblock' \gx
