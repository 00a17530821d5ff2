# Items that nobody can use as locks: refused to all alike, listed, shown, and replaced by two calls.

use DDBLock::Test;

my $highest = '9223372036854775807';
my $one = new_cluster('one', through => proxy, conf => "ddblock.keep_warm = off\nddblock.retry_timeout = '5s'\n");
my $two = new_cluster('two');
my $operator = session($one);
my $far = session($two);

sub shared_map
{
	my (%entry) = @_;

	return { M => { owner => { S => 'java' }, kind => { S => 'shared' }, total => { N => '1' },
		h => { M => { x => { M => { v => { S => 'v' }, n => { N => '1' }, l => { N => '20000' }, t => { N => '900' },
			%entry } } } } } };
}

# Name, what is wrong, attributes over those of a lock of Java's; undef: missing.
my %free = (isReleased => { S => '1' });
my $map = shared_map();
my @kinds = (
	[ 'no version', qr/has no recordVersionNumber/, recordVersionNumber => undef ],
	[ 'version of type N', qr/recordVersionNumber is empty or not of type S/, recordVersionNumber => { N => '1' } ],
	[ 'long version', qr/recordVersionNumber is too long/, recordVersionNumber => { S => 'v' x 128 } ],
	[ 'no lease', qr/has no leaseDuration/, leaseDuration => undef ],
	[ 'lease of type N', qr/leaseDuration is not of type S/, leaseDuration => { N => '5' } ],
	[ 'unreadable lease', qr/leaseDuration is unreadable/, leaseDuration => { S => 'soon' } ],
	[ 'mode', qr/neither a shared lock nor a semaphore/, fencingToken => { N => '5' },
		shared => { M => { %{ $map->{M} }, kind => { S => 'party' } } } ],
	[ 'sum', qr/total is not the sum/, fencingToken => { N => '5' },
		shared => { M => { %{ $map->{M} }, total => { N => '7' } } } ],
	[ 'entry without version', qr/no readable version/, fencingToken => { N => '5' }, shared => shared_map(v => { N => '1' }) ],
	[ 'entry without permits', qr/no readable number of permits/, fencingToken => { N => '5' }, shared => shared_map(n => { S => '1' }) ],
	[ 'entry without lease', qr/no readable lease/, fencingToken => { N => '5' }, shared => shared_map(l => { N => '-1' }) ],
	[ 'entry without token', qr/no readable token/, fencingToken => { N => '5' }, shared => shared_map(t => { N => '0' }) ],
	[ 'long entry', qr/name of an entry of the shared lock is too long/, fencingToken => { N => '5' },
		shared => { M => { %{ $map->{M} }, h => { M => { 'x' x 64 => $map->{M}{h}{M}{x} } } } } ],
	[ 'many entries', qr/too many entries/, fencingToken => { N => '5' },
		shared => { M => { %{ $map->{M} }, h => { M => { map { ("x$_" => $map->{M}{h}{M}{x}) } 1 .. 33 } } } } ],
	[ 'long owner', qr/owner is too long/, ownerName => { S => 'o' x 64 }, fencingToken => { N => '5' },
		shared => { M => { %{ $map->{M} }, owner => { S => 'o' x 64 } } } ],
	[ 'shared without token', qr/has no fencingToken/, shared => $map ],
	[ 'spelling of the lease', qr/not a number of milliseconds/, fencingToken => { N => '5' },
		leaseDuration => { S => '020000' }, shared => $map ],
	[ 'gate without version', qr/gate of the shared lock has no readable version/, %free,
		shared => { M => { gate => { M => { v => { N => '1' } } } } } ],
	[ 'gate without lease', qr/gate of the shared lock has no readable lease/, %free,
		shared => { M => { gate => { M => { v => { S => 'g' } } } } } ],
	[ 'token', qr/fencingToken is not an integer/, fencingToken => { S => '5' } ],
	[ 'free, token', qr/fencingToken is not an integer/, %free, fencingToken => { N => '1' . '0' x 20 } ],
	[ 'highest token', qr/fencingToken has the highest/, fencingToken => { N => $highest } ],
	[ 'free, highest token', qr/fencingToken has the highest/, %free, fencingToken => { N => $highest } ],
	[ 'names', qr/attributeNames is not a JSON array/, attributeNames => { N => '7' } ],
	[ 'free, names', qr/attributeNames is not a JSON array/, %free, attributeNames => { S => '["ttl"]' } ],
	[ 'kept', qr/keptUntil is not an integer/, keptUntil => { S => '5' } ],
	[ 'free, kept', qr/keptUntil is not an integer/, %free, keptUntil => { N => '1' . '0' x 20 } ]);

