# An outage is reported as an outage, whoever asks for a lock, and under whichever
# time-out: 55P03 would tell that somebody has the lock.  And each time-out ends each
# function that sends a request.

use DDBLock::Test;

my $network = new_proxy();
my $node = new_cluster('one', through => $network,
	conf => "ddblock.keep_warm = off\nlog_statement = none\nmax_connections = 150\n"
	  # No function fails because its requests have been tried for long enough.
	  . "ddblock.retry_timeout = '10min'\n"
	  . "ddblock.leaderships = 'statement_timeout, pg_cancel_backend, transaction_timeout'\n");
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
		ELSE $$'x NAME'$$ END, 'wait' = ANY (proargnames),
		CASE prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END
	FROM pg_proc WHERE proname ~ '^ddb_(xact_)?(lock|semaphore)_(try_acquire|acquire|await)(_all|_shared)?$'
	ORDER BY proname});
cmp_ok(scalar @acquire, '>=', 20, 'functions that acquire locks');

# All at a time; names differ, so that nobody waits for another one's request.
sub calls_fail
{
	my ($when, $sqlstate) = @_;
	my $timed_out = $node->safe_psql('postgres', 'SELECT timed_out FROM ddb_stats');
	my @calls;

	foreach my $function (@acquire)
	{
		my ($name, $arguments, $waits, $verb) = @$function;

		foreach my $limit ('lock_timeout', $waits eq 't' ? 'wait' : ())
		{
			my $own = $arguments =~ s/NAME/$name $limit/gr;
			my $sql = $limit eq 'wait' ? "$verb $name($own, wait => '$LIMIT_MS ms')"
			  : "SET lock_timeout = '$LIMIT_MS ms'; $verb $name($own)";
			my $session = session($node);

			$session->send($sql);
			push @calls, [ "$name, $limit, $when", $session ];
		}
	}
	# The time may end while one more attempt is under way, whose reply is unknown then.
	my $known = 0;

	foreach my $call (@calls)
	{
		my ($what, $session) = @$call;

		$session->result;
		like($session->messages,
			qr/ERROR: +(?:$sqlstate: .*DETAIL: .*\w|08006: .*DETAIL: +reply: nothing came within)/s, $what);
		$known++ if $session->messages =~ /ERROR: +$sqlstate: /;
		$session->quit;
	}
	cmp_ok(2 * $known, '>', scalar @calls, "most calls know the cause: $when");
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
# A request that hangs, under each time-out that is not about locks.  The calls come from
# pg_proc, so that a new function is not left out.
#
my %argument = (
	name => q{'x NAME'}, names => q{ARRAY['x NAME', 'y NAME']}, queue => q{'NAME'},
	resource => q{'r'}, payload => q{'{}'}, payloads => q{ARRAY['{}'::jsonb]}, max_permits => 3,
	token => 1, number => 1, at_most => q{'1 hour'}, less_than => q{'1 ms'},
	older_than => q{'1 day'}, pushed_at => 'now()', role => q{'pg_monitor'}, request => q{'read'});
my @functions = map { [ split /\|/, $_, -1 ] } split /\n/, $node->safe_psql('postgres', q{
	SELECT CASE WHEN prokind = 'p' OR probin IS NULL THEN proname ELSE prosrc END,
		array_to_string(proargnames[1 : pronargs - pronargdefaults], ','),
		CASE prokind WHEN 'p' THEN 'CALL ' ELSE 'SELECT count(*) FROM ' END || proname
	FROM pg_proc JOIN pg_depend ON objid = pg_proc.oid AND classid = 'pg_proc'::regclass
	JOIN pg_extension ON refobjid = pg_extension.oid AND extname = 'ddblock'
	WHERE deptype = 'e' AND proname ~ '^ddb_' AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) ORDER BY 1});

# These send no request, or nobody waits for its reply.
my %quiet = map { $_ => 1 } qw(
	ddb_leaderships ddb_fence_check ddb_fence_check_shared ddb_leadership_held ddb_leadership_require ddb_leadership_resign
	ddb_lock_detach ddb_lock_join ddb_lock_outlive ddb_lock_remaining ddb_lock_require ddb_lock_token
	ddb_locks ddb_operations ddb_queue_complete ddb_queue_mark_done ddb_queue_mark_done_token ddb_queue_push_on_commit
	ddb_role_setup ddb_stats ddb_status);

