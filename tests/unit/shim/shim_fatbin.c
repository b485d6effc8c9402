/* SPDX-License-Identifier: Apache-2.0
 *
 * Which entry of a fat binary a device gets, and that no number in one is believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shim/driver/module/fatbin.h"

#define PTX 1
#define ELF 2
#define EXACT 0x100000u
#define FAMILY 0x200000u

static unsigned char image[4096];
static size_t image_bytes;

static void put(size_t at, uint64_t value, size_t n)
{
	memcpy(image + at, &value, n);
}

static void begin(void)
{
	memset(image, 0, sizeof(image));
	put(0, FATBIN_MAGIC, 4);
	put(4, 1, 2);
	put(6, 16, 2);
	image_bytes = 16;
}

static void entry(unsigned kind, unsigned arch, uint64_t flags)
{
	put(image_bytes, kind, 2);
	put(image_bytes + 2, 0x101, 2);
	put(image_bytes + 4, 64, 4);
	put(image_bytes + 8, 40, 8);
	put(image_bytes + 28, arch, 4);
	put(image_bytes + 40, flags, 8);
	image_bytes += 64 + 40;
	put(8, image_bytes - 16, 8);
}

/* The architecture of what is picked, negative for PTX; 0: nothing. */
static int pick(int major, int minor, bool ptx_only)
{
	struct fatbin_target target = {major, minor, ptx_only};
	struct fatbin_entry picked;
	unsigned char *exact = malloc(image_bytes); /* so that ASan sees a read beyond it */
	int arch = 0;

	assert_non_null(exact);
	memcpy(exact, image, image_bytes);
	if (fatbin_pick(exact, image_bytes, &target, &picked)) {
		assert_true(picked.start >= exact + 16);
		assert_true(picked.start + picked.bytes <= exact + image_bytes);
		arch = picked.ptx ? -(int)picked.arch : (int)picked.arch;
		if (picked.flags & EXACT)
			arch += picked.ptx ? -1000 : 1000;
	}
	free(exact);
	return arch;
}

static void test_machine_code_first(void **state)
{
	(void)state;
	begin();
	entry(PTX, 90, 0);
	entry(ELF, 75, 0);
	entry(ELF, 80, 0);
	entry(ELF, 86, 0);
	entry(ELF, 90, 0);
	assert_int_equal(pick(8, 0, false), 80);
	assert_int_equal(pick(8, 9, false), 86);
	assert_int_equal(pick(9, 0, false), 90);
	assert_int_equal(pick(7, 5, false), 75);
	assert_int_equal(pick(10, 0, false), -90);
	assert_int_equal(pick(7, 0, false), 0);
	assert_int_equal(pick(8, 0, true), -90); /* nothing is below: the lowest PTX */
}

static void test_code_for_one_part(void **state)
{
	(void)state;
	begin();
	entry(ELF, 90, 0);
	entry(ELF, 90, EXACT);
	entry(ELF, 100, FAMILY);
	entry(PTX, 80, 0);
	entry(PTX, 100, EXACT);
	assert_int_equal(pick(9, 0, false), 1090);
	assert_int_equal(pick(10, 3, false), 100);
	assert_int_equal(pick(12, 0, false), -80);
	assert_int_equal(pick(8, 0, true), -80);
}

static void test_no_code(void **state)
{
	(void)state;
	begin();
	assert_int_equal(pick(9, 0, false), 0);
	entry(7, 90, 0); /* a kind that nobody knows is passed over */
	assert_int_equal(pick(9, 0, false), 0);
	entry(ELF, 90, 0);
	assert_int_equal(pick(9, 0, false), 90);
	assert_int_equal(
		pick(8, 0, true), 90); /* sent all the same: the agent says what is wrong */
}

static void test_wrong_sizes(void **state)
{
	size_t first = 16;

	(void)state;
	begin();
	entry(ELF, 90, 0);
	put(first + 8, UINT64_MAX, 8);
	assert_int_equal(pick(9, 0, false), 0);
	put(first + 8, 41, 8);
	assert_int_equal(pick(9, 0, false), 0);
	put(first + 8, 40, 8);
	put(first + 4, 47, 4);
	assert_int_equal(pick(9, 0, false), 0);
	put(first + 4, UINT32_MAX, 4);
	assert_int_equal(pick(9, 0, false), 0);
	put(first + 4, 64, 4);
	assert_int_equal(pick(9, 0, false), 90);
	put(8, image_bytes - 16 + 1, 8);
	assert_int_equal(pick(9, 0, false), 0);
	put(8, UINT64_MAX, 8);
	assert_int_equal(pick(9, 0, false), 0);
	assert_int_equal(fatbin_size(image), 0);
	put(8, image_bytes - 16, 8);
	assert_int_equal(fatbin_size(image), image_bytes);
	put(0, 1, 1);
	assert_int_equal(pick(9, 0, false), 0);
}

static void test_every_truncation(void **state)
{
	size_t whole;

	(void)state;
	begin();
	entry(ELF, 80, 0);
	entry(PTX, 80, 0);
	whole = image_bytes;
	for (image_bytes = 0; image_bytes < whole; image_bytes++)
		assert_int_equal(pick(8, 0, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machine_code_first),
		cmocka_unit_test(test_code_for_one_part),
		cmocka_unit_test(test_no_code),
		cmocka_unit_test(test_wrong_sizes),
		cmocka_unit_test(test_every_truncation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
