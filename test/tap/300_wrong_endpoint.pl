# The endpoint is not DynamoDB's: nobody is left without a word, and where
# waiting does not help, nobody waits.

use DDBLock::Test;
use IO::Socket::INET;

delete @ENV{ grep { /^AWS_/ } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';

my $quiet = "log_statement = none\n";
my $patient = $quiet . "ddblock.retry_timeout = '10min'\n";
my @calls = (
	q{ddb_lock_acquire('a')}, q{ddb_lock_try_acquire('a')}, q{ddb_lock_info('a')},
	q{ddb_lock_list()}, q{ddb_lock_table_create()});

sub listener
{
	return IO::Socket::INET->new(LocalAddr => '127.0.0.1', @_) // die "no socket: $!\n";
}

# Calls that must fail at once: with this much patience a repetition would not end in time.
sub fails_at_once
{
	my ($node, $error, $what) = @_;

	foreach my $call (@calls)
	{
		like(error_of($node, "SET statement_timeout = '100s'; SELECT $call"),
			$error, "$what: $call fails at once");
	}
	return;
}

#
# Nobody listens there.  That may change: requests are repeated, not silently.
#
my $reserved = listener();
my $closed = 'http://127.0.0.1:' . $reserved->sockport;
my $node = new_cluster('closed', table => 0, conf => $quiet
	  . "ddblock.endpoint_url = '$closed'\nddblock.retry_timeout = '2s'\ndeadlock_timeout = '100ms'\n");
foreach my $call (grep { !/create/ } @calls)
{
	like(error_of($node, "SELECT $call"),
		qr/NOTICE: +00000: still waiting for DynamoDB at \Q$closed\E\n.*DETAIL: +Requests are being repeated: connect: .*refused.*ERROR: +08006: could not reach DynamoDB at \Q$closed\E\n/s,
		"nobody listens: $call tells while it waits, and where");
}
is(() = error_of($node, q{SELECT ddb_lock_list()}) =~ /still waiting/g, 1, 'once');
$node->stop;

# The same when it was there before, and somebody else may have the lock.  On a busy
# machine DynamoDB Local may need longer than two seconds, but not for ever.
sub acquires { return ($node->psql('postgres', q{SELECT ddb_lock_acquire('a')}))[0] == 0; }

my $near = new_proxy();
$node = new_cluster('left', through => $near, conf => $quiet
	  . "ddblock.retry_timeout = '2s'\ndeadlock_timeout = '100ms'\n");
wait_for { acquires() } 'the lock';
$near->stop;
my $url = $near->url;
like(error_of($node, q{SELECT ddb_lock_acquire('a')}),
	qr/NOTICE: +00000: still waiting for lock "a"\n.*DETAIL: +The holder is not known now, because of trouble with DynamoDB at \Q$url\E: connect: .*refused.*ERROR: +08006: could not reach DynamoDB at \Q$url\E\n/s,
	'an acquire says for what it waits');
$near->restart;
wait_for { acquires() } 'the lock';
pass('and goes on');
$node->stop;

#
# Somebody else listens there.
#
sub web_server
{
	my ($reply) = @_;
	my $socket = listener(Listen => 10);
	my $pid = fork() // die "fork: $!\n";

	return ($pid, 'http://127.0.0.1:' . $socket->sockport) if $pid;
	$SIG{TERM} = 'DEFAULT';
	$SIG{PIPE} = 'IGNORE';
	while (my $client = $socket->accept)
	{
		my $length = 0;

		while (my $line = <$client>)
		{
			$length = $1 if $line =~ /^Content-Length: (\d+)/i;
			last if $line eq "\r\n";
		}
		read $client, (my $body), $length;
		print $client $reply =~ s/\n/\r\n/gr;
		close $client;
	}
	POSIX::_exit(0);
}

my %replies = (
	'not found' => "HTTP/1.1 404 Not Found\nContent-Length: 15\n\n<html>no</html>",
	'moved' => "HTTP/1.1 301 Moved\nLocation: https://example.org/\nContent-Length: 0\n\n",
	'a page' => "HTTP/1.1 200 OK\nContent-Length: 16\n\n<html>hi!</html>",
	'no HTTP' => "220 mail.example.org ESMTP\n");

foreach my $what (sort keys %replies)
{
	my ($pid, $elsewhere) = web_server($replies{$what});

	$node = new_cluster($what =~ s/ /_/r, table => 0,
		conf => $patient . "ddblock.endpoint_url = '$elsewhere'\n");
	fails_at_once($node,
		qr/ERROR: +08006: the server at \Q$elsewhere\E does not reply as DynamoDB does\n.*HINT: .*ddblock\.endpoint_url/s,
		$what);
	$node->stop;
	kill 'TERM', $pid;
	waitpid $pid, 0;
}

#
# TLS
#
my $double = new_double(tls => 1);
my $tls = $double->url;
$node = new_cluster('untrusted', through => $double, table => 0, conf => $patient);
fails_at_once($node,
	qr/ERROR: +08006: could not make a trusted connection to DynamoDB at \Q$tls\E\n.*DETAIL: +TLS: .*certificate.*HINT: .*ddblock\.ca_file/s,
	'an unknown authority');
$node->append_conf('postgresql.conf', "ddblock.ca_file = '" . $double->ca_file . "'\n");
$node->reload;
wait_for { ($node->psql('postgres', 'SELECT ddb_lock_table_create()'))[0] == 0 } 'the table';
like($node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a')}), qr/^\d+$/,
	'what was put right helps at once, too');
$node->stop;

my $plain = dynamodb->url =~ s/http:/https:/r;
$node = new_cluster('plain', table => 0,
	conf => $patient . "ddblock.endpoint_url = '$plain'\n");
fails_at_once($node,
	qr/ERROR: +08006: could not make a trusted connection to DynamoDB at \Q$plain\E\n.*DETAIL: +TLS: .*wrong version.*HINT: .*"https"/s,
	'a server without TLS');
$node->stop;

done_testing;
