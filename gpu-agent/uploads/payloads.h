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

struct cache;

/* Of BYTES at most, the index of 1/5000 of it not counted. NULL with *error. */
struct cache *cache_open(uint64_t bytes, struct error *error);
void cache_close(struct cache *cache);

/* The namespace, which stays until it is left and nothing of it is kept. CACHE_NONE: there are
 * too many. */
uint32_t cache_enter(struct cache *cache, const char name[TENSOR_SPACE]);
void cache_leave(struct cache *cache, uint32_t space);
/* Its names are made with this: another one for each, at random. */
uint64_t cache_seed(const struct cache *cache, uint32_t space);

/* The piece of that name, which stays until cache_put. CACHE_NONE: there is none. */
uint32_t cache_get(struct cache *cache, uint32_t space, const struct session_name *name);
bool cache_is(const struct cache *cache, uint32_t piece, const struct session_name *name);
const unsigned char *cache_bytes(const struct cache *cache, uint32_t piece);
void cache_put(struct cache *cache, uint32_t piece);
/* It was given to a worker. */
void cache_count_hit(struct cache *cache, uint32_t piece);

/* Room for a piece that SPACE will keep, at *bytes. CACHE_NONE: all are held. */
uint32_t cache_room(struct cache *cache, uint32_t space, unsigned char **bytes);
/* LENGTH bytes stand there now, 1 … FRAME_CHUNK: under the name that they have. */
void cache_keep(struct cache *cache, uint32_t space, uint32_t piece, uint32_t length);
/* None do. */
void cache_discard(struct cache *cache, uint32_t piece);

/* Takes the kernel's memory for one more piece; false: enough is, for now. By one thread, of
 * whatever priority. _wait: until more may be wanted; false: all is taken. */
bool cache_prepare(struct cache *cache);
bool cache_prepare_wait(struct cache *cache);

void cache_counts(struct cache *cache, struct uploads_counts *counts);
/* From now on they have TOTALS in them, once. */
void cache_count_earlier(struct cache *cache, const struct uploads_counts *totals);

#endif
