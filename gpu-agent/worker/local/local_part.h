/* SPDX-License-Identifier: Apache-2.0
 *
 * What local.c and local_memory.c have of each other.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOCAL_LOCAL_PART_H
#define VCUDA_GPU_AGENT_WORKER_LOCAL_LOCAL_PART_H

#include "gpu-agent/worker/local/local.h"

#define LOCAL_MS 1000000ull
#define LOCAL_LEND_LEAST 32768u /* bytes: a smaller payload is copied sooner than lent */

/* A segment of the table is part of the worker's own record of it. */
struct local_segment *local_ours(struct segment *segment);
/* Whether FD is the file that the segment was mapped from. */
bool local_same(const struct local_segment *segment, int fd);
/* The sidecar's PIN: a segment more, or again. Takes no descriptor; a bad one breaks the
 * session. */
void local_memory_pin(struct worker *w, const struct local_message *m, int fd);
/* Whether the bytes begin in the segment. */
bool local_holds(const struct segment *segment, const void *bytes);
/* What was given back goes once nothing uses it. */
void local_close(struct worker *w);
/* The sidecar's UNPIN: the segment is not named any more, and goes when nothing uses it. */
void local_memory_unpin(struct worker *w, const struct local_message *m);
/* NULL: too many are out, or they would be more bytes than staging memory has: the GPU is
 * behind.
 */
struct staging_range *local_lend(struct local_loans *loans, struct local_segment *of,
	uint32_t n, uint32_t most, uint64_t end);
/* The program may use its arena again, as far as frames are acknowledged and nobody reads it.
 */
void local_captured(struct worker *w);
/* Whether the sidecar may have said of a number what was not heard yet. */
static inline bool local_news(const struct local *l)
{
	return !l->named ||
	       atomic_load_explicit(&l->page->named, memory_order_acquire) != l->named;
}
/* Where answers may arrive. The sidecar said it before the program could name it, and its
 * number may have been another's before. */
void *local_in(struct worker *w, const struct frame_destination *destination, uint32_t n);

#endif
