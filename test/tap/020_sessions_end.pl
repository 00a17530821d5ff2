# However a session or its transaction ends, its locks are freed; and where
# ddblock cannot keep that promise, it refuses to give a lock.

use DDBLock::Test;

my $node = new_cluster('one',
	through => proxy,
	init    => [ allows_streaming => 1 ],
	conf    => "max_prepared_transactions = 5\n"
	  . "client_connection_check_interval = '100ms'\n"
	  . "log_statement = none\n");

# An hour: what is freed here was released, it did not just run out.
my $lease = q{lease => '1h'};

#
# The session ends
#
foreach my $end (
	[ 'is terminated', sub {
		my ($session, $pid) = @_;
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		$session->gone;
	  } ],
	[ 'loses its client', sub { $_[0]->kill } ],
	[ 'quits', sub { $_[0]->quit } ],
  )
{
	my ($how, $finish) = @$end;
	my $session = session($node);

	$session->query_safe(
		qq{SELECT ddb_lock_acquire('a', $lease), ddb_lock_acquire('b', $lease);
		   BEGIN;
		   SELECT ddb_xact_lock_acquire('c', $lease)});
	$finish->($session, backend_pid($session));
	wait_for { is_released('a') && is_released('b') && is_released('c') }
	"the locks of a session that $how";
	pass("a session that $how frees its locks");
}

my $holder = session($node);
my $client = session($node);
$holder->query_safe(qq{SELECT ddb_lock_acquire('a', $lease)});
$client->send(qq{SELECT ddb_lock_acquire('a', $lease)});
wait_for_waiters($node, 'a', 1);
$client->kill;
wait_for_waiters($node, 'a', 0);
pass('a client that is gone waits no longer');
$holder->query_safe(q{SELECT ddb_lock_release('a')});
ok(is_released('a'), 'and gets nothing');

#
# The session is reset, as PgBouncer does between two clients
#
$holder->query_safe(
	qq{SELECT ddb_lock_acquire('a', $lease), ddb_lock_acquire('a'),
		ddb_lock_acquire('b', $lease)});
$holder->query_safe('DISCARD ALL');
wait_for { is_released('a') && is_released('b') } 'the locks of a reset session';
is($holder->query_safe(q{SELECT ddb_lock_token('a') IS NULL}),
	't', 'DISCARD ALL frees session-scoped locks');

#
# Databases come and go while the worker runs
#
my $drop = sub {
	my ($how) = @_;
	my ($status, undef, $stderr) = $node->psql('postgres',
		"SET statement_timeout = '30s'; DROP DATABASE side $how");
	return $status == 0 ? 'dropped' : $stderr;
};
$node->safe_psql('postgres', 'CREATE DATABASE side');
$holder->query_safe(qq{SELECT ddb_lock_acquire('a', $lease)});
is($drop->(''), 'dropped', 'a database is dropped while a session of another holds');

$node->safe_psql('postgres', 'CREATE DATABASE side');
$node->safe_psql('side', 'CREATE EXTENSION ddblock');
my $token = $node->safe_psql('side', qq{SELECT ddb_lock_acquire('b', $lease)});
is($drop->(''), 'dropped', 'the database of a session that held a lock is dropped');
wait_for { is_released('b') } 'the lock of that session';

$node->safe_psql('postgres', 'CREATE DATABASE side');
$node->safe_psql('side', 'CREATE EXTENSION ddblock');
my $evicted = session($node, 'side');
my $evicted_too = session($node, 'side');
$evicted->query_safe(qq{SELECT ddb_lock_acquire('b', $lease)});
$evicted_too->send(qq{SELECT ddb_lock_acquire('a', $lease)});
wait_for_waiters($node, 'a', 1);
is($drop->('WITH (FORCE)'), 'dropped',
	'a database is dropped by force, though its sessions hold and wait');
$_->gone foreach $evicted, $evicted_too;
wait_for { is_released('b') } 'the lock of the evicted session';
is($holder->query_safe(q{SELECT ddb_lock_token('a') IS NOT NULL}),
	't', 'meanwhile the session of the other database holds its lock');
$holder->query_safe(q{SELECT ddb_lock_release('a')});

#
# The transaction ends
#
$holder->query_safe(qq{BEGIN; SELECT ddb_xact_lock_acquire('a', $lease)});
proxy->fault('drop', operation => 'UpdateItem', count => -1);
$holder->query_safe('COMMIT');
pass('COMMIT does not wait for the release');
wait_for { proxy->faults('UpdateItem') >= 1 } 'the release is on its way';
ok(!is_released('a'), 'which has not arrived');
is($holder->query_safe(q{SELECT ddb_lock_token('a') IS NULL}),
	't', 'the session does not hold the lock any more');
proxy->clear_faults;
wait_for { is_released('a') } 'the release in the end';

$holder->query_safe(
	qq{BEGIN;
	   SELECT ddb_xact_lock_acquire('a', $lease);
	   SAVEPOINT s;
	   SELECT ddb_xact_lock_acquire('b', $lease), ddb_lock_acquire('c', $lease);
	   ROLLBACK TO s});
wait_for { is_released('b') } 'the lock that was taken after the savepoint';
ok(!is_released('a') && !is_released('c'),
	'ROLLBACK TO frees what was taken for the transaction after the savepoint');
$holder->query_safe('ROLLBACK');
wait_for { is_released('a') } 'the lock of the transaction';
ok(!is_released('c'), 'a rollback leaves session-scoped locks alone');
$holder->query_safe(q{SELECT ddb_lock_release('c')});

like( $holder->error_of(
		qq{BEGIN;
		   SELECT ddb_xact_lock_acquire('a', $lease);
		   PREPARE TRANSACTION 'p'}),
	qr/ERROR: +0A000: cannot PREPARE/,
	'a transaction with a lock of its own cannot be prepared');
wait_for { is_released('a') } 'the lock of the transaction that was not prepared';
$holder->query_safe(
	qq{BEGIN; SELECT ddb_lock_acquire('a', $lease); PREPARE TRANSACTION 'p'});
ok($holder->query_safe(q{SELECT ddb_lock_token('a') IS NOT NULL}),
	'one with a session-scoped lock can, and the session keeps the lock');
$holder->query_safe(q{ROLLBACK PREPARED 'p'; SELECT ddb_lock_release('a')});

#
# Sessions that outlive the worker get no lock
#
my ($status, undef, $stderr) = $node->psql(
	'postgres',
	qq{\\set VERBOSITY verbose\nSELECT ddb_lock_acquire('a', $lease)},
	replication => 'database');
like($stderr, qr/ERROR: +0A000: ddblock cannot be used in a replication session/,
	'a replication session cannot take a lock');

$holder->quit;
nothing_held_ok;
done_testing;
