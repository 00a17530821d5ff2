# DDBLock::BlackHole: the way to a server on loopback, which can begin to swallow all packets.

=pod

=head1 NAME

DDBLock::BlackHole - a network that breaks without a word

=head1 METHODS

=over

=item DDBLock::BlackHole->new($port)

Passes on what comes to the port $hole->port of 127.0.0.1.

=item $hole->break, $hole->mend

From now on no packet arrives, also none of a new connection; or each one does.

=item $hole->stop

=back

=cut

package DDBLock::BlackHole;

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC IPPROTO_IP);

my $ip_minttl = 21;

sub new
{
	my ($class, $port) = @_;
	my $door = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 10) or die "listen: $!\n";

	socketpair my $ours, my $its, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!\n";
	my $pid = fork() // die "fork: $!\n";
	if ($pid == 0)
	{
		close $ours;
		_pass_on($door, $port, $its);
		POSIX::_exit(0);
	}
	return bless { port => $door->sockport, pid => $pid, control => $ours }, $class;
}

# Until the test has ended, or wants it no more.
sub _pass_on
{
	my ($door, $port, $control) = @_;
	my %other;

	while (1)
	{
		foreach my $socket (IO::Select->new($door, $control, map { $_->[0] } values %other)->can_read)
		{
			if ($socket == $control)
			{
				sysread $control, my $ttl, 1 or return;
				_accept_ttl($_, ord $ttl) foreach $door, map { $_->[0] } values %other;
				syswrite $control, $ttl;
			}
			elsif ($socket == $door)
			{
				my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
				my $client = $door->accept;

				%other = (%other, $client => [ $client, $server ], $server => [ $server, $client ]) if $server && $client;
			}
			elsif ($other{$socket})
			{
				my $to = $other{$socket}[1];

				if (sysread $socket, my $bytes, 65536) { syswrite $to, $bytes }
				else { $_->shutdown(2) foreach $socket, $to; delete @other{ $socket, $to } }
			}
		}
	}
	return;
}

# TCP sees nothing that comes with a lower TTL; here, all comes with 64.
sub _accept_ttl
{
	my ($socket, $ttl) = @_;

	setsockopt $socket, IPPROTO_IP, $ip_minttl, $ttl or die "IP_MINTTL: $!\n";
	return;
}

sub _tell
{
	my ($self, $ttl) = @_;

	syswrite $self->{control}, chr $ttl;
	sysread $self->{control}, my $done, 1 or die "the black hole has ended\n";
	return;
}

sub port { return $_[0]->{port}; }
sub break { return $_[0]->_tell(255); }
sub mend { return $_[0]->_tell(0); }

sub stop
{
	my ($self) = @_;

	close $self->{control};
	waitpid $self->{pid}, 0;
	return;
}

1;
