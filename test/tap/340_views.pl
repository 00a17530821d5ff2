# What the views tell: events are counted where they happen and once, waits name
# whom they wait for, and the worker tells of itself.

use DDBLock::Test;

delete @ENV{ grep { /^AWS_/ } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';

my $node = new_cluster('one', through => proxy,
	conf => "ddblock.keep_warm = off\nddblock.on_lease_lost = none\n");
my ($one, $two) = (session($node), session($node));

my @events = qw(acquired busy timed_out deadlocks lost_unreachable lost_taken lost_released
  lost_deleted lost_at_most lk001 lk002);
sub counts
{
	my %counts;
	my $columns = join ', ', @events;

	@counts{@events} = split /\|/, $node->safe_psql('postgres', "SELECT $columns FROM ddb_stats");
	return %counts;
}

# The difference that an action makes
sub counts_as
{
	my ($what, $action, %expected) = @_;
	my %before = counts;

	$action->();
	my %after = counts;
	my %events = map { $after{$_} != $before{$_} ? ($_ => $after{$_} - $before{$_}) : () } @events;
	is_deeply(\%events, \%expected, $what) or diag(explain(\%events));
	return;
}

sub does { my ($session, $sql) = @_; return sub { $session->query_safe($sql) }; }
sub fails
{
	my ($session, $sql, $code) = @_;
	return sub { like($session->error_of($sql), qr/ERROR: +$code/, "$sql: $code") };
}

#
# Acquiring
#
counts_as('a lock is acquired', does($one, q{SELECT ddb_lock_acquire('a', '1h')}), acquired => 1);
counts_as('acquiring it once more does not count',
	does($one, q{SELECT ddb_lock_acquire('a'), ddb_xact_lock_try_acquire('a'), ddb_lock_release('a')}));
counts_as('a try meets a holder of this cluster',
	does($two, q{SELECT ddb_lock_try_acquire('a')}), busy => 1);
dynamodb->put_item(dynamodb->java_item('java', owner => 'java client', lease_ms => 3600_000));
counts_as('... and one of another', does($two, q{SELECT ddb_xact_lock_try_acquire('java')}), busy => 1);
counts_as('a wait ends', fails($two, q{SELECT ddb_lock_acquire('a', wait => '100ms')}, '55P03'),
	timed_out => 1);

# How many waits there were, how many of them took 256 ms or more, whether their sum is 300 ms or more.
sub waits
{
	my ($action) = @_;
	my $waits = q{SELECT (SELECT sum(n) FROM unnest(wait_histogram) AS n), (SELECT sum(n)
		FROM unnest(wait_histogram[6:]) AS n), extract(epoch FROM wait_total) FROM ddb_stats};
	my @before = split /\|/, $node->safe_psql('postgres', $waits);

	$action->();
	my @after = split /\|/, $node->safe_psql('postgres', $waits);
	my ($all, $long, $seconds) = map { $after[$_] - $before[$_] } 0 .. 2;

	return ($all, $long, $seconds >= 0.3 ? 'long' : 'short');
}
is_deeply([ waits(fails($two, q{SELECT ddb_lock_acquire('a', wait => '300ms')}, '55P03')) ],
	[ 1, 1, 'long' ], 'a wait that times out is one of its length');
is_deeply([ waits(sub {
		$two->send(q{SELECT ddb_lock_acquire('a') > 0});
		wait_for { $node->safe_psql('postgres', q{SELECT clock_timestamp() - waiting_since > '300 ms'
			FROM ddb_locks WHERE name = 'a' AND state = 'waiting'}) eq 't' } 'a wait of 300 ms';
		$one->query_safe(q{SELECT ddb_lock_release('a')});
		$two->result;
	}) ], [ 1, 1, 'long' ], '... and so is one that gets the lock');
$two->query_safe(q{SELECT ddb_lock_release('a')});
my $tries = q{SELECT ddb_lock_try_acquire('a'), ddb_lock_try_acquire_all('{b, c}')};
is((waits(does($one, $tries)))[0], 0, 'an attempt without waiting is none');
my $several = q{SELECT ddb_lock_acquire_all('{d, e, f}')};
is((waits(does($one, $several)))[0], 1, 'a call for several locks is one');
$one->query_safe(q{SELECT ddb_lock_release_all(), ddb_lock_acquire('a', '1h')});
$two->query_safe(q{SET lock_timeout = '100ms'});
counts_as('... by lock_timeout', fails($two, q{SELECT ddb_lock_acquire('java')}, '55P03'),
	timed_out => 1);
$two->query_safe(q{RESET lock_timeout; SET statement_timeout = '100ms'});
counts_as('... by a cancellation, which is no time-out of ours',
	fails($two, q{SELECT ddb_lock_acquire('java')}, '57014'));
$two->query_safe(q{RESET statement_timeout});
counts_as(
	'two sessions wait for each other: one fails, the other gets its lock',
	sub {
		$two->query_safe(q{SELECT ddb_lock_acquire('b', '1h')});
		$one->send(q{SELECT ddb_lock_acquire('b', '1h')});
		wait_for_waiters($node, 'b', 1);
		like($two->error_of(q{SELECT ddb_lock_acquire('a')}), qr/ERROR: +40P01/, 'a deadlock');
		$two->query_safe(q{SELECT ddb_lock_release('b')});
		like($one->result, qr/^\d+$/, 'its end');
	},
	acquired => 2,
	deadlocks => 1);
$one->query_safe('SELECT ddb_lock_release_all()');

# Its detail names locks: none that the session's prefix does not allow.
my $pids = join '|', backend_pid($one), backend_pid($two);
$two->query_safe(q{SELECT ddb_lock_acquire('bank/b', '1h'); SET ddblock.lock_prefix = 'shop/'});
$one->query_safe(q{SELECT ddb_lock_acquire('shop/a', '1h')});
$one->send(q{SELECT ddb_lock_acquire('bank/b', '1h')});
wait_for_waiters($node, 'bank/b', 1);
my $deadlock = $two->error_of(q{SELECT ddb_lock_acquire('shop/a')});
like($deadlock, qr{DETAIL: +Process (?:$pids) waits for lock "shop/a", held by process (?:$pids)\. Process (?:$pids) waits for another lock, held by process (?:$pids)\.},
	"the detail of a deadlock names the session's lock, and all processes");
unlike($deadlock, qr{bank}, '... not the lock that its prefix does not allow');
$two->query_safe(q{SELECT ddb_lock_release('bank/b'); RESET ddblock.lock_prefix});
$one->result;
$one->query_safe('SELECT ddb_lock_release_all()');

#
# Losses, by kind; what follows a loss
#
my %interferences = (
	deleted => sub { dynamodb->delete_item($_[0]) },
	released => sub { dynamodb->put_item({ %{ dynamodb->item($_[0]) }, isReleased => { S => '1' } }) },
	taken => sub { dynamodb->put_item(dynamodb->java_item($_[0], owner => 'thief', lease_ms => 2000)) },
	unreachable => sub { proxy->stop },
);
foreach my $how (sort keys %interferences)
{
	my $lease = $how eq 'unreachable' ? '3s' : '1h';

	counts_as(
		"a lease is lost: $how",
		sub {
			$one->query_safe("SELECT ddb_lock_acquire('$how', '$lease')");
			$interferences{$how}->($how);
			like($one->error_of("SELECT ddb_lock_renew('$how')"), qr/ERROR: +LK001/, 'a renewal finds out');
			proxy->restart if $how eq 'unreachable';
		},
		acquired => 1,
		"lost_$how" => 1,
		lk001 => 1);
	like(stat_of($node, undef, 'last_loss'), qr/^lock "$how" of process \d+, /, '... the last one');
	counts_as('... which its session is told by errors',
		sub { $one->error_of("SELECT ddb_lock_require('$how')") for 1 .. 2 }, lk001 => 2);
	counts_as('... and acknowledges, with a WARNING', sub { $one->ask("SELECT ddb_lock_release('$how')") });
}
is($node->safe_psql('postgres', q{SELECT leases_lost = lost_unreachable + lost_taken + lost_released
		+ lost_deleted + lost_at_most AND leases_lost = 4 FROM ddb_stats}), 't', 'the sum is right');
$two->query_safe(q{SET ddblock.lock_prefix = 'shop/'});
is($two->query_safe('SELECT last_loss_at IS NOT NULL, last_loss IS NULL FROM ddb_stats'), 't|t',
	'a session sees when the last lease was lost, but not which lock, if its prefix does not allow that');
$two->query_safe(q{SET ddblock.lock_prefix = 'unreach'});
like($two->query_safe('SELECT last_loss FROM ddb_stats'), qr/^lock "unreachable" of process/, '... or if it does, the lock');
$two->query_safe('RESET ddblock.lock_prefix');

counts_as('a lock that is not held', fails($one, q{SELECT ddb_lock_require('never')}, 'LK001'), lk001 => 1);
counts_as('... an error that is caught',
	does($one, q{DO $$ BEGIN PERFORM ddb_lock_require('never'); EXCEPTION WHEN OTHERS THEN END $$}),
	lk001 => 1);
$one->query_safe(q{SELECT ddb_lock_acquire('guard', '9s')});
$one->query_safe('BEGIN; CREATE TABLE guarded ()');
lose($node, 'guard');
counts_as('a COMMIT that is refused', fails($one, 'COMMIT', 'LK001'), lk001 => 1);
$one->ask(q{SELECT ddb_lock_release('guard')});

$one->query_safe(q{SELECT ddb_lock_acquire('effect', '9s')});
lose($node, 'effect');
counts_as('a statement that is refused', fails($one, 'CREATE DATABASE refused', 'LK001'), lk001 => 1);
$one->ask(q{SELECT ddb_lock_release('effect')});
counts_as(
	'a lease is lost before its session knows that it has it',
	sub {
		my $stopped = backend_pid($two);

		$one->query_safe(q{SELECT ddb_lock_acquire('early', '9s')});
		$two->send(q{SELECT ddb_lock_acquire('early', '9s')});
		wait_for_waiters($node, 'early', 1);
		kill 'STOP', $stopped;
		$one->query_safe(q{SELECT ddb_lock_release('early')});
		wait_for { $node->safe_psql('postgres', qq{SELECT state FROM ddb_locks
			WHERE name = 'early' AND pid = $stopped}) eq 'held' } 'the grant';
		dynamodb->delete_item('early');
		wait_for { $node->safe_psql('postgres', qq{SELECT state FROM ddb_locks
			WHERE name = 'early' AND pid = $stopped}) eq 'lost' } 'the loss';
		kill 'CONT', $stopped;
		$two->result;
		like($two->messages, qr/ERROR: +LK001: .* was lost before this session received it/, 'an error');
	},
	acquired => 2,
	lost_deleted => 1,
	lk001 => 1);

$one->query_safe(q{SELECT ddb_fence_check('r', 5)});
counts_as('a stale token', fails($one, q{SELECT ddb_fence_check('r', 4)}, 'LK002'), lk002 => 1);
$one->query_safe(q{BEGIN; SAVEPOINT s; SELECT ddb_fence_check('r', 6); ROLLBACK TO s});
counts_as('a fence that is lost', fails($one, 'COMMIT', 'LK002'), lk002 => 1);

#
# Requests: what an action adds to requests, errors, throttles, retries, replies and
# consumed units of each operation
#
sub operations
{
	my $rows = $node->safe_psql('postgres', q{SELECT operation, requests, errors, throttles, retries,
		replies, consumed_units, latency_total, array_to_string(latency_histogram, '+') FROM ddb_operations});

	return map { my ($name, @row) = split /\|/; ($name => \@row) } split /\n/, $rows;
}
sub costs_as
{
	my ($what, $action, %expected) = @_;
	my %before = operations;
	my (%after, %difference);

	$action->();
	%after = operations;
	foreach my $name (keys %after)
	{
		my $difference = join ' ', map { sprintf '%g', $after{$name}[$_] - $before{$name}[$_] } 0 .. 5;
		my ($old, $new) = map { eval $_->{$name}[7] } \%before, \%after;

		$difference{$name} = $difference unless $difference eq '0 0 0 0 0 0';
		is($new - $old, $after{$name}[4] - $before{$name}[4], "$what: $name: each reply is in the histogram")
		  if $new != $old || $difference{$name};
		cmp_ok($after{$name}[6], 'gt', $before{$name}[6], '... with its latency') if $new != $old;
	}
	is_deeply(\%difference, \%expected, $what) or diag(explain(\%difference));
	return;
}
my $look = does($one, q{SELECT held FROM ddb_lock_info('java')});

costs_as('a look at a lock', $look, read => '1 0 0 0 1 1');
costs_as('a write that is refused is no error',
	does($one, q{SELECT ddb_lock_try_acquire('java')}), acquire => '1 0 0 0 1 0');
proxy->fault('error', status => 400, type => 'com.amazonaws.dynamodb.v20120810#AccessDeniedException');
costs_as('an error', fails($one, q{SELECT ddb_lock_info('java')}, '42501'), read => '1 1 0 0 1 0');
proxy->fault('error', status => 400,
	type => 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException');
costs_as('a throttle', $look, read => '2 1 1 1 2 1');
proxy->fault('reset');
costs_as('no reply', $look, read => '2 1 0 1 1 1');

check_batches($node);
my $throttled = { Error => { Code => 'ThrottlingError', Message => 'too fast' } };
$one->query_safe(q{SELECT ddb_lock_acquire(n, '15s') FROM unnest(ARRAY['batch 1', 'batch 2']) n});
my %before = operations;
my %after;
proxy->fault('edit', operation => 'BatchExecuteStatement', count => -1,
	merge => { Responses => [ $throttled, $throttled ] });
wait_for { %after = operations; $after{renew_batch}[2] > $before{renew_batch}[2] }
'a batch with throttled statements to count as a throttle';
proxy->clear_faults;
cmp_ok($after{renew_batch}[1] - $before{renew_batch}[1], '>=', $after{renew_batch}[2] - $before{renew_batch}[2],
	'a batch with throttled statements is an error, too');
# DynamoDB did renew them: the repeat finds versions that it does not expect.
$one->ask('SELECT ddb_lock_release_all()');
dynamodb->delete_item($_) foreach 'batch 1', 'batch 2';

#
# Who waits, since when, and for whom
#
sub wait_of
{
	my ($name) = @_;

	return $node->safe_psql('postgres', qq{SELECT blocked_by_pid, blocked_by_owner FROM ddb_locks
		WHERE name = '$name' AND state = 'waiting'});
}
sub title_of
{
	my ($session) = @_;
	return slurp_file('/proc/' . $session . '/cmdline') =~ s/[\s\0]+\z//r;
}

my $holder = backend_pid($one);
my $waiter = backend_pid($two);
my $before = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$one->query_safe(q{SELECT ddb_lock_acquire('w', '1h')});
$two->send(q{SELECT ddb_lock_acquire('w')});
wait_for_waiters($node, 'w', 1);
is(wait_of('w'), "$holder|", 'a wait for a session of this cluster');
wait_for { stat_of($node, undef, 'waiters') == 1 } 'the waiting session to be counted';
is($node->safe_psql('postgres', qq{SELECT waiting_since BETWEEN '$before' AND clock_timestamp()
		FROM ddb_locks WHERE name = 'w' AND state = 'waiting'}), 't', '... shows since when');
is($node->safe_psql('postgres', q{SELECT waiting_since IS NULL AND blocked_by_pid IS NULL
		AND blocked_by_owner IS NULL FROM ddb_locks WHERE name = 'w' AND state = 'held'}),
	't', '... which is nothing to its holder');
wait_for { $node->safe_psql('postgres', q{SELECT waiting_since < clock_timestamp() - interval '1 s'
		FROM ddb_locks WHERE state = 'waiting'}) eq 't' } 'a second of waiting';
wait_for { title_of($waiter) =~ / waiting$/ } 'the process title';
is(title_of($waiter), "postgres: one: " . $node->safe_psql('postgres', 'SELECT current_user')
	  . ' postgres [local] SELECT waiting', 'the process title says so');
$one->query_safe(q{SELECT ddb_lock_release('w')});
$two->result;
wait_for { stat_of($node, undef, 'waiters') == 0 } 'the end of the wait to be counted';
wait_for { title_of($waiter) =~ / idle$/ } 'the process title';
unlike(title_of($waiter), qr/waiting/, '... as long as it waits');
$two->send(q{SELECT ddb_lock_acquire('java')});
wait_for_waiters($node, 'java', 1);
is(wait_of('java'), '|java client', 'a wait for another owner');
wait_for { title_of($waiter) =~ / waiting$/ } 'the process title';
$node->safe_psql('postgres', "SELECT pg_cancel_backend($waiter)");
$two->result;
wait_for { title_of($waiter) !~ /waiting/ } 'the process title after a cancellation';
$two->query_safe('SELECT ddb_lock_release_all()');
dynamodb->delete_item($_) foreach 'java', 'taken';

#
# The worker's state
#
sub status
{
	my ($where, $column) = @_;
	return $where->safe_psql('postgres', "SELECT $column FROM ddb_status");
}

is(status($node, 'worker_pid'), worker_pid($node), 'the worker');
is(status($node, 'worker_since > pg_postmaster_start_time() AND worker_since < now()'), 't', '... its start');
is(status($node, 'worker_starts'), 1, '... the first one');
is(status($node, 'region, endpoint, lock_table'), 'us-east-1|' . proxy->url . '|lockTable', 'where locks are kept');
my ($source) = slurp_file($node->logfile) =~ /The credentials come from: (.*)\.$/m;
is(status($node, 'credentials, credentials_expire_at'), "$source|", '... with which credentials, which do not expire');
$one->query_safe(q{SELECT ddb_lock_acquire('s', '1h')});
is($one->query_safe(q{SELECT i.owner = s.owner FROM ddb_lock_info('s') i, ddb_status s}), 't', '... by which owner');
is(status($node, 'leases, max_leases = current_setting($$ddblock.max_leases$$)::int'), '1|t', 'leases');
is(stat_of($node, undef, 'leases_held'), 1, '... of which ddb_stats counts those that are held');
is(status($node, 'connections BETWEEN 1 AND max_connections'), 't', 'connections');
is(status($node, 'library_version = (SELECT extversion FROM pg_extension WHERE extname = $$ddblock$$)'), 't',
	'the version of the library');
like(status($node, 'http_library'), qr{^libcurl/\d[\d.]+ \w+/\d}, '... and of others');

my $then = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
is(status($node, "last_reply_at < '$then'"), 't', 'the last reply');
$one->query_safe(q{SELECT held FROM ddb_lock_info('s')});
wait_for { status($node, "last_reply_at > '$then'") eq 't' } 'another reply';
proxy->fault('error', count => -1, status => 400,
	type => 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException');
my $heard = status($node, 'last_reply_at');
$two->send(q{SELECT held FROM ddb_lock_info('s')});
wait_for { status($node, 'trouble') ne '' } 'trouble';
is(status($node, "extract(epoch FROM last_reply_at - '$heard') < 0.1"), 't', 'a throttled request is no good reply');
proxy->clear_faults;
$two->result;
wait_for { status($node, 'trouble') eq '' } 'the end of the trouble';

my $worker = worker_pid($node);
$heard = status($node, 'last_reply_at');
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { status($node, "worker_pid <> $worker") eq 't' } 'the next worker';
is(status($node, "worker_starts, last_reply_at >= timestamptz '$heard' - interval '100 ms'"), '2|t',
	'it is the second, and knows what the first one knew');

# The trouble of a worker ends with it: the next one, here, repeats no requests.
$one->query_safe(q{SELECT ddb_lock_release('s')});
proxy->fault('error', count => -1, operation => 'GetItem', status => 400,
	type => 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException');
$two->send(q{SELECT held FROM ddb_lock_info('s')});
wait_for { status($node, 'trouble') ne '' } 'trouble';
$node->safe_psql('postgres', "SELECT pg_cancel_backend($waiter)");
$two->result;
$worker = worker_pid($node);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { status($node, "worker_pid <> $worker") eq 't' } 'the third worker';
is(status($node, 'trouble'), '', 'a new worker has no trouble before it repeats a request');
proxy->clear_faults;
$_->quit foreach $one, $two;

my $workerless = new_cluster('workerless', table => 0, conf => "max_worker_processes = 0\n");
is(status($workerless, 'worker_pid, worker_since, worker_starts, region, owner, credentials,
		credentials_expire_at, last_reply_at, clock_ahead, connections, leases'), '||0||||||||0', 'without a worker there is little to tell');
$workerless->stop;
my $unplaced = do
{
	local $ENV{HOME} = PostgreSQL::Test::Utils::tempdir();
	new_cluster('unplaced', table => 0, conf => "ddblock.region = ''\n");
};
wait_for { status($unplaced, 'worker_pid IS NOT NULL') eq 't' } 'the worker';
is(status($unplaced, 'region, endpoint, worker_starts'), '||1', 'without a Region there is none to tell');
like(error_of($unplaced, $_), qr/55000/, "$_ fails")
  foreach q{SELECT held FROM ddb_lock_info('a')}, q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_lock_list()};
is($unplaced->safe_psql('postgres', q{SELECT string_agg(concat_ws(' ', operation, requests, errors, replies), ', ' ORDER BY operation)
		FROM ddb_operations WHERE requests + errors + replies > 0}), 'acquire 0 1 0, read 0 1 0, scan 0 1 0',
	'a call that cannot be sent counts as an error');
$unplaced->stop;

#
# DynamoDB's clock
#
my $double = new_double(seed => 3);
$double->command(command => 'clock', skew_s => 3600);
my $behind = new_cluster('behind', through => $double, table => 0, conf => "ddblock.keep_warm = off\n");
$behind->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
wait_for
{
	$behind->safe_psql('postgres', q{SELECT held FROM ddb_lock_info('c')});
	status($behind, q{abs(extract(epoch FROM clock_ahead) - 3600) <= extract(epoch FROM clock_error) + 1
		AND clock_error BETWEEN '0' AND '30 s'}) eq 't';
}
"a clock that is an hour ahead";
pass("DynamoDB's clock is an hour ahead");
$behind->stop;

nothing_held_ok;
done_testing;
