# Nobody gets to see the credentials: not in the log, not in an error, not in a
# view of settings.

use DDBLock::Test;

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
$node->wait_for_log(qr/received SIGHUP/);
$session->ask(q{SELECT ddb_lock_acquire('b')});

#
# Settings
#
my @secrets = qw(ddblock.secret_access_key ddblock.session_token);
is($node->safe_psql('postgres', "SHOW $_"), '', "a superuser is shown nothing of $_")
  foreach @secrets;
is($node->safe_psql('postgres', 'SHOW ddblock.access_key_id'), $key_id,
	'but the id of the key');
$node->safe_psql('postgres', 'CREATE ROLE joe LOGIN');
foreach my $name (@secrets, 'ddblock.access_key_id')
{
	like(error_of($node, "SET ROLE joe; SHOW $name"),
		qr/ERROR: +42501/, "others may not even ask for $name");
	like(error_of($node, "SET $name = 'mine'"),
		qr/ERROR: +55P02/, 'and nobody sets it in a session');
}

# ALTER SYSTEM would put them into a file, and its failure into the log.
foreach my $name (@secrets)
{
	my $hidden = "SET log_statement = none";

	foreach my $statement (
		"ALTER SYSTEM SET $name = '$later_secret'",
		"SET $name = '$later_secret'",
		"ALTER ROLE joe SET $name = '$later_secret'",
		"SELECT set_config('$name', '$later_secret', false)",
		"DO 'BEGIN EXECUTE ''ALTER ROLE joe SET $name = $later_secret''; END'")
	{
		like(error_of($node, "$hidden;\n$statement"), qr/ERROR: +(55P02|42601)/,
			"refused, and not logged: " . $statement =~ s/$later_secret/.../r);
	}
}
unlike(PostgreSQL::Test::Utils::slurp_file($node->data_dir . '/postgresql.auto.conf'),
	qr/$later_secret/, 'ALTER SYSTEM has written nothing');
is( $node->safe_psql('postgres',
		q{SET ROLE joe; SELECT count(*) FROM pg_settings
		  WHERE name ~ '^ddblock\.(secret|session|access)'}),
	0, 'pg_settings does not list them for others');
unlike(
	$node->safe_psql('postgres',
		q{SELECT string_agg(s::text, ' ') FROM pg_settings s;
		  SELECT string_agg(a::text, ' ') FROM pg_stat_activity a}),
	qr/$secret|$later_secret|$token/,
	'not even superusers find the secrets in a view');

$session->quit;
$node->restart;
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile),
	qr/$secret|$later_secret|$token/, 'the server log has no secret, whatever its level');
nothing_held_ok;
done_testing;
