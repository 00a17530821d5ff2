# ddblock-run whose server ends, or answers late: nobody else has the lock before the command
# has ended, and ddblock-run counts the lease from its question.

use DDBLock::Test;
use DDBLock::Tools;
use IO::Select;
use IO::Socket::INET;

my $one = new_cluster('one', conf => "restart_after_crash = on\nlisten_addresses = '127.0.0.1'\n");
my $two = new_cluster('two');
my $far = session($two);
my $dir = PostgreSQL::Test::Utils::tempdir_short();

# A command that works until it is killed; returns when it works.
sub work_under
{
	my ($lock, $port, @options) = @_;
	my $run = start("run_$lock", [ 'ddblock-run', @options, $lock, 'sh', '-c', "trap '' TERM; touch $dir/$lock; while :; do sleep 0.1; done" ],
		env => { PGHOST => '127.0.0.1', PGPORT => $port, PGDATABASE => 'postgres', PGUSER => user, PGOPTIONS => '' });

	wait_for { -e "$dir/$lock" } "the work under $lock";
	return $run;
}

sub is_free
{
	my ($lock) = @_;
	my $got = $far->ask("SELECT ddb_lock_try_acquire('$lock')") eq 't';

	$far->query_safe("SELECT ddb_lock_release('$lock')") if $got;
	return $got;
}

sub taker { my ($lock) = @_; return $one->safe_psql('postgres', "SELECT pid FROM ddb_locks WHERE name = '$lock' AND pid IS NOT NULL"); }

#
# The server ends, or the session does
#
my @ends = (
	[ 'terminated', 'its session is terminated', sub { $one->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") } ],
	[ 'killed', 'a server process is killed', sub { kill 'KILL', $_[0]; recovered($one) } ],
	[ 'immediate', 'an immediate shutdown', sub { $one->stop('immediate'); $one->start } ],
	[ 'fast', 'a fast restart', sub { $one->restart } ]);
foreach (@ends)
{
	my ($lock, $name, $how) = @$_;
	my $run = work_under($lock, $one->port, '--lease=40s');

	$how->(taker($lock));
	is($run->status, 124, "$name: the command is ended") or diag($run->output);
	ok(!is_free($lock), '... the lock is not free before');
}

# ddblock-run is killed: nobody says that the work has ended.
my $killed = work_under('unsaid', $one->port, '--lease=40s');
my $pid = taker('unsaid');
$killed->kill;
wait_for { $one->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") eq '0' } 'the end of its session';
ok(!is_free('unsaid'), 'ddblock-run is killed: the lock is not free');
$one->safe_psql('postgres', q{SELECT ddb_lock_release_detached('unsaid', token) FROM ddb_locks WHERE name = 'unsaid'});
ok(is_free('unsaid'), '... before its lease ends, or somebody says that the work has ended');
wait_for { is_free($_->[0]) } "the end of the lease on $_->[0]" foreach @ends;

# ddb_lock_outlive() itself
my $worker_session = session($one);
like($worker_session->error_of(q{SELECT ddb_lock_outlive('o')}), qr/LK001: lock "o" is not held/, 'who does not hold the lock cannot ask for it');
$worker_session->query_safe(q{SELECT ddb_lock_acquire_shared('o')});
like($worker_session->error_of(q{SELECT ddb_lock_outlive('o')}), qr/0A000: lock "o" cannot outlive this session.*shared/s, 'nor who shares it');
$worker_session->query_safe(q{SELECT ddb_lock_release('o')});
$worker_session->query_safe(q{SELECT ddb_lock_acquire('o', lease => '20s')});
is($worker_session->ask(q{SELECT ddb_lock_outlive('o')}), '00:00:20', 'it returns the length of the lease');
$worker_session->query_safe(q{SELECT ddb_lock_renew('o', '10s')});
is($worker_session->ask(q{SELECT ddb_lock_outlive('o')}), '00:00:20', '... or the longest that it has returned');
like($worker_session->error_of(q{SELECT ddb_lock_detach('o', '1h')}), qr/55000: lock "o" is detached already/, 'such a lock cannot be detached');
is($worker_session->ask(q{SELECT ddb_lock_release('o')}), 't', 'it is released');
ok(is_free('o'), '... and free');
$worker_session->quit;

#
# The network gets slow
#
sub slow_network
{
	my ($port, $delay) = @_;
	my $door = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 10) or die "listen: $!\n";
	my $parent = $$;
	my $pid = fork() // die "fork: $!\n";
	my ($slow, %other, @late);

	return ($door->sockport, $pid) if $pid;
	$SIG{USR1} = sub { $slow = 1 };
	while (getppid() == $parent)
	{
		foreach my $socket (IO::Select->new($door, map { $_->[0] } values %other)->can_read(0.05))
		{
			if ($socket == $door)
			{
				my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "connect: $!\n";
				my $client = $door->accept;

				%other = (%other, $client => [ $client, $server ], $server => [ $server, $client ]);
			}
			elsif (my $pair = $other{$socket})
			{
				if (sysread $socket, my $bytes, 65536)
				{
					push @late, [ Time::HiRes::time() + ($slow ? $delay : 0), $pair->[1], $bytes ];
				}
				else { $_->shutdown(2), delete $other{$_} foreach @$pair }
			}
		}
		while (@late && $late[0][0] <= Time::HiRes::time())
		{
			my (undef, $to, $bytes) = @{ shift @late };

			syswrite $to, $bytes;
		}
	}
	POSIX::_exit(0);
}
my ($port, $network) = slow_network($one->port, 3);
my $run = work_under('slow', $port, '--lease=24s');
kill 'USR1', $network;
kill 'STOP', my $worker = worker_pid($one);	# the lease is not renewed any more
my $left = $one->safe_psql('postgres', q{SELECT extract(epoch FROM time_left) FROM ddb_locks WHERE name = 'slow' AND NOT joined});
my $end = Time::HiRes::time() + $left;
is($run->status, 124, 'the network is slow, and the lease is not renewed') or diag($run->output);
like($run->output, qr/lock "slow" is lost: its lease was not renewed in time/, '... it says why');
cmp_ok(Time::HiRes::time(), '<', $end, '... the command is ended before the lease');
kill 'CONT', $worker;
kill 'KILL', $network;
waitpid $network, 0;
wait_for { is_free('slow') } 'the end of the lease';

$far->quit;
nothing_held_ok;
done_testing;
