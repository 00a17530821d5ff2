# ddblock-run: commands under a lock, and what becomes of them when it is lost.

use DDBLock::BlackHole;
use DDBLock::Test;
use DDBLock::Tools;
use IO::Pty;
use IO::Select;
use IO::Socket::INET;

my $one = new_cluster('one', conf => "restart_after_crash = on\nlisten_addresses = '127.0.0.1'\n");
my $two = new_cluster('two', through => proxy);
my $far = session($two);
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $runs = 0;

$one->safe_psql('postgres', 'CREATE TABLE t (i int); CREATE ROLE stranger LOGIN');

my %environment = (PGHOST => $one->host, PGPORT => $one->port, PGDATABASE => 'postgres', PGUSER => user, PGOPTIONS => '');
sub launch { my ($command, %env) = @_; return start('run_' . ++$runs, $command, env => { %environment, %env }); }
sub run { my (@arguments) = @_; return launch([ 'ddblock-run', @arguments ]); }
sub run_with { my ($env, @arguments) = @_; return launch([ 'ddblock-run', @arguments ], %$env); }
sub is_free { my ($name) = @_;
	my $got = $far->ask("SELECT ddb_lock_try_acquire('$name')");
	$far->query_safe("SELECT ddb_lock_release('$name')") if $got eq 't';
	return $got eq 't'; }
sub waiting { my ($file) = @_;
	return "touch $dir/$file; until [ -e $dir/$file.go ]; do sleep 0.05; done"; }
sub begun { my ($file) = @_; wait_for { -e "$dir/$file" } "the beginning of $file"; return; }
# The server process of ddblock-run that has taken the lock
sub taker { my ($name) = @_;
	return $one->safe_psql('postgres', "SELECT pid FROM ddb_locks WHERE name = '$name' AND state = 'held' AND NOT joined"); }
