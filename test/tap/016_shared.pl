# Shared locks: sessions of two clusters share one, and keep out who wants it for
# itself.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy, conf => "restart_after_crash = on\n");
my $two = new_cluster('two');
my ($reader, $neighbour, $far, $writer) = (session($one), session($one), session($two),
	session($two));
my $lease = q{lease => '1h'};

sub share { my ($session, $name) = @_;
	return $session->ask("SELECT ddb_lock_acquire_shared('$name', $lease) > 0"); }
sub try_shared { my ($session, $name) = @_;
	return $session->ask("SELECT ddb_lock_try_acquire_shared('$name', $lease)"); }
sub try_exclusive { my ($session, $name) = @_;
	return $session->ask("SELECT ddb_lock_try_acquire('$name')"); }
sub release { my ($session, $name) = @_; return $session->ask("SELECT ddb_lock_release('$name')"); }

#
# Who may have it with whom
#
is(share($reader, 'r'), 't', 'a lock is shared');
is(share($far, 'r'), 't', 'another cluster shares it');
is(try_exclusive($writer, 'r'), 'f', 'nobody gets it exclusively');
is($one->safe_psql('postgres', q{SELECT state, mode, permits FROM ddb_locks WHERE name = 'r'}),
	'held|shared|', 'ddb_locks shows the mode');
is($two->safe_psql('postgres', q{SELECT held, mode, permits, array_length(clusters, 1),
		clusters @> '{one,two}' FROM ddb_lock_info('r')}),
	't|shared||2|t', 'ddb_lock_info() shows the clusters');

my $requests = proxy->received;
is(share($neighbour, 'r'), 't', 'another session of the cluster shares it');
is(proxy->received, $requests, 'without a request');
is(release($neighbour, 'r'), 't', 'and lets go');
is(proxy->received, $requests, 'without a request');

is(release($reader, 'r'), 't', 'one cluster leaves');
is(try_exclusive($writer, 'r'), 'f', 'the other keeps the lock');
is(release($far, 'r'), 't', 'the last one leaves');
ok(is_released('r'), 'the item is released');
is(try_exclusive($writer, 'r'), 't', 'the lock is free');
is(try_shared($reader, 'r'), 'f', 'a lock that is held exclusively is not shared');
$reader->send(q{SELECT ddb_lock_acquire_shared('r') > 0});
wait_for_waiters($one, 'r', 1);
$writer->query_safe(q{SELECT ddb_lock_release('r')});
is($reader->result, 't', 'who waits to share it gets it');

#
# A waiter who wants it for itself is not kept out by readers that overlap
#
$writer->send(q{SELECT ddb_lock_acquire('r', wait => '10min') > 0});
wait_for_waiters($two, 'r', 1);
wait_for { dynamodb->item('r')->{shared}{M}{gate} } 'the gate';
is(try_shared($far, 'r'), 'f', 'nobody comes before the waiter in its own cluster');
my $third = new_cluster('three');
my $late = session($third);
is(try_shared($late, 'r'), 'f', 'and nobody in another one');
release($reader, 'r');
is($writer->result, 't', 'the waiter gets the lock');
ok(!dynamodb->item('r')->{shared}, 'and the gate is gone');
$writer->query_safe(q{SELECT ddb_lock_release('r')});
$late->quit;

#
# Modes, scopes
#
share($reader, 'r');
is(share($reader, 'r'), 't', 'a shared lock is acquired twice');
like($reader->error_of(q{SELECT ddb_lock_acquire('r')}),
	qr/ERROR: +0A000: this session holds lock "r" in another mode.*ddb_lock_release\(\)/s,
	'a shared lock does not become an exclusive one');
like($reader->error_of(q{SELECT ddb_lock_renew('r', '10s')}),
	qr/ERROR: +0A000: .*cannot change its length/, 'the length of its lease is not changed');
is($reader->ask(q{SELECT ddb_lock_renew('r') > now(), ddb_lock_token('r') = ddb_lock_require('r')}),
	't|t', 'it is renewed, and has a token');
