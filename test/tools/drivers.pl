# Drivers: the code of doc/recipes for psycopg, JDBC, node-postgres, pgx and Rails.  The session
# that works has the lock, and lets go of it; if it loses the lock, the program learns that.
# What a pool does with a lock that is not released, and with a connection after an error.

use DDBLock::Test;
use DDBLock::Tools;

my ($one, $two) = work_clusters(conf => "ddblock.lease_duration = 4s\n");
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $driver_jar = (glob tools . '/flyway/postgresql-*.jar')[0] // '';
my $hikari = join ':', $driver_jar, glob tools . '/hikari/*.jar';
my $have_java = $driver_jar ne '' && system('javac -version >/dev/null 2>&1') == 0;
my $have_hikari = $have_java && $hikari =~ /HikariCP/;
my $have_rails = system('ruby -e "require %q(active_record); require %q(pg)" >/dev/null 2>&1') == 0;

# The page's code in a program: "dataSource" is a pool of one connection, or DriverManager.
sub nightly
{
	my ($class, $from) = @_;
	my $code = snippet('Java: JDBC', 'java') =~ s{^ *// \.\.\. the work.*$}{work(connection, arguments[1]);}mr;

	$code =~ s/dataSource\.getConnection\(\)/$from/;
	return write_file("$dir/$class.java", <<"HEAD" . $code =~ s/^/\t\t/gmr . <<'TAIL');
import java.sql.*;

class $class {
	static void work(Connection connection, String sql) throws SQLException {
		try (Statement statement = connection.createStatement()) {
			statement.execute(sql);
		}
	}

	public static void main(String[] arguments) throws SQLException {
		try {
HEAD
		} catch (SQLException error) {
			System.err.println("SQLSTATE " + error.getSQLState() + ": " + error);
			System.exit(1);
		}
		System.exit(0);
	}
}
TAIL
}

# Each runs its last argument, a statement, under the lock "nightly".
my %drivers = (
	psycopg => {
		there => -d tools . '/alembic',
		env => { PYTHONPATH => tools . '/alembic' },
		command => [ '/usr/bin/python3', write_file("$dir/nightly.py", snippet('Python: psycopg 3', 'python') . <<'PYTHON') ] },

import sys
with psycopg.connect(sys.argv[1]) as connection:
    try:
        with held_lock(connection, "nightly"):
            connection.execute(sys.argv[2])
    except psycopg.Error as error:
        sys.exit(f"SQLSTATE {error.sqlstate}: {error}")
PYTHON
	node => {
		there => -d tools . '/node',
		command => [ 'node', write_file("$dir/nightly.mjs", snippet('Node.js: node-postgres', 'js') . <<'JS') ] },

import { createRequire } from 'node:module';
const pg = createRequire(process.env.DDBLOCK_TOOLS + '/node/')('pg');
const pool = new pg.Pool({ connectionString: process.argv[2] });
try {
  await withLock(pool, 'nightly', (client) => client.query(process.argv[3]));
} catch (error) {
  console.error(`SQLSTATE ${error.code}: ${error.message}: ${error.detail}`);
  process.exitCode = 1;
}
await pool.end();
JS
	jdbc => {
		there => $have_java,
		command => [ 'java', '-cp', $driver_jar, nightly('Nightly', 'DriverManager.getConnection(arguments[0])') ] },
	hikari => {
		there => $have_hikari,
		command => [ 'java', '-cp', $hikari, nightly('Pooled',
				'new com.zaxxer.hikari.HikariDataSource() {{ setJdbcUrl(arguments[0]); setMaximumPoolSize(1); }}.getConnection()') ] },
	rails => {
		there => $have_rails,
		command => [ 'ruby', write_file("$dir/nightly.rb", <<'HEAD' . snippet('Rails', 'ruby') . <<'TAIL') ] },
require 'active_record'
ActiveRecord::Base.establish_connection(ARGV[0])
module Report
  def self.rebuild
    ActiveRecord::Base.connection.execute(ARGV[1])
  end
end
begin
HEAD
rescue ActiveRecord::StatementInvalid => error
  abort "SQLSTATE #{error.cause.result.error_field(PG::Result::PG_DIAG_SQLSTATE)}: #{error}"
end
TAIL
	pgx => {
		there => -x tools . '/goose/withlock',
		command => [ tools . '/goose/withlock' ],
		arguments => ['nightly'] });

like(slurp_file("$ENV{DDBLOCK_WORK}/checkout/test/tools/goose/withlock/main.go"), qr/^\Q@{[snippet('Go: pgx', 'go')]}\E/m,
	'the function of pgx is that of the page');

foreach my $name (sort keys %drivers)
{
	my $driver = $drivers{$name};

	SKIP:
	{
		skip "$name is missing", 1 unless $driver->{there};
		my $db = new_shop("shop_$name");
		my $run = sub {
			my ($label) = @_;
			return start("$name $label", [ @{ $driver->{command} },
					$name =~ /jdbc|hikari/ ? 'jdbc:postgresql://127.0.0.1:' . $one->port . "/$db?user=" . user : url($one, $db, 'postgresql'),
					@{ $driver->{arguments} // [] }, "SELECT work('$label')" ], env => $driver->{env} // {});
		};

		hold($one, $db);
		my $first = $run->('first');
		my $pid = wait_for_work($one, "$db first");
		is($one->safe_psql($db, q{SELECT pid FROM ddb_locks WHERE name = 'nightly'}), $pid, "$name: the session that works has the lock");
		is($two->safe_psql($db, q{SELECT ddb_lock_try_acquire('nightly')}), 'f', '... and nobody else');
		let_go($one, $db);
		is($first->status, 0, '... the program ends well') or diag($first->output);
		wait_for { is_released('nightly') } 'the release';

		hold($one, $db);
		my $loser = $run->('second');
		wait_for_work($one, "$db second");
		dynamodb->delete_item('nightly');		# the next renewal finds that
		isnt($loser->status, 0, "$name: a program that has lost the lock fails");
		like($loser->output, qr/SQLSTATE 57014.*The lease on lock "nightly" was lost/s, '... and shows why');
		let_go($one, $db);
		wait_for { $one->safe_psql($db, 'SELECT count(*) FROM ddb_locks') eq '0' } 'the end of its session';
	}
}

if ($drivers{psycopg}{there})
{
	my $db = new_shop('shop_use');
	my $use = snippet('Python: psycopg 3', 'python', 2) =~ s/"dbname=shop"/'"' . url($one, $db, 'postgresql') . '"'/er;

	$one->safe_psql($db, 'CREATE TABLE runs (at timestamptz)');
	is(start('use', [ '/usr/bin/python3', write_file("$dir/use.py", snippet('Python: psycopg 3', 'python') . $use) ],
			env => $drivers{psycopg}{env})->status, 0, 'psycopg: the function is used');
	is($one->safe_psql($db, 'SELECT count(*) FROM runs'), 1, '... the work is done');
	wait_for { is_released('nightly') } 'the release';
}

#
# Pools of one connection: a lock that is not released, a transaction that is not ended, then
# errors.  A program prints after each which session it has, and whether that has the lock.
#
my $show = q{SELECT concat_ws(' ', '>', pg_backend_pid(), ddb_lock_token('kept') IS NOT NULL, to_regclass('undone'))};
my @errors = ((map { "DO \$\$ BEGIN RAISE SQLSTATE '$_'; END \$\$" } qw(LK001 0A000 08006)), 'SELECT pg_terminate_backend(pg_backend_pid())');
my %pools = (
	psycopg => {
		there => -d tools . '/alembic/psycopg_pool',
		expected => 'kept, LK001 kept, 0A000 kept, 08006 kept, 57P01 lost, reset lost',
		env => { PYTHONPATH => tools . '/alembic' },
		command => [ '/usr/bin/python3', write_file("$dir/pool.py", <<'PYTHON') ] },
import sys
import psycopg
from psycopg_pool import ConnectionPool

def reset(connection):
    connection.execute("SELECT ddb_lock_release_all()")
    connection.commit()

def ask(sql):
    with pool.connection() as connection:
        print(connection.execute(sql).fetchone()[0])

url, show, take, undone, *errors = sys.argv[1:]
with ConnectionPool(url, min_size=1, max_size=1) as pool:
    connection = pool.getconn()
    connection.execute(take)
    connection.commit()
    connection.execute(undone)
    pool.putconn(connection)
    ask(show)
    for error in errors:
        try:
            ask(error)
        except psycopg.Error as e:
            print("!", e.sqlstate)
            ask(show)
with ConnectionPool(url, min_size=1, max_size=1, reset=reset) as pool:
    ask(take)
    print("! reset")
    ask(show)
PYTHON
	hikari => {
		there => $have_hikari,
		expected => 'kept, LK001 kept, 0A000 lost, 08006 lost, 57P01 lost',
		command => [ 'java', '-cp', $hikari, write_file("$dir/Pool.java", <<'JAVA') ] },
import com.zaxxer.hikari.HikariDataSource;
import java.sql.*;

class Pool {
	static HikariDataSource pool = new HikariDataSource();

	static void ask(boolean commit, String sql) {
		try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement()) {
			connection.setAutoCommit(false);
			if (statement.execute(sql)) {
				statement.getResultSet().next();
				System.out.println(statement.getResultSet().getString(1));
			}
			if (commit)
				connection.commit();
		} catch (SQLException error) {
			System.out.println("! " + error.getSQLState());
		}
	}

	public static void main(String[] arguments) {
		pool.setJdbcUrl(arguments[0]);
		pool.setMaximumPoolSize(1);
		ask(true, arguments[2]);
		ask(false, arguments[3]);
		ask(true, arguments[1]);
		for (int i = 4; i < arguments.length; i++) {
			ask(true, arguments[i]);
			ask(true, arguments[1]);
		}
		System.exit(0);
	}
}
JAVA
	rails => {
		there => $have_rails,
		expected => 'kept, LK001 kept, 0A000 kept, 08006 kept, PG::ConnectionBad lost, again lost',
		command => [ 'ruby', write_file("$dir/pool.rb", <<'RUBY') ] });
require 'active_record'
url, show, take, undone, *errors = ARGV
ActiveRecord::Base.establish_connection("#{url}?pool=1")
ask = ->(sql) { ActiveRecord::Base.connection_pool.with_connection { |connection| puts connection.execute(sql).values.flatten.first } }
ask.(take)
begin
  ActiveRecord::Base.transaction { ActiveRecord::Base.connection.execute(undone); raise 'it' }
rescue RuntimeError
  ActiveRecord::Base.connection_pool.release_connection
end
ask.(show)
errors.each do |error|
  begin
    ask.(error)
  rescue ActiveRecord::StatementInvalid => e
    puts "! #{e.cause.result&.error_field(PG::Result::PG_DIAG_SQLSTATE) || e.cause.class}"
    ask.(show)
  end
end
begin
  ActiveRecord::Base.connection.execute(errors.last)
rescue ActiveRecord::StatementInvalid
  ActiveRecord::Base.connection.reconnect!
  puts '! again', ActiveRecord::Base.connection.select_value(show)
end
RUBY

foreach my $name (sort keys %pools)
{
	my $pool = $pools{$name};

	SKIP:
	{
		skip "the pool of $name is missing", 1 unless $pool->{there};
		my $db = new_shop("pool_$name");
		my $run = start("pool $name", [ @{ $pool->{command} },
				$name eq 'hikari' ? 'jdbc:postgresql://127.0.0.1:' . $one->port . "/$db?user=" . user : url($one, $db, 'postgresql'),
				$show, q{SELECT ddb_lock_acquire('kept')}, 'CREATE TABLE undone ()', @errors ],
			env => $pool->{env} // {});

		is($run->status, 0, "the pool of $name: the program ends well");
		my @pids = $run->output =~ /^> (\d+)/mg;
		my @got = map { /^! ?(.*)/ ? "$1 " : /^> (\d+) t$/ && $1 == $pids[0] ? 'kept, ' : /^> \d+ f$/ ? 'lost, ' : /^>/ ? "$_, " : () }
		  split /\n/, $run->output;
		is(join('', @got), "$pool->{expected}, ", '... the session and its lock after a transaction that was not ended, and after errors')
		  or diag($run->output);
		wait_for { is_released('kept') } 'the end of its session';
	}
}

nothing_held_ok;
done_testing;
