# The worker is terminated alone, and sessions do not notice.

use DDBLock::Test;
use Cwd qw(abs_path);
use Fcntl qw(O_CREAT O_WRONLY);
use File::Basename qw(dirname);

my $one = new_cluster('one', through => proxy,
	conf => "log_statement = none\n");
my $two = new_cluster('two', conf => "log_statement = none\n");

sub successor_of
{
	my ($pid) = @_;

	return wait_for
	{
		my $now = eval { worker_pid($one) };
		defined $now && $now != $pid && $now;
	}
	'another worker';
}

#
# Terminated by an administrator, while sessions hold and wait.  The leases are
# short, so that renewals are seen, but not as short as what two workers need to
# end and to start on a slow machine: up to 5 s, and 1 s between starts.
#
my $holder = session($one);
my $token = $holder->query_safe(q{SELECT ddb_lock_acquire('a', lease => '9s')});
my $xact_token = $holder->query_safe(
	q{BEGIN; SELECT ddb_xact_lock_acquire('b', lease => '9s', data => 'kept')});

my $local = session($one);
$local->send(q{SELECT ddb_lock_acquire('a', lease => '9s')});
wait_for_waiters($one, 'a', 1);

my $far = session($two);
my $far_token = $far->query_safe(q{SELECT ddb_lock_acquire('c')});
my $foreign = session($one);
$foreign->send(q{SELECT ddb_lock_acquire('c', data => 'payload')});
wait_for_waiters($one, 'c', 1);

foreach my $time ('first', 'second')
{
	my $pid = worker_pid($one);
	$one->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	my $next = successor_of($pid);
	my $renewals = q{SELECT min(renewals) FROM ddb_locks WHERE name IN ('a', 'b')
		AND state = 'held' HAVING count(*) = 2};

	# Seen twice: the successor has renewed, and goes on renewing.
	my $seen = $one->safe_psql('postgres', $renewals);
	wait_for { ($one->safe_psql('postgres', $renewals) || 0) > $seen + 1 } 'renewals';
	is(worker_pid($one), $next, "the worker's $time successor renews the leases");
	is( $holder->query_safe(q{SELECT ddb_lock_require('a'), ddb_lock_require('b')}),
		"$token|$xact_token",
		'the tokens are still valid');
	ok($local->busy && $foreign->busy, 'the waiting sessions go on waiting');
	is($far->query_safe(q{SELECT NOT ddb_lock_try_acquire('a')}),
		't', 'the other cluster still cannot have the lock');
}

is($holder->query_safe(q{SELECT ddb_lock_release('a')}),
	't', 'the holder can release');
cmp_ok($local->result, '>', $token, 'who waited for a lock of this cluster gets it');
$far->query_safe(q{SELECT ddb_lock_release('c')});
cmp_ok($foreign->result, '>', $far_token,
	'who waited for a lock of another cluster gets it');
unlike($local->messages . $foreign->messages, qr/ERROR|FATAL|WARNING/,
	'without a word of complaint');
is( $far->query_safe(
		q{SELECT convert_from(data, 'UTF8') FROM ddb_lock_info('c')}),
	'payload', 'and with the data that was asked for');

# The segment, and with it the incarnation, is the same.
is( $far->query_safe(
		q{SELECT count(DISTINCT owner) FROM
			(SELECT * FROM ddb_lock_info('a') UNION ALL
			 SELECT * FROM ddb_lock_info('b') UNION ALL
			 SELECT * FROM ddb_lock_info('c')) l}),
	1, 'all under one owner');

#
# Terminated while the outcome of a write is open
#
proxy->fault('lose_reply', operation => 'UpdateItem', match => '"d"', count => -1);
my $open = session($one);
$open->send(q{SELECT ddb_lock_acquire('d', lease => '1h')});
wait_for { proxy->faults('UpdateItem') > 0 } 'the write of an acquire';
my $pid = worker_pid($one);
$one->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
successor_of($pid);
my $version = dynamodb->item('d')->{recordVersionNumber}{S};
proxy->clear_faults;
like($open->result, qr/^\d+$/, 'an acquire whose reply the worker did not live to see is granted');
is(dynamodb->item('d')->{recordVersionNumber}{S},
	$version, 'by settling that very write');

# What ended sessions leave behind while there is no worker is freed, too.
$pid = worker_pid($one);
kill 'STOP', $pid;
$open->quit;
my $ended = session($one);
$ended->send(q{SELECT ddb_lock_acquire('e', lease => '1h')});
ok($ended->busy, 'without its worker a cluster has to wait');
$one->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
kill 'CONT', $pid;
successor_of($pid);
wait_for { is_released('d') } 'the lock of the session that ended';
like($ended->result, qr/^\d+$/, 'the request that was made meanwhile is served');
pass('what a session left behind while the worker stood still is freed');
$holder->query_safe('ROLLBACK');
$_->quit foreach $holder, $local, $foreign, $ended;
wait_for { is_released('a') && is_released('c') && is_released('e') } 'all locks';

#
# Terminated after it has deleted an item, before it knows.  It holds nothing, so
# it does not wait for the reply.
#
dynamodb->put_item(dynamodb->java_item('old', version => 'v', extra => {
	isReleased => { S => '1' }, releasedVersion => { S => 'v' },
	releasedAt => { N => time - 2 * 86400 } }));
wait_for { $one->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') == 0 } 'no lease';
proxy->fault('lose_reply', operation => 'DeleteItem');
my $purge = session($one);
$purge->send(q{SELECT ddb_lock_purge('1 day')});
wait_for { !dynamodb->item('old') } 'the deletion';
$pid = worker_pid($one);
$one->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
successor_of($pid);
is($purge->result, 1, 'an item whose deletion the worker did not live to see is counted');
$purge->quit;

#
# Terminated just before the postmaster waits: it has not noticed, up to PostgreSQL 15
#
my $shim = "$PostgreSQL::Test::Utils::tmp_check/shim";
my $source = abs_path(dirname(__FILE__) . '/../torture/shim.c');
system('gcc', '-shared', '-fPIC', '-o', "$shim.so", $source, '-ldl') == 0 or die "no shim\n";

# The file is mapped by all processes of the cluster, so it must never be truncated.
sub command_shim
{
	my ($late_select) = @_;

	sysopen my $commands, "$shim.commands", O_WRONLY | O_CREAT or die $!;
	print $commands pack('q5', 0, 0, 0, 0, $late_select);
	close $commands or die $!;
	return;
}

command_shim(0);
my $late = new_cluster('late', start => 0, conf => "autovacuum = off\n");
{
	local @ENV{qw(LD_PRELOAD TORTURE_SHIM)} = ("$shim.so", "$shim.commands");
	$late->start;
}
$late->safe_psql('postgres', 'CREATE EXTENSION ddblock');
my $patient = session($late);
$patient->query_safe(q{SELECT ddb_lock_acquire('before')});
$pid = $patient->query_safe(
	q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'ddblock worker'});
command_shim(1);
my $connected = session($late);		# so the postmaster comes to select() again
kill 'TERM', $pid;
wait_for { !-e "/proc/$pid" } 'the end of the worker';
command_shim(0);
like($patient->query_safe(q{SELECT ddb_lock_acquire('after')}), qr/^\d+$/,
	'a session that waits for the next worker reminds the postmaster of it');
$_->quit foreach $patient, $connected;
$late->stop;

$far->quit;
nothing_held_ok;
done_testing;
