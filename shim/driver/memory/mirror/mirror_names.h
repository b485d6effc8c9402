/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses of pinned memory among what the program writes to memory that kernels reach: by
 * them kernels come to more memory, as in a list.  mirror.c's alone.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_NAMES_H
#define VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/wire/mirror.h"

/* So many are looked up. */
#define MIRROR_NAMES 64u

/* Words that may be such. A count of one more than there is room for: there were more. */
struct mirror_names {
	unsigned count;
	uint64_t word[MIRROR_NAMES];
};

/* Adds those of what was gathered. */
void mirror_names_note(struct mirror_names *names, const struct mirror_runs *runs);
/* Makes the memory around them active, all memory if there were too many. Whether some was not
 * active before. No lock of the mirror may be held. */
bool mirror_names_reach(const struct mirror_names *names);

#endif
