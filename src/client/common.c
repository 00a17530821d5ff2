/*-------------------------------------------------------------------------
 *
 * common.c
 *	  What all files of ddblock-run use: messages, memory, the clock.
 *
 *-------------------------------------------------------------------------
 */
#include "client/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

void
say(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	fputs("ddblock-run: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

void *
checked(void *memory)
{
	if (memory == NULL)
		die("out of memory");
	return memory;
}

char *
text(const char *format,...)
{
	va_list		args;
	char	   *result;

	va_start(args, format);
	if (vasprintf(&result, format, args) < 0)
		die("out of memory");
	va_end(args);
	return result;
}

int64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t
between(int64_t low, int64_t value, int64_t high)
{
	return value < low ? low : value > high ? high : value;
}
