/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the software GPU's driver share: cuda.h with every function exported, and
 * the structures of devices, contexts, memory, queues, modules.
 *
 * Locks, in the order in which they may be taken:
 *   context_lock  primary contexts, the list of contexts, modules and libraries
 *   memory_still  (read/write) held by library tasks; written before memory goes away
 *   memory_lock   (read/write) the maps of addresses, accounting; readers copy under it
 *   queue_lock    streams, events, what waits for what
 *   the object table's own lock, a leaf
 * None is held while a kernel or a host function runs, but memory_still by library tasks:
 * task.h.
 */
#ifndef VCUDA_SOFTGPU_DRIVER_SOFTGPU_H
#define VCUDA_SOFTGPU_DRIVER_SOFTGPU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* With this name defined the header renames nothing and declares old versions and the
 * per-thread forms too.  Default visibility from here on: defining a function of cuda.h exports
 * it. */
#define __CUDA_API_VERSION_INTERNAL 1
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop

#include "softgpu/driver/memory/ranges.h"
#include "softgpu/driver/work/work_core.h"
#include "softgpu/ptx/ptx.h"

/* gcc's name for it, with clang too. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#define DEVICES_MAX 8
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

#define PAGE ((size_t)4096)
#define GRANULE (2 * MIB) /* of the VMM calls, as on a GPU */

#define WARP 32
#define THREADS_PER_BLOCK 1024
#define THREADS_PER_SM 2048
#define CLUSTER_MAX 8	   /* blocks, the portable most */
#define CLUSTER_LARGEST 16 /* of a function that may have more */
#define BLOCKS_PER_SM 32
#define REGISTERS_PER_SM 65536
#define TEXTURE_ALIGNMENT 512
#define SHARED_PER_BLOCK (48 * KIB)
#define SHARED_PER_BLOCK_OPTIN (163 * KIB)
#define SHARED_PER_SM (164 * KIB)
#define SHARED_RESERVED KIB /* that every block takes beside its own */
#define GRID_X_MAX 0x7fffffffu
#define L2_MOST (3 * MIB) /* of the cache may be set aside, in steps */
#define L2_UNIT (MIB / 4)
#define GRID_YZ_MAX 65535u
#define BLOCK_Z_MAX 64u

/* settings.c: the environment, read once by cuInit. */
struct settings {
	unsigned devices;	       /* those that the process sees */
	unsigned numbers[DEVICES_MAX]; /* which of the machine's each one is */
	size_t memory;		       /* of each device, bytes */
	uint64_t timeout_ns;	       /* of a launch; 0 none */
	bool log;
	int log_fd;
	size_t fault_oom_at;	/* allocations beyond so many bytes fail; 0 none */
	unsigned fault_launch;	/* the Nth launch faults, from 1; 0 none */
	unsigned fault_wrong;	/* every Nth launch or product writes a wrong bit; 0 none */
	unsigned fault_hang;	/* the Nth launch hangs until it is cancelled or times out */
	bool fault_no_peers;	/* devices say that they do not reach each other's memory */
	char fault_fall[200];	/* such a file, or with .N behind it for device N: fallen */
	char fault_others[120]; /* as large as this file is, somebody else's memory is */
	unsigned char identity[16]; /* of the machine, or of the agent; UUIDs are made of it */
};
extern struct settings settings;
/* False where a variable holds nonsense; one line on stderr names it. */
bool soft_settings_read(void);
/* What cuDriverGetVersion tells, which may be asked before cuInit; 0: the variable holds
 * nonsense. */
#define DRIVER_VERSION 13000
int soft_driver_version(void);
bool device_fallen(int ordinal);
size_t device_others(void); /* memory of each device that is not this process's */
/* visible.c: LIST (CUDA_VISIBLE_DEVICES, or NULL) leaves of the settings' devices those that it
 * names, in its order. INVALID_DEVICE: one of them twice. */
CUresult device_choose(const char *list);
/* Of the machine's device of that number. */
void device_uuid(unsigned number, unsigned char uuid[16]);

/* settings.c: one line on the log's descriptor, "softgpu: ...".  note: only with
 * VCUDA_SOFTGPU_LOG=1. */
