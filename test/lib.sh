# lib.sh: what the test/check-* scripts share.  To be sourced, in the top folder
# of a private copy (see in-copy).

set -u

: "${DDBLOCK_WORK:?run this through test/in-copy, or make ${0##*/}}"

# By its path: the tests' own PostgreSQL comes first in PATH later on.
PG_CONFIG=$(command -v "${PG_CONFIG:-pg_config}") || PG_CONFIG=pg_config
# No test asks the machine that it runs on for credentials.
export AWS_EC2_METADATA_DISABLED=true
check=${0##*/}
passed=0
failed=0
started=0		# by "soon", and told
told=0

# The pure rooms, src/net and their tests; with assert(), unless ASSERTS=-DNDEBUG.  Warnings are
# for check-warnings alone: with sanitizers the compiler has some that are wrong.
DIALECT=(-std=gnu99 ${ASSERTS-})

# What the pure rooms and src/net are linked with.
PURE_LIBS=(-lcjson -lcrypto)
NET_LIBS=(-lcurl -lssl)

ok()
{
	passed=$((passed + 1))
	echo "ok - $*"
}

not_ok()
{
	failed=$((failed + 1))
	echo "not ok - $*"
}

# attempt DESCRIPTION COMMAND...: one test; the output is shown if it fails.
attempt()
{
	local description=$1 log=$DDBLOCK_WORK/attempt.$BASHPID

	shift
	if "$@" >"$log" 2>&1
	then
		ok "$description"
	else
		not_ok "$description"
		sed 's/^/# /' "$log"
	fi
	rm -f "$log"
}

# soon COMMAND...: a command that tells tests, as attempt does, in the background, two at a
# time.  They are told in the order in which they are started; all_told waits for the last.
soon()
{
	local job=$DDBLOCK_WORK/soon.$started

	((started++ < 2)) || wait -n
	(
		passed=0 failed=0
		"$@" >"$job" 2>&1
		echo "$passed $failed" >"$job.counts" && mv "$job.counts" "$job.ended"
	) &
	tell
}

tell()
{
	local job=$DDBLOCK_WORK/soon.$told p f

	while [ -f "$job.ended" ]
	do
		cat "$job"
		read -r p f <"$job.ended"
		passed=$((passed + p))
		failed=$((failed + f))
		rm -f "$job" "$job.ended"
		job=$DDBLOCK_WORK/soon.$((++told))
	done
}

all_told()
{
	wait
	tell
	((told == started)) || die "a test that was started told nothing"
}

# Leaves the counts for run-checks; the caller's exit status.
finish()
{
	((passed + failed > 0)) || not_ok "$check found nothing to test"
	echo "$passed $failed" >"$DDBLOCK_WORK/tally"
	((failed == 0))
}

die()
{
	not_ok "$check: $*"
	finish
	exit 1
}

# The files that match, or nothing.
files()
{
	compgen -G "$1" | sort
}

# compile_all DIR FILE...: objects into DIR, two at a time, with the command in
# the array "compiler".  Not by "wait -n": that returns, too, when a <(...) of before has ended.
compile_all()
{
	local dir=$1 file pid pids=() status=0

	shift
	mkdir -p "$dir"
	for file in "$@"
	do
		if ((${#pids[@]} >= 2))
		then
			wait "${pids[0]}" || status=1
			pids=("${pids[@]:1}")
		fi
		"${compiler[@]}" -Isrc -c "$file" -o "$dir/$(basename "$file" .c).o" &
		pids+=($!)
	done
	for pid in "${pids[@]}"
	do
		wait "$pid" || status=1
	done
	return "$status"
}

# compile_pure DIR: the rooms that know nothing of PostgreSQL and sockets.
compile_pure()
{
	local sources

	mapfile -t sources < <(files 'src/dynamo/*.c'; files 'src/aws/*.c'; files 'src/base/*.c'
		files 'src/lock/*.c'; files 'src/queue/*.c')
	compile_all "$1" "${sources[@]}"
}

# build_unit_test FILE DIR: links test/unit/ROOM/test_NAME.c, as a program in DIR, with
# all objects in DIR/pure and, if there are any, in DIR/ROOM.  The test itself is not optimized: that
# would take the compiler longer than the test takes.
build_unit_test()
{
	local test=$1 dir=$2 room

	room=$(basename "$(dirname "$test")")
	"${compiler[@]}" -O0 -Isrc -Itest/double \
		-DTEST_DATA_DIR="\"$PWD/test/unit/data\"" "$test" "$dir"/pure/*.o \
		$(files "$dir/$room/*.o") "${PURE_LIBS[@]}" "${NET_LIBS[@]}" -lcmocka -lpthread -lm \
		-o "$dir/$(basename "$test" .c)"
}

# run_unit_tests DIR [WRAPPER...]: builds with "compiler" and runs all of
# test/unit, each program by the wrapper; every test in them counts.
run_unit_tests()
{
	local dir=$1 test sources

	shift
	compile_pure "$dir/pure" || die "the pure rooms do not compile"
	mapfile -t sources < <(files 'src/net/*.c')
	compile_all "$dir/net" "${sources[@]}" || die "src/net does not compile"
	mapfile -t sources < <(files 'test/double/d*.c')
	compile_all "$dir/double" "${sources[@]}" || die "test/double does not compile"

	for test in ${UNIT:-$(files 'test/unit/*/test_*.c')}
	do
		soon run_unit_test "$test" "$dir" "$@"
	done
	all_told
}

run_unit_test()
{
	local test=$1 dir=$2 name log status good bad

	name=$(basename "$test" .c)
	log=$dir/$name.log
	shift 2
	if ! build_unit_test "$test" "$dir" >"$log" 2>&1
	then
		not_ok "$name does not build"
		sed 's/^/# /' "$log"
		return
	fi
	CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 "$@" "$dir/$name" >"$log" 2>&1
	status=$?
	good=$(grep -c '^ok ' "$log")
	bad=$(grep -c '^not ok ' "$log")

	# A program that crashes, or that its wrapper found fault with.
	((status == 0 || bad > 0)) || bad=1
	passed=$((passed + good))
	failed=$((failed + bad))
	if ((bad > 0))
	then
		echo "not ok - $name: $bad failed (status $status)"
		sed 's/^/# /' "$log"
	else
		echo "ok - $name: $good tests"
	fi
}
