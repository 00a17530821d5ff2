/*-------------------------------------------------------------------------
 *
 * ddblock_run.c
 *	  ddblock-run: runs a command under a lock of ddblock.
 *
 * A session of ddblock-run takes the lock (lease.c).  The environment of the command (command.c)
 * makes the command's sessions join the lock.  The server can refuse their work if the lock is
 * lost, but only ddblock-run can stop what the command does outside of the database.  So it asks
 * the server again and again until when the lock is its own, and ends the command before that.
 * When the command has ended, sessions that it has left behind may still hold the lock.
 * ddblock-run waits for these, and then releases the lock.
 *
 * There is one thread.  wait_for_event() waits for signals, the end of the command, answers and
 * the deadline.  main() has the order of events.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"
#include "shared/version.h"

#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define ASK_MIN_US		INT64_C(100000)
#define ASK_MAX_US		INT64_C(2000000)
#define LEAVE_ASK_US	INT64_C(100000)
#define LEAVE_TELL_US	INT64_C(2000000)

static const char usage[] =
"ddblock-run runs a command under a lock of ddblock.\n\n"
"Usage:\n"
"  ddblock-run [OPTION]... NAME [OPTION]... [--] COMMAND [ARGUMENT]...\n"
"  ddblock-run --check [-d DBNAME]\n\n"
"Options:\n"
"  -d, --dbname=DBNAME   database, or connection string (default: as psql)\n"
"  -l, --lease=INTERVAL  length of the lease (default: ddblock.lease_duration)\n"
"  -w, --wait=INTERVAL   wait so long for the lock (default: without limit)\n"
"  -n, --nonblock        do not wait\n"
"  -E, --conflict-exit-code=STATUS\n"
"                        if the lock is not free in time (default: 1)\n"
"      --check           run no command, but ddb_check(): is the cluster ready?\n"
"  -V, --version         show the version\n"
"  -?, --help            show this help\n\n"
"The command's exit status is ours, or 128 + the signal that ended it; 75: --check misses\n"
"something; 124: the lock was lost, the command was ended if it still ran; 125: ddblock-run\n"
"failed; 126, 127: the command cannot be run, is not found.\n";

static int
status_of(const char *value)
{
	char	   *end;
	long		status = strtol(value, &end, 10);

	if (end == value || *end != '\0' || status < 0 || status > 255)
		die("an exit status is between 0 and 255, not \"%s\"", value);
	return (int) status;
}

/* Reads options up to the first argument that is none, or past "--". */
static void
read_options(int argc, char **argv, lease_wish *wish)
{
	static const struct option known[] = {
		{"dbname", required_argument, NULL, 'd'},
		{"lease", required_argument, NULL, 'l'},
		{"wait", required_argument, NULL, 'w'},
		{"nonblock", no_argument, NULL, 'n'},
		{"conflict-exit-code", required_argument, NULL, 'E'},
		{"check", no_argument, NULL, 'c'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}
	};
	int			c;

	while ((c = getopt_long(argc, argv, "+d:l:w:nE:V?", known, NULL)) != -1)
	{
		/* getopt_long() returns '?' also for an error. */
		if (c == '?' && strcmp(argv[optind - 1], "-?") == 0)
			c = 'h';
		switch (c)
		{
			case 'd':
				wish->dbname = optarg;
				break;
			case 'l':
				wish->length = optarg;
				break;
			case 'w':
				wish->waits = true;
				wish->wait = optarg;
				break;
			case 'n':
				wish->waits = false;
				break;
			case 'E':
				wish->busy_status = status_of(optarg);
				break;
			case 'c':
				wish->checks = true;
				break;
			case 'V':
				puts("ddblock-run (ddblock) " DDBLOCK_VERSION);
				exit(0);
			case 'h':
				fputs(usage, stdout);
				exit(0);
			default:
				fputs("Try \"ddblock-run --help\".\n", stderr);
				exit(EXIT_OURS);
		}
	}
}

/*
 * Reads options and name.  Returns the command.
 *
 * Options may precede and follow the name.  getopt_long() must begin anew behind the name, because
 * it remembers that it has met "--".  So the arguments behind the name become a new argv, of which
 * our program's name is the first element.
 */
