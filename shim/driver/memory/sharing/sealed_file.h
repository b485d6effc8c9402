/* SPDX-License-Identifier: Apache-2.0
 *
 * Files in memory that programs pass to each other by descriptor: shared memory of the host,
 * and the names of what lies on a GPU.  Each begins with eight bytes that say what it is, and
 * can't be cut short under who maps it.  Any thread.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_SHARING_SEALED_FILE_H
#define VCUDA_SHIM_DRIVER_MEMORY_SHARING_SEALED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A new file of BYTES, which begins with HEAD; RESERVED: its pages are there, too, since one
 * that there is no memory for would end the program that touches it. SEALS: F_SEAL_…, beside
 * that against shrinking. NAME is for /proc. The caller's descriptor, or -1. */
int sealed_file_make(const char *name, const void *head, size_t head_bytes, uint64_t bytes,
	bool reserved, unsigned seals);

/* What FD begins with, where that is MAGIC and the file can't shrink; else false. HEAD_BYTES: 8
 * at least. */
bool sealed_file_read(int fd, const char magic[8], void *head, size_t head_bytes);

#endif
