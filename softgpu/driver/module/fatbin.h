/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading what a program carries: fat binaries (a list of PTX texts and machine code for
 * several parts, each perhaps compressed) and the names in a machine code file.  Every byte is
 * checked against the size given; nothing is trusted.  Depends on no other part, for the fuzz
 * target.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_MODULE_FATBIN_H
#define VCUDA_SOFTGPU_DRIVER_MODULE_FATBIN_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FATBIN_MAGIC 0xBA55ED50u
/* The wrapper that a program's registration call points to: magic, version, pointer, pointer.
 */
#define FATBIN_WRAPPER_MAGIC 0x466243b1u
/* What is expanded is at most this long: a compressed entry may claim any size. */
#define FATBIN_EXPANDED_MAX ((size_t)1 << 30)

enum fatbin_kind {
	FATBIN_PTX = 1,
	FATBIN_ELF = 2,
};

struct fatbin_entry {
	unsigned kind;
	unsigned arch; /* 75 for sm_75 */
	uint64_t flags;
	const void *payload;
	size_t size;	 /* of the payload, as stored */
	size_t expanded; /* bytes once expanded; size where it is not compressed */
};

/* The whole of a fat binary as its header has it, or 0 where DATA is none. */
size_t soft_fatbin_size(const void *data, size_t size);

/* The next entry; *AT is 0 at first.  False at the end, and where the rest is malformed. */
bool fatbin_next(const void *data, size_t size, size_t *at, struct fatbin_entry *entry);

/* The PTX to run on a part of ARCH (80): the highest not above it, else the lowest above. False
 * where there is none. */
bool fatbin_pick_ptx(const void *data, size_t size, unsigned arch, struct fatbin_entry *entry);
/* Any machine code entry. */
bool fatbin_pick_elf(const void *data, size_t size, struct fatbin_entry *entry);

/* The entry's bytes, malloc'ed, a NUL behind them; NULL where they cannot be expanded. */
char *fatbin_expand(const struct fatbin_entry *entry, size_t *size);

/* An ELF file's header, and one section's; false where they do not fit into DATA. */
bool fatbin_elf_header(const void *data, size_t size, Elf64_Ehdr *header);
bool fatbin_elf_section(const void *data, size_t size, const Elf64_Ehdr *header, size_t index,
	Elf64_Shdr *section);
/* The extent of an ELF file as its headers have it, or 0 where DATA is none. */
size_t soft_fatbin_elf_size(const void *data, size_t size);
/* The fat binary in an object file of the host's compiler, and how much of the file is behind
 * its beginning; NULL: none. */
const void *fatbin_of_object(const void *data, size_t size, size_t *n);
/* The next member of an archive (ar); *AT is 0 at first.  False at the end, where the rest is
 * malformed, and where DATA is none. */
bool fatbin_archive_next(
	const void *data, size_t size, size_t *at, const void **member, size_t *n);
/* The names of an ELF file's kernels, one after another, each with its NUL; malloc'ed.  NULL:
 * malformed or no memory. */
char *fatbin_elf_kernels(const void *data, size_t size, size_t *names_size);

#endif
