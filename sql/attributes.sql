--
-- Additional attributes: what a holder says about its lock, beside data.
--
-- Each of DynamoDB's types that JSON has.
SELECT ddb_lock_acquire('attributes/1', attributes => '{"team": "Grüße \"x\"\n", "n": -12.50, "big":
  12345678901234567890123456789012345678, "yes": true, "nothing": null, "list": [1, "a", [], {}],
  "map": {"ownerName": {"deep": [false]}}}') > 0 AS acquired;
SELECT attributes FROM ddb_lock_info('attributes/1');
-- Each function has the argument; none, and an object without members, is no attribute.
BEGIN;
SELECT ddb_lock_try_acquire('attributes/2', attributes => '{"a": 2}') AS acquired;
SELECT ddb_xact_lock_acquire('attributes/3', attributes => '{"a": 3}') > 0 AS acquired;
SELECT ddb_xact_lock_try_acquire('attributes/4', attributes => '{"a": 4}') AS acquired;
SELECT ddb_lock_acquire('attributes/5', attributes => '{}') > 0 AS acquired;
SELECT ddb_lock_acquire('attributes/6', attributes => NULL, data => 'x') > 0 AS acquired;
SELECT i, attributes, attributes IS NULL AS none
  FROM generate_series(2, 6) AS i, ddb_lock_info('attributes/' || i);
COMMIT;
-- They stay while the lock is renewed, and go with their holder.
SELECT ddb_lock_renew('attributes/2') > now() AS renewed;
SELECT attributes FROM ddb_lock_info('attributes/2');
SELECT ddb_lock_release('attributes/2');
SELECT attributes IS NULL AS none FROM ddb_lock_info('attributes/2');
SELECT ddb_lock_acquire('attributes/2', attributes => '{"b": 1}') > 0 AS acquired;
SELECT attributes FROM ddb_lock_info('attributes/2');
SELECT ddb_lock_release('attributes/2');
SELECT ddb_lock_acquire('attributes/2') > 0 AS acquired;
SELECT attributes IS NULL AS none FROM ddb_lock_info('attributes/2');
-- Acquiring the lock once more does not change them.
SELECT ddb_lock_acquire('attributes/1', attributes => '{"a": 1}') > 0 AS acquired;
SELECT attributes->'n' AS n, attributes ? 'a' AS changed FROM ddb_lock_info('attributes/1');
SELECT ddb_lock_release_all();

-- What cannot be kept is refused, before anything is sent.
CREATE FUNCTION pg_temp.refused(attributes text, data text DEFAULT NULL)
RETURNS TABLE (code text, message text, detail text) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ddb_lock_acquire('attributes/refused', data => data::bytea, attributes => attributes::jsonb);
  RETURN QUERY SELECT NULL, 'acquired', '';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
  RETURN NEXT;
END
$$;
\pset format unaligned
SELECT left(given, 20) AS given, r.* FROM unnest(ARRAY['1', '"x"', '[{"a": 1}]', 'null',
  '{"": 1}', '{"a": {"": 1}}', '{"ownerName": 1}', '{"key": 1}', '{"attributeNames": 1}', '{"data": 1}',
  '{"ttl": null}', '{"shared": {}}', jsonb_build_object(repeat('x', 256), 1)::text,
  '{"a": 123456789012345678901234567890123456789}', '{"a": [1.23456789012345678901234567890123456789]}',
  '{"a": 1e126}', '{"a": 1e-131}',
  format('{"a": %s1%s}', repeat('[', 16), repeat(']', 16)),
  (SELECT jsonb_object_agg('a' || i, i)::text FROM generate_series(1, 33) i),
  format('{"a": "%s"}', repeat('x', 4096))]) AS given, pg_temp.refused(given) AS r;
SELECT * FROM pg_temp.refused('{"a": "b"}', repeat('x', 4090));
\pset format aligned
SELECT held FROM ddb_lock_info('attributes/refused');
-- The largest that can.
SELECT ddb_lock_acquire('attributes/7', data => convert_to(repeat('x', 4081), 'UTF8'),
                        attributes => '{"a": "b"}') > 0 AS acquired;
SELECT length(data), attributes FROM ddb_lock_info('attributes/7');
SELECT ddb_lock_acquire('attributes/8', attributes => format('{"a": %s1e125%s}', repeat('[', 15),
                        repeat(']', 15))::jsonb) > 0 AS acquired;
SELECT ddb_lock_acquire('attributes/9', attributes => (SELECT jsonb_object_agg('a' || i, i)
                        FROM generate_series(1, 32) i)) > 0 AS acquired;
SELECT attributes->'a31' AS a31 FROM ddb_lock_info('attributes/9');
SELECT ddb_lock_release_all();

-- A lock that has no item, although it must have one.
SELECT 'attributes/' || gen_random_uuid() AS missing \gset
CREATE FUNCTION pg_temp.acquire_existing(function text, name text)
RETURNS TABLE (code text, message text, detail text, hint text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SELECT %I(%L, only_if_exists => true)', function, name);
  message := 'acquired';
  RETURN NEXT;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL,
    hint = PG_EXCEPTION_HINT;
  message := replace(message, name, '...');
  RETURN NEXT;
END
$$;
\pset format unaligned
SELECT f, r.* FROM unnest(ARRAY['ddb_lock_acquire', 'ddb_lock_try_acquire', 'ddb_xact_lock_acquire',
  'ddb_xact_lock_try_acquire']) AS f, pg_temp.acquire_existing(f, :'missing') AS r;
SELECT version IS NULL AS still_missing FROM ddb_lock_info(:'missing');
SELECT ddb_lock_acquire(:'missing') > 0 AS acquired;
SELECT ddb_lock_release(:'missing');
SELECT f, r.* FROM unnest(ARRAY['ddb_lock_acquire', 'ddb_lock_try_acquire', 'ddb_xact_lock_acquire',
  'ddb_xact_lock_try_acquire']) AS f, pg_temp.acquire_existing(f, :'missing') AS r;
SELECT ddb_lock_release_all();
