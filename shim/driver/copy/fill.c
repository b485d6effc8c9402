/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills: all of them are posts, also those that CUDA calls synchronous, since they are
 * asynchronous to the host there too, but for host memory.
 */
#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/device/peer.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/thread.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/memory/pools/pool.h"

/* Nor does a fill run over the end of managed memory, behind which the program may have no
 * page. */
static bool fill_managed_ok(CUdeviceptr dst, size_t extent)
{
	struct managed_range range;

	if (!managed_any)
		return true;
	if (!managed_find(dst, &range))
		return !managed_gap(dst);
	return range.variable || extent <= range.bytes - (dst - range.base);
}

/* A kernel of the driver's fills, which wants access as all do: to another device's memory
 * (INVALID_VALUE on two H100s), and to a pool's pinned memory (the same on an H200). */
static bool fill_reaches(const struct context *context, CUdeviceptr dst)
{
	struct host_range range;

	if (host_maybe(dst) && host_find((void *)(uintptr_t)dst, &range) &&
		(range.pooled || range.mapped))
		return range.mapped ? range.writers >> context->device & 1
				    : pool_lets((uintptr_t)range.base, context->device);
	return managed_reached(context, dst) || peer_reaches(context, dst);
}

static CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, CUstream stream)
{
	const struct stream *found;
	size_t row, extent;
	uint64_t number;
	CUresult status = stream_number(stream, &number);

	if (status || !width || !height)
		return status;
	if (height == 1)
		pitch = 0;
	if (host_any())
		host_named(&dst, sizeof(dst));
	if (dst % element || pitch % element || __builtin_mul_overflow(width, element, &row) ||
		(height > 1 && pitch < row) ||
		__builtin_mul_overflow(height - 1, pitch, &extent) ||
		__builtin_add_overflow(extent, row, &extent) || !mirror_reaches(dst, extent) ||
		!fill_managed_ok(dst, extent))
		return CUDA_ERROR_INVALID_VALUE;
	found = stream_find(number);
	if (found && !fill_reaches(found->context, dst))
		return CUDA_ERROR_INVALID_VALUE;
	status = mirror_before();
	if (status)
		return status;
	return send_vcudaFill(
		mirror_address(dst), pitch, value, element, width, height, number);
}

/* HEIGHT rows of WIDTH elements, PITCH bytes apart. */
CUresult fill_memory(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, CUstream stream)
{
	struct managed_named named;
	CUresult status = managed_name(stream, dst, &named);

	if (!status)
		status = fill(dst, pitch, value, element, width, height, stream);
	managed_name_end(&named);
	return status;
}

CUresult fill_memory_awaited(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element,
	size_t width, size_t height, CUstream stream)
{
	CUresult status = fill_memory(dst, pitch, value, element, width, height, stream);
	uint64_t number;

	if (status || !mirror_inside(dst, 1))
		return status;
	status = stream_number(stream, &number);
	return status ? status : sync_wait(SYNC_STREAM, number, NULL);
}
