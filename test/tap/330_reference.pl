# The README's reference against the server: functions, their arguments and results,
# columns, settings with unit, default and context.

use DDBLock::Test;
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $readme = slurp_file(abs_path(dirname(__FILE__) . '/../../README.md'));
my $node = new_cluster('one', table => 0);

# The rows of the first table after a text, as lists of their cells.
sub table_after
{
	my ($text) = @_;
	my ($rows) = $readme =~ /\Q$text\E.*?^\|---[^\n]*\n((?:\|[^\n]*\n)+)/ms
	  or die "no table after: $text\n";

	return map { [ map { s/^ +| +$//gr } (split /(?<!\\)\|/)[ 1 .. 5 ] ] } split /\n/, $rows;
}

sub plain { my ($cell) = @_; return $cell =~ s/`//gr; }
sub ask { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }
sub lines { return join "\n", sort @_; }

#
# Functions
#
my @functions;
foreach my $row (table_after('### Functions'))
{
	my ($signatures, $result) = map { plain($_) } @$row[ 0, 1 ];

	my @results = split /, /, $result;

	# Two of them have the arguments of their siblings, and perhaps each its result.
	foreach my $signature (split /(?<=\)), /, $signatures)
	{
		$result = shift @results // $result;
		push @functions, $signature =~ s/^(ddb_xact_\w+acquire(?:_shared|_all)?)\(…\)$/$1/r . " $result";
	}
}
my $list = ask(q{
	SELECT CASE WHEN proname ~ '^ddb_xact' THEN proname
			ELSE format('%s(%s)', proname, regexp_replace(regexp_replace(pg_get_function_arguments(oid),
				',? ?OUT .*$|\mIN ', '', 'g'), '::text(\[\])?', '', 'g')) END
		|| ' ' || CASE WHEN prokind = 'p' THEN '(CALL)' WHEN prorettype <> 'record'::regtype
				THEN replace(prorettype::regtype::text, 'timestamp with time zone', 'timestamptz')
			WHEN proretset THEN 'records' ELSE 'record' END
	FROM pg_proc WHERE proname ~ '^ddb_' AND prorettype <> 'trigger'::regtype AND proname NOT IN ('ddb_locks', 'ddb_stats', 'ddb_operations',
		'ddb_status', 'ddb_leaderships')});
is(lines(@functions), lines(map { s/::(interval|bytea|bigint|jsonb)//gr } split /\n/, $list),
	'functions, arguments, results');

#
# Columns
#
sub columns
{
	return lines(map { my $row = $_; map { s/^ +//r } split /,/, plain($row->[0]) } @_);
}
is(columns(table_after('`ddb_lock_info()` returns one row')),
	lines(split /\n/, ask(q{SELECT unnest(proargnames[2:]) FROM pg_proc WHERE proname = 'ddb_lock_info'})),
	'columns of ddb_lock_info()');
foreach my $view (qw(ddb_locks ddb_leaderships ddb_stats ddb_operations ddb_status))
{
	is(columns(table_after("**`$view`**")),
		lines(split /\n/, ask("SELECT attname FROM pg_attribute
			WHERE attrelid = '$view'::regclass AND attnum > 0")),
		"columns of $view");
}

#
# Settings.  Those that are in no list have no unit, no default and this context.
#
my %context = ('server start' => 'postmaster', 'reload' => 'sighup', 'session' => 'user', 'session start' => 'backend',
	'superuser' => 'superuser', 'reload, superuser' => 'sighup');
my %seconds = (s => 1, min => 60, h => 3600);
my @settings;
foreach my $row (table_after('### Settings'))
{
	my ($name, $unit, $default, $context) = map { plain($_) } @$row[ 0 .. 3 ];

	$default =~ s/:.*//;
	$default = $1 * $seconds{$2} * ($unit eq 'ms' ? 1000 : 1) if $default =~ /^(\d+) (s|min|h)$/;
	push @settings, join '|', $name, $unit, $default, $context{$context} // "unknown: $context";
}
my $secrets = join "\n", map { "ddblock.$_|||sighup" } qw(access_key_id secret_access_key session_token);
ask("SHOW ddblock.$_") foreach qw(access_key_id secret_access_key session_token);
is(lines(@settings), lines(split(/\n/, ask(q{SELECT name, unit, boot_val, context FROM pg_settings
		WHERE name ~ '^ddblock\.'})), split(/\n/, $secrets)),
	'settings');
cmp_ok(scalar @settings, '>', 20, 'all of them');
cmp_ok(scalar @functions, '>', 10, 'and not just a few functions');

done_testing;
