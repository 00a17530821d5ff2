# Flyway, goose and sqitch under ddblock-run, as doc/recipes/ddblock-run.md says: migrations without
# a lock of their own, and kill -9 at ten (MOMENTS) moments, spread over the time of a whole
# run.  DDBLOCK_RUN="goose sqitch" picks some tools.

use DDBLock::Test;
use DDBLock::Tools;

my $moments = $ENV{MOMENTS} // 10;
my %wanted = map { $_ => 1 } split ' ', $ENV{DDBLOCK_RUN} // 'flyway goose sqitch';
my $goose = tools . '/goose/goose';
my %have = (
	flyway => -d tools . '/flyway',
	goose => -x $goose,
	sqitch => system('sqitch --version >/dev/null 2>&1') == 0 && system('perl -MDBD::Pg -e1 2>/dev/null') == 0);
my @tools = grep { $have{$_} && $wanted{$_} } sort keys %have;

plan skip_all => 'Flyway, goose and sqitch are missing' unless @tools;
# With wal_level = minimal, PostgreSQL may use a number of a new sequence again after a crash.
my ($one, $two) = work_clusters(conf => "wal_level = replica\n");
my $dir = PostgreSQL::Test::Utils::tempdir_short();
@ENV{qw(SQITCH_FULLNAME SQITCH_EMAIL)} = ('Tester', 'tester@example.org');

my $told = 0;
my %project = (
	flyway => sub {
		mkdir "$dir/flyway" or die;
		write_file("$dir/flyway/V1__orders.sql", "CREATE TABLE orders (id int);\nSELECT work('v1');\n");
		write_file("$dir/flyway/V2__first.sql", "INSERT INTO orders VALUES (1);\nSELECT work('v2');\n");
	},
	goose => sub {
		mkdir "$dir/goose" or die;
		write_file("$dir/goose/00001_orders.sql", "-- +goose Up\nCREATE TABLE orders (id int);\nSELECT work('v1');\n");
		write_file("$dir/goose/00002_first.sql", "-- +goose Up\nINSERT INTO orders VALUES (1);\nSELECT work('v2');\n");
	},
	sqitch => sub {
		mkdir "$dir/sqitch" or die;
		foreach my $command ('init shop --engine pg', 'add orders -n orders', 'add first -r orders -n first')
		{
			system("cd '$dir/sqitch' && sqitch $command >$dir/log 2>&1") == 0 or die slurp_file("$dir/log");
		}
		write_file("$dir/sqitch/deploy/orders.sql", "BEGIN;\nCREATE TABLE orders (id int);\nSELECT work('v1');\nCOMMIT;\n");
		write_file("$dir/sqitch/deploy/first.sql", "BEGIN;\nINSERT INTO orders VALUES (1);\nSELECT work('v2');\nCOMMIT;\n");
	});

# The page's command, with the test's programs and folders
my %page = map { $_ => snippet('Examples', 'sh', { flyway => 1, goose => 2, sqitch => 3 }->{$_}) } keys %project;

