# A session that has lost a lease: it is warned, and what no ROLLBACK undoes is
# refused before it does anything.

use DDBLock::Test;

my $node = new_cluster('one', init => [ allows_streaming => 'logical' ],
	conf => "wal_level = logical\nmax_logical_replication_workers = 0\n"
	  . "deadlock_timeout = '1min'\n");
my $dir = PostgreSQL::Test::Utils::tempdir();

sub sql { my ($sql, $dbname) = @_; return $node->safe_psql($dbname // 'postgres', $sql); }

sub files
{
	my ($folder) = @_;
	my @found = glob "$folder/*";

	return scalar @found;
}

sub exists_file { my ($name) = @_; return -e "$dir/$name" ? 1 : 0; }

my $data = $node->data_dir;
mkdir "$dir/$_" or die foreach qw(old new);
sql('CREATE DATABASE d1');
sql('CREATE DATABASE d2');
sql("CREATE TABLESPACE old LOCATION '$dir/old'");
sql("CREATE TABLE t AS SELECT g AS v FROM generate_series(1, 1000) g");
sql('CREATE TABLE empty (v int); CREATE INDEX i ON t (v); ALTER TABLE t CLUSTER ON i');
sql('INSERT INTO empty SELECT g FROM generate_series(1, 1000) g');
sql('DELETE FROM empty');
sql('CREATE TABLE parts (v int) PARTITION BY RANGE (v)');
sql('CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10)');
sql(q{SELECT lo_from_bytea(4711, 'x')});
sql(q{SELECT pg_create_logical_replication_slot('sub', 'pgoutput')}, 'd2');
sql(q{SELECT pg_create_physical_replication_slot('old', true)});
sql(q{CREATE SUBSCRIPTION sub CONNECTION '} . $node->connstr('d2') =~ s/'/''/gr
	  . q{' PUBLICATION p WITH (connect = false, slot_name = 'sub')});
sql("COPY t TO '$dir/input'");

my $slots = q{SELECT string_agg(slot_name, ' ' ORDER BY slot_name) FROM pg_replication_slots};

# The command; a look at its effect, before, and after it was done.
my @effects = (
	[ 'DROP DATABASE d1', sub { files("$data/base") }, 5, 4 ],
	[ 'CREATE DATABASE d3', sub { files("$data/base") }, 4, 5 ],
	[ 'ALTER DATABASE d3 SET TABLESPACE old', sub { files("$dir/old/*") }, 0, 1 ],
	[ 'DROP DATABASE d3', sub { files("$dir/old/*") }, 1, 0 ],
	[ 'DROP TABLESPACE old', sub { files("$dir/old") }, 1, 0 ],
	[ "CREATE TABLESPACE new LOCATION '$dir/new'", sub { files("$dir/new") }, 0, 1 ],
	[ 'DROP SUBSCRIPTION sub', sub { sql($slots) }, 'old sub', 'old' ],
	[ q{CREATE SUBSCRIPTION two CONNECTION '' PUBLICATION p WITH (connect = false, slot_name = NONE)},
		sub { sql('SELECT count(*) FROM pg_subscription') }, 0, 1 ],
	[ 'ALTER SUBSCRIPTION two SET (binary = true)',
		sub { sql('SELECT subbinary FROM pg_subscription') }, 'f', 't' ],
	[ q{ALTER SYSTEM SET work_mem = '5MB'},
		sub { slurp_file("$data/postgresql.auto.conf") =~ /work_mem/ ? 1 : 0 }, 0, 1 ],
	[ "COPY t TO '$dir/copied'", sub { exists_file('copied') }, 0, 1 ],
	[ "COPY t TO PROGRAM 'cat >$dir/piped'", sub { exists_file('piped') }, 0, 1 ],
	[ "COPY t FROM PROGRAM 'touch $dir/read; echo 1'", sub { exists_file('read') }, 0, 1 ],
	[ "DO \$\$ BEGIN COPY t TO '$dir/nested'; END \$\$", sub { exists_file('nested') }, 0, 1 ],
	[ 'VACUUM empty', sub { sql(q{SELECT pg_relation_size('empty') = 0}) }, 'f', 't' ],
	[ "SELECT lo_export(4711, '$dir/large')", sub { exists_file('large') }, 0, 1 ],
	[ q{SELECT pg_create_physical_replication_slot('new')}, sub { sql($slots) }, 'old', 'new old' ],
	[ q{SELECT * FROM pg_copy_physical_replication_slot('old', 'copy')}, sub { sql($slots) },
		'new old', 'copy new old' ],
	[ q{DO $$ BEGIN PERFORM pg_drop_replication_slot('old'); END $$}, sub { sql($slots) },
		'copy new old', 'copy new' ],
	[ q{SELECT pg_create_logical_replication_slot('logical', 'pgoutput')}, sub { sql($slots) },
		'copy new', 'copy logical new' ]);

# Each is refused by the session that lost a lease, and done by it when it has
# acknowledged that.
my $session = undisturbed($node);

$session->query_safe(q{SELECT ddb_lock_acquire('a', '9s')});
lose($node, 'a');
foreach my $effect (@effects)
{
	my ($command, $look) = @$effect;
	my $before = $look->();

	like($session->error_of($command),
		qr/ERROR: +LK001: cannot execute .*, because the lease on lock "a" was lost\n.*DETAIL: .*deleted.*HINT: /s,
		"$command: refused");
	is($look->(), $before, '... and nothing has happened');
}
$session->ask(q{SELECT ddb_lock_release('a')});
foreach my $effect (@effects)
{
	my ($command, $look, $before, $after) = @$effect;

	is($look->(), $before, "$command: before");
	$session->ask($command);
	unlike($session->messages, qr/ERROR/, 'the loss acknowledged, it is done');
	is($look->(), $after, '... and has its effect');
}
$session->quit;

is(sql('SELECT 1', 'd2'), 1, 'the other database is alive');

#
# What commits in steps: the guard refuses the first one.
#
my $catalog = q{SELECT string_agg(concat_ws(' ', c.relname, relfilenode, indisvalid, inhdetachpending),
	E'\n' ORDER BY c.relname)
	FROM pg_class c LEFT JOIN pg_index x ON indexrelid = c.oid LEFT JOIN pg_inherits h ON inhrelid = c.oid
	WHERE c.relnamespace = 'public'::regnamespace};
my $before = sql($catalog);
$session = undisturbed($node);

$session->query_safe(q{SELECT ddb_lock_acquire('a', '9s')});
lose($node, 'a');
my @steps = (
	'CREATE INDEX CONCURRENTLY j ON t (v)',
	'DROP INDEX CONCURRENTLY i',
	'REINDEX TABLE CONCURRENTLY t',
	'REINDEX DATABASE postgres',
	'CLUSTER',
	'VACUUM FULL t',
	'ALTER TABLE parts DETACH PARTITION part CONCURRENTLY');
push @steps, 'REPACK' if sql('SHOW server_version_num') >= 190000;
foreach my $command (@steps)
{
	like($session->error_of($command), qr/LK001: cannot/, "$command: refused");
	is(sql($catalog), $before, '... without a trace');
}

#
# Is anything forgotten?  The server says which commands and functions there are.
#
# Commands without event triggers reach beyond the schemas of this database; so do those
# on what is in shared catalogs.  Those below do no harm, or end with the transaction;
# each other one was tried.
my $harmless = qr/^(?:(?:ALTER|CREATE|DROP)\ (?:EVENT\ TRIGGER|ROLE)|(?:GRANT|REVOKE)\ ROLE
	|ALTER\ TABLESPACE|ANALYZE|BEGIN|CALL|CHECKPOINT|CLOSE.*|COMMIT.*|COPY\ FROM|DEALLOCATE.*
	|DECLARE\ CURSOR|DELETE|DISCARD.*|DO|EXECUTE|EXPLAIN|FETCH|INSERT|LISTEN|LOAD|LOCK\ TABLE|MERGE
	|MOVE|PREPARE.*|REASSIGN\ OWNED|RELEASE|RESET|ROLLBACK.*|SAVEPOINT|SELECT.*|SET.*|SHOW
	|START\ TRANSACTION|TRUNCATE\ TABLE|UNLISTEN|UPDATE|WAIT)$/x;
my @notify = ('NOTIFY n', q{SELECT pg_notify('n', '')});
my $shared = sql(q{SELECT string_agg(upper(substr(relname, 4)), '|') FROM pg_class
	WHERE relisshared AND relkind = 'r' AND relname !~ '_.*_'});
my ($headers) = run_command([ $ENV{PG_CONFIG}, '--includedir-server' ]);
my %tags = slurp_file("$headers/tcop/cmdtaglist.h") =~ /^PG_CMDTAG\(\w+, "(\w[^"]*)", (true|false),/gm;
my @tried = (@steps, @notify, map { $_->[0] } @effects);
my @beyond = grep { $_ !~ $harmless && ($tags{$_} eq 'false' || /^\w+ (?:$shared)$/) } sort keys %tags;

like("@beyond", qr/ALTER SUBSCRIPTION.* DROP DATABASE.* VACUUM/, 'commands reach beyond the database');
foreach my $tag (@beyond)
{
	ok((grep { /^\Q$tag\E\b/ } @tried), "$tag is among those that were tried");
}

# Functions by their names, of all signatures; they are not executed, nor folded away.
my @functions = split /\n/, sql(q{
	SELECT oid::regprocedure || '|' || format('SELECT %I(%s) WHERE false', proname,
		(SELECT string_agg(CASE WHEN provariadic <> 0 AND i = pronargs THEN 'VARIADIC ' ELSE '' END
			|| format('(SELECT NULL::%s)', format_type(type, NULL)), ', ' ORDER BY i)
			FROM unnest(proargtypes) WITH ORDINALITY a (type, i)))
	FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v'
		AND proname ~ 'slot|origin|export|notify|emit'
		AND proname !~ '^pg_(stat|ls|show|get)_|^binary_upgrade_|_peek_|_session_|_xact_|_progress$|_snapshot$'
		AND proname !~ '^pg_replication_origin_(create|drop)$'
	ORDER BY 1});
cmp_ok(scalar @functions, '>=', 16, 'functions reach beyond it, too');
foreach my $function (@functions)
{
	my ($name, $call) = split /\|/, $function;

	like($session->error_of($call), qr/LK001: cannot execute/, "$name: refused");
}

# What does no harm.
foreach my $command (
	'SELECT count(*) FROM t', 'COPY t TO STDOUT',
	'BEGIN', 'SAVEPOINT s', 'ROLLBACK', 'CHECKPOINT', 'SET work_mem TO DEFAULT', 'EXPLAIN SELECT 1')
{
	$session->ask($command);
	is($session->complaints, '', "$command: allowed");
}
$session->query_safe('SET ddblock.commit_guard = off');
$session->query_safe("COPY t TO '$dir/unguarded'");
is(exists_file('unguarded'), 1, 'without the guard, nothing is refused');
$session->query_safe('SET ddblock.commit_guard = on');
like($session->error_of("COPY t TO '$dir/refused'"), qr/LK001/, '... and with it again');
$session->query_safe('DISCARD ALL');
$session->query_safe("COPY t TO '$dir/discarded'");
is(exists_file('discarded'), 1, 'DISCARD ALL acknowledges the loss');

# Lost or released in the same transaction; nothing noticed, the worker stopped.
$session->query_safe('SET ddblock.on_lease_lost = none');
$session->query_safe(q{BEGIN; SELECT ddb_lock_acquire('a', '9s')});
lose($node, 'a');
$session->ask(q{SELECT ddb_lock_release('a')});
like($session->error_of("COPY t TO '$dir/refused'"), qr/LK001/,
	'a transaction that has acknowledged a loss is doomed');
$session->query_safe('ROLLBACK');
foreach my $notify (@notify)
{
	$session->query_safe(qq{BEGIN; SELECT ddb_lock_acquire('a', '9s')});
	$session->ask($notify);
	lose($node, 'a');
	like($session->error_of('COMMIT'), qr/LK001: cannot commit/, "$notify, then a loss");
	like($session->error_of($notify), qr/LK001: cannot execute/, '... or the other way round');
	$session->ask(q{SELECT ddb_lock_release('a')});
}
my $worker = worker_pid($node);
$session->query_safe(q{SELECT ddb_lock_acquire('a', '3s')});
kill 'STOP', $worker;
wait_for { sql(q{SELECT state FROM ddb_locks}) eq 'lost' } 'the deadline';
like($session->error_of("COPY t TO '$dir/refused'"), qr/LK001: cannot execute.*No renewal/s,
	'worker stopped: refused after the deadline');
kill 'CONT', $worker;
$session->ask(q{SELECT ddb_lock_release('a')});
is(exists_file('refused'), 0, 'nothing was written');

#
# The warning.
#
my $warned = qr/^[^\n]*WARNING: +LK001: the lease on lock "a" was lost\nDETAIL: .*deleted.*\nHINT: /;

foreach my $first ('SELECT 1', 'SET work_mem TO DEFAULT', 'BEGIN; SELECT 1; ROLLBACK')
{
	$session->query_safe(q{SELECT ddb_lock_acquire('a', '9s')});
	lose($node, 'a');
	$session->ask($first);
	like($session->messages, $warned, "$first: the first statement brings a warning");
	is(() = $session->messages =~ /WARNING/g, 1, '... one');
	$session->query_safe('SELECT 2');
	$session->ask(q{SELECT ddb_lock_release('a')});
}
$session->query_safe(q{SELECT ddb_lock_acquire('a', '9s'); BEGIN});
$session->error_of('SELECT 1/0');
lose($node, 'a');
like($session->error_of('SELECT 1'), qr/^[^\n]*ERROR: +25P02/, 'not in a transaction that has failed');
$session->query_safe('ROLLBACK');
$session->ask('SELECT 1');
like($session->messages, $warned, '... but after it');
$session->ask(q{SELECT ddb_lock_release('a')});

# Two losses, two warnings.
$session->query_safe(q{SELECT ddb_lock_acquire('a', '9s'), ddb_lock_acquire('b', '9s')});
lose($node, $_) foreach qw(a b);
$session->ask('SELECT 1');
like($session->messages, qr/lock "a" was lost.*lock "b" was lost/s, 'each loss is told');
$session->ask('SELECT ddb_lock_release_all()');
$session->quit;

# The extended protocol.
my $gate = session($node);
$gate->query_safe('SELECT pg_advisory_lock(1)');
append_to_file("$dir/script",
	"SELECT ddb_lock_acquire('a', '9s');\nSELECT pg_advisory_lock(1);\nSELECT 1;\nSELECT 2;\n");
local $ENV{PGOPTIONS} = '-c ddblock.on_lease_lost=none';
my ($output, $messages) = ('', '');
my $run = IPC::Run::start(
	[ 'pgbench', '-n', '-M', 'extended', '-t', '1', '-f', "$dir/script",
		'-h', $node->host, '-p', $node->port, 'postgres' ],
	'>', \$output, '2>', \$messages);
wait_for { sql(q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted}) }
'the gate';
lose($node, 'a');
$gate->query_safe('SELECT pg_advisory_unlock(1)');
$run->finish;
is(() = $messages =~ /WARNING: +the lease on lock "a" was lost/g, 1,
	'the extended protocol brings it once');
$gate->quit;

nothing_held_ok;
done_testing;
