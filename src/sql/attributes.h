/*-------------------------------------------------------------------------
 *
 * attributes.h
 *	  Additional attributes of a lock, between jsonb and DynamoDB's JSON.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SQL_ATTRIBUTES_H
#define DDBLOCK_SQL_ATTRIBUTES_H

#include "postgres.h"

#include "fmgr.h"

/*
 * An argument of type jsonb, as DynamoDB's JSON; NULL if there are none.  Raises 22023 for
 * what cannot be kept beside data_len bytes of data.
 */
extern const char *ArgumentAttributes(FunctionCallInfo fcinfo, int number, size_t data_len);

/* What an item has, as plain JSON in UTF-8, as a jsonb without the table's keys. */
extern Datum AttributesShow(const char *json, size_t len, bool *isnull);

#endif							/* DDBLOCK_SQL_ATTRIBUTES_H */
