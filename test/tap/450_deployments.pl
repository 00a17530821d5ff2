# 300 deployments to ten environments, from three clusters, one of which is killed: nothing
# is lost, nothing is done twice, and never two at once for one environment.

use DDBLock::Test;
use DDBLock::History;
use IPC::Run;
use List::Util qw(uniq);
use Time::HiRes qw(time);

my $count = 300;
my $never = 99;			# this deployment fails whenever it is tried
my $hangs = 11;			# this one of env-3 hangs when it is first tried; then its cluster is killed
my @clusters = map { new_cluster($_) } qw(one two three);
my $folder = PostgreSQL::Test::Utils::tempdir();

$_->safe_psql('postgres', <<"SQL") foreach @clusters;
SELECT ddb_queue_table_create();
CREATE TABLE over ();

CREATE PROCEDURE tell(what text, job record) LANGUAGE plpgsql AS \$\$
BEGIN
	RAISE NOTICE '%', concat_ws(' ', what, extract(epoch FROM clock_timestamp()), job.resource,
		job.number, job.token, job.attempt, job.payload->>'deployment');
END \$\$;

-- Until the test is over: claims a deployment, works, and completes it or gives it back.
CREATE PROCEDURE deploy() LANGUAGE plpgsql AS \$\$
DECLARE
	job record;
	deployment int;
BEGIN
	WHILE NOT EXISTS (SELECT FROM over)
	LOOP
		SELECT * INTO job FROM ddb_queue_claim('deploy', wait => '0.5 s', lease => '9 s', max_attempts => 3);
		IF NOT FOUND
		THEN
			COMMIT;
			CONTINUE;
		END IF;
		CALL tell('begins', job);
		deployment := job.payload->>'deployment';
		PERFORM pg_sleep(CASE WHEN job.resource = 'env-3' AND job.number = $hangs AND job.attempt = 1
			THEN 600 ELSE 0.05 + random() / 10 END);
		PERFORM ddb_lock_require('queue/deploy/' || job.resource);
		CALL tell('ends', job);
		IF deployment = $never OR deployment % 11 = 0 AND job.attempt = 1
		THEN
			PERFORM ddb_queue_fail('deploy', job.resource, job.number, 'does not start', '100 ms');
			CALL tell('failed', job);
		ELSE
			PERFORM ddb_queue_complete('deploy', job.resource, job.number);
			COMMIT;
			CALL tell('done', job);
		END IF;
		COMMIT;
	END LOOP;
END \$\$;
SQL

# What the sessions have told so far: cluster, session, what, when, and the job's columns.
sub told
{
	return map {
		my ($cluster, $session) = /(\d+)\.(\d+)$/;
		my @lines = slurp_file($_) =~
		  /NOTICE:  (\w+) ([\d.]+) (\S+) (\d+) (\d+) (\d+) (\d+)\n/g;
		my @told;

		while (my ($what, $time, @job) = splice @lines, 0, 7)
		{
			push @told, { cluster => $cluster, session => $session, what => $what, time => $time };
			@{ $told[-1] }{qw(environment number token attempt deployment)} = @job;
		}
		@told;
	} glob "$folder/deploy.*";
}

# Three sessions of each cluster work, while one of each pushes every third deployment.
sub psql_of
{
	my ($cluster, $log, $sql) = @_;

	return IPC::Run::start(
		[ 'psql', '-XqAt', '-v', 'VERBOSITY=terse', '-d', $clusters[$cluster]->connstr('postgres'), '-c', $sql ],
		'<', \'', '>', '/dev/null', '2>', "$folder/$log");
}

my @workers = map { my $c = $_; map { psql_of($c, "deploy.$c.$_", 'CALL deploy()') } 0 .. 2 } 0 .. 2;
my @pushers = map { psql_of($_, "push.$_", <<"SQL") } 0 .. 2;
SET client_min_messages = warning;
SELECT ddb_queue_push_all('deploy', 'env-' || i % 10, array_agg(jsonb_build_object('deployment', i) ORDER BY i))
FROM generate_series($_ + 1, $count, 3) i GROUP BY i % 10
SQL

sub hanging
{
	return grep { $_->{what} eq 'begins' && $_->{environment} eq 'env-3' && $_->{number} == $hangs } @_;
}

my ($hung) = wait_for { (hanging(told()))[0] } 'a deployment to hang';
$_->finish foreach @pushers;
is(join('', map { slurp_file("$folder/push.$_") } 0 .. 2), '', 'all are pushed');

