# Queues: ids, arrays, dead jobs, and what operators do with jobs and resources.

use DDBLock::Test;

my $one = new_cluster('one');
my $two = new_cluster('two');
my $a = session($one);
my $b = session($two);

$one->safe_psql('postgres', 'SELECT ddb_queue_table_create(protect => false)');
my $table = 'queueTable';

sub next_of
{
	my ($session, $resource, $options) = @_;

	return $session->query_safe(
		"SELECT number, payload, attempt FROM ddb_queue_claim('q', resources => '{$resource}'"
		  . ($options ? ", $options" : '') . ')');
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

	return $one->safe_psql('postgres',
		"SELECT coalesce(max(depth), 0) FROM ddb_queue_depths('q', '$resource')");
}

sub jobs_of
{
	my ($resource) = @_;

	return $one->safe_psql('postgres',
		"SELECT string_agg(number::text, ',' ORDER BY number) FROM ddb_queue_list('q', '$resource')");
}

# What DynamoDB has of finished jobs goes away a moment after they are finished.
sub complete
{
	my ($session, $resource, $number) = @_;
	my $before = depth_of($resource);

	$session->query_safe("SELECT ddb_queue_complete('q', '$resource', $number)");
	wait_for { depth_of($resource) < $before } "$resource/$number is finished";
	return;
}

#
# Arrays and ids
#
is( $a->query_safe(q{SELECT ddb_queue_push_all('q', 'many', ARRAY['1', '2', '3']::jsonb[])}),
	'{1,2,3}', 'an array of jobs has consecutive numbers');
is( $a->query_safe(q{SELECT ddb_queue_push('q', 'many', '4', 'four')}),
	'4', 'a job with an id');
is( $b->query_safe(q{SELECT ddb_queue_push('q', 'many', '4', 'four')}),
	'4', 'the same id again is the same job');
like($b->error_of(qq{SELECT $_}),
	qr/22023: id "four" belongs to a job of another resource in queue "q".*DETAIL: +That job has number 4\./s, "for another resource: $_")
  foreach q{ddb_queue_push('q', 'alien', '4', 'four')},
	q{ddb_queue_push_all('q', 'alien', '{1,2}', ARRAY[NULL, 'four'])};
is(depth_of('alien'), 0, '... nothing is pushed');
like($b->error_of(qq{SELECT $_}),
	qr/22023: id "four" belongs to a job with another payload in queue "q".*DETAIL: +That job has number 4\..*HINT: /s, "with another payload: $_")
  foreach q{ddb_queue_push('q', 'many', '5', 'four')},
	q{ddb_queue_push_all('q', 'many', '{8,5}', ARRAY['eight', 'four'])};
is(jobs_of('many'), '1,2,3,4', '... nothing is pushed, either');
is($a->query_safe(q{SELECT ddb_queue_push('q', 'json', '{"a": 1, "bc": "é", "a": 2}', 'json')}), '1', 'a payload');
is($b->query_safe(q{SELECT ddb_queue_push('q', 'json', ' {"bc":"\u00e9","a":2}', 'json')}), '1', '... is the same in another form');
my $of_json = { TableName => $table, Key => { pk => { S => 'id#q' }, sk => { S => 'json' } } };
like(dynamodb->call('GetItem', $of_json)->{Item}{digest}{S}, qr/^[0-9a-f]{64}$/, 'a digest stands for it');
is($b->query_safe(q{SELECT ddb_queue_push('q', 'keys', '1', 'job#7')}), '1', $_)
  foreach 'an id that looks like a job\'s key', 'the same once more';
is( $b->query_safe(
		q{SELECT ddb_queue_push_all('q', 'many', ARRAY['5', '4', '6']::jsonb[], ARRAY['five', 'four', NULL])}
	),
	'{5,4,6}', 'in an array, what was pushed before is left out');
is(jobs_of('many'), '1,2,3,4,5,6', 'each is there once');
is( $a->query_safe(q{SELECT ddb_queue_push('q', 'short', '1', 'short', dedup => '1 s')}),
	'1', 'an id that counts for a second');
