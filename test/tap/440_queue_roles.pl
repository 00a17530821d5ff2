# Queues: who may do what, and what is refused before anything is sent.

use DDBLock::Test;

my $node = new_cluster('one', through => proxy);

$node->safe_psql('postgres', q{
	SELECT ddb_queue_table_create();
	CREATE ROLE nobody LOGIN;
	SELECT ddb_role_setup('worker'); ALTER ROLE worker LOGIN;
	SELECT ddb_role_setup('operator', operator => true); ALTER ROLE operator LOGIN;
	CREATE ROLE narrow LOGIN IN ROLE worker;
	ALTER ROLE narrow SET ddblock.lock_prefix = 'queue/q/mine'});

# The result; if psql fails, however it does, its status and the error.
sub try_as
{
	my ($role, $sql) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET ROLE $role;\n$sql");

	return $status == 0 ? $out : "psql failed with status $status: $err";
}

my @for_users = (
	q{ddb_queue_push('q', 'r', '1')}, q{ddb_queue_push_all('q', 'r', ARRAY['1']::jsonb[])},
	q{ddb_queue_push_on_commit('q', 'r', '1')}, q{ddb_queue_claim('empty')},
	q{ddb_queue_depths('q')}, q{ddb_queue_list('q')},
	q{ddb_queue_list('q', dead => true)}, q{ddb_queue_summary('q')});
my @for_operators = (q{ddb_outbox_send()}, q{ddb_queue_mark_done('q', 'r', 1, now(), 5)}, q{ddb_queue_redrive('q')}, q{ddb_queue_pause('q', 'x')},
	q{ddb_queue_resume('q', 'x')}, q{ddb_queue_cancel('q', 'r', 99)}, q{ddb_queue_drop('q', 'r')},
	q{ddb_queue_purge()});

foreach my $call (@for_users)
{
	like(try_as('nobody', "SELECT $call"), qr/42501: permission denied/, "nobody: $call");
	unlike(try_as('worker', "SELECT $call"), qr/psql failed/, "worker: $call");
}
foreach my $call (@for_operators)
{
	like(try_as('worker', "SELECT $call"), qr/42501: permission denied/, "worker: $call");
	unlike(try_as('operator', "SELECT $call"), qr/psql failed/, "operator: $call");
}
my $once = q{SELECT ddb_queue_mark_done('q', 'r', 1)};
like(try_as('nobody', $once), qr/42501: permission denied/, "nobody: $once");
like(try_as('worker', $once), qr/55000: this session has not claimed job 1/, "worker: $once");
like(try_as('operator', 'SELECT ddb_queue_table_create()'), qr/42501/, 'the table is the owner\'s');
like(try_as('worker', 'SELECT * FROM ddb_outbox'), qr/42501/, 'what waits is not for all to read');

# A session whose names have a prefix: the names of the locks count.
sub try_narrow
{
	my ($sql) = @_;
	my ($status, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql",
		extra_params => [ '-U', 'narrow' ]);

	return $status == 0 ? $out : "psql failed with status $status: $err";
}

is(try_narrow(q{SELECT ddb_queue_push('q', 'mine/1', '1')}), '1', 'a resource below the prefix');
like(try_narrow(q{SELECT ddb_queue_push('q', 'other', '1')}),
	qr/42501: permission denied for lock "queue\/q\/other"/, 'another resource');
like(try_narrow(q{SELECT * FROM ddb_queue_claim('q')}), qr/42501/, 'any resource of the queue');
is(try_narrow(q{SELECT number FROM ddb_queue_claim('q', resources => '{mine/1}')}), '1', 'a named one');
like(try_narrow(q{SELECT * FROM ddb_queue_claim('q', resources => '{mine/1,other}')}), qr/42501/,
	'one that it may not');
like(try_narrow(q{SELECT ddb_queue_push_on_commit('q', 'other', '1')}), qr/42501/, 'nor later');

