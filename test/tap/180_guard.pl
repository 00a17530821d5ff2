# A lost lease: the session is interrupted, and what it wrote does not commit.

use DDBLock::Test;

my $near = new_proxy();
my $node = new_cluster('one', through => $near, init => [ allows_streaming => 1 ],
	conf => "ddblock.keep_warm = off\nmax_prepared_transactions = 5\n"
	  . "synchronous_standby_names = 'nobody'\nsynchronous_commit = local\n");

$node->safe_psql('postgres', 'CREATE TABLE t (v text)');

sub rows
{
	my ($value) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM t WHERE v = '$value'");
}

my $refused = qr/ERROR: +LK001: cannot commit, because the lease on lock "a" was lost\n.*DETAIL: .*deleted.*HINT: /s;

#
# The guard.
#
my $session = undisturbed($node);

foreach my $how (
	[ 'session', 'ddb_lock_acquire', 'COMMIT' ],
	[ 'transaction', 'ddb_xact_lock_acquire', 'COMMIT' ],
	[ 'session', 'ddb_lock_acquire', 'COMMIT AND CHAIN' ],
	[ 'session', 'ddb_lock_acquire', q{PREPARE TRANSACTION 'p'} ])
{
	my ($scope, $acquire, $commit) = @$how;
	my $what = "$commit, lock of $scope scope";

	$session->query_safe("BEGIN; SELECT $acquire('a', '9s')");
	$session->query_safe(q{INSERT INTO t VALUES ('guarded')});
	lose($node, 'a');
	like($session->error_of($commit), $refused, "$what: refused");
	is($session->query_safe(q{SELECT pg_current_xact_id_if_assigned() IS NULL}),
		't', "$what: the transaction has ended") unless $commit =~ /CHAIN/;
	$session->ask('ROLLBACK');
	is(rows('guarded'), 0, "$what: nothing was committed");
	if ($scope eq 'session')
	{
		like($session->error_of(q{INSERT INTO t VALUES ('implicit')}),
			$refused, 'a single statement commits nothing either');
		is($session->ask(q{SELECT ddb_lock_release('a')}),
			'f', 'the session acknowledges the loss');
	}
	$session->query_safe(q{INSERT INTO t VALUES ('after')});
}
is(rows('after'), 4, 'and then commits again');
is(rows('implicit'), 0, 'what was refused is not there');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_prepared_xacts'),
	0, 'nothing was prepared');

$session->query_safe(q{BEGIN; SELECT ddb_lock_acquire('a', '9s')});
lose($node, 'a');
$session->ask('COMMIT');
unlike($session->messages, qr/ERROR/, 'a transaction that has written nothing may commit');
$session->ask(q{SELECT ddb_lock_release('a')});

# The loss was acknowledged before COMMIT, in one way or the other.
$session->query_safe(q{BEGIN; SELECT ddb_lock_acquire('a', '9s')});
$session->query_safe(q{INSERT INTO t VALUES ('guarded')});
lose($node, 'a');
is($session->ask(q{SELECT ddb_lock_release('a')}), 'f', 'lost and released');
like($session->error_of('COMMIT'), $refused, '... in one transaction: refused');

$session->query_safe(q{BEGIN; INSERT INTO t VALUES ('guarded')});
$session->query_safe(q{SAVEPOINT s; SELECT ddb_xact_lock_acquire('a', '9s')});
lose($node, 'a');
$session->ask('ROLLBACK TO s');
like($session->error_of('COMMIT'), $refused, 'lost and rolled back to a savepoint: refused');
$session->query_safe(q{INSERT INTO t VALUES ('next')});
is(rows('next'), 1, 'the next transaction is another matter');

# Procedures that commit.
$node->safe_psql('postgres', q{
	CREATE PROCEDURE work(first text, second text) LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO t VALUES (first);
		COMMIT;
		PERFORM pg_advisory_lock(1);
		PERFORM pg_advisory_unlock(1);
		INSERT INTO t VALUES (second);
		COMMIT;
	END $$});
my $gate = session($node);
$gate->query_safe('SELECT pg_advisory_lock(1)');
$session->query_safe(q{SELECT ddb_lock_acquire('a', '9s')});
$session->send(q{CALL work('held', 'guarded')});
wait_for { rows('held') } 'the first commit';
lose($node, 'a');
$gate->query_safe('SELECT pg_advisory_unlock(1)');
$session->result;
like($session->messages, $refused, 'a procedure that commits inside is refused');
$session->ask(q{SELECT ddb_lock_release('a')});

