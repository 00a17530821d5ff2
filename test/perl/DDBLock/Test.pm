# DDBLock::Test: what the TAP tests of ddblock stand on.
#
# On top of PostgreSQL's own PostgreSQL::Test::Cluster: DynamoDB Local, the
# counting proxy, and clusters that are preloaded with ddblock and talk to one
# of the two.  All that is started here is stopped when the test file ends,
# clusters first, so that they can release what they hold; a cluster that does
# not shut down in order fails the test file.

=pod

=head1 NAME

DDBLock::Test - clusters with ddblock and a DynamoDB to talk to

=head1 SYNOPSIS

  use DDBLock::Test;

  my $node = new_cluster('one');              # extension and table are there
  $node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')});
  ok(dynamodb->item('a'), 'the lock has an item');

  my $far = new_cluster('two', through => proxy, conf => "ddblock.x = 1\n");
  proxy->fault('reset', applied => 1, operation => 'UpdateItem');
  wait_for { proxy->faults == 1 } 'the fault has struck';
  done_testing;

It turns on strict and warnings, and exports what Test::More and
PostgreSQL::Test::Utils export, too.

=head1 FUNCTIONS (all are exported)

=over

=item dynamodb

The DynamoDB Local of this test file, a L<DDBLock::DynamoDB>: raw items, the
Java client's part. Started at the first call; its table is C<lockTable>.

=item proxy

The counting proxy in front of it, a L<DDBLock::Proxy>: request counts of the
server's side, faults. Started at the first call.

=item new_proxy

A further proxy to the same DynamoDB, so that each of several clusters can have
its own network.

=item new_double(%options)

The DynamoDB double as a server, a L<DDBLock::Double>: it checks signatures and
breaks things on command. Options as its start has them, C<dir> aside. It has
no table yet: create it through the first cluster.

=item new_other_server($kind)

C<moto> or C<dynalite>, a L<DDBLock::OtherServer>. It has no table yet, either.

=item new_cluster($name, %options)

Makes and starts a cluster preloaded with ddblock; returns the
PostgreSQL::Test::Cluster. Cluster_name and ddblock.owner_name are $name.
Options: C<through> (an object with a url, default C<dynamodb>; C<proxy>
to count and to break things), C<conf> (more lines for postgresql.conf, later
ones win), C<extension> (default 1: CREATE EXTENSION in the database
postgres), C<table> (default 1: create the lock table unless it exists; wants the
extension), C<start> (default 1), C<init> (arguments of the node's init, as an
array reference) or C<init_from> (of its init_from_backup: a standby, which has
extension and table from its primary). All options that follow from C<start> are off without it.

=item session($node, $dbname)

A psql that stays open, a L<DDBLock::Session>: C<query_safe>, C<quit>; for
queries that block, C<send>, C<busy>, C<result>.

=item undisturbed($node)

A session whose statements go on when it has lost a lease.

=item lose($node, $name)

Deletes the lock's item, and waits until the cluster, whose lease it was, has noticed.

=item backend_pid($session)

Its server process's pid.

=item worker_pid($node)

The ddblock worker's pid, or undef while there is none.

=item stat_of($node, $operation, $column)

What the view ddb_operations says of an operation; if $operation is undef, the sum
of all operations, or else the column of ddb_stats.  $column defaults to
C<requests>.

=item wait_for_waiters($node, $name, $count)

Waits until that many of the cluster's sessions wait for the lock.

=item wait_for_renewals($name, $count)

Waits until the item's version has changed so often. A holder changes it each third of its
lease, or as its heartbeat says: so a test can wait for longer than a lease.

=item check_batches($node)

Waits until the worker, which checks batches of renewals before it believes them, sends some.

=item is_released($name)

Whether the lock's item is marked released, or not there at all.

=item nothing_held_ok

A test: within a moment, every item of the lock table is released. To be called
at the end of a test file, when its sessions are closed or let go of their locks.

=item wait_for { condition } 'what is waited for'

Returns the condition's value as soon as it is true; dies after
PG_TEST_TIMEOUT_DEFAULT (180) seconds. Use it in place of any sleep.

=item error_of($node, $sql, $dbname)

Runs the SQL, which has to fail; returns the psql error output with SQLSTATE
(VERBOSITY verbose): "ERROR:  LK001: ...". Dies if it succeeds.

=back

=cut

package DDBLock::Test;

use strict;
use warnings;

use parent 'Exporter';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More ();
use Time::HiRes ();

use DDBLock::Double;
use DDBLock::DynamoDB;
use DDBLock::OtherServer;
use DDBLock::Proxy;
use DDBLock::Session;

our @EXPORT = qw(
  dynamodb proxy new_proxy new_double new_other_server new_cluster session undisturbed lose backend_pid worker_pid children_of
  stat_of wait_for wait_for_waiters wait_for_renewals check_batches is_released nothing_held_ok error_of
);

