--
-- ddb_fence_check: a transaction with a token lower than a recorded one is refused.
--
SELECT ddb_fence_check('orders', 5);
SELECT resource, token FROM ddb_fences;
-- The same holder may run several transactions, and a later holder as well.
SELECT ddb_fence_check('orders', 5);
SELECT ddb_fence_check('orders', 7);
SELECT ddb_fence_check('orders', 6);
\echo :LAST_ERROR_SQLSTATE
-- A resource is a name, byte for byte, and each has its own token.
SELECT ddb_fence_check('Orders', 1), ddb_fence_check('orders ', 2), ddb_fence_check(repeat('x', 2048), 3);
SELECT ddb_fence_check('largest', 9223372036854775807);
SELECT ddb_fence_check('largest', 9223372036854775806);
SELECT left(resource, 10) AS resource, token FROM ddb_fences ORDER BY resource;

-- The token of a lock is one.
SELECT ddb_lock_acquire('a') AS token \gset
BEGIN;
SELECT ddb_fence_check('a', ddb_lock_require('a'));
COMMIT;
SELECT token = :token AS same FROM ddb_fences WHERE resource = 'a';
SELECT ddb_lock_release('a');

-- Shared locks: their tokens do not refuse each other, but exclusive ones do, and
-- they refuse those.
SELECT ddb_fence_check_shared('shared', 5), ddb_fence_check_shared('shared', 3);
SELECT ddb_fence_check('shared', 5);
SELECT ddb_fence_check('shared', 6), ddb_fence_check('shared', 6);
SELECT ddb_fence_check_shared('shared', 6);
\echo :LAST_ERROR_SQLSTATE
SELECT ddb_fence_check_shared('shared', 5);
SELECT ddb_fence_check_shared('shared', 8);
SELECT ddb_fence_check('shared', 6);
SELECT token, shared_token FROM ddb_fences WHERE resource = 'shared';
SELECT ddb_lock_acquire_shared('s') AS token \gset
BEGIN;
SELECT ddb_fence_check_shared('s', ddb_lock_require('s'));
COMMIT;
SELECT shared_token = :token AS same FROM ddb_fences WHERE resource = 's';
SELECT ddb_lock_release('s');

-- Arguments
SELECT ddb_fence_check(NULL, 1);
SELECT ddb_fence_check_shared(NULL, 1);
SELECT ddb_fence_check_shared('orders', 0);
SELECT ddb_fence_check('', 1);
SELECT ddb_fence_check(repeat('x', 2049), 1);
SELECT ddb_fence_check('orders', 0);
SELECT ddb_fence_check('orders', -1);
SELECT ddb_fence_check('orders', NULL);
\echo :LAST_ERROR_SQLSTATE

-- What is rolled back was not recorded.
BEGIN;
SELECT ddb_fence_check('orders', 8);
ROLLBACK;
SELECT ddb_fence_check('orders', 7);

-- Read-only transactions have nothing to fence.
BEGIN READ ONLY;
SELECT ddb_fence_check('orders', 7);
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;

--
-- Who goes on without the fence does not commit
--
CREATE TABLE work (n integer);

-- Rolled back to a savepoint
BEGIN;
SAVEPOINT s;
SELECT ddb_fence_check('orders', 7);
ROLLBACK TO s;
INSERT INTO work VALUES (1);
COMMIT;
\echo :LAST_ERROR_SQLSTATE

-- ... to an outer one
BEGIN;
SAVEPOINT s1;
SAVEPOINT s2;
SELECT ddb_fence_check('orders', 7);
RELEASE s2;
ROLLBACK TO s1;
INSERT INTO work VALUES (2);
COMMIT;

-- ... an inner one among fences that stand; nothing makes up for it.
BEGIN;
SELECT ddb_fence_check('orders', 7);
SAVEPOINT s1;
SELECT ddb_fence_check('orders', 8);
SAVEPOINT s2;
SELECT ddb_fence_check('other', 8);
ROLLBACK TO s2;
RELEASE s1;
SELECT ddb_fence_check('other', 8);
INSERT INTO work VALUES (3);
COMMIT;

-- An error is swallowed.
BEGIN;
INSERT INTO work VALUES (4);
SELECT * FROM failure($$SELECT ddb_fence_check('orders', 6)$$);
COMMIT;
\echo :LAST_ERROR_SQLSTATE
DO $$
BEGIN
    INSERT INTO work VALUES (5);
    PERFORM ddb_fence_check('orders', 6);
EXCEPTION WHEN SQLSTATE 'LK002' THEN
    INSERT INTO work VALUES (6);
END $$;

-- ... any error, and of any transaction: it may have written elsewhere.
SELECT code, message FROM failure($$SELECT ddb_fence_check('orders', NULL)$$);
BEGIN READ ONLY;
SELECT code, message FROM failure($$SELECT ddb_fence_check('orders', 7)$$);
COMMIT;

-- A later error of the same block undoes the fence.
DO $$
BEGIN
    BEGIN
        PERFORM ddb_fence_check('orders', 7);
        PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
    INSERT INTO work VALUES (7);
END $$;

