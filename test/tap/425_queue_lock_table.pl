# Queues and lock tables: a queue table is guarded by one lock table, and refuses clusters with another
# one.  Else two sessions would work on one job.

use DDBLock::Test;

my $queue_table = 'queueTable';
my $guard = { map { $_ => { S => 'lockTable' } } qw(pk sk) };
my $refused = qr/55000: another lock table guards queue table "queueTable"/;
my $one = new_cluster('one', through => proxy);
my $two = new_cluster('two', conf => "ddblock.lock_table = 'otherTable'\n");
$two->safe_psql('postgres', 'SELECT ddb_lock_table_create(protect => false)');
my $a = session($one);
my $b = session($two);

sub guard
{
	return dynamodb->call('GetItem', { TableName => $queue_table, Key => $guard })->{Item} // {};
}

sub identity_of
{
	my ($table, %sort) = @_;

	return dynamodb->call('GetItem',
		{ TableName => $table, Key => { key => { S => 'ddblock/lock-table' }, %sort } })->{Item} // {};
}

$one->safe_psql('postgres', 'SELECT ddb_queue_table_create()');
is_deeply(guard(), {}, 'a new queue table has no guard');

#
# The first use makes one; sessions of two lock tables do not work on one job
#
is($a->query_safe(q{SELECT ddb_queue_push('q', 'r', '1')}), '1', 'a job');
is(guard()->{identity}{S}, identity_of('lockTable')->{recordVersionNumber}{S},
	'the queue table has the identity of the lock table');
is($a->query_safe(q{SELECT number FROM ddb_queue_claim('q')}), '1', 'a session works on it');
my $next = q{SELECT number FROM ddb_queue_claim('q', wait => '20s')};
like(eval { $b->error_of($next) } // 'it works, too', $refused, 'a session with another lock table gets no job');
like($b->error_of($next),
	qr/DETAIL: .*lock table "lockTable" with identity "[-0-9a-f]{36}", but this server uses lock table "otherTable" with identity "[-0-9a-f]{36}"/,
	'... the detail names both');
like($b->error_of($next), qr/HINT: .*"ddblock.lock_table".*delete the queue table's item/s, '... the hint says what to do');
like($b->error_of("SELECT $_"), $refused, "nor has it $_")
  foreach q{ddb_queue_push('q', 'r', '2')}, q{ddb_queue_cancel('q', 'r', 1)};
is($a->query_safe(q{SELECT depth FROM ddb_queue_depths('q')}), '1', 'nothing has changed');

#
# It costs nothing more for each job, and shows nowhere
#
my $before = stat_of($one, 'identify');
foreach my $more (1 .. 3)
{
	my $session = session($one);

	$session->query_safe(q{SELECT ddb_queue_push('q', 'more', '1')});
	$session->quit;
}
is(stat_of($one, 'identify'), $before, 'another session does not look again');
is($a->query_safe(q{SELECT string_agg(name, ' ') FROM ddb_lock_list()}), 'queue/q/r', 'no list shows it');
is($a->query_safe(q{SELECT ddb_lock_purge('1 day')}), '0', 'no purge deletes it');
like($a->error_of("SELECT $_('ddblock/lock-table')"),
	qr/22023: no lock can have the name "ddblock\/lock-table".*DETAIL: +Its item has the identity/s, "not with $_()")
  foreach qw(ddb_lock_acquire ddb_lock_info ddb_lock_force_release);
my $item = identity_of('lockTable');
is(join(' ', sort keys %$item), 'isReleased key leaseDuration ownerName recordVersionNumber',
	'to other clients it is a lock that was released; it has no ttl');
is($a->query_safe(q{SELECT count(*) FROM ddb_queue_list('q')}), '4', 'nor is the guard a job');
is($a->query_safe(q{SELECT ddb_queue_purge()}), '0', '... or what one has left');

#
# Another lock table is accepted when an operator has deleted the guard
#
$a->query_safe(q{SELECT ddb_queue_complete('q', 'r', 1)});
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_queue_depths('q', 'r') WHERE depth > 0}) == 0 }
  'the job is finished';
$a->quit;
$one->stop;
dynamodb->call('DeleteItem', { TableName => $queue_table, Key => $guard });
is($b->query_safe(q{SELECT ddb_queue_push('q', 'r', '2')}), '2', 'then the other one guards');
is(guard()->{name}{S}, 'otherTable', '... by its name, for people');
$one->start;
like(error_of($one, $next), $refused, 'and not the first one');

#
# A lock table that is made anew under its name is another one; what has been looked at stays good
#
dynamodb->call('DeleteTable', { TableName => 'otherTable' });
wait_for { eval { $two->safe_psql('postgres', 'SELECT ddb_lock_table_create(protect => false)'); 1 } } 'the lock table, anew';
is($b->query_safe(q{SELECT number FROM ddb_queue_claim('q', wait => '20s', resources => '{r}')}), '2',
	'a cluster does not look for an hour');
$b->quit;
$two->restart;
like(error_of($two, $next), $refused, 'then the name does not count');

#
# Damage, and what is missing
#
dynamodb->call('PutItem', { TableName => 'otherTable', Item => { key => { S => 'ddblock/lock-table' } } });
like(error_of($two, $next),
	qr/55000: the identity of lock table "otherTable" is unusable.*HINT: +When no session works on a job, delete this item/s, 'an item without identity');
dynamodb->call('DeleteTable', { TableName => 'otherTable' });
like(error_of($two, $next), qr/42P01: lock table "otherTable" does not exist/, 'no lock table');

#
# Sort keys: other values are other locks, and so are other separators
#
dynamodb->call('DeleteItem', { TableName => $queue_table, Key => $guard });
my $sorted = "ddblock.lock_table = 'sorted'\nddblock.sort_key = 'sk'\nddblock.sort_key_value = '-'\n";
my $three = new_cluster('three', conf => $sorted);
$three->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
$three->safe_psql('postgres', q{SELECT ddb_queue_push('q', 'r', '3')});
ok(identity_of('sorted', sk => { S => '-' })->{recordVersionNumber}, 'the identity has the sort key');
foreach my $other (q{ddblock.sort_key_value = '='}, q{ddblock.sort_separator = '/'})
{
	$three->append_conf('postgresql.conf', $other);
	$three->restart;
	like(error_of($three, $next), $refused, "refused: $other");
}
$three->append_conf('postgresql.conf', q{ddblock.sort_key_value = '-'});
$three->restart;
like(error_of($three, $next), qr/this server uses lock table "sorted" with identity "[-0-9a-f]{36}\/"/,
	'the separator is part of the identity');
$three->append_conf('postgresql.conf', q{ddblock.sort_separator = ''});
$three->restart;
wait_for { $three->safe_psql('postgres', q{SELECT number FROM ddb_queue_claim('q', resources => '{r}')}) } 'the right one';

done_testing;
