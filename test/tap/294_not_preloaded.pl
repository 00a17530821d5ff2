# A server that has the extension, but does not preload ddblock: CREATE EXTENSION says so, each
# function that needs the worker fails with the same error, the others work, and DROP EXTENSION
# keeps what must not be lost.

use DDBLock::Test;

my $node = new_cluster('plain', extension => 0, conf => "shared_preload_libraries = ''\n");
my $line = qr/ddblock must be loaded via "shared_preload_libraries"\n.*HINT: +Add the line "shared_preload_libraries = 'ddblock'"/s;

like(($node->psql('postgres', 'CREATE EXTENSION ddblock'))[2], qr/WARNING: +$line/, 'CREATE EXTENSION');
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN;
	SELECT ddb_role_setup('ddblock_user', operator => true);
	GRANT ddblock_user TO alice;
	SET client_min_messages = error;
	CREATE DATABASE other});

#
# Every function, with sane arguments and with NULLs
#
my %sane = (text => "'q'", 'text[]' => "'{q}'", interval => "'1min'", bytea => "'x'", jsonb => "'1'",
	'jsonb[]' => "'{1}'", boolean => 'true', integer => '1', bigint => '1', name => "'ddblock_user'",
	'timestamp with time zone' => "'2020-01-01Z'");
my @functions = split /\n/, $node->safe_psql('postgres', q{
	SELECT proname, array_to_string(proargtypes::regtype[], ';'), prokind
	  FROM pg_proc p JOIN pg_depend d ON classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
	 WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
	   AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) ORDER BY 1, 2});
cmp_ok(scalar @functions, '>', 60, 'all functions');

# What records something in this database only, and what says why it cannot work.
my $anywhere = qr/^ddb_(check|fence_check|fence_check_shared|queue_push_on_commit|role_setup)\(|^ddb_queue_mark_done\((.*,){4}/;

foreach my $function (@functions)
{
	my ($name, $types, $kind) = split /\|/, $function;
	my @types = split /;/, $types;

	foreach my $arguments ([ map { $sane{$_} // die "no value of type $_" } @types ], [ map { "NULL::$_" } @types ])
	{
		my $call = "$name(" . join(', ', @$arguments) . ')';
		my $null = $call =~ /NULL/;
		my $what = "$name with " . ($null ? 'NULLs' : 'arguments');
		my $statement = $kind eq 'p' ? "CALL $call" : "SELECT * FROM $call";

		$node->safe_psql('postgres', 'TRUNCATE ddb_fences');		# one token per kind of lock
		my ($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");

		if ($call !~ $anywhere)
		{
			like($stderr, qr/ERROR: +55000: $line/, $what);
		}
		elsif ($null)
		{
			like($stderr, qr/ERROR: +22023: argument "\w+" must not be null/, $what);
		}
		else
		{
			is($status, 0, $what) || diag($stderr);
		}
		next if $name eq 'ddb_role_setup';
		($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET ROLE alice; $statement");
		like($stderr, $call !~ $anywhere ? qr/(55000: $line|42501)/ : $null ? qr/22023/ : qr/^$/, '... as a plain user');
	}
}

#
# The hooks: transactions, savepoints, PREPARE, triggers, the end of a session
#
$node->safe_psql('postgres', q{
	BEGIN; SAVEPOINT s; SELECT ddb_fence_check('r', 5); ROLLBACK TO s; ROLLBACK;
	BEGIN; SAVEPOINT s; SELECT ddb_fence_check('r', 5); RELEASE s; COMMIT;
	NOTIFY x; DISCARD ALL;
	INSERT INTO ddb_fences VALUES ('r', 3);
	UPDATE ddb_outbox SET payload = '2'; DELETE FROM ddb_outbox; TRUNCATE ddb_queue_done});
is($node->safe_psql('postgres', q{SELECT token FROM ddb_fences WHERE resource = 'r'}), 5, 'a token never falls');
like(error_of($node, "SELECT * FROM $_"), qr/55000: $line/, "view $_") foreach split /\n/,
  $node->safe_psql('postgres', q{SELECT relname FROM pg_class WHERE relname ~ '^ddb_' AND relname <> 'ddb_remote' AND relkind = 'v'});

#
# What DROP EXTENSION would lose
#
$node->safe_psql('other', q{SET client_min_messages = error; CREATE SCHEMA s; CREATE EXTENSION ddblock SCHEMA s});
$node->safe_psql('other', q{SELECT s.ddb_fence_check('r', 5)});
foreach my $drop ('DROP EXTENSION ddblock', 'DROP EXTENSION ddblock CASCADE', 'DROP SCHEMA s CASCADE',
	'CREATE ROLE r; ALTER SCHEMA s OWNER TO r; DROP OWNED BY r CASCADE')
{
	like(error_of($node, "BEGIN; $drop", 'other'),
		qr/55000: cannot drop extension "ddblock" while table "ddb_fences" has rows.*TRUNCATE s\.ddb_fences/s, $drop);
}
$node->safe_psql('other', 'TRUNCATE s.ddb_fences');
my (undef, undef, $again) = $node->psql('other', 'DROP EXTENSION ddblock; CREATE EXTENSION ddblock SCHEMA s; DROP SCHEMA s CASCADE');
unlike($again, qr/ERROR/, 'an empty one goes');

#
# A dump can be restored there: it is of a server that preloads ddblock, or not.
#
my $dump = $node->basedir . '/dump';
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, 'postgres' ], 'pg_dump');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'other', $dump ], 'pg_restore');
is($node->safe_psql('other', q{SELECT token FROM ddb_fences WHERE resource = 'r'}), 5, '... with the tokens');

ok(!$node->log_contains(qr/terminated by signal/), 'no process has crashed');
done_testing;
