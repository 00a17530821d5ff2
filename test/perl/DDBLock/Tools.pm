# DDBLock::Tools: what the tests of users' tools stand on (test/tools).

=pod

=head1 NAME

DDBLock::Tools - tools that run in the background, and who worked when

=head1 FUNCTIONS (all are exported)

=over

=item tools

The folder of the tools that test/setup has built or fetched.

=item snippet($heading, $language, $number)

The code block of that language (the first one, if $number is missing) below the heading
of doc/recipes: what users write is what is tested.

=item write_file($file, $text)

=item work_clusters(%options)

Two clusters with a database "shop", where the function work(label) writes a line into the
server's log every 50 ms, so that a transaction that is rolled back leaves its trace, too.
It works for half a second, and on as long as hold() says so. Options are those of
new_cluster, and C<names>.

=item hold($node, $dbname), let_go($node, $dbname)

=item new_shop($name, $setting, ...)

A copy of the database "shop" in both clusters, with such settings.

=item orders($node, $dbname)

How many rows the migrations have left: '' if there is no table.

=item recovered($node)

Waits for the end of a crash recovery.

=item since($time)

=item user, url($node, $dbname, $scheme)

=item migrations_ok($tool, $migrate, %options)

Many tests: two runs at a time, a tool that is killed, a backend that is killed, a lease
that is lost. $migrate->($node, $dbname, $run_name) starts the tool; its migrations are
V1 (CREATE TABLE orders) and V2 (one row), each with its work, v1 and v2. Options: C<again>
=> 0 if the tool cannot go on by itself after it was killed, C<lost> (a pattern) for what it
says of a lost lease.

=item start($name, \@command, cwd => ..., env => {...})

Starts a tool in the background; returns a DDBLock::Tools::Run.

=item bouncer($node, $mode, %options)

A PgBouncer: a node whose sessions go through it, with its C<run> and C<url>.  Options: C<size>
(server connections, 1), C<user>, C<conf> (more lines).

=item work($node, $label)

What the server's log says of this label (a pattern): a list of [first, last, pid], in
seconds, one for each call of work(), in the order of their beginning.

=item whole_run($node, $dbname)

The same for the migrations v1 and v2 together.

=item wait_for_work($node, $label, $count)

Waits until the (first or $count-th) process has begun this work; returns its pid.

=item apart_ok(\@first, \@second, $test_name)

A test: no work of the first list and of the second were under way at the same time.

=item together_ok(\@first, \@second, $test_name)

The opposite: what happens with a lock in the wrong session.

=back

=head1 METHODS of a run

C<status> waits for the end and returns the exit status (137 after kill), C<running>,
C<kill> (SIGKILL, to this process only), C<children> (pids), C<output>.

=cut

package DDBLock::Tools;

use strict;
use warnings;

use parent 'Exporter';

use Cwd qw(abs_path);
use File::Basename qw(dirname);

use DDBLock::Test;
use IO::Socket::INET;

our @EXPORT = qw(tools snippet write_file work_clusters new_shop hold let_go user url start bouncer work
  wait_for_work whole_run apart_ok together_ok
  still_waits_ok migrations_ok orders since recovered);

my @pages = map { slurp_file($_) } sort glob abs_path(dirname(__FILE__) . '/../../..') . '/doc/recipes/*.md';

sub tools { return $ENV{DDBLOCK_TOOLS}; }

