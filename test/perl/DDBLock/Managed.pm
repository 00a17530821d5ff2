# DDBLock::Managed: databases that cannot load ddblock, and their lock servers.

=pod

=head1 NAME

DDBLock::Managed - lock servers, and clusters without ddblock that use them

=head1 SYNOPSIS

  my $locks = lock_server('locks');
  my $shop = managed_cluster('shop', $locks);

=head1 FUNCTIONS (all are exported)

=over

=item lock_server($name, %options)

A cluster with ddblock as doc/recipes/managed.md sets one up: TLS, a password, the role "shop".
Options as new_cluster() has them.

=item managed_cluster($name, @lock_servers)

A cluster that does not preload ddblock.  The role "admin", no superuser, has installed
ddblock_remote with psql; the role "app" may use it.

=item connect_to($node, $database, $role, @lock_servers)

What the owner of the functions does in a database: server, user mapping, foreign table.

=item app($node)

A session of the role "app".

=item page_sql($mark)

The statements of doc/recipes/managed.md that have this in them.

=item script

The file of ddblock_remote's functions.

=back

=cut

package DDBLock::Managed;

use DDBLock::Pages;
use DDBLock::Test;

use parent 'Exporter';
our @EXPORT = qw(lock_server managed_cluster connect_to app script page_sql);

my $certificate;

# Any certificate will do: the password proves who the server is.
sub _make_certificate
{
	my $dir = PostgreSQL::Test::Utils::tempdir();

	system(qw(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=locks),
		'-out', "$dir/server.crt", '-keyout', "$dir/server.key") == 0 or die "openssl failed\n";
	chmod 0600, "$dir/server.key";
	return $dir;
}

sub lock_server
{
	my ($name, %options) = @_;

	$certificate //= _make_certificate();
	my $conf = $options{conf} // '';
	my $node = new_cluster($name, %options, start => 0, conf => $conf . <<"CONF");
listen_addresses = '127.0.0.1'
ssl = on
ssl_cert_file = '$certificate/server.crt'
ssl_key_file = '$certificate/server.key'
password_encryption = 'scram-sha-256'
client_connection_check_interval = '2s'
CONF
	my $hba = $node->data_dir . '/pg_hba.conf';
	my $lines = slurp_file($hba);

	unlink $hba;
	append_to_file($hba, "hostssl all all 127.0.0.1/32 scram-sha-256\n$lines");
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION ddblock;
		SELECT ddb_role_setup('ddblock_user')});
	$node->safe_psql('postgres', page_sql('CREATE ROLE shop'));
	$node->safe_psql('postgres', 'SELECT ddb_lock_table_create()')
	  unless $node->safe_psql('postgres', q{SELECT lock_table FROM ddb_status}) eq ''
	  || (dynamodb->try_call('DescribeTable', { TableName => dynamodb->table }))[0] == 200;
	return $node;
}

sub script
{
	return 'ddblock_remote--' . slurp_file('ddblock_remote.control') =~ s/.*default_version = '([^']*)'.*/$1/sr . '.sql';
}

sub managed_cluster
{
	my ($name, @servers) = @_;
	my $node = new_cluster($name, extension => 0, conf => <<"CONF");
shared_preload_libraries = ''
restart_after_crash = on
wal_level = replica
max_wal_senders = 1
CONF

	$node->safe_psql('postgres', q{
		CREATE ROLE admin LOGIN CREATEROLE;
		CREATE ROLE app LOGIN;
		ALTER DATABASE postgres SET search_path = "$user", public, ddblock});
	$node->safe_psql('postgres', page_sql('CREATE EXTENSION postgres_fdw'));
	command_ok([ 'psql', '-XqAt', '-1', '-v', 'ON_ERROR_STOP=1', '-f', script(), '-o', '/dev/null',
		$node->connstr('postgres') . ' user=admin' ], "$name: the functions, with psql");
	connect_to($node, 'postgres', 'admin', @servers);
	$node->safe_psql('postgres', q{
		GRANT ddblock_user TO app;
		CREATE TABLE counter (n int);
		INSERT INTO counter VALUES (0);
		GRANT ALL ON counter TO app});
	return $node;
}

sub app
{
	my ($node) = @_;

	local $ENV{PGUSER} = 'app';
	return session($node);
}

sub page_sql
{
	my ($mark) = @_;
	my @found = grep { index($_->{text}, $mark) >= 0 } map { @{ $_->{blocks} } } sections('doc/recipes/managed.md');

	die scalar(@found) . " blocks of the page have: $mark\n" unless @found == 1;
	return $found[0]{text};
}

sub connect_to
{
	my ($node, $database, $role, @servers) = @_;
	my $hosts = join ',', map { '127.0.0.1' } @servers;
	my $ports = join ',', map { $_->port } @servers;

	my $sql = page_sql('CREATE SERVER');

	$sql =~ s/host '[^']*', port '[^']*'/host '$hosts', port '$ports'/ or die "no host in:\n$sql";
	$node->safe_psql($database, "SET ROLE $role; $sql");
	return;
}

1;
