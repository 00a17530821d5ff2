# ddblock: distributed locks for PostgreSQL, kept in DynamoDB.
#
#	make, make install, make installcheck	as any extension; PG_CONFIG=... picks
#											the PostgreSQL
#	make test		installs what testing needs, then every check
#	make check-X	one of them: see CHECKS; FUZZ_SECONDS=15 for each fuzz target,
#					TAP="test/tap/001_smoke.pl ..." picks TAP tests
#	make demo		a tour on this machine; KEEP=1 leaves it running
#	make bench		measurements
#	make setup		only installs what the above need
#
# The targets from "make test" on need neither PostgreSQL nor a compiler to
# begin with, so PGXS is looked for, but not insisted on, before they ran.

EXTENSION = ddblock
MODULE_big = ddblock
DATA = $(wildcard ddblock--*.sql)

SOURCES = $(wildcard src/core/*.c src/net/*.c src/pg/*.c src/sql/*.c)
OBJS = $(SOURCES:.c=.o)

# In both, "extension" creates what the others use.
SQL_TESTS := $(sort $(basename $(notdir $(wildcard sql/*.sql))))
REGRESS := $(strip $(filter extension,$(SQL_TESTS)) $(filter-out extension,$(SQL_TESTS)))
SPECS := $(sort $(basename $(notdir $(wildcard test/isolation/specs/*.spec))))
ISOLATION := $(strip $(filter extension,$(SPECS)) $(filter-out extension,$(SPECS)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=ddblock

PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -Wno-declaration-after-statement -MMD -MP
# Only the entry points are visible to the server's other libraries.
SHLIB_LINK = -lcurl -lcrypto -lcjson \
	-Wl,--version-script=$(srcdir)/src/exports.map
EXTRA_CLEAN = $(OBJS:.o=.d)

CHECKS = check-floors check-warnings check-lint check-unit check-model check-double \
	check-valgrind check-fuzz check-regress check-isolation check-tap

PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))

ifneq ($(PGXS),)
# No bitcode: inlining us into queries gains nothing, and it would need clang.
override with_llvm = no
include $(PGXS)
-include $(wildcard $(OBJS:.o=.d))
else
srcdir = .
all install installcheck uninstall clean:
	@echo "No PostgreSQL to build for: $(PG_CONFIG) --pgxs names no file." >&2
	@echo "Install the server's development package, or pass PG_CONFIG=..." >&2
	@false
.PHONY: all install installcheck uninstall clean
.DEFAULT_GOAL := all
endif

.PHONY: setup test demo bench list-regress list-isolation $(CHECKS)

export PG_CONFIG KEEP FUZZ_SECONDS TAP

setup:
	@test/setup test

test: setup
	@test/in-copy test/run-checks $(CHECKS)

$(CHECKS): setup
	@test/in-copy test/run-checks $@

demo:
	@test/setup demo
	@test/in-copy test/demo

bench:
	@test/setup bench
	@test/in-copy test/bench

list-regress:
	@echo $(REGRESS)

list-isolation:
	@echo $(ISOLATION)
