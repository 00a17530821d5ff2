# A lock passes from session to session of a cluster without a request.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy,
	conf => "ddblock.keep_warm = off\nlog_statement = none\n");
my $two = new_cluster('two');
my $holder = session($one);
my $far = session($two);
my @queue = map { session($one) } 1 .. 8;
my @tokens;

# All of the queue wait for the lock, and keep it for one transaction each.
sub round
{
	$holder->query_safe(q{SELECT ddb_lock_acquire('a')});
	$_->send(q{SELECT ddb_xact_lock_acquire('a')}) foreach @queue;
	wait_for_waiters($one, 'a', scalar @queue);
	proxy->reset_counts;
	$holder->query_safe(q{SELECT ddb_lock_release('a')});
	@tokens = sort { $a <=> $b } map { $_->result } @queue;
	wait_for { is_released('a') } 'the end of the round';
	return proxy->forwarded('UpdateItem');
}

# A run of an eighth of a second may be over sooner on a busy machine.
wait_for { round() == 2 } 'a hand-over to the first, a release by the last, and nothing between';
pass('between two sessions that wait for a lock no request is sent');
is_deeply(\@tokens, [ map { $tokens[0] + $_ } 0 .. 7 ], 'their tokens rise one by one');
cmp_ok($far->query_safe(q{SELECT ddb_lock_acquire('a')}),
	'>', $tokens[-1], 'another cluster gets a higher token');
$far->query_safe(q{SELECT ddb_lock_release('a')});

# Passes the lock from the holder to the first of the queue, without a request.
sub pass_on
{
	my ($name, $lease) = @_;
	my $first = $queue[0];

	wait_for
	{
		$holder->query_safe(qq{SELECT ddb_lock_acquire('$name', lease => '$lease')});
		$first->send(qq{SELECT ddb_lock_acquire('$name', lease => '$lease')});
		wait_for_waiters($one, $name, 1);
		$holder->query_safe(qq{SELECT ddb_lock_release('$name')});
		$first->result;
		$holder->send(qq{SELECT ddb_lock_acquire('$name', lease => '$lease')});
		wait_for_waiters($one, $name, 1);
		proxy->reset_counts;
		$first->query_safe(qq{SELECT ddb_lock_release('$name')});
		$holder->result;
		my $passed = proxy->forwarded('UpdateItem') == 0;

		$holder->query_safe(qq{SELECT ddb_lock_release('$name')}) unless $passed;
		$passed;
	}
	"a pass of lock $name";
	return;
}

#
# The item shows the holder after a renewal, this cluster at once
#
my $pid = backend_pid($holder);
my $info = q{SELECT held, pid FROM ddb_lock_info('b')};

check_batches($one);
my $batches = stat_of($one, 'renew_batch');
pass_on('b', '24s');
$holder->query_safe(q{SELECT ddb_lock_acquire('beside', lease => '24s')});
my $token = $holder->query_safe(q{SELECT ddb_lock_token('b')});
is($queue[0]->query_safe($info), "t|$pid", 'a session of the cluster sees the holder');
is($queue[0]->query_safe(q{SELECT token FROM ddb_lock_info('b')}), $token, '... and its token');
wait_for { $far->query_safe($info) eq "t|$pid" } 'a renewal, which tells others of the holder';
ok(stat_of($one, 'renew_batch') > $batches, 'it was renewed together with another lock');
is( $one->safe_psql('postgres',
		q{SELECT pid, token, scope, state FROM ddb_locks WHERE name = 'b'}),
	"$pid|$token|session|held",
	'the view has one row for it');

#
# Another worker adopts what was passed on
#
my $worker = worker_pid($one);
$queue[0]->send(q{SELECT ddb_lock_acquire('b', lease => '24s')});
wait_for_waiters($one, 'b', 1);
$one->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { my $now = eval { worker_pid($one) }; defined $now && $now != $worker } 'another worker';
is($holder->query_safe(q{SELECT ddb_lock_require('b')}), $token, 'the holder still holds the lock');
$holder->query_safe(q{SELECT ddb_lock_release('b')});
cmp_ok($queue[0]->result, '>', $token, 'the next one gets it, with a higher token');
$queue[0]->query_safe(q{SELECT ddb_lock_release('b')});

#
# A loss interrupts the one that has the lock, and nobody who had it before
#
pass_on('c', '20s');
$queue[1]->send(q{SELECT ddb_lock_acquire('c')});
wait_for_waiters($one, 'c', 1);
$holder->send(q{SELECT pg_sleep(300)});
dynamodb->delete_item('c');
$holder->result;
like($holder->messages, qr/57014/, 'the holder is interrupted');
like($queue[1]->result, qr/^\d+$/, 'who waits gets the lock');
is($queue[0]->query_safe('SELECT 1'), 1, 'who had it before is not told of any loss');
is(stat_of($one, undef, 'leases_lost'), 1, 'it is one loss');

#
# A session of another cluster waits while this one takes a lock again as soon as it has released it
#
$holder->send(<<~'SQL');
	DO $$ BEGIN LOOP
		PERFORM ddb_lock_acquire('d'), pg_sleep(0.7);
		PERFORM ddb_lock_release('d');
	END LOOP; END $$
	SQL
wait_for { !is_released('d') } 'the first acquire';
wait_for
{
	$far->query_safe(q{SELECT ddb_lock_acquire('d')});
	is(dynamodb->item('d')->{wanted}, undef, 'who has got the lock has left no mark');
	$far->query_safe(q{SELECT ddb_lock_release('d')});
	stat_of($two, 'mark') > 0;
}
'a wait of more than a second';
$one->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$holder->result;
like($holder->messages, qr/57014/, 'the other one has gone on all the time');

$_->quit foreach $holder, $far, @queue;
nothing_held_ok;
done_testing;
