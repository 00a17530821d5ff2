# Jepsen's test of etcd 3.4.3's locks, against ddblock: how many acknowledged
# updates are lost?  "make jepsen-etcd DURATION=60" runs it.
#
# As in the original, five processes add elements to a set under a lock with a
# lease of 2 s: acquire, read the set, wait, write it back with one element
# more, release.  Every 5 s processes are paused.  The set is an array in a
# row, and read, wait and write are one READ COMMITTED transaction that trusts its
# lock: no SELECT FOR UPDATE, no "elements || n".  Whoever works on beyond its
# lease overwrites what others added, or is overwritten.  An element
# is lost if its COMMIT was acknowledged and it is not in the set at the end.
#
# It is run with guard and fence, with the guard only, and with neither.  In the
# first two, a process that is idle in its transaction when it loses its lease
# would be terminated before the guard has a say; so every other one runs
# with ddblock.on_lease_lost = none.
#
# The fence comes before the read: it waits for an older holder that is still about
# to commit, and the next statement's snapshot then has that one's element.
# Fenced after the read, the element would be overwritten all the same.
#
# Pauses (SIGSTOP), in turn:
#
#	worker	the ddblock worker, longer than the lease: nothing is renewed
#	think	and with it the holder's server process, between read and write, for
#			longer still: when the worker goes on, the next holder's turn comes
#	commit	the same, but right after COMMIT was sent
#
# With commit_delay every COMMIT spends 0.1 s between the guard's check and the
# moment from which others see the transaction, as with slow storage or a
# synchronous standby, and a pause of the last kind strikes within it.

use strict;
use warnings;

my $duration;

BEGIN
{
	$duration = $ENV{DURATION} || 60;
	die "DURATION is a number of seconds\n" unless $duration =~ /^\d+$/;
	$ENV{PG_TEST_TIMEOUT_DEFAULT} = $duration + 180;
}

use DDBLock::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $processes = 5;
my $lease = 2;
my $think = 2;
my $pause_every = 5;
my $commit_delay = 0.1;
my @pauses = qw(worker think commit);

my @configurations = (
	{ name => 'guard and fence', guard => 1, fence => 1 },
	{ name => 'guard only', guard => 1, fence => 0 },
	{ name => 'neither', guard => 0, fence => 0 });

my %next_step = (
	acquire => 'read',
	read => 'think',
	think => 'write',
	write => 'commit',
	commit => 'release',
	release => 'acquire');

my $node = new_cluster('one',
	conf => join("\n",
		'fsync = on',    # commit_delay depends on it
		'commit_delay = ' . $commit_delay * 1e6,
		'commit_siblings = 0',
		'log_statement = none', ''));
$node->safe_psql('postgres', 'CREATE TABLE sets (name text PRIMARY KEY, elements int[])');
my $worker = worker_pid($node);

run_configuration($_) foreach @configurations;
diag($_) foreach report();

my ($safe, $guarded, $trusting) = @configurations;
cmp_ok(scalar @{ $_->{acknowledged} }, '>', 0, "$_->{name}: updates are acknowledged")
  foreach @configurations;
cmp_ok($safe->{refused}, '>', 0, 'with guard and fence some updates are refused');
is($safe->{lost}, 0, 'and no acknowledged one is lost');
cmp_ok($trusting->{lost}, '>', 0, 'with neither some are: the test can tell');
nothing_held_ok;
done_testing;

sub report
{
	my @lines = (sprintf '%-16s %12s %8s %6s %7s',
		'', 'acknowledged', 'refused', 'lost', '');

	push @lines,
	  sprintf '%-16s %12d %8d %6d %6.1f%%', $_->{name}, scalar @{ $_->{acknowledged} },
	  $_->{refused}, $_->{lost}, 100 * $_->{lost} / (@{ $_->{acknowledged} } || 1)
	  foreach @configurations;
	return @lines;
}

sub run_configuration
{
	my ($run) = @_;
	my $end = time + $duration;
	my $next_pause = time + $pause_every;
	my ($pause, %present);

	@$run{qw(acknowledged refused last_element)} = ([], 0, 0);
	$node->safe_psql('postgres', "INSERT INTO sets VALUES ('$run->{name}', '{}')");
	my @clients = map { { run => $run, settings => settings($run, $_) } } 1 .. $processes;
	connect_client($_) foreach @clients;

	while (my @working = grep { $_->{step} ne 'done' } @clients)
	{
		if (time > $next_pause && time < $end)
		{
			$pause = shift @pauses;
			push @pauses, $pause;
			$next_pause += $pause_every;
		}
		foreach my $client (@working)
		{
			take_turn($client, $end);
			undef $pause if defined $pause && strike($pause, $client);
		}
		sleep 0.005;
	}
	$_->{session}->quit foreach @clients;

	%present = map { $_ => 1 } split /,/, $node->safe_psql('postgres',
		"SELECT array_to_string(elements, ',') FROM sets WHERE name = '$run->{name}'");
	$run->{lost} = grep { !$present{$_} } @{ $run->{acknowledged} };
	return;
}

