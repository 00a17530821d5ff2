# A lock's name with a separator means partition key and sort key: a lock like any other, which is
# one item, and the only name of that item. Locks of one partition are listed by a Query.

use DDBLock::Test;

my %conf = (
	conf => "ddblock.sort_key = 'sort'\nddblock.sort_key_value = '-'\nddblock.sort_separator = '#'\n"
	  . "restart_after_crash = on\n");
my $one = new_cluster('one', through => proxy, %conf);
my $two = new_cluster('two', %conf);
my $sql = session($one);
my $other = session($two);
my $lease = q{lease => '1h'};

sub item { my ($partition, $sort) = @_; return dynamodb->item([ $partition, $sort ]); }
sub held { my $item = item(@_); return $item && !exists $item->{isReleased}; }

sub names
{
	my ($where, $prefix) = @_;

	return $where->query_safe(
		qq{SELECT string_agg(name, ' ' ORDER BY name COLLATE "C") FROM ddb_lock_list('$prefix')});
}

sub seen_with_prefix
{
	my ($lock_prefix) = @_;
	my $session = session($one);

	$session->query_safe("SET ddblock.lock_prefix = '$lock_prefix'");
	my $seen = names($session, '');
	$session->quit;
	return $seen;
}

sub put
{
	my ($partition, $sort, %extra) = @_;

	dynamodb->put_item(dynamodb->java_item([ $partition, $sort ], extra => \%extra));
	return;
}

#
# Each name is one item, and excludes the other cluster
#
my %names = ('orders#42' => [ 'orders', '42' ], 'orders#4#2' => [ 'orders', '4#2' ], 'orders' => [ 'orders', '-' ]);
my %token;

foreach my $name (sort keys %names)
{
	$token{$name} = $sql->query_safe("SELECT ddb_lock_acquire('$name', data => '$name')");
	is(dynamodb->item($names{$name})->{fencingToken}{N}, $token{$name}, "\"$name\" is an item");
	is($other->query_safe("SELECT ddb_lock_try_acquire('$name')"), 'f', '... that another cluster does not get');
	is($other->query_safe("SELECT held, token, convert_from(data, 'UTF8') FROM ddb_lock_info('$name')"),
		"t|$token{$name}|$name", '... but sees');
}
is(scalar(dynamodb->items), keys %names, '... and each a different one');
foreach my $name (sort keys %names)
{
	my $waiter = session($two);

	$waiter->send("SELECT ddb_lock_acquire('$name')");
	wait_for_waiters($two, $name, 1);
	is($sql->query_safe("SELECT ddb_lock_release('$name')"), 't', "\"$name\" is released");
	cmp_ok($waiter->result, '>', $token{$name}, '... and who waits gets it');
	is($sql->query_safe("SELECT ddb_lock_try_acquire('$name')"), 'f', '... alone');
	$waiter->quit;
}
is($sql->query_safe(q{SELECT count(*) FROM unnest(ddb_lock_acquire_all('{orders#42,orders,orders#4#2}'))}),
	3, 'all at once');
is($other->ask(q{SELECT ddb_lock_force_release('orders#42')}), 't', 'one is released by force');
ok(!held('orders', '42') && held('orders', '-') && held('orders', '4#2'), '... and no other');
like($sql->error_of(q{SELECT ddb_lock_renew('orders#42')}), qr/ERROR: +LK001: .*"orders#42".*released/s, '... as its holder learns');
is($sql->ask('SELECT ddb_lock_release_all()'), 2, '... which releases the others');

#
# Names that would mean an item that has another name, or none
#
proxy->reset_counts;
my $long = 'x' x 1025;
my %wrong = (
	'#42' => qr/partition key.* is empty/,
	'orders#' => qr/sort key.* is empty/,
	'orders#-' => qr/sort key is the value of "ddblock.sort_key_value": this lock's name is the part before/,
	"orders#$long" => qr/sort key.* is longer than 1024 bytes/);
foreach my $name (sort keys %wrong)
{
	foreach my $call ("ddb_lock_acquire('$name')", "ddb_lock_acquire_all('{a,$name}')", "ddb_lock_info('$name')",
		"ddb_lock_acquire_shared('$name')", "ddb_lock_force_release('$name')", "ddb_lock_release('$name')",
		"ddb_leadership_held('$name')")
	{
		like($sql->error_of("SELECT $call"),
			qr/ERROR: +22023: no lock can have the name "\Q$name\E".*DETAIL: .*$wrong{$name}.*HINT: .*"#".*ddblock.sort_separator/s,
			substr($call, 0, 40) . ' is refused');
	}
}
is(proxy->forwarded('UpdateItem') + proxy->forwarded('GetItem'), 0, '... before anything is sent');
is($sql->query_safe('SELECT count(*) FROM ddb_locks'), 0, '... and nothing is held');
like(error_of($one, q{ALTER SYSTEM SET ddblock.leaderships = 'a, lead#'}),
	qr/22023: +invalid value.*DETAIL: +No lock can have the name "lead#"\. Its sort key.* is empty/s, 'nor can a leadership have such a name');

