/* SPDX-License-Identifier: Apache-2.0
 *
 * What the interpreter's files share: the decoded form (struct ptx_ins), modules and functions,
 * and the running state (warp, block, launch).
 *
 * Registers are laid out lane by lane: register r of a warp is 32 values side by side, so that
 * a handler is a loop over 32 lanes that the compiler vectorises.  A predicate is one 32-bit
 * mask. An operand is a byte offset into the frame's registers, or, with bit 0 set, into the
 * module's pool of constants (an immediate is a register that holds the same value in every
 * lane).
 */
#ifndef VCUDA_SOFTGPU_PTX_INTERNAL_H
#define VCUDA_SOFTGPU_PTX_INTERNAL_H

#include <setjmp.h>
#include <string.h>

#include "softgpu/ptx/ptx.h"

#define PTX_LANES 32

/* Generic addresses of what is not in the device window.  Above the 47 bits that a process can
 * map, so they collide with nothing. */
#define PTX_SHARED_BASE (UINT64_C(1) << 48)
#define PTX_LOCAL_BASE (UINT64_C(2) << 48)
#define PTX_PARAM_BASE (UINT64_C(4) << 48)
#define PTX_CODE_BASE (UINT64_C(8) << 48) /* function pointers: + 16 * index */
/* Shared memory of another block of the cluster: (rank + 1) << PTX_RANK_SHIFT in the address.
 */
#define PTX_RANK_SHIFT 24

#define PTX_MAX_THREADS 1024
#define PTX_MAX_WARPS (PTX_MAX_THREADS / PTX_LANES)
#define PTX_MAX_SHARED (227u * 1024) /* static and dynamic, as on sm_90 */
#define PTX_MAX_BARRIERS 16
#define PTX_MAX_CALL_DEPTH 4096
#define PTX_RECURSIVE_STACK                                                                    \
	(128u * 1024) /* local bytes a thread where calls may recurse, or take more */
#define PTX_MAX_CLUSTER 16
/* Cooperative launches of one module that may run at once, and what each has. */
#define PTX_WORKSPACES 64
#define PTX_WORKSPACE 16

struct ptx_ins;
struct ptx_warp;

/* Runs one instruction for the lanes of w->mask and says which is next; NULL: the warp must be
 * scheduled again (it diverged, waits, or ended). */
typedef const struct ptx_ins *(*ptx_run)(struct ptx_warp *w, const struct ptx_ins *i);

/* A handler.  `form` gives the operands' sizes for the decoder, destination first: 1 predicate,
 * 2 4 8 bytes, - none; a trailing ! says that a guard must become a branch around it. */
struct ptx_op {
	const char *name;
	const char *form;
	ptx_run full; /* may write every lane */
	ptx_run part; /* writes only the lanes of w->mask */
};

struct ptx_ins {
	ptx_run run[2];		   /* full, part */
	ptx_run inner[2];	   /* what a guard or a floating-point mode wraps */
	uint32_t d, a, b, c, e, f; /* operands */
	uint32_t guard;		   /* operand of the predicate; PTX_NO_GUARD */
	uint16_t guard_not;
	uint16_t mode; /* MXCSR that it runs under; 0: the default */
	uint64_t imm;  /* address offset, branch target (a pointer once linked), ... */
};

#define PTX_NO_GUARD UINT32_MAX
#define PTX_MXCSR_DEFAULT 0x1f80u

/* Argument or result of a call: where it lies in the caller's frame of local memory. */
struct ptx_slot {
	uint32_t offset;
	uint32_t size;
};

struct ptx_call {
	uint32_t nargs, nrets;
	struct ptx_slot *slots; /* args, then rets */
};

