# The operator's tools on large tables, against live holders, and in trouble.

use DDBLock::Test;

my $node = new_cluster('one', through => proxy,
	conf => "ddblock.keep_warm = off\nlog_statement = none\nddblock.retry_timeout = '5s'\n");
# A lease of seconds may be lost on a busy machine: not the statement with it.
my $far = new_cluster('two', conf => "ddblock.on_lease_lost = none\n");
my $session = session($node);
my $day = 86400;

sub released_item
{
	my ($name, $age_s, %extra) = @_;

	return dynamodb->java_item(
		$name,
		version => 'released',
		extra => {
			isReleased => { S => '1' },
			releasedAt => { N => time - $age_s },
			releasedVersion => { S => 'released' },
			%extra
		});
}

sub put_many
{
	my @items = @_;

	while (my @some = splice @items, 0, 25)
	{
		dynamodb->call('BatchWriteItem',
			{ RequestItems =>
			  { lockTable => [ map { +{ PutRequest => { Item => $_ } } } @some ] } });
	}
	return;
}

sub states
{
	my ($where, $prefix, @more) = @_;
	my $arguments = join ', ', "'$prefix'", @more;

	return $where->query_safe(qq{SELECT string_agg(name || ' ' || state, ', '
		ORDER BY name COLLATE "C") FROM ddb_lock_list($arguments)});
}

#
# A table of more than 1 MB, page by page
#
my $payload = 'x' x 4000;
put_many(map { dynamodb->java_item(
		sprintf('many/%04d', $_), extra => { data => { B => $payload } }) } 1 .. 400);
put_many(
	(map { dynamodb->java_item('long/' . $_ x 2043,
		owner => 'o' x 1000, version => 'v' x 127) } 'a' .. 'i'),
	map { dynamodb->java_item("few/$_") } 1 .. 3);
proxy->reset_counts;
is($session->query_safe(q{SELECT count(*), count(DISTINCT name), min(name), max(name)
		FROM ddb_lock_list('many/')}),
	'400|400|many/0001|many/0400', 'every item is listed once');
my @pages = proxy->log;
cmp_ok(scalar @pages, '>', 10, 'page by page');
is(scalar(grep { $_->{operation} ne 'Scan' || !$_->{body}{ConsistentRead}
		|| $_->{body}{ProjectionExpression} =~ /data/ } @pages),
	0, 'by consistent scans that leave the data where it is');
is($session->query_safe(q{SELECT count(*), min(length(name)) FROM ddb_lock_list('long/')}),
	'9|2048', 'names and owners of any length are listed');
proxy->reset_counts;
is($session->query_safe(q{SELECT count(*) FROM ddb_lock_list('few/')}),
	3, 'a few are found among many');
my $for_few = proxy->received('Scan');
cmp_ok($for_few, '<', 10, 'with larger pages');
is($session->query_safe(q{SELECT count(*) FROM ddb_lock_list()}),
	412, 'without a prefix all are there');
cmp_ok(stat_of($node, 'scan', 'consumed_units'), '>', 100, 'what it costs is counted');

#
# Foreign and odd items
#
dynamodb->put_item({ key => { S => 'odd/no lock at all' } });
dynamodb->put_item({ key => { S => 'odd/released' }, isReleased => { S => '1' } });
dynamodb->put_item(dynamodb->java_item('odd/go', lease_ms => '1m30s'));
dynamodb->put_item(dynamodb->java_item("odd/tab\tquote\"", lease_ms => 'soon'));
is($session->query_safe(q{SELECT name, state, lease, version IS NOT NULL
		FROM ddb_lock_list('odd/') ORDER BY name COLLATE "C"}),
	"odd/go|held|00:01:30|t\n"
	  . "odd/no lock at all|unusable||f\n"
	  . "odd/released|released||f\n"
	  . "odd/tab\tquote\"|unusable||t",
	'items that are no locks, or not ours, are listed with what can be read');
