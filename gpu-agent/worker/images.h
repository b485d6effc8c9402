/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of images, which is the front's: a worker asks for one by its digest, and brings
 * what the program sent.  It waits for an answer, as no program's call may cost a round trip
 * more for it; the front answers from memory and disk of the same machine.
 */
#ifndef VCUDA_GPU_AGENT_WORKER_IMAGES_H
#define VCUDA_GPU_AGENT_WORKER_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

struct handoff;
struct worker;

/* What is asked for now. */
struct images_wait {
	bool waits;
	bool mute; /* an answer did not come in time: nothing is asked for until it does */
	uint8_t digest[32];
	uint64_t size;
	unsigned char *bytes; /* of the answer */
};

/* The image's bytes (malloc, NUL behind them), or NULL where the cache does not have it. */
unsigned char *images_want(struct worker *w, const uint8_t digest[32], uint64_t size);
/* Best effort. */
void images_put(struct worker *w, const uint8_t digest[32], const void *bytes, uint64_t size);

/* An IMAGE of the front's; closes FD. */
void images_answer(struct worker *w, const struct handoff *h, int descriptor);
/* Another front has not heard what was asked. */
void images_ask_again(struct worker *w);

#endif
