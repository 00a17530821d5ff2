# PgBouncer in its three modes: which locks hold there, and which do not.

use DDBLock::Test;
use DDBLock::Tools;

plan skip_all => 'PgBouncer is missing' unless system('pgbouncer --version >/dev/null 2>&1') == 0;

my ($one, $two) = work_clusters();
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $db;

sub client
{
	my ($pool, $name, @sql) = @_;
	return start($name, [ 'psql', '-XAt', '-v', 'ON_ERROR_STOP=1', '-d', "$pool->{url}/$db", map { ('-c', $_) } @sql ]);
}

my $acquire = q{SELECT ddb_lock_acquire('migrate/shop', wait => '10min') > 0};
my $await = q{CALL ddb_lock_await('migrate/shop', wait => '10min')};
my $try = q{SELECT ddb_lock_try_acquire('migrate/shop')};
my $xact = "BEGIN;\n" . snippet('PgBouncer', 'sql') . 'SELECT work(\'job\'); COMMIT';

# Work through pools of both clusters, then clients, pools and backends that are killed
sub mode_ok
{
	my ($mode, @sql) = @_;
	my ($run, $other, $pid);
	my ($first, $second) = map { bouncer($_, $mode) } $one, $two;

	$db = new_shop("${mode}_both");
	my @runs = map { client($_, "${mode}_both_" . $_->name . '_1', @sql), client($_, "${mode}_both_" . $_->name . '_2', @sql) } $first, $second;
	is($_->status, 0, "$mode pooling: four clients") or diag($_->output) foreach @runs;
	apart_ok([ work($one, "$db job") ], [ work($two, "$db job") ], "$mode pooling, four clients");

	foreach my $victim (qw(client pool backend))
	{
		$db = new_shop("${mode}_$victim");
		hold($one, $db);
		$run = client($first, "${mode}_${victim}_1", @sql);
		$pid = wait_for_work($one, "$db job");
		$other = client($second, "${mode}_${victim}_2", @sql);
		wait_for_waiters($two, 'migrate/shop', 1);
		$run->kill if $victim eq 'client';
		$first->{run}->kill if $victim eq 'pool';
		kill 'KILL', $pid if $victim eq 'backend';
		isnt($run->status, 0, "$mode pooling, the $victim is killed");
		still_waits_ok($one, $two, $db) if $victim ne 'backend';
		let_go($one, $db);
		wait_for_work($two, "$db job");
		is($other->status, 0, '... a client of the other cluster succeeds') or diag($other->output);
		apart_ok([ work($one, "$db job") ], [ work($two, "$db job") ], '...');
		$first = bouncer($one, $mode) if $victim eq 'pool';
	}
	recovered($one);
	return ($first, $second);
}

# Session pooling
my ($pool, $far) = mode_ok('session', $await, q{SELECT work('job')});
$db = new_shop('forgotten');
is(client($pool, 'forgotten', $await)->status, 0, 'session pooling: a client forgets a lock');
wait_for { client($far, 'found', $try)->status == 0 && is_released('migrate/shop') } 'its release';
pass('... DISCARD ALL releases it');

# ddblock-run: the pool passes on no options, so nothing runs that would not join.
$db = new_shop('command');
foreach (['application_name_add_host = 0', qr/unsupported startup parameter/], ['ignore_startup_parameters = options', qr/does not join the lock/])
{
	my ($line, $why) = @$_;
	my $command = bouncer($one, 'session', size => 9, conf => $line);
	my $run = start("command_$command->{run}{pid}", [ 'ddblock-run', '-d', "$command->{url}/$db", 'migrate/shop', 'touch', "$dir/unguarded" ]);

	is($run->status, 125, "session pooling, $line: ddblock-run refuses") or diag($run->output);
	like($run->output, $why, '... it says why');
	$run = start("direct_$command->{run}{pid}", [ 'ddblock-run', '-d', url($one, $db, 'postgresql'), 'migrate/shop', 'sh', '-c',
			qq{PGOPTIONS= psql -XAt -v ON_ERROR_STOP=1 -d '$command->{url}/$db' -c "SELECT ddb_lock_join('migrate/shop', \$DDBLOCK_TOKEN)" -c "SELECT ddb_lock_require('migrate/shop') = \$DDBLOCK_TOKEN"} ],
		env => { PGOPTIONS => '' });
	is($run->status, 0, '... connected directly, with ddb_lock_join() in the session, it works') or diag($run->output);
	like($run->output, qr/^t$/m, '... the session has joined');
	$command->{run}->kill;
}
ok(!-e "$dir/unguarded", '... nothing has run');

# Transaction pooling
($pool, $far) = mode_ok('transaction', $xact);
$db = new_shop('two_clients');
my @clients = map { session($pool, $db) } 1, 2;
is($clients[0]->query_safe($try), 't', 'transaction pooling: a client takes a session-scoped lock');
is($clients[1]->query_safe($try), 't', '... and so does another client, at the same time');
$_->quit foreach @clients;
my $late = client($far, 'late', $try);
$late->status;
is($late->output, "f\n", '... and when both have gone, the lock is still held');
$_->{run}->kill foreach $pool, $far;
wait_for { is_released('migrate/shop') } 'the end of the server connection';
pass('... until the server connection ends');

# Statement pooling
my $one_statement = snippet('PgBouncer', 'sql', 2);
$one_statement =~ s/run_nightly\(\)/work('job')/ or die "the page has another statement\n";
$one_statement =~ s/'nightly'/'migrate\/shop'/ or die "the page has another lock\n";
($pool, $far) = mode_ok('statement', $one_statement);
$db = new_shop('statements');
my $block = client($pool, 'block', 'BEGIN', $acquire, 'COMMIT');
isnt($block->status, 0, 'statement pooling: no transactions');
like($block->output, qr/transaction blocks not allowed/, '... as it says');
is(client($pool, 'gone', q{SELECT ddb_xact_lock_acquire('migrate/shop')})->status, 0, '... a transaction-scoped lock');
wait_for { is_released('migrate/shop') } 'the end of the statement';
pass('... ends with its statement');
$_->{run}->kill foreach $pool, $far;

nothing_held_ok;
done_testing;
