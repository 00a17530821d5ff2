# ddblock-run: commands under a lock, and what becomes of them when it is lost.

use DDBLock::Test;
use DDBLock::Tools;

my $one = new_cluster('one', conf => "restart_after_crash = on\n");
my $two = new_cluster('two', through => proxy);
my $far = session($two);
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $runs = 0;

$one->safe_psql('postgres', 'CREATE TABLE t (i int)');

sub environment { my ($node) = @_;
	return (PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', PGUSER => user, PGOPTIONS => ''); }
sub run_in { my ($node, @arguments) = @_;
	return start('run_' . ++$runs, [ 'ddblock-run', @arguments ], env => { environment($node) }); }
sub is_free { my ($name) = @_;
	my $got = $far->ask("SELECT ddb_lock_try_acquire('$name') IS NOT NULL");
	$far->query_safe("SELECT ddb_lock_release('$name')") if $got eq 't';
	return $got eq 't'; }
sub waiting { my ($file) = @_;
	return "touch $dir/$file; until [ -e $dir/$file.go ]; do sleep 0.05; done"; }
sub begun { my ($file) = @_; wait_for { -e "$dir/$file" } "the beginning of $file"; return; }
sub go { my ($file) = @_; write_file("$dir/$file.go", ''); return; }

sub status_ok { my ($run, $status, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($run->status, $status, $name) or diag($run->output);
	return; }

#
# The command's status, environment, arguments
#
my $run = run_in($one, 'a', 'sh', '-c', 'psql -XAtc "SELECT ddb_lock_require(\'a\') = $DDBLOCK_TOKEN, current_setting(\'ddblock.join\') = \'$DDBLOCK_JOIN\'"');
status_ok($run, 0, 'a command runs, and succeeds');
is($run->output, "t|t\n", 'its session has joined the lock');
ok(is_released('a'), 'the lock is released');
status_ok(run_in($one, 'a', '--', 'sh', '-c', 'exit 7'), 7, 'a command fails');
status_ok(run_in($one, 'a', 'sh', '-c', 'kill -9 $$'), 137, 'a command is killed');
status_ok(run_in($one, 'a', '/nowhere'), 127, 'a command is not there');
status_ok(run_in($one, 'a', $dir), 126, 'a command cannot be run');
status_ok(run_in($one, '--lease=1s', 'a', 'true'), 125, 'a lease is too short');
status_ok(run_in($one, 'a'), 125, 'a command is missing');
status_ok(run_in($one, '--nothing', 'a', 'true'), 125, 'an unknown option');
status_ok(run_in($one, '--dbname=nowhere', 'a', 'true'), 125, 'no such database');
status_ok(run_in($one, '--dbname=template1', 'a', 'true'), 125, 'a database without the extension');
$run = run_in($one, 'a', '-l', '10s', '-w', '5s', '--', 'psql', '-XAtc', q{SELECT lease FROM ddb_locks WHERE joined});
status_ok($run, 0, 'options after the name');
is($run->output, "00:00:10\n", 'are options');
$run = run_in($one, 'a b,%', 'psql', '-XAtc', q{SELECT name FROM ddb_locks WHERE joined});
status_ok($run, 0, 'a name with a space, a comma and a percent sign');
is($run->output, "a b,%\n", 'is joined');
status_ok(run_in($one, '--help'), 0, 'help');

#
# Busy
#
$far->query_safe(q{SELECT ddb_lock_acquire('a')});
status_ok(run_in($one, '-n', 'a', 'true'), 1, 'a lock is not free');
status_ok(run_in($one, '-n', '-E', '9', 'a', 'true'), 9, 'the status for that');
status_ok(run_in($one, '--wait=1s', '--conflict-exit-code=8', 'a', 'true'), 8, 'a lock is not free in time');
$run = run_in($one, 'a', 'true');
wait_for_waiters($one, 'a', 1);
$far->query_safe(q{SELECT ddb_lock_release('a')});
status_ok($run, 0, 'a lock is free in time');
$far->query_safe(q{SELECT ddb_lock_acquire('a')});
$run = run_in($one, 'a', 'true');
wait_for_waiters($one, 'a', 1);
$run->kill;
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE name = 'a'}) eq '0' }
	'the server finds that who waited was killed';