wait_for
{
	$a->query_safe(q{SELECT ddb_queue_push('q', 'short', '1', 'short', dedup => '1 day')}) == 2
} 'the id counts no longer';
is( $a->query_safe(
		q{SELECT id, age BETWEEN '0' AND '5 min', pushed_at IS NOT NULL
		  FROM ddb_queue_list('q', 'many') WHERE number = 4}),
	'four|t|t', 'the list shows id and age');

# 49 jobs with ids, and payloads that need many pieces on both ways.
is( $a->query_safe(
		q{SELECT array_length(ddb_queue_push_all('q', 'big', array_agg(to_jsonb(repeat('x', 10000) || i)),
		  array_agg('big' || i)), 1) FROM generate_series(1, 49) i}),
	'49', 'the most jobs that one push can have');
is(depth_of('big'), 49, 'they are there');
$a->query_safe(q{SELECT ddb_queue_push('q', 'large', to_jsonb(repeat('é"', 60000)))});
is( $b->query_safe(
		q{SELECT payload = to_jsonb(repeat('é"', 60000)) FROM ddb_queue_claim('q', wait => '1 min', resources => '{large}')}
	),
	't', 'a large payload is the same on the other side');
complete($b, 'large', 1);

#
# More resources than a page of the index has; all of their pages are read
#
$a->query_safe(
	q{SELECT count(ddb_queue_push('pages', 'r' || i, to_jsonb(i))) FROM generate_series(1, 120) i});
is($b->query_safe(q{SELECT count(*), sum(depth) FROM ddb_queue_depths('pages')}),
	'120|120', 'all pages of the index are read');
$b->query_safe(
	q{SELECT count(ddb_lock_acquire('queue/pages/r' || i)) FROM generate_series(1, 119) i});
like($a->query_safe(q{SELECT resource FROM ddb_queue_claim('pages', wait => '1 min')}),
	qr/^r120$/, 'a free resource behind pages of locked ones is found');
$b->query_safe('SELECT ddb_lock_release_all()');

#
# Dead jobs
#
$a->query_safe(q{SELECT ddb_queue_push('q', 'dies', '"x"', 'mortal')});
$a->query_safe(q{SELECT ddb_queue_push('q', 'dies', '"y"')});
foreach my $attempt (1 .. 2)
{
	is(next_job($a, 'dies', 'max_attempts => 2'), qq{1|"x"|$attempt}, "attempt $attempt");
	$a->query_safe(q{SELECT ddb_queue_fail('q', 'dies', 1, 'no luck', '0')});
}
my $got;
wait_for { $got = next_of($a, 'dies', 'max_attempts => 2') } 'the next job comes';
is($got, '2|"y"|1', 'after two attempts the next job has its turn');
is( $b->query_safe(
		q{SELECT resource, number, payload, attempts, last_error FROM ddb_queue_list('q', dead => true)}),
	'dies|1|"x"|2|no luck', 'the dead job is kept');
is( $b->query_safe(q{SELECT count(*), count(died_at), count(pushed_at), count(age), min(id) FROM ddb_queue_list('q', 'dies', dead => true)}),
	'1|1|1|1|0000000000000000001#dies', '... with its own id');
is($b->query_safe(q{SELECT count(*) FROM ddb_queue_list('q', 'many', dead => true)}), '0', '... under its resource');
is($b->query_safe(q{SELECT number, attempts, payload, died_at FROM ddb_queue_list('q', 'dies')}), '2|1||', '... and the next one is not dead');

# Figures: of a queue of its own, beside another one
my $figures = q{SELECT resources, depth, oldest >= '0', overdue >= '0', retrying, paused, dead
	FROM ddb_queue_summary('figures')};
is($b->query_safe($figures), '0|0|||0|0|0', 'an empty queue in figures');
my $counted = q{SELECT jobs_pushed, jobs_claimed, jobs_completed, jobs_failed, jobs_dead FROM ddb_stats};
my @counts = split /\|/, $one->safe_psql('postgres', $counted);
$a->query_safe(qq{SELECT ddb_queue_push('figures', '$_', '1')}) foreach qw(mortal tried tried paused fresh fresh done);
sub claim_of
{
	my ($resource) = @_;

	return wait_for { $a->query_safe("SELECT number FROM ddb_queue_claim('figures', resources => '{$resource}', max_attempts => 1)") }
	  "a job of $resource";
}
$a->query_safe(q{SELECT ddb_queue_pause('figures', 'paused')});
foreach my $resource (qw(mortal tried))
{
	claim_of($resource);
	$a->query_safe("SELECT ddb_queue_fail('figures', '$resource', 1, 'no', '0')");
}
is($a->query_safe(q{SELECT number FROM ddb_queue_claim('figures', resources => '{mortal}', max_attempts => 1)}), '',
	'a job that was tried too often');
