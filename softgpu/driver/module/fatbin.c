/* SPDX-License-Identifier: Apache-2.0
 *
 * Fat binaries.  Layout, as seen in what nvcc 13 writes: a header (magic u32, version u16,
 * header size u16, size of all entries u64), then entries: kind u16 @0, header size u32 @4,
 * payload size u64 @8, compressed size u32 @16, architecture u32 @28, flags u64 @40, size once
 * expanded u64 @56 (only with a compression flag).
 */
#include "softgpu/driver/module/fatbin.h"

#include <elf.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define HEADER_SIZE 16
#define ENTRY_HEADER_SIZE 64
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u

static uint64_t get(const void *data, size_t at, size_t bytes)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)data + at, bytes);
	return value;
}

size_t soft_fatbin_size(const void *data, size_t size)
{
	uint64_t header, entries;

	if (size < HEADER_SIZE || get(data, 0, 4) != FATBIN_MAGIC)
		return 0;
	header = get(data, 6, 2);
	entries = get(data, 8, 8);
	if (header < HEADER_SIZE || header > size || entries > size - header)
		return 0;
	return (size_t)(header + entries);
}

bool fatbin_next(const void *data, size_t size, size_t *at, struct fatbin_entry *entry)
{
	size_t whole = soft_fatbin_size(data, size);
	uint64_t header, payload, compressed;

	if (!whole)
		return false;
	if (*at == 0)
		*at = (size_t)get(data, 6, 2);
	if (*at > whole || whole - *at < ENTRY_HEADER_SIZE)
		return false;
	header = get(data, *at + 4, 4);
	payload = get(data, *at + 8, 8);
	if (header < ENTRY_HEADER_SIZE || header > whole - *at ||
		payload > whole - *at - header)
		return false;
	compressed = get(data, *at + 16, 4);
	*entry = (struct fatbin_entry){
		.kind = (unsigned)get(data, *at, 2),
		.arch = (unsigned)get(data, *at + 28, 4),
		.flags = get(data, *at + 40, 8),
		.payload = (const char *)data + *at + header,
		.size = (size_t)payload,
		.expanded = (size_t)payload,
	};
	if (entry->flags & (FLAG_LZ4 | FLAG_ZSTD)) {
		if (compressed && compressed <= payload)
			entry->size = (size_t)compressed;
		entry->expanded = (size_t)get(data, *at + 56, 8);
	}
	*at += (size_t)(header + payload);
	return true;
}

bool fatbin_pick_ptx(const void *data, size_t size, unsigned arch, struct fatbin_entry *entry)
{
	struct fatbin_entry each;
	bool found = false;

	for (size_t at = 0; fatbin_next(data, size, &at, &each);) {
		bool better;

		if (each.kind != FATBIN_PTX)
			continue;
		if (!found)
			better = true;
		else if (entry->arch <= arch)
			better = each.arch <= arch && each.arch > entry->arch;
		else
			better = each.arch < entry->arch;
		if (better)
			*entry = each;
		found = true;
	}
	return found;
}

bool fatbin_pick_elf(const void *data, size_t size, struct fatbin_entry *entry)
{
	for (size_t at = 0; fatbin_next(data, size, &at, entry);)
		if (entry->kind == FATBIN_ELF)
			return true;
	return false;
}

char *fatbin_expand(const struct fatbin_entry *entry, size_t *size)
{
	size_t got = entry->size;
	char *bytes;

	if (entry->expanded > FATBIN_EXPANDED_MAX || entry->size > FATBIN_EXPANDED_MAX)
		return NULL;
	bytes = malloc(entry->expanded + 1);
	if (!bytes)
		return NULL;
	if (entry->flags & FLAG_ZSTD) {
		got = ZSTD_decompress(bytes, entry->expanded, entry->payload, entry->size);
		if (ZSTD_isError(got))
			got = SIZE_MAX;
	} else if (entry->flags & FLAG_LZ4) {
		int n = LZ4_decompress_safe(
			entry->payload, bytes, (int)entry->size, (int)entry->expanded);

		got = n < 0 ? SIZE_MAX : (size_t)n;
	} else {
		memcpy(bytes, entry->payload, entry->size);
	}
	if (got == SIZE_MAX) {
		free(bytes);
		return NULL;
	}
	bytes[got] = 0;
	*size = got;
	return bytes;
}

