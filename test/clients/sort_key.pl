# Amazon's lock client for Java with a sort key for each lock (withSortKey), and ddblock with a
# separator: both mean the same item, each waits for the other's, and both list a partition alike.

use DDBLock::Test;
use DDBLock::Client;
use Time::HiRes qw(time);

if (my $missing = DDBLock::Client::missing('java'))
{
	plan skip_all => $missing;
}

my $LEASE = 8;
my $LOOK = 'refresh=50';
my $node = new_cluster('one',
	conf => "ddblock.lease_duration = '${LEASE}s'\nddblock.sort_key = 'sort'\n"
	  . "ddblock.sort_key_value = '-'\nddblock.sort_separator = '#'\n");
my $sql = session($node);
my $waiter = session($node);

# One that behaves as the client does by default, and one that keeps items.
my %java = map { $_ => java() } '', 'keep';
my $dying = java();

# To ddblock, the lock whose sort key is "-" has the partition key as its name.
my %ours = ('orders#42' => 'orders#42', 'orders#4#2' => 'orders#4#2', 'orders#-' => 'orders');

sub java { return DDBLock::Client->start('java', dynamodb->url, 1000 * $LEASE, 2000, 'sort'); }
sub longer_than_the_lease { my ($name) = @_; wait_for_renewals([ split /#/, $name, 2 ], 6); return; }

#
# Each waits for the other, for longer than a lease; another sort key is another lock
#
foreach my $name (sort keys %ours)
{
	foreach my $mode (sort keys %java)
	{
		my $client = $java{$mode};
		my $token = $sql->query_safe("SELECT ddb_lock_acquire('$ours{$name}')");

		like($client->ask("acquire $name try $mode"), qr/^LockCurrentlyUnavailableException/,
			"Java ($mode) does not get \"$name\"");
		like($client->ask("look $name"), qr{^one/.* ${LEASE}000$}, '... but sees it');
		is($client->ask("acquire $name-other try $mode"), 'held', '... and gets its neighbour');
		$client->send("acquire $name $LOOK $mode");
		longer_than_the_lease($name) if $mode && $name eq 'orders#42';
		ok($client->busy, '... waits');
		is($sql->query_safe("SELECT ddb_lock_release('$ours{$name}')"), 't', '... until the session releases it');
		is($client->result, 'held', '... and gets it');
		is($sql->query_safe("SELECT ddb_lock_try_acquire('$ours{$name}')"), 'f', '... alone');
		is($sql->query_safe("SELECT held, owner ~ '^java-' FROM ddb_lock_info('$ours{$name}')"), 't|t', '... as ddblock sees');
		$waiter->send("SELECT ddb_lock_acquire('$ours{$name}')");
		wait_for_waiters($node, $ours{$name}, 1);
		longer_than_the_lease($name) if $mode && $name eq 'orders#42';
		ok($waiter->busy, 'a session waits for Java');
		is($client->ask("release $name"), 'released', '... which releases it');
		cmp_ok($waiter->result, '>', $token, '... and the session gets it, with a higher token');
		is($client->ask("release $name-other"), 'released', 'nobody minds the neighbour');
		$waiter->query_safe('SELECT ddb_lock_release_all()');
	}
}

#
# Lists of a partition
#
$java{keep}->ask('acquire list#java keep');
$sql->query_safe(q{SELECT ddb_lock_acquire_all('{list#sql,list,other#1}')});
is($java{''}->ask('list list'), 'list#- list#java list#sql', 'Java lists a partition');
is($sql->query_safe(q{SELECT string_agg(name || ' ' || state, ', ' ORDER BY name) FROM ddb_lock_list('list#')}),
	'list#java held, list#sql held', q{ddblock lists those with a sort key of their own});
is($java{''}->ask('list'),
	join(' ', sort map { $_->{key}{S} . '#' . $_->{sort}{S} } dynamodb->items), 'Java lists all of these items');
$java{keep}->ask('release list#java');

#
# Killed holders: who waits gets the lock, after its lease and not before
#
is($dying->ask('acquire killed#1'), 'held', 'Java holds a lock');
$waiter->send(q{SELECT ddb_lock_acquire('killed#1')});
wait_for_waiters($node, 'killed#1', 1);
longer_than_the_lease('killed#1');
ok($waiter->busy, '... for which a session waits');
my $since = time;
wait_for_renewals([qw(killed 1)], 1);
$dying->kill;
like($waiter->result, qr/^\d+$/, '... and takes it over when Java is dead');
cmp_ok(time - $since, '>', 0.95 * $LEASE, '... not before its lease is over');
$java{keep}->send("acquire killed#1 $LOOK keep");
$java{''}->send("acquire list#sql $LOOK");
longer_than_the_lease('killed#1');
ok($java{$_}->busy, 'Java waits for a session') foreach '', 'keep';
$since = time;
wait_for_renewals($_, 1) foreach [qw(killed 1)], [qw(list sql)];
DDBLock::Client::kill_cluster($node);
is($java{$_}->result, 'held', '... and takes its lock over when the cluster is dead') foreach 'keep', '';
cmp_ok(time - $since, '>', 0.95 * $LEASE, '... not before its lease is over');
$_->gone foreach $sql, $waiter;

done_testing;
