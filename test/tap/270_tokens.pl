# Tokens across the deletion of an item: DynamoDB's clock, as told by its Dates,
# is what makes them rise.

use DDBLock::Test;
use Time::HiRes qw(time);

my $hour = 3600;
my $conf = "ddblock.keep_warm = off\nlog_statement = none\n";

# A grant by each in turn, of an item that is deleted after each.  Returns how
# many tokens were below the time in DynamoDB at which they were asked for, and
# how many more than a minute above the time at which they came: by up to a second
# and as long as a reply took, which on a busy machine is a matter of seconds.
sub wrong_tokens
{
	my ($double, $skew, $count, @sessions) = @_;
	my ($below, $above) = (0, 0);
	my $furthest = 0;

	for my $i (1 .. $count)
	{
		my $session = $sessions[ $i % @sessions ];
		my $asked = time + $skew;
		my $token = $session->query_safe(q{SELECT ddb_lock_acquire('a')});

		$below++ if $token < $asked * 1e6;
		$furthest = $asked * 1e6 - $token if $asked * 1e6 - $token > $furthest;
		$above++ if $token > (time + $skew + 60) * 1e6;
		$session->query_safe(q{SELECT ddb_lock_release('a')});
		$double->call('DeleteItem', { TableName => 'lockTable', Key => { key => { S => 'a' } } });
	}
	diag("by up to $furthest us") if $below > 0;
	return "$below below, $above above";
}

# Clusters whose wall clocks are an hour behind DynamoDB's, and an hour ahead
foreach my $skew ($hour, -$hour, 0)
{
	my $double = new_double(seed => 3);
	$double->command(command => 'clock', skew_s => $skew);
	my $suffix = $skew < 0 ? 'ahead' : $skew > 0 ? 'behind' : 'right';
	my @nodes = map { new_cluster("${_}_$suffix", through => $double, table => 0, conf => $conf) }
	  qw(one two);
	$nodes[0]->safe_psql('postgres', 'SELECT ddb_lock_table_create()');

	# The first ones of their workers, too
	my @sessions = map { session($_) } @nodes;
	is(wrong_tokens($double, $skew, 40, @sessions), '0 below, 0 above',
		"wall clock $suffix: no token is below DynamoDB's time, or far above");

	# Pinned, nobody asks for the table; the clock is asked for all the same.
	$_->quit foreach @sessions;
	foreach my $node (@nodes)
	{
		$node->append_conf('postgresql.conf', "ddblock.global_table_region = 'us-east-1'\n"
			  . "ddblock.region = 'us-east-1'\n");
		$node->restart;
	}
	@sessions = map { session($_) } @nodes;
	is(wrong_tokens($double, $skew, 4, @sessions), '0 below, 0 above', 'nor with a pinned Region');

	# An absurd Date in a reply or two, and then for good
	my $before = $sessions[0]->query_safe(q{SELECT ddb_lock_acquire('b')});
	$sessions[0]->query_safe(q{SELECT ddb_lock_release('b')});
	$double->command(command => 'clock', skew_s => 253370764800 - int(time));
	$_->query_safe(q{SELECT held FROM ddb_lock_info('b')}) foreach @sessions, @sessions;
	$double->command(command => 'clock', skew_s => $skew);
	is(wrong_tokens($double, $skew, 10, @sessions), '0 below, 0 above', 'two absurd Dates move none');
	$double->command(command => 'clock', skew_s => $skew + 2 * $hour);
	foreach my $session (@sessions)
	{
		wait_for
		{
			$session->query_safe(q{SELECT held FROM ddb_lock_info('b')});
			$session->query_safe(q{SELECT abs(extract(epoch FROM clock_ahead) - }
				  . ($skew + 2 * $hour) . ') < 10 FROM ddb_status') eq 't';
		}
		'belief in the Dates';
	}
	is(wrong_tokens($double, $skew + 2 * $hour, 10, @sessions), '0 below, 0 above',
		'what all of them say for some seconds is believed');

	# After a worker's end, the next one knows what it knew.
	foreach my $node (@nodes)
	{
		my $old = worker_pid($node);

		kill 'TERM', $old;
		wait_for { my $pid = worker_pid($node); $pid && $pid != $old } 'the next worker';
	}
	is(wrong_tokens($double, $skew + 2 * $hour, 4, @sessions), '0 below, 0 above', 'by the next worker, too');
	$_->quit foreach @sessions;
	$_->stop foreach @nodes;
}
done_testing;
