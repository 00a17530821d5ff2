# The outbox: a row that cannot be sent keeps back only its own queue and resource, and says why.  What
# was sent stays sent, if the call ends early.

use DDBLock::Test;
use JSON::PP ();

my $node = new_cluster('one', through => proxy, conf => "ddblock.keep_warm = off\nddblock.retry_timeout = 300ms\nautovacuum_naptime = 1s\n");
my $a = session($node);
my $b = session($node);

$a->query_safe('SELECT ddb_queue_table_create()');

sub sql { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }

# Returns the number that is sent, and all else that is said.
sub send_outbox
{
	my ($options, $before) = @_;
	my ($status, $out, $err) = $node->psql('postgres',
		"\\set VERBOSITY verbose\n" . ($before // '') . "\nSELECT ddb_outbox_send(" . ($options // '') . ')');

	return ($out, $err);
}

sub write_rows
{
	my ($queue, $resource, @payloads) = @_;

	sql("SELECT ddb_queue_push_on_commit('$queue', '$resource', '$_')") foreach @payloads;
	return;
}

# Their payloads, in the order of their numbers.
sub jobs_of
{
	my ($queue, $resource) = @_;
	my $reply = dynamodb->call('Query', { TableName => 'queueTable', ConsistentRead => JSON::PP::true,
			KeyConditionExpression => 'pk = :r',
			ExpressionAttributeValues => { ':r' => { S => "r#$queue#$resource" } } });
	my %jobs;

	foreach my $item (@{ $reply->{Items} })
	{
		$jobs{ $item->{sk}{S} } = $item->{payload}{S} if $item->{sk}{S} =~ /^job#/;
		$jobs{$_} = $item->{$_}{M}{payload}{S} foreach grep { /^job#/ } keys %$item;
	}
	return join ' ', map { $jobs{$_} } sort keys %jobs;
}

#
# The id of another job
#
sql(q{SELECT ddb_queue_push('q', 'bad', '0', 'taken')});
write_rows('q', 'good', 1);
sql(q{SELECT ddb_queue_push_on_commit('q', 'bad', '1', 'taken')});
my $position = sql(q{SELECT max(position) FROM ddb_outbox});
write_rows('q', 'bad', 2, 3);
write_rows('q', 'good', 2);
write_rows('q2', 'bad', 1);

my ($sent, $said) = send_outbox();
is($sent, 3, 'the rows of other resources are sent');
like($said, qr/WARNING:  22023: row $position of table "ddb_outbox" cannot be sent/, 'a warning names the row');
like($said, qr/DETAIL:  id "taken" belongs to a job with another payload.*That job has number 1/, '... and says why');
like($said, qr/HINT:  Correct or delete the row/, '... and what to do');
is(jobs_of('q', 'good'), '1 2', 'they are in order');
is(jobs_of('q2', 'bad'), '1', 'another queue has resources of its own');
is(jobs_of('q', 'bad'), '0', 'the later rows of its resource wait');
is(sql(q{SELECT position, failing_since <= tried_at, failing_since > written_at, last_error FROM ddb_outbox WHERE failing_since IS NOT NULL}),
	"$position|t|t|22023: id \"taken\" belongs to a job with another payload in queue \"q\". That job has number 1.",
	'the row shows since when, and why');

my $since = sql("SELECT failing_since FROM ddb_outbox WHERE position = $position");
($sent, $said) = send_outbox();
is($sent, 0, 'the next call sends none of them');
like($said, qr/row $position of table "ddb_outbox" cannot be sent/, '... but tries again');
is(sql(qq{SELECT failing_since = '$since', tried_at > failing_since FROM ddb_outbox WHERE position = $position}),
	't|t', '... which the row shows');
write_rows('q', 'good', 3);
is((send_outbox())[0], 1, 'others go on');

sql("UPDATE ddb_outbox SET id = 'free' WHERE position = $position");
($sent, $said) = send_outbox();
is($sent, 3, 'when the row is corrected, it is sent, with those behind it');
is($said, '', '... without a word');
is(jobs_of('q', 'bad'), '0 1 2 3', '... in order');

#
# Whatever a row has, it does not stop the others.  Most of this cannot come from ddblock.
#
sub put_row
{
	my ($queue, $resource, $payload) = @_;

	sql("INSERT INTO ddb_outbox (queue, resource, payload) VALUES ($queue, $resource, $payload)");
	return;
}

# One request is refused so.
sub refuse
{
	my ($match, $type) = @_;

	proxy->fault('error', match => $match, status => 400, message => 'no', type => $type);
	return;
}

put_row(q{'not a name'}, q{'r'}, q{'1'});
put_row(q{'fine'}, q{''}, q{'1'});
put_row(q{'fine'}, q{'long'}, q{to_jsonb(repeat('x', 400000))});
put_row(q{'fine'}, q{'refused'}, q{'1'});
put_row(q{'fine'}, q{'forbidden'}, q{'1'});
put_row(q{'other'}, q{'r'}, q{'1'});
write_rows('fine', 'r', 1, 2);
my $prefix = q{SET ddblock.lock_prefix = 'queue/fine';};
refuse('r#fine#refused', 'com.amazon.coral.validate#ValidationException');
refuse('r#fine#forbidden', 'com.amazonaws.dynamodb.v20120810#AccessDeniedException');
is((send_outbox(1, $prefix))[0], 1, 'rows that fail do not count');
is(jobs_of('fine', 'r'), '1', '... the first good one is sent');
is(sql(q{SELECT string_agg(left(last_error, 5), ' ' ORDER BY position) FROM ddb_outbox}),
	'22023 22023 XX000 42501', 'the others say why they were not, if the session\'s prefix allows them');
is((send_outbox(1))[0], 1, 'what can be sent now is sent');
is((send_outbox(undef, q{SET ddblock.lock_prefix = 'shop/';}))[0], 0, 'a prefix that allows no queue sends nothing');
is((send_outbox())[0], 3, 'without a prefix the rest is sent');
is(sql(q{SELECT count(*) FROM ddb_outbox}), 3, 'the others stay');
sql(q{DELETE FROM ddb_outbox});

$node->safe_psql('postgres', q{CREATE DATABASE bytes TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'});
$node->safe_psql('bytes', q{CREATE EXTENSION ddblock;
	INSERT INTO ddb_outbox (queue, resource, payload) VALUES ('bytes', E'\xff', '1'), ('bytes', 'r', '1')});
is($node->safe_psql('bytes', q{SELECT ddb_outbox_send()}), 1, 'a text that cannot be converted stops no other');
is($node->safe_psql('bytes', q{SELECT left(last_error, 5) FROM ddb_outbox}), '22021', '... and says so');

#
# Many of them
#
sql(q{INSERT INTO ddb_outbox (queue, resource, payload) SELECT 'not a name', i::text, '1' FROM generate_series(1, 25) i});
write_rows('many', 'r', 1);
is((send_outbox())[0], 1, 'more rows that fail than are tried again in a call: another is sent');
write_rows('many', 'r', 2);
sql(q{UPDATE ddb_outbox SET queue = 'many' WHERE resource = '25'});
is((send_outbox())[0], 1, '... and later ones, too');
is((send_outbox())[0] + (send_outbox())[0], 1, 'who was not tried again comes later');
is(sql(q{SELECT count(*), min(tried_at) > min(failing_since) FROM ddb_outbox}), '24|t', '... and so do all');

# Two that have failed are made rows of one resource: the first one goes first.
sql(q{DELETE FROM ddb_outbox WHERE resource NOT IN ('1', '2')});
send_outbox();
sql(q{UPDATE ddb_outbox SET queue = 'many', payload = to_jsonb(position), resource = 'one'});
sql(q{UPDATE ddb_outbox SET tried_at = tried_at - interval '1 h' WHERE position = (SELECT max(position) FROM ddb_outbox)});
my $order = sql(q{SELECT string_agg(position::text, ' ' ORDER BY position) FROM ddb_outbox});
send_outbox() foreach 1 .. 2;
is(jobs_of('many', 'one'), $order, 'rows that are given to one resource keep their order');

#
# What is no row's fault ends the call, and nothing is noted
#
my %types = (
	'28000' => 'com.amazon.coral.service#UnrecognizedClientException',
	'42P01' => 'com.amazonaws.dynamodb.v20120810#ResourceNotFoundException',
	'53400' => 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException');
write_rows('out', $_, 1) foreach 1, 2;
foreach my $state ('08006', sort keys %types)
{
	proxy->fault($types{$state} ? ('error', type => $types{$state}, status => 400) : 'drop', count => -1);
	my ($number, $why) = send_outbox();
	proxy->clear_faults;
	like($why, qr/ERROR:  $state: /, "$state ends the call");
	unlike($why, qr/WARNING/, '... without blaming a row');
	is(sql(q{SELECT count(*), count(failing_since) FROM ddb_outbox}), '2|0', '... nor noting that');
}
proxy->fault('drop', match => 'r#out#1', count => -1);
like($a->error_of(q{BEGIN; SET LOCAL statement_timeout = '200ms'; SELECT ddb_outbox_send()}), qr/57014/,
	'a timeout ends the call, too');
proxy->clear_faults;
is(sql(q{SELECT count(failing_since) FROM ddb_outbox}), 0, '... and is not noted');

$a->query_safe('ROLLBACK');

# ... but when some are sent, they stay so, and the call says why it ends.
sub send_some
{
	my ($state, $options, $before) = @_;
	my ($number, $why) = send_outbox($options, $before);

	like($why, qr/WARNING:  $state: ddb_outbox_send\(\) stops early, after 2 jobs/, "$state after two jobs: a warning");
	like($why, qr/DETAIL:  \S.*HINT:  The next call sends/s, '... says why, and what to do');
	is($number, 2, '... and how many were sent');
	is(sql(q{SELECT count(*), count(failing_since) FROM ddb_outbox}), '2|0', '... the others stay');
	proxy->clear_faults;
	is((send_outbox())[0], 2, '... and are sent by the next call');
	return;
}
foreach my $state ('08006', sort keys %types)
{
	sql(q{DELETE FROM ddb_outbox});
	write_rows('some', "$state$_", 1) foreach 1 .. 4;
	proxy->fault($types{$state} ? ('error', type => $types{$state}, status => 400) : 'drop', match => "r#some#${state}3", count => -1);
	send_some($state);
}
sql(q{ALTER SYSTEM SET ddblock.retry_timeout = '1 h'});
sql('SELECT pg_reload_conf()');
wait_for { sql('SHOW ddblock.retry_timeout') eq '1h' } 'the reload';
write_rows('some', "late$_", 1) foreach 1 .. 4;
proxy->fault('drop', match => 'r#some#late3', count => -1);
send_some('57000', undef, q{SET statement_timeout = '3s';});

# Who cancels wants an end: ddblock does, when a lease is lost.
write_rows('some', "canceled$_", 1) foreach 1 .. 3;
proxy->fault('drop', match => 'r#some#canceled2', count => -1);
my $struck = proxy->faults;
my $pid = backend_pid($a);
$a->send('SELECT ddb_outbox_send()');
wait_for { proxy->faults > $struck } 'the second row';
sql("SELECT pg_cancel_backend($pid)");
$a->result;
like($a->messages, qr/ERROR:  57014/, 'a cancellation is an error, whatever was sent');
proxy->clear_faults;
is(sql('SELECT count(*) FROM ddb_outbox'), 3, '... which undoes all');
is((send_outbox())[0], 3, '... and the next call sends them');
is(jobs_of('some', 'canceled1'), '1', '... once');

#
# Two senders: the second one waits, and sends what is left.  Meanwhile VACUUM works.
#
sql(q{ALTER TABLE ddb_outbox SET (autovacuum_vacuum_threshold = 0, autovacuum_vacuum_scale_factor = 0)});
write_rows('two', $_, 1) foreach 1, 2;
is($a->query_safe(q{BEGIN; SELECT ddb_outbox_send(1)}), 1, 'a sender');
$b->send(q{SELECT ddb_outbox_send()});
wait_for { sql(q{SELECT count(*) FROM pg_locks WHERE NOT granted}) } 'another one';
my $vacuums = q{SELECT autovacuum_count FROM pg_stat_user_tables WHERE relname = 'ddb_outbox'};
my $before = sql($vacuums);
sql(q{BEGIN; SELECT ddb_queue_push_on_commit('two', '3', '1'); ROLLBACK});
wait_for { sql($vacuums) > $before } 'autovacuum';
unlike(($node->psql('postgres', 'VACUUM (SKIP_LOCKED) ddb_outbox'))[2], qr/skipping/, 'VACUUM need not wait for senders');
is(sql(q{SELECT count(*) FROM pg_locks WHERE NOT granted}), 1, '... of which one still waits');
$a->query_safe('COMMIT');
is($b->result, 1, '... sends the other row');
is(jobs_of('two', $_), '1', "job $_ was pushed once") foreach 1, 2;

# ... also if a row fails with the first one: the second one tries it again, and overtakes it with none of its resource.
foreach my $end ('COMMIT', 'ROLLBACK')
{
	sql(qq{SELECT ddb_queue_push('both', '$end', '0', '$end')});
	sql(qq{SELECT ddb_queue_push_on_commit('both', '$end', '1', '$end')});
	write_rows('both', $end, 2);
	write_rows('both', 'good', 1, 2);
	$a->query_safe('BEGIN');
	is($a->ask(q{SELECT ddb_outbox_send(1)}), 1, "a sender meets a bad row, and ends by $end");
	$b->send(q{SELECT ddb_outbox_send()});
	wait_for { sql(q{SELECT count(*) FROM pg_locks WHERE NOT granted}) } 'another one';
	$a->query_safe($end);
	is($b->result, $end eq 'COMMIT' ? 1 : 2, '... the other one sends what is left');
	is(() = $b->messages =~ /WARNING: +22023: row \d+ of table "ddb_outbox" cannot be sent/g, 1, '... and meets that row, too');
	is(jobs_of('both', $end), '0', '... which keeps back the next one');
	is(sql(q{SELECT count(*), count(failing_since) FROM ddb_outbox}), '2|1', '... and shows that it has failed');
	sql(q{UPDATE ddb_outbox SET id = 'free ' || resource WHERE failing_since IS NOT NULL});
	is((send_outbox())[0], 2, 'the corrected row is sent, and the next one');
	is(jobs_of('both', $end), '0 1 2', '... in order');
}
is(jobs_of('both', 'good'), '1 2 1 2', 'the others are pushed once each, in order');

$_->quit foreach $a, $b;
nothing_held_ok;
done_testing;
