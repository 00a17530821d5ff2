# Leaders: locks that clusters themselves hold, transactions that join that, giving up.

use DDBLock::Test;

my $conf = "ddblock.lease_duration = 12s\nmax_prepared_transactions = 2\n";
my $one = new_cluster('one', through => proxy, conf => $conf, init => [ allows_streaming => 1 ]);
my $two = new_cluster('two', conf => $conf);
my %cluster = (one => $one, two => $two);

sub set_list { my ($node, $list, $and) = @_;
	$node->append_conf('postgresql.conf', "ddblock.leaderships = '$list'\n" . ($and // ''));
	$node->reload;
	wait_for { $node->safe_psql('postgres', 'SHOW ddblock.leaderships') eq $list } 'the new list';
	return; }
# "name state" of all leaderships
sub states { my ($node) = @_;
	return $node->safe_psql('postgres', q{SELECT string_agg(name || ' ' || state, ', ' ORDER BY name) FROM ddb_leaderships}); }
sub leads { my ($node, $name) = @_;
	return $node->safe_psql('postgres', "SELECT ddb_leadership_held('$name')") eq 't'; }
sub wait_until_leads { my ($node, $name) = @_;
	wait_for { leads($node, $name) } $node->name . " leads $name";
	return; }
sub sole_leader { my ($name) = @_;
	my @leaders = wait_for { my @found = grep { leads($_, $name) } $one, $two; @found ? \@found : undef } "a leader of $name";
	is(scalar(@{ $leaders[0] }), 1, "one cluster leads $name");
	return $leaders[0][0]; }
sub other { my ($node) = @_; return $node->name eq 'one' ? $two : $one; }
sub joined { my ($node, $name) = @_;
	return $node->safe_psql('postgres', "SELECT joined FROM ddb_leaderships WHERE name = '$name'"); }

$_->safe_psql('postgres', 'CREATE TABLE work (i int); CREATE ROLE member LOGIN; CREATE ROLE boss LOGIN; CREATE ROLE stranger LOGIN;'
	. q{SELECT ddb_role_setup('member'), ddb_role_setup('boss', operator => true); GRANT INSERT ON work TO member;}) foreach $one, $two;

#
# No leadership
#
my $no_leadership = qr/55000: +this cluster has no leadership "cron"\n.*HINT: +See the view ddb_leaderships/s;
like(error_of($one, "SELECT $_('cron')"), $no_leadership, "$_() of a name that is not in the list")
	foreach qw(ddb_leadership_held ddb_leadership_require ddb_leadership_resign);
like(error_of($one, q{SELECT ddb_lock_acquire('cron'); SELECT ddb_leadership_held('cron')}), $no_leadership,
	'... also if the session has the lock');
is(states($one), '', '... and shows none');

#
# The list
#
foreach my $bad ([ 'a,,b', 'A name is empty' ], [ 'a, b, a', 'A name is there twice' ], [ 'a,', 'must not end with a comma' ],
	[ 'x' x 256, 'longer than 255 bytes' ], [ join(',', 1 .. 17), 'more than 16 names' ], [ "a\tb", 'control characters' ])
{
	like(error_of($one, "ALTER SYSTEM SET ddblock.leaderships = E'$bad->[0]'"), qr/22023: +invalid value for parameter "ddblock.leaderships".*\n.*$bad->[1]/s,
		"a list is refused: $bad->[1]");
}
$one->append_conf('postgresql.conf', "ddblock.leaderships = 'a,,b'\n");
$one->reload;
wait_for { $one->log_contains('invalid value for parameter "ddblock.leaderships"') } 'the warning of a reload';
is(states($one), '', 'a bad list in the file changes nothing');

#
# One of two clusters leads
#
set_list($one, ' cron , reports');
wait_until_leads($one, $_) foreach qw(cron reports);
set_list($two, 'cron,reports');
wait_for { states($two) eq 'cron following, reports following' } 'the followers';
ok(!leads($two, 'cron'), 'the second cluster does not lead');
my $owner = $one->safe_psql('postgres', 'SELECT owner FROM ddb_status');
wait_for { $two->safe_psql('postgres', q{SELECT leader FROM ddb_leaderships WHERE name = 'cron'}) eq $owner } 'who leads';
pass('... and knows who does');
like(error_of($two, q{SELECT ddb_leadership_require('cron')}), qr/LK001: +this cluster does not lead "cron"/, '... which ddb_leadership_require() says');
is($one->safe_psql('postgres', q{SELECT count(*), bool_and(scope = 'leadership' AND pid IS NULL AND NOT joined AND state = 'held') FROM ddb_locks}),
	'2|t', 'ddb_locks shows what the cluster holds');
is($one->safe_psql('postgres', q{BEGIN; SELECT ddb_leadership_require('cron') = token, ddb_lock_token('cron') = token, ddb_lock_require('cron') = token FROM ddb_leaderships WHERE name = 'cron'; COMMIT}),
	't|t|t', 'the token of a leader');
is(dynamodb->item('cron')->{holder}{M}{application}{S}, 'ddblock leadership', 'the item says what it is for');

#
# A session does not get the lock
#
foreach my $sql (q{ddb_lock_acquire('cron')}, q{ddb_lock_try_acquire('cron')}, q{ddb_xact_lock_acquire('cron')}, q{ddb_lock_acquire_shared('cron')},
	q{ddb_semaphore_acquire('cron', 2)}, q{ddb_lock_join('cron', 1)}, q{ddb_lock_acquire_all(ARRAY['a', 'cron'])})
{
	like(error_of($_, "SELECT $sql"), qr/55000: +lock "cron" is for this cluster as a whole.*\n.*\nHINT:  Ask with ddb_leadership_held/s, $_->name . ": $sql is refused") foreach $one, $two;
}
like(error_of($one, q{BEGIN; SELECT ddb_leadership_held('cron'); SELECT ddb_lock_acquire('cron')}), qr/55000/, '... also if the transaction has joined');
like(error_of($one, q{BEGIN; SELECT ddb_leadership_held('cron'); SELECT ddb_lock_renew('cron', '1h')}), qr/55000/, '... and it cannot make the lease longer');
like(error_of($one, q{BEGIN; SELECT ddb_leadership_held('cron'); SELECT ddb_lock_detach('cron', '1h')}), qr/55000: +cannot detach/, '... or leave it to the cluster');
like(error_of($one, q{BEGIN; SELECT ddb_leadership_held('cron'); PREPARE TRANSACTION 'x'}), qr/0A000/, '... and is not prepared');

#
# Who may do what
#
is($one->safe_psql('postgres', q{SET ROLE member; SELECT ddb_leadership_held('cron'), ddb_leadership_require('cron') > 0, (SELECT count(*) FROM ddb_leaderships)}), 't|t|2', 'a member asks');
like(error_of($one, q{SET ROLE member; SELECT ddb_leadership_resign('cron')}), qr/42501: +permission denied for function ddb_leadership_resign/, '... but does not resign');
like(error_of($one, "SET ROLE stranger; SELECT $_"), qr/42501: +permission denied/, "a stranger does not call $_")
  foreach q{ddb_leadership_held('cron')}, q{ddb_leadership_require('cron')}, q{ddb_leadership_resign('cron')}, '* FROM ddb_leaderships';
is($one->safe_psql('postgres', q{SET ddblock.lock_prefix = 'rep'; SELECT string_agg(name, ' ') FROM ddb_leaderships}), 'reports', 'a prefix narrows the view');
like(error_of($one, qq{SET ddblock.lock_prefix = 'rep'; SELECT $_}), qr/42501/, "... and refuses $_") foreach q{ddb_leadership_held('cron')}, q{ddb_leadership_require('cron')}, q{ddb_leadership_resign('cron')};
like(error_of($one, "SELECT ddb_leadership_resign('cron', $_->[0])"), qr/22023: +argument "$_->[1]" must /, "resign: $_->[0]")
  foreach [ q{stand_back => '0s'}, 'stand_back' ], [ q{stand_back => '2 years'}, 'stand_back' ], [ q{stand_back => NULL}, 'stand_back' ], [ q{wait => '-1s'}, 'wait' ];

#
# What a transaction joins
#
my $job = session($one);
$job->query_safe('BEGIN');
$job->query_safe(q{SELECT * FROM ddb_leaderships});
is(joined($one, 'cron'), '0', 'the view joins nothing');
$job->query_safe(q{SAVEPOINT s; SELECT ddb_leadership_held('cron'); ROLLBACK TO s});
is(joined($one, 'cron'), '1', 'a transaction joins, also if it rolls back to a savepoint');
$job->query_safe(q{SELECT ddb_leadership_held('cron'), ddb_leadership_require('cron')});
is(joined($one, 'cron'), '1', '... once');
$job->query_safe('COMMIT');
wait_for { joined($one, 'cron') eq '0' } 'the end of the transaction';
pass('... until it ends');
is($one->safe_psql('postgres', q{CREATE TABLE many AS SELECT generate_series(1, 20000) i; ALTER TABLE many SET (parallel_workers = 2); ANALYZE many;
	SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SELECT count(*) FROM many WHERE i % 2 = 0 AND (SELECT ddb_leadership_held('cron'))}), '10000', 'a query with parallel workers');
$one->safe_psql('postgres', 'DROP TABLE many');

#
# A snapshot from before the leadership
#
$job->query_safe(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM work});
my $each = session($one);
$each->query_safe(q{BEGIN; SELECT count(*) FROM work});
my $token = $one->safe_psql('postgres', q{SELECT token FROM ddb_leaderships WHERE name = 'reports'});
dynamodb->delete_item('reports');
wait_for { $one->safe_psql('postgres', q{SELECT state = 'leading' AND token > } . $token . q{ FROM ddb_leaderships WHERE name = 'reports'}) eq 't'
		|| (leads($two, 'reports') && !leads($one, 'reports')) } 'a new leadership';
wait_for { $one->safe_psql('postgres', 'SELECT last_loss FROM ddb_stats') =~ /^lock "reports" of this cluster itself: / } 'the loss of what the cluster itself held';
pass('who lost a leadership tells so');
unless (leads($one, 'reports'))
{
	$two->safe_psql('postgres', q{SELECT ddb_leadership_resign('reports')});
	wait_until_leads($one, 'reports');
}
like($job->error_of(q{SELECT ddb_leadership_held('reports')}), qr/40001: +this transaction is older than the leadership of "reports"/, 'an old snapshot is refused');
$job->ask('ROLLBACK');
is($each->query_safe(q{SELECT ddb_leadership_held('reports')}), 't', '... READ COMMITTED has a new one for each statement');
$each->query_safe('ROLLBACK');
is($one->safe_psql('postgres', q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT ddb_leadership_held('reports'); COMMIT}), 't', '... a new one is not');

