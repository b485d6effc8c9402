/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of NCCL on the worker share. Whatever may wait for another rank is a job
 * beside the loop; in steady state an operation is issued by the loop, as NCCL does not wait
 * then.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_NCCL_NCCL_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_NCCL_NCCL_H

#include "gpu-agent/generated/nccl_library.h"
#include "gpu-agent/worker/loop/beside.h"
#include "gpu-agent/worker/libraries/common/plain.h"
#include "gpu-agent/worker/worker_state.h"

struct nccl_registration {
	uint32_t number;
	void *handle;
	struct nccl_registration *next;
};

struct nccl_window {
	uint32_t number;
	ncclWindow_t window; /* the library's */
	struct nccl_window *next;
};

struct nccl_comm {
	const struct nccl_library *library;
	ncclComm_t comm; /* the library's; NULL: it was not made, or is ended */
	uint64_t handle;
	uint16_t context; /* that it was made in */
	bool making;
	bool ended;	/* the program's name is gone; freed with the last job */
	uint32_t users; /* jobs */
	int32_t nranks, rank;
	int status; /* how making it went, or the first operation that failed when issued */
	ncclRedOp_t reductions[NCCL_REDUCTIONS];
	bool reduces[NCCL_REDUCTIONS];
	struct nccl_registration *registrations;
	struct nccl_window *windows;
};

/* The library; NULL: r->refused or the answer says why. */
const struct nccl_library *nccl_open(struct worker *w, struct request *r, uint32_t major);
/* The session's communicator; NULL: refused. */
struct nccl_comm *nccl_comm(struct worker *w, struct request *r, uint64_t handle);
/* The same of one that is made and not ended. */
struct nccl_comm *nccl_ready(struct worker *w, struct request *r, uint64_t handle);
void nccl_comm_put(struct nccl_comm *comm); /* a job is done with it */

/* Why the last call failed, for ncclGetLastError. Loop. */
void nccl_note_text(const char *text);
/* A status of what the loop issued itself: the communicator keeps it, who asks for its
 * asynchronous error is told. */
void nccl_failed(struct nccl_comm *comm, int status, const char *call);

/* A call that may wait for other ranks. `work` runs on its thread; `after` on the loop, once,
 * with the answer's bytes; then the job is freed. */
struct nccl_job {
	struct beside_job job;
	const struct nccl_library *library;
	const struct cuda_driver *cuda;
	const char *call;
	int status;
	char text[NCCL_TEXT];
	int32_t tag;	    /* who waits; -1: nobody does any more */
	bool awaited, late; /* somebody waited; and was told that it is late */
	void (*work)(struct nccl_job *job);
	/* *BYTES of an answer, which begins with struct library_reply. */
	const void *(*after)(struct worker *w, struct nccl_job *job, uint32_t *bytes);
};

/* Starts it; freed where it cannot be, and R says so. */
CUresult nccl_start(struct worker *w, struct request *r, struct nccl_job *job);
/* What the library says of the call that just failed on this thread. */
void nccl_explain(struct nccl_job *job);
/* The library is too old for a function: what the call answers, and why in TEXT. */
int nccl_lacks(const struct nccl_library *library, const char *function, char text[NCCL_TEXT]);

/* --- window.c ------------------------------------------------------------------------------
 */

/* The library's window of that number; NULL: there is none. */
ncclWindow_t nccl_window_of(const struct nccl_comm *comm, uint32_t number);
/* Notes one that was made. */
bool nccl_window_put(struct nccl_comm *comm, uint32_t number, ncclWindow_t window);
void nccl_windows_free(struct nccl_comm *comm); /* what is noted of them */

/* What travels in several frames: the parts so far, by the program's number of the group. */
struct nccl_parts {
	uint32_t number;
	bool makes; /* communicators; else operations */
	void *list;
	uint32_t count;
};
/* The parts of that group, or new ones; NULL: there are too many groups. */
struct nccl_parts *nccl_parts(uint32_t number, bool makes);
void nccl_parts_end(struct nccl_parts *parts); /* the list is another's, or freed */

#endif
