# Clusters against the DynamoDB double, which does what DynamoDB Local does not:
# it checks signatures, denies actions and throttles; and it breaks in every way it knows.

use DDBLock::Test;
use Time::HiRes qw(time);

delete @ENV{ grep { /^AWS_/ } keys %ENV };
$ENV{AWS_EC2_METADATA_DISABLED} = 'true';
my $secret = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
my $conf = "ddblock.request_timeout = '500ms'\nddblock.retry_timeout = '5s'\n"
  . "ddblock.keep_warm = off\nlog_statement = none\n";
my $plain = new_double(seed => 1);
my $double = new_double(seed => 2, tls => 1,
	credentials => { AKIDONE => $secret, AKIDTWO => 'two' });

sub cluster
{
	my ($name, $through, %settings) = @_;

	return new_cluster($name, through => $through, table => 0,
		conf => $conf . join '', map { "ddblock.$_ = '$settings{$_}'\n" } sort keys %settings);
}

sub nothing_held
{
	my ($through, $what) = @_;

	wait_for { !grep { !exists $_->{isReleased} } $through->items } 'releases';
	pass($what);
	return;
}

#
# Plain and TLS
#
my %keys = (access_key_id => 'AKIDONE', secret_access_key => $secret);
my %nodes = (
	plain => cluster('plain', $plain),
	TLS => cluster('tls', $double, %keys, ca_file => $double->ca_file),
);
foreach my $how (sort keys %nodes)
{
	my $through = $how eq 'TLS' ? $double : $plain;
	my $one = session($nodes{$how});
	my $two = session($nodes{$how});

	$one->query_safe('SELECT ddb_lock_table_create()');
	my $token = $one->query_safe(q{SELECT ddb_lock_acquire('a', data => 'x')});
	is($through->item('a')->{fencingToken}{N}, $token, "$how: a lock is acquired");
	$one->query_safe(q{SELECT ddb_lock_renew('a')});
	$two->send(q{SELECT ddb_lock_acquire('a')});
	wait_for_waiters($nodes{$how}, 'a', 1);
	is($one->query_safe(q{SELECT ddb_lock_release('a')}), 't', 'released');
	cmp_ok($two->result, '>', $token, 'and taken by the next one');
	is($two->query_safe(q{SELECT ddb_lock_release('a')}), 't', 'and released again');
	ok($through->item('a')->{isReleased}, 'which the item tells');
	$_->quit foreach $one, $two;
}
cmp_ok($double->requests('UpdateItem'), '>=', 4, 'all of them signed requests');

# More locks than one batch, held until each of them has been renewed.
my $node = $nodes{TLS};
my $session = session($node);
$session->query_safe(
	q{SELECT count(ddb_lock_acquire('batch' || i, lease => '12s')) FROM generate_series(1, 40) i});
my %versions = map { $_->{key}{S} => $_->{recordVersionNumber}{S} } $double->items;
wait_for
{
	!grep { $_->{key}{S} =~ /^batch/ && $_->{recordVersionNumber}{S} eq $versions{ $_->{key}{S} } }
	  $double->items
}
'renewals';
my $batches = wait_for { $double->requests('BatchExecuteStatement') >= 2 } 'a batch after the check';
ok($batches, 'leases are renewed in batches');
is($session->query_safe('SELECT ddb_lock_release_all()'), 40, 'all are released');
nothing_held($double, 'and free');

#
# Signatures
#
my $wrong = cluster('wrong', $double, %keys, ca_file => $double->ca_file,
	secret_access_key => 'wrong');
