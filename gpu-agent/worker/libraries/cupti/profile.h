/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent's CUPTI recorded of this process, which serves one session and no other: so
 * a session sees its own work and nobody else's.  profile.c has the calls, profile_buffer.c the
 * buffers that CUPTI fills and what its records say, profile_store.c what is kept of them.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUPTI_PROFILE_H
#define VCUDA_GPU_AGENT_WORKER_LIBRARIES_CUPTI_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "gpu-agent/generated/cupti_library.h"
#include "protocol/libraries/cupti_records.h"
#include "protocol/wire/profile.h"

/* --- profile_store.c -----------------------------------------------------------------------
 *
 * Records come in CUPTI's order, which is not that of the calls, and which frame a call was
 * made for comes with records of its own (EXTERNAL_CORRELATION), before or behind.  A record
 * that no frame caused is nobody's: it waits for one until all are asked for, and goes.
 */

/* Bytes of records that are complete and in no batch, of a batch, and of those that wait to be
 * told their frame. What comes beyond is dropped, and counted. */
#define PROFILE_STORE_MAX (64u << 20)
#define PROFILE_WAITING_MAX (8u << 20)
/* Calls whose frame is known: the newest. */
#define PROFILE_CALLS_MAX (1u << 20)

struct profile_piece;
struct profile_list {
	struct profile_piece *first, *last;
	uint64_t bytes;
};

struct profile_call {
	uint64_t seq; /* 0: nothing is here */
	uint32_t launch;
};

/* The caller sees to it that one thread at a time is in it. Zeroed, it is empty. */
struct profile_store {
	struct profile_list complete, waiting, batch;
	struct profile_call *calls; /* by the low bits of `launch` */
	uint32_t call_count;	    /* a power of two, or 0 */
	bool told;		    /* a frame, since those that wait were looked at */
	uint64_t batch_read;	    /* up to there */
	uint64_t dropped;
	uint64_t most; /* PROFILE_STORE_MAX where it is 0 */
};

/* The call LAUNCH was made for the frame SEQ. */
void profile_store_call(struct profile_store *s, uint32_t launch, uint64_t seq);
/* One record, but for `bytes`, `seq` and `name_bytes`; NAME may be NULL. */
void profile_store_take(
	struct profile_store *s, const struct profile_record *record, const char *name);
/* Those that waited, and whose frame is known by now, are complete. */
void profile_store_join(struct profile_store *s);
/* What is complete becomes the batch, in place of the one before; its bytes. ALL: what still
 * waits is nobody's. */
uint64_t profile_store_batch(struct profile_store *s, bool all);
/* Bytes of the batch. False: it has not so many there. */
bool profile_store_read(struct profile_store *s, uint64_t offset, uint64_t bytes, void *to);
/* The profile is over: what is of no use any more goes. */
void profile_store_rest(struct profile_store *s);
void profile_store_clear(struct profile_store *s);

/* --- profile_buffer.c ----------------------------------------------------------------------
 */

/* Devices by CUPTI's number: the session's, as the program's end knows them. */
#define PROFILE_DEVICES 64

/* From now on the library fills buffers of ours, on threads of its own; or what it says. */
CUptiResult profile_buffers_open(const struct cupti_library *library, uint32_t version);
/* The session's device behind CUPTI's NUMBER. Before anything is recorded. */
void profile_buffers_device(uint32_t number, uint32_t device);
/* In: the store, which is this thread's until profile_store_put. No call of CUPTI's between. */
struct profile_store *profile_store_get(void);
void profile_store_put(void);

/* What a record of CUPTI's says, of that VERSION (cuptiGetVersion): *INTO, and its name or
 * NULL. False: it is none that travels. */
bool profile_convert(const CUpti_Activity *record, uint32_t version,
	struct profile_record *into, const char **name);

#endif