#
# Lists: of a partition by a Query, which says what a Scan says
#
put('orders', sprintf '%03d' . 'x' x 900, $_) foreach 1 .. 160;
put("part$_", 'a') foreach 1 .. 3;
put(@$_) foreach [ 'orders#1', '-' ], [ 'orders#1', '2' ], [ '#', 'x' ], [ 'orders2', '-' ], [ 'o' x 2000, 's' x 1024 ];
my @orders = sort { $a cmp $b } 'orders#42', 'orders#4#2', map { sprintf 'orders#%03d' . 'x' x 900, $_ } 1 .. 160;

sub requests { return map { stat_of($one, $_) } qw(query scan); }
my ($queries, $scans) = requests();

is(names($sql, 'orders#'), join(' ', @orders), 'a partition, over many pages');
is(names($sql, 'orders#4'), 'orders#4#2 orders#42', '... or a part of it');
is(names($sql, 'nothing#'), '', '... or one that is empty');
my ($more_queries, $more_scans) = requests();
cmp_ok($more_queries - $queries, '>', 5, '... by Query');
is($more_scans, $scans, '... and never by Scan');
is(names($sql, 'orders'), join(' ', 'orders', @orders, 'orders2'), 'a prefix that ends in a partition key needs a Scan');
is(names($sql, 'part'), 'part1#a part2#a part3#a', '... and finds several partitions');
is(names($sql, '#'), '', 'no name begins with the separator');
is(names($sql, "orders#$long"), '', '... and none is so long');
is($sql->query_safe(q{SELECT count(*) FROM ddb_lock_list()}), @orders + 5, 'all that have a name');
cmp_ok((requests())[1], '>', $scans, '... by Scan');
is($sql->query_safe(q{SELECT state FROM ddb_lock_list('orders#001', watch => '100ms')}), 'held', 'a list that watches');
is(seen_with_prefix('orders#4'), 'orders#4#2 orders#42', 'a role sees the part that its prefix allows');
is(seen_with_prefix('#'), '', '... or nothing');

#
# Purge
#
my %old = (
	isReleased => { S => '1' },
	releasedAt => { N => time - 2 * 86400 },
	releasedVersion => { S => 'old' },
	recordVersionNumber => { S => 'old' });
put(@$_, %old) foreach [ 'old', '1' ], [ 'old', '-' ], [ 'old#1', '2' ];
is($sql->query_safe(q{SELECT ddb_lock_purge('1 day')}), 2, 'a purge deletes what has a name');
ok(!item('old', '1') && !item('old', '-') && item('old#1', '2'), '... and leaves the rest');

#
# Several who share it; renewals in batches, also of what is shared
#
foreach my $take ([ 'ddb_lock_acquire_shared', 'share#1', '' ], [ 'ddb_semaphore_acquire', 'permits#1', ', 2' ])
{
	my ($function, $name, $more) = @$take;

	cmp_ok($_->query_safe("SELECT $function('$name'$more)"), '>', 0, "\"$name\" is shared") foreach $sql, $other;
	is($sql->query_safe("SELECT cardinality(clusters) FROM ddb_lock_info('$name')"), 2, '... by two clusters');
}
my $third = session($two);
is($third->query_safe(q{SELECT ddb_semaphore_try_acquire('permits#1', 2)}), 'f', 'there is no third permit');
is($third->query_safe(q{SELECT ddb_lock_try_acquire('share#1')}), 'f', 'what is shared is nobody\'s alone');
$third->query_safe(q{SET ddblock.lease_duration = '15s'; SELECT ddb_lock_acquire('renewed#' || n) FROM generate_series(1, 5) n});
wait_for_renewals([ 'renewed', '3' ], 2);
wait_for { stat_of($two, 'renew_batch', 'replies > errors + 1') eq 't' } 'a batch of renewals that DynamoDB accepts';
ok(held('renewed', $_), "lock $_ of a batch is held") foreach 1 .. 5;
is($third->query_safe('SELECT ddb_lock_release_all()'), 5, '... and was, all the time');
is($sql->query_safe(q{SELECT ddb_lock_release('share#1'), ddb_lock_release('permits#1')}), 't|t', 'one leaves');
is($other->query_safe(q{SELECT ddb_lock_release('share#1'), ddb_lock_release('permits#1')}), 't|t', '... and the other');
ok(!held('share', '1') && !held('permits', '1'), 'nobody shares them');

