# CREATE EXTENSION in a schema whose owner has planted functions, operators, types and views of
# the names that the install script uses: nothing of the extension refers to them, and the owner
# of a database does not become superuser.

use DDBLock::Test;
use Cwd qw(abs_path);
use File::Basename qw(dirname);

my $node = new_cluster('one');
my ($script) = glob(abs_path(dirname(__FILE__) . '/../..') . '/ddblock--*.sql');
my $text = slurp_file($script);

# Of the script: every word, and every operator, in whatever place.
$text =~ s{/\*.*?\*/|--[^\n]*}{}gs;
my %words = map { lc($_) => 1 } $text =~ /\b([a-z_]\w*)\b/gi;
(my $code = $text) =~ s/'(?:[^']|'')*'//g;
my %operators = map { $_ => 1 } grep { !/^(?::=|%)$/ } $code =~ m{([-+*/<>=~!@#%^&|`?]+)}g;
my $words = join ', ', map { "'$_'" } sort keys %words;
my $operators = join ', ', map { "'$_'" } sort keys %operators;
ok($words{text} && $words{ddb_outbox} && $operators{'>='}, 'the script has words and operators');

$node->safe_psql('postgres', 'CREATE ROLE shop LOGIN; CREATE DATABASE shop OWNER shop');
$node->safe_psql('shop', 'ALTER SCHEMA public OWNER TO shop');

# What this test asks itself must not meet what is planted.
sub catalog_says { my ($sql) = @_; return $node->safe_psql('shop', "SET search_path = pg_catalog; $sql"); }

# As the owner: whatever of this is called says so.
my @owner = (extra_params => [ '-U', 'shop' ], on_error_stop => 1);
my $plant = q{
	SET client_min_messages = warning;
	SET search_path = pg_catalog;
	CREATE FUNCTION public.plant(command text) RETURNS boolean LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE command;
		RETURN true;
	EXCEPTION WHEN invalid_function_definition OR invalid_object_definition OR wrong_object_type
			OR datatype_mismatch OR undefined_object OR duplicate_function OR invalid_parameter_value
			OR syntax_error OR feature_not_supported OR insufficient_privilege THEN
		RETURN false;
	END $$;

	-- The types, and those that the functions take.
	CREATE TEMP TABLE used AS
		SELECT oid, typname, format_type(oid, NULL) AS type FROM pg_type
		WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype = 'b' AND typelem = 0
			AND (typname IN (WORDS) OR format_type(oid, NULL) IN (WORDS) OR typname ~ '^(int[48]|bool|float8|timestamptz|uuid)$');
	-- Functions: as PostgreSQL's own of these names, and others that take anything.
	SELECT count(public.plant(format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L',
			proname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid),
			'BEGIN RAISE ''hostile''; END')))
		FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind = 'f'
			AND proname IN (WORDS);
	SELECT count(public.plant(format('CREATE FUNCTION public.%I(VARIADIC a text[] DEFAULT ''{}'') RETURNS text
			LANGUAGE plpgsql AS %L', word, 'BEGIN RAISE ''hostile''; END')))
		FROM unnest(ARRAY[WORDS]) AS word WHERE word ~ '^ddb_' OR word IN (SELECT proname FROM pg_proc);
	-- Operators: of each pair of types.
	SELECT count(public.plant(format('CREATE FUNCTION public.hostile(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L',
			l.type, r.type, result, 'BEGIN RAISE ''hostile''; END')))
		FROM used l, used r, LATERAL (SELECT CASE WHEN l.type = 'text' OR r.type = 'text' THEN 'text'
			ELSE 'boolean' END AS result) AS of;
	SELECT count(*) FILTER (WHERE public.plant(format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s,
			FUNCTION = public.hostile)', operator, l.type, r.type)))
		FROM used l, used r, unnest(ARRAY[OPERATORS, '||', '=', '>']) AS operator;
	-- Types: domains
	SELECT count(*) FILTER (WHERE public.plant(format('CREATE DOMAIN public.%I AS pg_catalog.%1$I', typname)))
		FROM used;
};
$plant =~ s/WORDS/$words/g;
$plant =~ s/OPERATORS/$operators/g;
my @planted = split /\n/, $node->safe_psql('shop', $plant, @owner);
cmp_ok($_, '>', 9, 'much is planted') foreach @planted;
is(catalog_says(q{SELECT count(*) FROM pg_operator WHERE oprname = '||'
	AND oprleft = 'text'::regtype AND oprright = 'uuid'::regtype AND oprnamespace = 'public'::regnamespace}),
	1, '... also what once made the owner superuser');

$node->safe_psql('shop', 'CREATE EXTENSION ddblock SCHEMA public');

# Its members, and what belongs to them: defaults, constraints, rules, indexes, sequences
my $foreign = q{
	WITH RECURSIVE own AS (
		SELECT classid, objid FROM pg_depend WHERE deptype = 'e'
			AND refclassid = 'pg_extension'::regclass
			AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
		UNION
		SELECT d.classid, d.objid FROM pg_depend d JOIN own
			ON d.refclassid = own.classid AND d.refobjid = own.objid WHERE d.deptype IN ('i', 'a'))
	SELECT pg_describe_object(d.classid, d.objid, d.objsubid) || ' refers to '
			|| pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
	FROM pg_depend d JOIN own USING (classid, objid)
	WHERE (d.refclassid, d.refobjid) NOT IN (SELECT classid, objid FROM own)
		AND d.deptype <> 'e'
		AND (SELECT coalesce(schema, '') FROM pg_identify_object(d.refclassid, d.refobjid, d.refobjsubid)) = 'public'
	ORDER BY 1};
is(catalog_says($foreign), '', 'the extension refers to nothing that was planted');
is(catalog_says(q{SELECT count(*) FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid
	JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = attrelid AND deptype = 'e'
	WHERE typnamespace = 'public'::regnamespace}), 0, '... and no column has a planted type');

# All functions that run as their owner, or run SQL, resolve names in pg_catalog alone.
is(catalog_says(q{SELECT string_agg(proname, ' ') FROM pg_proc JOIN pg_depend
	ON classid = 'pg_proc'::regclass AND objid = pg_proc.oid AND deptype = 'e'
	WHERE prosecdef AND proconfig IS DISTINCT FROM ARRAY['search_path=pg_catalog, pg_temp']
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')}), '',
	'each SECURITY DEFINER function has its own search_path');

# The functions that write to the tables, called by the owner with his names first
my @calls = (q{ddb_queue_push_on_commit('q'::text, 'r'::text, '1'::jsonb)}, q{ddb_fence_check('r'::text, 1::bigint)},
	q{ddb_fence_check_shared('r'::text, 2::bigint)});
is($node->safe_psql('shop', q{SELECT public.ddb_role_setup('of_shop', operator => true)}), '', 'a superuser makes a role');
$node->safe_psql('shop', 'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO shop');
foreach my $call (@calls)
{
	is($node->safe_psql('shop', "SET search_path = pg_catalog; SELECT public.$call", @owner), '', $call);
}
is($node->safe_psql('shop', q{SELECT count(*) FROM public.ddb_outbox WHERE pg_catalog.starts_with(id, 'ddblock#outbox#')}), 1,
	'the outbox has the job, under an id of its own');
like($node->safe_psql('shop', "SELECT * FROM public.$_"), qr/\A[^\n]*\z/, "the view $_")
  foreach qw(ddb_stats ddb_status ddb_leaderships ddb_locks);
nothing_held_ok;
done_testing;
