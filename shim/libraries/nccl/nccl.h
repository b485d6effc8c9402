/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the NCCL front share. The front's functions are the exported ones: each
 * counts itself, and has a second name for profilers.
 */
#ifndef VCUDA_SHIM_LIBRARIES_NCCL_NCCL_H
#define VCUDA_SHIM_LIBRARIES_NCCL_NCCL_H

#include <stdatomic.h>

#include "protocol/generated/nccl_api.h"
#include "protocol/generated/nccl_ops.h"
#include "protocol/wire/handle.h"
#include "shim/generated/nccl_hand.h"
#include "shim/libraries/common/plain.h"
#include "shim/libraries/common/stub.h"

#define COUNT(name) vcuda_count(CALL_##name)
#define SECOND(name) STUB_SECOND_IS(p##name, name, name)

struct nccl_comm {
	uint64_t handle;   /* minted here; what the program has as ncclComm_t */
	CUcontext context; /* that it was made in, … */
	int device;	   /* … and whose that is, as the program counts */
	_Atomic int nranks, rank;
	_Atomic bool making;   /* a nonblocking one: the agent has not said that it is made */
	_Atomic uint32_t next; /* number of a registration */
	_Atomic uint64_t reductions[NCCL_REDUCTIONS / 64]; /* of the program's own: in use, … */
	_Atomic uint64_t destroyed[NCCL_REDUCTIONS / 64]; /* … and going at their group's end */
	struct nccl_window *windows;			  /* window.c's, under its lock */
	_Atomic bool windowless; /* the agent's NCCL answered that it makes none */
};

/* The program's communicator; NULL, and that is noted as the last error: it is none. */
struct nccl_comm *nccl_find(ncclComm_t comm);

/* Whether it is one of NCCL's operations, or of those that the program made. */
bool nccl_has_reduction(const struct nccl_comm *comm, ncclRedOp_t op);
/* query.c. One that was noted as destroyed goes. */
ncclResult_t nccl_reduction_end(ncclComm_t comm, uint32_t number);

/* Notes why STATUS comes back, for ncclGetLastError; returns it. */
ncclResult_t nccl_fault(ncclResult_t status, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The same of what the agent answered: it knows why. */
ncclResult_t nccl_answered(ncclResult_t status);

/* The power of two of an operation's bytes, by which it is learned. */
static inline uint8_t nccl_magnitude(uint64_t bytes)
{
	return bytes ? (uint8_t)(64 - __builtin_clzll(bytes)) : 0;
}

/* An operation as it was called. */
struct nccl_operation {
	struct nccl_key key;
	struct nccl_rest rest; /* but for the stream */
	CUstream stream;
	CUcontext context; /* the communicator's */
	/* NCCL_WINDOW: what becomes the program's at TO. */
	struct nccl_window *window;
	ncclWindow_t *to;
};

/* One rank of a communicator that is to be made. */
struct nccl_making {
	struct nccl_comm *comm;
	ncclComm_t *to;
	bool nonblocking;
	size_t bytes; /* of the frame's body */
	struct wire_ncclCommInitRank *body;
};

/* several.c: a frame that is to be awaited, in a context of its agent. */
struct nccl_ask {
	CUcontext context;
	struct front_frame frame; /* with a reply */
	ncclResult_t status;	  /* how it went, */
	bool abandoned;		  /* or whether nobody knows */
	struct front_pending *pending;
};
/* Asks all at once, and waits for all: the first fault, whose text is kept. Once one has failed
 * the others get a few seconds. */
ncclResult_t nccl_ask_all(struct nccl_ask *asks, unsigned count);
/* Whether the agents of these contexts have NCCL, and the same one. */
ncclResult_t nccl_agree(const CUcontext *contexts, unsigned count);
/* Makes it current, until nccl_leave(). False: *STATUS says why. */
bool nccl_enter(CUcontext context, ncclResult_t *status);
void nccl_leave(void);
/* A library's question (vcuda_library_ask), to the agent of the context. */
ncclResult_t nccl_ask_at(CUcontext context, uint16_t op, const void *body, size_t body_bytes,
	void *reply, size_t reply_bytes, const char *name);

/* comm.c. Its name goes, and its memory. */
void nccl_comm_drop(struct nccl_comm *comm);
/* comm_make.c. Makes those of a group, of one process: either all are made, or none; frees what
 * each has. */
ncclResult_t nccl_make(struct nccl_making *making, uint32_t count);
/* They are not made after all. */
void nccl_unmake(struct nccl_making *making, uint32_t count);
/* group.c. In a group they are noted, else done; COUNT of one call. */
ncclResult_t nccl_note(const struct nccl_operation *operations, uint32_t count);
ncclResult_t nccl_note_making(const struct nccl_making *making);
/* The operation goes behind the group, whose collectives may still name it. */
ncclResult_t nccl_note_destroyed(ncclComm_t comm, uint32_t number);
bool nccl_in_group(void);
/* The first fault in a group is what the group's end answers; returns it. */
ncclResult_t nccl_group_fault(ncclResult_t status);
/* window.c. The answer to operations of which some make windows: MADE has a bit for each. */
void nccl_windows_made(const struct nccl_operation *operations, uint32_t count,
	ncclResult_t status, uint64_t made);
/* Their communicator goes. */
void nccl_windows_drop(struct nccl_comm *comm);
/* A number that no other group of this process has, for one that travels in several frames. */
uint32_t nccl_group_number(void);

#endif
