# Queues: jobs a second, and what a job costs, beside two others.  "make queues DURATION=3" runs
# it: three rounds of 3 seconds, in turns, for each of
#
#	ddblock		ddb_queue_push(), ddb_queue_claim() and ddb_queue_complete()
#	article		a plain implementation of the design of "Building a multi-value semaphore with
#				DynamoDB" (van Donkersgoed): see below
#	SKIP LOCKED	jobs in a table of one database, which reaches no other cluster
#
# with 1 and with 16 sessions, for 10 and for 1,000 resources.  At the beginning one job waits
# for each resource.  Each session pushes a job for a resource picked at random, then works on
# one, whoever pushed it, and so on; a resource has at most one job running.  The work itself
# is nothing.
#
# Prints jobs a second (the median round); for each job the requests that the clients have
# sent, and capacity units; and the same for a look at a queue without a job.  Units are those that DynamoDB
# Local's replies name, indexes included.  The reply to a refused write names none, so its
# units are added here: 1 for each item, 2 in a transaction.
#
# The server is DynamoDB Local, for the double has neither transactions nor indexes.  It serves
# little at a time, and a transaction takes it several times as long as another write.  So with
# 16 sessions, jobs a second show what requests cost there.
#
# The article's design has an item for each environment (resource) with the number of its jobs,
# and an item for each job.  As it is written here:
#
#	push		a transaction puts the job, and adds one to the number
#	find		a scan of all environments, filtered: jobs wait, none is running
#	claim		a conditional update marks the environment; a query finds its oldest job
#	complete	a transaction deletes the job, takes one from the number, and removes the mark
#
# This is kinder to it than a timer: a session scans as soon as it has tried all that the last
# scan showed, in an order of its own, and pauses for 0.1 s only if it got none of that; and
# the scanned table has no jobs in it.  It does less: it has neither leases nor tokens nor
# attempts, so a client that dies in its work leaves the environment marked for ever.

use DDBLock::Test;
use List::Util qw(max sum0 shuffle);
use POSIX ();
use Time::HiRes qw(sleep time);

my $ROUNDS = 3;
my @RIVALS = (
	[ 'ddblock', \&fill_ddblock, \&ddblock ],
	[ 'article', \&fill_article, \&article ],
	[ 'SKIP LOCKED', \&fill_skip_locked, \&skip_locked ]);

my $duration = $ENV{DURATION} || 3;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $node = new_cluster('one', conf => "log_statement = none\nfsync = on\n");

$node->safe_psql('postgres', 'SELECT ddb_queue_table_create()');
foreach my $resources (10, 1000)
{
	$_->[1]->($resources) foreach @RIVALS;

	# For Java's compiler, which is at work in the beginning.
	if ($resources == 10)
	{
		$_->[2]->(16, $resources) foreach @RIVALS;
	}
	measure($_, $resources) foreach 1, 16;
	looks($resources);
}
done_testing;

# Whoever comes first in a round may find the machine in another state.
sub measure
{
	my ($sessions, $resources) = @_;
	my @order = @RIVALS;
	my (%rates, %sum);

	foreach (1 .. $ROUNDS)
	{
		foreach my $rival (@order)
		{
			my ($rate, %counts) = $rival->[2]->($sessions, $resources);

			push @{ $rates{ $rival->[0] } }, $rate;
			$sum{ $rival->[0] }{$_} += $counts{$_} foreach keys %counts;
		}
		push @order, shift @order;
	}
	foreach my $name (map { $_->[0] } @RIVALS)
	{
		my $rate = (sort { $a <=> $b } @{ $rates{$name} })[ $ROUNDS / 2 ];
		my $sum = $sum{$name};

		ok($sum->{jobs} > 0, "$name: $sessions sessions have done jobs of $resources resources");
		diag(sprintf '%2d sessions, %4d resources, %-12s %7.1f jobs/s%s', $sessions, $resources, $name, $rate,
			$sum->{requests} ? ': ' . costs($sum, $sum->{jobs}) : '');
	}
	return;
}

