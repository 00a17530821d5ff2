# ddblock.lock_prefix: each function that takes a name, and each kind of row that a view has.  The
# functions and their arguments come from pg_proc, so that a new one is not left out.

use DDBLock::Test;

my $node = new_cluster('one', through => proxy);

$node->safe_psql('postgres', 'SELECT ddb_queue_table_create()');

# What names a lock, a resource, or some of them: allowed under the prefix, and not.
my %named = (
	name => [ q{'queue/mine/r'}, q{'other'} ],
	names => [ q{'{queue/mine/r}'}, q{'{queue/mine/r,other}'} ],
	prefix => [ q{'queue/mine/r'}, q{'other'} ],
	queue => [ q{'mine'}, q{'other'} ],
	resource => [ q{'r'}, q{'other'} ],
	of_resource => [ q{'r'}, q{'other'} ],
	resources => [ q{'{r}'}, q{'{r,other}'} ]);

# Texts that name nothing of that kind, and what else functions want.
my %other = (
	attributes => q{'{}'}, error => q{'no'}, id => q{'i'}, ids => q{'{i}'}, payload => q{'1'},
	payloads => q{'{1}'}, max_permits => 3, token => 1, number => 1, unusable => q{'0'}, at_most => q{'1 hour'},
	less_than => q{'1 ms'}, older_than => q{'1 day'}, pushed_at => 'now()', role => q{'pg_monitor'}, request => q{'read'});

# These concern only what the session holds already, so the prefix does not matter.
my %own = map { $_ => 1 } qw(
	ddb_lock_detach ddb_lock_outlive ddb_lock_release ddb_lock_remaining ddb_lock_renew ddb_lock_require ddb_lock_token);

# Function, argument, its type, whether it has a default
my %functions;
foreach my $row (split /\n/, $node->safe_psql('postgres', q{
	SELECT proname, CASE WHEN prokind = 'p' OR probin IS NULL THEN proname ELSE prosrc END, argument, format_type(type, NULL), number > pronargs - pronargdefaults, prokind
	FROM pg_proc JOIN pg_depend ON objid = pg_proc.oid AND classid = 'pg_proc'::regclass
	JOIN pg_extension ON refobjid = pg_extension.oid AND extname = 'ddblock',
	unnest(proargnames[1 : pronargs], proargtypes::oid[]) WITH ORDINALITY AS a(argument, type, number)
	WHERE deptype = 'e' AND prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) ORDER BY 2, number}))
{
	my ($function, $symbol, $argument, $type, $default, $kind) = split /\|/, $row;

	push @{ $functions{$symbol}{arguments} }, { name => $argument, optional => $default eq 't' };
	$functions{$symbol}{name} = $function;
	$functions{$symbol}{is_procedure} = $kind eq 'p';
	ok($named{$argument} || $other{$argument}, "$function: \"$argument\" names a lock, or something else")
	  if $type =~ /^(text|name|character varying|character|"char")(\[\])?$/;
}

