# Semaphores: at most so many permits, in all clusters together.

use DDBLock::Test;

my $one = new_cluster('one');
my $two = new_cluster('two');
my @sessions = (session($one), session($one), session($two), session($two));
my ($a, $b, $c, $d) = @sessions;

sub try_permit
{
	my ($session, $permits) = @_;
	$permits //= 1;
	return $session->ask("SELECT ddb_semaphore_try_acquire('s', 2, $permits, lease => '1h')");
}
sub release_permit { my ($session) = @_; return $session->ask(q{SELECT ddb_lock_release('s')}); }
sub total { return dynamodb->item('s')->{shared}{M}{total}{N} // 0; }

is(try_permit($a), 't', 'the first of two permits');
is(try_permit($c), 't', 'the second one, in another cluster');
is(try_permit($b), 'f', 'there is no third one here');
is(try_permit($d), 'f', '... nor there');
is(total(), 2, 'two are out');
is($one->safe_psql('postgres', q{SELECT mode, permits, clusters FROM ddb_lock_info('s')}),
	'semaphore|2|{"one: 1","two: 1"}', 'ddb_lock_info() shows who has them');
is($one->safe_psql('postgres', q{SELECT mode, permits, state FROM ddb_locks WHERE name = 's'}),
	'semaphore|1|held', 'ddb_locks shows them');
is($b->ask(q{SELECT ddb_lock_try_acquire('s'), ddb_lock_try_acquire_shared('s')}), 'f|f',
	'a semaphore is neither locked nor shared');

$d->send(q{SELECT ddb_semaphore_acquire('s', 2, lease => '1h', wait => '60s') > 0});
wait_for_waiters($two, 's', 1);
is(release_permit($a), 't', 'a permit goes back');
is($d->result, 't', 'and to the other cluster, which has both now');
is(total(), 2, 'two are out');
is(release_permit($c), 't', 'one goes back');
wait_for { total() == 1 } 'the permit to be back';
is(try_permit($a, 2), 'f', 'two at once are not to be had');
is(release_permit($d), 't', 'the other one goes back');
wait_for { is_released('s') } 'the semaphore to be free';
is(try_permit($a, 2), 't', 'two at once');
is(try_permit($c), 'f', 'there is none left');
like($a->error_of(q{SELECT ddb_semaphore_acquire('s', 2)}),
	qr/ERROR: +0A000: .*another number of permits/, 'a session cannot get more of them');
is(release_permit($a), 't', 'both go back');

#
# Arguments
#
foreach my $bad ([ 'NULL', 'max_permits' ], [ '0', 'max_permits' ], [ '2, 0', 'permits' ],
	[ '2, 3', 'permits' ], [ '2, NULL', 'permits' ])
{
	like($a->error_of("SELECT ddb_semaphore_acquire('s', $bad->[0])"),
		qr/ERROR: +22023: argument "$bad->[1]" must/, "($bad->[0]) is refused");
}
like($a->error_of(q{SELECT ddb_semaphore_acquire('s', 2, 3)}),
	qr/must be between 1 and argument "max_permits", which is 2/, 'and the bound is named');
foreach my $name ('NULL', q{''}, q{repeat('x', 2049)})
{
	like($a->error_of("SELECT $_"), qr/ERROR: +22023: argument "name" must/, "$_ is refused")
	  foreach "ddb_semaphore_acquire($name, 2)", "ddb_semaphore_try_acquire($name, 2)",
	  "ddb_xact_semaphore_acquire($name, 2)", "ddb_xact_semaphore_try_acquire($name, 2)",
	  "ddb_lock_acquire_shared($name)", "ddb_lock_try_acquire_shared($name)", "ddb_xact_lock_acquire_shared($name)",
	  "ddb_xact_lock_try_acquire_shared($name)", "ddb_lock_release($name)";
}

#
# Sessions, transactions, clusters end: the permits come back
#
is(try_permit($a), 't', 'a permit');
$a->quit;
wait_for { is_released('s') } 'the permit of a session that has ended';
$b->query_safe(q{BEGIN; SELECT ddb_xact_semaphore_acquire('s', 2)});
is(total(), 1, 'a permit for a transaction');
$b->query_safe('ROLLBACK');
wait_for { is_released('s') } 'the permit of a transaction';

$b->query_safe(q{SELECT ddb_semaphore_acquire('s', 2, lease => '4s')});
is(try_permit($c), 't', 'both clusters have one');
$one->stop('immediate');
$d->send(q{SELECT ddb_semaphore_acquire('s', 2, lease => '4s', wait => '60s') > 0});
is($d->result, 't', 'the permit of a dead cluster comes back, while others use the semaphore');
is(total(), 2, 'two are out');
is($two->safe_psql('postgres', q{SELECT clusters FROM ddb_lock_info('s')}), '{"two: 2"}',
	'the dead cluster has none');
release_permit($c);
release_permit($d);

#
# Jobs of many sessions: never more than the limit
#
$one->start;
my @workers = map { session($_ % 2 ? $one : $two) } 1 .. 8;
my @out = map { $_->ask(q{SELECT ddb_semaphore_try_acquire('jobs', 3)}) } @workers[ 0 .. 3 ];
is("@out", 't t t f', 'three permits may be out, of both clusters together');
$_->ask(q{SELECT ddb_lock_release('jobs')}) foreach @workers[ 0 .. 2 ];
$_->send(q{DO $$ BEGIN FOR i IN 1..25 LOOP
		PERFORM ddb_semaphore_acquire('jobs', 3, wait => '120s');
		PERFORM pg_sleep(random() / 50);
		PERFORM ddb_lock_release('jobs');
	END LOOP; END $$; SELECT 'done'}) foreach @workers;
my ($most, $most_here) = (0, 0);
while (grep { $_->busy } @workers)
{
	my $total = dynamodb->item('jobs');
	$total = $total && $total->{shared}{M}{total}{N} // 0;
	$most = $total if $total > $most;
	foreach my $cluster ($one, $two)
	{
		my $held = $cluster->safe_psql('postgres', q{SELECT coalesce(sum(permits), 0)
			FROM ddb_locks WHERE name = 'jobs' AND state = 'held'});
		$most_here = $held if $held > $most_here;
	}
}
is(join(' ', map { $_->result } @workers), join(' ', ('done') x 8), 'all jobs are done');
cmp_ok($most, '<=', 3, 'never more than three permits were out');
cmp_ok($most_here, '<=', 3, 'nor did the sessions of a cluster have more');
wait_for { is_released('jobs') } 'all permits to be back';

#
# A session of another cluster wants both permits, while two sessions take one each again and again
#
my @takers = map { session($one) } 1 .. 2;
my @pids = map { $_->ask('SELECT pg_backend_pid()') } @takers;
$_->send(q{DO $$ BEGIN LOOP
		PERFORM ddb_semaphore_acquire('hot', 2), pg_sleep(0.7);
		PERFORM ddb_lock_release('hot');
	END LOOP; END $$}) foreach @takers;
wait_for { (dynamodb->item('hot') // {})->{shared}{M}{total} } 'the first permit';
wait_for
{
	$d->query_safe(q{SELECT ddb_semaphore_acquire('hot', 2, 2, wait => '60s')});
	is(dynamodb->item('hot')->{wanted}, undef, 'who has got them has left no mark');
	$d->query_safe(q{SELECT ddb_lock_release('hot')});
	stat_of($two, 'mark') > 0;
}
'a wait of more than a second';
$one->safe_psql('postgres', "SELECT pg_cancel_backend($_)") foreach @pids;
foreach my $taker (@takers)
{
	$taker->result;
	like($taker->messages, qr/57014/, 'the others have gone on all the time');
}

$_->quit foreach @workers, @takers, $c, $d;
nothing_held_ok;
done_testing;