claim_of('done');
$a->query_safe(q{SELECT ddb_queue_complete('figures', 'done', 1)});
is($a->query_safe($figures), '3|5|t|t|1|1|1', 'figures: resources, depth, ages, retrying, paused, dead');
is($b->query_safe(q{SELECT oldest <= max(age), oldest > max(age) - interval '1 min' FROM ddb_queue_summary('figures'),
	ddb_queue_list('figures') GROUP BY oldest}), 't|t', '... the age is that of the oldest job');
wait_for { my @now = split /\|/, $one->safe_psql('postgres', $counted); "@now[0 .. 4]" eq
	join ' ', map { $counts[$_] + (7, 3, 1, 2, 1)[$_] } 0 .. 4 } 'the counts of jobs: pushed, claimed, completed, failed, dead';

# The value of each column, from items whose times are known: in minutes before now
my $now = int(Time::HiRes::time() * 1000);
sub ago { my ($minutes) = @_; return { N => $now - $minutes * 60000 }; }
sub put
{
	my ($pk, $sk, %attributes) = @_;

	dynamodb->call('PutItem', { TableName => $table, Item => { pk => { S => $pk }, sk => { S => $sk }, %attributes } });
	return;
}
sub put_head
{
	my ($resource, $seq, $done, %attributes) = @_;

	put("r#values#$resource", 'head', ready => { S => 'values' }, seq => { N => $seq }, done => { N => $done }, %attributes);
	return;
}
sub job_key { my ($number) = @_; return sprintf('job#%019d', $number); }
sub put_waiting { my ($resource, $number, $age, %more) = @_; put("r#values#$resource", job_key($number), payload => { S => '1' }, pushedAt => ago($age), %more); return; }
sub values_are
{
	my ($columns, $from, @expected) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($b->query_safe("SELECT $columns FROM ddb_queue_$from"), join("\n", @expected), "$columns of ddb_queue_$from");
	return;
}
# Of times the milliseconds, of ages the hours
sub ms { my ($column) = @_; return "(extract(epoch FROM $column) * 1000)::bigint"; }
sub hours { my ($column) = @_; return "floor(extract(epoch FROM $column) / 3600)"; }

put_head('late', 5, 3, due => ago(90));
put_waiting('late', 4, 130, id => { S => 'four' });
put_waiting('late', 5, 70);
put_head('paused', 2, 1, due => ago(630), paused => { N => 1 });
put_waiting('paused', 2, 190);
put_head('rides', 2, 1, due => ago(30), job_key(2) => { M => { payload => { S => '1' }, pushedAt => ago(250), id => { S => 'two' } } });
put_head('tried', 2, 0, due => ago(330), retryAt => ago(-120), attempts => { N => 2 }, lastError => { S => 'no' });
put_waiting('tried', $_, 10) foreach 1, 2;
put_head('finished', 3, 3, due => ago(930), attempts => { N => 1 });
put('r#values#idle', 'head', seq => { N => 1 }, done => { N => 1 }, paused => { N => 1 });
put('dead#values', job_key(7) . '#late', resource => { S => 'late' }, number => { N => 7 }, payload => { S => '{"a":1}' },
	pushedAt => ago(90), due => ago(80), attempts => { N => 3 }, lastError => { S => 'never' });

values_are('resource, depth, attempts, ' . ms('due') . ', paused, last_error', q{depths('values') ORDER BY 1},
	"late|2|0|@{[ ago(90)->{N} ]}|f|", "paused|1|0|@{[ ago(630)->{N} ]}|t|", "rides|1|0|@{[ ago(30)->{N} ]}|f|",
	"tried|2|2|@{[ ago(-120)->{N} ]}|f|no");
