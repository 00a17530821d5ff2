# Queues: what resources without jobs leave goes, and no number comes twice.

use DDBLock::Test;

my $one = new_cluster('one');
my $two = new_cluster('two');
my $a = session($one);
my $b = session($two);

$one->safe_psql('postgres', 'SELECT ddb_queue_table_create(protect => false)');
my $table = 'queueTable';

# Items of this sort key.
sub items
{
	my ($sk) = @_;
	my $found = dynamodb->call('Scan', { TableName => $table, ConsistentRead => \1 })->{Items};

	return scalar grep { $_->{sk}{S} eq $sk } @$found;
}

# As if so long had passed: since the last claims of these resources, and since the floor was raised.
sub age
{
	my (@resources) = @_;

	dynamodb->call('UpdateItem', { TableName => $table, Key => { pk => { S => "r#q#$_" }, sk => { S => 'head' } },
		UpdateExpression => 'SET #token = :one', ConditionExpression => 'attribute_exists(pk)',
		ExpressionAttributeNames => { '#token' => 'token' },
		ExpressionAttributeValues => { ':one' => { N => '1' } } }) foreach @resources;
	$one->safe_psql('postgres', 'UPDATE ddb_queue_done SET token = 1');
	return;
}

sub age_floor
{
	dynamodb->call('UpdateItem', { TableName => $table, Key => { pk => { S => 'floor' }, sk => { S => 'floor' } },
		UpdateExpression => 'SET due = :one', ConditionExpression => 'attribute_exists(pk)',
		ExpressionAttributeValues => { ':one' => { N => '1' } } });
	return;
}

