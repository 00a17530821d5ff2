# Items as large as DynamoDB allows: JSON makes six times as much of another program's control characters.

use DDBLock::Test;
use JSON::PP ();

my $one = new_cluster('one', conf => "ddblock.keep_warm = off\n");
my $two = new_cluster('two', conf => "ddblock.keep_warm = off\n");
my $a = session($one);
my $b = session($two);

# An item may have 400 kB, names of attributes and all.
sub put
{
	my ($name, %attributes) = @_;
	my $item = dynamodb->java_item($name, extra => { isReleased => { S => '1' }, other => { S => "\x01" x 400_000 }, %attributes });

	delete $item->{$_} foreach grep { !defined $item->{$_} } keys %$item;
	dynamodb->put_item($item);
	return;
}

sub is_large { my ($name) = @_; return length(dynamodb->item($name)->{other}{S}) == 400_000; }

put('a');
cmp_ok(length(JSON::PP->new->encode(dynamodb->item('a'))), '>', 2 * 1024 * 1024, 'the item\'s JSON is large');
cmp_ok($a->query_safe(q{SELECT ddb_lock_acquire('a')}), '>', 0, 'it is a lock');
is($b->query_safe(q{SELECT ddb_lock_try_acquire('a')}), 'f', '... that others see');
is($b->query_safe(q{SELECT held FROM ddb_lock_info('a')}), 't', '... and look up');
like($b->query_safe(q{SELECT name, state FROM ddb_lock_list()}), qr/^a\|held/, '... and list');
$b->send(q{SELECT ddb_lock_acquire('a')});
wait_for_waiters($two, 'a', 1);
wait_for_renewals('a', 1);
is($a->query_safe(q{SELECT ddb_lock_release('a')}), 't', 'it is released');
cmp_ok($b->result, '>', 0, '... to who waits');
is($b->complaints, '', '... without a word');
is($a->ask(q{SELECT ddb_lock_force_release('a')}), 't', 'it is taken away');
wait_for { stat_of($two, undef, 'leases_lost') == 1 } 'its holder knows';
$b->ask(q{SELECT ddb_lock_release('a')});
cmp_ok($a->query_safe(q{SELECT ddb_lock_acquire_shared('a')}), '>', 0, 'it is shared');
cmp_ok($b->query_safe(q{SELECT ddb_lock_acquire_shared('a')}), '>', 0, '... by two');
is($_->query_safe(q{SELECT ddb_lock_release('a')}), 't', '... who release it') foreach $a, $b;
ok(is_large('a'), 'the other program\'s attribute stays');

# Several leases of a batch of renewals are lost at once: the refusal shows their items.
put("b/$_") foreach 1 .. 10;
check_batches($one);
is($a->query_safe(q{SELECT count(ddb_lock_acquire('b/' || i)) FROM generate_series(1, 10) i}), 10, 'many such locks');
my $losses = stat_of($one, undef, 'leases_lost');
is($b->ask(q{SELECT count(*) FROM generate_series(1, 10) i WHERE ddb_lock_force_release('b/' || i)}), 10, '... are taken away');
wait_for { stat_of($one, undef, 'leases_lost') == $losses + 10 } 'their holder knows';
$a->ask(q{SELECT ddb_lock_release_all()});

put('c', recordVersionNumber => undef, isReleased => undef);
my ($digest) = $a->error_of(q{SELECT ddb_lock_force_release('c')}) =~ /unusable => '([0-9a-f]{32})'/;
is($a->ask(qq{SELECT ddb_lock_force_release('c', unusable => '$digest')}), 't', 'one that is unusable is replaced');

$_->quit foreach $a, $b;
nothing_held_ok;
done_testing;