values_are('resource, depth, attempts, due, paused, last_error', q{depths('values', 'idle')}, 'idle|0|0||t|');
values_are('count(*)', q{depths('values', 'finished')}, 0);
values_are('resource, number, id, ' . ms('pushed_at') . ', ' . hours('age') . ', attempts', q{list('values') ORDER BY 1, 2},
	"late|4|four|@{[ ago(130)->{N} ]}|2|0", "late|5||@{[ ago(70)->{N} ]}|1|0", "paused|2||@{[ ago(190)->{N} ]}|3|0",
	"rides|2|two|@{[ ago(250)->{N} ]}|4|0", "tried|1||@{[ ago(10)->{N} ]}|0|2", "tried|2||@{[ ago(10)->{N} ]}|0|0");
values_are('id, resource, number, payload, ' . ms('pushed_at') . ', ' . ms('died_at') . ', attempts, last_error', q{list('values', dead => true)},
	job_key(7) . qq(#late|late|7|{"a": 1}|@{[ ago(90)->{N} ]}|@{[ ago(80)->{N} ]}|3|never));
my $summary = 'resources, depth, ' . hours('oldest') . ', ' . hours('overdue') . ', retrying, paused, dead';
values_are($summary, q{summary('values')}, '4|6|4|1|1|1|1');
is($b->query_safe(qq{SELECT ddb_queue_pause('values', '$_')}), 't', "$_ is paused") foreach 'late';
values_are($summary, q{summary('values')}, '4|6|4|0|1|2|1');
is($b->query_safe(qq{SELECT ddb_queue_pause('values', '$_')}), 't', "$_ is paused") foreach 'rides';
values_are("overdue = '0'", q{summary('values')}, 't');
is($b->query_safe(q{SELECT ddb_queue_drop('values', 'finished')}), 0, 'what is finished is not dropped');
dynamodb->call('DeleteItem', { TableName => $table, Key => { pk => { S => 'r#values#finished' }, sk => { S => 'head' } } });

my ($dead) = @{ dynamodb->call('Query', { TableName => $table, KeyConditionExpression => 'pk = :pk',
		ExpressionAttributeValues => { ':pk' => { S => 'dead#q' } } })->{Items} };
is($b->query_safe(q{SELECT ddb_queue_redrive('q')}), '1', 'it is pushed anew');
dynamodb->call('PutItem', { TableName => $table, Item => $dead });
is($b->query_safe(q{SELECT ddb_queue_redrive('q')}), '1', '... once, if the redrive is repeated');
is($b->query_safe(q{SELECT count(*) FROM ddb_queue_list('q', dead => true)}), '0', 'and dead no more');
is(jobs_of('dies'), '2,3', 'it has a new number, although its id still counts');
like($b->error_of(q{SELECT ddb_queue_redrive('q', 'nobody')}),
	qr/42704: queue "q" has no dead job "nobody"/, 'an unknown dead job');
complete($a, 'dies', 2);

#
# Pause, cancel, drop
#
is($b->query_safe(q{SELECT ddb_queue_pause('q', 'many')}), 't', 'paused');
is($b->query_safe(q{SELECT ddb_queue_pause('q', 'many')}), 'f', 'it was paused already');
is(next_of($a, 'many'), '', 'a paused resource gives no job');
is($b->query_safe(q{SELECT paused FROM ddb_queue_depths('q', 'many')}), 't', 'it shows');
is($b->query_safe(q{SELECT ddb_queue_push('q', 'many', '7')}), '7', 'but takes jobs');
is($b->query_safe(q{SELECT ddb_queue_resume('q', 'many')}), 't', 'resumed');
is($b->query_safe(q{SELECT ddb_queue_resume('q', 'many')}), 'f', 'it was not paused');
$b->query_safe(q{SELECT ddb_queue_pause('q', 'early')});
$b->query_safe(q{SELECT ddb_queue_push('q', 'early', '1')});
is(next_of($a, 'early'), '', 'a resource can be paused before its first job');

is(next_job($a, 'many'), '1|1|1', 'job 1 runs');
like($b->error_of(q{SELECT ddb_queue_cancel('q', 'many', 1)}),
	qr/55006: job 1 of resource "many" in queue "q" may be running/,
	'what runs is not cancelled');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'many', 3)}), 't', 'a job behind it is');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'many', 3)}), 'f', 'once');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'many', 99)}), 'f', 'what is not there is not');
