# SECURITY DEFINER functions: whatever error one raises, its caller is left as before: its role, its
# settings, its locks, its transaction.

use DDBLock::Test;

my $node = new_cluster('one', through => proxy, conf => "ddblock.keep_warm = off\nddblock.retry_timeout = 300ms\n");
my $op = session($node);
my $other = session($node);
my $pid = backend_pid($op);

sub sql { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }

# Claims of jobs outlive the transactions that fail.
my %calls = (
	'ddb_fence_check(text,bigint)' => q{ddb_fence_check(%s, 1)},
	'ddb_fence_check_shared(text,bigint)' => q{ddb_fence_check_shared(%s, 1)},
	'ddb_queue_mark_done(text,text,bigint)' => q{ddb_queue_mark_done('q', %s, 1)},
	'ddb_queue_mark_done(text,text,bigint,timestamp with time zone,bigint)' => q{ddb_queue_mark_done('q', %s, 1, now(), 1)},
	'ddb_queue_purge(interval)' => q{ddb_queue_purge()},
	'ddb_queue_push_on_commit(text,text,jsonb,text)' => q{ddb_queue_push_on_commit('q', %s, '1')},
	'ddb_outbox_send(integer)' => q{ddb_outbox_send()});

is_deeply([ split /\n/, sql(q{SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.deptype = 'e'
		JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'ddblock' WHERE p.prosecdef ORDER BY p.oid::regprocedure::text}) ],
	[ sort keys %calls ], 'these are all');

sql(q{
	SELECT ddb_queue_table_create();
	CREATE ROLE op;
	SELECT ddb_role_setup('op', operator => true);
	CREATE TABLE large AS SELECT repeat('x', 100000000) AS text;
	CREATE TABLE written (what text);
	GRANT ALL ON large, written TO op;

	-- What a caller has.  Locks of the catalogs come and go with caches.
	CREATE FUNCTION has() RETURNS text LANGUAGE sql AS $$
		SELECT concat_ws(' ', current_user, session_user, current_setting('search_path'), current_setting('role'),
			(SELECT string_agg(concat_ws(',', locktype, relation::regclass, objid, mode), ' ' ORDER BY relation, mode)
				FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND locktype <> 'transactionid'
				AND (relation IS NULL OR relation::regclass::text LIKE '%ddb\_%')))
	$$;

	-- Catches the error of a call, tries what op must not, and returns all that is not as it was.
	CREATE FUNCTION caught(call text) RETURNS text LANGUAGE plpgsql AS $$
	DECLARE
		before text := public.has();
		inside text;
		caught text := 'none';
	BEGIN
		BEGIN
			EXECUTE 'SELECT ' || call;
		EXCEPTION WHEN query_canceled OR others THEN
			caught := sqlstate;
			inside := public.has();
		END;
		IF before IS DISTINCT FROM inside OR before <> public.has() THEN
			RETURN format('%s: from %s to %s, then %s', caught, before, inside, public.has());
		END IF;
		BEGIN
			ALTER ROLE op SUPERUSER;
			RETURN caught || ': op is superuser';
		EXCEPTION WHEN insufficient_privilege THEN
			RETURN caught;
		END;
	END $$});

# What is there in another session's eyes.
sub left_behind
{
	return sql(qq{SELECT state, (SELECT string_agg(concat_ws(' ', locktype, relation::regclass, mode), ', ') FROM pg_locks WHERE pid = $pid)
		FROM pg_stat_activity WHERE pid = $pid});
}

