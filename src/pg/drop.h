/*-------------------------------------------------------------------------
 *
 * drop.h
 *	  Keeps DROP EXTENSION from losing locks and fencing tokens.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_PG_DROP_H
#define DDBLOCK_PG_DROP_H

extern void DropInstallHook(void);

#endif							/* DDBLOCK_PG_DROP_H */