# Sessions that have joined, apart from the one with which ddblock-run has tried it
sub joined { my ($name) = @_;
	return $one->safe_psql('postgres', "SELECT count(*) FROM ddb_locks JOIN pg_stat_activity USING (pid)
		WHERE name = '$name' AND joined AND application_name <> 'ddblock-run'"); }
sub go { my ($file) = @_; write_file("$dir/$file.go", ''); return; }

sub status_ok { my ($run, $status, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($run->status, $status, $name) or diag($run->output);
	return; }

#
# The command's status, environment, arguments
#
my $run = run('a', 'sh', '-c', 'psql -XAtc "SELECT ddb_lock_require(\'a\') = $DDBLOCK_TOKEN, current_setting(\'ddblock.join_locks\') = \'$DDBLOCK_JOIN\'"');
status_ok($run, 0, 'a command runs, and succeeds');
is($run->output, "t|t\n", 'its session has joined the lock');
ok(is_released('a'), 'the lock is released');
status_ok(run('a', '--', 'sh', '-c', 'exit 7'), 7, 'a command fails');
status_ok(run('a', 'sh', '-c', 'kill -9 $$'), 137, 'a command is killed');
status_ok(run('a', '/nowhere'), 127, 'a command is not there');
status_ok(run('a', $dir), 126, 'a command cannot be run');
status_ok(run('--lease=1s', 'a', 'true'), 125, 'a lease is too short');
status_ok(run('--wait=', 'a', 'true'), 125, 'a wait is empty');
status_ok(run('a'), 125, 'a command is missing');
status_ok(run('--nothing', 'a', 'true'), 125, 'an unknown option');
status_ok(run('--dbname=nowhere', 'a', 'true'), 125, 'no such database');
status_ok(run('--dbname=template1', 'a', 'true'), 125, 'a database without the extension');
$run = run('a', '-l', '10s', '-w', '5s', '--', 'psql', '-XAtc', q{SELECT lease FROM ddb_locks WHERE joined});
status_ok($run, 0, 'options after the name');
is($run->output, "00:00:10\n", 'are options');
$run = run('a b,%', 'psql', '-XAtc', q{SELECT name FROM ddb_locks WHERE joined});
status_ok($run, 0, 'a name with a space, a comma and a percent sign');
is($run->output, "a b,%\n", 'is joined');
foreach ([ '--help' ], [ '-?' ], [ 'a', '--help' ], [ '--', 'a', '-?' ])
{
	$run = run(@$_);
	status_ok($run, 0, "@$_");
	like($run->output, qr/^ddblock-run runs a command.*cannot be run, is not found\.\n\z/s, '... helps, and says nothing else');
}
my $options = sub { return join ' ', sort $_[0] =~ /^(?:\.BR|  ) ?-\S,[ ",]+(--[a-z-]+)/mg };
is($options->(slurp_file('src/client/ddblock-run.1') =~ s/\\-/-/gr =~ s/^(\.BR -.) ",/$1,/gmr), $options->($run->output), 'the manual page has its options');
# Which word is the name, and which the command?
foreach ([ qw(-- a -- echo -n x) ], [ qw(-- a echo -n x) ], [ qw(a -- echo -n x) ], [ qw(a echo -n x) ],
	[ qw(-l 10s -- a -- echo -n x) ], [ qw(-- a -l 10s -- echo -n x) ], [ qw(--lease 10s a --wait 5s echo -n x) ],
	[ qw(-l10s -- a -w5s -- echo -n x) ])
{
	$run = run(@$_);
	status_ok($run, 0, "@$_");
	is($run->output, 'x', '... runs echo');
}
$run = run(qw(a -- echo -- x));
status_ok($run, 0, 'a -- echo -- x');
is($run->output, "-- x\n", '... leaves the command its own');
foreach ([ qw(-- a --) ], [ qw(-- a) ], [ qw(--) ], [ qw(a -l) ], [ qw(-- a --nothing true) ])
{
	$run = run(@$_);
	status_ok($run, 125, "@$_");
	like($run->output, qr/^(\S*\/)?ddblock-run: .*Try "ddblock-run --help"/s, '... says what is wrong');
}

#
# Busy
#
$far->query_safe(q{SELECT ddb_lock_acquire('a')});
status_ok(run('-n', 'a', 'true'), 1, 'a lock is not free');
status_ok(run('-n', '-E', '9', 'a', 'true'), 9, 'the status for that');
status_ok(run('--wait=1s', '--conflict-exit-code=8', 'a', 'true'), 8, 'a lock is not free in time');
$run = run('a', 'true');
wait_for_waiters($one, 'a', 1);
$far->query_safe(q{SELECT ddb_lock_release('a')});
status_ok($run, 0, 'a lock is free in time');
$far->query_safe(q{SELECT ddb_lock_acquire('a')});
$run = run('a', 'true');
wait_for_waiters($one, 'a', 1);
$run->kill;
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE name = 'a'}) eq '0' }
	'the server finds that who waited was killed';
$far->query_safe(q{SELECT ddb_lock_release('a')});

#
# Closed descriptors: no message goes into the connection
#
$far->query_safe(q{SELECT ddb_lock_acquire('a')});
foreach my $redirections ('2>&-', '<&- >&- 2>&-')
{
	my $at = -s $one->logfile;

	status_ok(launch([ 'sh', '-c', "exec ddblock-run -n a true $redirections" ]), 1, "$redirections: a lock is not free");
	$run = launch([ 'sh', '-c', "exec ddblock-run a sh -c 'readlink /proc/self/fd/2 >$dir/closed' $redirections" ],
		PGOPTIONS => '-c log_lock_waits=on -c deadlock_timeout=100ms');
	wait_for { slurp_file($one->logfile, $at) =~ /still waiting for lock "a"/ } 'a message while it waits';
	$far->query_safe(q{SELECT ddb_lock_release('a')});
	status_ok($run, 0, '... a lock is free in time');
	is(slurp_file("$dir/closed"), "/dev/null\n", '... the command has a descriptor for messages');
	unlike(slurp_file($one->logfile, $at), qr/protocol|frontend message/, '... no message goes into the connection');
	$far->query_safe(q{SELECT ddb_lock_acquire('a')});
}
$far->query_safe(q{SELECT ddb_lock_release('a')});

#
# Nested
#
$run = run('a', 'ddblock-run', 'b', 'ddblock-run', 'a', 'psql', '-XAtc',
	q{SELECT string_agg(name, ' ' ORDER BY name), current_setting('ddblock.join_locks') ~ '^\d+:a,\d+:b$' FROM ddb_locks WHERE joined AND pid = pg_backend_pid()});
status_ok($run, 0, 'nested runs');
is($run->output, "a b|t\n", 'add to what is joined, and name nothing twice');
ok(is_released($_), "$_ is released") foreach qw(a b);

#
# Sessions that outlive the command
#
$run = run('a', 'sh', '-c', "(psql -Xc 'SELECT 1' -c '\\! " . waiting('late') . "' </dev/null >/dev/null 2>&1 &) ; sleep 0.1; until [ -e $dir/late ]; do sleep 0.1; done");
begun('late');
wait_for { $run->output =~ /waiting for sessions that have joined lock "a": processes \d+/ } 'ddblock-run says that it waits';
ok($run->running, 'ddblock-run waits for sessions that have joined the lock');
ok(!is_free('a'), 'the lock is held');
go('late');
status_ok($run, 0, 'when they have gone, it ends');

#
# Signals
#
$run = run('a', 'sh', '-c', waiting('signal'));
begun('signal');
kill 'TERM', $run->{pid};
status_ok($run, 143, 'a signal goes on to the command');
wait_for { is_released('a') } 'the release';

$run = run('a', 'sh', '-c', "touch $dir/stopped; kill -STOP \$\$; sleep 60");
begun('stopped');
wait_for { grep { $_ eq 'T' } values %{ children_of($run->{pid}) } } 'a command that has stopped';
kill 'TERM', $run->{pid};
status_ok($run, 143, 'a signal ends a command that has stopped, too');
wait_for { is_released('a') } 'the release';

# ddblock-run is killed: its command, too; the session that has joined goes on.
my $gate = session($one);
$gate->query_safe('SELECT pg_advisory_lock(1)');
$run = run('--lease=6s', 'a', 'sh', '-c', "touch $dir/killed; psql -Xc 'INSERT INTO t SELECT 1 FROM pg_advisory_xact_lock(1)'; touch $dir/survived");
begun('killed');
wait_for { joined('a') eq '1' } 'the session that joins';
$run->kill;
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE NOT joined AND pid IS NOT NULL}) eq '0' } 'the end of its session';
ok(!is_free('a'), 'ddblock-run is killed: the session that has joined keeps the lock');
$gate->quit;
wait_for { is_released('a') } 'the end of that session';
ok(!-e "$dir/survived", 'the command was killed');

# Whoever starts it ignores the end of children
status_ok(launch([ 'perl', '-e', '$SIG{CHLD} = "IGNORE"; exec @ARGV', 'ddblock-run', 'a', 'sh', '-c', 'exit 7' ]), 7,
	'SIGCHLD is ignored: it sees the end of the command');

#
# The terminal: who reads it, Ctrl-Z, Ctrl-C
#
sub on_terminal
{
	my ($command, @dialog) = @_;
	my $terminal = IO::Pty->new;
	my $pid = fork() // die "fork: $!\n";
	my $output = '';

	if ($pid == 0)
	{
		$terminal->make_slave_controlling_terminal;
		open STDIN, '<&', $terminal->slave;
		open STDOUT, '>&', $terminal->slave;
		open STDERR, '>&', $terminal->slave;
		close $terminal;
		@ENV{ keys %environment } = values %environment;
		exec @$command or POSIX::_exit(127);
	}
	$terminal->close_slave;
	while (my ($awaited, $typed) = splice @dialog, 0, 2)
	{
		my $deadline = Time::HiRes::time() + 30;
		my $found;

		until ($found = $output =~ s/.*?$awaited//s)
		{
			last unless IO::Select->new($terminal)->can_read($deadline - Time::HiRes::time());
			sysread $terminal, $output, 4096, length $output or last;
		}
		ok($found, "... $awaited") or diag($output), last;
		print $terminal $typed if defined $typed;
		$terminal->flush;
	}
	close $terminal;			# SIGHUP for who is left
	kill 'KILL', $pid;
	waitpid $pid, 0;
	return;
}
note('on a terminal');
on_terminal([ 'sh', '-c', 'ddblock-run a sh -c "echo begun; read x; echo command: \$x"; read x; echo script: $x' ],
	qr/begun/, "one\n", qr/command: one/, "two\n", qr/script: two/);
on_terminal([ 'sh', '-c', 'ddblock-run a sh -c "echo begun; read x; echo command: \$x"; echo status $?' ],
	qr/begun/, "\cZ", qr/\^Z/, "one\n", qr/command: one/, undef, qr/status 0/);
# noflsh: at Ctrl-C, the terminal throws away what has been written.  exec: dash forgets a
# Ctrl-C that comes while it starts a program.
on_terminal([ 'sh', '-c', 'stty noflsh; ddblock-run a sh -c "echo begun; exec sleep 100"; echo status $?' ],
	qr/begun/, "\cC", qr/status 130/);
wait_for { is_released('a') } 'the release';

#
# Settings that the command's sessions do not have
#
write_file("$dir/services", "[shop]\noptions=-c work_mem=8MB\n");
foreach ([ 'a service with options', { PGSERVICE => 'shop', PGSERVICEFILE => "$dir/services" } ],
	[ 'a connection string with options', {}, '--dbname=options=-cwork_mem=8MB' ])
{
	my ($name, $env, @options) = @$_;

	$run = run_with($env, @options, 'a', 'touch', "$dir/unguarded");
	status_ok($run, 125, "$name takes the place of PGOPTIONS: nothing runs");
	like($run->output, qr/does not join the lock: "options" in the connection string/, '... it says why');
}
ok(!-e "$dir/unguarded", '... nothing has run');
$run = run_with({ PGOPTIONS => '-c work_mem=8MB' }, 'a', 'psql', '-XAtc', q{SELECT current_setting('work_mem'), ddb_lock_require('a') > 0});
status_ok($run, 0, 'PGOPTIONS has other settings');
is($run->output, "8MB|t\n", '... which stay');

# A pool answers as PgBouncer does: the message's length, severity, SQLSTATE, text
my $pool = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die "no pool: $!";
my $refusal = "SFATAL\0C08P01\0Munsupported startup parameter: options\0\0";
$run = run_with({ PGHOST => '127.0.0.1', PGPORT => $pool->sockport, PGSSLMODE => 'disable', PGGSSENCMODE => 'disable' }, 'a', 'true');
my $client = $pool->accept;
sysread $client, my $startup, 4096;
print {$client} pack('aN', 'E', 4 + length $refusal), $refusal;
close $client;
status_ok($run, 125, 'PgBouncer refuses PGOPTIONS');
like($run->output, qr/unsupported startup parameter: options\nddblock-run: PgBouncer does not pass on PGOPTIONS,.*connect to the server itself/,
	'... it says what to do');
close $pool;

# While it waits for the lock
$far->query_safe(q{SELECT ddb_lock_acquire('a')});
$run = run_with({ PGUSER => 'stranger' }, 'a', 'true');
status_ok($run, 125, 'a role without privileges does not wait for the lock');
like($run->output, qr/permission denied for view ddb_locks/, '... it says why');
# Each time-out of sessions, as a role has them; when idle, ours is silent for 2 s.
my @timeouts = split / /, $one->safe_psql('postgres', q{SELECT string_agg(name, ' ') FROM pg_settings
	WHERE name ~ '_timeout$' AND context IN ('user', 'superuser')});
cmp_ok(scalar @timeouts, '>=', 5, "time-outs: @timeouts");
$one->safe_psql('postgres', join ';', 'CREATE ROLE hasty SUPERUSER LOGIN',
	map { "ALTER ROLE hasty SET $_ = " . (/idle/ ? 1500 : 2000) } @timeouts);
$run = run_with({ PGUSER => 'hasty' }, 'a', 'sh', '-c', 'sleep 3');
wait_for_waiters($one, 'a', 1);
wait_for
{
	$one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks l JOIN pg_stat_activity a USING (pid)
		WHERE l.state = 'waiting' AND a.query_start < clock_timestamp() - interval '3 s'}) == 1
}
'a wait that is longer than each time-out';
$far->query_safe(q{SELECT ddb_lock_release('a')});
status_ok($run, 0, 'time-outs do not concern it');

