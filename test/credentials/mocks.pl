# Credentials from other people's imitations of AWS's servers: moto's STS, and AWS's own
# mock of the EC2 instance metadata service.
#
#	MOTO_SERVER=.../moto_server EC2_METADATA_MOCK=.../ec2-metadata-mock \
#		make check-tap TAP=test/credentials/mocks.pl
#
# Neither comes with ddblock or its set-up: moto is a Python package (moto[server]), the
# mock a Go program (amazon-ec2-metadata-mock).  What is not named is not tried.

use DDBLock::Test;
use IO::Socket::INET;
use POSIX ();

delete @ENV{ grep { /^AWS_/ || /_proxy$/i } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';
die "name MOTO_SERVER or EC2_METADATA_MOCK\n" unless $ENV{MOTO_SERVER} || $ENV{EC2_METADATA_MOCK};

my $home = PostgreSQL::Test::Utils::tempdir();
my $without_keys = "log_statement = none\nddblock.access_key_id = ''\n"
  . "ddblock.secret_access_key = ''\n";
my $fetched = qr/LOG: +ddblock has fetched credentials from: /;
my @pids;

sub start_program
{
	my ($port, @command) = @_;
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', "$home/program.log";
		open STDERR, '>&', \*STDOUT;
		exec @command or POSIX::_exit(127);
	}
	push @pids, $pid;
	wait_for { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) } "@command";
	return "http://127.0.0.1:$port";
}

sub cluster
{
	my ($name, %environment) = @_;
	local %ENV = (%ENV, HOME => $home, %environment);

	return new_cluster($name, conf => $without_keys);
}

sub write_config
{
	my ($text) = @_;

	mkdir "$home/.aws";
	unlink "$home/.aws/config";
	PostgreSQL::Test::Utils::append_to_file("$home/.aws/config", $text);
	return;
}

if ($ENV{EC2_METADATA_MOCK})
{
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $url = start_program($port, $ENV{EC2_METADATA_MOCK}, '--hostname', '127.0.0.1', '--port',
		$port, '--imdsv2');
	my $node = cluster('instance',
		AWS_EC2_METADATA_DISABLED => 'false', AWS_EC2_METADATA_SERVICE_ENDPOINT => $url);

	like($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}),
		qr/^\d+$/, "AWS's mock of the metadata service, version 2 only");
	ok($node->log_contains(qr/$fetched\Qinstance metadata at $url\E/), 'as the log says');
	$node->stop;
}

if ($ENV{MOTO_SERVER})
{
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my $url = start_program($port, $ENV{MOTO_SERVER}, '-H', '127.0.0.1', '-p', $port);
	my $role = 'arn:aws:iam::123456789012:role/locks';

	write_config("[default]\nrole_arn = $role\nsource_profile = keys\nduration_seconds = 900\n"
		  . "[profile keys]\naws_access_key_id = AKIA\naws_secret_access_key = secret\n");
	my $node = cluster('role', AWS_ENDPOINT_URL_STS => $url);
	like($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('b')}),
		qr/^\d+$/, "moto's STS: a role");
	ok($node->log_contains(qr/$fetched\Qrole $role of profile "default"\E/), 'as the log says');
	$node->stop;

	write_config('');
	PostgreSQL::Test::Utils::append_to_file("$home/jwt", "e30.e30.e30\n");
	$node = cluster('web', AWS_ENDPOINT_URL_STS => $url, AWS_ROLE_ARN => $role,
		AWS_WEB_IDENTITY_TOKEN_FILE => "$home/jwt");
	like($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('c')}),
		qr/^\d+$/, "moto's STS: web identity");
	ok($node->log_contains(qr/$fetched\Qweb identity, role $role\E/), 'as the log says');
	$node->stop;
}

END { kill 'TERM', @pids; }
nothing_held_ok;
done_testing;
