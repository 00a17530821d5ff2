# ddb_check() tells what is missing, row by row, and changes nothing: whatever is denied, wrong or
# out of reach, and however the call ends.

use DDBLock::Test;
use DDBLock::Tools;
use List::Util qw(uniq);

delete @ENV{ grep { /^AWS_/ } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';
my $quick = "ddblock.request_timeout = '2s'\nddblock.retry_timeout = '2s'\nddblock.keep_warm = off\n"
  . "log_statement = none\n";
my $double = new_double(seed => 1);

# subject => [ result, detail, hint ]
sub check
{
	my ($session) = @_;
	my @rows = split /\n/, $session->query_safe(q{SELECT concat_ws('|', subject, result, detail, hint) FROM ddb_check()});

	return map { my ($subject, @row) = split /\|/; $subject => \@row } @rows;
}

# The subjects whose row has not this result, and that result.
sub different
{
	my ($found, $usual) = @_;

	return { map { $_ => $found->{$_}[0] } grep { $found->{$_}[0] ne $usual->{$_}[0] } keys %$found };
}

sub contents { return map { @{ $double->command(command => 'items', table => $_)->{items} } } qw(lockTable queueTable); }

#
# All is there
#
my $node = new_cluster('one', through => $double, table => 0, conf => $quick);
my $session = session($node);
$session->query_safe('SELECT ddb_lock_table_create(), ddb_queue_table_create()');
$session->query_safe(q{SELECT ddb_lock_acquire('a'), ddb_lock_release('a'), ddb_queue_push('q', 'r', '1')});
my @contents = contents();
my %usual = check($session);
my %results = map { $_ => $usual{$_}[0] } keys %usual;
is(delete $results{'take-over'}, 'warning', 'no take-over by a clock that is not Amazon\'s');
is_deeply([ uniq values %results ], ['ok'], 'all else is ok') || diag explain \%usual;
is(scalar keys %usual, 26, 'all subjects');
is_deeply([ contents() ], \@contents, 'nothing is left, nothing has changed');
like($usual{library}[1], qr/^(\S+), with libcurl\S+ .*; the extension is \1$/, 'versions');
like($usual{'lock table'}[1], qr{:table/lockTable is ACTIVE, on-demand, protected from deletion$}, 'the lock table');
like($usual{'round trip'}[1], qr/^[\d.]+ ms \(median of 9\), [\d.]+ ms at most/, 'round trip');
like($usual{'same in all clusters'}[1], qr/lock_table=lockTable partition_key=key queue_table=queueTable sort_key=/, 'settings');
my $two = new_cluster('two', through => $double, table => 0, conf => $quick);
is({ check(session($two)) }->{'other clusters'}[1], 'one', 'other clusters');

#
# Each action denied in turn: in these rows
#
my %needs = (
	lockTable => {
		GetItem => ['round trip'], UpdateItem => ['acquire, release'], PartiQLUpdate => ['renew'], Scan => ['list'],
		DeleteItem => ['purge'], PutItem => ['replace'], DescribeTable => ['lock table'], DescribeTimeToLive => [] },
	queueTable => {
		GetItem => ['queue claim'], Query => ['queue list'], PutItem => ['queue push'], ConditionCheckItem => ['queue cancel'],
		UpdateItem => [ 'queue push', 'queue claim', 'queue complete' ], DeleteItem => [ 'queue cancel', 'queue complete' ],
		Scan => ['queue purge'], DescribeTable => ['queue table'], DescribeTimeToLive => [] },
	'queueTable/index/ready' => { Query => ['queue claim'] });

foreach my $table (sort keys %needs)
{
	foreach my $action (sort keys %{ $needs{$table} })
	{
		my %expected = map { $_ => 'FAILED' } @{ $needs{$table}{$action} };

		$expected{ $table eq 'lockTable' ? 'time-to-live' : 'queue time-to-live' } = '-' unless %expected;
		$double->deny("dynamodb:$action", table => $table);
		my %found = check($session);
		$double->allow_all;
		is_deeply(different(\%found, \%usual), \%expected, "without $action on $table") || diag explain \%found;
		like($found{$_}[1], qr/^42501: IAM denies access to (?:lock|queue) table .*dynamodb:$action\b/, "... $_ tells") foreach keys %expected;
		like($found{$_}[2], qr/Add the denied action/, '... and what to do') foreach keys %expected;
	}
}
is_deeply([ contents() ], \@contents, 'nothing is left');

sub cluster
{
	my ($name, $conf) = @_;

	return new_cluster($name, through => $double, table => 0, conf => $quick . $conf);
}
sub variant { return session(cluster(@_)); }

#
# A cancel while any of the requests waits for its reply
#
my $patience = cluster('patient', "ddblock.request_timeout = '60s'\n");
my $patient = session($patience);
my $pid = backend_pid($patient);
foreach my $operation (qw(DescribeTable DescribeTimeToLive GetItem UpdateItem BatchExecuteStatement Scan DeleteItem PutItem
	TransactWriteItems Query))
{
	my $struck = $double->struck('late_reply');

	$double->fault('late_reply', operation => $operation, delay_ms => 60_000, count => -1);
	$patient->send('SELECT * FROM ddb_check()');
	wait_for { $double->struck('late_reply') > $struck } "a $operation that waits";
	$patience->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	$patient->result;
	like($patient->messages, qr/ERROR: +57014: canceling statement due to user request/, "a cancel during $operation ends the call");
	$double->clear_faults;
}
is_deeply([ contents() ], \@contents, 'nothing is left');
is_deeply(different({ check($session) }, \%usual), {}, 'the next call is as usual');
$session->query_safe('BEGIN');
$session->query_safe(q{SELECT ddb_xact_lock_acquire('b')});
is_deeply(different({ check($session) }, \%usual), {}, 'in a transaction that holds a lock');
is($session->query_safe(q{SELECT ddb_lock_remaining('b') > '0s'}), 't', '... which it still holds');
$session->query_safe('ROLLBACK');

#
# Twenty sessions at once
#
my @sessions = map { session($node) } 1 .. 20;
$_->send(q{SELECT string_agg(result, ' ') FROM ddb_check()}) foreach @sessions;
is_deeply([ uniq map { $_->result } @sessions ], [ $session->query_safe(q{SELECT string_agg(result, ' ') FROM ddb_check()}) ],
	'twenty sessions at once');
$_->quit foreach @sessions;

#
# Trouble: throttling, no reply, wrong keys of an account, no table
#
$double->fault('throttle', operation => 'PutItem', count => -1);
my %found = check($session);
$double->clear_faults;
is_deeply([ grep { $found{$_}[0] eq 'FAILED' } keys %found ], ['replace'], 'throttled');
like($found{replace}[1], qr/^53400: /, '... as it says');

sub fails
{
	my ($what, $on, $subject, $detail, $hint) = @_;
	my %rows = check($on);
	my @failed = grep { $rows{$_}[0] eq 'FAILED' } keys %rows;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply(\@failed, [$subject], "$what: $subject has failed") || diag explain \%rows;
	like($rows{$subject}[1], $detail, '... as it says');
	like($rows{$subject}[2], $hint, '... and what to do');
	is($rows{trouble}[1], qq{not tried: see "$subject"}, '... no other row is tried');
	return;
}

$double->credentials('test', state => 'gone');
fails('rejected credentials', $session, 'credentials', qr/^28000: .*credentials came from settings/, qr/./);
$double->credentials('test', state => 'valid');

fails('no credentials', variant('poor', "ddblock.access_key_id = ''\nddblock.secret_access_key = ''\n"), 'credentials',
	qr/^28000: /, qr/./);
fails('no table', variant('missing', "ddblock.lock_table = 'other'\n"), 'lock table', qr/^42P01: lock table "other" does not exist/,
	qr/Compare Region, endpoint/);
fails('wrong keys', variant('keys', "ddblock.partition_key = 'id'\n"), 'lock table', qr/^55000: the keys of lock table .*partition key is "key"/,
	qr/Change "ddblock\.partition_key"/);
fails('no Region', variant('nowhere', "ddblock.region = ''\nddblock.endpoint_url = ''\n"), 'place',
	qr/^55000: ddblock does not know where its lock table is/, qr/Set "ddblock\.region"/);
fails('a Region in capitals', variant('capitals', "ddblock.region = 'EU-CENTRAL-1'\nddblock.endpoint_url = ''\n"), 'place',
	qr/^55000: .*capital letters/, qr/Set "ddblock\.region"/);
fails('an ARN of another Region',
	variant('elsewhere', "ddblock.endpoint_url = ''\nddblock.lock_table = 'arn:aws:dynamodb:eu-west-1:123456789012:table/lockTable'\n"), 'place',
	qr/^55000: .*eu-west-1/, qr/Set "ddblock\.region"/);

#
# Warnings
#
sub make_table
{
	my ($name, %extra) = @_;

	$double->call('CreateTable', { TableName => $name, AttributeDefinitions => [ { AttributeName => 'key', AttributeType => 'S' } ],
		KeySchema => [ { AttributeName => 'key', KeyType => 'HASH' } ], BillingMode => 'PAY_PER_REQUEST', %extra });
	return;
}

make_table('small', BillingMode => 'PROVISIONED', ProvisionedThroughput => { ReadCapacityUnits => 1, WriteCapacityUnits => 1 });
make_table('bare');
$double->call('UpdateTimeToLive', { TableName => 'bare', TimeToLiveSpecification => { AttributeName => 'expires', Enabled => \1 } });
%found = check(variant('thrifty', "ddblock.lock_table = 'small'\nddblock.max_leases = 50\nddblock.lease_duration = '2s'\n"));
is_deeply(different(\%found, \%usual), { 'lock table' => 'warning', limits => 'warning' }, 'a capacity of 1, few leases')
  || diag explain \%found;
like($found{'lock table'}[1], qr/ACTIVE, 1 read and 1 write units$/, '... the capacity');
like($found{'time-to-live'}[1], qr/^off$/, '... no time-to-live');
my $bare = variant('bare', "ddblock.lock_table = 'bare'\n");
%found = check($bare);
is_deeply(different(\%found, \%usual), { 'lock table' => 'warning', 'time-to-live' => 'warning' }, 'no protection, another time-to-live')
  || diag explain \%found;
like($found{'lock table'}[2], qr/Enable deletion protection/, '... the protection');
like($found{'time-to-live'}[1], qr/^on attribute "expires"$/, '... the attribute');
$double->fault('late_reply', operation => 'GetItem', delay_ms => 210, count => -1);
$bare->query_safe(q{SET ddblock.lease_duration = '2s'});
is({ check($bare) }->{'round trip'}[0], 'warning', 'a lease of less than ten round trips');
$double->clear_faults;
$double->command(command => 'clock', skew_s => 120, date_error_ms => 0);
my $slow = cluster('slow', '');
wait_for { $slow->safe_psql('postgres', 'SELECT clock_ahead IS NOT NULL FROM ddb_status') eq 't' } 'DynamoDB\'s time';
%found = check(session($slow));
is($found{clock}[0], 'warning', 'a clock that is two minutes off') || diag explain \%found;
like($found{clock}[1], qr/ahead of this machine by 1[12]\d{4} ms/, '... by how much');
$double->command(command => 'clock', skew_s => 0, date_error_ms => 0);

#
# No queues; a sort key with a separator; a standby
#
my $plain = new_cluster('plain', init => [ allows_streaming => 1 ], conf => "${quick}ddblock.queue_table = 'none'\n");
my $local = session($plain);
%found = check($local);
is_deeply(different(\%found, \%usual), { map { $_ => '-' } grep { /^queue / } keys %found }, 'without queues') || diag explain \%found;
like($found{'queue table'}[2], qr/ddb_queue_table_create\(\)/, '... which a call makes');
$plain->backup('copy');
my $standby = new_cluster('standby', init_from => [ $plain, 'copy', has_streaming => 1 ], conf => $quick);
is_deeply(different({ check(session($standby)) }, \%found), {}, 'on a standby');
my $sorted = variant('sorted', "ddblock.lock_table = 'sorted'\nddblock.sort_key = 'sort'\nddblock.sort_key_value = '-'\nddblock.sort_separator = '#'\n");
$sorted->query_safe('SELECT ddb_lock_table_create()');
is_deeply(different({ check($sorted) }, \%usual), {}, 'with a sort key and a separator');
$double->deny('dynamodb:Query', table => 'sorted');
is_deeply(different({ check($sorted) }, \%usual), { list => 'FAILED' }, '... which needs Query for the list');
$double->allow_all;

#
# Roles, and a prefix
#
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN; CREATE ROLE olga LOGIN; ALTER ROLE olga SET ddblock.lock_prefix = 'shop/';
	SELECT ddb_role_setup('ddblock_user'), ddb_role_setup('ddblock_operator', operator => true);
	GRANT ddblock_user TO alice; GRANT ddblock_operator TO olga});
