# The lock of a cluster that died is taken over at once, by DynamoDB's clock, also by
# a cluster that never saw it.

use DDBLock::Test;
use Time::HiRes qw(time);

my $soon = "ddblock.clock_slack = '1s'\nddblock.keep_warm = off\n";
my $on = "ddblock.clock_takeover = 'on'\n$soon";
my $off = "ddblock.clock_takeover = 'off'\n$soon";
my $timed = qr/^[0-9a-f]{8}-[0-9a-f]{4}-8ddb-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
my $random = qr/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

sub version { return dynamodb->item(shift)->{recordVersionNumber}{S}; }

# When a lock with this version is dead by the clock, in seconds of the epoch.
sub end_of
{
	my ($version, $lease) = @_;
	my ($high, $low) = split /-/, $version;

	return hex("$high$low") / 1000 + 1.02 * $lease + 1;
}

sub tries
{
	my ($node, $call) = @_;

	return $node->safe_psql('postgres', "SELECT $call");
}

my $one = new_cluster('one', conf => $on);
my $old = new_cluster('old', conf => $off);
my $two = new_cluster('two', conf => $on);
my $by_default = new_cluster('default', conf => $soon);
my $holder = session($one);

#
# Versions, and a holder that lives
#
foreach my $name (qw(a b))
{
	$holder->query_safe(qq{SELECT ddb_lock_acquire('$name', lease => '9s')});
	like(version($name), $timed, 'a version has the time');
}
$holder->query_safe(q{SELECT ddb_lock_acquire_shared('shared', lease => '9s')});
$holder->query_safe(q{SELECT ddb_semaphore_acquire('permits', 1, lease => '9s')});
my $version = version('a');
wait_for { time > end_of($version, 9) + 1 } 'the end of the first version';
isnt(version('a'), $version, 'it is renewed');
like(version('a'), $timed, 'with the time');
is(tries($two, q{ddb_lock_try_acquire('a')}), 'f', 'who lives keeps the lock');
is(tries($two, q{ddb_semaphore_try_acquire('permits', 1)}), 'f', 'and the permit');
is($holder->query_safe(q{SELECT ddb_lock_require('a') IS NOT NULL}), 't', 'as it believes itself');

my $old_holder = session($old);
$old_holder->query_safe(q{SELECT ddb_lock_acquire('old', lease => '9s')});
like(version('old'), $random, q{without the setting a version has no time});
$old_holder->query_safe(q{SELECT ddb_lock_acquire('old_waits', lease => '9s')});
my $other_holder = session($by_default);
$other_holder->query_safe(q{SELECT ddb_lock_acquire('default')});
like(version('default'), $random, 'as by default at an endpoint that is not Amazon\'s');
$other_holder->quit;

#
# Both die
#
$_->stop('immediate') foreach $one, $old;
$_->quit foreach $holder, $old_holder;
my $end = 0;
foreach my $name (qw(a b shared permits))
{
	my $this = end_of(version($name), 9);

	$end = $this if $this > $end;
}
wait_for { time > $end + 1 } 'the end of the leases';

is(tries($by_default, q{ddb_lock_try_acquire('a')}), 'f',
	'a cluster without the setting has to see the lock for a lease');
is(tries($two, q{ddb_lock_try_acquire('old')}), 'f', 'so has anybody if the version has no time');
my $looked = time;
is(tries($by_default, q{ddb_lock_acquire('old_waits', wait => '2min') > 0}), 't', 'who would wait gets it');
wait_for { time > $looked + 1.02 * 9 } 'a lease after the look';
is(tries($two, q{ddb_lock_try_acquire('old')}), 't', 'the worker remembers what a try has seen: a later try gets it');

# This one has not been there before.
my $three = new_cluster('three', conf => $on);
is(tries($three, q{ddb_lock_try_acquire('a')}), 't',
	'a cluster that never saw the lock takes it over by its first try');
is(stat_of($three, 'acquire'), 2, 'with two writes');
is(stat_of($three, 'read'), 0, 'and no read');
is(tries($three, q{ddb_lock_acquire('b') > 0}), 't', 'so does who would wait');
is(tries($three, q{ddb_lock_try_acquire_shared('shared')}), 't',
	'a dead cluster that shared the lock is left out');
is(tries($three, q{ddb_semaphore_try_acquire('permits', 1)}), 't',
	'and its permits are free');
is(stat_of($three, 'read'), 0, 'all without a read');

#
# A DynamoDB whose clock we can set
#
my $double = new_double(seed => 1);
my $node = new_cluster('four', through => $double, table => 0,
	conf => "${on}ddblock.keep_warm = off\n");
my $session = session($node);
my $no_takeover = qr/no lock is taken over by DynamoDB's clock while/;

sub vetoes { my @found = slurp_file($node->logfile) =~ /$no_takeover/g; return scalar @found; }

sub version_of { return $double->item(shift)->{recordVersionNumber}{S}; }

$session->query_safe('SELECT ddb_lock_table_create()');
$session->query_safe(q{SELECT ddb_lock_acquire('a', lease => '10s')});
like(version_of('a'), $timed, 'a version has the time');
is(vetoes(), 0, 'the clocks agree');
$double->command(command => 'clock', skew_s => 60);
my $refused = $session->error_of(q{SELECT ddb_lock_renew('a')});
like($refused, qr/LK001.*DETAIL:\s+This machine's clock stood still\./s,
	'a renewal that came too late by DynamoDB\'s clock is none');
# The session may learn it a moment before the worker has logged it.
$node->wait_for_log(qr/the lease of lock "a" is lost: this machine's clock stood still/);
pass('the log tells why');
wait_for { stat_of($node, undef, 'lost_unreachable') } 'the counter';
is(stat_of($node, undef, 'lost_unreachable'), 1, 'it counts as not confirmed in time');
foreach my $name (qw(b c))
{
	$session->query_safe(qq{SELECT ddb_lock_acquire('$name')});
	like(version_of($name), $random, 'while the clocks differ, versions have no time');
}
is(vetoes(), 1, 'which is logged once');
$double->command(command => 'clock', skew_s => 0);
$session->query_safe(q{SELECT ddb_lock_info('a')});
$session->query_safe(q{SELECT ddb_lock_acquire('d')});
like(version_of('d'), $timed, 'when they agree again, they have');
$node->append_conf('postgresql.conf', "ddblock.clock_takeover = off\n");
$node->reload;
wait_for { $node->safe_psql('postgres', 'SHOW ddblock.clock_takeover') eq 'off' } 'the reload';
wait_for
{
	$session->query_safe(q{SELECT ddb_lock_renew('d')});
	version_of('d') =~ $random;
}
'a renewal without the time';
pass('the setting can be reloaded');
$session->quit;
done_testing;
