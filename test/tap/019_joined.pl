# Sessions join another one's lock by its token; a lock is left to the cluster.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy,
	conf => "restart_after_crash = on\nmax_prepared_transactions = 5\n");
my $two = new_cluster('two');
$one->safe_psql('postgres', q{
	CREATE TABLE t (i int);
	CREATE ROLE deployer LOGIN; CREATE ROLE helper LOGIN IN ROLE deployer; CREATE ROLE stranger LOGIN;
	SELECT ddb_role_setup('ddblock_user');
	GRANT ddblock_user TO deployer, helper, stranger;
	GRANT ALL ON t TO PUBLIC});

my ($taker, $helper, $other) = map { session($one) } 1 .. 3;
my $far = session($two);

sub take { my ($session, $name, $options) = @_;
	return $session->ask("SELECT ddb_lock_acquire('$name'" . ($options // '') . ')'); }
sub join_lock { my ($session, $name, $token) = @_;
	return $session->query_safe("SELECT ddb_lock_join('$name', $token)"); }
sub release { my ($session, $name) = @_; return $session->ask("SELECT ddb_lock_release('$name')"); }
sub is_free { my ($name) = @_;
	my $got = $far->ask("SELECT ddb_lock_try_acquire('$name')");
	$far->query_safe("SELECT ddb_lock_release('$name')") if $got eq 't';
	return $got eq 't'; }
sub shown { my ($name) = @_;
	return $one->safe_psql('postgres', "SELECT scope, joined, pid IS NOT NULL, ends_at IS NOT NULL, state
		FROM ddb_locks WHERE name = '$name' ORDER BY joined, scope"); }
sub with_join { my ($list, $user) = @_;
	local $ENV{PGOPTIONS} = "-c ddblock.join_locks=$list";
	local $ENV{PGUSER} = $user if $user;
	return session($one); }

#
# Joining
#
my $token = take($taker, 'a');
my $requests = proxy->received;
join_lock($helper, 'a', $token);
is(proxy->received, $requests, 'a session joins without a request');
is($helper->ask(q{SELECT ddb_lock_require('a')}), $token, 'it has the same token');
is(shown('a'), "session|f|t|f|held\nsession|t|t|f|held", 'ddb_locks shows both');
like($other->error_of(q{SELECT ddb_lock_join('a', 1)}), qr/ERROR: +LK001: lock "a" is not held with token 1/,
	'another token is refused');
like($other->error_of("SELECT ddb_lock_join('b', $token)"), qr/ERROR: +LK001/, 'and another name');
like($other->error_of(q{SELECT ddb_lock_join('a', 0)}), qr/22023.*greater than 0/s, 'a token is greater than 0');
like($other->error_of(q{SELECT ddb_lock_join('a', NULL)}), qr/22023.*must not be null/s, 'and not null');
like($far->error_of("SELECT ddb_lock_join('a', $token)"), qr/LK001/, 'a session of another cluster cannot join');

is(release($taker, 'a'), 't', 'the first session lets go');
ok(!is_free('a'), 'the lock is still held');
is(shown('a'), 'session|t|t|f|held', 'by the one who has joined');
is($helper->ask(q{SELECT ddb_lock_acquire('a')}), $token, 'which acquires it again,');
is(release($helper, 'a'), 't', 'releases that,');
ok(!is_free('a'), 'holds it still,');
is(release($helper, 'a'), 't', 'and releases it');
ok(is_released('a'), 'then the lock is released');
like($other->error_of("SELECT ddb_lock_join('a', $token)"), qr/LK001/, 'nobody joins under an old token');
my $next = take($taker, 'a');
like($other->error_of("SELECT ddb_lock_join('a', $token)"), qr/LK001/, 'nor when it is held again');
join_lock($helper, 'a', $next);
join_lock($helper, 'a', $next);
like($helper->error_of("SELECT ddb_lock_join('a', $token)"), qr/LK001/, 'nor who holds it');
is($helper->ask('SELECT ddb_lock_release_all()'), 1, 'a lock that was joined twice is released at once');
is(release($taker, 'a'), 't', 'by all');

# The one that waits gets the lock when all have let go.
$token = take($taker, 'a');
join_lock($helper, 'a', $token);
$other->send(q{SELECT ddb_lock_acquire('a')});
wait_for_waiters($one, 'a', 1);
release($taker, 'a');
ok($other->busy, 'who waits, waits for all');
release($helper, 'a');
cmp_ok($other->result, '>', $token, 'and has a new token');
like($taker->error_of("SELECT ddb_lock_join('a', $token)"), qr/LK001/, 'the old one joins no hold on the same lease');
release($other, 'a');

# A deadlock through a session that has joined
$token = take($taker, 'a');
join_lock($helper, 'a', $token);
take($other, 'b');
$other->send(q{SELECT ddb_lock_acquire('a')});
wait_for_waiters($one, 'a', 1);
like($helper->error_of(q{SELECT ddb_lock_acquire('b')}), qr/40P01/, 'a deadlock is found');
release($helper, 'a');
release($taker, 'a');
$other->result;
$other->query_safe(q{SELECT ddb_lock_release_all()});

# The end of a session, and of its worker
$token = take($taker, 'a');
join_lock($helper, 'a', $token);
my $worker = worker_pid($one);
kill 'TERM', $worker;
wait_for { (worker_pid($one) // $worker) != $worker } 'another worker';
is(shown('a'), "session|f|t|f|held\nsession|t|t|f|held", 'another worker finds both holds');
$taker->quit;
wait_for { shown('a') eq 'session|t|t|f|held' } 'the end of the first session';
ok(!is_free('a'), 'the joined session keeps the lock');
$helper->quit;
wait_for { is_released('a') } 'the release';
($taker, $helper) = map { session($one) } 1, 2;

# Losing: each is interrupted, each is guarded.
$token = take($taker, 'a');
join_lock($helper, 'a', $token);
my $idle = backend_pid($helper);
$helper->query_safe('BEGIN; INSERT INTO t VALUES (1)');
$taker->send('SELECT pg_sleep(100)');
my $guarded = undisturbed($one);
join_lock($guarded, 'a', $token);
$guarded->query_safe('BEGIN; INSERT INTO t VALUES (2)');
lose($one, 'a');
$taker->result;
like($taker->messages, qr/57014.*The lease on lock "a" was lost/s, 'a loss cancels the statement of one');
wait_for { $one->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $idle") eq '0' }
'the end of the session of another';
pass('... and ends that session, which was idle in a transaction');
like($guarded->error_of('COMMIT'), qr/LK001: cannot commit/, 'the commit of another is refused');
is($one->safe_psql('postgres', 'SELECT count(*) FROM t'), 0, 'nothing was committed');
$helper->gone;
$_->quit foreach $taker, $guarded;
($taker, $helper) = map { session($one) } 1, 2;

# Shared locks are not joined
$token = $taker->ask(q{SELECT ddb_lock_acquire_shared('s')});
like($helper->error_of("SELECT ddb_lock_join('s', $token)"), qr/0A000: cannot join lock "s"/, 'a shared lock is not joined');
like($taker->error_of("SELECT ddb_lock_join('s', $token)"), qr/0A000: cannot join lock "s"/, 'not by who has it, either');
like($taker->error_of(q{SELECT ddb_lock_detach('s', '1h')}), qr/0A000: cannot detach lock "s"/, 'nor detached');
$taker->query_safe(q{SELECT ddb_lock_release('s')});

#
# The lease is as long as the longest wish
#
$token = take($taker, 'a', q{, lease => '1h'});
join_lock($helper, 'a', $token);
is($helper->ask(q{SELECT ddb_lock_renew('a', '2min') > now() + '50min'}), 't', 'who has joined does not shorten the lease');
is($helper->ask(q{SELECT ddb_lock_renew('a', '2h') > now() + '100min'}), 't', 'but makes it longer');
release($helper, 'a');
is($taker->ask(q{SELECT ddb_lock_renew('a', '2min') > now() + '50min'}), 'f', 'who is alone shortens it');
release($taker, 'a');

#
# Roles
#
{
	local $ENV{PGUSER} = 'deployer';
	$taker = session($one);
}
$token = take($taker, 'a');
foreach (['helper', 1], ['stranger', 0])
{
	my ($role, $may) = @$_;
	local $ENV{PGUSER} = $role;
	my $session = session($one);

	if ($may)
	{
		join_lock($session, 'a', $token);
		is($session->ask(q{SELECT ddb_lock_token('a')}), $token, "$role, a member of the role, joins");
		my $third = do { local $ENV{PGUSER} = 'deployer'; session($one) };
		join_lock($third, 'a', $token);
		$third->quit;
	}
	else
	{
		like($session->error_of("SELECT ddb_lock_join('a', $token)"),
			qr/42501: permission denied for lock "a".*Role "deployer" has taken it/s, "$role does not");
	}
	$session->quit;
}
is($taker->ask(q{SELECT ddb_lock_detach('a', '1h')}), $token, 'a lock is detached');
{
	local $ENV{PGUSER} = 'stranger';
	my $session = session($one);

	like($session->error_of("SELECT ddb_lock_release_detached('a', $token)"), qr/42501/, 'another role does not release it');
	$session->quit;
}
ok(!is_free('a'), 'it is held');
{
	local $ENV{PGUSER} = 'helper';
	my $session = session($one);

	is($session->ask("SELECT ddb_lock_release_detached('a', $token)"), 't', 'a member of the role does');
	$session->quit;
}
ok(is_released('a'), 'it is released');

# The role that has taken a lock is the current one, as it is for who joins.
$one->safe_psql('postgres', q{
	CREATE ROLE owner; CREATE ROLE runner LOGIN NOINHERIT IN ROLE owner;
	ALTER ROLE runner SET role = 'owner';
	CREATE ROLE alice LOGIN NOINHERIT IN ROLE deployer; CREATE ROLE bob LOGIN NOINHERIT IN ROLE deployer;
	CREATE ROLE lockowner; CREATE ROLE app LOGIN;
	CREATE ROLE leaver LOGIN; CREATE ROLE member LOGIN IN ROLE leaver;
	GRANT ddblock_user TO owner, lockowner, leaver, member;
	CREATE FUNCTION take_lock(text) RETURNS bigint SECURITY DEFINER LANGUAGE sql
		AS $$SELECT ddb_lock_acquire($1); SELECT ddb_lock_detach($1, '1h')$$;
	CREATE FUNCTION end_lock(text, bigint) RETURNS boolean SECURITY DEFINER LANGUAGE sql
		AS $$SELECT ddb_lock_release_detached($1, $2)$$;
	ALTER FUNCTION take_lock OWNER TO lockowner; ALTER FUNCTION end_lock OWNER TO lockowner});
sub as { my ($role) = @_; local $ENV{PGUSER} = $role; return session($one); }

my $runner = as('runner');
$token = take($runner, 'r');
my $joined = with_join("$token:r", 'runner');
is($joined->ask(q{SELECT ddb_lock_token('r')}), $token, 'a role that is another one from its login on joins its own lock');
$_->quit foreach $joined, $runner;

my ($alice, $bob) = map { as($_) } 'alice', 'bob';
$_->query_safe('SET ROLE deployer') foreach $alice, $bob;
$token = take($alice, 'r');
join_lock($bob, 'r', $token);
release($bob, 'r');
is($alice->ask(q{SELECT ddb_lock_detach('r', '1h')}), $token, 'after SET ROLE, a lock is detached');
is($bob->ask("SELECT ddb_lock_release_detached('r', $token)"), 't', 'and released by another login after SET ROLE');
$_->quit foreach $alice, $bob;

my ($app, $again) = map { as('app') } 1, 2;
$token = $app->ask(q{SELECT take_lock('r')});
$app->quit;
like($again->error_of("SELECT ddb_lock_release_detached('r', $token)"), qr/42501: permission denied for function/, 'a function has taken it:');
is($again->ask("SELECT end_lock('r', $token)"), 't', 'a function of the same owner releases it');
$again->quit;

my $leaver = as('leaver');
$token = take($leaver, 'r');
$leaver->query_safe(q{SELECT ddb_lock_detach('r', '1h')});
$leaver->quit;
$one->safe_psql('postgres', 'DROP ROLE leaver');
my $member = as('member');
like($member->error_of("SELECT ddb_lock_release_detached('r', $token)"), qr/42501.*does not exist any more/s,
	'the role that has taken it was dropped: nobody may release it,');
$member->quit;
is($one->safe_psql('postgres', "SELECT ddb_lock_release_detached('r', $token)"), 't', 'but a superuser');

$one->safe_psql('postgres', q{ALTER ROLE helper SET ddblock.lock_prefix = 'x/'});
$token = take($taker, 'a');
{
	local $ENV{PGUSER} = 'helper';
	my $session = session($one);

	like($session->error_of("SELECT ddb_lock_join('a', $token)"), qr/42501.*lock_prefix/s, 'ddblock.lock_prefix counts');
	$session->quit;
	local $ENV{PGOPTIONS} = "-c ddblock.join_locks=$token:a";
	my ($status, $out, $err) = $one->psql('postgres', 'SELECT 1');
	like($err, qr/permission denied for lock "a"\nDETAIL: .*ddblock.lock_prefix/, 'for ddblock.join_locks, too');
}
$one->safe_psql('postgres', q{ALTER ROLE helper RESET ddblock.lock_prefix});
release($taker, 'a');
$taker->quit;
$taker = session($one);

#
# Detached locks
#
$token = take($taker, 'd');
is($taker->ask("SELECT ddb_lock_release_detached('d', $token)"), 'f', 'a lock that is not detached');
like($taker->messages, qr/WARNING: .*no detached hold of lock "d".*HINT: +This session holds the lock: call ddb_lock_release\(\)\./s,
	'... is another function\'s');
$requests = proxy->received;
is($taker->ask(q{SELECT ddb_lock_detach('d', '1h')}), $token, 'the token of a detached lock');
is(proxy->received, $requests, 'it is detached without a request');
foreach my $nowait (qw(false true))
{
	is($taker->ask("SELECT ddb_lock_release('d', nowait => $nowait)"), 'f', "ddb_lock_release(nowait => $nowait) does not release it");
	like($taker->messages, qr/WARNING: .*not held by this session.*HINT: +It is detached: call ddb_lock_release_detached\(\)/s,
		'... and says what does');
}
$taker->ask(q{SET ddblock.lock_prefix = 'e'; SELECT ddb_lock_release('d')});
unlike($taker->messages, qr/detached/, '... but nothing of what the session may not know');
$taker->query_safe('RESET ddblock.lock_prefix');
is($taker->ask(q{SELECT ddb_lock_token('d')}), '', 'the session does not hold it any more');
is(shown('d'), 'detached|f|f|t|held', 'ddb_locks shows it');
is($one->safe_psql('postgres', q{SELECT usename IS NOT NULL, datname FROM ddb_locks WHERE name = 'd'}),
	't|postgres', 'and who has taken it');
$taker->quit;
$taker = session($one);
ok(!is_free('d'), 'it outlives its session');
kill 'TERM', ($worker = worker_pid($one));
wait_for { (worker_pid($one) // $worker) != $worker } 'another worker';
is(shown('d'), 'detached|f|f|t|held', 'and the worker');
is($helper->ask(q{SELECT ddb_lock_release_detached('d', 1)}), 'f', 'another token does not release it');
like($helper->messages, qr/WARNING: .*no detached hold of lock "d" with token 1/, 'and warns');
like($helper->error_of(q{DROP EXTENSION ddblock}), qr/55006.*Lock "d" is detached/s, 'the extension stays');
join_lock($helper, 'd', $token);
is($taker->ask("SELECT ddb_lock_release_detached('d', $token)"), 't', 'its token releases it');
is(shown('d'), 'session|t|t|f|held', 'who has joined it keeps it');
release($helper, 'd');
ok(is_released('d'), 'until the end');

# For a time
$token = take($taker, 'd');
is($taker->ask(q{SELECT ddb_lock_detach('d', '1s')}), $token, 'detached for a second');
wait_for { is_released('d') } 'the end of the second';
is($taker->ask("SELECT ddb_lock_release_detached('d', $token)"), 'f', 'then there is nothing to release');
like($taker->error_of(q{SELECT ddb_lock_detach('d', '1h')}), qr/LK001: lock "d" is not held/, 'nor to detach');
like($taker->error_of(q{SELECT ddb_lock_detach('d', '25h')}), qr/22023.*at most 1 day/s, 'at most a day');
like($taker->error_of(q{SELECT ddb_lock_detach('d', '0s')}), qr/22023/s, 'more than nothing');
like($taker->error_of(q{SELECT ddb_lock_detach('d', NULL)}), qr/22023.*must not be null/s, 'and not without a limit');

# Not what is acquired twice, or for the transaction
take($taker, 'd') foreach 1, 2;
like($taker->error_of(q{SELECT ddb_lock_detach('d', '1h')}), qr/55000.*several times/s, 'acquired twice');
release($taker, 'd') foreach 1, 2;
like($taker->error_of(q{SELECT ddb_lock_detach('d', '1h') WHERE ddb_xact_lock_acquire('d') > 0}),
	qr/55000.*for the transaction/s, 'acquired for the transaction');

# Twice
$token = take($taker, 'd');
join_lock($helper, 'd', $token);
is($taker->ask(q{SELECT ddb_lock_detach('d', '1h')}), $token, 'detached');
like($helper->error_of(q{SELECT ddb_lock_detach('d', '1h')}), qr/55000: lock "d" is detached already/, 'once only');
release($helper, 'd');

# Whoever waits sees no process that may have gone.
$other->send(q{SELECT ddb_lock_acquire('d', wait => '8s')});
wait_for_waiters($one, 'd', 1);
is($one->safe_psql('postgres', q{SELECT blocked_by_pid IS NULL, blocked_by_owner IS NULL FROM ddb_locks
	WHERE name = 'd' AND state = 'waiting'}), 't|t', 'no process blocks who waits for a detached lock');
$other->result;
like($other->messages, qr/55P03.*\(this cluster\), detached, host .*, user /s, 'the message says who has detached it');

# Canceled, or terminated, while the worker is stopped: nobody holds the locks when it goes on.
my %ends = (
	ddb_lock_detach => [ q{ddb_lock_acquire('%1$s')}, q{ddb_lock_detach('%1$s', '1h')} ],
	ddb_lock_release => [ q{ddb_lock_acquire('%1$s')}, q{ddb_lock_release('%1$s')} ],
	ddb_lock_release_all => [ q{ddb_lock_acquire_all('{%1$s, %1$s/2}')}, q{ddb_lock_release_all()} ],
	shared => [ q{ddb_lock_acquire_shared('%1$s')}, q{ddb_lock_release('%1$s')} ],
	permits => [ q{ddb_semaphore_acquire('%1$s', 3, 2)}, q{ddb_lock_release('%1$s')} ]);
my %ending = map { $_ => session($one) } keys %ends;
my $of_ending = 'pid IN (' . join(', ', map { backend_pid($_) } values %ending) . ')';
foreach (['cancel', qr/57014/], ['terminate', qr/57P01|server closed/])
{
	my ($what, $expected) = @$_;
	my $stopped = worker_pid($one);

	$ending{$_}->query_safe(sprintf "SELECT $ends{$_}[0]", $_) foreach keys %ends;
	kill 'STOP', $stopped;
	$ending{$_}->send(sprintf "SELECT $ends{$_}[1]", $_) foreach keys %ends;
	wait_for { $one->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity
		WHERE $of_ending AND state = 'active' AND wait_event_type = 'Extension'") eq keys %ends } 'the calls';
	$one->safe_psql('postgres', "SELECT pg_${what}_backend(pid) FROM pg_stat_activity WHERE $of_ending");
	foreach my $function (sort keys %ends)
	{
		$ending{$function}->result;
		like($ending{$function}->messages, $expected, "$function: $what");
	}
	kill 'CONT', $stopped;
	foreach my $name (sort map { ($_, "$_/2") } keys %ends)
	{
		wait_for { is_released($name) } "the release of $name";
		wait_for { shown($name) eq '' } "the end of the hold on $name";
	}
	pass('nobody holds the locks');
}
$_->gone foreach values %ending;

# Loss
my $lost_before = stat_of($one, undef, 'lost_deleted');
lose($one, 'd');
is(shown('d'), 'detached|f|f|t|lost', 'a detached lock is lost');
is($taker->ask("SELECT ddb_lock_release_detached('d', $token)"), 'f', 'it is released no more');
like($taker->messages, qr/WARNING: .*LK001|lease on lock "d" was lost/, 'and warns');
is(shown('d'), '', 'nothing is left of it');

#
# ddblock.join_locks
#
$token = take($taker, 'a/b, c%');
my $list = "$token:a/b%2C%20c%25";
my $tool = with_join($list);
is($tool->ask(q{SELECT ddb_lock_token('a/b, c%')}), $token, 'ddblock.join_locks joins before the first statement');
is($tool->ask('SHOW ddblock.join_locks'), $list, 'it is shown');
like($tool->error_of(q{SET ddblock.join_locks = ''}), qr/55P02.*cannot be set after connection start/s, 'it does not change');
$tool->query_safe('DISCARD ALL');
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE joined}) eq '0' } 'the end of the hold';
pass('DISCARD ALL lets go');
is($tool->ask(q{SELECT ddb_lock_token('a/b, c%')}), $token, 'the next transaction joins again');
$tool->query_safe('CREATE TEMP TABLE x (i int)');
$tool->query_safe('DISCARD ALL');
pass('DISCARD ALL drops tables without the lock');
$tool->query_safe(q{BEGIN; INSERT INTO t VALUES (3)});
is($tool->ask(q{SELECT ddb_lock_release('a/b, c%')}), 't', 'who releases such a lock');
like($tool->error_of('COMMIT'), qr/LK001: cannot commit, because this session does not hold lock/, 'does not commit');
$tool->query_safe('BEGIN');
is($tool->ask(q{SELECT ddb_lock_release('a/b, c%')}), 't', 'if it has released such a lock,');
like($tool->error_of('NOTIFY t'), qr/LK001: cannot execute NOTIFY, because this session does not hold lock/, 'NOTIFY does not start');
$tool->query_safe('ROLLBACK');
$tool->query_safe(q{INSERT INTO t VALUES (4)});
is($one->safe_psql('postgres', 'SELECT count(*) FROM t'), 1, 'but in the next transaction');
my $parallel = $tool->ask(q{SELECT name FROM pg_settings WHERE name IN ('debug_parallel_query', 'force_parallel_mode')});
$tool->query_safe("SET $parallel = on");
like($tool->ask('EXPLAIN SELECT count(*) FROM t'), qr/Gather/, 'with a parallel worker:');
is($tool->ask('SELECT count(*) FROM t'), 1, 'a parallel query runs');
$tool->query_safe('BEGIN');
release($taker, 'a/b, c%');
$tool->query_safe('ROLLBACK; DISCARD ALL');
like($tool->error_of('SELECT 1'), qr/LK001: lock .* is not held with token/, 'when the lock is gone, nothing runs');
$tool->query_safe('BEGIN; ROLLBACK');
like($tool->error_of('INSERT INTO t VALUES (5)'), qr/LK001/, 'in no transaction');
$tool->quit;

foreach ([ 'x', 'begin with a token' ], [ '1:', 'empty' ], [ '0:a', 'begin with a token' ], [ '1:a,', 'comma' ],
	[ '1:%zz', '%XX' ], [ '1:%ff', 'UTF-8' ])
{
	my ($value, $why) = @$_;
	local $ENV{PGOPTIONS} = "-c ddblock.join_locks=$value";
	my ($status, $out, $err) = $one->psql('postgres', '');	# psql may go before it reads anything

	isnt($status, 0, "ddblock.join_locks=$value: no session");
	like($err, qr/FATAL:  invalid value for parameter "ddblock.join_locks".*\n.*\Q$why\E/, '... and says why');
}
{
	local $ENV{PGOPTIONS} = '-c ddblock.join_locks=1:nobody';
	my ($status, $out, $err) = $one->psql('postgres', 'SELECT 1');

	like($err, qr/lock "nobody" is not held with token 1 in this cluster/, 'a lock that nobody holds: nothing runs');
}
# libpq does not read PGOPTIONS if something else has options.
{
	my $services = $one->basedir . '/services';
	my $all = "SELECT ddb_lock_token('d')";

	$token = take($taker, 'd');
	append_to_file($services, "[shop]\noptions=-c search_path=public\n" .
		"[joins]\noptions=-c search_path=public -c ddblock.join_locks=$token:d\n");
	local $ENV{PGSERVICEFILE} = $services;
	local $ENV{PGOPTIONS} = "-c ddblock.join_locks=$token:d";
	is($one->safe_psql('postgres', $all), $token, 'PGOPTIONS names a lock to join');
	local $ENV{PGSERVICE} = 'shop';
	is($one->safe_psql('postgres', $all), '', 'options in a service file hide it');
	$ENV{PGSERVICE} = 'joins';
	is($one->safe_psql('postgres', $all), $token, 'unless they name the lock themselves');
	release($taker, 'd');
}
like(error_of($one, q{ALTER SYSTEM SET ddblock.join_locks = '1:a'}), qr/55P02.*cannot be changed/s, 'not for the whole server');

#
# The cluster's end
#
$token = take($taker, 'd', q{, lease => '10s'});
$taker->query_safe(q{SELECT ddb_lock_detach('d', '1h')});
take($taker, 'a');
my $started = time;
$one->restart;
cmp_ok(time - $started, '<', 60, 'the server does not wait for a detached lock');
ok(is_released('a'), 'a shutdown releases what sessions hold');
ok(!is_released('d'), 'but no detached lock');
is(shown('d'), '', 'which nobody renews any more');
wait_for { is_free('d') } 'the end of its lease';
$_->quit foreach $taker, $helper, $other;

# A crash
$taker = session($one);
take($taker, 'd', q{, lease => '10s'});
$taker->query_safe(q{SELECT ddb_lock_detach('d', '1h')});
take($taker, 'a');
kill 'TERM', ($worker = worker_pid($one));	# the next one writes another journal
wait_for { (worker_pid($one) // $worker) != $worker } 'another worker';
kill 'KILL', backend_pid($taker);
wait_for { is_released('a') } 'the journal frees what sessions held';
ok(!is_released('d'), 'but no detached lock');
wait_for { is_free('d') } 'the end of its lease';

# The journal cannot be written when the lock is detached.
sub journals { return grep { !/\.new$/ } glob $one->data_dir . '/pg_stat_tmp/ddblock.*'; }

$taker = session($one);
take($taker, 'd', q{, lease => '10s'});
is(scalar(journals), 1, 'a journal lists the lock');
system_or_bail('prlimit', '--fsize=0:', '--pid', worker_pid($one));
$taker->query_safe(q{SELECT ddb_lock_detach('d', '1h')});
is(scalar(journals), 0, 'a journal that cannot leave a detached lock out is removed');
my $before = worker_pid($one);
kill 'KILL', backend_pid($taker);
wait_for { my $now = eval { worker_pid($one) }; defined $now && $now != $before } 'the server after its crash';
$taker = session($one);
take($taker, 'a');
ok(!is_released('d'), 'the detached lock is not freed');
release($taker, 'a');
wait_for { is_free('d') } 'the end of its lease';
$taker->quit;

$far->quit;
nothing_held_ok;
done_testing;