sub put
{
	my ($name, %attributes) = @_;
	my $item = dynamodb->java_item($name, owner => 'java', version => 'r1',
		extra => { data => { B => 'AAECAwQFBgcICQoLDA0ODw==' }, foreign => { SS => [ 'b', 'a' ] }, %attributes });

	delete $item->{$_} foreach grep { !defined $item->{$_} } keys %$item;
	dynamodb->put_item($item);
	return;
}

my $force = q{SELECT ddb_lock_force_release('x'};

foreach my $kind (@kinds)
{
	my ($name, $wrong, %attributes) = @$kind;
	my $token = $attributes{fencingToken};
	my $old = $token ? $token->{N} // '' : 0;
	my $falls = $old !~ /^\d{1,18}$/;
	my $gate = $name =~ /gate/;

	put('x', %attributes);

	# Also from who looks once more, having seen it.
	foreach my $try ('ddb_lock_try_acquire', 'ddb_lock_try_acquire_shared', 'ddb_lock_try_acquire_shared')
	{
		next if $gate && $try eq 'ddb_lock_try_acquire';    # this would remove it
		like($far->error_of("SELECT $try('x')"), qr/ERROR: +55000: .*is unusable.*DETAIL: .*$wrong/s, "$name: $try");
	}
	like($far->query_safe(q{SELECT state, mode, unusable FROM ddb_lock_list('x')}), qr/^unusable\|\|.*$wrong/, "$name: listed");

	my $shown = $operator->error_of("$force)");
	my ($digest) = $shown =~ /unusable => '([0-9a-f]{32})'/;
	like($shown, qr/ERROR: +55000: .*"x" is unusable.*DETAIL: .*$wrong.*"data":\{"B":"AAECAwQFBgcICQoL\.\.\."\}.*"foreign":\{"SS":\["a","b"\]\}/s,
		"$name: shown, the binary value cut short");
	is($operator->ask("$force, unusable => '$digest')"), 't', "$name: replaced");
	like($operator->messages, $falls ? qr/WARNING: .*tokens of lock "x" may fall/ : qr/^(?!.*may fall)/s,
		"$name: " . ($falls ? 'a WARNING that tokens may fall' : 'no such WARNING'));
	like($operator->messages, $attributes{isReleased} ? qr/^(?!.*taken away)/s : qr/WARNING: .*was taken away/,
		"$name: " . ($attributes{isReleased} ? 'it was free' : 'a WARNING about the old holder'));
	my $item = dynamodb->item('x');
	is_deeply([ sort keys %$item ], [ sort qw(key ownerName leaseDuration recordVersionNumber fencingToken isReleased
		releasedAt releasedVersion) ], "$name: nothing of the old item is left");
	my $next = $far->query_safe(q{SELECT ddb_lock_acquire('x')});
	cmp_ok($next, '>', $item->{fencingToken}{N}, "$name: the next token is above the new item's");
	cmp_ok($item->{fencingToken}{N}, '>', $falls ? 0 : $old, "$name: ... which is above the old one");
	$far->query_safe(q{SELECT ddb_lock_release('x')});
	is($operator->query_safe("$force)"), 'f', "$name: it is free");
}
ok($one->log_contains(qr/LOG: +user "\w+" as role "\w+", process \d+, replaces the unusable item of lock "x"\n.*DETAIL: +\{/),
	'the log has what was replaced');

# Its token is above what can be read: the entries', too.
my $ahead = (time + 3600) . '000000';
put('x', fencingToken => { N => '5' }, shared => shared_map(t => { N => $ahead }, v => { N => '1' }));
my ($digest) = $operator->error_of("$force)") =~ /unusable => '(\w+)'/;
$operator->ask("$force, unusable => '$digest')");
is(dynamodb->item('x')->{fencingToken}{N}, $ahead + 1, 'a token is above the entries of the old item');

# Another item than the operator has seen
put('x', leaseDuration => undef);
($digest) = $operator->error_of("$force)") =~ /unusable => '(\w+)'/;
put('x', leaseDuration => undef, foreign => { S => 'new' });
like($operator->error_of("$force, unusable => '$digest')"), qr/ERROR: +55006: .*another one now.*DETAIL: +Its digest is (?!$digest)\w+/s,
	'an item that has changed is not replaced');
put('x');
like($operator->error_of("$force, unusable => '$digest')"), qr/ERROR: +55006: .*DETAIL: +It has changed/s, 'nor one that can be used');
dynamodb->delete_item('x');
like($operator->error_of("$force, unusable => '$digest')"), qr/ERROR: +55006: .*DETAIL: +It is gone/s, 'nor one that is gone');
ok(!dynamodb->item('x'), 'which stays away');

# It changes between the read and the write.
put('x', leaseDuration => undef);
proxy->reset_counts;
proxy->fault('late_apply', operation => 'PutItem', count => -1);
$operator->send("$force, unusable => '$digest')");
wait_for { proxy->faults('PutItem') } 'the write on its way';
put('x', leaseDuration => undef, recordVersionNumber => { S => 'r2' });
proxy->clear_faults;
$operator->result;
like($operator->messages, qr/ERROR: +(55006|08006): .*"x"/, 'it has changed meanwhile');
is(dynamodb->item('x')->{recordVersionNumber}{S}, 'r2', 'and stays');

# A lost reply
($digest) = $operator->error_of("$force)") =~ /unusable => '(\w+)'/;
proxy->reset_counts;
proxy->fault('reset', applied => 1, operation => 'PutItem');
is($operator->ask("$force, unusable => '$digest')"), 't', 'a replacement whose reply was lost is found by its nonce');
is(proxy->forwarded('PutItem'), 1, 'and was sent once');

# IAM
put('x', leaseDuration => undef);
($digest) = $operator->error_of("$force)") =~ /unusable => '(\w+)'/;
proxy->fault('error', operation => 'PutItem', status => 400, type => 'AccessDeniedException', message => 'not authorized');
like($operator->error_of("$force, unusable => '$digest')"), qr/ERROR: +42501: .*DETAIL: .*dynamodb:PutItem/s, 'the action that is missing');
proxy->clear_faults;

# Additional attributes that can be read keep nobody out, though a shared lock leaves them.
$far->query_safe(q{SELECT ddb_lock_acquire('y', attributes => '{"team": "x"}'), ddb_lock_release('y')});
dynamodb->put_item({ %{ dynamodb->item('y') }, team => { S => 'x' }, attributeNames => { S => '["team"]' } });
is($operator->query_safe(q{SELECT ddb_lock_acquire_shared('y') > 0, ddb_lock_release('y')}), 't|t', 'a shared lock leaves additional attributes');
is(dynamodb->item('y')->{team}{S}, 'x', '... in the item');

# Messages about an item without an owner
dynamodb->put_item(dynamodb->java_item('nameless', owner => ''));
is($operator->ask(q{SELECT ddb_lock_force_release('nameless')}), 't', 'a lock of nobody known is released by force');
like($operator->messages, qr/WARNING: .*was taken away from an owner without a name\n/, 'with a message that says so');
done_testing;
