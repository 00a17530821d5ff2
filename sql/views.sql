--
-- The views ddb_locks and ddb_stats.
--
SELECT now() AS start \gset
SELECT ddb_lock_acquire('view', lease => '1 min') AS token \gset
SELECT name, pid = pg_backend_pid() AS pid, database = current_database() AS database,
       usename = session_user AS usename, scope, depth, token = :token AS token,
       acquired_at BETWEEN :'start' AND clock_timestamp() AS acquired_at, lease,
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

-- Neither view sends requests, nor can anybody write to them.
SELECT ddb_lock_acquire('keep', lease => '1 day') > 0 AS acquired;
SELECT count(*) FILTER (WHERE NOT becomes_free(name)) AS others
  FROM ddb_locks WHERE name <> 'keep';
SELECT requests AS before FROM ddb_stats WHERE operation = 'all' \gset
SELECT count(*) FROM ddb_locks;
SELECT requests - :before AS requests FROM ddb_stats WHERE operation = 'all';
DELETE FROM ddb_locks;
DELETE FROM ddb_stats;

--
-- Statistics
--
SELECT operation, requests > 0 AS requests, consumed_units > 0 AS consumed_units,
       leases_held IS NOT NULL AS leases_held, leases_lost IS NOT NULL AS leases_lost,
       waiters, since <= now() AS since
  FROM ddb_stats
 WHERE operation NOT IN ('renew_batch', 'hand_over');

-- Every reply is in the histogram; what was sent was replied, or is under way.
SELECT operation, array_length(latency_histogram, 1) AS buckets,
       replies = (SELECT sum(n) FROM unnest(latency_histogram) AS n) AS histogram,
       (latency_total > '0') = (replies > 0) AS latency_total,
       requests >= replies AND requests >= retries AND errors >= throttles AS counts
  FROM ddb_stats;
SELECT sum(requests) FILTER (WHERE operation <> 'all')
       = sum(requests) FILTER (WHERE operation = 'all') AS requests,
       sum(replies) FILTER (WHERE operation <> 'all')
       = sum(replies) FILTER (WHERE operation = 'all') AS replies
  FROM ddb_stats;

-- One call, one count.
CREATE TEMP TABLE before AS SELECT operation, requests FROM ddb_stats;
SELECT ddb_lock_acquire('view', lease => '1 day') > 0 AS acquired;
SELECT ddb_lock_renew('view') > now() AS renewed;
SELECT held FROM ddb_lock_info('view');
SELECT ddb_lock_release('view');
SELECT operation, s.requests - b.requests AS requests, errors, throttles, retries
  FROM ddb_stats s JOIN before b USING (operation)
 WHERE s.requests > b.requests;

-- Leases that are held now.
SELECT leases_held FROM ddb_stats WHERE operation = 'all';
SELECT count(ddb_lock_acquire('view/' || i)) FROM generate_series(1, 9) AS i;
SELECT leases_held FROM ddb_stats WHERE operation = 'all';
SELECT ddb_lock_release_all();
SELECT leases_held FROM ddb_stats WHERE operation = 'all';
