# DynamoDB is out of reach, slow, or swallows requests: calls end in time, with
# an error that helps, and leave nothing behind.

use DDBLock::Test;
use Time::HiRes qw(time);

#
# Out of reach.  This cluster gives up after two seconds.
#
my $near = new_proxy();
my $node = new_cluster('one', through => $near,
	conf => "ddblock.retry_timeout = '2s'\nddblock.keep_warm = off\nlog_statement = none\n");
my $session = session($node);
my $refused = qr/ERROR: +08006: could not reach DynamoDB at \S+\n.*DETAIL: .*connect: .*refused/s;

$near->stop;
my $started = time;
my %calls = map { $_ => session($node) } (
	q{ddb_lock_acquire('a')}, q{ddb_lock_try_acquire('b')},
	q{ddb_xact_lock_acquire('c')}, q{ddb_lock_info('d')});
$calls{$_}->send("SELECT $_") foreach keys %calls;
foreach my $call (sort keys %calls)
{
	$calls{$call}->result;
	like($calls{$call}->messages, $refused, "$call fails if the connection is refused");
	$calls{$call}->quit;
}
cmp_ok(time - $started, '>=', 2, 'after the time for retries');
like($session->error_of(q{SELECT ddb_lock_acquire('a', wait => '1s')}),
	$refused, 'the same if the time to wait is over before');
like( $session->error_of(
		q{SET lock_timeout = '1s'; SELECT ddb_lock_acquire('a')}),
	$refused, 'or lock_timeout');
like($session->error_of(q{SET lock_timeout = 0; SELECT ddb_lock_table_create()}),
	$refused, 'creating the table fails, too');

$near->restart;
$node->safe_psql('postgres', q{SELECT ddb_lock_table_create()});
like($session->query_safe(q{SELECT ddb_lock_acquire('a', lease => '1h')}),
	qr/^\d+$/, 'when DynamoDB is back, all works again');

# The connection was lost while it was idle.
$near->restart;
is($session->query_safe(q{SELECT held FROM ddb_lock_info('a')}),
	't', 'a connection that was lost meanwhile is no error');

# Released, as far as the session is concerned.
$near->stop;
like( $session->error_of(q{SELECT ddb_lock_release('a')}),
	qr/ERROR: +08006: .*HINT: .*no longer holds.*keeps trying/s,
	'a release fails if it cannot be confirmed');
is($session->query_safe(q{SELECT ddb_lock_token('a') IS NULL}),
	't', 'but the session does not hold the lock any more');
$near->restart;
wait_for { is_released('a') } 'the release';
pass('the worker releases the lock when it can');

# A renewal cannot be confirmed before the deadline: the lease is lost.  The wide
# margin leaves time to see that what is left of it is released.
$session->query_safe(q{SET ddblock.safety_margin = 0.5});
$session->query_safe(q{SELECT ddb_lock_acquire('a', lease => '12s')});
$near->stop;
is($session->query_safe(q{SELECT ddb_lock_token('a') IS NOT NULL}),
	't', 'a lock is held as long as its lease runs');
wait_for { $session->ask(q{SELECT ddb_lock_token('a') IS NULL}) eq 't' }
'the end of the lease';
like($session->error_of(q{SELECT ddb_lock_require('a')}),
	qr/ERROR: +LK001: the lease on lock "a" is lost\n.*DETAIL: .*No renewal/s,
	'then it is lost');
