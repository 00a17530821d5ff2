/*-------------------------------------------------------------------------
 *
 * ddblock_run.c
 *	  ddblock-run: runs a command under a lock of ddblock.
 *
 * A session of its own takes the lock.  The command is told in its environment how
 * its sessions join it.  What the command does outside of the database nobody can
 * interrupt but us: we ask again and again until when the lease is valid, and end the
 * command before that.
 *
 * Why not a detached lock: when this program is killed, nothing is left but what the
 * command's sessions have joined.  The server's end of the connection must then not
 * find out sooner than we do that the connection is broken: see prepare_session().
 *
 * Everything happens in one thread and one poll(): signals, the end of the command, and
 * answers.  After the lock is taken, no call waits for the server.
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

/* Exit statuses, as flock(1) and timeout(1) have them. */
#define EXIT_BUSY		1		/* the lock was not free in time; --conflict-exit-code */
#define EXIT_LOST		124		/* the command was ended, or the lock was lost */
#define EXIT_OURS		125		/* ddblock-run itself failed */
#define EXIT_NO_EXEC	126		/* the command cannot be run */
#define EXIT_NOT_FOUND	127		/* ... or is not there */
#define EXIT_SIGNAL		128		/* plus the signal that ended the command */

#define LOCK_NOT_AVAILABLE "55P03"

#define ASK_MIN_US		INT64_C(100000)
#define ASK_MAX_US		INT64_C(2000000)
#define LEAVE_ASK_US	INT64_C(100000)
#define LEAVE_TELL_US	INT64_C(2000000)

typedef struct options
{
	const char *dbname;
	const char *lease;
	const char *wait;
	int			busy_status;
	const char *name;
	char	  **command;
} options;

static PGconn *conn;
static char *schema;			/* of the extension, quoted */
static const char *lock;
static char token[24];
static bool joined;				/* somebody else has taken the lock: who runs us, too */

static int	signals;			/* signalfd */
static pid_t child;				/* 0: has ended */
static int	child_status;
static int64_t lease_us;
static int64_t deadline;		/* on now_us(): the lease is valid until then */
static int64_t asked_at;		/* the question that is not answered; 0: none */
static bool lost;				/* the lock, or the connection */
static bool terminated;			/* the command was told to end */

static void say(const char *format,...) __attribute__((format(printf, 1, 2)));
static char *format(const char *format,...) __attribute__((format(printf, 1, 2)));

