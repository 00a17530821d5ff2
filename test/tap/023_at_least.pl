# A lock is kept from others for a minimum (at_least), even if it is released: two clusters
# whose clocks differ run a short job once; so they do when the one that ran it has lost power.

use DDBLock::Test;
use Cwd qw(abs_path);
use File::Basename qw(dirname);

#
# Two clusters; the wall clock of the second one is 2 s behind
#
my $shim = "$PostgreSQL::Test::Utils::tmp_check/shim";
my $source = abs_path(dirname(__FILE__) . '/../torture/shim.c');
system('gcc', '-shared', '-fPIC', '-o', "$shim.so", $source, '-ldl') == 0 or die "no shim\n";
open my $commands, '>:raw', "$shim.commands" or die $!;
print $commands pack('q3', -2, 0, 0);
close $commands or die $!;

my $one = new_cluster('one');
my $two = new_cluster('two', start => 0);
{
	local @ENV{qw(LD_PRELOAD TORTURE_SHIM)} = ("$shim.so", "$shim.commands");
	$two->start;
}
$two->safe_psql('postgres', 'CREATE EXTENSION ddblock');

sub clock { return $_[0]->safe_psql('postgres', 'SELECT extract(epoch FROM clock_timestamp())'); }
my $behind;
wait_for { $behind = clock($one) - clock($two); $behind > 1 && $behind < 3 } 'two looks at the clocks that nothing comes between';
pass("the clock of the second cluster is $behind s behind");

# What a job's schedule does in each cluster, when its own clock shows the time.
my $jobs = 50;
my $rounds = 4;
$_->safe_psql('postgres', q{
	CREATE TABLE runs (job text, round integer);
	CREATE FUNCTION run_jobs(jobs integer, this_round integer, at timestamptz) RETURNS void
	LANGUAGE plpgsql AS $$
	DECLARE
		mine text[];
	BEGIN
		PERFORM pg_sleep(extract(epoch FROM at - clock_timestamp()));
		SELECT array_agg(job) INTO mine FROM (
			SELECT 'job' || i AS job FROM generate_series(1, jobs) i OFFSET 0) all_jobs
		 WHERE ddb_lock_try_acquire(job, at_least => '10 s');
		INSERT INTO runs SELECT unnest(mine), this_round;
		PERFORM pg_sleep(0.1);
		PERFORM ddb_lock_release(job) FROM unnest(mine) job;
	END $$;
}) foreach $one, $two;
my @sessions = map { session($_) } $one, $two;

foreach my $round (1 .. $rounds)
{
	my $at = $one->safe_psql('postgres', q{SELECT clock_timestamp() + '300 ms'});

	$_->send("SELECT run_jobs($jobs, $round, '$at')") foreach @sessions;
	$_->result foreach @sessions;
	wait_for
	{
		$one->safe_psql('postgres', q{
			SELECT count(*) = 0 FROM ddb_lock_list('job') WHERE kept_until > clock_timestamp()
				- interval '3 s'}) eq 't'
	}
	'the end of the minimum';
}
my %runs;
foreach my $node ($one, $two)
{
	$runs{$_}++ foreach split /\n/, $node->safe_psql('postgres', 'SELECT * FROM runs');
}
is(scalar(keys %runs), $jobs * $rounds, 'each job ran in each round');
is_deeply([ grep { $runs{$_} != 1 } sort keys %runs ], [], 'none ran twice');
is($one->safe_psql('postgres', 'SELECT sum(requests) FROM ddb_operations WHERE operation = '
		. q{'hand_over'}), '0', 'nothing was handed over');

#
# What a session sees and does
#
my $session = session($one);
my $other = session($two);
is($session->query_safe(q{SELECT ddb_lock_acquire('a', at_least => '1 hour') > 0}), 't', 'acquired');
is($session->query_safe(q{SELECT ddb_lock_try_acquire('a', at_least => '1 day'),
	ddb_lock_release('a'), ddb_lock_release('a')}), 't|t|t', 'stacked, and released');
my $soon = q{kept_until - clock_timestamp() BETWEEN '59 min' AND '61 min'};
is($session->query_safe("SELECT held, $soon FROM ddb_lock_info('a')"), 'f|t',
	'it is free, but kept, without the longer minimum of the second call');
is($session->query_safe("SELECT state, $soon FROM ddb_lock_list('a')"), 'released|t',
	'which the list shows, too');
is($_->query_safe(q{SELECT NOT ddb_lock_try_acquire('a'),
	NOT ddb_lock_try_acquire_shared('a'), NOT ddb_semaphore_try_acquire('a', 2),
	NOT ddb_xact_lock_try_acquire('a')}), 't|t|t|t', 'nobody gets it') foreach $session, $other;
