/*
 * client.c
 *	  The torture's workload: many sessions in several clusters, one process, a
 *	  history of all they did and what came of it.
 *
 *	client HISTORY QUEUES SESSIONS PAUSE_MS SEED fenced|unfenced SOCKET_DIR:PORT...
 *
 * Each line that it reads is a command, each line that it writes an answer:
 *
 *	run					sessions connect and work
 *	quiet				sessions end their plans and disconnect, or rest; "quiet" when
 *						all have
 *	probe MS			every lock is acquired once, waiting at most so long, and
 *						released; "probed" when all are (only when quiet)
 *	drain				a few sessions of each cluster work on jobs until they find
 *						none; "drained" when they have (only when quiet)
 *	stop CLUSTER before|after	one of that cluster's next transactions stops its
 *						backend right before or after the guard
 *	late CLUSTER		some of that cluster's next plans complete a job, and commit a
 *						second later
 *	end					ends the program (only when quiet)
 *
 * A line of the history has, between tabs: operation, session (cluster, number,
 * how often it has connected), lock, token, sent, received, server's time before
 * and after the call, SQLSTATE ("lost": the connection was), the write's id,
 * the lock's mode ("exclusive", with a minimum "exclusive MS", "shared",
 * "semaphore PERMITS/LIMIT"), a detail.
 * A line of QUEUES, for the calls about queues, has: operation, session, queue,
 * resource, token, the four times, SQLSTATE, the jobs ("UID:NUMBER,...", number
 * 0: not known; "-": none), a detail.
 * All times are CLOCK_BOOTTIME in microseconds; 0: not known.
 */
#define _GNU_SOURCE

#include "client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SESSIONS_MAX 512
#define RECONNECT_MS 200
#define CONNECT_SECONDS 15
#define LATE_PLANS 4

typedef enum State
{
	DOWN,						/* until "wake" */
	CONNECTING,
	IDLE,						/* until "wake" */
	BUSY
} State;

typedef enum Mode
{
	QUIET,
	RUN,
	PROBE,
	DRAIN
} Mode;

typedef struct Session
{
	int			cluster;
	int			number;
	int			connection;		/* how often it has connected */
	State		state;
	PGconn	   *conn;
	bool		want_write;		/* CONNECTING: what libpq waits for */
	int64_t		wake;
	int64_t		sent;
	int64_t		cancel_at;		/* 0: never */
	PGresult   *result;
	bool		dry;			/* DRAIN: it has found no job */
	Plan		plan;
} Session;

static FILE *history;
static FILE *queues;
static Session sessions[SESSIONS_MAX];
static int	session_count;
static int	cluster_count;
static const char *places[CLUSTERS_MAX];
static int	pause_ms;
static Mode mode = QUIET;
static bool mode_reported = true;
static int	next_probe;
static int	probe_wait_ms;
static int	stops[CLUSTERS_MAX];	/* 0: none, 1: before, 2: after */
static int	late[CLUSTERS_MAX]; /* so many of its next plans commit late */
static int64_t heard[CLUSTERS_MAX][ALL_LOCKS];	/* tokens of exclusive locks; 0: none */

static int64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- history ---- */

static int64_t
field(const PGresult *result, int column)
{
	if (result == NULL || PQntuples(result) != 1 || PQnfields(result) <= column)
		return 0;
	return strtoll(PQgetvalue(result, 0, column), NULL, 10);
}

static const char *
sqlstate_of(const PGresult *result)
{
	const char *code;

	if (result == NULL)
		return "lost";
	if (PQresultStatus(result) == PGRES_TUPLES_OK ||
		PQresultStatus(result) == PGRES_COMMAND_OK)
		return "00000";
	code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	return code != NULL ? code : "lost";
}

static void
put_line(FILE *file, const char *text)
{
	for (; text != NULL && *text; text++)
		fputc(*text == '\t' || *text == '\n' ? ' ' : *text, file);
}

/* Of an error its message, of a question that is not about tokens its answer. */
static void
put_detail(const Step *step, const PGresult *result, bool good)
{
	const char *text = "";

	if (good && PQntuples(result) == 1 && PQnfields(result) == 3 &&
		!op_returns_token(step->op))
		text = PQgetvalue(result, 0, 1);
	else if (!good && result != NULL)
		text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	put_line(history, text);
}

