# Through real proxies: which of them is used, who goes past them, how they fail, and that
# nobody gets to see their passwords.
#
# 0.0.0.0 leads to this machine, and is none of its names that proxies are not used for.

use DDBLock::Test;
use DDBLock::Sources;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);

# tinyproxy, before it perhaps stunnel
package Tinyproxy;

use parent -norequire, 'DDBLock::Program';

sub start
{
	my ($class, %options) = @_;
	my $self = bless { dir => PostgreSQL::Test::Utils::tempdir(),
		port => PostgreSQL::Test::Cluster::get_free_port() }, $class;

	PostgreSQL::Test::Utils::append_to_file("$self->{dir}/conf", <<"CONF" . ($options{conf} // ''));
Port $self->{port}
Listen 127.0.0.1
Timeout 600
MaxClients 100
LogLevel Connect
CONF
	return $self->restart;
}

sub restart
{
	my ($self) = @_;

	$self->_run('tinyproxy', 'tinyproxy', '-d', '-c', "$self->{dir}/conf");
	$self->_wait_for('tinyproxy',
		sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) });
	return $self;
}

# It does not end while a tunnel is open.
sub kill
{
	my ($self) = @_;

	CORE::kill 'KILL', $self->{pid};
	waitpid delete $self->{pid}, 0;
	return;
}

sub at { return "127.0.0.1:$_[0]->{port}"; }

sub tunnels
{
	my ($self) = @_;
	return scalar(() = PostgreSQL::Test::Utils::slurp_file("$self->{dir}/tinyproxy.log") =~ /CONNECT 0\.0\.0\.0/g);
}

package Stunnel;

use parent -norequire, 'DDBLock::Program';

sub start
{
	my ($class, $double, $proxy) = @_;
	my $self = bless { dir => PostgreSQL::Test::Utils::tempdir(),
		port => PostgreSQL::Test::Cluster::get_free_port() }, $class;
	my $certificate = $double->ca_file;
	my $key = $certificate =~ s/crt$/key/r;

	PostgreSQL::Test::Utils::append_to_file("$self->{dir}/conf", <<"CONF");
foreground = yes
pid =
[proxy]
accept = 127.0.0.1:$self->{port}
connect = @{[ $proxy->at ]}
cert = $certificate
key = $key
CONF
	$self->_run('stunnel', 'stunnel', "$self->{dir}/conf");
	$self->_wait_for('stunnel',
		sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}) });
	return $self;
}

sub at { return "127.0.0.1:$_[0]->{port}"; }

package main;

delete @ENV{ grep { /^AWS_/ || /_proxy$/i } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';

my $password = 'Wq7sEcReTx';
my $double = new_double(tls => 1);
my $endpoint = 'https://0.0.0.0:' . $double->port;
my $free = Tinyproxy->start;
my $guarded = Tinyproxy->start(conf => "BasicAuth joe $password\n");
my $no_hosts = PostgreSQL::Test::Utils::tempdir() . '/filter';
append_to_file($no_hosts, "nothing\n");
my $refusing = Tinyproxy->start(conf => "Filter \"$no_hosts\"\nFilterDefaultDeny Yes\n");
my $seen = '';

my $node = new_cluster('one', table => 0, conf => "ddblock.endpoint_url = '$endpoint'\n"
	  . "ddblock.ca_file = '" . $double->ca_file . "'\nddblock.retry_timeout = '4s'\n"
	  . "ddblock.proxy = 'http://" . $free->at . "'\nddblock.keep_warm = off\n"
	  . "deadlock_timeout = '100ms'\nlog_statement = none\n");

# New connections, through this proxy.
sub go_through
{
	my ($setting, $shown) = @_;

	$node->append_conf('postgresql.conf', "ddblock.proxy = '$setting'\n");
	$node->reload;
	wait_for { status('proxy') eq $shown } "the way through $shown";
	return;
}

sub status
{
	my ($column) = @_;
	return $node->safe_psql('postgres', "SELECT $column FROM ddb_status");
}

sub works
{
	my ($what) = @_;
	like($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}), qr/^\d+$/, $what);
	return;
}

# The proxy keeps its opinion: the call is repeated, and then fails.
sub fails
{
	my ($detail, $what) = @_;
	my $error = error_of($node, q{SELECT ddb_lock_acquire('a')});

	like($error, qr/NOTICE: .*DETAIL: .*: proxy: $detail.*ERROR: +08006: could not reach DynamoDB at \Q$endpoint\E\n.*DETAIL: +proxy: $detail.*HINT: +Check "ddblock\.proxy", or https_proxy/s,
		$what);
	$seen .= $error;
	return;
}

