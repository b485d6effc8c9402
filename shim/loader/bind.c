/* SPDX-License-Identifier: Apache-2.0
 *
 * All of it is done to the object's own table of symbols, in memory, before it is relocated. An
 * import becomes a hidden definition with another's address, which the loader takes as it is,
 * at once or at the first call; a definition becomes a protected one, which its own object uses
 * whatever was loaded before.  The dlopen itself stays the program's: behind a call of ours the
 * C library would look for the name by this library's RUNPATH.
 */
#include "shim/loader/bind.h"
#include "shim/loader/elf.h"
#include "shim/loader/loader.h"
#include "shim/loader/objects.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Of those beyond, others mean what is ours by their names. */
#define DOUBLES_MOST 8

/* This thread's dlopen has RTLD_DEEPBIND. */
static __thread bool deep __attribute__((tls_model("initial-exec")));

struct loaded {
	uintptr_t base;
	struct loaded_tables tables;
};

/* Kept from one dlopen to the next, under the loader's lock. */
struct objects {
	unsigned long long added, gone; /* since the program began */
	unsigned long long seen;	/* how many had been added when it was last looked */
	size_t count, at;		/* those that are there; the one that is looked at */
	struct loaded doubles[DOUBLES_MOST];
	size_t ndoubles;
	bool anew; /* some are gone: all are looked at again */
	bool runtimes_known;
	const char *runtime; /* the version of the names that runtime_of found */
	unsigned new_runtimes, all_runtimes; /* a bit for each of `runtimes` */
	struct loaded_tables own;
	uintptr_t own_base;
	size_t own_symbols;
};

/* The newest come last. */
static bool is_new(const struct objects *objects)
{
	return objects->at + (objects->added - objects->seen) > objects->count;
}

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

/* ---- Tables of symbols ---- */

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

static uint32_t name_hash(const char *name)
{
	uint32_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash;
}

/* The object's own symbol of that name; NULL: it has none. */
static const Elf64_Sym *defined(const struct loaded_tables *tables, const char *name)
{
	const uint32_t *hash = tables->hash, wanted = name_hash(name), *buckets, *chains;
	const uint64_t *bloom;
	uint64_t word, mask;

	if (!hash || !tables->symbols || !tables->names || !hash[0] || !hash[2])
		return NULL;
	bloom = (const uint64_t *)(hash + 4);
	word = bloom[wanted / 64 % hash[2]];
	mask = UINT64_C(1) << wanted % 64 | UINT64_C(1) << (wanted >> hash[3]) % 64;
	if ((word & mask) != mask)
		return NULL;
	buckets = (const uint32_t *)(bloom + hash[2]);
	chains = buckets + hash[0];
	for (uint32_t i = buckets[wanted % hash[0]]; i >= hash[1] && i; i++) {
		const Elf64_Sym *symbol = &tables->symbols[i];

		if ((chains[i - hash[1]] | 1) == (wanted | 1) &&
			symbol->st_name < tables->names_size &&
			!strcmp(tables->names + symbol->st_name, name))
			return symbol;
		if (chains[i - hash[1]] & 1)
			break;
	}
	return NULL;
}

/* ---- Doubles ---- */

static bool has_version(const struct loaded_tables *tables, size_t i)
{
	return tables->versions && (tables->versions[i] & 0x7fff) > 1;
}

static bool ours(const char *path)
{
	const char *file = strrchr(path, '/');

	return file && (!strncmp(file, "/libvcuda", 9) || !strcmp(file, "/libutilities.so"));
}

/* A function of that name is ours, and found first. */
static bool front_has(const char *name)
{
	bool named =
		!strncmp(name, "cu", 2) || !strncmp(name, "nv", 2) || !strncmp(name, "nccl", 4);
	void *function = named ? dlsym(RTLD_DEFAULT, name) : NULL;
	Dl_info info;

	return function && dladdr(function, &info) && ours(info.dli_fname);
}

/* Not one of NVIDIA's libraries themselves, whose names have versions; those of the driver are
 * asked for by name in all of what is loaded here. */
static bool is_double(const struct loaded_tables *tables)
{
	static const char *const names[] = {
		"cuInit", "cudaMalloc", "cublasCreate_v2", "cudnnGetVersion", "nvmlInit_v2"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const Elf64_Sym *symbol = defined(tables, names[i]);

		if (symbol && symbol->st_shndx != SHN_UNDEF &&
			!has_version(tables, (size_t)(symbol - tables->symbols)))
			return true;
	}
	return false;
}

/* Its own names are what it and those that need it mean by them. */
static void bind_definitions(const struct dl_phdr_info *info)
{
	const struct loaded_tables tables = loaded_tables(info);
	Elf64_Sym *symbols = (Elf64_Sym *)tables.symbols;
	size_t end = exported_end(tables.hash), bytes = end * sizeof(*symbols);
	const Elf64_Phdr *part =
		loaded_part(info, (uintptr_t)symbols - info->dlpi_addr, bytes, PF_R);

	if (!part ||
		!table_protect((uintptr_t)symbols, bytes, part_protection(part) | PROT_WRITE))
		return;
	for (size_t i = tables.hash[1]; i < end; i++)
		if (symbols[i].st_name < tables.names_size && symbols[i].st_shndx &&
			!symbols[i].st_other && !has_version(&tables, i) &&
			front_has(tables.names + symbols[i].st_name))
			symbols[i].st_other = STV_PROTECTED;
	dlerror(); /* of what is not there */
	table_protect((uintptr_t)symbols, bytes, part_protection(part));
}

