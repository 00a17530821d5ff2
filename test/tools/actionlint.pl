# The workflow in .github: actionlint knows GitHub's syntax, contexts and runners.  It finds
# each mistake that is planted.

use strict;
use warnings;
use PostgreSQL::Test::Utils;
use Test::More;

my $actionlint = "$ENV{DDBLOCK_TOOLS}/actionlint/actionlint";
plan skip_all => 'actionlint is missing' unless -x $actionlint;

my @files = glob '.github/workflows/*.yml';
my $dir = PostgreSQL::Test::Utils::tempdir();

cmp_ok(@files, '>', 0, 'there are workflows');
command_ok([ $actionlint, '-shellcheck=', @files ], 'actionlint finds nothing wrong in them');
foreach my $mistake ([ 'matrix.postgresql == 15', 'matrix.postgres == 15' ],
	[ 'ubuntu-24.04-arm', 'ubuntu-24.04-armed' ], [ 'timeout-minutes', 'time-out-minutes' ])
{
	my ($right, $wrong) = @$mistake;
	my $text = join '', map { slurp_file($_) } @files;

	is($text =~ s/(?<=[\s:'])\Q$right\E(?![-\w])/$wrong/g > 0, 1, "$right can be planted") or next;
	append_to_file("$dir/$wrong.yml", $text);
	command_fails([ $actionlint, '-shellcheck=', "$dir/$wrong.yml" ], "... and $wrong is found");
}
done_testing;
