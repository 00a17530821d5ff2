# Amazon's lock client for Java and ddblock on one table: no lock is held twice, whoever waits gets
# it, also from a holder that was killed, and nobody destroys what the other one's item says.

use DDBLock::Test;
use DDBLock::Client;
use Time::HiRes qw(time);

if (my $missing = DDBLock::Client::missing('java'))
{
	plan skip_all => $missing;
}

my $LEASE = 8;
my $LOOK = 'refresh=50';
my %conf = (conf => "ddblock.lease_duration = '${LEASE}s'\n");
my ($one, $two, $doomed) = map { new_cluster($_, %conf) } qw(one two doomed);
my $sql = session($one);
my $other = session($two);
my $last_session = session($doomed);

# One that behaves as the client does by default, and one that keeps items.
my %java = map { $_ => java() } '', 'keep';
my ($dying, $dying_too, @heirs) = map { java() } 1 .. 4;

sub java { return DDBLock::Client->start('java', $_[0] // dynamodb->url, 1000 * $LEASE, 2000); }
sub owner { return (dynamodb->item($_[0]) // {})->{ownerName}{S}; }
sub data { my ($name) = @_; return dynamodb->item($name)->{data}{B}; }

# Each holder renews at least every third of the lease, and not twice in two seconds.
sub longer_than_the_lease { my ($name, $holders) = @_; wait_for_renewals($name, 6 * ($holders // 1)); return; }

# What decides who holds it is as it was; who holds it may have renewed it.
sub unharmed_ok
{
	my ($before, $what) = @_;
	my $after = dynamodb->item($before->{key}{S});

	foreach my $item ($before, $after)
	{
		delete $item->{recordVersionNumber};
		delete $item->{shared}{M}{h}{M}{$_}{M}{v} foreach keys %{ $item->{shared}{M}{h}{M} // {} };
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply($after, $before, $what);
	return;
}

sub does_not_get_ok
{
	my ($client, $name, $mode) = @_;
	my $before = dynamodb->item($name);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($client->ask("acquire $name try $mode"), qr/^LockCurrentlyUnavailableException/, "Java does not get \"$name\"");
	unharmed_ok($before, '... and leaves it as it was');
	return;
}

#
# Each excludes the other, for longer than a lease; each waits, and gets what is released
#
my %names = map { $_ => "pass$_" } keys %java;
my %token;

$token{$_} = $sql->query_safe("SELECT ddb_lock_acquire('$names{$_}')") foreach keys %java;
does_not_get_ok($java{$_}, $names{$_}, $_) foreach keys %java;
is($java{''}->ask('look pass') =~ s{/.*? }{/... }r, 'one/... ' . 1000 * $LEASE, 'Java sees who holds it, and the lease');
$java{$_}->send("acquire $names{$_} $LOOK $_") foreach keys %java;
longer_than_the_lease($names{''});
foreach my $mode (keys %java)
{
	ok($java{$mode}->busy, 'Java waits while a session holds the lock') or diag($java{$mode}->result);
	is($sql->query_safe("SELECT ddb_lock_release('$names{$mode}')"), 't', '... which the session releases');
	is($java{$mode}->result, 'held', '... and Java gets it');
	is($sql->query_safe("SELECT ddb_lock_try_acquire('$names{$mode}')"), 'f', '... alone');
	is($sql->query_safe("SELECT held, owner ~ '^java-', token IS NULL FROM ddb_lock_info('$names{$mode}')"), 't|t|t',
		'... as ddblock sees');
}
is(exists dynamodb->item('pass')->{fencingToken}, '', 'by default, Java removes the token');
is(dynamodb->item('passkeep')->{fencingToken}{N}, $token{keep}, 'an update keeps it');

my %waiting = ('' => session($one), keep => session($two));
$waiting{$_}->send("SELECT ddb_lock_acquire('$names{$_}')") foreach keys %java;
longer_than_the_lease($names{''});
foreach my $mode (keys %java)
{
	ok($waiting{$mode}->busy, 'a session waits while Java holds the lock');
	is($java{$mode}->ask("release $names{$mode}"), 'released', '... which Java releases');
	cmp_ok($waiting{$mode}->result, '>', $token{$mode}, '... and the session gets it, with a higher token');
	does_not_get_ok($java{$mode}, $names{$mode}, $mode);
	is($waiting{$mode}->query_safe("SELECT ddb_lock_release('$names{$mode}')"), 't', 'until it is released');
	is($java{$mode}->ask("acquire $names{$mode} $mode"), 'held', 'Java gets what is released');
	is($java{$mode}->ask("release $names{$mode}"), 'released', '... and releases it');
}
is(dynamodb->item('pass'), undef, 'by default, Java deletes the item');
is(dynamodb->item('passkeep')->{isReleased}{S}, '1', 'or marks it');
is($java{$_}->ask("acquire new/java$_ $_"), 'held', 'Java creates a lock') foreach keys %java;
is($sql->query_safe("SELECT ddb_lock_try_acquire('new/java$_')"), 'f', '... that a session does not get') foreach keys %java;
is($java{$_}->ask("release new/java$_"), 'released', '... until Java has released it') foreach keys %java;
is($sql->query_safe("SELECT ddb_lock_try_acquire('new/java$_'), ddb_lock_release('new/java$_')"), 't|t', '... and then it does')
  foreach keys %java;

#
# Data: of a holder; kept, replaced and removed
#
is($java{keep}->ask('acquire data keep data=java1'), 'held', 'Java holds a lock with data');
is($sql->query_safe(q{SELECT convert_from(data, 'UTF8') FROM ddb_lock_info('data')}), 'java1', '... which ddblock shows');

# ... until its next heartbeat, which is the client's own.
wait_for
{
	$java{keep}->ask('heartbeat data 9000 java2') eq 'sent'
	  && $sql->query_safe(q{SELECT convert_from(data, 'UTF8'), lease FROM ddb_lock_info('data')}) eq 'java2|00:00:09';
}
'what Java changes by a heartbeat';
pass('... which changes data and lease');
$java{keep}->ask('release data');
ok(data('data'), 'its release leaves the data');
$sql->query_safe(q{SELECT ddb_lock_acquire('data')});
is(data('data'), undef, 'a session that acquires without data removes them');
$sql->query_safe(q{SELECT ddb_lock_release('data')});
$java{keep}->ask($_) foreach 'acquire data keep data=java3', 'release data';
$sql->query_safe(q{SELECT ddb_lock_acquire('data', data => 'sql')});
is(data('data'), 'c3Fs', '... one with data replaces them');
$sql->query_safe(q{SELECT ddb_lock_release('data')});
is(data('data'), undef, "ddblock's release removes them");

#
# Additional attributes, and data that changes: each shows the other's, and removes them
#
is($java{keep}->ask('acquire team keep team=java'), 'held', 'Java holds a lock with an attribute');
is($sql->query_safe(q{SELECT attributes FROM ddb_lock_info('team')}), '{"team": "java"}', '... which ddblock shows');
$java{keep}->ask('release team');
$sql->query_safe(q{SELECT ddb_lock_acquire('team', data => 'old', attributes => '{"team": "sql"}')});
is($java{''}->ask('team team'), 'old sql', q{Java shows a session's data and attribute});
$sql->query_safe(q{SELECT ddb_lock_renew('team', data => 'new')});
is($java{''}->ask('team team'), 'new sql', '... and data that the session changes');
$sql->query_safe(q{SELECT ddb_lock_release('team')});
is($java{keep}->ask('acquire team keep'), 'held', 'Java gets the lock');
is($sql->query_safe(q{SELECT attributes IS NULL FROM ddb_lock_info('team')}), 't', '... without them');
$java{keep}->ask('release team');
$java{keep}->ask($_) foreach 'acquire team keep team=java', 'release team';
$sql->query_safe(q{SELECT ddb_lock_acquire('team')});
is($sql->query_safe(q{SELECT attributes IS NULL FROM ddb_lock_info('team')}), 't', q{what Java leaves is not a session's});
$sql->query_safe(q{SELECT ddb_lock_release('team')});

#
# Who shares a lock, or has permits, holds it; everybody's release lets Java in
#
my %share = (
	shared => [ "ddb_lock_%sacquire_shared('shared')", "ddb_lock_release('shared')" ],
	permits => [ "ddb_semaphore_%sacquire('permits', 3)", "ddb_lock_release('permits')" ]);
my %waiter = (shared => $java{''}, permits => $java{keep});
my %mode = (shared => '', permits => 'keep');

sub try { return sprintf 'SELECT ' . $share{ $_[0] }[0], 'try_'; }
sub take { return sprintf 'SELECT ' . $share{ $_[0] }[0], ''; }

$_->query_safe(take('shared') . '; ' . take('permits')) foreach $sql, $other;
does_not_get_ok($waiter{$_}, $_, $mode{$_}) foreach keys %share;
like($java{''}->ask("look $_"), qr{^shared/}, '... and sees that somebody shares it') foreach keys %share;
my %before = map { $_ => dynamodb->item($_) } keys %share;
$waiter{$_}->send("acquire $_ $LOOK $mode{$_}") foreach keys %share;
longer_than_the_lease('shared', 2);
foreach my $name (keys %share)
{
	ok($waiter{$name}->busy, "Java waits while two clusters have \"$name\"");
	unharmed_ok($before{$name}, '... and leaves it as it was');
	is($sql->query_safe("SELECT $share{$name}[1]"), 't', 'one of them leaves');
}
wait_for_renewals($_, 1) foreach keys %share;	# Java looks twenty times a second
foreach my $name (keys %share)
{
	ok($waiter{$name}->busy, "... Java still waits for \"$name\"");
	is($other->query_safe("SELECT $share{$name}[1]"), 't', 'the last one leaves');
	is($waiter{$name}->result, 'held', '... and Java gets it');
	is($sql->query_safe(try($name)), 'f', '... alone');
}
$sql->send(take('shared'));
$other->send(take('permits'));
longer_than_the_lease('shared');
ok($_->busy, 'a session waits to share what Java holds') foreach $sql, $other;
is($waiter{$_}->ask("release $_"), 'released', "Java releases \"$_\"") foreach keys %share;
cmp_ok($_->result, '>', 0, '... and the session gets it') foreach $sql, $other;
is($other->query_safe(try('shared')), 't', '... and others can share it');

#
# Lists
#
is($java{keep}->ask('list'), join(' ', sort map { $_->{key}{S} } dynamodb->items), 'Java lists all of these items');
$java{''}->ask('acquire listed');
is($sql->query_safe(q{SELECT state, owner ~ '^java-' FROM ddb_lock_list('listed')}), 'held|t', "ddblock lists Java's");
$java{''}->ask('release listed');
$_->query_safe('SELECT ddb_lock_release_all()') foreach $sql, $other;

#
# Release by force: who has lost a lock leaves the next holder's item alone
#
$java{$_}->ask("acquire force$_ $_") foreach keys %java;
foreach my $mode (keys %java)
{
	is($other->ask("SELECT ddb_lock_force_release('force$mode')"), 't', "an operator releases a lock of Java's by force");
	cmp_ok($sql->query_safe("SELECT ddb_lock_acquire('force$mode')"), '>', 0, '... a session gets it');
	is($java{$mode}->ask("release force$mode"), 'lost', '... Java learns of it when it releases');
	like(owner("force$mode"), qr{^one/}, '... which the session does not notice');
	is($sql->query_safe("SELECT ddb_lock_require('force$mode') > 0, ddb_lock_release('force$mode')"), 't|t', '... nor later');
}
$waiting{''}->query_safe(q{SET ddblock.on_lease_lost = none; SELECT ddb_lock_acquire('forced')});
$other->ask(q{SELECT ddb_lock_force_release('forced')});
is($java{''}->ask('acquire forced'), 'held', "... or one of a session's, and Java gets it");
wait_for { $one->log_contains(qr/lease of lock "forced" is lost: /) } 'the next renewal';
$waiting{''}->ask(q{SELECT ddb_lock_release('forced')});
like(owner('forced'), qr/^java-/, '... which the release of the session does not change');
is($java{''}->ask('release forced'), 'released', '... so that Java can release it');

#
# Killed holders: everybody who waits gets the lock, after its lease and not before
#
is($dying->ask($_), 'held', 'Java holds a lock') foreach 'acquire killed1 data=old', 'acquire killed2';
is($dying_too->ask('acquire killed3 keep'), 'held', 'another one holds another');
$last_session->query_safe(join ';', q{SELECT ddb_lock_acquire('killed4', data => 'old')},
	q{SELECT ddb_lock_acquire('killed5', data => 'old')}, q{SELECT ddb_lock_acquire_shared('killed6')},
	q{SELECT ddb_semaphore_acquire('killed7', 3)});
my @waiting = (
	[ 'killed1', session($one), 'SELECT ddb_lock_acquire_shared' ],
	[ 'killed2', session($two), 'SELECT ddb_lock_acquire' ],
	[ 'killed3', session($one), 'SELECT ddb_lock_acquire' ],
	[ 'killed4', $heirs[0], '', "$LOOK keepdata" ],
	[ 'killed5', $heirs[1], 'keep', "$LOOK keep data=new" ],
	[ 'killed6', $java{''}, '', $LOOK ],
	[ 'killed7', $java{keep}, 'keep', "$LOOK keep" ]);
foreach my $wait (@waiting)
{
	my ($name, $waiter, $how, $options) = @$wait;

	$waiter->send($options ? "acquire $name $options" : "$how('$name')");
}
longer_than_the_lease('killed2');
ok($_->[1]->busy, "\"$_->[0]\" is waited for while its holder lives") foreach @waiting;

# When each of them was written last: not before $since{NAME}.
my (%version, %since);
my $looked = time;
wait_for
{
	my $now = time;

	foreach my $name (map { $_->[0] } @waiting)
	{
		my $is = dynamodb->item($name)->{recordVersionNumber}{S};

		$since{$name} = $looked if ($version{$name} // $is) ne $is;
		$version{$name} = $is;
	}
	$looked = $now;
	keys %since == @waiting;
}
'each holder to renew';
my %lease = map { $_->[0] => $LEASE } @waiting;
$lease{killed1} = 1.5 * $LEASE;
is($dying->ask("heartbeat killed1 ${\ (1000 * $lease{killed1}) } old"), 'sent', "Java's last heartbeat makes its lease longer");
my $killed = time;
$_->kill foreach $dying, $dying_too;
DDBLock::Client::kill_cluster($doomed);
my %got;
wait_for
{
	foreach my $wait (grep { !$got{ $_->[0] } && !$_->[1]->busy } @waiting)
	{
		$got{ $wait->[0] } = time - $killed;
	}
	keys %got == @waiting;
}
'all who wait';
foreach my $wait (@waiting)
{
	my ($name, $waiter) = @$wait;

	like($waiter->result, qr/^(held|\d+)$/, "\"$name\" is taken over");
	cmp_ok($killed + $got{$name} - $since{$name}, '>', 0.95 * $lease{$name}, '... not before its lease is over');
	cmp_ok($got{$name}, '<', $lease{$name} + $LEASE, '... and not much later');
	note(sprintf '"%s": %.2f s', $name, $got{$name});
}
is($waiting[3][1]->ask('data killed4'), 'old', 'Java has kept data that a session wrote');
is($waiting[4][1]->ask('data killed5'), 'new', '... or replaced them');
is($sql->query_safe("SELECT ddb_lock_try_acquire('$_->[0]')"), 'f', "\"$_->[0]\" has its holder") foreach @waiting;
is($sql->query_safe("SELECT ddb_lock_try_acquire_shared('killed6'), ddb_semaphore_try_acquire('killed7', 3)"), 'f|f',
	'nobody shares what Java has taken over');
is($waiting[$_][1]->ask("release $waiting[$_][0]"), 'released', 'Java releases it') foreach 3 .. 6;
is($sql->query_safe(q{SELECT ddb_lock_try_acquire_shared('killed6'), ddb_semaphore_try_acquire('killed7', 3)}), 't|t',
	'... and then others can');
is(dynamodb->item('killed7')->{shared}{M}{total}{N}, 1, '... and the dead permit is not counted');

#
# How often Java looks
#
$sql->query_safe(q{SELECT ddb_lock_acquire('looks')});
foreach my $look ([ 'refresh=100', 0.1, 10 ], [ '', 1, 3 ])
{
	my ($options, $period, $looks) = @$look;
	my $java = java(proxy->url);

	$java->ready;
	proxy->reset_counts;
	$java->send("acquire looks $options");
	wait_for { proxy->forwarded('GetItem') > 0 } 'its first look';
	my $began = time;
	my $before = proxy->forwarded('GetItem');
	wait_for { proxy->forwarded('GetItem') >= $before + $looks } 'its last look';
	my $took = time - $began;
	cmp_ok($took, '>', 0.9 * ($looks - 1) * $period, 'Java looks no more often than every ' . ($options || 'second'));
	cmp_ok($took, '<', 0.9 * $looks, '... but more often than every second') if $period < 1;
	note(sprintf '%d reads in %.2f s', $looks, $took);
	ok($java->busy, '... and waits');
	$java->kill;
}

# What ends as sessions do: in order.
$last_session->gone;
$_->quit foreach $sql, $other, values %waiting, map { $_->[1] } @waiting[ 0 .. 2 ];
$_->stop foreach values %java, @heirs;
nothing_held_ok;
done_testing;