#
# Losses
#
my $gone = qr/server closed the connection unexpectedly|terminating connection/;
sub lost_ok { my ($name, $how, $why, $seconds, @options) = @_;
	my $file = "lost_$runs";
	my $run = run(@options, 'a', 'sh', '-c', "trap '' TERM; " . waiting($file));
	my $began;
	my $took;
	my $pid;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	begun($file);
	$pid = taker('a');
	$began = Time::HiRes::time();
	$how->($pid);
	status_ok($run, 124, $name);
	$took = Time::HiRes::time() - $began;
	like($run->output, qr/lock "a" is lost: $why.*\nddblock-run: ending the command/, '... it says why');
	cmp_ok($took, '<', $seconds, '... in time');
	note(sprintf "$name: ended after %.1f s", $took);
	return; }

# Less than the deadline: a third of the lease or 2 s until it learns of it, and a tenth to end
my @loss = (qr/the server does not hold it any more|The lease on lock/, 10.8, '--lease=12s');
lost_ok('the item is deleted', sub { dynamodb->delete_item('a') }, @loss);
lost_ok('the lock is released by force', sub { $two->safe_psql('postgres', q{SELECT ddb_lock_force_release('a')}) }, @loss);
lost_ok('its session is terminated', sub { $one->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") }, $gone, 10);
lost_ok('a server process is killed', sub { kill 'KILL', $_[0] }, $gone, 10);
recovered($one);
wait_for { is_free('a') } 'the journal, or the end of the lease';

# The server does not answer: ended before the deadline, so that nobody else has it.
my @stopped;
my @silent = (qr/its lease was not renewed in time/, 12, '--lease=12s');
sub stop { push @stopped, @_; kill 'STOP', @_; return; }
sub continue_all { kill 'CONT', splice @stopped; wait_for { is_free('a') } 'the end of the lease'; return; }
lost_ok('the server stands still', sub { stop($_[0], worker_pid($one)) }, @silent);
continue_all;
# It believes for no longer than the server keeps its connection
my $helper = session($one);
lost_ok('a session has made the lease longer', sub {
	my ($pid) = @_;
	my $token = $one->safe_psql('postgres', "SELECT token FROM ddb_locks WHERE pid = $pid");

	$helper->query_safe("SELECT ddb_lock_join('a', $token), ddb_lock_renew('a', '2h')");
	my $renewed = $one->safe_psql('postgres', 'SELECT clock_timestamp()');
	wait_for
	{
		$one->safe_psql('postgres', "SELECT state = 'idle' AND query_start > '$renewed'
			FROM pg_stat_activity WHERE pid = $pid") eq 't'
	}
	'a look of ddblock-run at the longer lease';
	stop($pid);
}, $silent[0], 16, '--lease=6s');
$helper->quit;
continue_all;

# After the end of the command: a session that it has left behind holds the lock.
sub left_behind { my ($file, @program) = @_;
	my $session = "psql -Xc 'SELECT 1' -c '\\! " . waiting($file) . "' </dev/null >/dev/null 2>&1 &";
	my $run = launch([ @program, 'a', 'sh', '-c', "$session until [ -e $dir/$file ]; do sleep 0.1; done; exit 7" ]);

	begun($file);
	wait_for { grep { $_ eq 'Z' } values %{ children_of($run->{pid}) } } 'the end of the command';
	wait_for { joined('a') eq '1' } 'the session that is left';
	return $run; }
$run = left_behind('left_silent', 'ddblock-run', '--lease=12s');
my $began = Time::HiRes::time();
stop(taker('a'));
status_ok($run, 124, 'the server stands still when the command has ended');
like($run->output, qr/lock "a" is lost: its lease was not renewed in time\n/, '... it says why');
cmp_ok(Time::HiRes::time(), '<', $began + 12, '... before the lease ends');
wait_for { joined('a') eq '0' } 'the end of what the command has left';
continue_all;

$run = left_behind('left_signal', 'ddblock-run', '--lease=10s');
stop(my $pid = taker('a'));
Time::HiRes::sleep(0.3);		# it has asked
kill 'TERM', $run->{pid};
status_ok($run, 143, 'a signal ends the waiting');
unlike($run->output, qr/is lost/, '... nothing is lost');
like($run->output, qr/a signal has ended the waiting/, '... it says so');
go('left_signal');
continue_all;

$run = left_behind('left_nohup', 'nohup', 'ddblock-run', '--lease=10s');
kill 'HUP', $run->{pid};
Time::HiRes::sleep(0.3);
go('left_nohup');
status_ok($run, 7, 'a signal that nohup ignores does not end the waiting');

$run = run('--lease=10s', 'a', 'sh', '-c', waiting('unconfirmed'));
begun('unconfirmed');
stop(worker_pid($one));
go('unconfirmed');
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%ddb_lock_release(%' AND state = 'active' AND pid <> pg_backend_pid()}) eq '1' }
	'the release';
kill 'TERM', $run->{pid};
status_ok($run, 0, 'a signal ends the release: the status of the command');
like($run->output, qr/the server has not confirmed that lock "a" is released/, '... it says so');
continue_all;

#
# A connection that breaks without a word.  The server must keep it for longer than
# ddblock-run believes, but not for ever.
#

# When the server asks a silent client: the timer of its socket, as the kernel shows it
sub keepalive { my ($client_port) = @_;
	my ($timer) = slurp_file('/proc/net/tcp') =~
	  /^\s*\d+: 0100007F:@{[ sprintf '%04X', $one->port ]} 0100007F:@{[ sprintf '%04X', $client_port ]} 01 \S+ 02:([0-9A-F]+)/m;
	return defined $timer ? hex($timer) / 100 : -1; }
$far->query_safe(q{SELECT ddb_lock_acquire('long')});
$run = run_with({ PGHOST => '127.0.0.1' }, '--lease=1h', 'long', 'sh', '-c', waiting('long')
	  . '; for i in tcp_user_timeout tcp_keepalives_idle tcp_keepalives_interval; do psql -XAtc "SHOW $i"; done');
wait_for_waiters($one, 'long', 1);
my $port = $one->safe_psql('postgres', "SELECT client_port FROM pg_stat_activity JOIN ddb_locks USING (pid) WHERE name = 'long'");
wait_for { keepalive($port) > 0 } 'the timer of the connection that waits';
cmp_ok(keepalive($port), '<', 21, 'while it waits, the server asks a silent client soon, however long the lease');
$far->query_safe(q{SELECT ddb_lock_release('long')});
begun('long');
wait_for { keepalive($port) > 21 } 'the timer of the connection';
cmp_ok(keepalive($port), '>', 3600, 'the server does not ask a silent client for more than the lease');
cmp_ok(keepalive($port), '<', 3611, '... but soon after');
go('long');
status_ok($run, 0, '... a long lease');
like($run->output, qr/^3610000\n3610\n10\n\z/m, "... the server keeps the command's sessions as long");
$run = run_with({ PGHOST => '127.0.0.1', PGOPTIONS => '-c tcp_user_timeout=7s' }, 'a', 'psql', '-XAtc', 'SHOW tcp_user_timeout');
status_ok($run, 0, '... PGOPTIONS');
is($run->output, "7000\n", '... may say otherwise');

my $hole = DDBLock::BlackHole->new($one->port);
my $lonely = run_with({ PGHOST => '127.0.0.1', PGPORT => $hole->port }, '--lease=20s', 'hole', 'sh', '-c', waiting('hole'));

$far->query_safe(q{SELECT ddb_lock_acquire('vanished')});
my $waiter = run_with({ PGHOST => '127.0.0.1', PGPORT => $hole->port }, 'vanished', 'touch', "$dir/vanished");
wait_for_waiters($one, 'vanished', 1);
begun('hole');
my $broken_at = Time::HiRes::time();
$hole->break;
status_ok($lonely, 124, 'the network breaks without a word');
like($lonely->output, qr/lock "hole" is lost: its lease was not renewed in time\n/, '... it says why');
cmp_ok(Time::HiRes::time(), '<', $broken_at + 20, '... before the end of the lease');
ok(!is_free('hole'), '... the server has not released the lock');
wait_for { is_free('hole') } 'the end of the broken connection';
cmp_ok(Time::HiRes::time(), '>', $broken_at + 20, '... before ddblock-run has ended the command');
cmp_ok(Time::HiRes::time(), '<', $broken_at + 90, '... the server gives it up in the end');
# Nobody would work with the lock that the session gets.
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE name = 'vanished'}) eq '0' }
	'the server finds that who waits has vanished';
pass('who waits vanishes: its session does not wait for the lock any more');
status_ok($waiter, 125, '... nor does ddblock-run');
ok(!-e "$dir/vanished", '... which has run nothing');
$far->query_safe(q{SELECT ddb_lock_release('vanished')});
$hole->stop;

$far->quit;
nothing_held_ok;
done_testing;
