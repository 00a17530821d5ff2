# A cluster is stopped while DynamoDB is slow, silent or gone: it ends within a
# bounded time, and frees what can be freed.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy, init => [ allows_streaming => 1 ],
	conf => "ddblock.request_timeout = 30s\nddblock.keep_warm = off\n");
my $two = new_cluster('two');
my @names = qw(a b c);
my $lease = q{lease => '1h'};

sub journals { my @files = glob $one->data_dir . '/pg_stat_tmp/ddblock.*'; return @files; }
sub all_free { return !grep { !is_released($_) } @names; }

sub hold_locks
{
	my @sessions = map { session($one) } 1 .. 2;

	$sessions[0]->query_safe("SELECT ddb_lock_acquire('a', $lease), ddb_lock_acquire('b', $lease)");
	$sessions[1]->query_safe("BEGIN; SELECT ddb_xact_lock_acquire('c', $lease)");
	return @sessions;
}

# pg_ctl gives up, and so the test fails, after a minute: a wait for any of the
# leases, or for one request's time-out twice, is longer.
sub stop_ok
{
	my ($mode, $what, @sessions) = @_;

	local $ENV{PGCTLTIMEOUT} = 59;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($one->stop($mode, fail_ok => 1), "$what: a $mode stop ends");
	$_->gone foreach @sessions;
	return;
}

sub free_ok
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(all_free, "$what: everything is free when the cluster is down");
	is(scalar(my @left = journals), 0, "$what: no journal is left");
	return;
}

# What could not be freed is freed by the next start.
sub freed_by_start_ok
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(!all_free, "$what: not everything could be freed");
	$one->start;
	my $other = session($two);
	$other->send(join ';', map { "SELECT ddb_lock_acquire('$_') > 0" } @names);
	is($other->result, join("\n", ('t') x @names), "$what: the next start frees it at once");
	$other->quit;
	wait_for { all_free } 'the locks';
	return;
}

#
# No answer at all
#
my @sessions = hold_locks;
proxy->fault('drop', count => -1);
stop_ok('fast', 'requests are never answered', @sessions);
proxy->clear_faults;
freed_by_start_ok('requests are never answered');

@sessions = hold_locks;
proxy->stop;
stop_ok('fast', 'connections are refused', @sessions);
proxy->restart;
freed_by_start_ok('connections are refused');

@sessions = hold_locks;
proxy->fault('drop', count => -1);
$_->quit foreach @sessions;
stop_ok('smart', 'requests are never answered');
proxy->clear_faults;
freed_by_start_ok('requests are never answered');

# Nothing is held: nothing to wait for, and no reason to fear that there is.
proxy->stop;
stop_ok('fast', 'nothing is held, and DynamoDB is gone');
is(scalar(my @none = journals), 0, 'nothing is held: no journal is left');
proxy->restart;
$one->start;

#
# Late answers
#
foreach my $mode ('fast', 'smart')
{
	@sessions = hold_locks;
	proxy->fault('late_reply', delay_ms => 1000, count => -1);
	if ($mode eq 'smart')
	{
		$_->quit foreach @sessions;
		@sessions = ();
	}
	stop_ok($mode, 'answers take a second', @sessions);
	free_ok("answers take a second, $mode");
	proxy->clear_faults;
	$one->start;
}

# Each release is lost once; waiting for its own time-out would take too long,
# also if it left before the worker was told that this is the end.
foreach my $when ('after', 'before')
{
	my $what = "the first copy of each release, sent $when the stop, is lost";

	@sessions = hold_locks;
	proxy->reset_counts;
	proxy->fault('drop', operation => 'UpdateItem', match => 'isReleased = :released',
		count => 3);
	if ($when eq 'before')
	{
		$_->quit foreach @sessions;
		@sessions = ();
		wait_for { proxy->faults('UpdateItem') == 3 } 'the releases';
	}
	stop_ok('fast', $what, @sessions);
	is(proxy->faults('UpdateItem'), 3, 'three copies were lost indeed');
	free_ok($what);
	proxy->clear_faults;
	$one->start;
}

#
# In the middle of a call
#
my $acquiring = session($one);
proxy->reset_counts;
proxy->fault('lose_reply', operation => 'UpdateItem', match => '"a"', count => 1);
$acquiring->send("SELECT ddb_lock_acquire('a', $lease)");
wait_for { !is_released('a') } 'the acquire to arrive';
stop_ok('fast', 'a session is acquiring', $acquiring);
free_ok('a session is acquiring');
proxy->clear_faults;
$one->start;

my $releasing = session($one);
$releasing->query_safe("SELECT ddb_lock_acquire('a', $lease)");
proxy->reset_counts;
proxy->fault('drop', operation => 'UpdateItem', match => 'isReleased = :released',
	count => 1);
$releasing->send("SELECT ddb_lock_release('a')");
wait_for { proxy->faults('UpdateItem') == 1 } 'the release';
stop_ok('fast', 'a session is releasing', $releasing);
free_ok('a session is releasing');
proxy->clear_faults;
$one->start;

my $holder = session($one);
my $waiter = session($one);
$holder->query_safe("SELECT ddb_lock_acquire('a', $lease)");
$waiter->send("SELECT ddb_lock_acquire('a', $lease)");
wait_for_waiters($one, 'a', 1);
proxy->reset_counts;
proxy->fault('late_reply', operation => 'UpdateItem', delay_ms => 500, count => -1);
$holder->send("SELECT ddb_lock_release('a')");
wait_for { proxy->received('UpdateItem') > 0 } 'the hand-over';
stop_ok('fast', 'a lock is being handed over', $holder, $waiter);
free_ok('a lock is being handed over');
proxy->clear_faults;
$one->start;

#
# Smart: sessions that are there keep their locks for as long as they like
#
my $patient = session($one);
my $token = $patient->query_safe(q{SELECT ddb_lock_acquire('a', lease => '9s')});
my $renewals = q{SELECT renewals FROM ddb_locks WHERE name = 'a'};
my $seen = $patient->query_safe($renewals);
my $stopping = IPC::Run::start(
	[ 'pg_ctl', '-D', $one->data_dir, '-m', 'smart', '-t', '600', 'stop' ], '>', \my $out, '2>', \my $err);
wait_for { slurp_file($one->logfile) =~ /received smart shutdown request/ } 'the stop';
wait_for { $patient->query_safe($renewals) > $seen + 3 } 'renewals';	# more than a lease
is($patient->query_safe(q{SELECT ddb_lock_require('a')}), $token,
	'a smart stop leaves a session its lock for more than a lease');
$patient->query_safe("SELECT ddb_lock_acquire('b', $lease)");
ok(!is_released('b'), 'and lets it take another');
$patient->quit;
$stopping->finish;
is($stopping->result(0), 0, 'it ends with the last session');
$one->_update_pid(0);
free_ok('a smart stop');
$one->start;

#
# A walsender outlives the worker
#
$one->backup('base');
my $standby = new_cluster('standby', init_from => [ $one, 'base', has_streaming => 1 ]);
$one->wait_for_catchup($standby);
@sessions = hold_locks;
stop_ok('fast', 'a standby is connected', @sessions);
free_ok('a standby is connected');
$one->start;
$one->wait_for_catchup($standby);

nothing_held_ok;
done_testing;
