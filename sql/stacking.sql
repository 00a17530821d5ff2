--
-- Acquiring again what the session holds; session and transaction scope on
-- one lease.
--
-- As many releases as acquisitions free the lock.
SELECT ddb_lock_acquire('a', lease => '1 day') AS token \gset
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_lock_try_acquire('a'), ddb_lock_token('a') = :token AS same_token;
SELECT * FROM mine;
SELECT ddb_lock_release('a');
SELECT ddb_lock_release('a');
SELECT * FROM mine;
SELECT ddb_lock_token('a') = :token AS same_token, held FROM ddb_lock_info('a');
SELECT ddb_lock_release('a');
SELECT * FROM mine;
SELECT ddb_lock_token('a'), held FROM ddb_lock_info('a');
SELECT ddb_lock_release('a');

-- Taken anew, its token is a higher one.
SELECT ddb_lock_acquire('a', lease => '1 day') > :token AS higher_token;

-- Lease and data of a stacked call are ignored.
SELECT ddb_lock_acquire('a', lease => '2 s', wait => '1 ms', data => 'x') > 0 AS acquired;
SELECT lease, data FROM ddb_lock_info('a');
SELECT ddb_lock_release_all();

-- Only the first acquisition and the last release send a request.
SELECT ddb_lock_acquire('keep', lease => '1 day') > 0 AS acquired;
SELECT count(*) FILTER (WHERE NOT becomes_free(name)) AS others
  FROM ddb_locks WHERE name <> 'keep';
SELECT writes() AS before \gset
SELECT ddb_lock_acquire('a', lease => '1 day') > 0 AS acquired;
SELECT writes() - :before AS writes;
SELECT count(ddb_lock_acquire('a')) FROM generate_series(1, 10);
SELECT count(ddb_lock_try_acquire('a')) FROM generate_series(1, 10);
SELECT ddb_lock_token('a') = ddb_lock_require('a') AS same_token;
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
COMMIT;
SELECT count(*) FILTER (WHERE ddb_lock_release('a')) FROM generate_series(1, 20);
SELECT writes() - :before AS writes;
SELECT ddb_lock_release('a');
SELECT writes() - :before AS writes;
SELECT ddb_lock_release_all();

--
-- Both scopes
--
-- The session's part outlives the transaction.
SELECT ddb_lock_acquire('a') AS token \gset
BEGIN;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SELECT ddb_xact_lock_try_acquire('a'), ddb_lock_token('a') = :token AS same_token;
SELECT * FROM mine;
COMMIT;
SELECT * FROM mine;

-- The transaction's part outlives the session's.
BEGIN;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SELECT ddb_lock_release('a');
SELECT * FROM mine;
SELECT ddb_lock_token('a') = :token AS same_token;
-- It cannot be released by hand.
SELECT ddb_lock_release('a');
SELECT ddb_lock_release_all();
SELECT * FROM mine;
-- A session's part can be added.
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT * FROM mine;
SELECT ddb_lock_release('a');
COMMIT;
SELECT * FROM mine;
SELECT becomes_free('a');

-- All of the session's at once.
BEGIN;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_acquire('b') > 0 AS acquired;
SELECT ddb_xact_lock_acquire('b') > 0 AS acquired;
SELECT ddb_xact_lock_acquire('c') > 0 AS acquired;
SELECT * FROM mine;
SELECT ddb_lock_release_all();
SELECT * FROM mine;
SELECT ddb_lock_release_all();
COMMIT;
SELECT * FROM mine;
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'b', 'c']) AS lock;

-- Session scope has nothing to do with transactions.
BEGIN;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
ROLLBACK;
SELECT * FROM mine;
BEGIN;
SELECT ddb_lock_release('a');
ROLLBACK;
SELECT ddb_lock_token('a'), held FROM ddb_lock_info('a');

-- Another name is another lock.
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_release('A');
SELECT ddb_lock_release('a ');
SELECT ddb_lock_release('a');

--
-- A query that has cheaper conditions, too, takes the lock only for rows that pass them.
--
SELECT n FROM generate_series(1, 20) AS n
 WHERE ddb_lock_try_acquire('w') AND (n * 3 + 1) % 20 = 2;
SELECT depth FROM ddb_locks WHERE name = 'w';
SELECT ddb_lock_release('w');
