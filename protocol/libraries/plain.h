/* SPDX-License-Identifier: Apache-2.0
 *
 * What travels first with each call of a library, and what comes back.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_PLAIN_H
#define VCUDA_PROTOCOL_LIBRARIES_PLAIN_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

#define LIBRARY_STATE_WORDS 4
#define LIBRARY_NO_WORD UINT32_MAX
#define LIBRARY_KEY_FROM 16 /* a call is learned by what begins here */

struct library_state {
	uint64_t handle;
	uint64_t stream;
	uint32_t word[LIBRARY_STATE_WORDS]; /* the stanza's state(…), in that order */
};
_Static_assert(sizeof(struct library_state) == 32, "");

/* A scalar or result in a body: its bytes, or word[0] is its address, as the state's word
 * pointer_mode says. Five words: the largest is the parameter of a modified rotation, five
 * doubles. */
#define LIBRARY_VALUE_WORDS 5
enum { LIBRARY_POINTERS_HOST = 0, LIBRARY_POINTERS_DEVICE = 1 };

/* library_reply.flags */
#define LIBRARY_ABSENT 1u  /* the agent has no such library */
#define LIBRARY_PASSING 2u /* another time the same question may get another answer */

struct library_reply {
	uint32_t status; /* the library's own number */
	uint32_t flags;
};

/* To what makes a handle, or asks whether one could be made. */
struct library_opened {
	struct library_reply reply;
	uint32_t version; /* what the stanza's told(…) says of it; 0: nothing */
	uint32_t knows;	  /* what the agent knows of this library beyond its first release: its
			     bits */
};

/* A library's numbers for what is said of it, the stanza's statuses(…). */
struct library_statuses {
	int handle;  /* the handle is none of ours */
	int memory;  /* there is no memory */
	int lost;    /* the session is lost, or an earlier call failed */
	int missing; /* there is no GPU, or the agent lacks the library */
	/* 0: it has no number for … */
	int unknown; /* a call with a handle that is none of ours, where that is not `handle` */
	int null;    /* no place for a handle */
	int invalid; /* an argument that is refused */
	int unsupported;  /* what the agent's library lacks */
	int internal;	  /* a fault inside of it */
	int architecture; /* a device that lacks something */
	int mapping;	  /* memory that cannot be reached */
};

/* What failed without an answer of the library's: refused by the agent, lost on the way, or
 * posted before. */
static inline int library_status(const struct library_statuses *s, CUresult status)
{
	switch ((int)status) {
	case CUDA_SUCCESS: return 0;
	case CUDA_ERROR_OUT_OF_MEMORY: return s->memory;
	case CUDA_ERROR_INVALID_VALUE: return s->invalid ? s->invalid : s->lost;
	case CUDA_ERROR_INVALID_HANDLE: return s->invalid ? s->invalid : s->handle;
	/* Also an agent that is too old for the library. */
	case CUDA_ERROR_NOT_SUPPORTED: return s->unsupported ? s->unsupported : s->missing;
	case CUDA_ERROR_OPERATING_SYSTEM: return s->internal ? s->internal : s->lost;
	case CUDA_ERROR_NO_BINARY_FOR_GPU: return s->architecture ? s->architecture : s->lost;
	case CUDA_ERROR_MAP_FAILED: return s->mapping ? s->mapping : s->lost;
	case CUDA_ERROR_NOT_INITIALIZED:
	case CUDA_ERROR_NO_DEVICE:
	case CUDA_ERROR_INVALID_CONTEXT:
	case CUDA_ERROR_SYSTEM_NOT_READY: return s->missing;
	default: return s->lost;
	}
}

/* Whether the same question always gets that status, so that it may be kept. */
static inline bool library_lasting(const struct library_statuses *s, int status)
{
	return !status || status == s->invalid || status == s->unsupported ||
	       status == s->architecture;
}

/* A status that has no answer to travel in, because the call was posted: whichever call waits
 * next gets it, maybe one of the driver's. */
static inline CUresult library_result(const struct library_statuses *s, int status)
{
	return !status			   ? CUDA_SUCCESS
	       : status == s->memory	   ? CUDA_ERROR_OUT_OF_MEMORY
	       : status == s->missing	   ? CUDA_ERROR_NOT_INITIALIZED
	       : status == s->invalid	   ? CUDA_ERROR_INVALID_VALUE
	       : status == s->unsupported  ? CUDA_ERROR_NOT_SUPPORTED
	       : status == s->internal	   ? CUDA_ERROR_OPERATING_SYSTEM
	       : status == s->architecture ? CUDA_ERROR_NO_BINARY_FOR_GPU
	       : status == s->mapping
		       ? CUDA_ERROR_MAP_FAILED
		       /* Not LAUNCH_FAILED: whether the context is lost is for the driver. */
		       : CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

#endif
