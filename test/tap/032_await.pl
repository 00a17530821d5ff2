# The procedures that wait without a snapshot: CREATE INDEX CONCURRENTLY and VACUUM do not wait
# for who waits for a lock.

use DDBLock::Test;
use DDBLock::Tools;

my $one = new_cluster('one', through => proxy, conf => "ddblock.lease_duration = '1h'\n");
my $two = new_cluster('two', conf => "ddblock.lease_duration = '1h'\n");
my ($holder, $waiter) = map { session($one) } 1 .. 2;
my $far = session($two);

$one->safe_psql('postgres', q{
	CREATE TABLE t (a int);
	CREATE TABLE written (a int);
	SELECT ddb_queue_table_create()});

my $pid = $waiter->query_safe('SELECT pg_backend_pid()');
sub snapshot { return $one->safe_psql('postgres', qq{SELECT backend_xmin IS NULL AND backend_xid IS NULL
	AND state = 'active' FROM pg_stat_activity WHERE pid = $pid}); }
sub held { my ($who) = @_; return $who->query_safe(q{SELECT string_agg(name || ' ' || scope, ',' ORDER BY name)
	FROM ddb_locks WHERE pid = pg_backend_pid() AND state = 'held'}); }

sub waits_without_snapshot
{
	my ($what) = @_;

	wait_for { snapshot() eq 't' } "$what without a snapshot";
	return;
}

