# DDBLock::Proxy: the counting proxy (test/double/counting-proxy) as an object.

=pod

=head1 NAME

DDBLock::Proxy - counts what reaches DynamoDB, and breaks the network

=head1 METHODS

=over

=item DDBLock::Proxy->start(dir => $dir, upstream => $port, host => $address, port => $port)

It listens on 127.0.0.1, on a free port, unless it is told otherwise.

=item $proxy->port, $proxy->url

=item $proxy->forwarded($operation), $proxy->received($operation)

Requests that DynamoDB got, and those that reached the proxy, of an operation
("UpdateItem") or, without one, of all, since the start or reset_counts. This is
the count of the server's side: compare it with ddb_operations.

=item $proxy->faults($operation)

How many requests met a fault.

=item $proxy->connections

How many connections clients have opened for requests.

=item $proxy->log

List of hashes, oldest first: operation, body (decoded JSON, or undef),
connection (a number), fault (kind or undef), status (DynamoDB's, undef if
it was not asked).

=item $proxy->reset_counts

=item $proxy->fault($kind, %options)

Arranges for the next requests to go wrong. The kinds and the options are those
of class Fault in test/double/counting-proxy. The first fault that matches a
request and is not used up applies.

=item $proxy->clear_faults

Removes them, closes the connections that get no answer, and lets go of what is
late without a time.

=item $proxy->stop, $proxy->restart

While it is stopped, connections are refused. Restarting keeps the port and
loses counts and faults.

=back

=cut

package DDBLock::Proxy;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP;

use parent 'DDBLock::Program';

my $program = abs_path(dirname(__FILE__) . '/../../double/counting-proxy');

sub start
{
	my ($class, %args) = @_;
	my $self = bless {%args}, $class;

	$self->{host} //= '127.0.0.1';
	$self->_listen($self->{port} // 0);
	return $self;
}

sub _listen
{
	my ($self, $port) = @_;
	$self->_launch('proxy', '/usr/bin/python3', $program, "$self->{host}:$port",
		"127.0.0.1:$self->{upstream}", $self->_port_file('proxy'));
	return;
}

sub restart
{
	my ($self) = @_;
	$self->stop;
	$self->_listen($self->{port});
	return;
}

sub url { return "http://$_[0]->{host}:$_[0]->{port}"; }

sub _command
{
	my ($self, $method, $name, $argument) = @_;

	my $reply = $self->{http}->request(
		$method,
		$self->url . "/proxy/$name",
		{ content => defined $argument ? encode_json($argument) : '' });
	die "proxy: $name: $reply->{status} $reply->{content}\n"
	  unless $reply->{success};
	return decode_json($reply->{content});
}

sub _count
{
	my ($self, $what, $operation) = @_;
	my $counts = $self->_command('GET', 'state')->{$what};
	my $sum = 0;

	return $counts->{$operation} // 0 if defined $operation;
	$sum += $_ foreach values %$counts;
	return $sum;
}

sub received { my ($self, $operation) = @_; return $self->_count('received', $operation); }
sub forwarded { my ($self, $operation) = @_; return $self->_count('forwarded', $operation); }
sub faults { my ($self, $operation) = @_; return $self->_count('faults', $operation); }
sub connections { my ($self) = @_; return $self->_command('GET', 'state')->{connections}; }
sub reset_counts { my ($self) = @_; $self->_command('POST', 'reset'); return; }
sub clear_faults { my ($self) = @_; $self->_command('POST', 'clear'); return; }

sub fault
{
	my ($self, $kind, %options) = @_;
	$self->_command('POST', 'fault', { %options, kind => $kind });
	return;
}

sub log
{
	my ($self) = @_;
	my @entries = @{ $self->_command('GET', 'log') };

	foreach my $entry (@entries)
	{
		$entry->{body} = eval { JSON::PP->new->decode($entry->{body}) };
	}
	return @entries;
}

1;
