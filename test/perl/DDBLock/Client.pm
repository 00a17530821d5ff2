# DDBLock::Client: another lock client (test/clients), as a process that is told what to do.

=pod

=head1 NAME

DDBLock::Client - another client of the lock table

=head1 METHODS

=over

=item DDBLock::Client::missing($kind)

Says why there is no such client (C<java>: Amazon's, C<go>: dynamolock); undef if there is.

=item DDBLock::Client::folder($kind)

What test/clients/fetch has put there.

=item DDBLock::Client->start($kind, $url, @arguments)

=item $client->ready

Waits until the client has read from the table, which must exist. So does the first command.

=item $client->send($command), $client->result

A command, and the line that answers it. The clients' sources list the commands.

=item $client->busy

Whether the answer has not come yet.

=item $client->ask($command)

Send and result.

=item $client->stop, $client->kill

Ends it: with the end of its input, or by SIGKILL.

=item DDBLock::Client::kill_cluster($node)

Ends all processes of a cluster by SIGKILL, none of which can do anything before it.

=back

=cut

package DDBLock::Client;

use strict;
use warnings;

use IO::Handle;
use IO::Select;
use IPC::Open2 qw(open2);

use PostgreSQL::Test::Utils qw(slurp_file);

my %command = (
	java => [ 'java', '-XX:-UsePerfData', '-cp', '%s:%s/*', 'Client' ],
	go => ['%s/client']);

sub folder { return ($ENV{DDBLOCK_TOOLS} // '') . "/$_[0]"; }

sub missing
{
	my ($kind) = @_;

	return -f folder($kind) . '/version' ? undef : "the client $kind is missing: see test/clients/fetch";
}

sub start
{
	my ($class, $kind, @arguments) = @_;
	my $folder = folder($kind);
	my @command = map { s/%s/$folder/gr } @{ $command{$kind} };
	my $self = bless { kind => $kind }, $class;

	$self->{pid} = open2($self->{from}, $self->{to}, @command, @arguments);
	return $self;
}

sub ready
{
	my ($self) = @_;

	return if $self->{command};
	$self->{command} = 'start';
	$self->result eq 'ready' or die "$self->{kind} is not ready\n";
	return;
}

sub send
{
	my ($self, $command) = @_;

	$self->ready;
	$self->{command} = $command;
	$self->{to}->print("$command\n");
	$self->{to}->flush;
	return;
}

sub busy { my ($self) = @_; return !IO::Select->new($self->{from})->can_read(0); }

sub result
{
	my ($self) = @_;
	my $line = readline $self->{from};

	die "$self->{kind}: $self->{command}: no answer\n" unless defined $line;
	chomp $line;
	return $line;
}

sub ask
{
	my ($self, $command) = @_;

	$self->send($command);
	return $self->result;
}

sub _end
{
	my ($self) = @_;
	my $pid = delete $self->{pid} // return;

	close $self->{to};
	waitpid $pid, 0;
	return;
}

sub kill_cluster
{
	my ($node) = @_;
	my ($postmaster) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;

	CORE::kill('STOP', $postmaster);
	CORE::kill('KILL', keys %{ DDBLock::Test::children_of($postmaster) });
	$node->kill9;
	return;
}

sub stop { my ($self) = @_; $self->_end; return; }
sub kill { my ($self) = @_; CORE::kill('KILL', $self->{pid}); $self->_end; return; }

# Also if the test dies.
sub DESTROY
{
	my ($self) = @_;
	local ($?, $@, $!);

	$self->kill if $self->{pid};
	return;
}

1;
