# What a session has lost, and does not acknowledge, takes nobody's room; and the
# session is told of it all the same.

use DDBLock::Test;

my $max = 5;
my $near = new_proxy();
my $node = new_cluster('one', through => $near, conf => "ddblock.max_leases = $max\n"
	  . "ddblock.request_timeout = '1s'\nddblock.retry_timeout = '2s'\n");
my $acquire = q{SELECT count(ddb_lock_acquire('%s/' || i, lease => '%s')) FROM generate_series(1, %d) i};

sub losses { return stat_of($node, undef, 'leases_lost'); }

# One that sits in a pool.
my $idle = session($node);
my $other = session($node);
is($idle->query_safe(sprintf $acquire, 'deleted', '20s', $max), $max, 'all leases are taken');
like($other->error_of(q{SELECT ddb_lock_acquire('more')}), qr/53400/, '... so there is no room');
dynamodb->delete_item("deleted/$_") foreach 1 .. $max;
wait_for { losses() == $max } 'their loss';
is($node->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE state = 'lost'}),
	$max, 'they are lost, and show as such');
is($other->query_safe(sprintf $acquire, 'other', '1h', $max),
	$max, 'another session has room for all the same');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT state, ',') FROM ddb_locks}),
	'held', '... and its rows');

# The entries are another's now.
foreach my $call (qw(ddb_lock_require ddb_lock_renew ddb_lock_acquire))
{
	$idle->ask('SELECT 1');
	like($idle->error_of("SELECT $call('deleted/2')"),
		qr/LK001: .*was deleted by somebody else/s, "$call: the session is told, and why");
}
is($idle->query_safe(q{SELECT ddb_lock_token('deleted/1') IS NULL}), 't', 'it holds nothing');
is($idle->ask(q{SELECT ddb_lock_release('deleted/1')}), 'f', 'it acknowledges one');
like($idle->messages, qr/was deleted by somebody else/, '... and learns why');
$idle->ask('SELECT ddb_lock_release_all()');
is($other->query_safe(q{SELECT count(ddb_lock_require('other/' || i)) FROM generate_series(1, 5) i}),
	$max, '... which frees nothing of the other session');
like($idle->error_of(q{SELECT ddb_lock_acquire('more')}), qr/53400/, 'nor makes room that is not there');
is($other->query_safe('SELECT ddb_lock_release_all()'), $max, 'what is held can be released');

#
# Each function that concerns what the session holds, twice: the loss stays, until it is acknowledged.
#
my $token = $idle->query_safe(q{SELECT ddb_lock_acquire('own')});
$idle->query_safe(q{SELECT ddb_semaphore_acquire('permits', 2), ddb_lock_acquire_shared('shared'), ddb_lock_acquire('alone'),
	ddb_lock_acquire('nowait')});
my %raises = (
	ddb_lock_acquire => q{'own'}, ddb_lock_try_acquire => q{'own'}, ddb_xact_lock_acquire => q{'own'},
	ddb_xact_lock_try_acquire => q{'own'}, ddb_lock_acquire_all => q{'{own}'}, ddb_lock_try_acquire_all => q{'{other,own}'},
	ddb_xact_lock_acquire_all => q{'{own}'}, ddb_xact_lock_try_acquire_all => q{'{own,other}'},
	ddb_lock_acquire_shared => q{'own'}, ddb_lock_try_acquire_shared => q{'own'}, ddb_xact_lock_acquire_shared => q{'own'},
	ddb_xact_lock_try_acquire_shared => q{'own'}, ddb_semaphore_acquire => q{'own', 2}, ddb_semaphore_try_acquire => q{'own', 2},
	ddb_xact_semaphore_acquire => q{'own', 2}, ddb_xact_semaphore_try_acquire => q{'own', 2},
	ddb_lock_await => q{'own'}, ddb_lock_await_all => q{'{own}'}, ddb_lock_await_shared => q{'own'}, ddb_semaphore_await => q{'own', 2},
	ddb_lock_join => "'own', $token", ddb_lock_detach => q{'own', '1h'}, ddb_lock_outlive => q{'own'},
	ddb_lock_renew => q{'own'}, ddb_lock_require => q{'own'});
my @released = qw(alone nowait shared permits);
my @null = qw(ddb_lock_token ddb_lock_remaining);
my @of_others = qw(ddb_leadership_held ddb_leadership_require ddb_leadership_resign ddb_lock_await_end ddb_lock_force_release
	ddb_lock_info ddb_lock_monitor ddb_lock_release_detached);
my $own_lost = qr/LK001: the lease on lock "own" is lost.*was deleted by somebody else/s;
is(join(' ', sort keys %raises, 'ddb_lock_release', @null, @of_others), $node->safe_psql('postgres', q{
	SELECT string_agg(proname, ' ' ORDER BY proname COLLATE "C") FROM pg_proc
	WHERE proname ~ '^ddb_' AND proargnames && '{name,names}' AND (proargmodes IS NULL OR proname = 'ddb_lock_info')}),
	'the functions that name locks');
dynamodb->delete_item($_) foreach 'own', @released;
wait_for { $node->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks WHERE state = 'lost'}) eq '5' } 'the losses';
$idle->ask('SELECT 1');
foreach my $function (sort keys %raises)
{
	my $call = ($function =~ /await/ ? 'CALL' : 'SELECT') . " $function($raises{$function})";

	like($idle->error_of($call), $own_lost, "$function: the loss") foreach 1, 2;
}
is($idle->query_safe("SELECT $_('own') IS NULL"), 't', "$_: nothing") foreach @null, @null;
foreach my $lock (@released)
{
	my $call = "SELECT ddb_lock_release('$lock', nowait => " . ($lock eq 'nowait' ? 'true)' : 'false)');

	is($idle->ask($call), 'f', "$lock: it was lost");
	like($idle->messages, qr/WARNING: +LK001: .*was deleted by somebody else/s, '... and why');
	is($idle->ask($call), 'f', '... which it acknowledges');
	like($idle->messages, qr/WARNING: .*is not held by this session/, '... once');
}
is($idle->ask('SELECT ddb_lock_release_all()'), 0, 'ddb_lock_release_all: what was lost does not count');
like($idle->messages, qr/WARNING: +LK001: the lease on lock "own" was lost.*was deleted by somebody else/s, '... and why');
is($idle->query_safe('SELECT ddb_lock_release_all()'), 0, '... which it acknowledges, once');

# An outage.
is($idle->query_safe(sprintf $acquire, 'outage', '10s', $max), $max, 'all leases are taken again');
my $before = losses();
$near->stop;
wait_for { losses() == $before + $max } 'their loss';
$near->restart;
wait_for
{
	$other->ask(sprintf $acquire, 'after', '1h', $max);
	$other->complaints eq '';
}
'room after the outage';
pass('after an outage, another session has room');
$idle->ask('SELECT 1');
like($idle->error_of(q{SELECT ddb_lock_require('outage/3')}),
	qr/LK001: .*No renewal was confirmed/s, 'and who lost all is told so');

$_->quit foreach $idle, $other;
nothing_held_ok;
done_testing;
