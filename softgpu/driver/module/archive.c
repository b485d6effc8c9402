/* SPDX-License-Identifier: Apache-2.0
 *
 * Libraries of device code: an archive of the host's object files, each with a fat binary in a
 * section of its own.
 */
#include "softgpu/driver/module/fatbin.h"

#include <ar.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* Where relocatable device code lies, and code that needs no more linking. */
static bool holds_device_code(const char *name)
{
	return !strcmp(name, "__nv_relfatbin") || !strcmp(name, ".nv_fatbin");
}

const void *fatbin_of_object(const void *data, size_t size, size_t *n)
{
	Elf64_Shdr names, section;
	Elf64_Ehdr header;

	if (!fatbin_elf_header(data, size, &header) ||
		!fatbin_elf_section(data, size, &header, header.e_shstrndx, &names) ||
		names.sh_type != SHT_STRTAB || !names.sh_size ||
		((const char *)data)[names.sh_offset + names.sh_size - 1])
		return NULL;
	for (size_t i = 0; i < header.e_shnum; i++) {
		if (!fatbin_elf_section(data, size, &header, i, &section) ||
			section.sh_type == SHT_NOBITS || section.sh_name >= names.sh_size ||
			!holds_device_code(
				(const char *)data + names.sh_offset + section.sh_name))
			continue;
		*n = section.sh_size;
		return (const char *)data + section.sh_offset;
	}
	return NULL;
}

bool fatbin_archive_next(
	const void *data, size_t size, size_t *at, const void **member, size_t *n)
{
	char digits[sizeof(((struct ar_hdr *)0)->ar_size) + 1] = {0};
	struct ar_hdr header;

	if (!*at) {
		if (size < SARMAG || memcmp(data, ARMAG, SARMAG))
			return false;
		*at = SARMAG;
	}
	if (*at > size || size - *at < sizeof(header))
		return false;
	memcpy(&header, (const char *)data + *at, sizeof(header));
	if (memcmp(header.ar_fmag, ARFMAG, sizeof(header.ar_fmag)))
		return false;
	memcpy(digits, header.ar_size, sizeof(header.ar_size));
	*n = strtoul(digits, NULL, 10);
	*at += sizeof(header);
	if (*n > size - *at)
		return false;
	*member = (const char *)data + *at;
	*at += *n + (*n & 1); /* members begin at even places */
	return true;
}