static char **
parse(int argc, char **argv, lease_wish *wish)
{
	read_options(argc, argv, wish);
	if (optind < argc)
	{
		wish->name = argv[optind];
		argv[optind] = argv[0];
		argv += optind;
		argc -= optind;
		optind = 0;
		read_options(argc, argv, wish);
	}
	if (wish->checks && optind >= argc && wish->name == NULL)
		exit(lease_check(wish->dbname));
	if (optind >= argc || wish->checks)
	{
		say(wish->checks ? "--check takes no lock and no command" :
			"a lock's name and a command are needed");
		fputs("Try \"ddblock-run --help\".\n", stderr);
		exit(EXIT_OURS);
	}
	return argv + optind;
}

/*
 * Waits until something happens, but not longer than until that time.  Updates "command" and
 * "lease".  Returns the last signal that was meant to end ddblock-run; 0: none.
 */
static int
wait_for_event(int64_t until)
{
	struct pollfd fds[2] = {
		{.fd = command.signals,.events = POLLIN},
		{.fd = lease_socket(),.events = POLLIN},
	};
	int64_t		sleep_us;
	int			ending;

	if (!lease.lost && lease_end_at() < until)
		until = lease_end_at();
	sleep_us = between(0, until - now_us(), ASK_MAX_US);
	(void) poll(fds, 2, (int) ((sleep_us + 999) / 1000));
	ending = command_read_signals();
	lease_read();
	if (!lease.lost && now_us() >= lease_end_at())
		lease_lose("its lease was not renewed in time");
	return ending;
}

/* Waits until the command has ended.  If the lock is lost, ends the command before the deadline. */
static void
watch_command(void)
{
	while (command.runs)
	{
		int64_t		now = now_us();

		if (!lease.lost)
			wait_for_event(lease_ask(between(ASK_MIN_US, lease.length_us / 10, ASK_MAX_US)));
		else
		{
			command_end(now >= lease.deadline);
			wait_for_event(now < lease.deadline ? lease.deadline : now + ASK_MIN_US);
		}
	}
}

/*
 * Waits until no session that the command has left behind holds the lock.  Returns 0 then; if the
 * lock is lost or a signal ends the wait, returns our exit status.
 *
 * Asks the server at least once, because the lock was ours until the command's end only if an
 * answer to a question that was sent after that end says so.  If another ddblock-run holds the lock
 * and runs us (lease.joined), the sessions of that one hold it, too, so we do not wait for others.
 */
static int
wait_for_joined(void)
{
	int64_t		since = now_us();
	bool		said = false;

	while (!lease.lost)
	{
		int			ending;

		if (lease.told_at >= since && (lease.joined || lease.others[0] == '\0'))
			return 0;
		if (lease.told_at >= since + LEAVE_TELL_US && !said)
		{
			say("waiting for sessions that have joined lock \"%s\": processes %s",
				lease.name, lease.others);
			said = true;
		}
		ending = wait_for_event(lease_ask(LEAVE_ASK_US));
		if (ending != 0)
		{
			say("a signal has ended the waiting for sessions that have joined lock \"%s\"", lease.name);
			return EXIT_SIGNAL + ending;
		}
	}
	return EXIT_LOST;
}

/* Releases the lock.  The work is done, so an error is only printed, and changes no exit status. */
static void
release(void)
{
	while (!lease.released && !lease.lost)
	{
		if (wait_for_event(lease_release()) != 0)
			break;
	}
	if (!lease.released)
		say("the server has not confirmed that lock \"%s\" is released", lease.name);
}

/*
 * Opens those of the descriptors 0 to 2 that are closed.  Otherwise a socket could get the number
 * 2, and messages would go into it.
 */
static void
open_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
	{
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			exit(EXIT_OURS);
	}
}

int
main(int argc, char **argv)
{
	lease_wish	wish = {.waits = true,.busy_status = EXIT_BUSY};
	int			status;

	open_standard_descriptors();
	argv = parse(argc, argv, &wish);
	setlocale(LC_ALL, "");
	lease_take(&wish);
	command_start(argv);
	watch_command();
	status = wait_for_joined();
	/* Kill processes that the command has left in its group: they have no lock any more. */
	if (status == EXIT_LOST)
		command_end(true);
	if (status == 0)
	{
		release();
		status = command.status;
	}
	lease_close();
	return status;
}
