# Queues: jobs a second, and what a job costs, beside two others.  "make queues DURATION=3" runs
# it: three rounds of 3 seconds, in turns, for each of
#
#	ddblock		ddb_queue_push(), ddb_queue_claim() and ddb_queue_complete()
#	article		the plain design of "Building a multi-value semaphore with DynamoDB" (van
#				Donkersgoed), as DDBLock::Article has it
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
# The server is DynamoDB Local, which serves little at a time; a transaction takes it several times
# as long as another write.  So with 16 sessions, jobs a second show what requests cost there.

use DDBLock::Article;
use DDBLock::Test;
use List::Util qw(max);
use Time::HiRes qw(time);

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
	my $article = article_client($resources);

	$node->safe_psql('postgres', q{SELECT ddb_queue_claim('empty')});
	diag(sprintf 'a look, %4d resources, ddblock      %s', $resources, costs(difference($before), 1));
	$article->scan;
	diag(sprintf 'a look, %4d resources, article      %s', $resources, costs({ $article->counts }, 1));
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
	my $article = article_client($resources);

	$article->create_tables;
	$article->push_job($_) foreach 1 .. $resources;
	return;
}

sub article
{
	my ($sessions, $resources) = @_;
	my @clients = map { article_client($resources)->start(sub { work_article($_[0], $resources) }) } 1 .. $sessions;
	my %sum;

	foreach my $client (@clients)
	{
		my %counts = DDBLock::Article::finish($client);

		$sum{$_} += $counts{$_} foreach keys %counts;
	}
	return (delete $sum{rate}, %sum);
}

sub article_client
{
	my ($resources) = @_;
	return DDBLock::Article->new(server => dynamodb, tables => "article$resources");
}

sub work_article
{
	my ($article, $resources) = @_;
	my ($since, $end, $jobs) = (time, time + $duration, 0);

	while (time < $end)
	{
		$article->push_job(1 + int rand $resources);
		1 until $article->finish_one;
		$jobs++;
	}
	return (jobs => $jobs, rate => $jobs / (time - $since));
}