# COMMIT PREPARED is not guarded: the transaction no longer is the session's.
$session->query_safe(q{SELECT ddb_lock_acquire('a', '9s')});
$session->query_safe(q{BEGIN; INSERT INTO t VALUES ('prepared'); PREPARE TRANSACTION 'p'});
lose($node, 'a');
$session->ask(q{COMMIT PREPARED 'p'});
is(rows('prepared'), 1, 'what was prepared in time commits');
$session->ask(q{SELECT ddb_lock_release('a')});

is(rows('guarded'), 0, 'in no way was anything committed that was refused');

$session->query_safe(q{SET ddblock.commit_guard = off});
$session->query_safe(q{BEGIN; SELECT ddb_lock_acquire('a', '9s')});
$session->query_safe(q{INSERT INTO t VALUES ('unguarded')});
lose($node, 'a');
$session->ask('COMMIT');
is(rows('unguarded'), 1, 'without the guard, it commits');
$session->quit;

#
# The interruption.  An outage, so that each lease is lost at its deadline.
#
my $shorten = q{ddb_lock_renew('b', '2s')};
my $backend;	# of the last holder

# The lease is made short when all is prepared, or by the statement itself: it is
# to be lost in the end, but not before.
sub short_holder
{
	my ($how, $begin, $statement) = @_;
	my $victim = session($node);

	$backend = backend_pid($victim);
	$victim->query_safe("SET ddblock.on_lease_lost = $how");
	$victim->query_safe(q{SELECT ddb_lock_acquire('b', '1h')});
	$victim->query_safe($_) foreach @$begin;
	$victim->send($statement // "SELECT $shorten");
	wait_for {
		$node->safe_psql('postgres',
			q{SELECT count(*) FROM ddb_locks WHERE name = 'b' AND lease = '1h'}) eq '0'
	}
	'the short lease';
	$victim->result unless defined $statement;
	return $victim;
}

sub interrupted
{
	my $victim = short_holder(@_);

	$near->stop;
	return $victim;
}

# What is left of the lease is released, if DynamoDB is back in time, or runs out.
sub free_again
{
	$node->safe_psql('postgres', q{SELECT ddb_lock_acquire('b'), ddb_lock_release('b')});
	return;
}

my $victim = interrupted('cancel', [], "SELECT $shorten, pg_sleep(600)");
$victim->result;
like($victim->messages, qr/ERROR: +57014:/, 'a running statement is cancelled');
like($victim->error_of(q{SELECT ddb_lock_require('b')}),
	qr/LK001: .*DETAIL: .*No renewal/s, 'and lock functions say why');
$near->restart;
$victim->ask(q{SELECT ddb_lock_release('b')});
is($victim->query_safe('SELECT 1'), '1', 'the session goes on');
$victim->quit;
wait_for { $node->log_contains(qr/lock "b" is lost: DynamoDB confirmed no renewal/) }
'the log to tell an outage';
like(stat_of($node, undef, 'last_loss'),
	qr/^lock "b" of process \d+, user ".+", database "postgres": DynamoDB confirmed no renewal/,
	'the log tells an outage, and so does ddb_stats');

$victim = interrupted('cancel', [ 'BEGIN', q{INSERT INTO t VALUES ('idle')} ]);
wait_for { !kill 0, $backend } 'the end of the session';
pass('a session that is idle in a transaction is terminated');
$near->restart;
$victim->quit;
free_again();

$victim = interrupted('cancel', []);
wait_for { stat_of($node, undef, 'leases_held') == 0 } 'the loss';
is($victim->ask('SELECT 1'), '1', 'a session without a transaction stays');
like($victim->messages, qr/WARNING: +LK001: the lease on lock "b" was lost/, '... and is warned');
like($victim->error_of(q{INSERT INTO t VALUES ('idle')}), qr/LK001/,
	'and cannot write');
$near->restart;
$victim->ask(q{SELECT ddb_lock_release('b')});
$victim->quit;

$victim = interrupted('terminate', [], "SELECT $shorten, pg_sleep(600)");
$victim->result;
like($victim->messages, qr/57P01/, 'terminate ends the session');
$victim->gone;
$near->restart;
free_again();

$victim = interrupted('none', ['BEGIN']);
wait_for { stat_of($node, undef, 'leases_held') == 0 } 'the loss';
is($victim->ask('SELECT 1'), '1', 'none leaves the session alone');
$near->restart;
$victim->ask(q{ROLLBACK; SELECT ddb_lock_release('b')});
$victim->quit;

# The handler of an exception that swallows the first cancellation's error.
$victim = interrupted('cancel', [],
	qq{DO \$\$ BEGIN PERFORM $shorten;
		LOOP BEGIN PERFORM pg_sleep(600);
		EXCEPTION WHEN query_canceled THEN RAISE NOTICE 'swallowed'; END;
		END LOOP; END \$\$});
wait_for { ($victim->{stderr} // '') =~ /swallowed.*swallowed/s || $victim->busy && do {
		eval { $victim->{run}->pump_nb }; ($victim->{stderr} // '') =~ /swallowed.*swallowed/s } }
'a second cancellation';
pass('a statement that swallows its cancellation is cancelled again');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE query LIKE 'DO %'});
$victim->gone;
$near->restart;
free_again();

# The worker is stopped: the session sees to it by itself.
foreach my $case (
	[ 'statement', [], "SELECT $shorten, pg_sleep(600)" ],
	[ 'idle transaction', [ 'BEGIN', q{INSERT INTO t VALUES ('idle')} ] ])
{
	my ($what, $begin, $statement) = @$case;
	my $worker = worker_pid($node);

	$victim = short_holder('cancel', $begin, $statement);
	kill 'STOP', $worker;
	if ($statement)
	{
		$victim->result;
		like($victim->messages, qr/57014/, "worker stopped: the $what is cancelled");
	}
	else
	{
		wait_for { !kill 0, $backend } 'the end of the session';
		pass("worker stopped: the $what is terminated");
	}
	kill 'CONT', $worker;
	$victim->ask(q{SELECT ddb_lock_release('b')}) if $statement;
	$victim->quit;
	free_again();
}

my $worker = worker_pid($node);
$victim = short_holder('cancel', [q{BEGIN; INSERT INTO t VALUES ('idle')}]);
kill 'STOP', $worker;
$victim->send(q{SELECT ddb_lock_renew('b')});
$victim->result;
like($victim->messages, qr/LK001/, 'worker stopped: a renewal tells of the loss');
kill 'CONT', $worker;
$victim->ask(q{ROLLBACK; SELECT ddb_lock_release('b')});
$victim->quit;
free_again();

# A failed subtransaction leaves the row locks of the one around it.
foreach my $case (
	[ 'failed before', 'SELECT 1/0', undef ],
	[ 'failed by the cancellation', undef, "SELECT $shorten, pg_sleep(600)" ],
	[ 'that copies from its client', undef, "SELECT $shorten;\nCOPY t FROM STDIN" ])
{
	my ($what, $failing, $statement) = @$case;

	$victim = short_holder('cancel',
		[q{BEGIN; INSERT INTO t VALUES ('idle'); SAVEPOINT s}], $statement);
	$victim->ask($failing) if $failing;
	$near->stop;
	wait_for { !kill 0, $backend } 'the end of the session';
	pass("a transaction with a subtransaction $what is terminated");
	$victim->gone;
	$near->restart;
	free_again();
}

# A commit that waits for a synchronous standby is not acknowledged without it.
my $timekeeper = undisturbed($node);
$victim = session($node);
$backend = backend_pid($victim);
$victim->query_safe(q{SELECT ddb_lock_acquire('b', '9s')});
$timekeeper->query_safe(q{SELECT ddb_lock_acquire('d', '13s')});
$victim->query_safe('SET synchronous_commit = on');
$victim->send(q{INSERT INTO t VALUES ('synchronous')});
wait_for {
	$node->safe_psql('postgres',
		"SELECT wait_event FROM pg_stat_activity WHERE pid = $backend") eq 'SyncRep'
} 'the wait for a standby';
$near->stop;
wait_for { stat_of($node, undef, 'leases_held') == 0 } 'the loss of one lease, and of a longer one';
ok($victim->busy, 'a commit under way goes on waiting for its standby');
$node->append_conf('postgresql.conf', "synchronous_standby_names = ''\n");
$node->reload;
$victim->result;
is($victim->complaints, '', 'without a warning');
is(rows('synchronous'), 1, 'it was committed in time');
$near->restart;
$_->ask(q{SELECT ddb_lock_release_all()}) foreach $victim, $timekeeper;
$_->query_safe(q{SELECT ddb_lock_acquire('b'), ddb_lock_acquire('d'), ddb_lock_release_all()})
  foreach $victim, $timekeeper;
$_->quit foreach $victim, $timekeeper;

# A loss before the deadline: the worker tells the session.
$victim = session($node);
$victim->query_safe(q{SELECT ddb_lock_acquire('c', '30s')});
$victim->send('SELECT pg_sleep(600)');
dynamodb->delete_item('c');
$victim->result;
like($victim->messages, qr/57014/, 'a session is told of a loss before the deadline');
wait_for { $node->log_contains(qr/lock "c" is lost: its item was deleted/) } 'the log';
pass('which is no outage');
$victim->ask(q{SELECT ddb_lock_release('c')});
$victim->quit;

is(rows('idle'), 0, 'nothing of an interrupted session was committed');
$gate->quit;
nothing_held_ok;
done_testing;
