# A backlog: time until the last of many jobs is done, as a person would choose between three
# queues.  "make backlog JOBS=10000" runs it: three rounds, in turns, for each of
#
#	ddblock		three clusters with 8 sessions each, DynamoDB is the double
#	article		24 processes, the same double: the plain design of "Building a multi-value
#				semaphore with DynamoDB", see DDBLock::Article
#	pgmq		24 sessions of one cluster, PostgreSQL's queue from PyPI, with FIFO groups
#
# All jobs wait before the clock starts, evenly spread over 200 resources.  Of a resource at most one is
# running, the oldest first.  The work itself is nothing.  Each reply of the double takes 2 ms.
#
# The article's clients are Perl, whose processor time decides on a small machine; each round
# shows the processor time of the whole machine for a job (servers included), and the requests.

use DDBLock::Article;
use DDBLock::Client;
use DDBLock::Test;
use List::Util qw(sum sum0);
use Time::HiRes qw(sleep time);

my ($ROUNDS, $RESOURCES, $SESSIONS, $DELAY_MS) = (3, 200, 8, 2);

if (my $missing = DDBLock::Client::missing('pgmq'))
{
	plan skip_all => "nothing is measured: $missing";
}

my $jobs = $ENV{JOBS} || 10_000;
my $each = int($jobs / $RESOURCES) || 1;

$jobs = $each * $RESOURCES;

my $dir = PostgreSQL::Test::Utils::tempdir();
my $double = new_double();
my @clusters = map { new_cluster($_, through => $double, table => 0, conf => "log_statement = none\nfsync = on\n") }
  qw(one two three);
my $pgmq = new_cluster('pgmq', extension => 0, conf => "log_statement = none\nfsync = on\n");
my %counters = map { $_->name => session($_) } @clusters, $pgmq;
my %rivals = (ddblock => \&ddblock, article => \&article, pgmq => \&pgmq);

$clusters[0]->safe_psql('postgres', 'SELECT ddb_lock_table_create(), ddb_queue_table_create()');
$_->safe_psql('postgres', 'CREATE SEQUENCE done') foreach @clusters, $pgmq;
install_pgmq();
$double->fault('late_reply', delay_ms => $DELAY_MS, count => -1);

my %results;

foreach my $round (1 .. $ROUNDS)
{
	foreach my $name (sort keys %rivals)
	{
		my %result = $rivals{$name}->("$name$round");

		push @{ $results{$name} }, \%result;
		diag(sprintf 'round %d: %-8s %7.2f s, %6.1f jobs/s, %.2f ms of the processors a job%s', $round, $name,
			$result{seconds}, $jobs / $result{seconds}, 1000 * $result{busy} / $jobs,
			$result{requests} ? sprintf ', %.2f requests a job', $result{requests} / $jobs : '');
	}
}
foreach my $name (sort keys %rivals)
{
	my @seconds = sort { $a <=> $b } map { $_->{seconds} } @{ $results{$name} };

	is(scalar @seconds, $ROUNDS, "$name has worked off $jobs jobs in each round");
	diag(sprintf '%-8s %d jobs of %d resources: %.2f s (%.2f to %.2f), %.1f jobs/s', $name, $jobs, $RESOURCES,
		$seconds[ $ROUNDS / 2 ], @seconds[ 0, -1 ], $jobs / $seconds[ $ROUNDS / 2 ]);
}
$_->quit foreach values %counters;
done_testing;

# Starts the clock, calls done() until it says that all is, and looks at the clock.
sub clock
{
	my ($done) = @_;
	my ($since, $busy) = (time, busy());
	my $end = $since + 600;

	until ($done->())
	{
		die "the jobs are not done after 600 s\n" if time > $end;
		sleep 0.05;
	}
	return (seconds => time - $since, busy => busy() - $busy);
}

