/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of every shape.  All become rows: HEIGHT rows of WIDTH bytes on either side, cut into
 * pieces of at most FRAME_CHUNK bytes.  Towards the device each piece is a post: captured from
 * pageable memory, named where it lies in pinned memory.  Towards the host several pieces are
 * asked for at once and written where the app wants them as they come; the whole counts as one
 * round trip.
 */
#include <string.h>

#include "shim/driver/forms.h"
#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/array.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/context.h"
#include "shim/driver/copy.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/graph.h"
#include "shim/engine/driver.h"
#include "shim/engine/past_caches.h"
#include "shim/driver/memory/host.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror.h"
#include "shim/driver/order.h"
#include "shim/engine/session.h"
#include "shim/engine/statistics.h"
#include "shim/engine/status.h"
#include "shim/driver/stream.h"
#include "shim/engine/thread.h"

/* Pieces under way towards the host: enough to keep a link busy over its round trip (6 x 512
 * KiB at 5 GB/s are 0.6 ms), and they fit into the bounce buffer. */
#define COPY_DEPTH 6

/* One slice of a copy. */
struct rows {
	unsigned char *host;
	size_t host_pitch;
	CUdeviceptr device;
	size_t device_pitch;
	size_t width;
	size_t height;
	const struct array *array; /* not NULL: instead of device memory, from byte … */
	size_t x, y, z;		   /* … x of row y of slice z on */
};

struct piece {
	size_t row, column;
	size_t width, rows;
};

/* Rows without gaps on both sides are one row. */
static void rows_join(struct rows *r)
{
	if (r->height > 1 && r->host_pitch == r->width && r->device_pitch == r->width &&
		!r->array) {
		r->width *= r->height;
		r->height = 1;
	}
}

/* The piece at or behind (row, column); false: none left. */
static bool piece_next(const struct rows *r, struct piece *piece, size_t row, size_t column)
{
	if (row >= r->height)
		return false;
	piece->row = row;
	piece->column = column;
	if (r->width > FRAME_CHUNK || r->height == 1) {
		piece->rows = 1;
		piece->width =
			r->width - column < FRAME_CHUNK ? r->width - column : FRAME_CHUNK;
		return true;
	}
	piece->width = r->width;
	piece->rows = FRAME_CHUNK / r->width;
	if (piece->rows > r->height - row)
		piece->rows = r->height - row;
	return true;
}

static void piece_behind(
	const struct rows *r, const struct piece *piece, size_t *row, size_t *column)
{
	*row = piece->row;
	*column = piece->column + piece->width;
	if (*column == r->width) {
		*row += piece->rows;
		*column = 0;
	}
}

static void in_begin(const struct rows *r, struct shim_call *call, const struct piece *piece,
	uint64_t stream)
{
	if (r->array) {
		struct wire_vcudaArrayIn *body =
			shim_begin(call, OP_vcudaArrayIn, sizeof(*body));

		body->array = r->array->handle;
		body->x = r->x + piece->column;
		body->y = r->y + piece->row;
		body->z = r->z;
		body->width = piece->width;
		body->height = piece->rows;
		body->depth = 1;
		body->stream = stream;
	} else {
		struct wire_vcudaCopyIn *body = shim_begin(call, OP_vcudaCopyIn, sizeof(*body));

		body->dst = r->device + piece->row * r->device_pitch + piece->column;
		body->pitch = piece->rows > 1 ? r->device_pitch : piece->width;
		body->width = piece->width;
		body->height = piece->rows;
		body->depth = 1;
		body->stream = stream;
	}
}

static CUresult copy_in(struct rows *r, uint64_t stream, bool later)
{
	size_t row = 0, column = 0;
	struct piece piece;
	uint64_t seq = 0;

	rows_join(r);
	if (host_busy(r->host)) {
		CUresult status = sync_wait(SYNC_STREAM, stream, NULL);

		if (status)
			return status;
	}
	while (piece_next(r, &piece, row, column)) {
		const unsigned char *from = r->host + piece.row * r->host_pitch + piece.column;
		struct shim_call call;
		CUresult status;

		in_begin(r, &call, &piece, stream);
		if (piece.rows > 1)
			shim_payload_rows(&call, from, r->host_pitch, piece.width, piece.rows);
		else if (later)
			shim_payload(&call, from, piece.width);
		else
			shim_payload_captured(&call, from, piece.width);
		status = shim_post(&call);
		if (status)
			return status;
		seq = call.seq;
		piece_behind(r, &piece, &row, &column);
	}
	return later ? CUDA_SUCCESS : order_copied(context_current(), stream, seq);
}

