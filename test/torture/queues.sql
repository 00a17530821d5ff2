-- What the torture needs in each cluster for queues: calls between two readings of the true
-- time, and what the work of jobs leaves behind.
--
-- Work commits asynchronously, as far as it is up to the session: its completion has to see to it
-- that a crash does not lose it.

CREATE TABLE worked (
	queue text NOT NULL,
	resource text NOT NULL,
	number bigint NOT NULL,
	uid bigint NOT NULL,
	once boolean NOT NULL);

-- Some are larger than a piece that goes through shared memory.
CREATE FUNCTION torture_payload(uid bigint) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
	SELECT jsonb_build_object('uid', uid,
		'more', repeat(uid::text, CASE WHEN uid % 8 = 0 THEN 3000 ELSE 1 END));
$$;

CREATE FUNCTION torture_push(
	queue text, resource text, uid bigint, jobs integer, with_ids boolean,
	OUT before bigint, OUT numbers bigint[], OUT after bigint)
LANGUAGE plpgsql AS $$
DECLARE
	payloads jsonb[] := ARRAY(SELECT torture_payload(uid + i) FROM generate_series(0, jobs - 1) i);
	ids text[] := ARRAY(SELECT 'id' || uid + i FROM generate_series(0, jobs - 1) i);
BEGIN
	before := torture_now();
	IF jobs > 1 THEN
		numbers := ddb_queue_push_all(queue, resource, payloads, CASE WHEN with_ids THEN ids END);
	ELSE
		numbers := ARRAY[ddb_queue_push(queue, resource, payloads[1], CASE WHEN with_ids THEN ids[1] END)];
	END IF;
	after := torture_now();
END
$$;

CREATE FUNCTION torture_outbox(
	queue text, resource text, uid bigint, jobs integer, with_ids boolean,
	OUT before bigint, OUT written integer, OUT after bigint)
LANGUAGE plpgsql AS $$
BEGIN
	before := torture_now();
	FOR i IN 0 .. jobs - 1 LOOP
		PERFORM ddb_queue_push_on_commit(queue, resource, torture_payload(uid + i));
	END LOOP;
	written := jobs;
	after := torture_now();
END
$$;

-- The number is null if there is no job.
CREATE FUNCTION torture_next(
	queue text, wait interval, lease interval, resources text[], max_attempts integer,
	OUT before bigint, OUT resource text, OUT number bigint, OUT uid bigint, OUT attempt integer,
	OUT token bigint, OUT after bigint)
LANGUAGE plpgsql AS $$
DECLARE
	job record;
BEGIN
	before := torture_now();
	FOR job IN SELECT * FROM ddb_queue_claim(queue, wait, lease, resources, max_attempts) LOOP
		resource := job.resource;
		number := job.number;
		uid := job.payload->>'uid';
		attempt := job.attempt;
		token := job.token;
		IF job.payload <> torture_payload(uid) THEN
			RAISE EXCEPTION 'the payload of job % is not the one that was pushed', uid
				USING ERRCODE = 'data_exception';
		END IF;
	END LOOP;
	after := torture_now();
END
$$;

-- False if the work is done already.
CREATE FUNCTION torture_work(queue text, resource text, number bigint, uid bigint, once boolean)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('synchronous_commit', 'off', true);
	IF once AND NOT ddb_queue_mark_done(queue, resource, number) THEN
		RETURN false;
	END IF;
	INSERT INTO worked VALUES (queue, resource, number, uid, once);
	RETURN true;
END
$$;

-- Any dead job; the number is null if there is none.
CREATE FUNCTION torture_dead(
	queue text, OUT before bigint, OUT resource text, OUT number bigint, OUT uid bigint,
	OUT attempts integer, OUT token bigint, OUT after bigint)
LANGUAGE plpgsql AS $$
BEGIN
	before := torture_now();
	SELECT d.resource, d.number, d.payload->>'uid', d.attempts, 0
		INTO resource, number, uid, attempts, token
		FROM ddb_queue_list(queue, dead => true) d ORDER BY random() LIMIT 1;
	after := torture_now();
END
$$;
