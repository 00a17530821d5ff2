# DDBLock::History: who held which lock when, for test/timeline.

=pod

=head1 NAME

DDBLock::History - a history that test/timeline draws

=head1 SYNOPSIS

  my $history = DDBLock::History->new('jobs');
  $history->hold(session => '0.3.1', lock => 'jobs', mode => 'semaphore', token => 17,
      from => $t0, until => $t1, end => 'released', ended => $t2);
  is($history->draw('--by-lock', '--lock' => 'jobs'), '', 'no overlap');

=head1 METHODS

=over

=item DDBLock::History->new($name)

Its C<folder> is $name in the folder C<tap/tmp_check> of the private copy; KEEP=1 keeps it.

=item $history->hold(%hold)

C<session> is "CLUSTER.SESSION.CONNECTION", three numbers.  The session is shown to hold the
lock between C<from> and C<until>, by the server's clock.  The C<end> is "released",
"failed" (so is the job), or "died"; at C<ended>, that is known.  Times are seconds.

=item $history->crash($cluster, $began, $ended)

=item $history->draw(@options)

Writes the files C<history> and C<events>, and draws C<picture.svg> from them.  Returns
what test/timeline says of overlaps, or of errors.

=item $history->words

What the last picture says in words.

=back

=cut

package DDBLock::History;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IPC::Run ();
use PostgreSQL::Test::Utils ();

my $timeline = abs_path(dirname(__FILE__) . '/../../timeline');

sub new
{
	my ($class, $name) = @_;
	my $folder = "$PostgreSQL::Test::Utils::tmp_check/$name";

	mkdir $folder or die "$folder: $!\n";
	return bless { folder => $folder, operations => [], events => [] }, $class;
}

sub hold
{
	my ($self, %hold) = @_;
	my @last =
	    $hold{end} eq 'died' ? ('disconnect', 0, '')
	  : $hold{end} eq 'failed' ? ('release', $hold{token}, 'failed')
	  : ('release', $hold{token}, 't');

	$self->_operation(\%hold, 'acquire', $hold{token}, '', ($hold{from}) x 2);
	$self->_operation(\%hold, 'require', $hold{token}, '', ($hold{until}) x 2);
	$self->_operation(\%hold, @last, $hold{end} eq 'died' ? ($hold{ended}) x 2 : @hold{qw(until ended)});
	return;
}

# Between the two times, by the server's clock.
sub _operation
{
	my ($self, $hold, $operation, $token, $detail, @times) = @_;
	my ($sent, $received) = map { int($_ * 1e6) } @times;

	push @{ $self->{operations} },
	  [
		$received,
		join("\t",
			$operation, @$hold{qw(session lock)}, $token, $sent, $received,
			$operation eq 'disconnect' ? (0, 0) : ($sent, $received),
			'00000', 0, $hold->{mode}, $detail)
	  ];
	return;
}

sub crash
{
	my ($self, $cluster, $began, $ended) = @_;

	push @{ $self->{events} },
	  join("\t", 'crash', $cluster, (map { int($_ * 1e6) } $began, $ended), '');
	return;
}

sub draw
{
	my ($self, @options) = @_;
	my $said = '';

	$self->_write('history', map { $_->[1] } sort { $a->[0] <=> $b->[0] } @{ $self->{operations} });
	$self->_write('events', @{ $self->{events} });
	IPC::Run::run([ $timeline, @options, '--output' => "$self->{folder}/picture.svg", $self->{folder} ],
		'<', \'', '>&', \$said);
	return $said;
}

sub words
{
	my ($self) = @_;
	my ($words) = PostgreSQL::Test::Utils::slurp_file("$self->{folder}/picture.svg") =~ m{<desc.*?>(.*)</desc>};

	return $words;
}

sub _write
{
	my ($self, $name, @lines) = @_;

	open my $file, '>', "$self->{folder}/$name" or die "$name: $!\n";
	print $file "$_\n" foreach @lines;
	close $file or die "$name: $!\n";
	return;
}

1;
