# Leaders at work: clusters stand for one name, jobs in all of them ask whether their cluster
# leads, and work if so.  Each fault hits the leader.  The work of two clusters never
# overlaps.  LEADERS_SECONDS=600 for longer than a minute.

use DDBLock::Test;
use DDBLock::Tools;
use List::Util qw(max min sum0);
use Time::HiRes qw(time);

my $seconds = $ENV{LEADERS_SECONDS} // 60;
my $cron = glob "$ENV{DDBLOCK_WORK}/pg-*/usr/share/postgresql/*/extension/pg_cron.control";
my $seed = $ENV{LEADERS_SEED} // time ^ $$;
srand $seed;
# Who asks for a longer run wants to read the figures.
sub figures { my @lines = @_; return $ENV{LEADERS_SECONDS} ? diag(@lines) : note(@lines); }
note("LEADERS_SEED=$seed, ", $cron ? 'with pg_cron' : 'without pg_cron, which is missing');

my $conf = "ddblock.lease_duration = 4s\nddblock.leaderships = 'cron'\nddblock.request_timeout = 1s\ntrack_commit_timestamp = on\nrestart_after_crash = on\n";
$conf .= "shared_preload_libraries = 'ddblock, pg_cron'\ncron.database_name = 'postgres'\ncron.use_background_workers = on\nmax_worker_processes = 20\n" if $cron;

# A job's transactions: each asks, works for a moment, and commits.
my $work = q{
	CREATE TABLE work (token bigint, place text, started timestamptz);
	CREATE PROCEDURE work_for(place text, how_long interval) LANGUAGE plpgsql AS $$
	DECLARE
		until timestamptz := clock_timestamp() + how_long;
	BEGIN
		WHILE clock_timestamp() < until LOOP
			INSERT INTO work SELECT ddb_leadership_require('cron'), place, clock_timestamp() WHERE ddb_leadership_held('cron');
			PERFORM pg_sleep(0.05 + random() * 0.2);
			COMMIT;
			PERFORM pg_sleep(0.05);
		END LOOP;
	END
	$$;};

my %network = map { $_ => new_proxy } qw(one two standby);
my %node;
$node{one} = new_cluster('one', through => $network{one}, conf => $conf, init => [ allows_streaming => 1 ]);
$node{two} = new_cluster('two', through => $network{two}, conf => $conf);
foreach my $name (qw(one two))
{
	$node{$name}->safe_psql('postgres', $work);
	# Each minute, for nearly a minute
	$node{$name}->safe_psql('postgres', q{CREATE EXTENSION pg_cron; SELECT cron.schedule('work', '* * * * *', $$CALL work_for('pg_cron', '55 s')$$)}) if $cron;
}
$node{one}->backup('copy');
my $standby = new_cluster('standby', through => $network{standby}, init_from => [ $node{one}, 'copy', has_streaming => 1 ], start => 0);
$standby->append_conf('postgresql.conf', $conf);
$standby->start;

my $loops = 0;
sub loop { my ($node) = @_;
	return start('loop_' . ++$loops, [ 'bash', '-c', q{while :; do psql -Xqc "CALL work_for('psql', '5 s')"; sleep 0.2; done} ],
		env => { PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', PGUSER => user, PGOPTIONS => '' }); }
my @loops = map { (loop($_), loop($_)) } $node{one}, $node{two}, $standby;

sub leads { my ($node) = @_;
	my ($status, $output) = $node->psql('postgres', q{SELECT state = 'leading' FROM ddb_leaderships});
	return $status == 0 && $output eq 't'; }
sub leader { return wait_for { my @leaders = grep { leads($node{$_}) } keys %node; $leaders[0] } 'a leader'; }
sub nap { my ($time) = @_; Time::HiRes::sleep($time); return; }    # how long a fault lasts

my %faults = (
	'jobs terminated' => sub { my ($node) = @_;
		$node->psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'work_for' AND pid <> pg_backend_pid()}) },
	'a job killed' => sub { my ($node) = @_;
		my (undef, $pid) = $node->psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE query ~ 'work_for' AND pid <> pg_backend_pid() LIMIT 1});
		kill 'KILL', $pid if $pid },
	'worker terminated' => sub { my ($node) = @_; $node->psql('postgres', q{SELECT pg_terminate_backend(worker_pid) FROM ddb_status}) },
	'worker stopped' => sub { my ($node) = @_;
		my (undef, $pid) = $node->psql('postgres', q{SELECT worker_pid FROM ddb_status});
		kill 'STOP', $pid; nap(6); kill 'CONT', $pid },
	'fast stop' => sub { my ($node) = @_; $node->stop('fast'); nap(1); $node->start },
	'immediate stop' => sub { my ($node) = @_; $node->stop('immediate'); nap(1); $node->start },
	'immediate stop, late start' => sub { my ($node) = @_; $node->stop('immediate'); nap(6); $node->start },
	'network cut' => sub { my ($node, $name) = @_;
		$network{$name}->fault('drop', count => -1); nap(6); $network{$name}->clear_faults },
	'resigned' => sub { my ($node) = @_; $node->psql('postgres', q{SELECT ddb_leadership_resign('cron', stand_back => '5 s')}) },
	'resigned, with a bound' => sub { my ($node) = @_; $node->psql('postgres', q{SELECT ddb_leadership_resign('cron', stand_back => '5 s', wait => '0.05 s')}) },
);