$far->query_safe(q{SELECT ddb_lock_release('a')});

#
# Nested
#
$run = run_in($one, 'a', 'ddblock-run', 'b', 'ddblock-run', 'a', 'psql', '-XAtc',
	q{SELECT string_agg(name, ' ' ORDER BY name), current_setting('ddblock.join') ~ '^\d+:a,\d+:b$' FROM ddb_locks WHERE joined AND pid = pg_backend_pid()});
status_ok($run, 0, 'nested runs');
is($run->output, "a b|t\n", 'add to what is joined, and name nothing twice');
ok(is_released($_), "$_ is released") foreach qw(a b);

#
# Sessions that outlive the command
#
$run = run_in($one, 'a', 'sh', '-c', "(psql -Xc 'SELECT 1' -c '\\! " . waiting('late') . "' </dev/null >/dev/null 2>&1 &) ; sleep 0.1; until [ -e $dir/late ]; do sleep 0.1; done");
begun('late');
wait_for { $run->output =~ /waiting for sessions that have joined lock "a": processes \d+/ } 'ddblock-run says that it waits';
ok($run->running, 'ddblock-run waits for sessions that have joined the lock');
ok(!is_free('a'), 'the lock is held');
go('late');
status_ok($run, 0, 'when they have gone, it ends');

#
# Signals
#
$run = run_in($one, 'a', 'sh', '-c', waiting('signal'));
begun('signal');
kill 'TERM', $run->{pid};
status_ok($run, 143, 'a signal goes on to the command');
wait_for { is_released('a') } 'the release';

# ddblock-run is killed: its command, too; the session that has joined goes on.
$run = run_in($one, 'a', 'sh', '-c', "touch $dir/killed; psql -Xc 'INSERT INTO t SELECT 1 FROM pg_sleep(3)'; touch $dir/survived");
begun('killed');
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE joined}) eq '1' } 'the session that joins';
$run->kill;
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE NOT joined}) eq '0' } 'the end of its session';
ok(!is_free('a'), 'ddblock-run is killed: the session that has joined keeps the lock');
wait_for { is_released('a') } 'the end of that session';
ok(!-e "$dir/survived", 'the command was killed');

#
# Losses
#
sub lost_ok { my ($name, $how, @options) = @_;
	my $file = "lost_$runs";
	my $run = run_in($one, @options, 'a', 'sh', '-c', "trap '' TERM; " . waiting($file));
	my $began;
	my $pid;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	begun($file);
	$pid = (split "\n", $one->safe_psql('postgres', q{SELECT pid FROM ddb_locks WHERE name = 'a'}))[0];
	$began = Time::HiRes::time();
	$how->($pid);
	status_ok($run, 124, $name);
	like($run->output, qr/lock "a" is lost: .*\nddblock-run: ending the command/, '... it says why');
	note("$name: ended after " . since($began));
	return Time::HiRes::time() - $began;
}
cmp_ok(lost_ok('the item is deleted', sub { dynamodb->delete_item('a') }, '--lease=6s'), '<', 10, '... in time');
lost_ok('the lock is released by force', sub { $two->safe_psql('postgres', q{SELECT ddb_lock_force_release('a')}) }, '--lease=6s');
lost_ok('its session is terminated', sub { $one->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
lost_ok('a server process is killed', sub { kill 'KILL', $_[0] });
recovered($one);
wait_for { is_free('a') } 'the journal, or the end of the lease';

# The server does not answer: ended before the deadline, so that nobody else has it.
my @stopped;
cmp_ok(lost_ok('the server stands still', sub {
	@stopped = ($_[0], worker_pid($one));
	kill 'STOP', @stopped;
}, '--lease=6s'), '<', 6, '... before the lease ends');
kill 'CONT', @stopped;
wait_for { is_free('a') } 'the end of the lease';

$far->quit;
nothing_held_ok;
done_testing;
