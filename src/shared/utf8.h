/*-------------------------------------------------------------------------
 *
 * utf8.h
 *	  Text between the database's encoding and UTF-8.
 *
 * Lock names are global, so they travel as UTF-8 whatever the
 * encoding of the database at either end.  Under SQL_ASCII the bytes are taken
 * for UTF-8.  Call inside a transaction (conversions are looked up in the
 * catalogs).
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_UTF8_H
#define DDBLOCK_SHARED_UTF8_H

#include "postgres.h"

/* Exact: raises 22021 or 22P05 for what cannot be said.  Palloc'd, with a NUL. */
extern char *Utf8FromServer(const char *text, int len);

/*
 * For what a program may act on: names, ids, owners, payloads.  Exact, or NULL if the
 * database's encoding cannot say it, or if it is not UTF-8.  Palloc'd, with a NUL.
 */
extern char *Utf8ToServer(const char *utf8, int len);

/* Utf8ToServer() can say all of UTF-8 in this database. */
extern bool Utf8IsWhole(void);

/* Utf8ToServer(), which reports as 22P05 or 22021 what cannot be said.  what: the value's name. */
extern char *Utf8ToServerOr(int elevel, const char *what, const char *utf8, int len);

/*
 * For people to read: whatever cannot be converted becomes a question mark, and nothing is
 * raised.  Only for messages, and for what describes a holder or a failure.
 */
extern char *Utf8ToReader(const char *utf8, int len);	/* palloc'd, NUL */

/*
 * For a message or the log: what others wrote, or a lock's name, with what could
 * end a line, steer a terminal or turn the text around as \xNN, byte by byte.
 * Needs no catalogs.  Takes UTF-8 or the server's encoding.
 */
extern char *Utf8Quiet(const char *text, int len);	/* palloc'd, NUL */

/* Utf8ToReader(), for a message. */
extern char *Utf8ToMessage(const char *utf8, int len);	/* palloc'd, NUL */

/* Of an item, for a message: owner "TEXT", or an owner without a name. */
extern const char *Utf8Owner(const char *text);

extern void Utf8Copy(char *dest, size_t size, const char *text);	/* server's text;
																	 * cut to fit */

#endif							/* DDBLOCK_SHARED_UTF8_H */
