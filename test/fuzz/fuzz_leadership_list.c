/*-------------------------------------------------------------------------
 *
 * fuzz_leadership_list.c
 *	  Any text as ddblock.leaderships: no crash, names within their bounds, and a list
 *	  in which nothing is wrong has at most LEADERSHIPS_MAX names, each once.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lock/leadership.h"

int			LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check(bool promise)
{
	if (!promise)
		abort();
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t';
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static char names[LEADERSHIPS_MAX][LEADERSHIP_NAME_MAX + 1];
	char		name[LEADERSHIP_NAME_MAX + 1];
	char	   *list = malloc(size + 1);
	const char *at = list;
	const char *before = list;
	const char *wrong;
	bool		good;
	int			count = 0;

	memcpy(list, bytes, size);
	list[size] = '\0';
	good = leadership_list_wrong(list) == NULL;
	while (leadership_list_next(&at, name, &wrong))
	{
		size_t		len = strnlen(name, sizeof(name));

		check(wrong == NULL && at > before && at <= list + strlen(list));
		check(len > 0 && len <= LEADERSHIP_NAME_MAX);
		check(!is_space(name[0]) && !is_space(name[len - 1]) && strchr(name, ',') == NULL);
		check(leadership_is_listed(list, name));
		before = at;
		if (!good)
			continue;
		check(count < LEADERSHIPS_MAX);
		for (int i = 0; i < count; i++)
			check(strcmp(names[i], name) != 0);
		strcpy(names[count++], name);
	}
	check(wrong == NULL ? *at == '\0' : !good);
	free(list);
	return 0;
}
