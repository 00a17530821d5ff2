# How many requests it takes: by ddb_operations, and by what arrives at DynamoDB.

use DDBLock::Test;

my $node = new_cluster('one', through => proxy,
	conf => "ddblock.keep_warm = off\nlog_statement = none\n");
my $session = session($node);

# The worker has nothing else to do: whatever arrives belongs to the statement.
sub costs
{
	my ($what, $sql, %expected) = @_;
	my $totals = q{SELECT operation || ' ' || requests FROM ddb_operations ORDER BY 1};
	my %before = map { split / / } split /\n/, $node->safe_psql('postgres', $totals);
	my %spent;

	proxy->reset_counts;
	$session->query_safe($sql);
	my %after = map { split / / } split /\n/, $node->safe_psql('postgres', $totals);
	foreach my $operation (keys %after)
	{
		my $count = $after{$operation} - $before{$operation};
		$spent{$operation} = $count if $count > 0;
	}
	my $sum = 0;
	$sum += $_ foreach values %expected;

	is_deeply(\%spent, \%expected, "$what, by ddb_operations");
	is(proxy->forwarded, $sum, "$what, by DynamoDB's side");
	return;
}

costs('acquiring a lock that never was: 1 request',
	q{SELECT ddb_lock_acquire('a', lease => '1h')}, acquire => 1);
costs('acquiring it once more: none', q{SELECT ddb_lock_acquire('a')});
costs('in a transaction: none',
	q{BEGIN; SELECT ddb_xact_lock_acquire('a'), ddb_xact_lock_try_acquire('a'); COMMIT});
costs('its token: none', q{SELECT ddb_lock_token('a'), ddb_lock_require('a')});
costs('the views: none', q{SELECT FROM ddb_locks, ddb_stats, ddb_operations, ddb_status});
costs('renewing it: 1 request', q{SELECT ddb_lock_renew('a')}, renew => 1);
costs('information: 1 request', q{SELECT held FROM ddb_lock_info('a')}, read => 1);
costs('releasing it the first time: none', q{SELECT ddb_lock_release('a')});
costs('the last time: 1 request', q{SELECT ddb_lock_release('a')}, release => 1);
costs('acquiring a released lock: 1 request',
	q{SELECT ddb_lock_acquire('a', lease => '1h')}, acquire => 1);
dynamodb->put_item(dynamodb->java_item('java', lease_ms => 3600_000));
costs('trying in vain: 1 request', q{SELECT ddb_lock_try_acquire('java')}, acquire => 1);
my $next = session($node);
$next->query_safe(q{SELECT ddb_lock_acquire('b', lease => '1h')});
costs('trying what this cluster has: none', q{SELECT ddb_lock_try_acquire('b')});

#
# Hand-over: the releasing session's request is the next one's acquire
#
$session->query_safe(q{SELECT ddb_lock_release_all(), ddb_lock_acquire('c', lease => '1h')});
$next->send(q{SELECT ddb_lock_acquire('c', lease => '1h')});
wait_for_waiters($node, 'c', 1);
costs('handing a lock over: 1 request', q{SELECT ddb_lock_release('c')}, hand_over => 1);
$next->result;
$next->query_safe(q{SELECT ddb_lock_release_all()});

#
# Twenty waiting sessions poll as one
#
dynamodb->put_item(dynamodb->java_item('java too', lease_ms => 3600_000));
my $single = session($node);
my @crowd = map { session($node) } 1 .. 20;
$_->send(q{SELECT ddb_lock_acquire('java')}) foreach @crowd;
wait_for_waiters($node, 'java', 20);
$single->send(q{SELECT ddb_lock_acquire('java too')});
wait_for_waiters($node, 'java too', 1);

# From now on both have been waited for almost equally long.
my %reads;
proxy->reset_counts;
wait_for
{
	%reads = ();
	foreach my $request (proxy->log)
	{
		$reads{ $request->{body}{Key}{key}{S} }++;
	}
	($reads{'java too'} // 0) >= 25;
}
'looks at the lock';
cmp_ok($reads{'java'}, '<=', 1.3 * $reads{'java too'} + 2,
	'twenty waiting sessions send no more reads than one')
  or diag(explain(\%reads));
is($node->safe_psql('postgres', q{SELECT waiters FROM ddb_stats}),
	21, 'though all of them wait');
$node->safe_psql('postgres',
	q{SELECT pg_terminate_backend(pid) FROM ddb_locks WHERE state = 'waiting'});
$_->gone foreach $single, @crowd;
dynamodb->delete_item($_) foreach 'java', 'java too';

#
# Renewals share requests
#
check_batches($node);
$session->query_safe(
	q{SELECT ddb_lock_acquire('r' || n, lease => '30s') FROM generate_series(1, 25) n});
proxy->reset_counts;
my ($before, $alone) = map { stat_of($node, $_) } qw(renew_batch renew);
wait_for { proxy->forwarded('BatchExecuteStatement') > 0 } 'renewals';
wait_for
{
	$node->safe_psql('postgres',
		q{SELECT count(*) = 25 AND min(renewals) >= 1 FROM ddb_locks}) eq 't'
}
'their reply';
is(stat_of($node, 'renew_batch') - $before, 1, '25 leases are renewed by one request');
my ($batch, @more) = proxy->log;
is(scalar @more, 0, 'and nothing else arrives at DynamoDB');
is(scalar @{ $batch->{body}{Statements} }, 25, 'it has a statement for each');
is(stat_of($node, 'renew') - $alone, 0, 'none is renewed on its own');
is($session->query_safe(q{SELECT ddb_lock_release_all()}), 25, 'all were held');

$_->quit foreach $session, $next;
nothing_held_ok;
done_testing;
