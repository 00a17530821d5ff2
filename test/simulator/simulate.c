/*-------------------------------------------------------------------------
 *
 * simulate.c
 *	  The simulation's program.
 *
 *	  simulate [--from=SEED] [--seeds=N] [--seconds=T] [--jobs=J] [--trace]
 *			   [--first] [--without=PROMISE]
 *
 * Runs N seeds, or as many as T seconds allow, in J processes, beginning with
 * SEED. It prints each broken promise with the command that replays it. --first
 * stops at the first broken promise; --without=I3 does not check I3.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

#include <getopt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_WRONG 20			/* a job stops after so many broken promises */

typedef struct options
{
	uint64_t	from;
	uint64_t	seeds;			/* 0: as many as fit */
	int64_t		seconds;		/* 0: as long as it takes */
	int			jobs;
	bool		trace;
	bool		first;			/* stop at the first broken promise */
	const char *without;
} options;

static double
seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static void
run_seed(const options *o, uint64_t seed, sim_totals *totals)
{
	sim		   *s = calloc(1, sizeof(sim));
	double		start = seconds_now();
	uint64_t	before = totals->wrong;

	if (s == NULL)
		abort();
	s->seed = seed;
	s->trace = o->trace;
	s->without = o->without;
	s->totals = totals;
	sim_run(s);
	totals->real[s->plan.kind] += seconds_now() - start;
	if (s->wrong[0] != '\0')
	{
		totals->wrong = before + 1;
		printf("SEED=%" PRIu64 ": after %.6f s: %s\n"
			   "    replay: make simulate SEED=%" PRIu64 " TRACE=1\n", seed,
			   (double) s->now / 1e6, s->wrong, seed);
		fflush(stdout);
	}
	free(s);
}

static void
run_job(const options *o, int job, sim_totals *totals)
{
	double		start = seconds_now();

	for (uint64_t i = (uint64_t) job; o->seeds == 0 || i < o->seeds; i += (uint64_t) o->jobs)
	{
		if (o->seconds > 0 && seconds_now() - start >= (double) o->seconds)
			break;
		run_seed(o, o->from + i, totals);
		if (totals->wrong >= MOST_WRONG || (o->first && totals->wrong > 0))
			break;
	}
	fflush(stdout);
}

static void
add_up(sim_totals *sum, const sim_totals *part)
{
	const uint64_t *from = &part->wrong;
	uint64_t   *to = &sum->wrong;
	size_t		count = (offsetof(sim_totals, longest_turn) - offsetof(sim_totals, wrong)) /
		sizeof(uint64_t);

	for (int k = 0; k < KIND_COUNT; k++)
	{
		sum->seeds[k] += part->seeds[k];
		sum->simulated[k] += part->simulated[k];
		sum->real[k] += part->real[k];
	}
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
	for (int i = 0; i < SIM_TURNS; i++)
	{
		if (part->longest_turn[i] > sum->longest_turn[i])
			sum->longest_turn[i] = part->longest_turn[i];
	}
}

static void
report_kinds(const sim_totals *t, double real)
{
	uint64_t	seeds = 0;
	double		simulated = 0;
	double		busy = 0;

	for (int k = 0; k < KIND_COUNT; k++)
	{
		double		seconds = (double) t->simulated[k] / 1e6;

		seeds += t->seeds[k];
		simulated += seconds;
		busy += t->real[k];
		if (t->seeds[k] > 0)
			printf("%-6s %8" PRIu64 " seeds, %12.0f simulated s, %9.1f s of its own, "
				   "%8.0f simulated s per s\n", sim_kind_names[k], t->seeds[k], seconds,
				   t->real[k], seconds / t->real[k]);
	}
	printf("%-6s %8" PRIu64 " seeds, %12.0f simulated s, %9.1f s of its own, "
		   "%8.0f simulated s per s\n", "all", seeds, simulated, busy, simulated / busy);
	printf("%.4f simulated years in %.1f s; %.0f simulated s per real s\n",
		   simulated / (365.25 * 86400), real, simulated / real);
}

static void
report_turns(const sim_totals *t)
{
	static const char *const whose[SIM_TURNS] = {
		"a cluster's", "among clusters that share, a cluster's", "a foreign client's"
	};

	if (t->simulated[KIND_HOT] == 0)
		return;
	printf("hot runs: %.1f grants a simulated second\n",
		   (double) t->hot_grants / ((double) t->simulated[KIND_HOT] / 1e6));
	for (int i = 0; i < SIM_TURNS; i++)
	{
		if (t->turns[i] > 0)
			printf("  %s turn comes after %.3f s on average, %.3f s at most, of %" PRIu64
				   "\n", whose[i], (double) t->turn_us[i] / (double) t->turns[i] / 1e6,
				   (double) t->longest_turn[i] / 1e6, t->turns[i]);
	}
}

