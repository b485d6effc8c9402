/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames that are kept while a host function is outstanding.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_LOOP_STASH_H
#define VCUDA_GPU_AGENT_WORKER_LOOP_STASH_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Whether the driver may be waiting for a host function with a lock held: a library's call
 * beside the loop has it load kernels or free memory, for which it waits until the GPU is idle
 * (seen with cuFFT on an H100). Then who calls the driver waits as well. The function's end
 * comes through the loop, which does until then what needs no driver. */
bool stash_driver_waits(const struct worker *w);
/* Whether the frame at hand has to be kept, or to wait for those that are. */
bool stash_behind(struct worker *w);
/* What a host function needs to end cannot wait behind it (STREAM_AHEAD). */
bool stash_overtakes(struct worker *w);
/* Keeps the frame at hand for later. false: it can wait where it is, since nothing has to come
 * through to here. */
bool stash_keep(struct worker *w);
/* Lets the app know whether much is kept (COUNTER_KEPT). */
void stash_tell(struct worker *w);
/* Whether a frame up to that number is kept, but for those that keep nothing back. */
bool stash_has(const struct worker *w, uint64_t seq);
/* Serves those that can be served now, while what the socket has brought of another stays as it
 * is. false: there was none. */
bool stash_serve(struct worker *w);

#endif