enum ptx_builtin {
	PTX_NOT_BUILTIN,
	PTX_VPRINTF,
	PTX_ASSERTFAIL,
	PTX_MALLOC,
	PTX_FREE,
	/* The device runtime (run/device_runtime.c). */
	PTX_RUNTIME_BUFFER,
	PTX_RUNTIME_BUFFER_OF, /* with what is launched */
	PTX_RUNTIME_LAUNCH,
	PTX_RUNTIME_LAUNCH_OF, /* a PTX_RUNTIME_BUFFER_OF */
	PTX_RUNTIME_COPY,
	PTX_RUNTIME_COPY_2D,
	PTX_RUNTIME_COPY_3D,
	PTX_RUNTIME_FILL,
	PTX_RUNTIME_FILL_2D,
	PTX_RUNTIME_FILL_3D,
	PTX_RUNTIME_CREATE, /* a stream or an event */
	PTX_RUNTIME_ORDER,  /* of streams: what is launched runs in the order of the launches */
	PTX_RUNTIME_LAST_ERROR,
	PTX_RUNTIME_PEEK_ERROR,
	PTX_RUNTIME_ERROR_NAME,
	PTX_RUNTIME_ERROR_TEXT,
	PTX_RUNTIME_DEVICE,
	PTX_RUNTIME_DEVICES,
	PTX_RUNTIME_ATTRIBUTE,
	PTX_RUNTIME_LIMIT,
	PTX_RUNTIME_VERSION,
	PTX_RUNTIME_CACHE, /* what is preferred beside shared memory */
	PTX_RUNTIME_BANKS, /* of shared memory */
	PTX_RUNTIME_KERNEL,
	PTX_RUNTIME_OCCUPANCY,
	PTX_RUNTIME_OCCUPANCY_FLAGS,
	PTX_RUNTIME_GRAPH, /* that a kernel launches or changes: refused */
	PTX_RUNTIME_MALLOC,
	PTX_RUNTIME_FREE,
};

struct ptx_function {
	char *name;
	const struct ptx_module *module;
	bool is_kernel, is_defined, is_recursive, has_indirect, has_alloca;
	enum ptx_builtin builtin;
	uint32_t entry;	       /* index of its first instruction */
	uint32_t reg_bytes;    /* of a warp's frame */
	uint32_t frame_bytes;  /* local memory a thread */
	uint32_t stack_bytes;  /* with what it calls */
	uint32_t shared_bytes; /* of a kernel: static variables that it reaches */
	uint32_t reg_count;
	uint32_t param_bytes;
	struct ptx_param *params; /* of a kernel: in the parameter block; else in the frame */
	struct ptx_slot *rets;
	uint32_t nparams, nrets;
	uint32_t *callees;
	uint32_t ncallees;
	unsigned max_threads, max_registers, required[3], cluster[3];
	int bad_line; /* 0, or where the first instruction that is not served stands */
	char *bad_text;
	uint8_t visit;
};

/* Variables that only instructions of textures and surfaces name, and the driver fills. */
enum ptx_opaque { PTX_PLAIN, PTX_TEXREF, PTX_SURFREF, PTX_SAMPLERREF };

struct ptx_global {
	char *name;
	uint64_t offset, size;
	bool is_const;
	enum ptx_opaque opaque;
	bool is_managed;
	bool elsewhere; /* not in the module's block: `offset` is its address */
};

struct ptx_kernel {
	struct ptx_module *module;
	struct ptx_function *function;
};

struct ptx_module {
	struct ptx_ins *code;
	int *lines; /* of each instruction */
	uint32_t ncode;
	struct ptx_function *functions;
	uint32_t nfunctions;
	struct ptx_call *calls;
	uint32_t ncalls;
	struct ptx_kernel *kernels;
	uint32_t nkernels;
	struct ptx_global *globals;
	uint32_t nglobals;
	unsigned char *pool; /* constants, 64-byte aligned */
	size_t pool_bytes;
	uint64_t block;
	size_t block_bytes, const_bytes;
	uint32_t dynamic_align;
	bool wants_workspace;
	uint64_t workspace; /* PTX_WORKSPACES of PTX_WORKSPACE bytes, for grid-wide barriers */
	struct ptx_heap *heap; /* behind the variables, where the module calls malloc */
	size_t heap_bytes;
	int version, target;
	unsigned max_registers; /* 0: no limit */
};

/* What an instruction of textures can name at the address; PTX_PLAIN: nothing. */
enum ptx_opaque ptx_module_opaque(const struct ptx_module *module, uint64_t address);

/* Registers of one call of a function by some lanes of a warp. */
struct ptx_frame {
	struct ptx_frame *parent; /* or the next free one */
	const struct ptx_function *function;
	const struct ptx_call *call;
	const struct ptx_ins *back;
	uint32_t lanes; /* that have not left it */
	uint32_t depth;
	uint32_t fp; /* its place in each lane's local memory */
	uint32_t sp; /* end of it, alloca included */
	unsigned char *regs;
};

