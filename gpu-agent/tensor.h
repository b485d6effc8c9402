/* SPDX-License-Identifier: Apache-2.0
 *
 * What worker, front and store say to each other of tensors: one struct tensor_message a
 * datagram, over the worker's hand-off pair (where its size tells it from a struct handoff) and
 * over a pair between front and store.  The front says for whom a worker asks: it overwrites
 * what it knows better, and the store trusts that.  Each question has one answer, with its tag.
 */
#ifndef VCUDA_GPU_AGENT_TENSOR_H
#define VCUDA_GPU_AGENT_TENSOR_H

#include <stdint.h>

#include "protocol/wire/status.h"
#include "protocol/wire/tensor.h"

#define TENSOR_VERSION 1u
#define TENSOR_SPACE 64 /* a namespace, with its NUL */

enum tensor_what {
	/* worker -> front -> store, answered by the same; those below OPERATIONS */
	TENSOR_TAKE = 1, /* create or get (flags); the answer brings the memory's descriptor */
	TENSOR_SEAL = 2, /* id */
	TENSOR_DELETE = 3,
	TENSOR_STAT = 4,
	TENSOR_LIST = 5, /* the first behind `cursor` whose name begins so; at the end 500 */
	TENSOR_TOUCH = 6,
	TENSOR_SHARE = 7,  /* with the namespace `text` */
	TENSOR_CLOSE = 8,  /* id is mapped nowhere any more */
	TENSOR_OPERATIONS, /* how many, from 1 */
	/* front -> store, no answer */
	TENSOR_SESSIONS = 16, /* another front: SESSION for each that it has, then END */
	TENSOR_SESSION = 17,  /* `session` runs */
	TENSOR_END = 18,      /* the holds of all others are dropped */
	TENSOR_OVER = 19,     /* `session` has ended */
	TENSOR_COPIED = 20,   /* COPY's `tag` has ended: status, text */
	/* Another agent has brought the ticket `id`; answered: about, gpu, text = that agent;
	 * fd: the memory. `tag` is the front's. */
	TENSOR_REDEEM = 21,
	TENSOR_FELL = 22, /* what lies in the memory of `gpu` is lost, and why: text */
	/* worker -> front -> store: READ_ONLY is done, `session` writes id no more */
	TENSOR_FOLLOWED = 23,
	/* store -> front */
	/* -> worker of `session`: id is sealed; about.flags OWNED: by itself */
	TENSOR_READ_ONLY = 24,
	TENSOR_USED = 25,  /* the store has about.room bytes of `gpu` */
	TENSOR_READY = 26, /* it has read what the one before it left; fd: its table */
	/* fd: memory on `gpu`, for about.bytes of what is called `name` at the agent at `text`,
	 * which wants the ticket `id`. `tag`: the store's */
	TENSOR_COPY = 27,
	/* Behind a COPY without an address, of the same `tag`, and -> worker behind FILL; fd:
	 * the memory of `gpu` that it is a copy of. */
	TENSOR_SOURCE = 29,
	TENSOR_LATER = 28, /* the question is answered when a copy has ended */
	/* front -> worker; fd: memory. What is copied comes, or goes, by the connection of the
	 * PEER behind it (handoff.h) */
	TENSOR_FILL = 32,
	TENSOR_SPILL = 33,
	/* worker -> front, as each second while it copies; `cursor`: bytes so far */
	TENSOR_MOVED = 34,
	TENSOR_MOVED_ALL = 35, /* or not: status, text */
};

struct tensor_message {
	uint32_t version;
	uint32_t what;
	uint32_t status; /* CUresult */
	int32_t worker;	 /* the front's: whose question */
	uint64_t tag;	 /* the worker's */
	uint64_t session;
	uint64_t cursor;
	uint64_t left;	 /* the front's, with TAKE: what the GPU has for one more tensor
			  * beside the about.room bytes that it knew the store to have */
	uint32_t again;	 /* the front's: it asked a store that died before it answered */
	uint32_t device; /* the worker's; the front makes a GPU of it */
	uint8_t id[16];
	uint8_t gpu[16]; /* UUID */
	char space[TENSOR_SPACE];
	char name[2 * TENSOR_NAME]; /* asked: at most TENSOR_NAME; told: NAMESPACE/NAME */
	struct tensor_about about;
	char text[TENSOR_TEXT]; /* why not, a sentence */
};

#endif