#
# Giving up: those who have joined go on, and the lock is not free before they have ended
#
sub begin_work { my ($node, $name) = @_;
	my $session = session($node);
	$session->query_safe("BEGIN; INSERT INTO work SELECT 1 WHERE ddb_leadership_held('$name')");
	return $session; }
wait_until_leads($one, 'cron');
$job = begin_work($one, 'cron');
my $second = begin_work($one, 'cron');
is(joined($one, 'cron'), '2', 'two transactions have joined');
is($one->safe_psql('postgres', q{SELECT ddb_leadership_resign('cron', stand_back => '1 hour')}), 't', 'the leader resigns');
ok(!leads($one, 'cron'), '... and leads no more');
is(states($one), 'cron giving up, reports leading', '... which the view shows');
is($one->safe_psql('postgres', q{SELECT ddb_leadership_resign('cron', stand_back => '1 hour')}), 'f', '... and a second time gives nothing up');
$job->query_safe('COMMIT');
ok(!is_released('cron') && !leads($two, 'cron'), 'the first transaction has ended, the second has not');
$second->query_safe('COMMIT');
wait_until_leads($two, 'cron');
is($one->safe_psql('postgres', 'SELECT count(*) FROM work'), '2', 'both have committed, then the other cluster leads');
like($one->safe_psql('postgres', q{SELECT state, stands_again_at > now() + '50 minutes' FROM ddb_leaderships WHERE name = 'cron'}), qr/^resting\|t$/, '... and this one rests');