enum ptx_wait {
	PTX_READY,
	PTX_AT_SYNC,	/* a .sync instruction, for the lanes in `members` */
	PTX_AT_WARP,	/* past a bar.warp, for the lanes in `members` */
	PTX_AT_BARRIER, /* barrier `barrier` of the block */
	PTX_AT_CLUSTER, /* barrier.cluster.wait */
};

/* Lanes of a warp that stand at the same instruction of the same frame. */
struct ptx_fragment {
	const struct ptx_ins *pc;
	struct ptx_frame *frame;
	uint32_t mask;
	uint32_t members;
	enum ptx_wait wait;
	uint32_t barrier;
	uint64_t phase; /* of the cluster's barrier */
	uint64_t last_run;
};

struct ptx_warp {
	unsigned char *base[2]; /* registers; constants (less one: operands have bit 0 set) */
	uint32_t mask;
	uint32_t part; /* index into run[]: 1 when some lane of the frame is not in mask */
	const struct ptx_ins *stop; /* where the running fragment meets another one */
	const struct ptx_ins *at;   /* the instruction that last touched memory, for faults */
	struct ptx_fragment *cur;
	struct ptx_frame *frame;
	int budget; /* backward branches before it must yield */
	bool yielded;
	bool released; /* it came last to a barrier, or lets others read (fresh) */
	bool fresh;    /* it passed a barrier, and has not stored to shared memory since */
	bool forced;   /* the next .sync runs without the lanes that cannot come */
	bool rotate;   /* the running fragment spun too long: another one's turn */
	uint64_t tick;
	uint32_t live; /* lanes that have not exited */
	uint32_t born;
	uint32_t index;
	struct ptx_block *block;
	unsigned char *shared;
	uint32_t shared_bytes;
	uint32_t local_bytes;
	unsigned char *local; /* of lane 0 */
	size_t local_stride;
	const unsigned char *params;
	uint32_t param_bytes;
	uint64_t window_base, window_span;
	const atomic_uchar *denied; /* ptx_denied_set()'s, or NULL */
	unsigned char device_bit;   /* in it */
	atomic_bool *spoil;	    /* the launch's, or NULL */
	uint64_t count;		    /* thread instructions */
	uint64_t cluster_phase;
	struct ptx_frame *free_frames;
	uint32_t nfragments;
	struct ptx_fragment fragments[PTX_LANES];
	uint32_t tid[3][PTX_LANES];
	uint16_t last_error[PTX_LANES]; /* of the device runtime, for each thread */
};

/* What a waiting bar.red wants to know: ins->f. */
enum ptx_red { PTX_RED_NONE, PTX_RED_AND, PTX_RED_OR, PTX_RED_POPC };

struct ptx_barrier {
	uint32_t arrived[PTX_MAX_WARPS];
	uint32_t expected; /* threads; 0: all */
	uint32_t waiting;  /* fragments */
	bool used;
	uint32_t any, all_not, popc; /* bar.red */
};

struct ptx_group;

struct ptx_block {
	struct ptx_group *group;
	struct ptx_run_state *run;
	uint32_t ctaid[3];
	uint32_t rank; /* in the cluster */
	uint32_t nwarps;
	uint32_t live_threads;
	uint32_t dynamic_offset;
	struct ptx_warp *warps;
	unsigned char *shared;
	void *local;
	size_t local_bytes;
	struct ptx_barrier barriers[PTX_MAX_BARRIERS];
	bool passed; /* one of them, since the block began */
};

/* The blocks of one cluster, run by one worker in turn. */
struct ptx_group {
	struct ptx_group *next;
	uint32_t nblocks;
	uint32_t cluster_arrived; /* threads */
	uint64_t cluster_phase;
	struct ptx_block *blocks;
};

/* What a grid launched: run when the grid is done, before whoever waits for it goes on. */
struct ptx_child {
	struct ptx_child *next;
	const struct ptx_function *function; /* NULL: a copy or fill */
	uint32_t grid[3], block[3], shared;
	unsigned depth;
	/* Of a copy or fill: `slices` slices of `height` rows of `width` bytes. */
	uint64_t to, from, to_pitch, from_pitch, to_slice, from_slice, width, height, slices;
	bool fill;
	unsigned char value;
	_Alignas(16) unsigned char params[];
};

struct ptx_children {
	struct ptx_child *first, *last;
};

