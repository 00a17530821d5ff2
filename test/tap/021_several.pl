# Several locks in one call: all or none of them, in about one round trip; whoever waits,
# waits for one lock.

use DDBLock::Test;

my $one = new_cluster('one', through => proxy, conf => "ddblock.max_leases = 64\nddblock.request_timeout = '1min'\n"
	  . "ddblock.lease_duration = '1h'\ndeadlock_timeout = '1min'\n");
my $two = new_cluster('two', conf => "ddblock.lease_duration = '1h'\ndeadlock_timeout = '1min'\n");
my ($session, $other) = map { session($one) } 1 .. 2;
my $far = session($two);

sub all { my ($names, $options) = @_;
	return "SELECT ddb_lock_acquire_all('{$names}'" . ($options // '') . ')'; }
sub take { my ($who, $name) = @_; return $who->ask("SELECT ddb_lock_acquire('$name')"); }
sub release_all { my ($who) = @_; return $who->ask('SELECT ddb_lock_release_all()'); }
sub released { my (@names) = @_;
	wait_for { my $held = grep { !is_released($_) } @names; $held == 0 } "the release of @names";
	pass("@names are free");
	return; }
sub held { my ($who) = @_;
	return $who->ask(q{SELECT string_agg(name || ' ' || depth, ',' ORDER BY name) FROM ddb_locks
		WHERE pid = pg_backend_pid()}); }

#
# Their acquires go out together
#
proxy->fault('late_apply', operation => 'UpdateItem', count => -1);
$session->send(q{SELECT ddb_lock_acquire_all(array_agg('l/' || i)) FROM generate_series(1, 20) i});
wait_for { proxy->received('UpdateItem') == 20 } 'all requests';
ok($session->busy, 'twenty acquires are under way at a time');
proxy->clear_faults;
like($session->result, qr/^\{\d+(,\d+){19}\}$/, 'and bring twenty tokens');
is(proxy->received('UpdateItem'), 20, 'with no more requests');
my $requests = proxy->received;
is(release_all($session), 20, 'they are released like any other');
is(proxy->received, $requests + 20, '... with a request for each');

#
# Releases go out together, too: one that hangs or fails keeps no other lock
#
my $unless_a = sub { my ($fault, %options) = @_;
	$session->ask(all('a,b,c'));
	proxy->fault($fault, operation => 'UpdateItem', match => '"S": ?"a"', count => -1, %options);
	$session->send('SELECT ddb_lock_release_all()');
	released('b', 'c');
	return; };
$unless_a->('drop');
ok($session->busy && !is_released('a'), '... while the session waits for the first one');
proxy->clear_faults;
is($session->result, 3, 'it is told when all are free');
released('a');

$unless_a->('error', status => 400, type => 'AccessDeniedException');
$session->result;
like($session->messages, qr/42501.*no longer holds the lock/s, 'a release that fails is an error');
proxy->clear_faults;
released('a');

$unless_a->('drop');
$one->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
	WHERE query LIKE '%release_all%' AND pid <> pg_backend_pid()});
$session->result;
like($session->messages, qr/57014/, 'a canceled call');
is(held($session), '', '... has ended all claims');
proxy->clear_faults;
released('a');

