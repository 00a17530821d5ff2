# machine.sh: what install and upgrade share.  To be sourced after lib.sh, on a machine
# with Debian's PostgreSQL.  Packages and counts lie in $DDBLOCK_WORK.

export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
dynamodb=/tmp/dynamodb

as_postgres()
{
	runuser -u postgres -- "$@"
}

# query CLUSTER ARGUMENT...: as psql has them; a cluster is VERSION/NAME.
query()
{
	local cluster=$1

	shift
	as_postgres psql -XAtq -v ON_ERROR_STOP=1 --cluster "$cluster" "$@"
}

# install_packages VERSION...: the list of Debian's packages may be old.
install_packages()
{
	local version files=()

	for version
	do
		files+=("$DDBLOCK_WORK/postgresql-$version-ddblock.deb")
		[[ $version != "${pg_version-}" ]] || files+=("$DDBLOCK_WORK/ddblock-run-$version.deb")
	done
	set -- apt-get install -y -qq --no-install-recommends "${files[@]}"
	"$@" || { apt-get update -qq && "$@"; }
}

# doc/install.md, with DynamoDB Local in place of a Region.
create_cluster()
{
	local version=$1 name=$2

	pg_createcluster "$version" "$name" &&
		cat >>"/etc/postgresql/$version/$name/postgresql.conf" <<-CONF &&
			shared_preload_libraries = 'ddblock'
			ddblock.region = 'eu-central-1'
			ddblock.endpoint_url = 'http://127.0.0.1:$(<"$dynamodb/port")'
		CONF
		pg_ctlcluster "$version" "$name" start
}

start_dynamodb()
{
	test/dynamodb-local start 0 "$dynamodb" &&
		as_postgres sh -c 'umask 077; mkdir -p ~/.aws; cat >~/.aws/credentials' <<-END
			[default]
			aws_access_key_id = test
			aws_secret_access_key = test
		END
}

stop_dynamodb()
{
	test/dynamodb-local stop "$dynamodb"
	rm -rf ~postgres/.aws
}
