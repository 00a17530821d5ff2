# Others change items in the table: an operator, Amazon's Java client,
# dynamolock for Go.

use DDBLock::Test;
use JSON::PP;
use Time::HiRes qw(time);

my $node = new_cluster('one',
	conf => "ddblock.lease_duration = '9s'\nddblock.on_lease_lost = none\nlog_statement = none\n");
my $session = session($node);
my $other = session($node);

sub held
{
	my ($name) = @_;
	return $session->ask("SELECT ddb_lock_token('$name') IS NOT NULL") eq 't';
}

#
# An operator interferes with a lock that is held
#
my %interferences = (
	'deleted' => sub { dynamodb->delete_item($_[0]) },
	'released' => sub {
		dynamodb->put_item({ %{ dynamodb->item($_[0]) }, isReleased => { S => '1' } });
	},
	'taken' => sub {
		dynamodb->put_item(dynamodb->java_item($_[0], owner => 'thief', lease_ms => 2000));
	},
);
foreach my $how (sort keys %interferences)
{
	$session->query_safe("SELECT ddb_lock_acquire('$how')");
	$interferences{$how}->($how);
	wait_for { !held($how) } "the loss of what was $how";

	like($session->error_of("SELECT ddb_lock_require('$how')"),
		qr/ERROR: +LK001: the lease on lock "$how" is lost\n.*DETAIL: .*$how/s,
		"a lock whose item is $how by somebody else is lost");
	like($session->error_of("SELECT ddb_lock_renew('$how')"),
		qr/ERROR: +LK001/, 'it cannot be renewed');
	like($session->error_of("SELECT ddb_xact_lock_acquire('$how')"),
		qr/ERROR: +LK001/, 'nothing stacks on it');
	is($session->query_safe("SELECT state FROM ddb_locks WHERE name = '$how'"),
		'lost', 'the view says so');
	is($session->ask("SELECT ddb_lock_release('$how')"), 'f', 'releasing it returns false');
	like($session->messages, qr/WARNING: +LK001: .*lost before it was released.*$how/s,
		'with a warning');
	$node->wait_for_log(qr/the lease of lock "$how" is lost: .*($how|thief)/);
	pass('the server log tells who has it');
	like($session->ask("SELECT ddb_lock_acquire('$how', wait => '30s')"),
		qr/^\d+$/, 'it can be acquired again');
	$session->query_safe("SELECT ddb_lock_release('$how')");
}

# The moment of release is when the loss is found.
$session->query_safe(q{SELECT ddb_lock_acquire('a', lease => '1h')});
dynamodb->put_item(dynamodb->java_item('a', owner => 'thief'));
is($session->query_safe(q{SELECT ddb_lock_release('a')}),
	't', 'a release before the deadline is true, whatever became of the item');
is(dynamodb->item('a')->{ownerName}{S}, 'thief', 'and leaves others alone');
dynamodb->delete_item('a');

#
# The Java client's items
#
dynamodb->put_item(dynamodb->java_item('java', lease_ms => 5000));
is( $session->query_safe(
		q{SELECT NOT ddb_lock_try_acquire('java'), held, owner, lease,
			token IS NULL AND pid IS NULL FROM ddb_lock_info('java')}),
	't|t|java-service|00:00:05|t',
	'a lock of the Java client is respected');

# Its heartbeats: a version a second, three times.
$session->send(q{SELECT ddb_lock_acquire('java')});
wait_for_waiters($node, 'java', 1);
my $started = time;
my ($beats, $last) = (0, $started);
wait_for
{
	if (time - $last >= 1)
	{
		$last = time;
		$beats++;
		dynamodb->put_item(dynamodb->java_item('java', lease_ms => 5000));
	}
	$beats == 3;
}
'heartbeats';
ok($session->busy, 'as long as its heart beats');
like($session->result, qr/^\d+$/, 'it is taken over');
cmp_ok(time - $last, '>=', 5, 'one lease after the last heartbeat');

# Rust's dynamodb_lock up to 0.4.3 writes seconds in the same format: a holder that lives.
dynamodb->put_item(dynamodb->java_item('rust', owner => 'rust-service', lease_ms => 2));
$session->send(q{SELECT ddb_lock_acquire('rust')});
wait_for_waiters($node, 'rust', 1);
is($other->ask(q{SELECT lease FROM ddb_lock_info('rust')}),
	'00:00:02', 'a lease below 1,000 may be in seconds');
