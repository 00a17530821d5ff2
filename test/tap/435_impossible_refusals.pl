# Refusals that no reply explains: DynamoDB never sends them, another server may.  No function goes on
# for ever, or at full speed.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy, conf => "ddblock.keep_warm = off\n");
my $session = session($one);
my $holder = session($one);

# Every such write is refused, without the item.
sub refuse
{
	my ($match) = @_;

	proxy->reset_counts;
	proxy->fault('error', operation => 'UpdateItem', match => $match, count => -1, status => 400,
		type => 'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException');
	return;
}

sub ends_ok
{
	my ($sql, $expected, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($session->error_of($sql), $expected, "$what: an error");
	cmp_ok(proxy->faults, '>', 5, '... after several attempts');
	cmp_ok(proxy->faults, '<', 30, '... but not too many');
	proxy->clear_faults;
	return;
}

$session->query_safe('SELECT ddb_queue_table_create()');
$session->query_safe(q{SELECT ddb_queue_push('q', 'r', '1')});
refuse('queueTable');
ends_ok(q{SELECT ddb_queue_drop('q', 'r')}, qr/XX000: +DynamoDB's replies about table "queueTable" do not fit/, 'dropping jobs');
is($session->query_safe(q{SELECT ddb_queue_drop('q', 'r')}), 1, '... and later they are dropped');

$holder->query_safe(q{SELECT ddb_lock_acquire('f', lease => '1h')});
refuse('isReleased');
ends_ok(q{SELECT ddb_lock_force_release('f')}, qr/XX000: +DynamoDB's replies about table "lockTable" do not fit/, 'releasing by force');
refuse('fencingToken');
ends_ok(q{SELECT ddb_lock_acquire('free')}, qr/XX000:.*refused again and again/s, 'acquiring a free lock');
cmp_ok($session->query_safe(q{SELECT ddb_lock_acquire('free', lease => '1h')}), '>', 0, '... which works later');
is($session->query_safe(q{SELECT ddb_lock_release('free')}), 't', '... and it is released');
is($holder->query_safe(q{SELECT ddb_lock_require('f') > 0, ddb_lock_release('f')}), 't|t', 'the other lock was held all the time');

$_->quit foreach $session, $holder;
nothing_held_ok;
done_testing;
