/*-------------------------------------------------------------------------
 *
 * sim_nonce.c
 *	  Every version that a lock manager has drawn, with its history.
 *
 * Versions are kept in two hash tables as long as copies of their writes may be
 * in flight: when the newer table is half full, the older one is cleared.
 *
 *-------------------------------------------------------------------------
 */
#include "sim.h"

void
sim_nonces_new(sim_nonces *nonces)
{
	for (int i = 0; i < 2; i++)
	{
		nonces->tables[i] = calloc(SIM_NONCES, sizeof(sim_nonce));
		if (nonces->tables[i] == NULL)
			abort();
	}
}

void
sim_nonces_free(sim_nonces *nonces)
{
	free(nonces->tables[0]);
	free(nonces->tables[1]);
}

/* Where this version is in the table, or belongs. */
static sim_nonce *
place_of(sim_nonce *table, const char *version)
{
	uint32_t	hash = 2166136261u;

	for (const char *at = version; *at != '\0'; at++)
		hash = (hash ^ (unsigned char) *at) * 16777619u;
	for (;; hash++)
	{
		sim_nonce  *place = &table[hash % SIM_NONCES];

		if (place->version[0] == '\0' || strcmp(place->version, version) == 0)
			return place;
	}
}

/* NULL if there is none. */
sim_nonce *
sim_find_nonce(sim_nonces *nonces, const char *version)
{
	for (int i = 0; i < 2; i++)
	{
		sim_nonce  *place = place_of(nonces->tables[(nonces->young + i) % 2], version);

		if (place->version[0] != '\0')
			return place;
	}
	return NULL;
}

sim_nonce *
sim_add_nonce(sim_nonces *nonces, const char *version)
{
	sim_nonce  *place;

	if (nonces->count >= SIM_NONCES / 2)
	{
		nonces->young = 1 - nonces->young;
		memset(nonces->tables[nonces->young], 0, SIM_NONCES * sizeof(sim_nonce));
		nonces->count = 0;
	}
	nonces->count++;
	place = place_of(nonces->tables[nonces->young], version);
	snprintf(place->version, sizeof(place->version), "%s", version);
	return place;
}
