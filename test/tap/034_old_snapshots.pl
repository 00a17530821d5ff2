# REPEATABLE READ and SERIALIZABLE: who has waited for a lock is warned that its snapshot is older
# than what the last holder did.  Who has not waited is not, nor who has no older snapshot.

use DDBLock::Test;

my $one = new_cluster('one', conf => "ddblock.lease_duration = '1h'\n");
my $two = new_cluster('two', conf => "ddblock.lease_duration = '1h'\n");
my ($waiter, $holder) = map { session($one) } 1 .. 2;
my $far = session($two);

my $warning = qr/WARNING: +01000: the transaction may not see what the last holder of lock "m" has done\nDETAIL: .*\nHINT: +Acquire the lock before BEGIN, use READ COMMITTED, or call ddb_fence_check/;

$one->safe_psql('postgres', q{
	CREATE FUNCTION work() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN ddb_lock_acquire('m'); END $$;
	CREATE FUNCTION do_work() RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE t bigint; BEGIN
		SELECT ddb_lock_acquire('m') INTO t; RETURN t; END $$});
$waiter->query_safe('\set VERBOSITY verbose');

# What the statement says (query_safe() dies of a warning).  Its lock is free, or somebody has it until the statement waits.
sub warned
{
	my ($who, $block, $sql) = @_;

	$who->query_safe($block) if $who;
	$waiter->send($sql);
	if ($who)
	{
		wait_for_waiters($one, 'm', 1);
		$who->query_safe('SELECT ddb_lock_release_all()');
	}
	$waiter->result;
	my $messages = $waiter->complaints;
	$waiter->ask('ROLLBACK');
	$waiter->query_safe('SELECT ddb_lock_release_all()');
	wait_for { is_released('m') } 'm';
	return $messages;
}

my %ways = (
	q{SELECT ddb_lock_acquire('m')} => q{SELECT ddb_lock_acquire('m')},
	q{SELECT ddb_xact_lock_acquire('m')} => q{SELECT ddb_lock_acquire('m')},
	q{SELECT ddb_lock_acquire_all('{a,m,z}')} => q{SELECT ddb_lock_acquire('m')},
	q{SELECT ddb_xact_lock_acquire_all('{a,m,z}')} => q{SELECT ddb_lock_acquire('m')},
	q{SELECT ddb_lock_acquire_shared('m')} => q{SELECT ddb_lock_acquire('m')},
	q{SELECT ddb_xact_lock_acquire_shared('m')} => q{SELECT ddb_lock_acquire('m')},
	q{SELECT * FROM ddb_lock_acquire('m') WHERE true} => q{SELECT ddb_lock_acquire_shared('m')},
	q{SELECT ddb_semaphore_acquire('m', 2)} => q{SELECT ddb_semaphore_acquire('m', 2, 2)},
	q{SELECT ddb_xact_semaphore_acquire('m', 2, 2)} => q{SELECT ddb_semaphore_acquire('m', 2)},
	q{SELECT work()} => q{SELECT ddb_lock_acquire('m')});
foreach my $sql (sort keys %ways)
{
	foreach my $who ($holder, $far)
	{
		my $where = $who == $far ? 'in another cluster' : 'here';

		my $level = $who == $far ? 'serializable' : 'repeatable read';

		like(warned($who, $ways{$sql}, "BEGIN ISOLATION LEVEL $level; $sql"), $warning,
			"$sql, $level, after a holder $where");
	}
	is(warned($holder, $ways{$sql}, "BEGIN; $sql"), '', '... not under READ COMMITTED');
	is(warned(undef, undef, "BEGIN ISOLATION LEVEL repeatable read; $sql"), '', '... nor if nobody has waited');
}

# Not exclusive: who can share does not wait.
$far->query_safe(q{SELECT ddb_lock_acquire_shared('m')});
$holder->query_safe(q{SELECT ddb_lock_acquire_shared('m')});
foreach my $level ('repeatable read', 'serializable')
{
	$waiter->query_safe("BEGIN ISOLATION LEVEL $level; SELECT ddb_lock_acquire_shared('m'); COMMIT; SELECT ddb_lock_release_all()");
}
$_->query_safe('SELECT ddb_lock_release_all()') foreach $far, $holder;
wait_for { is_released('m') } 'm';
$far->query_safe(q{SELECT ddb_semaphore_acquire('m', 3)});
$_->query_safe(q{BEGIN ISOLATION LEVEL repeatable read; SELECT ddb_semaphore_acquire('m', 3); COMMIT})
  foreach $waiter, $holder;
pass('who can share with others is not warned');
$_->query_safe('SELECT ddb_lock_release_all()') foreach $far, $holder, $waiter;
wait_for { is_released('m') } 'm';

# One's own lock
$waiter->query_safe("SET default_transaction_isolation = 'repeatable read'");
$waiter->query_safe(q{BEGIN; SELECT ddb_xact_lock_acquire('m'); COMMIT}) foreach 1 .. 5;
pass('who takes its own lock again is not warned');
wait_for { is_released('m') } 'm';

# No snapshot, or one that ends with the call
my $block = q{SELECT ddb_lock_acquire('m')};
is(warned($holder, $block, q{SELECT ddb_lock_acquire('m')}), '', 'nor a call that is a transaction, before BEGIN');
is(warned($holder, $block, q{SELECT * FROM ddb_lock_acquire('m')}), '', '... in FROM');
is(warned($holder, $block, q{SELECT ddb_lock_acquire_all('{m}')}), '', '... of several locks');
is(warned($holder, $block, q{CALL ddb_lock_await('m')}), '', 'nor a procedure, which has no snapshot');
like(warned($holder, $block, $_), $warning, "but what goes on in its function is: $_")
  foreach 'SELECT work()', 'SELECT do_work()', q{DO $$ BEGIN PERFORM ddb_lock_acquire('m'); PERFORM 1; END $$};

# What the hint says: the fence fails
$one->safe_psql('postgres', 'CREATE TABLE t (a int)');
$holder->query_safe(q{SELECT ddb_lock_acquire('m'); SELECT ddb_fence_check('m', 1)});
$waiter->query_safe('BEGIN; SELECT count(*) FROM t');
$waiter->send(q{SELECT ddb_lock_acquire('m')});
wait_for_waiters($one, 'm', 1);
$holder->query_safe(q{SELECT ddb_fence_check('m', ddb_lock_require('m')); INSERT INTO t VALUES (1);
	SELECT ddb_lock_release('m')});
$waiter->result;
is($waiter->query_safe('SELECT count(*) FROM t'), 0, 'the transaction does not see what was done');
like($waiter->error_of(q{SELECT ddb_fence_check('m', ddb_lock_require('m'))}), qr/40001/, 'the fence refuses it');
$waiter->query_safe('ROLLBACK; SELECT ddb_lock_release_all()');

nothing_held_ok;
done_testing;
