# A cluster dies without a word: what it held is freed at once when it is back,
# and nothing that it does not hold is.

use DDBLock::Test;
use Compress::Raw::Zlib qw(crc32);
use JSON::PP ();

my $one = new_cluster('one', through => proxy, init => [ allows_streaming => 1 ],
	conf => "restart_after_crash = on\nddblock.request_timeout = 1s\n");
my $two = new_cluster('two');
my @names = qw(a b c);

# No test waits for as long: what is free sooner was freed.
my $lease = q{lease => '1h'};

sub journals { return grep { !/\.new$/ } glob $one->data_dir . '/pg_stat_tmp/ddblock.*'; }
sub log_size { return -s $one->logfile; }
sub logged { my ($what, $from) = @_; return slurp_file($one->logfile, $from) =~ $what; }

# Three sessions that hold a lock each, one of them for its transaction.
sub hold_locks
{
	my @sessions = map { session($one) } @names;

	$sessions[0]->query_safe("SELECT ddb_lock_acquire('a', $lease)");
	$sessions[1]->query_safe("SELECT ddb_lock_acquire('b', $lease, data => 'x')");
	$sessions[2]->query_safe("BEGIN; SELECT ddb_xact_lock_acquire('c', $lease)");
	return @sessions;
}

sub owner_of { return dynamodb->item($_[0])->{ownerName}{S}; }
sub held_by { my ($owner) = @_; return !grep { is_released($_) || owner_of($_) ne $owner } @names; }

# A moment after which the worker has done all that it does without a cause.
sub works_ok
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is( $one->safe_psql('postgres',
			q{SELECT ddb_lock_acquire('z') > 0, ddb_lock_release('z')}),
		't|t', "$what: locks work");
	return;
}

sub still_held_ok
{
	my ($owner, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	works_ok($what);
	is(join(' ', map { is_released($_) ? 'released' : owner_of($_) } @names),
		join(' ', ($owner) x @names), "$what: nothing is released");
	return;
}

# Another cluster gets each of them, while nobody waits for a lease.
sub freed_ok
{
	my ($what) = @_;
	my $session = session($two);

	$session->send(join ';', map { "SELECT ddb_lock_acquire('$_') > 0" } @names);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->result, join("\n", ('t') x @names), "$what: another cluster gets the locks");
	$session->quit;
	wait_for { !grep { !is_released($_) } @names } 'the locks to be free again';
	return;
}

sub crash
{
	my ($pid) = @_;
	my $worker = worker_pid($one);

	kill 'KILL', $pid;
	wait_for
	{
		my $now = eval { worker_pid($one) };
		defined $now && $now != $worker;
	}
	'the cluster after its crash';
	return;
}

#
# A crash restart
#
foreach my $victim ('backend', 'worker')
{
	my $from = log_size;
	my @sessions = hold_locks;
	my $owner = owner_of('a');

	crash($victim eq 'worker' ? worker_pid($one) : backend_pid($sessions[0]));
	freed_ok("a $victim is killed");
	$_->gone foreach @sessions;
	wait_for { logged(qr/LOG: +freed 3 locks that "\Q$owner\E" held/, $from) } 'the log';
	pass('the log says so');
	wait_for { journals == 1 } 'the one journal that is left, the new incarnation\'s';
	works_ok("after a $victim was killed");
	isnt(owner_of('z'), $owner, 'under a new incarnation');
}


# A session of the restarted cluster finds such a lock like any other.
my @sessions = hold_locks;
crash(backend_pid($sessions[1]));
$_->gone foreach @sessions;
my $again = session($one);
like($again->query_safe("SELECT ddb_lock_acquire('b', $lease)"),
	qr/^\d+$/, 'the restarted cluster gets its locks itself');
wait_for { is_released('a') && is_released('c') } 'the other locks';
is($again->query_safe(q{SELECT ddb_lock_require('b') IS NOT NULL}),
	't', 'what it has since acquired stays its own');