/* ---- towards the host ---- */

struct flight {
	struct shim_call call;
	struct piece piece;
	uint64_t bounce;
	bool direct; /* it lands in the app's own (pinned) memory */
};

static unsigned char *piece_host(const struct rows *r, const struct piece *piece)
{
	return r->host + piece->row * r->host_pitch + piece->column;
}

static void out_begin(const struct rows *r, struct shim_call *call, const struct piece *piece,
	uint32_t segment, uint64_t offset, uint64_t stream)
{
	struct wire_vcudaCopyOut *body;

	if (r->array) {
		struct wire_vcudaArrayOut *out =
			shim_begin(call, OP_vcudaArrayOut, sizeof(*out));

		out->destination.segment = segment;
		out->destination.offset = offset;
		out->array = r->array->handle;
		out->x = r->x + piece->column;
		out->y = r->y + piece->row;
		out->z = r->z;
		out->width = piece->width;
		out->height = piece->rows;
		out->depth = 1;
		out->stream = stream;
		return;
	}
	body = shim_begin(call, OP_vcudaCopyOut, sizeof(*body));
	body->destination.segment = segment;
	body->destination.offset = offset;
	body->src = r->device + piece->row * r->device_pitch + piece->column;
	body->pitch = piece->rows > 1 ? r->device_pitch : piece->width;
	body->width = piece->width;
	body->height = piece->rows;
	body->depth = 1;
	body->stream = stream;
}

/* Sends one piece. False: there is no room now, and nothing was sent (only if !FIRST). */
static bool flight_start(const struct rows *r, struct flight *f, uint64_t stream, bool first)
{
	size_t n = f->piece.width * f->piece.rows;
	struct frame_bulk pinned;
	uint32_t segment = 0;
	CUresult status = CUDA_SUCCESS;

	f->direct = f->piece.rows == 1 && shim_perf & PERF_ZEROCOPY &&
		    shim_pinned(piece_host(r, &f->piece), n, &pinned);
	if (f->direct) {
		segment = pinned.segment;
		f->bounce = pinned.offset;
	} else if (first) {
		status = shim_bounce_get(n, &f->bounce);
	} else if (!shim_bounce_try(n, &f->bounce)) {
		return false;
	}
	out_begin(r, &f->call, &f->piece, segment, f->bounce, stream);
	if (status && !f->call.status)
		f->call.status = status;
	if (first) {
		shim_send(&f->call);
	} else if (!shim_try_send(&f->call)) {
		if (!f->direct)
			shim_bounce_put(f->bounce, n);
		return false;
	}
	return true;
}

/* From the bounce buffer to where the app wants it. */
static void flight_land(const struct rows *r, const struct flight *f)
{
	const unsigned char *from = shim_segment(f->bounce);
	unsigned char *to = piece_host(r, &f->piece);
	bool large = r->width * r->height >= PAST_CACHES_LEAST;

	for (size_t i = 0; i < f->piece.rows; i++) {
		if (large)
			past_caches_copy(to, from, f->piece.width);
		else
			memcpy(to, from, f->piece.width);
		to += r->host_pitch;
		from += f->piece.width;
	}
}

static CUresult flight_end(const struct rows *r, struct flight *f, uint64_t *seq)
{
	size_t n = f->piece.width * f->piece.rows;
	bool answered;

	shim_wait_sent(&f->call, 0);
	answered = f->call.slot != NULL;
	if (!f->call.status && f->call.received != n)
		f->call.status = status_of(CAUSE_VIOLATION);
	if (!f->call.status && !f->direct)
		flight_land(r, f);
	/* Without an answer the bytes may still come: that place is never used again. */
	if (answered && !f->direct)
		shim_bounce_put(f->bounce, n);
	*seq = f->call.seq;
	return shim_end(&f->call);
}

