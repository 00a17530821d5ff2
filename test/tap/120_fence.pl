# ddb_fence_check where one database is not enough: roles, pg_dump, prepared
# transactions, foreign servers, waiting, a server without preloading, a standby.

use DDBLock::Test;

my $one = new_cluster(
	'one',
	init => [ allows_streaming => 1 ],
	conf => "max_prepared_transactions = 2\n");

sub token_of
{
	my ($resource, $dbname) = @_;
	return $one->safe_psql($dbname // 'postgres',
		"SELECT token FROM public.ddb_fences WHERE resource = '$resource'");
}

#
# Roles: the function is all that they get
#
$one->safe_psql('postgres', <<'SQL');
CREATE ROLE fenced LOGIN;
GRANT EXECUTE ON FUNCTION ddb_fence_check TO fenced;
CREATE SCHEMA trap AUTHORIZATION fenced;
CREATE TABLE work (n integer);
GRANT ALL ON work TO PUBLIC;
SQL
sub as_fenced
{
	my ($sql) = @_;
	my ($code, $out, $err) = $one->psql('postgres', $sql,
		extra_params => [ '--username', 'fenced', '--set', 'VERBOSITY=verbose' ]);
	return $err;
}
is(as_fenced(q{SELECT ddb_fence_check('role', 5)}), '', 'a role can be granted the fence');
like(as_fenced(q{SELECT ddb_fence_check('role', 4)}), qr/ERROR:  LK002/, 'it holds');
like(as_fenced($_), qr/ERROR:  42501/, "a role may not: $_")
  foreach 'SELECT * FROM ddb_fences',
  q{INSERT INTO ddb_fences VALUES ('x', 1)},
  'UPDATE ddb_fences SET token = 1',
  'DELETE FROM ddb_fences',
  'TRUNCATE ddb_fences',
  'BEGIN; LOCK ddb_fences IN ACCESS SHARE MODE',
  'CREATE TRIGGER t AFTER INSERT ON ddb_fences EXECUTE FUNCTION suppress_redundant_updates_trigger()',
  'ALTER FUNCTION ddb_fence_check RESET search_path',
  'CREATE TABLE trap.copy (resource text REFERENCES ddb_fences)';

