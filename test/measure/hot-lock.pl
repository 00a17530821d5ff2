# How fast sessions pass one lock on, and how long others wait for it.
# "make hot-lock DURATION=10" runs it: 10 seconds for each of
#
#	advisory locks	16 sessions lock and unlock one of PostgreSQL's own in turn
#	one cluster		16 sessions lock and unlock in turn
#	held 5 ms		8 sessions of one do, and each keeps the lock for 5 ms
#	two clusters	8 sessions of each do
#	a guest			16 sessions of one do; one of another comes now and then
#	Java			16 sessions of one do; something like Amazon's client comes now and
#					then, and looks every second and every tenth of one
#	again, 50 ms	a session of one keeps a lock for 50 ms, and takes it again at once (also 1, 5, 200 and
#					1,000 ms), while a session of the other one comes now and then: the share of its waits
#					that took at most the hold, a run of 1 s, and 0.5 s, and its requests for each
#	a permit		the same with a semaphore of one permit; and with one of five, which five sessions
#	3 of 5			of one take singly, while the session of the other one wants three
#	own locks		64 sessions, each with a lock of its own; each reply takes 5 ms
#	after 25 s		sessions of one cluster let go after 25 s (or HOLD seconds), each of a
#					lock of its own for which a session of the other one waits: the time
#					from there to the grant
#
# It prints pairs of acquire and release a second, and how long an acquire
# took: on average, 99 of a hundred, and at most.  DynamoDB is the double.

use DDBLock::Test;
use List::Util qw(max sum);
use Time::HiRes qw(sleep time);

my $duration = $ENV{DURATION} || 10;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $double = new_double();
my %settings = (through => $double, table => 0, conf => "log_statement = none\n");
my @clusters = map { new_cluster($_, %settings) } qw(one two);

$clusters[0]->safe_psql('postgres', 'SELECT ddb_lock_table_create()');
append_to_file("$dir/pair.sql",
	"SELECT ddb_lock_acquire('hot');\nSELECT ddb_lock_release('hot');\n");
append_to_file("$dir/advisory.sql", "SELECT pg_advisory_lock(1);\nSELECT pg_advisory_unlock(1);\n");

append_to_file("$dir/held.sql",
	"SELECT ddb_lock_acquire('hot');\nSELECT pg_sleep(0.005);\nSELECT ddb_lock_release('hot');\n");
append_to_file("$dir/own.sql", "SELECT ddb_lock_acquire('own ' || :client_id);\n"
	. "SELECT ddb_lock_release('own ' || :client_id);\n");

measure('advisory locks', [ 0, 16, 'advisory' ]);
measure('one cluster', [ 0, 16 ]);
measure('held 5 ms', [ 0, 8, 'held' ]);
measure('two clusters', [ 0, 8 ], [ 1, 8 ]);
with_guest('a guest', 'two, 1', \&guest);
with_guest('Java, every 1 s', 'Java', sub { java(1) });
with_guest('Java, every 0.1 s', 'Java', sub { java(0.1) });
again('again', $_) foreach 1, 5, 50, 200, 1000;
again('a permit', $_, 1, 1) foreach 5, 50, 200, 1000;
again('3 of 5', $_, 5, 3) foreach 5, 50, 200, 1000;
$double->fault('late_reply', delay_ms => 5, count => -1);
measure('own locks', [ 0, 64, 'own' ]);
$double->clear_faults;
after_a_hold($ENV{HOLD} || 25);
done_testing;

