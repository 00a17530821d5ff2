# Requests that fail beside others that succeed: the log tells of each kind of trouble at once,
# of its end, and else at most once a minute, however many fail.

use DDBLock::Test;
use Time::HiRes qw(time);

my $node = new_cluster('one', through => proxy,
	conf => "log_statement = none\nddblock.keep_warm = off\nddblock.retry_timeout = '10min'\n");
my @sessions = map { session($node) } 1 .. 4;
my $trouble = qr/LOG: +could not use table "lockTable" at/;
my $end = qr/LOG: +DynamoDB replies again/;

sub entries
{
	my ($pattern) = @_;
	return scalar(() = slurp_file($node->logfile) =~ /$pattern/g);
}

# Sessions acquire and release locks while requests go wrong, each between some that do not.
sub flood
{
	my ($what, $rounds, $kind, %options) = @_;
	my $start = time;
	my $before = entries(qr/$trouble|$end/);

	proxy->clear_faults;
	proxy->reset_counts;
	proxy->fault($kind, %options, count => -1);
	foreach my $i (1 .. @sessions)
	{
		$sessions[ $i - 1 ]->send(qq{DO \$\$
			BEGIN
				FOR i IN 1 .. $rounds LOOP
					BEGIN
						PERFORM ddb_lock_acquire('denied $i');
					EXCEPTION WHEN insufficient_privilege THEN
					END;
					PERFORM ddb_lock_acquire('allowed $i'), ddb_lock_release_all();
				END LOOP;
			END \$\$});
	}
	$_->result foreach @sessions;

	my $seconds = time - $start;
	my $entries = entries(qr/$trouble|$end/) - $before;
	my $failures = proxy->faults;
	note sprintf('%s: %d failures, %d entries in %.1f s: %.2f a second', $what, $failures, $entries,
		$seconds, $entries / $seconds);
	cmp_ok($failures, '>=', 30, "$what: many requests fail");
	cmp_ok($entries, '>=', 1, '... which the log tells');
	cmp_ok($entries, '<=', 6 + 4 * $seconds / 60, '... and is not flooded');
	proxy->clear_faults;
	return;
}

flood('a policy that denies one lock', 25, 'error', operation => 'UpdateItem', match => '"denied',
	status => 400, type => 'AccessDeniedException', message => 'not authorized');
flood('every second connection dies', 5, 'reset', every => 2);
flood('500 on every third reply', 5, 'error', every => 3);

# Another kind of trouble, while the log still waits for the end of the last one
proxy->fault('error', operation => 'GetItem', status => 400, type => 'ResourceNotFoundException',
	message => 'Requested resource not found');
error_of($node, q{SELECT ddb_lock_info('a')});
$node->wait_for_log(qr/$trouble.*\n.*DETAIL: +ResourceNotFoundException/);
pass('another kind of trouble is told at once');
done_testing;
