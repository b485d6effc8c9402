/* SPDX-License-Identifier: Apache-2.0
 *
 * Walking fat binaries: see fatbin.h.
 */
#include "shim/driver/module/fatbin.h"

#include <elf.h>
#include <string.h>

#define ENTRY_PTX 1
#define ENTRY_ELF 2

/* Code for one architecture only (sm_90a), and for its family (sm_100f). */
#define ENTRY_FLAG_EXACT 0x100000u
#define ENTRY_FLAG_FAMILY 0x200000u

/* The start of an entry's header; it is at least this long. */
struct entry_header {
	uint16_t kind;
	uint16_t version;
	uint32_t header_bytes;
	uint64_t payload_bytes;
	uint32_t compressed_bytes;
	uint32_t options_offset;
	uint16_t code_minor, code_major;
	uint32_t arch;
	uint32_t name_offset, name_bytes;
	uint64_t flags;
};
_Static_assert(sizeof(struct entry_header) == 48, "");

size_t fatbin_size(const void *data)
{
	struct fatbin_header header;

	memcpy(&header, data, sizeof(header));
	if (header.magic != FATBIN_MAGIC || header.header_bytes < sizeof(header) ||
		header.bytes > SIZE_MAX / 2)
		return 0;
	return header.header_bytes + (size_t)header.bytes;
}

static bool entry_next(
	const unsigned char *data, size_t bytes, size_t *at, struct fatbin_entry *entry)
{
	struct entry_header header;
	size_t left;

	for (;;) {
		if (*at > bytes || bytes - *at < sizeof(header))
			return false;
		left = bytes - *at;
		memcpy(&header, data + *at, sizeof(header));
		if (header.header_bytes < sizeof(header) || header.header_bytes > left ||
			header.payload_bytes > left - header.header_bytes)
			return false;
		*entry = (struct fatbin_entry){.start = data + *at,
			.bytes = header.header_bytes + (size_t)header.payload_bytes,
			.ptx = header.kind == ENTRY_PTX,
			.arch = header.arch,
			.flags = header.flags};
		*at += entry->bytes;
		if (header.kind == ENTRY_PTX || header.kind == ENTRY_ELF)
			return true;
	}
}

/* How well an entry suits; 0: not at all. Machine code before PTX, the nearer architecture
 * first, code for this very part before code for its family before code for all. */
static unsigned entry_rank(const struct fatbin_entry *entry, const struct fatbin_target *target)
{
	unsigned device = (unsigned)(target->major * 10 + target->minor);
	bool same_major = entry->arch / 10 == device / 10;
	bool exact = entry->flags & ENTRY_FLAG_EXACT, family = entry->flags & ENTRY_FLAG_FAMILY;
	unsigned special = exact ? 2 : family ? 1 : 0;

	if (!entry->arch || entry->arch > 10000)
		return 0;
	if (target->ptx_only) {
		/* It runs any PTX: the nearest that is not above the device, else the lowest. A
		 * module without PTX is sent all the same, for the agent to say what is wrong.
		 */
		if (!entry->ptx)
			return 1;
		return entry->arch <= device ? 100000 + entry->arch : 50000 - entry->arch;
	}
	if (entry->arch > device || (exact && entry->arch != device) || (family && !same_major))
		return 0;
	if (entry->ptx)
		return 4 * entry->arch + special;
	return same_major ? 100000 + 4 * entry->arch + special : 0;
}

bool fatbin_pick(const void *data, size_t bytes, const struct fatbin_target *target,
	struct fatbin_entry *entry)
{
	struct fatbin_header header;
	struct fatbin_entry candidate;
	unsigned best = 0;
	size_t at;

	if (bytes < sizeof(header))
		return false;
	memcpy(&header, data, sizeof(header));
	if (header.magic != FATBIN_MAGIC || header.header_bytes < sizeof(header) ||
		header.header_bytes > bytes || header.bytes > bytes - header.header_bytes)
		return false;
	bytes = header.header_bytes + (size_t)header.bytes;
	at = header.header_bytes;
	while (entry_next(data, bytes, &at, &candidate)) {
		unsigned rank = entry_rank(&candidate, target);

		if (rank > best) {
			best = rank;
			*entry = candidate;
		}
	}
	return best != 0;
}

size_t fatbin_elf_size(const void *data)
{
	const unsigned char *bytes = data;
	Elf64_Ehdr elf;
	size_t end;

	memcpy(&elf, data, sizeof(elf));
	if (memcmp(elf.e_ident, ELFMAG, SELFMAG) || elf.e_ident[EI_CLASS] != ELFCLASS64)
		return 0;
	end = sizeof(elf);
	if (elf.e_shoff && elf.e_shentsize == sizeof(Elf64_Shdr) &&
		elf.e_shoff < SIZE_MAX / 4) {
		end = elf.e_shoff + (size_t)elf.e_shnum * sizeof(Elf64_Shdr);
		for (unsigned i = 0; i < elf.e_shnum; i++) {
			Elf64_Shdr section;

			memcpy(&section, bytes + elf.e_shoff + i * sizeof(section),
				sizeof(section));
			if (section.sh_type != SHT_NOBITS && section.sh_offset < SIZE_MAX / 4 &&
				section.sh_size < SIZE_MAX / 4 &&
				section.sh_offset + section.sh_size > end)
				end = section.sh_offset + section.sh_size;
		}
	}
	if (elf.e_phoff && elf.e_phentsize == sizeof(Elf64_Phdr) &&
		elf.e_phoff < SIZE_MAX / 4) {
		size_t behind = elf.e_phoff + (size_t)elf.e_phnum * sizeof(Elf64_Phdr);

		if (behind > end)
			end = behind;
	}
	return end;
}