# What a function needs before it sends anything.
sub prepare
{
	my ($session, $name, $own) = @_;

	if ($name =~ /release|renew|detach|outlive|monitor|await_end/)
	{
		$session->query_safe("SELECT ddb_lock_acquire('held $own'), "
			  . "ddb_lock_acquire_shared('shared $own'), ddb_semaphore_acquire('permits $own', 1)");
	}
	$session->query_safe("SELECT ddb_lock_detach('held $own', '1 day')") if $name =~ /release_detached/;
	$session->query_safe("SELECT ddb_queue_push('$own', 'r', '{}')") if $name =~ /^ddb_queue/;
	$session->query_safe("SELECT ddb_queue_claim('$own')") if $name =~ /_(complete|fail)$/;
	$session->query_safe("SELECT ddb_queue_push_on_commit('$own', 'r', '{}')")
	  if $name =~ /^ddb_outbox/;
	return;
}

sub call_of
{
	my ($name, $arguments, $called, $end) = @_;
	my $sql = "$called(" . join(', ', map { $argument{$_} } split /,/, $arguments)
	  . ')';
	my $held = $name =~ /semaphore/ ? 'permits' : $name =~ /shared/ ? 'shared' : 'held';

	$sql =~ s/x NAME/$held NAME/ if $name =~ /_(release|renew|detach|monitor|await_end)/;
	$sql =~ s/\b1\b/(SELECT token FROM ddb_locks WHERE name = 'held NAME')/ if $name =~ /release_detached/;
	$sql =~ s/x NAME/$end/ if $name =~ /leader/;
	return $sql =~ s/NAME/$name.$end/gr;
}

my %ends = (
	statement_timeout => '57014',
	pg_cancel_backend => '57014',
	$version >= 170000 ? (transaction_timeout => '25P04') : ());

$node->safe_psql('postgres', 'SELECT ddb_queue_table_create()');
foreach my $end (sort keys %ends)
{
	my %sessions = map { $_->[0] => session($node) } @functions;
	my $control = session($node);

	prepare($sessions{$_}, $_, "$_.$end") foreach sort keys %sessions;
	wait_for { $control->query_safe("SELECT ddb_leadership_held('$end')") eq 't' } 'the leader';
	$network->fault('drop', count => -1);
	foreach my $function (@functions)
	{
		my ($name) = @$function;
		my $session = $sessions{$name};
		my $pid = backend_pid($session);

		$session->query_safe("SET $end = '300ms'") if $end =~ /timeout/;
		$session->send(call_of(@$function, $end));
		next if $end =~ /timeout/ || $quiet{$name};
		wait_for
		{
			$control->query_safe("SELECT wait_event_type = 'Extension' FROM pg_stat_activity
				WHERE pid = $pid") eq 't'
		}
		"the request of $name";
		$control->query_safe("SELECT $end($pid)");
	}
	foreach my $name (sort keys %sessions)
	{
		$sessions{$name}->result;
		if ($quiet{$name})
		{
			unlike($sessions{$name}->messages, qr/$ends{$end}/, "$name waits for no reply");
		}
		else
		{
			like($sessions{$name}->messages, qr/(ERROR|FATAL): +$ends{$end}/, "$end ends $name");
		}
		$sessions{$name}->gone;
	}
	$network->clear_faults;
	$control->quit;
}

#
# A claim waits while this cluster completes the last job, which it cannot in an outage.
#
my $worker = session($node);
my $other = session($node);
my $next = q{SELECT ddb_queue_claim('queue', resources => ARRAY['r'])};

$worker->query_safe(q{SELECT ddb_queue_push('queue', 'r', '{}')}) foreach 1 .. 2;
isnt($worker->query_safe($next), '', 'a job');
# Only now: on a slow machine, a request that is to succeed may take longer.
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '1s'\n");
$node->reload;
wait_for { $other->query_safe('SHOW ddblock.retry_timeout') eq '1s' } 'the reload';
$network->fault('drop', count => -1);
$worker->query_safe(q{SELECT ddb_queue_complete('queue', 'r', 1)});
like($other->error_of($next), qr/ERROR: +08006/,
	'a job that cannot be claimed because of an outage is not reported as no job');
$network->clear_faults;
wait_for { ($worker->ask($next) // '') ne '' } 'the next job';	# the completion may still be tried
$worker->quit;

done_testing;
