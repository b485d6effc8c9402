/* SPDX-License-Identifier: Apache-2.0
 *
 * NVIDIA's container of device code: a header and entries, each PTX or machine code for one
 * architecture.  Picks the one entry that a device would run, so that only that travels.
 * Depends on nothing else, for the fuzz target; every number is checked against the size given.
 */
#ifndef VCUDA_SHIM_DRIVER_MODULE_FATBIN_H
#define VCUDA_SHIM_DRIVER_MODULE_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FATBIN_MAGIC 0xBA55ED50u
#define FATBIN_WRAPPER_MAGIC 0x466243B1u
#define FATBIN_WRAPPER_LINKED 2 /* the version of what `nvcc -rdc=true` writes */

struct fatbin_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_bytes;
	uint64_t bytes; /* behind the header */
};

/* What a program's registration points to. */
struct fatbin_wrapper {
	uint32_t magic;
	uint32_t version;
	const void *data;
	const void *other; /* linked: the fat binaries of the objects, closed by a NULL */
};

struct fatbin_target {
	int major, minor;
	bool ptx_only; /* machine code is of no use */
};

struct fatbin_entry {
	const unsigned char *start; /* the entry's own header */
	size_t bytes;		    /* header and payload */
	bool ptx;
	unsigned arch; /* 75 for sm_75 */
	uint64_t flags;
};

/* The whole container's size as its header has it; 0: none. At least 16 bytes must be readable.
 */
size_t fatbin_size(const void *data);

/* The entry that the target would run; false: none. */
bool fatbin_pick(const void *data, size_t bytes, const struct fatbin_target *target,
	struct fatbin_entry *entry);

/* The size of an ELF file as its headers have it; 0: not one. At least 64 bytes must be
 * readable, and what the headers name is taken on trust (the app's own memory). */
size_t fatbin_elf_size(const void *data);

#endif
