# An outage is reported as an outage, whoever asks for a lock, and under whichever
# time-out: 55P03 would tell that somebody has the lock.  And each time-out ends each
# function that sends a request.

use DDBLock::Test;

my $network = new_proxy();
my $node = new_cluster('one', through => $network,
	conf => "ddblock.keep_warm = off\nlog_statement = none\nmax_connections = 100\n");
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');

# Longer than a reply takes, shorter than any time-out of the network.
my $LIMIT_MS = 1500;

my %outages = (
	'refused' => [ sub { $network->stop }, '08006' ],
	'hanging' => [ sub { $network->fault('drop', count => -1) }, '08006' ],
	'500' => [ sub { $network->fault('error', count => -1) }, '08006' ],
	'throttled' => [
		sub {
			$network->fault('error', count => -1, status => 400,
				type => 'ProvisionedThroughputExceededException');
		},
		'53400' ],
);

sub recover
{
	my ($outage) = @_;

	$network->restart if $outage eq 'refused';
	$network->clear_faults;
	return;
}

# Whatever acquires locks, with its first arguments, and whether it takes a time to wait.
my @acquire = map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', q{
	SELECT proname, CASE WHEN proname ~ '_all$' THEN $$ARRAY['x NAME', 'y NAME']$$
		WHEN proname ~ 'semaphore' THEN $$'semaphore NAME', 3$$
		ELSE $$'x NAME'$$ END, 'wait' = ANY (proargnames)
	FROM pg_proc WHERE proname ~ '^ddb_.*_acquire(_all|_shared)?$' ORDER BY proname});
cmp_ok(scalar @acquire, '>=', 16, 'functions that acquire locks');

# All at a time; names differ, so that nobody waits for another one's request.
sub calls_fail
{
	my ($when, $sqlstate) = @_;
	my $timed_out = $node->safe_psql('postgres', 'SELECT timed_out FROM ddb_stats');
	my @calls;

	foreach my $function (@acquire)
	{
		my ($name, $arguments, $waits) = @$function;

		foreach my $limit ('lock_timeout', $waits eq 't' ? 'wait' : ())
		{
			my $own = $arguments =~ s/NAME/$name $limit/gr;
			my $sql = $limit eq 'wait' ? "SELECT $name($own, wait => '$LIMIT_MS ms')"
			  : "SET lock_timeout = '$LIMIT_MS ms'; SELECT $name($own)";
			my $session = session($node);

			$session->send($sql);
			push @calls, [ "$name, $limit, $when", $session ];
		}
	}
	foreach my $call (@calls)
	{
		my ($what, $session) = @$call;

		$session->result;
		like($session->messages, qr/ERROR: +$sqlstate: .*DETAIL: .*\w/s, $what);
		$session->quit;
	}
	is($node->safe_psql('postgres', 'SELECT timed_out FROM ddb_stats'),
		$timed_out, "no wait for a holder timed out: $when");
	return;
}

foreach my $outage (sort keys %outages)
{
	my ($begin, $sqlstate) = @{ $outages{$outage} };

	$begin->();
	calls_fail("$outage after a reply", $sqlstate);
	$node->restart;
	calls_fail("$outage before any reply", $sqlstate);
	recover($outage);
	ok($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('again')}), "$outage is over");
}

#
# A request that hangs, under each time-out that is not about locks.
#
my %calls = (
	(map { $_->[0] => $_->[1] } @acquire),
	ddb_lock_info => q{'x'},
	ddb_lock_list => '',
	ddb_lock_renew => q{'held NAME'},
	ddb_lock_release => q{'held NAME'},
	ddb_lock_release_all => '',
	ddb_lock_release_shared => q{'shared NAME'},
	ddb_semaphore_release => q{'permits NAME'},
	ddb_lock_force_release => q{'x'},
	ddb_lock_purge => q{interval '1 day'},
	ddb_lock_table_create => '',
	ddb_queue_table_create => '',
	ddb_queue_push => q{'queue', 'resource', '{}'},
	ddb_queue_next => q{'queue'},
);
my %ends = (
	statement_timeout => '57014',
	pg_cancel_backend => '57014',
	$version >= 170000 ? (transaction_timeout => '25P04') : ());

foreach my $end (sort keys %ends)
{
	my %sessions = map { $_ => session($node) } keys %calls;
	my $control = session($node);

	$sessions{$_}->query_safe("SELECT ddb_lock_acquire('held $_'), "
		  . "ddb_lock_acquire_shared('shared $_'), ddb_semaphore_acquire('permits $_', 1)")
	  foreach grep { /re(new|lease)/ } keys %calls;
	$network->fault('drop', count => -1);
	foreach my $name (sort keys %calls)
	{
		my $session = $sessions{$name};
		my $pid = backend_pid($session);

		$session->query_safe("SET $end = '300ms'") if $end =~ /timeout/;
		$session->send("SELECT $name(" . $calls{$name} =~ s/NAME/$name/gr . ')');
		next if $end =~ /timeout/;
		wait_for
		{
			$control->query_safe("SELECT wait_event_type = 'Extension' FROM pg_stat_activity
				WHERE pid = $pid") eq 't'
		}
		"the request of $name";
		$control->query_safe("SELECT $end($pid)");
	}
	foreach my $name (sort keys %calls)
	{
		$sessions{$name}->result;
		like($sessions{$name}->messages, qr/(ERROR|FATAL): +$ends{$end}/, "$end ends $name");
		$sessions{$name}->gone;
	}
	$network->clear_faults;
	$control->quit;
}

done_testing;