#
# A leadership, a queue, a fence
#
$one->append_conf('postgresql.conf', "ddblock.leaderships = 'lead#1'\n");
$one->reload;
wait_for { $one->safe_psql('postgres', q{SELECT state FROM ddb_leaderships}) eq 'leading' } 'the leadership';
ok(held('lead', '1'), 'a cluster leads');
$one->append_conf('postgresql.conf', "ddblock.leaderships = ''\n");
$one->reload;
wait_for { !held('lead', '1') } 'the end of the leadership';
$sql->query_safe('SELECT ddb_queue_table_create()');
$sql->query_safe(q{SELECT ddb_queue_push('q', 'customer#1', '1')});
my $job = wait_for { $other->query_safe(q{SELECT number FROM ddb_queue_claim('q')}) } 'the job';
ok(held('queue/q/customer', '1'), 'the lock of a resource is such an item, too');
$other->query_safe("SELECT ddb_queue_complete('q', 'customer#1', $job)");
wait_for { !held('queue/q/customer', '1') } 'the job to be finished';
like($sql->error_of(q{SELECT ddb_queue_push('q', 'customer#-', '1')}), qr/22023: no lock can have the name "queue\/q\/customer#-"/,
	'... so not every resource can be');

#
# A crash: the journal has the whole names
#
my @kept = ('crash#1', 'crash#2', 'crash');
$sql->query_safe(join ';', map { "SELECT ddb_lock_acquire('$_', $lease)" } @kept);
kill 'KILL', backend_pid($sql);
$sql->gone;
wait_for { $one->log_contains(qr/freed 3 locks that "one/) } 'the restarted cluster';
$other->send(join ';', map { "SELECT ddb_lock_acquire('$_') > 0" } @kept);
is($other->result, "t\nt\nt", 'after a crash all of them are free at once');
$other->query_safe('SELECT ddb_lock_release_all()');

#
# A separator that changes: the journal is of another table, and names mean other items
#
$sql = session($one);
$sql->query_safe(qq{SELECT ddb_lock_acquire('later#1', $lease)});
$one->stop('immediate');
$sql->gone;
$one->append_conf('postgresql.conf', "ddblock.sort_separator = ':'\n");
$one->start;
wait_for { $one->log_contains(qr/ignored journal .*another lock table/) } 'the journal to be ignored';
ok(held('later', '1'), 'who has another separator leaves the lock alone');
is($one->safe_psql('postgres', q{SELECT ddb_lock_acquire('later#1') > 0, ddb_lock_acquire('later:2') > 0}),
	't|t', '... and takes another one by its name');
ok(item('later#1', '-') && item('later', '2'), '... which is another item');
$one->append_conf('postgresql.conf', "ddblock.sort_key = 'part'\n");
$one->restart;
like(error_of($one, q{SELECT ddb_lock_list('later:')}), qr/ERROR: +55000: .*keys of .*"lockTable" do not match/s,
	'a table with another sort key');
$one->stop;

#
# Settings with a sort key for a table without one, and the other way round
#
sub keys_do_not_match
{
	my ($table, $conf, $fits) = @_;
	my $node = new_cluster($table, table => 0, conf => "ddblock.lock_table = '$table'\n$conf");

	like(error_of($node, "SELECT $_"),
		qr/ERROR: +55000: .*keys of .*"$table" do not match.*HINT: .*"ddblock\.partition_key" and "ddblock\.sort_key"/s, "$table: $_")
	  foreach 'ddb_lock_acquire($$a#1$$)', 'ddb_lock_info($$a#1$$)', 'ddb_lock_table_create()',
		'* FROM ddb_lock_list()', 'ddb_lock_purge($$1 day$$)';
	is($node->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks'), 0, '... and nothing is held');
	$node->append_conf('postgresql.conf', $fits);
	$node->restart;
	is($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a#1') > 0; SELECT name FROM ddb_lock_list('a#')}), "t\na#1", '... until the settings fit');
	$node->stop;
	return;
}

keys_do_not_match('lockTable', '', $conf{conf});
dynamodb->call('CreateTable', {
	TableName => 'unsorted',
	BillingMode => 'PAY_PER_REQUEST',
	AttributeDefinitions => [ { AttributeName => 'key', AttributeType => 'S' } ],
	KeySchema => [ { AttributeName => 'key', KeyType => 'HASH' } ],
});
keys_do_not_match('unsorted', $conf{conf}, "ddblock.sort_key = ''\nddblock.sort_key_value = ''\nddblock.sort_separator = ''\n");

done_testing;
