# One cluster, one session: a lock is taken, seen in DynamoDB, and released.

use DDBLock::Test;

my $node = new_cluster('smoke', through => proxy);

like(
	my $token = $node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}),
	qr/^[1-9][0-9]*$/,
	'acquiring returns a fencing token');

my $item = dynamodb->item('a');
ok($item, 'the lock has an item');
like($item->{ownerName}{S}, qr{^smoke/[0-9a-f-]{36}$},
	'the item names the cluster and its incarnation');
is($item->{fencingToken}{N}, $token, 'the item has the same token');

wait_for { exists dynamodb->item('a')->{isReleased} }
'the lock of the session that ended is released';

my $session = session($node);
$session->query_safe(q{SELECT ddb_lock_acquire('b', lease => '10s')});
is($session->query_safe(q{SELECT held, lease, data IS NULL FROM ddb_lock_info('b')}),
	't|00:00:10|t', 'information about a held lock');
cmp_ok($session->query_safe(q{SELECT ddb_lock_acquire('a')}), '>', $token, "the lock's tokens rise");

proxy->reset_counts;
is($session->query_safe(q{SELECT ddb_lock_release('b')}),
	't', 'the release is confirmed');
is(proxy->forwarded('UpdateItem'), 1, 'by one request');
is(dynamodb->item('b')->{isReleased}{S}, '1', 'the item is marked released');
is($session->query_safe(q{SELECT held FROM ddb_lock_info('b')}),
	'f', 'nobody holds it any more');

# Of the tests themselves: the time that a query has begins with the query.
$session->{timeout}->start(1);
wait_for { !eval { $session->{timeout}->check; 1 } };
is($session->query_safe('SELECT 1'), 1, 'a session may live for longer than a query may take');
$session->quit;

done_testing;