is($again->query_safe(q{SELECT ddb_lock_release('b')}), 't', 'and is released by its holder');
$again->quit;

#
# Stopped at once, or with the postmaster killed, and started again
#
@sessions = hold_locks;
$one->stop('immediate');
$_->gone foreach @sessions;
ok(!is_released('a') && !is_released('b') && !is_released('c'),
	'an immediate stop releases nothing');
$one->start;
freed_ok('started after an immediate stop');

@sessions = hold_locks;
my $owner = owner_of('a');
my $orphan = backend_pid($sessions[0]);
kill 'STOP', $orphan;
$one->kill9;
unlink $one->data_dir . '/postmaster.pid';
is($one->start(fail_ok => 1), 0,
	'no postmaster starts while a session of a killed one is there');
is(owner_of('a'), $owner, 'and so its lock stays its own');
ok(!is_released('a'), 'unreleased');
kill 'KILL', $orphan;
wait_for { $one->start(fail_ok => 1) } 'the start';
$_->gone foreach @sessions;
freed_ok('started after the postmaster was killed');

# What a lock is when the cluster dies says whether it is freed at once, or left to its lease because
# something may still work under it.  %s is the name, %d the token.
my @states = (
	[ freed => 'joined', 'joiner: ddb_lock_join(%s, %d)' ],
	[ freed => 'joined, its taker gone', 'joiner: ddb_lock_join(%s, %d)', 'taker: ddb_lock_release(%s)' ],
	[ left => 'detached', q{taker: ddb_lock_detach(%s, '1h')} ],
	[ left => 'detached and joined', q{taker: ddb_lock_detach(%s, '1h')}, 'joiner: ddb_lock_join(%s, %d)' ],
	[ freed => 'detached, joined, ended', q{taker: ddb_lock_detach(%s, '1h')}, 'joiner: ddb_lock_join(%s, %d)',
		'taker: ddb_lock_release_detached(%s, %d)' ],
	[ freed => 'joined, detached, ended', 'joiner: ddb_lock_join(%s, %d)', q{taker: ddb_lock_detach(%s, '1h')},
		'joiner: ddb_lock_release_detached(%s, %d)' ],
	[ freed => 'detached, joined, over', q{taker: ddb_lock_detach(%s, '1s')}, 'joiner: ddb_lock_join(%s, %d)', 'over' ],
	[ left => 'to outlive', 'taker: ddb_lock_outlive(%s)' ],
	[ left => 'to outlive by who joined', 'joiner: ddb_lock_join(%s, %d)', 'joiner: ddb_lock_outlive(%s)' ],
	[ freed => 'not to outlive after all', 'joiner: ddb_lock_join(%s, %d)', 'taker: ddb_lock_outlive(%s)', 'taker: ddb_lock_release(%s)' ],
	[ freed => 'joined for two', 'joiner: ddb_lock_join(%s, %d)', 'joiner: ddb_lock_join(%s, %d)' ]);

