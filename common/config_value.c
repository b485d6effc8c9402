/* SPDX-License-Identifier: Apache-2.0
 *
 * What a value's text stands for: numbers, sizes, yes and no.  Apart from the reading of files,
 * which needs libyaml.
 */
#include "common/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int number_fail(
	const struct config_item *item, uint64_t least, uint64_t most, struct error *error)
{
	return error_set(error, 0, "%s: '%.40s' is not a number from %llu to %llu", item->key,
		item->text, (unsigned long long)least, (unsigned long long)most);
}

/* The unit that TEXT is, whole; 0: none. */
static uint64_t unit_of(const char *text)
{
	static const struct {
		char name[3];
		uint64_t bytes;
	} units[] = {{"Ki", 1ull << 10}, {"Mi", 1ull << 20}, {"Gi", 1ull << 30},
		{"Ti", 1ull << 40}, {"k", 1000}, {"M", 1000000}, {"G", 1000000000},
		{"T", 1000000000000}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(text, units[i].name))
			return units[i].bytes;
	return 0;
}

static int number_parse(const struct config_item *item, uint64_t least, uint64_t most,
	bool units, uint64_t *value, struct error *error)
{
	unsigned long long n, unit = 1, fraction = 0;
	unsigned thousandths = 1000;
	char *end;

	errno = 0;
	n = strtoull(item->text, &end, 10);
	if (errno || item->text[0] < '0' || item->text[0] > '9')
		return number_fail(item, least, most, error);
	if (units && *end) {
		if (*end == '.')
			for (end++; *end >= '0' && *end <= '9' && thousandths > 1; end++) {
				thousandths /= 10;
				fraction += (unsigned)(*end - '0') * thousandths;
			}
		unit = unit_of(end);
		end += unit ? strlen(end) : 0;
	}
	if (*end || __builtin_mul_overflow(n, unit, &n) ||
		__builtin_add_overflow(
			n, fraction * (unit / 1000) + fraction * (unit % 1000) / 1000, &n) ||
		n < least || n > most)
		return number_fail(item, least, most, error);
	*value = n;
	return 0;
}

int config_number(const struct config_item *item, uint64_t least, uint64_t most,
	uint64_t *value, struct error *error)
{
	return number_parse(item, least, most, false, value, error);
}

int config_size(const struct config_item *item, uint64_t least, uint64_t most, uint64_t *value,
	struct error *error)
{
	return number_parse(item, least, most, true, value, error);
}

int config_bool(const struct config_item *item, int *value, struct error *error)
{
	static const char *const words[2][3] = {{"false", "no", "off"}, {"true", "yes", "on"}};

	for (int v = 0; v < 2; v++)
		for (int i = 0; i < 3; i++)
			if (!strcmp(item->text, words[v][i])) {
				*value = v;
				return 0;
			}
	return error_set(
		error, 0, "%s: '%.40s' is neither true nor false", item->key, item->text);
}

int config_text(const struct config_item *item, char *out, size_t n, struct error *error)
{
	if (strlen(item->text) >= n)
		return error_set(error, 0, "%s: longer than %zu characters", item->key, n - 1);
	memcpy(out, item->text, strlen(item->text) + 1);
	return 0;
}
