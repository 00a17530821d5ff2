# Nobody gets to see the credentials: not in the log, not in an error, not in a
# view of settings.

use strict;
use warnings;

use DDBLock::Test;
use Test::More;

my $secret = 'Kq7WsecretVx9';
my $later_secret = 'Zr3LsecretUm5';
my $token = 'Tb8HtokenYd2';
my $key_id = 'AKIDvisibleToSuperusers';
my $node = new_cluster('one', through => proxy,
	conf => "ddblock.access_key_id = '$key_id'\nddblock.secret_access_key = '$secret'\n"
	  . "ddblock.session_token = '$token'\nddblock.retry_timeout = '1s'\n"
	  . "log_min_messages = debug5\nlog_min_error_statement = debug5\n"
	  . "log_error_verbosity = verbose\n");
my $session = session($node);
my $seen = '';

# Everything that fails, with the most words.
$session->ask('SET client_min_messages = debug5');
foreach my $fault (
	[ 'UnrecognizedClientException', 400 ], [ 'InvalidSignatureException', 400 ],
	[ 'AccessDeniedException', 400 ], [ 'SurpriseException', 418 ],
	[ 'InternalServerError', 500 ])
{
	proxy->fault('error', type => $fault->[0], status => $fault->[1], count => -1);
	$seen .= $session->error_of(q{SELECT ddb_lock_acquire('a')});
	proxy->clear_faults;
}
proxy->fault('reset', count => -1);
$seen .= $session->error_of(q{SELECT ddb_lock_acquire('a')});
proxy->clear_faults;
$session->ask(q{SELECT ddb_lock_acquire('a')});
$seen .= $session->messages;
unlike($seen, qr/$secret|$token/, 'no message to the client has a secret');

# A reload tells the log which settings have changed.
$node->append_conf('postgresql.conf', "ddblock.secret_access_key = '$later_secret'\n");
$node->reload;
$node->append_conf('postgresql.conf', "ddblock.secret_access_key = 'bad\\001secretish\n");
$node->reload;
$node->wait_for_log(qr/contains errors/);
$node->safe_psql('postgres', q{SELECT ddb_lock_acquire('b')});
$node->restart;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile),
	qr/$secret|$later_secret|$token/, 'nor has the server log, whatever its level');
done_testing;
