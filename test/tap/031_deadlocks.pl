# Deadlocks that pass through PostgreSQL's locks.

use DDBLock::Test;
use DDBLock::Tools;

my $one = new_cluster('one', conf => "deadlock_timeout = '200ms'\nddblock.lease_duration = '1h'\n"
	  . "ddblock.poll_interval = '500ms'\nlog_lock_waits = on\n");
my ($a, $b, $c, $d) = map { session($one) } 1 .. 4;
my %pid = map { $_ => backend_pid($_) } $a, $b, $c, $d;
my @sessions = ($a, $b, $c, $d);

$one->safe_psql('postgres', q{
	SELECT ddb_queue_table_create();
	SELECT ddb_queue_push('q', 'r', '1');
	CREATE TABLE t (i int PRIMARY KEY, j int);
	CREATE TABLE u (i int);
	INSERT INTO t VALUES (1, 1), (2, 2);
	CREATE PROCEDURE waits(lock text) LANGUAGE plpgsql AS $$ BEGIN PERFORM ddb_lock_acquire(lock); END $$});

sub waits_as
{
	my ($session, $type) = @_;
	wait_for { $one->safe_psql('postgres', "SELECT wait_event_type FROM pg_stat_activity
		WHERE pid = $pid{$session} AND state = 'active'") eq $type } "a wait of type $type";
	return;
}
sub waits { my ($session) = @_; return waits_as($session, 'Extension'); }
sub waits_in_postgres { my ($session) = @_; return waits_as($session, 'Lock'); }
sub deadlocks { return stat_of($one, undef, 'deadlocks'); }
sub edge { my ($from, $what, $to) = @_; return "Process $pid{$from} waits for $what; blocked by process $pid{$to}."; }

# The session's statement ends with 40P01, and a detail of these lines.
sub fails_with
{
	my ($session, $name, @lines) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$session->result;
	my $detail = join '\s+', map { s/(\\\*)/.*/gr } map { quotemeta } @lines;
	like($session->messages, qr/ERROR: +40P01: deadlock detected\nDETAIL: +$detail\nHINT/, $name);
	return;
}
sub end
{
	$_->ask('ROLLBACK; SELECT pg_advisory_unlock_all(), ddb_lock_release_all()') foreach @sessions;
	wait_for { $one->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') eq '0' } 'all locks to be free';
	return;
}

#
# CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY wait for everybody's snapshot
#
my $lock = 'lock "a"';
my @waits = (
	[ 'for a lock', q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_lock_acquire('a')}, $lock ],
	[ 'with a limit', q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_lock_acquire('a', wait => '1h')}, $lock ],
	[ 'for a lock that is shared', q{SELECT ddb_lock_acquire_shared('a')}, q{SELECT ddb_lock_acquire('a')}, $lock ],
	[ 'to share a lock', q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_lock_acquire_shared('a')}, $lock ],
	[ 'for several locks', q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_lock_acquire_all('{0, a, b}')}, $lock ],
	[ 'for one of several', q{SELECT ddb_lock_acquire_all('{a, b}')}, q{SELECT ddb_lock_acquire('a')}, $lock ],
	[ 'for a permit', q{SELECT ddb_semaphore_acquire('a', 1)}, q{SELECT ddb_semaphore_acquire('a', 1)}, $lock ],
	[ 'for all permits', q{SELECT ddb_semaphore_acquire('a', 3)}, q{SELECT ddb_semaphore_acquire('a', 3, 3)}, $lock ],
	[ 'for a locked semaphore', q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_semaphore_acquire('a', 3)}, $lock ],
	[ 'in a transaction', q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_xact_lock_acquire('a')}, $lock ],
	[ 'in DO', q{SELECT ddb_lock_acquire('a')}, q{DO $$ BEGIN PERFORM ddb_lock_acquire('a'); END $$}, $lock ],
	[ 'in a procedure', q{SELECT ddb_lock_acquire('a')}, q{CALL waits('a')}, $lock ],
	[ 'in ddb_lock_monitor()', q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_lock_monitor('a', '1s', wait => '1h')}, 'the end of lock "a"' ],
	[ 'in ddb_queue_claim()', q{SELECT (ddb_queue_claim('q', wait => '1min')).number}, q{SELECT * FROM ddb_queue_claim('q', wait => '1h')}, 'a job of queue "q"' ],
	[ '... for a job of a resource', q{SELECT (ddb_queue_claim('q', wait => '1min')).number}, q{SELECT * FROM ddb_queue_claim('q', wait => '1h', resources => '{s, r}')}, 'a job of queue "q"' ],
);
my $count = deadlocks();
foreach (@waits)
{
	my ($name, $hold, $wait, $what) = @$_;
	foreach my $index ('CREATE INDEX CONCURRENTLY j ON u (i)', 'REINDEX INDEX CONCURRENTLY j')
	{
		$a->query_safe($hold);
		$b->send($wait);
		waits($b);
		$a->send($index);
		fails_with($b, "$index beside a wait $name", edge($b, $what, $a), edge($a, 'ShareLock on virtual transaction *', $b));
		$a->result;
		is($a->complaints, '', '... goes through');
		$a->query_safe(q{SELECT ddb_queue_fail('q', 'r', 1, retry_in => '0s')}) if $what =~ /queue/;
		$a->query_safe(q{SELECT ddb_lock_release_all()});
		$b->ask('ROLLBACK');
	}
	$one->safe_psql('postgres', 'DROP INDEX j');
}
is(deadlocks(), $count + 2 * @waits, 'each is counted');
end();

