# One role cannot use up what the cluster has: a limit for each role, and leases that
# are kept for superusers.

use DDBLock::Test;

my $node = new_cluster('one', conf => "ddblock.max_leases = 6\n"
	  . "ddblock.superuser_reserved_leases = 2\nddblock.lease_duration = '1h'\n");
$node->safe_psql('postgres', q{
	CREATE ROLE app LOGIN;
	CREATE ROLE other LOGIN;
	GRANT other TO app;
	GRANT EXECUTE ON FUNCTION ddb_lock_acquire, ddb_lock_try_acquire, ddb_lock_release,
		ddb_lock_release_all TO app, other;
	ALTER ROLE app SET ddblock.role_max_leases = 3});

sub session_of
{
	my ($role) = @_;
	my $session = session($node);

	$session->ask("\\connect - $role");
	return $session;
}

my $limit = qr/ERROR: +53400: too many leases for role "app"\n.*DETAIL: .*hold 3, the limit set by "ddblock.role_max_leases"/s;
my ($one, $two) = (session_of('app'), session_of('app'));
my $other = session_of('other');

is($one->query_safe(q{SELECT count(ddb_lock_acquire('a/' || i)) FROM generate_series(1, 2) i}),
	2, 'a role takes some');
is($two->query_safe(q{SELECT ddb_lock_try_acquire('a/3')}), 't', '... in several sessions');
like($two->error_of(q{SELECT ddb_lock_acquire('a/4')}), $limit, 'and not more than it may');
like($one->error_of(q{SELECT ddb_lock_try_acquire('a/4')}), $limit, '... in neither');
is($one->query_safe(q{SELECT ddb_lock_acquire('a/1') > 0, ddb_lock_release('a/1')}),
	't|t', 'what it has it can take again');
like($one->error_of(q{SET ddblock.role_max_leases = 0}), qr/42501/, 'its limit is not its own to set');
my $worker = worker_pid($node);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { (worker_pid($node) // $worker) != $worker } 'another worker';
like($two->error_of(q{SELECT ddb_lock_acquire('a/4')}), $limit, 'another worker knows it, too');

# Whose limit it is, says the login: SET ROLE and functions of others change nothing.
$node->safe_psql('postgres', q{CREATE FUNCTION by_superuser(text) RETURNS bigint SECURITY DEFINER LANGUAGE sql
	AS 'SELECT ddb_lock_acquire($1)'});
$one->query_safe('SET ROLE other');
like($one->error_of(q{SELECT ddb_lock_acquire('a/4')}), $limit, 'a role has its limit as another role, too');
like($one->error_of(q{SELECT by_superuser('a/4')}), $limit, '... and in a function of a superuser');
$one->query_safe('RESET ROLE');
my $set = session($node);
is($set->query_safe(q{SET ddblock.role_max_leases = 3; SET ROLE app; SELECT ddb_lock_acquire('c/0') > 0}), 't',
	'who is that role only by SET ROLE has another limit');
like($two->error_of(q{SELECT ddb_lock_acquire('a/4')}), $limit, '... and takes nothing of the role\'s');
is($set->query_safe(q{SELECT ddb_lock_release('c/0')}), 't', '... nor gives anything back');
like($two->error_of(q{SELECT ddb_lock_acquire('a/4')}), $limit, '... to the role');

is($other->query_safe(q{SELECT ddb_lock_acquire('b/1') > 0}), 't', 'another role has its own');
like($other->error_of(q{SELECT ddb_lock_acquire('b/2')}),
	qr/ERROR: +53400: all 6 leases of this cluster are in use\n.*DETAIL: .*The last 2 are reserved for superusers/s,
	'but not the last ones');
like($one->error_of(q{SELECT by_superuser('b/2')}), qr/ERROR: +53400: too many leases for role "app"/, '... in no function, either');
like($other->error_of(q{SELECT by_superuser('b/2')}),
	qr/ERROR: +53400: all 6 leases of this cluster are in use\n.*DETAIL: .*The last 2 are reserved for superusers/s, '... of a superuser');
is($set->query_safe(q{SELECT ddb_lock_acquire('c/0') > 0}), 't', 'a superuser has one as another role');
my $waits = session($node);
$waits->send(q{SET ROLE other; SELECT ddb_lock_acquire('c/0')});
wait_for_waiters($node, 'c/0', 1);
is($node->safe_psql('postgres', q{SELECT string_agg(state, ' ' ORDER BY state) FROM ddb_locks, pg_roles
	WHERE name = 'c/0' AND rolname = usename AND rolsuper}), 'held waiting', 'the views know both by who has logged in');
$set->query_safe(q{SELECT ddb_lock_release('c/0')});
$waits->result;
$_->quit foreach $waits, $set;
my $super = session($node);
is($super->query_safe(q{SELECT count(ddb_lock_acquire('c/' || i)) FROM generate_series(1, 2) i}),
	2, 'those are for superusers');
like($super->error_of(q{SELECT ddb_lock_acquire('c/3')}),
	qr/ERROR: +53400: all 6 leases of this cluster are in use\n(?!.*DETAIL)/s, '... who have not more');
like($super->error_of(q{SET ROLE app; SELECT ddb_lock_acquire('c/3')}),
	qr/ERROR: +53400: all 6 leases of this cluster are in use\n(?!.*DETAIL)/s, '... as another role, either');

is($one->query_safe(q{SELECT ddb_lock_release('a/1')}), 't', 'what is released');
is($super->query_safe(q{SELECT ddb_lock_release_all()}), 2, '...');
is($two->query_safe(q{SELECT ddb_lock_acquire('a/4') > 0}), 't', 'makes room');

# A prefix that came past the check, from a file, allows nothing.
$node->append_conf('postgresql.conf', "ddblock.lock_prefix = '\t'\n");
$node->reload;
wait_for { $other->ask('SHOW ddblock.lock_prefix') eq "\t" } 'the reload';
like($other->error_of(q{SELECT ddb_lock_acquire('b/3')}), qr/ERROR: +42501: permission denied for lock "b\/3"/,
	'an invalid prefix in a file allows nothing');
is($other->query_safe(q{SELECT ddb_lock_release('b/1')}), 't', '... but a release');

$_->quit foreach $one, $two, $other, $super;
nothing_held_ok;
done_testing;