static void
say(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	fputs("ddblock-run: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

#define die(...) \
	do { say(__VA_ARGS__); exit(EXIT_OURS); } while (0)

static void *
checked(void *memory)
{
	if (memory == NULL)
		die("out of memory");
	return memory;
}

static char *
format(const char *format,...)
{
	va_list		args;
	char	   *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		die("out of memory");
	va_end(args);
	return text;
}

/* The clock of leases; it counts the time in which the machine sleeps. */
static int64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- the command line ---- */

static const char usage[] =
"ddblock-run runs a command under a lock of ddblock.\n\n"
"Usage:\n"
"  ddblock-run [OPTION]... NAME [OPTION]... [--] COMMAND [ARGUMENT]...\n\n"
"Options:\n"
"  -d, --dbname=DBNAME   database, or connection string (default: as psql)\n"
"  -l, --lease=INTERVAL  length of the lease (default: ddblock.lease_duration)\n"
"  -w, --wait=INTERVAL   wait so long for the lock (default: without limit)\n"
"  -n, --nonblock        do not wait\n"
"  -E, --conflict-exit-code=STATUS\n"
"                        if the lock is not free in time (default: 1)\n"
"  -V, --version         show the version\n"
"  -?, --help            show this help\n\n"
"The command's exit status is ours, or 128 + the signal that ended it; 124: the lock was\n"
"lost, and the command was ended; 125: ddblock-run failed; 126, 127: the command cannot be\n"
"run, is not found.\n";

static int
status_of(const char *text)
{
	char	   *end;
	long		status = strtol(text, &end, 10);

	if (end == text || *end != '\0' || status < 0 || status > 255)
		die("an exit status is between 0 and 255, not \"%s\"", text);
	return (int) status;
}

/* Stops at what is no option. */
static void
read_options(int argc, char **argv, options *o)
{
	static const struct option known[] = {
		{"dbname", required_argument, NULL, 'd'},
		{"lease", required_argument, NULL, 'l'},
		{"wait", required_argument, NULL, 'w'},
		{"nonblock", no_argument, NULL, 'n'},
		{"conflict-exit-code", required_argument, NULL, 'E'},
		{"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, '?'},
		{NULL, 0, NULL, 0}
	};
	int			c;

	while ((c = getopt_long(argc, argv, "+d:l:w:nE:V", known, NULL)) != -1)
	{
		switch (c)
		{
			case 'd':
				o->dbname = optarg;
				break;
			case 'l':
				o->lease = optarg;
				break;
			case 'w':
				o->wait = optarg;
				break;
			case 'n':
				o->wait = "";
				break;
			case 'E':
				o->busy_status = status_of(optarg);
				break;
			case 'V':
				puts("ddblock-run (ddblock) " DDBLOCK_VERSION);
				exit(0);
			default:
				if (strcmp(argv[optind - 1], "--help") == 0 || strcmp(argv[optind - 1], "-?") == 0)
				{
					fputs(usage, stdout);
					exit(0);
				}
				fputs("Try \"ddblock-run --help\".\n", stderr);
				exit(EXIT_OURS);
		}
	}
}

static options
parse(int argc, char **argv)
{
	options		o = {.busy_status = EXIT_BUSY};

	read_options(argc, argv, &o);
	if (optind < argc)
	{
		o.name = argv[optind++];
		read_options(argc, argv, &o);
	}
	if (optind >= argc)
	{
		say("a lock's name and a command are needed");
		fputs("Try \"ddblock-run --help\".\n", stderr);
		exit(EXIT_OURS);
	}
	o.command = argv + optind;
	return o;
}

/* ---- before the command runs: we may wait for the server, and be killed ---- */

static void
connect_to(const char *dbname)
{
	const char *const keywords[] = {"dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {dbname, "ddblock-run", "auto", NULL};

	conn = PQconnectdbParams(keywords, values, 1);
	if (PQstatus(conn) != CONNECTION_OK)
	{
		fprintf(stderr, "ddblock-run: %s", PQerrorMessage(conn));
		exit(EXIT_OURS);
	}
}

/* One row; an error ends the program, with busy_status if the lock was not free in time. */
static PGresult *
query(int busy_status, const char *sql, int count, const char *const *values)
{
	PGresult   *result = PQexecParams(conn, sql, count, NULL, values, NULL, NULL, 0);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1)
		return result;
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		die("the extension ddblock is not in database \"%s\"", PQdb(conn));
	fprintf(stderr, "ddblock-run: %s", PQresultErrorMessage(result));
	exit(sqlstate != NULL && strcmp(sqlstate, LOCK_NOT_AVAILABLE) == 0 ? busy_status : EXIT_OURS);
}

static char *
value_of(PGresult *result)
{
	char	   *value = checked(strdup(PQgetvalue(result, 0, 0)));

	PQclear(result);
	return value;
}

/*
 * Nothing may end the session's statements but us.  If the connection breaks, the server
 * must not release the lock before we have ended the command: we do so at the deadline
 * that we were told last, at most a lease after the last message.  The server asks a
 * silent client no sooner.  While we wait for the lock, it may: then we hold nothing.
 */
static void
prepare_session(void)
{
	PGresult   *result;
	char	   *name;

	result = query(EXIT_OURS, "SELECT nspname FROM pg_catalog.pg_extension e "
				   "JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) e.extnamespace "
				   "WHERE extname OPERATOR(pg_catalog.=) 'ddblock'", 0, NULL);
	name = value_of(result);
	schema = checked(PQescapeIdentifier(conn, name, strlen(name)));
	free(name);
	PQclear(query(EXIT_OURS,
				  "SELECT pg_catalog.set_config('client_connection_check_interval', '1s', false),"
				  " pg_catalog.set_config('statement_timeout', '0', false),"
				  " pg_catalog.set_config('lock_timeout', '0', false),"
				  " pg_catalog.set_config('idle_session_timeout', '0', false),"
				  " pg_catalog.set_config('tcp_user_timeout', '0', false)", 0, NULL));
}

/* Sets the token.  False: the lock is not free. */
static bool
acquire(const options *o)
{
	const char *values[] = {o->name, o->lease, o->wait};
	bool		waits = o->wait == NULL || o->wait[0] != '\0';
	PGresult   *granted = waits ?
		query(o->busy_status,
			  format("SELECT %s.ddb_lock_acquire($1, lease => $2, wait => $3)", schema), 3, values) :
		query(EXIT_OURS,
			  format("SELECT %s.ddb_lock_try_acquire($1, lease => $2)", schema), 2, values);

	snprintf(token, sizeof(token), "%s", PQgetvalue(granted, 0, 0));
	PQclear(granted);
	return token[0] != '\0';
}

static bool
is_plain(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		strchr("/-._~", c) != NULL;
}

/* TOKEN:NAME, the name as lock/join_list.h wants it. */
static char *
join_entry(void)
{
	char	   *hex = value_of(query(EXIT_OURS, "SELECT pg_catalog.encode(pg_catalog.convert_to($1, 'UTF8'), 'hex')",
									 1, &lock));
	char	   *name = checked(calloc(strlen(hex) * 2 + 1, 1));
	char	   *to = name;

	for (const char *at = hex; *at != '\0'; at += 2)
	{
		unsigned int c;

		sscanf(at, "%2x", &c);
		if (c != 0 && is_plain((unsigned char) c))
			*to++ = (char) c;
		else
			to += sprintf(to, "%%%02X", c);
	}
	free(hex);
	to = format("%s:%s", token, name);
	free(name);
	return to;
}

/* Is the entry in the list? */
static bool
has_entry(const char *list, const char *entry)
{
	size_t		len = strlen(entry);

	for (const char *at = list; (at = strstr(at, entry)) != NULL; at += len)
	{
		if ((at == list || at[-1] == ',') && (at[len] == '\0' || at[len] == ','))
			return true;
	}
	return false;
}

/*
 * What the command's sessions join: what we were told to join ourselves, and our lock.  In
 * PGOPTIONS, the last value counts; a backslash protects a space.
 */
static void
set_environment(void)
{
	char	   *list = value_of(query(EXIT_OURS, "SELECT pg_catalog.current_setting('ddblock.join')",
									  0, NULL));
	char	   *entry = join_entry();
	const char *pgoptions = getenv("PGOPTIONS");

	joined = has_entry(list, entry);
	if (!joined)
		list = format("%s%s%s", list, list[0] != '\0' ? "," : "", entry);
	if (setenv("DDBLOCK_TOKEN", token, 1) != 0 || setenv("DDBLOCK_JOIN", list, 1) != 0 ||
		setenv("PGOPTIONS", format("%s%s-c ddblock.join=%s", pgoptions ? pgoptions : "",
								   pgoptions && pgoptions[0] ? " " : "", list), 1) != 0)
		die("out of memory");
}

/* ---- the lease ---- */

static const char *
ask_text(void)
{
	static char *text;

	if (text == NULL)
		text = format("SELECT (pg_catalog.date_part('epoch', time_left) * 1000000)::bigint,"
					  " (pg_catalog.date_part('epoch', lease) * 1000000)::bigint"
					  " FROM %s.ddb_locks WHERE name OPERATOR(pg_catalog.=) $1"
					  " AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()"
					  " AND state OPERATOR(pg_catalog.=) 'held'", schema);
	return text;
}

static const char *
others_text(void)
{
	static char *text;

	if (text == NULL)
		text = format("SELECT count(*), pg_catalog.string_agg(pid::text, ', ')"
					  " FROM %s.ddb_locks WHERE name OPERATOR(pg_catalog.=) $1"
					  " AND token OPERATOR(pg_catalog.=) $2::bigint"
					  " AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()", schema);
	return text;
}

static const char *
release_text(void)
{
	static char *text;

	if (text == NULL)
		text = format("SELECT %s.ddb_lock_release($1)", schema);
	return text;
}

static int64_t
between(int64_t low, int64_t value, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}

/* Time for the command to end by itself. */
static int64_t
grace(void)
{
	return between(200000, lease_us / 10, 5000000);
}

/* Who finds that the lock is gone does not know for how long. */
static void
lose(const char *why)
{
	int64_t		soon = now_us() + grace();

	if (lost)
		return;
	lost = true;
	deadline = soon < deadline ? soon : deadline;
	say("lock \"%s\" is lost: %.*s", lock, (int) strcspn(why, "\n"), why);
}

/* Reads the first row's numbers from an answer to ask_text(). */
static void
read_lease(PGresult *result, int64_t sent)
{
	int64_t		left;

	if (PQntuples(result) != 1 || PQgetisnull(result, 0, 0))
	{
		lose("the server does not hold it any more");
		return;
	}
	left = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
	lease_us = strtoll(PQgetvalue(result, 0, 1), NULL, 10);
	deadline = sent + left;
}

static void
ask_first(void)
{
	int64_t		sent = now_us();
	PGresult   *result = query(EXIT_OURS, ask_text(), 1, &lock);
	char		seconds[24];
	const char *values[] = {seconds};

	read_lease(result, sent);
	PQclear(result);
	if (lost)
		exit(EXIT_LOST);
	snprintf(seconds, sizeof(seconds), "%" PRId64, lease_us / 1000000 + 60);
	PQclear(query(EXIT_OURS, "SELECT pg_catalog.set_config('tcp_keepalives_idle', $1, false)", 1, values));
}

/* When the command must begin to end, so that it has ended at the deadline. */
static int64_t
end_at(void)
{
	return deadline - grace();
}

static void
send_question(const char *sql, int count, const char *const *values)
{
	asked_at = now_us();
	if (!PQsendQueryParams(conn, sql, count, NULL, values, NULL, NULL, 0) || PQflush(conn) < 0)
		lose(PQerrorMessage(conn));
}

/*
 * The answer to a question, or NULL if it is not there yet, or the lock is lost.  It is
 * whole when the server is ready for the next question.
 */
static PGresult *
read_answer(void)
{
	static PGresult *answer;
	PGresult   *whole;
	PGresult   *next = NULL;

	if (lost || !PQconsumeInput(conn) || PQstatus(conn) != CONNECTION_OK || PQflush(conn) < 0)
	{
		lose("the connection to the server is broken");
		return NULL;
	}
	while (asked_at != 0 && !PQisBusy(conn))
	{
		next = PQgetResult(conn);
		if (next == NULL)
			break;
		PQclear(answer);
		answer = next;
	}
	if (asked_at == 0 || PQisBusy(conn) || next != NULL)
		return NULL;
	whole = answer;
	answer = NULL;
	if (PQresultStatus(whole) == PGRES_TUPLES_OK)
		return whole;
	lose(PQresultErrorMessage(whole));
	PQclear(whole);
	return NULL;
}

/* ---- the command ---- */

static void
run_child(char **command, pid_t parent, const sigset_t *old_signals)
{
	(void) setpgid(0, 0);
	if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgid(parent))
	{
		signal(SIGTTOU, SIG_IGN);
		(void) tcsetpgrp(STDIN_FILENO, getpid());
		signal(SIGTTOU, SIG_DFL);
	}
	/* Nobody but us ends it in time. */
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_OURS);
	sigprocmask(SIG_SETMASK, old_signals, NULL);
	execvp(command[0], command);
	say("could not run \"%s\": %s", command[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NO_EXEC);
}

static void
start_command(char **command)
{
	pid_t		parent = getpid();
	sigset_t	ours;
	sigset_t	old;

	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGQUIT);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_BLOCK, &ours, &old);
	signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	child = signals >= 0 ? fork() : -1;
	if (child < 0)
		die("could not run the command: %s", strerror(errno));
	if (child == 0)
		run_child(command, parent, &old);
	(void) setpgid(child, child);
	signal(SIGPIPE, SIG_IGN);
}

