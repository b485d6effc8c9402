/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu-agent/supervisor/settings/parse_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int parse_number(const char *text, uint64_t *number, const char **end)
{
	char *stop;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &stop, 10);
	*end = stop;
	return errno ? -EINVAL : 0;
}

int parse_bytes(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMGT";
	const char *end, *letter;
	uint64_t unit = 1;

	if (parse_number(text, bytes, &end))
		return -EINVAL;
	while (*end == ' ')
		end++;
	if (*end == 'k')
		letter = letters;
	else
		letter = *end ? strchr(letters, *end) : NULL;
	if (letter) {
		uint64_t base = end[1] == 'i' ? 1024 : 1000;

		for (long i = 0; i <= letter - letters; i++)
			unit *= base;
		end += base == 1024 ? 2 : 1;
	}
	if (*end == 'B')
		end++;
	return *end || __builtin_mul_overflow(*bytes, unit, bytes) ? -EINVAL : 0;
}

int parse_time(const char *text, uint64_t *ms)
{
	const char *end;
	uint64_t unit;

	if (parse_number(text, ms, &end))
		return -EINVAL;
	if (!*end || !strcmp(end, "s"))
		unit = 1000;
	else if (!strcmp(end, "ms"))
		unit = 1;
	else if (!strcmp(end, "m"))
		unit = 60000;
	else
		return -EINVAL;
	return __builtin_mul_overflow(*ms, unit, ms) ? -EINVAL : 0;
}