# The other one, with a bound
$job = begin_work($two, 'cron');
$second = session($two);
$second->query_safe(q{BEGIN; INSERT INTO work SELECT 2 WHERE ddb_leadership_held('cron')});
$second->send('SELECT pg_sleep(1000)');
is($two->safe_psql('postgres', q{SELECT ddb_leadership_resign('cron', stand_back => '1 s', wait => '1 s')}), 't', 'the other cluster resigns, with a bound');
wait_for { is_released('cron') || leads($two, 'cron') } 'the end of the transactions';
like(join('', $second->result, $second->messages), qr/57014.*\n.*DETAIL: +The lease on lock "cron" was lost/s, 'a statement is canceled, and says why');
$second->quit;
$job->gone;
is($two->safe_psql('postgres', 'SELECT count(*) FROM work'), '0', 'nothing is committed');
is($two->safe_psql('postgres', 'SELECT leases_lost FROM ddb_stats'), '0', '... nor is a loss counted');
wait_until_leads($two, 'cron');
pass('it stands again, when it has rested');

#
# A loss
#
$job = undisturbed($two);
$job->query_safe(q{BEGIN; INSERT INTO work SELECT 3 WHERE ddb_leadership_held('cron')});
dynamodb->delete_item('cron');
wait_for { $two->safe_psql('postgres', q{SELECT lost_deleted > 0 FROM ddb_stats}) eq 't' } 'the loss';
like($job->error_of(q{SELECT ddb_leadership_held('cron')}), qr/LK001: +the lease on lock "cron" is lost/, 'a transaction that has lost its leadership');
$job->ask('ROLLBACK');
$job->query_safe(q{BEGIN; INSERT INTO work SELECT 3});
wait_until_leads($two, 'cron');
$job->query_safe(q{SELECT ddb_leadership_held('cron')});
dynamodb->delete_item('cron');
wait_for { $two->safe_psql('postgres', q{SELECT lost_deleted > 2 FROM ddb_stats}) eq 't' } 'the next loss';
$job->ask('COMMIT');
like($job->messages, qr/LK001: +cannot commit, because the lease on lock "cron" was lost/, '... does not commit');
is($two->safe_psql('postgres', 'SELECT count(*) FROM work WHERE i = 3'), '0', '... nor has it written anything');
$job->quit;

