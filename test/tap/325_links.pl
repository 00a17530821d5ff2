# The pages without a server: every link leads somewhere, README stays short, and no table
# has a cell that is a paragraph.

use strict;
use warnings;

use Cwd qw(abs_path);
use DDBLock::Pages;
use File::Basename qw(dirname);
use JSON::PP;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/../..');
my $README_LINES = 350;
my $README_WORDS = 3000;
my $CELL = 200;
my %anchors;
my @for_users = grep { m{^(?:README|doc/(?!internals/).*)\.md$} } pages;

foreach my $page (pages)
{
	$anchors{$page} = { map { $_->{anchor} => 1 } sections($page) };
}

# A link's end: the file, seen from the page, and the anchor
sub broken
{
	my ($page, $link) = @_;
	my ($file, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
	my @path;

	foreach my $part ($file eq '' ? split m{/}, $page : (split(m{/}, dirname($page)), split m{/}, $file))
	{
		next if $part eq '.';
		if ($part ne '..') { push @path, $part; }
		elsif (!@path) { return 1; }
		else { pop @path; }
	}
	my $target = join '/', @path;

	return 1 unless -e "$top/$target";
	return defined $anchor && $anchor ne '' && !$anchors{$target}{$anchor};
}

foreach my $page (pages)
{
	my $text = join '', map { $_->{heading} . "\n" . $_->{text} } sections($page);
	my @links = ($text =~ s/^\s*```.*?^\s*```$//gmsr) =~ /\]\(([^)\s]+)\)/g;

	is_deeply([ grep { !/^(?:https?|mailto):/ && broken($page, $_) } @links ], [], "$page: links and anchors");
}

my $readme = page('README.md');
cmp_ok(scalar(split /\n/, $readme), '<=', $README_LINES, 'lines of README.md');
cmp_ok(scalar(() = $readme =~ /\S+/g), '<=', $README_WORDS, 'words of README.md');

foreach my $page (@for_users)
{
	my @long = map { map { grep { length(plain($_)) > $CELL } @$_ } @$_ } tables(page($page));

	is_deeply(\@long, [], "$page: no cell of more than $CELL characters");
	foreach my $block (map { grep { $_->{info} eq 'json' } @{ $_->{blocks} } } sections($page))
	{
		ok(eval { decode_json($block->{text}) }, "$page: JSON") or diag($@);
	}
}

# Who comes from README finds each page.
my %found = ('README.md' => 1);
my @to_read = 'README.md';
while (my $page = shift @to_read)
{
	foreach my $link (page($page) =~ /\]\(([^)\s#]+\.md)/g)
	{
		my $target = join '/', grep { $_ ne '.' } (dirname($page) eq '.' ? () : split m{/}, dirname($page)), split m{/}, $link;

		1 while $target =~ s{(^|/)[^/]+/\.\./}{$1};
		push @to_read, $target if exists $anchors{$target} && !$found{$target}++;
	}
}
is_deeply([ grep { m{^doc/} && !$found{$_} } pages ], [], 'every page can be reached from README.md');

done_testing;
