/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of every shape: which way one goes.  Between the app and the device they become rows
 * (copy_rows.c).
 */
#include <string.h>

#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/array/array.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/context/context.h"
#include "shim/driver/copy/copy.h"
#include "shim/driver/copy/copy_rows.h"
#include "shim/driver/copy/copy_straight.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/graph.h"
#include "shim/engine/driver.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"
#include "shim/driver/stream/memop.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/device/peer.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/thread.h"

/* ---- one slice, whatever the direction ---- */

/* Bytes from the first to behind the last. False: overflow. */
static bool copy_extent(const struct shape *s, const struct copy_place *place, size_t *extent)
{
	size_t rows, slices;

	return !__builtin_mul_overflow(s->height - 1, place->pitch, &rows) &&
	       !__builtin_mul_overflow(s->depth - 1, place->slice, &slices) &&
	       !__builtin_add_overflow(rows, slices, extent) &&
	       !__builtin_add_overflow(*extent, s->width, extent);
}

bool copy_place_ok(const struct shape *s, const struct copy_place *place)
{
	size_t extent;

	return copy_extent(s, place, &extent) && mirror_reaches(place->at, extent);
}

/* As natively, no copy runs over the end of memory that the app has registered: of the one that
 * the descriptor names, wherever in it the copy begins. */
static bool copy_host_ok(const struct shape *s, const struct copy_place *place)
{
	const uint64_t named = place->at - place->before;
	struct host_range range;
	size_t extent;

	if (!copy_extent(s, place, &extent) ||
		__builtin_add_overflow(extent, place->before, &extent))
		return false;
	if (!host_maybe(named) || !host_find((const void *)(uintptr_t)named, &range))
		return true;
	if (range.mapped)
		return host_mapped_all((const void *)(uintptr_t)named, extent);
	if (!range.registered)
		return true;
	return extent <= range.bytes - (named - copy_address(range.base));
}

/* Nor over the end of managed memory, behind which the program may have no page. */
static bool copy_managed_ok(const struct shape *s, const struct copy_place *place)
{
	struct managed_range range;
	size_t extent;

	if (place->array || !managed_find(place->at, &range) || range.variable)
		return true;
	return copy_extent(s, place, &extent) &&
	       extent <= range.bytes - (place->at - range.base);
}

static bool copy_registered_ok(const struct shape *s)
{
	return (s->dst.array || copy_host_ok(s, &s->dst)) &&
	       (s->src.array || copy_host_ok(s, &s->src));
}

/* Between the app and memory of a device that is not the stream's, or within such memory.  The
 * agent has each device's memory mapped for that one only, so the owner copies, between what
 * the stream has to do before and what comes after. */
CUresult copy_by_owner(struct shape *s, struct context *owner, uint64_t stream)
{
	CUresult status = sync_wait(SYNC_STREAM, stream, NULL);
	struct context *popped;

	if (status)
		return status;
	if (!thread_push(owner))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = copy_shape(s, CU_STREAM_LEGACY, false);
	if (!status && s->dst.side != SIDE_HOST && !stream_number(CU_STREAM_LEGACY, &stream))
		status = sync_wait(SYNC_STREAM, stream, NULL);
	thread_pop(&popped);
	return status;
}

