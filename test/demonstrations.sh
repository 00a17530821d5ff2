# demonstrations.sh: two steps of the demo in which both clusters have many jobs to do.  To be
# sourced by it.  test/tap/018_jobs.pl and 450_deployments.pl have them whole.

# run_job NUMBER: in a session of its own.  That of every tenth job is terminated while it has
# its permit; then the job runs again.
run_job()
{
	local cluster=one release="SELECT ddb_lock_release('exports')" last

	(($1 % 2)) || cluster=two
	last=$release
	(($1 % 10)) || last='SELECT pg_terminate_backend(pg_backend_pid())'
	until psql -Xq -h "$DDBLOCK_WORK" -p "${ports[$cluster]}" -v ON_ERROR_STOP=1 \
		-c "SELECT ddb_semaphore_acquire('exports', 5, wait => '1min')" \
		-c "SELECT pg_sleep(0.5)" -c "$last"
	do
		[ "$last" != "$release" ] || return 1
		last=$release
	done >"$DDBLOCK_WORK/job-$1.out" 2>&1
}

share_permits()
{
	local jobs=() pid permits most=0 number
	local out="SELECT permits, clusters FROM ddb_lock_info('exports');"

	begin_step "Twenty jobs share five permits, and two of them die with one"
	cat <<-'SQL'
	   SELECT ddb_semaphore_acquire('exports', 5, wait => '1min');
	   SELECT pg_sleep(0.5);                     -- the job
	   SELECT ddb_lock_release('exports');
	SQL
	echo "   ... by twenty sessions at once, ten of each cluster; in the middle of it:"
	start_watch
	for number in {1..20}
	do
		run_job "$number" &
		jobs+=($!)
	done
	while [ -n "$(jobs -r)" ]
	do
		permits=$(query two "SELECT coalesce(sum(permits), 0) FROM ddb_lock_info('exports')")
		((permits <= 5)) || die "$permits permits are out"
		((most == 5 || permits < 5)) || ask other "$out"
		most=$((permits > most ? permits : most))
	done
	for pid in "${jobs[@]}"
	do
		wait "$pid" || die "a job failed: $(cat "$DDBLOCK_WORK"/job-*.out)"
	done
	elapsed=$(measured)
	((most == 5)) || die "at most $most permits were out"
	[ "$(grep -l 'administrator command' "$DDBLOCK_WORK"/job-*.out | wc -l)" = 2 ] ||
		die "not two sessions were terminated"
	await two "SELECT NOT held FROM ddb_lock_info('exports')" "a permit is not back"
	echo "   ... and after it:"
	ask other "SELECT held FROM ddb_lock_info('exports');"
	expect_value f
	explain "All 20 jobs were done, in $elapsed; never more than five at a time.  Two sessions were" \
		"terminated with their permits: these went back by themselves, and the jobs ran again." \
		"AWS's sample, a semaphore of Step Functions in DynamoDB, needs a rule of EventBridge" \
		"and a second state machine for that."
}

# What each session does: works, until there is nothing left to do.
read -r -d '' DEPLOY <<-'SQL'
	CREATE TABLE deployed (environment text, number bigint, attempt int,
	  at timestamptz DEFAULT clock_timestamp());
	CREATE PROCEDURE deploy(seconds float) LANGUAGE plpgsql AS $$
	DECLARE
	  job record;
	BEGIN
	  WHILE EXISTS (SELECT FROM ddb_queue_depths('deploy')) LOOP
	    SELECT * INTO job FROM ddb_queue_claim('deploy', wait => '0.5s', lease => '2s');
	    IF FOUND THEN
	      PERFORM pg_sleep(seconds);               -- the deployment
	      IF job.payload ? 'fails' AND job.attempt = 1 THEN
	        PERFORM ddb_queue_fail('deploy', job.resource, job.number, 'disk full', '0.5s');
	      ELSE
	        INSERT INTO deployed VALUES (job.resource, job.number, job.attempt);
	        PERFORM ddb_queue_complete('deploy', job.resource, job.number);
	      END IF;
	    END IF;
	    COMMIT;
	  END LOOP;
	END $$;
SQL

push_deployments()
{
	begin_step "Deployments to five environments, one at a time for each"
	ask two "SELECT ddb_queue_table_create();"
	ask two "SELECT ddb_queue_push_all('deploy', 'env-' || e,
       ARRAY['{}', '{}', '{\"fails\": true}', '{}', '{}']::jsonb[])
FROM generate_series(1, 5) e;"
	[ "$(grep -c '{1,2,3,4,5}' <<<"$output")" = 5 ] || die "not five deployments for each"
	ask two "$DEPLOY"
	expect_match 'CREATE PROCEDURE'
	query one "$DEPLOY" || die "cluster one has no procedure"
	explain "Each environment has a queue of five; the third of each fails at its first attempt." \
		"Cluster one has the same table and procedure."
}

deploy()
{
	local name

	begin_step "Both clusters deploy, and one is killed in the middle"
	for name in slow sluggish
	do
		open_session "$name" one
		send "$name" "CALL deploy(600);         -- ten minutes each"
	done
	await one "SELECT count(*) = 2 FROM ddb_queue_depths('deploy') WHERE attempts = 1" \
		"cluster one does not deploy"
	for name in two third
	do
		[ "$name" = two ] || open_session "$name" two
		send "$name" "CALL deploy(0.1);"
	done
	echo "   \$ pg_ctl -D one -m immediate stop"
	start_watch
	pg_ctl -D "$DDBLOCK_WORK/one" -m immediate -w stop >/dev/null || die "cluster one did not stop"
	close_session slow
	close_session sluggish
	ask other "SELECT resource, depth, attempts FROM ddb_queue_depths('deploy') ORDER BY 1;"
	echo "   ... and, some time later, all is deployed:"
	receive two
	receive third
	elapsed=$(measured)
	ask two "SELECT environment, array_agg(number ORDER BY at) AS deployed,
       array_agg(attempt ORDER BY at) AS attempts, max(at)::time(1) AS last_at
FROM deployed GROUP BY 1 ORDER BY last_at;"
	[ "$(sed -n 's/.*{1,2,3,4,5} | \({.*}\).*/\1/p' <<<"$output" | uniq -c | xargs)" = \
		'3 {1,1,2,1,1} 2 {2,1,2,1,1}' ] || die "expected two that were taken over, after all others"
	explain "After $elapsed.  Cluster one died in the middle of two deployments: they waited for" \
		"their backoff (5 s) and for its lease (2 s), the other environments did not.  Cluster" \
		"two made all 25 deployments, each once, and in order."
	(exec_without_pipes pg_ctl -D "$DDBLOCK_WORK/one" -l "$DDBLOCK_WORK/one.log" -w start) >/dev/null ||
		die "cluster one did not start again"
}
