/* SPDX-License-Identifier: Apache-2.0
 *
 * What goes from agent to agent without this process (protocol/wire/direct.h): copies between
 * their devices, and the waits of their streams for one another's events.  All of it is posted;
 * the connection of two agents is made when something first needs it.
 */
#ifndef VCUDA_SHIM_DRIVER_COPY_DIRECT_H
#define VCUDA_SHIM_DRIVER_COPY_DIRECT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "shim/driver/copy/copy.h"
#include "shim/driver/stream/stream.h"

/* The copy from SRC's device to DST's, on a stream of the thread's session; with !ASYNC in
 * order with the legacy stream of the other device, too. False: nothing was done, the agents
 * cannot. */
bool direct_copy(const struct shape *s, struct context *src, struct context *dst,
	uint64_t stream, bool async, CUresult *status);
/* The stream, of the thread's session, waits for what EVENT of another one stands for. False:
 * as above. */
bool direct_await(struct event *event, uint64_t stream, CUresult *status);

#endif
