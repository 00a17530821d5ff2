# Queues when something goes wrong: replies are lost, sessions and workers die, locks are
# lost, released, detached and joined.  No job is lost or done twice without need.

use DDBLock::Test;
use List::Util qw(min);

my $one = new_cluster('one', through => proxy,
	conf => "ddblock.keep_warm = off\nddblock.request_timeout = '2 s'\nwal_writer_delay = '10 s'\n");
my $two = new_cluster('two');

$one->safe_psql('postgres', 'SELECT ddb_queue_table_create()');

# The next job of a resource as "number|attempt", or "".
sub next_of
{
	my ($session, $resource, $lease) = @_;

	$lease //= '1 h';
	return $session->query_safe("SELECT number, attempt FROM
		ddb_queue_claim('q', lease => '$lease', resources => '{$resource}', max_attempts => 10)");
}

# The same; a job that another cluster has pushed may be due a moment later.
sub next_job
{
	my @which = @_;

	return wait_for { next_of(@which) } 'the next job';
}

sub depth_of
{
	my ($resource) = @_;

	return $two->safe_psql('postgres',
		"SELECT coalesce(max(depth), 0) FROM ddb_queue_depths('q', '$resource')");
}

# Too large to ride on the head.
my $large = q{to_jsonb(repeat('x', 5000))};

sub push_to
{
	my ($node, $resource, $payload) = @_;

	$payload //= "'1'";
	return $node->safe_psql('postgres', qq{SELECT ddb_queue_push('q', '$resource', $payload)});
}

# The time has come for the next attempt.
sub make_due
{
	my ($resource) = @_;

	dynamodb->call('UpdateItem', { TableName => 'queueTable',
		Key => { pk => { S => "r#q#$resource" }, sk => { S => 'head' } },
		UpdateExpression => 'SET #due = :past REMOVE retryAt',
		ExpressionAttributeNames => { '#due' => 'due' },
		ExpressionAttributeValues => { ':past' => { N => '1' } } });
	return;
}

# Faults of writes to the queues' table only.
sub fault
{
	my ($kind, %options) = @_;

	proxy->fault($kind, operation => 'UpdateItem', match => 'queueTable', %options);
	return;
}

#
# Replies that are lost
#
proxy->fault('reset', applied => 1, operation => 'TransactWriteItems');
is(push_to($one, 'lost'), '1', 'a push whose reply is lost');
is(depth_of('lost'), 1, 'is pushed once');
my $a = session($one);
fault('reset', applied => 1);
is(next_job($a, 'lost'), '1|1', 'a claim whose reply is lost is one attempt');
fault('reset', applied => 1);
$a->query_safe(q{SELECT ddb_queue_complete('q', 'lost', 1)});
wait_for { depth_of('lost') == 0 && is_released('queue/q/lost') }
	'a completion whose reply is lost is found to have been applied';
is(proxy->faults, 3, 'all of this has happened');
push_to($one, 'lost');
is(next_job($a, 'lost'), '2|1', 'the next job');
fault('reset', applied => 1);
$a->query_safe(q{SELECT ddb_queue_fail('q', 'lost', 2, 'why', '0')});
is(next_job($a, 'lost'), '2|2', 'a failure whose reply is lost is one failure');
$a->query_safe(q{SELECT ddb_queue_complete('q', 'lost', 2)});

# What was perhaps applied is never reported as refused.
proxy->fault('reset', applied => 1, operation => 'TransactWriteItems');
proxy->fault('error', status => 400, type => 'AccessDeniedException', count => -1,
	operation => 'TransactWriteItems');
like($a->error_of(q{SELECT ddb_queue_push('q', 'maybe', '1')}),
	qr/08006: .*HINT:\s+The request may or may not have taken effect/s, 'a push whose outcome is unknown');
proxy->clear_faults;
is(depth_of('maybe'), 1, 'was applied');

# A session that waits alone looks again and again: nobody tells it of other clusters' pushes.
proxy->reset_counts;
my $looker = backend_pid($a);
$a->send(q{SELECT ddb_queue_claim('nothing', wait => '10 min')});
wait_for { proxy->received('Query') >= 4 } 'a session that waits looks again and again';
$one->safe_psql('postgres', "SELECT pg_cancel_backend($looker)");
$a->result;
like($a->messages, qr/57014/, '... until it is cancelled');

#
# After COMMIT the worker goes on, without its session, and after its own death
#
push_to($one, 'after');
my $b = session($one);
is(next_job($b, 'after'), '1|1', 'a session claims a job');
fault('error', count => -1);
$b->query_safe(q{SELECT ddb_queue_complete('q', 'after', 1)});
$b->quit;
wait_for { proxy->faults('UpdateItem') > 5 } 'the worker repeats the completion';
my $worker = worker_pid($one);
$one->safe_psql('postgres', "SELECT pg_terminate_backend($worker)");
wait_for { my $pid = worker_pid($one); $pid && $pid != $worker } 'another worker';
is(depth_of('after'), 1, 'the job is not finished yet');
proxy->clear_faults;
wait_for { depth_of('after') == 0 } 'the next worker finishes it';

# Until then, who wants the next job waits for the lock, but not for ever.
push_to($one, 'slow');
push_to($one, 'slow');
$b = session($one);
is(next_job($b, 'slow'), '1|1', 'a session claims the first of two jobs');
fault('error', count => -1);
$b->query_safe(q{SELECT ddb_queue_complete('q', 'slow', 1)});
my $waiter = session($one);
is(next_of($waiter, 'slow'), '', 'another one waits for the lock in vain, which is no error');
proxy->clear_faults;
is(next_job($waiter, 'slow'), '2|1', 'in the end it gets the job');
$waiter->query_safe(q{SELECT ddb_queue_complete('q', 'slow', 2)});
$_->quit foreach $b, $waiter;

# A session that ends waits a moment, so that its lock does not go before its job is finished.
push_to($one, 'exit');
my $c = session($two);
$b = session($one);
is(next_job($b, 'exit'), '1|1', 'a session claims a job');
make_due('exit');
fault('error', count => 2);
$b->query_safe(q{SELECT ddb_queue_complete('q', 'exit', 1)});
$b->quit;
my $again;
wait_for { ($again = next_of($c, 'exit')) || depth_of('exit') == 0 } 'its completion, which is slow';
is($again, '', 'is before the end of its lock');

#
# Work is on disk before DynamoDB knows that it is done
#
push_to($one, 'disk') foreach 1 .. 2;
$one->safe_psql('postgres', 'CREATE TABLE work (i int)');
my $note = q{SELECT set_config('my.lsn', pg_current_wal_insert_lsn()::text, false) IS NULL};
my $on_disk = q{SELECT pg_current_wal_flush_lsn() >= current_setting('my.lsn')::pg_lsn};
$a->query_safe('SET synchronous_commit = off');
is(next_job($a, 'disk'), '1|1', 'a session claims a job');
like($a->query_safe(qq{BEGIN; INSERT INTO work VALUES (1); $note;
	SELECT ddb_queue_complete('q', 'disk', 1); COMMIT; $on_disk}),
	qr/\nt$/, 'with the completion, asynchronous commits are off');
is(next_job($a, 'disk'), '2|1', 'and the next job');
like($a->query_safe(qq{BEGIN; INSERT INTO work VALUES (1); $note; COMMIT;
	SELECT ddb_queue_complete('q', 'disk', 2); $on_disk}),
	qr/\nt$/, 'what was committed before is on disk, too');
$a->query_safe('RESET synchronous_commit');

#
# A push that is half visible: its head, but not yet its job
#
push_to($one, 'half', $large);
proxy->clear_faults;
proxy->reset_counts;
proxy->fault('edit', operation => 'GetItem', match => 'job#', merge => { Item => undef });
proxy->fault('error', operation => 'DeleteItem', match => 'attribute_not_exists', status => 400,
	type => 'TransactionConflictException');
is(next_job($a, 'half'), '1|1', 'a job that is not seen at first is not passed over');
is(proxy->faults, 2, 'both faults have happened');
$a->query_safe(q{SELECT ddb_queue_complete('q', 'half', 1)});

#
# Sessions that die, or are cancelled
#
push_to($one, 'dies');
$b = session($one);
is(next_job($b, 'dies'), '1|1', 'a session claims a job');
$b->quit;
wait_for { is_released('queue/q/dies') } 'it has gone, its lock with it';
is(next_of($a, 'dies'), '', 'the job waits: its backoff was written with the claim');
make_due('dies');
is(next_job($a, 'dies'), '1|2', 'and then comes again');
$a->query_safe(q{SELECT ddb_queue_complete('q', 'dies', 1)});

# The backoff is 5 s, and doubles with each attempt; 10 minutes at most.
push_to($one, 'backoff');
foreach my $attempt (1 .. 9)
{
	my $backoff = min(5 * 2**($attempt - 1), 600);
	my $before = time;
	is(next_job($a, 'backoff'), "1|$attempt", "attempt $attempt");
	my $due = $a->query_safe(
		q{SELECT extract(epoch FROM due)::bigint FROM ddb_queue_depths('q', 'backoff')});

	cmp_ok($due, '>=', $before + $backoff - 2, "the next one is due $backoff s later");
	cmp_ok($due, '<=', time + $backoff + 1, '... and not after that');
	$a->query_safe(q{SELECT ddb_lock_release('queue/q/backoff')});
	make_due('backoff');
}

push_to($one, 'cancelled', $large);
my $claimer = backend_pid($a);
my $dropped = proxy->faults('GetItem');
proxy->fault('drop', operation => 'GetItem', match => 'job#', count => -1);
$a->send(q{SELECT ddb_queue_claim('q', resources => '{cancelled}')});
wait_for { proxy->faults('GetItem') > $dropped } 'the claim';
$one->safe_psql('postgres', "SELECT pg_cancel_backend($claimer)");
$a->result;
like($a->messages, qr/57014: canceling statement/, 'a claim that is cancelled before the job has come');
proxy->clear_faults;
wait_for { is_released('queue/q/cancelled') } 'leaves nothing held';
is(depth_of('cancelled'), 1, 'the job is still there');
make_due('cancelled');
is(next_job($c, 'cancelled'), '1|2', 'and the other cluster gets it');
$c->query_safe(q{SELECT ddb_queue_complete('q', 'cancelled', 1)});

push_to($one, 'aborted');
like($a->error_of(q{SELECT 1 / (number - 1) FROM ddb_queue_claim('q', resources => '{aborted}')}),
	qr/22012/, 'a statement that claims a job, then fails');
wait_for { is_released('queue/q/aborted') } 'holds nothing afterwards';
make_due('aborted');
is(next_job($a, 'aborted'), '1|2', 'the job comes again');
$a->query_safe(q{SELECT ddb_queue_complete('q', 'aborted', 1)});

# A claim goes with its subtransaction: its lock is free, and the job comes again.  One from before
# the savepoint stays.
my $claims = q{ddb_queue_claim('q', lease => '1 h', resources => '{subxact}')};
foreach my $case (
	[ 'ROLLBACK TO', "SAVEPOINT s; SELECT $claims; ROLLBACK TO s" ],
	[ 'ROLLBACK TO after RELEASE', "SAVEPOINT s; SAVEPOINT t; SELECT $claims; RELEASE t; ROLLBACK TO s" ],
	[ 'ROLLBACK TO an outer savepoint', "SAVEPOINT s; SAVEPOINT t; SELECT $claims; ROLLBACK TO s" ],
	[ 'ROLLBACK TO after the completion', "SAVEPOINT s; SELECT ddb_queue_complete('q', resource, number) FROM $claims; ROLLBACK TO s" ],
	[ 'an exception block', "DO \$\$ BEGIN PERFORM $claims; RAISE 'no'; EXCEPTION WHEN raise_exception THEN END \$\$" ])
{
	my ($what, $sql) = @$case;
	my $number = push_to($one, 'subxact');

	wait_for { $one->safe_psql('postgres', q{SELECT max(due) <= now() FROM ddb_queue_depths('q', 'subxact')}) eq 't' } 'it is due';
	$a->query_safe("BEGIN; $sql");
	is($a->query_safe(q{SELECT ddb_lock_token('queue/q/subxact') IS NULL}), 't', "$what: the session holds nothing");
	wait_for { is_released('queue/q/subxact') } "$what: the lock is free";
	$a->query_safe('COMMIT');
	make_due('subxact');
	is(next_job($c, 'subxact'), "$number|2", "$what: another cluster gets the job");
	$c->query_safe(qq{SELECT ddb_queue_complete('q', 'subxact', $number)});
	wait_for { depth_of('subxact') == 0 && is_released('queue/q/subxact') } "$what: it is finished";
}
my $kept = push_to($one, 'subxact');
$a->query_safe('BEGIN');
is(next_job($a, 'subxact'), "$kept|1", 'a claim before a savepoint');
my $completes = qq{SELECT ddb_queue_complete('q', 'subxact', $kept)};
$a->query_safe("SAVEPOINT s; $completes; ROLLBACK TO s; $completes; COMMIT");
wait_for { depth_of('subxact') == 0 } 'its completion';
pass('... outlives a rollback to that');

#
# Old tokens
#
push_to($one, 'old');
is(next_job($a, 'old'), '1|1', 'a session claims a job');
my $zombie = undisturbed($one);
$a->query_safe(q{SELECT ddb_queue_complete('q', 'old', 1)});
wait_for { depth_of('old') == 0 } 'it is finished';
push_to($one, 'old');
is(next_job($zombie, 'old', '5 s'), '2|1', 'the next one');
lose($one, 'queue/q/old');
make_due('old');
is(next_job($c, 'old'), '2|2', 'it loses its lock, and another session claims its job');
like($zombie->error_of(q{SELECT ddb_queue_complete('q', 'old', 2)}),
	qr/LK001/, 'it cannot complete the job');
like($zombie->error_of(q{SELECT ddb_queue_fail('q', 'old', 2)}),
	qr/LK001/, 'nor fail it');
is(depth_of('old'), 1, 'the job is still the other one\'s');
$c->query_safe(q{SELECT ddb_queue_complete('q', 'old', 2)});
wait_for { depth_of('old') == 0 } 'who completes it';
push_to($one, 'old');
my $next;
wait_for { $next = next_of($zombie, 'old') } 'who has lost a claim gets the resource again';
is($next, '3|1', 'with its next job');
$zombie->quit;

# A claim that was lost does not concern the jobs that its session gets afterwards.
push_to($one, $_) foreach 'lost one', 'good one';
my $goes_on = undisturbed($one);
is(next_job($goes_on, 'lost one', '5 s'), '1|1', 'a session claims a job');
lose($one, 'queue/q/lost one');
like($goes_on->error_of(q{SELECT ddb_queue_complete('q', 'lost one', 1)}), qr/LK001/, 'it loses its lock');
is(next_job($goes_on, 'good one'), '1|1', 'it claims another job');
$goes_on->query_safe(q{CREATE TABLE good_work (n int)});
is($goes_on->ask(q{BEGIN; INSERT INTO good_work VALUES (1);
	SELECT ddb_queue_complete('q', 'good one', 1); COMMIT; SELECT count(*) FROM good_work}) =~ s/\s//gr, '1',
	'... whose work commits') or diag($goes_on->messages);
make_due('lost one');
is(next_job($goes_on, 'lost one'), '1|2', 'the other one comes again');
$goes_on->query_safe(q{SELECT ddb_queue_complete('q', 'lost one', 1)});
wait_for { depth_of('lost one') == 0 && depth_of('good one') == 0 } 'both are finished';
$goes_on->quit;

# The same, after COMMIT: the completion is under way while another session claims.
push_to($one, 'late', $large);
is(next_job($a, 'late'), '1|1', 'a session claims a job');
fault('error', count => -1);
$a->query_safe(q{SELECT ddb_queue_complete('q', 'late', 1)});
dynamodb->delete_item('queue/q/late');
make_due('late');
is(next_job($c, 'late'), '1|2', 'its completion is late, and another session has the job');
proxy->clear_faults;
wait_for { slurp_file($one->logfile) =~ /job 1 of resource "late" in queue "q" was claimed anew/ }
	'the old completion is refused';
is(depth_of('late'), 1, 'the job is not finished by it');
is($c->query_safe(q{SELECT ddb_lock_require('queue/q/late') = token FROM ddb_locks WHERE name = 'queue/q/late' AND pid = pg_backend_pid()}),
	't', 'nor its owner\'s lock released');
$c->query_safe(q{SELECT ddb_queue_fail('q', 'late', 1, 'no', '0')});
is($c->query_safe(q{SELECT number FROM ddb_queue_list('q', 'late')}), '1', 'nor the job deleted');
is(next_job($c, 'late'), '1|3', 'which comes again when its owner fails');
$c->query_safe(q{SELECT ddb_queue_complete('q', 'late', 1)});
wait_for { depth_of('late') == 0 } 'but by its owner';

# Nobody waits for a session that has committed: it may itself wait for the lock of its job.
push_to($one, 'self');
is(next_job($a, 'self'), '1|1', 'a session claims a job');
fault('error', count => -1);
$a->query_safe(q{SELECT ddb_queue_complete('q', 'self', 1)});
$a->send(q{SELECT ddb_lock_acquire('queue/q/self', wait => '5 min') > 0});
wait_for { $one->safe_psql('postgres', q{SELECT count(*) FROM ddb_locks
	WHERE name = 'queue/q/self' AND waiters = 1}) } 'the session waits for the lock of the job that it has completed';
proxy->clear_faults;
is($a->result, 't', 'and gets it');
$a->query_safe(q{SELECT ddb_lock_release('queue/q/self')});
is(depth_of('self'), 0, 'when the job is finished');

# Who pushes learns of trouble with the queues' table; who waits for a lock does not.
$a->query_safe(q{SET deadlock_timeout = '1 ms'});
proxy->reset_counts;
proxy->fault('error', operation => 'TransactWriteItems', count => -1);
$a->send(q{SELECT ddb_queue_push('q', 'trouble', '1')});
wait_for { proxy->faults('TransactWriteItems') > 5 } 'a session pushes again and again';
is($one->safe_psql('postgres', 'SELECT trouble IS NULL FROM ddb_status'), 't', 'no trouble with the lock table');
proxy->clear_faults;
is($a->result, '1', 'the job is pushed in the end');
like($a->messages, qr/NOTICE: .*still waiting for DynamoDB.*DETAIL: +Requests are being repeated: /s,
	'its session has been told why that takes so long');
$a->query_safe(q{RESET deadlock_timeout; SELECT ddb_queue_drop('q', 'trouble')});

# A job that another session has claimed anew is not buried.
push_to($one, 'both');
is(next_job($a, 'both'), '1|1', 'a session claims a job');
$a->query_safe(q{SELECT ddb_queue_fail('q', 'both', 1, 'no', '0')});
proxy->reset_counts;
proxy->fault('error', operation => 'TransactWriteItems', match => 'dead#q', count => -1);
make_due('both');
$a->send(q{SELECT number FROM ddb_queue_claim('q', lease => '1 h', resources => '{both}', max_attempts => 1)});
wait_for { proxy->faults('TransactWriteItems') > 0 } 'a session is about to bury it';
dynamodb->delete_item('queue/q/both');
make_due('both');
is(next_job($c, 'both'), '1|3', 'another session has the job');
proxy->clear_faults;
is($a->result, '', 'the first one has nothing');
unlike($a->messages, qr/ERROR/, 'and no error');
is($one->safe_psql('postgres', q{SELECT count(*) FROM ddb_queue_list('q', dead => true)}), '0', 'nor has it buried the job');
$c->query_safe(q{SELECT ddb_queue_complete('q', 'both', 1)});
wait_for { depth_of('both') == 0 } 'whose owner completes it';

# A burial whose reply is lost is repeated as it was: only then DynamoDB knows its token.
push_to($one, 'buried');
is(next_job($a, 'buried'), '1|1', 'a session claims a job');
$a->query_safe(q{SELECT ddb_queue_fail('q', 'buried', 1, 'no', '0')});
make_due('buried');
proxy->reset_counts;
proxy->fault('reset', applied => 1, operation => 'TransactWriteItems', match => 'dead#q');
is($a->query_safe(q{SELECT number FROM ddb_queue_claim('q', lease => '1 h', resources => '{buried}', max_attempts => 1)}),
	'', 'a job is buried, and the reply is lost');
is(proxy->faults('TransactWriteItems'), 1, 'once');
is($one->safe_psql('postgres', q{SELECT count(*) FROM ddb_queue_list('q', dead => true)}), '1', 'the job is dead');
is(depth_of('buried'), 0, 'and waits no more');

#
# Locks that are released, detached, joined
#
push_to($one, 'early');
is(next_job($a, 'early'), '1|1', 'a session claims a job');
like($a->error_of(q{BEGIN; SELECT ddb_queue_complete('q', 'early', 1);
	SELECT ddb_lock_release('queue/q/early'); COMMIT}),
	qr/55000: lock "queue\/q\/early" was given up/, 'the lock must stay until COMMIT');
is(depth_of('early'), 1, 'the job is not finished');
push_to($one, 'lock') foreach 1 .. 3;
is(next_job($a, 'lock'), '1|1', 'a session claims a job');
is(next_of($a, 'lock'), '', 'and no other one of the resource');
$a->query_safe(q{SELECT ddb_lock_release('queue/q/lock')});
like($a->error_of(q{SELECT ddb_queue_complete('q', 'lock', 1)}),
	qr/55000: this session has not claimed job 1/, 'without the lock there is no claim');
make_due('lock');
my $token;
wait_for { $token = $a->query_safe(
		q{SELECT token FROM ddb_queue_claim('q', lease => '1 h', resources => '{lock}')}) } 'claimed again';
my $d = session($one);
$d->query_safe(qq{SELECT ddb_lock_join('queue/q/lock', $token)});
like($d->error_of(q{SELECT ddb_queue_complete('q', 'lock', 1)}),
	qr/55000: this session has not claimed job 1/, 'who has joined the lock has not claimed the job');
is(next_of($d, 'lock'), '', 'nor can it claim under that lock');
$a->query_safe(q{SELECT ddb_queue_complete('q', 'lock', 1)});
wait_for { depth_of('lock') == 2 } 'who has claimed it completes it';
is(next_of($c, 'lock'), '', 'the lock is still held');
$d->query_safe(q{SELECT ddb_lock_release('queue/q/lock')});
my $got;
wait_for { $got = next_of($a, 'lock') } 'the next job';
is($got, '2|1', 'comes when it is released');
$a->query_safe(q{SELECT ddb_lock_detach('queue/q/lock', '1 h')});
like($a->error_of(q{SELECT ddb_queue_complete('q', 'lock', 2)}),
	qr/55000: this session has not claimed job 2/, 'a detached lock is no claim');
is(next_of($c, 'lock'), '', 'and keeps others from the resource');

#
# Calls on the queues' table use a quarter of the connections
#
my $narrow = new_cluster('narrow', through => proxy, conf => "ddblock.max_connections = 8\n"
	  . "ddblock.keep_warm = off\nddblock.request_timeout = '1 min'\n");
my @pushers = map { session($narrow) } 1 .. 4;
proxy->reset_counts;
proxy->fault('drop', operation => 'TransactWriteItems', count => -1);
$_->send(q{SELECT ddb_queue_push('q', 'half' || pg_backend_pid(), '1')}) foreach @pushers;
wait_for { proxy->received('TransactWriteItems') == 2 } 'two pushes are under way';
$narrow->safe_psql('postgres', q{SELECT ddb_lock_acquire('x'); SELECT ddb_lock_renew('x')});
is(proxy->received('TransactWriteItems'), 2, 'locks have the other connections');
proxy->clear_faults;
ok($_->result, 'a push that had to wait') foreach @pushers;

#
# One session takes neither the places of others, nor more and more memory; none sleeps over a
# hint; calls that nobody waits for are not sent
#
$_->quit foreach $a, $c;
my $small = new_cluster('small', through => proxy,
	conf => "max_connections = 40\nddblock.max_connections = 4\nddblock.poll_interval = '30 s'\n");
my ($d1, $d2) = map { session($small) } 1 .. 2;

# A second session finds what the first one was told of, though it need not look.
$d1->query_safe(q{SELECT ddb_queue_claim('hinted')});
$d1->query_safe(q{SELECT ddb_queue_push('hinted', 'r', '1'), pg_sleep(1.2)});
$d2->query_safe(q{SET statement_timeout = '10 s'});
is($d2->query_safe(q{SELECT number FROM ddb_queue_claim('hinted', wait => '1 min')}), '1',
	'a session that waits does not sleep over a hint');
proxy->reset_counts;
$d2->send(q{SELECT number FROM ddb_queue_claim('pushed', wait => '1 min')});
wait_for
{
	proxy->received('Query') && $small->safe_psql('postgres', q{SELECT 1 FROM pg_stat_activity
		WHERE query LIKE '%pushed%' AND wait_event_type = 'Extension'});
}
'a session that has found no job';
$d1->query_safe(q{SELECT ddb_queue_push('pushed', 'r', '1')});
is($d2->result, '1', '... nor over a push, though it would not look for 15 s');
$d2->query_safe(q{SET statement_timeout = 0});

my $many = 60;

$d1->query_safe(qq{SELECT count(ddb_queue_push('all', i::text, '1')) FROM generate_series(1, $many) i});
$d1->query_safe(qq{SELECT ddb_queue_claim('all', lease => '1 h', resources => '{$_}')}) foreach 1 .. $many;
my $complete_all = qq{SELECT count(ddb_queue_complete('all', i::text, 1)) FROM generate_series(1, $many) i};
like($d1->error_of($complete_all), qr/53400: a transaction cannot complete more than \d+ jobs/,
	'a session must leave places to others');
$d1->query_safe(q{SELECT ddb_queue_complete('all', '1', 1)});
wait_for { depth_of_all() == $many - 1 } 'one at a time is completed';
$d1->query_safe('SELECT ddb_lock_release_all()');

sub depth_of_all { return $two->safe_psql('postgres', q{SELECT count(*) FROM ddb_queue_depths('all')}); }

sub memory
{
	return $d2->query_safe(
		q{SELECT used_bytes FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext'});
}

my $long = 'x' x 800;
my $claim = q{SELECT ddb_lock_release('queue/memory/' || resource)
	FROM ddb_queue_claim('memory', resources => '{%s}')};
$d2->query_safe(qq{SELECT ddb_queue_push('memory', '$long$_', '1')}) foreach 1 .. 100;
$d2->query_safe(sprintf $claim, "$long$_") foreach 1 .. 20;
my $used = memory();
$d2->query_safe(sprintf $claim, "$long$_") foreach 21 .. 100;
cmp_ok(memory() - $used, '<', 40 * 800, 'claims whose lock is gone leave nothing behind');

$d2->query_safe(q{SET statement_timeout = '20 ms'});
proxy->fault('late_reply', operation => 'Query');
proxy->reset_counts;
$d1->send(q{SELECT count(*) FROM ddb_queue_depths('all')});
wait_for { proxy->received('Query') == 1 } 'a call that takes long';
like($d2->error_of(q{SELECT ddb_queue_depths('all')}), qr/57014/, 'a call behind it is canceled') foreach 1 .. 10;
proxy->clear_faults;
is($d1->result, $many - 1, 'when it is over');
$d2->query_safe(q{SET statement_timeout = 0; SELECT ddb_queue_depths('all')});
cmp_ok(proxy->received('Query'), '<', 8, 'those behind it are not sent');

#
# The budget of repetitions: what many sessions repeat in vain is repeated rarely
#
my $throttled = q{SELECT ddb_queue_push('q', 'throttled', '1')};
my @many = map { session($one) } 1 .. 20;

proxy->fault('error', operation => 'TransactWriteItems', count => -1, status => 400,
	type => 'com.amazonaws.dynamodb.v20120810#ThrottlingException');
$_->query_safe(q{SET statement_timeout = '1 min'}) foreach @many;
$_->send($throttled) foreach @many;
wait_for { proxy->faults('TransactWriteItems') > 120 } 'the budget is spent';
$one->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
	WHERE query LIKE '%throttled%' AND pid <> pg_backend_pid()});
$_->result foreach @many;
proxy->reset_counts;
$many[0]->query_safe(q{SET statement_timeout = '5 s'});
like($many[0]->error_of($throttled), qr/57014/, 'a push is repeated until it is canceled');
cmp_ok(proxy->received('TransactWriteItems'), '<=', 8, '... at most about once a second');
proxy->clear_faults;
$many[0]->query_safe(q{SET statement_timeout = 0});
cmp_ok($many[0]->query_safe($throttled), '>', 0, '... and succeeds later');
$_->quit foreach @many;

done_testing;
