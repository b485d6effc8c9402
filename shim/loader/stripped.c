/* SPDX-License-Identifier: Apache-2.0
 *
 * See stripped.h.  Where functions begin and end, every object tells its unwinder.  For
 * profilers, each function of the runtime's API loads the address of its own name: so the
 * functions name themselves, in every release.  Those that only compilers call have no such
 * name, all but one. They lie around that one in a row whose order and sizes have been the same
 * from CUDA 12.9 to 13.5; a runtime with another row is not one that is known here.
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

/* The name that the function loads the address of: lea disp32(%rip), any register. NULL: none
 * that a function of the runtime could have. */
static const char *own_name(const struct dl_phdr_info *info, uint64_t value, uint32_t size)
{
	const unsigned char *code = loaded(info, value, size, PF_X);

	for (uint32_t i = 0; code && i + 7 <= size; i++) {
		int32_t distance;
		uint64_t target;
		const char *name;

		if ((code[i] & 0xfb) != 0x48 || code[i + 1] != 0x8d ||
			(code[i + 2] & 0xc7) != 0x05)
			continue;
		memcpy(&distance, code + i + 3, sizeof(distance));
		target = value + i + 7 + (uint64_t)(int64_t)distance;
		name = loaded(info, target, NAME_MOST, PF_R);
		if (name && (!strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6)) &&
			memchr(name, 0, NAME_MOST))
			return name;
	}
	return NULL;
}

/* ---- The row of what compilers call ---- */

static const struct {
	const char *name;
	uint32_t size; /* 0: releases differ */
} row[] = {
	{"cudaGetExportTable", 0x4a},
	{"__cudaRegisterFatBinary", 0x2b},
	{"__cudaRegisterFatBinaryEnd", 0x22},
	{"__cudaUnregisterFatBinary", 0x37},
	{"__cudaRegisterVar", 0x7b},
	{"__cudaRegisterManagedVar", 0x7b},
	{"__cudaRegisterHostVar", 0x38},
	{"__cudaRegisterFunction", 0x69},
	{"__cudaInitModule", 0xd7},
	{"__cudaPushCallConfiguration", 0x96},
	{"__cudaPopCallConfiguration", 0xa2},
	{"__cudaGetKernel", 0},
	{"__cudaLaunchKernel", 0xa},
	{"__cudaLaunchKernel_ptsz", 0xa},
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
static bool row_fits(const struct unwind_entry *entries)
{
	for (size_t i = 0; i + 1 < ROW; i++)
		if (row[i].size && (int64_t)entries[i + 1].start - entries[i].start !=
					   aligned(row[i].size))
			return false;
	return true;
}

static bool row_is_there(const struct stripped *runtime)
{
	uint64_t value;
	uint32_t size;
	const char *name = NULL;

	for (size_t i = 0; i < ROW; i++) {
		if (!unwind_function(runtime, runtime->first + i, &value, &size) ||
			(row[i].size && size != row[i].size))
			return false;
		if (i == NAMED)
			name = own_name(runtime->info, value, size);
	}
	return name && !strcmp(name, row[NAMED].name);
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
	for (; runtime->first + ROW <= runtime->count; runtime->first++)
		if (row_fits(runtime->entries + runtime->first) && row_is_there(runtime))
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
		name = i < ROW ? row[i].name : own_name(runtime->info, value, size);
		if (!name)
			continue;
		*function = (struct image_function){name, value, size};
		return true;
	}
	return false;
}