complete($a, 'many', 1);
wait_for { is_released('queue/q/many') } 'its lock to be free';
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'many', 1)}), 'f', 'the one that was finished last is not');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'many', 2)}),
	't', 'the next job is cancelled while nobody works on it');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'many', 1)}), 'f', 'nor one that was finished before');
is($b->query_safe(q{SELECT ddb_queue_cancel('q', 'many', 3)}), 'f',
	'nor one that was cancelled before it became the next one');
wait_for { $got = next_of($a, 'many') } 'the next job comes';
is($got, '4|4|1', 'cancelled jobs are passed over');

is($b->query_safe(q{SELECT ddb_queue_drop('q', 'many')}), '4', 'the rest is dropped');
is(depth_of('many'), 0, 'nothing is left');
$a->query_safe(q{SELECT ddb_queue_complete('q', 'many', 4)});
is($b->query_safe(q{SELECT ddb_queue_push('q', 'many', '8')}), '8', 'numbers go on');
wait_for { $got = next_of($a, 'many') } 'the new job comes';
is($got, '8|8|1', 'it is the new one');
complete($a, 'many', 8);

$a->query_safe(q{SELECT ddb_queue_push('q', 'gone', '1')});
is(next_job($a, 'gone'), '1|1|1', 'a job runs');
is($b->query_safe(q{SELECT ddb_queue_drop('q', 'gone')}), '1', 'and is dropped');
$a->query_safe(q{SELECT ddb_queue_fail('q', 'gone', 1)});
$a->query_safe(q{SELECT ddb_queue_push('q', 'gone', '2')});
wait_for { $got = next_of($b, 'gone') } 'its failure lets the resource go';
is($got, '2|2|1', 'the next job runs elsewhere');

# Whichever jobs are cancelled: the others come, in order, and the resource is not blocked.
SUBSET: foreach my $subset (1 .. 15)
{
	my $resource = "cancel $subset";
	my @cancelled = grep { $subset & 1 << $_ - 1 } 1 .. 4;
	my @left = grep { !($subset & 1 << $_ - 1) } 1 .. 4;

	# The next one first, or it last.
	@cancelled = reverse @cancelled if $subset % 2;
	# One half of the subsets has large jobs first, the other one small ones: these ride on the head.
	$a->query_safe(qq{SELECT ddb_queue_push('q', '$resource', CASE WHEN n % 2 = $subset % 2
			THEN to_jsonb(n || repeat(' ', 5000)) ELSE to_jsonb(n) END) FROM generate_series(1, 4) n});
	is($b->query_safe("SELECT ddb_queue_cancel('q', '$resource', $_)"), 't', "$resource: job $_ is cancelled") foreach @cancelled;
	foreach my $number (@left)
	{
		like(next_of($a, $resource, q{wait => '1 min'}), qr/^$number\|"?$number *"?\|1$/, "$resource: job $number comes") or last SUBSET;
		complete($a, $resource, $number);
	}
	is(next_of($a, $resource), '', "$resource: and no other one");
	wait_for { depth_of($resource) == 0 } "$resource: all are finished";
	is($b->query_safe(qq{SELECT ddb_queue_push('q', '$resource', '5')}), '5', "$resource: a push");
	is(next_of($a, $resource, q{wait => '1 min'}), '5|5|1', '... comes') or last;
	complete($a, $resource, 5);
}

#
# A job that is behind the head's last number, as after a table was restored by hand
#
dynamodb->call('PutItem', { TableName => $table,
	Item => { pk => { S => 'r#q#stray' }, sk => { S => 'job#' . ('0' x 18) . '1' },
		payload => { S => '1' } } });
like($a->error_of(q{SELECT ddb_queue_push('q', 'stray', to_jsonb(repeat('x', 5000)))}),
	qr/55000: DynamoDB refuses jobs for resource "stray"/, 'a push does not repeat for ever');

#
# Purge: items of finished jobs, and nothing else
#
my $waiting = jobs_of('big');
# 8 was finished last; of a resource with no head, everything up to the floor is finished, and there is none.
dynamodb->call('PutItem', { TableName => $table,
	Item => { pk => { S => "r#q#$_->[0]" }, sk => { S => 'job#' . ('0' x 18) . $_->[1] },
		payload => { S => '1' } } }) foreach [ 'many', 1 ], [ 'many', 8 ], [ 'many', 9 ], [ 'headless', 1 ];