#
# Each of them, beside who builds an index and who cleans
#
my @kinds = (
	# what blocks, how, what is held afterwards, what ends the wait
	[ q{ddb_lock_await('m')}, q{SELECT ddb_lock_acquire('m')}, 'm session' ],
	[ q{ddb_lock_await_all('{a,m}')}, q{SELECT ddb_lock_acquire('m')}, 'a session,m session' ],
	[ q{ddb_lock_await_shared('m')}, q{SELECT ddb_lock_acquire('m')}, 'm session' ],
	[ q{ddb_semaphore_await('m', 2)}, q{SELECT ddb_semaphore_acquire('m', 2, 2)}, 'm session' ],
	[ q{ddb_lock_await_end('m', '1min')}, q{SELECT ddb_lock_acquire('m')}, '' ],
	[ q{ddb_queue_await('q')}, q{SELECT 1}, '', q{SELECT ddb_queue_push('q', 'r', '1')} ],
	[ q{ddb_queue_await('q', resources => '{s}')}, q{SELECT ddb_queue_push('q', 'r', '1')}, '',
		q{SELECT ddb_queue_push('q', 's', '1')} ],
);
foreach my $kind (@kinds)
{
	my ($call, $block, $then_held, $end) = @$kind;

	$holder->query_safe($block);
	$waiter->send("CALL $call");
	waits_without_snapshot($call);
	$holder->query_safe('INSERT INTO t SELECT generate_series(1, 1000); DELETE FROM t');
	$holder->query_safe('CREATE INDEX CONCURRENTLY i ON t (a)');
	$holder->query_safe('REINDEX INDEX CONCURRENTLY i');
	$holder->query_safe('DROP INDEX CONCURRENTLY i');
	$holder->query_safe('VACUUM t');
	is($holder->query_safe(q{SELECT pg_relation_size('t')}), 0, "$call: VACUUM removes what has died during the wait");
	ok($waiter->busy && snapshot() eq 't', '... which goes on');
	$holder->query_safe($end // 'SELECT ddb_lock_release_all()');
	is($waiter->result, '', '... and ends');
	is(held($waiter), $then_held, '... with what it waited for');
	$waiter->query_safe('SELECT ddb_lock_release_all()');
}

# The plain function keeps its snapshot: what the test sees is the procedures' doing.
$holder->query_safe(q{SELECT ddb_lock_acquire('m')});
$waiter->send(q{SELECT ddb_lock_acquire('m')});
wait_for_waiters($one, 'm', 1);
is(snapshot(), 'f', 'a function keeps its snapshot');
$holder->query_safe('SELECT ddb_lock_release_all()');
$waiter->result;
$waiter->query_safe('SELECT ddb_lock_release_all()');

#
# Where it may commit
#
$one->safe_psql('postgres', q{
	CREATE PROCEDURE plain() LANGUAGE plpgsql AS $$ BEGIN CALL ddb_lock_await('m'); END $$;
	CREATE PROCEDURE deep() LANGUAGE plpgsql AS $$ BEGIN CALL plain(); END $$;
	CREATE PROCEDURE definer() LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN CALL ddb_lock_await('m'); END $$;
	CREATE PROCEDURE setting() LANGUAGE plpgsql SET work_mem = '8MB' AS $$ BEGIN CALL ddb_lock_await('m'); END $$;
	CREATE FUNCTION in_function() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CALL ddb_lock_await('m'); END $$});
foreach my $sql (q{CALL ddb_lock_await('m', wait => '1min')}, 'CALL plain()', 'CALL deep()',
	q{DO $$ BEGIN CALL ddb_lock_await('m'); END $$},
	q{DO $$ BEGIN FOR i IN 1 .. 3 LOOP CALL ddb_lock_await('m'); END LOOP; END $$},
	q{DO $$ DECLARE r record; BEGIN FOR r IN SELECT generate_series(1, 3) LOOP CALL ddb_lock_await('m'); END LOOP; END $$},
	q{DO $$ BEGIN INSERT INTO written VALUES (1); COMMIT; CALL ddb_lock_await('m'); END $$},
	q{DO $$ BEGIN LOCK TABLE written; COMMIT; CALL ddb_lock_await('m'); END $$},
	q{DO $$ BEGIN PERFORM pg_advisory_lock(1), count(*) FROM written; CALL ddb_lock_await('m');
		PERFORM pg_advisory_unlock_all(); END $$})
{
	foreach my $level ('read committed', 'repeatable read', 'serializable')
	{
		$waiter->query_safe("SET default_transaction_isolation = '$level'");
		$holder->query_safe(q{SELECT ddb_lock_acquire('m')});
		$waiter->send($sql);
		waits_without_snapshot($sql);
		$holder->query_safe('SELECT ddb_lock_release_all()');
		$waiter->result;
		is(held($waiter), 'm session', "$sql, $level");
		$waiter->query_safe('SELECT ddb_lock_release_all()');
	}
}
$waiter->query_safe('RESET default_transaction_isolation; TRUNCATE written');

my $refused = qr/25001: (\w+)\(\) cannot end the transaction in order to wait without a snapshot\nDETAIL:  /;
my $block = qr/It is called in a transaction block, in a function, or in a procedure that is SECURITY DEFINER or has a SET clause\./;
my %refusals = (
	q{BEGIN; CALL ddb_lock_await('m')} => $block,
	q{SELECT 1 \\; CALL ddb_lock_await('m')} => $block,
	q{SELECT in_function()} => $block,
	q{CALL definer()} => $block,
	q{CALL setting()} => $block,
	q{DO $$ BEGIN CALL ddb_lock_await('m'); EXCEPTION WHEN division_by_zero THEN NULL; END $$} =>
		qr/It is called in a block with an EXCEPTION clause\./,
	q{DO $$ BEGIN INSERT INTO written VALUES (1); CALL ddb_lock_await('m'); END $$} =>
		qr/The transaction has written\./,
	q{DO $$ BEGIN PERFORM ddb_xact_lock_acquire('x'); CALL ddb_lock_await('m'); END $$} =>
		qr/The transaction holds lock "x" until it ends\./,
	q{DO $$ BEGIN PERFORM pg_advisory_lock(1), pg_advisory_xact_lock(1); CALL ddb_lock_await('m'); END $$} =>
		qr/The transaction holds an advisory lock until it ends\./,
	q{DO $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1, 2); CALL ddb_lock_await('m'); END $$} =>
		qr/The transaction holds an advisory lock until it ends\./,
	q{DO $$ BEGIN PERFORM FROM written FOR UPDATE; CALL ddb_lock_await('m'); END $$} =>
		qr/The transaction holds RowShareLock on relation "written" until it ends\./,
	(map { my $mode = $_; (qq{DO \$\$ BEGIN LOCK TABLE written IN \U$mode\E MODE; CALL ddb_lock_await('m'); END \$\$} =>
		qr/The transaction holds @{[ join '', map { ucfirst } split ' ', $mode ]}Lock on relation "written" until it ends\./) }
		'row share', 'row exclusive', 'share update exclusive', 'share', 'share row exclusive', 'exclusive'),
);
# LOCK TABLE without a mode is for what cannot even be read: it writes, to tell standbys.
$refusals{q{DO $$ BEGIN LOCK TABLE written; CALL ddb_lock_await('m'); END $$}} =
	qr/The transaction (has written|holds AccessExclusiveLock on relation "written" until it ends)\./;
foreach my $call (map { $_->[0] } @kinds)
{
	$refusals{"BEGIN; CALL $call"} = $block;
}
$waiter->query_safe('SELECT 1');
foreach my $sql (sort keys %refusals)
{
	my $requests = proxy->received('UpdateItem');

	like($waiter->error_of($sql), qr/$refused$refusals{$sql}\n?HINT:  Call it outside of a transaction block, before all else/s, $sql);
	$waiter->ask('ROLLBACK');
	wait_for { is_released('x') } 'x' if $sql =~ /ddb_xact_lock/;
	is(proxy->received('UpdateItem') - $requests, $sql =~ /ddb_xact_lock/ ? 2 : 0, '... sends nothing');
}
is($waiter->query_safe('SELECT count(*) FROM written'), 0, 'nothing is committed');
is(held($waiter), '', '... nor held');

