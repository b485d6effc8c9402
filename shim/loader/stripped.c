/* SPDX-License-Identifier: Apache-2.0
 *
 * See stripped.h.  Where functions begin and end, every object tells its unwinder.  For
 * profilers, each function of the runtime's API loads the address of its own name: so the
 * functions name themselves, in every release.  Those that only compilers call have no such
 * name, all but one. They lie around that one in a row whose order has been the same from CUDA
 * 12.0 to 13.5, and whose sizes are those of one of three times; a runtime with another row is
 * not one that is known here.
 */
#include "shim/loader/stripped.h"

#include <string.h>

/* ---- What the object tells its unwinder: .eh_frame_hdr and .eh_frame ---- */

struct unwind_header {
	unsigned char version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

/* From the header's address on. */
struct unwind_entry {
	int32_t start, frame;
};

struct unwind_frame {
	uint32_t length, common;
	int32_t start; /* from its own address on */
	uint32_t size;
};

/* As linkers write it: version 1, relative numbers of 4 bytes, sorted. */
static const unsigned char unwind_form[4] = {1, 0x1b, 0x03, 0x3b};

/* The address of that value, where all of the bytes are in the file's part of one segment. */
static const void *loaded(
	const struct dl_phdr_info *info, uint64_t value, uint64_t bytes, uint32_t flags)
{
	return loaded_part(info, value, bytes, flags)
		       ? (const void *)(uintptr_t)(info->dlpi_addr + value)
		       : NULL;
}

static const struct unwind_header *unwind_find(const struct dl_phdr_info *info, uint64_t *value)
{
	const struct unwind_header *header;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_GNU_EH_FRAME || part->p_vaddr % sizeof(uint32_t))
			continue;
		*value = part->p_vaddr;
		header = loaded(info, *value, sizeof(*header), PF_R);
		if (header && !memcmp(header, unwind_form, sizeof(unwind_form)) &&
			loaded(info, *value,
				sizeof(*header) +
					(uint64_t)header->count * sizeof(struct unwind_entry),
				PF_R))
			return header;
	}
	return NULL;
}

/* The function at ENTRY: where it begins and how long it is. */
static bool unwind_function(
	const struct stripped *runtime, size_t entry, uint64_t *value, uint32_t *size)
{
	const struct unwind_entry *at = &runtime->entries[entry];
	const struct unwind_header *header = (const struct unwind_header *)runtime->entries - 1;
	uint64_t base = (uintptr_t)header - runtime->info->dlpi_addr;
	uint64_t where = base + (uint64_t)(int64_t)at->frame;
	const struct unwind_frame *frame = loaded(runtime->info, where, sizeof(*frame), PF_R);

	*value = base + (uint64_t)(int64_t)at->start;
	if (!frame || where % sizeof(uint32_t) ||
		where + offsetof(struct unwind_frame, start) +
				(uint64_t)(int64_t)frame->start !=
			*value)
		return false;
	*size = frame->size;
	return true;
}

/* ---- Names ---- */

#define NAME_MOST 96

static const char *name_at(const struct dl_phdr_info *info, uint64_t value)
{
	const char *name = loaded(info, value, NAME_MOST, PF_R);

	return name && (!strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6)) &&
			       memchr(name, 0, NAME_MOST)
		       ? name
		       : NULL;
}

/* What the loader adds the object's base to and stores there, whether it has done so or not:
 * the relocations of that kind come first, in the order of addresses. 0: it does not. */
