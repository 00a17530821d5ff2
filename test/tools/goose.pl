# goose: its command, and the program of doc/recipes/migrations.md.

use DDBLock::Test;
use DDBLock::Tools;

my ($goose, $program) = map { tools . "/goose/$_" } qw(goose migrate);
plan skip_all => 'goose is missing' unless -x $goose && -x $program;

my ($one, $two) = work_clusters();
my $dir = PostgreSQL::Test::Utils::tempdir_short();

# Migrations that begin as the page says, or without a lock
sub project
{
	my ($name, $lock) = @_;

	mkdir "$dir/$name" or die "$dir/$name: $!\n";
	write_file("$dir/$name/00001_orders.sql", "-- +goose Up\n${lock}CREATE TABLE orders (id int);\nSELECT work('v1');\n");
	write_file("$dir/$name/00002_first.sql", "-- +goose Up\n${lock}INSERT INTO orders VALUES (1);\nSELECT work('v2');\n");
	return "$dir/$name";
}
my ($line) = snippet('goose', 'sql') =~ /^(SELECT ddb_fence_check.*\n)/m or die "no such line in the page\n";
my $safe = project('safe', $line);
my $bare = project('bare', '');

sub command
{
	my ($folder, $node, $db, $name) = @_;
	return start($name, [ $goose, '-dir', $folder, 'postgres', url($node, $db, 'postgres'), 'up' ]);
}
sub program
{
	my ($folder, $node, $db, $name) = @_;
	return start($name, [ $program, url($node, $db, 'postgres'), $folder ]);
}

migrations_ok('goose', sub { command($safe, @_) }, lost => qr/SQLSTATE 57014/);
is(snippet('goose', 'go'), slurp_file("$ENV{DDBLOCK_WORK}/checkout/test/tools/goose/main.go"), 'the program is that of the page');
migrations_ok('program', sub { program($bare, @_) }, lost => qr/SQLSTATE 57014/);

# Two runs in the same cluster
my $db = new_shop('same_program');
my @runs = map { program($bare, $one, $db, "same_program_$_") } 1, 2;
is($_->status, 0, 'two programs in one cluster succeed') or diag($_->output) foreach @runs;
is(orders($one, $db), 1, '... and migrate once');

# Outside of transactions: on the connection that holds the lock
write_file("$bare/00003_index.sql", "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY ON orders (id);\nSELECT work('v3');\n");
$db = new_shop('index');
@runs = map { program($bare, $_, $db, 'index_' . $_->name) } $one, $two;
is($_->status, 0, 'NO TRANSACTION: succeeds') or diag($_->output) foreach @runs;
apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], 'NO TRANSACTION');

# Two commands in the same cluster: the second one waits in the migration that the first one does.
sub two_commands
{
	my ($folder, $node, $label, $name) = @_;

	hold($node, $db);
	my @both = command($folder, $node, $db, "${name}_1");
	wait_for_work($node, "$db $label");
	push @both, command($folder, $node, $db, "${name}_2");
	wait_for_waiters($node, 'migrate/shop', 1);
	let_go($node, $db);
	return join(' ', map { $_->status } @both), $both[1]->output;
}
$db = new_shop('same_command');
my ($status, $output) = two_commands($safe, $one, 'v1', 'same_command');
is($status, '0 1', 'of two commands in one cluster, the second one fails');
like($output, qr/already exists/, '... because its work is done');
is(orders($one, $db), 1, '... and they migrate once');

# ... with a migration that could be done twice
mkdir "$dir/insert" or die;
write_file("$dir/insert/00001_orders.sql", "-- +goose Up\n${line}CREATE TABLE orders (id int);\n");
$db = new_shop('insert');
is(command("$dir/insert", $_, $db, 'insert_' . $_->name)->status, 0, 'a table in ' . $_->name) foreach $one, $two;
write_file("$dir/insert/00002_row.sql", "-- +goose Up\n${line}INSERT INTO orders VALUES (1);\nSELECT work('v2');\n");
($status) = two_commands("$dir/insert", $one, 'v2', 'twice');
is("$status, " . orders($one, $db), '0 0, 2', 'two commands in one cluster do twice what can be done twice');
$two->safe_psql($db, snippet('goose', 'sql', 2));
($status) = two_commands("$dir/insert", $two, 'v2', 'index');
is("$status, " . orders($two, $db), '0 1, 1', '... but not with the unique index of the page');

nothing_held_ok;
done_testing;
