# Settings that say where the locks are: a server with an unusable one does not
# start, because the default would be another place.  And the name under which it
# holds locks there.

use DDBLock::Test;
use Sys::Hostname;

my $node = new_cluster('one', start => 0);
my $conf = slurp_file($node->data_dir . '/postgresql.conf');

sub configure
{
	my ($lines) = @_;

	unlink $node->data_dir . '/postgresql.conf';
	$node->append_conf('postgresql.conf', "$conf\n$lines");
	unlink $node->logfile;
	return;
}

sub refused_ok
{
	my ($lines, $why) = @_;

	configure($lines);
	my $started = $node->start(fail_ok => 1);
	$node->stop if $started;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(!$started, "the server does not start: $lines");
	like(slurp_file($node->logfile), $why, '... and says why');
	return;
}

sub invalid_ok
{
	my ($setting, $value, $detail) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	refused_ok("ddblock.$setting = '$value'",
		qr/invalid value for parameter "ddblock\.$setting".*DETAIL: +$detail.*says where ddblock keeps/s);
	return;
}

invalid_ok('lock_table', 'ab', qr/A table's name has 3 to 255/);
invalid_ok('region', 'eu central', qr/A Region consists of/);
invalid_ok('global_table_region', 'eu/central', qr/A Region consists of/);
invalid_ok('endpoint_url', 'localhost:8000', qr/The URL must have the form/);
invalid_ok('partition_key', '', qr/A key's name has 1 to 255/);
invalid_ok('partition_key', $_, qr/The lock item has another attribute/)
  foreach qw(ownerName leaseDuration recordVersionNumber isReleased data fencingToken
  holder releasedAt ttl);
invalid_ok('sort_key', 'data', qr/The lock item has another attribute/);
invalid_ok('sort_separator', $_, qr/A separator is one ASCII character that is neither/) foreach '##', 'x', ' ', "\xc2\xa7";
invalid_ok('owner_name', 'x' x 256, qr/The name has at most 255/);

my $together = qr/"ddblock\.sort_key" and "ddblock\.sort_key_value" must be set together/;
refused_ok("ddblock.sort_key = 'part'", $together);
refused_ok("ddblock.sort_key_value = 'lock'", $together);
refused_ok("ddblock.sort_key = 'key'\nddblock.sort_key_value = 'lock'",
	qr/"ddblock\.sort_key" and "ddblock\.partition_key" must differ/);
refused_ok("ddblock.sort_separator = '#'", qr/"ddblock\.sort_separator" needs "ddblock\.sort_key"/);

# Names that differ in case are others; a key may be called as DynamoDB's words.
configure("ddblock.partition_key = 'Data'\nddblock.sort_key = 'size'\n"
	  . "ddblock.sort_key_value = 'lock'\nddblock.lock_table = 'own_keys'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION ddblock; SELECT ddb_lock_table_create()');
is($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a') > 0, ddb_lock_release('a')}),
	't|t', 'other names serve');
$node->stop;

# Nothing is sent where an ARN cannot be meant.
configure("ddblock.endpoint_url = ''\nddblock.region = 'eu-central-1'\n"
	  . "ddblock.lock_table = 'arn:aws:dynamodb:us-east-1:123456789012:table/lockTable'\n");
$node->start;
wait_for { worker_pid($node) } 'the worker';
like(error_of($node, q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +55000: ddblock does not know where.*DETAIL: .*ddblock\.lock_table names a table in Region "us-east-1", not in "eu-central-1"\./s,
	"a table's ARN of another Region");
$node->stop;

# Every Debian machine has a cluster "15/main".
my $host = Sys::Hostname::hostname();
my @pg_ctl = ('pg_ctl', '-w', '-D', $node->data_dir);

sub owner_ok
{
	my ($lines, $owner) = @_;
	my $uuid = qr/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

	configure($lines);
	# The node's own start gives a cluster_name on the command line.
	command_ok([ @pg_ctl, '-l', $node->logfile, 'start' ], "a start: $lines");
	my $seen = $node->safe_psql('postgres', q{SELECT ddb_lock_acquire('owner') > 0;
		SELECT owner FROM ddb_lock_info('owner')});
	command_ok([ @pg_ctl, '-m', 'fast', 'stop' ], 'the end');
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($seen, qr{^t\n\Q$owner\E/$uuid$}, "the owner's name is $owner: $lines");
	return;
}

dynamodb->call('CreateTable', {
	TableName => 'lockTable',
	BillingMode => 'PAY_PER_REQUEST',
	AttributeDefinitions => [ { AttributeName => 'key', AttributeType => 'S' } ],
	KeySchema => [ { AttributeName => 'key', KeyType => 'HASH' } ],
});
owner_ok("cluster_name = '15/main'\nddblock.owner_name = ''", "15/main\@$host");
owner_ok("cluster_name = ''\nddblock.owner_name = ''", $host);
owner_ok("cluster_name = '15/main'\nddblock.owner_name = 'shop a/b'", 'shop a/b');
my $long = 'x' x 400;
owner_ok("cluster_name = '$long'\nddblock.owner_name = ''", substr($long, 0, 63) . "\@$host");

done_testing;