sub depth { my ($resource) = @_; return $b->query_safe("SELECT coalesce(max(depth), 0) FROM ddb_queue_depths('q', '$resource')"); }
sub rows { return $a->query_safe('SELECT string_agg(resource, $$,$$ ORDER BY resource) FROM ddb_queue_done'); }
sub push_job { my ($session, $resource, $more) = @_; return $session->query_safe("SELECT ddb_queue_push('q', '$resource', '1'" . ($more // '') . ')'); }

# The next job's number; it is done and marked, so once.
sub work
{
	my ($session, $resource) = @_;
	my $number = wait_for { $session->query_safe("SELECT number FROM ddb_queue_claim('q', resources => '{$resource}')") } 'the next job';
	my $before = depth($resource);

	is($session->query_safe("SELECT ddb_queue_mark_done('q', '$resource', $number)"), 't', "job $number of $resource is done");
	$session->query_safe("SELECT ddb_queue_complete('q', '$resource', $number)");
	wait_for { depth($resource) < $before } "$resource/$number is finished";
	return $number;
}

like($a->error_of(q{SELECT ddb_queue_purge(older_than => '1 day -1 us')}),
	qr/22023: argument "older_than" must be at least 1 day/, 'what may still be under way is not purged');

#
# Orders, each a resource; one waits, one is paused
#
push_job($a, $_) foreach qw(o1 o1 o1 o2 waits paused);
is(push_job($a, 'o3', q{, id => 'mine'}), '1', 'a job with an id');
is(work($a, $_), 1, 'the first number is 1') foreach qw(o1 o2 o3 paused);
work($a, 'o1') foreach 2 .. 3;
$a->query_safe(q{SELECT ddb_queue_pause('q', 'paused')});
is($b->query_safe('SELECT ddb_queue_purge()'), '0', 'nothing is old');
is(rows(), 'o1,o2,o3,paused', 'no work is forgotten');
is(items('floor'), 0, 'no floor is needed');
push_job($a, 'dropped');
is($a->query_safe(q{SELECT ddb_queue_drop('q', 'dropped')}), '1', 'a job that nobody has claimed is dropped');
age(qw(o1 o2 o3 paused));
is($a->query_safe('SELECT ddb_queue_purge()'), '4', 'rows of jobs that do not come again go');
is(rows(), '', '... all of them');
is(items('head'), 6, 'a floor is new: heads stay');
is($b->query_safe('SELECT ddb_queue_purge()'), '0', '... until it counts');
age_floor();
is($b->query_safe('SELECT ddb_queue_purge()'), '4', 'then they go');
is(items('head'), 2, '... but those that say something');
is($b->query_safe('SELECT ddb_queue_purge()'), '0', '... once');

#
# Numbers go on above all that were given.  Cluster one has read the floor a moment ago; an hour passes.
#
is(push_job($b, 'o1'), '4', 'a number above all that were removed');
$a->quit;
$one->restart;
$a = session($one);
is(push_job($a, $_), '4', "another resource: $_") foreach qw(o2 new);
is(push_job($a, 'o1'), '5', 'and then the next number');
is(push_job($a, 'waits'), '2', 'a head that stays counts on');
is(push_job($a, 'o3', q{, id => 'mine'}), '1', 'an id is still that of a job that was');
is(depth('o3'), 0, '... which is not pushed again');
is(depth('o1'), 2, 'the depth is that of the new jobs');
is(work($b, 'o1'), 4, 'jobs come in their order');
is(work($a, 'o1'), 5, '... in both clusters');
is($a->query_safe(q{SELECT ddb_queue_cancel('q', 'o1', 1), ddb_queue_cancel('q', 'new', 4)}), 'f|t', 'an old number is no job');

#
# A push that remembers the number of a head that is gone; a job that its pusher wants to ride, and a large one
#
foreach my $payload ('1', qq{"@{['x' x 5000]}"})
{
	my $resource = 'seen' . length $payload;

	dynamodb->call('PutItem', { TableName => $table, Item => { pk => { S => "r#q#$resource" },
		sk => { S => 'head' }, seq => { N => '1' }, done => { N => '1' }, token => { N => '1' } } });
	is(push_job($a, $resource), '2', 'after an older head');
	work($a, $resource);
	age($resource);
	is($b->query_safe('SELECT ddb_queue_purge()'), '1', "$resource: its head goes, and another cluster does not know");
	is($a->query_safe("SELECT ddb_queue_push('q', '$resource', '$payload')"), '4', '... but its push gets a new number');
	is(work($a, $resource), 4, '... and a job');
}

#
# A resource that is paused keeps its head; one that was only ever paused has none
#
$a->query_safe(q{SELECT ddb_queue_resume('q', 'paused'), ddb_queue_pause('q', 'only'), ddb_queue_resume('q', 'only')});
my $before = items('head');
is($b->query_safe('SELECT ddb_queue_purge()'), '2', 'after their resumption, both go');
is(items('head'), $before - 2, '... and no other one');
$a->query_safe(q{SELECT ddb_queue_pause('q', 'first')});
is(push_job($a, 'first'), '4', 'a job of a resource that was paused before');
is($a->query_safe(q{SELECT number FROM ddb_queue_claim('q', resources => '{first}')}), '', '... waits');
$a->query_safe(q{SELECT ddb_queue_resume('q', 'first')});
is(work($a, 'first'), 4, '... and comes');

#
# Work of a job that may come again is not forgotten; nor that of a resource whose next job is done
#
push_job($a, 'again');
$a->query_safe(q{SELECT number FROM ddb_queue_claim('q', resources => '{again}')});
is($a->query_safe(q{SELECT ddb_queue_mark_done('q', 'again', 4); SELECT ddb_queue_fail('q', 'again', 4, retry_in => '0')}),
	"t\n", 'done, and to come again');
age('again');
$a->query_safe('SELECT ddb_queue_purge()');
is(rows(), 'again', 'its row stays');
is($a->query_safe(q{SELECT count(*) FROM ddb_queue_depths('q')}), $a->query_safe(q{SELECT count(DISTINCT resource) FROM ddb_queue_depths('q')}),
	'what waits is there');
like($a->error_of('BEGIN READ ONLY; SELECT ddb_queue_purge()'), qr/25006/, 'a purge writes');
$a->query_safe('ROLLBACK');

#
# Items of jobs without a head: what is up to a floor that counts is finished
#
dynamodb->call('PutItem', { TableName => $table, Item => { pk => { S => 'r#q#gone' },
	sk => { S => sprintf('job#%019d', $_) }, payload => { S => '1' } } }) foreach 3, 9;
is($b->query_safe('SELECT ddb_queue_purge()'), '1', 'a job that a removed head has finished goes');
is(items(sprintf 'job#%019d', 9), 1, '... and none that may be half written');

done_testing;