/* One launch while it runs. */
struct ptx_run_state {
	const struct ptx_launch *launch;
	const struct ptx_module *module;
	const struct ptx_function *function;
	struct ptx_run_state *next;
	uint64_t ngroups;
	atomic_uint_fast64_t next_group;
	atomic_uint_fast64_t instructions;
	atomic_int status; /* enum ptx_status, set once */
	uint32_t workers;  /* inside; under the pool's lock */
	uint64_t deadline_ns;
	uint64_t grid_id;
	uint64_t workspace; /* of a cooperative launch, or 0 */
	uint32_t static_shared, shared_bytes;
	unsigned depth;			      /* of launches by launches */
	struct ptx_children children, at_end; /* at_end: behind all the others */
	atomic_uint *pending; /* how many of them the launch from the host has in all */
	struct ptx_error error;
};

/* What a thread that runs blocks holds; faults come back through `fault`. */
struct ptx_worker {
	sigjmp_buf fault;
	struct ptx_warp *warp;
	struct ptx_run_state *run;
	struct ptx_error error;
	struct ptx_group *resident; /* that it keeps going */
	struct ptx_group *spare;    /* done; their memory is used again */
	uint64_t fault_address;
	uint64_t count; /* thread instructions */
	volatile bool armed;
};

extern struct ptx_window ptx_device_window;
extern const atomic_uchar *ptx_denied_map;
extern _Thread_local struct ptx_worker *ptx_current;

