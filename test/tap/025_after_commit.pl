# Who tries to get a lock right after the COMMIT of its holder gets it.

use DDBLock::Test;

use constant ROUNDS => 100;

my $one = new_cluster('one');
my @sessions = map { session($one) } 1 .. 2;

# The worker reads them in the order of their slots: both orders.
foreach my $first (0, 1)
{
	my ($holder, $next) = @sessions[ $first, 1 - $first ];
	my $refused = 0;

	foreach (1 .. ROUNDS)
	{
		$holder->query_safe(q{BEGIN; SELECT ddb_xact_lock_acquire('a'); COMMIT});
		$refused++ if $next->query_safe(q{SELECT ddb_lock_try_acquire('a')}) eq 'f';
		$next->query_safe('SELECT ddb_lock_release_all()');
	}
	is($refused, 0, 'session ' . (2 - $first) . ' is never refused after the other one\'s COMMIT');
}

# Who has just given back what its last try got: its own bell has rung before.
my ($holder, $next) = @sessions;
my $try = q{SELECT ddb_lock_try_acquire_all(ARRAY['a', 'b', 'c'])};
my $refused = 0;
foreach (1 .. ROUNDS)
{
	$holder->query_safe(q{BEGIN; SELECT ddb_xact_lock_acquire('b')});
	$next->query_safe($try);
	$holder->query_safe('COMMIT');
	$refused++ if $next->query_safe($try) eq 'f';
	$next->query_safe('SELECT ddb_lock_release_all()');
}
is($refused, 0, 'nor is who has tried in vain before');

done_testing;