/* The column with the token of this slot. */
static int
token_column(const Step *step, int slot)
{
	if (step->op == OP_SEVERAL || step->op == OP_XACT_SEVERAL)
		return slot == 0 ? 1 : 3;
	return step->op == OP_PROCEDURE ? 0 : 1;
}

static void
record_slot(const Session *s, const Step *step, const PGresult *result, int64_t received)
{
	const Plan *plan = &s->plan;
	const char *state = sqlstate_of(result);
	bool		good = strcmp(state, "00000") == 0;
	bool		about_write = step->op == OP_COMMIT || step->op == OP_ROLLBACK;
	bool		call = step->op == OP_PROCEDURE;
	int			slot = about_write ? plan->written_slot : step->slot;
	int64_t		token = plan->token[slot];
	int64_t		write_id = 0;
	char		name[16];
	char		mode_text[48];

	if (op_returns_token(step->op))
		token = good ? field(result, token_column(step, slot)) : 0;
	if (step->op == OP_WRITE || call || about_write)
		write_id = plan->write_id;
	lock_name(plan->lock[slot], name, sizeof(name));
	mode_name(plan, slot, mode_text, sizeof(mode_text));
	fprintf(history, "%s\t%d.%d.%d\t%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%s\t%lld\t%s\t",
			op_names[step->op], s->cluster, s->number, s->connection, name,
			(long long) token, (long long) s->sent, (long long) received,
			(long long) (good ? field(result, call ? 1 : 0) : 0),
			(long long) (good ? field(result, 2) : 0), state, (long long) write_id,
			mode_text);
	put_detail(step, result, good);
	fputc('\n', history);
}

