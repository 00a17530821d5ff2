# Drivers: the code of doc/recipes for psycopg, JDBC, node-postgres and pgx.  The session that
# works has the lock, and lets go of it; if it loses the lock, the program learns that.

use DDBLock::Test;
use DDBLock::Tools;

my ($one, $two) = work_clusters(conf => "ddblock.lease_duration = 4s\n");
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $driver_jar = (glob tools . '/flyway/postgresql-*.jar')[0] // '';

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
		there => $driver_jar ne '' && system('javac -version >/dev/null 2>&1') == 0,
		command => [ 'java', '-cp', $driver_jar, write_file("$dir/Nightly.java", <<'HEAD' . snippet('Java: JDBC', 'java') =~ s{^ *// \.\.\. the work.*$}{work(connection, arguments[1]);}mr =~ s/dataSource\.getConnection\(\)/DriverManager.getConnection(arguments[0])/r =~ s/^/\t\t/gmr . <<'TAIL') ] },
import java.sql.*;

class Nightly {
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
	}
}
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
					$name eq 'jdbc' ? 'jdbc:postgresql://127.0.0.1:' . $one->port . "/$db?user=" . user : url($one, $db, 'postgresql'),
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
		like($loser->output, qr/SQLSTATE 57014/, '... and shows why');
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

nothing_held_ok;
done_testing;