#
# The setting
#
$node->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
works('through a proxy that the setting names');
cmp_ok($free->tunnels, '>', 0, '... as the proxy knows');
is(status('proxy'), 'http://' . $free->at, '... and ddb_status');
like($node->safe_psql('postgres', q{SELECT string_agg(concat_ws(' ', result, detail), ';') FROM ddb_check() WHERE subject IN ('place', 'renew')}),
	qr{^ok Region \S+, endpoint \S+, proxy http://@{[ $free->at ]};ok dynamodb:PartiQLUpdate$}, '... and ddb_check()');
$node->wait_for_log(qr/LOG: +ddblock connects to DynamoDB through the proxy http:\/\/\Q${\$free->at}\E\n/);

go_through("http://joe:$password\@" . $guarded->at . '/', 'http://' . $guarded->at);
works('with user and password');
cmp_ok($guarded->tunnels, '>', 0, '... after a reload, through another one');

go_through('http://' . $refusing->at, 'http://' . $refusing->at);
fails('The proxy refuses CONNECT: HTTP status 403', 'a proxy that refuses the host');
wait_for { status('trouble') =~ /^proxy: The proxy refuses CONNECT: HTTP status 403$/ } 'the trouble';

my $unknown = 'user and password are missing or wrong';
go_through('http://' . $guarded->at, 'http://' . $guarded->at);
fails("The proxy refuses CONNECT: HTTP status 407, $unknown", 'no password');
go_through("http://joe:${password}Wrong\@" . $guarded->at, 'http://' . $guarded->at);
fails("The proxy refuses CONNECT: HTTP status 40[17], $unknown", 'a wrong password');
go_through('http://unknown.invalid:3128', 'http://unknown.invalid:3128');
fails('Could not resolve proxy: unknown\.invalid', 'a proxy without an address');

# With TLS, it needs a certificate that is trusted, as the endpoint does.
my $stunnel = Stunnel->start($double, $guarded);
my $before = $guarded->tunnels;
go_through("https://joe:$password\@" . $stunnel->at, 'https://' . $stunnel->at);
works('through a proxy with TLS');
cmp_ok($guarded->tunnels, '>', $before, '... as the proxy knows');

#
# The environment
#
$before = $free->tunnels;
go_through('none', '');
works('none: without a proxy');
$node->wait_for_log(qr/LOG: +ddblock connects to DynamoDB without a proxy\n/);
$node->append_conf('postgresql.conf', "ddblock.proxy = ''\n");
sub restart_with
{
	local %ENV = (%ENV, @_);

	$node->restart;
	works('with ' . join ', ', map { s/$password/.../r } @_);
	return;
}
restart_with(HTTP_PROXY => 'http://127.0.0.1:9', http_proxy => 'http://127.0.0.1:9');
is(status('proxy'), '', 'variables for http are not for https');
is($free->tunnels, $before, '... nor has the proxy been used meanwhile');
restart_with(https_proxy => "http://joe:$password\@" . $guarded->at);
is(status('proxy'), 'http://' . $guarded->at, 'a variable of the environment counts');
restart_with(ALL_PROXY => 'http://127.0.0.1:9', no_proxy => 'localhost, 0.0.0.0');
is(status('proxy'), '', '... unless no_proxy excepts the host');
restart_with(HTTPS_PROXY => 'http://' . $free->at);
cmp_ok($free->tunnels, '>', $before, '... and so does this one');

#
# A proxy that dies, and comes back, while a lock is held
#
my $session = session($node);
$session->query_safe(q{SELECT ddb_lock_acquire('held', lease => '9s')});
my $renewals = q{SELECT renewals FROM ddb_locks WHERE name = 'held'};
my $lost = 'SELECT leases_lost FROM ddb_stats';
foreach my $round (1, 2)
{
	$free->kill;
	wait_for { status('trouble') =~ /^proxy: .*refused/ || $node->safe_psql('postgres', $lost) > 0 } 'a renewal that fails';
	my $count = $node->safe_psql('postgres', $renewals);
	$free->restart;
	wait_for { $node->safe_psql('postgres', $renewals) > $count + 1 || $node->safe_psql('postgres', $lost) > 0 } 'renewals';
	is($node->safe_psql('postgres', $lost), 0, 'the lease outlives a proxy that dies and comes back');
}
is($session->query_safe(q{SELECT ddb_lock_require('held') > 0}), 't', '... as the session finds');
$session->query_safe('SELECT ddb_lock_release_all()');
$session->quit;

#
# Nobody sees the password
#
$node->append_conf('postgresql.conf', "ddblock.proxy = 'http://joe:$password\@" . $guarded->at . "'\n");
$node->reload;
wait_for { status('proxy') eq 'http://' . $guarded->at } 'the reload';
$before = -s $node->logfile;
$node->append_conf('postgresql.conf', "ddblock.proxy = 'socks5://joe:$password\@" . $guarded->at . "'\n");
$node->reload;
$node->wait_for_log(qr/LOG: +invalid value for parameter "ddblock\.proxy"\n.*DETAIL: +It must be "none", or a URL/, $before);
is(status('proxy'), 'http://' . $guarded->at, 'an invalid value changes nothing');
is($node->safe_psql('postgres', 'SHOW ddblock.proxy'), '', 'a superuser is shown nothing');
$node->safe_psql('postgres', 'CREATE ROLE joe');
like(error_of($node, 'SET ROLE joe; SHOW ddblock.proxy'), qr/ERROR: +42501/, 'others may not even ask');
foreach my $statement ("ALTER SYSTEM SET ddblock.proxy = 'http://joe:$password\@x:1'",
	"SET ddblock.proxy = 'http://joe:$password\@x:1'")
{
	like(error_of($node, $statement), qr/ERROR: +55P02/, 'refused: ' . $statement =~ s/$password/.../r);
}
$seen .= $node->safe_psql('postgres',
	q{SELECT s FROM pg_settings s; SELECT a FROM pg_stat_activity a; SELECT s FROM ddb_status s});
$seen .= slurp_file("/proc/$_/cmdline") foreach worker_pid($node), slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
unlike($seen, qr/$password/, 'no error, no view and no command line has it');
$node->stop;
unlike(slurp_file($node->logfile), qr/$password/, 'nor has the log');

#
# Credentials: the machine's own services are asked directly, STS through the proxy
#
my $sources = DDBLock::Sources->start(dir => PostgreSQL::Test::Utils::tempdir());
my $url = 'http://0.0.0.0:' . $sources->port;
my $home = PostgreSQL::Test::Utils::tempdir();
mkdir "$home/.aws";
append_to_file("$home/.aws/config", <<"CONFIG");
[profile role]
role_arn = arn:aws:iam::123456789012:role/one
credential_source = Ec2InstanceMetadata
ca_bundle = @{[ $double->ca_file ]}
CONFIG
$double->credentials('ASIA1', secret => 'one', token => 'token');
$sources->set(id => 'ASIA1', secret => 'one', token => 'token', lifetime_s => 3600,
	signers => { ASIA1 => 'one' });
sub via
{
	my ($pattern) = @_;
	my @requests = grep { "$_->{method} $_->{path}" =~ $pattern } $sources->log;

	return join ' ', map { scalar(grep { lc eq 'via' } keys %{ $_->{headers} }) } @requests;
}
sub stranger
{
	my ($name, %environment) = @_;
	local %ENV = (%ENV, HOME => $home, AWS_ENDPOINT_URL_STS => $url,
		map({ $_ => 'http://' . $free->at } qw(http_proxy https_proxy)), %environment);

	return new_cluster($name, table => 0, conf => "ddblock.endpoint_url = '$endpoint'\n"
		  . "ddblock.access_key_id = ''\nddblock.secret_access_key = ''\nlog_statement = none\n");
}
$before = $free->tunnels;
$node = stranger('metadata', AWS_PROFILE => 'role', AWS_EC2_METADATA_DISABLED => 'false',
	AWS_EC2_METADATA_SERVICE_ENDPOINT => $url);
works("the instance's role, with another one assumed, and the profile's ca_bundle");
is(via(qr{ /latest/}), '0 0 0', 'the metadata service is asked directly');
is(via(qr{^POST /$}), '1', 'STS through the proxy');
cmp_ok($free->tunnels, '>', $before, 'DynamoDB, too');
$node->stop;

$node = stranger('container', AWS_CONTAINER_CREDENTIALS_FULL_URI => 'http://127.0.0.1:' . $sources->port . '/container',
	AWS_CA_BUNDLE => $double->ca_file);
works("a container's credentials, and AWS_CA_BUNDLE");
is(via(qr{ /container$}), '0', 'are asked for directly');
$node->stop;

#
# Authorities that cannot be read
#
$node = stranger('untrusting', AWS_PROFILE => 'role', AWS_CA_BUNDLE => "$home/none.pem");
my $untrusting = qr/does not know which servers to trust/;
like(error_of($node, q{SELECT ddb_lock_acquire('a')}),
	qr/ERROR: +55000: ddblock $untrusting\n.*DETAIL: +No usable certificate authorities: AWS_CA_BUNDLE: \Q$home\E\/none\.pem cannot be read: No such file or directory\.\n.*HINT: +Correct the file/s,
	'a file of authorities that is missing is told');
$node->append_conf('postgresql.conf', "ddblock.ca_file = '" . $double->ca_file . "'\n"
	  . "ddblock.access_key_id = 'test'\nddblock.secret_access_key = 'test'\nddblock.profile = ''\n");
$node->reload;
wait_for { ($node->psql('postgres', q{SELECT ddb_lock_acquire('a')}))[0] == 0 } 'the reload';
pass('ddblock.ca_file precedes it, and a reload is enough');
$node->stop;
done_testing;

END
{
	my $status = $?;

	$_->stop foreach grep { defined } $sources, $stunnel;
	foreach my $proxy (grep { defined $_ && $_->{pid} } $free, $guarded, $refusing) { $proxy->kill; }
	$? = $status;
}
