# What DynamoDB, IAM or the server's own settings refuse: each case has its
# SQLSTATE, and a hint that says what to do.

use DDBLock::Test;

delete @ENV{ grep { /^AWS_/ } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';
my $quiet = "log_statement = none\n";
my $impatient = $quiet . "ddblock.retry_timeout = '4s'\n";
my $node = new_cluster('one', through => proxy,
	conf => $impatient . "ddblock.keep_warm = off\nddblock.max_leases = 3\n");
my $session = session($node);

sub refuse
{
	my ($operation, $type, $message, $count) = @_;

	proxy->clear_faults;
	proxy->reset_counts;
	proxy->fault('error', operation => $operation, status => 400,
		type => $type, message => $message, count => $count // -1);
	return;
}

#
# Credentials
#
refuse('UpdateItem', 'UnrecognizedClientException',
	'The security token included in the request is invalid.');
like(
	$session->error_of(q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +28000: .*DETAIL: .*security token.*credentials came from settings/s,
	'wrong credentials: the detail says where they came from');
is(proxy->received('UpdateItem'), 2,
	'they were looked up once more, and not again and again');

refuse('UpdateItem', 'ExpiredTokenException', 'The security token is expired', 1);
like($session->query_safe(q{SELECT ddb_lock_acquire('a')}),
	qr/^\d+$/, 'credentials that were just replaced are no error');
$session->query_safe(q{SELECT ddb_lock_release('a')});

refuse('UpdateItem', 'InvalidSignatureException',
	'Signature expired: 20200101T000000Z is now earlier than 20260101T000000Z');
like($session->error_of(q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +28000: .*HINT: .*clock/s, 'a wrong clock');

my $home = PostgreSQL::Test::Utils::tempdir();
my $without = do
{
	local $ENV{HOME} = $home;
	local $ENV{AWS_EC2_METADATA_DISABLED} = 'true';

	new_cluster('without', table => 0, through => proxy, conf => $quiet
		  . "ddblock.keep_warm = off\nddblock.retry_timeout = '10min'\n"
		  . "ddblock.access_key_id = ''\nddblock.secret_access_key = ''\n");
};
like(
	error_of($without, q{SET statement_timeout = '100s'; SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +28000: .*DETAIL: .*tried: instance metadata: .*; before it: settings ddblock\.access_key_id.*AWS_ACCESS_KEY_ID.*\.aws\/credentials/s,
	'no credentials: the detail lists the sources, the last one first');
like(
	error_of($without, q{SET statement_timeout = '100s'; SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +28000: /, 'and the next session is not left waiting either');
ok(!$without->log_contains('could not fetch credentials'),
	'nor does the log say so each time: the sessions are told');
proxy->clear_faults;
mkdir "$home/.aws";
PostgreSQL::Test::Utils::append_to_file("$home/.aws/credentials",
	"[default]\naws_access_key_id = filed\naws_secret_access_key = secret\n");
like($without->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}),
	qr/^\d+$/, 'credentials that appear in the shared file are found without a restart');
wait_for { is_released('a') } 'the lock';

#
# IAM
#
refuse('UpdateItem', 'AccessDeniedException',
	'User: arn:aws:iam::123456789012:user/pg is not authorized to perform: dynamodb:UpdateItem');
like($session->error_of(q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +42501: IAM denies.*DETAIL: .*dynamodb:UpdateItem.*HINT: .*policy/s,
	'IAM denies: the detail names the action');
refuse('GetItem', 'AccessDeniedException', 'not authorized');
like($session->error_of(q{SELECT ddb_lock_info('a')}),
	qr/ERROR: +42501: .*DETAIL: .*dynamodb:GetItem/s,
	'which another operation needs, too');

refuse('BatchExecuteStatement', 'AccessDeniedException',
	'not authorized to perform: dynamodb:PartiQLUpdate');
$session->query_safe(
	q{SELECT ddb_lock_acquire('a', lease => '12s'), ddb_lock_acquire('b', lease => '12s')});
wait_for { stat_of($node, 'renew') >= 4 } 'renewals one by one';
is($session->query_safe(q{SELECT ddb_lock_require('a') > 0, ddb_lock_require('b') > 0}),
	't|t', 'without the permission for batches, leases are renewed one by one');
is(proxy->received('BatchExecuteStatement'), 1, 'after one attempt');
is(() = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /DynamoDB refuses batches of renewals: \S+: not authorized.*\n.*\n.*HINT: +Add the denied action.*restart the server/g,
	1, 'which the log tells once, with what to do');
$session->query_safe(q{SELECT ddb_lock_release_all()});

# A policy may deny one lock's statement, and not the others'.
proxy->clear_faults;
check_batches($without);
proxy->fault('edit', operation => 'BatchExecuteStatement', count => -1, merge => { Responses => [ {},
	{ Error => { Code => 'AccessDenied', Message => 'not authorized to perform: dynamodb:PartiQLUpdate' } } ] });
my $several = session($without);
$several->query_safe(q{SELECT ddb_lock_acquire('batch ' || n, lease => '12s') FROM generate_series(1, 2) n});
my $one_by_one = qr/DynamoDB refuses batches of renewals: \S+: not authorized.*\n.*Leases are renewed one by one.*\n.*HINT: +Add the denied action/;
wait_for { slurp_file($without->logfile) =~ $one_by_one } 'the log to tell of the denied statement';
pass('one denied statement among others: the log tells of that one');
$several->quit;
dynamodb->delete_item('batch 2');	# DynamoDB has renewed it all the same

#
# Throttling
#
refuse('UpdateItem', 'ProvisionedThroughputExceededException', 'Rate exceeded');
like($session->error_of(q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +53400: DynamoDB throttles.*HINT: .*capacity/s,
	'throttled for too long');
cmp_ok(proxy->received('UpdateItem'), '>', 1, 'it was tried more than once');
cmp_ok(stat_of($node, 'acquire', 'throttles'), '>', 1, 'and counted');
is(() = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~
	  /LOG: +DynamoDB throttles requests to table "lockTable", which are repeated\n.*DETAIL: +ProvisionedThroughputExceededException: Rate exceeded\n.*HINT: .*capacity/g,
	1, 'which the log tells once');
refuse('UpdateItem', 'ThrottlingException', 'Rate exceeded', 2);
like($session->query_safe(q{SELECT ddb_lock_acquire('a')}),
	qr/^\d+$/, 'throttled for a moment: only later');
$session->query_safe(q{SELECT ddb_lock_release('a')});

#
# Each table by its name, whichever request is refused
#
sub error_about
{
	my ($table, $call, $type) = @_;

	proxy->clear_faults;
	proxy->fault('error', match => "\"TableName\":\"$table\"", status => 400, count => -1, type => $type, message => 'no');
	return $session->error_of("SELECT $call");
}

$session->query_safe(q{SELECT ddb_queue_table_create(protect => false), ddb_queue_push('q', 'named', '1')});
my $log_size = -s $node->logfile;
my %calls = (
	'queue table "queueTable"' => [
		(map { "ddb_queue_$_" } q{push('q', 'named', '2')}, q{claim('q')}, q{depths('q')}, q{depths('q', 'named')},
			q{list('q', 'named')}, q{list('q', dead => true)}, q{summary('q')}, q{purge()}, q{redrive('q')},
			q{redrive('q', '1#named')}, q{cancel('q', 'named', 1)}, q{drop('q', 'named')},
			q{pause('q', 'named')}, q{resume('q', 'named')}, q{table_create()}) ],
	'lock table "lockTable"' => [
		(map { "ddb_lock_$_" } q{acquire('named')}, q{try_acquire('named')}, q{acquire_shared('named')},
			q{acquire_all('{named,other}')}, q{info('named')}, q{list()}, q{purge('1 day')}, q{force_release('named')},
			q{table_create()}), q{ddb_semaphore_acquire('named', 2)} ]);
foreach my $named (sort { $b cmp $a } keys %calls)
{
	my ($table) = $named =~ /"(.*)"/;

	like(error_about($table, $_, 'AccessDeniedException'), qr/ERROR: +42501: IAM denies access to $named\n/, "$named: $_")
	  foreach @{ $calls{$named} };
	next if $table eq 'lockTable';
	unlike(slurp_file($node->logfile, $log_size), qr/could not use table/, 'the log does not tell what the session is told');
	like(error_about($table, q{ddb_queue_pause('q', 'named')}, 'ThrottlingException'),
		qr/ERROR: +53400: DynamoDB throttles requests to $named\n/, 'a throttled table');
	is($node->safe_psql('postgres', 'SELECT trouble FROM ddb_status'), '', 'the status is about the lock table');
	cmp_ok(stat_of($node, 'queue_update', 'throttles'), '>', 1, 'each table has operations of its own');
}
my @told = slurp_file($node->logfile, $log_size) =~ /DynamoDB throttles requests to table "(\w+)"/g;
is("@told", 'queueTable', 'the log tells which table is throttled, once');
proxy->clear_faults;

#
# What nobody expected
#
refuse('UpdateItem', 'SurpriseException', 'a surprising text');
like($session->error_of(q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +XX000: [^\n]*an error that ddblock does not know.*DETAIL: +SurpriseException: a surprising text/s,
	'an unknown error is shown as it is');
proxy->clear_faults;

#
# The table
#
my $elsewhere = new_cluster('elsewhere', table => 0,
	conf => $quiet . "ddblock.lock_table = 'nowhere'\n");
like(error_of($elsewhere, q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +42P01: lock table "nowhere" does not exist.*HINT: +This server looks for it in Region "us-east-1" at http:.*Compare.*ddb_lock_table_create/s,
	'a missing table: to be compared first, and then to be created');
like(error_of($elsewhere, q{SELECT ddb_lock_info('a')}),
	qr/ERROR: +42P01:/, 'is missing for every call');
$elsewhere->safe_psql('postgres', q{SELECT ddb_lock_table_create()});
is($elsewhere->safe_psql('postgres', q{SELECT ddb_lock_acquire('a') > 0, ddb_lock_release('a')}),
	't|t', 'and can be created as the hint says');
$elsewhere->stop;

dynamodb->call('CreateTable', {
	TableName => 'others',
	BillingMode => 'PAY_PER_REQUEST',
	AttributeDefinitions => [
		{ AttributeName => 'id', AttributeType => 'S' },
		{ AttributeName => 'part', AttributeType => 'S' },
	],
	KeySchema => [
		{ AttributeName => 'id', KeyType => 'HASH' },
		{ AttributeName => 'part', KeyType => 'RANGE' },
	],
});
dynamodb->call('CreateTable', {
	TableName => 'other',
	BillingMode => 'PAY_PER_REQUEST',
	AttributeDefinitions => [ { AttributeName => 'id', AttributeType => 'S' } ],
	KeySchema => [ { AttributeName => 'id', KeyType => 'HASH' } ],
});
my $other_keys = new_cluster('other_keys', table => 0,
	conf => $quiet . "ddblock.lock_table = 'other'\n");
my $keys_error = qr/ERROR: +55000: .*keys of .*"others?" do not match.*HINT: .*ddblock\.partition_key/s;
like(error_of($other_keys, "SELECT $_"), $keys_error, "another partition key: $_")
  foreach q{ddb_lock_acquire('a')}, q{ddb_lock_try_acquire('a')}, q{ddb_lock_acquire_all('{a,b}')},
  q{ddb_lock_acquire_shared('a')}, q{ddb_semaphore_acquire('a', 2)}, q{ddb_lock_info('a')},
  q{ddb_lock_force_release('a')}, q{ddb_lock_table_create()};
$other_keys->append_conf('postgresql.conf', "ddblock.lock_table = 'others'\n");
$other_keys->restart;
wait_for { worker_pid($other_keys) } 'the worker';
like(error_of($other_keys, q{SELECT ddb_lock_acquire('a')}),
	$keys_error, 'a table with other keys');
like(error_of($other_keys, q{SELECT ddb_lock_info('a')}),
	$keys_error, 'for every call');
like(error_of($other_keys, q{SELECT ddb_lock_table_create()}),
	$keys_error, 'creating it does not help');
$other_keys->append_conf('postgresql.conf',
	"ddblock.partition_key = 'id'\nddblock.sort_key = 'part'\n"
	  . "ddblock.sort_key_value = 'lock'\n");
$other_keys->restart;
wait_for { worker_pid($other_keys) } 'the worker';
is($other_keys->safe_psql('postgres',
		q{SELECT ddb_lock_acquire('a') > 0, held, ddb_lock_release('a')
		  FROM ddb_lock_info('a')}),
	't|f|t', 'the settings can be made to fit it');
$other_keys->stop;

#
# Our own limits
#
$session->query_safe(q{SELECT ddb_lock_acquire(n::text) FROM generate_series(1, 3) n});
my $full = qr/ERROR: +53400: all 3 leases.*HINT: .*ddblock\.max_leases/s;
like($session->error_of(q{SELECT ddb_lock_acquire('a')}), $full, 'no lease is left');
like($session->error_of(q{SELECT ddb_lock_try_acquire('a')}), $full, 'nor for a try');
is($session->query_safe(q{SELECT ddb_lock_acquire('1') = ddb_lock_token('1')}),
	't', 'stacking needs none');
is($session->query_safe(q{SELECT ddb_lock_release('2'), ddb_lock_acquire('a') > 0}),
	't|t', 'a release makes room');
is($session->query_safe('SELECT ddb_lock_release_all()'), '3', 'all are released');

#
# Not loaded, or without its worker
#
my $unloaded = new_cluster('unloaded', table => 0,
	conf => "shared_preload_libraries = 'plpgsql'\n");
foreach my $call (
	q{SELECT ddb_lock_acquire('a')}, q{SELECT ddb_lock_token('a')},
	q{SELECT * FROM ddb_locks}, q{SELECT * FROM ddb_stats}, q{SELECT * FROM ddb_operations},
	q{SELECT * FROM ddb_status})
{
	like(error_of($unloaded, $call),
		qr/ERROR: +55000: .*HINT: .*"shared_preload_libraries = 'plpgsql, ddblock'"/s,
		"$call without preloading: the hint has the line to add");
}
$unloaded->stop;

my $workerless = new_cluster('workerless', table => 0,
	conf => "max_worker_processes = 0\n");
my $none = qr/ERROR: +57P03: the ddblock worker is not running.*HINT: .*server log/s;
like(error_of($workerless, q{SELECT ddb_lock_acquire('a')}), $none, 'no worker comes up');
like(error_of($workerless, q{SET lock_timeout = '200ms'; SELECT ddb_lock_acquire('a')}),
	$none, 'whichever time-out is shorter');

$session->quit;
nothing_held_ok;
done_testing;
