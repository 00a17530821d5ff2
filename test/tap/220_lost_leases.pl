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