$unless_a->('drop');
my $before = worker_pid($one);
kill 'TERM', $before;
wait_for { (worker_pid($one) // $before) != $before } 'another worker';
ok($session->busy, 'the next worker knows who waits for a release');
proxy->clear_faults;
is($session->result, 3, '... and tells when it is done');
released('a');

is($session->ask(q{SELECT t[1] = ddb_lock_token('b') AND t[2] = ddb_lock_token('a') AND t[3] = t[1]
	AND cardinality(t) = 3 FROM ddb_lock_acquire_all('{b,a,b}') t}), 't',
	'tokens come in the order of the names');
is(held($session), 'a 1,b 1', 'a name that comes twice counts once');
$requests = proxy->received;
is($session->ask(q{SELECT ddb_lock_acquire_all('{c,a}') = ARRAY[ddb_lock_token('c'), ddb_lock_token('a')]}),
	't', 'what the session holds,');
is(proxy->received, $requests + 1, '... it takes again without a request');
is(held($session), 'a 2,b 1,c 1', '... and holds once more');
release_all($session);
is($session->ask(q{SELECT cardinality(ddb_lock_acquire_all(array_agg(repeat(chr(96 + i), 2048))))
	FROM generate_series(1, 9) i}), 9, 'the longest names');
release_all($session);
is($far->ask(q{SELECT cardinality(ddb_lock_acquire_all(array_agg('k/' || i))) FROM generate_series(1, 1000) i}),
	1000, 'a thousand locks');
is(release_all($far), 1000, '... and back');

#
# A lock is busy
#
take($far, 'm');
is($session->ask(q{SELECT NOT ddb_lock_try_acquire_all('{a,m,z}')}), 't', 'a try takes all or none');
released('a', 'z');
is(held($session), '', 'it leaves nothing');
is(take($session, 'a') =~ /^\d+$/, 1, 'what was held before');
is($session->ask(q{SELECT NOT ddb_lock_try_acquire_all('{a,m}')}), 't', '... a try in vain');
is(held($session), 'a 1', '... leaves as it was');
release_all($session);

take($far, 'q');
$session->send(all('z,q,m,a,n'));
wait_for_waiters($one, 'm', 1);
released('n', 'z');
ok(!is_released('a'), 'what comes before the first one that is busy is kept');
$far->query_safe(q{SELECT ddb_lock_release('m')});
wait_for_waiters($one, 'q', 1);
released('z');
ok(!is_released($_), "$_ is held") foreach qw(a m n);
ok($session->busy, 'the session waits for the next one that is busy');
$far->query_safe(q{SELECT ddb_lock_release('q')});
like($session->result, qr/^\{\d+(,\d+){4}\}$/, 'and has them all in the end');
is(held($session), 'a 1,m 1,n 1,q 1,z 1', '... once each');
release_all($session);

# In the same cluster
take($other, 'm');
$session->send(all('a,m,z'));
wait_for_waiters($one, 'm', 1);
is($other->ask(q{SELECT ddb_lock_try_acquire('z'), NOT ddb_lock_try_acquire('a')}), 't|t',
	'in the same cluster, too, it keeps only what comes before');
release_all($other);
like($session->result, qr/^\{\d+,\d+,\d+\}$/, 'and gets them all');
release_all($session);

#
# It ends without them
#
take($far, 'm');
like($session->error_of(all('a,m,z', q{, wait => '3s'})),
	qr/55P03: could not acquire lock "m" within 3 s/, 'the time is over');
released('a', 'z');
like($session->error_of('SET lock_timeout = 300; ' . all('a,m,z')),
	qr/55P03: canceling statement due to lock timeout/, 'so is lock_timeout');
$session->query_safe('RESET lock_timeout');
released('a', 'z');
is(held($session), '', 'the session holds nothing');
$session->send(all('a,m,z'));
wait_for_waiters($one, 'm', 1);
$one->safe_psql('postgres', 'SELECT pg_cancel_backend(' . backend_pid_of('m') . ')');
$session->result;
like($session->messages, qr/57014/, 'a cancelled call');
released('a', 'z');
is(held($session), '', '... leaves nothing');
$session->send(all('a,m,z'));
wait_for_waiters($one, 'm', 1);
$one->safe_psql('postgres', 'SELECT pg_terminate_backend(' . backend_pid_of('m') . ')');
$session->gone;
released('a', 'z');
$session = session($one);

# While all requests are under way
proxy->fault('late_apply', operation => 'UpdateItem', count => -1);
$requests = proxy->received('UpdateItem');
$session->send(all('a,b,c'));
wait_for { proxy->received('UpdateItem') == $requests + 3 } 'all requests';
$one->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
	WHERE query LIKE '%acquire_all%' AND pid <> pg_backend_pid()});
$session->result;
like($session->messages, qr/57014/, 'a call that is cancelled early');
proxy->clear_faults;
wait_for { $two->safe_psql('postgres', q{SELECT bool_and(ddb_lock_try_acquire(n))
	FROM unnest('{a,b,c}'::text[]) n}) eq 't' } 'the locks to be free';
pass('leaves nothing');
released('a', 'b', 'c');

#
# Transactions
#
is($session->ask(q{BEGIN; SELECT cardinality(ddb_xact_lock_acquire_all('{a,b}'));
	SAVEPOINT s; SELECT cardinality(ddb_xact_lock_acquire_all('{b,c}'));
	SELECT NOT ddb_xact_lock_try_acquire_all('{c,d,m}')}), "2\n2\nt", 'in a transaction');
released('d');
is(held($session), 'a 1,b 2,c 1', 'a try in vain leaves what the transaction has');
$session->query_safe('ROLLBACK TO s');
released('c');
is(held($session), 'a 1,b 1', 'ROLLBACK TO frees what came after the savepoint');
$session->query_safe('COMMIT');
released('a', 'b');

