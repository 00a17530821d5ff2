# pg_cron: the job of doc/recipes/scheduled-jobs.md in two clusters, in both of pg_cron's modes.

use DDBLock::Pages;
use DDBLock::Test;
use DDBLock::Tools;

plan skip_all => 'pg_cron is missing' unless glob "$ENV{DDBLOCK_WORK}/pg-*/usr/share/postgresql/*/extension/pg_cron.control";

my %nodes;
foreach my $mode (qw(libpq workers))
{
	my $workers = $mode eq 'workers' ? 'on' : 'off';

	$nodes{$mode} = [ work_clusters(names => [ map { "${mode}_$_" } qw(one two) ],
			conf => "shared_preload_libraries = 'ddblock, pg_cron'\ncron.database_name = 'shop'\n"
			  . "cron.use_background_workers = $workers\nmax_worker_processes = 20\n") ];
	foreach my $node (@{ $nodes{$mode} })
	{
		hold($node, 'shop');
		my $job = snippet('pg_cron', 'sql');

		$job =~ s/run_nightly\(\)/work('job')/ or die "the page has another job\n";
		$job =~ s/0 3 \* \* \*/* * * * */ or die "the page has another schedule\n";
		$job =~ s/'1 minute'/'5 s'/ or die "the page keeps the lock for another time\n";
		$job =~ s/'nightly', at_least/'nightly $mode', at_least/ or die "the page has another lock\n";
		$node->safe_psql('shop', 'CREATE EXTENSION pg_cron');
		$node->safe_psql('shop', $job);
	}
}

# All runs so far, each as [cluster, first, last, pid], in order
sub runs
{
	my ($mode) = @_;
	my @runs;

	foreach my $node (@{ $nodes{$mode} })
	{
		push @runs, map { [ $node, @$_ ] } work($node, 'shop job');
	}
	@runs = sort { $a->[1] <=> $b->[1] } @runs;
	return @runs;
}
sub wait_for_runs
{
	my ($mode, $count) = @_;

	wait_for { my @runs = runs($mode); @runs >= $count } "$count runs, $mode";
	return (runs($mode))[ $count - 1 ];
}
sub ended { my ($node) = @_; return $node->safe_psql('shop', q{SELECT count(*) FROM cron.job_run_details WHERE status = 'succeeded'}); }
sub other { my ($mode, $node) = @_; return (grep { $_->name ne $node->name } @{ $nodes{$mode} })[0]; }

# One cluster works; the job of the other one ends without work.
foreach my $mode (qw(libpq workers))
{
	my ($node) = @{ wait_for_runs($mode, 1) };

	wait_for { ended(other($mode, $node)) > 0 } "the job in the other cluster, $mode";
	is(scalar(runs($mode)), 1, "$mode: one cluster works, the job of the other one does nothing");
}

# The backend of the job is killed; then, in the next run, pg_cron itself.
foreach my $mode (qw(libpq workers))
{
	my ($node, undef, undef, $pid) = @{ (runs($mode))[0] };

	is(kill('KILL', $pid), 1, "$mode: the backend of a job is killed in " . $node->name);
}
foreach my $mode (qw(libpq workers))
{
	my ($node) = @{ wait_for_runs($mode, 2) };
	pass("$mode: ... the next run is in " . $node->name);
	my $pid = $node->safe_psql('shop', q{SELECT pid FROM pg_stat_activity WHERE backend_type ~ 'pg_cron launcher'});
	is(kill('KILL', $pid), 1, "$mode: pg_cron is killed in " . $node->name);
}
foreach my $mode (qw(libpq workers))
{
	my ($node) = @{ wait_for_runs($mode, 3) };
	my $ended = ended($node);

	pass("$mode: ... the next run is in " . $node->name);
	let_go($_, 'shop') foreach @{ $nodes{$mode} };
	wait_for { ended($node) > $ended } "the end of the third run, $mode";
}

foreach my $mode (qw(libpq workers))
{
	my @runs = runs($mode);

	$_->safe_psql('shop', q{SELECT cron.unschedule('nightly')}) foreach @{ $nodes{$mode} };
	is(scalar(grep { $runs[$_][1] <= $runs[ $_ - 1 ][2] } 1 .. $#runs), 0, "$mode: no run overlaps with another one");
	note("$mode: " . join ', ', map { sprintf '%s at %.1f for %.1f s', $_->[0]->name, $_->[1], $_->[2] - $_->[1] } @runs);
	note($_->name . ': ' . $_->safe_psql('shop', q{SELECT string_agg(status || ': ' || return_message, '; ' ORDER BY runid) FROM cron.job_run_details}))
	  foreach @{ $nodes{$mode} };
}

# What any page schedules is a schedule to this pg_cron.  The jobs do not run: nothing is active when the page's statement commits.
my $node = $nodes{workers}[0];
my $schedules = 0;
foreach my $page (pages)
{
	foreach my $schedule (page($page) =~ /^(SELECT cron\.schedule\(.*?;)\n(?:```|\n)/msg)
	{
		my ($status, undef, $error) = $node->psql('shop', "BEGIN; $schedule UPDATE cron.job SET active = false; COMMIT");

		is($status, 0, "$page: $schedule") or diag($error);
		$schedules++;
	}
}
cmp_ok($schedules, '>=', 6, 'there are such pages');
nothing_held_ok;
done_testing;
