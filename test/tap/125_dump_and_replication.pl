# Fences, done work and the outbox where rows come from elsewhere: dumps that are restored over tables
# with rows, by a superuser or by the database's owner; an old state; logical replication.

use DDBLock::Test;
use IPC::Run;

my $one = new_cluster('one', init => [ allows_streaming => 'logical' ]);
my $two = new_cluster('two');
my $dump = $one->basedir . '/dump';
my $data = q{
	TRUNCATE ddb_fences, ddb_queue_done;
	INSERT INTO ddb_fences (resource, token, shared_token) VALUES %s;
	INSERT INTO ddb_queue_done VALUES %s};
my $old = sprintf $data, q{('a', 8, 3), ('b', 1, 7), ('theirs', 5, 0)},
  q{('q', 'a', 8, '2026-01-08', 8), ('q', 'theirs', 5, '2026-01-05', 5), ('q', 'b', 2, '2026-01-09', 9)};
my $new = sprintf $data, q{('a', 9, 2), ('b', 2, 6), ('ours', 3, 0)},
  q{('q', 'a', 1, '2026-01-09', 9), ('q', 'ours', 3, '2026-01-03', 3), ('q', 'b', 8, '2026-01-08', 8)};
my $highest = "a,9,3 b,2,7 ours,3,0 theirs,5,0\na,1,9,9 b,2,9,9 ours,3,3,3 theirs,5,5,5";

# All rows, of both tables.
sub rows_of
{
	my ($node, $dbname) = @_;

	return $node->safe_psql($dbname // 'postgres', q{
		SELECT string_agg(concat_ws(',', resource, token, shared_token), ' ' ORDER BY resource) FROM ddb_fences;
		SELECT string_agg(concat_ws(',', resource, number, extract(day FROM pushed_at), token), ' ' ORDER BY resource)
			FROM ddb_queue_done});
}

# pg_restore's status, and what it says.
sub restore
{
	my @arguments = @_;
	my ($out, $err);
	my $ok = IPC::Run::run([ 'pg_restore', '--port' => $one->port, '--host' => $one->host, @arguments ],
		'>', \$out, '2>', \$err);

	note($err);
	return ($ok, $err);
}

#
# Dumps over tables with rows
#
$one->safe_psql('postgres', "$old; SELECT ddb_queue_push_on_commit('q', 'r', '1'); CREATE TABLE work AS SELECT 1 AS n");
$one->command_ok([ 'pg_dump', '--format', 'custom', '--file', $dump, 'postgres' ], 'a dump');
foreach my $database (qw(clean whole owned))
{
	$one->safe_psql('postgres', "CREATE DATABASE $database");
	$one->safe_psql($database, "CREATE EXTENSION ddblock; $new; CREATE TABLE work AS SELECT 2 AS n");
}
my ($ok, $err) = restore('--clean', '--if-exists', '--dbname', 'clean', $dump);
like($err, qr/cannot drop extension "ddblock" while table "ddb_\w+" has rows.*errors ignored on restore: 1$/s,
	'pg_restore --clean cannot drop the extension');
is(rows_of($one, 'clean'), $highest, '... and of each resource the highest is there');
is($one->safe_psql('clean', 'SELECT n FROM work'), 1, '... and the other tables');

$one->safe_psql('clean', q{SELECT ddb_queue_push_on_commit('q', 'r', '2')});
is($one->safe_psql('clean', q{SELECT count(*), count(DISTINCT id) FROM ddb_outbox}), '2|2', '... and the outbox');

# Without that error: all but the extension
my $list = join '', grep { !/ EXTENSION - ddblock/ } split /^/, `pg_restore --list $dump`;
append_to_file("$dump.list", $list);
($ok, $err) = restore('--clean', '--if-exists', '--exit-on-error', '--use-list', "$dump.list", '--dbname', 'whole', $dump);
ok($ok, 'a list without the extension: no error');
is(rows_of($one, 'whole'), $highest, '... the same rows');

# Data only, without triggers
my $enabled = q{SELECT string_agg(DISTINCT tgenabled::text, '') FROM pg_trigger WHERE tgname ~ '^ddb_keep_'};
$one->safe_psql('postgres', 'CREATE DATABASE data');
$one->safe_psql('data', 'CREATE EXTENSION ddblock; CREATE TABLE work (n integer)');
($ok, $err) = restore('--data-only', '--disable-triggers', '--exit-on-error', '--dbname', 'data', $dump);
ok($ok, 'data only, into empty tables');
is(rows_of($one, 'data'), rows_of($one), '... all rows');
is($one->safe_psql('data', $enabled), 'O', '... the triggers are for ordinary sessions then');
$one->safe_psql('data', "ALTER TABLE $_ ENABLE ALWAYS TRIGGER ddb_keep_tokens, ENABLE ALWAYS TRIGGER ddb_keep_rows")
  foreach qw(ddb_fences ddb_queue_done);
is($one->safe_psql('data', $enabled), 'A', '... until they are enabled');

# As the database's owner
$one->safe_psql('postgres', 'CREATE ROLE shop LOGIN; ALTER DATABASE owned OWNER TO shop');
$one->safe_psql('owned', q{
	DROP TABLE work;
	GRANT SELECT, INSERT ON ddb_fences, ddb_queue_done, ddb_outbox TO shop;
	GRANT SELECT, UPDATE ON SEQUENCE ddb_outbox_position_seq TO shop});
