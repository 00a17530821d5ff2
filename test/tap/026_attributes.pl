# What a holder says about its lock: data that changes, attributes; until when it holds it.

use DDBLock::Test;
use JSON::PP;

my $one = new_cluster('one', through => proxy, conf => "ddblock.keep_warm = off\nrestart_after_crash = on\n");
my $two = new_cluster('two');
my ($first, $second) = map { session($one) } 1 .. 2;
my $far = session($two);

sub item { my ($name) = @_; return dynamodb->item($name) // {}; }
sub attributes_of { my ($name, $node) = @_;
	return ($node // $two)->safe_psql('postgres', "SELECT attributes FROM ddb_lock_info('$name')"); }
sub data_of { my ($name) = @_;
	return $two->safe_psql('postgres', "SELECT encode(data, 'escape') FROM ddb_lock_info('$name')"); }
sub acquire { my ($session, $name, $rest) = @_;
	return $session->query_safe("SELECT ddb_lock_acquire('$name'" . ($rest // '') . ') > 0'); }
sub release { my ($session, $name) = @_; return $session->query_safe("SELECT ddb_lock_release('$name')"); }

#
# Attributes
#
acquire($first, 'a', q{, attributes => '{"team": "x", "size": 2}'});
is_deeply([ @{ item('a') }{qw(team size)} ], [ { S => 'x' }, { N => '2' } ], 'each is an attribute of the item');
is(attributes_of('a'), '{"size": 2, "team": "x"}', 'another cluster is shown them');

# A session that waits gets the lock in a run, with its own attributes, or none.
$second->send(q{SELECT ddb_lock_acquire('a', attributes => '{"place": "y"}') > 0});
wait_for_waiters($one, 'a', 1);
release($first, 'a');
is($second->result, 't', 'the next session of the cluster gets the lock');
is(attributes_of('a'), '{"place": "y"}', 'with its own attributes');
ok(!exists item('a')->{team}, 'those of the last holder are gone');
$first->send(q{SELECT ddb_lock_acquire('a') > 0});
wait_for_waiters($one, 'a', 1);
release($second, 'a');
is($first->result, 't', 'the next one');
is(attributes_of('a'), '', 'has none');
release($first, 'a');

# Another cluster that waits.
acquire($first, 'a', q{, attributes => '{"team": "x"}'});
$far->send(q{SELECT ddb_lock_acquire('a', attributes => '{"team": "y"}') > 0});
wait_for_waiters($two, 'a', 1);
release($first, 'a');
is($far->result, 't', 'another cluster gets the lock');
is(attributes_of('a', $one), '{"team": "y"}', 'with its own attributes');
release($far, 'a');

# What the worker does not know it cannot remove: the next acquire does.
acquire($first, 'a', q{, attributes => '{"team": "x"}'});
my $worker = worker_pid($one);
kill 'TERM', $worker;
wait_for { (worker_pid($one) // $worker) != $worker } 'the next worker';
is(release($first, 'a'), 't', 'the next worker releases the lock');
ok(exists item('a')->{team}, 'and leaves its attributes');
is(attributes_of('a'), '', 'which nobody is shown');
acquire($far, 'a', q{, attributes => '{"place": "z"}'});
ok(!exists item('a')->{team}, 'the next acquire removes them');
is(attributes_of('a'), '{"place": "z"}', 'and sets its own');
release($far, 'a');

# A server that crashes: its journal does not know attributes, either.
acquire($first, 'a', q{, attributes => '{"team": "x"}'});
$one->stop('immediate');
$one->start;
wait_for { is_released('a') } 'the release after the crash';
ok(exists item('a')->{team}, 'attributes stay after a crash');
acquire($far, 'a');
ok(!exists item('a')->{team} && !exists item('a')->{attributeNames}, 'until the next acquire');
release($far, 'a');
($first, $second) = map { session($one) } 1 .. 2;

# Those of other clients: a Java client keeps what it does not know.
dynamodb->put_item(dynamodb->java_item('java', lease_ms => 600_000,
	extra => { team => { S => 'j' }, tags => { SS => [ 'b', 'a' ] } }));
is_deeply(decode_json(attributes_of('java')), { team => 'j', tags => [ 'a', 'b' ] },
	q{a Java client's attributes are shown, without the key});
dynamodb->put_item({ %{ item('java') }, isReleased => { S => '1' } });
acquire($far, 'java', q{, attributes => '{"place": "x"}'});
is(attributes_of('java'), '{"place": "x"}', 'what it leaves is not shown as ours');
release($far, 'java');
dynamodb->put_item({ %{ item('java') }, attributeNames => { N => '7' } });
like($far->error_of(q{SELECT ddb_lock_acquire('java')}), qr/55000.*attributeNames/s,
	'names that nobody can read are an error');
dynamodb->delete_item('java');

#
# Data that changes
#
acquire($first, 'd', q{, data => 'one'});
proxy->reset_counts;
$first->query_safe(q{SELECT ddb_lock_renew('d', data => 'two')});
is(proxy->forwarded('UpdateItem'), 1, 'a renewal with data is one request');
is(data_of('d'), 'two', 'another cluster is shown the new data');
proxy->fault('reset', applied => 1, operation => 'UpdateItem');
$first->query_safe(q{SELECT ddb_lock_renew('d', data => 'three')});
is(proxy->faults, 1, 'a reply is lost');
is(data_of('d'), 'three', 'the data is written all the same');
$second->send(q{SELECT ddb_lock_acquire('d') > 0});
wait_for_waiters($one, 'd', 1);
release($first, 'd');
is($second->result, 't', 'the next session gets the lock');
is(data_of('d'), '', 'without the data');
release($second, 'd');

#
# Time that is left
#
is($first->query_safe(q{SELECT ddb_lock_acquire('r', '1min') > 0,
	ddb_lock_remaining('r') BETWEEN interval '1s' AND interval '54s'}), 't|t', 'the session knows the time to the deadline');
is($second->query_safe(q{SELECT ddb_lock_remaining('r') IS NULL}), 't', 'another session has none');
my $loser = undisturbed($one);
$loser->query_safe(q{SELECT ddb_lock_acquire('lost')});
lose($one, 'lost');
is($loser->ask(q{SELECT ddb_lock_remaining('lost') IS NULL}), 't', 'nor has one that has lost the lock');

#
# A warning before the lease ends
#
sub monitor { my ($session, $rest) = @_;
	$session->send("SELECT ddb_lock_monitor('m', $rest)"); return; }
is($second->query_safe(q{SELECT ddb_lock_monitor('m', '1s') IS NULL}), 't', 'nobody holds the lock: nothing to wait for');
acquire($first, 'm', q{, lease => '10s'});
is($second->query_safe(q{SELECT ddb_lock_monitor('m', '1s', wait => '10ms') IS NULL}), 't', 'the monitor may give up');
like($second->query_safe(q{SELECT ddb_lock_monitor('m', '1min')}), qr/^00:00:0\d/, 'less is left: it returns at once');
monitor($second, q{'4s'});
ok($second->busy, 'it waits while renewals succeed');
release($first, 'm');
is($second->result, '', 'a release ends the wait');
acquire($first, 'm', q{, lease => '20s'});
monitor($second, q{'11s'});
ok($second->busy, 'it waits,');
proxy->fault('close', count => -1);
like($second->result, qr/^00:00:(0\d|10)\.\d+$/, 'and returns before the lease ends, if renewals fail');

#
# Letting go
#
is($first->ask(q{SELECT ddb_lock_release('m', nowait => true)}), 't', 'a lock is let go while DynamoDB is unreachable');
is($first->ask(q{SELECT ddb_lock_token('m') IS NULL}), 't', 'the session does not hold it any more');
proxy->clear_faults;
wait_for { is_released('m') } 'the release';
pass('the worker releases it later');
acquire($first, 'm');
acquire($first, 'm');
is($first->query_safe(q{SELECT ddb_lock_release('m', nowait => true), ddb_lock_token('m') > 0}), 't|t', 'it undoes one acquisition');
$first->query_safe(q{SELECT ddb_lock_acquire_shared('s') > 0});
is($first->query_safe(q{SELECT ddb_lock_release('s', nowait => true), ddb_lock_release('m', nowait => true)}), 't|t', 'in any mode');
wait_for { is_released('m') && is_released('s') } 'the releases';
is($first->ask(q{SELECT ddb_lock_release('m', nowait => true)}), 'f', 'what is not held cannot be let go');
acquire($first, 'm');
like($first->error_of(q{SELECT ddb_lock_release('m', keep => false, nowait => true)}),
	qr/0A000: a release that does not wait cannot end a minimum.*HINT: +Leave out "keep" or "nowait"\./s, 'a release that does not wait keeps the minimum');
is($first->query_safe(q{SELECT ddb_lock_release('m')}), 't', '... and the lock is held still');

#
# An item that is deleted after the release, and locks that must have an item
#
$one->append_conf('postgresql.conf', "ddblock.retry_timeout = '5s'\n");	# the deletion waits for twice that
$one->reload;
acquire($first, 'once', q{, delete_on_release => true});
my $token = $first->query_safe(q{SELECT ddb_lock_token('once')});
release($first, 'once');
ok(item('once')->{isReleased}, 'the release keeps the item for a while');
wait_for { !dynamodb->item('once') } 'the deletion';
pass('then it is deleted');
like($first->error_of(q{SELECT ddb_lock_acquire('once', only_if_exists => true)}), qr/42704/, 'the lock does not exist any more');
cmp_ok($far->query_safe(q{SELECT ddb_lock_acquire('once')}), '>', $token, 'the next token is higher, in another cluster');
is($second->query_safe(q{SELECT NOT ddb_lock_try_acquire('once', only_if_exists => true)}), 't', 'now it exists, and is held');
$second->send(q{SELECT ddb_lock_acquire('once', only_if_exists => true) > 0});
wait_for_waiters($one, 'once', 1);
release($far, 'once');
is($second->result, 't', 'a session waits for a lock that exists');
release($second, 'once');

$_->quit foreach $first, $second, $far, $loser;
nothing_held_ok;
done_testing;