-- PREPARE TRANSACTION is no way out.
BEGIN;
SAVEPOINT s;
SELECT ddb_fence_check('orders', 7);
ROLLBACK TO s;
INSERT INTO work VALUES (8);
PREPARE TRANSACTION 'undone';
\echo :LAST_ERROR_SQLSTATE

-- A procedure that commits is stopped where it does.
CREATE PROCEDURE swallow(first integer) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM failure('SELECT ddb_fence_check(''orders'', 6)');
    INSERT INTO work VALUES (first);
    COMMIT;
    INSERT INTO work VALUES (first + 1);
END $$;
CALL swallow(9);

SELECT count(*) AS written, (SELECT count(*) FROM pg_prepared_xacts) AS prepared FROM work;
SELECT token FROM ddb_fences WHERE resource = 'orders';

--
-- Who has it does
--
-- RELEASE keeps it, and so does what fails before and after.
BEGIN;
SAVEPOINT s1;
SAVEPOINT s2;
SELECT ddb_fence_check('orders', 8);
RELEASE s2;
RELEASE s1;
SAVEPOINT s3;
SELECT 1 / 0;
ROLLBACK TO s3;
INSERT INTO work VALUES (11);
COMMIT;
DO $$
BEGIN
    PERFORM FROM failure('SELECT 1 / 0');
    PERFORM ddb_fence_check('orders', 9);
    PERFORM FROM failure('SELECT 1 / 0');
    INSERT INTO work VALUES (12);
EXCEPTION WHEN division_by_zero THEN
    NULL;
END $$;

-- Each transaction starts anew: after ROLLBACK, after a refused COMMIT, with
-- AND CHAIN, in a procedure.
BEGIN;
SAVEPOINT s;
SELECT ddb_fence_check('orders', 10);
ROLLBACK TO s;
ROLLBACK AND CHAIN;
SELECT ddb_fence_check('orders', 10);
INSERT INTO work VALUES (13);
COMMIT AND CHAIN;
SAVEPOINT s;
INSERT INTO work VALUES (14);
ROLLBACK TO s;
INSERT INTO work VALUES (15);
COMMIT;
CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$
BEGIN
    FOR n IN 16..18 LOOP
        PERFORM ddb_fence_check('orders', n);
        INSERT INTO work VALUES (n);
        COMMIT;
        PERFORM FROM failure('SELECT 1 / 0');
    END LOOP;
    PERFORM FROM failure('SELECT ddb_fence_check(''orders'', 17)');
    ROLLBACK;
    INSERT INTO work VALUES (19);
END $$;
CALL steps();
BEGIN;
SELECT ddb_fence_check('orders', 20);
INSERT INTO work VALUES (20);
PREPARE TRANSACTION 'fenced';
COMMIT PREPARED 'fenced';
SELECT array_agg(n ORDER BY n) AS written FROM work;
SELECT token FROM ddb_fences WHERE resource = 'orders';

--
-- The table
--
-- It is found wherever the extension lies, and no other is taken for it.
CREATE TEMP TABLE ddb_fences (resource text PRIMARY KEY, token bigint);
CREATE SCHEMA regress_ddblock;
CREATE TABLE regress_ddblock.ddb_fences (resource text PRIMARY KEY, token bigint);
BEGIN;
SET LOCAL search_path = pg_temp, regress_ddblock, public;
SELECT ddb_fence_check('orders', 19);
ROLLBACK;
DROP TABLE pg_temp.ddb_fences, regress_ddblock.ddb_fences;

BEGIN;
ALTER EXTENSION ddblock SET SCHEMA regress_ddblock;
SELECT regress_ddblock.ddb_fence_check('orders', 21);
SELECT token FROM regress_ddblock.ddb_fences WHERE resource = 'orders';
SELECT regress_ddblock.ddb_fence_check('orders', 20);
ROLLBACK;

-- A trigger that keeps the token from being recorded does not open the fence.
CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE FUNCTION falsify() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN NEW.token := 1; RETURN NEW; END';
CREATE TRIGGER suppress BEFORE INSERT ON ddb_fences
    FOR EACH ROW EXECUTE FUNCTION suppress();
SELECT ddb_fence_check('new', 2);
DROP TRIGGER suppress ON ddb_fences;
CREATE TRIGGER falsify BEFORE INSERT ON ddb_fences
    FOR EACH ROW EXECUTE FUNCTION falsify();
SELECT ddb_fence_check('new', 2);
\echo :LAST_ERROR_SQLSTATE
DROP TRIGGER falsify ON ddb_fences;

CREATE TRIGGER suppress BEFORE INSERT ON ddb_fences
    FOR EACH ROW EXECUTE FUNCTION suppress();
SELECT ddb_fence_check_shared('new', 2);
DROP TRIGGER suppress ON ddb_fences;

-- pg_dump takes all of its rows.
SELECT c::regclass AS is_dumped, condition
  FROM pg_extension, unnest(extconfig, extcondition) AS d (c, condition)
 WHERE extname = 'ddblock' ORDER BY c::regclass::text COLLATE "C";

DROP FUNCTION suppress, falsify;
DROP PROCEDURE swallow, steps;
DROP TABLE work;
DROP SCHEMA regress_ddblock;
DELETE FROM ddb_fences;
