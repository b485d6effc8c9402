/* SPDX-License-Identifier: Apache-2.0
 *
 * CUPTI's Activity API on the software GPU.  The driver tells what was called and what ran
 * (softgpu/driver/work/work.h); each becomes a record in a list of our own (backlog.c), since
 * the driver's locks may be held then.  From there records go into the program's buffers
 * (handout.c): when it flushes, and by a thread of ours when many have come together.
 *
 * Locks, in the order in which they may be taken: the hand-out's, which is held while the
 * program's functions run; the list's and that of the enabled kinds, leaves.
 */
#ifndef VCUDA_SOFTGPU_CUPTI_ACTIVITY_H
#define VCUDA_SOFTGPU_CUPTI_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/libraries/cupti_records.h"

/* Begins the definition of an exported function that returns a CUptiResult. */
#define CUPTI_CALL(NAME, ...)                                                                  \
	__attribute__((visibility("default"))) CUptiResult NAME(__VA_ARGS__);                  \
	__attribute__((visibility("default"))) CUptiResult NAME(__VA_ARGS__)

/* A kind as a bit of a set of them; kinds of 64 and more have no records here. */
static inline uint64_t kind_bit(unsigned kind)
{
	return kind < 64 ? (uint64_t)1 << kind : 0;
}

/* kinds.c: whether the call of a context has records at all. */
uint64_t kinds_wanted(uint32_t context);
void kinds_end(void);

/* records.c */
struct softgpu_profiler;
extern const struct softgpu_profiler records_profiler;

/* external.c: adds a record for each kind of id that this thread is in. */
void external_records(uint32_t call);

/* backlog.c: what no buffer has yet. */
#define RECORD_BYTES_MAX sizeof(CUpti_ActivityKernel10)
/* 0: there are no such records here. */
size_t record_bytes(const CUpti_Activity *record);
void backlog_add(const CUpti_Activity *record);
/* The oldest one, into RECORD (RECORD_BYTES_MAX bytes); its bytes, or 0. */
size_t backlog_take(void *record);
/* Until many are there. */
void backlog_wait(void);
void backlog_dropped_add(size_t count);
size_t backlog_dropped_take(void);

#endif