$node->safe_psql('postgres',
	q{CREATE DATABASE latin1 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0});
$node->safe_psql('latin1', 'CREATE EXTENSION ddblock');
dynamodb->put_item(dynamodb->java_item("odd/\x{20ac}"));
is($node->safe_psql('latin1', q{SELECT count(*) FROM ddb_lock_list('odd/') WHERE name IS NULL}),
	1, 'a name that the encoding does not have is null, not another one');

#
# Held, dead-looking, released
#
$far->safe_psql('postgres', q{SELECT ddb_lock_acquire('state/released', lease => '2s'),
	ddb_lock_release('state/released')});
my $holder = session($far);
$holder->query_safe(q{SELECT ddb_lock_acquire('state/alive', lease => '8s')});
dynamodb->put_item(dynamodb->java_item('state/dead', lease_ms => 2000));
dynamodb->put_item(dynamodb->java_item('state/long', lease_ms => 3600_000));
is(states($session, 'state/'),
	'state/alive held, state/dead held, state/long held, state/released released',
	'one look does not tell the dead from the living');
wait_for { states($session, 'state/') =~ /dead-looking/ } 'a lease to pass';
my $seen_twice =
  'state/alive held, state/dead dead-looking, state/long held, state/released released';
is(states($session, 'state/'), $seen_twice,
	'a session that looks again later sees who did not renew');
my $third = session($node);
is(states($third, 'state/'), $seen_twice, 'and so does any other session of its cluster');
$third->quit;
is(states($holder, 'state/'),
	'state/alive held, state/dead held, state/long held, state/released released',
	'another cluster has not seen it');
is(states($holder, 'state/', q{'2100 ms'}), $seen_twice, 'unless it looks twice');
is($holder->query_safe(q{SELECT ddb_lock_try_acquire('state/dead')}), 't',
	'a try gets what the list calls dead');
$holder->query_safe(q{SELECT ddb_lock_release('state/dead')});
is(states($session, 'state/dead'), 'state/dead released', 'which is no longer dead then');
dynamodb->put_item(dynamodb->java_item('state/dead', lease_ms => 2000));
like(states($session, 'state/'), qr{state/dead held}, 'another version is another life');
$holder->ask(q{SELECT ddb_lock_release('state/alive')});

#
# Purge
#
my $old = (time - 3 * $day) . '000000';
put_many(
	released_item('purge/old', 3 * $day),
	released_item('purge/young', 2 * $day - 3600),
	released_item('purge/retaken', 3 * $day),
	released_item('purge/retaken and released', 3 * $day),
	released_item('purge/ahead', 3 * $day, fencingToken => { N => (time + $day) . '000000' }),
	released_item('purge/unknown age', 0, releasedAt => { S => 'long ago' }),
	released_item('purge/unknown age, old token', 0, releasedAt => { S => '' },
		fencingToken => { N => $old }),
	released_item("purge/another's release", 3 * $day, fencingToken => { N => $old },
		recordVersionNumber => { S => 'released since, by another client' }),
	dynamodb->java_item('purge/held', extra => { releasedAt => { N => time - 9 * $day } }),
	map { released_item("purge/more/$_", 3 * $day) } 1 .. 60);

# Between the scan and the delete, somebody takes two of them; one is given
# back again.
proxy->fault('late_apply', operation => 'DeleteItem', match => "\"$_\"", count => -1)
  foreach 'purge/retaken', 'purge/retaken and released';
$session->send(q{SELECT ddb_lock_purge('2 days')});
wait_for { grep { $_->{fault} } proxy->log } 'the delete on its way';
$holder->query_safe(q{SELECT ddb_lock_acquire('purge/retaken'),
	ddb_lock_acquire('purge/retaken and released'),
	ddb_lock_release('purge/retaken and released')});