static CUresult copy_out(struct rows *r, uint64_t stream)
{
	struct flight flights[COPY_DEPTH];
	unsigned first = 0, count = 0;
	size_t row = 0, column = 0;
	CUresult status = CUDA_SUCCESS;
	uint64_t seq = 0;

	rows_join(r);
	for (;;) {
		while (!status && count < COPY_DEPTH) {
			struct flight *f = &flights[(first + count) % COPY_DEPTH];

			if (!piece_next(r, &f->piece, row, column) ||
				!flight_start(r, f, stream, !count))
				break;
			piece_behind(r, &f->piece, &row, &column);
			count++;
		}
		if (!count)
			break;
		CUresult ended = flight_end(r, &flights[first], &seq);

		first = (first + 1) % COPY_DEPTH;
		count--;
		if (ended && !status)
			status = ended;
	}
	stats_event(STATS_ROUND_TRIPS);
	if (!status)
		status = mirror_after();
	if (!status)
		stream_synced(stream, seq);
	output_fetch();
	return status;
}

/* To pinned memory, not awaited: it has arrived when a later synchronisation is answered.
 * False: not pinned, or not in one piece a row. */
static bool copy_out_later(struct rows *r, uint64_t stream, CUresult *status)
{
	size_t row = 0, column = 0;
	struct frame_bulk pinned;
	struct piece piece;

	rows_join(r);
	if (!(shim_perf & PERF_ZEROCOPY) || !(shim_perf & PERF_POST) || r->height > 1 ||
		!shim_pinned(r->host, r->width, &pinned))
		return false;
	while (piece_next(r, &piece, row, column)) {
		struct shim_call call;

		out_begin(
			r, &call, &piece, pinned.segment, pinned.offset + piece.column, stream);
		*status = shim_post(&call);
		if (*status)
			break;
		host_written_later(r->host, stream, call.seq);
		piece_behind(r, &piece, &row, &column);
	}
	return true;
}

/* ---- one slice, whatever the direction ---- */

/* Bytes from the first to behind the last. False: overflow. */
static bool copy_extent(const struct shape *s, size_t pitch, size_t slice, size_t *extent)
{
	size_t rows, slices;

	return !__builtin_mul_overflow(s->height - 1, pitch, &rows) &&
	       !__builtin_mul_overflow(s->depth - 1, slice, &slices) &&
	       !__builtin_add_overflow(rows, slices, extent) &&
	       !__builtin_add_overflow(*extent, s->width, extent);
}

bool copy_side_ok(const struct shape *s, uint64_t at, size_t pitch, size_t slice)
{
	size_t extent;

	return copy_extent(s, pitch, slice, &extent) && mirror_reaches(at, extent);
}

/* As natively, no copy runs over the end of memory that the app has registered. */
static bool copy_host_ok(const struct shape *s, uint64_t at, size_t pitch, size_t slice)
{
	struct host_range range;
	size_t extent;

	if (!copy_extent(s, pitch, slice, &extent))
		return false;
	if (!host_maybe(at) || !host_find((const void *)(uintptr_t)at, &range) ||
		!range.registered)
		return true;
	return extent <= range.bytes - (at - copy_address(range.base));
}

static bool copy_registered_ok(const struct shape *s)
{
	return (s->dst_array || copy_host_ok(s, s->dst, s->dst_pitch, s->dst_slice)) &&
	       (s->src_array || copy_host_ok(s, s->src, s->src_pitch, s->src_slice));
}

/* Between the app and memory of a device that is not the stream's.  The agent has each device's
 * memory mapped for that one only, so the owner copies, between what the stream has to do
 * before and what comes after. */
