# A storm over the mailbox: sessions ask, wait, are cancelled, end and are
# followed by others in their slots, while the worker stands still or ends.
# After it everybody holds what he believes to hold, and nobody holds the rest.

use DDBLock::Test;
use Time::HiRes qw(sleep);

my $seed = $ENV{STORM_SEED} // time;
my $steps = $ENV{STORM_STEPS} // 300;
my @names = qw(storm/a storm/b storm/c);

# No lease is lost, however long the worker stands still.
my $node = new_cluster('one', conf => "log_statement = none\nddblock.keep_warm = off\n"
	  . "ddblock.lease_duration = '1h'\n");
my $control = session($node);
my (%sessions, %modest, %sent, $stopped, %done);

srand($seed);
diag("STORM_SEED=$seed");

sub any { my (@of) = @_; return @of ? $of[ rand @of ] : undef; }
# Some session that asks for locks, and is asking for none at the moment.
sub asker { return any(grep { !$modest{$_} && !busy($_) } sort keys %sessions); }

# Only of what was sent is known whether it has ended.
sub busy
{
	my ($pid) = @_;

	return 0 unless $sent{$pid};
	return 1 if $sessions{$pid}->busy;
	delete $sent{$pid};
	$sessions{$pid}->result;
	return 0;
}

sub send_to
{
	my ($pid, $sql) = @_;

	$sessions{$pid}->send($sql);
	$sent{$pid} = 1;
	return;
}

# What a session says when it is ended from outside is of no interest.
sub drop
{
	my ($pid) = @_;
	my $session = delete $sessions{$pid};

	delete $sent{$pid};
	wait_for { $control->query_safe(
			"SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") eq '0' } 'its end';
	$session->gone;
	return;
}

sub resume
{
	kill 'CONT', $stopped if $stopped;
	undef $stopped;
	return;
}

my %step = (
	open => sub {
		return if keys %sessions >= 8;
		my $session = session($node);
		my $pid = backend_pid($session);

		# Half of them use their slots and post nothing.
		$session->ask(q{SELECT ddb_lock_token('storm/x')});
		$modest{$pid} = rand() < 0.5;
		$sessions{$pid} = $session;
	},
	acquire => sub {
		my $pid = asker() // return;
		my $time = any(0, 0, 5, 100);

		send_to($pid, "SET statement_timeout = $time; SELECT "
			  . any(qw(ddb_lock_acquire ddb_lock_acquire ddb_lock_try_acquire))
			  . "('" . any(@names) . "');");
	},
	release => sub {
		my $pid = asker() // return;
		send_to($pid, q{SET statement_timeout = 0; SELECT ddb_lock_release_all();});
	},
	cancel => sub {
		my $pid = any(sort keys %sessions) // return;
		$control->query_safe("SELECT pg_cancel_backend($pid)");
	},
	end => sub {
		my $pid = any(sort keys %sessions) // return;
		$control->query_safe("SELECT pg_terminate_backend($pid)");
		drop($pid);
	},
	stop_worker => sub {
		return if $stopped;
		$stopped = worker() // return;
		kill 'STOP', $stopped;
	},
	resume_worker => sub { resume(); },
	end_worker => sub {
		my $pid = worker() // return;
		$control->query_safe("SELECT pg_terminate_backend($pid)");
		resume();
	});

sub worker
{
	my $pid = $control->query_safe(
		q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'ddblock worker'});

	return $pid eq '' ? undef : $pid;
}

my @weighted = (('open') x 36, ('acquire') x 36, ('release') x 12, ('cancel') x 6, ('end') x 24,
	('stop_worker') x 9, ('resume_worker') x 9, 'end_worker');
foreach (1 .. $steps)
{
	my $name = any(@weighted);

	$step{$name}->();
	$done{$name}++;
}
resume();
note(join ', ', map { "$_: $done{$_}" } sort keys %done);

# Whoever still waits is cancelled, and once more if it had not begun to wait.
foreach my $pid (sort keys %sessions)
{
	next unless busy($pid);
	wait_for { $control->query_safe("SELECT pg_cancel_backend($pid)"); !busy($pid) }
	'an end of all waiting';
}

# A cancellation may come late and hit the question: then it is asked again.
my %believed;
foreach my $pid (sort keys %sessions)
{
	foreach my $name (@names)
	{
		my $token = $sessions{$pid}->ask(qq{SELECT ddb_lock_token('$name')});
		$token = $sessions{$pid}->ask(qq{SELECT ddb_lock_token('$name')})
		  if $sessions{$pid}->messages ne '';
		$believed{"$name $pid"} = 1 if $token ne '';
	}
}
my $believed = join "\n", sort keys %believed;
my $rows;
foreach (1 .. 600)
{
	$rows = $control->query_safe(
		q{SELECT name || ' ' || pid FROM ddb_locks ORDER BY name COLLATE "C", pid});
	last if $rows eq $believed;
	sleep(0.1);
}
is($rows, $believed, "every lock is held by a session that believes to hold it (STORM_SEED=$seed)");

$_->query_safe('SET statement_timeout = 0; SELECT ddb_lock_release_all()') foreach values %sessions;
my $last = session($node);
$last->query_safe(q{SET statement_timeout = '60s'});
like($last->ask("SELECT ddb_lock_acquire('$_')"), qr/^\d+$/, "$_ can be acquired")
  foreach @names;
is($last->query_safe('SELECT ddb_lock_release_all()'), scalar @names, 'and released');

$_->quit foreach $last, $control, values %sessions;
nothing_held_ok;
done_testing;