proxy->clear_faults;
is($session->result, 61, 'old released items are deleted and counted');
is($holder->query_safe(q{SELECT string_agg(name, ', ' ORDER BY name COLLATE "C")
		FROM ddb_lock_list('purge/')}),
	"purge/ahead, purge/another's release, purge/held, purge/retaken, "
	  . 'purge/retaken and released, purge/unknown age, purge/unknown age, old token, purge/young',
	'what is held, young, of unknown age, ahead of the clock, or was taken meanwhile stays');
is($holder->query_safe(q{SELECT ddb_lock_require('purge/retaken') > 0,
		ddb_lock_renew('purge/retaken') > now(), ddb_lock_release('purge/retaken')}),
	't|t|t', 'and the one who took it still has it');
is($session->query_safe(q{SELECT ddb_lock_purge('2 days')}), 0, 'nothing is left to delete');

# Within a prefix
put_many(map { released_item($_, 3 * $day) } 'shop/old', 'bank/old');
$session->query_safe(q{SET ddblock.lock_prefix = 'shop/'});
is($session->query_safe(q{SELECT ddb_lock_purge('2 days')}), 1, 'a session with a prefix deletes what has it');
ok(dynamodb->item('bank/old'), '... and nothing else');
$session->query_safe('RESET ddblock.lock_prefix');
is($session->query_safe(q{SELECT ddb_lock_purge('2 days')}), 1, 'one without deletes the rest');

# Throttled, and without a reply
dynamodb->put_item(released_item("again/$_", 3 * $day)) foreach 1 .. 3;
proxy->fault('error', operation => 'DeleteItem', status => 400, count => 2,
	type => 'ProvisionedThroughputExceededException');
proxy->fault('reset', applied => 1, operation => 'DeleteItem');
proxy->fault('error', operation => 'Scan', status => 400, type => 'ThrottlingException');
is($session->query_safe(q{SELECT ddb_lock_purge('2 days')}),
	3, 'throttling and lost replies delay it, and are not counted wrongly');
cmp_ok(stat_of($node, 'delete', 'retries'), '>=', 3, 'repeats are counted');
dynamodb->put_item(released_item("again/$_", 3 * $day)) foreach 1 .. 3;
proxy->fault('error', operation => 'DeleteItem', status => 400, count => -1, skip => 1,
	type => 'ProvisionedThroughputExceededException');
like($session->error_of(q{SELECT ddb_lock_purge('2 days')}),
	qr/ERROR: +53400: DynamoDB throttles/, 'throttled for too long');
is(scalar(grep { $_->{key}{S} =~ m{^again/} } dynamodb->items), 2, 'what is done stays done');
proxy->clear_faults;
proxy->reset_counts;
proxy->fault('error', operation => $_, status => 400, type => 'ThrottlingException')
  foreach 'CreateTable', 'DescribeTable', 'UpdateTimeToLive';
is($node->safe_psql('postgres', 'SELECT ddb_lock_table_create() IS NULL'),
	'f', 'throttling delays the creation of the table');
