# Flyway: where its locks end, and what doc/recipes/migrations.md says instead.

use DDBLock::Test;
use DDBLock::Tools;

plan skip_all => 'Flyway is missing' unless -d tools . '/flyway';

my ($one, $two) = work_clusters();
my $dir = PostgreSQL::Test::Utils::tempdir_short();

sub project
{
	my ($name, $lock, %files) = @_;

	mkdir "$dir/$name" or die "$dir/$name: $!\n";
	write_file("$dir/$name/V1__orders.sql", "${lock}CREATE TABLE orders (id int);\nSELECT work('v1');\n");
	write_file("$dir/$name/V2__first.sql", "${lock}INSERT INTO orders VALUES (1);\nSELECT work('v2');\n");
	write_file("$dir/$name/$_", $files{$_}) foreach keys %files;
	return "$dir/$name";
}

sub flyway
{
	my ($folder, $options, $node, $db, $name) = @_;
	my $url = 'jdbc:postgresql://127.0.0.1:' . $node->port . "/$db";

	return start($name, [ 'java', '-XX:TieredStopAtLevel=1', '-cp', tools . '/flyway/*',
			'org.flywaydb.commandline.Main', "-url=$url", '-user=' . user, '-password=x', "-locations=filesystem:$folder",
			'-skipCheckForUpdate', '-baselineOnMigrate=true', '-baselineVersion=0', @$options, 'migrate' ], cwd => $dir);
}

my ($line) = snippet('Flyway', 'sql') =~ /^(SELECT ddb_fence_check.*\n)/m or die "no such line in the page\n";
my $safe = project('safe', $line);
migrations_ok('flyway', sub { flyway($safe, [], @_) });

# All migrations in one transaction
my $db = new_shop('grouped');
my @runs = (flyway($safe, ['-group=true'], $one, $db, 'grouped_1'), flyway($safe, ['-group=true'], $two, $db, 'grouped_2'));
is($_->status, 0, 'in groups: succeeds') or diag($_->output) foreach @runs;
apart_ok((map { [ whole_run($_, $db) ] } $one, $two), 'whole runs in groups');

# Two runs in the same cluster
$db = new_shop('same');
@runs = map { flyway($safe, [], $one, $db, "same_$_") } 1, 2;
is($_->status, 0, 'two runs in one cluster succeed') or diag($_->output) foreach @runs;
is(orders($one, $db), 1, '... and migrate once');

# A callback of each migration: in the migration's own transaction, with this version
my $each = project('each', '', 'beforeEachMigrate.sql' => $line);
$db = new_shop('each');
@runs = map { flyway($each, [], $_, $db, 'each_' . $_->name) } $one, $two;
is($_->status, 0, 'beforeEachMigrate: succeeds') or diag($_->output) foreach @runs;
apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], 'beforeEachMigrate');

# A migration outside of transactions holds the lock in its own session.
my $index = project('index', $line);
write_file("$index/V3__index.sql", snippet('Flyway', 'sql', 2) . "SELECT work('v3');\n" . snippet('Flyway', 'sql', 3));
write_file("$index/V3__index.sql.conf", snippet('Flyway', 'ini'));
$db = new_shop('index');
@runs = map { flyway($index, ['-postgresql.transactional.lock=false'], $_, $db, 'index_' . $_->name) } $one, $two;
is($_->status, 0, 'CREATE INDEX CONCURRENTLY: succeeds') or diag($_->output) foreach @runs;
apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], 'CREATE INDEX CONCURRENTLY');

# A session-scoped lock in beforeMigrate: its connection does not migrate
my $callback = project('callback', '', 'beforeMigrate.sql' => "SELECT ddb_lock_acquire('migrate/shop', wait => '10min');\n");
$db = new_shop('callback');
hold($_, $db) foreach $one, $two;
@runs = map { flyway($callback, [], $_, $db, 'callback_' . $_->name) } $one, $two;
wait_for_work($_, "$db v1") foreach $one, $two;
let_go($_, $db) foreach $one, $two;
is($_->status, 0, 'a lock in beforeMigrate: succeeds') or diag($_->output) foreach @runs;
together_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], '... but both clusters migrate at the same time');

# A session-scoped lock in initSql: Flyway's second connection waits for the first one
$db = new_shop('init');
my $run = flyway(project('bare', ''), [q{-initSql=SELECT ddb_lock_acquire('migrate/shop', wait => '5s')}], $one, $db, 'init_1');
isnt($run->status, 0, 'a lock in initSql: Flyway waits for itself');
like($run->output, qr/could not acquire lock "migrate\/shop"/, '... and says so');

nothing_held_ok;
done_testing;
