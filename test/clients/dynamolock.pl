# dynamolock (Go) and ddblock on one table. ddblock waits for dynamolock's locks, and takes them when
# they are released or dead. dynamolock cannot read a lease in ddblock's format, which is that of
# Amazon's client: it gets nothing that has such an item, and harms nothing.

use DDBLock::Test;
use DDBLock::Client;
use Time::HiRes qw(time);

foreach my $kind (qw(go java))
{
	my $missing = DDBLock::Client::missing($kind) // next;

	plan skip_all => $missing;
}

my $LEASE = 8;
my %conf = (conf => "ddblock.lease_duration = '${LEASE}s'\n");
my ($one, $two, $doomed) = map { new_cluster($_, %conf) } qw(one two doomed);
my $sql = session($one);
my $other = session($two);
my $last_session = session($doomed);
my ($go, $dying) = (go(), go());
my $java = DDBLock::Client->start('java', dynamodb->url, 1000 * $LEASE, 2000);

# A heartbeat renews every two seconds.
sub longer_than_the_lease { my ($name) = @_; wait_for_renewals($name, 6); return; }

sub go { return DDBLock::Client->start('go', dynamodb->url, 1000 * $LEASE, 2000); }

# Refused at once, as often as it tries, and the item is as it was, but for renewals.
sub cannot_read_ok
{
	my ($name, $what) = @_;
	my $before = dynamodb->item($name);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	like($go->ask("acquire $name"), qr/cannot parse lease duration/, "$what: dynamolock cannot read it");
	my $after = dynamodb->item($name);
	foreach my $item ($before, $after)
	{
		delete $item->{recordVersionNumber};
		delete $item->{shared}{M}{h}{M}{$_}{M}{v} foreach keys %{ $item->{shared}{M}{h}{M} // {} };
	}
	is_deeply($after, $before, '... and leaves it as it was');
	return;
}

#
# dynamolock's locks
#
foreach my $mode ('', 'delete')
{
	my $name = "go$mode";
	my $waiter = session($two);

	is($go->ask("acquire $name data=go $mode"), 'held', 'dynamolock holds a lock');
	is($sql->query_safe("SELECT ddb_lock_try_acquire('$name')"), 'f', '... a session does not get it');
	is($sql->query_safe("SELECT ddb_lock_try_acquire_shared('$name'), ddb_semaphore_try_acquire('$name', 3)"), 'f|f', '... in no way');
	is($sql->query_safe("SELECT held, owner ~ '^go-', token IS NULL, lease, convert_from(data, 'UTF8')
		FROM ddb_lock_info('$name')"), "t|t|t|00:00:0$LEASE|go", '... but sees it');
	$waiter->send("SELECT ddb_lock_acquire('$name')");
	longer_than_the_lease($name);
	ok($waiter->busy, '... and waits for longer than a lease');
	is($go->ask("release $name"), 'released', 'dynamolock releases it');
	cmp_ok($waiter->result, '>', 0, '... and the session gets it');
	is(dynamodb->item($name)->{data}, undef, "... without dynamolock's data");
	cannot_read_ok($name, 'held by a session');
	is($waiter->query_safe("SELECT ddb_lock_release('$name')"), 't', 'the session releases it');
	cannot_read_ok($name, 'released by a session');
	$waiter->quit;
	dynamodb->delete_item($name);
	is($go->ask("acquire $name $mode"), 'held', 'when somebody has deleted the item, dynamolock gets the lock');
	is($go->ask("release $name"), 'released', '... and releases it');
}

#
# ddblock's locks that are shared, and those that nobody renews any more
#
$_->query_safe(q{SELECT ddb_lock_acquire_shared('shared'), ddb_semaphore_acquire('permits', 3)}) foreach $sql, $other;
cannot_read_ok('shared', 'shared by two clusters');
cannot_read_ok('permits', 'a semaphore of two clusters');
is($_->query_safe(q{SELECT ddb_lock_require('shared') > 0, ddb_lock_require('permits') > 0, ddb_lock_release_all()}),
	't|t|2', '... which have both') foreach $sql, $other;
$last_session->query_safe(q{SELECT ddb_lock_acquire('killed')});
is($dying->ask("acquire $_"), 'held', "dynamolock holds \"$_\"") foreach qw(dying1 dying2);
my %waiting = (dying1 => session($one), dying2 => session($two));
$waiting{dying1}->send(q{SELECT ddb_lock_acquire('dying1')});
$waiting{dying2}->send(q{SELECT ddb_semaphore_acquire('dying2', 3)});
longer_than_the_lease('dying1');
ok($_->busy, 'a session waits while the other process lives') foreach values %waiting;
my $since = time;
wait_for_renewals($_, 1) foreach qw(dying1 dying2);
$dying->kill;
DDBLock::Client::kill_cluster($doomed);
foreach my $name (sort keys %waiting)
{
	cmp_ok($waiting{$name}->result, '>', 0, "the session gets \"$name\" of a killed process");
	cmp_ok(time - $since, '>', 0.95 * $LEASE, '... not before its lease is over');
	note(sprintf '"%s": %.2f s', $name, time - $since);
}
cannot_read_ok('killed', 'of a killed cluster, dead');

#
# Java and dynamolock cannot read each other's items either
#
is($java->ask('acquire java'), 'held', 'Java holds a lock');
cannot_read_ok('java', "Java's");
is($go->ask('acquire go2'), 'held', 'dynamolock holds a lock');
like($java->ask('acquire go2'), qr/^NumberFormatException/, '... whose lease Java cannot read');
is($java->ask('release java'), 'released', 'Java releases its lock');
is($go->ask('release go2'), 'released', 'dynamolock releases its lock');
is($sql->query_safe("SELECT ddb_lock_try_acquire('$_')"), 't', 'ddblock gets both') foreach qw(java go2);
is($java->ask('acquire dying1 try') =~ s/:.*//r, 'LockCurrentlyUnavailableException',
	'Java can read what ddblock has taken over from dynamolock');

$last_session->gone;
$_->quit foreach $sql, $other, values %waiting;
is($java->ask('acquire killed refresh=50'), 'held', 'Java takes over what the killed cluster held');
is($java->ask('release killed'), 'released', '... and releases it');
$_->stop foreach $go, $java;
nothing_held_ok;
done_testing;