sub snippet
{
	my ($heading, $language, $number) = @_;
	my ($section) = map { /^#+ \Q$heading\E\n(.*?)(?=^##|\z)/ms } @pages;
	my @blocks = ($section // '') =~ /^```\Q$language\E\n(.*?)^```$/msg;

	return $blocks[ ($number // 1) - 1 ] // die "no block of $language below \"$heading\"\n";
}

sub write_file
{
	my ($file, $text) = @_;

	open my $fh, '>', $file or die "$file: $!\n";
	print $fh $text;
	close $fh or die "$file: $!\n";
	return $file;
}

my @clusters;

sub work_clusters
{
	my (%options) = @_;

	@clusters = map { new_cluster($_, %options,
		conf => "listen_addresses = '127.0.0.1'\nlog_min_messages = log\nrestart_after_crash = on\n" . ($options{conf} // '')) }
	  @{ $options{names} // [qw(one two)] };
	foreach my $node (@clusters)
	{
		$node->safe_psql('postgres', 'CREATE DATABASE shop');
		$node->safe_psql('shop', q{
			CREATE EXTENSION ddblock;
			CREATE FUNCTION work(label text) RETURNS void LANGUAGE plpgsql AS $$
			DECLARE
				finish timestamptz := clock_timestamp() + interval '0.5 s';
			BEGIN
				LOOP
					RAISE LOG 'work % % %/% %', current_database(), label, pg_backend_pid(),
						extract(epoch FROM finish), extract(epoch FROM clock_timestamp());
					EXIT WHEN clock_timestamp() >= finish
						AND (pg_stat_file(current_database() || '.hold', true)).size IS NULL;
					PERFORM pg_sleep(0.05);
				END LOOP;
			END
			$$});
	}
	return @clusters;
}

sub new_shop
{
	my ($name, @settings) = @_;

	foreach my $node (@clusters)
	{
		$node->safe_psql('postgres', "CREATE DATABASE $name TEMPLATE shop");
		$node->safe_psql('postgres', "ALTER DATABASE $name SET $_") foreach @settings;
	}
	return $name;
}

sub hold { my ($node, $dbname) = @_; write_file($node->data_dir . "/$dbname.hold", ''); return; }
sub let_go { my ($node, $dbname) = @_; unlink $node->data_dir . "/$dbname.hold" or die "$dbname: $!\n"; return; }

sub user { return scalar getpwuid($<); }

sub url
{
	my ($node, $dbname, $scheme) = @_;

	return "$scheme://" . user() . '@127.0.0.1:' . $node->port . "/$dbname";
}

sub orders
{
	my ($node, $dbname) = @_;

	return ($node->psql($dbname, q{SELECT count(*) FROM orders}))[1] // '';
}

sub work
{
	my ($node, $label) = @_;
	my (%work, @work);

	foreach (slurp_file($node->logfile) =~ /LOG:  work ($label \d+\/[\d.]+ [\d.]+)$/mg)
	{
		my ($who, $pid, $time) = /^(.* (\d+)\/[\d.]+) ([\d.]+)$/;

		$work{$who} //= [ $time, $time, $pid ];
		$work{$who}[1] = $time;
	}
	@work = sort { $a->[0] <=> $b->[0] } values %work;
	return @work;
}

sub whole_run
{
	my ($node, $dbname) = @_;
	my ($v1, $v2) = map { (work($node, "$dbname $_"))[0] // return } qw(v1 v2);

	return [ $v1->[0], $v2->[1], $v1->[2] ];
}

sub wait_for_work
{
	my ($node, $label, $count) = @_;

	$count //= 1;
	wait_for { my @work = work($node, $label); @work >= $count } "$label in " . $node->name;
	return (work($node, $label))[ $count - 1 ][2];
}

sub _together
{
	my ($first, $second) = @_;
	my @together;

	foreach my $one (@$first)
	{
		push @together, map { sprintf '%.3f to %.3f and %.3f to %.3f', @$one[ 0, 1 ], @$_[ 0, 1 ] }
		  grep { $one->[0] <= $_->[1] && $_->[0] <= $one->[1] } @$second;
	}
	return @together;
}

sub apart_ok
{
	my ($first, $second, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(@$first > 0 && @$second > 0, "$name: both worked");
	is(join("\n", _together($first, $second)), '', '... and never at the same time');
	return;
}

sub together_ok
{
	my ($first, $second, $name) = @_;
	my @together = _together($first, $second);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(@together > 0, $name);
	note("at the same time: $_") foreach @together;
	return;
}

sub since { my ($time) = @_; return sprintf '%.1f s', Time::HiRes::time() - $time; }

sub recovered
{
	my ($node) = @_;

	wait_for { system('pg_isready', '-q', '-h', $node->host, '-p', $node->port) == 0 } $node->name . ' after its crash';
	return;
}

# The work under the lock goes on, and no other work begins.
sub still_waits_ok
{
	my ($one, $two, $db) = @_;
	my $last = (work($one, "$db \\w+"))[0][1];

	wait_for { (work($one, "$db \\w+"))[0][1] > $last + 1 } 'a second of work without its client';
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(scalar(work($two, "$db \\w+")), 0, '... its server process works on, the other cluster waits');
	return;
}

sub migrations_ok
{
	my ($tool, $migrate, %options) = @_;
	my ($one, $two) = @clusters;
	my ($db, $run, $other, $time);

	local $Test::Builder::Level = $Test::Builder::Level + 1;

	# Both at a time
	$db = new_shop("${tool}_both");
	$run = $migrate->($one, $db, "${tool}_both_1");
	$other = $migrate->($two, $db, "${tool}_both_2");
	is($_->status, 0, "$tool in two clusters at a time succeeds") or diag($_->output) foreach $run, $other;
	apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], "$tool in two clusters");
	is(orders($_, $db), 1, '... and has migrated ' . $_->name) foreach $one, $two;

	# The tool is killed: its server process works on
	$db = new_shop("${tool}_tool");
	hold($one, $db);
	$run = $migrate->($one, $db, "${tool}_tool_1");
	wait_for_work($one, "$db v1");
	$other = $migrate->($two, $db, "${tool}_tool_2");
	wait_for_waiters($two, 'migrate/shop', 1);
	is($run->kill, 137, "$tool is killed in the middle");
	still_waits_ok($one, $two, $db);
	$time = Time::HiRes::time();
	let_go($one, $db);
	wait_for_work($two, "$db v1");
	note("$tool: the other cluster begins " . since($time) . ' after the statement of the killed one has ended');
	is($other->status, 0, "... $tool in the other cluster succeeds") or diag($other->output);
	apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], "... $tool in two clusters");
	if ($options{again} // 1)
	{
		is(orders($one, $db), '', '... the killed one has committed nothing');
		$run = $migrate->($one, $db, "${tool}_tool_3");
		is($run->status, 0, "... $tool again succeeds") or diag($run->output);
		is(orders($one, $db), 1, '... and has migrated');
	}

	# The backend is killed
	$db = new_shop("${tool}_backend");
	hold($one, $db);
	$run = $migrate->($one, $db, "${tool}_backend_1");
	my $pid = wait_for_work($one, "$db v1");
	$other = $migrate->($two, $db, "${tool}_backend_2");
	wait_for_waiters($two, 'migrate/shop', 1);
	$time = Time::HiRes::time();
	kill 'KILL', $pid;
	isnt($run->status, 0, "a backend of $tool is killed: $tool fails");
	wait_for_work($two, "$db v1");
	note("$tool: the other cluster begins " . since($time) . ' after the backend was killed');
	is($other->status, 0, "... $tool in the other cluster succeeds") or diag($other->output);
	apart_ok([ work($one, "$db v\\d") ], [ work($two, "$db v\\d") ], "... $tool in two clusters");
	recovered($one);
	let_go($one, $db);
	is(orders($one, $db), '', '... the killed one has committed nothing');
	$run = $migrate->($one, $db, "${tool}_backend_3");
	is($run->status, 0, "... $tool again succeeds") or diag($run->output);
	is(orders($one, $db), 1, '... and has migrated');

	# The lease is lost
	$db = new_shop("${tool}_lease", q{ddblock.lease_duration = '6s'});
	hold($one, $db);
	$run = $migrate->($one, $db, "${tool}_lease_1");
	wait_for_work($one, "$db v1");
	dynamodb->delete_item('migrate/shop');
	isnt($run->status, 0, "the lease of $tool is lost: $tool fails");
	like($run->output, $options{lost} // qr/lease on lock "migrate\/shop" was lost/, '... and says why');
	is(orders($one, $db), '', '... nothing was committed');
	let_go($one, $db);
	$run = $migrate->($one, $db, "${tool}_lease_2");
	is($run->status, 0, "... $tool again succeeds") or diag($run->output);
	is(orders($one, $db), 1, '... and has migrated');
	return;
}

sub start
{
	my ($name, $command, %options) = @_;

	return DDBLock::Tools::Run->new("$PostgreSQL::Test::Utils::log_path/$name.log", $command, %options);
}

sub bouncer
{
	my ($node, $mode, %options) = @_;
	my $user = $options{user} // user();
	my $port = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1)->sockport;
	my $name = join '_', 'bouncer', $mode, $node->name, $port;
	my ($host, $server, $dir) = ($node->host, $node->port, PostgreSQL::Test::Utils::tempdir_short());
	my $users = write_file("$dir/users", qq{"$user" ""\n});
	my $config = write_file("$dir/$name.ini", <<"INI");
[databases]
* = host=$host port=$server
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = trust
auth_file = $users
pool_mode = $mode
default_pool_size = @{[ $options{size} // 1 ]}
@{[ $options{conf} // '' ]}
INI
	my $run = start($name, [ 'pgbouncer', $config ]);

	wait_for { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) } $name;
	return bless { %$node, run => $run, url => "postgresql://$user\@127.0.0.1:$port" }, 'DDBLock::Tools::Pooled';
}

package DDBLock::Tools::Pooled;

use parent -norequire, 'PostgreSQL::Test::Cluster';

sub connstr { my ($self, $dbname) = @_; return "$self->{url}/$dbname"; }

package DDBLock::Tools::Run;

use POSIX ();

my @runs;
my $main_pid = $$;

sub new
{
	my ($class, $log, $command, %options) = @_;
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0)
	{
		@ENV{ keys %{ $options{env} } } = values %{ $options{env} } if $options{env};
		chdir $options{cwd} or POSIX::_exit(126) if $options{cwd};
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', $log;
		open STDERR, '>&', \*STDOUT;
		exec @$command or POSIX::_exit(127);
	}
	push @runs, bless { pid => $pid, log => $log }, $class;
	return $runs[-1];
}

sub running
{
	my ($self) = @_;

	return 0 if defined $self->{status};
	return 1 unless waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid};
	$self->{status} = $? & 127 ? 128 + ($? & 127) : $? >> 8;
	return 0;
}

sub status
{
	my ($self) = @_;

	DDBLock::Test::wait_for { !$self->running } "the end of $self->{log}";
	return $self->{status};
}

sub kill { my ($self) = @_; CORE::kill('KILL', $self->{pid}); return $self->status; }

sub children { return keys %{ DDBLock::Test::children_of($_[0]->{pid}) }; }

sub output { return PostgreSQL::Test::Utils::slurp_file($_[0]->{log}); }

END
{
	my $status = $?;

	if ($$ == $main_pid)
	{
		$_->kill foreach grep { $_->running } @runs;
	}
	$? = $status;
}

1;
