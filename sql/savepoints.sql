--
-- Savepoints: ROLLBACK TO frees what was taken since, RELEASE keeps it.
--
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SAVEPOINT s1;
SELECT ddb_xact_lock_acquire('b') > 0 AS acquired;
SAVEPOINT s2;
SELECT ddb_xact_lock_acquire('c') > 0 AS acquired;
ROLLBACK TO s2;
SELECT * FROM mine;
SELECT ddb_lock_token('c');
SELECT becomes_free('c');
-- It can be taken again, at once as well.
SELECT ddb_xact_lock_acquire('c') AS token \gset
ROLLBACK TO s2;
SELECT ddb_xact_lock_acquire('c') > :token AS higher_token;
RELEASE s2;
SELECT * FROM mine;
RELEASE s1;
SELECT * FROM mine;
COMMIT;
SELECT * FROM mine;
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'b', 'c']) AS lock;

-- An outer savepoint takes back what an inner one has kept.
BEGIN;
SAVEPOINT s1;
SAVEPOINT s2;
SAVEPOINT s3;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
RELEASE s3;
SELECT ddb_xact_lock_acquire('b') > 0 AS acquired;
RELEASE s2;
SELECT ddb_xact_lock_acquire('c') > 0 AS acquired;
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'b', 'c']) AS lock;
COMMIT;

-- Several levels at once.
BEGIN;
SAVEPOINT s1;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SAVEPOINT s2;
SELECT ddb_xact_lock_acquire('b') > 0 AS acquired;
SAVEPOINT s3;
SELECT ddb_xact_lock_acquire('c') > 0 AS acquired;
ROLLBACK TO s1;
SELECT * FROM mine;
ROLLBACK;
SELECT becomes_free(lock) FROM unnest(ARRAY['a', 'b', 'c']) AS lock;

--
-- Stacked acquisitions belong to the savepoint in which they were made.
--
BEGIN;
SELECT ddb_xact_lock_acquire('a') AS token \gset
SAVEPOINT s1;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SAVEPOINT s2;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SELECT * FROM mine;
ROLLBACK TO s2;
SELECT * FROM mine;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
RELEASE s2;
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
SELECT ddb_lock_require('a') = :token AS same_token;
COMMIT;
SELECT becomes_free('a');

-- First taken inside, stacked further inside.
BEGIN;
SAVEPOINT s1;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SAVEPOINT s2;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
RELEASE s2;
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
SELECT becomes_free('a');
COMMIT;

--
-- Session scope knows of no savepoints.
--
BEGIN;
SAVEPOINT s1;
SELECT ddb_lock_acquire('a') AS token \gset
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SAVEPOINT s2;
SELECT ddb_lock_acquire('a') = :token AS same_token;
SELECT ddb_xact_lock_acquire('a') = :token AS same_token;
SELECT * FROM mine;
ROLLBACK TO s2;
SELECT * FROM mine;
SELECT ddb_lock_release('a');
ROLLBACK TO s2;
SELECT * FROM mine;
ROLLBACK;
SELECT * FROM mine;
SELECT ddb_lock_release('a');

-- The session's part is given back inside: the transaction's frees the lock.
SELECT ddb_lock_acquire('a') > 0 AS acquired;
BEGIN;
SAVEPOINT s1;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SELECT ddb_lock_release('a');
SELECT * FROM mine;
ROLLBACK TO s1;
SELECT * FROM mine;
SELECT becomes_free('a');
COMMIT;

--
-- Exception blocks are savepoints.
--
BEGIN;
DO $$
BEGIN
    BEGIN
        PERFORM ddb_xact_lock_acquire('a');
    EXCEPTION WHEN OTHERS THEN
        RAISE NOTICE 'this is not reached';
    END;
    BEGIN
        PERFORM ddb_xact_lock_acquire('a');
        PERFORM ddb_xact_lock_acquire('b');
        PERFORM ddb_lock_acquire('c');
        PERFORM 1/0;
    EXCEPTION WHEN division_by_zero THEN
        RAISE NOTICE 'b: %', ddb_lock_token('b');
    END;
END $$;
SELECT * FROM mine;
SELECT becomes_free('b');
COMMIT;
SELECT * FROM mine;
SELECT ddb_lock_release('c');

-- A failed call leaves nothing, and harms nothing that was there.
BEGIN;
SELECT ddb_xact_lock_acquire('a') > 0 AS acquired;
SAVEPOINT s1;
SELECT ddb_xact_lock_acquire('');
ROLLBACK TO s1;
SELECT * FROM mine;
COMMIT;

-- Many levels, many times.
BEGIN;
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        BEGIN
            PERFORM ddb_xact_lock_acquire('a'), ddb_xact_lock_acquire('many/' || i % 5);
            IF i % 2 = 0 THEN
                RAISE EXCEPTION 'back';
            END IF;
        EXCEPTION WHEN raise_exception THEN
        END;
    END LOOP;
END $$;
SELECT * FROM mine;
ROLLBACK;
SELECT * FROM mine;
