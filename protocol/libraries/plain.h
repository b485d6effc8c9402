/* SPDX-License-Identifier: Apache-2.0
 *
 * What travels first with each call of a library of form(plain), and what comes back.
 */
#ifndef VCUDA_PROTOCOL_LIBRARIES_PLAIN_H
#define VCUDA_PROTOCOL_LIBRARIES_PLAIN_H

#include <cuda.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

#define LIBRARY_STATE_WORDS 4
#define LIBRARY_STATE_ON_HOST 3 /* this word: the handle fills memory of the program */
#define LIBRARY_KEY_FROM 16	/* a call is learned by what begins here */

struct library_state {
	uint64_t handle;
	uint64_t stream;
	uint32_t word[LIBRARY_STATE_WORDS]; /* what is kept of the calls before */
};
_Static_assert(sizeof(struct library_state) == 32, "");

struct library_reply {
	uint32_t status; /* the library's own number */
	uint32_t absent; /* 1: the agent has no such library */
};

#endif
