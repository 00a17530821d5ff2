/*-------------------------------------------------------------------------
 *
 * version.h
 *	  The library's version: that of the extension's newest script.
 *
 *-------------------------------------------------------------------------
 */
#ifndef DDBLOCK_SHARED_VERSION_H
#define DDBLOCK_SHARED_VERSION_H

#define DDBLOCK_VERSION "1.0.0"

#endif							/* DDBLOCK_SHARED_VERSION_H */
