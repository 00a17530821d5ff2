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
-- Who releases before COMMIT what others then act on gets a warning.
--
CREATE TABLE written (n int);
SELECT ddb_lock_acquire(name) > 0 AS acquired FROM unnest(ARRAY['a', 'b', 'c', 'd', 'e', 'twice', 'twice']) AS name;
SELECT ddb_xact_lock_acquire('mine') > 0 AS acquired, ddb_lock_acquire_shared('shared') > 0 AS acquired,
       ddb_semaphore_acquire('permits', 2) > 0 AS acquired;
BEGIN;
SELECT ddb_xact_lock_acquire('c') > 0 AS acquired;
SELECT count(*) FROM written;
SELECT ddb_lock_release('a');
INSERT INTO written VALUES (1);
SELECT ddb_lock_release('twice');
SELECT ddb_lock_release('c');
SELECT ddb_lock_release('permits');
SELECT ddb_lock_release('b');
SELECT ddb_lock_release('shared');
SELECT ddb_lock_release('d', nowait => true);
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_release_all();
COMMIT;

-- The next holder's call of the fence function waits.
SELECT ddb_lock_acquire('a') > 0 AS acquired;
BEGIN;
SELECT ddb_fence_check('a', ddb_lock_require('a'));
SELECT ddb_lock_release('a');
COMMIT;
DROP TABLE written;
DELETE FROM ddb_fences WHERE resource = 'a';

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
