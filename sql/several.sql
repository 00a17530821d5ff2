--
-- Several locks in one call: all or none.
--
SELECT cardinality(t) AS tokens, t[1] = t[3] AS same,
       t = ARRAY[ddb_lock_token('several/b'), ddb_lock_token('several/a'),
                 ddb_lock_token('several/b')] AS in_order
  FROM ddb_lock_acquire_all('{several/b,several/a,several/b}', lease => '1 h', wait => '1 min') AS t;
SELECT * FROM mine;
SELECT ddb_lock_acquire_all('{several/a}') = ARRAY[ddb_lock_token('several/a')] AS again;
SELECT ddb_lock_try_acquire_all('{several/a,several/c}', lease => '1 h') AS acquired;
SELECT * FROM mine;
SELECT ddb_lock_release('several/a'), ddb_lock_release('several/b'), ddb_lock_release_all();
SELECT * FROM mine;
SELECT array_lower(ddb_lock_acquire_all('[5:6]={several/z,several/y}'), 1);
SELECT ddb_lock_release_all();

-- Transactions
BEGIN;
SELECT cardinality(ddb_xact_lock_acquire_all('{several/a,several/b}')) AS tokens;
SAVEPOINT s;
SELECT ddb_xact_lock_try_acquire_all('{several/b,several/c}') AS acquired;
SELECT * FROM mine;
ROLLBACK TO s;
SELECT * FROM mine;
COMMIT;
SELECT * FROM mine;
SELECT name, becomes_free(name) FROM unnest('{several/a,several/b,several/c}'::text[]) AS name;

-- Locks held in another mode
SELECT ddb_lock_acquire_shared('several/s') > 0 AS acquired;
SELECT code, message, detail, hint FROM failure($$SELECT ddb_lock_acquire_all('{several/r,several/s,several/t}')$$);
SELECT * FROM mine;
SELECT ddb_lock_release_all();

--
-- What is refused before anything is sent.
--
SELECT becomes_free(name) FROM unnest('{several/r,several/s,several/t}'::text[]) AS name;
SELECT writes() AS before \gset
SELECT replace(call, '%s', 'x') AS call, argument, code, message, detail
  FROM unnest(ARRAY['ddb_lock_acquire_all(%s)', 'ddb_lock_try_acquire_all(%s)',
                    'ddb_xact_lock_acquire_all(%s)', 'ddb_xact_lock_try_acquire_all(%s)'])
       WITH ORDINALITY AS calls (call, number),
       unnest(ARRAY['NULL', '''{}''', '''{{a,b},{c,d}}''', '''{a,NULL}''', '''{a,""}''',
                    'ARRAY[''a'', repeat(''x'', 2049)]',
                    'array_fill(''a''::text, ARRAY[1001])']) AS argument,
       failure('SELECT ' || replace(call, '%s', argument))
 WHERE number = 1 OR argument = 'NULL';
SELECT code, message
  FROM unnest(ARRAY['SELECT ddb_lock_acquire_all(''{a}'', lease => ''1 s'')',
                    'SELECT ddb_lock_acquire_all(''{a}'', wait => ''0'')',
                    'SELECT ddb_lock_try_acquire_all(''{a}'', lease => ''2 days'')']) AS call,
       failure(call);
SET ddblock.lock_prefix = 'several/';
SELECT code, message, detail FROM failure($$SELECT ddb_lock_acquire_all('{several/a,other}')$$);
RESET ddblock.lock_prefix;
SELECT writes() - :before AS writes;
SELECT cardinality(ddb_lock_acquire_all(array_fill('several/a'::text, ARRAY[1000]))) AS tokens;
SELECT ddb_lock_release_all();
