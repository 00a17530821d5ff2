# A database that cannot load ddblock, and a lock server: behind PgBouncer, and a worker in Python
# that has two connections.

use DDBLock::Managed;
use DDBLock::Test;
use DDBLock::Tools;

my $have_bouncer = system('pgbouncer --version >/dev/null 2>&1') == 0;
my $have_psycopg = -d tools . '/alembic/psycopg';

plan skip_all => 'PgBouncer and psycopg are missing' unless $have_bouncer || $have_psycopg;

my $locks = lock_server('locks');
my $shop = managed_cluster('shop', $locks);
my $runs = 0;

sub locks { return $locks->safe_psql('postgres', 'SELECT name, state FROM ddb_locks ORDER BY 1, 2'); }

#
# PgBouncer
#
my $try = q{SELECT ddb_lock_try_acquire('shop/a')};

# A client that must succeed: what it says
sub client
{
	my ($pool, @sql) = @_;
	return start('client_' . ++$runs, [ 'psql', '-XAt', '-v', 'ON_ERROR_STOP=1', '-d', "$pool->{url}/postgres", map { ('-c', $_) } @sql ]);
}
sub says
{
	my $client = client(@_);

	die $client->output if $client->status != 0;
	return $client->output;
}

SKIP:
{
	skip 'PgBouncer is missing', 1 unless $have_bouncer;

	my $other = app($shop);
	my $pool = bouncer($shop, 'transaction', user => 'app');
	my @clients = map { session($pool, 'postgres') } 1, 2;

	is($_->query_safe(q{BEGIN; SELECT ddb_xact_lock_try_acquire('shop/a'); COMMIT}), 't',
		'transaction pooling, one connection: one client after the other gets the lock') foreach @clients;
	wait_for { locks() eq '' } 'its release';
	is($_->query_safe($try), 't', '... a session-scoped lock is everybody\'s') foreach @clients;
	$_->quit foreach @clients;
	is($other->ask($try), 'f', '... and held when both have gone');
	$pool->{run}->kill;
	wait_for { locks() eq '' } 'the end of the connection';

	$shop->safe_psql('postgres', 'CREATE TABLE row (n int, pid int DEFAULT pg_backend_pid()); GRANT ALL ON row TO app');
	$pool = bouncer($shop, 'transaction', user => 'app', size => 3, conf => 'server_round_robin = 1');
	my $add = q{BEGIN; SELECT ddb_xact_lock_acquire('shop/a'); INSERT INTO row SELECT coalesce(max(n), 0) + 1 FROM row; COMMIT};
	my @adding = map { client($pool, ($add) x 25) } 1 .. 4;
	is($_->status, 0, 'transaction pooling: four clients') or diag($_->output) foreach @adding;
	is($shop->safe_psql('postgres', 'SELECT count(*), max(n), count(DISTINCT n), count(DISTINCT pid) FROM row'), '100|100|100|3',
		'... lose no update in three connections');
	wait_for { locks() eq '' } 'the release of it';
	$pool->{run}->kill;

	$pool = bouncer($shop, 'session', user => 'app');
	says($pool, $try);
	is(says($pool, q{SELECT ddb_lock_token('shop/a') > 0}), "t\n", 'session pooling: the next client holds a forgotten lock');
	is($other->ask($try), 'f', '... and nobody else gets it');
	$pool->{run}->kill;
	wait_for { locks() eq '' } 'the end of the connection';

	# Each client leaves something; the one after looks.
	my $look = q{
		SELECT pg_backend_pid();
		SELECT current_setting('search_path'), to_regclass('pg_temp.t') IS NULL,
			(SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_cursors WHERE is_holdable),
			(SELECT count(*) FROM pg_listening_channels()), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory');
		SELECT ddblock.ddb_lock_token('shop/a') IS NULL};
	my $leave = q{
		CREATE TEMP TABLE t (); PREPARE p AS SELECT 1; DECLARE c CURSOR WITH HOLD FOR SELECT 1; LISTEN l;
		SET search_path = nowhere; DO 'BEGIN PERFORM pg_advisory_lock(1), ddblock.ddb_lock_acquire(''shop/a''); END'};
	$pool = bouncer($shop, 'session', user => 'app', conf => page_sql('server_reset_query'));
	my $clean = says($pool, $look);
	says($pool, $leave);
	wait_for { locks() eq '' } 'the release of a forgotten lock';
	pass('session pooling, with the server_reset_query of the page: a forgotten lock is released');
	is(says($pool, $look), $clean, '... and the next client finds the session as DISCARD ALL leaves it');
	like($clean, qr/\|t\|0\|0\|0\|0\nt\n\z/, '... which is empty');
	$pool->{run}->kill;
	$other->quit;
}

