# DDBLock::Article: the plain design of a queue that ddblock's is measured beside.

=pod

=head1 NAME

DDBLock::Article - "Building a multi-value semaphore with DynamoDB" (van Donkersgoed), as a client

=head1 DESCRIPTION

The design has an item for each environment (resource) with the number of its jobs, and an
item for each job.  As it is written here:

	push		a transaction puts the job, and adds one to the number
	find		a scan of all environments, filtered: jobs wait, none is running
	claim		a conditional update marks the environment; a query finds its oldest job
	complete	a transaction deletes the job, takes one from the number, and removes the mark

This is kinder to it than a timer: a client scans as soon as it has tried all that the last
scan showed, in an order of its own, and pauses for 0.1 s only if it got none of that; and
the scanned table has no jobs in it.  It does less than ddblock: it has neither leases nor tokens nor
attempts, so a client that dies in its work leaves the environment marked for ever.

=head1 METHODS

=over

=item DDBLock::Article->new(server => $server, tables => $prefix)

One client. The server has C<call> and C<try_call>, as L<DDBLock::DynamoDB> has.

=item $article->create_tables

=item $article->push_job($environment)

=item $article->finish_one

Claims and completes a job. Returns false, after a pause, if none of those found could be claimed.

=item $article->scan

The environments in which a job waits and none is running.

=item $article->counts

A hash: C<requests> so far, and the units that were C<written> and C<read>. Units are those that
replies name. The reply to a refused write names none: 1 for each item, 2 in a transaction.

=item $article->start(\&work)

Calls C<work> with the client in a process of its own, and returns that.

=item DDBLock::Article::finish($process)

Waits for its end, and returns the client's counts and the hash that C<work> returned, in one.
Dies if it died.

=back

=cut

package DDBLock::Article;

use strict;
use warnings;

use DDBLock::DynamoDB;
use JSON::PP;
use List::Util qw(shuffle sum0);
use POSIX ();
use Time::HiRes qw(sleep time);

sub new
{
	my ($class, %args) = @_;
	return bless { %args, found => [], counts => {} }, $class;
}

sub counts { return %{ $_[0]{counts} }; }

sub create_tables
{
	my ($self) = @_;
	my @environment = ({ AttributeName => 'environment', KeyType => 'HASH' });
	my @job = (@environment, { AttributeName => 'requested', KeyType => 'RANGE' });

	foreach ([ $self->_environments, @environment ], [ $self->_jobs, @job ])
	{
		my ($table, @keys) = @$_;

		$self->{server}->call('CreateTable', {
			TableName => $table,
			BillingMode => 'PAY_PER_REQUEST',
			KeySchema => \@keys,
			AttributeDefinitions => [
				map { { AttributeName => $_->{AttributeName}, AttributeType => 'S' } } @keys ] });
	}
	return;
}

sub _environments { return "$_[0]{tables}.environment"; }
sub _jobs { return "$_[0]{tables}.deployment"; }

# Transactions that meet are repeated.
sub push_job
{
	my ($self, $environment) = @_;
	my $put = {
		TableName => $self->_jobs,
		Item => {
			environment => { S => "$environment" },
			requested => { S => sprintf '%.6f %s', time, DDBLock::DynamoDB::uuid() },
			payload => { S => '1' } } };

	1 until $self->_send('TransactWriteItems', {
		TransactItems => [ { Put => $put }, { Update => {
			TableName => $self->_environments,
			Key => { environment => { S => "$environment" } },
			UpdateExpression => 'SET waiting = if_not_exists(waiting, :zero) + :one',
			ExpressionAttributeValues => { ':zero' => { N => '0' }, ':one' => { N => '1' } } } } ] });
	return;
}

sub finish_one
{
	my ($self) = @_;
	my $found = $self->{found};

	@$found = shuffle($self->scan) unless @$found;
	while (@$found)
	{
		my $environment = shift @$found;

		$self->_claim($environment) or next;
		$self->_complete($environment);
		return 1;
	}
	sleep 0.1;
	return 0;
}

sub scan
{
	my ($self) = @_;
	my $page = $self->_send('Scan', {
		TableName => $self->_environments,
		FilterExpression => 'waiting > :zero AND attribute_not_exists(running)',
		ProjectionExpression => 'environment',
		ExpressionAttributeValues => { ':zero' => { N => '0' } } });

	die "the environments do not fit a page\n" if $page->{LastEvaluatedKey};
	return map { $_->{environment}{S} } @{ $page->{Items} };
}

sub _claim
{
	my ($self, $environment) = @_;

	return $self->_send('UpdateItem', {
		TableName => $self->_environments,
		Key => { environment => { S => $environment } },
		UpdateExpression => 'SET running = :me',
		ConditionExpression => 'waiting > :zero AND attribute_not_exists(running)',
		ExpressionAttributeValues => { ':zero' => { N => '0' }, ':me' => { S => "$$" } } });
}

sub _complete
{
	my ($self, $environment) = @_;
	my $oldest = $self->_send('Query', {
		TableName => $self->_jobs,
		ConsistentRead => JSON::PP::true,
		Limit => 1,
		KeyConditionExpression => 'environment = :e',
		ExpressionAttributeValues => { ':e' => { S => $environment } } })->{Items}[0];

	1 until $self->_send('TransactWriteItems', {
		TransactItems => [ { Delete => {
			TableName => $self->_jobs,
			Key => { map { $_ => $oldest->{$_} } qw(environment requested) } } },
		{ Update => {
			TableName => $self->_environments,
			Key => { environment => { S => $environment } },
			UpdateExpression => 'SET waiting = waiting - :one REMOVE running',
			ExpressionAttributeValues => { ':one' => { N => '1' } } } } ] });
	return;
}

# The reply, or undef if a condition or another transaction has refused it.
sub _send
{
	my ($self, $operation, $request) = @_;
	my $counts = $self->{counts};
	my ($status, $reply) =
	  $self->{server}->try_call($operation, { %$request, ReturnConsumedCapacity => 'TOTAL' });
	my $refused = ($reply->{__type} // '') =~ /ConditionalCheckFailed|TransactionCanceled|TransactionConflict/;
	my $consumed = $reply->{ConsumedCapacity} // [];
	my $units = sum0(map { $_->{CapacityUnits} } ref $consumed eq 'ARRAY' ? @$consumed : $consumed);

	die "$operation: $status " . encode_json($reply) . "\n" unless $status == 200 || $refused;
	$units = 2 * @{ $request->{TransactItems} // [] } || 1 if $refused;
	$counts->{requests}++;
	$counts->{ $operation =~ /Scan|Query/ ? 'read' : 'written' } += $units;
	return $refused ? undef : $reply;
}

sub start
{
	my ($self, $work) = @_;
	my $pid = open(my $pipe, '-|') // die "fork: $!\n";

	return { pid => $pid, pipe => $pipe } if $pid;
	srand;
	my %result = eval { $work->($self) };
	print STDERR $@ if $@;
	%result = (%result, $self->counts);
	syswrite STDOUT, join(' ', map { "$_=$result{$_}" } keys %result) . "\n";
	POSIX::_exit($@ ? 1 : 0);
}

sub finish
{
	my ($process) = @_;
	my $line = readline $process->{pipe};

	close $process->{pipe} or die "a client of the article's design has failed\n";
	return map { split /=/ } split ' ', $line;
}

1;
