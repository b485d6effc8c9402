/* SPDX-License-Identifier: Apache-2.0
 *
 * An import becomes a definition: the symbol, in the object's own table in memory, turns into
 * a hidden one with the guard's address, which the loader takes as it is, at once or at the
 * first call. The dlopen itself stays the program's: behind a call of ours the C library would
 * look for the name by this library's RUNPATH.
 */
#include "shim/loader/bind.h"
#include "shim/loader/elf.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* How many objects had ever been loaded when this thread's dlopen began; 0: it binds as
 * others do. */
static __thread unsigned long long expected __attribute__((tls_model("initial-exec")));

struct objects {
	unsigned long long added;
	size_t count, at;
	struct loaded_tables own;
	uintptr_t own_base;
	size_t own_symbols;
};

/* ---- What this library exports ---- */

/* The number of symbols behind the imports is where the last chain of the hash table ends. */
static size_t exported_end(const uint32_t *hash)
{
	const uint32_t *buckets, *chains;
	size_t last = 0;

	if (!hash)
		return 0;
	buckets = (const uint32_t *)((const uint64_t *)(hash + 4) + hash[2]);
	chains = buckets + hash[0];
	for (uint32_t i = 0; i < hash[0]; i++)
		last = buckets[i] > last ? buckets[i] : last;
	if (!last)
		return 0;
	while (!(chains[last - hash[1]] & 1))
		last++;
	return last + 1;
}

static const void *exported(const struct objects *objects, const char *name)
{
	const struct loaded_tables *own = &objects->own;

	for (size_t i = own->hash[1]; i < objects->own_symbols; i++)
		if (ELF64_ST_TYPE(own->symbols[i].st_info) == STT_FUNC &&
			!strcmp(own->names + own->symbols[i].st_name, name))
			return (const void *)(objects->own_base + own->symbols[i].st_value);
	return NULL;
}

/* ---- Binding ---- */

static bool table_protect(uintptr_t from, size_t n, int protection)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = from & ~(page - 1);

	return !mprotect((void *)start, from + n - start, protection);
}

static int part_protection(const Elf64_Phdr *part)
{
	return (part->p_flags & PF_R ? PROT_READ : 0) |
	       (part->p_flags & PF_W ? PROT_WRITE : 0) | (part->p_flags & PF_X ? PROT_EXEC : 0);
}

static void bind_object(const struct dl_phdr_info *info, const struct objects *objects)
{
	const struct loaded_tables tables = loaded_tables(info);
	size_t count = loaded_import_count(info, &tables), bytes = count * sizeof(Elf64_Sym);
	Elf64_Sym *symbols = (Elf64_Sym *)tables.symbols;
	uintptr_t at = (uintptr_t)symbols;
	const Elf64_Phdr *part =
		count ? loaded_part(info, at - info->dlpi_addr, bytes, PF_R) : NULL;
	bool writable = false;

	for (size_t i = 1; part && i < count; i++) {
		Elf64_Sym *symbol = &symbols[i];
		const void *to =
			symbol->st_shndx == SHN_UNDEF && symbol->st_name < tables.names_size
				? exported(objects, tables.names + symbol->st_name)
				: NULL;

		if (!to)
			continue;
		if (!writable && !table_protect(at, bytes, part_protection(part) | PROT_WRITE))
			return;
		writable = true;
		symbol->st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
		symbol->st_other = STV_HIDDEN;
		symbol->st_value = (uintptr_t)to - info->dlpi_addr;
		symbol->st_shndx = 1; /* any section: its value is relative to the object */
	}
	if (writable)
		table_protect(at, bytes, part_protection(part));
}

static int count_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects *objects = data;

	objects->count++;
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
		objects->added = info->dlpi_adds;
	if (loaded_part(info, (uintptr_t)bind_imports - info->dlpi_addr, 1, PF_X)) {
		objects->own = loaded_tables(info);
		objects->own_base = info->dlpi_addr;
		objects->own_symbols = exported_end(objects->own.hash);
	}
	return 0;
}

/* The newest come last. */
static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects *objects = data;

	(void)size;
	if (++objects->at + (objects->added - expected) > objects->count)
		bind_object(info, objects);
	return 0;
}

void bind_expect(int mode)
{
	struct objects objects = {0};

	if (mode & RTLD_DEEPBIND)
		dl_iterate_phdr(count_object, &objects);
	expected = objects.added;
}

void bind_imports(void)
{
	struct objects objects = {0};

	if (!expected)
		return;
	dl_iterate_phdr(count_object, &objects);
	if (objects.added != expected && objects.own_symbols)
		dl_iterate_phdr(look_at, &objects);
	expected = objects.added;
}