static void
reap(void)
{
	int			status;

	if (child == 0 || waitpid(child, &status, WNOHANG) != child)
		return;
	child_status = WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
	/* What it has left behind in its group has no lock any more. */
	if (lost || terminated)
		(void) kill(-child, SIGKILL);
	child = 0;
}

/* Returns the last signal that was meant to end us, or 0. */
static int
read_signals(void)
{
	struct signalfd_siginfo info;
	int			ending = 0;

	while (read(signals, &info, sizeof(info)) == sizeof(info))
	{
		if (info.ssi_signo != SIGCHLD)
			ending = (int) info.ssi_signo;
		if (ending != 0 && child != 0)
			(void) kill(-child, ending);
	}
	reap();
	return ending;
}

static void
end_command(int64_t now)
{
	if (child == 0)
		return;
	if (!terminated)
	{
		say("ending the command");
		(void) kill(-child, SIGTERM);
		(void) kill(-child, SIGCONT);
		terminated = true;
	}
	if (now >= deadline)
		(void) kill(-child, SIGKILL);
}

/* Sleeps until then, or until a signal or the server says something. */
static void
sleep_until(int64_t moment)
{
	struct pollfd fds[2] = {
		{.fd = signals,.events = POLLIN},
		{.fd = lost ? -1 : PQsocket(conn),.events = POLLIN},
	};
	int64_t		wait_us = between(0, moment - now_us(), ASK_MAX_US);

	(void) poll(fds, 2, (int) ((wait_us + 999) / 1000));
}

