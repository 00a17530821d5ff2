# A cluster of 0.1.0 and two of this version on one table: no lock is held twice, whoever waits gets
# it, also from a cluster that was killed; then the old cluster is upgraded.

use DDBLock::Test;
use File::Basename qw(dirname);
use File::Copy qw(copy);
use Time::HiRes qw(time);

my ($installed, $complaints) = run_command([ dirname(__FILE__) . '/install' ]);
my ($path) = $installed =~ m{([^\n]*)\z};
die "0.1.0 does not build:\n$installed\n$complaints\n" unless -d "$path/bin";
my ($sharedir) = run_command([ 'pg_config', '--sharedir' ]);
my $lease = 10;

my $old = new_cluster('old', install_path => $path);
my $one = new_cluster('one');
my $two = new_cluster('two', conf => "ddblock.released_item_ttl = '7d'\n");
is($old->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'ddblock'}),
	'0.1.0', 'the old cluster has 0.1.0');
is($old->safe_psql('postgres', q{SELECT count(*) FROM pg_proc WHERE proname ~ 'shared'
	AND proname ~ '^ddb_'}), '0', 'which knows no shared locks');

my %acquire = (
	ex => "ddb_lock_acquire('ex', lease => '${lease}s')",
	sh => "ddb_lock_acquire_shared('sh', lease => '${lease}s')",
	se => "ddb_semaphore_acquire('se', 2, lease => '${lease}s')");
my @names = sort keys %acquire;

sub acquire_old { my ($name) = @_; return "ddb_lock_acquire('$name', lease => '${lease}s')"; }
sub open_sessions { my ($node) = @_; return map { $_ => session($node) } @names; }

# Each of these sessions waits, and goes on waiting while the holders live.
sub waits_ok
{
	my ($sessions, @waiting) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($sessions->{$_}->busy, "... waits for \"$_\"") foreach @waiting;
	return;
}

# A killed cluster's locks were written after $since.
sub taken_over_ok
{
	my ($sessions, $since, @waiting) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $name (@waiting)
	{
		like($sessions->{$name}->result, qr/^\d+$/, "takes \"$name\" over");
		cmp_ok(time - $since, '>', 0.95 * $lease, '... not before its lease is over');
	}
	return;
}

