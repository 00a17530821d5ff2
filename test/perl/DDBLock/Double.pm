# DDBLock::Double: the DynamoDB double (test/double/server.c) as an object.

=pod

=head1 NAME

DDBLock::Double - a DynamoDB that checks signatures and breaks on command

=head1 METHODS

=over

=item DDBLock::Double->start(dir => $dir, %options)

Options: C<tls> (speak TLS; C<ca_file> is the certificate to trust),
C<credentials> (hash of access keys and their secrets; default: test, test),
C<seed> (of its lots).

=item $double->port, $double->url, $double->ca_file

=item $double->command(%command)

Sends a command as test/double/server_control.c has them, returns the reply;
dies if it is refused. What follows are such commands.

=item $double->fault($kind, %options)

Adds a fault and returns its id; it strikes once unless C<count> or
C<probability> say otherwise.

=item $double->clear_faults

=item $double->struck($kind)

How many requests have met a fault of that kind.

=item $double->later

How many copies and replies are still to come.

=item $double->requests($operation)

Signed requests of an operation ("UpdateItem"), or of all.

=item $double->refused($type)

How many requests were refused with that error for their signature, or
because that action ("dynamodb:PutItem") is denied.

=item $double->deny($action, table => $table)

As if no IAM policy allowed the action ("dynamodb:PutItem", or with wildcards
"dynamodb:*") on the table, by default on any: each request that needs it is
refused. An index is a resource of its own, "$table/index/$index", and
"$table*" is both.

=item $double->allow_all

Ends all denials.

=item $double->credentials($key, %options)

Adds or changes credentials: C<secret>, C<token>, C<state> (valid, expired,
gone).

=item $double->call($operation, \%request)

An operator's request: needs no signature, meets no fault, is never denied. Dies unless it
succeeds.

=item $double->try_call($operation, \%request)

A client's request, signed with the first of the credentials, that meets the faults. Returns (HTTP status,
decoded reply).

=item $double->item($name), $double->items

Raw items of the table C<lockTable>.

=item $double->stop

=back

=cut

package DDBLock::Double;

use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex sha256_hex);
use File::Basename qw(dirname);
use JSON::PP;
use POSIX qw(strftime);

use parent 'DDBLock::Program';

my $build = abs_path(dirname(__FILE__) . '/../../double/build');

sub start
{
	my ($class, %args) = @_;
	my $self = bless {%args}, $class;

	$self->{program} = ($ENV{DDBLOCK_WORK} // $self->{dir}) . '/dynamodb-double';
	system($build, $self->{program}) == 0 or die "the double does not compile\n";
	$self->_launch('double', $self->{program}, '--port-file', $self->_port_file('double'),
		$self->_options);
	return $self;
}

sub _options
{
	my ($self) = @_;
	my $credentials = $self->_credentials;
	my @options = map { ('--credentials', "$_:$credentials->{$_}") } sort keys %$credentials;

	push @options, '--seed', $self->{seed} if defined $self->{seed};
	push @options, '--tls', $self->_make_certificate if $self->{tls};
	return @options;
}

sub _credentials { return $_[0]{credentials} // { test => 'test' }; }

sub _make_certificate
{
	my ($self) = @_;
	my ($certificate, $key) = map { "$self->{dir}/double.$_" } 'crt', 'key';

	system(qw(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2),
		qw(-subj /CN=localhost -addext), 'subjectAltName=IP:127.0.0.1,IP:0.0.0.0',
		'-out', $certificate, '-keyout', $key) == 0 or die "openssl failed\n";
	return ($certificate, $key);
}

sub ca_file { return "$_[0]->{dir}/double.crt"; }

sub url
{
	my ($self) = @_;
	return ($self->{tls} ? 'https' : 'http') . "://127.0.0.1:$self->{port}";
}

sub command
{
	my ($self, %command) = @_;
	my $reply = $self->{http}->post("http://127.0.0.1:$self->{port}/_double",
		{ content => encode_json(\%command) });

	die "double: $command{command}: $reply->{status} $reply->{content}\n"
	  unless $reply->{success};
	return decode_json($reply->{content});
}

sub fault
{
	my ($self, $kind, %options) = @_;

	$options{count} //= 1 unless exists $options{probability};
	return $self->command(%options, command => 'fault', kind => $kind)->{id};
}

sub clear_faults { my ($self) = @_; $self->command(command => 'clear'); return; }

sub _stats { my ($self) = @_; return $self->command(command => 'stats'); }
sub struck { my ($self, $kind) = @_; return $self->_stats->{faults}{$kind} // 0; }
sub later { my ($self) = @_; return $self->_stats->{later}; }
sub refused { my ($self, $type) = @_; return $self->_stats->{refused}{$type} // 0; }

sub requests
{
	my ($self, $operation) = @_;
	my $requests = $self->_stats->{requests};
	my $sum = 0;

	return $requests->{$operation} // 0 if defined $operation;
	$sum += $_ foreach values %$requests;
	return $sum;
}

sub credentials
{
	my ($self, $key, %options) = @_;
	$self->command(%options, command => 'credentials', key => $key);
	return;
}

sub deny
{
	my ($self, $action, %options) = @_;
	$self->command(%options, command => 'deny', action => $action);
	return;
}

sub allow_all { my ($self) = @_; $self->command(command => 'allow_all'); return; }

sub call
{
	my ($self, $operation, $request) = @_;
	my $reply = $self->command(command => 'call', target => $operation, body => $request);

	die "$operation: $reply->{status} " . encode_json($reply->{reply}) . "\n"
	  unless $reply->{status} == 200;
	return $reply->{reply};
}

sub try_call
{
	my ($self, $operation, $request) = @_;
	my $body = encode_json($request);
	my %headers = ('x-amz-date' => strftime('%Y%m%dT%H%M%SZ', gmtime),
		'x-amz-target' => "DynamoDB_20120810.$operation");
	my $reply = $self->{http}->post($self->url . '/', {
		content => $body,
		headers => { %headers, 'Content-Type' => 'application/x-amz-json-1.0',
			Authorization => $self->_signature($body, %headers) } });
	my $decoded = eval { decode_json($reply->{content}) };

	return ($reply->{status}, $decoded // { message => $reply->{content} });
}

# Signature Version 4.
sub _signature
{
	my ($self, $body, %headers) = @_;
	my $credentials = $self->_credentials;
	my ($access_key) = sort keys %$credentials;
	my $date = substr $headers{'x-amz-date'}, 0, 8;
	my @scope = ($date, qw(us-east-1 dynamodb aws4_request));
	my $scope = join '/', @scope;
	my $signed = join ';', 'host', sort keys %headers;
	my $canonical = join "\n", 'POST', '/', '', "host:127.0.0.1:$self->{port}",
	  (map { "$_:$headers{$_}" } sort keys %headers), '', $signed, sha256_hex($body);
	my $key = "AWS4$credentials->{$access_key}";

	$key = hmac_sha256($_, $key) foreach @scope;
	return "AWS4-HMAC-SHA256 Credential=$access_key/$scope, SignedHeaders=$signed, Signature="
	  . hmac_sha256_hex(join("\n", 'AWS4-HMAC-SHA256', $headers{'x-amz-date'}, $scope, sha256_hex($canonical)), $key);
}

sub item
{
	my ($self, $name) = @_;
	return $self->call('GetItem',
		{ TableName => 'lockTable', Key => { key => { S => $name } } })->{Item};
}

sub items { my ($self) = @_; return @{ $self->command(command => 'items')->{items} }; }

1;