/* ---- machine code files ---- */

bool fatbin_elf_header(const void *data, size_t size, Elf64_Ehdr *header)
{
	if (size < sizeof(*header))
		return false;
	memcpy(header, data, sizeof(*header));
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64;
}

bool fatbin_elf_section(const void *data, size_t size, const Elf64_Ehdr *header, size_t index,
	Elf64_Shdr *section)
{
	uint64_t at;

	if (index >= header->e_shnum || header->e_shentsize < sizeof(*section) ||
		__builtin_add_overflow(header->e_shoff, index * header->e_shentsize, &at) ||
		at > size || size - at < sizeof(*section))
		return false;
	memcpy(section, (const char *)data + at, sizeof(*section));
	return section->sh_type == SHT_NOBITS ||
	       (section->sh_offset <= size && section->sh_size <= size - section->sh_offset);
}

size_t soft_fatbin_elf_size(const void *data, size_t size)
{
	uint64_t sections, segments;
	Elf64_Ehdr header;

	if (!fatbin_elf_header(data, size, &header) ||
		__builtin_add_overflow(header.e_shoff,
			(uint64_t)header.e_shnum * header.e_shentsize, &sections) ||
		__builtin_add_overflow(header.e_phoff,
			(uint64_t)header.e_phnum * header.e_phentsize, &segments))
		return 0;
	if (segments > sections)
		sections = segments;
	return sections <= size ? (size_t)sections : 0;
}

/* CUDA marks a kernel's symbol with this bit of st_other. */
#define OTHER_ENTRY 0x10

char *fatbin_elf_kernels(const void *data, size_t size, size_t *names_size)
{
	Elf64_Shdr symbols = {0}, strings = {0};
	Elf64_Ehdr header;
	bool found = false;
	size_t used = 0;
	char *names;

	if (!fatbin_elf_header(data, size, &header))
		return NULL;
	for (size_t i = 0; i < header.e_shnum && !found; i++)
		found = fatbin_elf_section(data, size, &header, i, &symbols) &&
			symbols.sh_type == SHT_SYMTAB;
	if (!found || symbols.sh_entsize < sizeof(Elf64_Sym) ||
		!fatbin_elf_section(data, size, &header, symbols.sh_link, &strings) ||
		strings.sh_type != SHT_STRTAB)
		return NULL;
	/* Names may share bytes, so there can be more of them than the table is long. */
	names = NULL;
	for (uint64_t i = 0; i < symbols.sh_size / symbols.sh_entsize; i++) {
		const uint64_t at = i * symbols.sh_entsize;
		const char *name;
		size_t length;
		Elf64_Sym symbol;
		char *more;

		memcpy(&symbol, (const char *)data + symbols.sh_offset + at, sizeof(symbol));
		if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
			!(symbol.st_other & OTHER_ENTRY) || symbol.st_name >= strings.sh_size)
			continue;
		name = (const char *)data + strings.sh_offset + symbol.st_name;
		length = strnlen(name, strings.sh_size - symbol.st_name);
		if (!length || length == strings.sh_size - symbol.st_name)
			continue;
		if (used + length + 1 > FATBIN_EXPANDED_MAX / 16)
			break;
		more = realloc(names, used + length + 1);
		if (!more)
			break;
		names = more;
		memcpy(names + used, name, length + 1);
		used += length + 1;
	}
	if (!names)
		names = calloc(1, 1);
	*names_size = used;
	return names;
}
