/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules, libraries and their functions.  An image is named by its SHA-256 and travels only
 * where nobody has it; a function comes back with all that can be asked of it and is kept.
 */
#ifndef VCUDA_SHIM_DRIVER_MODULE_MODULE_H
#define VCUDA_SHIM_DRIVER_MODULE_MODULE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/open.h"
#include "shim/engine/driver.h"

struct context;
struct module;
struct library;
struct launch_old;

#define FUNCTION_CACHE (1u << 31) /* beside bits of attributes: how the cache is shared */
_Static_assert(FUNCTION_ATTRIBUTES <= 32 && CU_FUNC_ATTRIBUTE_MAX < 31, "bits of attributes");

/* What a launch without a cluster may have: what launch_fits() would find (launch_fits.c), put
 * together once. */
struct function_limits {
	unsigned grid[3], block[3]; /* from 1 to this */
	unsigned threads, shared; /* a launch that has more may have its reason to be refused */
};

struct function {
	uint64_t handle;
	struct module *module;
	struct context *context; /* the module's */
	struct function_limits limits;
	struct function *next; /* of the module's bucket */
	char *name;
	struct function_info info;
	int compiled[FUNCTION_ATTRIBUTES]; /* info.attributes before the program set some */
	struct function_param *layout;
	uint32_t layout_count;
	_Atomic(struct launch_old *) old; /* launch_old.c, malloc'd; NULL: none */
	bool cluster_set;		  /* its cluster is the program's, not the compiler's */
	_Atomic uint8_t cache; /* how it was asked to share it, and one more; 0: not */
	/* kernel_settings.h: what it was told itself, bit a: attribute a, and FUNCTION_CACHE,
	 * in which it follows its kernel no more; and the version that it followed last. */
	_Atomic uint32_t own, followed;
	_Atomic bool unused; /* an enumeration told of it, and nothing has used it yet */
};

/* An image as it goes to the worker: `bytes` behind `head` bytes of our own. */
struct image {
	uint32_t kind;	      /* enum image_kind */
	unsigned char *bytes; /* malloc'ed */
	size_t size;
};

/* Finds out what IMAGE is and takes what DEVICE would run of it. */
CUresult image_extract(const void *image, int device, struct image *out);
/* A copy of the whole of IMAGE, malloc'ed: which part a device runs is not known yet. */
CUresult image_whole(const void *image, unsigned char **copy);
/* A file's bytes, malloc'ed, with zeros behind them; SIZE may be NULL. */
CUresult image_read(const char *path, void **bytes, size_t *size);

/* Links the parts, fat binaries up to a NULL, for DEVICE, whose context is current (linker.c):
 * `nvcc -rdc=true` links for the architectures it is told, and the driver for all others. */
CUresult linker_parts(const void *const *parts, int device, struct image *out);

/* Text and numbers of the JIT's options, taken apart. */
struct jit {
	struct image_option options[24];
	uint32_t count;
	/* NULL, or all of them and where variables are; malloc'ed, image_jit_free(). */
	struct image_option *symbols;
	uint32_t symbol_count;
	char *info, *error;		/* the app's buffers, or NULL */
	void **info_used, **error_used; /* where the lengths are told */
	size_t info_room, error_room;
	void **wall;	/* where the milliseconds are told, a float; or NULL */
	uint64_t began; /* image_jit_begin() */
	float spent;	/* milliseconds so far */
};
CUresult image_jit_read(
	struct jit *jit, unsigned count, const CUjit_option *options, void **values);
/* The same for the linker: an agent may know of variables' addresses in the loader only. */
CUresult image_jit_read_linker(
	struct jit *jit, unsigned count, const CUjit_option *options, void **values);
/* Also after image_jit_read() has failed. */
void image_jit_free(struct jit *jit);
/* All of them, as they travel; *BYTES long. */
static inline const struct image_option *jit_options(const struct jit *jit, uint32_t *bytes)
{
	*bytes = (uint32_t)((jit->symbols ? jit->symbol_count : jit->count) *
			    sizeof(jit->options[0]));
	return jit->symbols ? jit->symbols : jit->options;
}
/* The compiler or linker is about to be asked: its time is counted from here. */
void image_jit_begin(struct jit *jit);
/* It has answered. The JIT's texts into the app's buffers, and how long they were: LOG (may be
 * NULL) has the errors' up to a NUL, and the other behind it, N bytes in all. */
void image_jit_tell(struct jit *jit, const char *log, size_t n);

CUresult module_load(const struct image *image, struct jit *jit, struct library *library,
	struct module **out);
/* How often an image is sent at the most: another thread, which needs the same, may have had it
 * before this one's call came. */
#define IMAGE_TRIES 16
/* Sends an image's bytes, for a call that then names them by their digest. */
CUresult module_send_image(const struct image *image, const uint8_t digest[32]);
CUresult module_unload(struct module *module);
CUresult module_function(struct module *module, const char *name, struct function **out);
/* The same where it is known already; NULL: it is not. */
struct function *module_function_known(struct module *module, const char *name);
/* The same for an enumeration, which uses none. */
CUresult module_function_told(struct module *module, const char *name, struct function **out);
/* The function of a kernel node that no module of the program's has, but a library of the
 * agent's: CONTEXT's from now on. An agent that is older: NOT_SUPPORTED. */
CUresult module_node_function(
	struct context *context, uint64_t graph, uint32_t node, struct function **out);
CUresult module_global(
	struct module *module, const char *name, CUdeviceptr *address, size_t *bytes);
/* Whether the app declared it as managed; of an agent that is older: it may have. */
CUresult module_global_managed(const struct module *module, const char *name, bool *managed);
/* Calls EACH, unless it is NULL, with the name of each function from number FIRST on; *total:
 * how many there are. */
CUresult module_names(struct module *module, uint32_t first, uint32_t *total,
	void (*each)(const char *name, void *argument), void *argument);
/* NULL: not one of ours. */
struct module *module_of(CUmodule hmod);
uint64_t module_handle(const struct module *module);
struct context *module_context(const struct module *module);
/* The context is gone, and the worker has dropped what it held. */
void module_reset(struct context *context);

/* The kernel's function in the current context (library.c). */
CUresult library_function(uint64_t kernel, struct function **out);
/* The kernel that the function is in its context; NULL: its module is no library's. */
CUkernel library_kernel(const struct function *function);

/* launch_fits.c: what CUDA checks at the launch, where the worker's driver would only say so
 * later.
 */
CUresult launch_fits(const struct function *f, const unsigned grid[3], const unsigned block[3],
	unsigned shared, bool cooperative);
/* Puts the function's limits together, anew where its attributes have changed. */
void launch_limits(struct function *f);
/* A graph's node: NVIDIA's driver takes a cluster without a width for none there. */
CUresult launch_fits_node(const struct function *f, const unsigned grid[3],
	const unsigned block[3], unsigned shared);

#endif