# The command's session has joined the lock.
my %environment = (PGHOST => $one->host, PGPORT => $one->port, PGDATABASE => 'postgres', PGUSER => user, PGOPTIONS => '');
sub run { my ($name, @command) = @_; return start($name, [ 'ddblock-run', 'a', @command ], env => \%environment); }
my $first = run('first', 'sh', '-c', q{psql -XAtc "SELECT pg_advisory_lock(1)" -c "CREATE INDEX CONCURRENTLY j ON u (i)"});
$c->query_safe('SELECT pg_advisory_lock(1)');
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) eq '1' } 'the command';
my $second = run('second', 'true');
wait_for_waiters($one, 'a', 1);
$c->query_safe('SELECT pg_advisory_unlock(1)');
is($first->status, 0, 'ddblock-run builds an index, for which another one does not wait: it has no snapshot') or diag($first->output);
is($second->status, 0, '... and goes on') or diag($second->output);
$one->safe_psql('postgres', 'DROP INDEX j');

#
# Other locks of PostgreSQL's
#
my @locks = (
	[ 'row', 'UPDATE t SET j = 2 WHERE i = 1', 'UPDATE t SET j = 3 WHERE i = 1', 'ShareLock on transaction *' ],
	[ 'table', 'LOCK t', 'DELETE FROM t WHERE i = 9', 'RowExclusiveLock on relation * of database *' ],
	[ 'advisory lock', 'SELECT pg_advisory_xact_lock(7)', 'SELECT pg_advisory_lock(7)', 'ExclusiveLock on advisory lock [*,0,7,1]' ],
);
foreach (@locks)
{
	my ($name, $blocks, $blocked, $what) = @$_;

	$a->query_safe(q{SELECT ddb_lock_acquire('a')});
	$b->query_safe("BEGIN; $blocks");
	$b->send(q{SELECT ddb_lock_acquire('a')});
	waits($b);
	$a->send($blocked);
	fails_with($b, "a deadlock with a $name", edge($b, $lock, $a), edge($a, $what, $b));
	$b->query_safe('ROLLBACK');
	$a->result;
	is($a->complaints, '', '... the other session goes on');
	end();
}

