# The first picture of the README: a cluster is cut off, its session loses the lock and cannot commit,
# and another cluster goes on.  "make check-tap TAP=test/measure/story.pl KEEP=1" runs it, and leaves
# the picture as tap/tmp_check/story/picture.svg in the private folder.

use DDBLock::Test;
use DDBLock::History;
use Time::HiRes qw(time);

my $near = new_proxy();
my @clusters = (new_cluster('one', through => $near), new_cluster('two'));
my ($one, $two) = map { session($_) } @clusters;
my $history = DDBLock::History->new('story');
my $acquire = q{SELECT ddb_lock_acquire('migrate', lease => '4 s')};
my $start = time - 1;
my $cut;

# The session's call, from when it was sent; times are seconds since the start.
sub note_call
{
	my ($session, $operation, $token, $sent, %more) = @_;
	my $received = $more{received} // time;

	push @{ $history->{operations} },
	  [
		int(1e6 * ($received - $start)),
		join("\t", $operation, "$session.1.1", 'migrate', $token,
			(map { int(1e6 * ($_ - $start)) } ($sent, $received) x 2),
			$more{state} // '00000', 0, 'exclusive', $more{detail} // '')
	  ];
	return;
}

sub call
{
	my ($session, $number, $sql, $operation, $token) = @_;
	my $sent = time;
	my $got = $session->query_safe($sql);

	note_call($number, $operation, $token // $got, $sent, detail => $got eq 't' ? 't' : '');
	return $got;
}

$one->query_safe('CREATE TABLE work (at timestamptz DEFAULT clock_timestamp())');
my $token = call($one, 0, $acquire, 'acquire');
$one->query_safe(q{SET ddblock.on_lease_lost = none});
my $waits = time;
$two->send($acquire);
call($one, 0, q{SELECT ddb_lock_require('migrate')}, 'require') foreach map { Time::HiRes::sleep(0.3); $_ } 1 .. 5;
$one->query_safe('BEGIN; INSERT INTO work DEFAULT VALUES');
$near->stop;
$cut = time;
my $seen = $cut;
my $watch = session($clusters[0]);
while ($watch->query_safe(q{SELECT count(*) FROM ddb_locks WHERE name = 'migrate' AND state = 'held'}))
{
	note_call(0, 'require', $token, time) if time > $seen + 0.1;
	$seen = time;
}
note_call(0, 'require', $token, $seen, received => $seen);
note_call(0, 'require', 0, $seen, received => $seen, state => 'LK001');
my $next = $two->result;
note_call(1, 'acquire', $next, $waits);
cmp_ok($next, '>', $token, 'the other cluster gets the lock, and a higher token');
call($two, 1, q{SELECT ddb_lock_require('migrate')}, 'require');
like($one->error_of('COMMIT'), qr/LK001/, 'the first one cannot commit');
is($clusters[0]->safe_psql('postgres', 'SELECT count(*) FROM work'), '0', '... and has written nothing');
Time::HiRes::sleep(1.5);
call($two, 1, q{SELECT ddb_lock_require('migrate')}, 'require');
call($two, 1, q{SELECT ddb_lock_release('migrate')}, 'release', $next);
push @{ $history->{events} }, join("\t", 'cut', 0, int(1e6 * ($cut - $start)), int(1e6 * (time - $start)), '');
is($history->draw, '', 'no overlap');
diag($history->words);
done_testing;
