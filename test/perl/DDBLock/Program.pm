# DDBLock::Program: a server program of the tests that writes its port into a
# file once it listens.  The base of DDBLock::Proxy and DDBLock::Double.

package DDBLock::Program;

use strict;
use warnings;

use HTTP::Tiny;
use POSIX ();
use Time::HiRes ();

use DDBLock::DynamoDB;	# for its change to HTTP::Tiny

# Its log and its port file are in $self->{dir}, under $name.
sub _launch
{
	my ($self, $name, @command) = @_;
	my $port_file = $self->_port_file($name);

	unlink $port_file;
	$self->_run($name, @command);
	$self->_wait_for($name, sub { defined($self->{port} = _read_port($port_file)) });
	return;
}

sub _run
{
	my ($self, $name, @command) = @_;
	my $log_file = "$self->{dir}/$name.log";
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $log_file;
		open STDERR, '>&', \*STDOUT;
		exec @command or POSIX::_exit(127);
	}
	$self->{pid} = $pid;
	$self->{http} = HTTP::Tiny->new(timeout => 30);
	return;
}

# Until it listens.
sub _wait_for
{
	my ($self, $name, $listens) = @_;
	my $deadline = time + 60;

	until ($listens->())
	{
		die "the $name ended, see $self->{dir}/$name.log\n"
		  if waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid};
		die "the $name did not start\n" if time > $deadline;
		Time::HiRes::sleep(0.02);
	}
	return;
}

sub _port_file { my ($self, $name) = @_; return "$self->{dir}/$name.port"; }

sub _read_port
{
	my ($file) = @_;

	open my $fh, '<', $file or return;
	my $line = <$fh>;
	close $fh;
	return defined $line && $line =~ /^(\d+)\n/ ? $1 : undef;
}

sub stop
{
	my ($self) = @_;
	my $pid = delete $self->{pid} or return;

	kill 'TERM', $pid;
	waitpid($pid, 0);
	return;
}

sub port { return $_[0]->{port}; }

1;