like(error_of($one, q{SELECT ddb_lock_acquire('a', wait => '3 s')}),
	qr/ERROR: +55P03: .*DETAIL: +Nobody holds it, but it is kept from others until /s,
	'an error tells why');

# Who waits gets it when the minimum is ended.
$other->send(q{SELECT ddb_lock_acquire('a') > 0});
wait_for_waiters($two, 'a', 1);
is($session->query_safe(q{SELECT ddb_lock_force_release('a'), ddb_lock_force_release('b')}),
	't|f', 'an operator ends the minimum');
is($other->result, 't', 'a waiting session gets the lock');
is($other->query_safe(q{SELECT ddb_lock_release('a')}), 't', 'and releases it');
is($other->query_safe(q{SELECT ddb_lock_acquire('a', at_least => '1 hour') > 0,
	ddb_lock_release('a', keep => false)}), 't|t', 'a session ends its own minimum');
is($session->query_safe(q{SELECT ddb_lock_acquire('a', at_least => '1 hour') > 0}), 't',
	'and the next one gets the lock');
ok(!defined dynamodb->item('a')->{isReleased}, 'it is held');
my $wait = q{SELECT ddb_lock_acquire('a') > 0};
$other->send($wait);
wait_for_waiters($two, 'a', 1);
is($session->query_safe(q{SET client_min_messages = error; SELECT ddb_lock_force_release('a')}), 't',
	'a lock that is held and kept is released by force');
is($other->result, 't', 'and is not kept');
$other->query_safe(q{SELECT ddb_lock_release('a')});
$session->quit;

# In a transaction; its minimum outlives it, whatever its end is.
$session = session($one);
foreach my $end (qw(COMMIT ROLLBACK))
{
	$session->query_safe(qq{BEGIN; SELECT ddb_xact_lock_try_acquire('$end', at_least => '1 hour'); $end});
	wait_for { is_released($end) } "the release at $end";
	is($other->query_safe(qq{SELECT NOT ddb_lock_try_acquire('$end')}), 't', "kept after $end");
}
$session->query_safe(q{SELECT ddb_lock_acquire('gone', at_least => '1 hour')});
$session->quit;
wait_for { is_released('gone') } 'the release at the end of the session';
is($other->query_safe(q{SELECT NOT ddb_lock_try_acquire('gone')}), 't', 'kept after the session');
is($other->query_safe(q{SELECT ddb_lock_acquire('short', at_least => '1 s') > 0,
	ddb_lock_release('short')}), 't|t', 'a short minimum');
is($other->query_safe(q{SELECT ddb_lock_acquire('short') > 0, ddb_lock_release('short')}), 't|t',
	'is waited for');

#
# What was asked for at the acquire is done however the lock is released.
#
my %asked = (
	minimum => [ q{ddb_lock_acquire(%s, at_least => '1 hour')}, sub { $_[0]->{isReleased} && $_[0]->{keptUntil} } ],
	plain => [ q{ddb_lock_acquire(%s)}, sub { $_[0]->{isReleased} && !$_[0]->{keptUntil} } ],
	attributes => [ q{ddb_lock_acquire(%s, data => 'd', attributes => '{"x": 1}')},
		sub { $_[0]->{isReleased} && !grep { $_[0]->{$_} } qw(data x attributeNames) } ],
	limit => [ q{ddb_lock_acquire(%s, at_least => '1 hour', at_most => '1 hour')}, sub { $_[0]->{isReleased} && $_[0]->{keptUntil} } ]);
my %transaction = map { $_ => [ $asked{$_}[0] =~ s/ddb_lock/ddb_xact_lock/r, $asked{$_}[1] ] } qw(minimum plain attributes);
my $helper = session($one);
$session = session($one);
my @ways = (
	[ ddb_lock_release => \%asked, sub { $_[0]->query_safe("SELECT ddb_lock_release('$_')") foreach @{ $_[1] } } ],
	[ nowait => \%asked, sub { $_[0]->query_safe("SELECT ddb_lock_release('$_', nowait => true)") foreach @{ $_[1] } } ],
	[ ddb_lock_release_all => \%asked, sub { $_[0]->query_safe('SELECT ddb_lock_release_all()') } ],
	[ 'DISCARD ALL' => \%asked, sub { $_[0]->query_safe('DISCARD ALL') } ],
	[ COMMIT => \%transaction, sub { $_[0]->query_safe('COMMIT') } ],
	[ ROLLBACK => \%transaction, sub { $_[0]->query_safe('ROLLBACK') } ],
	[ 'an error' => \%transaction, sub { $_[0]->error_of('SELECT 1 / 0'); $_[0]->query_safe('ROLLBACK') } ],
	[ 'ROLLBACK TO' => \%transaction, sub { $_[0]->query_safe('ROLLBACK TO s; COMMIT') } ],
	[ ddb_lock_release_detached => \%asked, sub {
		$_[0]->query_safe("SELECT ddb_lock_release_detached('$_', ddb_lock_detach('$_', '1 hour'))") foreach @{ $_[1] } } ],
	[ 'the time of a detached lock' => \%asked, sub { $_[0]->query_safe("SELECT ddb_lock_detach('$_', '10 ms')") foreach @{ $_[1] } } ],
	[ 'the last who joined' => \%asked, sub {
		foreach my $name (@{ $_[1] })
		{
			my $token = $_[0]->query_safe("SELECT ddb_lock_token('$name')");

			$helper->query_safe("SELECT ddb_lock_join('$name', $token)");
		}
		$_[0]->query_safe('SELECT ddb_lock_release_all()');
		$helper->query_safe('SELECT ddb_lock_release_all()'); } ],
	[ pg_terminate_backend => \%asked, sub { my $pid = backend_pid($_[0]); $_[0]->ask("SELECT pg_terminate_backend($pid)"); } ]);