# A standby is promoted once: it takes the place of its primary.
my @events;
my $end = time + $seconds;
my $promote_at = time + $seconds / 2;
my @kinds;
while (time < $end)
{
	my $name = leader;
	my $kind;

	nap(rand 3);
	if ($promote_at && time > $promote_at && $name eq 'one')
	{
		$promote_at = 0;
		$kind = 'standby promoted';
		push @events, [ time, $kind ];
		$node{one}->stop('immediate');
		$standby->promote;
		$node{one} = $standby;
		$network{one} = $network{standby};
	}
	else
	{
		@kinds = sort { rand() <=> 0.5 } sort keys %faults unless @kinds;
		$kind = shift @kinds;
		push @events, [ time, $kind ];
		$faults{$kind}->($node{$name}, $name);
	}
}
$_->kill foreach @loops;
wait_for { $node{$_}->psql('postgres', 'SELECT 1') == 0 } $_ foreach sort keys %node;

# What has been committed: by token, [cluster, begin of the first, commit of the last, how many]
my %terms;
foreach my $name (sort keys %node)
{
	$node{$name}->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ 'work_for' AND pid <> pg_backend_pid()});
	foreach my $row (split /\n/, $node{$name}->safe_psql('postgres', q{SELECT token, extract(epoch FROM started), extract(epoch FROM pg_xact_commit_timestamp(xmin)), place FROM work}))
	{
		my ($token, $from, $to, $place) = split /\|/, $row;
		my $term = $terms{$token} //= { who => $name, from => $from, to => $to };

		$term->{both} = 1 if $term->{who} ne $name;
		$term->{from} = min($term->{from}, $from);
		$term->{to} = max($term->{to}, $to);
		$term->{$place}++;
	}
}
my @terms = map { $terms{$_} } sort { $a <=> $b } keys %terms;
my @overlaps = grep { my $i = $_; grep { $terms[$i]{from} <= $_->{to} } @terms[ 0 .. $i - 1 ] } 1 .. $#terms;

is(scalar(grep { $_->{both} } @terms), 0, 'no two clusters have worked under one token');
is(scalar(@overlaps), 0, 'no work of one term overlaps with work of the next one')
  or diag((map { sprintf "%.3f %s\n", @$_ } @events), map { sprintf "%s until %.3f, %s from %.3f\n", $terms[ $_ - 1 ]{who}, $terms[ $_ - 1 ]{to}, $terms[$_]{who}, $terms[$_]{from} } @overlaps);
cmp_ok(scalar(@terms), '>', 2, 'there were several terms');
cmp_ok(scalar(keys %{ { map { $_->{who} => 1 } @terms } }), '>', 1, 'of more than one cluster');
cmp_ok(sum0(map { $_->{pg_cron} // 0 } @terms), '>', 0, "pg_cron's workers have worked") if $cron && $seconds >= 120;

figures(sprintf '%d terms, %d transactions of psql, %d of pg_cron', scalar(@terms), map { my $place = $_; sum0(map { $_->{$place} // 0 } @terms) } qw(psql pg_cron));
my %gaps;
foreach my $i (1 .. $#terms)
{
	my ($event) = grep { $_->[0] <= $terms[$i]{from} } reverse @events;
	push @{ $gaps{ $event ? $event->[1] : 'none' } }, $terms[$i]{from} - $terms[ $i - 1 ]{to};
}
figures(sprintf 'without work after "%s": %s s', $_, join(', ', map { sprintf '%.1f', $_ } sort { $a <=> $b } @{ $gaps{$_} })) foreach sort keys %gaps;
my @all = sort { $a <=> $b } map { @$_ } values %gaps;
figures(sprintf 'without work between two terms: median %.1f s, longest %.1f s', $all[ @all / 2 ], $all[-1]);

foreach my $node (values %node)
{
	$node->append_conf('postgresql.conf', "ddblock.leaderships = ''\n");
	$node->reload;
}
nothing_held_ok;
done_testing;