my $killed = $hung->{cluster};
my $killed_at = time;
$clusters[$killed]->stop('immediate');
my ($alive) = grep { $_ != $killed } 0 .. 2;
wait_for
{
	$clusters[$alive]->safe_psql('postgres', q{SELECT count(*) FROM ddb_queue_depths('deploy')}) eq '0'
} 'all deployments to be done';
my $over_at = time;
$clusters[$killed]->start;
$_->safe_psql('postgres', 'INSERT INTO over DEFAULT VALUES') foreach @clusters;
eval { $_->finish } foreach @workers;

my @told = sort { $a->{time} <=> $b->{time} } told();
my @done = grep { $_->{what} eq 'done' } @told;
my @failed = grep { $_->{what} eq 'failed' } @told;

is(join(' ', sort { $a <=> $b } uniq(map { $_->{deployment} } @done)),
	join(' ', grep { $_ != $never } 1 .. $count),
	'nothing is lost: all deployments are done but one');
is($clusters[$alive]->safe_psql('postgres',
		q{SELECT payload->>'deployment', attempts, last_error FROM ddb_queue_list('deploy', dead => true)}),
	"$never|3|does not start",
	'... which failed three times');
cmp_ok(scalar(grep { $_->{deployment} != $never } @failed), '>=', 20, 'others failed once');
is(scalar(uniq(map { $_->{cluster} } @done)), 3, 'all clusters deployed');
is(join('', map { slurp_file($_) =~ /.*(?:ERROR|FATAL).*\n/g } grep { !/$killed\.\d$/ } glob "$folder/deploy.*"),
	'', 'no session fails but those of the killed cluster');

# What the killed cluster's sessions had committed last may not be completed (Q2).
my %last = map { ("$_->{cluster}.$_->{session}" => $_) } @told;
my %times;
$times{ $_->{deployment} }++
  foreach grep { !($_->{cluster} == $killed && $_ == $last{"$killed.$_->{session}"}) } @done;
is(join(' ', grep { $times{$_} > 1 } sort keys %times), '', 'nothing is done twice');
my @tries = hanging(@told);
is(scalar(@tries), 2, 'the one that hung is tried again');
isnt($tries[1]{cluster}, $killed, '... by another cluster');

# Each environment: in the order of the numbers, and of each pusher's deployments.
my (@disorder, %environment);
push @{ $environment{ $_->{environment} } }, $_ foreach grep { $_->{what} eq 'begins' } @told;
foreach my $begun (values %environment)
{
	foreach my $i (1 .. $#$begun)
	{
		my ($before, $after) = @$begun[ $i - 1, $i ];

		push @disorder, "$before->{environment}: $before->{number}, then $after->{number}"
		  unless $after->{token} > $before->{token}
		  && ($after->{number} == $before->{number} || $after->{number} == $before->{number} + 1);
	}
	foreach my $pusher (0 .. 2)
	{
		my @mine = map { $_->{deployment} } grep { $_->{deployment} % 3 == $pusher } @$begun;

		push @disorder, "@mine" unless "@mine" eq join(' ', sort { $a <=> $b } @mine);
	}
}
is(join("\n", @disorder), '', 'each environment gets its deployments in order, with rising tokens');

# One at a time for each, drawn.
my $history = DDBLock::History->new('deployments');
my @changes;			# when one begins, and when it ends
foreach my $hold (grep { $_->{what} eq 'begins' } @told)
{
	my @rest = grep { $_->{token} == $hold->{token} && $_->{environment} eq $hold->{environment} } @told;
	my ($ends) = grep { $_->{what} eq 'ends' } @rest;
	my ($last) = grep { $_->{what} =~ /^(done|failed)$/ } @rest;

	$history->hold(
		session => "$hold->{cluster}.$hold->{session}.1", lock => "queue/deploy/$hold->{environment}",
		mode => 'exclusive', token => $hold->{token}, from => $hold->{time},
		until => $ends ? $ends->{time} : $hold->{time},
		end => !$last ? 'died' : $last->{what} eq 'done' ? 'released' : 'failed',
		ended => $last ? $last->{time} : $killed_at);
	push @changes, [ $hold->{time}, 1 ], [ $ends->{time}, -1 ] if $ends;
}
$history->crash($killed, $killed_at, $over_at);
is($history->draw('--by-lock', '--lock' => 'queue/deploy/*'), '', 'never two for one environment');
like($history->words, qr{(?:Lock "queue/deploy/env-\d": at most 1 at once\. ){10}},
	'... as test/timeline draws them');
my ($now, $most) = (0, 0);
foreach my $change (sort { $a->[0] <=> $b->[0] || $a->[1] <=> $b->[1] } @changes)
{
	$now += $change->[1];
	$most = $now if $now > $most;
}
cmp_ok($most, '>=', 3, 'several environments at once');
nothing_held_ok;
done_testing;
