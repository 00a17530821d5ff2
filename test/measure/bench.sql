-- What test/bench runs inside a session.  Moments are taken right around each
-- call, in the backend, and an assignment calls the function directly, without
-- a query of its own.

CREATE EXTENSION IF NOT EXISTS ddblock;

-- Microseconds of "pairs" acquires and releases, after "warm" that do not count.
CREATE FUNCTION bench_calls(lock text, warm int, pairs int,
							OUT acquire numeric, OUT release numeric)
RETURNS SETOF record
LANGUAGE plpgsql
AS $$
DECLARE
	before timestamptz[];
	between timestamptz[];
	after timestamptz[];
	token bigint;
	released boolean;
BEGIN
	FOR i IN 1 .. warm + pairs LOOP
		before[i] := clock_timestamp();
		token := ddb_lock_acquire(lock);
		between[i] := clock_timestamp();
		released := ddb_lock_release(lock);
		after[i] := clock_timestamp();
	END LOOP;
	RETURN QUERY
		SELECT 1000000 * extract(epoch FROM t.m - t.b), 1000000 * extract(epoch FROM t.a - t.m)
		FROM unnest(before[warm + 1:], between[warm + 1:], after[warm + 1:]) AS t(b, m, a);
END
$$;

-- When "pairs" pairs began and ended.  They begin once as many sessions as
-- "sessions" says have come to this "round".
CREATE FUNCTION bench_pairs(round int, sessions int, lock text, warm int, pairs int,
							OUT began numeric, OUT ended numeric)
LANGUAGE plpgsql
AS $$
DECLARE
	token bigint;
	released boolean;
	arrived int := 0;
BEGIN
	FOR i IN 1 .. warm LOOP
		token := ddb_lock_acquire(lock);
		released := ddb_lock_release(lock);
	END LOOP;
	PERFORM pg_advisory_lock_shared(round);
	WHILE arrived < sessions LOOP
		PERFORM pg_sleep(0.001);
		SELECT count(*) INTO arrived
			FROM pg_locks WHERE locktype = 'advisory' AND objid = round;
	END LOOP;
	began := extract(epoch FROM clock_timestamp());
	FOR i IN 1 .. pairs LOOP
		token := ddb_lock_acquire(lock);
		released := ddb_lock_release(lock);
	END LOOP;
	ended := extract(epoch FROM clock_timestamp());
END
$$;
