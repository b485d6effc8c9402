/* SPDX-License-Identifier: Apache-2.0
 *
 * A launch as it is checked and sent (launch.c), and what of it a CUlaunchConfig says.
 */
#ifndef VCUDA_SHIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H
#define VCUDA_SHIM_DRIVER_LAUNCH_LAUNCH_CONFIG_H

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/launch.h"

struct function;

enum { LAUNCH_EVENTS_MAX = 2 };

struct launch {
	const struct function *function;
	unsigned grid[3], block[3];
	unsigned shared;
	uint64_t stream;
	uint32_t flags;
	CUlaunchAttribute attributes[LAUNCH_ATTRIBUTES_MAX];
	uint32_t attribute_count;
	CUevent events[LAUNCH_EVENTS_MAX]; /* that attributes ask to be recorded */
	uint32_t event_count;
	void **params;	    /* one pointer a parameter … */
	const void *packed; /* … or all of them as one block */
	size_t param_bytes;
};

/* What CONFIG asks for of F, but for the stream and the parameters; *L is otherwise as it was.
 */
CUresult launch_config(struct launch *l, const CUlaunchConfig *config, CUfunction f);

/* launch_fits.c: its attributes, clusters among them. */
CUresult launch_attributes_fit(const struct launch *l);
/* All blocks of a cooperative launch must be resident at once. */
CUresult launch_cooperative_fits(const struct launch *l);

#endif