static CUresult copy_device(const struct shape *s, uint64_t stream)
{
	struct shim_call call;
	struct wire_vcudaCopy *body;
	int dst_device = 0, src_device = 0;

	/* The mirror is every device's. */
	if (!memory_in_window(s->dst.at, &dst_device) &&
		memory_in_window(s->src.at, &src_device))
		dst_device = src_device;
	else if (!memory_in_window(s->src.at, &src_device))
		src_device = dst_device;
	body = shim_begin(&call, OP_vcudaCopy, sizeof(*body));
	body->dst = s->dst.at;
	body->dstPitch = s->dst.pitch;
	body->dstSlice = s->dst.slice;
	body->src = s->src.at;
	body->srcPitch = s->src.pitch;
	body->srcSlice = s->src.slice;
	body->width = s->width;
	body->height = s->height;
	body->depth = s->depth;
	body->dstDevice = device_wire(dst_device);
	body->srcDevice = device_wire(src_device);
	body->stream = stream;
	statistics_copy(STATISTICS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	return shim_post(&call);
}

/* Between two places of the app's memory: what the stream still has to do may write the source
 * or read the destination, so it is waited for. */
static CUresult copy_host(const struct shape *s, uint64_t stream)
{
	CUresult status = sync_wait(SYNC_STREAM, stream, NULL);

	for (size_t z = 0; !status && z < s->depth; z++)
		for (size_t y = 0; y < s->height; y++)
			memmove((char *)(uintptr_t)s->dst.at + z * s->dst.slice +
					y * s->dst.pitch,
				(char *)(uintptr_t)s->src.at + z * s->src.slice +
					y * s->src.pitch,
				s->width);
	return status;
}

static void tidy(const struct shape *s, struct copy_place *place)
{
	if (place->array)
		return;
	if (s->height == 1)
		place->pitch = s->width;
	if (s->depth == 1)
		place->slice = s->height * place->pitch;
}

void copy_tidy(struct shape *s)
{
	tidy(s, &s->src);
	tidy(s, &s->dst);
}

struct part_copy copy_app(const struct shape *s)
{
	const bool in = s->src.side == SIDE_HOST;
	const struct copy_place *host = in ? &s->src : &s->dst,
				*device = in ? &s->dst : &s->src;

	return (struct part_copy){.host = host->at,
		.host_pitch = host->pitch,
		.host_slice = host->slice,
		.device = device->at,
		.device_pitch = device->pitch,
		.device_slice = device->slice,
		.device_array = device->array,
		.width = s->width,
		.height = s->height,
		.depth = s->depth};
}

static bool place_device(const struct copy_place *place, int *device)
{
	if (!place->array)
		return memory_in_window(place->at, device);
	*device = place->array->context->device;
	return true;
}

/* Whose work a copy of that memory on another device is in order with: the context's that the
 * memory goes with, or the device's primary one's. */
static struct context *place_context(const struct copy_place *place, int device)
{
	struct memory_range range;
	uint64_t handle = 0;

	if (!place->array && memory_find(place->at, &range))
		handle = pointer_context_by_number(range.context);
	return handle ? context_of((CUcontext)(uintptr_t)handle) : &devices.at[device].primary;
}

/* Within the agent's memory. One that CUDA calls synchronous, and one in the default stream, is
 * in order with what the devices of both sides have to do, whichever is current. */
static CUresult copy_on_agent(const struct shape *s, uint64_t stream, bool async)
{
	const struct copy_place *const places[] = {&s->src, &s->dst};
	struct context *current = context_current(), *other;
	bool elsewhere = false;
	CUresult status;
	int device;

	for (int i = 0; i < 2 && (!async || !stream) && devices.count > 1; i++) {
		if (!place_device(places[i], &device) || device == current->device)
			continue;
		other = place_context(places[i], device);
		status = atomic_load(&other->live) ? order_after(other, stream) : CUDA_SUCCESS;
		if (status)
			return status;
		elsewhere = true;
	}
	status = s->src.array || s->dst.array ? copy_array_inside(s, stream)
					      : copy_device(s, stream);
	return status || !elsewhere ? status : order_copied(current, stream, shim_sequence());
}

/* In a graph the app's side is read or written at every launch, pinned or not. */
static CUresult copy_captured(const struct shape *s, struct graph *graph, uint64_t stream,
	CUstream hStream, bool async)
{
	struct part_copy copy = copy_app(s);
	enum part_kind kind = s->dst.side != SIDE_HOST	 ? PART_IN
			      : s->src.side != SIDE_HOST ? PART_OUT
							 : PART_WITHIN;

	if (!async)
		return capture_refuse(stream);
	return part_copy_captured(graph, kind, &copy, hStream);
}

/* The primary context of the device whose memory it is, where that is one other than the
 * stream's. */
static struct context *copy_owner(const struct shape *s, uint64_t number)
{
	const struct stream *stream;
	const struct context *copies;
	struct context *owner;
	int device, other;

	if (devices.count == 1 || s->src.array || s->dst.array ||
		!memory_in_window(s->src.side == SIDE_DEVICE ? s->src.at : s->dst.at, &device))
		return NULL;
	/* A copy goes by any device's stream, whichever is current. */
	stream = number ? stream_find(number) : NULL;
	copies = stream ? stream->context : context_current();
	if (!copies || device == copies->device)
		return NULL;
	if (s->src.side == SIDE_DEVICE && s->dst.side == SIDE_DEVICE &&
		(!memory_in_window(s->dst.at, &other) || other != device ||
			(peer_reaches(copies, s->dst.at) && peer_reaches(copies, s->src.at))))
		return NULL;
	owner = &devices.at[device].primary;
	return atomic_load(&owner->live) ? owner : NULL;
}

static CUresult copy_sided(struct shape *s, CUstream hStream, bool async)
{
	struct context *owner;
	struct graph *graph;
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);

	if (status || !s->width || !s->height || !s->depth)
		return status;
	copy_tidy(s);
	/* Addresses are unified: what the caller calls the host's may be a device's. */
	if (s->dst.side == SIDE_HOST)
		s->dst.side = copy_side_of(s->dst.at);
	if (s->src.side == SIDE_HOST)
		s->src.side = copy_side_of(s->src.at);
	if (s->dst.side == SIDE_DEVICE && !copy_place_ok(s, &s->dst))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->src.side == SIDE_DEVICE && !copy_place_ok(s, &s->src))
		return CUDA_ERROR_INVALID_VALUE;
	if (managed_any && (!copy_managed_ok(s, &s->dst) || !copy_managed_ok(s, &s->src)))
		return CUDA_ERROR_INVALID_VALUE;
	if ((s->src.array || s->dst.array) && !copy_arrays_ok(s))
		return CUDA_ERROR_INVALID_VALUE;
	if ((s->dst.side == SIDE_HOST && !s->dst.at) ||
		(s->src.side == SIDE_HOST && !s->src.at))
		return CUDA_ERROR_INVALID_VALUE;
	if (session_count > 1 && copy_elsewhere(s))
		return copy_agents(s, stream, async);
	graph = capture_graph(stream);
	if (graph && (s->src.side == SIDE_HOST || s->dst.side == SIDE_HOST))
		return copy_captured(s, graph, stream, hStream, async);
	if (s->src.side != SIDE_HOST && s->dst.side != SIDE_HOST) {
		owner = graph ? NULL : copy_owner(s, stream);
		return owner ? copy_by_owner(s, owner, stream)
			     : copy_on_agent(s, stream, async);
	}
	if (s->src.side == SIDE_HOST && s->dst.side == SIDE_HOST)
		return copy_host(s, stream);
	owner = copy_owner(s, stream);
	if (owner)
		return copy_by_owner(s, owner, stream);

	bool in = s->dst.side != SIDE_HOST;
	const struct array *array = in ? s->dst.array : s->src.array;

	statistics_copy(in ? STATISTICS_HOST_TO_DEVICE : STATISTICS_DEVICE_TO_HOST,
		s->width * s->height * s->depth);
	for (size_t z = 0; z < s->depth && !status; z++) {
		uint64_t dst = s->dst.at + z * s->dst.slice, src = s->src.at + z * s->src.slice;
		struct rows r = {.host = (void *)(uintptr_t)(in ? src : dst),
			.host_pitch = in ? s->src.pitch : s->dst.pitch,
			.device = in ? dst : src,
			.device_pitch = in ? s->dst.pitch : s->src.pitch,
			.width = s->width,
			.height = s->height};

		if (array) {
			r.array = array;
			r.host = (unsigned char *)(uintptr_t)(in ? s->src.at : s->dst.at) +
				 z * (in ? s->src.slice : s->dst.slice);
			r.x = in ? s->dst.at : s->src.at;
			r.y = in ? s->dst.pitch : s->src.pitch;
			r.z = (in ? s->dst.slice : s->src.slice) + z;
		}
		if (in)
			status = copy_in(&r, stream, async);
		else if (!async || !copy_out_later(&r, stream, &status))
			status = copy_out(&r, stream);
	}
	return status;
}

