/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading fat binaries and machine code that nvcc made: what is in them is found, and no
 * truncation or flipped bit makes the reader leave the bytes that it was given.
 */
#include "softgpu/driver/module/fatbin.h"
#include "tests/unit/softgpu/softgpu_images.h"

#include <elf.h>

/* Expands all that is in there; the sum keeps the compiler from leaving it out. */
static size_t walk(const void *data, size_t size)
{
	struct fatbin_entry entry;
	size_t total = 0, n;

	for (size_t at = 0; fatbin_next(data, size, &at, &entry);) {
		/* A damaged size may ask for anything up to the limit: not in this loop. */
		char *bytes = entry.expanded < (1 << 22) ? fatbin_expand(&entry, &n) : NULL;

		if (!bytes)
			continue;
		total += n;
		if (entry.kind == FATBIN_ELF) {
			size_t names_size;

			free(fatbin_elf_kernels(bytes, n, &names_size));
		}
		free(bytes);
	}
	return total;
}

static void every_compression_reads_the_same(void **state)
{
	static const char *const names[] = {"none.fatbin", "zstd.fatbin", "lz4.fatbin"};
	static const unsigned flags[] = {0, 0x8000, 0x2000};
	char *texts[3];

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct fatbin_entry entry;
		size_t size, n;
		unsigned char *data = load(names[i], &size);

		assert_true(
			soft_fatbin_size(data, size) && soft_fatbin_size(data, size) <= size);
		assert_true(fatbin_pick_ptx(data, size, 80, &entry));
		assert_int_equal(entry.arch, 75);
		assert_int_equal(entry.flags & 0xa000, flags[i]);
		texts[i] = fatbin_expand(&entry, &n);
		assert_non_null(texts[i]);
		assert_non_null(strstr(texts[i], ".visible .entry add("));
		assert_true(fatbin_pick_elf(data, size, &entry));
		free(data);
		if (i)
			assert_string_equal(texts[i], texts[0]);
	}
	for (int i = 0; i < 3; i++)
		free(texts[i]);
}

static void machine_code_names_its_kernels(void **state)
{
	size_t size, names_size, count = 0;
	unsigned char *data = load("kernels.cubin", &size);
	char *names = fatbin_elf_kernels(data, size, &names_size);
	bool found = false;

	(void)state;
	assert_non_null(names);
	for (size_t at = 0; at < names_size; at += strlen(names + at) + 1) {
		found = found || !strcmp(names + at, "sum_shared");
		count++;
	}
	assert_true(found);
	assert_int_equal(count, 8);
	assert_true(soft_fatbin_elf_size(data, size) <= size &&
		    soft_fatbin_elf_size(data, size) > 64);
	free(names);
	free(data);
}

/* Entries larger than the table, up to what makes the next one's place wrap around. */
static void symbols_of_any_size_stay_inside(void **state)
{
	static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 7, 1ull << 63, 1 << 20};
	size_t size, names_size;
	unsigned char *data = load("kernels.cubin", &size);
	Elf64_Ehdr header;

	(void)state;
	memcpy(&header, data, sizeof(header));
	for (size_t n = 0; n < sizeof(sizes) / sizeof(*sizes); n++) {
		unsigned changed = 0;

		for (size_t i = 0; i < header.e_shnum; i++) {
			unsigned char *at = data + header.e_shoff + i * header.e_shentsize;
			Elf64_Shdr section;
			char *names;

			memcpy(&section, at, sizeof(section));
			if (section.sh_type != SHT_SYMTAB)
				continue;
			section.sh_entsize = sizes[n];
			memcpy(at, &section, sizeof(section));
			names = fatbin_elf_kernels(data, size, &names_size);
			assert_non_null(names);
			assert_int_equal(names_size, 0);
			free(names);
			changed++;
		}
		assert_int_equal(changed, 1);
	}
	free(data);
}

/* The highest PTX that the part can run, else the lowest. */
static void the_best_ptx_is_picked(void **state)
{
	static const unsigned arches[] = {75, 90, 80, 52, 100};
	unsigned char data[16 + 5 * 64] = {0};
	struct fatbin_entry entry;

	(void)state;
	memcpy(data, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
	data[8] = (unsigned char)(5 * 64 & 255);
	data[9] = 5 * 64 >> 8;
	for (int i = 0; i < 5; i++) {
		unsigned char *at = data + 16 + 64 * i;

		at[0] = FATBIN_PTX;
		at[4] = 64;
		at[28] = (unsigned char)arches[i];
	}
	assert_true(fatbin_pick_ptx(data, sizeof(data), 80, &entry));
	assert_int_equal(entry.arch, 80);
	assert_true(fatbin_pick_ptx(data, sizeof(data), 79, &entry));
	assert_int_equal(entry.arch, 75);
	assert_true(fatbin_pick_ptx(data, sizeof(data), 50, &entry));
	assert_int_equal(entry.arch, 52);
	assert_false(fatbin_pick_elf(data, sizeof(data), &entry));
}

/* In memory of exactly that size, so that a sanitizer sees one byte too many. */
static void truncated_at_every_length(void **state)
{
	static const char *const names[] = {"none.fatbin", "zstd.fatbin", "lz4.fatbin"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		size_t size, step;
		unsigned char *data = load(names[i], &size);

		for (size_t n = 0; n < size; n += step) {
			unsigned char *part = malloc(n ? n : 1);

			assert_non_null(part);
			memcpy(part, data, n);
			assert_int_equal(walk(part, n), 0);
			free(part);
			step = n < 256 || size - n < 256 ? 1 : 61;
		}
		assert_true(walk(data, size) > 0);
		free(data);
	}
}

static void flipped_bits_stay_inside(void **state)
{
	static const char *const names[] = {"zstd.fatbin", "lz4.fatbin", "kernels.cubin"};

	(void)state;
	for (int i = 0; i < 3; i++) {
		size_t size, names_size;
		unsigned char *data = load(names[i], &size);
		unsigned char *exact = malloc(size);

		assert_non_null(exact);
		for (size_t bit = 0; bit < 8 * size; bit += bit < 8 * 256 ? 1 : 157) {
			memcpy(exact, data, size);
			exact[bit / 8] ^= (unsigned char)(1 << bit % 8);
			walk(exact, size);
			soft_fatbin_elf_size(exact, size);
			free(fatbin_elf_kernels(exact, size, &names_size));
		}
		free(exact);
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_compression_reads_the_same),
		cmocka_unit_test(machine_code_names_its_kernels),
		cmocka_unit_test(symbols_of_any_size_stay_inside),
		cmocka_unit_test(the_best_ptx_is_picked),
		cmocka_unit_test(truncated_at_every_length),
		cmocka_unit_test(flipped_bits_stay_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