sub command
{
	my ($tool, $node, $db) = @_;
	my $command = $page{$tool};
	my $place = '127.0.0.1:' . $node->port . "/$db";
	# In single quotes already
	my $java = 'java -XX:TieredStopAtLevel=1 -cp "' . tools . '/flyway/*"'
	  . " org.flywaydb.commandline.Main -user=" . user . " -password=x -locations=filesystem:$dir/flyway"
	  . ' -skipCheckForUpdate -baselineOnMigrate=true -baselineVersion=0';

	$command =~ s{//db\.example\.org/shop}{$tool eq 'flyway' ? "//$place" : '//' . user . "\@$place"}ge;
	$command =~ s{\bflyway -url}{exec $java -url};
	$command =~ s{\bgoose -dir migrations}{exec $goose -dir $dir/goose};
	die "$tool: $command" if $command =~ /example/;
	return $command;
}

sub run_tool
{
	my ($tool, $node, $db, $name) = @_;

	return start($name, [ 'bash', '-c', "set -e\nexec " . command($tool, $node, $db) ],
		cwd => $tool eq 'sqitch' ? "$dir/sqitch" : $dir,
		env => { PGHOST => '127.0.0.1', PGPORT => $node->port, PGDATABASE => $db, PGUSER => user, PGOPTIONS => '' });
}

# What sqitch needs before it runs again: its registry whole or not there, and to be told of
# the change that its psql has committed without it.
sub tell_sqitch
{
	my ($db) = @_;

	$one->safe_psql($db, 'DROP SCHEMA IF EXISTS sqitch CASCADE')
	  if (($one->psql($db, 'SELECT 1 FROM sqitch.releases'))[1] // '') ne '1';

	my $change = { 0 => 'orders', 1 => 'first' }->{ orders($one, $db) } // return;

	return if (($one->psql($db, "SELECT 1 FROM sqitch.changes WHERE change = '$change'"))[1] // '') eq '1';
	system("cd '$dir/sqitch' && sqitch deploy --log-only --to-change $change '" . url($one, $db, 'db:pg') . "' >>$dir/log 2>&1") == 0
	  or die slurp_file("$dir/log");
	$told++;
	return;
}

# Whoever is killed at some moment: what is left commits nothing beside the other cluster.
sub killed_ok
{
	my ($tool, $took, $whom, $kill) = @_;
	my (@together, @failed);
	my $worked = 0;

	foreach my $moment (1 .. $moments)
	{
		my $db = new_shop("${tool}_${whom}_$moment");
		my $run = run_tool($tool, $one, $db, "${tool}_${whom}_${moment}_1");
		my $other;

		Time::HiRes::sleep($took * $moment / ($moments + 1));
		$other = run_tool($tool, $two, $db, "${tool}_${whom}_${moment}_2");
		$kill->($run, $db);
		push @failed, "$moment: " . $other->output if $other->status != 0;
		$run->status;
		recovered($one);
		# The next run goes on where the killed one, or its server processes, have ended.
		wait_for { $one->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') eq '0' } 'the end of what was left';
		tell_sqitch($db) if $tool eq 'sqitch';
		my $again = run_tool($tool, $one, $db, "${tool}_${whom}_${moment}_again");
		push @failed, "$moment, again: " . $again->output if $again->status != 0;
		push @failed, "$moment: " . orders($_, $db) . ' rows in ' . $_->name foreach grep { orders($_, $db) ne '1' } $one, $two;
		push @together, map { "$moment: $_" }
		  DDBLock::Tools::_together([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ]);
		$worked++ if work($one, "$db v\\d");
	}
	is("@together", '', "$tool, $whom killed at $moments moments: never two clusters at a time");
	is("@failed", '', '... both clusters migrate in the end');
	cmp_ok($worked, '>', 0, '... and it worked before');
	return;
}

sub kill_server_process
{
	my ($run, $db) = @_;
	my @pids = split "\n", ($one->psql('postgres',
			"SELECT pid FROM pg_stat_activity WHERE datname = '$db' AND application_name <> 'ddblock-run'"))[1] // '';

	kill 'KILL', $pids[-1] if @pids;
	return;
}

# How long it takes if nobody disturbs it
sub time_of
{
	my ($tool) = @_;
	my $began = Time::HiRes::time();
	my $run = run_tool($tool, $one, new_shop("${tool}_alone"), "${tool}_alone");

	is($run->status, 0, "$tool alone succeeds") or diag($run->output);
	note("$tool: a run takes " . since($began));
	return Time::HiRes::time() - $began;
}

foreach my $tool (@tools)
{
	$project{$tool}->();
	my $took = time_of($tool);
	migrations_ok($tool, sub { run_tool($tool, @_) }, again => $tool ne 'sqitch', lost => qr/lock "migrate\/shop" is lost/);
	killed_ok($tool, $took, 'wrapper', sub { $_[0]->kill });
	killed_ok($tool, $took, 'tool', sub { my @children = $_[0]->children; kill 'KILL', @children if @children });
	killed_ok($tool, $took, 'backend', \&kill_server_process);
}
note("sqitch was told of $told changes") if $project{sqitch};
nothing_held_ok;
done_testing;
