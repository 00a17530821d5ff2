# What the calls of a managed database cost: beside ddblock itself, and beside postgres_fdw with
# an UPDATE there that does nothing, each in one session, all on one machine.  "make managed
# ROUNDS=300" runs it.  All take turns; shown are tenth percentiles as psql sees them, because
# the machine may be busy, and their ratios.  DynamoDB is DynamoDB Local.

use DDBLock::Test;
use DDBLock::Managed;

my $rounds = $ENV{ROUNDS} || 300;
my $locks = lock_server('locks', conf => "log_statement = none\n");
my $shop = managed_cluster('shop', $locks);

$shop->append_conf('postgresql.conf', 'log_statement = none');
$shop->reload;
# As the view ddb_remote, but for what its trigger does
$locks->safe_psql('postgres', q{
	CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
	CREATE VIEW bare AS SELECT 'f' AS function, NULL::jsonb AS arguments, NULL::jsonb AS result;
	CREATE TRIGGER nothing INSTEAD OF UPDATE ON bare FOR EACH ROW EXECUTE FUNCTION nothing();
	GRANT SELECT, UPDATE ON bare TO shop});
$shop->safe_psql('postgres', q{
	SET ROLE admin;
	IMPORT FOREIGN SCHEMA public LIMIT TO (bare) FROM SERVER ddblock INTO ddblock;
	CREATE FUNCTION ddblock.bare() RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	DECLARE
		answer jsonb;
	BEGIN
		UPDATE ddblock.bare SET arguments = '{}' WHERE function = 'f' RETURNING result INTO answer;
		RETURN answer;
	END $$});

my %session = (own => session($locks), here => app($shop));
my %names = (own => "'shop/own'", here => "'shop/here'");
my %took;

# The time of each statement
sub timed { my ($session, $sql) = @_; return $session->query_safe("\\timing on\n$sql\n\\timing off") =~ /^Time: ([\d.]+) ms/mg; }
sub ms { my ($where, $sql) = @_; return timed($session{$where}, $sql =~ s/NAME/$names{$where}/gr); }
sub sum { my $sum = 0; $sum += $_ foreach @_; return $sum; }

foreach my $round (1 .. 20)
{
	my $new = app($shop);
	my ($first, $second) = timed($new, q{SELECT ddb_lock_remaining('shop/a'); SELECT ddb_lock_remaining('shop/a');});
	push @{ $took{'first call'}{here} }, $first - $second;
	$new->quit;
}
foreach my $round (1 .. $rounds + 20)
{
	foreach my $where (qw(own here))
	{
		my ($acquire, $release) = ms($where, "SELECT ddb_lock_acquire(NAME);\nSELECT ddb_lock_release(NAME);");
		my @transaction = ms($where, "BEGIN;\nSELECT ddb_xact_lock_acquire(NAME);\nSELECT ddb_lock_require(NAME);\nCOMMIT;");

		next if $round <= 20;
		push @{ $took{acquire}{$where} }, $acquire;
		push @{ $took{release}{$where} }, $release;
		push @{ $took{'one more question'}{$where} }, $transaction[2];
		push @{ $took{'transaction'}{$where} }, sum(@transaction[ 0, 1, 3 ]);
	}
	my ($alone) = ms('here', 'SELECT ddblock.bare();');
	my @transaction = ms('here', "BEGIN;\nSELECT ddblock.bare();\nSELECT ddblock.bare();\nCOMMIT;");
	next if $round <= 20;
	push @{ $took{$_}{bare} }, $alone foreach qw(acquire release);
	push @{ $took{'one more question'}{bare} }, $transaction[2];
	push @{ $took{'transaction'}{bare} }, sum(@transaction[ 0, 1, 3 ]);
}
foreach my $what (sort keys %took)
{
	my %tenth = map { my @sorted = sort { $a <=> $b } @{ $took{$what}{$_} }; $_ => $sorted[ @sorted / 10 ] } keys %{ $took{$what} };

	diag(sprintf '%-18s %s', $what, join ', ', map { sprintf '%s %.2f ms', $_, $tenth{$_} } sort keys %tenth);
	diag(sprintf '%-18s %.1f times ddblock itself, %.1f times an UPDATE that does nothing', '', $tenth{here} / $tenth{own}, $tenth{here} / $tenth{bare})
	  if $tenth{own};
}
is(scalar @{ $took{acquire}{here} }, $rounds, 'all rounds');
$_->quit foreach values %session;
done_testing;
