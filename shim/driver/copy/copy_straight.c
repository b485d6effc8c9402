/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/driver/copy/copy_straight.h"

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/stream/memop.h"
#include "shim/driver/stream/straight.h"
#include "shim/engine/engine.h"
#include "shim/engine/statistics.h"

/* Beyond this it does not matter how long it takes to ask; and of what is larger, not all is
 * looked through for addresses (host_carried). */
#define STRAIGHT_MOST (64u << 10)

/* Nothing of the host's memory is the device's, too, and posts are sent as they are. */
static inline bool straight_on(void)
{
	const unsigned perf = PERF_POST | PERF_ZEROCOPY;

	return (shim_perf & perf) == perf && !mirror_any() && !memop_gates();
}

static CUresult straight_in(uint64_t device, uint64_t stream, const struct frame_bulk *bulk)
{
	CUresult status = CUDA_SUCCESS;
	struct wire_vcudaCopyIn *body =
		shim_post_begin_bulk(OP_vcudaCopyIn, sizeof(*body), bulk, &status);

	if (!body)
		return status;
	*body = (struct wire_vcudaCopyIn){.dst = device,
		.pitch = bulk->length,
		.width = bulk->length,
		.height = 1,
		.depth = 1,
		.stream = stream};
	shim_post_end(OP_vcudaCopyIn);
	return CUDA_SUCCESS;
}

static CUresult straight_out(
	uint64_t device, const void *host, uint64_t stream, const struct frame_bulk *bulk)
{
	CUresult status = CUDA_SUCCESS;
	struct wire_vcudaCopyOut *body =
		shim_post_begin(OP_vcudaCopyOut, sizeof(*body), &status);

	if (!body)
		return status;
	*body = (struct wire_vcudaCopyOut){
		.destination = {.segment = bulk->segment, .offset = bulk->offset},
		.src = device,
		.pitch = bulk->length,
		.width = bulk->length,
		.height = 1,
		.depth = 1,
		.stream = stream};
	host_written_later(host, stream, shim_post_end(OP_vcudaCopyOut));
	return CUDA_SUCCESS;
}

bool copy_straight(
	uint64_t device, uint64_t host, size_t n, bool in, CUstream stream, CUresult *status)
{
	const void *at = (const void *)(uintptr_t)host;
	const struct stream *on;
	struct frame_bulk bulk;
	uint64_t number;

	if (!n || n > STRAIGHT_MOST || !straight_on())
		return false;
	on = stream_straight(stream, &number);
	if (!on || !memory_inside_one(on->context->device, device, n) ||
		!host_lent(at, n, in, &bulk) || (in && host_carries(at, n, device)))
		return false;
	statistics_copy(in ? STATISTICS_HOST_TO_DEVICE : STATISTICS_DEVICE_TO_HOST, n);
	*status = in ? straight_in(device, number, &bulk)
		     : straight_out(device, at, number, &bulk);
	return true;
}
