/*
 * cppcheck.h
 *	  What cppcheck, which is not shown PostgreSQL's headers, has to know about
 *	  PostgreSQL: its loops, and that reports from ERROR upwards do not return.
 */
#define LOG 15
#define NOTICE 18
#define WARNING 19
#define ERROR 21
#define FATAL 22
#define PANIC 23

void		abort(void) __attribute__((noreturn));

#define ereport(level, ...) do { if ((level) >= ERROR) abort(); } while (0)
#define elog(level, ...) do { if ((level) >= ERROR) abort(); } while (0)

#define dlist_foreach(iter, head) for (; more(&iter, head);)
#define dlist_foreach_modify(iter, head) for (; more(&iter, head);)
#define slist_foreach(iter, head) for (; more(&iter, head);)
#define slist_foreach_modify(iter, head) for (; more(&iter, head);)
#define foreach(cell, list) for (cell = first(list); cell; cell = next(cell))

#define PG_TRY() do { if (tried())
#define PG_CATCH() else
#define PG_FINALLY() always();
#define PG_END_TRY() } while (0)
