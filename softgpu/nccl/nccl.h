/* SPDX-License-Identifier: Apache-2.0
 *
 * NCCL between software GPUs.  Each pair of ranks has three TCP connections: one for what
 * streams order, one for what the program's threads do together (split, shrink, windows), and
 * one for what a rank puts into another's window and nobody there receives: a second thread
 * does.  A communicator has a thread, which does one task after the other in the order in which
 * they were issued.  A task is three operations in its stream: one that says that the stream is
 * there, a wait for a word in memory, and one that lets the task go; so no stream's thread ever
 * waits for the network.
 *
 * What is sent is copied out of the device's memory first, and what came is copied in last: the
 * network never holds memory.  A rank that is gone, or says nothing for long, is the
 * communicator's error; what is in its streams goes on.
 */
#ifndef VCUDA_SOFTGPU_NCCL_NCCL_H
#define VCUDA_SOFTGPU_NCCL_NCCL_H

#include <cuda.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_EXPORT __attribute__((visibility("default")))

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclTimeout = 8,
	ncclNumResults = 9,
} ncclResult_t;

enum { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN, NCCL_AVG, NCCL_OPS };
enum {
	NCCL_I8,
	NCCL_U8,
	NCCL_I32,
	NCCL_U32,
	NCCL_I64,
	NCCL_U64,
	NCCL_F16,
	NCCL_F32,
	NCCL_F64,
	NCCL_BF16,
	NCCL_E4M3,
	NCCL_E5M2,
	NCCL_TYPES
};

typedef struct {
	char internal[128];
} ncclUniqueId;

typedef struct { /* what is looked at of it */
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
} ncclConfig_t;
#define NCCL_MAGIC 0xcafebeef

#define NCCL_MOST_RANKS 1024

/* What the ranks know of one another. */
struct softnccl_rank {
	uint8_t secret[16]; /* the communicator's, of rank 0 */
	uint8_t host[16], device[16];
	uint32_t address; /* where it listens; network order */
	uint16_t port;
	uint16_t reserved;
	int32_t ordinal;
	int32_t color, key; /* of a split */
};

enum softnccl_wire { NCCL_STREAMS, NCCL_CALLS, NCCL_PUTS, NCCL_WIRES };

typedef struct ncclComm *ncclComm_t;
struct softnccl_task;

#define NCCL_REDUCTIONS 1024
struct softnccl_reduction {
	bool used, on_device;
	int type;
	uint64_t scalar; /* its address, or its bytes */
};

typedef struct ncclWindow_vidmem *ncclWindow_t;
struct ncclWindow_vidmem {
	struct ncclComm *comm;
	uint32_t number; /* as all ranks count */
	int flags;
	char *address;
	uint64_t bytes;
	ncclWindow_t next;
};

