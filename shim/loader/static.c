/* SPDX-License-Identifier: Apache-2.0
 *
 * Redirects a statically linked CUDA runtime, and a shared one under a name that is not
 * NVIDIA's (wheels rename what they bring): its functions are found by name in the file's
 * symbol table, or without one (stripped.h), and their first bytes become a jump into our
 * runtime front, so that NVIDIA's runtime never starts.
 */
#include "shim/loader/static.h"
#include "shim/loader/elf.h"
#include "shim/loader/jump.h"
#include "shim/loader/linked.h"
#include "shim/loader/loader.h"
#include "shim/loader/nvjitlink.h"
#include "shim/loader/nvrtc.h"
#include "shim/loader/objects.h"
#include "shim/loader/stripped.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* A function shorter than this is none of those that programs call. */
#define FUNCTION_LEAST 10

struct search {
	unsigned long long since; /* how many had ever been loaded when it was last looked */
	size_t count, at;	  /* objects; the one that is looked at */
};

/* ---- Which objects are worth opening ---- */

static bool runtime_name(const char *name)
{
	return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

/* True where the object imports what every static runtime imports (dlopen and dlsym, to find
 * the driver) and nothing of a shared runtime. One that needs a shared runtime may have a
 * static one all the same: linkers are given both. */
static bool suspicious(const struct dl_phdr_info *info)
{
	const struct loaded_tables tables = loaded_tables(info);
	const Elf64_Sym *symbols = tables.symbols;
	const char *text = tables.names;
	size_t text_size = tables.names_size, count = loaded_import_count(info, &tables);
	bool opens = false, finds = false, shared = false;

	if (!count)
		return false;
	for (const Elf64_Dyn *d = tables.dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_NEEDED && d->d_un.d_val < text_size &&
			!strncmp(text + d->d_un.d_val, "libcudart.so", 12))
			shared = true;
	}

	for (size_t i = 1; i < count && (shared || !opens || !finds); i++) {
		const char *name = text + symbols[i].st_name;

		if (symbols[i].st_shndx != SHN_UNDEF || symbols[i].st_name >= text_size)
			continue;
		if (!strcmp(name, "dlopen"))
			opens = true;
		else if (!strcmp(name, "dlsym"))
			finds = true;
		else if (shared && runtime_name(name))
			return false;
	}
	return opens && finds;
}

/* ---- Redirecting one ---- */

/* The ABI of the runtime in the file: 12, 13, or 0 where there is none that we have. A library
 * without kernels has no fat binary, so only the names tell. */
static int static_major(const struct image *image)
{
	if (!image_has_name(image, "__cudaRegisterFatBinary") ||
		!image_has_name(image, "cudaMalloc"))
		return 0;
	if (image_has_name(image, "cudaGetDeviceProperties_v2"))
		return 12;
	/* 11 has the old names only, 13 none of them. */
	return image_has_name(image, "cudaThreadExit") ? 0 : 13;
}

/* That of one without symbols. */
static int stripped_major(const struct stripped *runtime)
{
	struct image_function function;
	int major = 0;

	/* New with CUDA 13, which has no longer what is new with 12. */
	for (size_t at = 0; stripped_next(runtime, &at, &function);) {
		if (!strcmp(function.name, "cudaGetDeviceProperties_v2"))
			return 12;
		if (!strcmp(function.name, "cudaLogsRegisterCallback"))
			major = 13;
	}
	return major;
}

/* True where the front does not have a function of that name: dlerror would tell of it. */
static bool redirect_function(const struct dl_phdr_info *info,
	const struct image_function *function, const char *version)
{
	unsigned char *code = (unsigned char *)info->dlpi_addr + function->value;
	void *target;

	if (!runtime_name(function->name) || function->size < FUNCTION_LEAST ||
		function->value % 16 || !loaded_part(info, function->value, JUMP_BYTES, PF_X))
		return false;
	target = dlvsym(RTLD_DEFAULT, function->name, version);
	if (target && target != (void *)code)
		jump_write(code, target);
	return !target;
}

