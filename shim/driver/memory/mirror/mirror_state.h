/* SPDX-License-Identifier: Apache-2.0
 *
 * What mirror.c (what is active) and mirror_step.c (what travels) both work on.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_STATE_H
#define VCUDA_SHIM_DRIVER_MEMORY_MIRROR_MIRROR_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/mirror.h"
#include "shim/driver/memory/free_extents.h"
#include "shim/driver/memory/mirror/mirror_names.h"

extern struct mirror {
	pthread_mutex_t changes; /* of the list; before the other one */
	pthread_mutex_t lock;
	struct mirror_view *views; /* by address */
	unsigned *users;	   /* of each: how often it was activated */
	size_t count, room;
	struct alias {
		uint64_t at, bytes;
	} *aliases;
	size_t alias_count, alias_room;
	struct free_extents free; /* pages of the window */
	uint64_t window, window_bytes;
	_Atomic uint64_t taken; /* answers taken over */
	unsigned char runs[MIRROR_WRITE_MAX], spare[MIRROR_WRITE_MAX];
	struct mirror_names names; /* in what went to the agent since the last push */
} mirror;

#endif
