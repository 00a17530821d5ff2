--
-- Freeing session-scoped locks, singly and all at once.
--
-- What is not held cannot be released: a warning, no error.
SELECT ddb_lock_release('a');
SELECT ddb_lock_release_all();
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_release('a');
SELECT ddb_lock_token('a') IS NOT NULL AS held;
COMMIT;
SELECT ddb_lock_release('a');

-- True means that DynamoDB knows.
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT held FROM ddb_lock_info('a');
SELECT ddb_lock_release('a');
SELECT held FROM ddb_lock_info('a');

-- release_all counts locks, not acquisitions.
SELECT count(ddb_lock_acquire('all/' || i % 5)) FROM generate_series(1, 25) AS i;
SELECT ddb_lock_release_all();
SELECT i, held FROM generate_series(0, 4) AS i, ddb_lock_info('all/' || i);
SELECT * FROM mine;

--
-- DISCARD ALL frees session scope, as it frees advisory locks.
--
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_acquire('b') > 0 AS acquired;
DISCARD PLANS;
DISCARD SEQUENCES;
DISCARD TEMP;
SELECT * FROM mine;

-- One that fails frees nothing.
BEGIN;
DISCARD ALL;
ROLLBACK;
SELECT * FROM mine;

DISCARD ALL;
SELECT * FROM mine;
SELECT ddb_lock_token('a'), ddb_lock_token('b');
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'b']) AS lock;

-- The session goes on as a new one would, even with the same lock at once.
SELECT ddb_lock_acquire('a') AS token \gset
DISCARD ALL;
SELECT ddb_lock_acquire('a') > :token AS higher_token;
SELECT * FROM mine;
SELECT ddb_lock_release('a');
DISCARD ALL;

-- The end of the session frees them, too.
SELECT ddb_lock_acquire('a') > 0 AS acquired;
BEGIN;
SELECT ddb_xact_lock_acquire('b') > 0 AS acquired;
\c -
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'b']) AS lock;
