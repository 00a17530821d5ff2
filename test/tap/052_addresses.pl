# DynamoDB's name gets another address: what is held stays held.

use DDBLock::Test;
use PostgreSQL::Test::Utils qw(append_to_file slurp_file);

delete @ENV{ grep { /_proxy$/i } keys %ENV };

# The name is what the file says: an address.
my $shim = "$PostgreSQL::Test::Utils::tmp_check/resolver";
append_to_file("$shim.c", <<'C');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
			struct addrinfo **result)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		dlsym(RTLD_NEXT, "getaddrinfo");
	char address[64] = "";
	FILE *file;

	if (name == NULL || strcmp(name, "moving.test") != 0)
		return real(name, service, hints, result);
	if (hints != NULL && hints->ai_family == AF_INET6)
		return EAI_NONAME;
	file = fopen(getenv("MOVING_TEST"), "r");
	if (file == NULL || fscanf(file, "%63s", address) != 1)
		abort();
	fclose(file);
	return real(address, service, hints, result);
}
C
system('gcc', '-shared', '-fPIC', '-o', "$shim.so", "$shim.c", '-ldl') == 0 or die "no shim\n";

# A look-up finds the old address or the new one.
sub move_to
{
	my ($proxy) = @_;

	unlink "$shim.new";
	append_to_file("$shim.new", $proxy->{host});
	rename "$shim.new", "$shim.address" or die $!;
	return;
}

my $old = new_proxy();
my $new = new_proxy(host => '127.0.0.2', port => $old->port);
my $url = 'http://moving.test:' . $old->port;
my $node = new_cluster('one', through => $old, start => 0,
	conf => "ddblock.endpoint_url = '$url'\nlog_statement = none\n");

move_to($old);
{
	local @ENV{qw(LD_PRELOAD MOVING_TEST)} = ("$shim.so", "$shim.address");
	$node->start;
}
$node->safe_psql('postgres', 'CREATE EXTENSION ddblock; SELECT ddb_lock_table_create()');
my $session = session($node);
my $locks = 10;
$session->query_safe("SELECT ddb_lock_acquire('a' || i, lease => '9s') FROM generate_series(1, $locks) i");
cmp_ok($old->received, '>=', $locks, 'requests go to the address that the name has');
is($new->received, 0, '... and to no other one');

# The old address falls silent, with its connections; then the new one refuses them.
foreach my $way ([ 'does not answer', $old, $new, sub { $old->fault('drop', count => -1) } ],
	[ 'refuses connections', $new, $old, sub { $new->stop } ])
{
	my ($what, $from, $to, $end) = @$way;
	my $renewals = "SELECT min(renewals) FROM ddb_locks WHERE state = 'held' HAVING count(*) = $locks";
	my $before = $node->safe_psql('postgres', $renewals);

	$from->clear_faults;
	$to->clear_faults;
	$to->reset_counts;
	$end->();
	move_to($to);
	wait_for { ($node->safe_psql('postgres', $renewals) || 0) >= $before + 2
		|| $node->safe_psql('postgres', 'SELECT leases_lost FROM ddb_stats') > 0 } 'renewals';
	is($node->safe_psql('postgres', 'SELECT leases_lost FROM ddb_stats'), 0,
		"no lease is lost when the old address $what");
	cmp_ok($to->forwarded, '>', 0, '... because the new one is used');
	is($session->query_safe("SELECT count(ddb_lock_require('a' || i)) FROM generate_series(1, $locks) i"),
		$locks, 'the session has all locks');
}
is($session->query_safe('SELECT ddb_lock_release_all()'), $locks, '... and releases them');
$session->quit;
nothing_held_ok;
done_testing;
