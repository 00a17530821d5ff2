# Two clusters, Amazon's client and dynamolock want one lock all the time: it is never held by two
# of them. All run on this machine, so its clock tells when each of them held the lock. Somebody
# deletes the item whenever it is marked released: dynamolock can read no other client's.

use DDBLock::Test;
use DDBLock::Client;
use Time::HiRes qw(sleep time);

foreach my $kind (qw(go java))
{
	my $missing = DDBLock::Client::missing($kind) // next;

	plan skip_all => $missing;
}

my $SECONDS = 20;
my $dir = PostgreSQL::Test::Utils::tempdir();
my @clusters = map { new_cluster($_) } qw(one two);
my @others = (
	[ 'Java', 'java', 'wait=1 refresh=20' ],
	[ 'Java, keeping items', 'java', 'wait=1 refresh=20 keep' ],
	[ 'dynamolock', 'go', 'wait=1 refresh=20' ],
	[ 'dynamolock, deleting items', 'go', 'wait=1 refresh=20 delete' ]);
my @clients = map { DDBLock::Client->start($_->[1], dynamodb->url, 20_000, 5000) } @others;

foreach my $node (@clusters)
{
	$node->safe_psql('postgres', q{
		CREATE TABLE held (who text, since numeric, until numeric);
		CREATE PROCEDURE contend(lock text, seconds int, mode text) LANGUAGE plpgsql AS $$
		DECLARE
			finish timestamptz := clock_timestamp() + seconds * interval '1 s';
			since timestamptz;
		BEGIN
			WHILE clock_timestamp() < finish LOOP
				EXECUTE format('SELECT ddb_lock_acquire%s($1)', mode) USING lock;
				since := clock_timestamp();
				PERFORM pg_sleep(0.005 + 0.01 * random());
				INSERT INTO held VALUES (current_setting('cluster_name') || mode,
					1e6 * extract(epoch FROM since), 1e6 * extract(epoch FROM clock_timestamp()));
				COMMIT;
				PERFORM ddb_lock_release(lock);
				PERFORM pg_sleep(0.05 * random());
			END LOOP;
		END $$});
}

# Each grant as [ who, since, until ], in the order of their beginning. The first clients of
# @others take part, and hold the lock for about $hold_ms; $meanwhile is called again and again.
sub grants
{
	my ($lock, $seconds, $sessions, $clients, $hold_ms, $meanwhile) = @_;
	my @grants;

	$_->ready foreach @clients;
	my $end = time + $seconds;
	$_->[0]->send("CALL contend('$lock', $seconds, '$_->[1]')") foreach @$sessions;
	$clients[$_]->send("contend $lock $seconds $dir/$lock.$_ $hold_ms $others[$_][2]") foreach 0 .. $clients - 1;
	while (time < $end + 2)
	{
		$meanwhile->();
		sleep 0.01;
	}
	foreach my $session (map { $_->[0] } @$sessions)
	{
		$session->result;
		unlike($session->messages, qr/ERROR|WARNING/, 'a session');
		$session->quit;
	}
	foreach my $node (@clusters)
	{
		push @grants, map { [ split /\|/ ] } split /\n/, $node->safe_psql('postgres', 'SELECT * FROM held');
		$node->safe_psql('postgres', 'TRUNCATE held');
	}
	foreach my $i (0 .. $clients - 1)
	{
		note("$others[$i][0]: grants, lost: " . $clients[$i]->result);
		push @grants, map { [ $others[$i][0], split / / ] } split /\n/, slurp_file("$dir/$lock.$i");
	}
	@grants = sort { $a->[1] <=> $b->[1] } @grants;
	return @grants;
}

# Pairs that were held at the same time, other than by two who share it.
sub overlaps
{
	my (@grants) = @_;
	my @overlaps;

	foreach my $i (0 .. $#grants)
	{
		for (my $j = $i + 1; $j <= $#grants && $grants[$j][1] < $grants[$i][2]; $j++)
		{
			push @overlaps, "@{ $grants[$i] } and @{ $grants[$j] }"
			  unless $grants[$i][0] =~ /_shared/ && $grants[$j][0] =~ /_shared/;
		}
	}
	return @overlaps;
}

# DynamoDB's condition, and the values in it.
sub delete_if
{
	my ($lock, $condition, %values) = @_;

	dynamodb->try_call('DeleteItem', {
		TableName => dynamodb->table,
		Key => { key => { S => $lock } },
		ConditionExpression => $condition,
		%values ? (ExpressionAttributeValues => \%values) : () });
	return;
}

my @who = ((map { $_->[0] } @others), map { ($_, $_ . '_shared') } qw(one two));
my (@grants, %count);

# On a busy machine, once may not be enough for all to get the lock.
foreach my $round (1 .. 5)
{
	my @sessions = map { my $node = $_; map { [ session($node), $_ ] } '', '', '_shared' } @clusters;

	push @grants, grants('hot', $SECONDS, \@sessions, scalar @others, 10,
		sub { delete_if('hot', 'attribute_exists(isReleased)') });
	%count = ();
	$count{ $_->[0] }++ foreach @grants;
	last unless grep { !$count{$_} } @who;
}
cmp_ok($count{$_} // 0, '>', 0, "$_ got the lock") foreach @who;
diag('grants: ' . join '; ', map { "$_ " . ($count{$_} // 0) } @who);
is(join("\n", overlaps(@grants)), '', 'nobody got it while another one had it');

# The same, and somebody deletes Java's item while Java holds the lock: this test notices.
foreach my $round (1 .. 3)
{
	my @sessions = map { [ session($_), '' ] } @clusters;

	@grants = grants('broken', 5, \@sessions, 1, 1000,
		sub { delete_if('broken', 'begins_with(ownerName, :java)', ':java' => { S => 'java' }) });
	last if overlaps(@grants);
}
cmp_ok(scalar overlaps(@grants), '>', 0, 'when a held item is deleted, two have the lock');

$_->stop foreach @clients;
nothing_held_ok;
done_testing;
