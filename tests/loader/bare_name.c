/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader guard's look into the dynamic linker's cache: what it finds in one of either
 * layout, and caches that are cut or have bits flipped (run under the address sanitizer).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shim/loader/bare_name.h"

#define OLD_ENTRIES 3
#define OLD_BYTES 56 /* 16 and 3 times 12, up to a multiple of 8 */

struct made {
	uint32_t flags;
	const char *key, *value;
};

static const struct made entries[] = {
	{0x0003, "libcublas.so", "/lib32/libcublas.so"},
	{0x0303, "libcublas.so.12", "/twelve/libcublas.so.12"},
	{0x0303, "libcublas.so", "/cuda/lib64/libcublas.so"},
	{0x0303, "libcublas.so", "/other/libcublas.so"},
};

/* As ldconfig writes it, behind an older table or alone; the size, or 0. */
static size_t make(char *bytes, bool old)
{
	const uint32_t count = sizeof(entries) / sizeof(entries[0]), n = OLD_ENTRIES;
	char *table = bytes + (old ? OLD_BYTES : 0);
	size_t at = 48 + count * 24;

	memset(bytes, 0, 1024);
	if (old) {
		memcpy(bytes, "ld.so-1.7.0", 11);
		memcpy(bytes + 12, &n, 4);
	}
	memcpy(table, "glibc-ld.so.cache1.1", 20);
	memcpy(table + 20, &count, 4);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t head[3] = {entries[i].flags, (uint32_t)at,
			(uint32_t)(at + strlen(entries[i].key) + 1)};

		memcpy(table + 48 + i * 24, head, sizeof(head));
		strcpy(table + head[1], entries[i].key);
		strcpy(table + head[2], entries[i].value);
		at = head[2] + strlen(entries[i].value) + 1;
	}
	return (size_t)(table - bytes) + at;
}

static void libraries_are_found(void **state)
{
	char bytes[1024], path[64];

	(void)state;
	for (int old = 0; old < 2; old++) {
		size_t size = make(bytes, old);

		assert_true(
			bare_name_in_cache(bytes, size, "libcublas.so", path, sizeof(path)));
		assert_string_equal(path, "/cuda/lib64/libcublas.so");
		assert_true(
			bare_name_in_cache(bytes, size, "libcublas.so.12", path, sizeof(path)));
		assert_string_equal(path, "/twelve/libcublas.so.12");
		assert_false(bare_name_in_cache(bytes, size, "libcublas", path, sizeof(path)));
		assert_false(bare_name_in_cache(bytes, size, "libcublas.so", path, 10));
		assert_string_equal(path, "/twelve/libcublas.so.12");
	}
}

static void damaged_caches_are_read_within_bounds(void **state)
{
	char bytes[1024], path[64];
	unsigned seed = 1;

	(void)state;
	for (int old = 0; old < 2; old++) {
		size_t size = make(bytes, old);

		for (size_t cut = 0; cut < size; cut++) {
			char *copy = malloc(cut ? cut : 1);

			assert_non_null(copy);
			memcpy(copy, bytes, cut);
			bare_name_in_cache(copy, cut, "libcublas.so", path, sizeof(path));
			free(copy);
		}
		for (int round = 0; round < 20000; round++) {
			char *copy = malloc(size);

			assert_non_null(copy);
			memcpy(copy, bytes, size);
			copy[(size_t)rand_r(&seed) % size] ^= (char)(1 << rand_r(&seed) % 8);
			copy[(size_t)rand_r(&seed) % size] ^= (char)rand_r(&seed);
			bare_name_in_cache(copy, size, "libcublas.so", path, sizeof(path));
			free(copy);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries_are_found),
		cmocka_unit_test(damaged_caches_are_read_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
