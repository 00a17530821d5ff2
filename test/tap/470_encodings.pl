# Databases that do not have every character: no value that a program may act on is changed.

use DDBLock::Test;

# Bytes in UTF-8, whatever the locale.
local $ENV{PGCLIENTENCODING} = 'UTF8';
my $japan = "\xe6\x97\xa5\xe6\x9c\xac";
my $smile = "\xf0\x9f\x98\x80";
my $cafe = "caf\xc3\xa9";

my $node = new_cluster('one');
foreach my $encoding (qw(UTF8 LATIN1))
{
	$node->safe_psql('postgres', "CREATE DATABASE \L$encoding\E TEMPLATE template0 ENCODING '$encoding'
		LC_COLLATE 'C' LC_CTYPE 'C'");
	$node->safe_psql(lc $encoding, 'CREATE EXTENSION ddblock');
}
$node->safe_psql('utf8', 'SELECT ddb_queue_table_create()');

sub utf8 { my ($sql) = @_; return $node->safe_psql('utf8', $sql); }
sub latin1 { my ($sql) = @_; return $node->safe_psql('latin1', $sql); }

# All that psql prints, with SQLSTATEs.
sub latin1_says
{
	my ($sql) = @_;
	my ($status, $out, $err) = $node->psql('latin1', "\\set VERBOSITY verbose\n$sql");

	return "$out\n$err";
}

#
# Jobs
#
my @foreign = (
	[ payload => 'r1', qq{'{"name": "$japan $smile"}', id => 'i'}, qr/It is "\{"name": "\\65E5\\672C \\\+01F600"\}"/ ],
	[ id => 'r2', qq{'1', id => '$japan'}, qr/It is "\\65E5\\672C"/ ],
	[ resource => "r$japan", q{'1'}, qr/It is "r\\65E5\\672C"/ ]);

foreach my $case (@foreign)
{
	my ($part, $resource, $rest, $detail) = @$case;
	my $queue = "q$part";

	utf8("SELECT ddb_queue_push('$queue', '$resource', $rest)");
	my $said = latin1_says("SELECT * FROM ddb_queue_claim('$queue')");
	like($said, qr/ERROR:  22P05: the $part of job 1 of queue "$queue" cannot be converted to encoding "LATIN1"/,
		"$part: an error");
	like($said, $detail, "... shows it");
	like($said, qr/HINT:  Use a database whose encoding is UTF8/, '... and says what to do');
	is(utf8("SELECT attempts, due <= now() + interval '1 s', last_error FROM ddb_queue_depths('$queue')"), '0|t|',
		'... and no attempt is counted');
	is(utf8("SELECT resource, attempt FROM ddb_queue_claim('$queue', wait => '10 s')"), "$resource|1",
		'the job is there for others');
}

# The session's other work goes on, and it keeps nothing.
my $session = session($node, 'latin1');
utf8("SELECT ddb_queue_push('mixed', 'foreign', '\"$japan\"')");
is($session->query_safe(q{DO $$ BEGIN PERFORM ddb_queue_claim('mixed');
	EXCEPTION WHEN untranslatable_character THEN NULL; END $$; SELECT 'caught'}), 'caught', 'it can be caught');
is($session->query_safe(q{SELECT count(*) FROM ddb_locks WHERE state = 'held'}), '0', 'no lock is held then');
utf8("SELECT ddb_queue_push('mixed', '$cafe', '\"$cafe\"', id => '$cafe')");
my $next = "SELECT resource, payload, id, attempt FROM ddb_queue_claim('mixed')";
my $claimed = wait_for { $session->ask($next) } 'the other job';
is($claimed, "$cafe|\"$cafe\"|$cafe|1", 'what the database can say is claimed');
is($session->query_safe("SELECT ddb_queue_complete('mixed', '$cafe', 1)"), '', '... and completed');

# Who cannot claim a job leaves the hint to others, who need not look for the job.  They look rarely, so that none
# of them is about to.
$node->append_conf('postgresql.conf', "ddblock.poll_interval = '1min'\n");
$node->reload;
wait_for { $session->query_safe('SHOW ddblock.poll_interval') eq '1min' } 'the setting';
my ($waits, $control) = map { session($node, 'utf8') } 1 .. 2;
my $queries = sub { $control->query_safe(q{SELECT requests FROM ddb_operations WHERE operation = 'queue_query'}) };
my $stopped = backend_pid($waits);
$_->send(q{SELECT resource FROM ddb_queue_claim('hint', wait => '1 min')}) foreach $waits, $session;
wait_for { $control->query_safe(q{SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%claim(''hint''%'
	AND wait_event IN ('DdblockQueue', 'Extension') AND pid <> pg_backend_pid()}) eq '2' } 'sessions that wait for a job';
kill 'STOP', $stopped;
$control->query_safe("SELECT ddb_queue_push('hint', 'foreign', '\"$japan\"')");
$session->result;
like($session->messages, qr/22P05: the payload of job 1/, 'a session that waits takes the hint in vain');
my $before = $queries->();
kill 'CONT', $stopped;
is($waits->result, 'foreign', '... and another one that waits has the job');
is($queries->(), $before, '... without a look at the index');
$_->quit foreach $waits, $control;
$node->append_conf('postgresql.conf', "ddblock.poll_interval = '250ms'\n");
$node->reload;

# A job that dies is handed to nobody.
utf8(q{SELECT ddb_queue_fail('mixed', 'foreign', number, 'no', retry_in => '0 s')
	FROM ddb_queue_claim('mixed', resources => '{foreign}', wait => '10 s')});
is(latin1("SELECT count(*) FROM ddb_queue_claim('mixed', max_attempts => 1)"), '0', 'a job is buried');
is(utf8("SELECT payload FROM ddb_queue_list('mixed', dead => true)"), "\"$japan\"", '... as it is');
like(latin1_says("SELECT id IS NOT NULL, resource, payload IS NULL FROM ddb_queue_list('mixed', dead => true)"),
	qr/^t\|foreign\|t\n.*NOTICE:  22P05: the payload of a dead job cannot be converted/s,
	'a payload that cannot be said is null');
utf8("SELECT ddb_queue_push('list', '$japan', '1', id => '$cafe')");
utf8("SELECT ddb_queue_push('list', '$cafe', '1')");
like(latin1_says("SELECT resource, id, number FROM ddb_queue_list('list')"),
	qr/^$cafe\|\|1\n\|$cafe\|1\n.*NOTICE:  22P05: the resource of a queue cannot/s, 'so is a resource, in lists');

#
# Locks
#
my $holder = session($node, 'utf8');
$holder->query_safe("SELECT ddb_lock_acquire('$japan'), ddb_lock_acquire('$cafe', attributes => '{\"x\": \"$japan\"}')");
foreach my $list ("ddb_lock_list() WHERE state = 'held'", "ddb_locks WHERE state = 'held'")
{
	like(latin1_says("SELECT name FROM $list ORDER BY name"),
		qr/^$cafe\n\n.*NOTICE:  22P05: the name of a lock cannot.*It is "\\65E5\\672C"/s, "$list: null");
}
like(latin1_says("SELECT * FROM ddb_lock_info('$cafe')"),
	qr/ERROR:  22P05: the attributes of the lock cannot be converted/, 'attributes: an error');
dynamodb->put_item({ key => { S => 'x' }, ownerName => { S => "o\x{65e5}" }, leaseDuration => { S => '1000' },
	recordVersionNumber => { S => 'v' } });
like(latin1_says("SELECT owner FROM ddb_lock_info('x')"), qr/ERROR:  22P05: the owner of the lock/, 'an owner, too');
like(latin1_says("SELECT name, owner FROM ddb_lock_list('x')"),
	qr/^x\|\n.*NOTICE:  22P05: the owner of a lock/s, '... null in a list');

done_testing;