($ok, $err) = restore('--no-owner', '--no-comments', '--exit-on-error', '--username', 'shop', '--dbname', 'owned', $dump);
ok($ok, 'as the owner, if a superuser has made the extension, and granted INSERT');
is(rows_of($one, 'owned'), $highest, '... the same rows');
my @as_shop = (extra_params => [ '--username', 'shop' ], on_error_stop => 0);
my (undef, undef, $denied) = $one->psql('owned', q{
	UPDATE ddb_fences SET token = 1; DELETE FROM ddb_fences; TRUNCATE ddb_queue_done;
	INSERT INTO ddb_fences VALUES ('a', 1)}, @as_shop);
is(scalar(() = $denied =~ /permission denied/g), 3, 'the owner cannot lower what is there');
is(rows_of($one, 'owned'), $highest, '... nor by an INSERT');
$one->command_ok([ 'pg_dump', '--username', 'shop', '--file', "$dump.owner", 'owned' ], '... and can make a dump');

#
# An old state: nothing from before it counts any more
#
$one->safe_psql('whole', q{UPDATE ddb_fences SET token = GREATEST(token, (extract(epoch FROM now()) * 1000000)::bigint)});
my $before = $one->safe_psql('whole', q{SELECT token FROM ddb_fences WHERE resource = 'a'});
my $session = session($one);
my $token = $session->query_safe(q{SELECT ddb_lock_acquire('a')});
like(error_of($one, q{SELECT ddb_fence_check('a', } . ($before - 1) . ')', 'whole'), qr/LK002/, 'an older token is refused');
cmp_ok($token, '>', $before, 'and a new one');
is($one->safe_psql('whole', "SELECT ddb_fence_check('a', $token)"), '', '... is not');
$session->quit;

#
# Logical replication: of all tables
#
my $apply = q{SELECT count(*) FROM pg_stat_subscription WHERE pid IS NOT NULL};
my $connection = sprintf 'host=%s port=%d dbname=postgres', $one->host, $one->port;

sub catch_up
{
	$one->wait_for_catchup('sub');
	return;
}

$two->safe_psql('postgres', "$new; CREATE TABLE work (n integer PRIMARY KEY)");
$one->safe_psql('postgres', 'ALTER TABLE work ADD PRIMARY KEY (n); CREATE PUBLICATION pub FOR ALL TABLES');
$two->safe_psql('postgres', "CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION pub");
wait_for
{
	$two->safe_psql('postgres', q{SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate NOT IN ('r', 's')}) eq 't'
} 'the first copy';
is(rows_of($two), $highest, 'the first copy lowers no fence');

$one->safe_psql('postgres', q{
	UPDATE ddb_fences SET token = 4 WHERE resource = 'a';
	UPDATE ddb_fences SET token = 6, shared_token = 5 WHERE resource = 'b';
	INSERT INTO ddb_fences VALUES ('ours', 2), ('fresh', 1);
	DELETE FROM ddb_fences WHERE resource = 'theirs';
	UPDATE ddb_queue_done SET number = 100, token = 7 WHERE resource = 'a';
	UPDATE ddb_queue_done SET number = 4, pushed_at = '2026-01-10', token = 10 WHERE resource = 'b';
	DELETE FROM ddb_queue_done WHERE resource = 'theirs';
	INSERT INTO work VALUES (3)});
catch_up();
is(rows_of($two), "a,9,3 b,6,7 fresh,1,0 ours,3,0 theirs,5,0\na,1,9,9 b,4,10,10 ours,3,3,3 theirs,5,5,5",
	'nor do rows that are changed or deleted there');
is($two->safe_psql('postgres', 'SELECT max(n) FROM work'), 3, 'what else was replicated is here');
like(error_of($two, q{SELECT ddb_fence_check('a', 8)}), qr/LK002/, 'the fence holds');
$two->safe_psql('postgres', q{SELECT ddb_fence_check('a', 10); SELECT ddb_fence_check_shared('fresh', 11); SELECT ddb_queue_mark_done('q', 'a', 2, now(), 11)});
is($two->safe_psql('postgres', q{SELECT sum(token) FROM ddb_fences WHERE resource IN ('a', 'fresh')}), 11, '... and rises here');

# TRUNCATE: replication stops, and goes on when it does no harm
$one->safe_psql('postgres', 'TRUNCATE ddb_fences; INSERT INTO work VALUES (4)');
wait_for { slurp_file($two->logfile) =~ /ERROR: .*a replicated TRUNCATE would empty table "ddb_fences"/ } 'the refusal';
cmp_ok($two->safe_psql('postgres', 'SELECT count(*) FROM ddb_fences'), '>', 3, 'a replicated TRUNCATE empties nothing');
$two->safe_psql('postgres', 'TRUNCATE ddb_fences');
catch_up();
is($two->safe_psql('postgres', 'SELECT max(n) FROM work'), 4, 'it goes on when the table is empty');

#
# Without the extension's tables
#
$two->safe_psql('postgres', 'DROP SUBSCRIPTION sub');
$one->safe_psql('postgres', q{
	CREATE SCHEMA ddblock; ALTER EXTENSION ddblock SET SCHEMA ddblock;
	DROP PUBLICATION pub; CREATE PUBLICATION pub FOR TABLES IN SCHEMA public});
is($one->safe_psql('postgres', q{SELECT string_agg(tablename, ' ') FROM pg_publication_tables}), 'work',
	'with the extension in a schema of its own, a publication of the others leaves its tables out');

done_testing;
