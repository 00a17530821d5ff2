/*-------------------------------------------------------------------------
 *
 * order.h
 *	  The standing order to join locks, ddblock.join_locks: whether it is carried out.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SESSION_ORDER_H
#define DDBLOCK_SESSION_ORDER_H

#include "postgres.h"

#include "lock/join_list.h"

/*
 * The first named lock that this session does not hold with the token that is named, or
 * NULL.  Valid until the next call.  Cannot fail.
 */
extern const join_entry *OrderFindMissing(void);

/* DISCARD ALL lets go of the locks: its own transaction may end without them. */
extern void OrderExcuseTransaction(void);

#endif							/* DDBLOCK_SESSION_ORDER_H */
