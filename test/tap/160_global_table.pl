# A lock table that is replicated to other Regions: what is refused, when that
# is found out, and what never waits for it.

use DDBLock::Test;

my $conf = "ddblock.keep_warm = off\nlog_statement = none\nddblock.retry_timeout = '20s'\n";
my @west = { RegionName => 'us-west-2', ReplicaStatus => 'ACTIVE' };
my $acquire = q{SELECT ddb_lock_acquire('a') > 0};
my $try = q{SELECT ddb_lock_try_acquire('a')};

sub replicate
{
	my (%more) = @_;

	proxy->clear_faults;
	proxy->fault('edit', operation => 'DescribeTable', count => -1,
		merge => { Table => { Replicas => \@west, %more } });
	return;
}

# A worker that knows nothing yet: the segment goes with the server.
sub start_anew
{
	my ($node) = @_;

	$node->restart;
	wait_for { worker_pid($node) } 'the worker';
	return;
}

my $node = new_cluster('one', through => proxy, conf => $conf);
my $session = session($node);

#
# A table in one Region
#
$session->query_safe(q{SELECT ddb_lock_acquire('a'), ddb_lock_release('a')});
proxy->reset_counts;
$session->query_safe(q{SELECT ddb_lock_acquire('a'), ddb_lock_release('a')});
is(proxy->forwarded('DescribeTable'), 0, 'once it is known, nothing is asked any more');
$session->quit;

start_anew($node);
wait_for { stat_of($node, 'describe_table', 'replies') >= 1 } 'the look at the table';
proxy->reset_counts;
$session = session($node);
$session->query_safe(q{SELECT ddb_lock_acquire('a'), ddb_lock_release('a')});
is(proxy->forwarded('DescribeTable'), 0, 'a worker has asked before anybody acquires');
$session->quit;

#
# Replicated with eventual consistency
#
replicate();
start_anew($node);
my $refused =
  qr/ERROR: +55000: .*"lockTable" is a global table with eventual.*DETAIL: .*in: us-west-2\..*HINT: .*ddblock\.global_table_region/s;
like(error_of($node, $acquire), $refused, 'a global table is refused');
like(error_of($node, $try), $refused, 'for a try as well');
like(error_of($node, q{SELECT ddb_xact_lock_acquire('a')}), $refused, 'and in a transaction');
dynamodb->put_item(dynamodb->java_item('far'));
like(error_of($node, q{SELECT ddb_lock_force_release('far')}), $refused,
	'nothing is released by force in it');
dynamodb->put_item(dynamodb->java_item('far', version => 'released',
		extra => { isReleased => { S => '1' }, releasedAt => { N => time - 9 * 86400 },
			releasedVersion => { S => 'released' } }));
like(error_of($node, q{SELECT ddb_lock_purge('1 day')}), $refused, 'and nothing deleted');
ok(dynamodb->item('far'), 'what looks long released stays');
is(proxy->received('UpdateItem'), 2, 'no write has left since the test of the release');
is($node->safe_psql('postgres', q{SELECT count(*) FROM ddb_lock_info('a')}), 1,
	'the table can be looked at');
ok($node->log_contains(qr/LOG: +ddblock grants no locks: lock table "lockTable" is a global table/),
	'the log says so');
replicate(MultiRegionConsistency => 'EVENTUAL', GlobalTableVersion => '2019.11.21');
like(error_of($node, $acquire), $refused, 'whether or not it names its consistency');

replicate(MultiRegionConsistency => 'STRONG');
is($node->safe_psql('postgres', $acquire), 't',
	'with strong consistency it is as good as another, without a restart');
proxy->reset_counts;
$node->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
is(proxy->received('UpdateTimeToLive'), 0, 'where DynamoDB has no time-to-live');
replicate(Replicas => []);
start_anew($node);
is($node->safe_psql('postgres', $acquire), 't', 'and so it is without replicas');

proxy->clear_faults;
proxy->fault('error', operation => 'DescribeTable', status => 200, type => 'Nonsense', count => 2);
start_anew($node);
is($node->safe_psql('postgres', $acquire), 't',
	'a reply that cannot be read is asked for again');
replicate(Replicas => []);

#
# It becomes one while a lock is held; the table is missed, and found again
#
$session = session($node);
$session->query_safe(q{SELECT ddb_lock_acquire('held', lease => '30s')});
replicate();
proxy->fault('error', operation => 'GetItem', status => 400,
	type => 'ResourceNotFoundException', message => 'not found');
like(error_of($node, q{SELECT ddb_lock_info('a')}), qr/ERROR: +42P01/, 'the table is missing');
like(error_of($node, $acquire), $refused, 'after that it is asked for again');
is($session->query_safe(q{SELECT ddb_lock_renew('held') > now(),
		ddb_lock_acquire('held') = ddb_lock_require('held'),
		ddb_lock_release('held') AND ddb_lock_release('held')}),
	't|t|t', 'what is held can be renewed, stacked and released');

