/* SPDX-License-Identifier: Apache-2.0
 *
 * dl_iterate_phdr also tells where an object's thread-local memory is. For one that a dlopen
 * has mapped and not yet entered in the loader's list of those, as it is while the guard is
 * told of it, glibc looks behind the end of that list, if it is the 65th or so of the process.
 * So it is asked for the program alone, which is in the list, and for the counts; the others
 * are read from the list for debuggers and from the heads of their files.
 */
#include "shim/loader/objects.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The head of a file is at the object's base, but where a prelinked one was moved: then nothing
 * need be mapped there. What was asked once for the object at a place in the list is kept;
 * those beyond cost a question each time. */
#define PLACES 1024

static struct {
	uintptr_t base;
	const void *dynamic;
} headed[PLACES];

static bool has_head(size_t place, const struct link_map *map)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	unsigned char present;

	if (place < PLACES && headed[place].base == map->l_addr &&
		headed[place].dynamic == map->l_ld)
		return true;
	if (!map->l_addr || map->l_addr % page ||
		mincore((void *)map->l_addr, page, &present) ||
		memcmp((const void *)map->l_addr, ELFMAG, SELFMAG))
		return false;
	if (place < PLACES) {
		headed[place].base = map->l_addr;
		headed[place].dynamic = map->l_ld;
	}
	return true;
}

/* Without the head of its file an object has no segments here. */
static void object_info(struct dl_phdr_info *info, size_t place, const struct link_map *map)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)map->l_addr;

	info->dlpi_addr = map->l_addr;
	info->dlpi_name = map->l_name;
	info->dlpi_phdr = NULL;
	info->dlpi_phnum = 0;
	if (!has_head(place, map) || head->e_phentsize != sizeof(Elf64_Phdr) ||
		head->e_phoff + head->e_phnum * sizeof(Elf64_Phdr) >
			(size_t)sysconf(_SC_PAGESIZE))
		return;
	info->dlpi_phdr = (const Elf64_Phdr *)(map->l_addr + head->e_phoff);
	info->dlpi_phnum = head->e_phnum;
}

static int first(struct dl_phdr_info *info, size_t size, void *data)
{
	memcpy(data, info, size < sizeof(*info) ? size : sizeof(*info));
	return 1;
}

int objects_iterate(int (*each)(struct dl_phdr_info *info, size_t size, void *data), void *data)
{
	static const struct r_debug *debug;
	const struct link_map *map;
	struct dl_phdr_info info = {0};
	size_t place = 0;
	int ret;

	if (!debug)
		debug = dlsym(RTLD_DEFAULT, "_r_debug");
	map = debug ? debug->r_map : NULL;
	if (!map || !dl_iterate_phdr(first, &info))
		return dl_iterate_phdr(each, data);
	info.dlpi_tls_modid = 0;
	info.dlpi_tls_data = NULL;
	ret = each(&info, sizeof(info), data);
	while (!ret && (map = map->l_next)) {
		object_info(&info, ++place, map);
		ret = each(&info, sizeof(info), data);
	}
	return ret;
}