#
# Bad input: nothing is sent
#
proxy->reset_counts;
my $long = 'x' x 901;
my @bad = (
	[ q{ddb_queue_push(NULL, 'r', '1')}, qr/"queue" must not be null/ ],
	[ q{ddb_queue_push('', 'r', '1')}, qr/"queue" must have 1 to 64 characters/ ],
	[ q{ddb_queue_push('a/b', 'r', '1')}, qr/"queue" must have 1 to 64 characters/ ],
	[ q{ddb_queue_push(repeat('q', 65), 'r', '1')}, qr/"queue" must have 1 to 64/ ],
	[ q{ddb_queue_push('q', NULL, '1')}, qr/"resource" must not be null/ ],
	[ q{ddb_queue_push('q', '', '1')}, qr/"resource" must not be empty/ ],
	[ qq{ddb_queue_push('q', '$long', '1')}, qr/"resource" must not be longer than 900 bytes/ ],
	[ q{ddb_queue_push('q', 'r', NULL)}, qr/"payload" must not be null/ ],
	[ q{ddb_queue_push('q', 'r', to_jsonb(repeat('x', 262143)))},
		qr/"payload" must not be longer than 262144 bytes.*DETAIL: .*262145/s ],
	[ q{ddb_queue_push('q', 'r', '1', '')}, qr/"id" must not be empty/ ],
	[ q{ddb_queue_push('q', 'r', '1', repeat('i', 256))}, qr/"id" must not be longer than 255/ ],
	[ q{ddb_queue_push('q', 'r', '1', 'ddblock#x')}, qr/"id" must not begin with "ddblock#"/ ],
	[ q{ddb_queue_push('q', 'r', '1', 'i', '0')}, qr/"dedup" must be between 1 s and/ ],
	[ q{ddb_queue_push('q', 'r', '1', 'i', '1 month')}, qr/"dedup" must not contain months/ ],
	[ q{ddb_queue_push_all('q', 'r', '{}')}, qr/"payloads" must have 1 to 49 elements/ ],
	[ q{ddb_queue_push_all('q', 'r', array_fill('1'::jsonb, ARRAY[50]))},
		qr/"payloads" must have 1 to 49 elements/ ],
	[ q{ddb_queue_push_all('q', 'r', ARRAY[NULL]::jsonb[])}, qr/"payloads" must not contain nulls/ ],
	[ q{ddb_queue_push_all('q', 'r', ARRAY['1']::jsonb[], '{a,b}')}, qr/"ids" must have as many/ ],
	[ q{ddb_queue_push_all('q', 'r', ARRAY['1', '2']::jsonb[], '{a,a}')}, qr/"ids" must not contain an id twice/ ],
	[ q{ddb_queue_push_all('q', 'r', array_fill(to_jsonb(repeat('x', 200000)), ARRAY[20]))},
		qr/must not have more than 3145728 bytes together/ ],
	[ q{ddb_queue_claim(NULL)}, qr/"queue" must not be null/ ],
	[ q{ddb_queue_claim('q', '-1 s')}, qr/"wait" must be between/ ],
	[ q{ddb_queue_claim('q', lease => '1 s')}, qr/"lease" must be between/ ],
	[ q{ddb_queue_claim('q', resources => '{NULL}')}, qr/"resources" must not contain nulls/ ],
	[ q{ddb_queue_claim('q', resources => '{}')}, qr/"resources" must not be empty/ ],
	[ q{ddb_queue_claim('q', resources => '{r,""}')}, qr/"resource" must not be empty/ ],
	[ q{ddb_queue_claim('q', max_attempts => 0)}, qr/"max_attempts" must be between 1/ ],
	[ q{ddb_queue_complete('q', 'r', NULL)}, qr/"number" must not be null/ ],
	[ q{ddb_queue_complete('q', 'r', 0)}, qr/"number" must be greater than 0/ ],
	[ q{ddb_queue_fail('q', 'r', 1, 'e', '-1 s')}, qr/"retry_in" must be between/ ],
	[ q{ddb_queue_mark_done('q', 'r', 0)}, qr/"number" must be greater than 0/ ],
	[ q{ddb_queue_mark_done('q', 'r', 0, now(), 1)}, qr/"number" must be greater than 0/ ],
	[ q{ddb_queue_mark_done('q', 'r', 1, now(), 0)}, qr/"token" must be greater than 0/ ],
	[ q{ddb_queue_push_on_commit('q', 'r', NULL)}, qr/"payload" must not be null/ ],
	[ q{ddb_queue_push_on_commit('q', 'r', to_jsonb(repeat('x', 262143)))},
		qr/"payload" must not be longer than 262144 bytes/ ],
	[ q{ddb_queue_push_on_commit('q', 'r', '1', 'ddblock#x')}, qr/"id" must not begin with "ddblock#"/ ],
	[ q{ddb_queue_push_all('q', 'r', NULL)}, qr/"payloads" must have 1 to 49 elements/ ],
	[ q{ddb_queue_depths('a/b')}, qr/"queue" must have 1 to 64 characters/ ],
	[ q{ddb_queue_list('q', '')}, qr/"of_resource" must not be empty/ ],
	[ q{ddb_queue_list(NULL, dead => true)}, qr/"queue" must not be null/ ],
	[ q{ddb_queue_list('q', dead => NULL)}, qr/"dead" must not be null/ ],
	[ q{ddb_queue_summary(NULL)}, qr/"queue" must not be null/ ],
	[ q{ddb_queue_redrive('q', '')}, qr/"id" must not be empty/ ],
	[ q{ddb_queue_redrive('q', repeat('x', 1001))}, qr/"id" must not be longer than 1000 bytes/ ],
	[ q{ddb_queue_pause('q', NULL)}, qr/"resource" must not be null/ ],
	[ q{ddb_queue_resume('q', '')}, qr/"resource" must not be empty/ ],
	[ q{ddb_queue_drop(NULL, 'r')}, qr/"queue" must not be null/ ],
	[ q{ddb_outbox_send(0)}, qr/"max_rows" must be between 1/ ],
	[ q{ddb_queue_cancel('q', 'r', 0)}, qr/"number" must be greater than 0/ ],
	[ q{ddb_queue_table_create(1)}, qr/"read_units" and "write_units" must be given together/ ],
	[ q{ddb_queue_table_create(0, 1)}, qr/"read_units" must be greater than 0/ ]);

