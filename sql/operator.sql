--
-- The operator's tools.
--
-- A list of what stands in the table, by prefix.
SELECT ddb_lock_acquire('op/held', lease => '1 min', data => 'not shown') AS held \gset
SELECT ddb_lock_acquire('op/released') AS released, ddb_lock_release('op/released') \gset
SELECT ddb_lock_acquire('op%/élan') AS accent, ddb_lock_release('op%/élan') \gset
SELECT name, state FROM ddb_lock_list('op') ORDER BY name COLLATE "C";
SELECT name, state FROM ddb_lock_list('op/') ORDER BY name COLLATE "C";
SELECT name FROM ddb_lock_list('op%');
SELECT count(*) FROM ddb_lock_list('no such prefix');
SELECT count(*) > 2 AS others_too FROM ddb_lock_list();
SELECT count(*) = (SELECT count(*) FROM ddb_lock_list('')) AS null_is_empty
  FROM ddb_lock_list(NULL);

-- With what ddb_lock_info tells of each.
SELECT l.owner = i.owner AS owner, l.datname = i.datname AS datname,
       l.usename = i.usename AS usename, l.application_name = i.application_name AS application,
       l.pid = i.pid AS pid, l.host = i.host AS host, l.acquired_at = i.acquired_at AS acquired_at,
       l.released_at, l.lease, l.token = :held AS token, l.version = i.version AS version
  FROM ddb_lock_list('op/held') l, ddb_lock_info('op/held') i \gx
SELECT state, owner IS NOT NULL AS owner, pid, acquired_at,
       released_at BETWEEN now() - interval '1 min' AND now() + interval '1 min' AS released_at,
       token = :released AS token
  FROM ddb_lock_list('op/released');

-- Looking twice takes as long as one wants; a lease that is longer is not over.
SELECT clock_timestamp() AS start \gset
SELECT name, state FROM ddb_lock_list('op/', watch => '300 ms') ORDER BY name COLLATE "C";
SELECT clock_timestamp() - :'start' >= interval '300 ms' AS waited;

-- What was released today is not deleted.
SELECT ddb_lock_purge('1 day');
SELECT name FROM ddb_lock_list('op/') ORDER BY name COLLATE "C";

-- Arguments, refused before anything is asked of DynamoDB.
SELECT code, message, detail FROM failure($$SELECT ddb_lock_purge('23:59:59')$$);
SELECT code, message FROM failure($$SELECT ddb_lock_purge(NULL)$$);
SELECT code, message FROM failure($$SELECT ddb_lock_purge('1 month')$$);
SELECT code, message FROM failure($$SELECT ddb_lock_purge('-1 day')$$);
SELECT code, message FROM failure($$SELECT ddb_lock_list(repeat('é', 1025))$$);
SELECT code, message FROM failure($$SELECT ddb_lock_list('', '0')$$);
SELECT code, message FROM failure($$SELECT ddb_lock_force_release(NULL)$$);
SELECT code, message FROM failure($$SELECT ddb_lock_force_release('')$$);

--
-- Release by force
--
-- Of what is free: nothing.
SELECT ddb_lock_force_release('op/released'), ddb_lock_force_release('op/never was');
-- Of what is held: it is free, and its holder is told that it may not know.
SET client_min_messages = error;	-- the warning names this run's owner
SELECT ddb_lock_force_release('op/held');
RESET client_min_messages;
SELECT state, owner IS NOT NULL AS owner, pid, token = :held AS token
  FROM ddb_lock_list('op/held');
SELECT ddb_lock_force_release('op/held');
-- The next renewal finds out; the statement that asks for it need not be cancelled.
SET ddblock.on_lease_lost = none;
SELECT code, message, detail FROM failure($$SELECT ddb_lock_renew('op/held')$$);
SELECT ddb_lock_release('op/held');
SELECT ddb_lock_acquire('op/held') > :held AS higher_token;
SELECT ddb_lock_release('op/held');

--
-- Each is counted under its own name
--
SELECT operation, requests > 0 AS requests, replies > 0 AS replies, errors
  FROM ddb_operations WHERE operation IN ('scan', 'delete', 'force_release');

--
-- Privileges: by default, superusers only
--
CREATE ROLE operator_test IN ROLE pg_monitor;
SET ROLE operator_test;
SELECT code, message FROM failure($$SELECT ddb_lock_list()$$);
SELECT code, message FROM failure($$SELECT ddb_lock_purge('1 day')$$);
SELECT code, message FROM failure($$SELECT ddb_lock_force_release('op/held')$$);
RESET ROLE;
GRANT EXECUTE ON FUNCTION ddb_lock_force_release(text, text) TO operator_test;
SET ROLE operator_test;
SELECT ddb_lock_force_release('op/held');
RESET ROLE;
DROP OWNED BY operator_test;
DROP ROLE operator_test;
