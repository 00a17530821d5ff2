# DDBLock::OtherServer: a server that plays DynamoDB (test/clients/fetch), with its raw items.

=pod

=head1 NAME

DDBLock::OtherServer - moto or dynalite, as a L<DDBLock::DynamoDB>

=head1 METHODS besides those of DDBLock::DynamoDB

=over

=item DDBLock::OtherServer->start(kind => $kind, dir => $dir)

Kind is C<moto> or C<dynalite>; see DDBLock::Client::missing. It has no table yet.

=back

=cut

package DDBLock::OtherServer;

use strict;
use warnings;

use PostgreSQL::Test::Cluster;

use parent qw(DDBLock::Program DDBLock::DynamoDB);

my %command = (
	moto => [ '/usr/bin/env', 'PYTHONPATH=%s', '/usr/bin/python3', '-m', 'moto.server', '-H', '127.0.0.1', '-p', '%d' ],
	dynalite => [ 'node', '%s/node_modules/dynalite/cli.js', '--host', '127.0.0.1', '--createTableMs', '0', '--port', '%d' ]);

sub start
{
	my ($class, %args) = @_;
	my $self = bless { table => 'lockTable', %args }, $class;
	my $folder = "$ENV{DDBLOCK_TOOLS}/$args{kind}";
	my $port = PostgreSQL::Test::Cluster::get_free_port();
	my @command = map { s/%s/$folder/r =~ s/%d/$port/r } @{ $command{ $args{kind} } };

	$self->{port} = $port;
	$self->_run($args{kind}, @command);
	$self->_wait_for($args{kind}, sub { $self->{http}->get($self->url . '/')->{status} != 599 });
	return $self;
}

1;