$node->wait_for_log(qr/WARNING: .*"leaseDuration" is taken for seconds.*\n.*DETAIL: +It is 2, .*"rust-service"/);
pass('the log tells so');
$started = $last = time;
wait_for
{
	if (time - $last >= 0.5)
	{
		$last = time;
		dynamodb->put_item(dynamodb->java_item('rust', owner => 'rust-service', lease_ms => 2));
	}
	time - $started >= 2 || !$session->busy;
}
'heartbeats';
ok($session->busy, 'its holder is not taken for dead');
like($session->result, qr/^\d+$/, 'until its heart stops');
cmp_ok(time - $last, '>=', 2, 'for that many seconds');
$session->query_safe(q{SELECT ddb_lock_release('rust')});

# What the Java client reads of ours.
sub readable_by_java
{
	my ($name) = @_;
	my $item = dynamodb->item($name);

	return
		 ($item->{ownerName}{S} // '') ne ''
	  && ($item->{leaseDuration}{S} // '') =~ /^[1-9]\d*$/
	  && ($item->{recordVersionNumber}{S} // '') =~ /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
	  && (!exists $item->{data} || exists $item->{data}{B})
	  && (!exists $item->{isReleased} || $item->{isReleased}{S} eq '1');
}
ok(readable_by_java('java'), 'what was taken over can be read by the Java client');
my $version = dynamodb->item('java')->{recordVersionNumber}{S};
wait_for { dynamodb->item('java')->{recordVersionNumber}{S} ne $version } 'a renewal';
ok(readable_by_java('java'), 'what was renewed, too');
$other->send(q{SELECT ddb_lock_acquire('java', data => 'payload')});
wait_for_waiters($node, 'java', 1);
$session->query_safe(q{SELECT ddb_lock_release('java')});
my $token = $other->result;
ok(readable_by_java('java'), 'what was handed over, too');
is(dynamodb->item('java')->{leaseDuration}{S}, '9000', 'leases are in milliseconds');
$other->query_safe(q{SELECT ddb_lock_release('java')});
my $item = dynamodb->item('java');
ok(readable_by_java('java') && exists $item->{isReleased} && !exists $item->{data}
	  && !exists $item->{holder},
	'what was released, too; data and holder are gone');

# It re-acquires with PutItem, which wipes what it does not know, and releases by
# deleting or by marking.
dynamodb->put_item(dynamodb->java_item('java',
	extra => { isReleased => { S => '1' } }));
cmp_ok($session->query_safe(q{SELECT ddb_lock_acquire('java')}),
	'>', $token, 'a lock that it marked released is free, and tokens still rise');
$session->query_safe(q{SELECT ddb_lock_release('java')});
dynamodb->delete_item('java');
cmp_ok($session->query_safe(q{SELECT ddb_lock_acquire('java')}),
	'>', $token, 'so is one that it deleted');
$session->query_safe(q{SELECT ddb_lock_release('java')});

# It has updated our released item: our attributes are still there.
dynamodb->put_item({
	%{ dynamodb->java_item('java', lease_ms => 2000) },
	fencingToken => { N => "$token" },
	unknown => { L => [ { BOOL => JSON::PP::true }, { NULL => JSON::PP::true } ] } });
like($session->ask(q{SELECT ddb_lock_acquire('java', wait => '30s')}),
	qr/^\d+$/, 'attributes of others do not disturb');
is(dynamodb->item('java')->{unknown}{L}[0]{BOOL}, JSON::PP::true, 'and are left alone');
$session->query_safe(q{SELECT ddb_lock_release('java')});

#
# With withUpdateExistingLockRecord(true) it leaves our attributes on its items
#
my $unheld = 'pid IS NULL AND datname IS NULL AND usename IS NULL AND host IS NULL '
  . 'AND application_name IS NULL AND acquired_at IS NULL AND token IS NULL';
$token = $session->query_safe(q{SELECT ddb_lock_acquire('update')});
is($other->query_safe(qq{SELECT $unheld, pid, token FROM ddb_lock_info('update')}),
	'f|' . backend_pid($session) . "|$token", 'holder and token of a lock of ours are shown');

# Taken over, as from a session that is dead
dynamodb->java_update('update');
wait_for { !held('update') } 'the loss';
$session->ask(q{SELECT ddb_lock_release('update')});
is(dynamodb->item('update')->{holder}{M}{pid}{N}, backend_pid($session),
	"a Java client's take-over leaves our holder");
is($other->query_safe(qq{SELECT held, owner, $unheld FROM ddb_lock_info('update')}),
	't|java-service|t', 'which is not shown as its own, nor is our token');
is($other->query_safe(qq{SELECT state, owner, $unheld FROM ddb_lock_list('update')}),
	'held|java-service|t', 'nor in the list');
$other->send(q{SET deadlock_timeout = '10ms'; SELECT ddb_lock_acquire('update', wait => '5s')});
$other->result;
like($other->messages,
	qr/NOTICE: .*\n.*held by owner "java-service", seen here for .*ERROR: .*\n.*held by owner "java-service", seen here/s,
	'nor to those who wait');
unlike($other->messages, qr/process \d/, 'who hear of no process');
dynamodb->java_release('update');
is($other->query_safe(q{SELECT state, released_at, pid FROM ddb_lock_list('update')}),
	'released||', 'when it released nobody knows');
my $after = $session->query_safe(q{SELECT ddb_lock_acquire('update')});
cmp_ok($after, '>', $token, 'the token that it left is the floor of the next one');
$session->query_safe(q{SELECT ddb_lock_release('update')});

# Released by us long ago, and by it just now
dynamodb->put_item({ %{ dynamodb->item('update') },
		releasedAt => { N => int(time) - 9 * 86400 },
		fencingToken => { N => $token - 9 * 86400_000_000 } });
is($session->query_safe(q{SELECT state, released_at < now() - interval '8 days' FROM ddb_lock_list('update')}),
	'released|t', 'our own release is known');
dynamodb->java_update('update');
is($session->query_safe(qq{SELECT state, released_at, $unheld FROM ddb_lock_list('update')}),
	'held||t', 'a release that is over is not shown');
dynamodb->java_release('update');
is($session->query_safe(q{SELECT released_at FROM ddb_lock_list('update')}),
	'', 'our release is not taken for its');
is($session->query_safe(q{SELECT ddb_lock_purge('1 day')}),
	'0', 'and what was released a moment ago is not deleted');
$session->query_safe(q{SELECT ddb_lock_acquire('update'), ddb_lock_release('update')});
is(dynamodb->item('update')->{releasedVersion}{S}, dynamodb->item('update')->{recordVersionNumber}{S},
	'a release says of which version it is');

# Its held lock would keep our time-to-live: none is written where it is seen
$node->append_conf('postgresql.conf', "ddblock.released_item_ttl = '1d'\n");
$node->reload;
wait_for
{
	$session->query_safe(q{SELECT ddb_lock_acquire('ttl'), ddb_lock_release('ttl')});
	exists dynamodb->item('ttl')->{ttl};
}
'a time-to-live';
dynamodb->java_update('ttl');
$session->query_safe(q{SELECT ddb_lock_try_acquire('ttl')});
$session->query_safe(q{SELECT ddb_lock_acquire('other ttl'), ddb_lock_release('other ttl')});
ok(!exists dynamodb->item('other ttl')->{ttl}, 'where a Java client is seen, no time-to-live is written');
ok($node->log_contains(qr/stops setting a time-to-live on released locks, because owner "java-service"/), 'the log tells why');
dynamodb->delete_item('ttl');

# An owner without a name
my $nameless = dynamodb->java_item('nameless', lease_ms => 60000);
delete $nameless->{ownerName};
dynamodb->put_item($nameless);
$other->send(q{SET deadlock_timeout = '10ms'; SELECT ddb_lock_acquire('nameless', wait => '2s')});
$other->result;
like($other->messages,
	qr/NOTICE: .*\n.*DETAIL: +It is held, but its item names no owner, seen here for .*ERROR: .*\n.*names no owner/s,
	'an item without an owner says so');
dynamodb->delete_item('nameless');
$session->query_safe(q{SELECT ddb_lock_acquire('nameless')});
dynamodb->put_item($nameless);
wait_for { !held('nameless') } 'the loss';
like($session->query_safe(q{SELECT last_loss FROM ddb_stats}),
	qr/"nameless" .*: an owner without a name has taken it over/, 'also as the last loss');
$session->ask(q{SELECT ddb_lock_release('nameless')});
dynamodb->delete_item('nameless');

# A lease of Long.MAX_VALUE milliseconds: held, for longer than anybody waits
dynamodb->put_item(dynamodb->java_item('ages', lease_ms => '9223372036854775807'));
is($session->query_safe(q{SELECT held, lease > '290 years', NOT ddb_lock_try_acquire('ages')
		FROM ddb_lock_info('ages')}), 't|t|t', 'a lease of 2^63-1 ms is one');
is($session->query_safe(q{SELECT state, lease > '290 years' FROM ddb_lock_list('ages', '50 ms')}),
	'held|t', 'also in the list');
is($session->ask(q{SELECT ddb_lock_force_release('ages')}), 't', 'which ends by force');

#
# What others write steers no terminal, and no reader of the log
#
my $nasty = "java\x{1b}[31m\nFATAL:  \x{85}\x{9b}m\x{202e}done\x{7f}\t\x{2028}\x{2066}\x{e9}";
my $quiet = qr/java\\x1B\[31m\\x0AFATAL:  \\xC2\\x85\\xC2\\x9Bm\\xE2\\x80\\xAEdone\\x7F\\x09\\xE2\\x80\\xA8\\xE2\\x81\\xA6/;
my $steering = qr/\x1b|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]|\nFATAL/;
dynamodb->put_item(dynamodb->java_item('nasty', owner => $nasty));
like($session->error_of(q{SET deadlock_timeout = '10ms'; SELECT ddb_lock_acquire('nasty', wait => '5s')}),
	qr/NOTICE: .*$quiet.*ERROR: .*DETAIL: .*$quiet/s, 'a foreign owner in a notice and in an error');
is($session->ask(q{SELECT ddb_lock_force_release('nasty')}), 't', 'it loses its lock');
like($session->messages, qr/WARNING: .*$quiet/s, 'and is named in a warning');
$session->query_safe(q{RESET deadlock_timeout; SELECT ddb_lock_acquire('nasty')});
dynamodb->put_item(dynamodb->java_item('nasty', owner => $nasty));
wait_for { $node->log_contains(qr/"$quiet\S*" has taken it over/) } 'the loss in the log';
$session->ask(q{SELECT ddb_lock_release('nasty')});
unlike($session->messages, $steering, 'also when the loss is told');
unlike($session->query_safe(q{SELECT last_loss FROM ddb_stats WHERE last_loss IS NOT NULL}), $steering,
	'nor in the statistics');
is($session->query_safe(q{SELECT octet_length(owner) FROM ddb_lock_info('nasty')}),
	do { my $bytes = $nasty; utf8::encode($bytes); length $bytes },
	'a column has it as it is');
dynamodb->delete_item('nasty');
my $name = q{E'a\x1b[31m\nFATAL:  \xC2\x9B'};
like($session->error_of(qq{SELECT ddb_lock_require($name)}),
	qr/lock "a\\x1B\[31m\\x0AFATAL:  \\xC2\\x9B" is not held/, "so is a lock's name");
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ s/^.*STATEMENT: .*(\n\t.*)*//mgr, $steering,
	'none of that is in the log');

#
# dynamolock writes durations with a unit
#
dynamodb->put_item(dynamodb->java_item('go', lease_ms => '1m30s'));
is($session->query_safe(q{SELECT held, lease FROM ddb_lock_info('go')}),
	't|00:01:30', "a lease in dynamolock's words");
dynamodb->put_item(dynamodb->java_item('go', lease_ms => '2s'));
$started = time;
like($session->ask(q{SELECT ddb_lock_acquire('go', wait => '30s')}),
	qr/^\d+$/, 'a dead lock of dynamolock is taken over');
cmp_ok(time - $started, '>=', 2, 'one lease after it was seen first');
$session->query_safe(q{SELECT ddb_lock_release('go')});

#
# Tokens that others have left
#
my %released = (isReleased => { S => '1' });
dynamodb->put_item(dynamodb->java_item('token',
	extra => { %released, fencingToken => { N => '9000000000000000000' } }));
is($session->query_safe(q{SELECT ddb_lock_acquire('token')}),
	'9000000000000000001', 'a token from a clock that runs ahead is surpassed');
$session->query_safe(q{SELECT ddb_lock_release('token')});

foreach my $low ('0', '-1', '1.5')
{
	dynamodb->put_item(dynamodb->java_item('low',
		extra => { %released, fencingToken => { N => $low } }));
	like($session->query_safe(q{SELECT ddb_lock_acquire('low')}),
		qr/^\d{16}$/, "so is $low, which is no token");
	$session->query_safe(q{SELECT ddb_lock_release('low')});
}

foreach my $bad ({ N => '9223372036854775807' }, { N => '9223372036854775808' },
	{ S => '1' })
{
	dynamodb->put_item(dynamodb->java_item('bad',
		extra => { %released, fencingToken => $bad }));
	like($session->error_of(q{SELECT ddb_lock_acquire('bad')}),
		qr/ERROR: +55000: .*"bad".*fencingToken.*HINT: .*ddb_lock_force_release/s,
		'one that cannot be surpassed is an error: ' . join ' ', %$bad);
	ok(is_released('bad'), 'and nothing is held');
}
dynamodb->delete_item('bad');
like($session->query_safe(q{SELECT ddb_lock_acquire('bad')}),
	qr/^\d{16}$/, 'when that item is deleted, the lock can be acquired');
$session->query_safe(q{SELECT ddb_lock_release('bad')});

$_->quit foreach $session, $other;
nothing_held_ok;
done_testing;
