# Two clusters and one lock table: exclusion, waiting, hand-over, take-over.

use DDBLock::Test;
use Time::HiRes qw(time);

my $one = new_cluster('one', through => proxy);
my $two = new_cluster('two');
my $holder = session($one);
my $waiter = session($two);

#
# Exclusion
#
my $token = $holder->query_safe(q{SELECT ddb_lock_acquire('a')});

is($waiter->query_safe(q{SELECT NOT ddb_lock_try_acquire('a')}),
	't', 'the other cluster cannot have the lock');
is( $waiter->query_safe(
		q{SELECT held, owner ~ '^one/', datname, pid, token, lease FROM ddb_lock_info('a')}
	),
	't|t|postgres|' . backend_pid($holder) . "|$token|00:00:20",
	'the other cluster sees who has it');

like($waiter->error_of(q{SELECT ddb_lock_acquire('a', wait => '2s')}),
	qr/55P03: could not acquire lock "a" within 2 ?s.*DETAIL: .*"one\/.*since /s,
	'a wait that ends in vain tells who holds the lock');

$waiter->send(q{SELECT ddb_lock_acquire('a')});
wait_for_waiters($two, 'a', 1);
ok($waiter->busy, 'the other cluster waits');
is($holder->query_safe(q{SELECT ddb_lock_release('a')}),
	't', 'the holder releases');
cmp_ok($waiter->result, '>', $token,
	'the other cluster gets the lock, with a higher token');
is($holder->query_safe(q{SELECT NOT ddb_lock_try_acquire('a')}),
	't', 'now it is the first cluster that cannot have it');
$waiter->query_safe(q{SELECT ddb_lock_release('a')});

#
# First in, first out within a cluster, whatever becomes of those between
#
$one->safe_psql('postgres',
	'CREATE TABLE got (at int GENERATED ALWAYS AS IDENTITY, who int, token bigint)');
$holder->query_safe(q{SELECT ddb_lock_acquire('b')});

my @queue = map { session($one) } 1 .. 6;
my @pids = map { backend_pid($_) } @queue;
foreach my $who (1 .. 6)
{
	$queue[ $who - 1 ]->send(qq{
		WITH l AS MATERIALIZED (SELECT ddb_lock_acquire('b') AS token)
		INSERT INTO got (who, token) SELECT $who, token FROM l;
		SELECT ddb_lock_release('b')});
	wait_for_waiters($one, 'b', $who);
}
$one->safe_psql('postgres', "SELECT pg_cancel_backend($pids[2])");
$one->safe_psql('postgres', "SELECT pg_terminate_backend($pids[4])");
wait_for_waiters($one, 'b', 4);

$holder->query_safe(q{SELECT ddb_lock_release('b')});
$_->result foreach @queue;
like($queue[2]->messages, qr/57014: canceling statement/,
	'one of the queue was cancelled');
is( $one->safe_psql('postgres',
		q{SELECT string_agg(who::text, ',' ORDER BY at) FROM got}),
	'1,2,4,6',
	'the others get the lock in the order in which they came');
is( $one->safe_psql('postgres',
		q{SELECT string_agg(who::text, ',' ORDER BY token) FROM got}),
	'1,2,4,6',
	'their tokens rise in that order');

#
# Hand-over within a cluster, as the data changes: one write, and nobody else gets
# in between.  The write has reserved tokens beyond the holder's.
#
$holder->query_safe(q{SELECT ddb_lock_acquire('c')});
$queue[0]->send(q{SELECT ddb_lock_acquire('c', lease => '30s', data => 'new')});
wait_for_waiters($one, 'c', 1);
my $before = stat_of($one, 'hand_over');
proxy->reset_counts;
$holder->query_safe(q{SELECT ddb_lock_release('c')});
$token = $queue[0]->result;
is(stat_of($one, 'hand_over') - $before, 1, 'a lock is handed over');
is(proxy->forwarded('UpdateItem'), 1, 'by a single request');
is( $waiter->query_safe(
		qq{SELECT held, pid, token BETWEEN $token AND $token + 255, lease,
			convert_from(data, 'UTF8') FROM ddb_lock_info('c')}),
	"t|$pids[0]|t|00:00:30|new",
	'the item tells of the new holder');
$queue[0]->query_safe(q{SELECT ddb_lock_release('c')});

#
# A busy cluster does not starve the other one
#
my @busy = map { session($one) } 1 .. 4;
my @busy_pids = map { backend_pid($_) } @busy;
my $loop = q{
	DO $$
	BEGIN
		LOOP
			PERFORM ddb_lock_acquire('d');
			PERFORM ddb_lock_release('d');
		END LOOP;
	END
	$$};
$holder->query_safe(q{SELECT ddb_lock_acquire('d')});
$_->send($loop) foreach @busy;
wait_for_waiters($one, 'd', 4);
$holder->query_safe(q{SELECT ddb_lock_release('d')});
wait_for { stat_of($one, 'hand_over') > $before + 3 } 'the lock goes round in its cluster';
like($waiter->ask(q{SELECT ddb_lock_acquire('d', wait => '60s')}),
	qr/^\d+$/, 'a lock that goes round in one cluster reaches the other');
$one->safe_psql('postgres', "SELECT pg_terminate_backend($_)") foreach @busy_pids;
$_->gone foreach @busy;
$waiter->query_safe(q{SELECT ddb_lock_release('d')});

#
# A cluster that is gone without a word: its lock is free one lease later, and
# not before
#
$holder->query_safe(q{SELECT ddb_lock_acquire('dead', lease => '3s')});
$holder->query_safe(q{SELECT ddb_lock_acquire('dead too', lease => '3s')});
my $early = session($two);
$early->send(q{SELECT ddb_lock_acquire('dead')});
wait_for_waiters($two, 'dead', 1);
$one->stop('immediate');

my $started = time;
is($waiter->query_safe(q{SELECT NOT ddb_lock_try_acquire('dead too')}),
	't', 'the lock of a dead holder is not free at once');
my $late = session($two);
$late->send(q{SELECT ddb_lock_acquire('dead')});

like($early->result, qr/^\d+$/, 'who waited for the dead holder gets its lock');
like($early->messages,
	qr/NOTICE: .*still waiting for lock "dead".*held by owner "one\//s,
	'and was told meanwhile what it waited for');
wait_for
{
	$waiter->query_safe(q{SELECT ddb_lock_try_acquire('dead too')}) eq 't'
}
'a try finds the lock dead';
cmp_ok(time - $started, '>=', 3,
	'a session that only tries gets the lock, one lease after its first try');
$early->query_safe(q{SELECT ddb_lock_release('dead')});
like($late->result, qr/^\d+$/, 'and then the next');

$_->quit foreach $waiter, $early, $late;
nothing_held_ok;
done_testing;
