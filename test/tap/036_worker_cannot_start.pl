# A worker that always fails at its start, here for want of timers: sessions are told, and the log
# is not flooded. It starts as soon as it can, at the latest after a reload.

use DDBLock::Test;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file system_or_bail);

my $dir = PostgreSQL::Test::Utils::tempdir();
append_to_file("$dir/shim.c", <<"SHIM");
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

int
timerfd_create(int clock, int flags)
{
	int			(*real) (int, int) = (int (*) (int, int)) dlsym(RTLD_NEXT, "timerfd_create");

	if (access("$dir/no-timers", F_OK) != 0)
		return real(clock, flags);
	errno = EMFILE;
	return -1;
}
SHIM
system_or_bail('gcc', '-shared', '-fPIC', '-o', "$dir/shim.so", "$dir/shim.c", '-ldl');

my $node = do
{
	local $ENV{LD_PRELOAD} = "$dir/shim.so";
	new_cluster('one', conf => "log_statement = none\nlog_line_prefix = '%n '\n");
};
my $acquire = q{SELECT ddb_lock_acquire('a')};

# When the worker failed, in seconds.
sub failures
{
	my @times = slurp_file($node->logfile)
	  =~ /^([\d.]+) FATAL: +could not create an epoll instance, or its timer: Too many/mg;

	return @times;
}

# Returns the process that waits to start, for longer than a session waits for it.
sub fail_often
{
	my $before = failures();

	append_to_file("$dir/no-timers", '');
	kill 'TERM', worker_pid($node);
	wait_for { failures() >= $before + 6 } 'failing starts';
	my @times = (failures())[ -6 .. -1 ];
	cmp_ok($times[5] - $times[4], '>', $times[1] - $times[0] + 1, 'the pauses between the starts grow');
	return wait_for { my $pid = worker_pid($node); failures() == $before + 6 && $pid } 'the next one';
}

my $pid = fail_often();
like(error_of($node, $acquire), qr/ERROR: +57P03: the ddblock worker is not running/,
	'sessions are told that there is no worker');
unlink "$dir/no-timers";
$node->reload;
like($node->safe_psql('postgres', $acquire), qr/^\d+$/, 'a reload ends the pause');
is(worker_pid($node), $pid, '... of the worker that was waiting');

$pid = fail_often();
unlink "$dir/no-timers";
kill 'TERM', $pid;
like($node->safe_psql('postgres', $acquire), qr/^\d+$/, 'a worker that is told to end ends its pause, too');

my $worker = worker_pid($node);
kill 'TERM', $worker;
wait_for { (worker_pid($node) // $worker) != $worker } 'another worker';
like($node->safe_psql('postgres', $acquire), qr/^\d+$/, 'one that has run is followed by another one soon');
done_testing;
