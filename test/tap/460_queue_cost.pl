# What a job costs when one session works on one resource, and many on few.

use DDBLock::Test;

my $JOBS = 80;

my $one = new_cluster('one');

# The requests for jobs and their locks.
sub requests
{
	return $one->safe_psql('postgres', q{SELECT sum(requests) FROM ddb_operations
		WHERE operation ~ '^queue_' OR operation IN ('acquire', 'hand_over', 'release')});
}

sub push_jobs
{
	my ($queue, $resources) = @_;

	$one->safe_psql('postgres', qq{
		SELECT ddb_queue_push_all('$queue', r::text, array_agg(to_jsonb(j)))
		FROM generate_series(1, $resources) r, generate_series(1, $JOBS / $resources / 2) j,
			generate_series(1, 2) half GROUP BY r, half});
	return;
}

# Each client claims and completes jobs, and notes them in the order in which it works.
sub work_on
{
	my ($queue, $sessions) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/work.sql';

	append_to_file($file, <<"SQL");
WITH job AS MATERIALIZED (SELECT * FROM ddb_queue_claim('$queue', wait => '1 min')),
	work AS (INSERT INTO work (resource, number) SELECT resource::int, number FROM job)
SELECT ddb_queue_complete('$queue', resource, number) FROM job;
SQL
	my ($output) = run_command([ 'pgbench', '-h', $one->host, '-p', $one->port, '-n',
		'-c', $sessions, '-t', $JOBS / $sessions, '-f', $file, 'postgres' ]);

	unlink $file;
	return $output =~ /actually processed: (\d+)/ ? $1 : $output;
}

$one->safe_psql('postgres', q{SELECT ddb_queue_table_create();
	CREATE TABLE work (at bigserial, resource int, number int)});

foreach ([ 1, 1 ], [ 16, 10 ])
{
	my ($sessions, $resources) = @$_;
	my $queue = "q$sessions";
	my $before;
	my $cost;

	push_jobs($queue, $resources);
	$before = requests();
	is(work_on($queue, $sessions), $JOBS, "$sessions sessions have done all jobs");
	wait_for
	{
		$one->safe_psql('postgres', "SELECT count(*) FROM ddb_queue_depths('$queue')") eq '0'
	} 'all are finished';
	$cost = (requests() - $before) / $JOBS;
	diag(sprintf '%d sessions, %d resources: %.1f requests a job', $sessions, $resources, $cost);

	# Lock, claim, complete, release; and some looks for all of them.
	cmp_ok($cost, '<=', 5, 'a job costs at most 5 requests');
	is( $one->safe_psql('postgres', q{
			SELECT count(*) FROM (SELECT number, row_number() OVER (PARTITION BY resource ORDER BY at)
				FROM work) w WHERE number <> row_number}), '0',
		'each job was done once, in the order of its resource');
	$one->safe_psql('postgres', 'TRUNCATE work');
}

done_testing;
