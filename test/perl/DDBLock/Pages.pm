# DDBLock::Pages: the documents, as the tests read them.

=pod

=head1 NAME

DDBLock::Pages - the pages of this repository, their sections, code blocks and tables

=head1 FUNCTIONS (all are exported)

=over

=item pages

The names of all pages: README.md and what else ends with .md.

=item page($name)

A page's text.

=item sections($name)

The sections of a page, in order, from one heading to the next: hashes with heading, anchor,
text, and blocks, a list of hashes with info (what stands behind the opening fence) and text.

=item tables($text)

The tables of a text, in order: lists of rows without the line of dashes, each a list of
cells.

=item plain($text)

Without backquotes, and of links only what is to be read.

=back

=cut

package DDBLock::Pages;

use strict;
use warnings;

use parent 'Exporter';

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Find;

our @EXPORT = qw(pages page sections tables plain);

my $top = abs_path(dirname(__FILE__) . '/../../..');
my %pages;

find({ no_chdir => 1, wanted => sub {
	$File::Find::prune = 1 if m{/\.[^/]+\z};
	$pages{ s{^\Q$top\E/}{}r } = undef if /\.md\z/;
} }, $top);

sub pages { my @names = sort keys %pages; return @names; }

sub page
{
	my ($name) = @_;

	return $pages{$name} //= do
	{
		open my $fh, '<:encoding(UTF-8)', "$top/$name" or die "$name: $!\n";
		local $/ = undef;
		<$fh>;
	};
}

sub plain { my ($text) = @_; return $text =~ s/\[([^]]*)\]\([^)]*\)/$1/gr =~ s/[`*]//gr; }

# As GitHub makes them
sub anchor
{
	my ($heading, $used) = @_;
	my $anchor = lc(plain($heading)) =~ s/[^\w\- ]//gr =~ tr/ /-/r;
	my $count = $used->{$anchor}++;

	return $count ? "$anchor-$count" : $anchor;
}

sub sections
{
	my ($name) = @_;
	my @sections = { heading => '', anchor => '', text => '', blocks => [] };
	my ($fence, %used);

	foreach my $line (split /^/, page($name))
	{
		if (!defined $fence && $line =~ /^#+ +(.*?)\s*$/)
		{
			push @sections, { heading => $1, anchor => anchor($1, \%used), text => '', blocks => [] };
			next;
		}
		$sections[-1]{text} .= $line;
		if (defined $fence && $line =~ /^\s*```\s*$/)
		{
			$fence = undef;
		}
		elsif (defined $fence)
		{
			$sections[-1]{blocks}[-1]{text} .= $line;
		}
		elsif ($line =~ /^\s*```(.*?)\s*$/)
		{
			$fence = $1;
			push @{ $sections[-1]{blocks} }, { info => $fence, text => '' };
		}
	}
	die "$name: a code block does not end\n" if defined $fence;
	return @sections;
}

sub tables
{
	my ($text) = @_;
	my (@tables, $within);

	foreach my $line (split /\n/, $text =~ s/^\s*```.*?^\s*```$//gmsr)
	{
		if ($line !~ /^\|/)
		{
			$within = 0;
			next;
		}
		push @tables, [] unless $within;
		$within = 1;
		next if $line =~ /^\|(?: *:?-+:? *\|)+\s*$/;
		my @cells = split /(?<!\\)\|/, $line, -1;
		push @{ $tables[-1] }, [ map { s/^ +| +$//gr } @cells[ 1 .. $#cells - 1 ] ];
	}
	return @tables;
}

1;
