--
-- ddblock.release_on_rollback: a rollback undoes session-scoped acquisitions.
--
SHOW ddblock.release_on_rollback;
SET ddblock.release_on_rollback = on;

-- A statement that fails leaves nothing held.
SELECT ddb_lock_acquire('a') / 0;
SELECT * FROM mine;
SELECT becomes_free('a');

-- COMMIT keeps the lock; a later rollback does not undo it.
BEGIN;
SELECT ddb_lock_acquire('a') AS token \gset
COMMIT;
BEGIN;
ROLLBACK;
SELECT * FROM mine;

-- The rollback undoes its own transaction's acquisitions, and no other ones.
BEGIN;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_lock_acquire('b') > 0 AS acquired;
SELECT * FROM mine;
ROLLBACK;
SELECT * FROM mine;
SELECT becomes_free('b');

-- A release undoes the latest acquisition first, and is not undone itself.
BEGIN;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_lock_release('a');
ROLLBACK;
SELECT * FROM mine;
BEGIN;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SAVEPOINT s1;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_lock_release('a');
SELECT ddb_lock_release('a');
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
ROLLBACK;
SELECT * FROM mine;
BEGIN;
SELECT ddb_lock_release('a');
SELECT ddb_lock_acquire('a') > :token AS higher_token;
ROLLBACK;
SELECT * FROM mine;
SELECT becomes_free('a');

-- Savepoints: a rollback to one undoes what was acquired since; RELEASE gives it to the parent.
BEGIN;
SELECT ddb_lock_acquire('a') AS token \gset
SAVEPOINT s1;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SAVEPOINT s2;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_lock_acquire('b') > 0 AS acquired;
RELEASE s2;
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
SELECT becomes_free('b');
SAVEPOINT s3;
SELECT ddb_lock_acquire('c') > 0 AS acquired;
RELEASE s3;
COMMIT;
SELECT * FROM mine;
SELECT ddb_lock_release_all();

-- Both scopes in one level, and in levels between which one has nothing.
BEGIN;
SELECT ddb_xact_lock_acquire('a') AS token \gset
SAVEPOINT s1;
SAVEPOINT s2;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SELECT * FROM mine;
RELEASE s2;
SELECT ddb_lock_release('a');
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
SELECT ddb_lock_acquire('a') = :token AS same_token;
COMMIT;
SELECT * FROM mine;
BEGIN;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
ROLLBACK;
SELECT * FROM mine;
SELECT ddb_lock_release('a');

-- All locks at once: none of what they held comes back.
SELECT ddb_lock_acquire('a') > 0 AS acquired;
BEGIN;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SAVEPOINT s1;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_release_all();
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
ROLLBACK;
SELECT becomes_free('a');

-- Shared locks, permits, several locks; a lock that is detached stays.
BEGIN;
SELECT ddb_lock_acquire_shared('a') > 0 AS acquired;
SELECT ddb_semaphore_acquire('permits', 2) > 0 AS acquired;
SELECT count(*) FROM unnest(ddb_lock_acquire_all(ARRAY['several/1', 'several/2']));
SELECT ddb_lock_acquire('detached') AS token \gset
SELECT ddb_lock_detach('detached', at_most => '1 min') = :token AS same_token;
SELECT * FROM mine;
ROLLBACK;
SELECT * FROM mine;
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'several/1', 'several/2']) AS lock;
SELECT ddb_lock_release_detached('detached', :token);

-- Exception blocks are savepoints; a procedure's COMMIT and ROLLBACK end transactions.
DO $$
BEGIN
    BEGIN
        PERFORM ddb_lock_acquire('a');
        PERFORM 1/0;
    EXCEPTION WHEN division_by_zero THEN
        RAISE NOTICE 'a: %', ddb_lock_token('a');
    END;
    PERFORM ddb_lock_acquire('b');
    COMMIT;
    PERFORM ddb_lock_acquire('c');
    ROLLBACK;
END $$;
SELECT * FROM mine;
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'c']) AS lock;
SELECT ddb_lock_release('b');

-- What counts is the setting at the time of the acquisition.
BEGIN;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SET LOCAL ddblock.release_on_rollback = off;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_acquire('b') > 0 AS acquired;
ROLLBACK;
SELECT * FROM mine;
SELECT ddb_lock_release_all();

-- PREPARE TRANSACTION keeps them, as COMMIT does.
BEGIN;
SELECT ddb_lock_acquire('a') > 0 AS acquired;
PREPARE TRANSACTION 'p';
ROLLBACK PREPARED 'p';
SELECT * FROM mine;
SELECT ddb_lock_release('a');

-- Many levels, many times.
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        BEGIN
            PERFORM ddb_lock_acquire('a'), ddb_lock_acquire('many/' || i % 5);
            IF i % 2 = 0 THEN
                RAISE EXCEPTION 'back';
            END IF;
        EXCEPTION WHEN raise_exception THEN
        END;
    END LOOP;
END $$;
SELECT * FROM mine;
SELECT ddb_lock_release_all();
SELECT * FROM mine;
