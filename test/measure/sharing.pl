# What shared locks and semaphores cost, and how long one waits for them.  "make sharing
# DURATION=30" runs it, with three clusters:
#
#	another's share		requests for a shared lock that another session of the cluster has
#	jobs				100 jobs of three clusters that need one of 5 permits each; one in
#						ten dies: requests for each job, and when all permits were back
#	dead cluster		how long its permits are missing, while others use the semaphore
#	readers				sessions of two clusters share a lock all the time, and one of the
#						third wants it for itself: how long it waits, for 30 seconds
#
# Times are ratios to the lease, which is 4 s.  What must be right is tested: the limit is
# kept, all jobs are done, and no permit is lost.  DynamoDB is the double.

use DDBLock::Test;
use DDBLock::Jobs;
use List::Util qw(max sum);
use POSIX ();
use Time::HiRes qw(sleep time);

my $duration = $ENV{DURATION} || 30;
my $lease = 4;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $double = new_double();
my %settings = (through => $double, table => 0,
	conf => "log_statement = none\nrestart_after_crash = on\nddblock.keep_warm = off\n");
my @clusters = map { new_cluster($_, %settings) } qw(one two three);

$clusters[0]->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
anothers_share();
jobs();
dead_cluster() foreach 1 .. 3;
readers();
done_testing;

sub total
{
	my ($name) = @_;
	my $item = $double->item($name);

	return $item && !$item->{isReleased} ? $item->{shared}{M}{total}{N} // 0 : 0;
}

sub report
{
	my ($what, $format, @values) = @_;

	diag(sprintf "%-16s $format", $what, @values);
	return;
}

sub anothers_share
{
	my ($first, $second) = map { session($clusters[0]) } 1 .. 2;

	$first->query_safe(q{SELECT ddb_lock_acquire_shared('share', lease => '1h')});
	my $before = $double->requests;
	$second->query_safe(q{SELECT ddb_lock_acquire_shared('share', lease => '1h');
		SELECT ddb_lock_release('share')}) foreach 1 .. 100;
	report("another's share", '%d requests for 100 pairs', $double->requests - $before);
	$_->quit foreach $first, $second;
	return;
}

sub jobs
{
	my ($before, $since, $most) = ($double->requests, time, 0);
	my $jobs = DDBLock::Jobs->start(dir => $dir, clusters => \@clusters, name => 'jobs',
		limit => 5, count => 100);

	while ($jobs->running)
	{
		$most = max($most, total('jobs'));
		sleep 0.02;
	}
	my $ended = time;

	is($jobs->done, 100, 'all jobs are done');
	is(join("\n", $jobs->failures), '', 'nothing failed that was not to');
	is($most, 5, 'five permits were out, never six');
	cmp_ok($jobs->most, '<=', 5, 'never six jobs had one');
	wait_for { total('jobs') == 0 } 'all permits to be back';
	report('jobs', '%d died; %.1f requests for each job; %.1f s; all permits back after %.2f s',
		$jobs->died, ($double->requests - $before) / 100, $ended - $since, time - $ended);
	return;
}

# The dead cluster has one permit of two, a session of the second cluster the other one.
sub dead_cluster
{
	my $call = "SELECT ddb_semaphore_acquire('dead', 2, lease => '$lease s', wait => '60s') > 0";
	my ($dead, $user, $waiter) = map { session($clusters[$_]) } 2, 1, 0;

	$_->query_safe($call) foreach $dead, $user;
	$waiter->send($call);
	wait_for_waiters($clusters[0], 'dead', 1);
	sleep rand($lease / 3);
	$clusters[2]->stop('immediate');
	my $since = time;
	$dead->gone;
	is($waiter->result, 't', 'the permit of the dead cluster is back');
	my $seconds = time - $since;

	cmp_ok(total('dead'), '==', 2, 'two are out');
	report('dead cluster', '%.2f s until its permit was back: %.2f leases (one and 3 s: %.2f)',
		$seconds, $seconds / $lease, ($lease + 3) / $lease);
	$_->quit foreach $user, $waiter;
	$clusters[2]->start;
	wait_for { total('dead') == 0 } 'all permits to be back';
	return;
}

# Four sessions of each cluster keep the lock for half a second again and again.
sub readers
{
	my @loads = map { start_readers($_) } 0, 1;
	my $waiter = session($clusters[2]);
	my $end = time + $duration;
	my @waits;

	wait_for { keys %{ ($double->item('readers') // {})->{shared}{M}{h}{M} // {} } == 2 } 'readers of both clusters';
	while (time < $end)
	{
		my $since = time;

		$waiter->query_safe("SELECT ddb_lock_acquire('readers', lease => '$lease s', wait => '120s')");
		push @waits, time - $since;
		ok(!exists $double->item('readers')->{shared}, 'nobody shares the lock');
		$waiter->query_safe(q{SELECT ddb_lock_release('readers')});
		sleep 0.5 + rand 1;
	}
	$waiter->quit;
	foreach my $load (@loads)
	{
		waitpid $load->{pid}, 0;
		is($?, 0, 'pgbench has run') or diag(slurp_file($load->{log}));
	}
	report('readers', '%d waits, %.2f leases on average, %.2f at most; readers had the lock %s times',
		scalar @waits, sum(@waits) / @waits / $lease, max(@waits) / $lease,
		join ' and ', map { slurp_file($_->{log}) =~ /processed: (\d+)/ } @loads);
	return;
}

sub start_readers
{
	my ($number) = @_;
	my ($script, $log) = ("$dir/readers.sql", "$dir/readers$number");

	PostgreSQL::Test::Utils::append_to_file($script, <<"SQL") unless -e $script;
SELECT ddb_lock_acquire_shared('readers', lease => '$lease s');
\\sleep 500 ms
SELECT ddb_lock_release('readers');
SQL
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0)
	{
		open STDOUT, '>', $log and open STDERR, '>&', \*STDOUT;
		exec 'pgbench', '-h', $clusters[$number]->host, '-p', $clusters[$number]->port,
		  '-n', '-c', '4', '-T', $duration + 2, '-f', $script, 'postgres'
		  or POSIX::_exit(127);
	}
	return { pid => $pid, log => $log };
}