# What a role can put in the way: tables, operators, functions, types.
like(as_fenced(<<'SQL'), qr/ERROR:  LK002: fencing token for resource "role" is stale/,
CREATE TEMP TABLE ddb_fences (resource text PRIMARY KEY, token bigint);
CREATE TABLE trap.ddb_fences (resource text PRIMARY KEY, token bigint);
CREATE FUNCTION trap.never(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR trap.< (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE OPERATOR trap.> (FUNCTION = trap.never, LEFTARG = bigint, RIGHTARG = bigint);
CREATE DOMAIN pg_temp.int8 AS integer;
CREATE DOMAIN pg_temp.text AS integer;
SET search_path = pg_temp, trap, pg_catalog, public;
SELECT public.ddb_fence_check('role', 4);
SQL
	'and is not misled by what the role puts in the way');
is(token_of('role'), 5, 'the table is as before');

#
# pg_dump takes the tokens along, also from a schema of their own
#
$one->safe_psql('postgres', q{SELECT ddb_fence_check('dumped', 7)});
$one->safe_psql('postgres', 'CREATE DATABASE restored');
my $dump = $one->basedir . '/dump';
$one->command_ok([ 'pg_dump', '--file', $dump, 'postgres' ], 'a dump');
$one->command_ok(
	[ 'psql', '--no-psqlrc', '--quiet', '--set', 'ON_ERROR_STOP=1',
		'--file', $dump, 'restored' ], 'it is restored');
like(
	error_of($one, q{SELECT ddb_fence_check('dumped', 6)}, 'restored'),
	qr/ERROR:  LK002.*Token 7 is recorded, token 6 was given/s,
	'the restored database refuses the lower token');
$one->safe_psql('restored', q{SELECT ddb_fence_check('dumped', 7)});

$one->safe_psql('restored',
	'CREATE SCHEMA fences; ALTER EXTENSION ddblock SET SCHEMA fences');
$one->safe_psql('postgres', 'CREATE DATABASE moved');
$one->command_ok(
	[ 'pg_dump', '--format', 'custom', '--file', "$dump.custom", 'restored' ],
	'a dump of the database with the extension in another schema');
$one->command_ok(
	[ 'pg_restore', '--exit-on-error', '--dbname', 'moved', "$dump.custom" ],
	'it is restored');
like(
	error_of($one, q{SELECT fences.ddb_fence_check('dumped', 6)}, 'moved'),
	qr/ERROR:  LK002/, 'the lower token is refused there, too');

#
# Prepared transactions keep the fence until they end
#
$one->safe_psql('postgres', <<'SQL');
BEGIN;
SELECT ddb_fence_check('prepared', 5);
PREPARE TRANSACTION 'p';
SQL
my $high = session($one);
my $low = session($one);
$high->send(q{SELECT ddb_fence_check('prepared', 6)});
wait_for
{
	$one->safe_psql('postgres',
		q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) == 1
}
'the higher token waits for the prepared transaction';
$one->safe_psql('postgres', q{COMMIT PREPARED 'p'});
$high->result;
is(token_of('prepared'), 6, 'then it passes');
like($low->error_of(q{SELECT ddb_fence_check('prepared', 5)}), qr/LK002/,
	'the prepared one would be refused now');

#
# A call that is given up while it waits counts as one that failed
#
$high->query_safe(q{BEGIN; SELECT ddb_fence_check('waiting', 5)});
$low->query_safe(q{BEGIN; INSERT INTO work VALUES (1); SAVEPOINT s; SET LOCAL lock_timeout = '10ms'});
like($low->error_of(q{SELECT ddb_fence_check('waiting', 6)}), qr/55P03/, 'lock_timeout');
$low->query_safe('ROLLBACK TO s');
like($low->error_of('COMMIT'), qr/ERROR:  LK002: transaction has lost a fence/,
	'the transaction cannot go on without it');

my $pid = backend_pid($low);
$low->query_safe('BEGIN; INSERT INTO work VALUES (2); SAVEPOINT s');
$low->send(q{SELECT ddb_fence_check('waiting', 6)});
wait_for
{
	$one->safe_psql('postgres',
		"SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid") eq 'Lock'
}
'the session waits';
$one->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
$low->result;
like($low->messages, qr/57014/, 'it is cancelled');
$low->query_safe('ROLLBACK TO s');
like($low->error_of('COMMIT'), qr/LK002/, 'nor after a cancellation');
$high->query_safe('ROLLBACK');
$low->query_safe(q{SELECT ddb_fence_check('waiting', 4)});
is($one->safe_psql('postgres', 'SELECT count(*) FROM work'), 0, 'nothing was written');
$_->quit foreach $high, $low;

#
# Foreign servers: the fence of the other database, called by a trigger there
#
SKIP:
{
skip 'this PostgreSQL came without postgres_fdw', 3
  if $one->safe_psql('postgres', q{SELECT count(*) FROM pg_available_extensions
	WHERE name = 'postgres_fdw'}) == 0;
my $port = $one->port;
my $host = $one->host;
$one->safe_psql('restored', <<'SQL');
CREATE TABLE fenced_work (n integer, token bigint);
CREATE FUNCTION fence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM fences.ddb_fence_check('remote', NEW.token);
	RETURN NEW;
END $$;
CREATE TRIGGER fence BEFORE INSERT ON fenced_work FOR EACH ROW EXECUTE FUNCTION fence();
SQL
$one->safe_psql('postgres', <<"SQL");
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'restored');
CREATE USER MAPPING FOR CURRENT_USER SERVER other;
CREATE FOREIGN TABLE remote_work (n integer, token bigint)
	SERVER other OPTIONS (table_name 'fenced_work', schema_name 'public');
INSERT INTO remote_work VALUES (1, 5);
SQL
like(error_of($one, 'INSERT INTO remote_work VALUES (2, 4)'),
	qr/ERROR:  LK002: fencing token for resource "remote" is stale/,
	'a stale token is refused through postgres_fdw, with its code');
like(
	error_of(
		$one, q{
	BEGIN;
	SAVEPOINT s;
	INSERT INTO remote_work VALUES (3, 6);
	ROLLBACK TO s;
	INSERT INTO work VALUES (4);
	COMMIT}),
	qr/ERROR:  LK002/,
	'a fence that is undone there keeps the transaction here from committing');
is( $one->safe_psql('postgres',
		q{SELECT string_agg(n::text, ',') FROM (SELECT n FROM remote_work
		  UNION ALL SELECT n FROM work) AS written}),
	'1',
	'nothing of it is written');
}

#
# A hot standby is read-only
#
$one->backup('base');
my $standby = new_cluster('standby', init_from => [ $one, 'base', has_streaming => 1 ]);
like(error_of($standby, q{SELECT ddb_fence_check('role', 9)}),
	qr/ERROR:  25006: cannot execute ddb_fence_check\(\) in a read-only transaction/,
	'refused on a standby');
like(error_of($standby, q{SELECT ddb_fence_check_shared('role', 9)}),
	qr/ERROR:  25006: cannot execute ddb_fence_check_shared\(\) in a read-only transaction/,
	'for a shared lock, too');
is($standby->safe_psql('postgres', q{SELECT token FROM ddb_fences WHERE resource = 'role'}),
	5, 'which has its primary\'s tokens');

# ... but has all other functions, also in read-only transactions.
my $on_standby = session($standby);
$on_standby->query_safe('SET client_min_messages = error');
foreach my $call (
	q{ddb_lock_acquire('s') > 0}, q{ddb_lock_token('s') > 0}, q{ddb_lock_require('s') > 0},
	q{ddb_lock_renew('s') > now()}, q{(SELECT held FROM ddb_lock_info('s'))},
	q{(SELECT count(*) = 1 FROM ddb_lock_list('s'))}, q{(SELECT count(*) = 1 FROM ddb_locks)},
	q{(SELECT count(*) > 0 FROM ddb_stats, ddb_operations, ddb_status)}, q{ddb_lock_release('s')},
	q{ddb_lock_try_acquire('s')}, q{ddb_lock_force_release('s')},
	q{ddb_lock_release_all() >= 0}, q{ddb_lock_purge('1 day') >= 0},
	q{ddb_xact_lock_acquire('x') > 0}, q{ddb_xact_lock_try_acquire('x')},
	q{ddb_lock_table_create() IS NOT NULL})
{
	is($on_standby->query_safe("SELECT $call"), 't', "on a standby: $call");
}
$on_standby->quit;

$standby->promote;
like(error_of($standby, q{SELECT ddb_fence_check('role', 4)}), qr/LK002/,
	'they count when it is promoted');

#
# A server that does not preload ddblock: the library is loaded by the call
#
my $plain = new_cluster('plain', conf => "shared_preload_libraries = ''\n", table => 0);
is($plain->safe_psql('postgres', 'SHOW shared_preload_libraries'), '', 'a server without ddblock');
$plain->safe_psql('postgres', q{CREATE TABLE work (n integer); SELECT ddb_fence_check('r', 5)});
like(error_of($plain, q{SELECT ddb_fence_check('r', 4)}), qr/LK002/, 'the fence holds');
like(
	error_of(
		$plain, q{
	BEGIN;
	INSERT INTO work VALUES (1);
	SAVEPOINT s;
	SELECT ddb_fence_check('r', 6);
	ROLLBACK TO s;
	COMMIT}),
	qr/LK002/,
	'a library that was loaded within the savepoint sees it undone');
like(
	error_of(
		$plain, q{
	DO $$
	BEGIN
		PERFORM ddb_fence_check('r', 4);
	EXCEPTION WHEN OTHERS THEN
		INSERT INTO work VALUES (2);
	END $$}),
	qr/LK002: transaction has lost a fence/,
	'or its error swallowed');
is($plain->safe_psql('postgres', 'SELECT count(*) FROM work'), 0, 'nothing was written');

done_testing;