foreach (@ways)
{
	my ($way, $asked, $release) = @$_;
	my %name = map { $_ => "$way/$_" } sort keys %$asked;
	my @names = map { $name{$_} } sort keys %name;

	$session->query_safe('BEGIN') if $asked == \%transaction;
	$session->query_safe('SAVEPOINT s') if $way =~ /TO$/;
	$session->query_safe('SELECT ' . join(', ', map { sprintf $asked->{$_}[0], "'$name{$_}'" } sort keys %$asked));
	$release->($session, \@names);
	wait_for { !grep { !is_released($_) } @names } "the release by $way";
	is(join(' ', grep { !$asked->{$_}[1]->(dynamodb->item($name{$_}) // {}) } sort keys %$asked), '', "$way: does what the acquire has asked for");
}
$session->gone;
$helper->quit;

# A detached lock, released by its token.
foreach my $keep ('', ', keep => false')
{
	$other->query_safe(q{SELECT ddb_lock_acquire('left', at_least => '1 hour')});
	$other->query_safe(q{SELECT ddb_lock_detach('left', '1 hour') AS token \gset});
	is($other->query_safe("SELECT ddb_lock_release_detached('left', :token$keep)"), 't', "released$keep");
	is($other->query_safe(q{SELECT NOT ddb_lock_try_acquire('left')}), $keep eq '' ? 't' : 'f',
		'by its token');
	$other->query_safe(q{SELECT ddb_lock_force_release('left')}) if $keep eq '';
}
$other->query_safe(q{SELECT ddb_lock_release_all()});

# Wrong arguments, and an attribute that nobody can read.
like(error_of($one, "SELECT $_->[0]"), qr/ERROR: +22023: .*argument "$_->[1]" must /, "$_->[0]")
  foreach [ q{ddb_lock_acquire('x', at_least => '-1 s')}, 'at_least' ],
  [ q{ddb_lock_try_acquire('x', at_least => '0')}, 'at_least' ],
  [ q{ddb_xact_lock_acquire('x', at_least => '24:00:01')}, 'at_least' ],
  [ q{ddb_xact_lock_try_acquire('x', at_least => '1 month')}, 'at_least' ],
  [ q{ddb_lock_release('x', keep => NULL)}, 'keep' ],
  [ q{ddb_lock_release_detached('x', NULL)}, 'token' ];
ok(!dynamodb->item('x'), 'nothing was sent');
my $item = dynamodb->item('short');
$item->{keptUntil} = { S => 'tomorrow' };
dynamodb->put_item($item);
like(error_of($one, q{SELECT ddb_lock_acquire('short')}), qr/ERROR: +55000: .*keptUntil/s,
	'an attribute that is no time');
delete $item->{keptUntil};
dynamodb->put_item($item);

#
# Power failures: the lease ends, or the next start releases the lock, but it stays kept
#
foreach my $how ('stop', 'kill')
{
	$session = session($one);
	$session->query_safe(qq{SELECT ddb_lock_acquire('$how', lease => '2 s', at_least => '1 hour')});
	if ($how eq 'stop')
	{
		$one->stop('immediate');
	}
	else
	{
		my $worker = worker_pid($one);

		$one->kill9;
		wait_for { !kill 0, $worker } 'the worker has noticed';
	}
	$session->quit;
	$other->send(qq{SELECT ddb_lock_acquire('$how', wait => '4 s')});
	$other->result;
	like($other->messages, qr/55P03/, "$how: nobody gets the lock of the dead cluster");
	$one->start;
	wait_for { is_released($how) } 'the release by the journal';
	is($other->query_safe(qq{SELECT NOT ddb_lock_try_acquire('$how')}), 't',
		"$how: it is released, and kept");
}
is(scalar(grep { $_->{key}{S} =~ /^(stop|kill)$/ && $_->{keptUntil}{N} } dynamodb->items), 2,
	'the items have the times');

$other->quit;
nothing_held_ok;
done_testing;