$session->query_safe('SET SESSION AUTHORIZATION alice');
like($session->error_of('SELECT * FROM ddb_check()'), qr/ERROR: +42501: permission denied for function ddb_check/, 'not for sessions');
$session->query_safe('RESET SESSION AUTHORIZATION; SET SESSION AUTHORIZATION olga');
is_deeply(different({ check($session) }, \%usual), {}, 'for operators');
$session->query_safe('RESET SESSION AUTHORIZATION');

$node->safe_psql('postgres', q{CREATE DATABASE other});
$node->safe_psql('other', q{CREATE SCHEMA "a ""b"; CREATE EXTENSION ddblock SCHEMA "a ""b"});
is($node->safe_psql('other', q{SELECT count(*) FROM "a ""b".ddb_check() WHERE result = 'FAILED'}), 0, 'in a schema outside of search_path');

# What it sends is chosen by the code: operators can try nothing else.
@contents = contents();
foreach my $request ((split /\n/, $session->query_safe('SELECT operation FROM ddb_operations')), 'nothing', '')
{
	next if $request =~ /^(?:queue_)?describe_|^(?:read|renew_batch|force_release|delete|replace|scan|query)$/;
	like($session->error_of("SELECT ddb_check_request('$request')"), qr/ERROR: +22023: ddb_check\(\) has no request/, "no request \"$request\"");
}
is_deeply([ contents() ], \@contents, 'nothing is left');

#
# The program
#
my %environment = (PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres');
my $runs = 0;
sub run { return start('run_' . ++$runs, [ 'ddblock-run', @_ ], env => \%environment); }

my $run = run('--check');
is($run->status, 0, 'ddblock-run --check: nothing has failed') || diag $run->output;
like($run->output, qr/^ok +renew: dynamodb:PartiQLUpdate$/m, '... it prints the rows');
$double->deny('dynamodb:PartiQLUpdate');
$run = run('-d', 'postgres', '--check');
is($run->status, 75, '... a row has failed');
like($run->output, qr/^FAILED +renew: 42501: .*\n +Add the denied action/m, '... which says what to do');
$double->allow_all;
is(run('--check', 'a', 'true')->status, 125, '... takes no command');
is(run('--check', '--dbname=template1')->status, 125, '... needs the extension');

#
# Out of reach; no worker; not preloaded
#
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$session->quit;
$node->restart;
fails('not preloaded', session($node), 'library', qr/^55000: ddblock must be loaded/, qr/Add the line/);
$double->stop;
fails('out of reach', $bare, 'lock table', qr/^08006: /, qr/./);
done_testing();
