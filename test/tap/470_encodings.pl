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

$holder->query_safe('SELECT ddb_lock_release_all()');

#
# Texts of limited size: their bytes count in UTF-8, and no character is cut in two.
#
my %encodings = (	# database, a character that has that many bytes in UTF-8 and in its encoding
	UTF8 => [ 'utf8', "\xe2\x82\xac", 3, 3 ], LATIN1 => [ "\xe9" x 60, "\xc3\xa9", 2, 1 ],
	WIN1252 => [ 'win1252', "\xe2\x82\xac", 3, 1 ], EUC_JP => [ 'euc_jp', "\xe6\x97\xa5", 3, 2 ]);
latin1(q{CREATE DATABASE "} . "\xc3\xa9" x 60 . q{" TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'});
$node->safe_psql('postgres', "CREATE DATABASE \L$_\E TEMPLATE template0 ENCODING '$_' LC_COLLATE 'C' LC_CTYPE 'C'") foreach 'WIN1252', 'EUC_JP';
sub fits { my ($characters, $bytes, $room) = @_; return $characters * $bytes <= $room ? $characters : int($room / $bytes); }

foreach my $encoding (sort keys %encodings)
{
	my ($database, $char, $bytes, $own_bytes) = @{ $encodings{$encoding} };
	my ($one, $two) = map { session($node, $database) } 1, 2;
	my $count = int(60 / $own_bytes);
	my $role = $char x $count;
	my $in_item = $char x fits($count, $bytes, 127);
	my $in_slot = $char x fits($count, $bytes, 63);
	my $database_in_slot = $database =~ /^\w+$/a ? $database : $in_slot;
	my $database_in_item = $database =~ /^\w+$/a ? $database : $in_item;

	$one->query_safe('CREATE EXTENSION ddblock') if $database ne 'utf8';
	$one->query_safe(qq{CREATE ROLE "$role" SUPERUSER});
	$_->query_safe(qq{SET SESSION AUTHORIZATION "$role"}) foreach $one, $two;
	$one->query_safe(qq{SELECT ddb_lock_acquire('$encoding/a$role')});
	$two->query_safe(qq{SELECT ddb_lock_acquire('$encoding/b$role')});
	is($one->query_safe(qq{SELECT usename, datname FROM ddb_locks WHERE name = '$encoding/a$role'}), "$in_item|$database_in_item",
		"$encoding: ddb_locks has user and database of a holder");
	is($one->query_safe(qq{SELECT usename, datname FROM ddb_lock_info('$encoding/a$role')}), "$in_item|$database_in_item", '... its item, too');

	# The detail of a deadlock shows 100 bytes of a name.
	my $name_shown = "$encoding/%s" . $char x fits($count, $bytes, 100 - length("$encoding/a")) . (length("$encoding/a$role") > 100 ? '...' : '');
	$one->send(qq{SELECT ddb_lock_acquire('$encoding/b$role')});
	my $waiters = wait_for { $two->query_safe(q{SELECT usename, datname FROM ddb_locks WHERE state = 'waiting'}) } 'the waiter';
	is($waiters, "$in_slot|$database_in_slot", '... and of who waits');
	my $deadlock = $two->error_of(qq{SELECT ddb_lock_acquire('$encoding/a$role')});
	like($deadlock, qr/40P01.*lock "\Q$_\E"/s, 'a deadlock names the lock') foreach map { sprintf $name_shown, $_ } 'a', 'b';
	$two->query_safe('SELECT ddb_lock_release_all()');
	$one->result;
	$one->query_safe('SELECT ddb_lock_release_all()');

	$one->query_safe(qq{SELECT ddb_lock_acquire('$encoding/lost', lease => '4 s', at_most => '1 s')});
	my $loss = wait_for { $two->query_safe(q{SELECT last_loss FROM ddb_stats WHERE last_loss ~ '} . "$encoding/lost'") } 'the loss';
	like($loss, qr/user "$in_slot", database "$database_in_slot"/, 'so does the last loss');
	$one->ask('SELECT ddb_lock_release_all()');

	# 2,048 bytes of a name, 900 of a resource, 255 of an id, 1,024 of an error
	foreach ([ 2048, q{ddb_lock_try_acquire(%s)} ], [ 900, qq{ddb_queue_push('$encoding-r', %s, '1')} ],
		[ 255, qq{ddb_queue_push('$encoding-i', 'r', '1', id => %s)} ])
	{
		my ($room, $call) = @$_;
		my $most = sprintf q{repeat('x', %d) || repeat('%s', %d)}, $room % $bytes, $char, $room / $bytes;

		is($one->query_safe(sprintf "SELECT $call IS NOT NULL", $most), 't', "$room bytes in UTF-8");
		like($one->error_of(sprintf "SELECT $call", "$most || 'x'"), qr/22023: /, '... and not more');
	}
	$one->query_safe('SELECT ddb_lock_release_all()');
	my $start = 1024 % $bytes == 0 ? 'x' : '';
	$one->query_safe(qq{SELECT ddb_queue_push('$encoding-e', 'r', '1')});
	$one->query_safe(qq{SELECT ddb_queue_fail('$encoding-e', 'r', number, '$start' || repeat('$char', 1000)) FROM ddb_queue_claim('$encoding-e')});
	is($one->query_safe(qq{SELECT last_error FROM ddb_queue_depths('$encoding-e')}), $start . $char x fits(1000, $bytes, 1024 - length $start),
		'an error ends with a whole character');
	$_->quit foreach $one, $two;
}

done_testing;
