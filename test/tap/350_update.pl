# ALTER EXTENSION UPDATE from 0.1.0: what it makes equals a fresh install, and what users
# granted and built stays.  Before it, the library serves the old objects, or says what to do.

use DDBLock::Test;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy qw(copy);

# The install script of 0.1.0 is not installed: only who has 0.1.0 needs its objects.
my $top = abs_path(dirname(__FILE__) . '/../..');
my ($sharedir) = run_command([ 'pg_config', '--sharedir' ]);
copy("$top/ddblock--0.1.0.sql", "$sharedir/extension/") or die "cannot install 0.1.0: $!\n";

my $node = new_cluster('one');
foreach my $database (qw(fresh updated used))
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, 'CREATE EXTENSION ddblock'
		. ($database eq 'fresh' ? '' : q{ VERSION '0.1.0'}));
}

# Every member of the extension, with what the catalogs say of it.  Not all of pg_attribute:
# in attoptions, 15.20 keeps a version of each column ("pg_attver"), which is never the same.
my $members = q{
	WITH member AS (
		SELECT classid, objid, pg_describe_object(classid, objid, 0) AS name
		FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
			AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')),
	detail AS (
		SELECT name, 'function', (to_jsonb(p) - 'oid' - 'proargdefaults')::text
			|| pg_get_function_arguments(p.oid) || pg_get_function_result(p.oid)
		FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
	UNION ALL
		SELECT name, 'relation', format('%s %s %s %s %s', relkind, relpersistence, relowner,
			relacl, pg_get_viewdef(c.oid))
		FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
	UNION ALL
		SELECT name, format('column %s', attnum), format('%s %s %s %s %s %s %s', attname,
			format_type(atttypid, atttypmod), attcollation, attnotnull, attacl,
			pg_get_expr(adbin, adrelid), coalesce(col_description(attrelid, attnum), 'no comment'))
		FROM member JOIN pg_attribute ON classid = 'pg_class'::regclass AND objid = attrelid
			LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
	UNION ALL
		SELECT name, 'constraint', conname || pg_get_constraintdef(k.oid)
		FROM member JOIN pg_constraint k ON classid = 'pg_class'::regclass AND objid = conrelid
	UNION ALL
		SELECT name, 'index', pg_get_indexdef(indexrelid)
		FROM member JOIN pg_index ON classid = 'pg_class'::regclass AND objid = indrelid
	UNION ALL
		SELECT name, 'comment', coalesce(obj_description(objid, classid::regclass::name), 'none')
		FROM member
	UNION ALL
		SELECT name, 'initial privileges of column ' || i.objsubid, initprivs::text
		FROM member JOIN pg_init_privs i ON classid = classoid AND objid = objoid
	UNION ALL
		SELECT 'extension', 'itself', format('%s %s %s %s %s', extversion, extrelocatable,
			extnamespace::regnamespace, extcondition, (SELECT array_agg(c::regclass)
				FROM unnest(extconfig) c))
		FROM pg_extension WHERE extname = 'ddblock')
	SELECT * FROM detail ORDER BY 1, 2, 3};

sub members { my ($database) = @_; return $node->safe_psql($database, $members); }

#
# The new library and the old objects
#
my %calls = (
	ddb_lock_acquire => [ q{ddb_lock_acquire('a') > 0}, 't' ],
	ddb_lock_try_acquire => [ q{ddb_lock_try_acquire('a', '9s', 'x') > 0}, 't' ],
	ddb_lock_renew => [ q{ddb_lock_renew('a') > now()}, 't' ],
	ddb_lock_token => [ q{ddb_lock_token('a') > 0}, 't' ],
	ddb_lock_require => [ q{ddb_lock_require('a') > 0}, 't' ],
	ddb_fence => [ q{ddb_fence('a', ddb_lock_require('a'))}, undef ],
	ddb_lock_info => [ q{held, usename = current_user, token = ddb_lock_token('a'), version ~ '-4'
		FROM ddb_lock_info('a')}, 't|t|t|t' ],
	ddb_lock_list => [ q{name, state, token = ddb_lock_token('a'), version ~ '-4'
		FROM ddb_lock_list()}, 'a|held|t|t' ],
	ddb_locks => [ q{name, depth, waiters, state FROM ddb_locks()}, 'a|2|0|held' ],
	'ddb_locks, the view' => [ q{name, depth, waiters, state FROM ddb_locks}, 'a|2|0|held' ],
	ddb_stats => [ q{* FROM ddb_stats()}, undef ],
	'ddb_stats, the view' => [ q{operation FROM ddb_stats}, undef ],
	ddb_lock_table_create => [ q{ddb_lock_table_create()}, '' ],
	ddb_lock_purge => [ q{ddb_lock_purge('1 day')}, '0' ],
	ddb_lock_release => [ q{ddb_lock_release('a')}, 't' ],
	ddb_lock_release_all => [ q{ddb_lock_release_all()}, '1' ],
	ddb_xact_lock_acquire => [ q{ddb_xact_lock_acquire('a') > 0}, 't' ],
	ddb_xact_lock_try_acquire => [ q{ddb_xact_lock_try_acquire('a') > 0}, 't' ],
	ddb_lock_force_release => [ q{ddb_lock_force_release('nothing')}, 'f' ]);
my @order = ((map { "ddb_lock_$_" } qw(acquire try_acquire renew token require)), 'ddb_fence',
	'ddb_lock_info', 'ddb_lock_list', 'ddb_locks', 'ddb_locks, the view', 'ddb_stats',
	'ddb_stats, the view', (map { "ddb_lock_$_" } qw(table_create purge release release_all)),
	'ddb_xact_lock_acquire', 'ddb_xact_lock_try_acquire', 'ddb_lock_force_release');
is(join("\n", sort grep { !/view/ } @order),
	$node->safe_psql('used', q{SELECT proname FROM pg_proc WHERE proname ~ '^ddb_'
		ORDER BY proname COLLATE "C"}),
	'every function of 0.1.0 is called');
my $session = session($node, 'used');
$session->ask('SET client_min_messages = warning');
foreach my $name (@order)
{
	my ($sql, $result) = @{ $calls{$name} };

	if (defined $result)
	{
		is($session->query_safe("SELECT $sql"), $result, "before the update: $name");
		next;
	}
	like($session->error_of("SELECT $sql"),
		qr/ERROR: +55000: .*HINT: +Run ALTER EXTENSION ddblock UPDATE/s,
		"before the update: $name says what to do");
}
$session->quit;

#
# An update equals an install
#
$node->safe_psql('updated', 'ALTER EXTENSION ddblock UPDATE');
is($node->safe_psql('updated', q{SELECT extversion FROM pg_extension WHERE extname = 'ddblock'}),
	$node->safe_psql('updated', q{SELECT library_version FROM ddb_status}),
	'the update leads to the version of the library');
my $fresh = members('fresh');
my @kinds = map { /\|(\w+)/ } split /\n/, $fresh;
foreach my $kind (qw(function relation column constraint index comment initial itself))
{
	ok((grep { $_ eq $kind } @kinds), "the comparison knows: $kind");
}
is(members('updated'), $fresh, 'what the update made equals a fresh install');

#
# What users made stays
#
$node->safe_psql('used', q{
	CREATE ROLE app;
	INSERT INTO ddb_fences VALUES ('a', 42);
	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO app;
	GRANT SELECT ON ALL TABLES IN SCHEMA public TO app;
	CREATE VIEW busy AS SELECT name, state FROM ddb_locks;
	CREATE VIEW losses AS SELECT leases_lost FROM ddb_stats});
like(error_of($node, 'ALTER EXTENSION ddblock UPDATE', 'used'),
	qr/ERROR: +2BP01: .*view ddb_stats.*DETAIL: +view losses depends/s,
	'a view on ddb_stats is in the way, and is named');
is($node->safe_psql('used', q{SELECT extversion FROM pg_extension WHERE extname = 'ddblock'}),
	'0.1.0', 'nothing is updated then');

# What app was granted, and has now.
sub granted
{
	return split /\n/, $node->safe_psql('used', q{
		SELECT 'function ' || proname FROM pg_proc
			WHERE proname ~ '^ddb_' AND proacl::text ~ '\mapp='
		UNION SELECT 'relation ' || relname FROM pg_class
			WHERE relname ~ '^ddb_' AND relacl::text ~ '\mapp='});
}
my @before = granted();
$node->safe_psql('used', 'DROP VIEW losses; ALTER EXTENSION ddblock UPDATE');
my %after = map { $_ => 1 } granted();

# What CHANGELOG.md names before "Grants on them are gone"
my ($named) = slurp_file("$top/CHANGELOG.md") =~ /^## 0\.2\.0.*?^What breaks:(.*?)Grants on them are gone/ms
  or die "CHANGELOG.md does not name what loses its grants\n";
my @gone = map { /(\w+)\(\)/ ? "function $1" : ("function $_", "relation $_") } $named =~ /`(ddb_\S+)`/g;
is(join("\n", sort grep { !$after{$_} } @before), join("\n", sort @gone),
	'CHANGELOG.md names all that has lost its grants, and nothing else');
$node->safe_psql('used', q{SET client_min_messages = warning; SELECT ddb_role_setup('app', operator => true)});
%after = map { $_ => 1 } granted();
is(join("\n", grep { !$after{$_} } @before), '', 'ddb_role_setup() grants all of it anew');
like(error_of($node, q{SELECT ddb_fence('a', 41)}, 'used'), qr/ERROR: +LK002/, 'fences stay');
$session = session($node, 'used');
is($session->query_safe(q{SELECT ddb_lock_acquire('a') > 0; SELECT * FROM busy}), "t\na|held",
	"a user's view on ddb_locks stays, and works");
$session->quit;
my ($dump) = run_command([ 'pg_dump', '-s', '-d', $node->connstr('used') ]);
like($dump, qr/GRANT ALL ON FUNCTION public\.ddb_lock_token\(.*TO app/, 'pg_dump has the grant');

is($node->safe_psql('postgres', 'SELECT worker_starts FROM ddb_status'), '1', 'nothing has crashed');
nothing_held_ok;
done_testing;