/* Ends the launch: `i` is the faulting instruction.  Comes back to the worker. */
_Noreturn void ptx_fault(struct ptx_warp *w, const struct ptx_ins *i, enum ptx_status status,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Finds a handler by name; NULL where there is none. */
const struct ptx_op *ptx_op_find(const char *name);
void ptx_op_init(void);

/* Decoding (parse/parse.c, parse/module.c). */
struct ptx_module *ptx_parse(const char *text, size_t n, ptx_allocate allocate, void *arg,
	size_t heap, struct ptx_error *error);

/* Scheduling (run/warp.c). */
void ptx_warp_run(struct ptx_warp *w);
bool ptx_warp_ready(struct ptx_warp *w); /* some fragment can run */
bool ptx_warp_force(struct ptx_warp *w); /* lets one .sync go on without its missing lanes */
const struct ptx_ins *ptx_warp_branch(struct ptx_warp *w, const struct ptx_ins *i,
	const struct ptx_ins *target, uint32_t taken);
void ptx_warp_exit(struct ptx_warp *w, uint32_t lanes);
const struct ptx_ins *ptx_warp_call(struct ptx_warp *w, const struct ptx_ins *i,
	const struct ptx_function *callee, const struct ptx_call *call);
const struct ptx_ins *ptx_warp_ret(struct ptx_warp *w, const struct ptx_ins *i);
struct ptx_frame *ptx_frame_new(
	struct ptx_warp *w, const struct ptx_function *function, struct ptx_frame *parent);
void ptx_frames_free(struct ptx_warp *w);

/* The blocks that run together (run/cluster.c): a cluster. NULL: no memory. */
struct ptx_group *ptx_group_new(struct ptx_run_state *run);
void ptx_group_free(struct ptx_group *group);
/* Puts the group at the start of its `index`-th cluster. False: no memory. */
bool ptx_group_start(struct ptx_group *group, uint64_t index);
/* Every warp runs until it waits or has had its share. */
enum ptx_turn { PTX_TURN_DONE, PTX_TURN_MORE };
enum ptx_turn ptx_group_turn(
	struct ptx_worker *worker, struct ptx_group *group, unsigned turns);
/* Splits the running fragment: `lanes` go on as a fragment of their own at `pc`. */
struct ptx_fragment *ptx_warp_split(
	struct ptx_warp *w, uint32_t lanes, const struct ptx_ins *pc);
/* True once every live lane of `members` stands here: run for w->mask.  False: the fragment
 * waits, return NULL. */
bool ptx_warp_gather(struct ptx_warp *w, const struct ptx_ins *i, uint32_t members);

/* Barriers (run/barrier.c). */
void ptx_barrier_arrive(struct ptx_warp *w, const struct ptx_ins *i, uint32_t barrier,
	uint32_t threads, bool wait, uint32_t predicate);
void ptx_barriers_check(struct ptx_block *b);
void ptx_cluster_check(struct ptx_group *g);

/* Whether a byte in the window is one that the warp's device has no access to. */
static inline bool ptx_denied(const struct ptx_warp *w, uint64_t address)
{
	uint64_t first = w->window_base >> PTX_DENIED_SHIFT;

	return w->denied &&
	       (atomic_load_explicit(&w->denied[(address >> PTX_DENIED_SHIFT) - first],
			memory_order_relaxed) &
		       w->device_bit);
}

/* Memory: the host pointer of a generic address, or a fault. */
/* Whether [address, address + size) lies in one range of ptx_outside_add. */
bool ptx_outside(uint64_t address, size_t size);
void *ptx_generic(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane, uint64_t address,
	size_t size);

/* Built-in functions (run/builtin.c); arguments lie at `args` in each lane's local memory. */
void ptx_builtin_call(struct ptx_warp *w, const struct ptx_ins *i,
	const struct ptx_function *callee, const struct ptx_call *call);
/* The value of an argument by lane, and where the argument itself lies (NULL: there is none of
 * `size` bytes); the value that the call returns. */
uint64_t ptx_argument(
	struct ptx_warp *w, const struct ptx_call *call, unsigned lane, uint32_t index);
const void *ptx_argument_at(struct ptx_warp *w, const struct ptx_call *call, unsigned lane,
	uint32_t index, size_t size);
void ptx_result(struct ptx_warp *w, const struct ptx_call *call, unsigned lane, uint64_t value);

/* The device runtime (run/device_runtime.c): one call of one lane. */
void ptx_runtime_call(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	enum ptx_builtin what, const struct ptx_call *call);
/* The runtime's own numbers of what its functions return. */
enum {
	PTX_CUDA_SUCCESS = 0,
	PTX_CUDA_INVALID_VALUE = 1,
	PTX_CUDA_MEMORY_ALLOCATION = 2,
	PTX_CUDA_INVALID_CONFIGURATION = 9,
	PTX_CUDA_INVALID_COPY_DIRECTION = 21,
	PTX_CUDA_TOO_DEEP = 65,
	PTX_CUDA_TOO_MANY_PENDING = 69,
	PTX_CUDA_INVALID_DEVICE_FUNCTION = 98,
	PTX_CUDA_NOT_SUPPORTED = 801,
};
/* Copies and fills (run/device_moves.c); the status. */
int ptx_runtime_move(struct ptx_warp *w, const struct ptx_ins *i, unsigned lane,
	enum ptx_builtin what, const struct ptx_call *call);
/* One more, of one allocation; the lanes of all blocks may call it at once.  The status. */
int ptx_child_submit(struct ptx_run_state *run, struct ptx_child *child, uint64_t stream);
/* Takes what the grid launched, in the order in which it runs, to the head of `todo`. */
void ptx_children_take(struct ptx_run_state *run, struct ptx_children *todo);
struct ptx_child *ptx_children_next(struct ptx_children *todo); /* the caller's to free */
void ptx_children_drop(struct ptx_children *todo);
/* A copy or fill; a fault comes back through ptx_current. */
void ptx_child_move(const struct ptx_child *child);
/* Whether the launch may be made, without regard to its parameters. */
enum ptx_status ptx_launch_check(const struct ptx_launch *launch, struct ptx_error *error);

struct ptx_heap *ptx_heap_new(uint64_t base, uint64_t size);
void ptx_heap_drop(struct ptx_heap *heap);
uint64_t ptx_heap_alloc(struct ptx_heap *heap, uint64_t size); /* 0: full */
/* Where a copy of the text lies, which the first call makes; 0: full.  One text, one pointer.
 */
uint64_t ptx_heap_text(struct ptx_heap *heap, const char *text);
/* The bytes of what begins there; 0: nothing does. */
uint64_t ptx_heap_size(struct ptx_heap *heap, uint64_t address);
void ptx_heap_free(struct ptx_heap *heap, uint64_t address);

uint64_t ptx_now_ns(void);

static inline unsigned char *ptx_reg(const struct ptx_warp *w, uint32_t operand)
{
	return w->base[operand & 1] + operand;
}

static inline uint32_t *ptx_pred(const struct ptx_warp *w, uint32_t operand)
{
	return (uint32_t *)(void *)ptx_reg(w, operand);
}

static inline unsigned char *ptx_local(const struct ptx_warp *w, unsigned lane)
{
	return w->local + lane * w->local_stride;
}

static inline unsigned ptx_first(uint32_t mask)
{
	return (unsigned)__builtin_ctz(mask);
}

static inline unsigned ptx_popcount(uint32_t mask)
{
	return (unsigned)__builtin_popcount(mask);
}

#endif
