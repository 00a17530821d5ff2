--
-- The views ddb_locks and ddb_stats.
--
SELECT now() AS start \gset
SELECT ddb_lock_acquire('view', lease => '1 min') AS token \gset
SELECT name, pid = pg_backend_pid() AS pid, database = current_database() AS database,
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
SELECT requests AS before FROM ddb_stats WHERE operation = 'all' \gset
SELECT count(*) FROM ddb_locks;
SELECT requests - :before AS requests FROM ddb_stats WHERE operation = 'all';

--
-- Statistics
--
SELECT operation, requests > 0 AS requests, consumed_units > 0 AS consumed_units,
       leases_held IS NOT NULL AS leases_held, leases_lost IS NOT NULL AS leases_lost,
       waiters IS NOT NULL AS waiters, since <= now() AS since
  FROM ddb_stats
 WHERE operation IN ('acquire', 'renew', 'release', 'read', 'describe_table',
                     'create_table', 'update_ttl', 'all');

-- Every reply is in the histogram; what was sent was replied, or is under way.
SELECT operation AS wrong_counts
  FROM ddb_stats
 WHERE (array_length(latency_histogram, 1) = 16
        AND replies = (SELECT sum(n) FROM unnest(latency_histogram) AS n)
        AND (latency_total > '0') = (replies > 0)
        AND requests >= replies AND requests >= retries AND errors >= throttles) IS NOT TRUE;

SELECT sum(requests) FILTER (WHERE operation <> 'all')
       = sum(requests) FILTER (WHERE operation = 'all') AS requests,
       sum(replies) FILTER (WHERE operation <> 'all')
       = sum(replies) FILTER (WHERE operation = 'all') AS replies
  FROM ddb_stats;

-- One call, one count.
CREATE TEMP TABLE before AS SELECT * FROM ddb_stats;
SELECT ddb_lock_acquire('view', lease => '1 day') > 0 AS acquired;
SELECT ddb_lock_renew('view') > now() AS renewed;
SELECT held FROM ddb_lock_info('view');
SELECT ddb_lock_release('view');
SELECT operation, s.requests - b.requests AS requests, s.replies - b.replies AS replies,
       s.errors - b.errors AS errors, s.throttles - b.throttles AS throttles,
       s.retries - b.retries AS retries
  FROM ddb_stats s JOIN before b USING (operation)
 WHERE s.requests > b.requests;

-- Leases that are held now, and waiters; the worker counts them a moment later.
CREATE FUNCTION pg_temp.leases_held_become(wanted bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    patience timestamptz := clock_timestamp() + '30 s';
BEGIN
    WHILE (wanted, 0) <> (SELECT leases_held, waiters FROM ddb_stats
                           WHERE operation = 'all')
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
