/* SPDX-License-Identifier: Apache-2.0
 *
 * The loader guard's ELF reader: finds this program's own functions, and reads damaged files,
 * cut at any length or with bits flipped, without leaving their bounds (run under the address
 * sanitizer: each copy is as long as it claims, and no longer).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/loader/elf.h"

extern char __executable_start;

__attribute__((noinline, used)) int a_function_to_be_found(int x);
int a_function_to_be_found(int x)
{
	return x * 3;
}

static void own_functions_are_found(void **state)
{
	struct image image;
	struct image_function function;
	int (*address)(int) = a_function_to_be_found;
	uintptr_t found = 0, expected;
	size_t functions = 0;

	(void)state;
	memcpy(&expected, &address, sizeof(expected));
	assert_true(image_open(&image, "/proc/self/exe"));
	assert_true(image_has_name(&image, "a_function_to_be_found"));
	assert_false(image_has_name(&image, "a_function_to_be"));
	for (size_t at = 0; image_next_function(&image, &at, &function); functions++) {
		if (!strcmp(function.name, "a_function_to_be_found"))
			found = (uintptr_t)&__executable_start + function.value;
	}
	assert_true(functions > 3);
	assert_int_equal(found, expected);
	image_close(&image);
}

static void no_elf_file_is_opened(void **state)
{
	struct image image;

	(void)state;
	assert_false(image_open(&image, "/nonexistent"));
	assert_false(image_open(&image, "/dev/null"));
	assert_false(image_open(&image, "/proc/self"));
	assert_false(image_open(&image, "/etc/passwd"));
	assert_false(image_parse(&image, "\177ELF", 4));
}

/* Everything that the guard does with an image. */
static size_t read_through(const void *bytes, size_t size)
{
	struct image image;
	struct image_function function;
	size_t sum = 0;

	if (!image_parse(&image, bytes, size))
		return 0;
	sum += image_has_name(&image, "cudaMalloc");
	for (size_t at = 0; image_next_function(&image, &at, &function);)
		sum += strlen(function.name) + function.value % 7;
	return sum;
}

static void damaged_files_are_read_within_bounds(void **state)
{
	struct image image;
	unsigned seed = 1;
	size_t size, whole;
	unsigned char *copy;

	(void)state;
	assert_true(image_open(&image, "/proc/self/exe"));
	size = image.size;
	whole = read_through(image.bytes, size);
	assert_true(whole > 0);

	for (size_t cut = 0; cut < size; cut += 1 + size / 300) {
		copy = malloc(cut ? cut : 1);
		assert_non_null(copy);
		memcpy(copy, image.bytes, cut);
		read_through(copy, cut);
		free(copy);
	}

	copy = malloc(size);
	assert_non_null(copy);
	for (int round = 0; round < 2000; round++) {
		const Elf64_Ehdr *header = (const Elf64_Ehdr *)image.bytes;
		/* Where it hurts: the header, or the section headers. */
		size_t at = round % 2 ? (size_t)rand_r(&seed) % sizeof(*header)
				      : header->e_shoff +
						(size_t)rand_r(&seed) %
							(header->e_shnum * sizeof(Elf64_Shdr));

		memcpy(copy, image.bytes, size);
		copy[at] ^= (unsigned char)(1 << rand_r(&seed) % 8);
		copy[(at + 3) % size] ^= (unsigned char)rand_r(&seed);
		read_through(copy, size);
	}
	free(copy);
	image_close(&image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_functions_are_found),
		cmocka_unit_test(no_elf_file_is_opened),
		cmocka_unit_test(damaged_files_are_read_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
