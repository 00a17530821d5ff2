# ddblock: distributed locks for PostgreSQL, kept in DynamoDB.
#
#	make, make install, make installcheck	as any extension; PG_CONFIG=... picks
#											the PostgreSQL
#	make test		installs what testing needs, then every check, those that only compute
#					beside those that wait
#	make check-X	one of them: see CHECKS; REGRESS, ISOLATION, UNIT, FUZZ and TAP
#					pick tests: see CONTRIBUTING.md
#	make check-versions	what depends on PostgreSQL's version, on all that are
#					supported, in chroots: VERSIONS="17 18", CHECKS, TAP;
#					WHOLE="16 17 18 19" runs the TAP tests there, not only on 18
#	make check-setup	the demo on newcomers' machines, chroots made anew: SETUPS="bare"
#	make check-packages	the packages build, and Debian's works when installed, in
#					chroots: VERSIONS="17 18"
#	make dist		the commit's archive for PGXN, as ddblock-VERSION.zip or ZIP=...
#	make check-dist	the archive builds, and make installcheck passes in it
#	make deb		Debian's packages, in the folder above, or DEB=/a/folder
#	make check-arm64	unit and regression tests as arm64 programs, which qemu runs: UNIT, REGRESS
#	make check-monitoring	doc/monitoring with Debian's prometheus and
#					prometheus-postgres-exporter; SQL_EXPORTER=/path/to/it, too
#	make check-tools	doc/recipes with pg_cron, PgBouncer, Alembic, Flyway,
#					goose, sqitch, Rails: TAP=test/tools/goose.pl; .github with
#					actionlint; TOOLS_REQUIRED=1 fails if one is missing
#	make interop	Amazon's lock client for Java and dynamolock (Go) on one lock table with
#					ddblock: TAP=test/clients/java.pl; wants Maven, a JDK, and Go 1.21.
#					ddblock on moto (wants pip) and dynalite (wants npm)
#	make check-timeline	test/timeline, and the pictures that it drew for doc
#	make simulate	the lock manager through simulated faults: SEEDS=1000 of them,
#					or SECONDS=60, FROM=1, JOBS=2; SEED=17 TRACE=1 shows one
#	make scale	many clusters on a table with too little capacity, and what they cost:
#				the tables of doc/scale.md, and its picture if PICTURE=/a/file
#	make torture DURATION=60min	clusters under fire for longer than make test has
#					time for; SEED=n, FAULTS=kind,kind: see test/torture/run
#	make seeded-bugs	a test of the tests: each bug planted, which layer finds it;
#					BUGS="name ...", LAYERS="1 2"
#	make mutants	a test of the tests: random changes of the lock manager and the codec,
#					made by universalmutator (MUTATE=/path/to/mutate), SAMPLE=300
#					SEED=1 FILES="src/lock/lockmgr_share.c"
#	make demo		a tour on this machine; KEEP=1 leaves it running
#	make jepsen-etcd	what Jepsen lost in etcd's locks, DURATION=60 seconds for
#					each of three configurations
#	make bench		measurements
#	make hot-lock	how fast sessions pass one lock on, how long others wait for it:
#					DURATION=10 seconds for each situation, HOLD=25 for the last
#	make beside-java	own locks of 16 sessions, and of 16 threads with Amazon's client:
#					DURATION=10 seconds for each turn; wants Maven and a JDK
#	make sharing	what shared locks and semaphores cost, how long one waits for
#					them: DURATION=30 seconds of the last situation
#	make several	several locks in one call, beside as many calls in turn:
#					ROUNDS=40
#	make managed	what a call of a managed database costs: ROUNDS=300
#	make queues		queues, beside an article's design and SKIP LOCKED in one database:
#					DURATION=3 seconds for each turn
#	make backlog	JOBS=10000 jobs at once, beside that design and pgmq: time until the last is
#					done; wants pip
#	make setup		only installs what the above need
#
# The targets from "make test" on need neither PostgreSQL nor a compiler to
# begin with, so PGXS is looked for, but not insisted on, before they ran.

EXTENSION = ddblock ddblock_remote
MODULE_big = ddblock
# The install script of this version, and the scripts that lead to it.
DDBLOCK_VERSION := $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" ddblock.control)
DATA = ddblock--$(DDBLOCK_VERSION).sql ddblock_remote--$(DDBLOCK_VERSION).sql $(wildcard ddblock--*--*.sql)

# A program, with libpq instead of the server, and its manual page.
CLIENT = $(wildcard src/client/*.c)
PROGRAM_NAME = ddblock-run
MANUAL = $(srcdir)/src/client/$(PROGRAM_NAME).1

SOURCES = $(filter-out $(CLIENT),$(wildcard src/*.c src/*/*.c))
OBJS = $(SOURCES:.c=.o)