#
# A lease is lost meanwhile
#
$session->send(all('a,m,z', q{, lease => '9s'}));
wait_for_waiters($one, 'm', 1);
dynamodb->delete_item('a');
$session->result;
like($session->messages, qr/57014.*The lease on lock "a" was lost/s, 'a loss ends the call');
my $undisturbed = undisturbed($one);
$undisturbed->send(all('a,m,z', q{, lease => '9s'}));
wait_for_waiters($one, 'm', 1);
lose($one, 'a');
ok($undisturbed->busy, 'or, if statements go on,');
release_all($far);
$undisturbed->result;
like($undisturbed->messages, qr/LK001.*lock "a"/s, '... it fails with the next lock');
released('a', 'm', 'z');
$undisturbed->quit;

#
# Deadlocks
#
$session->query_safe('RESET ALL');
take($session, 'z');
$other->send(all('a,z'));
wait_for_waiters($one, 'z', 1);
like($session->error_of(q{SELECT ddb_lock_acquire('a')}), qr/40P01/, 'a deadlock with one who waits for one of several');
release_all($session);
like($other->result, qr/^\{/, '... who then has them');
$session->send(q{SELECT ddb_lock_acquire('z')});
wait_for_waiters($one, 'z', 1);
release_all($other);
$session->result;
take($other, 'y');
$session->send(q{SELECT ddb_lock_acquire('y')});
wait_for_waiters($one, 'y', 1);
like($other->error_of(all('b,z')), qr/40P01/, 'one who wants several closes a cycle');
released('b');
is(held($other), 'y 1', '... and keeps what it held before');
release_all($other);
$session->result;
release_all($session);

# In any order, all get them, in two clusters.
my $loop = q{SET deadlock_timeout = '1min'; DO $$ BEGIN FOR i IN 1..15 LOOP
	PERFORM ddb_lock_acquire_all(array_agg('d/' || n ORDER BY random())) FROM generate_series(1, 6) n
		WHERE random() < 0.6 HAVING count(*) > 0;
	PERFORM ddb_lock_release_all(); END LOOP; END $$};
my @crowd = map { my $node = $_; map { session($node) } 1 .. 3 } $one, $two;
$_->send($loop) foreach @crowd;
foreach (@crowd)
{
	$_->result;
	unlike($_->messages, qr/ERROR/, 'sessions that take several locks do not block each other');
	$_->quit;
}

#
# Limits
#
my $full = $session->error_of(q{SELECT ddb_lock_acquire_all(array_agg('l/' || i)) FROM generate_series(1, 100) i});
like($full, qr/53400: all 64 leases of this cluster are in use/, 'too many for the cluster');
wait_for { $one->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') eq '0' } 'the locks to be given back';
$one->safe_psql('postgres', q{CREATE ROLE app LOGIN; SELECT ddb_role_setup('ddblock_user');
	GRANT ddblock_user TO app; ALTER ROLE app SET ddblock.role_max_leases = 3});
my $app = session($one);
$app->ask('\\connect - app');
like($app->error_of(all('a,b,c,d')), qr/53400: too many leases for role "app"/, 'too many for the role');
wait_for { $one->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') eq '0' } 'the locks to be given back';
like($app->ask(all('a,b,c')), qr/^\{/, 'as many as it may have');
$app->quit;

#
# The worker ends meanwhile
#
released('a', 'b', 'c');
proxy->fault('late_apply', operation => 'UpdateItem', count => -1);
$requests = proxy->received('UpdateItem');
$session->send(all('a,b,c,d,e'));
wait_for { proxy->received('UpdateItem') == $requests + 5 } 'all requests';
my $worker = worker_pid($one);
kill 'TERM', $worker;
wait_for { (worker_pid($one) // $worker) != $worker } 'another worker';
proxy->clear_faults;
like($session->result, qr/^\{\d+(,\d+){4}\}$/, 'another worker goes on');
is(held($session), 'a 1,b 1,c 1,d 1,e 1', '... and gives each lock once');
is(release_all($session), 5, '... to be released');

$_->quit foreach $session, $other, $far;
nothing_held_ok;
done_testing;

# The process of cluster "one" that waits for the lock.
sub backend_pid_of
{
	my ($name) = @_;
	return $one->safe_psql('postgres', "SELECT pid FROM ddb_locks WHERE name = '$name' AND state = 'waiting'");
}
