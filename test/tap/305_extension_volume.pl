# An extension volume, as CloudNativePG mounts it: files laid out as the image's Dockerfile says,
# and a server that finds ddblock nowhere else.

use DDBLock::Test;

my ($major) = `pg_config --version` =~ /(\d+)/;
plan skip_all => 'extension_control_path came with PostgreSQL 18' if $major < 18;

my $dir = PostgreSQL::Test::Utils::tempdir_short();
my ($out, $volume) = ("$dir/out", "$dir/volume");
my $dockerfile = slurp_file('doc/packaging/extension-volume.Dockerfile');
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my %here = map { $_ => `$pg_config --$_` =~ s/\n//r } qw(pkglibdir sharedir);

# The image's steps, with this machine's folders in place of the image's
sub here { my ($text) = @_;
	return $text =~ s{/usr/lib/postgresql/(\$PG_MAJOR|\$\{PG_MAJOR\})/lib}{$here{pkglibdir}}gr
	  =~ s{/usr/share/postgresql/(\$PG_MAJOR|\$\{PG_MAJOR\})}{$here{sharedir}}gr =~ s{/out/}{$out/}gr; }
system_or_bail('make', '-s', '-C', "$ENV{DDBLOCK_WORK}/build-plain", 'install', "PG_CONFIG=$pg_config", "DESTDIR=$out");
my ($libraries) = $dockerfile =~ m{^RUN (mkdir /out/system.*?[^\\]\n)}ms or die "no such step\n";
system_or_bail('sh', '-c', here($libraries));
my @copies = $dockerfile =~ /^COPY --from=build (\S+) (\S+)$/mg;
is(scalar @copies, 6, 'the image has three folders');
while (my ($from, $to) = splice @copies, 0, 2)
{
	system_or_bail('mkdir', '-p', "$volume$to");
	system_or_bail('cp', '-R', here($from) . '.', "$volume$to");
}
ok(-e "$volume/lib/ddblock.so", 'the module is where dynamic_library_path leads');
ok(-e "$volume/share/extension/ddblock.control", 'the control file is where extension_control_path leads');
cmp_ok(scalar(() = glob "$volume/system/libcurl*.so*"), '>', 0, 'libcurl is in the folder of ld_library_path');

my %parts = map { /([^\/\n]+)$/ ? ($1 => 1) : () } `dpkg -L libc6 libc-bin`;
is(join(' ', grep { $parts{$_} } map { s{.*/}{}r } glob "$volume/system/*"), '', '... without parts of the C library');

# As the operator sets them, but the volume comes first, and without $system: this server has
# ddblock in its own folders, too.
local $ENV{LD_LIBRARY_PATH} = join ':', "$volume/system", $ENV{LD_LIBRARY_PATH} // ();
my $node = new_cluster('mounted', conf => "extension_control_path = '$volume/share'\ndynamic_library_path = '$volume/lib:\$libdir'\n");
my $token = $node->safe_psql('postgres', q{SELECT ddb_lock_acquire('a') > 0});
is($token, 't', 'a lock is acquired');
my $maps = slurp_file('/proc/' . worker_pid($node) . '/maps');
like($maps, qr{\Q$volume\E/lib/ddblock\.so$}m, 'the worker has the module from the volume');
like($maps, qr{\Q$volume\E/system/libcurl}m, '... and libcurl');
is($node->safe_psql('postgres', q{SELECT bool_and(probin = '$libdir/ddblock' OR probin = 'ddblock') FROM pg_proc WHERE probin LIKE '%ddblock%'}), 't',
	'functions name no folder of this machine');
done_testing;
