--
-- Limits of the functions' arguments.
--
-- Requests are counted at the end.  Of its own accord the worker sends one only if none was
-- sent for 15 s, to keep a connection open: a slow machine takes as long.
SELECT ddb_lock_acquire('arguments/keep', lease => '1 day') > 0 AS acquired;
SELECT writes() AS writes_before,
       (SELECT requests FROM ddb_operations WHERE operation = 'read') AS reads_before,
       clock_timestamp() AS began \gset

CREATE TEMP TABLE calls (argument text, call text);
INSERT INTO calls VALUES
    ('name', 'ddb_lock_acquire(%s)'),
    ('name', 'ddb_lock_try_acquire(%s)'),
    ('name', 'ddb_xact_lock_acquire(%s)'),
    ('name', 'ddb_xact_lock_try_acquire(%s)'),
    ('name', 'ddb_lock_release(%s)'),
    ('name', 'ddb_lock_renew(%s)'),
    ('name', 'ddb_lock_token(%s)'),
    ('name', 'ddb_lock_require(%s)'),
    ('name', 'ddb_lock_remaining(%s)'),
    ('name', 'ddb_lock_monitor(%s, ''1 s'')'),
    ('less_than', 'ddb_lock_monitor(''arguments'', %s)'),
    ('wait', 'ddb_lock_monitor(''arguments'', ''1 s'', %s)'),
    ('name', 'ddb_lock_info(%s)'),
    ('lease', 'ddb_lock_acquire(''arguments'', lease => %s)'),
    ('lease', 'ddb_lock_try_acquire(''arguments'', lease => %s)'),
    ('lease', 'ddb_xact_lock_acquire(''arguments'', lease => %s)'),
    ('lease', 'ddb_xact_lock_try_acquire(''arguments'', lease => %s)'),
    ('lease', 'ddb_lock_renew(''arguments'', lease => %s)'),
    ('wait', 'ddb_lock_acquire(''arguments'', wait => %s)'),
    ('wait', 'ddb_xact_lock_acquire(''arguments'', wait => %s)'),
    ('data', 'ddb_lock_acquire(''arguments'', data => %s)'),
    ('data', 'ddb_lock_try_acquire(''arguments'', data => %s)'),
    ('data', 'ddb_xact_lock_acquire(''arguments'', data => %s)'),
    ('data', 'ddb_xact_lock_try_acquire(''arguments'', data => %s)');

-- How all functions that have the argument fail with these values.
PREPARE failures (text, text[]) AS
    SELECT value, count(*) AS functions, code, message, nullif(detail, '') AS detail
      FROM calls, unnest($2) WITH ORDINALITY AS bad (value, n),
           failure(format('SELECT ' || call, value))
     WHERE argument = $1
     GROUP BY n, value, code, message, detail
     ORDER BY n, code, message;

-- A name is needed, of 1 to 2,048 bytes in UTF-8.
EXECUTE failures('name', ARRAY['NULL', '''''', 'repeat(''x'', 2049)', 'repeat(''é'', 1025)',
                               'repeat(''x'', 2047) || ''é''', 'repeat(''x'', 1000000)']);

-- A lease takes 2 seconds to 1 day.
EXECUTE failures('lease', ARRAY['''0''', '''-20 s''', '''1.999999 s''', '''1 day 1 us''',
                                '''2 days''', '''-1 day''', '''1 month''', '''-1 year''',
                                '''1 month -30 days 20 s''', '''178000000 years''']);

-- A wait takes some time.
EXECUTE failures('wait', ARRAY['''0''', '''-1 us''', '''-1 s''', '''-2 days''', '''1 month''',
                               '''-1 month 31 days''']);

-- So does what a monitor waits for.
EXECUTE failures('less_than', ARRAY['NULL', '''0''', '''-1 s''', '''1 month''']);

-- Data has at most 4,096 bytes.
EXECUTE failures('data', ARRAY['convert_to(repeat(''x'', 4097), ''UTF8'')',
                               'convert_to(repeat(''x'', 1000000), ''UTF8'')']);

-- Capacity is provisioned for both reads and writes, or for neither.
SELECT call, code, message
  FROM unnest(ARRAY['ddb_lock_table_create(1, NULL)', 'ddb_lock_table_create(NULL, 1)',
                    'ddb_lock_table_create(0, 1)', 'ddb_lock_table_create(1, 0)',
                    'ddb_lock_table_create(-1, 1)', 'ddb_lock_table_create(1, -1)',
                    'ddb_lock_table_create(protect => NULL)'])
           AS call,
       failure('SELECT ' || call);

-- Nothing of this was asked of DynamoDB.
SELECT writes() - :writes_before AS writes, greatest(requests - :reads_before -
       trunc(extract(epoch FROM clock_timestamp() - :'began') / 15), 0) AS reads
  FROM ddb_operations WHERE operation = 'read';

--
-- The limits themselves are within them.
--
SELECT ddb_lock_acquire(repeat('x', 2048)) > 0 AS acquired;
SELECT ddb_lock_acquire(repeat('é', 1024),
                        data => convert_to(repeat('x', 4096), 'UTF8')) > 0 AS acquired;
SELECT ddb_lock_acquire('x', lease => '1 day', wait => '300000 days') > 0 AS acquired;
SELECT length(name), octet_length(name) AS bytes, lease FROM ddb_locks
 WHERE name <> 'arguments/keep' ORDER BY 1, 2;
SELECT octet_length(data) FROM ddb_lock_info(repeat('é', 1024));
-- A machine that stands still for two seconds loses such a lease: one statement each.
SELECT ddb_lock_renew('x', '2 s') < clock_timestamp() + '2 s' AS shorter,
       ddb_lock_renew('x', '1 day') > clock_timestamp() + '12 h' AS longer;
SELECT ddb_lock_acquire('y', lease => '2 s') > 0 AS acquired, ddb_lock_release('y');

-- Names are compared byte by byte, and hold what they like.
SELECT count(ddb_lock_acquire(name))
  FROM unnest(ARRAY['X', ' x', 'x ', E'x\n', E'\t', '"x"', '''', '\', '{"S": "x"}',
                    '%s', 'x/y', '#key', ':token', E'\x01', '😀']) AS name;
SELECT to_json(name) FROM ddb_locks
 WHERE octet_length(name) < 20 AND name <> 'arguments/keep' ORDER BY name COLLATE "C";
SELECT ddb_lock_release_all();

-- NULL stands for the default.
SELECT ddb_lock_acquire('arguments', NULL, NULL, NULL) > 0 AS acquired;
SELECT lease = current_setting('ddblock.lease_duration')::interval AS default_lease
  FROM ddb_locks WHERE name = 'arguments';
SELECT data FROM ddb_lock_info('arguments');
SELECT ddb_lock_renew('arguments', NULL) > clock_timestamp() AS renewed;
SELECT ddb_lock_try_acquire('arguments', NULL, NULL) AS acquired;
DO $$
BEGIN
  IF NOT ddb_lock_try_acquire('arguments') OR NOT ddb_xact_lock_try_acquire('arguments') OR
     NOT ddb_lock_try_acquire_all('{arguments}') OR NOT ddb_xact_lock_try_acquire_all('{arguments}') THEN
    RAISE 'a try is a condition';
  END IF;
END $$;
SELECT ddb_lock_release_all();
