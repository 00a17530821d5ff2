# DDBLock::Sources: the credential-server (test/double/credential-server) as an object.

=pod

=head1 NAME

DDBLock::Sources - servers that give credentials

=head1 METHODS

=over

=item DDBLock::Sources->start(dir => $dir)

=item $sources->port, $sources->url

=item $sources->set(%state)

Changes what class State of test/double/credential-server names.

=item $sources->log

List of hashes, oldest first: time, method, path, headers, body.

=item $sources->stop

=back

=cut

package DDBLock::Sources;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use JSON::PP;

use parent 'DDBLock::Program';

my $program = abs_path(dirname(__FILE__) . '/../../double/credential-server');

sub start
{
	my ($class, %args) = @_;
	my $self = bless {%args}, $class;

	$self->_launch('sources', '/usr/bin/python3', $program, 0, $self->_port_file('sources'));
	return $self;
}

sub url { return "http://127.0.0.1:$_[0]->{port}"; }

sub set
{
	my ($self, %state) = @_;
	my $reply = $self->{http}->post($self->url . '/_double', { content => encode_json(\%state) });

	die "sources: $reply->{status} $reply->{content}\n" unless $reply->{success};
	return;
}

sub log
{
	my ($self) = @_;
	return @{ decode_json($self->{http}->get($self->url . '/_double')->{content}) };
}

1;
