/*-------------------------------------------------------------------------
 *
 * command.h
 *	  The command that ddblock-run runs: its process group, its signals, its terminal.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CLIENT_COMMAND_H
#define CLIENT_COMMAND_H

#include <stdbool.h>

extern void command_start(char **command);

extern bool command_runs(void);
extern int	command_status(void);	/* when it has ended: the exit status for us */

/* Readable when there is something for command_read_signals(). */
extern int	command_signals(void);

/*
 * Passes signals on to the command, and finds out whether it has ended.  Returns the last
 * signal that was meant to end us, or 0.
 */
extern int	command_read_signals(void);

/* Tells it to end (SIGTERM, once), or ends it and what it has left in its group (SIGKILL). */
extern void command_end(bool at_once);

#endif							/* CLIENT_COMMAND_H */
