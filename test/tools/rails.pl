# Rails: bin/rails db:migrate under ddblock-run, as doc/recipes/rails.md says.

use DDBLock::Test;
use DDBLock::Tools;

plan skip_all => 'Rails is missing'
  unless system('ruby -e "require %q(rails); require %q(active_record); require %q(pg)" >/dev/null 2>&1') == 0;

my ($one, $two) = work_clusters();
my $dir = PostgreSQL::Test::Utils::tempdir_short();
my $page = snippet('Rails', 'sh');

mkdir "$dir/$_" or die "$dir/$_: $!\n" foreach qw(bin config db db/migrate);
write_file("$dir/config/application.rb", <<'RUBY');
require 'rails'
require 'active_record/railtie'

class Shop < Rails::Application
  config.eager_load = false
  config.active_record.dump_schema_after_migration = false
end
RUBY
write_file("$dir/config/environment.rb", "require_relative 'application'\nRails.application.initialize!\n");
write_file("$dir/config/database.yml", "development:\n  adapter: postgresql\n  database: <%= ENV['PGDATABASE'] %>\n");
write_file("$dir/Rakefile", "require_relative 'config/application'\nRails.application.load_tasks\n");
write_file("$dir/bin/rails", "#!/usr/bin/env ruby\nAPP_PATH = File.expand_path('../config/application', __dir__)\nrequire 'rails/commands'\n");
chmod 0755, "$dir/bin/rails" or die $!;
write_file("$dir/db/migrate/1_orders.rb", <<'RUBY');
class Orders < ActiveRecord::Migration[ActiveRecord::Migration.current_version]
  def up
    execute 'CREATE TABLE orders (id int)'
    execute "SELECT work('v1')"
  end
end
RUBY
write_file("$dir/db/migrate/2_first.rb", <<'RUBY');
class First < ActiveRecord::Migration[ActiveRecord::Migration.current_version]
  def up
    execute 'INSERT INTO orders VALUES (1)'
    execute "SELECT work('v2')"
  end
end
RUBY

sub migrate
{
	my ($node, $db, $name) = @_;

	return start($name, [ 'bash', '-c', "set -e\nexec $page" ], cwd => $dir,
		env => { PGHOST => '127.0.0.1', PGPORT => $node->port, PGDATABASE => $db, PGUSER => user, PGOPTIONS => '' });
}
migrations_ok('rails', \&migrate, lost => qr/lock "migrate\/shop" is lost/);

# Two runs in the same cluster: the second one finds the work done.
my $db = new_shop('same');
my @runs = map { migrate($one, $db, "same_$_") } 1, 2;
is($_->status, 0, 'two runs in one cluster succeed') or diag($_->output) foreach @runs;
is(orders($one, $db), 1, '... and migrate once');

nothing_held_ok;
done_testing;