# The extended protocol, prepared, and a pipeline
my $script = $one->basedir . '/await.sql';
sub pgbench
{
	my ($mode, $sql) = @_;

	append_to_file($script, '') unless -e $script;
	open my $file, '>', $script or die $!;
	print $file $sql;
	close $file;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $one->installed_command('pgbench'), '-n', '-M', $mode, '-t', 1, '-f', $script,
		'-h', $one->host, '-p', $one->port, 'postgres' ], '>', \$out, '2>', \$err);
	return $out . $err;
}
foreach my $mode (qw(simple extended prepared))
{
	like(pgbench($mode, "CALL ddb_lock_await('m');\nSELECT 1 / ddb_lock_token('m');\n"),
		qr/number of transactions actually processed: 1\/1/, "protocol $mode");
}
my $pipeline = "\\startpipeline\nINSERT INTO written VALUES (1);\nCALL ddb_lock_await('m');\n\\endpipeline\n";
my $before = -s $one->logfile;
pgbench('extended', $pipeline);		# PostgreSQL 16's does not print the error
like(slurp_file($one->logfile, $before), qr/in order to wait without a snapshot/, 'a pipeline, after another statement');
is($one->safe_psql('postgres', 'SELECT count(*) FROM written'), 0, '... commits nothing');

#
# What ends the wait leaves nothing held
#
$far->query_safe(q{SELECT ddb_lock_acquire('m')});
my %ends = (
	q{CALL ddb_lock_await('m', wait => '100ms')} => qr/55P03: could not acquire lock "m" within 100 ms/,
	q{CALL ddb_lock_await_all('{a,m}', wait => '100ms')} => qr/55P03: could not acquire lock "m" within 100 ms/,
);
like($waiter->error_of($_), $ends{$_}, $_) foreach sort keys %ends;
$waiter->query_safe("SET lock_timeout = '100ms'");
like($waiter->error_of(q{CALL ddb_lock_await('m')}), qr/55P03: canceling statement due to lock timeout/, 'lock_timeout');
$waiter->query_safe("RESET lock_timeout; SET statement_timeout = '100ms'");
like($waiter->error_of(q{CALL ddb_lock_await('m')}), qr/57014: canceling statement due to statement timeout/,
	'statement_timeout');
$waiter->query_safe('RESET statement_timeout');
$waiter->send(q{CALL ddb_lock_await_all('{a,m}')});
waits_without_snapshot('a wait to be cancelled');
$one->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$waiter->result;
like($waiter->messages, qr/57014/, 'cancelled');
is(held($waiter), '', 'nothing is held');
$far->query_safe('SELECT ddb_lock_release_all()');
wait_for { is_released('a') && is_released('m') } 'both locks';

#
# Jobs
#
$waiter->query_safe(q{SELECT ddb_queue_cancel('q', resource, number) FROM ddb_queue_list('q', 'r')});
$waiter->query_safe(q{SELECT ddb_queue_cancel('q', resource, number) FROM ddb_queue_list('q', 's')});
$waiter->query_safe(q{SELECT count(*) FROM ddb_queue_claim('q')});	# uses up what the session has been told
$waiter->send(q{CALL ddb_queue_await('q', wait => '1min')});
waits_without_snapshot('a wait for a job');
$far->query_safe(q{SELECT ddb_queue_push('q', 'r', '"far"')});
is($waiter->result, '', 'another cluster\'s job ends the wait');
my $looks = proxy->received('Query');
is($waiter->query_safe(q{BEGIN; SELECT payload FROM ddb_queue_claim('q')}), '"far"', 'the session claims it');
is(proxy->received('Query'), $looks, '... without another look');
$holder->send(q{CALL ddb_queue_await('q', wait => '3s')});
is($holder->result, '', 'a job whose resource is locked: the wait may end');
is($holder->query_safe(q{SELECT count(*) FROM ddb_queue_claim('q')}), 0, '... the claim finds nothing');
$looks = proxy->received;
$holder->query_safe(q{CALL ddb_queue_await('q', wait => '300ms')});
$waiter->query_safe('ROLLBACK');

#
# ddblock-run
#
$holder->query_safe(q{SELECT ddb_lock_acquire('m')});
my $run = start('run', [ 'ddblock-run', '--wait=1min', 'm', '--', 'true' ],
	env => { PGHOST => $one->host, PGPORT => $one->port, PGDATABASE => 'postgres', PGUSER => user });
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query ~ 'ddb_lock_await\('
	AND backend_xmin IS NULL AND state = 'active'}) } 'ddblock-run, without a snapshot';
$holder->query_safe('CREATE INDEX CONCURRENTLY i ON t (a)');
$holder->query_safe('SELECT ddb_lock_release_all()');
is($run->status, 0, 'ddblock-run waits without a snapshot, too');

done_testing;