is($b->query_safe(q{SELECT ddb_queue_purge()}), '2', 'what finished jobs left is deleted');
is($b->query_safe(q{SELECT ddb_queue_purge()}), '0', 'once');
is(jobs_of('big'), $waiting, 'and no job that waits');
dynamodb->call('DeleteItem', { TableName => $table,
	Key => { pk => { S => "r#q#$_->[0]" }, sk => { S => 'job#' . ('0' x 18) . $_->[1] } } })
  foreach [ 'many', 9 ], [ 'headless', 1 ];

#
# In the database's transaction: once, and the outbox
#
# The claim of the next job of resource "once": its number, when it was pushed, its token.
sub claim_once
{
	my ($session) = @_;

	return split /\|/, wait_for { $session->query_safe(
			q{SELECT number, pushed_at, token FROM ddb_queue_claim('q', resources => '{once}')}) } 'the next job';
}

my $c = session($one);
sub once { my ($number) = @_; return "SELECT ddb_queue_mark_done('q', 'once', $number)"; }

$a->query_safe(q{SELECT ddb_queue_push_all('q', 'once', '{1,2,3}')});
my ($number, $pushed_at, $token) = claim_once($a);
like($a->error_of(once(9223372036854775807)), qr/55000: .*DETAIL: +It has claimed job 1/s, 'a number cannot be forged');
like($c->error_of(once(1)), qr/55000: this session has not claimed job 1 of resource "once"/, 'nor can a claim');
is($a->query_safe('BEGIN; ' . once(1) . '; ROLLBACK; ' . once(1) . '; ' . once(1)), "t\nt\nf",
	'work is done once, unless its transaction aborts');
is($a->query_safe(q{SELECT ddb_queue_fail('q', 'once', 1, retry_in => '0')}), '', 'the job comes again');
my ($again, $same, $higher) = claim_once($c);
is("$again $same", "$number $pushed_at", 'it is the same job');
is($c->query_safe(once(1)), 'f', '... whose work is done, also under another claim');
complete($c, 'once', 1);

# In another database, or session: what the claim has told
sub elsewhere { return 'SELECT ddb_queue_mark_done(\'q\', \'once\', ' . sprintf("%s, '%s', %s)", @_); }
is($c->query_safe(elsewhere(1, $pushed_at, $higher)), 'f', 'another session sees the same');
my @second = claim_once($c);
is($a->query_safe(elsewhere(@second)), 't', 'and records what it does for the claimer');
is($a->query_safe(elsewhere(@second)), 'f', 'once');
is($c->query_safe(once(2)), 'f', 'which the claimer sees');
like($a->error_of(elsewhere(1, $pushed_at, $higher)),
	qr/LK002: fencing token for resource "queue\/q\/once" is stale/, 'a late session does no work');
like($a->error_of(elsewhere($second[0], $second[1], $higher)), qr/LK002/, 'nor for the last job');
complete($c, 'once', 2);
my @third = claim_once($c);
$a->query_safe(elsewhere(3, $third[1], $third[2] + 1));
like($c->error_of(once(3)), qr/LK002/, 'nor does one that believes in its claim');
$one->safe_psql('postgres', q{UPDATE ddb_queue_done SET token = 1 WHERE resource = 'once'});
complete($c, 'once', 3);
$one->safe_psql('postgres', q{
	CREATE FUNCTION suppress() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
	CREATE TRIGGER suppress BEFORE INSERT OR UPDATE ON ddb_queue_done FOR EACH ROW EXECUTE FUNCTION suppress()});
like($a->error_of(elsewhere(4, $pushed_at, $third[2])), qr/55000: table "ddb_queue_done" does not record the job/,
	'a trigger makes no job seem done');
$one->safe_psql('postgres', q{DROP FUNCTION suppress CASCADE});

$a->query_safe(q{BEGIN; SELECT ddb_queue_push_on_commit('out', 'r', '0'); ROLLBACK;
	SELECT ddb_queue_push_on_commit('out', 'r', to_jsonb(i)) FROM generate_series(1, 3) i;
	SELECT ddb_queue_push_on_commit('out', 'r', '4', 'mine')});
