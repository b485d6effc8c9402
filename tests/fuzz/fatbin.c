/* SPDX-License-Identifier: Apache-2.0
 *
 * Fuzz target: any bytes as a fat binary, as a machine code file, and as an archive.
 */
#include "softgpu/driver/module/fatbin.h"

#include <stdlib.h>

/* What one entry may claim before it is left alone: the limit of the real thing is a GiB. */
#define EXPANDED_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void machine_code(const void *bytes, size_t n)
{
	size_t size;

	soft_fatbin_elf_size(bytes, n);
	free(fatbin_elf_kernels(bytes, n, &size));
}

static void archive(const void *bytes, size_t n)
{
	const void *member, *fat;
	struct fatbin_entry entry;
	size_t at = 0, size, room;

	while (fatbin_archive_next(bytes, n, &at, &member, &size)) {
		fat = fatbin_of_object(member, size, &room);
		if (fat && soft_fatbin_size(fat, room))
			fatbin_pick_ptx(fat, soft_fatbin_size(fat, room), 80, &entry);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct fatbin_entry entry;
	size_t size;

	for (size_t at = 0; fatbin_next(bytes, n, &at, &entry);) {
		char *expanded =
			entry.expanded <= EXPANDED_MAX ? fatbin_expand(&entry, &size) : NULL;

		if (expanded && entry.kind == FATBIN_ELF)
			machine_code(expanded, size);
		free(expanded);
	}
	fatbin_pick_ptx(bytes, n, 80, &entry);
	fatbin_pick_elf(bytes, n, &entry);
	machine_code(bytes, n);
	archive(bytes, n);
	return 0;
}
