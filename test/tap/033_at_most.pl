# A session holds a lock for no longer than it has said (at_most): then the lock is lost, and
# others get it, although the session is alive and DynamoDB can be reached.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy, conf => "ddblock.lease_duration = '5s'\nmax_prepared_transactions = 1\n");
my $two = new_cluster('two');
$one->safe_psql('postgres', 'CREATE TABLE t (i int)');
my ($taker, $helper) = map { session($one) } 1 .. 2;
my $far = session($two);

sub lost { my ($name) = @_; return qr/LK001: .*lock "$name".*DETAIL: +The session was to hold it no longer \("at_most"\)\./s; }
sub shown { my ($name) = @_;
	return $one->safe_psql('postgres', "SELECT state, ends_at IS NOT NULL FROM ddb_locks WHERE name = '$name' ORDER BY 1, 2"); }
sub counted { return $one->safe_psql('postgres', 'SELECT lost_at_most, leases_lost, lost_unreachable FROM ddb_stats'); }

#
# Whoever waits gets the lock after that time, and not before
#
is($taker->ask(q{SELECT ddb_lock_acquire('a', at_most => '3 s') > 0}), 't', 'a lock for three seconds');
is( $one->safe_psql('postgres', q{SELECT state, ends_at BETWEEN acquired_at + '2 s' AND acquired_at + '4 s', time_left < '3 s' FROM ddb_locks WHERE name = 'a'}),
	'held|t|t', 'ddb_locks shows its end');
my $end = $one->safe_psql('postgres', q{SELECT ends_at FROM ddb_locks WHERE name = 'a'});
is($taker->ask(q{SELECT ddb_lock_remaining('a') < '3 s', ddb_lock_renew('a') <= clock_timestamp() + '3 s'}), 't|t',
	'so do ddb_lock_remaining() and ddb_lock_renew()');
$far->send(q{SELECT ddb_lock_acquire('a', wait => '60 s') > 0});
wait_for_waiters($two, 'a', 1);
like($taker->error_of(q{BEGIN; INSERT INTO t VALUES (1); SELECT pg_sleep(600)}), qr{57014: .*DETAIL: +The lease on lock "a" was lost}s, 'the statement is canceled');
is($taker->ask(q{ROLLBACK; SELECT ddb_lock_token('a') IS NULL}), 't', 'the session does not hold it any more');
like($taker->error_of(q{SELECT ddb_lock_acquire('a')}), lost('a'), '... and must acknowledge that');
is($far->result, 't', 'another cluster has it');
is($two->safe_psql('postgres', qq{SELECT acquired_at >= '$end' FROM ddb_lock_info('a')}), 't', '... not before the end');
is($taker->ask(q{SELECT ddb_lock_release('a')}), 'f', 'the loss is acknowledged');
like($taker->messages, lost('a'), '... with the reason');
is(counted(), '1|1|0', 'one loss is counted');
like(slurp_file($one->logfile), qr/the lease of lock "a" is lost: the session was to hold it no longer \("at_most"\)/, '... and logged');
like($one->safe_psql('postgres', 'SELECT last_loss FROM ddb_stats'), qr/lock "a" of process .*at_most/, '... and shown');
$far->ask('SELECT ddb_lock_release_all()');