foreach my $case (@bad)
{
	my ($call, $message) = @$case;

	like(error_of($node, "SELECT $call"), qr/22023: .*$message/s, substr($call, 0, 70));
}
is(proxy->received('TransactWriteItems'), 0, 'nothing was pushed');
is(proxy->received('Query'), 0, 'or looked for');

# What only the state of things refuses.
my $a = session($node);
my $b = session($node);
like($a->error_of(q{SELECT ddb_queue_complete('q', 'fine', 1)}),
	qr/55000: this session has not claimed job 1 of resource "fine" in queue "q"/, 'never claimed');
$a->query_safe(q{SELECT ddb_queue_push('q', 'fine', '1')});
is($a->query_safe(q{SELECT number FROM ddb_queue_claim('q', resources => '{fine,fine}')}), '1',
	'claimed, also if the resource is named twice');
is($a->query_safe("SELECT $_->[0]"), $_->[1], "an unknown queue: $_->[0]")
  foreach [ q{count(*) FROM ddb_queue_claim('none')}, 0 ], [ q{count(*) FROM ddb_queue_depths('none', 'r')}, 0 ],
  [ q{count(*) FROM ddb_queue_list('none')}, 0 ], [ q{count(*) FROM ddb_queue_list('none', dead => true)}, 0 ],
  [ q{ddb_queue_redrive('none')}, 0 ], [ q{ddb_queue_cancel('none', 'r', 1)}, 'f' ],
  [ q{ddb_queue_resume('none', 'r')}, 'f' ], [ q{ddb_queue_drop('none', 'r')}, 0 ];