#
# Exclusive locks: both exclude, both pass on, tokens rise
#
my ($old_session, $new_session) = (session($old), session($one));
foreach my $pair ([ 'old', $old_session, 'new', $new_session, $one ],
	[ 'new', $new_session, 'old', $old_session, $old ])
{
	my ($holder_name, $holder, $waiter_name, $waiter, $waiting_node) = @$pair;

	my $token = $holder->query_safe(q{SELECT ddb_lock_acquire('pass')});
	is($waiter->query_safe(q{SELECT ddb_lock_try_acquire('pass')}), '',
		"the $holder_name version holds a lock: the $waiter_name one does not get it");
	like($waiter->error_of(q{SELECT ddb_lock_acquire('pass', wait => '2s')}),
		qr/ERROR: +55P03: .*DETAIL: .*owner "(old|one)\//s, '... and names the owner');
	$waiter->send(q{SELECT ddb_lock_acquire('pass')});
	wait_for_waiters($waiting_node, 'pass', 1);
	is($holder->query_safe(q{SELECT ddb_lock_release('pass')}), 't', 'it is released');
	cmp_ok($waiter->result, '>', $token, "the $waiter_name version gets it, with a higher token");
	is($holder->query_safe(q{SELECT ddb_lock_try_acquire('pass')}), '', '... and alone');
	is($waiter->query_safe(q{SELECT ddb_lock_release('pass')}), 't', '... until it is released');
}

# What they know of each other
$old_session->query_safe(q{SELECT ddb_lock_acquire('pass')});
is($new_session->query_safe(q{SELECT held, owner ~ '^old/', usename, token, mode
	FROM ddb_lock_info('pass')}), 't|t|||exclusive',
	'the new version shows the owner of an old one\'s lock, but neither session nor token');
is($two->safe_psql('postgres', q{SELECT ddb_lock_try_acquire('pass')}), '', 'nor does another get it');
ok($two->log_contains(qr/stops setting a time-to-live .*"old\/.* uses another client/),
	'to the new version, the old one is another client');
$old_session->query_safe(q{SELECT ddb_lock_release('pass')});
is($new_session->query_safe(q{SELECT state, released_at FROM ddb_lock_list('pass')}), 'released|',
	'when the old version released a lock is unknown to the new one');
$new_session->query_safe(q{SELECT ddb_lock_acquire('pass')});
is($old_session->query_safe(q{SELECT held, owner ~ '^one/', usename = current_user, token > 0
	FROM ddb_lock_info('pass')}), 't|t|t|t', 'the old version shows the session of a new one\'s lock');
$new_session->query_safe(q{SELECT ddb_lock_release('pass')});
is($old_session->query_safe(q{SELECT state, released_at > now() - interval '1 hour'
	FROM ddb_lock_list('pass')}), 'released|t', '... and when it was released');

#
# Many sessions of both: one at a time
#
foreach my $node ($old, $one)
{
	$node->safe_psql('postgres',
		'CREATE TABLE granted (token bigint, since timestamptz, until timestamptz)');
}
my @crowd = map { session($old), session($one) } 1 .. 3;
$_->send(q{DO $$
	DECLARE
		start timestamptz := clock_timestamp();
		token bigint;
		since timestamptz;
	BEGIN
		WHILE clock_timestamp() < start + interval '8 s' LOOP
			token := ddb_lock_acquire('many', lease => '1min');
			since := clock_timestamp();
			PERFORM pg_sleep(0.002);
			INSERT INTO granted VALUES (token, since, clock_timestamp());
			PERFORM ddb_lock_release('many');
		END LOOP;
	END $$}) foreach @crowd;
foreach my $session (@crowd)
{
	$session->result;
	unlike($session->messages, qr/ERROR|WARNING/, 'a session of the crowd');
	$session->quit;
}
my @granted;
foreach my $node ($old, $one)
{
	push @granted, map { [ $node->name, split /\|/ ] } split /\n/, $node->safe_psql('postgres',
		'SELECT token, extract(epoch FROM since), extract(epoch FROM until) FROM granted');
}
@granted = sort { $a->[1] <=> $b->[1] } @granted;
my ($overlaps, $changes) = (0, 0);
foreach my $i (1 .. $#granted)
{
	$overlaps++ if $granted[$i][2] < $granted[ $i - 1 ][3] || $granted[$i][1] == $granted[ $i - 1 ][1];
	$changes++ if $granted[$i][0] ne $granted[ $i - 1 ][0];
}
note(scalar @granted, " grants, $changes times from one version to the other");
is($overlaps, 0, 'in the order of their tokens, no grant begins before the one before has ended');
cmp_ok($changes, '>=', 2, 'both versions took turns');

#
# Old ones wait for new ones: a lock, a shared lock, a semaphore
#
my %new = open_sessions($one);
my %shared = open_sessions($two);
my %waiting = open_sessions($old);
my %token;
$token{$_} = $new{$_}->query_safe("SELECT $acquire{$_}") foreach @names;
$shared{$_}->query_safe("SELECT $acquire{$_}") foreach 'sh', 'se';
foreach my $name (@names)
{
	is($old_session->query_safe("SELECT ddb_lock_try_acquire('$name')"), '',
		"new ones have \"$name\": the old version does not get it");
}
like($old_session->error_of(qq{SELECT ddb_lock_acquire('$_', wait => '2s')}),
	qr/ERROR: +55P03: .*DETAIL: .*owner "shared\//s, "to the old version, the owner of \"$_\" is shared/...")
  foreach 'sh', 'se';
my $began = time;
$waiting{$_}->send('SELECT ' . acquire_old($_)) foreach @names;
wait_for_waiters($old, $_, 1) foreach @names;
wait_for { time > $began + 1.3 * $lease } 'more than a lease';
waits_ok(\%waiting, @names);
is($old_session->query_safe(q{SELECT name, state FROM ddb_lock_list('s') ORDER BY name COLLATE "C"}),
	"se|held\nsh|held", 'the old version calls none of them dead');

my $since = time;
wait_for_renewals('ex', 1);
$one->stop('immediate');
taken_over_ok(\%waiting, $since, 'ex');
waits_ok(\%waiting, 'se', 'sh');
is($shared{$_}->query_safe("SELECT ddb_lock_require('$_') > 0"), 't',
	"the other cluster still has \"$_\"") foreach 'se', 'sh';
$since = time;
wait_for_renewals($_, 1) foreach 'se', 'sh';
$two->stop('immediate');
taken_over_ok(\%waiting, $since, 'se', 'sh');
cmp_ok($waiting{$_}->query_safe("SELECT ddb_lock_require('$_')"), '>', $token{$_},
	"the token of \"$_\" is higher") foreach @names;

# What the dead clusters' journals list is not theirs any more.
$_->gone foreach values %new, values %shared, $new_session;
$_->start foreach $one, $two;
wait_for { worker_pid($_) } 'the worker' foreach $one, $two;
$new_session = session($one);
is($new_session->query_safe('SELECT ' . $acquire{$_} =~ s/ddb_(\w+?)_acquire/ddb_$1_try_acquire/r), '',
	"the old version has \"$_\": the new one does not get it") foreach @names;
is($waiting{$_}->query_safe("SELECT ddb_lock_renew('$_') > now()"), 't', 'and it stays so')
  foreach @names;

#
# New ones wait for old ones
#
my %held = %waiting;
%waiting = open_sessions($one);
$began = time;
$waiting{$_}->send("SELECT $acquire{$_}") foreach @names;
wait_for_waiters($one, $_, 1) foreach @names;
like($new_session->error_of(q{SELECT ddb_lock_acquire_shared('sh', wait => '2s')}),
	qr/ERROR: +55P03: .*DETAIL: .*owner "old\//s, 'the new version names the old owner');
wait_for { time > $began + 1.3 * $lease } 'more than a lease';
waits_ok(\%waiting, @names);
$token{$_} = $held{$_}->query_safe("SELECT ddb_lock_require('$_')") foreach @names;
is($held{sh}->query_safe(q{SELECT ddb_lock_release('sh')}), 't', 'the old version releases a lock');
cmp_ok($waiting{sh}->result, '>', $token{sh}, 'the new one shares it');
is($two->safe_psql('postgres', q{SELECT ddb_lock_try_acquire_shared('sh') > 0}), 't',
	'... with other clusters');
$since = time;
wait_for_renewals($_, 1) foreach 'ex', 'se';
$old->stop('immediate');
taken_over_ok(\%waiting, $since, 'ex', 'se');
is(dynamodb->item('se')->{shared}{M}{total}{N}, 1, 'one permit is out');
$_->gone foreach values %held, $old_session;
$old->start;
wait_for { worker_pid($old) } 'the worker of the old version';
$old_session = session($old);
is($old_session->query_safe("SELECT ddb_lock_try_acquire('$_')"), '',
	"the old version does not free \"$_\" when it comes back") foreach @names;

#
# Who shares releases: the old version gets the lock after the last one
#
%shared = (sh => session($two));
$shared{sh}->query_safe("SELECT $acquire{sh}");
$old_session->send('SELECT ' . acquire_old('sh'));
wait_for_waiters($old, 'sh', 1);
is($waiting{sh}->query_safe(q{SELECT ddb_lock_release_shared('sh')}), 't', 'one leaves');
wait_for_renewals('sh', 1);
ok($old_session->busy, 'the old version waits on');
is($waiting{sh}->query_safe(q{SELECT ddb_lock_try_acquire_shared('sh') > 0,
	ddb_lock_release_shared('sh')}), 't|t', 'its waiting keeps nobody from sharing');
is($shared{sh}->query_safe(q{SELECT ddb_lock_release_shared('sh')}), 't', 'the last one leaves');
like($old_session->result, qr/^\d+$/, 'the old version gets it');
$old_session->query_safe(q{SELECT ddb_lock_release('sh')});

#
# Release by force
#
$shared{sh}->query_safe("SET ddblock.on_lease_lost = none; SELECT $acquire{sh}");
is($old_session->ask(q{SELECT ddb_lock_force_release('sh')}), 't',
	'the old version releases a shared lock by force');
wait_for { $two->log_contains(qr/lease of lock "sh" is lost: /) } 'the next renewal';
like($shared{sh}->error_of(q{SELECT ddb_lock_require('sh')}), qr/ERROR: +LK001/, 'its holder learns of it');
$shared{sh}->ask(q{SELECT ddb_lock_release_shared('sh')});
$old_session->query_safe('SET ddblock.on_lease_lost = none; SELECT ' . acquire_old('sh'));
is($new_session->ask(q{SELECT ddb_lock_force_release('sh')}), 't',
	'the new version releases a lock of the old one by force');
wait_for { $old->log_contains(qr/lease of lock "sh" is lost: /) } 'the next renewal';
like($old_session->error_of(q{SELECT ddb_lock_require('sh')}), qr/ERROR: +LK001/, 'its holder learns of it');
$old_session->ask(q{SELECT ddb_lock_release('sh')});

#
# Purge: the new version cannot tell when the old one released
#
foreach my $pair ([ 'purge/old', $old_session ], [ 'purge/new', $new_session ])
{
	my ($name, $session) = @$pair;

	$session->query_safe("SELECT ddb_lock_acquire('$name'), ddb_lock_release('$name')");
	my $item = dynamodb->item($name);
	$item->{releasedAt}{N} -= 3 * 86400;
	$item->{fencingToken}{N} -= 3 * 86400 * 1_000_000;
	dynamodb->put_item($item);
}
is($new_session->query_safe(q{SELECT ddb_lock_purge('2 days')}), '1', 'the new version purges one item');
is_deeply([ map { $_->{key}{S} } grep { $_->{key}{S} =~ /^purge/ } dynamodb->items ], ['purge/old'],
	'... which it released itself');
is($old_session->query_safe(q{SELECT ddb_lock_purge('2 days')}), '1', 'the old version purges the other one');

#
# The old cluster is upgraded
#
my $old_sharedir = $old->config_data('--sharedir');
foreach my $file (glob("$sharedir/extension/ddblock*"))
{
	copy($file, "$old_sharedir/extension/") or die "cannot copy $file: $!\n";
}
like(error_of($old, 'ALTER EXTENSION ddblock UPDATE'), qr/ERROR: .*could not find function "ddb_/,
	'before the restart, the update fails');
is($old->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'ddblock'}),
	'0.1.0', '... and changes nothing');
$old_session->query_safe(q{SELECT ddb_lock_acquire('up', lease => '1h')});
$old->stop('immediate');
$old_session->gone;
delete $old->{_install_path};
$old->start;
wait_for { is_released('up') } 'the new worker to release what the old one held';
pass('the new library reads the journal of the old one');
$old->safe_psql('postgres', 'ALTER EXTENSION ddblock UPDATE');
$old_session = session($old);
is($old_session->query_safe(q{SELECT ddb_semaphore_try_acquire('se', 2) > 0,
	(SELECT library_version = extversion FROM ddb_status, pg_extension WHERE extname = 'ddblock')}),
	't|t', 'it is upgraded, and gets a permit of the semaphore');

$_->quit foreach $new_session, $old_session, values %waiting, values %shared;
nothing_held_ok;
done_testing;
