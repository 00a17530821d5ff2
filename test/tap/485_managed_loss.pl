# Databases that cannot load ddblock: no update is lost, and nothing is committed after a loss.

use DDBLock::BlackHole;
use DDBLock::Managed;
use DDBLock::Test;

my $locks = lock_server('locks', conf => "ddblock.lease_duration = '4s'\n");
my $spare = lock_server('spare', conf => "ddblock.lease_duration = '4s'\n");
my $network = DDBLock::BlackHole->new($locks->port);
my $shop = managed_cluster('shop', $locks, $spare);
my $bank = managed_cluster('bank', $network);

sub locks { return $locks->safe_psql('postgres', 'SELECT name, state FROM ddb_locks ORDER BY 1, 2'); }
sub counter { my ($node) = @_; return ($node // $shop)->safe_psql('postgres', 'SELECT n FROM counter'); }

#
# Lost updates.  A COMMIT that takes long is what shows them: the lock server has released the lock
# by then.  A row lock would hide it, so each transaction reads first, and writes a new row.
#
$shop->append_conf('postgresql.conf', "commit_delay = 50000\ncommit_siblings = 0\nfsync = on\nwal_sync_method = fdatasync\n");
$shop->restart;
$shop->safe_psql('postgres', q{
	CREATE TABLE row (id int GENERATED ALWAYS AS IDENTITY, n int NOT NULL, who text);
	GRANT ALL ON row TO app;
	CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)});
my $add = q{INSERT INTO row (n, who) SELECT coalesce(max(n), 0) + 1, '%s' FROM row};
my @ways = (
	[ 'for the transaction', q{BEGIN; SELECT ddb_xact_lock_acquire('shop/n'); %s; COMMIT} ],
	[ 'another collation', q{BEGIN; SELECT ddb_xact_lock_acquire('shop/n' COLLATE blind); %s; COMMIT} ],
	[ 'through a cursor and a savepoint', q{BEGIN; DECLARE c CURSOR FOR SELECT ddb_xact_lock_acquire('shop/n'), 1 / g FROM
		generate_series(1, 0, -1) g; FETCH c; SAVEPOINT s; FETCH c; ROLLBACK TO s; %s; COMMIT} ],
	[ 'for the session', q{SELECT ddb_lock_acquire('shop/n'); %s; SELECT ddb_lock_release('shop/n')} ]);
my @sessions = map { app($shop) } @ways;
my $rounds = 8;

foreach my $i (0 .. $#ways)
{
	my ($what, $sql) = @{ $ways[$i] };
	my $once = sprintf $sql, sprintf $add, $what;

	$sessions[$i]->send("\\set VERBOSITY terse\nSET client_min_messages = error;" . "$once;\n" x $rounds);
}
foreach my $i (0 .. $#ways)
{
	$sessions[$i]->result;
	my $errors = join '', grep { !/division by zero/ } $sessions[$i]->messages =~ /^.*ERROR:.*\n/mg;
	is($errors, '', "$ways[$i][0]: no error");
	$sessions[$i]->quit;
}
is($shop->safe_psql('postgres', 'SELECT count(*), max(n), count(DISTINCT n) FROM row'), join('|', (@ways * $rounds) x 3),
	'no update is lost');

#
# A holder that is stopped in its COMMIT, when the lock server has released the lock: the next one
# waits until it is visible.
#
foreach my $next (q{SELECT ddb_xact_lock_acquire('shop/n')}, q{SELECT ddb_lock_acquire('shop/n')},
	q{SELECT ddb_xact_lock_try_acquire('shop/n')})
{
	my ($first, $second) = map { app($shop) } 1 .. 2;
	my $pid = backend_pid($first);

	$shop->safe_psql('postgres', "ALTER SYSTEM SET synchronous_standby_names = 'nobody'; SELECT pg_reload_conf()");
	$first->query_safe(q{SELECT ddb_lock_token('shop/n')});
	wait_for { $first->ask('SHOW synchronous_standby_names') eq 'nobody' } 'the reload';
	$first->send("BEGIN; SELECT ddb_xact_lock_acquire('shop/n'); UPDATE counter SET n = n + 1; COMMIT");
	$shop->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $pid") or die;
	my $before = counter();
	$second->send("SET client_min_messages = error; $next; SELECT 'n = ' || n FROM counter");
	$shop->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") or die;
	pass("waits for the COMMIT: $next");
	$shop->safe_psql('postgres', "ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()");
	$first->result;
	like($second->result, qr/n = @{[ $before + 1 ]}/, '... and sees what it has written');
	$_->quit foreach $first, $second;
}
wait_for { locks() eq '' } 'all is released';

#
# The network to the lock server swallows all packets, with the settings of the page
#
my %bank = map { $_ => app($bank) } qw(commits waits asks begins);
my %others = map { $_ => app($shop) } qw(next after);

$others{next}->query_safe(q{SELECT ddb_lock_acquire('shop/busy')});
$bank{commits}->query_safe(q{BEGIN; SELECT ddb_xact_lock_acquire('shop/works'); UPDATE counter SET n = n + 1});
$bank{asks}->query_safe(q{SELECT ddb_lock_acquire('shop/idle')});
$bank{waits}->send(q{SELECT ddb_lock_acquire('shop/busy')});
$others{next}->send(q{SELECT ddb_lock_acquire('shop/works')});
$others{after}->send(q{SELECT ddb_lock_acquire('shop/idle')});
wait_for_waiters($locks, "shop/$_", 1) foreach qw(busy works idle);
$network->break;

my $broken_at = Time::HiRes::time();
my %works = (%bank, %others);
my $seen = sub { note(sprintf "broken network: %s has ended after %.1f s", $_[0], Time::HiRes::time() - $broken_at); };
$bank{commits}->send('COMMIT');
$bank{asks}->send(q{BEGIN; SELECT ddb_lock_require('shop/idle')});
$bank{begins}->send(q{SELECT ddb_lock_try_acquire('shop/new')});
wait_for { $seen->($_), delete $works{$_} foreach grep { !$works{$_}->busy } sort keys %works; !%works } 'the end of all calls';
$_->result foreach values %bank;
like($bank{commits}->messages, qr/ERROR: +08006: /, 'a network that swallows all packets: COMMIT fails');
is(counter($bank), 0, '... and nothing is committed');
like($bank{waits}->messages, qr/ERROR: +08006: /, '... a call that waits fails');
like($bank{$_}->messages, qr/ERROR: +08001: could not connect to server "ddblock"/, "... a new call fails: who $_") foreach qw(asks begins);
like($_->result, qr/^\d+$/, '... the lock server has freed the lock') foreach values %others;
wait_for_waiters($locks, 'shop/busy', 0);
pass('... and the place of who has waited');
$network->mend;
$bank{asks}->query_safe('ROLLBACK');
like($bank{asks}->error_of(q{SELECT ddb_lock_require('shop/idle')}), qr/ERROR: +LK001: /, 'the network is mended: the lock is not held');
is($bank{$_}->ask(qq{SELECT ddb_xact_lock_try_acquire('shop/again/$_')}), 't', "... calls work again: who $_") foreach sort keys %bank;
$_->quit foreach values %bank, values %others;
wait_for { locks() eq '' } 'all is released';

#
# After a loss nothing is committed
#
my $number = 0;
sub loses
{
	my ($what, $lose, $error, $on_lost) = @_;
	my $session = app($shop);
	my $before = counter();
	my $name = 'shop/lost/' . ++$number;

	$locks->safe_psql('postgres', "ALTER ROLE shop SET ddblock.on_lease_lost = $on_lost");
	$session->query_safe("SELECT ddb_lock_acquire('$name')");
	$session->query_safe("BEGIN; SELECT ddb_lock_require('$name'); UPDATE counter SET n = n + 1");
	$lose->($name);
	like($session->error_of('COMMIT'), $error, "$what: COMMIT fails");
	is(counter(), $before, '... and nothing is committed');
	like($session->error_of("SELECT ddb_lock_require('$name')"), qr/ERROR: +(LK001|08006)/, '... and the session does not hold the lock');
	$session->quit;
	return;
}
sub end_remote
{
	$locks->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'});
	wait_for { $locks->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop'}) == 0 } 'their end';
	return;
}

loses('a lost lease', sub { lose($locks, $_[0]) }, qr/ERROR: +LK001: cannot commit, because the lease on lock/, 'none');
loses('a lost lease, with cancel', sub
	{
		dynamodb->delete_item($_[0]);
		wait_for { $locks->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'shop'}) == 0 } 'the end of the remote session';
	}, qr/ERROR: +08006: /, 'cancel');
loses('the remote session is terminated', \&end_remote, qr/ERROR: +08006: /, 'cancel');
loses('the lock server crashes', sub { $locks->stop('immediate'); $locks->start }, qr/ERROR: +08006: /, 'cancel');

# Without a question of its own a transaction is not guarded: the page says so.
my $session = app($shop);
$session->query_safe(q{SELECT ddb_lock_acquire('shop/unguarded')});
end_remote();
is($session->ask('UPDATE counter SET n = n + 1 RETURNING true'), 't', 'a transaction that asks nothing commits');
$session->quit;

#
# The second lock server takes over
#
$session = app($shop);
$session->query_safe(q{SELECT ddb_lock_acquire('shop/moves')});
$locks->stop('immediate');
like($session->error_of(q{SELECT ddb_lock_require('shop/moves')}), qr/ERROR: +LK001: /,
	'the lock server is gone: the other one answers');
like($session->ask(q{SELECT ddb_lock_acquire('shop/moves')}), qr/^\d+$/, '... and grants the lock after the lease');
is($spare->safe_psql('postgres', 'SELECT name, state FROM ddb_locks'), 'shop/moves|held', '... which holds it');
$spare->stop('immediate');
$session->ask(q{SELECT ddb_lock_require('shop/moves')});		# may still find its connection
like($session->error_of(q{SELECT ddb_lock_require('shop/moves')}), qr/ERROR: +08001: could not connect to server "ddblock"/,
	'none is left');
$_->start foreach $locks, $spare;
like($session->error_of(q{SELECT ddb_lock_require('shop/moves')}), qr/ERROR: +LK001: /, 'both are back: the lock is not held');
like($session->ask(q{SELECT ddb_lock_acquire('shop/moves')}), qr/^\d+$/, '... until it is acquired again');
$session->quit;

nothing_held_ok;
done_testing;
