# DROP EXTENSION among sessions: who holds a lock in this database is in its way,
# who holds one in another is not, nor is a session that has ended.

use DDBLock::Test;

my $node = new_cluster('one');
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', 'CREATE EXTENSION ddblock');
my $holder = session($node);
my $pid = backend_pid($holder);

$holder->query_safe(q{SELECT ddb_lock_acquire('a')});
like(error_of($node, 'DROP EXTENSION ddblock'),
	qr/ERROR: +55006: .*DETAIL: +Process $pid holds lock "a"/s, 'another session holds a lock');
$node->safe_psql('other', 'DROP EXTENSION ddblock');
pass('which is not in the way in another database');

# As UTF-8 the names of these two are the same: their last byte means nothing.
$node->safe_psql('postgres', q{CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'});
my @names = map { "odd$_" } "\xe9", "\xea";
foreach my $name (@names)
{
	$node->safe_psql('bytes', qq{CREATE DATABASE "$name" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'});
	$node->safe_psql($name, 'CREATE EXTENSION ddblock');
}
my $odd = session($node, $names[0]);
$odd->query_safe(q{SELECT ddb_lock_acquire('odd')});
$node->safe_psql($names[1], 'DROP EXTENSION ddblock');
pass('... also if the names of both are no UTF-8');
like(($node->psql($names[0], 'DROP EXTENSION ddblock'))[2], qr/holds lock "odd"/, '... but in its own it is');
$odd->quit;

my $worker = worker_pid($node);
kill 'STOP', $worker;
$holder->quit;
wait_for { $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") == 0 }
'the end of the holder';
$node->safe_psql('postgres', 'DROP EXTENSION ddblock');
pass('nor is a session whose end the worker has yet to see');
kill 'CONT', $worker;

nothing_held_ok;
done_testing;
