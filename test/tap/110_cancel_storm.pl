# Thousands of calls that are cancelled at any moment, also right when the lock
# is granted: what a session was not told of, it does not hold.

use DDBLock::Test;

my $node = new_cluster('one', conf => "ddblock.keep_warm = off\nlog_statement = none\n"
	  . "log_min_messages = fatal\n");
my $seed = 20261121;
srand($seed);

# How long acquiring takes on this machine, at this hour, in milliseconds.
my $usual = $node->safe_psql('postgres', q{
	CREATE FUNCTION takes() RETURNS double precision LANGUAGE plpgsql AS $$
	DECLARE
		start timestamptz := clock_timestamp();
	BEGIN
		PERFORM ddb_lock_acquire('storm/0');
		RETURN 1000 * extract(epoch FROM clock_timestamp() - start);
	END $$;
	SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took)
	FROM (SELECT takes() AS took, ddb_lock_release('storm/0') FROM generate_series(1, 50)) t});
note("acquiring takes $usual ms");

# What one session sends: acquisitions of three locks, each with about as much
# time as it takes, and now and then a release of all.
sub storm
{
	my $sql = "SET client_min_messages = error;\n";

	foreach (1 .. 3000)
	{
		my $function = rand() < 0.5 ? 'ddb_lock_acquire' : 'ddb_lock_try_acquire';
		my $time = 1 + int(rand() * rand() * 8 * ($usual > 1 ? $usual : 1));

		$sql .= "SET statement_timeout = ${time};\n"
		  . "SELECT $function('storm/" . int(rand(3)) . "', lease => '1h');\n";
		$sql .= "SET statement_timeout = 0; SELECT ddb_lock_release_all();\n"
		  if rand() < 0.3;
	}
	return $sql . "SET statement_timeout = 0;\nSELECT ddb_lock_release_all();\n";
}

my $dir = PostgreSQL::Test::Utils::tempdir();
my @sessions = map { session($node) } 1 .. 2;
append_to_file("$dir/storm$_.sql", storm()) foreach 0 .. $#sessions;
$sessions[$_]->send("\\i $dir/storm$_.sql") foreach 0 .. $#sessions;
foreach my $i (0 .. $#sessions)
{
	my $granted = () = $sessions[$i]->result =~ /^\d{10,}$/mg;
	my $cancelled = () = $sessions[$i]->messages =~ /57014/g;

	note("session $i: $granted grants, $cancelled cancellations");
	cmp_ok($granted, '>', 20, "session $i was granted locks (seed $seed)");
	cmp_ok($cancelled, '>', 20, "session $i was cancelled");
}

# The sessions are still there: what a cancellation left behind would be, too.
wait_for {
	$node->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks') == 0
}
'all locks are released';
pass('nothing is left of cancelled calls');
$_->quit foreach @sessions;
nothing_held_ok;

done_testing;
