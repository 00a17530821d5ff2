# ddblock beside Amazon's lock client for Java 1.4.0: who takes and returns more locks a second.
# "make beside-java DURATION=10" runs it: five rounds of 10 seconds for each of
#
#	ddblock			16 sessions of one cluster (pgbench), each with a lock of its own
#	Java			16 threads of one process, with one client, each with a lock of its own
#	bare sockets	16 of them send what ddblock sends, all prepared (test/measure/client.c);
#					only where the server's time decides
#
# in turns, first with a server that costs next to nothing and replies after 3 ms, then with
# DynamoDB Local, which needs most of the machine itself.  Nobody waits for a lock: what is
# compared is the number of requests, and the time that a client takes for each.  All
# processes live through all rounds, and the first round, in which Java's compiler is still
# at work, does not count.
#
# Prints pairs of acquire and release a second, and how many requests a pair took.

use DDBLock::Test;
use DDBLock::Client;
use List::Util qw(sum);
use POSIX qw(ceil);

my $CLIENTS = 16;
my $ROUNDS = 5;
my $DELAY_MS = 3;

if (my $missing = DDBLock::Client::missing('java'))
{
	plan skip_all => "nothing is measured: $missing";
}

my $duration = $ENV{DURATION} || 10;
my $dir = PostgreSQL::Test::Utils::tempdir();
my %conf = (conf => "log_statement = none\n", table => 0);

append_to_file("$dir/own.sql", "SELECT ddb_lock_acquire('own ' || :client_id);\n"
	. "SELECT ddb_lock_release('own ' || :client_id);\n");

my $double = new_double();
my $node = new_cluster('three_ms', through => $double, %conf);

$node->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
my $java = DDBLock::Client->start('java', $double->url, 20000, 5000);
$java->ready;
$double->fault('late_reply', delay_ms => $DELAY_MS, count => -1);
compare("a server of $DELAY_MS ms", ddblock => sub { ddblock($node) }, Java => sub { java($java) });
$double->clear_faults;
$_->stop foreach $java, $node;

$node = new_cluster('local', %conf, table => 1);
$java = DDBLock::Client->start('java', dynamodb->url, 20000, 5000);
$java->ready;
my $bare = bare_client();
compare('DynamoDB Local', ddblock => sub { ddblock($node) }, Java => sub { java($java) },
	'bare sockets' => sub { bare($bare) });
$java->stop;
done_testing;

# Each of them returns [ pairs a second, requests for each pair ].  Whoever comes first in a
# round may find the machine in another state.
sub compare
{
	my ($where, %rivals) = @_;
	my @names = sort { ($b eq 'ddblock') <=> ($a eq 'ddblock') || $a cmp $b } keys %rivals;
	my @order = @names;
	my %results;

	foreach my $round (0 .. $ROUNDS)
	{
		my %result = map { $_ => $rivals{$_}->() } @order;

		push @order, shift @order;
		next if $round == 0;
		push @{ $results{$_} }, $result{$_} foreach @names;
		diag(sprintf '%s, round %d: %s', $where, $round,
			join ', ', map { sprintf '%s %.0f pairs/s', $_, $result{$_}[0] } @names);
	}
	diag(sprintf '%-18s %-12s %7.1f pairs/s, %.2f requests a pair', $where, $_,
		mean(0, $results{$_}), mean(1, $results{$_})) foreach @names;
	foreach my $rival (grep { $_ ne 'ddblock' } @names)
	{
		my @ratios = sort { $a <=> $b }
		  map { $results{ddblock}[$_][0] / $results{$rival}[$_][0] } 0 .. $ROUNDS - 1;

		ok(@ratios == $ROUNDS, "$where: ddblock and $rival were measured");
		diag(sprintf '%-18s ddblock : %s = %.2f (rounds: %.2f to %.2f)', $where, $rival,
			mean(0, $results{ddblock}) / mean(0, $results{$rival}), @ratios[ 0, -1 ]);
	}
	return;
}

sub mean { my ($which, $results) = @_; return sum(map { $_->[$which] } @$results) / @$results; }

# pgbench's rate is without the time in which its sessions connect.
sub ddblock
{
	my ($node) = @_;
	my $before = stat_of($node);
	my ($output) = run_command([ 'pgbench', '-h', $node->host, '-p', $node->port, '-n',
		'-c', $CLIENTS, '-T', $duration, '-f', "$dir/own.sql", 'postgres' ]);
	my ($pairs) = $output =~ /actually processed: (\d+)/ or die "pgbench: $output\n";
	my ($rate) = $output =~ /^tps = ([\d.]+)/m or die "pgbench: $output\n";

	return [ $rate, (stat_of($node) - $before) / $pairs ];
}

sub java
{
	my ($client) = @_;
	my ($pairs, $seconds, $requests) = split / /, $client->ask("pairs $CLIENTS $duration");

	return [ $pairs / $seconds, $requests / $pairs ];
}

sub bare_client
{
	my $program = "$dir/client";
	my @sources = map { glob("src/$_/*.c") } qw(dynamo aws lock);

	chdir "$ENV{DDBLOCK_WORK}/checkout" or die "$ENV{DDBLOCK_WORK}: $!\n";
	system($ENV{CC} // 'cc', qw(-std=gnu99 -O2 -Isrc test/measure/client.c), @sources,
		qw(-lcjson -lcrypto -lssl -o), $program) == 0 or die "the bare client does not build\n";
	return { program => $program, pairs => 100 };
}

# As many pairs as fill the time, by the rate of the last round.
sub bare
{
	my ($bare) = @_;
	my ($seconds) = run_command([ $bare->{program}, 'rate', dynamodb->port, 'bare', 10,
		$bare->{pairs}, $CLIENTS ]);
	my $rate = $bare->{pairs} * $CLIENTS / $seconds;

	$bare->{pairs} = ceil($rate * $duration / $CLIENTS);
	return [ $rate, 2 ];
}