like($a->error_of(q{SELECT ddb_queue_complete('none', 'r', 1)}), qr/55000: this session has not claimed job 1/,
	'nor has it jobs to complete');
like($a->error_of(q{SELECT ddb_queue_redrive('none', '1#r')}), qr/42704: queue "none" has no dead job "1#r"/,
	'nor dead ones by name');
like($b->error_of(q{SELECT ddb_queue_complete('q', 'fine', 1)}), qr/55000/, 'another session\'s job');
like($b->error_of(q{SELECT ddb_queue_fail('q', 'fine', 1)}), qr/55000/, 'nor failed');
like($a->error_of(q{SELECT ddb_queue_complete('q', 'fine', 2)}),
	qr/55000: .*DETAIL: .*It has claimed job 1/s, 'another number');
like($a->error_of(q{BEGIN; SELECT ddb_queue_complete('q', 'fine', 1);
	SELECT ddb_queue_complete('q', 'fine', 1)}),
	qr/55000: this transaction has completed job 1 .* already/, 'twice in a transaction');
$a->query_safe('ROLLBACK; SELECT ddb_queue_complete(\'q\', \'fine\', 1)');
like($a->error_of(q{SELECT ddb_queue_complete('q', 'fine', 1)}), qr/55000/, 'twice');
like($a->error_of(q{BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM ddb_queue_claim('q')}),
	qr/25001: ddb_queue_claim\(\) must run at isolation level READ COMMITTED/, 'an old snapshot');
$a->query_safe('ROLLBACK');

#
# Tables of another shape
#
foreach my $case ([ 'lockTable', qr/Its keys must be "pk" \(S\) and "sk" \(S\)/ ],
	[ 'noIndex', qr/It must have an index "ready"/ ])
{
	my ($table, $detail) = @$case;

	dynamodb->call('CreateTable', { TableName => $table, BillingMode => 'PAY_PER_REQUEST',
		AttributeDefinitions => [ map { { AttributeName => $_, AttributeType => 'S' } } qw(pk sk) ],
		KeySchema => [ { AttributeName => 'pk', KeyType => 'HASH' },
			{ AttributeName => 'sk', KeyType => 'RANGE' } ] }) if $table eq 'noIndex';
	$node->append_conf('postgresql.conf', "ddblock.queue_table = '$table'\n");
	$node->restart;
	like(error_of($node, 'SELECT ddb_queue_table_create()'),
		qr/55000: existing table "$table" is not a queue table.*$detail/s, "table $table");
	like(error_of($node, $_), qr/55000: existing table "$table" is not a queue table.*$detail/s, "$table: $_")
	  foreach q{SELECT * FROM ddb_queue_claim('q')}, q{SELECT ddb_queue_push('q', 'r', '1')};
	like(error_of($node, q{SELECT ddb_queue_pause('q', 'r')}), qr/55000: the keys of queue table "lockTable"/,
		'nor can it be written') if $table eq 'lockTable';
}

#
# A table that has become a global one is found at the first push or claim
#
$node->append_conf('postgresql.conf', "ddblock.queue_table = 'queueTable'\n");
$node->restart;
proxy->fault('edit', operation => 'DescribeTable', match => 'queueTable', count => -1,
	merge => { Table => { Replicas => [ { RegionName => 'us-west-2', ReplicaStatus => 'ACTIVE' } ] } });
like(error_of($node, $_), qr/55000: .*DETAIL: +It must not be a global table/s, "a global table: $_")
  foreach q{SELECT ddb_queue_push('q', 'r', '1')}, q{SELECT * FROM ddb_queue_claim('q')};
proxy->clear_faults;
$node->safe_psql('postgres', q{SELECT ddb_queue_push('q', 'r', '1')});
proxy->reset_counts;
$node->safe_psql('postgres', q{SELECT ddb_queue_push('q', 'r', '1')});
is(proxy->received('DescribeTable'), 0, 'once it is known, it is not asked for an hour');

done_testing;