# Seconds that all processors have worked.
sub busy
{
	open my $fh, '<', '/proc/stat' or die "/proc/stat: $!\n";
	my (undef, $user, $nice, $system, undef, undef, $irq, $softirq) = split ' ', <$fh>;
	close $fh;
	return ($user + $nice + $system + $irq + $softirq) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Sessions that repeat the script until all jobs are done, which nextval('done') counts.
sub drain
{
	my ($script, @nodes) = @_;
	my $file = "$dir/script";
	my $before = done(@nodes);
	my @output = map { '' } @nodes;
	my $sessions = $SESSIONS * @clusters / @nodes;

	unlink $file;
	append_to_file($file, $script);
	my @loads = map {
		IPC::Run::start([ 'pgbench', '-n', '-c', $sessions, '-T', 3600, '-f', $file,
			$nodes[$_]->connstr('postgres') . ' application_name=worker' ], '>', \$output[$_], '2>&1')
	} 0 .. $#nodes;
	my %result = clock(sub {
		IPC::Run::pump_nb($_) foreach @loads;
		return done(@nodes) - $before >= $jobs;
	});

	# Sessions that lived on would take the jobs of the next round.
	$_->safe_psql('postgres', q{SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity
		WHERE application_name = 'worker'}) foreach @nodes;
	IPC::Run::finish($_) foreach @loads;
	is(done(@nodes) - $before, $jobs, 'each job was done once')
		or diag(@output);
	return %result;
}

sub done
{
	return sum(map { $counters{ $_->name }->query_safe('SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM done') } @_);
}

sub ddblock
{
	my ($queue) = @_;
	my @pushers = map { session($_) } @clusters;

	# A call takes at most 49 jobs.
	foreach my $i (0 .. $#pushers)
	{
		$pushers[$i]->send("SELECT count(ddb_queue_push_all('$queue', r::text, array_fill('1'::jsonb, ARRAY[least(25, $each - n)])))"
			. " FROM generate_series(1, $RESOURCES) r, generate_series(0, $each - 1, 25) n WHERE r % " . @clusters . " = $i");
	}
	foreach (@pushers)
	{
		$_->result;
		$_->quit;
	}
	my $before = requests();
	my %result = drain(<<"SQL", @clusters);
SELECT ddb_queue_complete('$queue', resource, number), nextval('done') FROM ddb_queue_claim('$queue', wait => '1 min');
SQL
	return (%result, requests => requests() - $before);
}

sub requests
{
	return sum(map { $_->safe_psql('postgres', 'SELECT sum(requests) FROM ddb_operations') } @clusters);
}

sub article
{
	my ($tables) = @_;
	my @clients = map { DDBLock::Article->new(server => $double, tables => $tables) } 1 .. $SESSIONS * @clusters;

	$clients[0]->create_tables;
	DDBLock::Article::finish($_) foreach map {
		my $first = $_;

		$clients[$first]->start(sub {
			for (my $resource = $first; $resource < $RESOURCES; $resource += $SESSIONS)
			{
				$_[0]->push_job($resource) foreach 1 .. $each;
			}
			return;
		})
	} 0 .. $SESSIONS - 1;

	my @processes = map { $_->start(\&work_article) } @clients;
	my %result = clock(sub {
		return $double->call('Scan', {
			TableName => "$tables.environment",
			FilterExpression => 'waiting > :zero',
			Select => 'COUNT',
			ExpressionAttributeValues => { ':zero' => { N => '0' } } })->{Count} == 0;
	});
	my %sum;

	kill 'TERM', map { $_->{pid} } @processes;
	foreach my $process (@processes)
	{
		my %counts = DDBLock::Article::finish($process);

		$sum{$_} += $counts{$_} foreach keys %counts;
	}
	is($sum{jobs}, $jobs, 'each job was done once');
	return (%result, requests => $sum{requests});
}

sub work_article
{
	my ($article) = @_;
	my ($done, $end) = (0, 0);

	local $SIG{TERM} = sub { $end = 1; };
	until ($end)
	{
		$done += $article->finish_one;
	}
	return (jobs => $done);
}

# A message's group is its resource: read_grouped_head() gives the oldest of a group, and
# no other while that is in work.
sub install_pgmq
{
	my $sql = slurp_file(DDBLock::Client::folder('pgmq') . '/pgmq/sql/pgmq.sql');

	$pgmq->safe_psql('postgres', "CREATE SCHEMA IF NOT EXISTS pgmq; $sql");
	$pgmq->safe_psql('postgres', <<'SQL');
CREATE FUNCTION take(queue text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	id bigint;
BEGIN
	SELECT msg_id INTO id FROM pgmq.read_grouped_head(queue, 60, 1);
	IF id IS NULL THEN
		PERFORM pg_sleep(0.01);
	END IF;
	RETURN id;
END $$;
SQL
	return;
}

sub pgmq
{
	my ($queue) = @_;

	$pgmq->safe_psql('postgres', <<"SQL");
SELECT pgmq.create('$queue'), pgmq.create_fifo_index('$queue');
SELECT pgmq.send_batch('$queue', array_agg('1'::jsonb), array_agg(jsonb_build_object('x-pgmq-group', r::text)))
FROM generate_series(1, $each), generate_series(1, $RESOURCES) r;
VACUUM ANALYZE;
SQL
	return drain(<<"SQL", $pgmq);
SELECT coalesce(take('$queue'), 0) AS id \\gset
SELECT pgmq.delete('$queue', :id), nextval('done') WHERE :id > 0;
SQL
}