CUresult copy_by_owner(struct shape *s, struct context *owner, uint64_t stream)
{
	CUresult status = sync_wait(SYNC_STREAM, stream, NULL);
	struct context *popped;

	if (status)
		return status;
	if (!thread_push(owner))
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = copy_shape(s, CU_STREAM_LEGACY, false);
	if (!status && s->dst_side != SIDE_HOST && !stream_number(CU_STREAM_LEGACY, &stream))
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
	if (!memory_in_window(s->dst, &dst_device) && memory_in_window(s->src, &src_device))
		dst_device = src_device;
	else if (!memory_in_window(s->src, &src_device))
		src_device = dst_device;
	body = shim_begin(&call, OP_vcudaCopy, sizeof(*body));
	body->dst = s->dst;
	body->dstPitch = s->dst_pitch;
	body->dstSlice = s->dst_slice;
	body->src = s->src;
	body->srcPitch = s->src_pitch;
	body->srcSlice = s->src_slice;
	body->width = s->width;
	body->height = s->height;
	body->depth = s->depth;
	body->dstDevice = device_wire(dst_device);
	body->srcDevice = device_wire(src_device);
	body->stream = stream;
	stats_copy(STATS_DEVICE_TO_DEVICE, s->width * s->height * s->depth);
	return shim_post(&call);
}

/* Between two places of the app's memory: what the stream still has to do may write the source
 * or read the destination, so it is waited for. */
static CUresult copy_host(const struct shape *s, uint64_t stream)
{
	CUresult status = sync_wait(SYNC_STREAM, stream, NULL);

	for (size_t z = 0; !status && z < s->depth; z++)
		for (size_t y = 0; y < s->height; y++)
			memmove((char *)(uintptr_t)s->dst + z * s->dst_slice + y * s->dst_pitch,
				(char *)(uintptr_t)s->src + z * s->src_slice + y * s->src_pitch,
				s->width);
	return status;
}

void copy_tidy(struct shape *s)
{
	if (s->height == 1 && !s->src_array)
		s->src_pitch = s->width;
	if (s->height == 1 && !s->dst_array)
		s->dst_pitch = s->width;
	if (s->depth == 1 && !s->src_array)
		s->src_slice = s->height * s->src_pitch;
	if (s->depth == 1 && !s->dst_array)
		s->dst_slice = s->height * s->dst_pitch;
}

struct part_copy copy_app(const struct shape *s)
{
	bool in = s->src_side == SIDE_HOST;

	return (struct part_copy){.host = in ? s->src : s->dst,
		.host_pitch = in ? s->src_pitch : s->dst_pitch,
		.host_slice = in ? s->src_slice : s->dst_slice,
		.device = in ? s->dst : s->src,
		.device_pitch = in ? s->dst_pitch : s->src_pitch,
		.device_slice = in ? s->dst_slice : s->src_slice,
		.device_array = in ? s->dst_array : s->src_array,
		.width = s->width,
		.height = s->height,
		.depth = s->depth};
}

/* In a graph the app's side is read or written at every launch, pinned or not. */
static CUresult copy_captured(const struct shape *s, struct graph *graph, uint64_t stream,
	CUstream hStream, bool async)
{
	struct part_copy copy = copy_app(s);
	enum part_kind kind = s->dst_side != SIDE_HOST	 ? PART_IN
			      : s->src_side != SIDE_HOST ? PART_OUT
							 : PART_WITHIN;

	if (!async)
		return capture_refuse(stream);
	return part_copy_captured(graph, kind, &copy, hStream);
}

/* The primary context of the device whose memory it is, where that is another than the
 * stream's. */
static struct context *copy_owner(const struct shape *s)
{
	struct context *current = context_current(), *owner;
	int device;

	if (!current || s->src_array || s->dst_array ||
		!memory_in_window(s->src_side == SIDE_DEVICE ? s->src : s->dst, &device) ||
		device == current->device)
		return NULL;
	owner = &devices.at[device].primary;
	return atomic_load(&owner->live) ? owner : NULL;
}

