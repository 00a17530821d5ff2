# A session is interrupted in time: when a lease gets shorter, and in a COMMIT
# that still waits after the guard has passed.

use DDBLock::Test;

my $near = new_proxy();
my $node = new_cluster('one', through => $near, init => [ allows_streaming => 1 ],
	conf => "ddblock.keep_warm = off\n"
	  . "synchronous_standby_names = 'nobody'\nsynchronous_commit = local\n"
	  . "deadlock_timeout = '1min'\n");

$node->safe_psql('postgres', 'CREATE TABLE t (v text)');

sub rows
{
	my ($value) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM t WHERE v = '$value'");
}

sub wait_event
{
	my ($pid) = @_;
	return $node->safe_psql('postgres',
		"SELECT wait_event_type || '/' || wait_event FROM pg_stat_activity WHERE pid = $pid");
}

# A lease of an hour is shortened to two seconds; the write is applied, and the
# worker learns nothing more.  Returns the session, its pid, and the worker's.
sub shorten
{
	my $session = session($node);
	my $pid = backend_pid($session);
	my $worker = worker_pid($node);

	$session->query_safe(q{SELECT ddb_lock_acquire('a', '1h')});
	$session->query_safe(q{BEGIN; INSERT INTO t VALUES ('shortened'); SAVEPOINT s});
	$near->restart;
	$near->fault('lose_reply', operation => 'UpdateItem', count => -1);
	$session->send(q{SELECT ddb_lock_renew('a', '5s')});
	wait_for { dynamodb->item('a')->{leaseDuration}{S} eq '5000' } 'the renewal in the item';
	kill 'STOP', $worker;
	return ($session, $pid, $worker);
}

# Interrupted twice, the session may be gone by now.
sub go_on
{
	my ($worker, $session) = @_;

	$near->clear_faults;
	kill 'CONT', $worker;
	$session->gone;
	wait_for { is_released('a') } 'the release';
	return;
}

my ($session, $pid, $worker) = shorten();

$session->result;
like($session->messages, qr/ERROR: +LK001: the lease on lock "a" is lost/,
	'worker stopped: the renewal that shortened the lease ends at the new deadline');
wait_for { !kill 0, $pid } 'the end of the session';
pass('... and its transaction, which waits for ROLLBACK TO, is terminated');
go_on($worker, $session);

# The renewal is cancelled, the write has happened all the same.
($session, $pid, $worker) = shorten();
kill 'INT', $pid;
$session->result;
like($session->messages, qr/57014/, 'a renewal that was cancelled');
$session->send('ROLLBACK TO s; SELECT pg_sleep(600)');
$session->result;
like($session->messages, qr/57014: canceling .*\nDETAIL: +The lease on lock "a" was lost\./,
	'... has shortened the lease: the next statement is cancelled, and says why');
go_on($worker, $session);

# Another worker takes the request over, and is stopped as well.
$session = session($node);
$pid = backend_pid($session);
$session->query_safe(q{SELECT ddb_lock_acquire('a', '1h')});
$session->query_safe(q{BEGIN; INSERT INTO t VALUES ('shortened'); SAVEPOINT s});
$worker = worker_pid($node);
kill 'STOP', $worker;
$session->send(q{SELECT ddb_lock_renew('a', '5s')});
wait_for { wait_event($pid) =~ m{Extension/} } 'the request';
$near->restart;
$near->fault('lose_reply', operation => 'UpdateItem', count => -1);
kill 'TERM', $worker;
kill 'CONT', $worker;
wait_for { dynamodb->item('a')->{leaseDuration}{S} eq '5000' } 'the renewal in the item';
$worker = worker_pid($node);
kill 'STOP', $worker;
$session->result;
like($session->messages, qr/LK001/, 'a renewal while workers change');
go_on($worker, $session);
is(rows('shortened'), 0, 'nothing was committed');

#
# COMMIT waits for the lock under which notifications are queued.
#
my $notifier = session($node);
my $notifier_pid = backend_pid($notifier);

foreach my $how ('none', 'cancel', 'terminate')
{
	my $victim = session($node);
	my $victim_pid = backend_pid($victim);

	$notifier->query_safe('SET synchronous_commit = on');
	$notifier->send(q{INSERT INTO t VALUES ('notifier') \; NOTIFY n});
	wait_for { wait_event($notifier_pid) eq 'IPC/SyncRep' } 'the lock of notifications';
	$victim->query_safe("SET ddblock.on_lease_lost = $how");
	$victim->query_safe(q{SELECT ddb_lock_acquire('b', '9s')});
	$victim->query_safe("BEGIN; INSERT INTO t VALUES ('$how'); NOTIFY n");
	$victim->send('COMMIT');
	wait_for { wait_event($victim_pid) eq 'Lock/object' } 'the COMMIT that waits';
	$near->stop;
	if ($how eq 'terminate')
	{
		$victim->gone;
	}
	else
	{
		$victim->result;
		like($victim->messages, qr/ERROR: +57014/, "$how: a COMMIT that waits is interrupted");
	}
	$near->restart;
	$victim->ask(q{SELECT ddb_lock_release('b')}) unless $how eq 'terminate';
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($notifier_pid)");
	$notifier->result;
	is(rows($how), 0, '... and nothing is committed');
	$victim->quit unless $how eq 'terminate';
}

# One that is in time is not disturbed.
my $victim = session($node);
my $victim_pid = backend_pid($victim);

$notifier->send(q{INSERT INTO t VALUES ('notifier') \; NOTIFY n});
wait_for { wait_event($notifier_pid) eq 'IPC/SyncRep' } 'the lock of notifications';
$victim->query_safe(q{SELECT ddb_lock_acquire('b')});
$victim->query_safe(q{BEGIN; INSERT INTO t VALUES ('in time'); NOTIFY n});
$victim->send('COMMIT');
wait_for { wait_event($victim_pid) eq 'Lock/object' } 'the COMMIT that waits';
$node->safe_psql('postgres', "SELECT pg_cancel_backend($notifier_pid)");
$_->result foreach $notifier, $victim;
is($victim->complaints, '', 'a COMMIT that got the lock in time');
is(rows('in time'), 1, '... commits');
$victim->query_safe(q{SELECT ddb_lock_release('b')});
$_->quit foreach $notifier, $victim;
wait_for { is_released('b') } 'the lost lock';
nothing_held_ok;
done_testing;