sub settings
{
	my ($run, $number) = @_;
	my $alone = 'SET ddblock.on_lease_lost = none;';

	return "$alone SET ddblock.commit_guard = off" unless $run->{guard};
	return $number % 2 ? '' : $alone;
}

sub connect_client
{
	my ($client) = @_;

	$client->{session} = session($node);
	$client->{session}->query_safe(
		"SET client_min_messages = warning; $client->{settings}");
	$client->{pid} = backend_pid($client->{session});
	start_step($client, 'acquire');
	return;
}

sub start_step
{
	my ($client, $step) = @_;

	$client->{step} = $step;
	if ($step eq 'think')
	{
		$client->{think_until} = time + rand $think;
	}
	else
	{
		$client->{session}->send(step_sql($client, $step));
	}
	return;
}

sub step_sql
{
	my ($client, $step) = @_;
	my $name = $client->{run}{name};
	my $fence =
	  $client->{run}{fence}
	  ? "SELECT ddb_fence_check('$name', ddb_lock_require('$name'));"
	  : '';

	return "SELECT ddb_lock_acquire('$name', lease => '$lease s')" if $step eq 'acquire';
	return "BEGIN; $fence
		SELECT array_to_string(elements, ',') FROM sets WHERE name = '$name'"
	  if $step eq 'read';
	return "UPDATE sets SET elements = '{$client->{elements}}' WHERE name = '$name'"
	  if $step eq 'write';
	return 'COMMIT' if $step eq 'commit';

	# Also what follows a failure; the lock may be lost, or not even acquired.
	return "SET client_min_messages = error; ROLLBACK;
		SELECT ddb_lock_release('$name'); SET client_min_messages = warning";
}

sub take_turn
{
	my ($client, $end) = @_;
	my $session = $client->{session};
	my $step = $client->{step};

	if ($step eq 'think')
	{
		return if time < $client->{think_until};
	}
	else
	{
		return if $session->busy;
		my $output = $session->result;
		return fail_step($client) if $session->messages ne '';
		finish_step($client, $output);
	}
	if ($step eq 'release' && time > $end)
	{
		$client->{step} = 'done';
		return;
	}
	start_step($client, $next_step{$step});
	return;
}

sub finish_step
{
	my ($client, $output) = @_;
	my $run = $client->{run};

	if ($client->{step} eq 'read')
	{
		my ($elements) = $output =~ /([\d,]*)\z/;

		$client->{element} = ++$run->{last_element};
		$client->{elements} = join ',', grep { $_ ne '' } $elements, $client->{element};
	}
	elsif ($client->{step} eq 'commit')
	{
		push @{ $run->{acknowledged} }, $client->{element};
	}
	return;
}

# An update that failed is not acknowledged, whatever has become of it.
sub fail_step
{
	my ($client) = @_;

	note("$client->{run}{name}: $client->{step}: " . $client->{session}->messages);
	$client->{run}{refused}++ if $client->{step} =~ /^(read|write|commit)$/;
	if ($client->{session}->messages =~ /connection to server was lost/)
	{
		$client->{session}->gone;
		connect_client($client);
	}
	else
	{
		start_step($client, 'release');
	}
	return;
}

# Whether the moment for that pause has come with this client.
sub strike
{
	my ($pause, $client) = @_;
	my $seconds = $lease + 0.3 + rand 0.7;

	return 0 unless $pause eq 'worker' || $pause eq $client->{step};
	sleep $commit_delay / 2 if $pause eq 'commit';
	pause_process($client->{pid}, $seconds + 0.5 + rand 1) unless $pause eq 'worker';
	pause_process($worker, $seconds);
	return 1;
}

# It is woken by a process of its own: this one may be waiting for it.
sub pause_process
{
	my ($pid, $seconds) = @_;

	kill 'STOP', $pid;
	system "(sleep $seconds; kill -CONT $pid) >/dev/null 2>&1 </dev/null &";
	return;
}
