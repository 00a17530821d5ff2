/*-------------------------------------------------------------------------
 *
 * lease.c
 *	  The session of ddblock-run that holds the lock, and what its server says of the lease.
 *
 * The lock outlives the session (ddb_lock_outlive()): neither the session's end nor a crash of
 * its server releases it before the lease is over, and by then we have ended the command.
 *
 * The server answers how long the lease is still valid.  We add that to the time at which we sent
 * the question, because the answer may have been on its way for long.  The sum is the deadline, but
 * we add at most 90 percent of the time for which the lock outlives the session, even if another
 * session has asked for a longer lease since.  Example: the lock outlives the session for 20 s.  A
 * question is sent at 100 s, and the answer "15 s" comes at 103 s: the deadline is 115 s.  If the
 * answer is "40 s", the deadline is 118 s.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#define LOCK_NOT_AVAILABLE "55P03"

/*
 * For how long the server keeps a session whose client is silent.  The client may have vanished
 * with its machine.
 *
 * While ddblock-run waits for the lock, for WAIT_S: a session of a vanished client would get the
 * lock, and nobody would work with it.
 *
 * While the command runs, for OUTLIVE_S longer than the lease.  A network that recovers later does
 * not help: the command has been ended by then.
 */
#define WAIT_S 20
#define OUTLIVE_S 10

command_lease lease;

static PGconn *conn;
static const char *schema;		/* the extension's, quoted */
static const char *status_sql;	/* asks how long the lock is still ours, and who else has it */
static const char *dbname;
static char token[24] = "0";

typedef enum question
{
	NOTHING,
	STATUS,
	RELEASE
} question;

static question asked;			/* the question that is not answered yet */
static int64_t asked_at;		/* when the last question was sent */
static PGresult *answer;		/* the part of the answer that has come */

/* ---- before the command runs: these functions wait for the server ---- */

/*
 * Executes a query that returns one row, or a CALL.  An error ends the program, with busy_status if
 * the lock was not free in time.
 */
static PGresult *
query(PGconn *c, int busy_status, const char *sql, int count, const char *const *values)
{
	PGresult   *result = PQexecParams(c, sql, count, NULL, values, NULL, NULL, 0);
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	if ((PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1) ||
		PQresultStatus(result) == PGRES_COMMAND_OK)
		return result;
	if (PQresultStatus(result) == PGRES_TUPLES_OK)
		die("the extension ddblock is not in database \"%s\"", PQdb(c));
	fprintf(stderr, "ddblock-run: %s", PQresultErrorMessage(result));
	exit(sqlstate != NULL && strcmp(sqlstate, LOCK_NOT_AVAILABLE) == 0 ? busy_status : EXIT_OURS);
}

/*
 * Makes the server end the session when its client is silent for so many seconds, or up to 10 s
 * more.  TCP_USER_TIMEOUT limits how long data and keepalives may stay unacknowledged.  Linux
 * allows at most 32767 s until the first keepalive.
 */
static void
keep_session(PGconn *c, int64_t seconds)
{
	const char *values[] = {text("%" PRId64 "s", seconds), text("%" PRId64, between(1, seconds, 32767))};

	PQclear(query(c, EXIT_OURS, "SELECT pg_catalog.set_config('tcp_user_timeout', $1, false),"
				  " pg_catalog.set_config('tcp_keepalives_idle', $2, false),"
				  " pg_catalog.set_config('tcp_keepalives_interval', '10', false)", 2, values));
}

/*
 * Connects.  The connection string in dbname comes after the keepalives, so that it may change
 * them.  If PGOPTIONS names locks to join, the first statement joins them.
 */
