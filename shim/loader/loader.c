/* SPDX-License-Identifier: Apache-2.0
 *
 * libutilities.so, the loader guard.  libvcuda.so makes our libraries known by SONAME, which is
 * all that most programs need; this library covers the rest: a dlopen of an original by its
 * file name (JAX and some wheels do that), and a CUDA runtime that is linked in statically.
 */
#include "shim/loader/bind.h"
#include "shim/loader/elf.h"
#include "shim/loader/loader.h"
#include "shim/loader/mapped.h"
#include "shim/loader/bare_name.h"
#include "shim/loader/static.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* glibc's dlopen. Also read by the assembly below. */
__attribute__((visibility("hidden"), used)) void *(*loader_real)(const char *path, int mode);

static bool starts(const char *file, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(file, name, n) && (!file[n] || file[n] == '.');
}

/* The same for a file whose name does not tell, "libcupti.so" or "libcupti.so.2025.3.1" (Triton
 * brings one): its own SONAME stands among the names of its symbols, as the version of them.  A
 * bare name is that of the file that would be opened, if there is one. */
static const char *loader_named(
	const char *path, const char *file, const char *const *sonames, size_t count)
{
	struct image image = {0};
	const char *found = NULL;
	char bare[4096];

	for (size_t i = 0; i < count && !found; i++) {
		size_t stem = (size_t)(strstr(sonames[i], ".so") - sonames[i]) + 3;

		if (strncmp(file, sonames[i], stem) || (file[stem] && file[stem] != '.'))
			continue;
		if (file == path) {
			if (!bare_name_file(loader_real, file, bare, sizeof(bare)))
				return NULL;
			path = bare;
		}
		if (!image.bytes && !image_open(&image, path))
			return NULL;
		if (image_has_name(&image, sonames[i]))
			found = sonames[i];
	}
	if (image.bytes)
		image_close(&image);
	return found;
}

/* The SONAME under which our stand-in for PATH is loaded, "libcuda.so.1" for
 * "/usr/lib/libcuda.so.550.54"; NULL where PATH is none of NVIDIA's that we stand in for. */
static const char *loader_stand_in(const char *path)
{
	/* File name without its version's tail -> SONAME, where the two differ. */
	static const struct {
		const char *name, *soname;
	} short_names[] = {
		{"libcuda.so", "libcuda.so.1"},
		{"libnvidia-ml.so", "libnvidia-ml.so.1"},
		/* cudarc asks for no other; there has been no other number since NCCL 2.0. */
		{"libnccl.so", "libnccl.so.2"},
	};
	static const char *const sonames[] = {
		"libcudart.so.12",
		"libcudart.so.13",
#define SONAME(name) name,
#include "shim/generated/loader_sonames.inc"
#undef SONAME
	};
	const char *file = strrchr(path, '/');

	file = file ? file + 1 : path;
	for (size_t i = 0; i < sizeof(short_names) / sizeof(short_names[0]); i++) {
		if (starts(file, short_names[i].name))
			return short_names[i].soname;
	}
	for (size_t i = 0; i < sizeof(sonames) / sizeof(sonames[0]); i++) {
		if (starts(file, sonames[i]))
			return sonames[i];
	}
	return loader_named(path, file, sonames, sizeof(sonames) / sizeof(sonames[0]));
}

static void find_real(void)
{
	void *found;

	if (loader_real)
		return;
	found = dlsym(RTLD_NEXT, "dlopen");
	memcpy(&loader_real, &found, sizeof(found));
}

/* A handle on our library with this SONAME where it is loaded already; else NULL. Not to be
 * closed. */
static void *loader_ours(const char *soname)
{
	struct link_map *map = NULL;
	bool ours;
	void *handle;

	find_real();
	handle = loader_real ? loader_real(soname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
	if (!handle)
		return NULL;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map) {
		dlclose(handle);
		return NULL;
	}
	ours = loader_is_ours(map->l_name);
	dlclose(handle); /* stays loaded: a preloaded library is never unloaded */
	return ours ? handle : NULL;
}

/* True where loader_open is to do it. All else is the real dlopen's, which must see the
 * caller's return address to find the caller's RUNPATH. */
__attribute__((visibility("hidden"), used)) bool loader_wants(const char *path, int mode);
bool loader_wants(const char *path, int mode)
{
	find_real();
	bind_expect(mode);
	return path && loader_stand_in(path);
}

__attribute__((visibility("hidden"), used)) void *loader_open(const char *path, int mode);
void *loader_open(const char *path, int mode)
{
	const char *soname = loader_stand_in(path);

	return loader_real(loader_ours(soname) ? soname : path, mode);
}

/* Calls loader_wants and goes on, with the caller's stack as it was, to loader_open or to the
 * real dlopen. */
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	".p2align 4\n"
	"dlopen:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call loader_wants\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testb %al, %al\n"
	"	jne loader_open\n"
	"	jmp *loader_real(%rip)\n"
	".cfi_endproc\n"
	".size dlopen, . - dlopen\n");

static void loader_mapped(void)
{
	static_redirect();
	if (mapped_settled())
		bind_mapped();
}

/* -z initfirst: runs before every other constructor, as static_redirect does for a library that
 * is opened later, so that what a statically linked runtime would register is registered with
 * ours. */
__attribute__((constructor)) static void loader_start(int argc, char **argv, char **envp)
{
	(void)argc, (void)argv;
	/* The C library, which has not begun, sets it so too. Settings hold for what the
	 * program is linked with as well. */
	if (!environ)
		environ = envp;
	loader_mapped();
	mapped_watch(loader_mapped);
}
