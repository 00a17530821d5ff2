# Small jobs ride on their resource's head: they are pushed, claimed and finished with it, without items of
# their own.  Nobody can tell them from others but by what they cost.

use DDBLock::Test;
use List::Util qw(sum);

my $one = new_cluster('one', through => proxy, conf => "ddblock.keep_warm = off\n");
my $two = new_cluster('two');
my $a = session($one);
my $b = session($two);
my $table = 'queueTable';

$a->query_safe(q{SELECT ddb_queue_table_create(); SELECT ddb_queue_push('other', 'r', '1'); SELECT ddb_queue_drop('other', 'r')});

sub job { my ($size, $letter) = @_; return "to_jsonb(repeat('" . ($letter // 'x') . "', $size))"; }

sub push_to { my ($session, $resource, $job) = @_; return $session->query_safe("SELECT ddb_queue_push('q', '$resource', $job)"); }

# "number|first letter|length|attempt", or "".
sub next_of
{
	my ($session, $resource) = @_;

	return $session->query_safe(q{SELECT number, left(payload #>> '{}', 1), length(payload #>> '{}'), attempt FROM ddb_queue_claim('q', }
		  . "resources => '{$resource}', wait => '1 min', max_attempts => 2)");
}

sub complete { my ($session, $resource, $number) = @_; $session->query_safe("SELECT ddb_queue_complete('q', '$resource', $number)"); return; }

sub depth_of { my ($resource) = @_; return $one->safe_psql('postgres', "SELECT coalesce(max(depth), 0) FROM ddb_queue_depths('q', '$resource')"); }

sub head_of { my ($resource) = @_; return dynamodb->call('GetItem', { TableName => $table, Key => { pk => { S => "r#q#$resource" }, sk => { S => 'head' } } })->{Item}; }

# The numbers of the jobs that ride on the head, and of those that have items.
sub riders_of { my ($resource) = @_; return join ' ', map { /^job#0*(\d+)$/ ? $1 : () } sort keys %{ head_of($resource) }; }

sub items_of
{
	my ($resource) = @_;
	my $reply = dynamodb->call('Query', { TableName => $table, KeyConditionExpression => 'pk = :r AND begins_with(sk, :job)',
			ExpressionAttributeValues => { ':r' => { S => "r#q#$resource" }, ':job' => { S => 'job#' } } });

	return join ' ', map { $_->{sk}{S} =~ /^job#0*(\d+)$/ } @{ $reply->{Items} };
}

# The requests that a statement sends, by their operations.  The worker sends some after COMMIT.
sub sends_ok
{
	my ($session, $sql, $expected, $what) = @_;
	my $count = sub { return { map { $_ => proxy->received($_) } qw(GetItem Query UpdateItem TransactWriteItems DeleteItem) } };

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $before = $count->();
	my $got = $session->query_safe($sql);
	my $after;
	wait_for { $after = $count->(); sum(values %$after) - sum(values %$before) >= sum($expected =~ /\d+/g) } $what;
	is(join(' ', map { $after->{$_} > $before->{$_} ? "$_ " . ($after->{$_} - $before->{$_}) : () } sort keys %$after), $expected, $what);
	return $got;
}

#
# What a job costs
#
is(sends_ok($a, q{SELECT ddb_queue_push('q', 'cost', '1')}, 'GetItem 1 TransactWriteItems 1', 'the first push of a resource looks at the head'), 1, '... and has number 1');
is(sends_ok($a, q{SELECT ddb_queue_push('q', 'cost', '2')}, 'TransactWriteItems 1', 'the next one knows it'), 2, '... and has number 2');
is(riders_of('cost'), '1 2', 'both ride on the head');
is(items_of('cost'), '', 'and have no items');
is(sends_ok($a, q{SELECT number FROM ddb_queue_claim('q', resources => '{cost}')}, 'UpdateItem 2', 'lock and claim: the job comes with the claim'), 1, '... it is the first one');
sends_ok($a, q{SELECT ddb_queue_complete('q', 'cost', 1); SELECT count(*) FROM ddb_queue_depths('q', 'cost')}, 'GetItem 1 UpdateItem 2',
	'completion and release: nothing is left to delete; the read is of the depth');
is(riders_of('cost'), '2', 'the other one still rides');
is(sends_ok($a, q{SELECT ddb_queue_push('q', 'cost', '3', 'an id')}, 'TransactWriteItems 1', 'a job with an id rides as well'), 3, '... as the third one');

# Another cluster has moved the head: the refusal shows it.
is(push_to($b, 'cost', job(9)), 4, 'another cluster pushes');
is(sends_ok($a, q{SELECT ddb_queue_push('q', 'cost', '5')}, 'TransactWriteItems 2', 'a wrong guess is refused, and repeated'), 5, '... with the right number');

sends_ok($a, q{SELECT ddb_queue_push('q', 'cost', '5')}, 'GetItem 1 TransactWriteItems 1', 'after a wrong guess, a push looks at the head');
sends_ok($a, q{SELECT ddb_queue_push('q', 'cost', '5')}, 'TransactWriteItems 1', '... and then guesses again');

# A paused resource's jobs are nobody's business: its pushes look, so that no session is woken.
push_to($a, 'paused', job(1));
$a->query_safe(q{SELECT ddb_queue_pause('q', 'paused')});
sends_ok($a, q{SELECT ddb_queue_push('q', 'paused', '1')}, 'GetItem 1 TransactWriteItems 1', 'a push to a paused resource looks at the head') foreach 1, 2;

# The index shows who may have a job, and how often it was claimed.
$b->query_safe(q{SELECT ddb_queue_push('seen', r, '1') FROM unnest('{free,taken,paused}'::text[]) r;
	SELECT ddb_queue_pause('seen', 'paused'); SELECT number FROM ddb_queue_claim('seen', resources => '{taken}')});
# The clusters' ideas of DynamoDB's time differ a little.
$one->safe_psql('postgres', q{CALL ddb_queue_await('seen', wait => '1 min')});
is(sends_ok($a, q{SELECT resource FROM ddb_queue_claim('seen')}, 'Query 1 UpdateItem 2', "a job of another cluster's takes a look, lock and claim"), 'free', '... which is free');
is(sends_ok($a, q{SELECT resource FROM ddb_queue_claim('seen')}, 'Query 1', 'a look shows neither what is claimed nor what is paused'), '', '... so there is no other one');

# A job that failed is not to be tried at once: a push looks.
is(next_of($a, 'cost') =~ /^2\|/ ? 1 : 0, 1, 'the next job');
$a->query_safe(q{SELECT ddb_queue_fail('q', 'cost', 2, retry_in => '1h')});
sends_ok($a, q{SELECT ddb_queue_push('q', 'cost', '6')}, 'GetItem 1 TransactWriteItems 1', 'after a failure, a push looks at the head') foreach 1, 2;

# The table is made anew: what was remembered is wrong, which does no harm.
dynamodb->call('DeleteItem', { TableName => $table, Key => { pk => { S => 'r#q#anew' }, sk => { S => 'head' } } }) if push_to($a, 'anew', job(1));
is(push_to($a, 'anew', job(1)), 1, 'a head that is gone begins anew');

# ... unless a copy of the push may still come, which would be applied when the head has that number again.
push_to($a, 'fallen', job(1)) foreach 1, 2;
dynamodb->call('DeleteItem', { TableName => $table, Key => { pk => { S => 'r#q#fallen' }, sk => { S => 'head' } } });
proxy->fault('reset', operation => 'TransactWriteItems');
like($a->error_of(q{SELECT ddb_queue_push('q', 'fallen', '1')}), qr/08006.*last number of the resource has fallen/s, 'a push that may have been applied, and a head that is gone');
is(push_to($a, 'fallen', job(1)), 1, '... the next push has the first number');

#
# Small and large ones in turn, in all orders of three: they come in the order of their numbers
#
foreach my $which (0 .. 7)
{
	my $resource = "mix$which";
	my @sizes = map { $which & 1 << $_ ? 5000 : 3 } 0 .. 2;

	push_to($a, $resource, job($sizes[$_], substr('abc', $_, 1))) foreach 0 .. 2;
	is(riders_of($resource), join(' ', grep { $sizes[ $_ - 1 ] == 3 } 1 .. 3), "$resource: the small ones ride");
	is(items_of($resource), join(' ', grep { $sizes[ $_ - 1 ] > 3 } 1 .. 3), '... the large ones do not');
	is($b->query_safe("SELECT string_agg(number::text, ' '), bool_and(age < '1 h') FROM ddb_queue_list('q', '$resource')"), '1 2 3|t', '... and the list has all');
	foreach my $number (1 .. 3)
	{
		my $session = $number == 2 ? $b : $a;
		is(next_of($session, $resource), sprintf('%d|%s|%d|1', $number, substr('abc', $number - 1, 1), $sizes[ $number - 1 ]), "... $number comes");
		complete($session, $resource, $number);
	}
	wait_for { depth_of($resource) == 0 } 'all are finished';
	wait_for { items_of($resource) eq '' } 'the items are deleted';
	is(riders_of($resource), '', '... and nothing rides any more');
}

#
# How much rides
#
push_to($a, 'big', job(1900));
is(riders_of('big'), '1', 'one job of less than 2 kB rides alone');
push_to($a, 'big', job(1));
is(riders_of('big') . '/' . items_of('big'), '1/2', '... so that there is no room for another one');
is(next_of($a, 'big'), '1|x|1900|1', '... it comes');
complete($a, 'big', 1);
is(next_of($a, 'big'), '2|x|1|1', '... and the other one');
complete($a, 'big', 2);
wait_for { depth_of('big') == 0 } 'both are finished';
push_to($a, 'big', job(1900));
is(riders_of('big'), '3', 'then there is room again');
push_to($a, 'full', job(30)) foreach 1 .. 10;
my @riders = split / /, riders_of('full');
cmp_ok(scalar(@riders), '>=', 4, 'several small ones ride');
cmp_ok(scalar(@riders), '<', 10, '... but not all');
is(join(' ', @riders, items_of('full')), join(' ', 1 .. 10), '... the rest have items');
is(push_to($a, 'all', job(1)), 1, 'a push of several jobs');
$a->query_safe(q{SELECT ddb_queue_push_all('q', 'all', array_fill('1'::jsonb, '{20}'))});
is(riders_of('all') . '/' . items_of('all'), '1/' . join(' ', 2 .. 21), '... rides as a whole or not at all');

#
# Cancelled, dropped, buried, redriven
#
push_to($a, 'cancel', job(1)) foreach 1 .. 4;
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'cancel', 3)}), 't', 'a job that rides is cancelled');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'cancel', 3)}), 'f', '... once');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'cancel', 1)}), 't', '... and the next one');
is(riders_of('cancel'), '2 4', '... they are gone');
is(next_of($a, 'cancel'), '2|x|1|1', '... the others come');
like($b->error_of(q{SELECT ddb_queue_cancel('q', 'cancel', 2)}), qr/55006/, '... and run');
complete($a, 'cancel', 2);
is(next_of($a, 'cancel'), '4|x|1|1', '... in order');
complete($a, 'cancel', 4);

