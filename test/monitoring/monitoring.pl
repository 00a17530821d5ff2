# doc/monitoring for real: a cluster under load, Debian's postgres_exporter and
# Prometheus; every expression has data, every alert fires when it should.

use DDBLock::Test;
use DDBLock::Sources;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use HTTP::Tiny;
use JSON::PP;
use IO::Socket::INET;
use POSIX ();

my $top = abs_path(dirname(__FILE__) . '/../..');
my $files = "$top/doc/monitoring";
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $http = HTTP::Tiny->new(timeout => 30);
my $page = slurp_file("$top/doc/monitoring.md");
my %pids;

sub write_file
{
	my ($file, $text) = @_;

	open my $fh, '>', $file or die "$file: $!\n";
	print $fh $text;
	close $fh;
	return $file;
}

sub free_port
{
	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "no port: $!\n";
	return $socket->sockport;
}

# Starts a program that serves HTTP; returns its URL.
sub serve
{
	my ($name, $command, %env) = @_;
	my $url = 'http://127.0.0.1:' . free_port();
	my $log = "$PostgreSQL::Test::Utils::log_path/$name.log";
	my $pid = fork() // die "fork: $!\n";

	if ($pid == 0)
	{
		@ENV{ keys %env } = values %env;
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $log;
		open STDERR, '>&', \*STDOUT;
		exec map { s/ADDRESS/$url =~ s{.*\/}{}r/er } @$command or POSIX::_exit(127);
	}
	$pids{$name} = $pid;
	wait_for {
		die "$name ended, see $log\n" if waitpid($pid, POSIX::WNOHANG()) == $pid;
		$http->get("$url/metrics")->{success};
	}
	$name;
	return $url;
}

sub stop_servers
{
	foreach my $name (sort keys %pids)
	{
		kill 'TERM', $pids{$name};
		waitpid($pids{$name}, 0);
	}
	%pids = ();
	return;
}
my $sources;
my $main_pid = $$;
END
{
	my $status = $?;

	if ($main_pid && $$ == $main_pid)
	{
		stop_servers();
		$sources->stop if $sources;
	}
	$? = $status;
}

#
# The cluster, with credentials that expire, and with the role of the page
#
delete @ENV{ grep { /^AWS_/ || /_proxy$/i } keys %ENV };
$sources = DDBLock::Sources->start(dir => PostgreSQL::Test::Utils::tempdir());
$ENV{AWS_EC2_METADATA_SERVICE_ENDPOINT} = $sources->url;
my $node = new_cluster('one', through => proxy,
	conf => "ddblock.max_leases = 20\nddblock.keep_warm = off\n"
	  . "ddblock.access_key_id = ''\nddblock.secret_access_key = ''\n");
my ($grants, $queue_grants) = $page =~ /^```sql superuser\n(.*?)^```$/gms;
$node->safe_psql('postgres', $grants);
my $connection = 'user=ddblock_exporter host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
is($node->safe_psql('postgres', q{SELECT string_agg(proname, ' ' ORDER BY proname) FROM pg_proc
		WHERE proname ~ '^ddb_' AND has_function_privilege('ddblock_exporter', oid, 'EXECUTE')}),
	'ddb_locks ddb_operations ddb_stats ddb_status', 'the role may read the views, and nothing else');
$node->safe_psql('postgres', 'SELECT ddb_queue_table_create(); ' . $queue_grants =~ s/'2s'/'150ms'/r);

#
# Load: acquire, release, wait
#
my @sessions = map { undisturbed($node) } 1 .. 3;
sub load
{
	my ($name) = @_;

	$sessions[0]->query_safe("SELECT ddb_lock_acquire('$name')");
	$sessions[1]->send("SELECT ddb_lock_acquire('$name')");
	wait_for_waiters($node, $name, 1);
	$sessions[0]->query_safe("SELECT ddb_lock_release('$name')");
	$sessions[1]->result;
	$sessions[1]->query_safe("SELECT ddb_lock_renew('$name'), ddb_lock_release('$name')");
	$sessions[1]->query_safe(q{SELECT ddb_queue_push('deploy', 'r', '1')});
	$sessions[1]->query_safe(q{SELECT ddb_queue_complete('deploy', resource, number) FROM ddb_queue_claim('deploy')});
	return;
}
load('load');

#
# The exporter: well-formed metrics, no double count
#
my $exporter = serve('postgres_exporter',
	[ 'prometheus-postgres-exporter', '--web.listen-address=ADDRESS',
		"--extend.query-path=$files/postgres_exporter.yaml",
		'--disable-default-metrics', '--disable-settings-metrics' ],
	DATA_SOURCE_NAME => "$connection sslmode=disable");