static PGconn *
connect_to_server(void)
{
	const char *const keywords[] = {"keepalives_idle", "keepalives_interval", "keepalives_count",
	"dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {"20", "10", "1", dbname, "ddblock-run", "auto", NULL};
	PGconn	   *c = PQconnectdbParams(keywords, values, 1);

	if (PQstatus(c) != CONNECTION_OK)
	{
		fprintf(stderr, "ddblock-run: %s", PQerrorMessage(c));
		if (strstr(PQerrorMessage(c), "unsupported startup parameter") != NULL)
			say("PgBouncer does not pass on PGOPTIONS, with which the command's sessions join the lock: "
				"connect to the server itself");
		exit(EXIT_OURS);
	}
	keep_session(c, WAIT_S);
	/* Unqualified names in our statements shall mean objects of pg_catalog only. */
	PQclear(query(c, EXIT_OURS, "SELECT pg_catalog.set_config('search_path', '', false)", 0, NULL));
	return c;
}

/* Executes a query that returns one row with one column.  Returns the value, malloc'd. */
static char *
value_of(PGconn *c, const char *sql, int count, const char *const *values)
{
	PGresult   *result = query(c, EXIT_OURS, sql, count, values);
	char	   *value = checked(strdup(PQgetvalue(result, 0, 0)));

	PQclear(result);
	return value;
}

/*
 * Prepares the session so that the server ends its statements only if ddblock-run has ended: turns
 * off all time-outs that this version of the server has, and makes the server check the connection
 * while it executes a statement.
 */
static void
prepare_session(void)
{
	char	   *name = value_of(conn, "SELECT nspname FROM pg_extension e "
								"JOIN pg_namespace n ON n.oid = e.extnamespace "
								"WHERE extname = 'ddblock'", 0, NULL);

	schema = checked(PQescapeIdentifier(conn, name, strlen(name)));
	free(name);
	status_sql = text("WITH held AS (SELECT * FROM %s.ddb_locks WHERE name = $1 AND token = $2::bigint),"
					  " ours AS (SELECT * FROM held WHERE pid = pg_backend_pid() AND state = 'held')"
					  " SELECT (SELECT (date_part('epoch', time_left) * 1000000)::bigint FROM ours),"
					  " (SELECT coalesce(string_agg(pid::text, ', '), '') FROM held"
					  " WHERE pid <> pg_backend_pid())", schema);
	free(value_of(conn, "SELECT set_config('client_connection_check_interval', '1s', false)", 0, NULL));
	free(value_of(conn, "SELECT count(set_config(name, '0', false)) FROM pg_settings WHERE name IN "
				  "('statement_timeout', 'transaction_timeout', 'lock_timeout', 'idle_session_timeout')",
				  0, NULL));
}

/* Takes the lock, and sets token.  False: the lock is not free, and we do not wait. */
static bool
acquire(const lease_wish *wish)
{
	const char *values[] = {wish->name, wish->length, wish->wait};
	char	   *granted;

	if (wish->waits)
	{
		PQclear(query(conn, wish->busy_status,
					  text("CALL %s.ddb_lock_await($1, lease => $2, wait => $3)", schema), 3, values));
		granted = value_of(conn, text("SELECT %s.ddb_lock_require($1)", schema), 1, values);
	}
	else
		granted = value_of(conn, text("SELECT CASE WHEN %s.ddb_lock_try_acquire($1, lease => $2)"
									   " THEN %s.ddb_lock_require($1) END", schema, schema),
						   2, values);
	snprintf(token, sizeof(token), "%s", granted);
	free(granted);
	return token[0] != '\0';
}

/* ---- how the command's sessions join ---- */

/* Returns our lock's entry for ddblock.join_locks: TOKEN:NAME, encoded as lock/join_list.h says. */
static char *
join_entry(void)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789/-._~";
	char	   *hex = value_of(conn, "SELECT encode(convert_to($1, 'UTF8'), 'hex')", 1, &lease.name);
	char	   *name = checked(calloc(strlen(hex) * 2 + 1, 1));
	char	   *to = name;

	for (const char *at = hex; *at != '\0'; at += 2)
	{
		unsigned int c;

		sscanf(at, "%2x", &c);
		if (c != 0 && strchr(plain, (int) c) != NULL)
			*to++ = (char) c;
		else
			to += sprintf(to, "%%%02X", c);
	}
	free(hex);
	to = text("%s:%s", token, name);
	free(name);
	return to;
}