/* What a call about queues has returned first and last is the server's time. */
static void
record_queue(const Session *s, const Step *step, const PGresult *result, int64_t received)
{
	const char *state = sqlstate_of(result);
	bool		good = strcmp(state, "00000") == 0;

	fprintf(queues, "%s\t%d.%d.%d\t", op_names[step->op], s->cluster, s->number, s->connection);
	queue_put_place(queues, &s->plan, step);
	fprintf(queues, "%lld\t%lld\t%lld\t%lld\t%s\t", (long long) s->sent, (long long) received,
			(long long) (good ? field(result, 0) : 0),
			(long long) (good ? field(result, PQnfields(result) - 1) : 0), state);
	queue_put_jobs(queues, &s->plan, step, good ? result : NULL);
	if (!good && result != NULL)
		put_line(queues, PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
	fputc('\n', queues);
}

static void
record(const Session *s, const Step *step, const PGresult *result, int64_t received)
{
	Step		other = *step;

	if (step->op >= OP_Q_BEGIN)
	{
		record_queue(s, step, result, received);
		return;
	}
	record_slot(s, step, result, received);
	other.slot = 1;
	if (step->op == OP_SEVERAL || step->op == OP_XACT_SEVERAL)
		record_slot(s, &other, result, received);
}

/* ---- sessions ---- */

static void
disconnect(Session *s, int64_t wake)
{
	PQclear(s->result);
	s->result = NULL;
	PQfinish(s->conn);
	s->conn = NULL;
	s->state = DOWN;
	s->cancel_at = 0;
	s->wake = wake;
	s->plan.count = s->plan.next = 0;
}

/* Notices are wanted on the wire, not on the screen. */
static void
ignore_notice(void *arg, const PGresult *notice)
{
	(void) arg;
	(void) notice;
}

/*
 * Has it ddblock.release_on_rollback?  As in check.  Such a session rests instead of leaving: what
 * it has rolled back is free all the same.
 */
static bool
undoes(const Session *s)
{
	return s->number % 4 == 3;
}

static void
begin_connecting(Session *s, int64_t now)
{
	/* Without an interruption, the guard alone stands in the way of COMMIT. */
	static const char *const on_loss[] = {"none", "cancel", "terminate"};
	char		info[256];
	const char *place = places[s->cluster];
	const char *colon = strrchr(place, ':');

	snprintf(info, sizeof(info), "host=%.*s port=%s dbname=postgres user=torture "
			 "options='-c ddblock.on_lease_lost=%s -c ddblock.release_on_rollback=%s'",
			 (int) (colon - place), place, colon + 1, on_loss[s->number % 3],
			 undoes(s) ? "on" : "off");
	s->conn = PQconnectStart(info);
	s->state = CONNECTING;
	s->want_write = true;
	s->wake = now + CONNECT_SECONDS * INT64_C(1000000);
	if (s->conn == NULL || PQstatus(s->conn) == CONNECTION_BAD)
		disconnect(s, now + RECONNECT_MS * 1000);
	else
		PQsetNoticeReceiver(s->conn, ignore_notice, NULL);
}

static void
go_on_connecting(Session *s, int64_t now)
{
	switch (PQconnectPoll(s->conn))
	{
		case PGRES_POLLING_READING:
			s->want_write = false;
			break;
		case PGRES_POLLING_WRITING:
			s->want_write = true;
			break;
		case PGRES_POLLING_OK:
			s->connection++;
			s->state = IDLE;
			s->wake = now;
			break;
		default:
			disconnect(s, now + (RECONNECT_MS + random_below(RECONNECT_MS)) * 1000);
	}
}

static void
connection_lost(Session *s, int64_t now)
{
	static const Step hidden = {OP_DISCONNECT, 0, 0, 0};

	if (s->state == BUSY)
		record(s, &s->plan.steps[s->plan.next], NULL, now);
	s->sent = now;
	record(s, &hidden, NULL, now);
	disconnect(s, now + RECONNECT_MS * 1000);
}

static bool
is_resting(const Session *s)
{
	return undoes(s) && s->state == IDLE && s->plan.next >= s->plan.count;
}

/* One session of each cluster for each queue. */
static bool
is_draining(const Session *s)
{
	return mode == DRAIN && s->number < QUEUES && !s->dry;
}

/* Draws the next plan; false: there is nothing to do for this session. */
static bool
next_plan(Session *s)
{
	if (mode == RUN)
	{
		s->plan.undoes = undoes(s);
		s->plan.heard = heard[s->cluster];
		if (stops[s->cluster] != 0)
			plan_stop(&s->plan, stops[s->cluster] == 1);
		else if (late[s->cluster] > 0 && !undoes(s))
		{
			late[s->cluster]--;
			plan_late(&s->plan);
		}
		else
			plan_work(&s->plan);
		stops[s->cluster] = 0;
		return true;
	}
	if (mode == PROBE && next_probe < LOCKS)
	{
		plan_probe(&s->plan, next_probe++, probe_wait_ms);
		return true;
	}
	if (is_draining(s))
	{
		plan_drain(&s->plan, s->number);
		return true;
	}
	return false;
}

static void
start_step(Session *s, int64_t now)
{
	Step	   *step = &s->plan.steps[s->plan.next];
	char		sql[SQL_SIZE];

	s->sent = now;
	if (step->op == OP_DISCONNECT)
	{
		record(s, step, NULL, now);
		disconnect(s, now + random_below(20) * 1000);
	}
	else if (step->op == OP_THINK)
	{
		s->wake = now + step->ms * INT64_C(1000);
		s->plan.next++;
	}
	else if (step_sql(&s->plan, step, sql), !PQsendQuery(s->conn, sql))
	{
		s->state = BUSY;
		connection_lost(s, now);
	}
	else
	{
		s->state = BUSY;
		s->cancel_at = step->cancel_ms > 0 ? now + step->cancel_ms * 1000 : 0;
	}
}

static void
work(Session *s, int64_t now)
{
	if (s->plan.next < s->plan.count)
		start_step(s, now);
	else if (next_plan(s))
	{
		if (pause_ms > 0 && mode == RUN)
			s->wake = now + random_below(2 * pause_ms) * INT64_C(1000);
	}
	else if (undoes(s))
		s->wake = now + RECONNECT_MS * 1000;
	else
	{
		static const Step leave = {OP_DISCONNECT, 0, 0, 0};

		s->sent = now;
		record(s, &leave, NULL, now);
		disconnect(s, now);
	}
}

/* Others of the cluster may join the lock; now and then one tries that too late. */
static void
tell(const Session *s, const Step *step)
{
	const Plan *plan = &s->plan;
	int64_t    *token = &heard[s->cluster][plan->lock[step->slot]];

	if (plan->lock_mode[step->slot] != EXCLUSIVE)
		return;
	if (op_grants(step->op) && step->op != OP_PROCEDURE)
		*token = plan->token[step->slot];
	else if ((step->op == OP_RELEASE || step->op == OP_END) && random_below(4))
		*token = 0;
}

static void
step_ended(Session *s, int64_t now)
{
	Plan	   *plan = &s->plan;
	const Step	step = plan->steps[plan->next++];
	bool		good = strcmp(sqlstate_of(s->result), "00000") == 0;
	bool		in_transaction = PQtransactionStatus(s->conn) != PQTRANS_IDLE;
	bool		found = !good || step.op < OP_Q_BEGIN || queue_take(plan, &step, s->result);

	if (op_grants(step.op))
		plan->token[step.slot] = good ? field(s->result, token_column(&step, step.slot)) : 0;
	if (step.op == OP_SEVERAL || step.op == OP_XACT_SEVERAL)
		plan->token[1] = good ? field(s->result, token_column(&step, 1)) : 0;
	if (good)
		tell(s, &step);
	record(s, &step, s->result, now);
	PQclear(s->result);
	s->result = NULL;
	s->state = IDLE;
	s->cancel_at = 0;
	s->wake = now;
	if (step.op == OP_COMMIT || step.op == OP_ROLLBACK || step.op == OP_PROCEDURE)
		plan->write_id = 0;

	s->dry = s->dry || (mode == DRAIN && !found);

	/* Without the first lock the plan is over; without the second it has no use. */
	if (!good || !found)
		plan_after_error(plan, in_transaction);
	else if (step.op == OP_TRY || step.op == OP_XACT_TRY)
	{
		if (plan->token[step.slot] == 0)
			plan_after_error(plan, in_transaction);
	}
	else if (step.op == OP_LEAD && plan->token[step.slot] == 0)
		plan_follower(plan);
}

static void
read_results(Session *s, int64_t now)
{
	PGresult   *result;

	if (!PQconsumeInput(s->conn))
	{
		connection_lost(s, now);
		return;
	}
	while (s->state == BUSY && !PQisBusy(s->conn))
	{
		result = PQgetResult(s->conn);
		if (result == NULL)
		{
			if (PQstatus(s->conn) == CONNECTION_BAD)
				connection_lost(s, now);
			else
				step_ended(s, now);
			return;
		}
		PQclear(s->result);
		s->result = result;
	}
}

static void
cancel(Session *s)
{
	PGcancel   *handle = PQgetCancel(s->conn);
	char		error[256];

	s->cancel_at = 0;
	PQcancel(handle, error, sizeof(error));
	PQfreeCancel(handle);
}

static void
attend(Session *s, short events, int64_t now)
{
	if (s->state == CONNECTING)
	{
		if (events != 0)
			go_on_connecting(s, now);
		else if (now >= s->wake)
			disconnect(s, now);
	}
	else if (s->state == BUSY)
	{
		if (s->cancel_at != 0 && now >= s->cancel_at)
			cancel(s);
		if (events != 0)
			read_results(s, now);
	}
	else if (s->state == IDLE && events != 0)
	{
		/* Nothing is expected but the end of the connection. */
		if (!PQconsumeInput(s->conn) || PQstatus(s->conn) == CONNECTION_BAD)
			connection_lost(s, now);
	}
	if (s->state == DOWN && now >= s->wake &&
		(mode == RUN || (mode == PROBE && next_probe < LOCKS) || is_draining(s)))
		begin_connecting(s, now);
	if (s->state == IDLE && now >= s->wake)
		work(s, now);
}

/* ---- commands ---- */

static void
report(const char *word)
{
	fflush(history);
	fflush(queues);
	printf("%s\n", word);
	fflush(stdout);
	mode_reported = true;
}

static void
report_rest(void)
{
	if (mode_reported || mode == RUN || (mode == PROBE && next_probe < LOCKS))
		return;
	for (int i = 0; i < session_count; i++)
	{
		if ((sessions[i].state != DOWN && !is_resting(&sessions[i])) || is_draining(&sessions[i]))
			return;
	}
	report(mode == PROBE ? "probed" : mode == DRAIN ? "drained" : "quiet");
	mode = QUIET;
}

static void
end_history(void)
{
	fclose(history);
	fclose(queues);
}

static void
command(char *line)
{
	int			cluster;
	char		word[16];

	if (strcmp(line, "run\n") == 0)
		mode = RUN;
	else if (strcmp(line, "quiet\n") == 0)
	{
		mode = QUIET;
		mode_reported = false;
	}
	else if (sscanf(line, "probe %d", &probe_wait_ms) == 1)
	{
		mode = PROBE;
		mode_reported = false;
		next_probe = 0;
	}
	else if (strcmp(line, "drain\n") == 0)
	{
		mode = DRAIN;
		mode_reported = false;
		for (int i = 0; i < session_count; i++)
			sessions[i].dry = false;
	}
	else if (sscanf(line, "stop %d %15s", &cluster, word) == 2 && cluster >= 0 &&
			 cluster < cluster_count)
		stops[cluster] = strcmp(word, "before") == 0 ? 1 : 2;
	else if (sscanf(line, "late %d", &cluster) == 1 && cluster >= 0 && cluster < cluster_count)
		late[cluster] = LATE_PLANS;
	else
	{
		end_history();
		exit(strcmp(line, "end\n") == 0 ? 0 : 1);
	}
}

/* Commands are short and come one at a time: a line is read as a whole. */
static void
read_commands(void)
{
	static char buffer[256];
	static size_t length = 0;
	ssize_t		n = read(STDIN_FILENO, buffer + length, sizeof(buffer) - 1 - length);
	char	   *end;
	char		line[256];

	if (n <= 0)
	{
		end_history();
		exit(1);
	}
	length += (size_t) n;
	buffer[length] = '\0';
	while ((end = strchr(buffer, '\n')) != NULL)
	{
		size_t		size = (size_t) (end + 1 - buffer);

		memcpy(line, buffer, size);
		line[size] = '\0';
		memmove(buffer, end + 1, length - size + 1);
		length -= size;
		command(line);
	}
}

static int
milliseconds_to_next(int64_t now)
{
	int64_t		next = now + 1000000;

	for (int i = 0; i < session_count; i++)
	{
		const Session *s = &sessions[i];

		if (s->state == BUSY)
		{
			if (s->cancel_at != 0 && s->cancel_at < next)
				next = s->cancel_at;
		}
		else if ((s->state != DOWN || mode != QUIET) && s->wake < next)
			next = s->wake;
	}
	return next <= now ? 0 : (int) ((next - now + 999) / 1000);
}

static void
turn(void)
{
	static struct pollfd fds[SESSIONS_MAX + 1];
	int64_t		now;

	fds[0] = (struct pollfd) {STDIN_FILENO, POLLIN, 0};
	for (int i = 0; i < session_count; i++)
	{
		Session    *s = &sessions[i];

		fds[i + 1].fd = s->conn != NULL ? PQsocket(s->conn) : -1;
		fds[i + 1].events = s->state == CONNECTING && s->want_write ? POLLOUT : POLLIN;
		fds[i + 1].revents = 0;
	}
	if (poll(fds, (nfds_t) session_count + 1, milliseconds_to_next(now_us())) < 0 &&
		errno != EINTR)
		exit(1);
	if (fds[0].revents != 0)
		read_commands();
	for (int i = 0; i < session_count; i++)
	{
		now = now_us();
		attend(&sessions[i], fds[i + 1].revents, now);
	}
	report_rest();
}

int
main(int argc, char **argv)
{
	int			each;

	if (argc < 8 || argc - 7 > CLUSTERS_MAX)
	{
		fprintf(stderr, "usage: %s HISTORY QUEUES SESSIONS PAUSE_MS SEED "
				"fenced|unfenced SOCKET_DIR:PORT...\n", argv[0]);
		return 2;
	}
	history = fopen(argv[1], "w");
	queues = fopen(argv[2], "w");
	each = atoi(argv[3]);
	pause_ms = atoi(argv[4]);
	srandom((unsigned int) atoi(argv[5]));
	fenced = strcmp(argv[6], "fenced") == 0;
	cluster_count = argc - 7;
	session_count = each * cluster_count;
	if (history == NULL || queues == NULL || each < 1 || session_count > SESSIONS_MAX)
	{
		fprintf(stderr, "%s: cannot write the histories, or bad numbers\n", argv[0]);
		return 2;
	}
	for (int i = 0; i < cluster_count; i++)
		places[i] = argv[7 + i];
	for (int i = 0; i < session_count; i++)
	{
		sessions[i].cluster = i % cluster_count;
		sessions[i].number = i / cluster_count;
	}
	report("ready");
	for (;;)
		turn();
}
