--
-- Transaction scope: what ends with the transaction, and which transactions
-- there can be.
--
-- Commit and rollback free the lock.
BEGIN;
SELECT ddb_xact_lock_acquire('a') = ddb_lock_token('a') AS same_token;
SELECT * FROM mine;
COMMIT;
SELECT ddb_lock_token('a');
SELECT becomes_free('a');

BEGIN;
SELECT ddb_xact_lock_try_acquire('a') AS acquired;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SELECT * FROM mine;
ROLLBACK;
SELECT ddb_lock_token('a');
SELECT becomes_free('a');

-- An error does.
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SELECT 1/0;
COMMIT;
SELECT ddb_lock_token('a');
SELECT becomes_free('a');

-- A transaction of one statement is one.
SELECT ddb_xact_lock_acquire('a') = ddb_lock_require('a') AS same_token;
SELECT ddb_lock_token('a');
SELECT becomes_free('a');

-- So are those of a procedure; COMMIT AND CHAIN starts another one.
DO $$
BEGIN
    PERFORM ddb_xact_lock_acquire('a');
    PERFORM ddb_xact_lock_acquire('b');
    COMMIT;
    RAISE NOTICE 'a: %', ddb_lock_token('a');
    PERFORM ddb_xact_lock_acquire('a');
    ROLLBACK;
    RAISE NOTICE 'a: %, b: %', ddb_lock_token('a'), ddb_lock_token('b');
END $$;
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
COMMIT AND CHAIN;
SELECT ddb_lock_token('a');
COMMIT;
SELECT becomes_free('a');

-- The next transaction gets it again at once, with a higher token.
BEGIN;
SELECT ddb_xact_lock_acquire('a') AS token \gset
COMMIT;
BEGIN;
SELECT ddb_xact_lock_acquire('a') > :token AS higher_token;
COMMIT;

-- Nothing is written to the database.
BEGIN READ ONLY;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SELECT ddb_xact_lock_try_acquire('b') AS acquired;
SELECT ddb_lock_acquire('c') > 0 AS acquired;
SELECT ddb_lock_try_acquire('d') AS acquired;
SELECT ddb_lock_renew('a') > clock_timestamp() AS renewed;
SELECT ddb_lock_token('a') = ddb_lock_require('a') AS same_token;
SELECT held FROM ddb_lock_info('a');
SELECT * FROM mine;
SELECT ddb_lock_release('c');
SELECT ddb_lock_release_all();
SELECT pg_current_xact_id_if_assigned();
COMMIT;
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'b', 'c', 'd']) AS lock;

-- Every isolation level will do.
BEGIN ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
COMMIT;
SELECT becomes_free('a');

--
-- PREPARE TRANSACTION
--
-- Transaction scope would have to outlive the session.
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
PREPARE TRANSACTION 'ddblock';
\echo :LAST_ERROR_SQLSTATE
SELECT ddb_lock_token('a');
SELECT becomes_free('a');
SELECT count(*) FROM pg_prepared_xacts;

-- Beside session scope, too.
SELECT ddb_lock_acquire('a') > 0 AS acquired;
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
PREPARE TRANSACTION 'ddblock';
SELECT * FROM mine;

-- If a savepoint has taken it back, or with session scope alone, it may.
BEGIN;
SAVEPOINT s;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SELECT ddb_xact_lock_acquire('b') > 0 AS acquired;
ROLLBACK TO s;
PREPARE TRANSACTION 'ddblock';
SELECT count(*) FROM pg_prepared_xacts;
SELECT * FROM mine;
COMMIT PREPARED 'ddblock';
SELECT * FROM mine;
SELECT ddb_lock_release('a');