# Several such sessions of the other cluster, each with a lock of its own; or with a semaphore of so many
# permits, of which it wants some, and which as many sessions take singly.
sub again
{
	my ($what, $hold, $permits, $wanted) = @_;
	my $takers = $permits // 1;
	my $pairs = $hold < 50 ? 2 : $takers > 1 ? 4 : 10;
	my $lock = "'$what ' || :client_id / ";
	my $call = defined $permits ? 'semaphore' : 'lock';
	my $of = defined $permits ? ", $permits" : '';
	my $some = defined $permits ? ", $permits, $wanted" : '';
	my $most = $hold / 1000 + 1.5;
	my $script = "$what $hold" =~ tr/ /-/r;
	my (@before, @after);

	append_to_file("$dir/$script.sql", "SELECT ddb_${call}_acquire($lock$takers$of);\n"
		. 'SELECT pg_sleep(' . $hold / 1000 . ");\nSELECT ddb_${call}_release($lock$takers);\n");
	append_to_file("$dir/visit-$script.sql", "SELECT extract(epoch FROM clock_timestamp()) AS since \\gset\n"
		. "SELECT ddb_${call}_acquire(${lock}1$some);\n"
		. "INSERT INTO waits VALUES (extract(epoch FROM clock_timestamp()) - :since);\n"
		. "SELECT ddb_${call}_release(${lock}1);\n"
		. "\\set pause random(0, 500)\n\\sleep :pause ms\n");
	$clusters[1]->safe_psql('postgres', 'DROP TABLE IF EXISTS waits; CREATE TABLE waits (wait float)');
	@before = requests();
	my @loads = (start([ 0, $pairs * $takers, $script ]), start([ 1, $pairs, "visit-$script" ]));
	finish($_) foreach reverse @loads;
	@after = requests();

	my @waits = sort { $a <=> $b } split /\n/, $clusters[1]->safe_psql('postgres', 'SELECT wait FROM waits');
	ok(@waits > 0, "$what, $hold ms: something was measured");
	diag(sprintf '%-18s %d waits: %.3f s on average, %.3f s of 99, %.3f s at most; %.1f %% within %.1f s; '
		. 'for each %.1f reads, %.2f marks, %.2f other writes; %.1f pairs/s beside them', "$what, $hold ms",
		scalar @waits, sum(@waits) / @waits, $waits[ $#waits * 0.99 ], $waits[-1],
		100 * (grep { $_ <= $most } @waits) / @waits, $most,
		(map { ($after[$_] - $before[$_]) / @waits } 0 .. 2), @{ $loads[0]{waits} } / $duration);
	return;
}

# Of the second cluster: reads, marks, others.
sub requests
{
	return split /\|/, $clusters[1]->safe_psql('postgres',
		q{SELECT sum(requests) FILTER (WHERE operation = 'read'),
			coalesce(sum(requests) FILTER (WHERE operation = 'mark'), 0),
			sum(requests) FILTER (WHERE operation NOT IN ('read', 'mark')) FROM ddb_operations});
}

# Each waiter has its own session, which says when it got the lock by its own clock.
sub after_a_hold
{
	my ($seconds) = @_;
	my @pairs = map { [ session($clusters[0]), session($clusters[1]), "held $_" ] } 1 .. 20;
	my @waits;

	foreach my $pair (@pairs)
	{
		my ($holder, $waiter, $name) = @$pair;

		$holder->query_safe("SELECT ddb_lock_acquire('$name')");
		$waiter->send("SELECT ddb_lock_acquire('$name'), extract(epoch FROM clock_timestamp())");
	}
	sleep $seconds;
	foreach my $pair (@pairs)
	{
		my ($holder, $waiter, $name) = @$pair;
		my $since = time;

		$holder->query_safe("SELECT ddb_lock_release('$name')");
		push @waits, (split /\|/, $waiter->result)[1] - $since;
	}
	$_->quit foreach map { @$_[0, 1] } @pairs;
	@waits = sort { $a <=> $b } @waits;
	ok(@waits == 20, 'all waiters have got their locks');
	diag(sprintf "%-18s %d waiters: %.3f s in the middle, %.3f s at most", "after $seconds s",
		scalar @waits, $waits[ @waits / 2 ], $waits[-1]);
	return;
}

# pgbench writes a line for each pair, its time in microseconds being the third.
sub start
{
	my ($number, $sessions, $script) = @{ $_[0] };
	my $log = "$dir/log$number." . time;
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0)
	{
		open STDOUT, '>', "$log.out" and open STDERR, '>&', \*STDOUT;
		exec 'pgbench', '-h', $clusters[$number]->host, '-p', $clusters[$number]->port,
		  '-n', '-l', '--log-prefix', $log, '-c', $sessions, '-T', $duration,
		  '-f', "$dir/" . ($script // 'pair') . '.sql', 'postgres'
		  or POSIX::_exit(127);
	}
	return { pid => $pid, log => $log };
}

sub finish
{
	my ($load) = @_;

	waitpid($load->{pid}, 0);
	is($?, 0, 'pgbench has run') or diag(slurp_file("$load->{log}.out"));
	foreach my $file (glob("$load->{log}.[0-9]*"))
	{
		push @{ $load->{waits} }, map { (split)[2] / 1e6 } split /\n/, slurp_file($file);
	}
	return;
}

sub measure
{
	my ($what, @loads) = @_;
	my @started = map { start($_) } @loads;

	finish($_) foreach @started;
	report($what, $clusters[ $loads[$_][0] ]->name . ", $loads[$_][1]", @{ $started[$_]{waits} })
	  foreach 0 .. $#loads;
	return;
}

sub with_guest
{
	my ($what, $who, $guest) = @_;
	my $load = start([ 0, 16 ]);
	my @waits = $guest->();

	finish($load);
	report($what, 'one, 16', @{ $load->{waits} });
	report($what, $who, @waits);
	return;
}

sub guest
{
	my $session = session($clusters[1]);
	my $end = time + $duration;
	my @waits;

	while (time < $end)
	{
		my $since = time;

		$session->query_safe(q{SELECT ddb_lock_acquire('hot')});
		push @waits, time - $since;
		$session->query_safe(q{SELECT ddb_lock_release('hot')});
		sleep rand 0.5;
	}
	$session->quit;
	return @waits;
}

sub report
{
	my ($what, $who, @waits) = @_;
	my @sorted = sort { $a <=> $b } @waits;

	ok(@sorted > 0, "$what: $who: something was measured");
	diag(sprintf '%-18s %-10s %7.1f pairs/s; an acquire took %.3f s, %.3f s, %.3f s',
		$what, $who, @sorted / $duration, sum(@sorted) / @sorted,
		$sorted[ $#sorted * 0.99 ], $sorted[-1]);
	return;
}

# Looks every so often, and puts its item when it finds the lock released, as
# the client does; keeps it for an instant and marks it released.
sub java
{
	my ($period) = @_;
	my $end = time + $duration;
	my (@waits, $since);

	while (time < $end)
	{
		my $item = $double->item('hot');

		$since //= time;
		if ($item && exists $item->{isReleased} && put($item, 0))
		{
			push @waits, time - $since;
			put($double->item('hot'), 1);
			$since = undef;
			sleep rand 0.5;
			next;
		}
		sleep $period;
	}
	push @waits, time - $since if defined $since;
	return @waits;
}

# Over what it has seen only; true if that was still there.
sub put
{
	my ($seen, $released) = @_;
	my $reply = $double->command(
		command => 'call',
		target => 'PutItem',
		body => {
			TableName => 'lockTable',
			Item => {
				key => { S => 'hot' },
				ownerName => { S => 'java' },
				leaseDuration => { S => '20000' },
				recordVersionNumber => { S => sprintf('%.6f', time) },
				$released ? (isReleased => { S => '1' }) : () },
			ConditionExpression => 'recordVersionNumber = :v',
			ExpressionAttributeValues => { ':v' => $seen->{recordVersionNumber} } });

	return $reply->{status} == 200;
}
