# The request of a session that has ended is nobody's: whoever uses its slot
# next, and whatever becomes of the worker meanwhile, is granted nothing for it.

use DDBLock::Test;

my $node = new_cluster('one', conf => "log_statement = none\n");

# Stays connected, so that it takes no slot when it has something to do.
my $control = session($node);

sub terminate
{
	my ($pid) = @_;

	$control->query_safe("SELECT pg_terminate_backend($pid)");
	return;
}

sub end_session
{
	my ($session, $pid) = @_;

	terminate($pid);
	wait_for { $control->query_safe(
			"SELECT count(*) FROM pg_stat_activity WHERE pid = $pid") eq '0' } 'its end';
	$session->gone;
	return;
}

# Sessions that only ask for a token: they use their slots, and post nothing.
sub strangers
{
	my @strangers = map { session($node) } 1 .. 4;

	is($_->query_safe(q{SELECT ddb_lock_token('x') IS NULL}), 't', 'a stranger asks for a token')
	  foreach @strangers;
	return @strangers;
}

sub successor_of
{
	my ($pid) = @_;

	wait_for
	{
		my $now = $control->query_safe(q{SELECT pid FROM pg_stat_activity
			WHERE backend_type = 'ddblock worker'});
		$now ne '' && $now != $pid;
	}
	'another worker';
	return;
}

# The dead session's lock must be anybody's, and its request nobody's.
sub is_free
{
	my ($name, $how) = @_;
	my $other = session($node);

	like($other->ask(qq{SET statement_timeout = '20s'; SELECT ddb_lock_acquire('$name')}),
		qr/^\d+$/m, "$how: nobody is granted the lock of a session that has ended");
	unlike($other->messages, qr/held by/, '... and nobody stands in the way');
	is($control->query_safe(q{SELECT count(*) FROM ddb_locks WHERE pid <> } . backend_pid($other)),
		'0', '... or shows in ddb_locks');
	$other->query_safe('SELECT ddb_lock_release_all()');
	$other->quit;
	return;
}

my $worker = worker_pid($node);
my $holder = session($node);
$holder->query_safe(q{SELECT ddb_lock_acquire('waited for')});

#
# It waited, and ended; others used its slot; the worker is another one.
#
my $waiter = session($node);
my $pid = backend_pid($waiter);
$waiter->send(q{SELECT ddb_lock_acquire('waited for')});
wait_for_waiters($node, 'waited for', 1);
end_session($waiter, $pid);
$_->quit foreach strangers();
my @strangers = strangers();
terminate($worker);
successor_of($worker);
$holder->query_safe(q{SELECT ddb_lock_release('waited for')});
is_free('waited for', 'another worker');
$_->quit foreach @strangers;

#
# The worker stands still: it sees request, end and stranger at once.
#
foreach my $how ('the worker stopped', 'the worker stopped, then another one')
{
	$worker = worker_pid($node);
	kill 'STOP', $worker;
	$waiter = session($node);
	$pid = backend_pid($waiter);
	$waiter->send(qq{SELECT ddb_lock_acquire('$how')});
	wait_for { $control->query_safe(
			"SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid") eq 'Extension' }
	'its request';
	end_session($waiter, $pid);
	$_->quit foreach strangers();
	@strangers = strangers();
	terminate($worker) if $how =~ /another/;
	kill 'CONT', $worker;
	successor_of($worker) if $how =~ /another/;

	# Whatever the worker makes of the slots, it has done before it answers this.
	$strangers[0]->query_safe(q{SELECT ddb_lock_info('y')});
	is_free($how, $how);
	$_->quit foreach @strangers;
}

$_->quit foreach $holder, $control;
nothing_held_ok;
done_testing;