# An idle session; who acknowledges the loss frees the lock.
$taker->query_safe(q{SELECT ddb_lock_acquire('a', lease => '1 h', at_most => '360.1 s')});
like($taker->error_of($_), qr/22023: .*"at_most" must not be less than the lease's safety margin.*DETAIL: .* 360000 ms/s, 'not less than the margin')
  foreach q{SELECT ddb_lock_acquire('x', lease => '1 h', at_most => '359 s')};
$taker->ask('SELECT ddb_lock_release_all()');
$taker->query_safe(q{SELECT ddb_lock_try_acquire('a', at_most => '1 s')});
wait_for { is_released('a') } 'the release by the worker';
is(shown('a'), '', 'an idle session does not keep the lock');
like($taker->error_of(q{SELECT ddb_lock_require('a')}), lost('a'), '... and learns of that');
$taker->ask('SELECT ddb_lock_release_all()');

# A transaction cannot commit.
$taker->query_safe(q{SET ddblock.on_lease_lost = none; SELECT ddb_lock_acquire('a', at_most => '1 s'); BEGIN; INSERT INTO t VALUES (2)});
wait_for { $taker->ask(q{SELECT ddb_lock_token('a') IS NULL}) eq 't' } 'the end';
like($taker->error_of('COMMIT'), lost('a'), 'a transaction that has begun before cannot commit');
is($one->safe_psql('postgres', 'SELECT count(*) FROM t'), '0', '... and has done nothing');
$taker->ask(q{RESET ddblock.on_lease_lost; SELECT ddb_lock_release_all()});

#
# All forms
#
my %form = (
	ddb_lock_acquire => [ q{SELECT %s('f', at_most => '1 s')} ], ddb_lock_try_acquire => [ q{SELECT %s('f', at_most => '1 s')} ],
	ddb_lock_acquire_shared => [ q{SELECT %s('f', at_most => '1 s')} ], ddb_lock_try_acquire_shared => [ q{SELECT %s('f', at_most => '1 s')} ],
	ddb_lock_acquire_all => [ q{SELECT %s('{f,g}', at_most => '1 s')} ], ddb_lock_try_acquire_all => [ q{SELECT %s('{f,g}', at_most => '1 s')} ],
	ddb_semaphore_acquire => [ q{SELECT %s('f', 2, at_most => '1 s')} ], ddb_semaphore_try_acquire => [ q{SELECT %s('f', 2, at_most => '1 s')} ],
	ddb_lock_await => [ q{CALL %s('f', at_most => '1 s')} ], ddb_lock_await_shared => [ q{CALL %s('f', at_most => '1 s')} ],
	ddb_lock_await_all => [ q{CALL %s('{f,g}', at_most => '1 s')} ], ddb_semaphore_await => [ q{CALL %s('f', 2, at_most => '1 s')} ]);
is(join(' ', sort keys %form), $one->safe_psql('postgres', q{SELECT string_agg(proname, ' ' ORDER BY proname COLLATE "C") FROM pg_proc
	WHERE proname ~ '^ddb_' AND 'at_most' = ANY (proargnames) AND proname <> 'ddb_lock_detach'}), 'the functions that have a limit');
foreach my $function (sort keys %form)
{
	$taker->query_safe(sprintf($form{$function}[0], $function));
	wait_for { is_released('f') && is_released('g') } 'the release';
	like($taker->error_of(q{SELECT ddb_lock_require('f')}), lost('f'), $function);
	$taker->ask(q{SELECT ddb_lock_release_all()});
}
my $requests = proxy->received;
foreach my $function (sort keys %form)
{
	foreach my $wrong ("'0'", "'-1 s'", "'367 days'", "'1 month'", "'0.4 s'")
	{
		like($taker->error_of(sprintf($form{$function}[0], $function) =~ s/'1 s'/$wrong/r), qr/22023: .*argument "at_most" must/, "$function, $wrong");
	}
}
is(proxy->received, $requests, 'nothing was sent');

#
# Beside others
#
$taker->query_safe(q{SELECT ddb_lock_acquire_shared('s', at_most => '1 s'), ddb_semaphore_acquire('p', 2, at_most => '1 s')});
$helper->query_safe(q{SELECT ddb_lock_acquire_shared('s'), ddb_semaphore_acquire('p', 2)});
wait_for { shown('s') eq 'held|f' && shown('p') eq 'held|f' } 'the end of one hold';
is($helper->ask(q{SELECT ddb_lock_require('s') > 0 AND ddb_lock_require('p') > 0}), 't', 'who shares the lock keeps it');
wait_for { $two->safe_psql('postgres', q{SELECT permits FROM ddb_lock_info('p')}) eq '1' } 'the permit';
$taker->ask('SELECT ddb_lock_release_all()');
$helper->ask('SELECT ddb_lock_release_all()');

# Who works outside is warned.
$taker->query_safe(q{SELECT ddb_lock_acquire('m', at_most => '3 s')});
is($helper->ask(q{SELECT ddb_lock_monitor('m', less_than => '2 s') BETWEEN '1 ms' AND '2 s'}), 't', 'ddb_lock_monitor() warns before the end');
is($helper->ask(q{SELECT ddb_lock_monitor('m', less_than => '1 ms')}), '00:00:00', '... and tells the end');
$taker->ask('SELECT ddb_lock_release_all()');

# Another acquisition changes nothing: the first one's limit stays.
$taker->query_safe(q{SELECT ddb_lock_acquire('r', at_most => '1 hour'), ddb_lock_acquire('r', at_most => '1 s'), ddb_lock_acquire('r')});
is($one->safe_psql('postgres', q{SELECT ends_at > acquired_at + '59 min', depth FROM ddb_locks WHERE name = 'r'}), 't|3', 'the first limit stays');
$helper->query_safe(q{SELECT ddb_lock_acquire('q'), ddb_lock_acquire('q', at_most => '1 s')});
is(shown('q'), 'held|f', 'nor is there one later');

# Sessions that join lose the lock with its taker; a detached lock has its own end.
$taker->ask('SELECT ddb_lock_release_all()');
my $token = $taker->query_safe(q{SELECT ddb_lock_acquire('j', at_most => '4 s')});
$helper->query_safe(qq{SELECT ddb_lock_join('j', $token)});
is(shown('j'), "held|t\nheld|t", 'who joins has the same end');
wait_for { is_released('j') } 'the end';
like($_->error_of(q{SELECT ddb_lock_require('j')}), lost('j'), 'both have lost it') foreach $taker, $helper;
like($far->error_of(qq{SELECT ddb_lock_join('j', $token)}), qr/LK001/, 'nobody joins it any more');
$_->ask('SELECT ddb_lock_release_all()') foreach $taker, $helper;
$token = $taker->query_safe(q{SELECT ddb_lock_acquire('d', at_most => '1 s')});
$taker->query_safe(q{SELECT ddb_lock_detach('d', '1 hour')});
$taker->query_safe(q{SELECT ddb_lock_acquire('e', at_most => '2 s')});
wait_for { is_released('e') } 'a later end';
is($taker->ask(qq{SELECT ddb_lock_release_detached('d', $token)}), 't', 'a detached lock has its own end');
$taker->ask('SELECT ddb_lock_release_all()');

# Another worker knows the end, too; and so does the session, if there is none.
$taker->query_safe(q{SELECT ddb_lock_acquire('w', at_most => '3 s')});
my $worker = worker_pid($one);
kill 'TERM', $worker;
wait_for { (worker_pid($one) // $worker) != $worker } 'another worker';
wait_for { is_released('w') } 'the end';
like($taker->error_of(q{SELECT ddb_lock_require('w')}), lost('w'), '... and ends it');
$taker->ask('SELECT ddb_lock_release_all()');
my $before = (split /\|/, counted())[0];
$taker->query_safe(q{SELECT ddb_lock_acquire('w', at_most => '1 s')});
kill 'STOP', worker_pid($one);
like($taker->error_of(q{SELECT pg_sleep(600)}), qr{57014: .*DETAIL: +The lease on lock "w" was lost}s, 'a session knows the end although the worker is stopped');
kill 'CONT', worker_pid($one);
$taker->ask('SELECT ddb_lock_release_all()');
is((split /\|/, counted())[0], $before + 1, '... and it is counted once');
is($one->safe_psql('postgres', 'SELECT lost_unreachable FROM ddb_stats'), '0', 'DynamoDB was reached all the time');

# No longer than the session: nothing outlives it beyond its lease.
$_->quit foreach $taker, $helper, $far;
nothing_held_ok;
done_testing;
