/*
 * test_child.c
 *	  net/child.c: commands that end, that do not, and that print too much.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define BEFORE_EACH make_child
#define AFTER_EACH free_child
#include "../unit.h"
#include "net/net.h"

static reactor *r;
static child *c;
static int	ends;
static char problem[100];
static int	status;
static char output[70000];
static size_t len;
static char errors[2000];

static int
make_child(void **state)
{
	(void) state;
	r = reactor_new();
	c = child_new(r);
	ends = 0;
	return 0;
}

static int
free_child(void **state)
{
	(void) state;
	free(c);
	reactor_free(r);
	return 0;
}

static void
ended(void *arg, const child_end *end)
{
	assert_ptr_equal(arg, &ends);
	ends++;
	snprintf(problem, sizeof(problem), "%s", end->problem != NULL ? end->problem : "");
	status = end->status;
	len = end->len;
	memcpy(output, end->output, len + 1);
	snprintf(errors, sizeof(errors), "%s", end->errors);
}

static void
run(const char *command, int timeout_ms)
{
	struct pollfd fd = {.fd = reactor_fd(r),.events = POLLIN};
	int			before = ends;

	assert_true(child_start(c, command, timeout_ms, ended, &ends));
	while (ends == before)
	{
		assert_int_equal(poll(&fd, 1, 60000), 1);
		reactor_run(r);
	}
	assert_int_equal(ends, before + 1);
}

TEST(output_and_status)
{
	run("printf 'a\\nb'; exit 3", 30000);
	assert_string_equal(problem, "");
	assert_int_equal(status, 3);
	assert_string_equal(output, "a\nb");
	assert_string_equal(errors, "");
	run("cat; echo said >&2", 30000);
	assert_int_equal(status, 0);
	assert_string_equal(output, "");
	assert_string_equal(errors, "said\n");
	run("kill -9 $$", 30000);
	assert_string_equal(problem, "was ended by a signal");
}

TEST(output_of_all_sizes)
{
	run("head -c 65536 /dev/zero | tr '\\0' x", 30000);
	assert_string_equal(problem, "");
	assert_int_equal(strlen(output), 65536);
	run("head -c 65537 /dev/zero | tr '\\0' x", 30000);
	assert_string_equal(problem, "printed too much");
	run("cat /dev/zero", 30000);
	assert_string_equal(problem, "printed too much");
	run("echo again", 30000);
	assert_string_equal(output, "again\n");
}

TEST(the_end_of_errors_of_all_sizes)
{
	run("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo the end >&2; exit 1", 30000);
	assert_int_equal(status, 1);
	assert_true(strlen(errors) >= 512 && strlen(errors) <= 1024);
	assert_string_equal(strchr(errors, 't'), "the end\n");
	/* Its output is at its end: what comes then is not waited for. */
	run("exec >&-; echo late >&2", 30000);
	assert_int_equal(status, 0);
	run("yes >&2", 500);
	assert_string_equal(problem, "ran for too long");
}

TEST(what_takes_too_long_is_killed_with_all_that_it_started)
{
	char		command[100];
	char		name[] = "/tmp/ddblock_child_XXXXXX";
	int			fd = mkstemp(name);

	/* The shell waits for a child of its own, which holds the pipe as well. */
	snprintf(command, sizeof(command), "sleep 1000 & echo $! >%s; wait", name);
	run(command, 1000);
	assert_string_equal(problem, "ran for too long");
	len = read(fd, output, 20);
	output[len] = '\0';
	snprintf(command, sizeof(command), "/proc/%d/cmdline", atoi(output));
	for (int tries = 0; tries < 1000 && access(command, F_OK) == 0; tries++)
	{
		FILE	   *file = fopen(command, "r");
		size_t		got = file != NULL ? fread(output, 1, 10, file) : 0;

		if (file != NULL)
			fclose(file);
		if (got == 0)
			break;				/* a zombie that init has to collect */
		usleep(10000);
		assert_int_not_equal(tries, 999);
	}
	close(fd);
	unlink(name);
}

/* What is left to process 1, or is not waited for, may be taken for a crashed backend. */
static void
assert_no_child_is_left(void)
{
	int			ours = 0;

	prctl(PR_GET_CHILD_SUBREAPER, &ours);
	assert_int_equal(ours, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

TEST(all_that_a_command_started_is_collected)
{
	run("sleep 1000 >&- & printf x", 30000);
	assert_string_equal(problem, "");
	assert_string_equal(output, "x");
	assert_no_child_is_left();
	run("(sleep 1000 & sleep 1000) >&- & exit 3", 30000);
	assert_int_equal(status, 3);
	assert_no_child_is_left();
	run("sleep 1000 | cat", 300);
	assert_string_equal(problem, "ran for too long");
	assert_no_child_is_left();
	run("cat /dev/zero | cat", 30000);
	assert_string_equal(problem, "printed too much");
	assert_no_child_is_left();
}

TEST(a_killed_command_is_collected_with_all_that_it_started)
{
	assert_true(child_start(c, "sleep 1000 & sleep 1000 | cat", 30000, ended, &ends));
	usleep(100000);
	child_kill(c);
	assert_no_child_is_left();
	child_kill(c);
}

TEST(a_command_in_a_hurry_is_killed)
{
	struct pollfd fd = {.fd = reactor_fd(r),.events = POLLIN};

	child_hurry(c);
	for (int i = 0; i < 2; i++)
	{
		const char *const commands[] = {"sleep 1000", "exec >&-; sleep 1000"};

		assert_true(child_start(c, commands[i], 60000, ended, &ends));
		usleep(100000);
		reactor_run(r);
		child_hurry(c);
		assert_int_equal(ends, i);
		while (ends == i)
		{
			assert_int_equal(poll(&fd, 1, 30000), 1);
			reactor_run(r);
		}
		assert_string_equal(problem, "ran for too long");
		assert_no_child_is_left();
	}
}

TEST(what_closes_its_output_first_is_waited_for)
{
	run("exec >&-; sleep 0.3; exit 4", 30000);
	assert_int_equal(status, 4);
	run("exec >&-; sleep 1000", 300);
	assert_string_equal(problem, "ran for too long");
}

TEST(it_gets_no_descriptors_and_no_blocked_signals)
{
	int			fd = dup(1);
	sigset_t	blocked,
				before;

	sigfillset(&blocked);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	run("ls /proc/self/fd | wc -l; grep -c '^SigBlk:.0*$' /proc/self/status", 30000);
	sigprocmask(SIG_SETMASK, &before, NULL);
	/* 0, 1, 2, and the folder that ls reads */
	assert_string_equal(output, "4\n1\n");
	close(fd);
}
