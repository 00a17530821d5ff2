--
-- ddblock.lock_prefix: a role uses locks with its prefix, and no others.
--
SELECT current_user AS superuser \gset
CREATE ROLE regress_ddblock_shop LOGIN;
CREATE ROLE regress_ddblock_bank LOGIN;
SELECT ddb_role_setup('regress_ddblock_all', operator => true);
GRANT regress_ddblock_all TO regress_ddblock_shop, regress_ddblock_bank;
ALTER ROLE regress_ddblock_shop SET ddblock.lock_prefix = 'shop/';
ALTER ROLE regress_ddblock_bank SET ddblock.lock_prefix = 'bank/';
CREATE FUNCTION prefix_calls(name text, OUT call text, OUT code text, OUT message text,
                             OUT detail text) RETURNS SETOF record LANGUAGE sql AS $$
    SELECT call, failure.code, failure.message, failure.detail
      FROM unnest(ARRAY['ddb_lock_acquire(%L)', 'ddb_lock_try_acquire(%L)',
                        'ddb_xact_lock_acquire(%L)', 'ddb_xact_lock_try_acquire(%L)',
                        'ddb_lock_info(%L)', 'ddb_lock_force_release(%L)',
                        'ddb_lock_list(%L)']) AS call,
           failure('SELECT ' || format(call, name))
$$;

-- One of them
\c - regress_ddblock_shop
SELECT ddb_lock_acquire('shop/till', lease => '1 day') > 0 AS acquired;
SELECT * FROM prefix_calls('bank/safe');
SELECT ddb_fence_check('bank/safe', 1);
SELECT name, code
  FROM unnest(ARRAY['shop', 'Shop/till', ' shop/till', 'xshop/till', 'bank/shop/', '']) AS name,
       failure(format('SELECT ddb_lock_acquire(%L)', name));
SELECT ddb_lock_acquire('shop/') > 0 AS acquired;
SELECT ddb_lock_try_acquire(U&'shop/caf\00e9') AS acquired;
SELECT count(*) AS own FROM ddb_locks WHERE state = 'held';
SELECT ddb_lock_release_all();

-- ... and what is its own
SELECT ddb_lock_acquire('shop/till') > 0 AS acquired;
SELECT held FROM ddb_lock_info('shop/till');
SELECT ddb_fence_check('shop/till', ddb_lock_require('shop/till'));
SELECT count(*) FILTER (WHERE NOT starts_with(name, 'shop/')) AS others,
       count(*) FILTER (WHERE name = 'shop/till') AS own FROM ddb_lock_list();
SELECT count(*) FILTER (WHERE NOT starts_with(name, 'shop/')) AS others,
       count(*) FILTER (WHERE name = 'shop/till') AS own FROM ddb_lock_list('sh');
SELECT name FROM ddb_lock_list('shop/ti');
SELECT ddb_lock_release('shop/till');

-- The prefix is not its own to change.
SELECT call, code
  FROM unnest(ARRAY['SET ddblock.lock_prefix = ''''', 'SET LOCAL ddblock.lock_prefix = ''bank/''',
                    'RESET ddblock.lock_prefix',
                    'SELECT set_config(''ddblock.lock_prefix'', '''', false)',
                    'ALTER ROLE CURRENT_USER SET ddblock.lock_prefix = ''''',
                    'ALTER ROLE CURRENT_USER RESET ddblock.lock_prefix',
                    'CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE sql
                         SET ddblock.lock_prefix = '''' AS ''''']) AS call,
       failure(call);
ALTER ROLE CURRENT_USER RESET ALL;
RESET ALL;
SHOW ddblock.lock_prefix;
\c - regress_ddblock_shop
SHOW ddblock.lock_prefix;
SELECT code FROM failure($$SELECT ddb_lock_acquire('bank/safe')$$);

-- The other one
\c - regress_ddblock_bank
SELECT code, message FROM failure($$SELECT ddb_lock_acquire('shop/till')$$);
SELECT count(*) AS refused FROM prefix_calls('shop/till') WHERE code = '42501';
SELECT held FROM ddb_lock_info('bank/safe');

--
-- A superuser can change it; what is held is not lost by that.
--
\c - :superuser
SELECT ddb_lock_acquire('bank/safe') > 0 AS acquired;
SELECT ddb_lock_acquire('shop/till') > 0 AS acquired;
SET ddblock.lock_prefix = 'shop/';
SELECT name FROM ddb_locks WHERE pid = pg_backend_pid();
SELECT ddb_lock_token('bank/safe') > 0 AS held, ddb_lock_require('bank/safe') > 0 AS required,
       ddb_lock_renew('bank/safe') > now() AS renewed, ddb_lock_release('bank/safe') AS released;
SELECT ddb_lock_release_all();
RESET ddblock.lock_prefix;
SELECT code, left(message, 50) AS message, detail
  FROM unnest(ARRAY[repeat('x', 2049), U&'caf\00e9/', E'a\tb']) AS prefix,
       failure(format('SET ddblock.lock_prefix = %L', prefix));

DELETE FROM ddb_fences WHERE resource = 'shop/till';
DROP FUNCTION prefix_calls;
DROP OWNED BY regress_ddblock_all;
DROP ROLE regress_ddblock_shop, regress_ddblock_bank, regress_ddblock_all;