/* Until the command has ended. */
static void
watch_command(void)
{
	int64_t		next_ask = 0;

	while (child != 0)
	{
		int64_t		now = now_us();
		int64_t		wake;
		PGresult   *answer;

		if (!lost && asked_at == 0 && now >= next_ask)
		{
			send_question(ask_text(), 1, &lock);
			next_ask = now + between(ASK_MIN_US, lease_us / 10, ASK_MAX_US);
		}
		if (!lost && now >= end_at())
			lose("its lease was not renewed in time");
		if (lost)
			end_command(now);
		wake = lost ? (now < deadline ? deadline : now + ASK_MIN_US) : end_at();
		if (!lost && asked_at == 0 && next_ask < wake)
			wake = next_ask;
		sleep_until(wake);
		(void) read_signals();
		if (!lost && (answer = read_answer()) != NULL)
		{
			read_lease(answer, asked_at);
			PQclear(answer);
			asked_at = 0;
		}
	}
}

/* ---- afterwards ---- */

/* Sends the question and waits for its answer; NULL: lost, or a signal ends us. */
static PGresult *
ask(const char *sql, int count, const char *const *values)
{
	PGresult   *answer = NULL;

	if (asked_at == 0)
		send_question(sql, count, values);
	while (!lost && answer == NULL)
	{
		sleep_until(INT64_MAX);
		if (read_signals() != 0)
			return NULL;
		answer = read_answer();
	}
	asked_at = 0;
	return answer;
}