sub costs
{
	my ($counts, $jobs) = @_;

	return sprintf '%.1f requests, %.1f write units, %.1f read units',
	  map { ($counts->{$_} // 0) / $jobs } qw(requests written read);
}

# What it costs to find out that there is no job.
sub looks
{
	my ($resources) = @_;
	my $before = totals();
	my %article;

	$node->safe_psql('postgres', q{SELECT ddb_queue_claim('empty')});
	diag(sprintf 'a look, %4d resources, ddblock      %s', $resources, costs(difference($before), 1));
	scan_article("article$resources", \%article);
	diag(sprintf 'a look, %4d resources, article      %s', $resources, costs(\%article, 1));
	return;
}

# Jobs a second, without the time in which the sessions connect; and jobs.
sub pgbench
{
	my ($script, $sessions) = @_;
	my $file = "$dir/script";

	unlink $file;
	append_to_file($file, $script);
	my ($output) = run_command([ 'pgbench', '-h', $node->host, '-p', $node->port, '-n',
		'-c', $sessions, '-T', $duration, '-f', $file, 'postgres' ]);
	my ($jobs) = $output =~ /actually processed: (\d+)/ or die "pgbench: $output\n";
	my ($rate) = $output =~ /^tps = ([\d.]+)/m or die "pgbench: $output\n";

	return ($rate, jobs => $jobs);
}

sub fill_ddblock
{
	my ($resources) = @_;

	$node->safe_psql('postgres',
		"SELECT ddb_queue_push('q$resources', i::text, '1') FROM generate_series(1, $resources) i");
	return;
}

sub ddblock
{
	my ($sessions, $resources) = @_;
	my $before = totals();
	my ($rate, %counts) = pgbench(<<"SQL", $sessions);
\\set r random(1, $resources)
SELECT ddb_queue_push('q$resources', (:r)::text, '1');
SELECT ddb_queue_complete('q$resources', resource, number)
	FROM ddb_queue_claim('q$resources', wait => '1 min');
SQL
	my $cost = difference($before);

	# What was sent beyond what a job takes was refused.  A lock that passes on takes no acquire.
	$cost->{written} += 2 * ($cost->{queue_transact} - $counts{jobs})
	  + ($cost->{queue_update} - 2 * $counts{jobs}) + max(0, $cost->{acquire} - $counts{jobs});
	return ($rate, %counts, map { $_ => $cost->{$_} } qw(requests written read));
}

# Requests and units so far, and the requests of some operations.
sub totals
{
	my %total = map { split /\|/ } split /\n/, $node->safe_psql('postgres', q{
		SELECT 'requests', sum(requests) FROM ddb_operations
		UNION ALL
		SELECT CASE WHEN operation ~ '(read|query|scan)$' THEN 'read' ELSE 'written' END,
			sum(consumed_units) FROM ddb_operations GROUP BY 1
		UNION ALL
		SELECT operation, requests FROM ddb_operations
		WHERE operation IN ('queue_transact', 'queue_update', 'acquire')});

	return \%total;
}

sub difference
{
	my ($before) = @_;
	my $after = totals();

	return { map { $_ => $after->{$_} - $before->{$_} } keys %$after };
}

# A job runs in the transaction that has locked its resource's row.
sub fill_skip_locked
{
	my ($resources) = @_;

	$node->safe_psql('postgres', <<"SQL");
DROP TABLE IF EXISTS resource, job;
CREATE TABLE resource (resource int PRIMARY KEY);
CREATE TABLE job (id bigserial PRIMARY KEY, resource int, payload jsonb);
CREATE INDEX ON job (resource, id);
INSERT INTO resource SELECT generate_series(1, $resources);
INSERT INTO job (resource, payload) SELECT resource, '1' FROM resource;
ANALYZE resource, job;
CREATE OR REPLACE FUNCTION work() RETURNS bigint LANGUAGE plpgsql AS \$\$
DECLARE
	mine int;
	done bigint;
BEGIN
	LOOP
		SELECT r.resource INTO mine FROM job JOIN resource r USING (resource)
			ORDER BY job.id LIMIT 1 FOR UPDATE OF r SKIP LOCKED;
		-- Whoever had the resource until now may have finished the job that was found.
		DELETE FROM job WHERE id = (SELECT min(id) FROM job WHERE resource = mine)
			RETURNING id INTO done;
		EXIT WHEN done IS NOT NULL;
		PERFORM pg_sleep(0.001);
	END LOOP;
	RETURN done;
END \$\$;
SQL
	return;
}

sub skip_locked
{
	my ($sessions, $resources) = @_;

	return pgbench(<<"SQL", $sessions);
\\set r random(1, $resources)
INSERT INTO job (resource, payload) VALUES (:r, '1');
SELECT work();
SQL
}

sub fill_article
{
	my ($resources) = @_;

	create_tables("article$resources");
	push_article("article$resources", $_, {}) foreach 1 .. $resources;
	return;
}

sub article
{
	my ($sessions, $resources) = @_;
	my @pipes = map { start_worker("article$resources", $resources) } 1 .. $sessions;
	my %sum;

	foreach my $pipe (@pipes)
	{
		my $line = <$pipe>;
		my %counts = map { split /=/ } split ' ', $line // '';

		close $pipe or die "a worker of the article's design has failed\n";
		$sum{$_} += $counts{$_} foreach keys %counts;
	}
	return (delete $sum{rate}, %sum);
}

sub create_tables
{
	my ($tables) = @_;
	my @environment = ({ AttributeName => 'environment', KeyType => 'HASH' });
	my @deployment = (@environment, { AttributeName => 'requested', KeyType => 'RANGE' });

	foreach ([ "$tables.environment", @environment ], [ "$tables.deployment", @deployment ])
	{
		my ($table, @keys) = @$_;

		dynamodb->call('CreateTable', {
			TableName => $table,
			BillingMode => 'PAY_PER_REQUEST',
			KeySchema => \@keys,
			AttributeDefinitions => [
				map { { AttributeName => $_->{AttributeName}, AttributeType => 'S' } } @keys ] });
	}
	return;
}

# A process of its own; the pipe says in the end what it has done.
sub start_worker
{
	my ($tables, $resources) = @_;
	my $pid = open(my $pipe, '-|') // die "fork: $!\n";

	return $pipe if $pid;
	my %counts = eval { work_article($tables, $resources) };
	print STDERR $@ if $@;
	syswrite STDOUT, join(' ', map { "$_=$counts{$_}" } keys %counts) . "\n";
	POSIX::_exit($@ ? 1 : 0);
}

sub work_article
{
	my ($tables, $resources) = @_;
	my %counts = (jobs => 0);
	my ($since, $end) = (time, time + $duration);
	my @found;

	srand;
	while (time < $end)
	{
		push_article($tables, 1 + int rand $resources, \%counts);
		1 until finish_one($tables, \@found, \%counts);
		$counts{jobs}++;
	}
	return (%counts, rate => $counts{jobs} / (time - $since));
}

# The reply, or undef if a condition or another transaction has refused it.
sub send_article
{
	my ($counts, $operation, $request) = @_;
	my ($status, $reply) =
	  dynamodb->try_call($operation, { %$request, ReturnConsumedCapacity => 'TOTAL' });
	my $refused = ($reply->{__type} // '') =~ /ConditionalCheckFailed|TransactionCanceled|TransactionConflict/;
	my $consumed = $reply->{ConsumedCapacity} // [];
	my $units = sum0(map { $_->{CapacityUnits} } ref $consumed eq 'ARRAY' ? @$consumed : $consumed);

	die "$operation: $status " . JSON::PP::encode_json($reply) . "\n" unless $status == 200 || $refused;
	$units = 2 * @{ $request->{TransactItems} // [] } || 1 if $refused;
	$counts->{requests}++;
	$counts->{ $operation =~ /Scan|Query/ ? 'read' : 'written' } += $units;
	return $refused ? undef : $reply;
}

# Transactions that meet are repeated.
sub push_article
{
	my ($tables, $environment, $counts) = @_;
	my $put = {
		TableName => "$tables.deployment",
		Item => {
			environment => { S => "$environment" },
			requested => { S => sprintf '%.6f %s', time, DDBLock::DynamoDB::uuid() },
			payload => { S => '1' } } };

	1 until send_article($counts, 'TransactWriteItems', {
		TransactItems => [ { Put => $put }, { Update => {
			TableName => "$tables.environment",
			Key => { environment => { S => "$environment" } },
			UpdateExpression => 'ADD waiting :one',
			ExpressionAttributeValues => { ':one' => { N => '1' } } } } ] });
	return;
}

sub finish_one
{
	my ($tables, $found, $counts) = @_;

	@$found = shuffle(scan_article($tables, $counts)) unless @$found;
	while (my $environment = shift @$found)
	{
		claim_article($tables, $environment, $counts) or next;
		complete_article($tables, $environment, $counts);
		return 1;
	}
	sleep 0.1;
	return 0;
}

sub scan_article
{
	my ($tables, $counts) = @_;
	my $page = send_article($counts, 'Scan', {
		TableName => "$tables.environment",
		FilterExpression => 'waiting > :zero AND attribute_not_exists(running)',
		ProjectionExpression => 'environment',
		ExpressionAttributeValues => { ':zero' => { N => '0' } } });

	die "the environments do not fit a page\n" if $page->{LastEvaluatedKey};
	return map { $_->{environment}{S} } @{ $page->{Items} };
}

sub claim_article
{
	my ($tables, $environment, $counts) = @_;

	return send_article($counts, 'UpdateItem', {
		TableName => "$tables.environment",
		Key => { environment => { S => $environment } },
		UpdateExpression => 'SET running = :me',
		ConditionExpression => 'waiting > :zero AND attribute_not_exists(running)',
		ExpressionAttributeValues => { ':zero' => { N => '0' }, ':me' => { S => "$$" } } });
}

sub complete_article
{
	my ($tables, $environment, $counts) = @_;
	my $oldest = send_article($counts, 'Query', {
		TableName => "$tables.deployment",
		ConsistentRead => JSON::PP::true,
		Limit => 1,
		KeyConditionExpression => 'environment = :e',
		ExpressionAttributeValues => { ':e' => { S => $environment } } })->{Items}[0];

	1 until send_article($counts, 'TransactWriteItems', {
		TransactItems => [ { Delete => {
			TableName => "$tables.deployment",
			Key => { map { $_ => $oldest->{$_} } qw(environment requested) } } },
		{ Update => {
			TableName => "$tables.environment",
			Key => { environment => { S => $environment } },
			UpdateExpression => 'ADD waiting :less REMOVE running',
			ExpressionAttributeValues => { ':less' => { N => '-1' } } } } ] });
	return;
}