# While the answer is under way: the transaction has done nothing under the leadership.
wait_until_leads($two, 'cron');
my $losses = $two->safe_psql('postgres', 'SELECT lost_deleted FROM ddb_stats');
my ($worker, $asker) = (worker_pid($two), session($two));
my $asking = backend_pid($asker);
$asker->query_safe(q{SELECT ddb_lock_token('x')});
kill 'STOP', $worker;
$asker->send(q{SELECT ddb_leadership_held('cron')});
wait_for { $two->safe_psql('postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $asking") =~ /^(DdblockCall|Extension)$/ } 'the request';
kill 'STOP', $asking;
kill 'CONT', $worker;
wait_for { joined($two, 'cron') eq '1' } 'the answer';
dynamodb->delete_item('cron');
wait_for { $two->safe_psql('postgres', 'SELECT lost_deleted FROM ddb_stats') >= $losses + 2 } 'the loss';
kill 'CONT', $asking;
is($asker->result, 'f', 'a leadership that is lost before the answer has come is none');
$asker->quit;

#
# The worker
#
wait_until_leads($two, 'cron');
$job = begin_work($two, 'cron');
$worker = worker_pid($two);
$two->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { (worker_pid($two) // $worker) != $worker } 'a new worker';
$job->query_safe('COMMIT');
is($two->safe_psql('postgres', 'SELECT count(*) FROM work'), '1', 'a transaction outlives the worker');
wait_until_leads($two, 'cron');

#
# The list is changed
#
$job = begin_work($two, 'cron');
set_list($two, 'reports');
wait_for { states($two) =~ /cron giving up/ } 'giving up';
ok(!leads($two, 'cron'), 'a name is taken from the list');
$job->query_safe('COMMIT');
wait_for { states($two) !~ /cron/ } 'the end';
is($two->safe_psql('postgres', q{SELECT ddb_lock_acquire('cron') > 0; SELECT ddb_lock_release('cron')}), "t\nt", '... and then a session may have it');
like(error_of($two, q{SELECT ddb_leadership_held('cron')}), $no_leadership, '... which no job takes for "another cluster leads"');
set_list($two, 'cron, reports');
wait_until_leads($two, 'cron');

#
# Shutdown: fast, with a transaction that has joined
#
$job = begin_work($two, 'cron');
$job->send('SELECT pg_sleep(1000)');
$two->stop('fast');
ok(is_released('cron'), 'a cluster that is stopped frees what it leads');
$job->gone;
$two->start;
wait_until_leads($two, 'cron');
$two->stop('immediate');
$two->start;
wait_until_leads($two, 'cron');
pass('a cluster that was stopped at once leads again');

#
# A standby
#
$one->backup('copy');
my $standby = new_cluster('standby', init_from => [ $one, 'copy', has_streaming => 1 ], start => 0);
$standby->append_conf('postgresql.conf', "ddblock.leaderships = 'nightly'\nddblock.owner_name = 'standby'\n");
$standby->start;
wait_for { worker_pid($standby) } 'its worker';
is(states($standby), '', 'a standby stands for nothing');
ok(!leads($standby, 'nightly'), '... nor leads');
like(error_of($standby, q{SELECT ddb_leadership_require('nightly')}), qr/LK001: .*DETAIL: +It does not want to: it is a standby/s, '... and says so');
set_list($standby, 'nightly', "ddblock.leaderships_on_standby = on\n");
wait_until_leads($standby, 'nightly');
pass('... unless it is told to');
set_list($standby, 'nightly', "ddblock.leaderships_on_standby = off\n");
wait_for { states($standby) eq '' } 'the end of that';
$standby->promote;
wait_until_leads($standby, 'nightly');
pass('... or is promoted');

set_list($_, '') foreach $one, $two, $standby;
nothing_held_ok;
done_testing;
