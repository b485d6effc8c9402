/* SPDX-License-Identifier: Apache-2.0
 *
 * What a tenant's sessions may have together of the agent's machine: `tenants.NAME.KEY` in the
 * configuration, a number in the SESSION that a worker gets, a label of a metric.  The workers
 * keep them, by what tally.h says; bytes in flight are memory that a session has from its start
 * on, which the front gives out.  0 stands for no limit but the agent's own.
 */
#ifndef VCUDA_GPU_AGENT_QUOTAS_H
#define VCUDA_GPU_AGENT_QUOTAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum quota {
	QUOTA_HANDLES,	    /* names at once: streams, events, modules, functions, graphs … */
	QUOTA_MODULES,	    /* loaded at once */
	QUOTA_MODULE_BYTES, /* of their images */
	QUOTA_PINNED,	    /* bytes of memory that is a program's and that kernels reach */
	QUOTA_INFLIGHT,	    /* bytes between socket and GPU, each direction */
	QUOTA_HOST,	    /* bytes of the worker's own memory */
	QUOTA_LOG,	    /* lines a second */
	QUOTAS
};

struct quota_row {
	const char *key;
	bool bytes;
	uint64_t least, most; /* that the configuration takes, 0 aside */
	const char *takes;
};

static const struct quota_row quota_rows[QUOTAS] = {
	[QUOTA_HANDLES] = {"handles", false, 16, 1u << 20,
		"a number from 16 to 1048576 (0 = no limit but the agent's)"},
	[QUOTA_MODULES] = {"modules", false, 1, 1u << 20,
		"a number from 1 to 1048576 (0 = no limit but the agent's)"},
	[QUOTA_MODULE_BYTES] = {"module_bytes", true, 1, 1ull << 50,
		"bytes like 64MiB (0 = no limit but the agent's)"},
	[QUOTA_PINNED] = {"pinned_bytes", true, 1, 1ull << 50,
		"bytes like 64MiB (0 = no limit but the agent's)"},
	[QUOTA_INFLIGHT] = {"inflight_bytes", true, 4u << 20, 1ull << 50,
		"bytes from 4MiB on (0 = no limit but the agent's)"},
	[QUOTA_HOST] = {"host_memory", true, 64u << 20, 1ull << 50,
		"bytes from 64MiB on (0 = the agent's host_memory)"},
	[QUOTA_LOG] = {"log_lines", false, 1, 100,
		"lines a second, 1 to 100 (0 = the agent's 100)"},
};

/* Bytes that the first connections of a session, and each stripe, may have on their way to the
 * GPU (worker/staging/staging.h, worker/staging/stripe.h). */
#define QUOTA_LINK_BYTES (16u << 20)
#define QUOTA_STRIPE_BYTES (8u << 20)

#endif