# The other order: the wait for our lock comes last.
$a->query_safe(q{SELECT ddb_lock_acquire('a')});
$b->query_safe('SELECT pg_advisory_lock(1)');
$a->send('SELECT pg_advisory_lock(1)');
waits_in_postgres($a);
$b->send(q{SELECT ddb_lock_acquire('a')});
fails_with($b, 'a deadlock closed by the wait for a ddblock lock', edge($b, $lock, $a), edge($a, 'ExclusiveLock on advisory lock *', $b));
$b->query_safe('SELECT pg_advisory_unlock(1)');
$a->result;
end();

#
# Circles of three, with both kinds of waits: b waits for c, c for a, a for b.  Who began to wait in
# ddblock last fails, and nobody else, whichever wait closes the circle.
#
foreach my $order ([ $b, $c, $a ], [ $a, $b, $c ], [ $c, $a, $b ], [ $c, $b, $a ], [ $a, $c, $b ], [ $b, $a, $c ])
{
	my %waits = ($a => 'SELECT pg_advisory_lock(1)', $b => q{SELECT ddb_lock_acquire('c')}, $c => q{SELECT ddb_lock_acquire('a')});
	my %edges = ($a => edge($a, 'ExclusiveLock on advisory lock *', $b), $b => edge($b, 'lock "c"', $c), $c => edge($c, $lock, $a));
	my ($victim) = grep { $_ != $a } reverse @$order;
	my ($other) = grep { $_ != $a && $_ != $victim } @$order;

	$a->query_safe(q{SELECT ddb_lock_acquire('a')});
	$b->query_safe(q{SELECT pg_advisory_lock(1)});
	$c->query_safe(q{SELECT ddb_lock_acquire('c')});
	$count = deadlocks();
	foreach (@$order)
	{
		$_->send($waits{$_});
		next if $_ == $order->[2];		# it closes the circle, and may have failed already
		$_ == $a ? waits_in_postgres($_) : waits($_);
	}
	my @circle = $victim == $b ? ($b, $c, $a) : ($c, $a, $b);
	fails_with($victim, 'a circle of three', map { $edges{$_} } @circle);
	# What it holds goes; then the others go on, one after the other.
	foreach ($victim, $victim == $b ? ($a, $c) : ($b, $a))
	{
		$_->result if $_ != $victim;
		unlike($_->messages, qr/ERROR/, '... another session goes on') if $_ != $victim;
		$_->ask('SELECT pg_advisory_unlock_all(), ddb_lock_release_all()');
	}
	is(deadlocks(), $count + 1, '... and there is one victim');
	end();
}

# Through the queue of PostgreSQL's lock: a waits behind d only, who waits for b.
$a->query_safe(q{SELECT ddb_lock_acquire('a')});
$b->query_safe('BEGIN; LOCK t IN ACCESS SHARE MODE');
$d->send('BEGIN; LOCK t');
waits_in_postgres($d);
$a->send('SELECT count(*) FROM t');
waits_in_postgres($a);
$b->send(q{SELECT ddb_lock_acquire('a')});
fails_with($b, 'a deadlock through the queue of a table', edge($b, $lock, $a),
	edge($a, 'AccessShareLock on relation * of database *', $d),
	edge($d, 'AccessExclusiveLock on relation * of database *', $b));
$b->query_safe('ROLLBACK');
$d->result;
$d->query_safe('ROLLBACK');
$a->result;
end();

#
# Permits: a deadlock only if those that are not part of it cannot suffice
#
$_->query_safe(q{SELECT ddb_semaphore_acquire('s', 2)}) foreach $a, $d;
$b->query_safe('SELECT pg_advisory_lock(1), pg_advisory_lock(2)');
$b->send(q{SELECT ddb_semaphore_acquire('s', 2)});
waits($b);
$a->send('SELECT pg_advisory_lock(1)');
waits_in_postgres($a);
$d->send('SELECT pg_advisory_lock(2)');
$b->result;
like($b->messages, qr/ERROR: +40P01: deadlock detected\nDETAIL: (\s*Process \d+ waits for .*; blocked by process \d+\.\n){4}HINT/m,
	'a deadlock with all who have permits');