typedef struct {
	int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;

/* What other ranks put here. */
struct softnccl_arrivals {
	pthread_t thread;
	bool begun;
	struct {
		uint64_t signals; /* that nobody waited for yet */
		bool gone;
	} *from; /* by rank */
};

struct ncclComm {
	uint64_t mark;
	_Atomic unsigned refs; /* the program, and each task */
	int rank, ranks;
	CUcontext context;
	struct softnccl_rank *table;
	int *sockets[NCCL_WIRES]; /* by rank; -1: itself */
	int wake;		  /* eventfd: aborted */
	_Atomic int error;	  /* the first; ncclResult_t */
	_Atomic bool aborted;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;
	struct softnccl_task *first, **last;
	bool closing;
	uint64_t close_by;   /* what is not done then is dropped */
	_Atomic bool called; /* there is an id of ncclCommGetUniqueId's that nobody grew by */
	bool gone;	     /* its thread has ended */
	_Atomic bool suspended; /* its memory is given back: nothing is done in it */
	ncclWindow_t windows;
	uint32_t last_window; /* number of the last one */
	struct softnccl_arrivals arrivals;
	pthread_mutex_t calls; /* of the wire NCCL_CALLS */
	struct softnccl_reduction reductions[NCCL_REDUCTIONS];
};

/* An operation of a group. */
enum softnccl_what {
	NCCL_ALL_REDUCE,
	NCCL_BROADCAST,
	NCCL_REDUCE,
	NCCL_ALL_GATHER,
	NCCL_REDUCE_SCATTER,
	NCCL_ALL_TO_ALL,
	NCCL_GATHER,
	NCCL_SCATTER,
	NCCL_SEND,
	NCCL_RECEIVE,
	NCCL_PUT,    /* and signal */
	NCCL_SIGNAL, /* alone */
	NCCL_WAIT,   /* for `count` signals of `peer` */
};
struct softnccl_operation {
	enum softnccl_what what;
	const void *send;
	void *receive;
	size_t count;
	int type, op, peer;
	CUstream stream;
	struct softnccl_reduction own; /* of an operation of the program's */
	uint32_t window;	       /* that is put into, … */
	uint64_t at;		       /* … and where */
};

/* --- last_error.c ------------------------------------------------------------------------- */

/* Notes why, for ncclGetLastError; returns the status. */
ncclResult_t softnccl_fail(ncclResult_t status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* --- socket.c ----------------------------------------------------------------------------- */

/* A transfer with one peer; those with the same peer go one after the other. */
struct softnccl_transfer {
	int peer;
	char *bytes;
	uint64_t count, done; /* done: with the 8 bytes of its length in front */
	uint64_t length;      /* those */
};
/* Does them all. The peer's side must be of the same length. */
ncclResult_t softnccl_exchange(struct ncclComm *comm, enum softnccl_wire wire,
	struct softnccl_transfer *sends, int send_count, struct softnccl_transfer *receives,
	int receive_count);
/* A socket that listens at the address that others may connect to; -1: *text says why. */
int softnccl_listen(uint32_t *address, uint16_t *port);
int softnccl_connect(uint32_t address, uint16_t port, uint64_t until);
int softnccl_accept(int listener, uint64_t until);
/* All of it, or false. */
bool softnccl_write(int fd, const void *bytes, size_t n, uint64_t until);
bool softnccl_read(int fd, void *bytes, size_t n, uint64_t until);
uint64_t softnccl_now(void); /* ns */
/* ns that a rank may say nothing: VCUDA_SOFTGPU_NCCL_WAIT_MS. */
uint64_t softnccl_patience(void);

/* --- meet.c ------------------------------------------------------------------------------- */

/* An id, and a thread behind it that gathers who comes. */
ncclResult_t softnccl_call(ncclUniqueId *id);
/* Who this process and the current device are; the listener's address is not filled in. */
ncclResult_t softnccl_self(struct softnccl_rank *self);
/* The ranks find each other by the id: fills in table[ranks], own row included. */
ncclResult_t softnccl_meet(
	const ncclUniqueId *id, int rank, int ranks, struct softnccl_rank *table);
/* Connects all that the table has, over `listener`, which row `rank` names. */
ncclResult_t softnccl_mesh(struct ncclComm *comm, int listener);

/* --- comm.c ------------------------------------------------------------------------------- */

bool softnccl_is_comm(const struct ncclComm *comm);
/* A communicator of the current context; its sockets follow. */
struct ncclComm *softnccl_comm_new(int rank, int ranks);
void softnccl_comm_put(struct ncclComm *comm);
/* A thread of the communicator's; no signal of the program's reaches it. */
bool softnccl_thread_begin(pthread_t *thread, void *(*run)(void *), struct ncclComm *comm);
/* Waits for `more`, under the lock. False: it is too late. */
bool softnccl_comm_wait(struct ncclComm *comm, uint64_t until);
/* Keeps the first error. */
void softnccl_comm_fail(struct ncclComm *comm, ncclResult_t status);

/* What a group makes: done by a thread each, so that ranks of one process meet. */
struct softnccl_making {
	ncclComm_t *to;
	CUcontext context;
	ncclUniqueId id;
	int rank, ranks;
	struct ncclComm *parent;     /* of a split, a shrink or a growth */
	bool shrinks, grows, called; /* called: by the id */
	int color, key;
	int *excluded;
	int excluded_count;
	/* A window instead: one that its rank knows already, and where the program wants it. */
	ncclWindow_t window, *window_to;
	/* Or that the parent is suspended, or goes on. */
	bool pauses, suspended;
	/* Of the same parent, which are made one after the other. */
	struct softnccl_making *next;
	bool follows;
	ncclResult_t status;
};
ncclResult_t softnccl_make(struct softnccl_making *makings, int count);

/* --- window.c ----------------------------------------------------------------------------- */

/* All ranks have it: one that is done first may put into it at once. */
ncclResult_t softnccl_window_make(struct softnccl_making *making);
/* Begins to take what others put. */
ncclResult_t softnccl_arrivals_begin(struct ncclComm *comm);
/* Nothing arrives and nothing is put any more: nobody waits in it. */
void softnccl_arrivals_stop(const struct ncclComm *comm);
/* What it has is freed; the communicator's own thread has ended, or was never there. */
void softnccl_arrivals_end(struct ncclComm *comm);
/* Puts, signals, and waits for signals. */
ncclResult_t softnccl_one_sided(struct ncclComm *comm, const struct softnccl_operation *o);

/* Each rank tells each a number, and all have the same. */
ncclResult_t softnccl_agree(struct ncclComm *comm, uint32_t number, const char *what);

/* --- exports.c ---------------------------------------------------------------------------- */

/* Keeps a group's first fault. */
ncclResult_t softnccl_keep(ncclResult_t status);
/* In a group until its end, else at once. */
ncclResult_t softnccl_operate(struct ncclComm *comm, struct softnccl_operation o);
ncclResult_t softnccl_make_later(struct softnccl_making *m);

/* --- task.c ------------------------------------------------------------------------------- */

/* The operations of one communicator, put into their streams. */
ncclResult_t softnccl_submit(
	struct ncclComm *comm, const struct softnccl_operation *operations, int count);
/* The communicator's thread. */
void *softnccl_thread(void *comm);

/* --- collective.c ------------------------------------------------------------------------- */

ncclResult_t softnccl_run(
	struct ncclComm *comm, const struct softnccl_operation *operations, int count);

/* Between memory of the host and of the device, whose address DEVICE is. */
ncclResult_t softnccl_copy(void *to, const void *from, size_t bytes, const void *device);

/* --- number.c ----------------------------------------------------------------------------- */

uint32_t softnccl_size(int type);
/* out[i] = the operation over from[0][i] … from[n - 1][i]. */
void softnccl_reduce(int type, int op, void *out, char *const *from, int n, size_t count);
/* Each element times the scalar. */
void softnccl_scale(int type, void *elements, size_t count, const void *scalar);

#endif