static bool needs(const struct loaded_tables *tables, const struct loaded_tables *other)
{
	const char *soname = other->names + other->soname;

	for (const Elf64_Dyn *d = tables->dynamic; other->soname && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED && d->d_un.d_val < tables->names_size &&
			!strcmp(tables->names + d->d_un.d_val, soname))
			return true;
	return false;
}

/* What a double that the object needs has of that name. */
static const void *of_double(
	const struct objects *objects, const struct loaded_tables *tables, const char *name)
{
	for (size_t i = 0; i < objects->ndoubles; i++) {
		const struct loaded *one = &objects->doubles[i];
		const Elf64_Sym *symbol =
			needs(tables, &one->tables) ? defined(&one->tables, name) : NULL;

		if (symbol && symbol->st_shndx != SHN_UNDEF && front_has(name))
			return (const void *)(one->base + symbol->st_value);
	}
	return NULL;
}

/* ---- Of which CUDA the runtime is ---- */

/* SONAMEs, which are the versions of the names too. */
static const char *const runtimes[] = {"libcudart.so.12", "libcudart.so.13"};

static unsigned needed_runtimes(const struct loaded_tables *tables)
{
	unsigned bits = 0;

	for (const Elf64_Dyn *d = tables->dynamic; d && d->d_tag != DT_NULL; d++)
		for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
			if (d->d_tag == DT_NEEDED && d->d_un.d_val < tables->names_size &&
				!strcmp(tables->names + d->d_un.d_val, runtimes[i]))
				bits |= 1U << i;
	return bits;
}

static int add_runtimes(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects *objects = data;
	struct loaded_tables tables;
	unsigned bits;

	(void)size;
	objects->at++;
	if (ours(info->dlpi_name))
		return 0;
	tables = loaded_tables(info);
	bits = loaded_import_count(info, &tables) ? needed_runtimes(&tables) : 0;
	objects->all_runtimes |= bits;
	if (is_new(objects))
		objects->new_runtimes |= bits;
	return 0;
}

/* The version of the runtime that is meant by names without one: natively there is the one that
 * is needed by what is opened with the object, or by what was there before.  NULL: there is
 * none or there are two. */
static const char *runtime_of(const struct objects *objects)
{
	unsigned bits = objects->new_runtimes ? objects->new_runtimes : objects->all_runtimes;

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (bits == 1U << i)
			return runtimes[i];
	return NULL;
}

/* A function of the runtime's, in an object that does not say of which. */
static const void *of_runtime(struct objects *objects, const char *name)
{
	if (strncmp(name, "cuda", 4))
		return NULL;
	if (!front_has(name)) {
		dlerror(); /* of what is not there */
		return NULL;
	}
	if (!objects->runtimes_known) {
		const size_t at = objects->at;

		objects->at = 0;
		objects_iterate(add_runtimes, objects);
		objects->at = at;
		objects->runtimes_known = true;
		objects->runtime = runtime_of(objects);
	}
	return objects->runtime ? dlvsym(RTLD_DEFAULT, name, objects->runtime) : NULL;
}

/* ---- Imports ---- */

static void bind_imports(const struct dl_phdr_info *info, struct objects *objects)
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
		const char *name = tables.names + symbol->st_name;
		const void *to = NULL;

		if (symbol->st_shndx == SHN_UNDEF && symbol->st_name < tables.names_size) {
			to = deep && objects->own_symbols ? exported(objects, name) : NULL;
			if (!to && !has_version(&tables, i))
				to = of_double(objects, &tables, name);
			if (!to && !has_version(&tables, i))
				to = of_runtime(objects, name);
		}

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

/* ---- What is new ---- */

static int count_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects *objects = data;

	objects->count++;
	if (size >= offsetof(struct dl_phdr_info, dlpi_tls_modid)) {
		objects->added = info->dlpi_adds;
		objects->gone = info->dlpi_subs;
	}
	if (!objects->own_symbols &&
		loaded_part(info, (uintptr_t)bind_mapped - info->dlpi_addr, 1, PF_X)) {
		objects->own = loaded_tables(info);
		objects->own_base = info->dlpi_addr;
		objects->own_symbols = exported_end(objects->own.hash);
	}
	return 0;
}

static int find_doubles(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects *objects = data;
	struct loaded_tables tables;

	(void)size;
	objects->at++;
	/* The program, whose names are found before ours, has none itself. */
	if ((!is_new(objects) && !objects->anew) || !*info->dlpi_name || ours(info->dlpi_name))
		return 0;
	tables = loaded_tables(info);
	if (!loaded_import_count(info, &tables) || !is_double(&tables))
		return 0;
	if (is_new(objects))
		bind_definitions(info);
	if (objects->ndoubles < DOUBLES_MOST)
		objects->doubles[objects->ndoubles++] =
			(struct loaded){info->dlpi_addr, tables};
	return 0;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct objects *objects = data;

	(void)size;
	objects->at++;
	if (is_new(objects) && !ours(info->dlpi_name))
		bind_imports(info, objects);
	return 0;
}

void bind_expect(int mode)
{
	deep = mode & RTLD_DEEPBIND;
}

void bind_mapped(void)
{
	static struct objects objects;
	unsigned long long gone = objects.gone;

	objects.seen = objects.added;
	objects.count = objects.at = 0;
	objects_iterate(count_object, &objects);
	objects.anew = objects.gone != gone;
	objects.runtimes_known = false;
	objects.new_runtimes = objects.all_runtimes = 0;
	if (objects.anew)
		objects.ndoubles = 0;
	/* At first: all are relocated already. */
	if (!objects.seen || (objects.added == objects.seen && !objects.anew))
		return;
	objects_iterate(find_doubles, &objects);
	objects.at = 0;
	objects_iterate(look_at, &objects);
}
