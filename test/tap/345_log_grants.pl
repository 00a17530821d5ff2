# ddblock.log_grants: a line for each grant, loss and release, which programs can read, and
# test/timeline draws.

use DDBLock::Test;
use DDBLock::Tools;
use JSON::PP;

my $conf = "ddblock.log_grants = on\nlog_statement = none\nddblock.lease_duration = '6s'\n";
my $one = new_cluster('one', conf => $conf);
my $two = new_cluster('two', conf => $conf);
my $silent = new_cluster('silent', conf => "log_statement = none\n");
my $session = undisturbed($one);
my $pid = backend_pid($session);
my $far = session($two);

# What a server has logged of a lock: [event, what the line tells]
sub told
{
	my ($node, $lock) = @_;
	my @lines = slurp_file($node->logfile) =~ /LOG:  lock (granted|lost|released): (\{"at": .*\})$/mg;
	my @told;

	while (my ($event, $text) = splice @lines, 0, 2)
	{
		my $what = JSON::PP->new->utf8->decode($text);
		push @told, [ $event, $what ] if $what->{lock} eq $lock;
	}
	return @told;
}
sub events { return join ' ', map { $_->[0] } told(@_); }
sub wait_for_events { my ($node, $lock, $events) = @_;
	wait_for { events($node, $lock) eq $events } "$events of $lock"; return pass("$lock: $events"); }

#
# The line
#
my $token = $session->query_safe(q{SELECT ddb_lock_acquire('a')});
wait_for_events($one, 'a', 'granted');
my (undef, $line) = @{ (told($one, 'a'))[0] };
like(delete $line->{at}, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?[-+]\d\d/, 'the line has the time');
is(delete $line->{owner}, $one->safe_psql('postgres', 'SELECT owner FROM ddb_status'), '... the server');
is_deeply($line, { lock => 'a', token => $token, mode => 'exclusive', permits => 1, pid => $pid, user => user, database => 'postgres',
	joined => JSON::PP::false, leader => JSON::PP::false }, '... who got what');
ok($session->query_safe(q{SELECT ddb_lock_release('a')}), 'a release');
wait_for_events($one, 'a', 'granted released');
is((told($one, 'a'))[1][1]{token}, $token, '... of the same grant');

# A name that looks like the end of a line, and like another line
$session->query_safe(q(SELECT ddb_lock_acquire(E'x"}\nLOG:  lock granted: {"at": 1}')));
wait_for_events($one, 'x"}\x0ALOG:  lock granted: {"at": 1}', 'granted');
$session->query_safe(q{SELECT ddb_lock_release_all()});

#
# Shared locks, semaphores, joined ones, the end of a session
#
my $other = session($one);
$session->query_safe(q{SELECT ddb_lock_acquire_shared('s'), ddb_semaphore_acquire('m', 5, permits => 2)});
$other->query_safe(q{SELECT ddb_lock_acquire_shared('s')});
$token = $session->query_safe(q{SELECT ddb_lock_acquire('j')});
$other->query_safe("SELECT ddb_lock_join('j', $token)");
wait_for_events($one, 's', 'granted granted');
wait_for_events($one, 'j', 'granted granted');
is((told($one, 'm'))[0][1]{permits}, 2, 'permits of a semaphore');
is_deeply([ map { $_->[1]{joined} ? 1 : 0 } told($one, 'j') ], [ 0, 1 ], 'one has joined');
$other->quit;
wait_for_events($one, 's', 'granted granted released');
$session->query_safe(q{SELECT ddb_lock_release_all()});
wait_for_events($one, 's', 'granted granted released released');

#
# Losses: by another cluster, and because nothing was confirmed
#
$session->query_safe(q{SELECT ddb_lock_acquire('l')});
lose($one, 'l');
wait_for_events($one, 'l', 'granted lost');
$session->ask(q{SELECT ddb_lock_release_all()});
is(events($one, 'l'), 'granted lost', 'what is lost is not released');
$far->query_safe(q{SELECT ddb_lock_acquire('l')});
$far->query_safe(q{SELECT ddb_lock_release('l')});
wait_for_events($two, 'l', 'granted released');

#
# Off by default; on after a reload
#
$silent->safe_psql('postgres', q{SELECT ddb_lock_acquire('q')});
is(events($silent, 'q'), '', 'nothing is logged by default');
$silent->append_conf('postgresql.conf', "ddblock.log_grants = on\n");
$silent->reload;
wait_for { $silent->safe_psql('postgres', q{SELECT ddb_lock_acquire('q'); SELECT ddb_lock_release('q')}); events($silent, 'q') ne '' } 'the reload';
like(events($silent, 'q'), qr/^(granted released( |$))+/, 'a reload switches it on');

#
# The picture
#
sub draw { my (@options) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'test/timeline', @options, $one->logfile, $two->logfile ], '>', \$out, '2>', \$err);
	return ($err, $out); }
my ($error, $picture) = draw('--lock' => 'l');
is($error, '', 'test/timeline finds no overlap in the logs of both servers');
like($picture, qr/session $pid of one, token \d+: .*, lost at/, '... it draws the loss of one');
like($picture, qr/session \d+ of two, token \d+: .*, released at/, '... and what the other has held');
($error, $picture) = draw('--by-lock', '--lock' => '?');
is($error, '', '... nor beside those who have joined, or share');

$_->quit foreach $session, $far;
done_testing;