static uint64_t stored_value(const struct stripped *runtime, uint64_t at)
{
	size_t low = 0, high = runtime->relative_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const Elf64_Rela *one = &runtime->relatives[middle];

		if (one->r_offset == at)
			return ELF64_R_TYPE(one->r_info) == R_X86_64_RELATIVE
				       ? (uint64_t)one->r_addend
				       : 0;
		if (one->r_offset < at)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

/* The name that the function loads the address of: lea disp32(%rip), any register; or before
 * 12.8, along with another address, movq disp32(%rip), %xmm0 of a place that has it. NULL: none
 * that a function of the runtime could have. */
static const char *own_name(const struct stripped *runtime, uint64_t value, uint32_t size)
{
	static const unsigned char movq[3] = {0xf3, 0x0f, 0x7e};
	const unsigned char *code = loaded(runtime->info, value, size, PF_X);

	for (uint32_t i = 0; code && i + 8 <= size; i++) {
		bool lea = (code[i] & 0xfb) == 0x48 && code[i + 1] == 0x8d &&
			   (code[i + 2] & 0xc7) == 0x05;
		uint32_t length = lea ? 7 : 8;
		int32_t distance;
		uint64_t target;
		const char *name;

		if (!lea &&
			(memcmp(code + i, movq, sizeof(movq)) || (code[i + 3] & 0xc7) != 0x05))
			continue;
		memcpy(&distance, code + i + length - sizeof(distance), sizeof(distance));
		target = value + i + length + (uint64_t)(int64_t)distance;
		name = name_at(runtime->info, lea ? target : stored_value(runtime, target));
		if (name)
			return name;
	}
	return NULL;
}

/* ---- The row of what compilers call ---- */

#define TIMES 3

static const struct {
	const char *name;
	/* From 12.8, 12.2 and 12.0 on; 0: releases differ. */
	uint32_t sizes[TIMES];
} row[] = {
	{"cudaGetExportTable", {0x4a, 0x4a, 0}},
	{"__cudaRegisterFatBinary", {0x2b, 0x2b, 0x28}},
	{"__cudaRegisterFatBinaryEnd", {0x22, 0x22, 0x15}},
	{"__cudaUnregisterFatBinary", {0x37, 0x37, 0x22}},
	{"__cudaRegisterVar", {0x7b, 0x7b, 0x6f}},
	{"__cudaRegisterManagedVar", {0x7b, 0x7b, 0x6f}},
	{"__cudaRegisterHostVar", {0x38, 0x38, 0x39}},
	{"__cudaRegisterFunction", {0x69, 0x69, 0x61}},
	{"__cudaInitModule", {0xd7, 0xc6, 0xd5}},
	{"__cudaPushCallConfiguration", {0x96, 0x8c, 0x94}},
	{"__cudaPopCallConfiguration", {0xa2, 0xb5, 0xc9}},
	{"__cudaGetKernel", {0, 0x67, 0x5f}},
	{"__cudaLaunchKernel", {0xa, 0xa, 0x5}},
	{"__cudaLaunchKernel_ptsz", {0xa, 0xa, 0x5}},
};
#define ROW (sizeof(row) / sizeof(*row))
#define NAMED 8 /* which of them names itself */
/* Functions begin at multiples of this. */
#define ALIGNMENT 16
/* The runtime's code is half of this, and behind the row are the functions of its API. */
#define CODE_MOST ((uint64_t)1 << 20)

static uint32_t aligned(uint32_t size)
{
	return (size + ALIGNMENT - 1) & ~(uint32_t)(ALIGNMENT - 1);
}

/* By the distances between functions, which cost no look at anything else. */
static bool row_fits(const struct unwind_entry *entries, size_t time)
{
	for (size_t i = 0; i + 1 < ROW; i++)
		if (row[i].sizes[time] && (int64_t)entries[i + 1].start - entries[i].start !=
						  aligned(row[i].sizes[time]))
			return false;
	return true;
}

static bool row_is_there(const struct stripped *runtime, size_t time)
{
	uint64_t value;
	uint32_t size;
	const char *name = NULL;

	for (size_t i = 0; i < ROW; i++) {
		if (!unwind_function(runtime, runtime->first + i, &value, &size) ||
			(row[i].sizes[time] && size != row[i].sizes[time]))
			return false;
		if (i == NAMED)
			name = own_name(runtime, value, size);
	}
	return name && !strcmp(name, row[NAMED].name);
}

static void find_relatives(struct stripped *runtime)
{
	const struct loaded_tables tables = loaded_tables(runtime->info);
	uint64_t value = (uintptr_t)tables.relatives - runtime->info->dlpi_addr;

	runtime->relatives = tables.relatives;
	if (tables.relatives && tables.relative_count < UINT32_MAX &&
		loaded(runtime->info, value, tables.relative_count * sizeof(Elf64_Rela), PF_R))
		runtime->relative_count = tables.relative_count;
}

bool stripped_find(struct stripped *runtime, const struct dl_phdr_info *info)
{
	uint64_t value;
	const struct unwind_header *header = unwind_find(info, &value);

	if (!header)
		return false;
	*runtime = (struct stripped){
		.info = info,
		.entries = (const struct unwind_entry *)(header + 1),
		.count = header->count,
	};
	find_relatives(runtime);
	for (; runtime->first + ROW <= runtime->count; runtime->first++)
		for (size_t time = 0; time < TIMES; time++)
			if (row_fits(runtime->entries + runtime->first, time) &&
				row_is_there(runtime, time))
				return true;
	return false;
}

bool stripped_next(const struct stripped *runtime, size_t *at, struct image_function *function)
{
	int64_t begin = runtime->entries[runtime->first].start;

	while (*at < runtime->count - runtime->first) {
		size_t i = (*at)++, entry = runtime->first + i;
		uint64_t value;
		uint32_t size;
		const char *name;

		if ((uint64_t)(runtime->entries[entry].start - begin) > CODE_MOST)
			return false;
		if (!unwind_function(runtime, entry, &value, &size))
			continue;
		name = i < ROW ? row[i].name : own_name(runtime, value, size);
		if (!name)
			continue;
		*function = (struct image_function){name, value, size};
		return true;
	}
	return false;
}
