# Where credentials come from besides settings and files: the instance, a container, STS,
# a command, single sign-on; how they are renewed, and what happens if that fails.

use DDBLock::Test;
use DDBLock::Sources;

delete @ENV{ grep { /^AWS_/ || /_proxy$/i } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';

my $home = PostgreSQL::Test::Utils::tempdir();
my $double = new_double();
my $sources = DDBLock::Sources->start(dir => PostgreSQL::Test::Utils::tempdir());
my $without_keys = "log_statement = none\nddblock.access_key_id = ''\n"
  . "ddblock.secret_access_key = ''\nddblock.retry_timeout = '3s'\nddblock.keep_warm = off\n";
my $number = 0;
my @nodes;
my %environment;
my @secrets;

sub write_file
{
	my ($path, $text) = @_;

	unlink $path;
	PostgreSQL::Test::Utils::append_to_file($path, $text);
	return;
}

# New credentials: DynamoDB accepts them, and the sources give them out.
sub next_credentials
{
	my (%state) = @_;
	my $id = 'ASIA' . ++$number;

	push @secrets, "secretOf$id", "tokenOf$id==";
	$double->credentials($id, secret => "secretOf$id", token => "tokenOf$id==");
	$sources->set(
		id => $id, secret => "secretOf$id", token => "tokenOf$id==", lifetime_s => 3600,
		status => 0, %state);
	return $id;
}

sub cluster
{
	my ($name, $environment, $conf, %options) = @_;
	local %ENV = (%ENV, HOME => $home, %$environment);
	my $node = new_cluster($name, through => $double, table => 0,
		conf => $without_keys . ($conf // ''), %options);

	push @nodes, $node;
	$environment{$name} = $environment;
	return $node;
}

sub restart
{
	my ($node) = @_;
	local %ENV = (%ENV, HOME => $home, %{ $environment{ $node->name } });

	$node->restart;
	return;
}

# As in a container: what its processes leave behind becomes the postmaster's child.
sub start_as_init
{
	my ($node) = @_;
	local %ENV = (%ENV, HOME => $home, %{ $environment{ $node->name } });

	system_or_bail('pg_ctl', '-w', '-p', "$home/as-init", '-D', $node->data_dir, '-l',
		$node->logfile, '-o', '--cluster-name=' . $node->name, 'start');
	$node->_update_pid(1);
	return;
}

sub times_logged
{
	my ($node, $pattern) = @_;
	return scalar(() = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /$pattern/g);
}

sub works
{
	my ($node, $what) = @_;
	like($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}), qr/^\d+$/, $what);
	return;
}

sub recovers
{
	my ($node, $what) = @_;

	wait_for { ($node->psql('postgres', q{SELECT ddb_lock_acquire('b')}))[0] == 0 } $what;
	return;
}

# Waits until the worker has called read() three times more: a few times each time that it
# looks for credentials, and nobody wants anything else.  Returns how many calls it made.
sub looks
{
	my ($pid, $what) = @_;
	my $reads = sub { (PostgreSQL::Test::Utils::slurp_file("/proc/$pid/io") =~ /^syscr: (\d+)/m)[0] };
	my $first = $reads->();
	my $last = $first;

	foreach my $look (1 .. 3)
	{
		wait_for { $reads->() > $last } "the worker reads $what: $look";
		$last = $reads->();
	}
	return $last - $first;
}

# Source, and seconds until the end, as ddb_status tells them
sub told
{
	my ($node) = @_;
	return split /\|/, $node->safe_psql('postgres', q{SELECT credentials,
		extract(epoch FROM credentials_expire_at - clock_timestamp())::int FROM ddb_status}), -1;
}

sub end_of
{
	my ($node) = @_;
	return $node->safe_psql('postgres', 'SELECT extract(epoch FROM credentials_expire_at) FROM ddb_status');
}

# Does the process's own memory contain the text?
sub remembers
{
	my ($pid, $text) = @_;

	no warnings 'portable';
	open(my $memory, '<:raw', "/proc/$pid/mem") or return "not readable: $!";
	foreach my $line (split /\n/, PostgreSQL::Test::Utils::slurp_file("/proc/$pid/maps"))
	{
		my ($from, $to) = $line =~ /^([0-9a-f]+)-([0-9a-f]+) rw-p/ or next;
		my $bytes;

		sysseek($memory, hex $from, 0) or next;
		sysread($memory, $bytes, hex($to) - hex($from)) or next;
		return 1 if index($bytes, $text) >= 0;
	}
	return 0;
}

mkdir "$home/.aws";
my $fetched = qr/LOG: +ddblock has fetched credentials from: /;
my $not_fetched = qr/LOG: +ddblock could not fetch credentials/;

#
# The instance's role
#
my $first = next_credentials(lifetime_s => 3600);
my $node = cluster('instance',
	{ AWS_EC2_METADATA_DISABLED => 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT => $sources->url });
$node->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
works($node, "the instance's role");
is_deeply(
	[ map { "$_->{method} $_->{path}" } $sources->log ],
	[ 'PUT /latest/api/token', 'GET /latest/meta-data/iam/security-credentials/',
		'GET /latest/meta-data/iam/security-credentials/the-role' ],
	'with three requests, once');
my $url = $sources->url;
$node->wait_for_log(qr/$fetched\Qinstance metadata at $url\E\n.*DETAIL: +They expire: \d{4}-/);
pass('the log says whence, and until when');
my ($whence, $left) = told($node);
is($whence, "instance metadata at $url", 'ddb_status says whence');
cmp_ok($left, '>', 3000, '... and until when');
cmp_ok($left, '<=', 3600, '... as the source said');

my $session = undisturbed($node);
$session->query_safe(q{SELECT ddb_lock_acquire('held', lease => '6s')});
my $second = next_credentials();
$double->credentials($first, state => 'expired');
works($node, 'credentials that DynamoDB refuses are fetched anew');
is($session->query_safe(q{SELECT ddb_lock_require('held') > 0}), 't', 'and the lease is kept');

# The source fails: those in use stay in use.
$sources->set(status => 500);
$node->reload;
$node->wait_for_log(
	qr/$not_fetched\n.*DETAIL: .*instance metadata at \Q$url\E: token: HTTP status 500.*\n.*HINT: +Those in use stay in use; they expire: \d{4}-/);
works($node, 'a source that fails leaves those in use');
($whence, $left) = told($node);
is($whence, "instance metadata at $url", '... which ddb_status shows');
cmp_ok($left, '>', 3000, '... with their end');
wait_for { (grep { $_->{path} eq '/latest/api/token' } $sources->log) > 12 } 'more tries';
is(times_logged($node, $not_fetched), 1, 'the log tells once');

$double->credentials($second, state => 'expired');
like(
	error_of($node, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +08006: there are no valid credentials yet.*DETAIL: .*The credentials came from instance metadata.* Fetching new ones failed: .*HTTP status 500/s,
	'when they have expired, the detail says why there are no others');
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '10min'\n");
$node->reload;
my $waiting = session($node);
$waiting->send(q{SELECT ddb_lock_acquire('b')});
my $tried = $sources->log;
wait_for { $sources->log >= $tried + 6 } 'more tries';
next_credentials();
like($waiting->result, qr/^\d+$/, 'a session waits for others, within ddblock.retry_timeout');
$waiting->quit;
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '3s'\n");
is(times_logged($node, $fetched), 2, 'which the log tells');
$session->quit;

$sources->set(role => '');
restart($node);
like(
	error_of($node, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*DETAIL: .*instance metadata at \Q$url\E: the instance has no role; before it: .*AWS_WEB_IDENTITY_TOKEN_FILE: not set.*AWS_CONTAINER_/s,
	'an instance without a role: the detail lists what was tried');
is_deeply([ told($node) ], [ '', '' ], '... and ddb_status shows none');
$sources->set(role => 'the-role');
recovers($node, 'the role');
pass('a role that is attached later is found without a reload');

# A source that fails for a moment, as at the machine's start
$sources->set(status => 503);
restart($node);
like(error_of($node, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +08006: there are no valid credentials yet.*DETAIL: .*HTTP status 503.*HINT: .*source/s,
	'a source that fails for a moment: a session waits for ddblock.retry_timeout');
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '10min'\n");
$node->reload;
$session = session($node);
$session->send(q{SELECT ddb_lock_acquire('b')});
my $logged = $sources->log;
wait_for { $sources->log >= $logged + 6 } 'more tries';
$sources->set(status => 0);
like($session->result, qr/^\d+$/, '... and gets the lock if the source works by then');
$session->quit;
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '3s'\n");

# Renewed in the background: nobody asks for locks meanwhile.
my $count = grep { $_->{path} =~ /the-role$/ } $sources->log;
next_credentials(lifetime_s => 45);
$node->reload;
wait_for { (grep { $_->{path} =~ /the-role$/ } $sources->log) == $count + 1 } 'the reload';
wait_for { (told($node))[1] =~ /^\d+$/ && (told($node))[1] <= 45 } 'credentials for 45 s';
my $end = end_of($node);
wait_for { (grep { $_->{path} =~ /the-role$/ } $sources->log) == $count + 2 } 'a renewal';
pass('credentials are renewed before they expire');
wait_for { end_of($node) > $end } 'the end of the new ones';
pass('ddb_status shows when the new ones expire');
my $row = $node->safe_psql('postgres', 'SELECT ddb_status::text FROM ddb_status');
is((grep { index($row, $_) >= 0 } @secrets), 0, '... and no secret');
$node->stop;

#
# Containers
#
write_file("$home/token", "Bearer secretJwt\n");
push @secrets, 'secretJwt';
next_credentials(authorization => 'Bearer secretJwt');
my $container = cluster('container',
	{ AWS_CONTAINER_CREDENTIALS_FULL_URI => "$url/container",
		AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE => "$home/token" });
works($container, "a container's role, with a token from a file");
is($container->safe_psql('postgres', 'SELECT credentials FROM ddb_status'), "container at $url",
	"a view does not show the URL's path: on ECS it is a secret");
$container->stop;
my $refused = cluster('refused', { AWS_CONTAINER_CREDENTIALS_FULL_URI => 'http://192.0.2.1/x' });
like(error_of($refused, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*DETAIL: .*plain HTTP is accepted only from this machine, ECS and EKS/s,
	'no other host is asked over plain HTTP');
is($refused->safe_psql('postgres', 'SELECT sum(errors) > 0, sum(requests) FROM ddb_operations'), 't|0',
	'a call without credentials counts as an error, though nothing is sent');
$refused->stop;

#
# STS: web identity, and a role assumed with keys, then with that role
#
write_file("$home/jwt", "secretWebToken\n");
push @secrets, 'secretWebToken';
next_credentials(web_token => 'secretWebToken');
my %web = (AWS_WEB_IDENTITY_TOKEN_FILE => "$home/jwt",
	AWS_ROLE_ARN => 'arn:aws:iam::123456789012:role/web', AWS_ENDPOINT_URL_STS => $url);
my $web = cluster('web', \%web);
works($web, 'a role for a web identity');
$sources->set(web_token => 'another');
restart($web);
like(error_of($web, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*DETAIL: .*AssumeRoleWithWebIdentity: InvalidIdentityToken: refused/s,
	"STS refuses: its error is in the detail");
write_file("$home/jwt", "another\n");
recovers($web, 'the new token');
pass('a new token in the file is read');
$web->stop;

write_file("$home/.aws/config", <<"CONFIG");
[default]
role_arn = arn:aws:iam::123456789012:role/two
source_profile = one
external_id = outside
[profile one]
role_arn = arn:aws:iam::123456789012:role/one
source_profile = keys
[profile keys]
aws_access_key_id = AKIDKEYS
aws_secret_access_key = secretOfKeys
CONFIG
push @secrets, 'secretOfKeys';
my $id = next_credentials();
$sources->set(signers => { AKIDKEYS => 'secretOfKeys', $id => "secretOf$id" });
my $chain = cluster('chain', { AWS_ENDPOINT_URL_STS => $url });
works($chain, 'a role, assumed with another role, assumed with keys: both signatures are right');
my @roles = map { $_->{body} =~ /RoleArn=([^&]+)/ ? $1 : () } $sources->log;
is($roles[-2] . ' ' . $roles[-1],
	join(' ', map { "arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2F$_" } 'one', 'two'), 'in this order');
$sources->set(signers => {});
restart($chain);
like(error_of($chain, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*DETAIL: .*AssumeRole: SignatureDoesNotMatch: refused/s, 'a wrong signature');


# Keys that a reload has removed leave nothing behind.
my $asked_sts = $sources->log;
$sources->set(delay_s => 3);
restart($chain);
wait_for { (grep { $_->{method} eq 'POST' } ($sources->log)[ $asked_sts .. $sources->log - 1 ]) > 0 }
  'a request to STS';
is(remembers(worker_pid($chain), 'secretOfKeys'), 1, 'the worker has the keys that assume the role');
write_file("$home/.aws/config", "[default]\n");
$chain->reload;
like(error_of($chain, q{SELECT ddb_lock_acquire('b')}), qr/ERROR: +28000: /, 'until a reload removes them');
is(remembers(worker_pid($chain), 'secretOfKeys'), 0, '... also from its memory');
$sources->set(delay_s => 0);
$chain->stop;

# Reloads that come faster than a fetch ends
next_credentials();
$sources->set(delay_s => 0.7);
my $reloaded = cluster('reloaded', { AWS_EC2_METADATA_DISABLED => 'false',
	AWS_EC2_METADATA_SERVICE_ENDPOINT => $url, AWS_METADATA_SERVICE_TIMEOUT => 20 });
wait_for { $reloaded->reload; $reloaded->log_contains($fetched) } 'credentials';
pass('reloads that come faster than a fetch ends do not keep it from ending');
$sources->set(delay_s => 0);
$reloaded->stop;

#
# A command
#
$id = next_credentials();
write_file("$home/command", <<"SCRIPT");
#!/bin/sh
echo It fails, >&2
echo and says why. >&2
echo \$\$ >$home/pid
[ ! -e $home/slow ] || sleep 300 | cat
sleep 300 >/dev/null &
cat $home/output
[ ! -e $home/fails ]
SCRIPT
chmod 0700, "$home/command";
write_file("$home/as-init", <<'SCRIPT');
#!/usr/bin/python3
import ctypes, os, shutil, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)     # PR_SET_CHILD_SUBREAPER
os.execv(shutil.which('postgres'), ['postgres'] + sys.argv[1:])
SCRIPT
chmod 0700, "$home/as-init";
push @secrets, 'secretNoise', 'secretArgument';
write_file("$home/.aws/config",
	"[default]\ncredential_process = $home/command secretArgument\n");
write_file("$home/output", qq({"Version": 1, "AccessKeyId": "$id", "SecretAccessKey": "secretOf$id", )
	  . qq("SessionToken": "tokenOf$id=="}));

sub slurp_pid
{
	return PostgreSQL::Test::Utils::slurp_file("$home/pid") =~ /^(\d+)\n/ ? $1 : 0;
}

sub renewals
{
	return $_[0]->query_safe(q{SELECT renewals FROM ddb_locks WHERE name = 'held'});
}

# The slow command starts anew, for whatever reason.
sub next_command
{
	my ($before, $start) = @_;

	$start->();
	wait_for { slurp_pid() > 0 && slurp_pid() != $before } 'the command';
	return slurp_pid();
}

my $process = cluster('process', {}, undef, start => 0);
start_as_init($process);
$process->safe_psql('postgres', 'CREATE EXTENSION ddblock');
works($process, 'what a command prints');
is_deeply([ told($process) ], [ 'credential_process of profile "default"', '' ],
	'... which need not say when it expires');
$session = undisturbed($process);
$session->query_safe(q{SELECT ddb_lock_acquire('held', lease => '9s')});
write_file("$home/slow", '');
my $worker = worker_pid($process);
my $slow_pid = next_command(slurp_pid(), sub { $process->reload });
my $renewals = renewals($session);
# As many as a lease of 9 s needs.
wait_for { renewals($session) >= $renewals + 3 } 'renewals';
ok(kill(0, $slow_pid), 'the command still runs');
is($session->query_safe(q{SELECT ddb_lock_require('held') > 0}), 't',
	'a command that takes long keeps no renewal from being sent');
is(worker_pid($process), $worker, 'and not the worker');
my $errors = stat_of($process, 'acquire', 'errors');
$double->fault('expired', error => 'RequestTimeTooSkewed', operation => 'UpdateItem');
works($process, 'a call that DynamoDB refuses because of the time does not wait for the command');
is(stat_of($process, 'acquire', 'errors') - $errors, 1, 'it was repeated at once');
unlink "$home/slow";
$process->wait_for_log(qr/$not_fetched\n.*DETAIL: .*credential_process of profile "default": the command ran for too long/);
wait_for { !kill 0, $slow_pid } 'its end';
pass('it is ended after its time');
ok($process->log_contains(qr/the command of credential_process has failed\n.*DETAIL: +Its error output ends so: It fails, and says why\./),
	'... and the log shows what it has said');
$session->quit;

# Whatever happens, the postmaster finds no orphan that a signal has ended.
write_file("$home/slow", '');
$slow_pid = next_command($slow_pid, sub { $process->reload });
kill 'TERM', $worker;
$slow_pid = next_command($slow_pid, sub { });
$process->stop;
ok(!kill(0, $slow_pid), 'a fast shutdown ends the command');
start_as_init($process);
$slow_pid = next_command($slow_pid, sub { });
$process->stop('immediate');
ok(!kill(0, $slow_pid), 'as does an immediate one');
start_as_init($process);
$slow_pid = next_command($slow_pid, sub { });

# New settings do not wait for a command that hangs.
$process->append_conf('postgresql.conf',
	"ddblock.access_key_id = 'test'\nddblock.secret_access_key = 'test'\n");
$process->reload;
works($process, 'new keys replace a command that hangs');
wait_for { !kill 0, $slow_pid } 'its end';
$process->append_conf('postgresql.conf',
	"ddblock.access_key_id = ''\nddblock.secret_access_key = ''\n");
unlink "$home/slow";
unlike(PostgreSQL::Test::Utils::slurp_file($process->logfile),
	qr/terminated by signal|crash of another server process/,
	'the postmaster has not taken any part of a command for a crashed backend');

write_file("$home/output", 'secretNoise');
restart($process);
like(error_of($process, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*DETAIL: .*credential_process of profile "default": the command printed no JSON object/s,
	'a command that prints something else');
write_file("$home/fails", '');
restart($process);
my $exited = error_of($process, q{SELECT ddb_lock_acquire('b')});
like($exited, qr/ERROR: +28000: .*DETAIL: .*the command exited with status 1/s, 'a command that fails');
unlike($exited, qr/says why/, '... without what it says of it');
unlink "$home/fails";
$process->stop;

#
# Single sign-on
#
next_credentials(bearer => 'secretBearer');
push @secrets, 'secretBearer';
write_file("$home/.aws/config", <<"CONFIG");
[default]
sso_session = mine
sso_account_id = 123456789012
sso_role_name = Locks
sso_region = us-east-1
[sso-session mine]
sso_region = us-east-1
sso_start_url = https://example.awsapps.com/start
CONFIG
my $sso = cluster('sso', { AWS_ENDPOINT_URL_SSO => $url });
like(error_of($sso, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*DETAIL: .*single sign-on of profile "default": cannot read "\Q$home\E\/\.aws\/sso\/cache\/[0-9a-f]{40}\.json": run "aws sso login"/s,
	'single sign-on without a token');
mkdir "$home/.aws/sso";
mkdir "$home/.aws/sso/cache";
# SHA-1 of "mine"
write_file("$home/.aws/sso/cache/" . `printf mine | sha1sum | cut -c1-40 | tr -d '\\n'` . '.json',
	'{"accessToken": "secretBearer", "expiresAt": "2099-01-01T00:00:00Z"}');
recovers($sso, 'the token');
pass('with a token it works');
$sso->stop;

#
# Sources that stop working
#
unlink "$home/.aws/config";
my %instance = (AWS_EC2_METADATA_DISABLED => 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT => $url);
next_credentials();
my $steady = cluster('steady', \%instance);
works($steady, 'a source that works');
$double->credentials(next_credentials(lifetime_s => -10), state => 'expired');
$steady->reload;
$steady->wait_for_log(qr/$not_fetched\n.*DETAIL: .*the credentials have already expired/);
works($steady, 'credentials that have already expired do not replace those in use');

# DynamoDB refuses what the source gives: to ask again and again does not help.
$double->credentials(next_credentials(), state => 'gone');
$steady->reload;
wait_for { times_logged($steady, $fetched) == 2 } 'the reload';
$count = grep { $_->{path} =~ /the-role$/ } $sources->log;
my $until = time + 12;
error_of($steady, q{SELECT ddb_lock_acquire('b')}) while time < $until;
my $asked = (grep { $_->{path} =~ /the-role$/ } $sources->log) - $count;
ok($asked >= 1 && $asked <= 5, "the source is asked with growing delays: $asked times in 12 s");
next_credentials();
$steady->reload;
recovers($steady, 'the source');

# The log names a source that is new.
write_file("$home/output", qq({"Version": 1, "AccessKeyId": "ASIA$number", )
	  . qq("SecretAccessKey": "secretOfASIA$number", "SessionToken": "tokenOfASIA$number=="}));
my $command = "[default]\ncredential_process = $home/command secretArgument\n";
write_file("$home/.aws/config", $command);
$steady->reload;
$steady->wait_for_log(qr/${fetched}credential_process of profile "default"/);
pass('the log names the source after a reload has changed it');

# A file that somebody is writing
write_file("$home/.aws/config", "[default]\ncredential_proc");
$steady->reload;
$steady->wait_for_log(qr/$not_fetched\n.*DETAIL: .*config: line 2 is malformed.*\n.*HINT: +Those in use stay in use/);
works($steady, 'a malformed file leaves the credentials in use');
my $before = times_logged($steady, $fetched);
write_file("$home/.aws/config", $command);
wait_for { times_logged($steady, $fetched) > $before } 'another look';
pass('the file is read again without a reload');
$steady->stop;

# No credentials at all, then not even a usable file
write_file("$home/.aws/config", "[default]\ncredential_process = false\n");
my $idle = cluster('idle', {});
$idle->wait_for_log($not_fetched);
like(error_of($idle, q{SELECT ddb_lock_acquire('b')}), qr/ERROR: +28000: .*DETAIL: .*The last source that was tried/s,
	'an error has the list of sources');
$idle->wait_for_log(qr/LOG: +could not use table/);
is(times_logged($idle, qr/LOG: +could not use table [^\n]*\n[^\n]*DETAIL: [^\n]*\n\t/), 0, 'the log has it once');
write_file("$home/.aws/config", "[default]\ncredential_proc");
my $idle_worker = wait_for { worker_pid($idle) } 'the worker';

my $made = looks($idle_worker, 'the file again');
cmp_ok($made, '<', 100, 'the worker does not spin');
write_file("$home/.aws/config", $command);
$idle->wait_for_log($fetched);
pass('and looks again');

# One that is emptied, and then written: nothing has told the worker that this is meant.
# (The comment makes the look seen: an empty file is not read.)
my $failures = times_logged($idle, $not_fetched);
write_file("$home/.aws/config", "[default]\ncredential_proc");
$idle->reload;
wait_for { times_logged($idle, $not_fetched) > $failures } 'the reload';
write_file("$home/.aws/config", "# empty\n");
looks($idle_worker, 'the empty file');
works($idle, 'a file that is empty for a moment leaves the credentials in use');
write_file("$home/.aws/config", '');
$idle->reload;
wait_for { ($idle->psql('postgres', q{SELECT ddb_lock_acquire('b')}))[0] != 0 } 'the reload';
like(error_of($idle, q{SELECT ddb_lock_acquire('b')}), qr/ERROR: +28000: .*DETAIL: .*config: no such profile/s,
	'credentials that were removed are not used after a reload');
$idle->stop;

#
# A clock that is wrong until DynamoDB replies: the credentials have 35 s left, not an hour.
#
unlink "$home/.aws/config";
next_credentials(lifetime_s => 3600);
$double->command(command => 'clock', skew_s => 3565);
my $slow_clock = cluster('clock', \%instance, "ddblock.retry_timeout = '9s'\n");
works($slow_clock, "a server's clock that DynamoDB refuses is not believed against it for 10 s");
$slow_clock->wait_for_log($fetched);
$count = grep { $_->{path} =~ /the-role$/ } $sources->log;
wait_for { (grep { $_->{path} =~ /the-role$/ } $sources->log) > $count } 'a renewal';
pass('a renewal is brought forward when the clock turns out to be slow');
$slow_clock->stop;
$double->command(command => 'clock', skew_s => 0);

#
# Certificates that a reload brings, while the Region is missing, too
#
my $tls = new_double(tls => 1);
my $late = cluster('late', { AWS_CONTAINER_CREDENTIALS_FULL_URI => $tls->url . '/secretPath' },
	"ddblock.region = ''\n");
push @secrets, 'secretPath';
wait_for { worker_pid($late) } 'the worker';
write_file("$home/.aws/config", "[default]\nregion = us-east-1\n");
$late->append_conf('postgresql.conf', "ddblock.ca_file = '" . $tls->ca_file . "'\n");
$late->reload;
$late->wait_for_log(qr/$not_fetched\n.*DETAIL: /);
unlike(PostgreSQL::Test::Utils::slurp_file($late->logfile), qr/certificate/,
	'fetching uses new certificates as well');
like(PostgreSQL::Test::Utils::slurp_file($late->logfile),
	qr/$not_fetched\n.*DETAIL: .*container at \Q${\$tls->url}\E: credentials: HTTP status/, 'and is answered');
$late->stop;

#
# The Region, if nothing else names it; then roles are assumed there, too
#
write_file("$home/.aws/config", <<"CONFIG");
[default]
role_arn = arn:aws:iam::123456789012:role/one
source_profile = keys
metadata_service_num_attempts = 6
[profile keys]
aws_access_key_id = AKIDKEYS
aws_secret_access_key = secretOfKeys
CONFIG
next_credentials(signers => { AKIDKEYS => 'secretOfKeys' }, status => 503);
my $placed = cluster('placed',
	{ %instance, AWS_ENDPOINT_URL_STS => $url, AWS_METADATA_SERVICE_TIMEOUT => 20 },
	"ddblock.region = ''\n");
my $unplaced = qr/ddblock does not know where its lock table is/;
like(error_of($placed, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +08006: there is no Region yet for lock table "lockTable"\n.*DETAIL: .*: HTTP status 503/s,
	'a source of the Region that fails for a moment: a session waits for ddblock.retry_timeout');
$sources->set(status => 0);
wait_for { error_of($placed, q{SELECT ddb_lock_acquire('b')}) =~ /ERROR: +55000/ } 'another answer';
like(error_of($placed, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +55000: $unplaced\n.*DETAIL: +No usable Region: ddblock\.region, .*; instance metadata at \Q$url\E: Region: HTTP status 404\./s,
	'instance metadata is the last source of the Region');
my $placed_worker = worker_pid($placed);
my $region_requests = sub { return grep { $_->{path} =~ /region$/ } $sources->log };
wait_for { $region_requests->() >= 2 } 'another request for the Region';
is(times_logged($placed, qr/LOG: +$unplaced/), 1, 'it is asked again, and the log tells once');

my $earlier = $sources->log;
$sources->set(region => 'eu-central-1', throttle => 5);
$placed->wait_for_log(qr/ddblock uses lock table "lockTable" in Region "eu-central-1"/);
works($placed, 'without a reload');
is(worker_pid($placed), $placed_worker, '... and with the same worker');
my @tries = map { $_->{time} } ($sources->log)[ $earlier .. $earlier + 5 ];
# The pauses are 3.1 s together; a busy machine may have noted the first request late.
cmp_ok($tries[5] - $tries[0], '>', 1.5, 'there are pauses before the next tries, as metadata throttles');
is((grep { ($_->{headers}{authorization} // '') =~ m{/eu-central-1/sts/} } $sources->log), 1,
	'STS is asked in this Region');
$count = $region_requests->();
kill 'TERM', $placed_worker;
wait_for { (worker_pid($placed) // 0) != $placed_worker } 'another worker';
works($placed, 'another worker stays in this Region');
is($region_requests->(), $count, '... and does not ask');
$sources->set(region => 'us-east-1', delay_s => 0.5);
restart($placed);
works($placed, 'callers wait while metadata is asked at the start');
is($placed->safe_psql('postgres', 'SELECT region FROM ddb_status'), 'us-east-1', 'for another Region');
$placed->append_conf('postgresql.conf', "ddblock.retry_timeout = '10min'\n");
$sources->set(status => 503, delay_s => 0);
restart($placed);
$session = session($placed);
$session->send(q{SELECT ddb_lock_acquire('b')});
$logged = $sources->log;
wait_for { $sources->log >= $logged + 13 } 'a third series of six tries';
$sources->set(status => 0);
like($session->result, qr/^\d+$/, '... also if its server fails at first');
$session->quit;
$placed->stop;
unlink "$home/.aws/config";
$sources->set(delay_s => 0);

#
# Secrets
#
foreach my $where (@nodes)
{
	my $log = PostgreSQL::Test::Utils::slurp_file($where->logfile);

	is((grep { index($log, $_) >= 0 } @secrets), 0, 'no secret in the log of ' . $where->name);
}
done_testing;

END
{
	my $status = $?;

	$sources->stop if $sources;
	$? = $status;
}
