# At most five jobs at a time, in three clusters: sessions, clients and a whole cluster
# die, and no permit is lost.

use DDBLock::Test;
use DDBLock::Jobs;
use Time::HiRes qw(sleep);

my @clusters = map { new_cluster($_, conf => "restart_after_crash = on\n") } qw(one two three);
my $jobs = DDBLock::Jobs->start(
	dir => PostgreSQL::Test::Utils::tempdir(),
	clusters => \@clusters,
	name => 'jobs',
	limit => 5,
	lease => '15s',
	work => '0.2 + random() / 5',
	count => 100);
my $most = 0;

while ($jobs->running)
{
	my $item = dynamodb->item('jobs');
	my $total = $item ? $item->{shared}{M}{total}{N} // 0 : 0;

	$most = $total if $total > $most;
	sleep 0.02;
}
is($jobs->done, 100, 'all jobs are done');
cmp_ok($jobs->died, '>=', 10, 'some died');
is(join("\n", $jobs->failures), '', 'nothing else failed');
is($most, 5, 'five permits were out, never six');
cmp_ok($jobs->most, '<=', 5, 'never six jobs had one');
cmp_ok($jobs->most, '>=', 2, 'several had one at once');
like($jobs->draw('jobs'), qr/Lock "jobs": at most [2-5] at once/, '... as test/timeline draws them');
wait_for { is_released('jobs') } 'all permits to be back';
nothing_held_ok;
done_testing;
