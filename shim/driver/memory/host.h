/* SPDX-License-Identifier: Apache-2.0
 *
 * Pinned host memory: segments shared with the sidecar from the start, so that a copy names
 * bytes instead of moving them.  Memory that the app registers itself stays pageable to us.
 */
#ifndef VCUDA_SHIM_DRIVER_MEMORY_HOST_H
#define VCUDA_SHIM_DRIVER_MEMORY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/wire/frame.h"

struct host_range {
	void *base;
	size_t bytes;
	unsigned flags;
	uint64_t id;
	uint16_t context;
	bool registered; /* by cuMemHostRegister: not ours */
};

/* The device will write to this memory: a copy that is not awaited, frame SEQ on STREAM. */
void host_written_later(const void *host, uint64_t stream, uint64_t seq);
/* May the device, or a host function, still write to [host, host + bytes)? Then a copy that
 * reads it must wait for its own stream first: bytes are taken when the copy is posted, not
 * when the stream comes to it. */
bool host_busy(const void *host);

/* The allocation or registration around an address. */
bool host_find(const void *host, struct host_range *range);

#endif