# In both, "extension" creates what the others use.
SQL_TESTS := $(sort $(basename $(notdir $(wildcard sql/*.sql))))
REGRESS := $(strip $(filter extension,$(SQL_TESTS)) $(filter-out extension,$(SQL_TESTS)))
SPECS := $(sort $(basename $(notdir $(wildcard test/isolation/specs/*.spec))))
ISOLATION := $(strip $(filter extension,$(SPECS)) $(filter-out extension,$(SPECS)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=ddblock

PG_CPPFLAGS = -I$(srcdir)/src $(ASSERTS)
PG_CFLAGS = -Wno-declaration-after-statement -Werror=implicit-function-declaration \
	-MMD -MP
# Only the entry points are visible to the server's other libraries.
SHLIB_LINK = -lcurl -lcrypto -lcjson -lm \
	-Wl,--version-script=$(srcdir)/src/exports.map
EXTRA_CLEAN = $(OBJS:.o=.d) $(PROGRAM_NAME) $(PROGRAM_NAME).d

# Those that wait most of their time, for leases and for servers, and those that compute.
WAITING = check-regress check-isolation check-tap check-torture
COMPUTING = check-release check-floors check-warnings check-lint check-symbols \
	check-unit check-double check-model check-simulator check-valgrind check-fuzz
CHECKS = $(COMPUTING) $(WAITING)

PG_CONFIG ?= pg_config
# assert() is for tests, which build with ASSERTS=, and for PostgreSQL with assertions.
ASSERTS := $(shell grep -qs '^.define USE_ASSERT_CHECKING 1' \
	"$$($(PG_CONFIG) --includedir-server)"/pg_config*.h || echo -DNDEBUG)
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(PGXS),)
# No bitcode: inlining us into queries gains nothing, and it would need clang.
override with_llvm = no
include $(PGXS)
-include $(wildcard $(OBJS:.o=.d))

all: check-undefined $(PROGRAM_NAME)
$(PROGRAM_NAME): $(CLIENT) $(wildcard src/client/*.h) src/shared/version.h
	$(CC) $(CFLAGS) -D_GNU_SOURCE -I$(srcdir)/src \
		-I$(includedir) $(LDFLAGS) -o $@ $(CLIENT) $(libpq)

install: install-program
install-program: $(PROGRAM_NAME)
	$(MKDIR_P) '$(DESTDIR)$(bindir)' '$(DESTDIR)$(mandir)/man1'
	$(INSTALL_PROGRAM) $(PROGRAM_NAME) '$(DESTDIR)$(bindir)/$(PROGRAM_NAME)'
	$(INSTALL_DATA) $(MANUAL) '$(DESTDIR)$(mandir)/man1/$(notdir $(MANUAL))'
uninstall: uninstall-program
uninstall-program:
	rm -f '$(DESTDIR)$(bindir)/$(PROGRAM_NAME)' '$(DESTDIR)$(mandir)/man1/$(notdir $(MANUAL))'
.PHONY: install-program uninstall-program
check-undefined: $(shlib)
	@$(srcdir)/test/undefined-symbols $(shlib) $(bindir)/postgres
.PHONY: check-undefined
else
srcdir = .
all install installcheck uninstall clean:
	@echo "No PostgreSQL to build for: $(PG_CONFIG) --pgxs names no file." >&2
	@echo "Install the server's development package, or pass PG_CONFIG=..." >&2
	@false
.PHONY: all install installcheck uninstall clean
.DEFAULT_GOAL := all
endif

.PHONY: setup test simulate scale seeded-bugs mutants torture demo jepsen-etcd hot-lock \
	beside-java sharing several managed queues backlog bench list-regress \
	list-isolation list-waiting list-computing check-versions check-setup check-arm64 check-monitoring check-tools interop check-timeline dist \
	check-dist check-installcheck \
	aws-credentials aws-endpoints check-packages deb $(CHECKS)

export PG_CONFIG WAITING KEEP FUZZ_SECONDS SEARCHED SIMULATE_SECONDS TAP REPEAT SEED FAULTS TORTURE_SECONDS \
	VERSIONS WHOLE SETUPS SQL_EXPORTER TOOLS_REQUIRED

setup:
	@test/setup test

test: setup
	@test/in-copy test/run-checks $(CHECKS)

$(CHECKS): setup
	@test/in-copy test/run-checks $@

check-versions:
	@CHECKS="$(if $(filter-out file,$(origin CHECKS)),$(CHECKS))" test/check-versions

check-setup:
	@test/check-setup

check-packages:
	@test/check-packages

check-timeline check-installcheck: setup
	@test/in-copy test/run-checks $@

dist:
	@git archive --format=zip --prefix="ddblock-$(DDBLOCK_VERSION)/" \
		-o "$(or $(ZIP),ddblock-$(DDBLOCK_VERSION).zip)" HEAD

# Somebody who has only the archive builds it, and runs its tests.
check-dist: setup
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && chmod a+rx "$$dir" && \
		$(MAKE) -s dist ZIP="$$dir/ddblock.zip" && cd "$$dir" && \
		unzip -q ddblock.zip && cd ddblock-*/ && $(MAKE) -s check-installcheck

# In a copy, for the PostgreSQL of this Debian; the checkout stays as it is.
deb:
	@copy=$$(mktemp -d) && trap 'rm -rf "$$copy"' EXIT && mkdir "$$copy/ddblock" && \
		tar --exclude-vcs --exclude='*.o' --exclude='*.d' --exclude='*.so' --exclude='*.bc' \
			-cf - . | tar -C "$$copy/ddblock" -xf - && \
		(cd "$$copy/ddblock" && pg_buildext updatecontrol && dpkg-buildpackage -b -us -uc) && \
		mv "$$copy"/*ddblock*.deb "$(or $(DEB),..)"

check-arm64:
	@test/setup arm64
	@test/arm64-sysroot
	@DDBLOCK_TOOLS="$${XDG_CACHE_HOME:-$$HOME/.cache}/ddblock/arm64" \
		test/in-copy test/run-checks $@

check-monitoring:
	@test/setup monitoring
	@TAP=test/monitoring/monitoring.pl test/in-copy test/run-checks check-tap

check-tools:
	@test/setup tools
	@DDBLOCK_TOOLS="$${XDG_CACHE_HOME:-$$HOME/.cache}/ddblock/tools" \
		test/in-copy test/run-checks $@

interop: setup
	@test/clients/fetch java go
	@test/clients/fetch moto dynalite || true
	@DDBLOCK_TOOLS="$${XDG_CACHE_HOME:-$$HOME/.cache}/ddblock/clients" \
		TAP="$(or $(TAP),$(wildcard test/clients/*.pl))" test/in-copy test/run-checks check-tap

simulate: setup
	@test/in-copy test/simulator/run --jobs=$(or $(JOBS),2) \
		$(if $(SEED),--from=$(SEED) --seeds=1 $(if $(TRACE),--trace), \
		--from=$(or $(FROM),1) $(if $(SEEDS),--seeds=$(SEEDS)) \
		$(if $(SEEDS)$(SECONDS),,--seconds=60) $(if $(SECONDS),--seconds=$(SECONDS)))

scale: setup
	@test/in-copy test/scale/measure $(PICTURE)

torture: setup
	@TORTURE_SECONDS=$(or $(DURATION),60min) test/in-copy test/check-torture

seeded-bugs: setup
	@LAYERS="$(LAYERS)" test/in-copy test/seeded-bugs/run $(BUGS)

mutants: setup
	@test/in-copy test/mutation/run $(FILES)

demo:
	@test/setup demo
	@test/in-copy test/demo

jepsen-etcd: setup
	@DURATION=$(DURATION) TAP=test/jepsen/etcd.pl test/in-copy test/check-tap

aws-credentials: setup
	@test -d "$(AWS_CONFIG)" || { echo "AWS_CONFIG=... must be aws-config/test-data of" \
		"the AWS SDK for Rust's source (see test/credentials/README.md)." >&2; false; }
	@test/credentials/run aws_cases "$(AWS_CONFIG)"

aws-endpoints: setup
	@test -d "$(BOTOCORE)/tests/functional/endpoint-rules" || { echo "BOTOCORE=... must be" \
		"botocore's source (see test/credentials/README.md)." >&2; false; }
	@test/credentials/run endpoint_cases "$(BOTOCORE)/tests/functional/endpoint-rules"

hot-lock: setup
	@DURATION=$(DURATION) TAP=test/measure/hot-lock.pl test/in-copy test/check-tap

beside-java: setup
	@test/clients/fetch java
	@DDBLOCK_TOOLS="$${XDG_CACHE_HOME:-$$HOME/.cache}/ddblock/clients" DURATION=$(DURATION) \
		TAP=test/measure/beside-java.pl test/in-copy test/check-tap

queues: setup
	@DURATION=$(DURATION) TAP=test/measure/queues.pl test/in-copy test/check-tap

backlog: setup
	@test/clients/fetch pgmq
	@DDBLOCK_TOOLS="$${XDG_CACHE_HOME:-$$HOME/.cache}/ddblock/clients" JOBS=$(JOBS) \
		TAP=test/measure/backlog.pl test/in-copy test/check-tap

several: setup
	@ROUNDS=$(ROUNDS) TAP=test/measure/several.pl test/in-copy test/check-tap

managed: setup
	@ROUNDS=$(ROUNDS) TAP=test/measure/managed.pl test/in-copy test/check-tap

sharing: setup
	@DURATION=$(DURATION) TAP=test/measure/sharing.pl test/in-copy test/check-tap

bench:
	@test/setup bench
	@test/in-copy test/bench
	@$(MAKE) --no-print-directory queues

list-regress:
	@echo $(REGRESS)

list-isolation:
	@echo $(ISOLATION)

list-waiting:
	@echo $(WAITING)

list-computing:
	@echo $(COMPUTING)
