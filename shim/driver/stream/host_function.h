/* SPDX-License-Identifier: Apache-2.0
 *
 * Host functions that the app has queued.
 */
#ifndef VCUDA_SHIM_DRIVER_STREAM_HOST_FUNCTION_H
#define VCUDA_SHIM_DRIVER_STREAM_HOST_FUNCTION_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A host node's function, kept under its ticket. It is launched once more, as part AT of PARTS,
 * in the thread's context, RUNS being the launch's; its last graph is gone. */
struct parts;
struct part_runs;
CUresult host_function_node_launched(
	uint64_t ticket, const struct parts *parts, size_t at, struct part_runs *runs);
void host_function_node_drop(uint64_t ticket);

/* gettid() of the thread that runs host functions; 0: none does yet. */
uint32_t host_function_thread_id(void);

/* What the thread's host function asks, answered at once and behind nothing: vcudaQuery, where
 * the agent has come to frame BEHIND; the time between two events that were recorded. Both
 * NOT_READY where it has not come so far, NOT_PERMITTED where it is older. */
struct event;
CUresult host_function_query(uint32_t scope, uint64_t handle, uint64_t behind);
CUresult host_function_elapsed(
	const struct event *start, const struct event *end, float *milliseconds);

#endif