# ... and while a worker dies alone
proxy->clear_faults;
$session->query_safe(q{SELECT ddb_lock_acquire('held', lease => '30s')});
proxy->fault('drop', operation => 'DescribeTable', count => -1);
my $worker = worker_pid($node);
my $starts = stat_of($node, 'describe_table');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { my $pid = worker_pid($node); $pid && $pid != $worker } 'another worker';
wait_for { stat_of($node, 'describe_table') > $starts } 'its look at the table';
is($session->query_safe(q{SELECT ddb_lock_renew('held') > now(), ddb_lock_release('held')}),
	't|t', 'a worker that adopts a lease goes on with it at once');
is($session->query_safe($acquire), 't', 'and with what the last one knew');
$session->query_safe(q{SELECT ddb_lock_release('a')});
proxy->clear_faults;
$session->quit;

#
# Nobody can say
#
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '3s'\n");
my $denied = 'not authorized to perform: dynamodb:DescribeTable';
foreach (
	[ 'IAM', $denied, 'Add the denied action to the IAM policy' ],
	[ 'the AWS organization', "$denied with an explicit deny in a service control policy",
		'A policy of the AWS organization denies it' ])
{
	my ($who, $message, $hint) = @$_;

	proxy->clear_faults;
	proxy->fault('error', operation => 'DescribeTable', status => 400, count => -1,
		type => 'AccessDeniedException', message => $message);
	start_anew($node);
	like(error_of($node, $acquire),
		qr/ERROR: +42501: $who denies.*DETAIL: .*\Q$message\E.*HINT: +$hint.*ddblock\.global_table_region/s,
		"$who denies, '$hint': the hint names the way around, too");
}
proxy->clear_faults;
is($node->safe_psql('postgres', $acquire), 't', 'as soon as IAM allows it, it goes on');

proxy->fault('reset', operation => 'DescribeTable', count => -1);
start_anew($node);
like(error_of($node, $acquire), qr/ERROR: +08006: /, 'an outage is one, as for every call');
like(error_of($node, $try), qr/ERROR: +08006: /, 'for a try as well');
cmp_ok(proxy->received('DescribeTable'), '>', 3, 'after several attempts');
proxy->clear_faults;
is($node->safe_psql('postgres', $acquire), 't', 'and when it is over, nobody waits any more');

$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '60s'\n"
	. "ddblock.request_timeout = '60s'\n");
proxy->fault('drop', operation => 'DescribeTable', count => -1);
start_anew($node);
$session = session($node);
my $pid = backend_pid($session);
my $crowd = session($node);
$session->send($acquire);
$crowd->send(q{SELECT ddb_lock_acquire('crowd') > 0});
wait_for
{
	proxy->faults('DescribeTable') && $node->safe_psql('postgres',
		q{SELECT count(*) = 2 FROM pg_stat_activity
		WHERE state = 'active' AND query LIKE 'SELECT ddb_lock_acquire%'}) eq 't';
}
'two sessions that wait for a reply';
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$session->result;
like($session->messages, qr/ERROR: +57014/, 'such a wait can be cancelled');
like($session->error_of(q{SET statement_timeout = '100ms'; } . $acquire),
	qr/ERROR: +57014/, 'or ended by statement_timeout');
$session->query_safe('RESET statement_timeout');
like($session->error_of(q{SELECT ddb_lock_acquire('a', wait => '100ms')}),
	qr/ERROR: +55P03/, 'or by the time that the caller gives it');
ok($crowd->busy, 'another one goes on waiting');
proxy->clear_faults;
is($crowd->result, 't', 'and gets its lock when the reply is there');
ok(is_released('a'), 'those who gave up have nothing');
$crowd->quit;
is($session->query_safe($acquire), 't', 'nor are they in anybody\'s way');
$session->quit;

#
# One Region is pinned
#
replicate();
$node->append_conf('postgresql.conf', "ddblock.global_table_region = 'us-east-1'\n");
start_anew($node);
proxy->reset_counts;
is($node->safe_psql('postgres', $acquire), 't', 'in the pinned Region locks are acquired');
is(proxy->received('DescribeTable'), 0, 'and nobody asks about the table');
$node->append_conf('postgresql.conf', "ddblock.global_table_region = 'eu-west-1'\n");
start_anew($node);
my $elsewhere = qr/ERROR: +55000: .*"eu-west-1" only.*"us-east-1".*HINT: .*ddblock\.region/s;
like(error_of($node, $acquire), $elsewhere, 'in another Region they are refused');
like(error_of($node, $try), $elsewhere, 'for a try as well');
$node->stop;
$node->append_conf('postgresql.conf', "ddblock.global_table_region = 'not a region'\n");
ok(!$node->start(fail_ok => 1), 'a Region that is none keeps the server from starting');
$node->append_conf('postgresql.conf', "ddblock.global_table_region = ''\n");
proxy->clear_faults;
$node->start;

nothing_held_ok;
done_testing;