# The call must fail with this SQLSTATE: in a block with an EXCEPTION clause, behind a savepoint, on its own.
sub check_after
{
	my ($call, $state, $what, %how) = @_;
	my $before = $how{before} // sub { };
	my $while = $how{while} // sub { };
	my $after = $how{after} // sub { };
	my $set = "SET LOCAL client_min_messages = error; " . ($how{set} // '');
	(my $quoted = $call) =~ s/'/''/g;

	my $ask = sub {
		my ($sql) = @_;

		$before->();
		$op->send($sql);
		$while->();
		my $result = $op->result;
		$after->();
		return $result;
	};
	$op->query_safe('BEGIN; INSERT INTO written VALUES (1)');
	my $had = $op->query_safe("$set; SELECT has()");
	is($ask->("SELECT caught('$quoted')"), $state, "$what: caught");
	is($op->query_safe('RESET statement_timeout; RESET lock_timeout; SELECT has()'), $had, '... the transaction goes on');
	$op->query_safe('SAVEPOINT s');
	$op->query_safe($how{set}) if $how{set};
	$ask->("SELECT $call");
	like($op->messages, qr/ERROR:  $state: /, '... behind a savepoint');
	is($op->query_safe('ROLLBACK TO s; RESET statement_timeout; RESET lock_timeout; SELECT has()'), $had, '... which leaves the transaction as it was');
	# Without its fence a transaction must not commit: it says so there.
	$op->ask('INSERT INTO written VALUES (2); COMMIT');
	like($op->messages, $call =~ /fence/ ? qr/ERROR:  LK002/ : qr/^$/, '... and can commit, unless it was fenced');
	is(sql('SELECT count(*) FROM written'), $call =~ /fence/ ? 0 : 2, '... with all that it wrote');
	sql('TRUNCATE written');

	(my $session = $how{set} // '') =~ s/LOCAL//;
	$op->query_safe("$session; SELECT 1");
	$ask->("SELECT $call");
	like($op->messages, qr/ERROR:  $state: /, '... alone');
	is(left_behind(), 'idle|', '... and nothing is left');
	is($op->query_safe('RESET statement_timeout; RESET lock_timeout; SELECT current_user'), 'op', '... the session goes on');
	return;
}

sub wait_until_it_waits
{
	wait_for { sql(qq{SELECT count(*) FROM pg_stat_activity WHERE pid = $pid AND state = 'active' AND wait_event_type IN ('Lock', 'Extension')}) } 'it waits';
	return;
}

sub cancel { wait_until_it_waits(); sql("SELECT pg_cancel_backend($pid)"); return; }

sql(q{SELECT ddb_queue_push('q', 'r', '1')});
$op->query_safe('SET SESSION AUTHORIZATION op');
$op->query_safe(q{SELECT ddb_queue_claim('q', lease => '1h')});

foreach my $name (sort keys %calls)
{
	my $call = $calls{$name} =~ s/%s/'r'/r;
	my %blocked = (
		before => sub { $other->query_safe('BEGIN; LOCK TABLE ddb_fences, ddb_queue_done, ddb_outbox IN EXCLUSIVE MODE') },
		after => sub { $other->query_safe('ROLLBACK') });

	check_after($call, '57014', "$name, canceled", %blocked, while => \&cancel);
	check_after($call, '57014', "$name, timed out", %blocked, set => q{SET LOCAL statement_timeout = '50ms'});
	check_after($call, '55P03', "$name, lock_timeout", %blocked, set => q{SET LOCAL lock_timeout = '50ms'});
	check_after($calls{$name} =~ s/%s/''/r, '22023', "$name, a wrong argument") if $calls{$name} =~ /%s/;
}

#
# What comes from DynamoDB, in the midst of sending, or of a purge
#
my $send = $calls{'ddb_outbox_send(integer)'};
my $purge = $calls{'ddb_queue_purge(interval)'};
my %types = (
	'28000' => 'com.amazon.coral.service#UnrecognizedClientException',
	'42P01' => 'com.amazonaws.dynamodb.v20120810#ResourceNotFoundException',
	'53400' => 'com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException');

sql(q{SELECT ddb_queue_push_on_commit('q', 'r', '2')});
my %cleared = (after => sub { proxy->clear_faults });
foreach my $call ($send, $purge)
{
	foreach my $state (sort keys %types)
	{
		check_after($call, $state, "$call, $state", %cleared,
			before => sub { proxy->fault('error', count => -1, type => $types{$state}, status => 400) });
	}
}
my %silent = (before => sub { proxy->fault('drop', match => 'r#q#r', count => -1) }, %cleared);
my %no_scan = (before => sub { proxy->fault('drop', match => 'begins_with', count => -1) }, %cleared);
check_after($send, '08006', "$send, no answer", %silent);
check_after($purge, '08006', "$purge, no answer", %no_scan);
sql(q{ALTER SYSTEM SET ddblock.retry_timeout = '1 h'});
sql('SELECT pg_reload_conf()');
wait_for { $op->ask('SHOW ddblock.retry_timeout') eq '1h' } 'the reload';
check_after($send, '57014', "$send, canceled in the midst", %silent, while => \&cancel);
check_after($send, '57014', "$send, timed out in the midst", %silent, set => q{SET LOCAL statement_timeout = '50ms'});
check_after($purge, '57014', "$purge, canceled in the midst", %no_scan, while => \&cancel);

#
# Out of memory, where the function copies its argument, or a row.
#
my ($kilobytes) = slurp_file("/proc/$pid/status") =~ /^VmSize:\s+(\d+) kB/m;

sub limit_memory { my ($bytes) = @_; system_or_bail('prlimit', '--pid', $pid, "--as=$bytes:"); return; }

my %poor = (before => sub { limit_memory(1024 * ($kilobytes + 50000)) }, after => sub { limit_memory('unlimited') });
sql(q{DELETE FROM ddb_outbox; INSERT INTO ddb_outbox (queue, resource, payload) SELECT 'q', 'r', to_jsonb(text) FROM large});
check_after($calls{$_} =~ s/%s/(SELECT text FROM large)/r, '53200', "$_, out of memory", %poor)
	foreach grep { $calls{$_} ne $purge } sort keys %calls;

$_->quit foreach $op, $other;
nothing_held_ok;
done_testing;
