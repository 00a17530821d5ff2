# Databases that cannot load ddblock, and a lock server: what a call does there, and what is left of it.

use DDBLock::Test;
use DDBLock::Managed;

my $locks = lock_server('locks');
my ($shop, $bank) = map { managed_cluster($_, $locks) } qw(shop bank);

# What the lock server knows: name, application and state of each lock.
sub locks { return $locks->safe_psql('postgres', 
	q{SELECT name, application_name, l.state FROM ddb_locks l JOIN pg_stat_activity a USING (pid) ORDER BY 1, 2}); }

#
# The interface: ddblock's, less what the page leaves out
#
my $signatures = q{
	SELECT proname, coalesce(string_agg(concat_ws(' ', name, type), ', ' ORDER BY n), ''), prorettype::regtype
	FROM pg_proc p LEFT JOIN LATERAL unnest(proargnames, p.proargtypes::regtype[])
		WITH ORDINALITY AS a (name, type, n) ON name NOT IN ('attributes', 'only_if_exists', 'delete_on_release')
	WHERE pronamespace = '%s'::regnamespace AND proname ~ '^ddb_' AND proname !~ '^ddb_(remote|role_setup)'
	GROUP BY p.oid, 1, 3 ORDER BY 1, 2};
my %of_ddblock = map { $_ => 1 } split /\n/, $locks->safe_psql('postgres', sprintf $signatures, 'public');
my @here = split /\n/, $shop->safe_psql('postgres', sprintf $signatures, 'ddblock');
cmp_ok(scalar @here, '>=', 20, 'functions');
ok($of_ddblock{$_}, $_) foreach @here;
my $offered = $locks->safe_psql('postgres', 'SELECT function FROM ddb_remote ORDER BY 1');
is(join("\n", sort grep { !/fence|mark_done/ } map { s/\|.*//r } @here), $offered,
	'the lock server offers these, but for those that write here');

# Every call, with sane, with NULL, and with wrong arguments, says what the same call says there.
my %sane = (name => "'shop/a'", lease => "'1 min'", wait => "'1 min'", data => "'x'", at_least => 'NULL',
	at_most => "'1 min'", max_permits => 3, permits => 2, keep => 'true', nowait => 'false',
	resource => "'shop/r'", token => 5, queue => "'q'", number => 1, pushed_at => "'2020-01-01Z'");
my %wrong = (name => "''", lease => "'-1 s'", wait => "'-1 s'", at_least => "'2 d'", at_most => "'-3 s'",
	max_permits => 0, permits => 9, resource => "repeat('r', 2049)", token => 0, number => 0);
my ($there, $app) = (session($locks), app($shop));

$_->query_safe('SET client_min_messages = error') foreach $there, $app;
sub says
{
	my ($session, $sql) = @_;
	my $said = $session->ask($sql);
	# A token is a number; the time that is left is none that would be the same again.
	$said =~ s/\d{10,}/TOKEN/g;
	$said =~ s/^00:\d\d:[\d.]+$/TIME/mg;
	return join "\n", $said, $session->messages =~ /((?:ERROR|DETAIL|HINT):  .*)/g;
}

foreach my $function (@here)
{
	my ($name, $list) = split /\|/, $function;
	my @names = map { /^(\w+)/ } split /, /, $list;
	my $all = join ', ', map { "$_ => $sane{$_}" } @names;
	my @calls = ($all);

	foreach my $one (@names)
	{
		push @calls, $all =~ s/\b$one => [^,]*('[^,]*'\))?/$one => NULL/r;
		push @calls, $all =~ s/\b$one => [^,]*/$one => $wrong{$one}/r if exists $wrong{$one};
	}
	foreach my $call (@calls)
	{
		next if $name =~ /^ddb_(fence|queue)/ && $call !~ /=> (NULL|''|0)/ || $call =~ /pushed_at => NULL/;
		my @said = map { my $said = says($_, "SELECT $name($call)"); $_->ask('SELECT ddb_lock_release_all()'); $said }
		  $there, $app;

		# Those that write here have hints and lengths of their own.
		s/\n(DETAIL|HINT):.*//s foreach $name =~ /^ddb_(fence|queue)/ ? @said : ();
		is($said[1], $said[0], "$name($call)");
	}
}
is(locks(), '', 'nothing is left of them');
$_->quit foreach $there, $app;

# What they say arrives.
$app = app($shop);
$app->query_safe(q{SET intervalstyle = sql_standard; SET bytea_output = escape;
	SELECT ddb_lock_acquire('shop/told', lease => '1 hour 2 min', data => '\\x5c00ff', at_least => '1 day -1 hour')});
is($locks->safe_psql('postgres', q{SELECT lease, data, kept_until > now() + interval '22 h', mode FROM ddb_lock_info('shop/told')}),
	'01:02:00|\\x5c00ff|t|exclusive', 'durations and data');
is($app->ask(q{SELECT ddb_semaphore_acquire('shop/permits', 3, 2) > 0}), 't', 'permits');
is($locks->safe_psql('postgres', q{SELECT mode, permits FROM ddb_lock_info('shop/permits')}), 'semaphore|2', 'their number');
$app->quit;
wait_for { locks() eq '' } 'the end of the session';

#
# Who holds a lock, and what becomes of it when the session ends
#
my $holder = app($shop);
my $pid = backend_pid($holder);
cmp_ok($holder->ask(q{SELECT ddb_lock_acquire('shop/a')}), '>', 0, 'acquired');
is(locks(), "shop/a|postgres/app/$pid|held", 'the lock server names the session');
my $other = app($bank);
$other->send(q{SELECT ddb_lock_acquire('shop/a')});
wait_for_waiters($locks, 'shop/a', 1);
$holder->query_safe(q{SELECT ddb_lock_release('shop/a')});
like($other->result, qr/^\d+$/, 'the other database is next');
like($holder->ask(q{SELECT ddb_lock_release('shop/a')}) . $holder->messages,
	qr/f.*WARNING: .*lock "shop\/a" is not held by this session/s, 'a release of what is not held: WARNING');
$other->send('SELECT pg_sleep(600)');
$bank->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^SELECT pg_sleep'});
$other->gone;
wait_for { locks() eq '' } 'the end of a session frees its lock';
$holder->query_safe(q{SELECT ddb_lock_acquire('shop/a', at_most => '1 h')});
my ($left) = $holder->ask(q{SELECT extract(epoch FROM ddb_lock_remaining('shop/a'))});
cmp_ok($left, '>', 0, 'time is left');
kill 'KILL', $pid;
$holder->gone;
wait_for { slurp_file($shop->logfile) =~ /terminated by signal 9.*database system is ready to accept connections/s } 'its recovery';
wait_for { locks() eq '' } 'kill -9 frees it, too';

#
# Rollback, savepoints
#
$app = app($shop);
$app->ask($_) foreach 'BEGIN', q{SELECT ddb_lock_acquire('shop/s'), ddb_xact_lock_acquire('shop/x')}, 'SAVEPOINT a',
  q{SELECT ddb_lock_acquire('shop/s2'), ddb_xact_lock_acquire('shop/x2')}, 'ROLLBACK TO a';
wait_for { locks() =~ /^shop\/s\|[^\n]*held\nshop\/x\|[^\n]*held$/ } 'ROLLBACK TO releases what came after the savepoint';
$app->ask('ROLLBACK');
wait_for { locks() eq '' } 'ROLLBACK releases all';
$app->ask($_) foreach 'BEGIN', q{SELECT ddb_lock_acquire('shop/s'), ddb_xact_lock_acquire('shop/x')}, 'COMMIT';
wait_for { locks() =~ /^shop\/s\|[^\n]*$/ } 'COMMIT keeps what is the session\'s';
$app->ask('BEGIN');
$app->ask(q{SELECT ddb_lock_acquire('shop/s')});
is($app->ask(q{SELECT ddb_lock_release('shop/s')}), 't', 'a release of the second acquisition');
$app->ask('ROLLBACK');
like(locks(), qr/^shop\/s\|[^\n]*held$/, 'ROLLBACK after a release undoes no acquisition of before');
is($app->ask('SELECT ddb_lock_release_all()'), 1, 'released');

#
# lock_timeout, statement_timeout, cancel
#
$holder = app($bank);
$holder->query_safe(q{SELECT ddb_lock_acquire('shop/busy')});
like($app->error_of(q{SET lock_timeout = '100ms'; SELECT ddb_lock_acquire('shop/busy')}), qr/ERROR: +55P03: /, 'lock_timeout');
like($app->error_of(q{SET lock_timeout = '1h'; SELECT ddb_lock_acquire('shop/busy', wait => '100 ms')}), qr/ERROR: +55P03: /,
	'wait, if it is shorter');
like($app->error_of(q{SET lock_timeout = 0; SET statement_timeout = '100ms'; SELECT ddb_lock_acquire('shop/busy')}),
	qr/ERROR: +57014: /, 'statement_timeout');
$app->query_safe('RESET statement_timeout');
wait_for { locks() !~ /waiting/ } 'no waiter is left';
is($app->ask(q{SELECT ddb_lock_try_acquire('shop/busy')}), 'f', 'a try');
$holder->quit;

#
# Storms of cancellations, as many as hit enough calls: what a session was not told of, it does not
# hold
#
my $cancelled = 0;
for (my $storms = 0; $storms < 50 && $cancelled <= 20; $storms++)
{
	my $storm = '';

	foreach (1 .. 400)
	{
		my $time = 1 + int(rand() * 12);
		$storm .= "SET statement_timeout = $time; SELECT ddb_lock_acquire('shop/storm/" . int(rand(3)) . "', lease => '1h');\n";
	}
	$app->ask("SET client_min_messages = error;\n" . $storm);
	$cancelled += () = $app->messages =~ /57014/g;
	$app->ask('SET statement_timeout = 0');
	$app->quit;
	wait_for { locks() eq '' } 'nothing is left';
	$app = app($shop);
}
cmp_ok($cancelled, '>', 20, "cancelled $cancelled times");
$app->quit;
wait_for { locks() eq '' } 'nothing is left';
nothing_held_ok;
done_testing;
