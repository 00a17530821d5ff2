# The pages against the server and the source: functions with their arguments and results,
# columns, settings with unit, default and context, SQLSTATEs.  What a page lacks fails, and
# what only a page has.

use DDBLock::Test;
use DDBLock::Pages;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use List::Util qw(uniq);

my $top = abs_path(dirname(__FILE__) . '/../..');
my $node = new_cluster('one', table => 0);
my @views = qw(ddb_leaderships ddb_locks ddb_operations ddb_stats ddb_status);

sub ask { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }
sub lines { return join "\n", sort @_; }

# The names in the first cells of these tables
sub first_cells { return map { split /, */, plain($_->[0]) } map { @$_[ 1 .. $#$_ ] } @_; }

#
# Functions
#
my %signatures;
my @functions = sections('doc/functions.md');
my %common = map { $_ => 1 } map { first_cells(tables($_->{text})) }
  grep { $_->{heading} eq 'Arguments that many functions have' } @functions;
foreach my $section (@functions)
{
	foreach my $block (grep { $_->{info} eq '' } @{ $section->{blocks} })
	{
		foreach my $signature (split /\n(?=ddb_)/, $block->{text} =~ s/\n +/ /gr)
		{
			next unless $signature =~ /^ddb_/;
			$signature =~ s/\s+\z//;
			die "twice: $signature\n" if $signatures{$signature};
			$signatures{$signature} = $section;
		}
	}
}
my $server = ask(qq{
	SELECT format('%s(%s)', proname, regexp_replace(regexp_replace(pg_get_function_arguments(oid),
				',? ?OUT .*\$|\\mIN ', '', 'g'), '::[a-z ]+(\\[\\])?', '', 'g'))
		|| CASE WHEN prokind = 'p' THEN '' WHEN prorettype <> 'record'::regtype THEN ' → ' || prorettype::regtype::text
			WHEN proretset THEN ' → setof record' ELSE ' → record' END
	FROM pg_proc WHERE proname ~ '^ddb_' AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
		AND proname <> ALL (string_to_array('@views', ' ')) AND obj_description(oid, 'pg_proc') !~ '^For ddb_'});
utf8::decode($server);
is(lines(keys %signatures), lines(map { s/timestamp with time zone/timestamptz/gr } split /\n/, $server), 'functions, arguments, results');

foreach my $signature (sort keys %signatures)
{
	my ($name, $arguments, $result) = $signature =~ /^(\w+)\((.*)\)(?: \x{2192} (.*))?$/ or die "not a signature: $signature\n";
	my $section = $signatures{$signature};
	my ($header) = grep { defined } map { $_->[0][0] eq 'argument' ? $_ : undef } tables($section->{text});
	my %here = map { $_ => 1 } $header ? first_cells($header) : ();
	my @unknown = grep { !$common{$_} && !$here{$_} } $arguments =~ /(?:^|, )(\w+) /g;

	is("@unknown", '', "$name: its arguments are explained");
	ok((grep { $_->{text} =~ /^one=# / } @{ $section->{blocks} }), "$name: an example");
	next if ($result // '') !~ /record/;
	my ($columns) = grep { plain($_->[0][0]) =~ /^column(?: of \Q$name\E\(\))?$/ } tables($section->{text});
	is(lines(first_cells($columns)),
		lines(split /\n/, ask("SELECT unnest(proargnames[pronargs + 1:]) FROM pg_proc WHERE proname = '$name'")), "$name: its columns");
}
my %in_readme = map { $_ => 1 } page('README.md') =~ /\b(ddb_\w+)/g;
my %known = map { $_ => 1 } split /\n/, ask(q{SELECT proname FROM pg_proc WHERE proname ~ '^ddb_' UNION SELECT relname FROM pg_class UNION SELECT tgname FROM pg_trigger});

is(lines(grep { !$in_readme{$_} && !/^ddb_xact|_try_|_await/ } map { /^(\w+)/ } keys %signatures), '', 'README names each function, or its family');

# No page names what is not there.
foreach my $page (grep { m{^(?:README|doc/.*|src/.*)\.md$} } pages)
{
	my @unknown = grep { !$known{$_} && !/_$/ } page($page) =~ /\b(ddb_\w+)\b/g;
	is(lines(uniq @unknown), '', "$page: all functions and views exist");
}

#
# Views
#
my %views = map { $_->{heading} => $_ } grep { $_->{heading} =~ /^ddb_/ } sections('doc/views.md');
is(lines(keys %views), lines(@views), 'views');
# ddb_remote is for other databases: see doc/recipes/managed.md.
is(ask(q{SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class WHERE relkind = 'v' AND relname ~ '^ddb_' AND relname <> 'ddb_remote'}), "@views", '... all of them');
foreach my $view (sort keys %views)
{
	my ($columns) = tables($views{$view}{text});

	is(lines(map { first_cells($_) } $columns), lines(split /\n/, ask("SELECT attname FROM pg_attribute
			WHERE attrelid = '$view'::regclass AND attnum > 0")), "columns of $view");
}
my ($operations) = $views{ddb_operations}{text} =~ /^(The operations on .*?)\n\[/ms;
is(lines($operations =~ /`(\w+)`/g), lines(split /\n/, ask('SELECT operation FROM ddb_operations')), 'operations');

#
# Settings.  Those that are in no list have no unit, no default and this context.
#
my %context = ('server start' => 'postmaster', 'reload' => 'sighup', 'session' => 'user', 'session start' => 'backend',
	'superuser' => 'superuser', 'reload, hidden' => 'sighup');
my %seconds = (s => 1, min => 60, h => 3600);
my @settings;
foreach my $row (map { @$_[ 1 .. $#$_ ] } tables(page('doc/settings.md')))
{
	my ($name, $unit, $default, $context) = map { plain($_) } @$row[ 0 .. 3 ];

	$default =~ s/:.*//;
	$default = $1 * $seconds{$2} * ($unit eq 'ms' ? 1000 : 1) if $default =~ /^(\d+) (s|min|h)$/;
	push @settings, join '|', $name, $unit, $default, $context{$context} // "unknown: $context";
}
my $secrets = join "\n", map { "ddblock.$_|||sighup" } qw(access_key_id proxy secret_access_key session_token);
ask("SHOW ddblock.$_") foreach qw(access_key_id proxy secret_access_key session_token);
my @server = (split(/\n/, ask(q{SELECT name, unit, boot_val, context FROM pg_settings WHERE name ~ '^ddblock\.'})), split /\n/, $secrets);
is(lines(@settings), lines(@server), 'settings');
my %setting = map { /^(ddblock\.\w+)/ => 1 } @server;
foreach my $page (grep { m{^(?:README|doc/.*|src/.*)\.md$} && !m{^doc/packaging} } pages)
{
	my @unknown = grep { !$setting{$_} && !/\.(?:conf|control|so|spec|json|ddb_\w+)$/ } page($page) =~ /(?<!provides\.)\b(ddblock\.[a-z_]+)\b/g;
	is(lines(uniq @unknown), '', "$page: all settings exist");
}

#
# SQLSTATEs: those of the source's macros, but for what is only recognized (==), of DynamoDB's errors, and of the script.  PL/pgSQL
# knows them by almost the same names.
#
ask(q{CREATE FUNCTION sqlstate_of(condition text) RETURNS text LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION USING ERRCODE = condition; EXCEPTION WHEN query_canceled OR OTHERS THEN RETURN SQLSTATE; END $$});
my %macro = slurp_file("$top/src/shared/errors.h") =~ /^#define (ERRCODE_\w+) MAKE_SQLSTATE\(([^)]*)\)/mg;
tr/A-Z0-9//cd foreach values %macro;
my %raised;
foreach my $name (uniq map { slurp_file($_) =~ /(?<!== )\b(ERRCODE_\w+)/g } glob "$top/src/*/*.[ch]")
{
	my $condition = lc($name =~ s/^ERRCODE_(?:T_R_|E_R_I_E_)?//r);

	$raised{ $macro{$name} // ask("SELECT sqlstate_of('$condition')") } = 1;
}
$raised{$_} = 1 foreach slurp_file("$top/src/dynamo/dynamo_error.c") =~ /"([0-9A-Z]{5})"/g;
$raised{ ask("SELECT sqlstate_of('$_')") } = 1
  foreach grep { defined } map { slurp_file($_) =~ /\bRAISE ([a-z]\w+) USING|\bERRCODE = '(\w+)'/g } glob "$top/ddblock--*.sql";
is(lines(first_cells((tables(page('doc/errors.md')))[0])), lines(keys %raised), 'SQLSTATEs');

cmp_ok(scalar @settings, '>', 20, 'not just a few settings');
cmp_ok(scalar keys %signatures, '>', 50, '... functions');
cmp_ok(scalar keys %raised, '>', 20, '... SQLSTATEs');

done_testing;