static CUresult copy_between(struct shape *s, CUstream hStream, bool async)
{
	struct context *owner;
	struct graph *graph;
	uint64_t stream;
	CUresult status = stream_number(hStream, &stream);

	if (status || !s->width || !s->height || !s->depth)
		return status;
	copy_tidy(s);
	/* Addresses are unified: what the caller calls the host's may be a device's. */
	if (s->dst_side == SIDE_HOST)
		s->dst_side = copy_side_of(s->dst);
	if (s->src_side == SIDE_HOST)
		s->src_side = copy_side_of(s->src);
	if (s->dst_side == SIDE_DEVICE && !copy_side_ok(s, s->dst, s->dst_pitch, s->dst_slice))
		return CUDA_ERROR_INVALID_VALUE;
	if (s->src_side == SIDE_DEVICE && !copy_side_ok(s, s->src, s->src_pitch, s->src_slice))
		return CUDA_ERROR_INVALID_VALUE;
	if ((s->src_array || s->dst_array) && !copy_arrays_ok(s))
		return CUDA_ERROR_INVALID_VALUE;
	if ((s->dst_side == SIDE_HOST && !s->dst) || (s->src_side == SIDE_HOST && !s->src))
		return CUDA_ERROR_INVALID_VALUE;
	if (session_count > 1 && copy_elsewhere(s))
		return copy_agents(s, stream, async);
	graph = capture_graph(stream);
	if (graph && (s->src_side == SIDE_HOST || s->dst_side == SIDE_HOST))
		return copy_captured(s, graph, stream, hStream, async);
	if (s->src_side != SIDE_HOST && s->dst_side != SIDE_HOST)
		return s->src_array || s->dst_array ? copy_array_inside(s, stream)
						    : copy_device(s, stream);
	if (s->src_side == SIDE_HOST && s->dst_side == SIDE_HOST)
		return copy_host(s, stream);
	owner = copy_owner(s);
	if (owner)
		return copy_by_owner(s, owner, stream);

	bool in = s->dst_side != SIDE_HOST;
	const struct array *array = in ? s->dst_array : s->src_array;

	stats_copy(in ? STATS_HOST_TO_DEVICE : STATS_DEVICE_TO_HOST,
		s->width * s->height * s->depth);
	for (size_t z = 0; z < s->depth && !status; z++) {
		uint64_t dst = s->dst + z * s->dst_slice, src = s->src + z * s->src_slice;
		struct rows r = {.host = (void *)(uintptr_t)(in ? src : dst),
			.host_pitch = in ? s->src_pitch : s->dst_pitch,
			.device = in ? dst : src,
			.device_pitch = in ? s->dst_pitch : s->src_pitch,
			.width = s->width,
			.height = s->height};

		if (array) {
			r.array = array;
			r.host = (unsigned char *)(uintptr_t)(in ? s->src : s->dst) +
				 z * (in ? s->src_slice : s->dst_slice);
			r.x = in ? s->dst : s->src;
			r.y = in ? s->dst_pitch : s->src_pitch;
			r.z = (in ? s->dst_slice : s->src_slice) + z;
		}
		if (in)
			status = copy_in(&r, stream, async);
		else if (!async || !copy_out_later(&r, stream, &status))
			status = copy_out(&r, stream);
	}
	return status;
}

/* Memory that kernels reach is the device's in a copy, which thus reads it, or writes it, when
 * the stream comes to it. True: a side of the copy is such. */
static bool copy_mirrored(struct shape *s)
{
	bool dst, src;

	copy_tidy(s);
	if (s->dst_side == SIDE_DEVICE && !s->dst_array)
		host_named(&s->dst, sizeof(s->dst));
	if (s->src_side == SIDE_DEVICE && !s->src_array)
		host_named(&s->src, sizeof(s->src));
	dst = !s->dst_array && mirror_inside(s->dst, 1) &&
	      copy_side_ok(s, s->dst, s->dst_pitch, s->dst_slice);
	src = !s->src_array && mirror_inside(s->src, 1) &&
	      copy_side_ok(s, s->src, s->src_pitch, s->src_slice);
	if (dst) {
		s->dst_side = SIDE_DEVICE;
		s->dst = mirror_address(s->dst);
	}
	if (src) {
		s->src_side = SIDE_DEVICE;
		s->src = mirror_address(s->src);
	}
	return dst || src;
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
	struct shape s = {.src_side = src_side,
		.dst_side = dst_side,
		.src = src,
		.dst = dst,
		.width = n,
		.height = 1,
		.depth = 1};

	return copy_shape(&s, stream, async);
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

	if (status)
		return status;
	return copy_flat(
		SIDE_DEVICE, dstDevice, SIDE_DEVICE, srcDevice, ByteCount, hStream, true);
}