# The named arguments that a call must have, and this one.
sub call_of
{
	my ($function, $tested, $is_foreign) = @_;
	my @arguments = grep { !$_->{optional} || $_->{name} eq $tested } @{ $function->{arguments} };
	my $has_queue = grep { $_->{name} eq 'queue' } @arguments;
	my @values;

	foreach my $argument (map { $_->{name} } @arguments)
	{
		my $value = $named{$argument} ? $named{$argument}[ $is_foreign && $argument eq $tested ] : $other{$argument};

		$value = $named{name}[ $is_foreign ] if $argument eq 'resource' && !$has_queue;
		push @values, qq{"$argument" => } . ($value // die "a value for $argument of $function->{name}\n");
	}
	return "CALL $function->{name}(" . join(', ', @values, q{wait => '10 ms'}) . ')' if $function->{is_procedure};
	return "SELECT count(*) FROM $function->{name}(" . join(', ', @values) . ')';
}

sub error_under
{
	my ($prefix, $sql) = @_;
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET ddblock.lock_prefix = '$prefix'; $sql");

	return $stderr;
}

my $refused = qr/ERROR: +42501: permission denied for (lock|resource|prefix) .*\nDETAIL: +Names in this session must begin with/;
my $tested = 0;
foreach my $function (map { $functions{$_} } sort keys %functions)
{
	my $has_queue = grep { $_->{name} eq 'queue' } @{ $function->{arguments} };

	foreach my $argument (grep { $named{$_} } map { $_->{name} } @{ $function->{arguments} })
	{
		my $prefix = $has_queue && $argument ne 'queue' ? 'queue/mine/r' : 'queue/mine/';
		my $foreign = call_of($function, $argument, 1);

		$tested++;
		unlike(error_under($prefix, call_of($function, $argument, 0)), qr/42501/, "$function->{name}, \"$argument\" is allowed");
		if ($own{ $function->{name} } && $foreign !~ /"token"/)
		{
			unlike(error_under($prefix, $foreign), qr/42501/, "$function->{name}, \"$argument\" need not be");
		}
		else
		{
			like(error_under($prefix, $foreign), $refused, "$function->{name}, \"$argument\" is not allowed");
		}
	}
}
cmp_ok($tested, '>', 60, 'so many arguments');
like(error_under('queue/mine/', q{SELECT ddb_lock_release_detached('other', token => 1)}), $refused,
	'nor is a lock that another session has left to the cluster');
is($node->safe_psql('postgres', 'SELECT count(*) FROM ddb_locks'), '0', 'what is refused leaves nothing held');

#
# Rows of views: of each kind one under the prefix, and one that is not
#
$node->append_conf('postgresql.conf', "ddblock.leaderships = 'mine/leadership, other/leadership'\n");
$node->reload;
my $control = session($node);
my ($holder, $joins) = map { session($node) } 1, 2;
my (@busy, @lost);
$holder->query_safe('BEGIN');
proxy->fault('drop', operation => 'UpdateItem', match => '"(mine|other)/acquiring"', count => -1);
foreach my $side ('mine', 'other')
{
	my $token = $holder->query_safe("SELECT ddb_lock_acquire('$side/session')");

	$joins->query_safe("SELECT ddb_lock_join('$side/session', $token)");
	$holder->query_safe(qq{SELECT ddb_xact_lock_acquire('$side/transaction'), ddb_lock_acquire_shared('$side/shared'),
		ddb_semaphore_acquire('$side/semaphore', 2), ddb_lock_acquire('$side/both'), ddb_xact_lock_acquire('$side/both'),
		ddb_lock_acquire('$side/detached') > 0 AND ddb_lock_detach('$side/detached', '1h') > 0});
	$joins->query_safe(qq{SELECT ddb_lock_acquire('$side/lost'), ddb_lock_acquire('$side/releasing')});
	dynamodb->delete_item("$side/lost");
	push @busy, session($node);
	$busy[-1]->send("SELECT ddb_lock_acquire('$side/session')");	# waits
	wait_for_waiters($node, "$side/session", 1);
	push @busy, session($node);
	$busy[-1]->send("SELECT ddb_lock_acquire('$side/acquiring', wait => '1 h')");
}
proxy->fault('drop', operation => 'UpdateItem', match => '"(mine|other)/releasing"', count => -1);
$joins->query_safe(qq{SELECT ddb_lock_release('$_/releasing', nowait => true)}) foreach 'mine', 'other';
my $rows = q{SELECT name, scope, state, joined FROM ddb_locks ORDER BY 1, 2, 3, 4};
my @kinds = ('acquiring||acquiring|', 'both|session+transaction|held|f', 'detached|detached|held|f', 'leadership|leadership|held|f',
	'lost|session|lost|f', 'releasing||releasing|', 'semaphore|session|held|f', 'session|session|held|f', 'session|session|held|t',
	'session||waiting|', 'shared|session|held|f', 'transaction|transaction|held|f');
my $all;
wait_for { ($all = $control->query_safe($rows)) eq join "\n", map { my $side = $_; map { "$side/$_" } @kinds } 'mine', 'other' }
'a row of each kind';
$control->query_safe(q{SET ddblock.lock_prefix = 'mine/'});
is($control->query_safe($rows), join("\n", map { "mine/$_" } @kinds), 'ddb_locks has what is under the prefix, and nothing else');
is($control->query_safe('SELECT name FROM ddb_leaderships'), 'mine/leadership', '... ddb_leaderships, too');
is($control->query_safe(q{SELECT DISTINCT starts_with(name, 'mine/') FROM ddb_lock_list()}), 't', '... and ddb_lock_list()');
$control->query_safe('RESET ddblock.lock_prefix');
proxy->clear_faults;
$_->quit foreach $holder, $joins, $control;
$_->result foreach @busy;
$_->quit foreach @busy;

done_testing;