# Name and labels (the exporter's own "server" aside) => value
sub scrape
{
	my ($url) = @_;
	my %metrics;

	foreach (split /\n/, $http->get("$url/metrics")->{content})
	{
		my ($name, $labels, $value) = /^(ddblock_\w+)(?:\{(.*)\})? (\S+)$/ or next;
		my @labels = grep { !/^server=/ } ($labels // '') =~ /(\w+="[^"]*")/g;

		$metrics{ $name . (@labels ? '{' . join(',', sort @labels) . '}' : '') } = $value;
	}
	return %metrics;
}
# A scrape itself reads queues.
sub sum_of
{
	my ($metrics, $name) = @_;
	my $sum = 0;

	$sum += $metrics->{$_} foreach grep { /^\Q$name\E\{/ && !/"queue_/ } keys %$metrics;
	return $sum;
}
sub sum_in_view
{
	my ($column) = @_;

	return $node->safe_psql('postgres', "SELECT sum($column) FROM ddb_operations WHERE operation !~ '^queue_'");
}

my %metrics = scrape($exporter);
my $expected = $node->safe_psql('postgres', 'SELECT count(*) FROM ddb_operations');
is(scalar(grep { /^ddblock_operation_requests_total/ } keys %metrics), $expected, 'a series for each operation');
foreach my $column (qw(requests errors throttles retries consumed_units))
{
	cmp_ok(sum_of(\%metrics, "ddblock_operation_${column}_total"), '==',
		sum_in_view($column), "the sum of $column is that of ddb_operations");
}
cmp_ok(sum_of(\%metrics, 'ddblock_operation_latency_seconds_count'), '==', sum_in_view('replies'),
	'... and so is that of replies');
cmp_ok($metrics{'ddblock_operation_requests_total{operation="acquire"}'}, '>', 0, 'there was a load');
is($metrics{ddblock_acquired_total}, 3, '... of two sessions, and a job');
is($metrics{ddblock_jobs_pushed_total}, 1, '... that was pushed');
is($metrics{'ddblock_queue_depth{queue="deploy"}'}, 0, '... and completed');
cmp_ok($metrics{ddblock_last_reply_age_seconds}, '>', 0, 'there was a reply');
my $raw = write_file("$dir/metrics",
	join '', map { "$_\n" } grep { /ddblock_/ } split /\n/, $http->get("$exporter/metrics")->{content});
is(scalar(qx(promtool check metrics <$raw 2>&1)), '', 'promtool finds nothing wrong with the metrics');

#
# sql_exporter: the same metrics
#
my %others;
if ($ENV{SQL_EXPORTER})
{
	my $config = write_file("$dir/sql_exporter.yml", <<"YAML");
target:
  data_source_name: 'postgres://ddblock_exporter@@{[ $node->host ]}:@{[ $node->port ]}/postgres?sslmode=disable'
  collectors: [ddblock]
collector_files: ['$files/sql_exporter.collector.yml']
YAML
	%others = scrape(serve('sql_exporter',
		[ $ENV{SQL_EXPORTER}, "-config.file=$config", '-web.listen-address=ADDRESS' ]));
}
else
{
	note('sql_exporter itself is not run: SQL_EXPORTER names none');
	foreach my $metric (@{ decode_json(qx("$top/test/monitoring/sql_metrics" "$files/sql_exporter.collector.yml")) })
	{
		my ($name, $labels, $value, $query) = @$metric;
		my $rows = $node->safe_psql('postgres', "SELECT json_agg(q) FROM ($query) AS q",
			connstr => "$connection");

		foreach my $row (@{ decode_json($rows) })
		{
			my $key = join ',', map { qq($_="$row->{$_}") } sort @$labels;
			die "$name: $query gives no column $value\n" unless defined $row->{$value};
			$others{ $name . ($key ne '' ? "{$key}" : '') } = $row->{$value};
		}
	}
}
is(join("\n", sort keys %others), join("\n", sort keys %metrics), 'sql_exporter has the same metrics and labels');
is(join("\n", grep { $others{$_} != $metrics{$_} } grep { !/wait_seconds|age_seconds|clock_ahead|operation="queue_/ } sort keys %others), '',
	'... with the same values');

#
# Prometheus, with the rules sixty times faster
#
my $rules = slurp_file("$files/alerts.yaml");
$rules =~ s/\b(\d+)m\b/$1s/g;
$rules =~ s/\b(\d+)h\b/${1}m/g;
$rules =~ s/ \* 60\b/ * 1/g;
write_file("$dir/alerts.yaml", $rules);
my ($address) = $exporter =~ m{//(.*)};
my $config = write_file("$dir/prometheus.yml", <<"YAML");
global: {scrape_interval: 400ms, scrape_timeout: 400ms, evaluation_interval: 400ms}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: ddblock
    static_configs: [{targets: ['$address']}]
YAML
is(system("promtool check config $config >$dir/check.log 2>&1"), 0, 'promtool: the configuration')
  or diag(slurp_file("$dir/check.log"));
is(system("promtool check rules $files/alerts.yaml >$dir/check.log 2>&1"), 0, 'promtool: the rules')
  or diag(slurp_file("$dir/check.log"));
is(system("promtool test rules '$top/test/monitoring/alerts_test.yaml' >$dir/check.log 2>&1"), 0,
	'promtool: the rules, by their true times')
  or diag(slurp_file("$dir/check.log"));
my $prometheus = serve('prometheus',
	[ 'prometheus', "--config.file=$config", "--storage.tsdb.path=$dir/data", '--web.listen-address=ADDRESS' ]);
wait_for { $http->get("$prometheus/-/ready")->{success} } 'Prometheus to load its data';

sub api
{
	my ($what, %arguments) = @_;
	my $url = "$prometheus/api/v1/$what";
	my $reply = %arguments ? $http->post_form($url, \%arguments) : $http->get($url);
	my $json = decode_json($reply->{content});

	die "$what: $json->{error}\n" unless $json->{status} eq 'success';
	return $json->{data};
}
sub query { my ($expr) = @_; return @{ api('query', query => $expr)->{result} }; }
sub firing
{
	return join ' ', sort map { $_->{labels}{alertname} } grep { $_->{state} eq 'firing' } @{ api('alerts')->{alerts} };
}
sub active { return join ' ', sort map { $_->{labels}{alertname} } @{ api('alerts')->{alerts} }; }

#
# No alert as long as all is well
#
wait_for { query('ddblock_workers') } 'the first scrape';
my $since = time;
my $round = 0;
load('load ' . $round++) while time < $since + 12;
wait_for { active() eq '' } 'the end of the alert on metrics before the first';
is(active(), '', 'no alert is pending or firing under load');

#
# The alerts' names are in the page, and vice versa; so are the metrics in the exporters
#
my @alerts = map { @{ $_->{rules} } } @{ api('rules')->{groups} };
my @names = sort map { $_->{name} } @alerts;
is(join(' ', sort $page =~ /^\| `(DDBlock\w+)` \|/mg), "@names", 'the page explains each alert');
is(join(' ', grep { $_->{health} ne 'ok' } @alerts), '', 'no rule has an error');

#
# Each alert fires when its condition is made true
#
my %fired;
sub fires
{
	my ($alert, $cause, %options) = @_;
	my %others = map { $_ => 1 } $alert, @{ $options{with} // [] };

	unlike(active(), qr/\b$alert\b/, "$alert is quiet before");
	$cause->();
	wait_for { $cause->() if $options{again}; firing() =~ /\b$alert\b/ } $alert;
	like(firing(), qr/\b$alert\b/, '... and fires when it should');
	is(join(' ', grep { !$others{$_} } split / /, firing()), '', '... and no other one');
	$fired{$alert} = 1;
	return;
}
sub quiet { wait_for { active() eq '' } 'the end of all alerts'; return; }

# Nobody works on a job; then it is tried too often
fires('DDBlockJobsWaitLong', sub { $sessions[0]->query_safe(q{SELECT ddb_queue_push('mail', 'r', '1')}) });
fires('DDBlockJobDead', sub {
	my $next = q{SELECT count(*) FROM ddb_queue_claim('mail', max_attempts => 1)};

	$sessions[0]->query_safe($next);
	$sessions[0]->query_safe(q{SELECT ddb_queue_fail('mail', 'r', 1, 'no', '0')});
	$sessions[0]->query_safe($next) }, with => ['DDBlockJobsWaitLong']);
$node->safe_psql('postgres', q{SELECT ddb_queue_push_on_commit('mail', 'r', '1')});
fires('DDBlockJobsWaitLong', sub { });
$node->safe_psql('postgres', 'DELETE FROM ddb_outbox');
quiet;

$sessions[0]->query_safe(q{SELECT ddb_lock_acquire('waited for', lease => '1h')});
$sessions[1]->send(q{SELECT ddb_lock_acquire('waited for')});
wait_for_waiters($node, 'waited for', 1);
fires('DDBlockWaitsLong', sub { });
$sessions[0]->query_safe(q{SELECT ddb_lock_release('waited for')});
$sessions[1]->result;
$sessions[1]->query_safe(q{SELECT ddb_lock_release('waited for')});
quiet;

fires('DDBlockLeasesNearlyUsed', sub {
	$sessions[2]->query_safe(q{SELECT count(ddb_lock_acquire('many ' || n)) FROM generate_series(1, 14) AS n}) });
$sessions[2]->query_safe('SELECT ddb_lock_release_all()');
quiet;

sub try_once { $node->psql('postgres', q{SET statement_timeout = '300ms'; SELECT ddb_lock_info('x')}); return; }

# Refused
sub refuse
{
	my ($type) = @_;
	proxy->fault('error', count => -1, status => 400, type => "com.amazonaws.dynamodb.v20120810#$type");
	return;
}
refuse('ProvisionedThroughputExceededException');
fires('DDBlockThrottled', \&try_once, again => 1);
proxy->clear_faults;
quiet;
refuse('AccessDeniedException');
fires('DDBlockRequestsFail', \&try_once, again => 1);
proxy->clear_faults;
quiet;

# Unreachable.  The first seconds have errors and replies, which may do for a moment.
proxy->stop;
fires('DDBlockUnreachable', \&try_once, again => 1, with => ['DDBlockRequestsFail']);
proxy->restart;
load('load ' . $round++);
quiet;

# The credentials are not renewed.  DynamoDB Local knows no expiry.
fires('DDBlockCredentialsExpire', sub {
	$sources->set(lifetime_s => 2);
	$node->reload;
	wait_for { $node->safe_psql('postgres', q{SELECT credentials_expire_at < clock_timestamp()
		+ interval '3 s' FROM ddb_status}) eq 't' } 'credentials for 2 s';
	$sources->set(status => 500) });
$sources->set(status => 0, lifetime_s => 3600);
$node->reload;
quiet;

# Lost
$sessions[0]->query_safe(q{SELECT ddb_lock_acquire('to lose', lease => '2s')});
fires('DDBlockLeaseLost', sub { dynamodb->delete_item('to lose') });
$sessions[0]->ask(q{SELECT ddb_lock_release('to lose')});

#
# Every expression of the dashboard has data; every panel says what it shows
#
my $dashboard = decode_json(slurp_file("$files/grafana.json"));
my (%ids, %used);
my $panels = 0;
load('load ' . $round++) foreach 1 .. 5;
wait_for { query('increase(ddblock_operation_requests_total[5s]) > 0') } 'the load';
foreach my $panel (@{ $dashboard->{panels} })
{
	my $title = $panel->{title};

	$panels++;
	ok(!$ids{ $panel->{id} }++, "panel \"$title\" has an id of its own");
	like($panel->{type}, qr/^(timeseries|stat)$/, '... is no plugin');
	like($panel->{description}, qr/^[A-Z].*\.$/, '... has a description');
	like($panel->{fieldConfig}{defaults}{unit}, qr/^\w+$/, '... a unit');
	is($panel->{datasource}{uid}, '${datasource}', '... and the data source of the variable');
	foreach my $target (@{ $panel->{targets} })
	{
		my $expr = $target->{expr};

		like($expr, qr/\{instance=~"\$instance"\}/, '... looks at the chosen instances');
		$used{$_} = 1 foreach $expr =~ /\b(ddblock_\w+)/g;
		$expr =~ s/\$instance\b/.*/g;
		$expr =~ s/\$__rate_interval\b/1m/g;
		$expr =~ s/\$__range\b/5m/g;
		ok(scalar(grep { $_->{value}[1] =~ /^-?[\d.]+(e[-+]?\d+)?$/ } query($expr)), "... has data: $target->{expr}");
	}
}
cmp_ok($panels, '>', 8, 'that was the whole dashboard');
my ($variable) = grep { $_->{name} eq 'instance' } @{ $dashboard->{templating}{list} };
my ($series, $label) = $variable->{query}{query} =~ /^label_values\((\w+), (\w+)\)$/;
is(join(' ', map { $_->{metric}{$label} } query($series)), $address, 'the variable "instance" has the instance');

#
# Metrics that an expression names, though another part of it had data
#
$used{$_} = 1 foreach map { $_->{query} =~ /\b(ddblock_\w+)/g } @alerts;
my %known = map { s/\{.*//r => 1 } keys %metrics;
is(join(' ', grep { !$known{$_} } sort keys %used), '', 'each metric in an expression exists');
is(join(' ', grep { !$used{$_} } sort keys %known), '', 'each metric is used');

#
# No worker; no server
#
$_->quit foreach @sessions;
quiet;
$node->append_conf('postgresql.conf', "max_worker_processes = 0\n");
fires('DDBlockWorkerNotRunning', sub { $node->restart });
fires('DDBlockMetricsMissing', sub { $node->stop });
is(join(' ', sort keys %fired), "@names", 'each alert has fired');
$node->append_conf('postgresql.conf', "max_worker_processes = 8\n");
$node->start;
nothing_held_ok;
done_testing;
