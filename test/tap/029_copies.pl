# A copy of a cluster that is started beside it, with the same settings: it warns, and a standby does not.

use DDBLock::Test;

my $conf = "ddblock.lease_duration = 4s\nddblock.leaderships = 'cron'\n";
my $original = new_cluster('original', conf => $conf, init => [ allows_streaming => 1 ]);
$original->backup('copy');
my $system = $original->safe_psql('postgres', 'SELECT system_identifier FROM pg_control_system()');

sub leads { my ($node) = @_; return $node->safe_psql('postgres', q{SELECT ddb_leadership_held('cron')}) eq 't'; }
sub set_list { my ($node, $list) = @_;
	$node->append_conf('postgresql.conf', "ddblock.leaderships = '$list'\n");
	$node->reload;
	wait_for { $node->safe_psql('postgres', 'SHOW ddblock.leaderships') eq $list } 'the new list';
	return; }
# Another one leads
sub step_back_for { my ($other, $node) = @_;
	set_list($node, '');
	wait_for { leads($other) } $other->name . ' leads';
	set_list($node, 'cron');
	return; }
sub trouble { my ($node) = @_; return $node->safe_psql('postgres', 'SELECT trouble FROM ddb_status'); }
my $warning = qr/WARNING: +a copy of this cluster uses lock table "lockTable", too: /;
sub warned { my ($node) = @_; return $node->log_contains($warning); }
# Whoever follows looks for longer than two leases.
sub nobody_warns_ok { my ($what, @nodes) = @_;
	wait_for_renewals('cron', 8);
	is(join(' ', map { $_->name } grep { warned($_) || trouble($_) ne '' } @nodes), '', $what);
	return; }

#
# A standby is no copy
#
wait_for { leads($original) } 'the leader';
my $standby = new_cluster('standby', conf => "${conf}ddblock.leaderships_on_standby = on\n",
	init_from => [ $original, 'copy', has_streaming => 1 ]);
is(dynamodb->item('cron')->{holder}{M}{system}{S}, $system, 'the item has the system identifier');
nobody_warns_ok('a standby that follows', $original, $standby);
step_back_for($standby, $original);
ok(!exists dynamodb->item('cron')->{holder}{M}{system}, 'a standby does not write it');
nobody_warns_ok('a standby that leads', $original, $standby);
step_back_for($original, $standby);

#
# Nor is the cluster itself, before it crashed
#
$original->stop('immediate');
$original->start;
nobody_warns_ok('a cluster that has crashed', $original, $standby);
set_list($standby, '');
wait_for { leads($original) } 'the leader';

#
# A copy follows, and then leads
#
my $copy = new_cluster('copy', conf => $conf, init_from => [ $original, 'copy' ]);
sub told_ok { my ($node, $other) = @_;
	my $owner = $other->safe_psql('postgres', 'SELECT owner FROM ddb_status');

	wait_for { warned($node) } $node->name . ' warns';
	like(slurp_file($node->logfile), qr/$warning"\Q$owner\E"\n.*DETAIL: +Both have system identifier $system, .*\n.*HINT: +In the one that is the copy, set "ddblock.leaderships"/,
		$node->name . ' warns of ' . $other->name);
	is(trouble($node), qq{"$owner" has the system identifier of this cluster, and is no standby: one of them is a copy}, '... in ddb_status, too');
	like($node->safe_psql('postgres', q{SELECT concat_ws(' ', result, detail, hint) FROM ddb_check() WHERE subject = 'trouble'}),
		qr/^warning "\Q$owner\E" has the system identifier .* See the server's log\.$/, '... and in ddb_check()');
	return; }
told_ok($copy, $original);
step_back_for($copy, $original);
told_ok($original, $copy);
wait_for_renewals('cron', 4);
is(scalar(() = slurp_file($original->logfile) =~ /$warning/g), 1, '... once');
ok(!warned($standby), '... and their standby is silent');

$copy->stop;
wait_for { leads($original) } 'the original leads again';
wait_for { trouble($original) eq '' } 'the end of the trouble';
pass('the trouble ends with the copy');

set_list($original, '');
nothing_held_ok;
done_testing;
