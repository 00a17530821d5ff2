# A cluster dies without a word: what it held is freed at once when it is back,
# and nothing that it does not hold is.

use strict;
use warnings;

use Compress::Raw::Zlib qw(crc32);
use DDBLock::Test;
use PostgreSQL::Test::Utils;
use Test::More;

my $one = new_cluster('one', through => proxy,
	conf => "restart_after_crash = on\nddblock.request_timeout = 1s\n");
my $two = new_cluster('two');
my @names = qw(a b c);

# No test waits for as long: what is free sooner was freed.
my $lease = q{lease => '1h'};

sub journals { my @files = glob $one->data_dir . "/pg_stat_tmp/ddblock.*"; return @files; }
sub log_size { return -s $one->logfile; }
sub logged { my ($what, $from) = @_; return slurp_file($one->logfile, $from) =~ $what; }

# Three sessions that hold a lock each, one of them for its transaction.
sub hold_locks
{
	my @sessions = map { session($one) } @names;

	$sessions[0]->query_safe("SELECT ddb_lock_acquire('a', $lease)");
	$sessions[1]->query_safe("SELECT ddb_lock_acquire('b', $lease, data => 'x')");
	$sessions[2]->query_safe("BEGIN; SELECT ddb_xact_lock_acquire('c', $lease)");
	return @sessions;
}

sub owner_of { return dynamodb->item($_[0])->{ownerName}{S}; }
sub held_by { my ($owner) = @_; return !grep { is_released($_) || owner_of($_) ne $owner } @names; }

# Another cluster gets each of them, while nobody waits for a lease.
sub freed_ok
{
	my ($what) = @_;
	my $session = session($two);

	$session->send(join ';', map { "SELECT ddb_lock_acquire('$_') > 0" } @names);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->result, join("\n", ('t') x @names), "$what: another cluster gets the locks");
	$session->quit;
	wait_for { !grep { !is_released($_) } @names } 'the locks to be free again';
	return;
}

sub crash
{
	my ($pid) = @_;
	my $worker = worker_pid($one);

	kill 'KILL', $pid;
	wait_for
	{
		my $now = eval { worker_pid($one) };
		defined $now && $now != $worker;
	}
	'the cluster after its crash';
	return;
}

#
# A crash restart
#
foreach my $victim ('backend', 'worker')
{
	my $from = log_size;
	my @sessions = hold_locks;
	my $owner = owner_of('a');

	crash($victim eq 'worker' ? worker_pid($one) : backend_pid($sessions[0]));
	freed_ok("a $victim is killed");
	$_->gone foreach @sessions;
	wait_for { logged(qr/LOG: +freed 3 locks that "\Q$owner\E" held/, $from) } 'the log';
	pass('the log says so');
	is(scalar(journals), 1, 'one journal is left, the new incarnation\'s');
	is( $one->safe_psql('postgres',
			q{SELECT ddb_lock_acquire('a') > 0, ddb_lock_release('a')}),
		't|t', 'all works again');
	isnt(owner_of('a'), $owner, 'under a new incarnation');
}

nothing_held_ok;
done_testing;