foreach my $worker_before (1, 0)
{
	my %session = map { $_ => session($one) } qw(taker joiner);

	foreach my $state (@states)
	{
		my (undef, $name, @steps) = @$state;
		my $token = $session{taker}->query_safe("SELECT ddb_lock_acquire('$name', $lease)");

		foreach my $step (@steps)
		{
			my ($who, $call) = $step =~ /^(\w+): (.*)/;

			$session{$who}->query_safe('SELECT ' . $call =~ s/%s/'$name'/r =~ s/%d/$token/r) if $who;
			wait_for { $session{taker}->query_safe(
				"SELECT count(*) FROM ddb_locks WHERE name = '$name' AND scope = 'detached'") eq '0' } 'the end of its time' if !$who;
		}
	}
	my @left = map { $_->[1] } grep { $_->[0] eq 'left' } @states;
	if ($worker_before)
	{
		my $before = worker_pid($one);

		kill 'TERM', $before;
		wait_for { (worker_pid($one) // $before) != $before } 'the next worker';
	}
	$one->stop('immediate');
	$_->gone foreach values %session;
	$one->start;
	foreach my $name (map { $_->[1] } grep { $_->[0] eq 'freed' } @states)
	{
		wait_for { is_released($name) } "the release of what was $name";
		pass("free at once: $name");
	}
	wait_for { journals == 1 } 'the journal to be done with';
	is(join('; ', grep { is_released($_) } @left), '', 'what a detached hold was on, or may outlive its session, is left to its lease');
	dynamodb->delete_item($_) foreach @left;
}

# The directory is known by where the server works, not by what it is called.
my $elsewhere = $one->data_dir . '.moved';
rename $one->data_dir, $elsewhere;
my $worker = worker_pid($one);
kill 'TERM', $worker;
wait_for { (worker_pid($one) // $worker) != $worker } 'the next worker';
@sessions = hold_locks;
rename $elsewhere, $one->data_dir;
crash(backend_pid($sessions[0]));
$_->gone foreach @sessions;
freed_ok('held while the data directory had another name');

#
# Crashes while DynamoDB is out of reach
#
@sessions = hold_locks;
proxy->fault('drop', operation => 'UpdateItem', count => -1);
crash(backend_pid($sessions[0]));
$_->gone foreach @sessions;
my $between = session($one);
$between->send("SELECT ddb_lock_acquire('d', $lease)");
wait_for { grep { ($_->{body}{Key}{key}{S} // '') eq 'd' } proxy->log } 'the acquire';
proxy->stop;
crash(worker_pid($one));
$between->gone;
wait_for { journals > 2 } 'the journal of the third incarnation, beside the two of the dead';
proxy->restart;
freed_ok('when DynamoDB is back');
wait_for { journals == 1 } 'the journals to be done with';
is( $one->safe_psql('postgres',
		q{SELECT ddb_lock_acquire('d') > 0, ddb_lock_release('d')}),
	't|t', 'what was asked for between the crashes is free');

@sessions = hold_locks;
$owner = owner_of('b');
proxy->fault('drop', operation => 'UpdateItem', match => '"b"', count => -1);
crash(backend_pid($sessions[0]));
$_->gone foreach @sessions;
wait_for { is_released('a') && is_released('c') } 'the locks that can be freed';
is(owner_of('b'), $owner, 'one of the locks cannot be freed');
crash(worker_pid($one));
ok(!is_released('b'), 'not before the next crash');
proxy->clear_faults;
freed_ok('a crash while freeing');

# A write whose signature is too old is not signed anew: what it says of the time is as old.
my $dated = session($one);
$dated->query_safe("SELECT ddb_lock_acquire('dated', $lease)");
proxy->reset_counts;
proxy->fault('error', operation => 'UpdateItem', match => '"dated"', status => 400, type => 'InvalidSignatureException',
	message => 'Signature expired: 20200101T000000Z is now earlier than 20260101T000000Z');
crash(backend_pid($dated));
$dated->gone;
wait_for { is_released('dated') } 'the lock';
my @writes = map { JSON::PP->new->canonical->encode($_->{body}) }
  grep { $_->{operation} eq 'UpdateItem' && ($_->{body}{Key}{key}{S} // '') eq 'dated' } proxy->log;
cmp_ok(scalar @writes, '>=', 3, 'a refused bar, another one, and the release');
is(scalar(grep { $_ eq $writes[0] } @writes), 1, '... each is a write of its own');

# The last words of the dead arrive late.
$one->append_conf('postgresql.conf', "ddblock.request_timeout = 10s\n");
$one->reload;
proxy->reset_counts;
proxy->fault('late_apply', operation => 'UpdateItem', match => '"late"', count => 1);
my $speaker = session($one);
my $holder = session($one);
$holder->query_safe("SELECT ddb_lock_acquire('a', $lease)");
$owner = owner_of('a');
$speaker->send("SELECT ddb_lock_acquire('late', $lease)");
wait_for { proxy->faults('UpdateItem') > 0 } 'the acquire';
crash(backend_pid($holder));
$_->gone foreach $speaker, $holder;
wait_for { journals == 1 } 'the journal to be done with';
my $item = dynamodb->item('late');
ok($item->{isReleased}, 'an acquire that has not arrived is barred: now there is an item');
proxy->clear_faults;
wait_for { !grep { $_->{fault} && !defined $_->{status} } proxy->log } 'the acquire';
is_deeply(dynamodb->item('late'), $item, 'when it arrives, it changes nothing');
$one->append_conf('postgresql.conf', "ddblock.request_timeout = 1s\n");
$one->reload;
wait_for { journals == 1 } 'the journal to be done with';

#
# The living cluster's locks, and copies of it
#
my $living = session($one);
my $tokens =
  $living->query_safe('SELECT ' . join ', ', map { "ddb_lock_acquire('$_', $lease)" } @names);
my $renew = 'SELECT ' . join ' AND ', map { "ddb_lock_renew('$_') > now()" } @names;
my $require = 'SELECT ' . join ', ', map { "ddb_lock_require('$_')" } @names;
$owner = owner_of('a');

sub living_ok
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($living->query_safe($renew), 't', "$what: the living cluster can renew its leases");
	is($living->query_safe($require), $tokens, "$what: the living cluster's tokens are valid");
	still_held_ok($owner, $what);
	is( $two->safe_psql('postgres', 'SELECT ' . join ', ',
			map { "NOT ddb_lock_try_acquire('$_')" } @names),
		join('|', ('t') x @names), "$what: nobody else gets its locks");
	return;
}

sub copy_works
{
	my ($copy) = @_;

	wait_for { eval { worker_pid($copy) } } 'the worker of the copy';
	$copy->safe_psql('postgres', q{SELECT ddb_lock_acquire('y'), ddb_lock_release('y')});
	return;
}

$one->backup('base');
# All go to the same address: nothing but the directory tells them apart.
is_deeply([ glob $one->backup_dir . '/base/pg_stat_tmp/*' ], [],
	'a base backup contains no journal');
my $copy = new_cluster('copy', through => proxy, init_from => [ $one, 'base' ]);
copy_works($copy);
living_ok('a base backup was started');
$copy->stop('fast');

system_or_bail('cp', '-a', (journals)[0], $copy->data_dir . '/pg_stat_tmp/');
$copy->start;
copy_works($copy);
ok(slurp_file($copy->logfile) =~ /ignored journal .*: it was written in another data directory/,
	'a copied journal is ignored');
living_ok('a copy with its journal was started');
$copy->stop('fast');

system_or_bail('rm', '-r', $copy->data_dir . '/pg_stat_tmp');
symlink $one->data_dir . '/pg_stat_tmp', $copy->data_dir . '/pg_stat_tmp'
  or die "symlink: $!\n";
my $own = (journals)[0];
$copy->start;
copy_works($copy);
living_ok('a copy that shares pg_stat_tmp was started');
$copy->stop('fast');
is_deeply([journals], [$own], 'its journal is left alone');

$one->stop('immediate');
$living->gone;
$one->backup_fs_cold('cold');
my $cold = new_cluster('cold', through => proxy, init_from => [ $one, 'cold' ]);
copy_works($cold);
is(scalar(grep { !is_released($_) && owner_of($_) eq $owner } @names), 3,
	'a copy of a stopped cluster frees nothing');
$cold->stop('fast');
$one->start;
freed_ok('its original does');

#
# Journals that are not to be believed
#

# struct journal_header: the checksum first, boot_id at 32, 4336 bytes.
sub edit_header
{
	my ($offset, $bytes) = @_;
	my ($file) = journals;
	my $content = slurp_file($file);

	substr($content, $offset, length $bytes) = $bytes;
	substr($content, 0, 4) = pack 'L', crc32(substr $content, 4, 4336 - 4);
	write_journal($file, $content);
	return;
}

sub write_journal
{
	my ($file, $content) = @_;

	open my $fh, '>:raw', $file or die "$file: $!\n";
	print $fh $content;
	close $fh or die "$file: $!\n";
	return;
}

# Stops the cluster while it holds locks; returns their owner.
sub stop_holding
{
	my @holding = hold_locks;
	my $holder = owner_of('a');

	$one->stop('immediate');
	$_->gone foreach @holding;
	return $holder;
}

sub ignored_ok
{
	my ($holder, $what, $why) = @_;
	my $from = log_size;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$one->start;
	still_held_ok($holder, $what);
	ok(logged(qr/LOG: +ignored journal .*: $why/, $from), "$what: the log says so");
	return;
}

$owner = stop_holding;
my $original = slurp_file((journals)[0]);
edit_header(32, '00000000-0000-0000-0000-000000000000');
ignored_ok($owner, 'another boot id', 'the machine has been restarted since');
is(scalar(grep { /\Q$own\E/ } journals), 0, 'its journal is removed');
$one->stop('fast');

my $file = $one->data_dir . '/pg_stat_tmp/ddblock.old';
write_journal($file, $original);
edit_header(24, pack 'Q', 1);
ignored_ok($owner, 'another data directory', 'it was written in another data directory');
$one->stop('fast');
unlink $file;

write_journal($file, substr $original, 0, 1000);
ignored_ok($owner, 'cut short', 'it is damaged');
$one->stop('fast');

write_journal($file, $original);
$one->append_conf('postgresql.conf', "ddblock.partition_key = 'other'\n");
my $from = log_size;
$one->start;
wait_for { logged(qr/LOG: +ignored journal .*: it belongs to another lock table/, $from) } 'the log';
is(scalar(grep { !is_released($_) && owner_of($_) eq $owner } @names), 3,
	'another table: nothing is released');
ok(-f $file, 'and the journal is kept: the settings may come back');
$one->stop('fast');
$one->append_conf('postgresql.conf', "ddblock.partition_key = 'key'\n");

# One name is damaged, a foreign file lies beside, and there is less room now.
my $spoilt = $original;
my $name_at = index($spoilt, 'b', 4336);
substr($spoilt, $name_at, 1) = 'B';
write_journal($file, $spoilt);
write_journal("$file.foreign", "by another program\n");
$one->append_conf('postgresql.conf', "ddblock.max_leases = 2\n");
$from = log_size;
$one->start;
wait_for { is_released('a') && is_released('c') } 'the others';
wait_for { logged(qr/LOG: +journal .* was damaged/, $from) } 'the log';
ok(!is_released('b'), 'a damaged name is left to its lease');
ok(logged(qr/LOG: +ignored journal .*foreign": it is damaged/, $from), 'a foreign file is ignored');
ok(!is_released('b') && !dynamodb->item('B'), 'nothing else is written');
dynamodb->delete_item('b');

#
# Without a journal
#
$one->stop('fast');
chmod 0500, $one->data_dir . '/pg_stat_tmp';
$from = log_size;
$one->append_conf('postgresql.conf', "ddblock.max_leases = 3\n");
$one->start;
works_ok('pg_stat_tmp cannot be written');
@sessions = hold_locks;
$owner = owner_of('a');
my @complaints = slurp_file($one->logfile, $from) =~ /could not write journal/g;
is(scalar(@complaints), 1, 'the log says so once');
crash(backend_pid($sessions[0]));
$_->gone foreach @sessions;
still_held_ok($owner, 'a crash without a journal');
chmod 0700, $one->data_dir . '/pg_stat_tmp';
dynamodb->delete_item($_) foreach @names;

nothing_held_ok;
done_testing;
