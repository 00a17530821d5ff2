# Whoever reads what the worker writes, or stands still while doing so, keeps no
# lease from being renewed.

use DDBLock::Test;
use Time::HiRes qw(sleep);

my $seed = $ENV{READERS_SEED} // time;
my $leases = 60;
my $readers = 20;
my $double = new_double();
my $node = new_cluster('one', through => $double, table => 0, conf => "log_statement = none\n");
$node->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
my $control = session($node);

srand($seed);

# The worst that a reader can do, for as long as it lives.
my $read = q{DO $$ BEGIN LOOP
	PERFORM count(*) FROM ddb_locks;
	PERFORM count(*) FROM ddb_stats, ddb_operations, ddb_status;
END LOOP; END $$};

sub stat_now
{
	my ($column) = @_;
	return $control->query_safe("SELECT $column FROM ddb_stats");
}

# Each lease is renewed, and once more.
sub renewals_go_on
{
	my ($how) = @_;
	my $renewals = q{SELECT min(renewals) FROM ddb_locks WHERE name LIKE 'readers/%'};
	my $before = $control->query_safe($renewals);

	my $after = wait_for
	{
		my $now = $control->query_safe($renewals);
		(stat_now('leases_lost') > 0 || $now > $before + 1) && "renewals: $now";
	}
	'renewals';
	is(stat_now('leases_lost'), 0, "$how: no lease is lost ($before, $after)");
	return;
}

my $holder = session($node);
$holder->query_safe(qq{SET client_min_messages = error;
	SELECT count(ddb_lock_acquire('readers/' || i, lease => '30s')) FROM generate_series(1, $leases) i});

# And sessions that write into their slots, which the worker reads.
my @callers = map { session($node) } 1 .. 4;
my @readers = map { session($node) } 1 .. $readers;
my @pids = map { backend_pid($_) } @readers, @callers;

# The processor is the worker's and DynamoDB's first: only locks are to matter.
setpriority(0, $_, 19) foreach @pids;

$_->send($read) foreach @readers;
$callers[$_]->send(qq{DO \$\$ BEGIN LOOP
	PERFORM ddb_lock_try_acquire('caller/$_', lease => '1h');
	PERFORM ddb_lock_release_all();
END LOOP; END \$\$}) foreach 0 .. $#callers;
renewals_go_on("$readers sessions read all the time");

foreach my $round (1 .. 2)
{
	my @stopped;

	# One after the other: each stands still wherever it happens to be.
	foreach my $pid (sort { rand() <=> 0.5 } @pids)
	{
		kill 'STOP', $pid;
		push @stopped, $pid;
		sleep(rand(0.02));
	}
	renewals_go_on("round $round: they are stopped anywhere (READERS_SEED=$seed)");
	kill 'CONT', @stopped;
	sleep(0.2);
}

$control->query_safe(q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
	WHERE query LIKE 'DO $$%'});
$_->gone foreach @readers, @callers;
is($holder->query_safe('SELECT ddb_lock_release_all()'), $leases, 'all is held to the end');
$_->quit foreach $holder, $control;
wait_for { !grep { !exists $_->{isReleased} } $double->items } 'all is released';
done_testing;
