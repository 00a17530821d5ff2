# DDBLock::Session: a psql that stays open, whose queries may block.
#
# A PostgreSQL::Test::BackgroundPsql with other methods to ask: a query is sent,
# the test goes on, and looks later whether it has ended and how.

=pod

=head1 NAME

DDBLock::Session - a session that can be left waiting

=head1 METHODS, besides quit

=over

=item DDBLock::Session->open($node, $dbname)

Errors are shown with their SQLSTATE.

=item $session->send($sql)

Sends statements and returns at once. One send, then one result. What takes
longer than PG_TEST_TIMEOUT_DEFAULT seconds fails.

=item $session->busy

Whether what was sent has not ended yet. A session that was disconnected is not
busy.

=item $session->result

Waits for the end of what was sent; returns its output. $session->messages has
what the server said besides: errors, warnings, notices; $session->complaints
leaves out that something is still waited for: on a busy machine it may be.

=item $session->ask($sql)

Send and result.

=item $session->query_safe($sql)

The same; dies if there are complaints.

=item $session->error_of($sql)

The same for what has to fail; returns the messages, dies if there is no error.

=item $session->gone

Waits for the end of a psql whose connection was lost.

=item $session->kill

Kills psql, as if the client's machine had failed in the middle of its work.

=back

=cut

package DDBLock::Session;

use strict;
use warnings;

use parent 'PostgreSQL::Test::BackgroundPsql';

sub open
{
	my ($class, $node, $dbname) = @_;
	my $self = $node->background_psql($dbname, on_error_stop => 0);

	bless $self, $class;
	$self->ask('\set VERBOSITY verbose');
	return $self;
}

sub send
{
	my ($self, $sql) = @_;
	my $mark = 'ddblock: end of ' . $self->{query_cnt}++;

	$self->_start_timer;
	$self->{stdout} = $self->{stderr} = '';
	$self->{end} = qr/^$mark\r?\n/m;
	$self->{stdin} .= "$sql\n;\n\\echo '$mark'\n\\warn '$mark'\n";
	$self->{run}->pump_nb while $self->{stdin} ne '' && $self->{run}->pumpable;
	return;
}

# Otherwise its time-out would run from the start of psql to its end.
sub _start_timer
{
	my ($self) = @_;

	$self->{timeout}->start($PostgreSQL::Test::Utils::timeout_default);
	return;
}

sub quit
{
	my ($self) = @_;

	$self->_start_timer;
	return $self->SUPER::quit;
}

sub _ended
{
	my ($self) = @_;
	return $self->{stdout} =~ $self->{end} && $self->{stderr} =~ $self->{end};
}

sub busy
{
	my ($self) = @_;

	return 0 unless $self->{run}->pumpable;
	$self->{run}->pump_nb;
	return !$self->_ended;
}

sub result
{
	my ($self) = @_;

	until ($self->_ended || !$self->{run}->pumpable)
	{
		$self->{run}->pump;
		die "a query did not end in time\n" if $self->{timeout}->is_expired;
	}
	my ($output, $messages) = @$self{qw(stdout stderr)};

	$self->{stdout} = $self->{stderr} = '';
	s/$self->{end}// foreach $output, $messages;
	chomp $output;
	$self->{messages} = $messages;
	return $output;
}

sub messages { return $_[0]->{messages}; }

sub ask
{
	my ($self, $sql) = @_;

	$self->send($sql);
	return $self->result;
}

# With VERBOSITY verbose each message ends with its LOCATION.
sub complaints
{
	my ($self) = @_;

	return join '', grep { !/NOTICE: .*still waiting for / } split /(?<=\n)(?=psql:)/, $self->messages;
}

sub query_safe
{
	my ($self, $sql) = @_;
	my $output = $self->ask($sql);

	die "query failed: $sql\n" . $self->messages if $self->complaints ne '';
	return $output;
}

sub error_of
{
	my ($self, $sql) = @_;

	$self->ask($sql);
	die "this was to fail: $sql\n" unless $self->messages =~ /ERROR:/;
	return $self->messages;
}

sub gone
{
	my ($self) = @_;

	# An idle psql does not notice before it is told something.
	eval { $self->quit };
	return;
}

sub kill
{
	my ($self) = @_;

	$self->{run}->kill_kill(grace => 0);
	return;
}

1;
