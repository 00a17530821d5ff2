# Alembic, with the env.py of doc/recipes/alembic.md.

use DDBLock::Test;
use DDBLock::Tools;

my $python = '/usr/bin/python3';
plan skip_all => 'Alembic is missing' unless -d tools . '/alembic';
$ENV{PYTHONPATH} = tools . '/alembic';

my ($one, $two) = work_clusters();
my $dir = PostgreSQL::Test::Utils::tempdir_short();

# As "alembic init" makes it, but for what the page says.
sub project
{
	my ($name, @changes) = @_;

	system("cd '$dir' && $python -m alembic init $name >/dev/null") == 0 or die "alembic init failed\n";
	my $env = slurp_file("$dir/$name/env.py");
	my $online = snippet('Alembic', 'python');
	$env =~ s/^from sqlalchemy import pool$/from sqlalchemy import pool, text/m or die "alembic's env.py has changed\n";
	$env =~ s/^def run_migrations_online.*?\n(?=\n\n\w|if )/$online/ms or die "alembic's env.py has changed\n";
	$_->($env) foreach @changes;
	write_file("$dir/$name/env.py", $env);

	write_file("$dir/$name/versions/1_orders.py", <<'PYTHON');
from alembic import op
revision = '1'
down_revision = None
def upgrade():
    op.execute("CREATE TABLE orders (id int)")
    op.execute("SELECT work('v1')")
PYTHON
	write_file("$dir/$name/versions/2_first.py", <<'PYTHON');
from alembic import op
revision = '2'
down_revision = '1'
def upgrade():
    op.execute("INSERT INTO orders VALUES (1)")
    op.execute("SELECT work('v2')")
PYTHON
	return $name;
}

sub migrate
{
	my ($project, $node, $db, $name) = @_;
	my $url = url($node, $db, 'postgresql+psycopg');
	my $ini = slurp_file("$dir/alembic.ini");

	$ini =~ s/^sqlalchemy\.url = .*$/sqlalchemy.url = $url/m or die "alembic.ini has changed\n";
	$ini =~ s/^script_location = .*$/script_location = $dir\/$project/m or die "alembic.ini has changed\n";
	write_file("$dir/$name.ini", $ini);
	return start($name, [ $python, '-m', 'alembic', '-c', "$dir/$name.ini", 'upgrade', 'head' ]);
}

project('safe');
migrations_ok('alembic', sub { migrate('safe', @_) });

# Two runs in the same cluster: the second one finds the work done.
my $db = new_shop('same');
my @runs = map { migrate('safe', $one, $db, "same_$_") } 1, 2;
is($_->status, 0, 'two runs in one cluster succeed') or diag($_->output) foreach @runs;
is(orders($one, $db), 1, '... and migrate once');

# Outside of transactions
write_file("$dir/safe/versions/3_index.py", <<'PYTHON');
from alembic import op
revision = '3'
down_revision = '2'
def upgrade():
    with op.get_context().autocommit_block():
        op.execute("CREATE INDEX CONCURRENTLY ON orders (id)")
        op.execute("SELECT work('v3')")
PYTHON
$db = new_shop('block');
@runs = map { migrate('safe', $_, $db, 'block_' . $_->name) } $one, $two;
is($_->status, 0, 'autocommit_block: succeeds') or diag($_->output) foreach @runs;
apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], 'autocommit_block');

nothing_held_ok;
done_testing;
