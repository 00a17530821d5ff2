# Refusals that no reply explains: DynamoDB never sends them, another server may.  No function goes on
# for ever, or at full speed.

use DDBLock::Test;
use Time::HiRes qw(time);

my $one = new_cluster('one', through => proxy, conf => "ddblock.keep_warm = off\n");
my $session = session($one);
my $holder = session($one);

my $type = 'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException';

# Every such write is refused, without the item, or with one that fits.
sub refuse
{
	my ($match, %options) = @_;

	proxy->reset_counts;
	proxy->fault('error', operation => 'UpdateItem', match => $match, count => -1, status => 400, type => $type, %options);
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

#
# Jobs: the refusal of a completion shows a head that this completion would fit
#
my $fitting = { Item => { token => ':token', done => ':before', seq => { N => '9' } } };
my $unfit = qr/XX000: +DynamoDB's replies about table "queueTable" do not fit/;

# The first two ride on the head, the others have items.
$session->query_safe(q{SELECT ddb_queue_push_all('q', 'c', '{1,2}')});
$session->query_safe(q{SELECT ddb_queue_push_all('q', 'c', array_fill(to_jsonb(repeat('x', 5000)), '{3}'))});
refuse('SET #done', merge => $fitting);
ends_ok(q{SELECT ddb_queue_cancel('q', 'c', 1)}, $unfit, 'completing a job that is cancelled');
is($session->query_safe(q{SELECT ddb_queue_cancel('q', 'c', 1)}), 't', '... which works later');

# Cancelling a job: the one before it is the next one, and then it is the next one itself.
sub cancels_ok
{
	my ($resource, $number, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	proxy->reset_counts;
	foreach my $turn (1 .. 50)
	{
		proxy->fault('edit', operation => 'GetItem', match => '"head"', merge => { Item => { done => { N => "$_" } } })
		  foreach $number - 2, $number - 1;
	}
	proxy->fault('error', operation => 'TransactWriteItems', count => -1, status => 400, name => 'transaction',
		type => 'TransactionCanceledException', merge => { CancellationReasons => [ { Code => 'ConditionalCheckFailed' }, { Code => 'None' } ] });
	my $cancel = "SELECT ddb_queue_cancel('q', '$resource', $number)";
	like($session->error_of($cancel), $unfit, "cancelling $what: an error");
	cmp_ok(proxy->faults('TransactWriteItems'), '<', 30, '... after not too many attempts');
	cmp_ok(proxy->faults('TransactWriteItems'), '>', 5, '... but several');
	proxy->clear_faults;
	is($session->query_safe($cancel), 't', '... which works later');
	return;
}

cancels_ok('c', 4, 'a later job');
$session->query_safe(q{SELECT ddb_queue_push_all('q', 'ride', '{1,2,3}')});
cancels_ok('ride', 3, 'a job that rides');

# A job that is not there, and not gone.
is($session->query_safe(q{SELECT ddb_queue_cancel('q', 'c', 2)}), 't', 'the second job is cancelled');
dynamodb->call('DeleteItem', { TableName => 'queueTable', Key => { pk => { S => 'r#q#c' }, sk => { S => sprintf('job#%019d', 3) } } });
refuse('attribute_not_exists', operation => 'DeleteItem');
ends_ok(q{SELECT ddb_queue_claim('q', resources => '{c}')}, $unfit, 'reading a job');

# Giving back a job: once.
$session->query_safe(q{SELECT ddb_queue_push('q', 'f', '1')});
is($session->query_safe(q{SELECT number FROM ddb_queue_claim('q', resources => '{f}')}), 1, 'a job');
refuse('#lastError', merge => $fitting);
like($session->error_of(q{SELECT ddb_queue_fail('q', 'f', 1)}), qr/LK001/, 'giving back a job: an error');
is(proxy->faults, 1, '... at once');
proxy->clear_faults;
$session->query_safe(q{SELECT ddb_lock_release_all()});

#
# The worker goes on, since nobody else can, but ever slower: the random pauses of 12 attempts are 3 s in the
# middle, and below 0.3 s once in a hundred thousand times.
#
sub slows_down_ok
{
	my ($what) = @_;
	my $began;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_for { proxy->faults >= 1 } "a refusal of $what";
	$began = time;
	wait_for { proxy->faults >= 12 } "12 refusals of $what";
	cmp_ok(time - $began, '>', 0.3, "$what slows down");
	return;
}

$session->query_safe(q{SELECT ddb_queue_push('q', 'w', '1')});
my $worker = session($one);
is($worker->query_safe(q{SELECT number FROM ddb_queue_claim('q', resources => '{w}')}), 1, 'a job');
refuse('SET #done', merge => $fitting);
$worker->query_safe(q{SELECT ddb_queue_complete('q', 'w', 1)});
slows_down_ok('a completion by the worker');
proxy->clear_faults;
wait_for { $session->query_safe(q{SELECT coalesce(sum(depth), 0) FROM ddb_queue_depths('q', 'w')}) eq '0' } 'the completion';
$worker->quit;

# After a crash, the next worker releases what the last one held.
foreach my $write ([ 'SET #fencingToken', 'the bar of a dead lock' ], [ '#isReleased', 'the release of a dead lock' ])
{
	my ($match, $what) = @$write;

	$holder->query_safe(q{SELECT ddb_lock_acquire('dead', lease => '1h')});
	$one->stop('immediate');
	$_->quit foreach $session, $holder;
	refuse($match, match => $match, merge => { Item => dynamodb->item('dead') });
	$one->start;
	($session, $holder) = (session($one), session($one));
	slows_down_ok($what);
	proxy->clear_faults;
	wait_for { is_released('dead') } 'the release';
}

$_->quit foreach $session, $holder;
nothing_held_ok;
done_testing;