static uint64_t copy_named(const struct copy_place *place)
{
	return place->array ? 0 : place->at;
}

static CUresult copy_between(struct shape *s, CUstream hStream, bool async)
{
	struct managed_named dst = {0}, src = {0};
	CUresult status;

	if (__builtin_expect(!managed_any, 1))
		return copy_sided(s, hStream, async);
	status = managed_name(hStream, copy_named(&s->dst), &dst);
	if (!status)
		status = managed_name(hStream, copy_named(&s->src), &src);
	if (!status)
		status = copy_sided(s, hStream, async);
	managed_name_end(&src);
	managed_name_end(&dst);
	return status;
}

bool copy_mirrored(struct shape *s)
{
	bool dst, src;

	copy_tidy(s);
	if (s->dst.side == SIDE_DEVICE && !s->dst.array)
		host_named(&s->dst.at, sizeof(s->dst.at));
	if (s->src.side == SIDE_DEVICE && !s->src.array)
		host_named(&s->src.at, sizeof(s->src.at));
	/* The program may mean to write it before it lets the stream go on. */
	if (s->src.side == SIDE_HOST && memop_gates())
		host_named(&s->src.at, sizeof(s->src.at));
	dst = !s->dst.array && mirror_inside(s->dst.at, 1) && copy_place_ok(s, &s->dst);
	src = !s->src.array && mirror_inside(s->src.at, 1) && copy_place_ok(s, &s->src);
	if (dst) {
		s->dst.side = SIDE_DEVICE;
		s->dst.at = mirror_address(s->dst.at);
	}
	if (src) {
		s->src.side = SIDE_DEVICE;
		s->src.at = mirror_address(s->src.at);
	}
	return dst || src;
}

