# sqitch: a lock in each script, as doc/recipes/migrations.md says, and a wrapper that holds one.

use DDBLock::Test;
use DDBLock::Tools;

plan skip_all => 'sqitch is missing'
  unless system('sqitch --version >/dev/null 2>&1') == 0 && system('perl -MDBD::Pg -e1 2>/dev/null') == 0;

my ($one, $two) = work_clusters();
my $dir = PostgreSQL::Test::Utils::tempdir_short();
@ENV{qw(SQITCH_FULLNAME SQITCH_EMAIL)} = ('Tester', 'tester@example.org');

my ($head) = snippet('sqitch', 'sql') =~ /^(BEGIN;\nSELECT ddb_fence_check.*\n)/m or die "no such lines in the page\n";

sub project
{
	my ($name, $begin) = @_;

	mkdir "$dir/$name" or die "$dir/$name: $!\n";
	foreach my $command ("init $name --engine pg", 'add orders -n orders', 'add first -r orders -n first')
	{
		system("cd '$dir/$name' && sqitch $command >$dir/log 2>&1") == 0 or die slurp_file("$dir/log");
	}
	write_file("$dir/$name/deploy/orders.sql", "${begin}CREATE TABLE orders (id int);\nSELECT work('v1');\nCOMMIT;\n");
	write_file("$dir/$name/deploy/first.sql", "${begin}INSERT INTO orders VALUES (1);\nSELECT work('v2');\nCOMMIT;\n");
	return "$dir/$name";
}

sub sqitch
{
	my ($folder, $node, $db, $name, @options) = @_;
	return start($name, [ 'sqitch', 'deploy', @options, url($node, $db, 'db:pg') ], cwd => $folder);
}

my $safe = project('safe', $head);
my $bare = project('bare', "BEGIN;\n");
migrations_ok('sqitch', sub { sqitch($safe, @_) }, again => 0);

# Only sqitch was killed: its psql went on
my $db = 'sqitch_tool';
is(orders($one, $db), 0, 'the psql of the sqitch that was killed has committed its script');
my $run = sqitch($safe, $one, $db, 'again_1');
isnt($run->status, 0, '... which sqitch does not know');
like($run->output, qr/already exists/, '... so it fails');
is(sqitch($safe, $one, $db, 'again_2', '--log-only', '--to-change', 'orders')->status, 0, '... until it is told');
is(sqitch($safe, $one, $db, 'again_3')->status, 0, '... then it goes on');
is(orders($one, $db), 1, '... and has migrated');

# Both are killed
$db = new_shop('sqitch_all');
hold($one, $db);
$run = sqitch($safe, $one, $db, 'all_1');
wait_for_work($one, "$db v1");
my $other = sqitch($safe, $two, $db, 'all_2');
wait_for_waiters($two, 'migrate/shop', 1);
my @children = $run->children;
$run->kill;
kill 'KILL', @children;
still_waits_ok($one, $two, $db);
let_go($one, $db);
is($other->status, 0, 'sqitch and its psql are killed: the other cluster succeeds');
apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], '...');
is(orders($one, $db), '', '... the killed one has committed nothing');
is(sqitch($safe, $one, $db, 'all_3')->status, 0, '... sqitch again succeeds');

# Two runs in the same cluster
$db = new_shop('sqitch_same');
my @runs = map { sqitch($safe, $one, $db, "same_$_") } 1, 2;
$_->status foreach @runs;
note("two runs in one cluster: $_->{status}: " . $_->output) foreach @runs;
is(orders($one, $db), 1, 'two runs in one cluster migrate once');

# A wrapper: a psql that holds the lock, and runs sqitch
sub wrapper
{
	my ($node, $db, $name) = @_;
	my $file = write_file("$dir/$name.sql", "\\set ON_ERROR_STOP on\n"
		  . "SELECT ddb_lock_acquire('migrate/shop', wait => '10min');\n"
		  . "\\! sqitch deploy " . url($node, $db, 'db:pg') . "\n");

	return start($name, [ 'psql', '-X', '-d', url($node, $db, 'postgresql'), '-f', $file ], cwd => $bare);
}
$db = new_shop('wrapper');
@runs = (wrapper($one, $db, 'wrapper_1'), wrapper($two, $db, 'wrapper_2'));
is($_->status, 0, 'in a wrapper: succeeds') or diag($_->output) foreach @runs;
apart_ok((map { [ whole_run($_, $db) ] } $one, $two), 'whole runs in a wrapper');

$db = new_shop('killed');
hold($one, $db);
$run = wrapper($one, $db, 'killed_1');
wait_for_work($one, "$db v1");
$run->kill;
$other = wrapper($two, $db, 'killed_2');
is($other->status, 0, 'the wrapper is killed: the other cluster migrates');
let_go($one, $db);
wait_for { orders($one, $db) eq '1' } 'the end of the sqitch without its wrapper';
together_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], '... and both migrate at the same time');

nothing_held_ok;
done_testing;