foreach my $holder ($a, $d)
{
	like($b->messages, qr/\Q$_/, '... has all waits')
	  foreach edge($b, 'lock "s"', $holder), "Process $pid{$holder} waits for ExclusiveLock on advisory lock";
}
$b->query_safe('SELECT pg_advisory_unlock_all()');
$_->result foreach $a, $d;
end();

$_->query_safe(q{SELECT ddb_semaphore_acquire('p', 2)}) foreach $a, $d;
$b->query_safe('SELECT pg_advisory_lock(1)');
$b->query_safe(q{SET deadlock_timeout = '1ms'});
$a->send('SELECT pg_advisory_lock(1)');
waits_in_postgres($a);
$b->send(q{SELECT ddb_semaphore_acquire('p', 2) > 0});
waits($b);
wait_for { (() = slurp_file($one->logfile) =~ /process $pid{$b} still waiting for lock "p"/g) > 0 } 'a look';
$d->query_safe(q{SELECT ddb_lock_release('p')});
is($b->result, 't', 'one who waits for the permit of somebody else gets it');
$b->query_safe('SELECT pg_advisory_unlock_all()');
$a->result;
end();
$b->query_safe('RESET deadlock_timeout');

#
# Who waits to share a lock, only because somebody came before, goes first
#
$count = deadlocks();
$a->query_safe(q{SELECT ddb_lock_acquire_shared('a')});
$c->query_safe(q{SELECT pg_advisory_lock(1)});
$b->send(q{SELECT ddb_lock_acquire('a')});
wait_for_waiters($one, 'a', 1);
$c->send(q{SELECT ddb_lock_acquire_shared('a') > 0});
wait_for_waiters($one, 'a', 2);
$d->send(q{SELECT ddb_lock_acquire_shared('a') > 0});
wait_for_waiters($one, 'a', 3);
$a->send('SELECT pg_advisory_lock(1)');
is($c->result, 't', 'who waits in line only goes first, if that opens a circle');
ok($b->busy && $d->busy, '... nobody else does');
$c->query_safe(q{SELECT pg_advisory_unlock(1), ddb_lock_release_all()});
$a->result;
$a->query_safe(q{SELECT ddb_lock_release_all()});
$b->result;
$b->query_safe(q{SELECT ddb_lock_release_all()});
$d->result;
is(deadlocks(), $count, '... and nobody fails');
end();

#
# What is no deadlock of ours
#
# PostgreSQL finds its own ones, also behind a wait for our lock.
$a->query_safe(q{SET deadlock_timeout = '1min'; SELECT ddb_lock_acquire('a'), pg_advisory_lock(1)});
$b->query_safe(q{SET deadlock_timeout = '1ms'});
$b->send(q{SELECT ddb_lock_acquire('a') > 0});
waits($b);
$c->query_safe('SELECT pg_advisory_lock(2)');
$a->send('SELECT pg_advisory_lock(2)');
waits_in_postgres($a);
like($c->error_of('SELECT pg_advisory_lock(1)'), qr/40P01: deadlock detected\nDETAIL: +Process \d+ waits for ExclusiveLock on advisory/,
	"PostgreSQL's own circle is PostgreSQL's");
ok($b->busy, '... who waits for one in it waits on');
$c->query_safe('SELECT pg_advisory_unlock_all()');
$a->result;
$a->query_safe('SELECT ddb_lock_release_all(); RESET deadlock_timeout');
is($b->result, 't', '... and gets the lock');
$b->query_safe('RESET deadlock_timeout');
is(deadlocks(), $count, '... we counted none');
end();

# Two workers have a job each, and wait for another one.
$one->safe_psql('postgres', "SELECT ddb_queue_push('q', 'worker$_', '1')") foreach 1, 2;
foreach ($a, $b)
{
	$_->query_safe(q{SET deadlock_timeout = '1ms'});
	is($_->ask(q{SELECT count(*) FROM ddb_queue_claim('q', wait => '1min', resources => '{worker1, worker2}')}), '1', 'a job');
}
$_->send(q{SELECT count(*) FROM ddb_queue_claim('q', wait => '4s', resources => '{worker1, worker2}')}) foreach $a, $b;
foreach ($a, $b)
{
	is($_->result, '0', 'there is none');
	is($_->complaints, '', '... which is no deadlock');
	$_->query_safe('RESET deadlock_timeout');
}
is(deadlocks(), $count, '... we counted none');
end();

