# The SQL of all pages, taken from them and run as it stands: by roles that have what the
# pages grant, in two clusters at once where that is the point.  A block ```sql runs as a user,
# ```sql operator and ```sql superuser as these.  A block without a language that begins with
# a prompt, one=# or two=#, is a session: its output is compared but for what is never the
# same.  With KEEP=1, the work folder's "pages" has the pages with the output of this run.

use DDBLock::Test;
use DDBLock::Pages;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use IPC::Run;

# The sections that have something to run
my @sections;
my %unused;
# 487_managed_care.pl runs those of managed.md: they want a server that does not preload ddblock.
foreach my $page (grep { m{^(?:README|doc/.*)\.md$} && $_ ne 'doc/recipes/managed.md' } pages)
{
	foreach my $section (sections($page))
	{
		my @blocks = grep { $_->{info} =~ /^sql\b/ || $_->{info} eq '' && $_->{text} =~ /^\w+=\S?# / } @{ $section->{blocks} };

		push @sections, { page => $page, heading => $section->{heading}, blocks => \@blocks } if @blocks;
		$unused{ $_->{text} }++ foreach grep { $_->{info} ne '' } @blocks;
	}
}

# The SQL that has this in it; the same in all pages, or only that of one.
sub block
{
	my ($mark, $page) = @_;
	my %found;

	foreach my $section (grep { !defined $page || $_->{page} eq $page } @sections)
	{
		$found{ $_->{text} } = 1 foreach grep { $_->{info} ne '' && index($_->{text}, $mark) >= 0 } @{ $section->{blocks} };
	}
	my @found = keys %found;
	die scalar(@found) . " blocks have: $mark\n" unless @found == 1;
	delete $unused{ $found[0] };
	return $found[0];
}

# Owners have their names by default here.
my $one = new_cluster('one', extension => 0, conf => "ddblock.owner_name = ''\n");
my $two = new_cluster('two', extension => 0, conf => "ddblock.owner_name = ''\n");
my @clusters = ($one, $two);

#
# Installation: the extension, the table, the roles
#
sub by_superuser { my ($node, $sql) = @_; return $node->safe_psql('postgres', $sql); }

my $install = block('CREATE EXTENSION ddblock;');
my $roles = block("ddb_role_setup('ddblock_user')");
my $application = block('CREATE ROLE shop');
foreach my $node (@clusters)
{
	by_superuser($node, $install);
	by_superuser($node, $roles);
	by_superuser($node, $application);
	by_superuser($node, <<'SQL');
CREATE ROLE deployer LOGIN IN ROLE ddblock_user;
CREATE ROLE operator LOGIN IN ROLE ddblock_operator;
GRANT CREATE ON SCHEMA public TO deployer;
SQL
}

# A function that a later version adds must be in one of the lists.
sub not_allowed
{
	my ($role) = @_;
	return by_superuser($one, qq{
		SELECT string_agg(object, ' ' ORDER BY object COLLATE "C") FROM (
			SELECT proname || '()' AS object FROM pg_proc WHERE proname ~ '^ddb_' AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
				AND NOT has_function_privilege('$role', oid, 'EXECUTE')
			UNION ALL SELECT relname FROM pg_class WHERE relname ~ '^ddb_' AND relkind IN ('r', 'v')
				AND NOT has_table_privilege('$role', oid, 'SELECT')) AS denied});
}
is(not_allowed('operator'),
	'ddb_fences ddb_lock_table_create() ddb_outbox ddb_queue_done ddb_queue_table_create() ddb_role_setup()',
	'operators may do all but create tables and roles, and read the extension\'s tables');
is(not_allowed('deployer'),
	'ddb_check() ddb_check_request() ddb_fences ddb_leadership_resign() ddb_lock_force_release() ddb_lock_list() ddb_lock_purge() ddb_lock_table_create() '
	  . 'ddb_operations ddb_operations() ddb_outbox ddb_outbox_send() ddb_queue_cancel() ddb_queue_done '
	  . 'ddb_queue_drop() ddb_queue_mark_done() ddb_queue_pause() ddb_queue_purge() ddb_queue_redrive() ddb_queue_resume() '
	  . 'ddb_queue_table_create() ddb_role_setup() ddb_stats ddb_stats() ddb_status ddb_status()',
	'users may do all that concerns their own locks');
sub by_shop { my ($sql) = @_; return scalar $one->psql('postgres', $sql, extra_params => [ '-U', 'shop' ]); }
is(by_shop(q{SELECT ddb_lock_acquire('shop/orders')}), 0, 'an application may lock what is its own');
is(by_shop(q{SELECT ddb_lock_acquire('migrate/shop')}), 3, '... and nothing else');

#
# psql scripts
#
sub psql
{
	my ($node, @arguments) = @_;
	my %run = (out => '', err => '');
	my @command = ('psql', '-XAtq', '-d', $node->connstr('postgres') . ' user=deployer', @arguments);

	$run{harness} = IPC::Run::start(\@command, '<', \undef, '>', \$run{out}, '2>', \$run{err});
	return \%run;
}

sub status_of
{
	my ($run) = @_;

	$run->{harness}->finish;
	return $run->{harness}->result(0);
}

sub script
{
	my ($name, $text) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . "/$name";

	PostgreSQL::Test::Utils::append_to_file($file, $text);
	return $file;
}

#
# The migration: twice in each cluster, all at once, and once more
#
my $text = block('INSERT INTO migrations');
my $migrate = script('migrate.sql', $text);
foreach my $node (@clusters)
{
	by_superuser($node, 'SET ROLE deployer; CREATE TABLE orders (id int)');
	by_superuser($node, <<'SQL');
CREATE SEQUENCE running;
GRANT ALL ON SEQUENCE running TO PUBLIC;
CREATE FUNCTION running() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM nextval('running'); END $$;
CREATE EVENT TRIGGER running ON ddl_command_start WHEN TAG IN ('ALTER TABLE')
	EXECUTE FUNCTION running();
SQL
}
sub runs { my ($node) = @_; return by_superuser($node,
	'SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM running'); }
sub migrations { my ($node) = @_; return by_superuser($node,
	q{SELECT count(*) FROM information_schema.columns WHERE column_name = 'paid_at'}); }

# While its lock is held elsewhere all of them wait.
my $holder = session($one);
$holder->query_safe(q{SELECT ddb_lock_acquire('migrate/shop')});
my @runs = map { psql($_, '-f', $migrate) } $one, $two, $one, $two;
wait_for_waiters($_, 'migrate/shop', 2) foreach @clusters;
is(runs($one) + runs($two), 0, 'nothing is migrated while another session has the lock');
$holder->query_safe(q{SELECT ddb_lock_release('migrate/shop')});
is(join(' ', map { status_of($_) } @runs), '0 0 0 0', 'four runs at once succeed');
is(runs($_), 1, 'the migration ran once in cluster ' . $_->name) foreach @clusters;
is(scalar(grep { $_->{out} =~ /was done before/ } @runs), 2, 'the other runs say that it was done');
my $again = psql($one, '-f', $migrate);
is(status_of($again), 0, 'another run succeeds');
like($again->{out}, qr/^Migration 7 was done before\.$/m, '... says that it was done');
is(runs($one), 1, '... and did nothing');

# The lease is lost in the middle
sub prepare_loss
{
	by_superuser($two, 'TRUNCATE migrations; ALTER TABLE orders DROP COLUMN paid_at;
		SELECT setval($$running$$, 1, false); TRUNCATE ddb_fences');
	by_superuser($two, q{CREATE OR REPLACE FUNCTION running() RETURNS event_trigger LANGUAGE plpgsql AS
		$$ BEGIN PERFORM nextval('running'); PERFORM pg_sleep(600); END $$});
	return;
}
prepare_loss;
my $cut_off = psql($two, '-f', $migrate);
wait_for { runs($two) == 1 } 'the migration';
by_superuser($two, q{SELECT pg_terminate_backend(pid) FROM ddb_locks WHERE name = 'migrate/shop'});
is(status_of($cut_off), 2, 'a run that loses its connection stops, with a status that says so');
is(migrations($two), 0, '... and has migrated nothing');
by_superuser($two, 'SELECT setval($$running$$, 1, false)');

my $losing = psql($two, '-f', $migrate);
wait_for { runs($two) == 1 } 'the migration';
$holder->ask(q{SELECT ddb_lock_force_release('migrate/shop')});
is(status_of($losing), 3, 'a run that loses its lease stops, with a status that says so');
like($losing->{err}, qr/ERROR: +canceling statement/, '... and an error');
is(migrations($two), 0, '... and has migrated nothing');
is(by_superuser($two, 'SELECT count(*) FROM migrations'), 0, '... nor recorded it');

by_superuser($two, q{CREATE OR REPLACE FUNCTION running() RETURNS event_trigger LANGUAGE plpgsql AS
	$$ BEGIN PERFORM nextval('running'); END $$});
is(status_of(psql($two, '-f', $migrate)), 0, 'the next run succeeds');
is(migrations($two), 1, '... and migrates');

#
# pg_cron: a stand-in keeps the command, which two clusters then run at once
#
my $stand_ins = <<'SQL';
CREATE SCHEMA cron;
GRANT USAGE ON SCHEMA cron TO PUBLIC;
CREATE TABLE cron.job (command text);
CREATE FUNCTION cron.schedule(text, text, command text) RETURNS void
	LANGUAGE sql SECURITY DEFINER AS 'INSERT INTO cron.job VALUES (command)';
CREATE SEQUENCE nights;
GRANT ALL ON SEQUENCE nights TO PUBLIC;
CREATE FUNCTION run_nightly() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('nights')$$;
CREATE FUNCTION run_reports() RETURNS bigint LANGUAGE sql AS $$SELECT nextval('nights')$$;
SQL
by_superuser($_, $stand_ins) foreach @clusters;
my $schedule = block("ddb_lock_try_acquire('nightly'");
by_superuser($_, $schedule) foreach @clusters;
my $command = by_superuser($one, 'SELECT command FROM cron.job');
sub nights
{
	my $sum = 0;
	$sum += by_superuser($_, 'SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM nights')
	  foreach @clusters;
	return $sum;
}
is(status_of(psql($one, '-c', $command)), 0, 'the job in one cluster ends at once');
is(nights(), 1, '... and has run');
wait_for { is_released('nightly') } 'the release';
is(status_of(psql($two, '-c', $command)), 0, 'the job in the other cluster ends well');
is(nights(), 1, '... and has done nothing');
is(by_superuser($one, q{SELECT kept_until > clock_timestamp() FROM ddb_lock_info('nightly')}), 't',
	'... because the lock is kept');
by_superuser($one, q{SELECT ddb_lock_force_release('nightly')});
is(status_of(psql($two, '-c', $command)), 0, 'the next night');
is(nights(), 2, '... it runs in either');

#
# The same with leaders: the job asks whether its cluster leads
#
by_superuser($_, 'TRUNCATE cron.job') foreach @clusters;
my ($leaderships) = page('doc/recipes/leaders.md') =~ /^(ddblock\.leaderships = .*)$/m or die "the page has no leadership\n";
my $reports = block("ddb_leadership_held('cron')");
foreach my $node (@clusters)
{
	by_superuser($node, $reports);
	$node->append_conf('postgresql.conf', "$leaderships\n");
	$node->reload;
	wait_for { by_superuser($node, 'SHOW ddblock.leaderships') ne '' } 'the leaderships';
}
my $report = by_superuser($one, 'SELECT command FROM cron.job');
wait_for { grep { by_superuser($_, q{SELECT ddb_leadership_held('cron')}) eq 't' } @clusters } 'a leader of pg_cron';
my $nights = nights();
is(status_of(psql($_, '-c', $report)), 0, 'the job in cluster ' . $_->name) foreach @clusters;
is(nights(), $nights + 1, '... where the leader has worked');
$two->append_conf('postgresql.conf', "ddblock.leaderships = ''\n");
$two->reload;
wait_for { by_superuser($one, q{SELECT ddb_leadership_held('cron')}) eq 't' } 'cluster one to lead, as in the examples';

#
# The leader
#
my $lead = block('CREATE PROCEDURE lead()');
foreach my $node (@clusters)
{
	by_superuser($node, <<'SQL');
SET ROLE deployer;
CREATE TABLE rounds (token bigint);
CREATE PROCEDURE one_round(token bigint) LANGUAGE sql AS 'INSERT INTO rounds VALUES (token)';
SQL
	by_superuser($node, "SET ROLE deployer; $lead");
}
sub rounds { my ($node) = @_; return by_superuser($node, 'SELECT count(*) FROM rounds'); }
my %leading = map { $_->name => psql($_, '-c', 'CALL lead()') } @clusters;
wait_for { rounds($one) + rounds($two) > 2 } 'a leader';
my ($leader, $other) = rounds($one) > 0 ? ($one, $two) : ($two, $one);
is(rounds($other), 0, 'one of two leads');
by_superuser($leader, q{SELECT pg_terminate_backend(pid) FROM ddb_locks WHERE name = 'leader'});
status_of($leading{ $leader->name });
wait_for { rounds($other) > 2 } 'the other one';
is( by_superuser($other, 'SELECT min(token) FROM rounds') > by_superuser($leader, 'SELECT max(token) FROM rounds') ? 1 : 0,
	1, 'when it ends, the other one leads, with a higher token');
by_superuser($other, q{SELECT pg_terminate_backend(pid) FROM ddb_locks WHERE name = 'leader'});
status_of($leading{ $other->name });

#
# Queues: pushed by one cluster, worked on by a session of the other one, which claims both
#
by_superuser($one, block('ddb_queue_table_create()'));
is(status_of(psql($one, '-f', script('push.sql', block("ddb_queue_push('deploy', 'production'", 'doc/recipes/queues.md')))),
	0, 'deployments are pushed');
my $claim = block("attempt FROM ddb_queue_claim('deploy'");
my $work = $claim . $claim . block("CREATE TABLE IF NOT EXISTS deployed") . block("ddb_queue_fail('deploy'");
is(status_of(psql($two, '-v', 'ON_ERROR_STOP=1', '-f', script('work.sql', $work))), 0, '... and done, but for one that fails');
sub waiting { return by_superuser($one, q{SELECT string_agg(resource, ' ') FROM ddb_queue_depths('deploy')}); }
wait_for { waiting() eq 'staging' } 'the one that is completed';

#
# The fence pattern, with something to do at its dots
#
my $pattern = block("SELECT ddb_fence_check('orders'");
die "the pattern has no dots\n" unless $pattern =~ s/^\.\.\.$/INSERT INTO orders VALUES (1);/m;
is(status_of(psql($one, '-v', 'ON_ERROR_STOP=1', '-f', script('fence.sql', $pattern))), 0, 'the fence pattern');
is(by_superuser($one, q{SELECT (SELECT count(*) FROM orders), count(*) FROM ddb_fences WHERE resource = 'orders'}),
	'1|1', '... writes under its fence');

#
# All others as they stand: the blocks of a section in order, in a database of their own,
# one session for those of a role
#
foreach my $node (@clusters)
{
	$node->safe_psql('postgres', 'CREATE DATABASE world');
	$node->safe_psql('world', "$install; $roles; GRANT CREATE ON SCHEMA public TO deployer; $stand_ins");
}
my %world = (
	orders => 'CREATE TABLE orders (id int)',
	goose_db_version => 'CREATE TABLE goose_db_version (version_id int)');

sub normal
{
	my ($text) = @_;

	foreach ($text)
	{
		s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/g;
		s/\b\d{16}\b/TOKEN/g;
		s/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.\d]*[+-]\d\d(:\d\d)?/TIME/g;
		s/\d\d:\d\d:\d\d\.\d+/LEFT/g;
		s{@[\w.-]+/}{\@HOST/}g;
		s/host "[^"]*"/host "HOST"/g;
		s/process \d+/process PID/g;
		s/\| +\d+ (?=\| (?:session|TIME))/| PID /g;
		s/ +/ /g;
		s/-+/-/g;
		s/ $//mg;
		s/\s+\z//;
	}
	return $text;
}

