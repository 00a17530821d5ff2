# A cluster is stopped, started, restarted; a standby is promoted.

use DDBLock::Test;

my $one = new_cluster('one', init => [ allows_streaming => 1 ]);
my $two = new_cluster('two');

# Two sessions that hold locks of both scopes, and one that waits.
sub take_locks
{
	my ($lease) = @_;
	my @sessions = map { session($one) } 1 .. 3;

	$sessions[0]->query_safe(
		"SELECT ddb_lock_acquire('a', $lease), ddb_lock_acquire('b', $lease)");
	$sessions[1]->query_safe("BEGIN; SELECT ddb_xact_lock_acquire('c', $lease)");
	$sessions[2]->send("SELECT ddb_lock_acquire('a', $lease)");
	wait_for_waiters($one, 'a', 1);
	return @sessions;
}

#
# In order: all is free when the cluster is down
#
foreach my $how ('stop', 'restart')
{
	my @sessions = take_locks("lease => '1h'");
	my $waiter = session($two);
	$waiter->send(q{SELECT ddb_lock_acquire('a')});
	wait_for_waiters($two, 'a', 1);

	# Fast is what pg_ctl does unless told.
	$one->$how;
	ok( is_released('b') && is_released('c'),
		"a fast $how releases the locks of all sessions");
	like($waiter->result, qr/^\d+$/, 'and another cluster gets them at once');
	$waiter->quit;
	$_->gone foreach @sessions;
	$one->start if $how eq 'stop';
}

my $session = session($one);
$session->query_safe(q{SELECT ddb_lock_acquire('a', lease => '1h')});
$session->quit;
$one->stop('smart');
ok(is_released('a'), 'a smart stop leaves nothing behind');
$one->start;
wait_for { worker_pid($one) } 'the worker';
is( $one->safe_psql('postgres',
		q{SELECT ddb_lock_acquire('a') > 0, ddb_lock_release('a')}),
	't|t', 'after the start all works again');

#
# A hot standby takes part like any other cluster
#
$one->backup('base');
my $standby = new_cluster('standby', init_from => [ $one, 'base', has_streaming => 1 ]);
$one->wait_for_catchup($standby);
wait_for { worker_pid($standby) } 'the worker of the standby';

my $reader = session($standby);
my $writer = session($one);
is($reader->query_safe('SELECT pg_is_in_recovery()'), 't', 'the standby is one');
my $token = $reader->query_safe(q{SELECT ddb_lock_acquire('a', lease => '20s')});
like($token, qr/^\d+$/, 'a standby takes a lock');
is($reader->query_safe(q{SELECT name, state, token FROM ddb_locks}),
	"a|held|$token", 'its views show it');
is( $writer->query_safe(
		q{SELECT NOT ddb_lock_try_acquire('a'), owner ~ '^standby/', token
		  FROM ddb_lock_info('a')}),
	"t|t|$token",
	'its primary sees who has it');
$writer->send(q{SELECT ddb_lock_acquire('a')});
wait_for_waiters($one, 'a', 1);

my $worker = worker_pid($standby);
$standby->promote;
is($reader->query_safe('SELECT pg_is_in_recovery()'), 'f', 'the standby is promoted');
is(worker_pid($standby), $worker, 'its worker does not notice');
is($reader->query_safe(q{SELECT ddb_lock_token('a')}), $token,
	'its sessions keep their locks');
ok($writer->busy, 'its former primary still waits');
is($reader->query_safe(q{SELECT ddb_lock_release('a')}), 't', 'until they are released');
cmp_ok($writer->result, '>', $token, 'then the former primary has its turn');

$_->quit foreach $reader, $writer;
nothing_held_ok;
done_testing;
