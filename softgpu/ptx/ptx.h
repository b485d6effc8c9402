/* SPDX-License-Identifier: Apache-2.0
 *
 * PTX on the CPU: a module is parsed and decoded once into a compact form; a launch runs its
 * blocks over a pool of threads, each block's warps in lockstep, 32 lanes at a time.
 *
 * Device memory is plain memory of this process inside one reserved window.  An access is legal
 * if it lies in the window (one compare) and its page is mapped (the SIGSEGV handler that
 * ptx_init installs turns a fault there into PTX_ILLEGAL_ADDRESS).  Nothing else of the process
 * can be reached by a kernel.
 */
#ifndef VCUDA_SOFTGPU_PTX_PTX_H
#define VCUDA_SOFTGPU_PTX_PTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct ptx_kernel;

#define PTX_VERSION_NEWEST 95 /* of CUDA 13.5: libraries carry text newer than their driver */

enum ptx_status {
	PTX_OK = 0,
	PTX_SYNTAX,	   /* the text is not PTX; line and text say where */
	PTX_NOT_SUPPORTED, /* an instruction or directive that the interpreter lacks */
	PTX_VERSION,	   /* the text is of a newer PTX than PTX_VERSION_NEWEST */
	PTX_NOT_FOUND,	   /* an unresolved symbol */
	PTX_NO_MEMORY,
	PTX_ILLEGAL_ADDRESS,	/* CUDA_ERROR_ILLEGAL_ADDRESS (700) */
	PTX_MISALIGNED_ADDRESS, /* CUDA_ERROR_MISALIGNED_ADDRESS (716) */
	PTX_ASSERT, /* CUDA_ERROR_ASSERT (710); the message went to stderr as on a GPU */
	PTX_TRAP,   /* CUDA_ERROR_LAUNCH_FAILED (719) */
	PTX_ILLEGAL_INSTRUCTION, /* CUDA_ERROR_ILLEGAL_INSTRUCTION (715) */
	PTX_STACK_ERROR, /* CUDA_ERROR_HARDWARE_STACK_ERROR (714): call depth, local memory */
	PTX_TIMEOUT,	 /* CUDA_ERROR_LAUNCH_TIMEOUT (702) */
	PTX_INVALID, /* launch arguments: zero or too many threads, too much shared memory */
};

struct ptx_error {
	enum ptx_status status;
	int line;	/* of the PTX text, 1-based; 0 = none */
	char text[240]; /* one line, names the instruction or symbol */
};

/* The device window.  `span` bytes from `base`, reserved by the caller for as long as any
 * module or launch lives. */
struct ptx_window {
	uint64_t base;
	uint64_t span;
};

/* Once a process, before anything else.  `threads` = how many OS threads run blocks (0: one a
 * CPU that this process may use). */
int ptx_init(const struct ptx_window *window, unsigned threads);

/* Memory of the process outside of the window that kernels may reach too (host memory that was
 * registered), where an access costs a lookup.  The caller keeps it mapped, and lets no two
 * ranges overlap.  False: no memory for the list. */
bool ptx_outside_add(uint64_t base, uint64_t span);
void ptx_outside_remove(uint64_t base);

/* Where several devices share the window: a byte for each 1 << PTX_DENIED_SHIFT bytes of
 * addresses, from the one on that the window begins in; bit d: device d has no access there.
 * The caller keeps it, and may change it at any time.  Before the first launch; without it all
 * have access. */
#define PTX_DENIED_SHIFT 21
void ptx_denied_set(const atomic_uchar *denied);

/* Gives `size` bytes of zeroed device memory in the window (for the module's globals), or 0. */
typedef uint64_t (*ptx_allocate)(void *arg, size_t size, size_t align);

#define PTX_HEAP_BYTES ((size_t)8 << 20) /* CUDA's default cudaLimitMallocHeapSize */

/* Parses TEXT (need not end in NUL).  The module's .global and .const variables are laid out in
 * one block from `allocate`, initialised.  Kernels whose body holds an instruction the
 * interpreter lacks still load: their launch fails with PTX_NOT_SUPPORTED and that line.
 * HEAP bytes behind the variables are for malloc, where the module calls it.
 * NULL with *error filled in on failure.  Thread-safe. */
struct ptx_module *ptx_module_load(const char *text, size_t n, ptx_allocate allocate, void *arg,
	size_t heap, struct ptx_error *error);