void soft_log_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void soft_log_problem(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* object.c: the table of live handles, so that a stale or foreign one is an error, not a crash.
 */
enum object_kind {
	OBJECT_NONE,
	OBJECT_CONTEXT,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_MODULE,
	OBJECT_FUNCTION,
	OBJECT_LIBRARY,
	OBJECT_KERNEL,
	OBJECT_LINK,
	OBJECT_POOL,
	OBJECT_PHYSICAL,
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_EXEC,
	OBJECT_USER,
	OBJECT_ARRAY,
	OBJECT_MIPMAPPED,
	OBJECT_TEXREF,
	OBJECT_SURFREF,
};
bool object_add(const void *object, enum object_kind kind); /* false: no memory */
void object_remove(const void *object);
enum object_kind object_kind(const void *handle);
static inline bool object_is(const void *handle, enum object_kind kind)
{
	return handle && object_kind(handle) == kind;
}

/* device.c */
struct device {
	int ordinal;
	size_t used;		  /* bytes taken; under memory_lock */
	struct CUctx_st *primary; /* or NULL; under context_lock */
	unsigned primary_refs;
	unsigned primary_flags;
	struct CUmemPoolHandle_st *default_pool;
	struct CUmemPoolHandle_st *current_pool;
};
extern struct device soft_devices[DEVICES_MAX];
bool device_initialised(void);
/* NULL unless DEV is the ordinal of a device. */
struct device *device_get(CUdevice dev);
unsigned device_sm_count(void);
uint64_t softgpu_now_ns(void);

/* context.c */
struct CUctx_st {
	struct device *device;
	struct CUctx_st *next; /* of all, under context_lock */
	atomic_uint refs;      /* one for the handle, one a stack slot, stream, module */
	atomic_int fault;      /* a sticky CUresult */
	atomic_bool cancel;    /* running launches end */
	atomic_bool destroyed;
	bool primary;
	atomic_uint flags;
	unsigned api_version;
	atomic_uint peers; /* that it reaches, a bit a device; written under memory_lock */
	unsigned long long id;
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	size_t limits[CU_LIMIT_MAX];
	struct CUstream_st *streams; /* all of them; under queue_lock */
	struct CUstream_st *legacy;
	/* Has what later streams begin by waiting for (cuCtxWaitEvent); NULL: nothing ever. */
	struct CUstream_st *gate;
	struct CUmod_st *modules; /* under context_lock */
};
extern pthread_mutex_t context_lock;
/* The calling thread's context, ready for use: NOT_INITIALIZED, INVALID_CONTEXT,
 * CONTEXT_IS_DESTROYED or its sticky fault otherwise. */
CUresult soft_context_current(struct CUctx_st **context);
/* The same without looking at faults: for calls that must work on a poisoned context. */
CUresult context_current_any(struct CUctx_st **context);
void context_ref(struct CUctx_st *context);
void context_unref(struct CUctx_st *context);
/* Poisons the context: the first fault stays. */
void context_fault(struct CUctx_st *context, CUresult fault);
CUresult context_fault_of(const struct CUctx_st *context);
/* Whether a handle is a context, and its sticky fault. */
CUresult context_check(CUcontext context);
/* A context that has a module of the library, referenced; or NULL. */
struct CUctx_st *context_with_library(const struct CUlib_st *library);

/* memory/memory.c: the window and what lies in it. */
enum block_kind {
	BLOCK_DEVICE,	   /* cuMemAlloc, pools, module globals */
	BLOCK_HOST,	   /* cuMemHostAlloc: pinned memory, reachable by kernels */
	BLOCK_RESERVATION, /* cuMemAddressReserve */
};
struct block {
	enum block_kind kind;
	uint64_t start;
	size_t size; /* as asked for */
	size_t span; /* as taken, whole pages */
	struct device *device;
	struct CUctx_st *context; /* owner, referenced; NULL for reservations */
	struct CUmemPoolHandle_st *pool;
	unsigned flags; /* of cuMemHostAlloc */
	bool freeing;	/* a stream-ordered free is queued */
	unsigned long long id;
	int sync_memops;
};
struct registered {
	uint64_t start;
	size_t size;
	unsigned flags;
	struct CUctx_st *context;
};
extern pthread_rwlock_t memory_lock;
extern struct ranges memory_blocks;	/* of struct block, in the window */
extern struct ranges memory_mappings;	/* of struct mapping (memory/vmm.c), in the window */
extern struct ranges memory_registered; /* of struct registered, host addresses */
extern struct ptx_window memory_window;

bool memory_init(void);
static inline bool memory_in_window(uint64_t address)
{
	return address - memory_window.base < memory_window.span;
}
/* Takes and gives back device memory; all under memory_lock held for writing. */
bool memory_charge(struct device *device, size_t size);
void memory_uncharge(struct device *device, size_t size);
/* Zeroed memory of a context; *ADDRESS on success. */
CUresult memory_allocate(struct CUctx_st *context, struct device *device, size_t size,
	size_t align, enum block_kind kind, struct CUmemPoolHandle_st *pool, uint64_t *address);
CUresult memory_release(uint64_t address, enum block_kind kind);
/* Frees what a dying context owns. */
void memory_release_context(const struct CUctx_st *context);
/* Whether all of [address, address + size) is mapped; memory_lock held. */
bool memory_mapped_locked(uint64_t address, uint64_t size);
/* Of what is mapped: whether nothing of it may be read only (memory/vmm_map.c). */
bool memory_writable_locked(uint64_t address, uint64_t size);
bool memory_mapped(uint64_t address, uint64_t size);
/* Whether a device has access to what is mapped there; other memory every device's copies
 * reach. */
bool memory_reached(uint64_t address, uint64_t size, const struct device *by);
/* Whether the host may be read or written there asynchronously: pinned by cuMemHostAlloc or
 * registered. */
bool memory_pinned(const void *host, uint64_t size);
/* memory_lock for writing, for those who take memory away that a library's task may touch. */
void memory_lock_taking(void);
void memory_unlock_taking(void);
/* Where what a device allocates lies, or (NULL) the host's pinned memory. */
void memory_zone(const struct device *device, uint64_t *from, uint64_t *to);
/* PROT_NONE again, its pages gone; memory_lock_taking() was called. */
bool memory_decommit(uint64_t start, size_t span);

/* memory/vmm.c */
struct physical {
	struct device *device; /* NULL: the machine's own memory */
	size_t size;
	uint64_t offset; /* in the memory file */
	int own_file;	 /* one of its own, to be shared; -1: the memory file */
	unsigned refs;	 /* handles and mappings; under memory_lock */
	unsigned handles;
	CUmemAllocationProp prop;
};
struct mapping {
	uint64_t start;
	size_t size;
	struct physical *physical;
	size_t offset; /* within the physical memory */
	CUmemAccess_flags host;
	uint64_t reached_by, written_by; /* a bit for each device that may read, write */
};

/* The most that any device may do there. */
static inline CUmemAccess_flags mapping_access(const struct mapping *mapping)
{
	return mapping->written_by   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	       : mapping->reached_by ? CU_MEM_ACCESS_FLAGS_PROT_READ
				     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/* memory/pool.c */
struct CUmemPoolHandle_st *soft_pool_default(struct device *device);
/* Accounting, memory_lock held for writing. */
void pool_took(struct CUmemPoolHandle_st *pool, size_t size);
void pool_gave(struct CUmemPoolHandle_st *pool, size_t size);

/* queue.c: streams as queues of operations, and the threads that run them. */
enum op_kind {
	OP_WORK,  /* on an executor thread */
	OP_HOST,  /* on the host function thread */
	OP_MARK,  /* nothing to run, or too little to leave the lock for */
	OP_WATCH, /* done when poll() says so */
};
struct op_dep {
	struct CUstream_st *stream; /* referenced */
	uint64_t seq;
};
struct op {
	enum op_kind kind;
	/* WORK, HOST: without a lock.  MARK: under queue_lock.  May be NULL. */
	void (*run)(struct op *op);
	bool (*poll)(struct op *op);   /* WATCH: without a lock; must be quick */
	void (*drop)(struct op *op);   /* frees the op; under queue_lock */
	void (*copied)(struct op *op); /* to a copy, before all else; NULL: it holds nothing */
	bool always;		       /* run even on a faulted context */
	bool light;		       /* quicker done than handed to a thread */
	bool sync;		       /* of a call without Async; only profilers ask */
	uint32_t bytes;		       /* of the whole operation, to copy it; 0: it cannot be */
	CUgraphNodeType node;	       /* what it is in a graph */
	struct op_profile profile;
	struct CUctx_st *context;
	/* The queue's own. */
	struct op *next;
	struct CUstream_st *stream;
	uint64_t seq;
	struct op_dep *deps;
	struct op_dep fixed[2];
	size_t dep_count, dep_room, dep_done;
};
struct waiter {
	struct waiter *next;
	uint64_t seq;
	struct CUstream_st *stream; /* the stream that waits, or NULL: a thread */
	bool done;
	pthread_cond_t *cond;
};
/* graph/graph.h; here since streams and events hold them. */
struct node_set {
	struct CUgraphNode_st **item;
	CUgraphEdgeData *data; /* of each: what the edge from it says */
	size_t count, room;
};
struct event_capture {
	unsigned long long id; /* of the capture that recorded it last; 0: none did */
	struct node_set tail;
};
enum stream_state { STREAM_IDLE, STREAM_BLOCKED, STREAM_READY, STREAM_RUNNING, STREAM_WATCH };
struct CUstream_st {
	struct CUctx_st *context;
	struct CUstream_st *next;  /* in the context's list */
	struct CUstream_st *ready; /* in the list of ready or watched streams */
	unsigned refs;		   /* under queue_lock */
	unsigned flags, number;	   /* the number: work.h */
	int priority;
	bool legacy, per_thread, doomed;
	unsigned long long id;
	enum stream_state state;
	uint64_t submitted, completed;
	/* queue_order.c: which of the NULL stream's operations this one's begin behind, and
	 * which of its own the NULL stream's do; an operation that no other stream waits for.
	 */
	uint64_t behind_legacy, legacy_behind, overdue;
	struct op *first, **last;
	struct waiter *waiters;
	struct waiter wait;
	CUstreamAttrValue policy; /* CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY */
	CUstreamAttrValue window, domain_map, domain;
	struct capture *capture;      /* goes on; under queue_lock, as all of graph/graph.h */
	struct CUstream_st *captured; /* the next one of that capture */
	struct node_set tail;	      /* what the next node waits for */
};
extern pthread_mutex_t queue_lock;

struct CUstream_st *queue_stream_new(
	struct CUctx_st *context, unsigned flags, int priority, bool legacy);
void queue_ref(struct CUstream_st *stream);	     /* queue_lock held */
void queue_unref(struct CUstream_st *stream);	     /* queue_lock held */
void queue_stream_close(struct CUstream_st *stream); /* destroys it once it is drained */
/* Also waits for SEQ of OTHER; before the op is submitted; queue_lock held. */
bool queue_depend(struct op *op, struct CUstream_st *other, uint64_t seq);
/* Adds OP to the stream's end; it is the queue's from here on.  QUIET: the caller goes on to
 * queue_wait_locked, so no thread need be woken for it.  The op's number; 0 = no memory
 * (dropped). */
uint64_t queue_submit(struct CUstream_st *stream, struct op *op, bool quiet);
uint64_t queue_submit_locked(struct CUstream_st *stream, struct op *op, bool quiet);
/* Returns once SEQ of the stream is done; the calling thread runs the stream itself if it can.
 * queue_lock held. */
void queue_wait_locked(struct CUstream_st *stream, uint64_t seq);
/* Waits until all that is queued now in a context is done, at most DEADLINE_NS (0: for ever).
 */
bool queue_drain(struct CUctx_st *context, uint64_t deadline_ns);
bool queue_idle_locked(const struct CUctx_st *context);
/* Submits, waits, and tells the context's fault. */
CUresult queue_run(struct CUstream_st *stream, struct op *op);

/* stream.c */
/* Finds what a handle means for the calling thread's context: NULL and the two special ones, or
 * a stream.  The stream comes referenced. */
CUresult stream_use(CUstream handle, struct CUstream_st **stream);
/* The same without the look at faults and captures, for questions. */
CUresult soft_stream_find(CUstream handle, struct CUstream_st **stream);
void stream_done(struct CUstream_st *stream);
/* What NULL means in the per-thread forms. */
static inline CUstream stream_ptsz(CUstream handle)
{
	return handle ? handle : CU_STREAM_PER_THREAD;
}

/* event.c */
/* A new stream waits for what its context was told to wait for; queue_lock held. */
void event_gate_locked(struct CUstream_st *stream);
void event_release_context(const struct CUctx_st *context);

/* module/module.c */
struct CUfunc_st {
	struct CUmod_st *module;
	struct ptx_kernel *kernel; /* NULL: machine code only */
	struct ptx_kernel_info info;
	char *name;
	int max_dynamic_shared;
	int carveout;
	int cluster[3];
	int non_portable;
	int cluster_policy;
	CUfunc_cache cache_config;
};
struct CUmod_st {
	struct CUctx_st *context; /* referenced */
	struct CUmod_st *next;
	struct ptx_module *ptx;	  /* NULL: machine code only */
	struct CUlib_st *library; /* that it is an instance of, or NULL */
	struct CUfunc_st *functions;
	size_t function_count;
	char *image; /* the PTX text, NUL-terminated; owned */
	atomic_uint
		refs; /* one for the handle, one a launch or a graph's node that it is for */
};
/* The text buffers that JIT options name. */
struct jit_log {
	char *error, *info;
	size_t error_room, info_room;
	void **error_used, **info_used;
	unsigned max_registers; /* CU_JIT_MAX_REGISTERS; 0: no limit */
	bool verbose;		/* CU_JIT_LOG_VERBOSE */
};
void image_log_init(
	struct jit_log *log, unsigned count, const CUjit_option *options, void **values);
void image_log_error(struct jit_log *log, const char *text);
/* One line more of what a compiler tells of its work. */
void image_log_info(struct jit_log *log, const char *text);
CUresult module_from_text(struct CUctx_st *context, const char *text, size_t n,
	struct jit_log *log, struct CUmod_st **module);
CUresult module_from_names(
	struct CUctx_st *context, const char *names, size_t size, struct CUmod_st **module);
void module_free(struct CUmod_st *module);
/* A reference for an operation that runs a function of the module: what is launched and the
 * nodes of graphs outlast it.  Until the last goes, the struct, its functions and their code
 * stay. */
void module_get(struct CUmod_st *module);
void module_put(struct CUmod_st *module);
/* The part that PTX is chosen for. */
#define IMAGE_ARCH 80
/* The bytes of an image that may be a fat binary, an ELF file or PTX text: what to load. */
struct image {
	char *text; /* PTX, NUL-terminated, malloc'ed; or NULL */
	size_t text_size;
	char *names; /* machine code only: kernel names, each NUL-terminated; or NULL */
	size_t names_size;
};
CUresult soft_image_read(
	const void *data, size_t size, struct image *image, struct jit_log *log);
void image_free(struct image *image);
CUresult image_read_file(const char *path, void **data, size_t *size);
CUresult soft_module_global(
	struct CUmod_st *module, const char *name, CUdeviceptr *address, size_t *size);
/* A variable of one of the context's modules that the program declared as managed. */
bool module_managed(const struct CUctx_st *context, uint64_t address);
struct CUfunc_st *soft_module_function(struct CUmod_st *module, const char *name);
/* The same for who wants to run it: NOT_FOUND, or NO_BINARY_FOR_GPU where there is no PTX. */
CUresult module_kernel(struct CUmod_st *module, const char *name, struct CUfunc_st **function);
/* A CUfunction or a CUkernel (which launches take too) for the current context. */
CUresult function_use(CUfunction handle, struct CUctx_st *context, struct CUfunc_st **function);
CUresult soft_function_attribute(
	const struct CUfunc_st *function, CUfunction_attribute attribute, int *value);
CUresult function_set_attribute(
	struct CUfunc_st *function, CUfunction_attribute attribute, int value);
/* Blocks of the largest cluster that it may be launched in. */
unsigned function_cluster_most(const struct CUfunc_st *function);

/* module/library.c */
CUresult soft_library_function(
	CUkernel kernel, struct CUctx_st *context, struct CUfunc_st **function);
void library_forget(struct CUmod_st *module);

#endif
