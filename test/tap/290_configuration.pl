# What a newcomer may have forgotten, mistyped or laid open: the worker stays
# up, says what is wrong, once, and goes on when that was put right.

use DDBLock::Test;
use File::Temp;
use POSIX ();

delete @ENV{ grep { /^AWS_/ || /_proxy$/i } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';

my $home = PostgreSQL::Test::Utils::tempdir();
my $quiet = "log_statement = none\n";

sub write_file
{
	my ($path, $text, $mode) = @_;

	unlink $path;
	PostgreSQL::Test::Utils::append_to_file($path, $text);
	chmod $mode // 0600, $path;
	return;
}

sub times_logged
{
	my ($node, $pattern) = @_;
	return scalar(() = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /$pattern/g);
}

#
# No Region: neither with Amazon's own endpoint nor with another.
#
mkdir "$home/.aws";
my $unplaced = qr/ddblock does not know where its lock table is/;
my $nowhere = do
{
	local $ENV{HOME} = $home;
	new_cluster('nowhere', table => 0,
		conf => $quiet . "ddblock.region = ''\nddblock.retry_timeout = '10min'\n"
		  . "ddblock.request_timeout = '60s'\n");
};
my $worker = wait_for { worker_pid($nowhere) } 'the worker';
foreach my $call (
	q{ddb_lock_acquire('a')}, q{ddb_lock_try_acquire('a')}, q{ddb_lock_info('a')},
	q{ddb_lock_table_create()}, q{ddb_lock_list()})
{
	like(
		error_of($nowhere, "SET statement_timeout = '100s'; SELECT $call"),
		qr/ERROR: +55000: $unplaced.*DETAIL: +No usable Region: ddblock\.region, AWS_REGION, .*\Q$home\E\/\.aws\/config.*HINT: .*"ddblock\.region"/s,
		"$call without a Region: the caller is told at once, and where it was looked for");
}
is(worker_pid($nowhere), $worker, 'the worker stays');
is(times_logged($nowhere, $unplaced), 6,
	'and has logged it once, besides the five errors');

write_file("$home/.aws/config", "[default]\nregion\n");
$nowhere->reload;
wait_for { times_logged($nowhere, qr/LOG: +$unplaced/) == 2 } 'the worker to look again';
like(error_of($nowhere, q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +55000: .*DETAIL: +No usable Region: shared files: .*config: line 2 is malformed/s,
	'a shared file that is malformed is told likewise');
write_file("$home/.aws/config", "[default]\nregion = eu-north-1\n", 0);
$nowhere->reload;
wait_for { times_logged($nowhere, qr/LOG: +$unplaced/) == 3 } 'the worker to look once more';
like(error_of($nowhere, q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +55000: .*DETAIL: .*shared files: \Q$home\E\/\.aws\/config cannot be read: Permission denied/s,
	'so is one that may not be read: it is not taken for absent');
write_file("$home/.aws/config", "[default]\nregion = eu-north-1\n");
$nowhere->reload;
$nowhere->wait_for_log(qr/ddblock uses lock table "lockTable" in Region "eu-north-1"/);
$nowhere->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
like($nowhere->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}),
	qr/^\d+$/, 'a reload heals it');
is(worker_pid($nowhere), $worker, 'with the same worker');

# Another Region would be another table: not even a new worker goes there.
write_file("$home/.aws/config", "[default]\nregion = eu-south-1\n");
$nowhere->reload;
kill 'TERM', $worker;
wait_for { (worker_pid($nowhere) // $worker) != $worker } 'the next worker';
$nowhere->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')});
is(times_logged($nowhere, 'eu-south-1'), 0,
	'the Region stays what it was as long as the server runs');
$nowhere->stop;

#
# What is used, in one line, to be compared
#
my $url = dynamodb->url;
my $node = new_cluster('one', conf => $quiet . "ddblock.endpoint_url = '$url/'\n");
ok($node->log_contains(
		qr/LOG: +ddblock uses lock table "lockTable" in Region "us-east-1" at \Q$url\E\n.*DETAIL: +The credentials come from: settings\./),
	'a slash at the end of the URL is no matter; the log says what is used');
wait_for { worker_pid($node) } 'the worker';
kill 'TERM', worker_pid($node);
wait_for { $node->safe_psql('postgres', q{SELECT ddb_lock_acquire('b') IS NOT NULL}) eq 't' }
'the next worker';
is(times_logged($node, 'ddblock uses lock table'), 1, 'once for each start of the server');
$node->stop;

#
# Preloaded by its path, from where the server does not look for libraries
#
my $elsewhere = File::Temp->newdir('/tmp/ddblock_XXXXXX');
chomp(my $library = `pg_config --pkglibdir`);
system_or_bail('cp', "$library/ddblock.so", "$elsewhere/ddblock.so");
my $by_path = new_cluster('path', extension => 0, conf => $quiet
	  . "shared_preload_libraries = '$elsewhere/ddblock.so'\ndynamic_library_path = '/nowhere'\n");
$by_path->wait_for_log(qr/ddblock uses lock table/);
ok(worker_pid($by_path), 'a library that is preloaded by its path has a worker');
$by_path->stop;

#
# A user's home where the environment has none, as under pg_ctlcluster
#
my $passwd_home = (getpwuid $<)[7];
my $homeless = do
{
	delete local $ENV{HOME};
	new_cluster('homeless', conf => $quiet
		  . "ddblock.access_key_id = ''\nddblock.secret_access_key = ''\n", table => 0);
};
like(error_of($homeless, q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +28000: .*DETAIL: .*\Q$passwd_home\E\/\.aws\/credentials: .*\Q$passwd_home\E\/\.aws\/config: /s,
	'without HOME the user database has the home, and the detail the paths that were tried');
$homeless->stop;

#
# A FIFO that nobody writes to, where a file is expected
#
POSIX::mkfifo("$home/fifo", 0600) or die "mkfifo: $!";
my $fifo = do
{
	local @ENV{qw(AWS_SHARED_CREDENTIALS_FILE AWS_CONFIG_FILE)} = ("$home/fifo") x 2;
	new_cluster('fifo', conf => $quiet
		  . "ddblock.access_key_id = ''\nddblock.secret_access_key = ''\n", table => 0);
};
like(error_of($fifo, q{SET statement_timeout = '100s'; SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +28000: .*\Q$home\E\/fifo \(AWS_SHARED_CREDENTIALS_FILE\) cannot be read: /s,
	'a FIFO does not stop the worker: the caller is told that it cannot be read');
$fifo->stop;

#
# Files that everybody can read
#
my $open = File::Temp->newdir('/tmp/ddblock_open_XXXXXX');
my $exposed = qr/WARNING: +every user of this machine can read/;
chmod 0755, "$open";
write_file("$open/secret.conf",
	"ddblock.access_key_id = 'test'\nddblock.secret_access_key = 'laidOpen'\n", 0644);
write_file("$open/$_->[0].conf", "ddblock.$_->[1]\n", 0644)
  foreach [ 'token', q{session_token = 'laidOpen'} ], [ 'proxy', q{proxy = 'http://me:laidOpen@127.0.0.1:1'} ],
  [ 'name', q{proxy = 'http://127.0.0.1:1'} ];
my $keys = "aws_access_key_id = test\naws_secret_access_key = laidOpen\n";
write_file("$open/$_->[0]", $_->[1], 0644)
  foreach [ 'credentials', "[default]\n$keys" ], [ 'config', "[default]\n$keys" ], [ 'keys', "[keys]\n$keys" ],
  [ 'role', "[default]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = keys\n" ];
my $careless = new_cluster('careless', table => 0,
	conf => $quiet . "include '$open/secret.conf'\n");
$careless->wait_for_log(qr/$exposed "\Q$open\E\/secret\.conf", which contains ddblock's secret/);
like($careless->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}), qr/^\d+$/,
	'a secret that everybody can read is warned of, and used');
$careless->reload;
$careless->wait_for_log(qr/received SIGHUP/);
like($careless->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}), qr/^\d+$/, 'as after a reload');
is(times_logged($careless, $exposed), 1, 'the warning comes once');
$careless->stop;

# Whatever else is a secret: other settings, and files with the keys in use, also those that assume a role.
my @others;
foreach my $case ([ 'token', "include '$open/token.conf'\n", 'token.conf' ],
	[ 'proxy', "include '$open/proxy.conf'\n", 'proxy.conf' ],
	[ 'nobody', "include '$open/name.conf'\n" ],
	[ 'shared', '', 'credentials', AWS_SHARED_CREDENTIALS_FILE => "$open/credentials" ],
	[ 'configured', '', 'config', AWS_CONFIG_FILE => "$open/config" ],
	[ 'role', '', 'keys', AWS_CONFIG_FILE => "$open/role", AWS_SHARED_CREDENTIALS_FILE => "$open/keys",
		AWS_ENDPOINT_URL_STS => 'http://127.0.0.1:1' ])
{
	my ($name, $conf, $file, %environment) = @$case;
	local @ENV{ keys %environment } = values %environment;

	push @others, new_cluster($name, extension => 0,
		conf => $quiet . ($conf || "ddblock.access_key_id = ''\nddblock.secret_access_key = ''\n"));
	wait_for { $others[-1]->log_contains(qr/ddblock uses lock table/) } 'the worker';
	$others[-1]->wait_for_log(qr/$exposed "\Q$open\E\/$file"/) if $file;
	$others[-1]->stop;
	is(times_logged($others[-1], $exposed), $file ? 1 : 0, "$name: warned of " . ($file // 'nothing'));
}

# As it should be: the file's mode, or that of a folder above it.
chmod 0600, "$open/secret.conf";
$careless->start;
$careless->wait_for_log(qr/ddblock uses lock table(?s:.*)ddblock uses lock table/);
like($careless->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}), qr/^\d+$/,
	'a file of the server alone');
chmod 0644, "$open/secret.conf";
chmod 0700, "$open";
$careless->reload;
$careless->restart;
like($careless->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}), qr/^\d+$/,
	'or in a folder of its own');
is(times_logged($careless, $exposed), 1, 'is not warned of');
is(times_logged($_, 'laidOpen'), 0, 'no log has the secret') foreach $careless, @others;
$careless->stop;

nothing_held_ok;
done_testing;
