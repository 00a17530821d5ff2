# server.sh: for the checks that need a PostgreSQL server, DynamoDB Local, or
# both.  To be sourced after lib.sh.
#
# The machine's PostgreSQL is not touched: an installation can be moved as a
# whole, so a copy of it, with ddblock added, serves as the server's home.

pg_home=
dynamodb_dir=$DDBLOCK_WORK/dynamodb

# make_postgres NAME [MAKE-ARGUMENT...]: builds ddblock, and a PostgreSQL that
# has it, in $DDBLOCK_WORK/pg-NAME (once); puts its programs into PATH.
make_postgres()
{
	local name=$1 build=$DDBLOCK_WORK/build-$1 log=$DDBLOCK_WORK/build-$1.log

	shift
	pg_home=$DDBLOCK_WORK/pg-$name
	if [ ! -d "$pg_home" ]
	then
		echo "# building ddblock ($name) for $("$PG_CONFIG" --version)"
		cp -R "$PWD" "$build"
		copy_postgres "$pg_home" >"$log" 2>&1 &&
			make -C "$build" -j2 all PG_CONFIG="$PG_CONFIG" "$@" >>"$log" 2>&1 &&
			make -C "$build" install PG_CONFIG="$PG_CONFIG" DESTDIR="$pg_home" \
				"$@" >>"$log" 2>&1 ||
			{
				sed 's/^/# /' "$log"
				rm -rf "$pg_home"
				die "the extension does not build"
			}
	fi
	export PATH=$pg_home$("$PG_CONFIG" --bindir):$PATH
}

copy_postgres()
{
	local home=$1 kind dir

	for kind in bindir pkglibdir sharedir
	do
		dir=$("$PG_CONFIG" "--$kind") || return 1
		[ ! -d "$home$dir" ] || continue
		mkdir -p "$home$dir"
		tar -C "$dir" --exclude=./bitcode --exclude=./pgxs -cf - . |
			tar -C "$home$dir" -xf - || return 1
	done
}

# PostgreSQL's folder of test programs and Perl modules.
pgxs_src()
{
	local pgxs

	pgxs=$("$PG_CONFIG" --pgxs) && dirname "$(dirname "$pgxs")"
}

start_dynamodb()
{
	test/dynamodb-local start 0 "$dynamodb_dir" || die "no DynamoDB Local"
	trap stop_servers EXIT
}

# start_cluster NAME [PORT [SETTING...]]: preloaded with ddblock, on a socket in
# $PGHOST; logs to NAME.log.
start_cluster()
{
	local data=$DDBLOCK_WORK/$1

	export PGHOST=$DDBLOCK_WORK PGPORT=${2-5432} PGUSER=postgres PGDATABASE=postgres
	cluster=$data
	initdb -D "$data" -U postgres -A trust -N --no-locale -E UTF8 \
		>"$data-initdb.log" 2>&1 || { cat "$data-initdb.log"; die "initdb failed"; }
	cat >>"$data/postgresql.conf" <<-CONF
		listen_addresses = ''
		unix_socket_directories = '$DDBLOCK_WORK'
		port = $PGPORT
		fsync = off
		shared_preload_libraries = 'ddblock'
		cluster_name = '$1'
		ddblock.region = 'us-east-1'
		ddblock.endpoint_url = 'http://127.0.0.1:$(<"$dynamodb_dir/port")'
		ddblock.access_key_id = 'test'
		ddblock.secret_access_key = 'test'
		ddblock.lock_table = 'lockTable'
	CONF
	printf '%s\n' "${@:3}" >>"$data/postgresql.conf"
	pg_ctl -D "$data" -l "$data.log" -w start >/dev/null ||
		{ cat "$data.log"; die "the server did not start"; }
}

stop_cluster()
{
	pg_ctl -D "$1" -m fast -w -t 30 stop >/dev/null 2>&1 ||
		pg_ctl -D "$1" -m immediate stop >/dev/null 2>&1
}

stop_servers()
{
	[ -z "${cluster-}" ] || stop_cluster "$cluster"
	test/dynamodb-local stop "$dynamodb_dir"
}

# UBSan and assert() in the server: what they find ends the process, and so fails the test.
SANITIZED=(COPT="-fsanitize=undefined -fno-sanitize-recover=all" ASSERTS=)

# run_pg_regress PROGRAM OUTPUT-DIR ARGUMENT...: PostgreSQL's own drivers; each of
# their tests counts.
run_pg_regress()
{
	local program=$1 output=$2 log=$2/log status good bad

	shift 2
	mkdir -p "$output"
	"$program" --bindir="$(dirname "$(command -v psql)")" --outputdir="$output" \
		--host="$PGHOST" --port="$PGPORT" --user="$PGUSER" "$@" 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}

	# Up to PostgreSQL 15 "test name ... ok 5 ms", later "ok 1 - name 5 ms".
	good=$(grep -cE '^(test .*\.\.\. ok|ok [0-9])' "$log")
	bad=$(grep -cE '^(test .*\.\.\. FAILED|not ok [0-9])' "$log")
	((status == 0 || bad > 0)) || bad=1
	passed=$((passed + good))
	failed=$((failed + bad))
	if ((bad > 0))
	then
		[ ! -f "$output/regression.diffs" ] ||
			head -n 300 "$output/regression.diffs"
		echo "# end of the server's log:"
		tail -n 50 "$cluster.log"
	fi
}