#
# Names that the session's prefix does not allow
#
$a->query_safe(q{SELECT ddb_lock_acquire('shop/a')});
$c->query_safe(q{SELECT ddb_lock_acquire('bank/c')});
$b->query_safe(q{SELECT pg_advisory_lock(1); SET ddblock.lock_prefix = 'shop/'});
$a->send(q{SELECT ddb_lock_acquire('bank/c')});
wait_for_waiters($one, 'bank/c', 1);
$c->send('SELECT pg_advisory_lock(1)');
waits_in_postgres($c);
$b->send(q{SELECT ddb_lock_acquire('shop/a')});
fails_with($b, 'another lock has no name', edge($b, 'lock "shop/a"', $a), edge($a, 'another lock', $c),
	edge($c, 'ExclusiveLock on advisory lock *', $b));
unlike($b->messages, qr/bank/, '... anywhere');
$b->query_safe('SELECT pg_advisory_unlock_all(); RESET ddblock.lock_prefix');
$c->result;
$c->query_safe('SELECT ddb_lock_release_all()');
$a->result;
end();

like(slurp_file($one->logfile), qr/DETAIL: +Process $pid{$b} waits for lock "shop\/a".*\n.*\n.*\n\tProcess $pid{$b}: SELECT ddb_lock_acquire\('shop\/a'\)\n/,
	'the log shows what each was doing');

#
# No false alarm: b waits for a's lock, a for c's advisory lock, and c for b's, again and again, but never
# at a time.
#
$count = deadlocks();
$one->safe_psql('postgres', q{
	CREATE PROCEDURE passes() LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_advisory_lock(1), pg_sleep(0.002);
		PERFORM pg_advisory_unlock(1);
	END $$;
	CREATE PROCEDURE passes_on() LANGUAGE plpgsql AS $$
	BEGIN
		WHILE NOT pg_try_advisory_lock_shared(2) LOOP
			CALL passes();
		END LOOP;
	END $$;
	CREATE PROCEDURE waits_and_passes_on() LANGUAGE plpgsql AS $$
	BEGIN
		WHILE NOT pg_try_advisory_lock_shared(2) LOOP
			PERFORM set_config('lock_timeout', '10ms', false);
			BEGIN
				PERFORM pg_advisory_lock(3);
			EXCEPTION WHEN lock_not_available THEN
			END;
			PERFORM set_config('lock_timeout', '0', false);
			CALL passes();
		END LOOP;
	END $$;
	CREATE PROCEDURE waits_often() LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1..1000 LOOP
			BEGIN
				PERFORM ddb_lock_acquire('a', wait => '20ms');
			EXCEPTION WHEN lock_not_available THEN
			END;
		END LOOP;
	END $$});
$d->query_safe('SELECT pg_advisory_lock(2)');
$a->query_safe(q{SELECT ddb_lock_acquire('a'); SET deadlock_timeout = '1min'});
$b->query_safe(q{SELECT pg_advisory_lock(3); SET deadlock_timeout = '1ms'; SET client_min_messages = error});
$c->query_safe(q{SET deadlock_timeout = '1min'});
$a->send('CALL passes_on()');
$c->send('CALL waits_and_passes_on()');
$b->ask('CALL waits_often()');
is($b->complaints, '', '1,000 waits that are no deadlock');
$d->query_safe('SELECT pg_advisory_unlock(2)');
foreach ($a, $c)
{
	$_->result;
	is($_->complaints, '', '... of sessions in loops');
}
$_->query_safe('RESET ALL') foreach $a, $b, $c;
is(deadlocks(), $count, '... none was taken for one');
end();

$_->quit foreach @sessions;
nothing_held_ok;
done_testing;
