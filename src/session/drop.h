/*-------------------------------------------------------------------------
 *
 * drop.h
 *	  Keeps DROP EXTENSION from losing locks and fencing tokens.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_DROP_H
#define DDBLOCK_SESSION_DROP_H

extern void DropInstallHook(void);

#endif							/* DDBLOCK_SESSION_DROP_H */