sub import
{
	strict->import;
	warnings->import;
	$_->export_to_level(1) foreach 'Test::More', __PACKAGE__;
	local $Exporter::ExportLevel = 1;
	PostgreSQL::Test::Utils->import;
	return;
}

# No test asks the machine that it runs on for credentials.
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';

# What ends a test file is said in its output, not in its log alone.
$SIG{__DIE__} = sub { Test::More::diag("died: $_[0]") unless $^S // 1; };

sub wait_for(&;$);

my $main_pid = $$;
my ($dynamodb, $proxy, @proxies, @doubles, @nodes);

sub dynamodb
{
	$dynamodb //= DDBLock::DynamoDB->start;
	return $dynamodb;
}

sub new_proxy
{
	push @proxies,
	  DDBLock::Proxy->start(
		dir => PostgreSQL::Test::Utils::tempdir(),
		upstream => dynamodb()->port, @_);
	return $proxies[-1];
}

sub proxy
{
	$proxy //= new_proxy();
	return $proxy;
}

sub new_double
{
	push @doubles,
	  DDBLock::Double->start(dir => PostgreSQL::Test::Utils::tempdir(), @_);
	return $doubles[-1];
}

sub new_other_server
{
	my ($kind) = @_;

	push @doubles, DDBLock::OtherServer->start(dir => PostgreSQL::Test::Utils::tempdir(), kind => $kind);
	return $doubles[-1];
}

sub new_cluster
{
	my ($name, %options) = @_;
	my $through = $options{through} // dynamodb();
	my $node = PostgreSQL::Test::Cluster->new($name);

	_init($node, @{ $options{init} // [] }) unless $options{init_from};
	$node->init_from_backup(@{ $options{init_from} }) if $options{init_from};
	$node->append_conf('postgresql.conf', _settings($node, $through));
	$node->append_conf('postgresql.conf', $options{conf})
	  if defined $options{conf};
	push @nodes, $node;
	return $node unless $options{start} // 1;

	$node->start;
	if ($options{extension} // !$options{init_from})
	{
		$node->safe_psql('postgres', 'CREATE EXTENSION ddblock');
		_create_table($node) if $options{table} // 1;
	}
	return $node;
}

# A node's init runs initdb, which takes a second of the processor: plain ones are copies of
# what the first test file made, with little WAL to copy.  The clusters of one file have different
# templates, because whoever has the same system identifier is a copy.
sub _init
{
	my ($node, %options) = @_;
	my $run = \&PostgreSQL::Test::Utils::system_or_bail;
	my $template = "$ENV{DDBLOCK_WORK}/template." . @nodes;
	my $initdb = sub {
		my $made = "$template.$$";

		return $run->(@_) if $_[0] ne 'initdb';
		$run->((map { $_ eq $node->data_dir ? $made : $_ } @_), '--wal-segsize=1') unless -d $template;
		rename $made, $template unless -d $template;    # another file may have been faster
		$run->('cp', '-RPp', $template, $node->data_dir);
	};

	no warnings 'redefine';
	local *PostgreSQL::Test::Utils::system_or_bail = $options{extra} ? $run : $initdb;
	$node->init(%options);
	return;
}

sub _settings
{
	my ($node, $through) = @_;
	my ($name, $url) = ($node->name, $through->url);

	return <<"CONF";
shared_preload_libraries = 'ddblock'
cluster_name = '$name'
ddblock.owner_name = '$name'
ddblock.region = 'us-east-1'
ddblock.endpoint_url = '$url'
ddblock.access_key_id = 'test'
ddblock.secret_access_key = 'test'
ddblock.lock_table = 'lockTable'
CONF
}

sub _create_table
{
	my ($node) = @_;
	my ($status) = dynamodb()
	  ->try_call('DescribeTable', { TableName => dynamodb()->table });

	return if $status == 200;

	# A DynamoDB Local that has just started may take longer than request_timeout.
	wait_for {
		($status, undef, my $stderr) = $node->psql('postgres',
			"\\set VERBOSITY verbose\nSELECT ddb_lock_table_create()");
		die $stderr unless $status == 0 || $stderr =~ /ERROR: +08006/;
		$status == 0;
	}
	'the lock table';
	return;
}

sub session
{
	my ($node, $dbname) = @_;
	return DDBLock::Session->open($node, $dbname // 'postgres');
}

sub undisturbed
{
	my ($node) = @_;
	my $session = session($node);

	$session->query_safe('SET ddblock.on_lease_lost = none');
	return $session;
}

sub lose
{
	my ($node, $name) = @_;

	dynamodb()->delete_item($name);
	wait_for {
		$node->safe_psql('postgres',
			"SELECT bool_and(state = 'lost') FROM ddb_locks WHERE name = '$name'") eq 't'
	} "the loss of $name";
	return;
}

sub backend_pid
{
	my ($session) = @_;

	return scalar $session->query_safe('SELECT pg_backend_pid()');
}

sub worker_pid
{
	my ($node) = @_;
	my $pid = $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'ddblock worker'}
	);

	return $pid eq '' ? undef : $pid;
}

# By process number: "T" has stopped, "Z" has ended.
sub children_of
{
	my ($parent) = @_;
	my %children;

	foreach my $file (glob '/proc/[0-9]*/stat')
	{
		open my $stat, '<', $file or next;    # it has gone
		my ($pid, $state, $of) = (<$stat> // '') =~ /^(\d+) \(.*\) (\S) (\d+)/s or next;

		$children{$pid} = $state if $of == $parent;
	}
	return \%children;
}

sub stat_of
{
	my ($node, $operation, $column) = @_;

	$column //= 'requests';
	my $sql = $operation ? "SELECT $column FROM ddb_operations WHERE operation = '$operation'"
	  : $column =~ /^(requests|errors|throttles|retries|replies|consumed_units)$/
	  ? "SELECT sum($column) FROM ddb_operations"
	  : "SELECT $column FROM ddb_stats";

	return $node->safe_psql('postgres', $sql);
}

sub wait_for_waiters
{
	my ($node, $name, $count) = @_;

	$node->poll_query_until('postgres',
		"SELECT count(*) = $count FROM ddb_locks
		 WHERE name = '$name' AND state = 'waiting'")
	  or die "$count sessions were to wait for \"$name\"\n";
	return;
}

sub wait_for_renewals
{
	my ($name, $count) = @_;
	my $version = sub { return (dynamodb()->item($name) // {})->{recordVersionNumber}{S} // ''; };

	foreach (1 .. $count)
	{
		my $before = $version->();

		wait_for { $version->() ne $before } 'a renewal of "' . (ref $name ? "@$name" : $name) . '"';
	}
	return;
}

sub check_batches
{
	my ($node) = @_;
	my $session = session($node);
	my $before = stat_of($node, 'renew_batch');

	$session->query_safe(q{SELECT ddb_lock_acquire('checked ' || i, lease => '4s') FROM generate_series(1, 3) i});
	wait_for { stat_of($node, 'renew_batch') > $before + 1 } 'a batch of renewals';
	$session->ask('SELECT ddb_lock_release_all()');
	$session->quit;
	return;
}

sub is_released
{
	my ($name) = @_;
	my $item = dynamodb()->item($name);

	return !$item || exists $item->{isReleased};
}

sub nothing_held_ok
{
	my @held;
	my $deadline = Time::HiRes::time() + $PostgreSQL::Test::Utils::timeout_default;

	while (1)
	{
		@held = map { $_->{key}{S} }
		  grep { !exists $_->{isReleased} } dynamodb()->items;
		last if !@held || Time::HiRes::time() > $deadline;
		Time::HiRes::sleep(0.05);
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	Test::More::is("@held", '', 'nothing is left held in the table');
	return;
}

sub wait_for(&;$)
{
	my ($condition, $what) = @_;
	my $seconds = $PostgreSQL::Test::Utils::timeout_default;
	my $deadline = Time::HiRes::time() + $seconds;
	my $pause = 0.02;

	while (1)
	{
		my $value = $condition->();

		return $value if $value;
		die 'waited in vain for: ' . ($what // 'a condition') . "\n"
		  if Time::HiRes::time() > $deadline;

		# Most conditions start a psql: asked in vain, they would take the other tests' processor.
		Time::HiRes::sleep($pause);
		$pause *= 1.5 if $pause < 0.2;
	}
}

sub error_of
{
	my ($node, $sql, $dbname) = @_;
	my ($status, undef, $stderr) =
	  $node->psql($dbname // 'postgres', "\\set VERBOSITY verbose\n$sql");

	die "this was to fail: $sql\n" if $status == 0;
	return $stderr;
}

# Clusters go first: with their DynamoDB gone they would wait for it.  After a
# failure there may be stopped processes or black holes: do not be polite then.
END
{
	my $status = $?;

	if ($$ == $main_pid)
	{
		my $good = $status == 0 && Test::More->builder->is_passing;

		foreach my $node (reverse @nodes)
		{
			next if $good && $node->stop('fast', fail_ok => 1);
			$good = 0;
			$status ||= 1;
			$node->stop('immediate', fail_ok => 1);
		}
		$_->stop foreach @proxies, @doubles;
		($good ? $dynamodb->give_back : $dynamodb->stop) if $dynamodb;
	}
	$? = $status;
}

1;
