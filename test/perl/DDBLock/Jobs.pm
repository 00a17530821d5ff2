# DDBLock::Jobs: jobs of several clusters that share a semaphore, some of which die.
#
# Each job is a psql of its own.  It takes a permit, works for a moment, and gives the
# permit back.  A job that has died is done again.

=pod

=head1 NAME

DDBLock::Jobs - jobs that need a permit each, and are killed now and then

=head1 SYNOPSIS

  my $jobs = DDBLock::Jobs->start(dir => $dir, clusters => [ $one, $two ],
      name => 'jobs', limit => 5, count => 100);
  while ($jobs->running) { ... }
  is($jobs->most, 5);

=head1 METHODS

=over

=item DDBLock::Jobs->start(dir => $dir, clusters => \@clusters, name => $name, limit => $limit, count => $count)

Starts as many processes for each cluster as the limit has permits; together they do
jobs 1 to C<count>.  Every tenth job dies while it has its permit, when it is done for
the first time: its session is terminated, or its client is killed, or (job 50) its
server process is killed, so that its cluster restarts.  That wants
C<restart_after_crash>.

=item $jobs->running

Whether a process is still at work.

=item $jobs->done, $jobs->died

How many jobs were done, and how many times one died, or failed.

=item $jobs->most

How many jobs had a permit at once, by the times that they told: from behind the call
that got the permit to before the release, at which the lease was valid still.

=item $jobs->draw($folder)

Draws who had a permit when, in L<DDBLock::History>'s folder of that name, and returns what
the picture says in words.

=item $jobs->failures

What psql said when a job failed that was not to die; without those that a crash ended.

=back

=cut

package DDBLock::Jobs;

use strict;
use warnings;

use DDBLock::History;
use IPC::Run ();
use PostgreSQL::Test::Utils ();
use POSIX ();
use Time::HiRes qw(sleep time);

my $clock = q{extract(epoch FROM clock_timestamp())};
my @deaths = (
	'SELECT pg_terminate_backend(pg_backend_pid());',
	'\\! kill -9 $PPID',
	'SELECT pg_terminate_backend(pg_backend_pid());');
my $crashes = 50;
my $crash = q{COPY (SELECT) TO PROGRAM 'kill -9 $PPID';};

sub start
{
	my ($class, %args) = @_;
	my $self = bless { lease => '4s', work => '0.05 + random() / 10', %args, processes => [] }, $class;
	my @places = (@{ $args{clusters} }) x $args{limit};

	foreach my $number (0 .. $#places)
	{
		my $pid = fork() // die "fork: $!\n";

		if ($pid == 0)
		{
			my @jobs = grep { $_ % @places == $number } 1 .. $args{count};

			eval { $self->_work($number, $places[$number], @jobs); 1 }
			  or print STDERR "jobs: $@";
			POSIX::_exit(0);
		}
		push @{ $self->{processes} }, $pid;
	}
	return $self;
}

sub running
{
	my ($self) = @_;

	@{ $self->{processes} } =
	  grep { waitpid($_, POSIX::WNOHANG()) == 0 } @{ $self->{processes} };
	return scalar @{ $self->{processes} };
}

# Writes a line for each attempt: job, how it ended, held from, until, what psql said, the
# permit's token, the session, when psql ended.
sub _work
{
	my ($self, $number, $cluster, @jobs) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	open my $log, '>', "$self->{dir}/$self->{name}.$number" or die "$!\n";
	foreach my $job (@jobs)
	{
		for (my $attempt = 0; time < $deadline; $attempt++)
		{
			my ($out, $err) = $self->_attempt($cluster, $job, $attempt);
			my ($from, $token) = $out =~ /^held ([\d.]+) (\d+)/m;
			my ($until) = $out =~ /^until ([\d.]+)/m;
			my $end = $out =~ /^done/m ? 'done' : 'died';

			$err =~ s/\s+/ /g;
			$log->print(
				join("\t",
					$job, $end, $from // '', $until // $from // '', $err, $token // '',
					$number % @{ $self->{clusters} } . ".$number.$job-$attempt", time),
				"\n");
			last if $end eq 'done';
			sleep 0.1;
		}
	}
	close $log or die "$!\n";
	return;
}

sub _attempt
{
	my ($self, $cluster, $job, $attempt) = @_;
	my $death = $attempt > 0 || $job % 10 ? '' : $job == $crashes ? $crash : $deaths[ $job / 10 % 3 ];
	my $script = <<"SQL";
SET client_min_messages = warning;
SELECT ddb_semaphore_acquire('$self->{name}', $self->{limit}, lease => '$self->{lease}', wait => '120s') AS token \\gset
SELECT 'held ' || $clock || ' ' || :token;
SELECT pg_sleep($self->{work});
SELECT 'until ' || $clock, ddb_lock_require('$self->{name}');
$death
SELECT 'done' WHERE ddb_lock_release('$self->{name}');
SQL
	my $file = "$self->{dir}/job_$self->{name}_$job.sql";
	my ($out, $err) = ('', '');

	# Not its input: nobody reads that if psql cannot connect.
	open my $sql, '>', $file or die "$!\n";
	$sql->print($script);
	close $sql or die "$!\n";
	IPC::Run::run(
		[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-d', $cluster->connstr('postgres') ],
		\'', \$out, \$err);
	return ($out, $err);
}

sub _attempts
{
	my ($self) = @_;

	return map { [ split /\t/ ] }
	  map { split /\n/, PostgreSQL::Test::Utils::slurp_file($_) }
	  glob "$self->{dir}/$self->{name}.*";
}

sub done { my ($self) = @_; return scalar grep { $_->[1] eq 'done' } $self->_attempts; }
sub died { my ($self) = @_; return scalar grep { $_->[1] eq 'died' } $self->_attempts; }

sub draw
{
	my ($self, $folder) = @_;
	my $history = DDBLock::History->new($folder);
	my @held = sort { $a->[2] <=> $b->[2] } grep { $_->[2] } $self->_attempts;

	foreach my $attempt (@held)
	{
		my ($job, $end, $from, $until, undef, $token, $session, $ended) = @$attempt;
		my ($cluster) = $session =~ /^(\d+)/;

		if ($end eq 'died' && $job == $crashes)
		{
			my ($back) = grep { $_->[6] =~ /^$cluster\./ && $_->[2] > $ended } @held;

			$history->crash($cluster, $ended, $back ? $back->[2] : $held[-1][7]);
		}
		$history->hold(
			session => $session, lock => $self->{name}, mode => 'semaphore', token => $token,
			from => $from, until => $until, end => $end eq 'done' ? 'released' : 'died', ended => $ended);
	}
	return $history->draw('--by-lock', '--lock' => $self->{name}) . $history->words;
}

sub failures
{
	my ($self) = @_;
	my $expected = qr/terminat|server closed|connection to server|crash|starting up|recovery/;

	return map { $_->[4] }
	  grep { $_->[1] eq 'died' && $_->[4] && $_->[4] !~ $expected } $self->_attempts;
}

# At the same moment, one begins before another ends.
sub most
{
	my ($self) = @_;
	my ($now, $most) = (0, 0);

	foreach my $change (sort { $a->[0] <=> $b->[0] || $b->[1] <=> $a->[1] }
		map { ([ $_->[2], 1 ], [ $_->[3], -1 ]) } grep { $_->[2] } $self->_attempts)
	{
		$now += $change->[1];
		$most = $now if $now > $most;
	}
	return $most;
}

1;
