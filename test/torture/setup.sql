-- What the torture needs in each cluster: the true time, the stop at the guard,
-- and what the locks protect.
--
-- "written" shows what was committed, in order: its sequence number is taken behind
-- the fence, whose row lock is kept until the transaction ends.

CREATE EXTENSION ddblock;

CREATE FUNCTION torture_now() RETURNS bigint
AS 'torture' LANGUAGE C VOLATILE;

CREATE FUNCTION torture_stop(before boolean) RETURNS void
AS 'torture' LANGUAGE C VOLATILE;

CREATE SEQUENCE write_order;
CREATE TABLE written (
	position bigint NOT NULL DEFAULT nextval('write_order'),
	lock text NOT NULL,
	token bigint NOT NULL,
	id bigint NOT NULL);

CREATE FUNCTION torture_write(lock_name text, new_token bigint, write_id bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM ddb_fence_check(lock_name, new_token);
	INSERT INTO written (lock, token, id) VALUES (lock_name, new_token, write_id);
END
$$;

CREATE FUNCTION torture_write_shared(lock_name text, new_token bigint, write_id bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM ddb_fence_check_shared(lock_name, new_token);
	INSERT INTO written (lock, token, id) VALUES (lock_name, new_token, write_id);
END
$$;

-- The same without a fence: for permits of a semaphore, and to show that the checker
-- sees what comes of it.
CREATE FUNCTION torture_write_unfenced(lock_name text, new_token bigint, write_id bigint)
RETURNS void LANGUAGE sql AS $$
	INSERT INTO written (lock, token, id) VALUES (lock_name, new_token, write_id);
$$;

-- Session scope across the transactions of a procedure: two commits under one lock.
CREATE PROCEDURE torture_procedure(
	lock_name text, lease interval, wait interval, write_id bigint,
	INOUT token bigint, INOUT granted_after bigint, INOUT granted_before bigint)
LANGUAGE plpgsql AS $$
BEGIN
	granted_after := torture_now();
	token := ddb_lock_acquire(lock_name, lease, wait);
	granted_before := torture_now();
	PERFORM torture_write(lock_name, token, write_id);
	COMMIT;
	PERFORM ddb_lock_require(lock_name);
	PERFORM torture_write(lock_name, token, write_id + 1);
	COMMIT;
	PERFORM ddb_lock_release(lock_name);
END
$$;