my $superuser = by_superuser($one, 'SELECT current_user');

# Returns the block as this run has it.
sub run_session
{
	my ($section, $block, $sessions) = @_;
	my $now = '';

	foreach my $step (split /^(?=(?:one|two)=)/m, $block->{text})
	{
		my ($cluster, $prompt, $sql, $expected) = $step =~ /^(\w+)(=\S?# )(.*?)\n(.*)/s or die "no prompt: $step\n";
		my $session = $sessions->{$cluster} //= do
		{
			my ($node) = grep { $_->name eq $cluster } @clusters;
			my $new = session($node, $section->{database});

			$new->ask("\\set VERBOSITY default\n\\set QUIET off\n\\pset format aligned\n\\pset tuples_only off\n"
				  . "SET application_name = 'psql'");
			$new;
		};
		my $output = $session->ask($sql);

		$output = $session->messages . "$output\n";
		$output =~ s/^psql:<stdin>:\d+: //mg;
		$output =~ s/ +$//mg;
		$output =~ s/\b(?:\Q$superuser\E|\Q$section->{database}\E)\b/postgres/g;
		is(normal($output), normal($expected), "$section->{page}, $cluster$prompt$sql");
		$now .= "$cluster$prompt$sql\n" . $output =~ s/\n*\z/\n/r . ($output =~ /^\(\d+ rows?\)$/m ? "\n" : '');
	}
	return $now =~ s/\n+\z/\n/r;
}

my $count = 0;
my %now;
foreach my $section (@sections)
{
	my %sessions;
	my @scripts;
	my $text = join '', map { $_->{text} } @{ $section->{blocks} };

	foreach my $block (@{ $section->{blocks} })
	{
		my ($role) = $block->{info} =~ /^sql ?(.*)/;

		if (!defined $role) { push @scripts, $block; }
		elsif (!$unused{ $block->{text} }) { next; }
		elsif (@scripts && ($scripts[-1]{role} // '') eq $role) { $scripts[-1]{text} .= "\n;$block->{text}"; }
		else { push @scripts, { role => $role, text => $block->{text} }; }
	}
	next unless @scripts;
	$section->{database} = 'section' . ++$count;
	foreach my $node ($text =~ /^two=/m ? @clusters : $one)
	{
		by_superuser($node, "CREATE DATABASE $section->{database} TEMPLATE world");
		$node->safe_psql($section->{database}, "SET ROLE deployer; $world{$_}") foreach grep { $text !~ /CREATE TABLE (?:IF NOT EXISTS )?$_\b/ } sort keys %world;
	}
	# The views show no locks of other sections.
	foreach my $node (@clusters)
	{
		wait_for { by_superuser($node, q{SELECT count(*) FROM ddb_locks WHERE scope IS DISTINCT FROM 'leadership'}) eq '0' }
			'the end of all sessions';
	}
	foreach my $script (@scripts)
	{
		if (defined $script->{role})
		{
			my %user = ('' => 'deployer', superuser => $superuser, operator => 'operator');
			my $run = psql($one, '-v', 'ON_ERROR_STOP=1', '-d', $one->connstr($section->{database}) . " user=$user{ $script->{role} }",
				'-f', script("script$count." . @scripts . '.sql', $script->{text}));

			is(status_of($run), 0, "$section->{page}, $section->{heading}: " . ($script->{text} =~ /^(.*)$/m)[0]) or diag($run->{err});
			next;
		}
		my $now = run_session($section, $script, \%sessions);
		my $page = $now{ $section->{page} } // page($section->{page});

		$page =~ s/^```\n\Q$script->{text}\E```$/```\n$now```/m or die "$section->{page}: no such block\n";
		$now{ $section->{page} } = $page;
	}
	$_->quit foreach values %sessions;
}
foreach my $page (sort keys %now)
{
	my $file = "$ENV{DDBLOCK_WORK}/pages/$page";

	make_path(dirname($file));
	open my $fh, '>:encoding(UTF-8)', $file or die "$file: $!\n";
	print $fh $now{$page};
	close $fh or die "$file: $!\n";
}

$holder->quit;
nothing_held_ok;
done_testing;