like($session->error_of(q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +LK001/, 'and cannot be acquired on top of that');
wait_for { stat_of($node, undef, 'leases_lost') == 1 } 'the loss to be counted';
is($session->ask(q{SELECT ddb_lock_release('a')}), 'f', 'releasing it returns false');
like($session->messages, qr/WARNING: .*lost before it was released/,
	'with a warning');
wait_for { $node->log_contains(qr/the lease of lock "a" is lost/) }
'the server log to tell of the loss';
$near->restart;
wait_for { is_released('a') } 'the lost lock';
pass('what was left of the lost lease is released');

# DynamoDB comes back while a session waits for it.
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '10min'\n");
$node->reload;
my $waiter = session($node);
$near->stop;
my $errors = stat_of($node, 'acquire', 'errors');
$waiter->send(q{SELECT ddb_lock_acquire('a')});
wait_for { stat_of($node, 'acquire', 'errors') > $errors } 'the first attempt';
$near->restart;
like($waiter->result, qr/^\d+$/, 'a short outage delays an acquire, but does not fail it');
$_->quit foreach $waiter, $session;

#
# A black hole.  This cluster waits for a reply longer than this test does: what
# ends before was not ended by a time-out of the network.
#
my $far = new_proxy();
my $patient = new_cluster('two', through => $far,
	conf => "ddblock.request_timeout = '5min'\nddblock.retry_timeout = '10min'\n"
	  . "ddblock.keep_warm = off\nlog_statement = none\n");
my %ends = (
	'pg_cancel_backend' => [ '', '57014' ],
	'statement_timeout' => [ "SET statement_timeout = '300ms';", '57014' ],
	'lock_timeout' => [ "SET lock_timeout = '300ms';", '55P03' ],
	'pg_terminate_backend' => [ '', '57P01' ],
);

foreach my $action ('drop', 'lose_reply', 'late_reply')
{
	foreach my $end (sort keys %ends)
	{
		my ($settings, $sqlstate) = @{ $ends{$end} };
		my $victim = session($patient);
		my $pid = backend_pid($victim);

		$far->reset_counts;
		$far->fault($action, count => -1);
		until ($far->faults > 0)
		{
			# On a busy machine the time may be over before the request leaves.
			$victim->send("$settings SELECT ddb_lock_acquire('$end', lease => '1h')");
			wait_for { $far->faults > 0 || !$victim->busy } 'the request';
		}
		$patient->safe_psql('postgres', "SELECT $end($pid)") if $end =~ /^pg_/;
		$victim->result;
		like($victim->messages, qr/(ERROR|FATAL): +$sqlstate/, "$end ends a call in $action");
		$far->clear_faults;
		$victim->gone;
		wait_for { is_released($end) && stat_of($patient, undef, 'waiters') == 0 }
		'the lock that was not got';
		wait_for { $patient->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks}) eq '0' }
		'the end of what was under way';
		pass('nothing is left behind');
	}
}

# The other calls, too.
$session = session($patient);
my $pid = backend_pid($session);
$session->query_safe(
	q{SELECT ddb_lock_acquire('a', lease => '1h'), ddb_lock_acquire('b', lease => '1h')});
foreach my $call (
	q{ddb_lock_try_acquire('c')}, q{ddb_lock_info('a')},
	q{ddb_lock_renew('a')}, q{ddb_lock_table_create()},
	q{ddb_lock_release('a')}, q{ddb_lock_release_all()})
{
	$far->reset_counts;
	$far->fault('drop', count => -1);
	$session->send("SELECT $call");
	wait_for { $far->faults > 0 } 'the request';
	$patient->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	$session->result;
	like($session->messages, qr/ERROR: +57014/, "$call is cancelled in a black hole");
	$far->clear_faults;
}
is( $session->query_safe(
		q{SELECT ddb_lock_token('a') IS NULL, ddb_lock_token('b') IS NULL}),
	't|t', 'a cancelled release has ended the claim nevertheless');
wait_for { is_released('a') && is_released('b') } 'what was to be released';

# A waiting session whose looks are swallowed.
dynamodb->put_item(dynamodb->java_item('java', lease_ms => 3600_000));
$session->send(q{SELECT ddb_lock_acquire('java')});
wait_for_waiters($patient, 'java', 1);
$far->reset_counts;
$far->fault('drop', operation => 'GetItem', count => -1);
wait_for { $far->faults > 0 } 'a look at the lock';
$patient->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$session->result;
like($session->messages, qr/ERROR: +57014/, 'a look that is swallowed does not hold a waiter');
$far->clear_faults;
dynamodb->delete_item('java');

#
# Slow, but alive
#
$far->fault('late_reply', delay_ms => 400, count => 4);
is( $session->query_safe(
		q{SELECT ddb_lock_acquire('slow') > 0, held, ddb_lock_release('slow')
		  FROM ddb_lock_info('slow')}),
	't|f|t', 'a slow server slows calls down, and no more');

$session->quit;
nothing_held_ok;
done_testing;
