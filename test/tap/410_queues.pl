# Queues: jobs of many resources, one at a time for each, over two clusters.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy);
my $two = new_cluster('two');
my $a = session($one);
my $b = session($two);

# The next job as "resource|number|payload|attempt", or "".
sub next_of
{
	my ($session, $options) = @_;

	return $session->query_safe(
		"SELECT resource, number, payload, attempt FROM ddb_queue_claim('q'"
		  . ($options ? ", $options" : '') . ')');
}

# The same; a job that another cluster has pushed may be due a moment later.
sub next_job
{
	my @which = @_;

	return wait_for { next_of(@which) } 'the next job';
}

sub depth_of
{
	my ($resource) = @_;

	return $one->safe_psql('postgres',
		"SELECT coalesce(max(depth), 0) FROM ddb_queue_depths('q', '$resource')");
}

sub push_to
{
	my ($session, $resource, $what) = @_;

	return $session->query_safe(qq{SELECT ddb_queue_push('q', '$resource', '"$what"')});
}

sub complete
{
	my ($session, $resource, $number) = @_;

	$session->query_safe("SELECT ddb_queue_complete('q', '$resource', $number)");
	return;
}

like(error_of($one, q{SELECT ddb_queue_push('q', 'r', '1')}),
	qr/42P01: queue table "queueTable" does not exist/,
	'without a table, the error names it');
$one->safe_psql('postgres', 'SELECT ddb_queue_table_create()');
$two->safe_psql('postgres', 'SELECT ddb_queue_table_create()');

#
# Order, exclusion, parallel resources
#
is(next_of($a), '', 'an empty queue has no job');
is(push_to($a, 'prod', 'a1'), '1', 'the first job is number 1');
is(push_to($b, 'prod', 'a2'), '2', 'jobs of all clusters are in one order');
push_to($a, 'test', 'b1');
is(depth_of('prod'), 2, 'two jobs wait');

is(next_job($a, "resources => '{prod}'"), 'prod|1|"a1"|1', 'the oldest job comes first');
is(next_of($b, "resources => '{prod}'"), '', 'while it runs, the next one waits');
is(next_job($b), 'test|1|"b1"|1', 'the other resource has a job for the other cluster');
complete($a, 'prod', 1);
wait_for { depth_of('prod') == 1 } 'the job is finished';
my $got;
wait_for { $got = next_of($a, "resources => '{prod}'") } 'the second job comes';
is($got, 'prod|2|"a2"|1', 'it is the second one');
complete($a, 'prod', 2);
complete($b, 'test', 1);
wait_for { depth_of('prod') + depth_of('test') == 0 } 'all are finished';
is($one->safe_psql('postgres', q{SELECT count(*) FROM ddb_queue_depths('q')}), '0',
	'nothing waits');

#
# Waiting: a push in the same cluster wakes, one in another cluster is found
#
foreach my $pusher ($a, $b)
{
	my $waiter = session($one);

	$waiter->send(q{SELECT resource, payload FROM ddb_queue_claim('q', wait => '1 min');
		SELECT ddb_queue_complete('q', 'wake', max(number)) FROM ddb_queue_list('q', 'wake')});
	wait_for
	{
		$one->safe_psql('postgres',
			q{SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query ~ '^SELECT resource'}
		)
	} 'a session waits';
	push_to($pusher, 'wake', 'up');
	like($waiter->result, qr/^wake\|"up"/, 'a session that waits gets the job');
	$waiter->quit;
	wait_for { depth_of('wake') == 0 } 'it is finished';
}

#
# A resource that was found locked is not left alone for long
#
push_to($a, 'locked', 'job');
$a->query_safe(q{SELECT ddb_lock_acquire('queue/q/locked')});
is(next_of($b, "resources => '{locked}'"), '', 'somebody else has the lock');
$a->query_safe(q{SELECT ddb_lock_release('queue/q/locked')});
is(next_of($b, "resources => '{locked}', wait => '1 min'"), 'locked|1|"job"|1',
	'a session that waits comes back soon');
complete($b, 'locked', 1);
wait_for { depth_of('locked') == 0 } 'it is finished';

#
# Completion belongs to the transaction
#
push_to($a, 'tx', 'once');
is(next_job($a), 'tx|1|"once"|1', 'claimed');
$a->query_safe(q{BEGIN; SELECT ddb_queue_complete('q', 'tx', 1); ROLLBACK});
is(depth_of('tx'), 1, 'after a rollback the job is not finished');
like($a->error_of(q{BEGIN; SELECT ddb_queue_complete('q', 'tx', 1);
	PREPARE TRANSACTION 'x'}), qr/0A000: cannot PREPARE/, 'no completion in a prepared one');
$a->query_safe(q{BEGIN; SAVEPOINT s; SELECT ddb_queue_complete('q', 'tx', 1);
	ROLLBACK TO s; COMMIT});
is(depth_of('tx'), 1, 'nor after a rollback to a savepoint');
$a->query_safe(q{BEGIN; SAVEPOINT s; SELECT ddb_queue_complete('q', 'tx', 1);
	RELEASE s; COMMIT});
wait_for { depth_of('tx') == 0 } 'after COMMIT it is';

#
# Failures
#
push_to($a, 'bad', 'job');
is(next_job($a), 'bad|1|"job"|1', 'a first attempt');
$a->query_safe(q{SELECT ddb_queue_fail('q', 'bad', 1, 'does not work', '1 hour')});
is( $one->safe_psql('postgres',
		q{SELECT depth, attempts, due > now() + '50 min', last_error FROM ddb_queue_depths('q')}),
	'1|1|t|does not work',
	'a failed job waits for its next attempt');
is($b->query_safe(q{SELECT number, attempts, last_error FROM ddb_queue_list('q')}), $b->query_safe(q{SELECT 1, attempts, last_error FROM ddb_queue_depths('q')}), '... and in the list');
is(next_of($b), '', 'and is not due');
push_to($a, 'bad', 'second');
is(next_of($b), '', 'nor is the job behind it');

done_testing;