void ptx_module_free(struct ptx_module *module); /* globals' memory stays the caller's */

/* At the head of a module, a number, "; and a line's end behind it: so many registers a thread
 * at most, in what ptx_kernel_info tells. */
#define PTX_PRAGMA_REGISTERS ".pragma \"vcuda registers"

/* Another one: the variable NAME, which the module declares .extern, or defines as managed, is
 * at ADDRESS (decimal). */
#define PTX_PRAGMA_SYMBOL ".pragma \"vcuda symbol %s %llu\";"

/* Whether modules may call the function without a definition of it. */
bool ptx_provides(const char *name, size_t n);

/* Whether a kernel has called malloc, whose heap has its size for good then. */
bool ptx_module_heap_used(const struct ptx_module *module);
/* The block of globals that `allocate` gave (0, 0 where there are none). */
uint64_t ptx_module_block(const struct ptx_module *module, size_t *size);
/* A global's or constant's address and size; false where there is none of that name. */
bool ptx_module_global(
	const struct ptx_module *module, const char *name, uint64_t *address, size_t *size);
/* The next variable from number *AT on that is `.attribute(.managed)`, and where it is; NULL:
 * there is none.  *AT is 0 at first. */
const char *ptx_module_managed_at(
	const struct ptx_module *module, uint32_t *at, uint64_t *address);
/* The address is that of such a variable. */
bool ptx_module_managed(const struct ptx_module *module, uint64_t address);
/* Where the number of what a .texref (or SURFACE: a .surfref) names is to be; false: there is
 * none of that name. */
bool ptx_module_reference(
	const struct ptx_module *module, const char *name, bool surface, uint64_t *address);
size_t ptx_module_kernel_count(const struct ptx_module *module);
struct ptx_kernel *ptx_module_kernel_at(const struct ptx_module *module, size_t index);
struct ptx_kernel *ptx_module_kernel(const struct ptx_module *module, const char *name);

struct ptx_param {
	uint32_t offset;
	uint32_t size;
};

struct ptx_kernel_info {
	const char *name;
	const struct ptx_param *params;
	unsigned param_count;
	size_t param_bytes;
	size_t static_shared;
	size_t local_bytes;   /* a thread */
	size_t const_bytes;   /* of the module */
	unsigned registers;   /* an estimate within 1..255 */
	unsigned max_threads; /* .maxntid's product, or 1024 */
	unsigned required[3]; /* .reqntid, or 0 */
	unsigned cluster[3];  /* .reqnctapercluster, or 0 */
	int ptx_version;      /* 75 for .version 7.5 */
	int target;	      /* 75 for sm_75 */
};
void ptx_kernel_info(const struct ptx_kernel *kernel, struct ptx_kernel_info *info);

struct ptx_launch {
	const struct ptx_kernel *kernel;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t cluster[3];	 /* 1,1,1 where none */
	uint32_t dynamic_shared; /* bytes */
	const void *params;	 /* param_bytes of them, laid out as ptx_kernel_info says */
	uint64_t timeout_ns;	 /* 0: none */
	const atomic_bool
		*cancel;    /* looked at between blocks and on backward branches; or NULL */
	bool cooperative;   /* every block resident at once; grid.sync works */
	atomic_bool *spoil; /* a fault for tests: while false, a store is made wrong; or NULL */
	/* What kernels are told of the devices: which one runs them, of how many,
	 * cudaDeviceGetAttribute (0: it gave a value; or NULL), and how many blocks of a kernel
	 * a multiprocessor holds (or NULL). */
	int device, devices;
	int (*attribute)(int *value, int attribute, int device);
	int (*resident)(
		const struct ptx_kernel_info *info, unsigned threads, size_t dynamic_shared);
};

/* Runs the launch to its end on the pool; the caller's thread takes part.  Several launches may
 * run at once from several threads.  What the kernels launch themselves is done too.  PTX_OK,
 * or what went wrong with *error filled in (line = of the faulting instruction). */
enum ptx_status ptx_launch(const struct ptx_launch *launch, struct ptx_error *error);

/* Where device printf goes: called with one finished piece of text at a time, in block order
 * per block.  Default: stdout. */
void ptx_set_print(void (*print)(void *arg, const char *text, size_t n), void *arg);

/* Thread instructions executed since ptx_init, for the benchmark. */
uint64_t ptx_instructions(void);

#endif
