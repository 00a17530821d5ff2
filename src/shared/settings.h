/*-------------------------------------------------------------------------
 *
 * settings.h
 *	  The ddblock.* settings.
 *
 * settings.c and doc/settings.md say what each setting means.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_SETTINGS_H
#define DDBLOCK_SHARED_SETTINGS_H

#include "dynamo/dynamo.h"

/* These settings are fixed at server start. */
extern char *ddblock_region;
extern char *ddblock_endpoint_url;
extern char *ddblock_global_table_region;	/* "": none is pinned */
extern char *ddblock_lock_table;
extern char *ddblock_queue_table;
extern char *ddblock_partition_key;
extern char *ddblock_sort_key;	/* "": the table has none */
extern char *ddblock_sort_key_value;
extern char *ddblock_sort_separator;	/* "": none, else one character of ASCII */
extern char *ddblock_owner_name;	/* "": cluster_name@host */
extern int	ddblock_max_leases;
extern int	ddblock_superuser_reserved_leases;
extern int	ddblock_max_connections;

/* These change on reload. */
extern int	ddblock_connect_timeout;	/* ms */
extern int	ddblock_request_timeout;	/* ms */
extern int	ddblock_retry_timeout;	/* ms */
extern int	ddblock_poll_interval;	/* ms */
extern int	ddblock_released_item_ttl;	/* s; 0: off */
extern bool ddblock_keep_warm;
extern bool ddblock_log_grants;
extern char *ddblock_leaderships; /* see lock/leadership.h */
extern bool ddblock_leaderships_on_standby;
extern char *ddblock_access_key_id;
extern char *ddblock_secret_access_key;
extern char *ddblock_session_token;
extern char *ddblock_profile;
extern char *ddblock_ca_file;
extern char *ddblock_proxy;		/* "": as the environment says; "none": no proxy */

/* Take a dead holder's lock over by DynamoDB's clock? */
typedef enum ClockTakeover
{
	CLOCK_TAKEOVER_AUTO,
	CLOCK_TAKEOVER_ON,
	CLOCK_TAKEOVER_OFF
} ClockTakeover;

extern int	ddblock_clock_takeover; /* a ClockTakeover */
extern int	ddblock_clock_slack;	/* ms */

/* Every user may set these. */
extern int	ddblock_lease_duration; /* ms */
extern double ddblock_safety_margin;	/* fraction of the lease, 0.05 .. 0.5 */
extern char *ddblock_join_locks;	/* see lock/join_list.h; fixed at session start */

/* Superusers may set these. */
typedef enum OnLeaseLost
{
	ON_LEASE_LOST_CANCEL,
	ON_LEASE_LOST_TERMINATE,
	ON_LEASE_LOST_NONE
} OnLeaseLost;

extern int	ddblock_role_max_leases;	/* 0: no limit */
extern char *ddblock_lock_prefix;	/* "": all names are allowed */
extern int	ddblock_on_lease_lost;	/* an OnLeaseLost */
extern bool ddblock_commit_guard;
extern bool ddblock_release_on_rollback;	/* every user may set this */

extern void SettingsDefine(void);

/* The settings of the lock table and its keys, for src/dynamo. */
extern dynamo_table SettingsTable(void);

#endif							/* DDBLOCK_SHARED_SETTINGS_H */
