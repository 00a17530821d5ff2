# The first of two name servers is dead: the C library waits 5 s for it, at each look-up. The first
# connection succeeds nevertheless, and a lease stays held while connections break.

use DDBLock::Test;
use IO::Select;
use IO::Socket::INET;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file system_or_bail);

delete @ENV{ grep { /_proxy$/i } keys %ENV };
my $dir = PostgreSQL::Test::Utils::tempdir();

# Two name servers, for whom every name is 127.0.0.1, in either family. The first one is silent
# while there is a file "dead"; each writes a line for each query.
my @servers = map { IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1') or die $! } 1, 2;
my ($first_port, $second_port) = map { $_->sockport } @servers;
my $responder = fork // die $!;
if ($responder == 0)
{
	my $parent = getppid;
	my $select = IO::Select->new(@servers);

	while (getppid == $parent)
	{
		foreach my $server ($select->can_read(1))
		{
			my $client = $server->recv(my $query, 512);
			my $first = $server == $servers[0];
			my ($question, $type) = substr($query, 12) =~ /^((?:[^\0].*?)?\0(..)..)/s or next;
			my $dead = $first && -e "$dir/dead";

			append_to_file("$dir/queries", ($first ? 'first' : 'second') . ($dead ? ", dead\n" : "\n"));
			next if $dead || !defined $client;
			# A reply, recursion available, and the same question; A has an answer, AAAA none.
			my $is_a = unpack('n', $type) == 1;
			$server->send(substr($query, 0, 2) . pack('n5', 0x8180, 1, $is_a ? 1 : 0, 0, 0) . $question
				  . ($is_a ? pack('nnnNnC4', 0xc00c, 1, 1, 0, 4, 127, 0, 0, 1) : ''), 0, $client);
		}
	}
	require POSIX;
	POSIX::_exit(0);
}

# How many queries were like that
sub queries
{
	my ($pattern) = @_;
	return scalar(() = (-e "$dir/queries" ? slurp_file("$dir/queries") : '') =~ /$pattern/mg);
}

# The C library's own resolver asks these two, as with two lines of resolv.conf: the library
# accepts a change of its state, and that needs no privileges and no namespace.
append_to_file("$dir/shim.c", <<"SHIM");
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <nss.h>
#include <resolv.h>

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
			struct addrinfo **result)
{
	static const int ports[] = {$first_port, $second_port};
	int			(*real) (const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		dlsym(RTLD_NEXT, "getaddrinfo");

	__nss_configure_lookup("hosts", "dns");
	res_init();
	for (int i = 0; i < 2; i++)
	{
		_res.nsaddr_list[i].sin_family = AF_INET;
		_res.nsaddr_list[i].sin_port = htons(ports[i]);
		_res.nsaddr_list[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	_res.nscount = 2;
	return real(name, service, hints, result);
}
SHIM
system_or_bail('gcc', '-shared', '-fPIC', '-o', "$dir/shim.so", "$dir/shim.c", '-ldl', '-lresolv');

my $url = 'http://dynamodb.test:' . proxy->port;
my $node = new_cluster('one', through => proxy, start => 0, conf => "ddblock.endpoint_url = '$url'\n"
	  . "log_statement = none\nddblock.keep_warm = off\n");

sub start
{
	my ($how) = @_;
	local $ENV{LD_PRELOAD} = "$dir/shim.so";

	$node->$how;
	return;
}

append_to_file("$dir/dead", '');
start('start');
$node->safe_psql('postgres', 'CREATE EXTENSION ddblock; SELECT ddb_lock_table_create()');
cmp_ok(proxy->connections, '>', 0, 'the first connection succeeds');
cmp_ok(queries('^first, dead'), '>', 0, '... though the first name server is dead');
cmp_ok(queries('^second$'), '>', 0, '... because the second one replies');

# The first one is alive when the server starts, and dies while a lease is held. Connections break.
unlink "$dir/dead";
start('restart');
my $session = session($node);
$session->query_safe(q{SELECT ddb_lock_acquire('a', lease => '9s')});
append_to_file("$dir/dead", '');
my $asked = queries('^first, dead');
my $renewals = q{SELECT coalesce(sum(renewals), 0) FROM ddb_locks WHERE state = 'held'};
my $lost = 'SELECT leases_lost FROM ddb_stats';
my $before = $node->safe_psql('postgres', $renewals);
proxy->fault('reset', every => 2, count => -1);
wait_for { $node->safe_psql('postgres', $renewals) >= $before + 4 || $node->safe_psql('postgres', $lost) > 0 }
	'renewals';
cmp_ok(proxy->faults, '>', 0, 'connections have broken');
cmp_ok(queries('^first, dead'), '>', $asked, '... and the next ones looked the name up');
is($node->safe_psql('postgres', $lost), 0, 'no lease is lost');
is($session->query_safe(q{SELECT ddb_lock_require('a') > 0}), 't', 'the session has its lock');
proxy->clear_faults;
is($session->query_safe('SELECT ddb_lock_release_all()'), 1, '... and releases it');
$session->quit;
nothing_held_ok;
done_testing;

END
{
	my $status = $?;

	if ($responder)
	{
		kill 'TERM', $responder;
		waitpid $responder, 0;
	}
	$? = $status;
}
