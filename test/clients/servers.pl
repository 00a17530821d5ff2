# Servers that play DynamoDB: no operation hangs, no lease is lost.  What each lacks is told by an error,
# and stands in doc/compatibility.md.

use DDBLock::Test;
use DDBLock::Client;

my %kinds = map { $_ => DDBLock::Client::missing($_) } qw(moto dynalite);
my @kinds = grep { !$kinds{$_} } sort keys %kinds;

plan skip_all => join '; ', values %kinds unless @kinds;
foreach my $missing (grep { defined } @kinds{ sort keys %kinds })
{
	SKIP: { skip $missing, 1; }
}

# Without the word about who is still waited for, and where in the source an error was raised.
sub said
{
	my ($session, $sql) = @_;
	my $result = $session->ask($sql);
	my $messages = $session->messages // '';

	return $result if $messages !~ /(?:ERROR|WARNING): +(\w{5}: .*)/;
	return $result ne '' ? "$result $1" : $1;
}

# Seconds: longer than such a server stands still on a busy machine.
my $lease = 15;

foreach my $kind (@kinds)
{
	my $server = new_other_server($kind);
	my $lacks_transactions = $kind eq 'dynalite';
	my ($one, $two, $doomed) = map { new_cluster("${kind}_$_", through => $server, table => 0,
		conf => "ddblock.lease_duration = '${lease}s'\nstatement_timeout = '60s'\n") } qw(one two doomed);
	my ($a, $b, $c, $d) = map { session($_) } $one, $two, $one, $doomed;
	my $operations = 0;

	# What a statement of a session returns, or says; it ends within statement_timeout.
	my $is = sub {
		my ($session, $sql, $expected, $what) = @_;
		my $said = said($session, $sql);

		$operations++;
		local $Test::Builder::Level = $Test::Builder::Level + 1;
		return ref $expected ? like($said, $expected, "$kind: $what") : is($said, $expected, "$kind: $what");
	};
	my $token = qr/^\d{16,}$/;

	$is->($a, 'SELECT ddb_lock_table_create()', $kind eq 'moto' ? '' : qr/01000: the server cannot delete items/, 'the table is made');

	# One holder
	$is->($a, q{SELECT ddb_lock_acquire('x')}, $token, 'acquire');
	$is->($b, q{SELECT ddb_lock_try_acquire('x')}, 'f', 'try');
	$is->($b, q{SELECT ddb_lock_acquire('x', wait => '1s')}, qr/^55P03/, 'a wait that ends');
	$is->($b, q{SELECT held, owner ~ 'one/', mode FROM ddb_lock_info('x')}, 't|t|exclusive', 'info');
	$is->($b, q{SELECT name, state FROM ddb_lock_list()}, 'x|held', 'list');
	$is->($b, q{SELECT ddb_lock_try_acquire('x', only_if_exists => true)}, 'f', 'try of a held lock that must exist');
	$is->($a, q{SELECT ddb_lock_renew('x', data => 'abc') > now()}, 't', 'renew with data');
	$is->($a, q{SELECT ddb_lock_release('x')}, 't', 'release');
	$is->($b, q{SELECT ddb_lock_acquire('x', data => 'd', attributes => '{"team": "a"}', only_if_exists => true)}, $token,
		'acquire with attributes');
	$is->($a, q{SELECT data, attributes FROM ddb_lock_info('x')}, '\x64|{"team": "a"}', 'info of them');
	$is->($a, q{SELECT ddb_lock_force_release('x')}, qr/^t 01000: lock "x" was taken away/, 'release by force');
	$is->($a, q{SELECT ddb_lock_try_acquire('x')}, 't', 'acquire what was taken away');
	$is->($b, q{SELECT ddb_lock_renew('x')}, qr/^LK001/, 'renew what was taken away');
	like($b->messages, qr/DETAIL: +Another owner has taken it over/, "$kind: ... the reason is right");
	said($b, 'SELECT ddb_lock_release_all()');
	$is->($a, q{SELECT ddb_lock_release_all()}, 1, 'release of all');
	$is->($a, q{SELECT ddb_lock_try_acquire('nix', only_if_exists => true)}, qr/^42704/, 'try of a lock that must exist, and does not');
	$is->($a, q{SELECT ddb_lock_acquire('del', delete_on_release => true) > 0, ddb_lock_release('del')}, 't|t', 'delete on release');
	$is->($a, q{SELECT ddb_lock_acquire('kept', at_least => '3s') > 0, ddb_lock_release('kept')}, 't|t', 'at least');
	$is->($b, q{SELECT ddb_lock_try_acquire('kept')}, 'f', 'try of a lock that is kept');
	$is->($b, q{SELECT ddb_lock_acquire('kept', wait => '20s') > 0, ddb_lock_release('kept')}, 't|t', 'wait for it');
	$is->($a, q{SELECT ddb_lock_purge('1 day')}, 0, 'purge');

	# Passing on within a cluster, by a hand-over
	$is->($a, q{SELECT ddb_lock_acquire('pass')}, $token, 'acquire');
	$c->send(q{SELECT ddb_lock_acquire('pass', lease => '9s')});
	wait_for_waiters($one, 'pass', 1);
	$is->($a, q{SELECT ddb_lock_release('pass')}, 't', 'release to one who waits');
	like($c->result, $token, "$kind: ... who gets it");
	$is->($c, q{SELECT ddb_lock_release('pass')}, 't', 'release after a hand-over');

	# Sharing: who leaves took himself for the last one
	foreach my $share ([ 'ddb_lock_%sacquire_shared(%s)', 's' ], [ 'ddb_semaphore_%sacquire(%s, 2)', 'p' ])
	{
		my ($function, $name) = @$share;
		my ($acquire, $try) = map { 'SELECT ' . sprintf $function, $_, "'$name'" } '', 'try_';
		my $wait = $acquire =~ s/\)$/, wait => '20s')/r;

		$is->($_, $acquire, $token, "share $name") foreach $a, $b;
		$is->($c, $try, $name eq 'p' ? 'f' : 't', "try to share $name");
		said($c, 'SELECT ddb_lock_release_all()');
		$is->($d, "SELECT ddb_lock_acquire('$name', wait => '2s')", qr/^55P03/, "wait for the end of $name");
		$is->($_, 'SELECT ddb_lock_release_all()', 1, "leave $name") foreach $a, $b;
		my $began = time;
		$is->($d, "SELECT ddb_lock_acquire('$name', wait => '20s') > 0, ddb_lock_release('$name')", 't|t', "$name is free");
		cmp_ok(time - $began, '<', $lease, "$kind: ... at once");
		$is->($d, $wait, $token, "share $name again");
		said($d, 'SELECT ddb_lock_release_all()');
	}

	# More leases than one batch has, and shared ones, for several leases
	my $many = q{SELECT cardinality(ddb_lock_acquire_all(ARRAY(SELECT '%s' || i FROM generate_series(1, 40) i)))};
	$is->($a, sprintf($many, 'm'), 40, 'acquire 40 at once');
	$is->($b, sprintf($many, 'n'), 40, 'acquire others');
	$is->($b, q{SELECT ddb_lock_try_acquire_all('{free,m1}')}, 'f', 'try several, one of which is held');
	$is->($_, q{SELECT count(ddb_lock_acquire_shared('sh' || i)) FROM generate_series(1, 5) i}, 5, 'share five') foreach $a, $b;
	foreach my $node ($one, $two)
	{
		wait_for { $node->safe_psql('postgres', q{SELECT min(renewals) >= 4 FROM ddb_locks}) eq 't' } 'four renewals of each';
		is($node->safe_psql('postgres', q{SELECT state, count(*) FROM ddb_locks GROUP BY state}), 'held|45',
			"$kind: ... all are held for longer than a lease");
		cmp_ok(stat_of($node, 'renew_batch'), '<', 12, "$kind: ... batches that do not work are not repeated for ever");
		ok($node->log_contains(qr/batches of renewals: .*\n.*DETAIL: +Leases are renewed one by one/), "$kind: ... and the log tells");
	}
	$is->($_, 'SELECT ddb_lock_release_all()', 45, 'release 45') foreach $a, $b;

	# What is missing
	$is->($a, q{SELECT string_agg(subject || ' ' || result, ', ' ORDER BY subject COLLATE "C") FROM ddb_check()
		WHERE result IN ('warning', 'FAILED') AND subject <> 'trouble'},
		$kind eq 'moto' ? 'renew FAILED, take-over warning' : 'lock table warning, renew FAILED, take-over warning', 'check');

	# A worker that starts again, and a cluster that dies
	$is->($a, q{SELECT ddb_lock_acquire('adopted')}, $token, 'acquire');
	my $pid = worker_pid($one);
	$one->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
	wait_for { (worker_pid($one) // $pid) != $pid } 'another worker';
	$is->($a, q{SELECT ddb_lock_renew('adopted') > now()}, 't', 'renew what was adopted');
	$is->($a, q{SELECT ddb_lock_release('adopted')}, 't', 'release it');
	$is->($d, q{SELECT ddb_lock_acquire('dead') > 0, ddb_lock_acquire_shared('dead too') > 0}, 't|t', 'acquire');
	$doomed->stop('immediate');
	$is->($b, q{SELECT ddb_lock_acquire('dead', wait => '40s') > 0, ddb_lock_acquire('dead too', wait => '40s') > 0}, 't|t',
		'take a dead cluster\'s locks over');
	$is->($b, 'SELECT ddb_lock_release_all()', 2, 'release them');

	# Queues
	$is->($a, 'SELECT ddb_queue_table_create()', $lacks_transactions ? qr/^01000/ : '', 'the table of queues');
	my $push = q{SELECT ddb_queue_push('q', 'r', '"one"')};
	if ($lacks_transactions)
	{
		$is->($_, $push, qr/^0A000: the server at \S+ lacks an operation/, 'no push without transactions') foreach $a, $b;
		$is->($a, q{SELECT * FROM ddb_queue_claim('q')}, '', 'no job');
	}
	else
	{
		$is->($a, $push, 1, 'push');
		$is->($b, q{SELECT ddb_queue_push('q', 'r', '"two"', id => 'i')}, 2, 'push with an id') foreach 1, 2;
		$is->($b, q{SELECT ddb_queue_push_all('q', 's', ARRAY['1', '2']::jsonb[])}, '{1,2}', 'push several');
		$is->($a, q{SELECT number, payload FROM ddb_queue_claim('q', resources => '{r}')}, '1|"one"', 'next');
		$is->($b, q{SELECT number FROM ddb_queue_claim('q', resources => '{r}')}, '', 'no other one of the resource');
		$is->($a, q{SELECT ddb_queue_complete('q', 'r', 1)}, '', 'complete');
		$is->($b, q{SELECT number, payload FROM ddb_queue_claim('q', wait => '20s', resources => '{r}')}, '2|"two"', 'next');
		$is->($b, q{SELECT ddb_queue_fail('q', 'r', 2, 'no', '1 hour')}, '', 'fail');
		$is->($a, q{SELECT depth, last_error FROM ddb_queue_depths('q', 'r')}, '1|no', 'depths');
		$is->($a, q{SELECT ddb_queue_cancel('q', 's', 1)}, 't', 'cancel');
		$is->($a, q{SELECT ddb_queue_pause('q', 's'), ddb_queue_resume('q', 's')}, 't|t', 'pause, resume');
		$is->($a, q{SELECT ddb_queue_drop('q', 's')}, 1, 'drop');
		$is->($a, q{SELECT ddb_queue_purge()}, 0, 'purge');
	}

	cmp_ok($operations, '>=', 28, "$kind: operations, none of which hung");
	is(stat_of($one, undef, 'leases_lost'), 0, "$kind: no lease was lost");
	is(stat_of($two, undef, 'leases_lost'), 1, '... but the one that was taken away');
	$d->gone;
	$_->quit foreach $a, $b, $c;
}
done_testing;
