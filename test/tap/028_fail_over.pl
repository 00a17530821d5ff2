# A cluster and its standby: a promoted standby knows by then whether the leader is dead.

use DDBLock::Test;

my $conf = "ddblock.lease_duration = 10s\nddblock.keep_warm = off\n";
my $primary = new_cluster('primary', conf => $conf, init => [ allows_streaming => 1 ]);
$primary->backup('copy');
my $standby = new_cluster('standby', through => proxy, conf => "${conf}ddblock.leaderships = 'cron, idle'\n",
	init_from => [ $primary, 'copy', has_streaming => 1 ]);

sub leads { my ($node, $name) = @_; return $node->safe_psql('postgres', "SELECT ddb_leadership_held('$name')") eq 't'; }
# What the standby has sent about a lock, oldest first
sub sent { my ($operation, $name) = @_;
	return grep { $_->{operation} eq $operation && $_->{body}{Key}{key}{S} eq $name } proxy->log; }
sub wait_for_looks { my ($name, $count) = @_;
	wait_for { sent('GetItem', $name) >= $count } "looks at $name";
	return; }

#
# A standby looks, and writes nothing
#
wait_for_looks('cron', 1);
$primary->append_conf('postgresql.conf', "ddblock.leaderships = 'cron'\n");
$primary->reload;
wait_for { leads($primary, 'cron') } 'the leader';
wait_for_renewals('cron', 1);
proxy->reset_counts;
wait_for_renewals('cron', 3);
my ($cron, $idle) = map { scalar sent('GetItem', $_) } qw(cron idle);
cmp_ok($cron, '>', 0, 'a standby looks at the lock for which it will stand');
cmp_ok($cron, '<', 20, '... seldom');
cmp_ok(abs($cron - $idle), '<', 2, '... and at one that nobody has');
is(proxy->forwarded, $cron + $idle, '... and asks DynamoDB for nothing else') or diag explain [ map { $_->{operation} } proxy->log ];

#
# The leader dies
#
$primary->stop('immediate');
proxy->reset_counts;
wait_for_looks('cron', 13);    # for longer than a lease, a tenth of which is between two
proxy->reset_counts;
$standby->promote;
wait_for { leads($standby, 'cron') } 'the new leader';
my @acquires = sent('UpdateItem', 'cron');
is($acquires[0]{status}, 200, 'a promoted standby takes a dead leader\'s lock over with its first request');
ok($acquires[0]{body}{ExpressionAttributeValues}{':expected'}, '... which names the version that it has seen');
wait_for { leads($standby, 'idle') } 'the other name';
proxy->reset_counts;
wait_for_renewals('cron', 2);
is(scalar(sent('GetItem', 'cron')), 0, '... and looks no more');

$standby->append_conf('postgresql.conf', "ddblock.leaderships = ''\n");
$standby->reload;
nothing_held_ok;
done_testing;