static void
report(const sim_totals *t, double real)
{
	uint64_t	faults = 0;

	for (int i = 0; i < FAULT_COUNT; i++)
		faults += t->faults[i];
	report_kinds(t, real);
	report_turns(t);
	printf("%" PRIu64 " events, %" PRIu64 " requests, %" PRIu64 " grants, %" PRIu64
		   " to foreign clients, %" PRIu64 " leases lost, %" PRIu64 " workers\n",
		   t->events, t->requests, t->grants, t->foreign_grants, t->losses, t->workers);
	printf("of the grants, %" PRIu64 " of shared locks, %" PRIu64 " of permits\n",
		   t->shared_grants, t->permit_grants);
	printf("%" PRIu64 " holds joined, %" PRIu64 " detached, %" PRIu64 " may outlive their sessions, %"
		   PRIu64 " granted ahead, %" PRIu64 " claimed, %" PRIu64 " releases of two\n", t->joined,
		   t->detached, t->outlive, t->ahead, t->claimed, t->released_both);
	printf("%" PRIu64 " leaderships, %" PRIu64 " attempts to join one\n", t->led, t->lead);
	printf("%" PRIu64 " grants for a minimum\n", t->kept_grants);
	printf("%" PRIu64 " jobs pushed, %" PRIu64 " claims, %" PRIu64 " times worked on, %" PRIu64
		   " completed, %" PRIu64 " failed, %" PRIu64 " dead, %" PRIu64 " heads removed, %" PRIu64
		   " hints taken\n",
		   t->jobs_pushed, t->jobs_claimed, t->jobs_worked, t->jobs_completed, t->jobs_failed,
		   t->jobs_dead, t->heads_removed, t->hints);
	printf("%" PRIu64 " marks of clusters that waited, %" PRIu64 " heard; %" PRIu64
		   " times permits were left to one, %" PRIu64 " times taken after it\n", t->marks, t->heard,
		   t->left_to_marks, t->taken_after_marks);
	printf("%" PRIu64 " times all was quiet until all copies had arrived; %" PRIu64
		   " of them were applied then\n", t->audits, t->strays);
	printf("%" PRIu64 " commits, %" PRIu64 " refused by the guard, %" PRIu64
		   " by the fence\n", t->commits, t->guarded, t->fenced);
	printf("%" PRIu64 " faults:\n", faults);
	for (int i = 0; i < FAULT_COUNT; i++)
		printf("  %-24s %12" PRIu64 "\n", sim_fault_names[i], t->faults[i]);
	printf("%" PRIu64 " promises broken\n", t->wrong);
}

static uint64_t
number(const char *text)
{
	char	   *end;
	uint64_t	value = strtoull(text, &end, 10);

	if (*text == '\0' || *end != '\0')
	{
		fprintf(stderr, "simulate: not a number: \"%s\"\n", text);
		exit(2);
	}
	return value;
}

static options
read_options(int argc, char **argv)
{
	static const struct option names[] = {
		{"from", required_argument, NULL, 'f'},
		{"seeds", required_argument, NULL, 'n'},
		{"seconds", required_argument, NULL, 's'},
		{"jobs", required_argument, NULL, 'j'},
		{"trace", no_argument, NULL, 't'},
		{"first", no_argument, NULL, '1'},
		{"without", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0},
	};
	options		o = {.from = 1,.jobs = 1};
	int			c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
	{
		switch (c)
		{
			case 'f':
				o.from = number(optarg);
				break;
			case 'n':
				o.seeds = number(optarg);
				break;
			case 's':
				o.seconds = (int64_t) number(optarg);
				break;
			case 'j':
				o.jobs = (int) number(optarg);
				break;
			case 't':
				o.trace = true;
				break;
			case '1':
				o.first = true;
				break;
			case 'w':
				o.without = optarg;
				break;
			default:
				exit(2);
		}
	}
	if (o.jobs < 1 || (o.seeds == 0 && o.seconds == 0) || optind != argc)
	{
		fprintf(stderr, "usage: simulate [--from=SEED] [--seeds=N] [--seconds=T] "
				"[--jobs=J] [--trace] [--first] [--without=PROMISE]\n");
		exit(2);
	}
	return o;
}

int
main(int argc, char **argv)
{
	options		o = read_options(argc, argv);
	size_t		size = (size_t) o.jobs * sizeof(sim_totals);
	sim_totals *totals = mmap(NULL, size, PROT_READ | PROT_WRITE,
							  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sim_totals	sum = {.wrong = 0};
	double		start = seconds_now();
	bool		died = false;
	int			status;

	if (totals == MAP_FAILED)
		abort();
	for (int job = 0; job < o.jobs; job++)
	{
		if (fork() == 0)
		{
			run_job(&o, job, &totals[job]);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		died |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	for (int job = 0; job < o.jobs; job++)
		add_up(&sum, &totals[job]);
	report(&sum, seconds_now() - start);
	if (died)
		printf("a job died\n");
	return died || sum.wrong > 0 ? 1 : 0;
}