/*
 * Sets the command's environment variables.  Returns the list of locks that the command's sessions
 * join: those that we were told to join ourselves, and our lock.
 *
 * In PGOPTIONS, the last value of a setting counts.  So the TCP settings come first, because the
 * user's options may change them; the list comes last.
 */
static char *
set_environment(void)
{
	char	   *keep = value_of(conn, text("SELECT format('-c tcp_user_timeout=%%ss -c tcp_keepalives_idle=%%s"
										   " -c tcp_keepalives_interval=10', s, least(s, 32767)) FROM (SELECT"
										   " max(date_part('epoch', lease) + %d)::bigint AS s FROM %s.ddb_locks"
										   " WHERE name = $1 AND pid = pg_backend_pid()) AS keep",
										   OUTLIVE_S, schema), 1, &lease.name);
	char	   *list = value_of(conn, "SELECT current_setting('ddblock.join_locks')", 0, NULL);
	const char *entry = join_entry();
	const char *pgoptions = getenv("PGOPTIONS");

	lease.joined = value_of(conn, "SELECT $1 = ANY (string_to_array("
							"current_setting('ddblock.join_locks'), ','))", 1, &entry)[0] == 't';
	if (!lease.joined)
		list = text("%s%s%s", list, list[0] != '\0' ? "," : "", entry);
	if (setenv("DDBLOCK_TOKEN", token, 1) != 0 || setenv("DDBLOCK_JOIN", list, 1) != 0 ||
		setenv("PGOPTIONS", text("%s %s -c ddblock.join_locks=%s", keep,
								 pgoptions ? pgoptions : "", list), 1) != 0)
		die("out of memory");
	free(keep);
	return list;
}

/*
 * Checks that the environment makes sessions join the lock, with a session that connects as ours
 * did.  Otherwise the command's sessions could work without the lock, and nobody would know.
 */
static void
try_to_join(const char *list)
{
	PGconn	   *other = connect_to_server();
	char	   *told = value_of(other, "SELECT coalesce(current_setting('ddblock.join_locks', true), '')", 0, NULL);

	if (strcmp(told, list) != 0)
		die("a session with our connection settings does not join the lock: \"options\" in the "
			"connection string or in the service replace PGOPTIONS, or a pool leaves them out");
	free(told);
	PQfinish(other);
}

/* ---- the lease ---- */

/* How long the command may take to end by itself after SIGTERM. */
static int64_t
grace(void)
{
	return between(200000, lease.length_us / 10, 5000000);
}

int64_t
lease_end_at(void)
{
	return lease.deadline - grace();
}

/* Brings the deadline forward, because we do not know since when the lock is lost. */
void
lease_lose(const char *why)
{
	int64_t		soon = now_us() + grace();

	if (lease.lost)
		return;
	lease.lost = true;
	lease.deadline = soon < lease.deadline ? soon : lease.deadline;
	say("lock \"%s\" is lost: %.*s", lease.name, (int) strcspn(why, "\n"), why);
}

static void
read_answer(question which, const PGresult *result)
{
	if (PQresultStatus(result) != PGRES_TUPLES_OK)
		lease_lose(PQresultErrorMessage(result));
	else if (which == STATUS ? PQgetisnull(result, 0, 0) :
			 strcmp(PQgetvalue(result, 0, 0), "t") != 0)
		lease_lose("the server does not hold it any more");
	else if (which == RELEASE)
		lease.released = true;
	else
	{
		int64_t		left = strtoll(PQgetvalue(result, 0, 0), NULL, 10);

		/*
		 * The lease may be longer than length_us, because a session that has joined has asked for
		 * that.  10 percent of length_us are a reserve, because our clock may be slower than the
		 * server's.
		 */
		lease.deadline = asked_at + between(0, left, lease.length_us / 10 * 9);
		lease.told_at = asked_at;
		free(lease.others);
		lease.others = checked(strdup(PQgetvalue(result, 0, 1)));
	}
}