is($a->query_safe(q{SELECT count(*) FROM ddb_queue_depths('out')}), '0', 'nothing is pushed yet');
is($a->query_safe(q{BEGIN; SELECT ddb_outbox_send(); ROLLBACK; SELECT count(*) FROM ddb_outbox}),
	"4\n4", 'a sending that aborts leaves the rows');
is($a->query_safe(q{SELECT ddb_outbox_send(3), ddb_outbox_send(), ddb_outbox_send()}),
	'3|1|0', 'all are sent, again');
is($b->query_safe(q{SELECT string_agg(number || coalesce(':' || substr(id, 1, 7), ''), ' ' ORDER BY number)
	FROM ddb_queue_list('out', 'r')}),
	'1:ddblock 2:ddblock 3:ddblock 4:mine', 'each was pushed once, in order, under its id');
wait_for { $got = $b->query_safe(q{SELECT payload FROM ddb_queue_claim('out')}) } 'the next job';
is($got, '1', 'the first comes first');
is($a->query_safe(q{SELECT ddb_queue_push_on_commit('out', 'r', '4', 'mine'); SELECT ddb_outbox_send()}), "\n1",
	'a job that was sent before is not sent again');
is($a->query_safe(q{SELECT count(ddb_queue_push_on_commit('long', 'r', to_jsonb(i))) FROM generate_series(1, 120) i;
	SELECT ddb_outbox_send(110); SELECT ddb_outbox_send()}), "120\n110\n10",
	'more rows than are sent in a turn');
is($b->query_safe(q{SELECT min(number), max(number), count(DISTINCT id) FROM ddb_queue_list('long', 'r')}),
	'1|120|120', 'are sent once each');
is($b->query_safe(q{SELECT ddb_queue_drop('long', 'r')}), '120', 'and more than a page is dropped');
is($b->query_safe(q{SELECT payload FROM ddb_queue_claim('long')}), '', 'nothing is left');

#
# Memory: for a job at a time, not for all
#
my $jobs = 64;

# By how many kB a statement makes the most memory grow that a new session has used.
sub growth
{
	my ($sql) = @_;
	my $session = session($one);
	my $status = '/proc/' . backend_pid($session) . '/status';
	my $most = sub { return slurp_file($status) =~ /^VmHWM:\s*(\d+) kB$/m ? $1 : die "$status: no VmHWM\n"; };

	$session->query_safe(q{SELECT ddb_queue_drop('heavy', 'none')});
	my $before = $most->();
	is($session->query_safe($sql), $jobs, $sql);
	my $growth = $most->() - $before;
	$session->quit;
	return $growth;
}

$a->query_safe(qq{SELECT ddb_queue_push_on_commit('heavy', 'r', to_jsonb(repeat('x', 250000)))
	FROM generate_series(1, $jobs)});
cmp_ok(growth('SELECT ddb_outbox_send()'), '<', 8192, 'needs little memory');
dynamodb->call('PutItem', { TableName => $table, Item => { pk => { S => 'dead#heavy' },
		sk => { S => sprintf('%019d#d', $_) }, resource => { S => 'd' }, number => { N => "$_" },
		payload => { S => '"' . 'x' x 250000 . '"' }, attempts => { N => '1' }, due => { N => '1' },
		pushedAt => { N => '1' } } }) foreach 1 .. $jobs;
cmp_ok(growth(q{SELECT ddb_queue_redrive('heavy')}), '<', 8192, 'needs little memory, too');

#
# The queue table is made anew: its numbers begin at 1, and no job seems done
#
dynamodb->call('DeleteTable', { TableName => $table });
wait_for { eval { $one->safe_psql('postgres', 'SELECT ddb_queue_table_create(protect => false)'); 1 } } 'the table, anew';
$a->query_safe(q{SELECT ddb_queue_push_all('q', 'once', '{1,2,3}')});
foreach my $anew (1 .. 3)
{
	is((claim_once($a))[0], $anew, "job $anew of the new table");
	is($a->query_safe(once($anew) . '; ' . once($anew)), "t\nf", '... is done, once');
	complete($a, 'once', $anew);
}

done_testing;
