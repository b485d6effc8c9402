/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses belong to which redirected object: see linked.h.  Read without a lock; an
 * entry is taken while its number is not 0.
 */
#include "shim/loader/linked.h"
#include "shim/loader/objects.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those beyond count as users of the shared runtime. */
#define LINKED_MOST 128

static struct linked {
	_Atomic unsigned number;
	_Atomic uintptr_t from, to;
	bool loaded;
} objects[LINKED_MOST];
static _Atomic size_t used; /* entries that have ever been taken */

static struct linked *find(uintptr_t address)
{
	for (size_t i = 0; i < used; i++)
		if (objects[i].number && address >= objects[i].from && address < objects[i].to)
			return &objects[i];
	return NULL;
}

/* Where its code is. */
static uintptr_t code_start(const struct dl_phdr_info *info, uintptr_t *end)
{
	uintptr_t from = UINTPTR_MAX;

	*end = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
			continue;
		from = start < from ? start : from;
		*end = start + part->p_memsz > *end ? start + part->p_memsz : *end;
	}
	return from;
}

void linked_add(const struct dl_phdr_info *info)
{
	static unsigned last;
	uintptr_t from, to;

	from = code_start(info, &to);
	for (size_t i = 0; i < LINKED_MOST; i++) {
		if (objects[i].number)
			continue;
		objects[i].from = from;
		objects[i].to = to;
		objects[i].number = ++last;
		used = i < used ? used : i + 1;
		return;
	}
}

static int mark(struct dl_phdr_info *info, size_t size, void *data)
{
	uintptr_t from, to;
	struct linked *object;

	(void)size, (void)data;
	from = code_start(info, &to);
	object = find(from);
	if (object)
		object->loaded = true;
	return 0;
}

void linked_prune(void)
{
	for (size_t i = 0; i < used; i++)
		objects[i].loaded = false;
	objects_iterate(mark, NULL);
	for (size_t i = 0; i < used; i++)
		if (!objects[i].loaded)
			objects[i].number = 0;
}

unsigned linked_number(const void *address)
{
	const struct linked *object = find((uintptr_t)address);

	return object ? object->number : 0;
}