/* Asks how long the lock is still ours, and waits for the answer. */
static PGresult *
ask_status(void)
{
	const char *values[] = {lease.name, token};

	asked_at = now_us();
	return query(conn, EXIT_OURS, status_sql, 2, values);
}

void
lease_take(const lease_wish *wish)
{
	char	   *length;
	PGresult   *result;

	dbname = wish->dbname;
	lease.name = wish->name;
	conn = connect_to_server();
	prepare_session();
	/* Fail before we take the lock if we lack the privilege to ask. */
	PQclear(ask_status());
	if (!acquire(wish))
	{
		say("lock \"%s\" is not free", lease.name);
		exit(wish->busy_status);
	}
	try_to_join(set_environment());

	/* From now on, whenever the session ends, the lock stays ours for length_us. */
	length = value_of(conn, text("SELECT (date_part('epoch', %s.ddb_lock_outlive($1))"
								 " * 1000000)::bigint", schema), 1, &lease.name);
	lease.length_us = strtoll(length, NULL, 10);
	free(length);
	keep_session(conn, lease.length_us / 1000000 + OUTLIVE_S);

	/* The command must not begin if the lease is over, or nearly so. */
	result = ask_status();
	read_answer(STATUS, result);
	PQclear(result);
	if (now_us() >= lease_end_at())
		lease_lose("the server took too long to answer");
	if (lease.lost)
		exit(EXIT_LOST);
	if (PQsetnonblocking(conn, 1) != 0)
		die("%s", PQerrorMessage(conn));
}

int
lease_check(const char *wished)
{
	PGresult   *result;

	dbname = wished;
	conn = connect_to_server();
	prepare_session();
	result = query(conn, EXIT_OURS,
				   text("SELECT bool_or(result = 'FAILED'), string_agg(format(E'%%-8s%%s%%s%%s', result, "
						"subject, ': ' || detail, E'\\n        ' || hint), E'\\n') FROM %s.ddb_check()",
						schema), 0, NULL);
	puts(PQgetvalue(result, 0, 1));
	return PQgetvalue(result, 0, 0)[0] == 't' ? EXIT_MISSING : 0;
}

/* ---- while the command runs, and after: these functions do not wait for the server ---- */

/* Sends a question.  Returns INT64_MAX: there is nothing to do before the answer; 0: failed. */
static int64_t
send_question(question which, const char *sql, int count, const char *const *values)
{
	asked = which;
	asked_at = now_us();
	if (PQsendQueryParams(conn, sql, count, NULL, values, NULL, NULL, 0))
		return INT64_MAX;
	lease_lose(PQerrorMessage(conn));
	return 0;
}

int64_t
lease_ask(int64_t interval_us)
{
	const char *values[] = {lease.name, token};

	if (lease.lost || asked != NOTHING)
		return lease.lost ? 0 : INT64_MAX;
	if (now_us() < asked_at + interval_us)
		return asked_at + interval_us;
	return send_question(STATUS, status_sql, 2, values);
}

int64_t
lease_release(void)
{
	if (lease.lost || asked != NOTHING)
		return lease.lost ? 0 : INT64_MAX;
	/* If we have joined the lock as well as taken it, release both holds. */
	return lease.joined ?
		send_question(RELEASE, text("SELECT %s.ddb_lock_release_all() > 0", schema), 0, NULL) :
		send_question(RELEASE, text("SELECT %s.ddb_lock_release($1)", schema), 1, &lease.name);
}

int
lease_socket(void)
{
	return lease.lost ? -1 : PQsocket(conn);
}

/* An answer is complete when PQgetResult() returns NULL. */
void
lease_read(void)
{
	if (lease.lost)
		return;
	if (!PQconsumeInput(conn) || PQflush(conn) < 0)
	{
		lease_lose(PQerrorMessage(conn));
		return;
	}
	while (!PQisBusy(conn) && asked != NOTHING)
	{
		PGresult   *next = PQgetResult(conn);

		if (next == NULL)
		{
			read_answer(asked, answer);
			asked = NOTHING;
		}
		PQclear(answer);
		answer = next;
	}
}

void
lease_close(void)
{
	PQfinish(conn);
}