push_to($a, 'drop', job($_)) foreach 1, 2, 5000, 4;
is($b->query_safe(q{SELECT ddb_queue_drop('q', 'drop')}), 4, 'jobs are dropped');
is(riders_of('drop') . '/' . items_of('drop'), '/', '... wherever they are');
is(push_to($a, 'drop', job(1)), 5, 'numbers go on');

push_to($a, 'bury', job(7));
foreach my $attempt (1, 2)
{
	is(next_of($a, 'bury'), "1|x|7|$attempt", "attempt $attempt");
	$a->query_safe(q{SELECT ddb_queue_fail('q', 'bury', 1, 'it was bad', retry_in => '0 s')});
}
is($a->query_safe(q{SELECT number FROM ddb_queue_claim('q', resources => '{bury}', max_attempts => 2)}), '', 'then it is dead');
is($a->query_safe(q{SELECT resource, number, length(payload #>> '{}'), attempts, last_error FROM ddb_queue_list('q', dead => true)}), 'bury|1|7|2|it was bad', '... as it was');
is(riders_of('bury'), '', '... and rides no more');
is($a->query_safe(q{SELECT ddb_queue_redrive('q')}), 1, 'it is pushed anew');
is(next_of($b, 'bury'), '2|x|7|1', '... and comes');
complete($b, 'bury', 2);

# A claim that dies: the job stays on the head.
push_to($a, 'dies', job(3));
is(next_of($b, 'dies'), '1|x|3|1', 'a job');
$b->quit;
is(riders_of('dies'), '1', '... whose session ends still rides');
is($a->query_safe(q{SELECT oldest < '1 h' AND depth > 0 FROM ddb_queue_summary('q')}), 't', 'the summary counts what rides');

$a->quit;
nothing_held_ok;
done_testing;
