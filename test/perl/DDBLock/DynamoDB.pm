# DDBLock::DynamoDB: one DynamoDB Local, as seen from the operator's side.
#
# Reads and writes raw items past the extension: to look at what it left
# there, and to play another client of the same table (Amazon's Java lock
# client, an operator with a console).  Requests carry a made-up signature,
# which DynamoDB Local does not check.

=pod

=head1 NAME

DDBLock::DynamoDB - a DynamoDB Local and its raw items

=head1 METHODS

Items are hashes in DynamoDB's own notation: C<< { key => { S => 'x' } } >>.

=over

=item DDBLock::DynamoDB->start(table => 'lockTable')

A server of this process alone, without tables. It takes two seconds of the processor to
start one, so one that another test file has given back is preferred. Table is the default
for the methods below.

=item $ddb->give_back

Lets another test file use the server. Who does not call it must call stop.

=item $ddb->port, $ddb->url, $ddb->table

=item $ddb->call($operation, \%request)

Sends a request, returns the decoded reply; dies if it is not a success.

=item $ddb->try_call($operation, \%request)

The same, but returns (HTTP status, decoded reply) and never dies of a refusal.

=item $ddb->item($name)

The lock's item by a consistent read, or undef. In a table with a sort key,
whose name must be C<sort>, C<$name> is C<[ $partition, $sort ]>.

=item $ddb->items

All items of the table.

=item $ddb->put_item(\%item)

Writes an item as it is, over whatever was there.

=item $ddb->delete_item($name)

=item $ddb->java_item($name, owner => ..., lease_ms => ..., version => ...)

Returns (does not write) the item that Amazon's Java lock client writes when
it acquires: no fencing token, no holder. Owner, lease and version have
defaults; C<< extra => \%attributes >> adds some.

=item DDBLock::DynamoDB::uuid

A random version-4 UUID.

=item $ddb->stop, $ddb->restart

Restarting keeps the port and loses the data.

=back

=cut

package DDBLock::DynamoDB;

use strict;
use warnings;

use Cwd qw(abs_path);
use Fcntl qw(LOCK_EX LOCK_NB);
use File::Basename qw(dirname);
use HTTP::Tiny;
use JSON::PP;
use Socket qw(IPPROTO_TCP TCP_NODELAY);

# HTTP::Tiny writes a request in two parts, and Nagle's algorithm holds the
# second back for 40 ms.
{
	no warnings 'redefine';
	my $connect = \&HTTP::Tiny::Handle::connect;

	*HTTP::Tiny::Handle::connect = sub {
		my $handle = $connect->(@_);

		setsockopt($handle->{fh}, IPPROTO_TCP, TCP_NODELAY, 1);
		return $handle;
	};
}

my $helper = abs_path(dirname(__FILE__) . '/../../dynamodb-local');

sub start
{
	my ($class, %args) = @_;
	my $self = bless {
		table => $args{table} // 'lockTable',
		http => HTTP::Tiny->new(timeout => 30),
	}, $class;

	for (my $number = 0; !$self->{lock}; $number++)
	{
		$self->{dir} = "$ENV{DDBLOCK_WORK}/dynamodb.$number";
		open my $lock, '>', "$self->{dir}.lock" or die "$self->{dir}.lock: $!\n";
		$self->{lock} = $lock if flock($lock, LOCK_EX | LOCK_NB);
	}
	return $self if -f "$self->{dir}/port" && eval { $self->_delete_tables; 1 };
	$self->stop;
	$self->_launch(0);
	return $self;
}

sub _launch
{
	my ($self, $port) = @_;

	system($helper, 'start', $port, $self->{dir}) == 0
	  or die "DynamoDB Local did not start\n";
	$self->_read_port;
	return;
}

sub _read_port
{
	my ($self) = @_;

	open my $fh, '<', "$self->{dir}/port" or die "no port file: $!\n";
	chomp($self->{port} = <$fh>);
	close $fh;
	return;
}

sub _delete_tables
{
	my ($self) = @_;

	$self->_read_port;
	foreach my $table (@{ $self->call('ListTables', {})->{TableNames} })
	{
		$self->call('UpdateTable', { TableName => $table, DeletionProtectionEnabled => JSON::PP::false })
		  if $self->call('DescribeTable', { TableName => $table })->{Table}{DeletionProtectionEnabled};
		$self->call('DeleteTable', { TableName => $table });
	}
	return;
}

sub give_back { delete $_[0]{lock}; return; }

sub stop
{
	my ($self) = @_;
	system($helper, 'stop', $self->{dir});
	return;
}

sub restart
{
	my ($self) = @_;
	$self->stop;
	$self->_launch($self->{port});
	return;
}

sub port { return $_[0]->{port}; }
sub table { return $_[0]->{table}; }
sub url { return "http://127.0.0.1:$_[0]->{port}"; }

