/*-------------------------------------------------------------------------
 *
 * fuzz_join_list.c
 *	  Any text as ddblock.join_locks: no crash, entries within their bounds, and what was
 *	  read, written again, reads the same.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lock/join_list.h"

int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check(bool promise)
{
	if (!promise)
		abort();
}

/* As an entry of a list, every byte of the name in hexadecimal; malloc'd. */
static char *
write_entry(const join_entry *entry)
{
	char	   *text = malloc(32 + 3 * sizeof(entry->name));
	int			len = sprintf(text, "%lld:", (long long) entry->token);

	for (const char *c = entry->name; *c != '\0'; c++)
		len += sprintf(text + len, "%%%02x", (unsigned char) *c);
	return text;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static join_entry entry;
	static join_entry again;
	char	   *list = malloc(size + 1);
	const char *at = list;
	const char *before = list;
	const char *wrong;

	memcpy(list, bytes, size);
	list[size] = '\0';
	while (join_list_next(&at, &entry, &wrong))
	{
		char	   *text = write_entry(&entry);
		const char *rest = text;

		check(wrong == NULL && at > before && at <= list + strlen(list));
		check(entry.token > 0 && entry.name[0] != '\0');
		check(memchr(entry.name, '\0', sizeof(entry.name)) != NULL);
		check(join_list_next(&rest, &again, &wrong) && *rest == '\0');
		check(again.token == entry.token && strcmp(again.name, entry.name) == 0);
		free(text);
		before = at;
	}
	check(wrong != NULL || *at == '\0');
	free(list);
	return 0;
}
