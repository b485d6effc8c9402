/* SPDX-License-Identifier: Apache-2.0
 *
 * Payloads by content: memory of a fixed size in pieces of FRAME_CHUNK bytes, each under its
 * namespace and its name.  What makes room is the least recently used of the namespace that has
 * most, so that nobody pushes another one below an equal share.  Nobody else has this memory
 * mapped: bytes are copied in, hashed here once nobody can change them, and copied out.
 *
 * Any thread, but for opening and closing.
 */
#ifndef VCUDA_GPU_AGENT_UPLOADS_PAYLOADS_H
#define VCUDA_GPU_AGENT_UPLOADS_PAYLOADS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "gpu-agent/uploads.h"

#define CACHE_NONE UINT32_MAX
#define CACHE_SPACES 1024 /* namespaces with anything here at once */

struct payloads;

/* Of BYTES at most, the index of 1/5000 of it not counted. NULL with *error. */
struct payloads *payloads_open(uint64_t bytes, struct error *error);
void payloads_close(struct payloads *cache);

/* The namespace, which stays until it is left and nothing of it is kept. CACHE_NONE: there are
 * too many. */
uint32_t payloads_enter(struct payloads *cache, const char name[TENSOR_SPACE]);
void payloads_leave(struct payloads *cache, uint32_t space);
/* Its names are made with this: another one for each, at random. */
uint64_t payloads_seed(const struct payloads *cache, uint32_t space);

/* The piece of that name, which stays until payloads_put. CACHE_NONE: there is none. */
uint32_t payloads_get(struct payloads *cache, uint32_t space, const struct session_name *name);
bool payloads_is(const struct payloads *cache, uint32_t piece, const struct session_name *name);
const unsigned char *payloads_bytes(const struct payloads *cache, uint32_t piece);
void payloads_put(struct payloads *cache, uint32_t piece);
/* It was given to a worker. */
void payloads_count_hit(struct payloads *cache, uint32_t piece);

/* Room for a piece that SPACE will keep, at *bytes. CACHE_NONE: all are held. */
uint32_t payloads_room(struct payloads *cache, uint32_t space, unsigned char **bytes);
/* LENGTH bytes stand there now, 1 … FRAME_CHUNK: under the name that they have. */
void payloads_keep(struct payloads *cache, uint32_t space, uint32_t piece, uint32_t length);
/* None do. */
void payloads_discard(struct payloads *cache, uint32_t piece);

/* Takes the kernel's memory for one more piece; false: enough is, for now. By one thread, of
 * whatever priority. _wait: until more may be wanted; false: all is taken. */
bool payloads_prepare(struct payloads *cache);
bool payloads_prepare_wait(struct payloads *cache);

void payloads_counts(struct payloads *cache, struct uploads_counts *counts);
/* From now on they have TOTALS in them, once. */
void payloads_count_earlier(struct payloads *cache, const struct uploads_counts *totals);

#endif
