--
-- Settings: their units, defaults and limits, and who can change them.
--
SELECT name, vartype AS type, unit, context, boot_val AS default, min_val AS min, max_val AS max
  FROM pg_settings WHERE name LIKE 'ddblock.%' ORDER BY name COLLATE "C";
SELECT name FROM pg_settings WHERE name LIKE 'ddblock.%' AND short_desc = '';

-- Where requests go is fixed at server start, and not even a superuser's
-- session can change it; what is read on reload, neither. Secrets are in no list.
SELECT name, code
  FROM (SELECT name FROM pg_settings
         WHERE name LIKE 'ddblock.%' AND context NOT IN ('user', 'superuser')
        UNION VALUES ('ddblock.access_key_id'), ('ddblock.secret_access_key'),
                     ('ddblock.session_token'), ('ddblock.proxy')) AS fixed,
       failure(format('SET ddblock.%I TO ''1''', substr(name, 9)))
 WHERE code IS DISTINCT FROM '55P02';
SELECT call, code
  FROM unnest(ARRAY['ALTER DATABASE postgres SET ddblock.lock_table = ''other''',
                    'ALTER ROLE CURRENT_USER SET ddblock.endpoint_url = ''other''']) AS call,
       failure(call);

-- A session's own settings have limits, and no others can be made up.
SELECT call, code
  FROM unnest(ARRAY['SET ddblock.lease_duration = ''1999 ms''',
                    'SET ddblock.lease_duration = ''86401 s''',
                    'SET ddblock.lease_duration = -1',
                    'SET ddblock.safety_margin = 0.04',
                    'SET ddblock.safety_margin = 0.51',
                    'SET ddblock.leese_duration = ''10 s''']) AS call,
       failure(call);

-- The lease that calls have unless they say otherwise.
SET ddblock.lease_duration = '10 s';
SELECT ddb_lock_acquire('a') > 0 AS acquired;
SET ddblock.lease_duration = '1 d';
SELECT ddb_lock_acquire('b') > 0 AS acquired;
SELECT ddb_lock_try_acquire('c') AS acquired;
SELECT ddb_lock_try_acquire('d', lease => '11 s') AS acquired;
SELECT name, lease FROM ddb_locks WHERE name IN ('a', 'b', 'c', 'd') ORDER BY name COLLATE "C";

-- It is no matter of a renewal.
SET ddblock.lease_duration = '10 s';
SELECT ddb_lock_renew('b') > now() + '12 h' AS still_long;
SELECT ddb_lock_release_all();
RESET ddblock.lease_duration;

-- A session can widen the margin before a lease's end, and cannot narrow the
-- server's.
CREATE FUNCTION part_left(lock text) RETURNS numeric LANGUAGE sql
    RETURN (SELECT round(extract(epoch FROM time_left) / extract(epoch FROM lease), 2)
              FROM ddb_locks WHERE name = lock);
SELECT ddb_lock_acquire('a', lease => '1 day') > 0 AS acquired;
SELECT part_left('a') = 1 - current_setting('ddblock.safety_margin')::numeric AS servers_margin;
SET ddblock.safety_margin = 0.5;
SELECT ddb_lock_acquire('b', lease => '1 day') > 0 AS acquired;
SELECT part_left('b');
SELECT ddb_lock_renew('a', lease => '1 day') > now() AS renewed;
SELECT part_left('a');
SET ddblock.safety_margin = 0.05;
SELECT ddb_lock_acquire('c', lease => '1 day') > 0 AS acquired;
RESET ddblock.safety_margin;
SELECT part_left('c') = 1 - current_setting('ddblock.safety_margin')::numeric AS servers_margin;
SELECT ddb_lock_release_all();
DROP FUNCTION part_left;
