# Requests and replies get lost, come twice, late, or mutilated: what was asked
# for happens once, and the outcome that is told is the true one.

use DDBLock::Test;

my $node = new_cluster('one', through => proxy,
	conf => "ddblock.request_timeout = '1min'\nddblock.keep_warm = off\n"
	  . "log_statement = none\n");
my $session = session($node);
my @faults = ('reset applied', 'error applied', qw(truncate corrupt close reset error duplicate
  lose_reply drop));

sub writes
{
	return grep { $_->{operation} eq 'UpdateItem' } proxy->log;
}

# The next request of an operation meets it: a kind, and perhaps "applied".
sub fault
{
	my ($fault, $operation) = @_;
	my ($kind, $applied) = split / /, $fault;

	proxy->fault($kind, operation => $operation, applied => defined $applied ? 1 : 0);
	return;
}

# What is swallowed is repeated when its time is over; on a busy machine others
# are, too, if they have as little.
sub be_impatient
{
	$node->append_conf('postgresql.conf', "ddblock.request_timeout = '500ms'\n");
	$node->reload;
	wait_for { $node->safe_psql('postgres', 'SHOW ddblock.request_timeout') eq '500ms' }
	'the reload';
	return;
}

foreach my $fault (@faults)
{
	my $copies = $fault eq 'duplicate' ? 1 : 2;

	be_impatient() if $fault eq 'lose_reply';
	proxy->reset_counts;
	fault($fault, 'UpdateItem');
	my $token = $session->query_safe(
		qq{SELECT ddb_lock_acquire('$fault', lease => '1h', data => 'kept')});
	my @writes = writes();
	my $item = dynamodb->item($fault);

	is($item->{fencingToken}{N}, $token, "$fault: the lock is acquired all the same");
	cmp_ok(scalar @writes, $fault =~ /^(lose_reply|drop)$/ ? '>=' : '==', $copies, "by $copies copies");
	# Each copy demands anew that no minimum lasts on.
	delete $_->{body}{ExpressionAttributeValues}{':past'} foreach @writes;
	is_deeply($writes[0]{body}, $writes[-1]{body}, 'of the very same write');
	ok(!$item->{isReleased} && $item->{data}, 'with its data');

	fault($fault, 'UpdateItem');
	$session->query_safe(qq{SELECT ddb_lock_renew('$fault')});
	is($session->query_safe(qq{SELECT ddb_lock_require('$fault')}),
		$token, 'it is renewed');
	isnt(dynamodb->item($fault)->{recordVersionNumber}{S},
		$item->{recordVersionNumber}{S}, 'with a new version');

	my $next = session($node);
	$next->send(qq{SELECT ddb_lock_acquire('$fault', lease => '1h')});
	wait_for_waiters($node, $fault, 1);
	fault($fault, 'UpdateItem');
	is($session->query_safe(qq{SELECT ddb_lock_release('$fault')}),
		't', 'it is released');
	cmp_ok($next->result, '>', $token, 'and handed over');
	is(dynamodb->item($fault)->{fencingToken}{N},
		$next->query_safe(qq{SELECT ddb_lock_require('$fault') + 255}),
		'which the item confirms: it has the last token that was reserved');

	fault($fault, 'UpdateItem');
	is($next->query_safe(qq{SELECT ddb_lock_release('$fault')}), 't', 'and released');
	ok(is_released($fault), 'which the item confirms');
	$next->quit;

	fault($fault, 'GetItem');
	is($session->query_safe(qq{SELECT held FROM ddb_lock_info('$fault')}),
		'f', 'it can be looked up');
	is(proxy->faults, 5, 'all of this met the fault');
}
is(stat_of($node, undef, 'leases_lost'), 0, 'no lease was lost');