#
# The worker
#
SKIP:
{
	skip 'psycopg is missing', 1 unless $have_psycopg;

	my $worker = write_file(PostgreSQL::Test::Utils::tempdir_short() . '/worker.py', page_sql('import psycopg') . <<'PYTHON');

import sys

def work(connection, payload):
    connection.execute("INSERT INTO sent VALUES (%s)", (payload["to"],))
    if payload["to"] == sys.argv[3]:
        # Whose connection breaks
        psycopg.connect(sys.argv[4], autocommit=True).execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (sys.argv[5],))

work_off("mail", sys.argv[1], sys.argv[2], work)
PYTHON
	my $mailer = '127.0.0.1 port=' . $locks->port . ' dbname=postgres user=mailer password=secret sslmode=require channel_binding=require';
	my $run = sub
	{
		my ($to, $node, $role) = @_;

		return start('worker_' . ++$runs, [ '/usr/bin/python3', $worker, "host=$mailer", $shop->connstr('postgres') . ' user=app',
				$to // '', $node ? ($node->connstr('postgres'), $role) : () ], env => { PYTHONPATH => tools . '/alembic' });
	};
	my $sent = sub { return $shop->safe_psql('postgres', q{SELECT string_agg("to", ' ' ORDER BY "to") FROM sent}); };
	my $push = sub { $locks->safe_psql('postgres', qq{SELECT ddb_queue_push('mail', '$_', '{"to": "$_"}')}) foreach @_; };
	my $left = sub { return $locks->safe_psql('postgres', q{SELECT coalesce(sum(depth), 0) FROM ddb_queue_depths('mail')}); };

	$locks->safe_psql('postgres', q{
		SELECT ddb_queue_table_create();
		CREATE ROLE mailer LOGIN PASSWORD 'secret' IN ROLE ddblock_user;
		ALTER ROLE mailer SET ddblock.lock_prefix = 'queue/mail/'});
	$shop->safe_psql('postgres', q{
		CREATE TABLE sent ("to" text CHECK ("to" <> 'nobody'));
		GRANT ALL ON sent TO app});

	$push->(qw(anna bert carl));
	my $first = $run->('bert', $locks, 'mailer');
	isnt($first->status, 0, 'a worker loses its connection to the lock server');
	like($first->output, qr/AdminShutdown|terminating connection/, '... and says so');
	like($sent->(), qr/bert/, '... its work is committed');
	cmp_ok($left->(), '>', 0, '... the job is not completed');
	my $second = $run->();
	is($second->status, 0, 'another worker') or diag($second->output);
	is($sent->(), 'anna bert carl', '... does no work twice');
	is($left->(), 0, '... and completes all jobs');

	$push->('dora');
	isnt($run->('dora', $shop, 'app')->status, 0, 'a worker that loses the other connection ends');
	is($sent->(), 'anna bert carl', '... its work is rolled back');
	is($run->()->status, 0, '... another worker');
	is($sent->(), 'anna bert carl dora', '... does it');

	$push->('nobody');
	my $third = $run->();
	wait_for { $locks->safe_psql('postgres', q{SELECT last_error FROM ddb_queue_depths('mail')}) =~ /check constraint/ } 'the failure';
	pass('work that fails gives the job back');
	is($sent->(), 'anna bert carl dora', '... and leaves nothing');
	$third->kill;
	wait_for { locks() eq '' } 'its end';
}

nothing_held_ok;
done_testing;
