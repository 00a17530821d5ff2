# Databases that cannot load ddblock: the fence, hostile callers, dumps, and what can be set up wrongly.

use DDBLock::Test;
use DDBLock::Managed;

my $locks = lock_server('locks');
my $shop = managed_cluster('shop', $locks);
my $app = app($shop);

$shop->append_conf('postgresql.conf', 'max_prepared_transactions = 1');
$shop->restart;
$app->gone;
$app = app($shop);

#
# The fence and the jobs that are done: the same answers as ddblock's own, and the same rows
#
my $own = session($locks);
sub answer
{
	my ($session, $sql) = @_;
	my $said = $session->ask($sql);

	return join '|', $said, $session->messages =~ /ERROR:  (\w+: .*)/;
}
my $seed = int(rand(1e9));
my (%told, @differ);
srand($seed);
my @calls = (("ddb_queue_mark_done('q', 'r0', 1, '2020-01-01Z', 1)") x 2, "ddb_fence_check('r0', 2)", "ddb_fence_check('r0', 1)",
	"ddb_fence_check('r0', 0)");
foreach (1 .. 300)
{
	my ($r, $token, $number) = map { int rand $_ } 3, 5, 3;
	my $pushed = ('NULL', "'2020-01-01Z'", "'2021-01-01Z'")[rand 3];
	push @calls, ("ddb_fence_check('r$r', $token)", "ddb_fence_check_shared('r$r', $token)",
		"ddb_queue_mark_done('q', 'r$r', $number, $pushed, $token)")[rand 3];
}
foreach my $call (@calls)
{
	my ($expected, $got) = map { answer($_, "SELECT $call") } $own, $app;

	$told{$1}++ if $expected =~ /(LK002|22023|^t|^f|^\|?$)/;
	push @differ, "$call: $got, not $expected" if $got ne $expected;
}
is(join("\n", @differ), '', "the calls, most of them random (seed $seed)");
cmp_ok($told{$_} // 0, '>', 0, "answer \"$_\"") foreach 'LK002', '22023', 't', 'f', '';
foreach my $table (qw(ddb_fences ddb_queue_done))
{
	my ($expected, $got) = map { $_->[0]->safe_psql('postgres', "SELECT * FROM $_->[1].$table AS t ORDER BY t::text COLLATE \"C\"") }
	  [ $locks, 'public' ], [ $shop, 'ddblock' ];
	is($got, $expected, "$table has the same rows");
}

my $other = app($shop);
$app->query_safe(q{BEGIN; SELECT ddb_fence_check('waits', 5)});
$other->send(q{SELECT ddb_fence_check('waits', 6)});
$shop->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'}) or die;
$app->query_safe('COMMIT');
$other->result;
is($other->messages, '', 'a higher token waits for the transaction before');
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$app->query_safe(q{SELECT ddb_fence_check('waits', 7)});
like($other->error_of(q{SELECT ddb_fence_check('waits', 8)}), qr/ERROR: +40001: /, 'a snapshot that is older');
$other->query_safe('ROLLBACK');
$shop->safe_psql('postgres', q{CREATE RULE r AS ON UPDATE TO ddblock.ddb_fences DO INSTEAD NOTHING});
like($app->error_of(q{SELECT ddb_fence_check('waits', 9)}), qr/ERROR: +(0A000|55000): /, 'a rule that swallows the row');
$shop->safe_psql('postgres', q{DROP RULE r ON ddblock.ddb_fences});

# What the page shows
foreach my $mark ('BEGIN;\nSELECT ddb_xact_lock_acquire', 'SELECT ddb_lock_acquire')
{
	$app->query_safe(page_sql($mark =~ s/\\n/\n/r));
}

#
# Hostile callers
#
foreach my $function (split /\n/, $shop->safe_psql('postgres', q{
	SELECT format('%s(%s)', p.oid::regproc, (SELECT string_agg('NULL::' || t::regtype, ', ') FROM unnest(p.proargtypes) t))
	FROM pg_proc p WHERE pronamespace = 'ddblock'::regnamespace AND NOT has_function_privilege('app', p.oid, 'EXECUTE')}))
{
	like($app->error_of("SELECT $function"), qr/ERROR: +42501: /, "not for callers: $function");
}
is($shop->safe_psql('postgres', q{
	SELECT string_agg(DISTINCT proname, ' ' ORDER BY proname) FROM pg_proc p WHERE pronamespace = 'ddblock'::regnamespace
	AND (NOT has_function_privilege('app', p.oid, 'EXECUTE') OR has_function_privilege('public', p.oid, 'EXECUTE'))}),
	'ddb_remote_acquire ddb_remote_call ddb_remote_check ddb_remote_refuse ddb_remote_wait ddb_role_setup', 'these, and PUBLIC none');
like($app->error_of($_), qr/ERROR: +42501: /, "permission denied: $_")
  foreach 'SELECT * FROM ddblock.ddb_remote', 'UPDATE ddblock.ddb_remote SET arguments = NULL', 'TABLE ddblock.ddb_fences',
  'DELETE FROM ddblock.ddb_queue_done', 'CREATE USER MAPPING FOR app SERVER ddblock',
  'CREATE FOREIGN TABLE pg_temp.mine (function text) SERVER ddblock', 'CREATE FUNCTION ddblock.f() RETURNS int RETURN 1',
  'ALTER SERVER ddblock OPTIONS (SET port \'1\')';
is($app->ask(q{SELECT umoptions IS NULL FROM pg_user_mappings}), 't', 'the password is not shown');
$app->query_safe(q{
	CREATE TEMP TABLE ddb_remote (function text, arguments jsonb, result jsonb);
	CREATE TEMP TABLE ddb_fences (resource text PRIMARY KEY, token bigint, shared_token bigint);
	INSERT INTO ddb_remote VALUES ('ddb_lock_acquire', NULL, '1');
	SET search_path = pg_temp, ddblock});
cmp_ok($app->ask(q{SELECT ddblock.ddb_lock_acquire('shop/real')}), '>', 1, 'a temporary table deceives nobody');
like($app->error_of(q{SELECT ddblock.ddb_fence_check('waits', 1)}), qr/LK002/, '... nor does one of fences');
is($app->ask('SELECT ddblock.ddb_lock_release_all()'), 1, 'released');

# A tenant that connects to the lock server itself.
my $tenant = $locks->connstr('postgres') . ' user=shop';
foreach my $sql ('BEGIN; LOCK ddb_remote IN ACCESS EXCLUSIVE MODE', q{UPDATE ddb_remote SET function = 'x'},
	q{UPDATE ddb_remote SET arguments = '{"name": "bank/a"}' WHERE function = 'ddb_lock_acquire'}, 'TABLE ddb_fences')
{
	my ($out, $err) = run_command([ 'psql', '-XAt', '-v', 'VERBOSITY=verbose', '-c', $sql, $tenant ]);
	like($err, qr/ERROR: +42501: /, "at the lock server: $sql");
}

$locks->safe_psql('postgres', page_sql('CREATE ROLE shop') =~ s/\bshop\b/bank/gr);
is($locks->safe_psql('postgres', q{
	SELECT array_agg(replace(c, rolname, 'X') ORDER BY c) FILTER (WHERE c !~ '^temp_file_limit')
	FROM pg_db_role_setting JOIN pg_roles r ON r.oid = setrole, unnest(setconfig) c GROUP BY setrole})
	=~ s/(.*)\n\1//r, '', 'the page gives roles the same settings as the script of the image');

# Who may create functions where the script is installed becomes nobody else.
$shop->safe_psql('postgres', 'CREATE ROLE mallory');
foreach my $how ('psql', 'psql without -1', 'extension')
{
	my $database = 'trap_' . $how =~ s/\W/_/gr;

	$shop->safe_psql('postgres', "CREATE DATABASE $database");
	$shop->safe_psql($database, q{
		CREATE EXTENSION postgres_fdw;
		GRANT CREATE ON SCHEMA public TO mallory;
		SET ROLE mallory;
		CREATE FUNCTION public.format(text, regprocedure) RETURNS text LANGUAGE plpgsql AS $$
			BEGIN EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN pg_catalog.format($1, $2); END $$;
		CREATE FUNCTION public.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS $$
			BEGIN EXECUTE 'ALTER ROLE mallory SUPERUSER'; RETURN $2; END $$});
	$shop->safe_psql($database, 'CREATE EXTENSION ddblock_remote') if $how eq 'extension';
	$shop->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', ($how eq 'psql' ? '-1' : ()), '-o', '/dev/null', '-f', script(), $database ],
		"installed: $how") if $how ne 'extension';
	is($shop->safe_psql('postgres', q{SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'}), 'f', "no privilege is gained: $how");
}

#
# Dump and restore, also of the extension
#
connect_to($shop, 'trap_extension', 'postgres', $locks);
$shop->safe_psql('trap_extension', q{
	SELECT ddblock.ddb_fence_check('waits', 7)});
foreach my $database ('postgres', 'trap_extension')
{
	my $dump = $shop->basedir . "/$database.dump";

	$shop->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $database ], "$database: a dump");
	$shop->safe_psql('postgres', "CREATE DATABASE new_$database");
	$shop->command_ok([ 'pg_restore', '--exit-on-error', '-d', "new_$database", $dump ], '... is restored');
	local $ENV{PGUSER} = 'app';
	like($shop->safe_psql("new_$database", q{SELECT ddblock.ddb_lock_acquire('shop/restored')}), qr/^\d+$/, '... the functions work');
	like(error_of($shop, q{SELECT ddblock.ddb_fence_check('waits', 6)}, "new_$database"), qr/LK002/, '... and the tokens are there');
}
like(error_of($shop, 'DROP EXTENSION ddblock_remote', 'trap_extension'), qr/ERROR: +2BP01: /, 'DROP EXTENSION needs CASCADE');

#
# What can be set up wrongly
#
sub fails
{
	my ($what, $error, $sql) = @_;
	my $session = app($shop);

	like($session->error_of($sql // q{SELECT ddb_lock_acquire('shop/a')}), $error, $what);
	$session->quit;
	return;
}
sub as_admin { $shop->safe_psql('postgres', "SET ROLE admin; $_[0]"); return; }

fails('a read-only transaction', qr/ERROR: +25006: /, q{BEGIN READ ONLY; SELECT ddb_lock_acquire('shop/a')});
fails('a prepared transaction', qr/ERROR: +0A000: cannot PREPARE a transaction that has operated on postgres_fdw foreign tables/,
	q{BEGIN; SELECT ddb_xact_lock_acquire('shop/a'); PREPARE TRANSACTION 'p'});
as_admin(q{ALTER USER MAPPING FOR PUBLIC SERVER ddblock OPTIONS (SET password 'wrong')});
fails('a wrong password', qr/ERROR: +08001: could not connect to server "ddblock"\nDETAIL:.*password authentication failed/s);
as_admin(q{ALTER USER MAPPING FOR PUBLIC SERVER ddblock OPTIONS (DROP password)});
fails('no password', qr/ERROR: +2F003: password( or GSSAPI delegated credentials)? (is )?required/);
as_admin(q{ALTER USER MAPPING FOR PUBLIC SERVER ddblock OPTIONS (ADD password 'secret')});

# A server that lets anybody in does not know the password.
my $hba = $locks->data_dir . '/pg_hba.conf';
my $lines = slurp_file($hba);
unlink $hba;
append_to_file($hba, $lines =~ s/scram-sha-256/trust/r);
$locks->reload;
fails('somebody who poses as the lock server', qr/ERROR: +08001: .*channel binding required/s);
unlink $hba;
append_to_file($hba, $lines);
$locks->reload;

$locks->safe_psql('postgres', 'CREATE DATABASE old');
$locks->safe_psql('old', q{CREATE EXTENSION ddblock;
	GRANT SELECT, UPDATE ON ddb_remote TO ddblock_user;
	CREATE OR REPLACE VIEW ddb_remote AS SELECT 'ddb_lock_release' AS function, NULL::jsonb AS arguments, NULL::jsonb AS result});
as_admin(q{ALTER SERVER ddblock OPTIONS (SET dbname 'old')});
fails('an older lock server', qr/ERROR: +0A000: the lock server does not offer ddb_lock_acquire\(\)\nHINT:  Upgrade ddblock there/);
as_admin(q{ALTER SERVER ddblock OPTIONS (SET dbname 'postgres')});
$locks->safe_psql('postgres', 'ALTER ROLE shop RESET ddblock.lock_prefix');
cmp_ok($app->ask(q{SELECT ddblock.ddb_lock_acquire('bank/a')}), '>', 0, 'without lock_prefix every name is theirs');
$app->query_safe('SELECT ddblock.ddb_lock_release_all()');
as_admin('DROP FOREIGN TABLE ddblock.ddb_remote');
fails('no foreign table', qr/ERROR: +42P01: relation "ddblock.ddb_remote" does not exist/);

$_->quit foreach $app, $other, $own;
nothing_held_ok;
done_testing;