/* Sessions of the command that its end has left behind. */
static void
wait_for_joined(void)
{
	const char *values[] = {lock, token};
	int64_t		since = now_us();
	bool		told = false;
	PGresult   *answer;

	if (asked_at != 0)			/* the last question about the lease */
	{
		if ((answer = ask(NULL, 0, NULL)) == NULL)
			return;
		read_lease(answer, now_us());
		PQclear(answer);
	}
	while (!lost && (answer = ask(others_text(), 2, values)) != NULL)
	{
		int64_t		now = now_us();
		int64_t		until = now + LEAVE_ASK_US;
		bool		none = strcmp(PQgetvalue(answer, 0, 0), "0") == 0;

		if (!none && !told && now - since > LEAVE_TELL_US)
		{
			say("waiting for sessions that have joined lock \"%s\": processes %s", lock,
				PQgetvalue(answer, 0, 1));
			told = true;
		}
		PQclear(answer);
		if (none)
			return;
		for (; now < until; now = now_us())
		{
			sleep_until(until);
			if (read_signals() != 0)
				return;
			if (PQstatus(conn) == CONNECTION_OK && !PQconsumeInput(conn))
				return;
		}
	}
}

static void
release(void)
{
	PGresult   *answer = ask(release_text(), 1, &lock);

	if (answer == NULL)
		return;
	if (strcmp(PQgetvalue(answer, 0, 0), "t") != 0)
		lose("before it was released");
	PQclear(answer);
}

int
main(int argc, char **argv)
{
	options		o = parse(argc, argv);

	setlocale(LC_ALL, "");
	lock = o.name;
	connect_to(o.dbname);
	prepare_session();
	if (!acquire(&o))
	{
		say("lock \"%s\" is not free", lock);
		return o.busy_status;
	}
	set_environment();
	ask_first();
	if (PQsetnonblocking(conn, 1) != 0)
		die("%s", PQerrorMessage(conn));
	start_command(o.command);

	watch_command();
	/* A lock that we have joined ourselves is not ours to release. */
	if (!lost && !joined)
		wait_for_joined();
	if (!lost && !joined)
		release();
	PQfinish(conn);
	return lost ? EXIT_LOST : child_status;
}