is(release($reader, 'r'), 't', 'released once');
is(try_exclusive($writer, 'r'), 'f', 'it is still held');
is(release($reader, 'r'), 't', 'released twice');
is(try_exclusive($writer, 'r'), 't', 'it is free');
$writer->query_safe(q{SELECT ddb_lock_release('r')});

$reader->query_safe(q{BEGIN; SAVEPOINT s});
$reader->query_safe(q{SELECT ddb_xact_lock_acquire_shared('r')});
is(try_exclusive($writer, 'r'), 'f', 'shared for a transaction');
$reader->query_safe(q{ROLLBACK TO s});
wait_for { try_exclusive($writer, 'r') eq 't' } 'the lock after the savepoint is rolled back';
$writer->query_safe(q{SELECT ddb_lock_release('r')});
is($reader->ask(q{SELECT ddb_xact_lock_try_acquire_shared('r')}), 't', 'shared again');
$reader->query_safe('COMMIT');
wait_for { try_exclusive($writer, 'r') eq 't' } 'the lock after the transaction';
$writer->query_safe(q{SELECT ddb_lock_release('r')});

like($one->safe_psql('postgres', q{CREATE ROLE nobody; SET ROLE nobody;
	SELECT has_function_privilege('ddb_lock_acquire_shared'::regproc, 'EXECUTE')}),
	qr/f$/, 'PUBLIC may not share locks');

#
# The worker dies: the next one goes on with all holds
#
share($reader, 'r');
share($neighbour, 'r');
share($far, 'r');
my $worker = worker_pid($one);
$one->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { my $now = worker_pid($one); defined $now && $now != $worker } 'another worker';
is($reader->ask(q{SELECT ddb_lock_renew('r') > now()}), 't', 'a new worker renews the lease');
is(release($reader, 'r'), 't', 'one session lets go');
is($neighbour->ask(q{SELECT ddb_lock_token('r') > 0}), 't', 'the other one still has the lock');
is(release($neighbour, 'r'), 't', 'it lets go');
is($two->safe_psql('postgres', q{SELECT clusters FROM ddb_lock_info('r')}), '{two}',
	'the cluster has left');

#
# A cluster crashes: its entry is removed at once, others stay
#
share($reader, 'r');
share($reader, 'alone');
kill 'KILL', backend_pid($neighbour);
wait_for { $two->safe_psql('postgres', q{SELECT clusters FROM ddb_lock_info('r')}) eq '{two}' }
	'the dead incarnation to leave';
wait_for { is_released('alone') } 'what only it held to be released';
ok($far->ask(q{SELECT ddb_lock_token('r') > 0}) eq 't', 'the other cluster still has the lock');
$one->poll_query_until('postgres', 'SELECT true');

#
# A session that wants a longer lease shares the one that there is
#
is($far->ask(q{SELECT ddb_lock_acquire_shared('short', '9s') > 0}), 't', 'a short lease');
is($writer->ask(q{SELECT ddb_lock_try_acquire_shared('short', '1h')}), 't',
	'a session that asks for a long one shares it');
is($two->safe_psql('postgres', q{SELECT DISTINCT lease FROM ddb_locks WHERE name = 'short'}),
	'00:00:09', 'it stays short');
$two->poll_query_until('postgres',
	q{SELECT min(renewals) > 1 FROM ddb_locks WHERE name = 'short'}) or die "no renewals\n";
is($_->ask(q{SELECT ddb_lock_release('short')}), 't', 'neither has lost it')
  foreach $far, $writer;

#
# By force
#
my $operator = session($two);
is($operator->ask(q{SELECT ddb_lock_force_release('r')}), 't', 'a shared lock is released by force');
like($operator->messages,
	qr/WARNING: .*taken away from all who share it.*Sessions of the clusters "two" may believe/s,
	'the warning names the clusters');
$operator->quit;
ok(is_released('r'), 'the item is released');
like($far->error_of(q{SELECT ddb_lock_renew('r')}), qr/LK001/, 'who shared it has lost it');
is($far->ask(q{SELECT ddb_lock_release('r')}), 'f', 'and acknowledges that, as the hint says');
is(share($far, 'r'), 't', 'then it can share it again');
is(release($far, 'r'), 't', 'and leave');

$_->quit foreach $far, $writer;
nothing_held_ok;
done_testing;
