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

A cluster with ddblock that doc/packaging/lock-server.sh has made a lock server: TLS, a password,
the role "shop".  Without TLS the whole test file is skipped.  Option: conf, as new_cluster() has it.

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

sub lock_server
{
	my ($name, %options) = @_;
	my $conf = $options{conf} // '';
	my $secrets = PostgreSQL::Test::Utils::tempdir();
	my $node = new_cluster($name, %options, extension => 0, conf => "listen_addresses = '127.0.0.1'\n$conf");

	# The package of 16 that check-versions fetches has neither this nor postgres_fdw.
	plan skip_all => 'this PostgreSQL is built without TLS' if $node->safe_psql('postgres', 'SHOW ssl_library') eq '';
	append_to_file("$secrets/shop", 'secret');
	local @ENV{qw(LOCK_ROLES LOCK_SECRETS PGDATA)} = ('shop', $secrets, $node->data_dir);
	$node->command_ok([ 'doc/packaging/lock-server.sh' ], "$name: it is a lock server now");
	$node->restart;
	$node->safe_psql('postgres', 'SELECT ddb_lock_table_create()')
	  unless (dynamodb->try_call('DescribeTable', { TableName => dynamodb->table }))[0] == 200;
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