sub try_call
{
	my ($self, $operation, $request) = @_;

	my $reply = $self->{http}->post(
		$self->url . '/',
		{   content => encode_json($request),
			headers => {
				'Content-Type' => 'application/x-amz-json-1.0',
				'X-Amz-Target' => "DynamoDB_20120810.$operation",
				'Authorization' => 'AWS4-HMAC-SHA256 '
				  . 'Credential=test/20260101/us-east-1/dynamodb/aws4_request, '
				  . 'SignedHeaders=host, Signature=0',
			},
		});
	my $decoded = eval { decode_json($reply->{content}) };
	return ($reply->{status}, $decoded // { message => $reply->{content} });
}

sub call
{
	my ($self, $operation, $request) = @_;
	my ($status, $reply) = $self->try_call($operation, $request);

	die "$operation: $status " . encode_json($reply) . "\n"
	  unless $status == 200;
	return $reply;
}

# What a request says of its item.
sub _key
{
	my ($self, $name) = @_;
	my ($partition, $sort) = ref $name ? @$name : $name;
	my %key = (key => { S => $partition }, defined $sort ? (sort => { S => $sort }) : ());

	return (TableName => $self->{table}, Key => \%key);
}

sub item
{
	my ($self, $name) = @_;
	return $self->call('GetItem',
		{ $self->_key($name), ConsistentRead => JSON::PP::true })->{Item};
}

sub items
{
	my ($self) = @_;
	my (@items, $from);

	do
	{
		my $page = $self->call(
			'Scan',
			{   TableName => $self->{table},
				ConsistentRead => JSON::PP::true,
				$from ? (ExclusiveStartKey => $from) : (),
			});
		push @items, @{ $page->{Items} };
		$from = $page->{LastEvaluatedKey};
	} while ($from);
	return @items;
}

sub put_item
{
	my ($self, $item) = @_;
	$self->call('PutItem', { TableName => $self->{table}, Item => $item });
	return;
}

sub delete_item
{
	my ($self, $name) = @_;
	$self->call('DeleteItem', { $self->_key($name) });
	return;
}

sub java_item
{
	my ($self, $name, %args) = @_;
	return {
		%{ { $self->_key($name) }->{Key} },
		ownerName => { S => $args{owner} // 'java-service' },
		leaseDuration => { S => '' . ($args{lease_ms} // 20000) },
		recordVersionNumber => { S => $args{version} // uuid() },
		%{ $args{extra} // {} },
	};
}

# What Amazon's client sends, from AmazonDynamoDBLockClient.java of its version
# 1.4.0.  With withUpdateExistingLockRecord(true) it acquires what is released, or
# has expired, by an UpdateItem that leaves what it does not know ...
sub java_update
{
	my ($self, $name, %args) = @_;
	my $item = $self->item($name) // die "no item \"$name\"";
	my $released = exists $item->{isReleased};

	return $self->call(
		'UpdateItem',
		{
			$self->_key($name),
			UpdateExpression => 'SET #k0 = :v0, #k1 = :v1, #k2 = :v2'
			  . ($released ? ' REMOVE #ir ' : ''),
			ConditionExpression => $released
			? 'attribute_exists(#pk) AND #ir = :ir'
			: 'attribute_exists(#pk) AND #rvn = :rvn',
			ExpressionAttributeNames => {
				'#pk' => 'key',
				'#k0' => 'ownerName',
				'#k1' => 'leaseDuration',
				'#k2' => 'recordVersionNumber',
				$released ? ('#ir' => 'isReleased') : ('#rvn' => 'recordVersionNumber')
			},
			ExpressionAttributeValues => {
				':v0' => { S => $args{owner} // 'java-service' },
				':v1' => { S => '' . ($args{lease_ms} // 20000) },
				':v2' => { S => uuid() },
				$released ? (':ir' => { S => '1' }) : (':rvn' => $item->{recordVersionNumber})
			}
		});
}

# ... and with withDeleteLockOnRelease(false) it marks what it releases.
sub java_release
{
	my ($self, $name, %args) = @_;
	my $item = $self->item($name);

	return $self->call(
		'UpdateItem',
		{
			$self->_key($name),
			UpdateExpression => 'SET #ir = :ir',
			ConditionExpression => 'attribute_exists(#pk) AND #rvn = :rvn AND #on = :on',
			ExpressionAttributeNames => {
				'#pk' => 'key',
				'#ir' => 'isReleased',
				'#rvn' => 'recordVersionNumber',
				'#on' => 'ownerName'
			},
			ExpressionAttributeValues => {
				':ir' => { S => '1' },
				':rvn' => $item->{recordVersionNumber},
				':on' => { S => $args{owner} // 'java-service' }
			}
		});
}

sub uuid
{
	my @x = map { int(rand(0x10000)) } 1 .. 8;

	$x[3] = ($x[3] & 0x0fff) | 0x4000;
	$x[4] = ($x[4] & 0x3fff) | 0x8000;
	return sprintf('%04x%04x-%04x-%04x-%04x-%04x%04x%04x', @x);
}

1;
