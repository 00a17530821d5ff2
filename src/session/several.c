/*-------------------------------------------------------------------------
 *
 * several.c
 *	  Acquiring several locks in one call.
 *
 * All sessions take several locks in the same order, so calls of this kind never wait for each
 * other in a circle.
 *
 * The session first tries all locks, together: it announces the tries (lock/lockmgr_join.c), and
 * then claims them one after the other.  If a lock is busy, the session gives back what it was
 * granted after this lock.  It then waits for this lock alone, while it holds those before it, and
 * tries the rest again.  So each session waits for one lock at a time, and the lock manager sees
 * each deadlock within the cluster.  Example: of a, b and c, lock b is busy.  The session keeps a,
 * gives c back, waits for b, and then tries c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "session/session.h"

typedef struct Several
{
	const LockName *names;
	int			count;
	int			taken;			/* the session has the first so many of them */
	int64	   *tokens;
	AcquireOptions options;
	Waiting		waiting;		/* the wait of the whole call */
} Several;

/* Acquires the next lock.  False if only_try and it is busy. */
static bool
take(Several *several, bool only_try)
{
	const LockName *name = &several->names[several->taken];
	AcquireOptions options = several->options;
	const HeldLock *held;

	options.only_try = only_try;
	several->waiting.lock = name->text;
	several->waiting.told = false;
	held = SessionAcquire(name, &options);
	if (held == NULL)
		return false;
	several->tokens[several->taken++] = held->token;
	return true;
}

/*
 * Writes names that the session does not hold into text, from the given one on, as many as there
 * is room for.  Returns the index of the first name that is left.
 */
static int
fill(const Several *several, int from, char *text, uint16 *len, int *count)
{
	int			i;

	*len = 0;
	*count = 0;
	for (i = from; i < several->count; i++)
	{
		const char *name = several->names[i].utf8;
		uint16		name_len = strlen(name);

		if (HeldFind(name) != NULL)
			continue;
		if (*len + sizeof(name_len) + name_len > MAILBOX_REQUEST_TEXT)
			break;
		memcpy(text + *len, &name_len, sizeof(name_len));
		memcpy(text + *len + sizeof(name_len), name, name_len);
		*len += sizeof(name_len) + name_len;
		++*count;
	}
	return i;
}

/* Announces tries of all that the session does not hold, in as few requests as possible. */
static void
announce(Several *several)
{
	char	   *text = palloc(MAILBOX_REQUEST_TEXT);
	uint64		first = MailboxMySlot()->words.request_seq + 1;
	int			total = 0;
	uint16		len;
	int			count;
	const LockName *name = &several->names[several->taken];	/* the next lock, which errors name */

	for (int i = several->taken; i < several->count;)
	{
		i = fill(several, i, text, &len, &count);
		total += count;
		first += count > 0;		/* the announcing requests have the numbers before those of the
								 * tries */
	}
	if (total > 1)
		mailbox_announce(&segment_mailbox, MailboxSession(), first + total - 1);
	for (int i = several->taken; i < several->count && total > 1;)
	{
		MailboxRequest request;
		const MailboxAnswer *answer;

		i = fill(several, i, text, &len, &count);
		if (count == 0)
			continue;
		request = SessionAcquireRequest(name, &several->options);
		request.kind = MAILBOX_ANNOUNCE;
		request.name_len = 0;
		request.data_len = len;
		request.first_seq = first;
		answer = MailboxCall(&request, NULL, text, several->options.waiting);
		if (answer->result != MAILBOX_DONE)
			ErrorsAnswer(answer, name->text);
		first += count;
	}
	pfree(text);
}

static bool
acquire(Several *several)
{
	do
	{
		announce(several);
		while (several->taken < several->count && take(several, true))
			;
		mailbox_withdraw(&segment_mailbox, MailboxSession());
		if (several->taken < several->count)
		{
			if (several->options.only_try)
				return false;
			(void) take(several, false);
		}
		/* A lease may be lost while the session waits for another lock. */
		for (int i = 0; i < several->taken; i++)
			(void) SessionRequire(&several->names[i]);
	}
	while (several->taken < several->count);
	return true;
}

/* Gives back all that the call has acquired.  Neither waits nor fails. */
static void
give_back(Several *several)
{
	mailbox_withdraw(&segment_mailbox, MailboxSession());
	for (int i = 0; i < several->taken; i++)
	{
		HeldLock   *held = HeldFind(several->names[i].utf8);

		if (held != NULL)
			HeldUncount(held, several->options.scope);
	}
}

bool
SeveralAcquire(const LockName *names, int count, const AcquireOptions *options, int64 *tokens)
{
	Several		several = {
		.names = names,
		.count = count,
		.tokens = tokens,
		.options = *options,
	};
	bool		granted = false;

	SessionAttach();
	for (int i = 0; i < count; i++)
		NameRefuseLed(&names[i], HeldFind(names[i].utf8));
	WaitingStart(&several.waiting, names[0].text, options->wait_ms);
	several.waiting.only_try = options->only_try;
	several.options.waiting = &several.waiting;
	PG_TRY();
	{
		granted = acquire(&several);
	}
	PG_CATCH();
	{
		give_back(&several);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (!granted)
		give_back(&several);
	else if (!options->only_try)
		SegmentCountWait(several.waiting.started);
	return granted;
}