is(proxy->faults, 3, 'at each of its steps');
proxy->clear_faults;
foreach my $table ([ 'lock', 'noTtl' ], [ 'queue', 'noTtlQueue' ])
{
	my ($kind, $name) = @$table;
	my $setting = $kind eq 'lock' ? 'ddblock.lock_table' : 'ddblock.queue_table';
	my $without_ttl = new_cluster($name, through => proxy, table => 0, conf => "$setting = '$name'\n");

	proxy->fault('error', operation => 'UpdateTimeToLive', status => 400, type => 'UnknownOperationException',
		message => 'unsupported');
	my ($status, $out, $err) = $without_ttl->psql('postgres', "SELECT ddb_${kind}_table_create()");
	is($status, 0, "a server without UpdateTimeToLive: a $kind table");
	like($err, qr/WARNING: +the server cannot delete items of $kind table "$name" by their time-to-live/, '... with a WARNING');
	ok((grep { $_ eq $name } @{ dynamodb->call('ListTables', {})->{TableNames} }), '... is there');
	proxy->fault('error', operation => 'UpdateTimeToLive', status => 400, type => 'ValidationException',
		message => 'TimeToLive is active on a different AttributeName');
	like(error_of($without_ttl, "SELECT ddb_${kind}_table_create()"), qr/ERROR: +55000: time-to-live of $kind table "$name"[^\n]*\n.*different AttributeName/s,
		'... any other refusal is an error');
	proxy->clear_faults;
	ok(!eval { dynamodb->call('DeleteTable', { TableName => $name }); 1 }, '... nobody deletes the table');
	dynamodb->call('UpdateTable', { TableName => $name, DeletionProtectionEnabled => JSON::PP::false });
	my @create = map { "SELECT ddb_${kind}_table_create(protect => $_)" } 'true', 'false';
	like(($without_ttl->psql('postgres', $create[0]))[2],
		qr/WARNING: +$kind table "$name" is not protected from deletion.*HINT: .*--table-name $name/s, '... or a WARNING says so');
	unlike(($without_ttl->psql('postgres', $create[1]))[2], qr/WARNING/, '... unless that is wanted');
	$without_ttl->stop;
}

#
# Release by force
#
$node->safe_psql('postgres', 'CREATE ROLE operator LOGIN');
$node->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION ddb_lock_force_release(text, text) TO operator');
my $operator = session($node);
$operator->query_safe('SET ROLE operator');
my $token = $holder->query_safe(q{SELECT ddb_lock_acquire('force', lease => '9s')});
is($operator->ask(q{SELECT ddb_lock_force_release('force')}), 't', 'a held lock is released');
like($operator->messages,
	qr/WARNING: .*"force" was taken away from owner "two\/.*DETAIL: .*at most 9 s.*HINT: .*token/s,
	'the operator is told what that means')
  or diag($operator->messages);
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile);
my $pid = backend_pid($operator);
like($log, qr/LOG: +user "\w+" as role "operator", process $pid, releases lock "force" by force\n.*DETAIL: +It is held by owner "two\//,
	'the log says who did it, and to whom');
my $next = $session->query_safe(q{SELECT ddb_lock_acquire('force', lease => '1h')});
cmp_ok($next, '>', $token, 'the next holder has a higher token');
wait_for { $far->log_contains(qr/lease of lock "force" is lost: /) } 'the next renewal';
like($holder->error_of(q{SELECT ddb_lock_require('force')}),
	qr/ERROR: +LK001: .*DETAIL: +Another owner has taken it over/s,
	'the one who lost it is told by whom');
$holder->ask(q{SELECT ddb_lock_release('force')});
is($session->query_safe(q{SELECT ddb_lock_require('force') > 0}), 't',
	'and does not free the new one');
$session->query_safe(q{SELECT ddb_lock_release('force')});

$holder->query_safe(q{SELECT ddb_lock_acquire('force', lease => '9s')});
$operator->ask(q{SELECT ddb_lock_force_release('force')});
wait_for { $far->log_contains(qr/lost: somebody else has released it/) } 'the next renewal';
like($holder->error_of(q{SELECT ddb_lock_require('force')}),
	qr/ERROR: +LK001: .*DETAIL: +Its item was marked released by somebody else/s,
	'without another holder the loss is called a release by somebody');
$holder->ask(q{SELECT ddb_lock_release('force')});

