# Each loss of a lease is counted and logged once, whoever notices it.

use DDBLock::Test;

my $near = new_proxy();
my $node = new_cluster('one', through => $near, conf => "ddblock.keep_warm = off\ndeadlock_timeout = '1min'\n");
my $provoked = 0;

$node->safe_psql('postgres', 'CREATE TABLE t (v text)');

my $lease = '3s';

# The lock's name is the way in which its lease is lost.
sub holder
{
	my ($name, @statements) = @_;
	my $session = session($node);

	$session->query_safe(qq{SELECT ddb_lock_acquire('$name', '$lease')});
	$session->ask($_) foreach @statements;
	return $session;
}

sub wait_for_deadline
{
	my ($name) = @_;

	wait_for {
		$node->safe_psql('postgres',
			"SELECT count(*) FROM ddb_locks WHERE name = '$name' AND state = 'held'") == 0
	} "the deadline of $name";
	return;
}

# The session ends, if it has not; the worker goes on, and has freed everything.
sub told_once
{
	my ($name, $session, $why) = @_;

	$session->gone;
	$near->restart;
	kill 'CONT', worker_pid($node);
	wait_for { $node->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') == 0 }
	'the worker';
	my $log = () = slurp_file($node->logfile) =~
	  /LOG: +the lease of lock "\Q$name\E" is lost: $why.*\n.*DETAIL: +It was held by process \d+, user ".+", database "postgres"/g;
	is($log, 1, "$name: logged once");
	is(stat_of($node, undef, 'leases_lost'), ++$provoked, '... and counted once');
	like(stat_of($node, undef, 'last_loss'),
		qr/^lock "\Q$name\E" of process \d+, user ".+", database "postgres": $why/,
		'... and the last one');
	return;
}

my $late = qr/DynamoDB confirmed no renewal/;

# The worker is stopped.
foreach my $case (
	[ 'cancelled, and the client leaves', ['BEGIN'], 'SELECT pg_sleep(600)' ],
	[ 'cancelled in a transaction that had written', [ 'BEGIN', q{INSERT INTO t VALUES ('x')} ],
		'SELECT pg_sleep(600)' ],
	[ 'terminated', ['SET ddblock.on_lease_lost = terminate'], 'SELECT pg_sleep(600)' ],
	[ 'idle in a transaction', ['BEGIN'] ],
	[ 'idle, and the client leaves', [] ],
	[ 'required', ['SET ddblock.on_lease_lost = none'], undef,
		q{SELECT ddb_lock_require('required')} ],
	[ 'renewed', ['SET ddblock.on_lease_lost = none'], undef,
		q{SELECT ddb_lock_renew('renewed')} ],
	[ 'released', ['SET ddblock.on_lease_lost = none'], undef,
		q{SELECT ddb_lock_release('released')} ],
	[ 'released with all', ['SET ddblock.on_lease_lost = none'], undef,
		q{SELECT ddb_lock_release_all()} ],
	[ 'discarded', ['SET ddblock.on_lease_lost = none'], undef, 'DISCARD ALL' ],
	[ 'not committed', [ 'SET ddblock.on_lease_lost = none', 'BEGIN', q{INSERT INTO t VALUES ('x')} ],
		undef, 'COMMIT' ],
	[ 'noticed by a query', ['SET ddblock.on_lease_lost = none'], undef, 'SELECT 1', 'SELECT 2' ])
{
	my ($name, $begin, $statement, @later) = @$case;
	my $session = holder($name, @$begin);
	my $worker = worker_pid($node);

	$session->send($statement) if $statement;
	kill 'STOP', $worker;
	$session->result if $statement;
	wait_for_deadline($name);
	$session->ask($_) foreach @later;
	told_once("$name", $session, $late);
}

# A lock of transaction scope, rolled back after its deadline.
my $session = session($node);
$session->query_safe('SET ddblock.on_lease_lost = none');
$session->query_safe(q{BEGIN; SELECT ddb_xact_lock_acquire('rolled back', '3s')});
kill 'STOP', worker_pid($node);
wait_for_deadline('rolled back');
$session->ask('ROLLBACK');
told_once('rolled back', $session, $late);

# The worker notices; another worker, and the session, do not tell it again.
$session = holder('outage');
$near->stop;
wait_for { stat_of($node, undef, 'leases_lost') > $provoked } 'the loss';
my $worker = worker_pid($node);
kill 'TERM', $worker;
wait_for { (worker_pid($node) // $worker) != $worker } 'the next worker';
$session->ask('SELECT 1');
$session->ask(q{SELECT ddb_lock_release('outage')});
told_once('outage', $session, qr/$late for [\d.]+ s; the last one failed [\d.]+ s ago: connect: [^\n]*refused/i);

# Throttled: the worker notices first, or the session; both know why.  Attempts get shorter as the
# deadline comes near, so on a slow machine the last one may time out.
my $failed = qr/the last one failed [\d.]+ s ago: (?:ThrottlingException: Throughput exceeds|[\w ]+: Timed out)/i;
my $throttles = stat_of($node, 'renew', 'throttles');
$lease = '9s';
$session = holder('throttled');
$near->fault('error', operation => 'UpdateItem', status => 400, count => -1,
	type => 'ThrottlingException', message => 'Throughput exceeds the current capacity');
wait_for { stat_of($node, undef, 'leases_lost') > $provoked } 'the loss';
like($session->error_of(q{SELECT ddb_lock_require('throttled')}),
	qr/LK001: .*DETAIL: +No renewal was confirmed [^\n]* $failed/s,
	'the session is told what kept renewals from being confirmed');
$near->clear_faults;
told_once('throttled', $session, qr/$late [^\n]*; $failed/);
cmp_ok(stat_of($node, 'renew', 'throttles'), '>', $throttles, '... renewals were throttled');

# Both notice at the same deadline.
$lease = '3s';
$session = holder('both', 'BEGIN');
$session->send('SELECT pg_sleep(600)');
$near->stop;
$session->result;
told_once('both', $session, $late);

# Before the deadline, also on a machine that stands still for a while.
$lease = '9s';
foreach my $case (
	[ 'deleted', sub { dynamodb->delete_item($_[0]) }, qr/its item was deleted/ ],
	[ 'taken over', sub { dynamodb->put_item(dynamodb->java_item($_[0], owner => 'java')) },
		qr/"java" has taken it over/ ],
	[ 'released by another',
		sub {
			my $item = dynamodb->item($_[0]);

			$item->{isReleased} = { S => '1' };
			dynamodb->put_item($item);
		},
		qr/somebody else has released it/ ])
{
	my ($name, $do, $why) = @$case;

	$session = holder($name);
	$do->($name);
	wait_for { stat_of($node, undef, 'leases_lost') > $provoked } 'the loss';
	$session->ask(q{SELECT 1});
	dynamodb->delete_item($name);
	told_once($name, $session, $why);
}

# A release that found no way before the lease was over is not repeated.
$node->safe_psql('postgres', "SELECT ddb_lock_acquire('$_'), ddb_lock_release('$_')")
  foreach qw(outage both);

# What was released in time is none.
$session = holder('in time');
$session->query_safe(q{SELECT ddb_lock_release('in time')});
$session->query_safe(q{BEGIN; SELECT ddb_xact_lock_acquire('in time'); COMMIT});
$session->quit;
is(stat_of($node, undef, 'leases_lost'), $provoked, 'as many losses as were provoked');
is(() = slurp_file($node->logfile) =~ /the lease of lock .* is lost/g, $provoked,
	'... and as many in the log');
nothing_held_ok;
# Only a statement that cannot be canceled ends its session: attempts are counted anew for
# each loss.
$lease = '3s';
$session = session($node);
my $victim = backend_pid($session);
foreach my $loss (1 .. 7)
{
	$session->query_safe(qq{SELECT ddb_lock_acquire('again', '$lease')});
	$session->send('SELECT pg_sleep(600)');
	dynamodb->delete_item('again');
	$session->result;
	like($session->messages, qr/ERROR: +57014/, "loss $loss cancels the statement");
	$session->ask(q{SELECT ddb_lock_release('again')});
}
is(backend_pid($session), $victim, '... and the session goes on');
$session->quit;

done_testing;
