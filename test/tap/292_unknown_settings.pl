# Settings that ddblock does not have: a server does not start with one, wherever it stands, because
# the default would apply in place of what was meant.  A reload and a session only warn.

use DDBLock::Test;

my $node = new_cluster('one', table => 0);
my $data = $node->data_dir;
$node->stop;

sub refused
{
	my ($how, $message, $options) = @_;
	my $before = -s $node->logfile;

	is(system(qq{pg_ctl -D '$data' -l '@{[ $node->logfile ]}' -o "$options" start >/dev/null 2>&1}) >> 8, 1,
		"$how: the server does not start");
	like(PostgreSQL::Test::Utils::slurp_file($node->logfile, $before), qr/FATAL: +$message/, '... and says why');
	return;
}

sub append { $node->append_conf($_[0], $_[1]); return; }
sub unknown { return qr/unrecognized configuration parameter "$_[0]"/i; }
my $hint = qr/\n.*HINT: +Perhaps you meant "ddblock\.lock_table"\./;

refused('on the command line', qr/@{[ unknown('ddblock.lock_tabel') ]}$hint/, '-c ddblock.lock_tabel=x');
refused('far from all', qr/@{[ unknown('ddblock.of_another_version') ]}\n.*HINT: +This version of ddblock has no such setting/,
	'-c ddblock.of_another_version=x');
foreach my $name ('ddblock.lock_tabel', 'DDBLock.locktable', 'ddblock.locks_table')
{
	foreach my $file ('postgresql.conf', 'postgresql.auto.conf')
	{
		my $whole = PostgreSQL::Test::Utils::slurp_file("$data/$file");

		append($file, "$name = 'x'");
		refused("$name in $file", qr/@{[ unknown($name) ]}$hint/, '');
		unlink "$data/$file";
		PostgreSQL::Test::Utils::append_to_file("$data/$file", $whole);
	}
}

# A role's setting that was stored while the library was not preloaded
append('postgresql.conf', "shared_preload_libraries = ''\nddblock.lock_tabel = 'x'\nother.lock_tabel = 'x'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE ROLE alice LOGIN; ALTER ROLE alice SET ddblock.lock_tabel = 'x';
	ALTER DATABASE template1 SET ddblock.lock_tabel = 'x'});
$node->stop;
append('postgresql.conf', "shared_preload_libraries = 'ddblock'");
refused('preloading', unknown('ddblock.lock_tabel'), '');
$node->adjust_conf('postgresql.conf', 'ddblock.lock_tabel', undef);
append('postgresql.conf', "DDBLOCK.LOCK_TABLE = 'lockTable'");
$node->start;
pass('others\' names, and ours in capitals, are no matter');
my ($status, $out, $err) = $node->psql('postgres', 'SHOW ddblock.lock_table', extra_params => [ '-U', 'alice' ]);
is($out, 'lockTable', 'a session whose role has such a setting begins');
like($err, qr/WARNING: +invalid configuration parameter name "ddblock\.lock_tabel"/, '... with a WARNING');
like(error_of($node, q{ALTER SYSTEM SET ddblock.lock_tabel = 'x'}), qr/ERROR/, 'ALTER SYSTEM refuses it');

append('postgresql.conf', "ddblock.lock_tabel = 'x'\nddblock.poll_interval = 300");
$node->reload;
$node->wait_for_log(qr/invalid configuration parameter name "ddblock\.lock_tabel"/);
is($node->safe_psql('postgres', 'SELECT count(*) FROM ddb_status'), 1, 'after a reload the server goes on');

done_testing;
