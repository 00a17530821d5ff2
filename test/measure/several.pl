# What several locks in one call cost: ddb_lock_acquire_all() of 20 locks beside 20 calls of
# ddb_lock_acquire(), in one session, on a server that takes 5 ms for each reply.  "make
# several ROUNDS=40" runs it.  Both take turns; shown are medians, their ratio, and what a
# single acquire takes.  All locks are free.  DynamoDB is the double.

use DDBLock::Test;

my ($rounds, $delay_ms) = ($ENV{ROUNDS} || 40, 5);
my $double = new_double();
my $node = new_cluster('one', through => $double, table => 0,
	conf => "log_statement = none\nddblock.lease_duration = '1h'\n");

$node->safe_psql('postgres', <<'SQL');
SELECT ddb_lock_table_create();
CREATE FUNCTION ms(call text) RETURNS float LANGUAGE plpgsql AS $$
DECLARE
	before timestamptz := clock_timestamp();
	took float;
BEGIN
	EXECUTE call;
	took := 1000 * extract(epoch FROM clock_timestamp() - before);
	PERFORM ddb_lock_release_all();
	RETURN took;
END $$;
SQL
$double->fault('late_reply', delay_ms => $delay_ms, count => -1);

my $session = session($node);
my %calls = (
	single => q{SELECT ddb_lock_acquire('l/1')},
	turn   => q{SELECT count(ddb_lock_acquire('l/' || i)) FROM generate_series(1, 20) i},
	all    => q{SELECT ddb_lock_acquire_all(array_agg('l/' || i)) FROM generate_series(1, 20) i});
my (%took, %sent);

foreach my $round (1 .. $rounds)
{
	foreach my $call (sort keys %calls)
	{
		my $before = $double->requests;
		my $ms = $session->query_safe("SELECT ms(\$\$$calls{$call}\$\$)");

		push @{ $took{$call} }, $ms if $round > 3;
		$sent{$call} = ($double->requests - $before) / 2;
	}
}
my %median = map { my @sorted = sort { $a <=> $b } @{ $took{$_} }; $_ => $sorted[ @sorted / 2 ] } keys %took;

diag(sprintf '%-8s %6.1f ms, %d acquires', $_, $median{$_}, $sent{$_}) foreach qw(single turn all);
diag(sprintf '20 in one call take %.2f times as long as one, %.3f of 20 in turn',
	$median{all} / $median{single}, $median{all} / $median{turn});
is($sent{all}, $sent{turn}, 'one call sends no more requests');
cmp_ok($median{all}, '<', $median{turn}, 'and takes less time');
$session->quit;
done_testing;