like(error_of($wrong, q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*signature/s, 'a wrong secret is refused');
ok($double->refused('InvalidSignatureException') > 0, 'for its signature');
unlike(error_of($wrong, q{SELECT ddb_lock_acquire('b')}), qr/Canonical|\Q$secret\E/,
	'and what should have been signed is shown to nobody');
$wrong->append_conf('postgresql.conf', "ddblock.access_key_id = 'AKIDNONE'\n");
$wrong->reload;
wait_for { error_of($wrong, q{SELECT ddb_lock_acquire('b')}) =~ /28000: .*security token/s }
'the reload';
pass('so is a key that nobody knows');

$double->credentials('AKIDTWO', token => 'a/long+token==');
my $temporary = cluster('temporary', $double, ca_file => $double->ca_file,
	access_key_id => 'AKIDTWO', secret_access_key => 'two', session_token => 'a/long+token==');
my $guest = session($temporary);
like($guest->query_safe(q{SELECT ddb_lock_acquire('token', lease => '1h')}), qr/^\d+$/,
	'a session token is sent and signed');
$double->credentials('AKIDTWO', state => 'expired');
like($guest->error_of(q{SELECT ddb_lock_acquire('b')}),
	qr/ERROR: +28000: .*expired/s, 'when it has expired, that is told');
$double->credentials('AKIDTWO', state => 'valid', token => 'another');
$temporary->append_conf('postgresql.conf', "ddblock.session_token = 'another'\n");
$temporary->reload;
wait_for { $guest->ask(q{SELECT ddb_lock_try_acquire('b')}) eq 't' } 'the new token';
pass('a new one is taken up');
is($guest->query_safe(q{SELECT ddb_lock_release_all()}), 2, 'with what was held before');
$guest->quit;

my ($requests, $errors) = map { stat_of($node, 'acquire', $_) } qw(requests errors);
$double->command(command => 'clock', skew_s => 3600);
like($session->query_safe(q{SELECT ddb_lock_acquire('skew')}), qr/^\d+$/,
	"a clock that is an hour behind DynamoDB's is made up for");
is(stat_of($node, 'acquire', 'requests') - $requests . ' ' . (stat_of($node, 'acquire', 'errors') - $errors),
	'2 1', '... by one repetition, signed for the time that the refusal has told');
is($session->query_safe(q{SELECT ddb_lock_release('skew')}), 't', 'as long as it is');
$double->command(command => 'clock', skew_s => 0);

#
# Each kind of fault, once
#
my %options = (
	duplicate => { delay_ms => 100 },
	late_apply => { delay_ms => 700 },
	late_reply => { delay_ms => 700 },
	partition => { count => -1 },
	reset => { applied => JSON::PP::true },
	http_500 => { applied => JSON::PP::true },
	http_503 => { applied => JSON::PP::true },
);
my @kinds = qw(drop lose_reply duplicate late_apply late_reply reset http_500 http_503
  throttle conflict truncate corrupt wrong_crc partition expired);

foreach my $kind (@kinds)
{
	my %more = %{ $options{$kind} // {} };

	# A reset is for connections that have been used before.
	$session->query_safe(q{SELECT held FROM ddb_lock_info('a')});
	$double->fault($kind, operation => 'UpdateItem', key => 'AKIDONE', %more);
	$session->send(qq{SELECT ddb_lock_acquire('$kind', lease => '1h')});
	wait_for { $double->struck($kind) > 0 } $kind;
	$double->clear_faults if $kind eq 'partition';
	my $token = $session->result;
	is($double->item($kind)->{fencingToken}{N}, $token, "$kind: the lock is acquired");

	$double->fault($kind, operation => 'UpdateItem', key => 'AKIDONE', %more)
	  unless $kind eq 'partition';
	is($session->query_safe(qq{SELECT ddb_lock_release('$kind')}), 't', 'and released');
	wait_for { $double->item($kind)->{isReleased} } "the release after $kind";
}

# A success that shows nothing is not DynamoDB's: no lock is granted or let go for it.
$double->fault('empty', operation => 'UpdateItem', key => 'AKIDONE');
like($session->error_of(q{SELECT ddb_lock_acquire('empty', lease => '1h')}),
	qr/ERROR: +XX000: .*unexpected reply, HTTP 200: \{\}/s, 'empty: the session is told, and has no token');
is($session->query_safe(q{SELECT ddb_lock_remaining('empty') IS NULL}), 't', 'nor the lock');
like($session->query_safe(q{SELECT ddb_lock_acquire('empty', lease => '1h')}), qr/^\d+$/, 'then it gets it');
ok($double->item('empty')->{holder}, 'as the table shows');
$session->query_safe(q{SELECT ddb_lock_release('empty')});

# A late copy comes when all is over, and changes nothing.
$double->fault('late_apply', operation => 'UpdateItem', delay_ms => 1500);
$session->query_safe(q{SELECT ddb_lock_acquire('late')});
$session->query_safe(q{SELECT ddb_lock_release('late')});
my $item = $double->item('late');
wait_for { !$double->later } 'the late copy';
is_deeply($double->item('late'), $item, 'a copy that comes after the release changes nothing');

# In batches: single statements and whole calls.
$session->query_safe(
	q{SELECT count(ddb_lock_acquire('batch' || i, lease => '12s')) FROM generate_series(1, 10) i});
my $before = $double->requests('BatchExecuteStatement');
$double->fault($_, operation => 'BatchExecuteStatement', probability => 0.3)
  foreach 'throttle', 'http_500';
wait_for { $double->requests('BatchExecuteStatement') > $before + 10 } 'batches';
$double->clear_faults;
is($session->query_safe('SELECT ddb_lock_release_all()'), 10,
	'leases outlive batches that fail, in part or as a whole');

# A slow handshake: with new connections only.
$double->fault('slow_tls', count => 2, delay_ms => 300);
my $late = cluster('late', $double, %keys, ca_file => $double->ca_file);
my $started = time;
like($late->safe_psql('postgres', q{SELECT ddb_lock_acquire('slow')}), qr/^\d+$/,
	'a slow handshake is waited for');
cmp_ok($double->struck('slow_tls'), '>', 0, 'if it was one');

#
# Throttling that does not end
#
$node->append_conf('postgresql.conf', "ddblock.retry_timeout = '3s'\nddblock.request_timeout = '3s'\n");
$node->reload;
wait_for { $session->query_safe('SHOW ddblock.retry_timeout') eq '3s' } 'the reload';
foreach my $type (
	qw(ProvisionedThroughputExceededException ThrottlingException RequestLimitExceeded))
{
	$double->fault('throttle', count => -1, key => 'AKIDONE', error => $type);
	like($session->error_of(q{SELECT ddb_lock_acquire('c')}), qr/ERROR: +53400: /,
		"$type: throttled for too long");
	$double->clear_faults;
}

# It is the reason of a time-out, unless somebody was seen to have the lock for most of the wait.
my $holder = session($late);
$holder->query_safe(q{SELECT ddb_lock_acquire('c')});
my $wait = q{SELECT ddb_lock_acquire('c', wait => '%s')};
$double->fault('throttle', count => -1, key => 'AKIDONE');
like($session->error_of(sprintf $wait, '1s'), qr/ERROR: +53400: /, 'throttled as long as it waited');
$double->clear_faults;
$session->send(sprintf $wait, '6s');
wait_for {
	$node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
		WHERE query ~ '^SELECT ddb_lock_acq' AND clock_timestamp() - query_start > '4s'}) > 0
} 'most of the wait';
$double->fault('throttle', count => -1, key => 'AKIDONE');
$session->result;
like($session->messages, qr/ERROR: +55P03: .*held by owner "late/s, 'throttled at the end of the wait');
$double->clear_faults;
$holder->query_safe(q{SELECT ddb_lock_release('c')});
$double->fault('drop', count => -1, key => 'AKIDONE');
like($session->error_of(sprintf $wait, '4s'), qr/ERROR: +08006: /,
	'no reply while it waited, whoever had the lock before');
$double->clear_faults;
$holder->quit;

$double->command(command => 'capacity', writes_per_s => 0.1);
$session->query_safe(q{SELECT ddb_lock_acquire('d', lease => '1h')});
like($session->error_of(q{SELECT ddb_lock_renew('d')}),
	qr/ERROR: +53400: /, 'an item takes no more writes than it has capacity for');
like($session->query_safe(q{SELECT ddb_lock_acquire('e', lease => '1h')}), qr/^\d+$/,
	'another one is not concerned');
$double->command(command => 'capacity', writes_per_s => 0);

#
# Policies: an action denied refuses the requests that need it, and no other
#
my %table = (TableName => 'policy');
my @schema = (KeySchema => [ { AttributeName => 'key', KeyType => 'HASH' } ]);
my %index = (IndexName => 'byKey');
my %query = (KeyConditionExpression => '#k = :k', ExpressionAttributeNames => { '#k' => 'key' },
	ExpressionAttributeValues => { ':k' => { S => 'a' } });

sub item_of { return { %table, Key => { key => { S => $_[0] } } }; }
sub statement { return { Statement => "$_[0] WHERE \"key\" = ?", Parameters => [ { S => 'a' } ] }; }

my $select = statement('SELECT * FROM "policy"');
my $transaction = [ TransactWriteItems => { TransactItems => [
	{ Put => { %table, Item => { key => { S => 'b' } } } }, { Delete => item_of('c') },
	{ Update => { %{ item_of('d') }, UpdateExpression => 'REMOVE n' } },
	{ ConditionCheck => { %{ item_of('e') }, ConditionExpression => 'attribute_not_exists(n)' } } ] } ];
my $batch = [ BatchExecuteStatement =>
	{ Statements => [ map { statement("UPDATE \"$_\" SET n = 1") } 'policy', 'missing' ] } ];
my @asked = (
	[ CreateTable => { %table, BillingMode => 'PAY_PER_REQUEST', @schema,
		AttributeDefinitions => [ { AttributeName => 'key', AttributeType => 'S' } ],
		GlobalSecondaryIndexes => [ { %index, @schema, Projection => { ProjectionType => 'ALL' } } ] } ],
	[ UpdateTimeToLive => { %table, TimeToLiveSpecification =>
		{ AttributeName => 'ttl', Enabled => JSON::PP::true } } ],
	[ DescribeTable => \%table ], [ DescribeTimeToLive => \%table ], [ Scan => \%table ],
	[ Query => { %table, %query } ], [ Query => { %table, %query, %index } ],
	[ PutItem => { %table, Item => { key => { S => 'a' } } } ], [ GetItem => item_of('a') ],
	[ UpdateItem => item_of('a') ], [ DeleteItem => item_of('f') ], $transaction,
	[ ExecuteStatement => $select ], [ BatchExecuteStatement => { Statements => [$select] } ], $batch,
);

# The places in @asked of the requests that are refused, if only in their first statement.
sub denied
{
	return join ' ', grep {
		my ($status, $reply) = $plain->try_call(@{ $asked[$_] });
		$status == 400 ? $reply->{__type} eq 'com.amazon.coral.service#AccessDeniedException' :
		  (($reply->{Responses} // [])->[0]{Error}{Code} // '') eq 'AccessDenied';
	} 0 .. $#asked;
}

my %needed_by = (CreateTable => '0', UpdateTimeToLive => '1', DescribeTable => '2',
	DescribeTimeToLive => '3', Scan => '4', Query => '5', PutItem => '7 11', GetItem => '8',
	UpdateItem => '9 11', DeleteItem => '10 11', ConditionCheckItem => '11',
	PartiQLSelect => '12 13', PartiQLUpdate => '14');
is(denied(), '', 'what is not denied is allowed');
foreach my $action (sort keys %needed_by)
{
	$plain->deny("dynamodb:$action", table => 'policy');
	is(denied(), $needed_by{$action}, "$action is denied to what needs it");
	$plain->allow_all;
}
$plain->deny('dynamodb:Query', table => 'policy/index/byKey');
$plain->deny('dynamodb:PartiQLSelect');
$plain->deny('dynamodb:*', table => 'lockTable');
is(denied(), '6 12 13', 'several denials, one of them of an index');
like(error_of($nodes{plain}, q{SELECT ddb_lock_acquire('denied')}),
	qr/ERROR: +42501: .*is not authorized to perform: dynamodb:UpdateItem on resource: arn:\S+:table\/lockTable because no/s,
	'a session is told which action on which table');
cmp_ok($plain->refused('dynamodb:UpdateItem'), '>', 0, 'which the double counts');

# All of a transaction is refused; of a batch only that statement.
$plain->call('DeleteItem', item_of('b'));
$plain->deny('dynamodb:ConditionCheckItem');
$plain->deny('dynamodb:PartiQLUpdate', table => 'miss*');
$plain->try_call(@$transaction);
is($plain->call('GetItem', item_of('b'))->{Item}, undef, 'nothing of a denied transaction is done');
my ($status, $reply) = $plain->try_call(@$batch);
is_deeply([ $status, map { $_->{Error}{Code} } @{ $reply->{Responses} } ],
	[ 200, undef, 'AccessDenied' ], 'a batch succeeds but for the denied statement');
$plain->allow_all;

$session->query_safe('SELECT ddb_lock_release_all()');
$session->quit;
nothing_held($double, 'nothing is left held');
nothing_held($plain, 'in neither of the two');
done_testing;