#
# Renewals that nobody asked for, single and in batches
#
check_batches($node);
foreach my $fault ('reset applied', qw(lose_reply corrupt reset error))
{
	my @names = map { "$fault $_" } 1 .. 3;
	my $list = join ', ', map { "('$_')" } @names;
	my $tokens = $session->query_safe(
		qq{SELECT string_agg(ddb_lock_acquire(name, lease => '8s')::text, ',')
		   FROM (VALUES $list) v (name)});

	proxy->reset_counts;
	fault($fault, 'BatchExecuteStatement');
	wait_for { $node->safe_psql('postgres',
			q{SELECT min(renewals) FROM ddb_locks}) >= 1 } "renewals in spite of $fault";
	is( $session->query_safe(
			qq{SELECT string_agg(ddb_lock_require(name)::text, ',')
			   FROM (VALUES $list) v (name)}),
		$tokens, "$fault: a batch of renewals succeeds all the same");
	is(proxy->faults, 1, 'though it met the fault');
	$session->query_safe(q{SELECT ddb_lock_release_all()});
}
is(stat_of($node, undef, 'leases_lost'), 0, 'no lease was lost');

#
# An acquire that arrives after everybody has given up
#
# Every copy of it is held back, however many there are before it is cancelled; others
# have other leases, and what bars it passes.
my $other = new_cluster('two', table => 0, conf => "log_statement = none\n");

sub cancelled_acquire
{
	my ($name) = @_;

	proxy->reset_counts;
	proxy->fault('late_apply', operation => 'UpdateItem', match => '"3600000".*":first"',
		count => -1);
	$session->send(qq{SELECT ddb_lock_acquire('$name', lease => '1h')});
	wait_for { proxy->faults > 0 } 'the acquire';
	$node->safe_psql('postgres', qq{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
		WHERE state = 'active' AND query LIKE '%$name%1h%' AND pid <> pg_backend_pid()});
	$session->result;
	like($session->messages, qr/57014/, 'an acquire is cancelled');
	return;
}

sub late_copies_are_refused
{
	my @late;

	proxy->clear_faults;
	wait_for
	{
		@late = map { $_->{status} } grep { $_->{fault} } proxy->log;
		!grep { !defined } @late;
	}
	'the late copies';
	is(join(' ', @late), join(' ', (400) x @late), 'its late copies are refused');
	return;
}

sub nothing_is_left_of_it
{
	wait_for { $node->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') == 0 } 'the bar';
	return;
}

cancelled_acquire('late');
nothing_is_left_of_it();
is((dynamodb->item('late') // {})->{isReleased}{S}, '1', 'there was no item: now one keeps it out');
late_copies_are_refused();
is($other->safe_psql('postgres', q{SELECT ddb_lock_try_acquire('late')}), 't',
	'and the lock is free at once, for another cluster, too');

# Whoever holds the lock: the token in the item rises, and no more.
my $holder = session($other);
my $token = $holder->query_safe(q{SELECT ddb_lock_acquire('late')});
my $held = dynamodb->item('late');
cancelled_acquire('late');
nothing_is_left_of_it();
my $item = dynamodb->item('late');
my ($first) = map { $_->{body}{ExpressionAttributeValues}{':first'}{N} } grep { $_->{fault} } proxy->log;
cmp_ok($item->{fencingToken}{N}, '>=', $first, 'the token of a lock that another cluster holds is raised');
is($holder->query_safe(q{SELECT ddb_lock_require('late')}), $token, 'not that of its holder');
$_->{fencingToken} = $_->{recordVersionNumber} = undef foreach $item, $held;
is_deeply($item, $held, 'and nothing else');
is($holder->query_safe(q{SELECT ddb_lock_renew('late') > now()}), 't', 'the holder can renew it');
is($holder->query_safe(q{SELECT ddb_lock_release('late')}), 't', 'and release it');
late_copies_are_refused();
is($other->safe_psql('postgres', qq{SELECT ddb_lock_try_acquire('late') AND ddb_lock_token('late') > $token}), 't',
	'the lock is free at once');

# Its own next session does not wait for that.
cancelled_acquire('late');
like($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('late')}), qr/^\d+$/,
	'the next session of its own cluster gets the lock');
wait_for { is_released('late') } 'the lock of the session that ended';
late_copies_are_refused();
ok(is_released('late'), 'and change nothing');

$session->quit;
$holder->quit;
nothing_held_ok;
done_testing;