/* The symbol tables of a fat program have many thousands of names, of which a few hundred are
 * the runtime's. A runtime without symbols is NULL where they are there. */
static void redirect(const struct dl_phdr_info *info, const struct image *image,
	const struct stripped *stripped, const char *version)
{
	struct image_function function;
	bool unknown = false; /* what dlerror would tell of, after a dlopen that went well */

	if (!loaded_code_protect(info, PROT_WRITE))
		return;
	for (size_t at = 0; stripped ? stripped_next(stripped, &at, &function)
				     : image_next_function(image, &at, &function);)
		unknown |= redirect_function(info, &function, version);
	loaded_code_protect(info, 0);
	linked_add(info);
	if (unknown)
		dlerror();
}

/* The symbol versions of the two ABIs. */
static const char *const versions[] = {"libcudart.so.12", "libcudart.so.13"};

/* True where the functions of that version are ours. No dlopen here: called from the first
 * constructor of all, it would run those of the C library before their time, without an
 * environment. */
static bool front_loaded(const char *version)
{
	void *function = dlvsym(RTLD_DEFAULT, "cudaMalloc", version);
	Dl_info info;

	return function && dladdr(function, &info) && loader_is_ours(info.dli_fname);
}

/* Ours and the C library's, which every process has: not worth the pages that a look costs. */
static bool known(const char *path)
{
	const char *file = strrchr(path, '/');

	return file && (!strncmp(file, "/libvcuda", 9) || !strcmp(file, "/libutilities.so") ||
			       !strcmp(file, "/libc.so.6") || !strncmp(file, "/ld-linux", 9));
}

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	/* The program itself comes first and has no name. */
	const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name
			   : search->at == 0		       ? "/proc/self/exe"
							       : NULL;
	unsigned long long added =
		size >= offsetof(struct dl_phdr_info, dlpi_subs) ? info->dlpi_adds : 0;
	struct stripped stripped;
	struct image image;
	int major;

	/* The newest come last: of COUNT objects only as many as were added since. */
	search->at++;
	if (search->since && search->at + (added - search->since) <= search->count)
		return 0;
	if (!path || known(path))
		return 0;
	if (nvrtc_wanted(path) || nvjitlink_wanted(path)) {
		if (image_open(&image, path)) {
			if (nvrtc_wanted(path))
				nvrtc_redirect(info, &image);
			else
				nvjitlink_redirect(info, &image, path);
			image_close(&image);
		}
		return 0;
	}
	if (!suspicious(info) || !image_open(&image, path))
		return 0;
	major = static_major(&image);
	if (major && front_loaded(versions[major - 12])) {
		redirect(info, &image, NULL, versions[major - 12]);
	} else if (!major && stripped_find(&stripped, info)) {
		major = stripped_major(&stripped);
		if (major && front_loaded(versions[major - 12]))
			redirect(info, &image, &stripped, versions[major - 12]);
	}
	image_close(&image);
	return 0;
}

static int count_objects(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size;
	++*(size_t *)data;
	return 0;
}

struct counts {
	unsigned long long added, gone; /* objects, since the program began */
};

static int count_changes(struct dl_phdr_info *info, size_t size, void *data)
{
	struct counts *counts = data;

	if (size >= offsetof(struct dl_phdr_info, dlpi_tls_modid))
		*counts = (struct counts){info->dlpi_adds, info->dlpi_subs};
	return 1;
}

void static_redirect(void)
{
	static struct counts seen;
	struct counts counts = seen;
	struct search search = {.since = seen.added};

	objects_iterate(count_changes, &counts);
	if (counts.gone != seen.gone)
		linked_prune();
	if (counts.added != seen.added) {
		objects_iterate(count_objects, &search.count);
		objects_iterate(look_at, &search);
	}
	seen = counts;
}