/* What goes to the device may have addresses of pinned memory in it: a kernel finds them there.
 */
static void copy_carries(const struct shape *s)
{
	struct managed_range managed;

	if (!host_idle() || s->src.side != SIDE_HOST || s->dst.array || !s->src.at ||
		copy_side_of(s->src.at) != SIDE_HOST || managed_find(s->src.at, &managed))
		return;
	for (size_t z = 0; z < s->depth; z++)
		for (size_t y = 0; y < s->height; y++)
			host_carried((void *)(uintptr_t)(s->src.at + z * s->src.slice +
							 y * s->src.pitch),
				s->width, s->dst.at + z * s->dst.slice + y * s->dst.pitch,
				s->width * s->height * s->depth);
}

CUresult copy_shape(struct shape *s, CUstream hStream, bool async)
{
	uint64_t stream;
	CUresult status;

	if (!host_any() || !s->width || !s->height || !s->depth)
		return copy_between(s, hStream, async);
	status = stream_number(hStream, &stream);
	if (status)
		return status;
	if (!copy_registered_ok(s))
		return CUDA_ERROR_INVALID_VALUE;
	copy_carries(s);
	if (!copy_mirrored(s))
		return copy_between(s, hStream, async);
	status = mirror_push();
	if (!status)
		status = copy_between(s, hStream, async);
	if (status || async)
		return status;
	status = stream_number(hStream, &stream);
	return status ? status : sync_wait(SYNC_STREAM, stream, NULL);
}

enum side copy_side_of(uint64_t address)
{
	int device;

	return memory_in_window(address, &device) ? SIDE_DEVICE : SIDE_HOST;
}

CUresult copy_flat(enum side dst_side, uint64_t dst, enum side src_side, uint64_t src, size_t n,
	CUstream stream, bool async)
{
	CUresult status;

	if (async && src_side != dst_side &&
		copy_straight(src_side == SIDE_HOST ? dst : src,
			src_side == SIDE_HOST ? src : dst, n, src_side == SIDE_HOST, stream,
			&status))
		return status;
	return copy_shape(&(struct shape){.src = {.side = src_side, .at = src},
				  .dst = {.side = dst_side, .at = dst},
				  .width = n,
				  .height = 1,
				  .depth = 1},
		stream, async);
}

static CUresult peers_check(CUcontext dst, CUcontext src)
{
	const CUcontext both[] = {dst, src};

	for (int i = 0; i < 2; i++) {
		const struct context *context = both[i] ? context_of(both[i]) : NULL;

		if (both[i] && !context)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (context && !atomic_load(&context->live))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	return CUDA_SUCCESS;
}

CUresult hand_cuMemcpyPeer(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
	CUcontext srcContext, size_t ByteCount, CUstream null_stream)
{
	CUresult status = peers_check(dstContext, srcContext);

	if (status)
		return status;
	return copy_flat(
		SIDE_DEVICE, dstDevice, SIDE_DEVICE, srcDevice, ByteCount, null_stream, false);
}

CUresult hand_cuMemcpyPeerAsync(CUdeviceptr dstDevice, CUcontext dstContext,
	CUdeviceptr srcDevice, CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	CUresult status = peers_check(dstContext, srcContext);
	uint64_t stream;

	if (!status)
		status = stream_number(hStream, &stream);
	if (!status)
		status = capture_refuse(stream); /* natively, too: it names contexts */
	if (status)
		return status;
	return copy_flat(
		SIDE_DEVICE, dstDevice, SIDE_DEVICE, srcDevice, ByteCount, hStream, true);
}