# A renewal in between, a lost reply, another holder in between
$holder->query_safe(q{SELECT ddb_lock_acquire('force')});
proxy->fault('late_apply', operation => 'UpdateItem', match => 'isReleased', count => -1);
$operator->send(q{SELECT ddb_lock_force_release('force')});
wait_for { grep { ($_->{fault} // '') eq 'late_apply' && $_->{operation} eq 'UpdateItem' } proxy->log }
	'the release on its way';
$holder->query_safe(q{SELECT ddb_lock_renew('force')});
proxy->clear_faults;
is($operator->result, 't', 'a renewal in between does not help the holder');
ok(is_released('force'), 'the lock is free');
$holder->ask(q{SELECT ddb_lock_release('force')});

# The same in the operator's own cluster, where the lock has passed on under a reserved token
my @crowd = map { session($node) } 1 .. 3;
$crowd[0]->query_safe(q{SELECT ddb_lock_acquire('force')});
foreach my $i (1, 2)
{
	$crowd[$i]->send(q{SELECT ddb_lock_acquire('force') > 0});
	wait_for_waiters($node, 'force', $i);
}
foreach my $i (1, 2)
{
	$crowd[$i - 1]->query_safe(q{SELECT ddb_lock_release('force')});
	is($crowd[$i]->result, 't', 'the next session has the lock');
}
proxy->reset_counts;
proxy->fault('late_apply', operation => 'UpdateItem', match => ':released', count => -1);
$operator->send(q{SELECT ddb_lock_force_release('force')});
wait_for { grep { ($_->{fault} // '') eq 'late_apply' && $_->{operation} eq 'UpdateItem' } proxy->log }
	'the release on its way';
$crowd[2]->query_safe(q{SELECT ddb_lock_renew('force')});
proxy->clear_faults;
is($operator->result, 't', 'a renewal in between is not taken for another holder');
$_->quit foreach @crowd;

$holder->query_safe(q{SELECT ddb_lock_acquire('force')});
proxy->fault('reset', applied => 1, operation => 'UpdateItem', match => 'isReleased');
is($operator->ask(q{SELECT ddb_lock_force_release('force')}), 't',
	'a release whose reply was lost is found by its nonce');
$holder->ask(q{SELECT ddb_lock_release('force')});

$holder->query_safe(q{SELECT ddb_lock_acquire('force')});
$session->send(q{SELECT ddb_lock_acquire('force') > 0});
wait_for_waiters($node, 'force', 1);
proxy->fault('reset', applied => 1, operation => 'UpdateItem', match => ':released');
proxy->fault('late_apply', operation => 'UpdateItem', match => ':released', count => -1);
$operator->send(q{SELECT ddb_lock_force_release('force')});
is($session->result, 't', 'its reply was lost, and a session that waits gets the lock');
proxy->clear_faults;
$operator->result;
like($operator->messages, qr/^(?!.*WARNING).*ERROR: +08006: could not determine.*DETAIL: .*"one\/.*HINT: .*"two\//s,
	'then nobody knows who freed it, and the operator is told so');
$session->query_safe(q{SELECT ddb_lock_release('force')});
$holder->ask(q{SELECT ddb_lock_release('force')});

proxy->reset_counts;
$holder->query_safe(q{SELECT ddb_lock_acquire('force')});
proxy->fault('late_apply', operation => 'UpdateItem', match => 'isReleased', count => -1);
$operator->send(q{SELECT ddb_lock_force_release('force')});
wait_for { grep { ($_->{fault} // '') eq 'late_apply' } proxy->log } 'the release on its way';
$holder->query_safe(q{SELECT ddb_lock_release('force'), ddb_lock_acquire('force')});
proxy->clear_faults;
$operator->result;
like($operator->messages, qr/ERROR: +55006: .*another holder/,
	'a lease that was not there when it was decided is not taken');
is($holder->query_safe(q{SELECT ddb_lock_renew('force') > now(), ddb_lock_release('force')}),
	't|t', 'and lives');
like($operator->error_of(q{SELECT ddb_lock_force_release('odd/no lock at all')}),
	qr/ERROR: +55000: .*is unusable/, 'an item without a version is left alone');

#
# Refusals of each kind
#
foreach my $case (
	[ 'Scan', q{SELECT * FROM ddb_lock_list()} ],
	[ 'DeleteItem', q{SELECT ddb_lock_purge('1 day')} ])
{
	my ($operation, $sql) = @$case;

	proxy->fault('error', operation => $operation, status => 400,
		type => 'AccessDeniedException', message => 'not authorized');
	like($session->error_of($sql), qr/ERROR: +42501: IAM denies.*DETAIL: .*dynamodb:$operation/s,
		"IAM denies $operation: the detail names the action");
	proxy->clear_faults;
}
proxy->fault('error', operation => 'Scan', status => 400, count => -1,
	type => 'UnrecognizedClientException', message => 'invalid');
like($session->error_of(q{SELECT * FROM ddb_lock_list()}), qr/ERROR: +28000: .*DETAIL: .*settings/s,
	'wrong credentials');
proxy->clear_faults;
proxy->fault('reset', operation => 'Scan', count => -1);
like($session->error_of(q{SELECT * FROM ddb_lock_list()}), qr/ERROR: +08006: /,
	'no connection for longer than ddblock.retry_timeout');
proxy->clear_faults;
my $elsewhere = new_cluster('elsewhere', table => 0, conf => "ddblock.lock_table = 'nowhere'\n");
like(error_of($elsewhere, $_), qr/ERROR: +42P01: .*HINT: .*ddb_lock_table_create/s,
	"a missing table: $_")
  foreach q{SELECT * FROM ddb_lock_list()}, q{SELECT ddb_lock_purge('1 day')},
  q{SELECT ddb_lock_force_release('a')};
$elsewhere->append_conf('postgresql.conf',
	"ddblock.lock_table = 'lockTable'\nddblock.partition_key = 'id'\n");
$elsewhere->restart;
$elsewhere->wait_for_log(qr/LOG: .*the keys of lock table "lockTable" do not match the settings\n.*DETAIL: +Its partition key is "key" \(S\), its sort key is none\./);
pass('the log says at the start that a table has other keys');
like(error_of($elsewhere, q{SELECT * FROM ddb_lock_list()}),
	qr/ERROR: +55000: the keys of lock table/, 'a table with other keys');
$elsewhere->stop;

#
# Cancellation, while DynamoDB does not answer
#
my $victim = backend_pid($session);

sub cancelled_ok
{
	my ($sql, $under_way) = @_;

	proxy->reset_counts;
	$session->send($sql);
	wait_for { $under_way->() } "something to cancel: $sql";
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($victim)");
	$session->result;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($session->messages, qr/ERROR: +57014/, "cancelled: $sql");
	return;
}

proxy->fault('drop', operation => $_, count => -1) foreach 'Scan', 'UpdateItem';
cancelled_ok(q{SELECT * FROM ddb_lock_list()}, sub { proxy->faults('Scan') });
cancelled_ok(q{SELECT ddb_lock_force_release('state/long')}, sub { proxy->faults('UpdateItem') });
proxy->clear_faults;
proxy->fault('drop', operation => 'DeleteItem', count => -1);
cancelled_ok(q{SELECT ddb_lock_purge('1 day')}, sub { proxy->faults('DeleteItem') });
proxy->clear_faults;
cancelled_ok(q{SELECT * FROM ddb_lock_list('few/', watch => '1 hour')},
	sub { proxy->forwarded('Scan') >= $for_few });
proxy->fault('drop', operation => 'Scan', count => -1);
like($session->error_of(q{SET statement_timeout = '100ms'; SELECT * FROM ddb_lock_list()}),
	qr/ERROR: +57014/, 'statement_timeout holds as well');
proxy->clear_faults;

$_->quit foreach $session, $holder, $operator;
wait_for
{
	!grep { ($_->{ownerName}{S} // '') =~ m{^(one|two)/} && !exists $_->{isReleased} }
	  dynamodb->items;
}
'all that was held here to be released';
pass('nothing of ours is left held');
done_testing;
