/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills.  Every extent is checked against what the session owns before the driver
 * sees an address.
 */
#include <string.h>

#include "gpu-agent/worker/driver.h"
#include "gpu-agent/worker/driver/array/array.h"
#include "gpu-agent/worker/driver/copy/copy.h"
#include "gpu-agent/worker/driver/graph/graph.h"
#include "gpu-agent/worker/driver/memory/peer.h"
#include "gpu-agent/worker/loop/fence.h"
#include "gpu-agent/worker/handle.h"
#include "gpu-agent/worker/loop/loop.h"
#include "gpu-agent/worker/staging/staging.h"

/* A slice's rows of a pitch that holds WIDTH bytes. Where a slice is one row its pitch says
 * nothing, and any pitch that divides the slice will do. */
static bool copy_side_lay(
	struct copy_side *side, uint64_t slice, uint64_t width, uint64_t height, uint64_t depth)
{
	if (!width || !height || !depth)
		return false;
	if (height == 1 && (side->pitch < width || (depth > 1 && slice % side->pitch)))
		side->pitch = depth > 1 ? slice : width;
	side->rows = height;
	if (side->pitch < width)
		return false;
	if (depth > 1) {
		side->rows = slice / side->pitch;
		return !(slice % side->pitch) && side->rows >= height;
	}
	return true;
}

/* Bytes from the first to behind the last. False: more than there are addresses. */
static bool copy_side_extent(const struct copy_side *side, uint64_t width, uint64_t height,
	uint64_t depth, uint64_t *extent)
{
	uint64_t rows, slice, slices;

	return !__builtin_mul_overflow(height - 1, side->pitch, &rows) &&
	       !__builtin_mul_overflow(side->rows, side->pitch, &slice) &&
	       !__builtin_mul_overflow(depth - 1, slice, &slices) &&
	       !__builtin_add_overflow(rows, slices, extent) &&
	       !__builtin_add_overflow(*extent, width, extent);
}

/* The side at AT that a call describes, checked; refuses nonsense (a pitch below the width,
 * slices that overlap, an overflow) and memory that the session does not own. */
static struct copy_side copy_side(struct worker *w, struct request *r, uint64_t at,
	uint64_t pitch, uint64_t slice, uint64_t width, uint64_t height, uint64_t depth)
{
	struct copy_side side = {.at = at, .pitch = pitch};
	uint64_t extent;

	if (copy_side_lay(&side, slice, width, height, depth) &&
		copy_side_extent(&side, width, height, depth, &extent))
		worker_range(w, r, at, extent);
	else
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	return side;
}

struct copy_side copy_side_any(struct worker *w, struct request *r, uint64_t array, uint64_t at,
	uint64_t pitch, uint64_t slice, uint64_t width, uint64_t height, uint64_t depth)
{
	if (!array)
		return copy_side(w, r, at, pitch, slice, width, height, depth);
	return (struct copy_side){
		.array = array_box(w, r, array, at, pitch, slice, width, height, depth),
		.at = at,
		.pitch = pitch,
		.rows = slice};
}

static uint64_t copy_packed(const struct worker *w, struct request *r, uint64_t width,
	uint64_t height, uint64_t depth)
{
	uint64_t n;

	if (__builtin_mul_overflow(width, height, &n) || __builtin_mul_overflow(n, depth, &n) ||
		n > worker_payload_most(w)) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return 0;
	}
	return n;
}

static CUDA_MEMCPY3D copy_shape(uint64_t width, uint64_t height, uint64_t depth)
{
	CUDA_MEMCPY3D c;

	memset(&c, 0, sizeof(c));
	c.WidthInBytes = width;
	c.Height = height;
	c.Depth = depth;
	return c;
}

static void copy_from(CUDA_MEMCPY3D *c, const struct copy_side *side)
{
	if (side->array) {
		c->srcMemoryType = CU_MEMORYTYPE_ARRAY;
		c->srcArray = side->array->array;
		c->srcXInBytes = side->at;
		c->srcY = side->pitch;
		c->srcZ = side->rows;
		return;
	}
	c->srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c->srcDevice = side->at;
	c->srcPitch = side->pitch;
	c->srcHeight = side->rows;
}

static void copy_to(CUDA_MEMCPY3D *c, const struct copy_side *side)
{
	if (side->array) {
		c->dstMemoryType = CU_MEMORYTYPE_ARRAY;
		c->dstArray = side->array->array;
		c->dstXInBytes = side->at;
		c->dstY = side->pitch;
		c->dstZ = side->rows;
		return;
	}
	c->dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c->dstDevice = side->at;
	c->dstPitch = side->pitch;
	c->dstHeight = side->rows;
}

static CUresult copy_host_shape(struct worker *w, const struct worker_stream *stream,
	const struct copy_side *side, uint64_t width, uint64_t height, uint64_t depth,
	const void *from, void *to)
{
	CUDA_MEMCPY3D c = copy_shape(width, height, depth);

	if (to) {
		copy_from(&c, side);
		c.dstMemoryType = CU_MEMORYTYPE_HOST;
		c.dstHost = to;
		c.dstPitch = width;
		c.dstHeight = height;
	} else {
		copy_to(&c, side);
		c.srcMemoryType = CU_MEMORYTYPE_HOST;
		c.srcHost = from;
		c.srcPitch = width;
		c.srcHeight = height;
	}
	return w->cuda.cuMemcpy3DAsync(&c, stream->stream);
}

CUresult copy_host(struct worker *w, const struct worker_stream *stream,
	const struct copy_side *side, uint64_t width, uint64_t height, uint64_t depth,
	const void *from, void *to)
{
	if (height != 1 || depth != 1 || side->array)
		return copy_host_shape(w, stream, side, width, height, depth, from, to);
	return to ? w->cuda.cuMemcpyDtoHAsync(to, side->at, width, stream->stream)
		  : w->cuda.cuMemcpyHtoDAsync(side->at, from, width, stream->stream);
}

/* A capture takes no copy that names contexts (NVIDIA's driver: 900). */
static bool copy_captured(const struct worker *w, CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return w->graphs.captures && !w->cuda.cuStreamIsCapturing(stream, &status) &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* One byte over and over: the device writes it by itself. */
static CUresult copy_fill(struct worker *w, const struct request *r,
	const struct worker_stream *stream, const struct copy_side *side, uint64_t width,
	uint64_t height)
{
	unsigned char byte = (unsigned char)(r->fill - 1);

	return height == 1 ? w->cuda.cuMemsetD8Async(side->at, byte, width, stream->stream)
			   : w->cuda.cuMemsetD2D8Async(side->at, side->pitch, byte, width,
				     height, stream->stream);
}

/* From the request's payload to SIDE, which is checked. */
static CUresult copy_in(struct worker *w, struct request *r, struct worker_stream *stream,
	const struct copy_side *side, uint64_t width, uint64_t height, uint64_t depth)
{
	CUresult status;

	if (copy_packed(w, r, width, height, depth) != r->payload_bytes)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	w->stats.copies_in_bytes += r->payload_bytes;
	if (r->fill && !side->array && depth == 1 && !copy_captured(w, stream->stream))
		return copy_fill(w, r, stream, side, width, height);
	if (w->receiver.fill)
		loop_fill_payload(w);
	status = copy_host(w, stream, side, width, height, depth, r->payload, NULL);
	if (!status)
		status = staging_busy(w, w->receiver.range, stream->context, stream->stream);
	return status;
}

CUresult serve_vcudaCopyIn(struct worker *w, struct request *r)
{
	const struct wire_vcudaCopyIn *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct copy_side dst = copy_side(
		w, r, req->dst, req->pitch, req->slice, req->width, req->height, req->depth);

	return copy_in(w, r, stream, &dst, req->width, req->height, req->depth);
}

CUresult serve_vcudaArrayIn(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayIn *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct copy_side dst = copy_side_any(
		w, r, req->array, req->x, req->y, req->z, req->width, req->height, req->depth);

	if (!req->array)
		return CUDA_ERROR_INVALID_HANDLE;
	return copy_in(w, r, stream, &dst, req->width, req->height, req->depth);
}

/* Whether bytes for the same place wait in staging: the GPU must not write there before them.
 */
static bool copy_staged_for(
	const struct worker *w, const struct frame_destination *destination, uint64_t n)
{
	for (const struct pending *p = w->fences.first; p; p = p->next)
		if (p->what == PENDING_COPY_OUT && p->range >= w->out.ranges &&
			p->range < w->out.ranges + STAGING_RANGES &&
			p->destination.segment == destination->segment &&
			p->destination.offset < destination->offset + n &&
			destination->offset < p->destination.offset + p->length)
			return true;
	return false;
}

/* From SIDE, which is checked, to the app's DESTINATION when it is done. */
static CUresult copy_out(struct worker *w, struct request *r, struct worker_stream *stream,
	const struct copy_side *side, uint64_t width, uint64_t height, uint64_t depth,
	const struct frame_destination *destination)
{
	uint64_t n = copy_packed(w, r, width, height, depth);
	struct pending *p;
	CUresult status;

	if (worker_refused(r))
		return r->refused;
	p = fence_new(w, PENDING_COPY_OUT, stream->context);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (w->local.is && !copy_staged_for(w, destination, n))
		p->range = local_place(w, destination, (uint32_t)n, &p->bytes);
	/* The loop has made sure that there is room (loop_call). */
	if (!p->range)
		p->range = staging_alloc(w, &w->out, (uint32_t)n, &p->bytes);
	if (!p->range) {
		fence_free(w, p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	status = copy_host(w, stream, side, width, height, depth, NULL, p->bytes);
	if (!status)
		status = fence_stream(w, p, stream);
	if (status) {
		staging_done(p->range);
		fence_free(w, p);
		return status;
	}
	p->destination = *destination;
	p->length = (uint32_t)n;
	p->tag = r->header.tag;
	p->post = r->header.kind == FRAME_POST;
	fence_push(w, p);
	r->later = true;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaCopyOut(struct worker *w, struct request *r)
{
	const struct wire_vcudaCopyOut *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct copy_side src = copy_side(
		w, r, req->src, req->pitch, req->slice, req->width, req->height, req->depth);

	return copy_out(
		w, r, stream, &src, req->width, req->height, req->depth, &req->destination);
}

CUresult serve_vcudaArrayOut(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayOut *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	struct copy_side src = copy_side_any(
		w, r, req->array, req->x, req->y, req->z, req->width, req->height, req->depth);

	if (!req->array)
		return CUDA_ERROR_INVALID_HANDLE;
	return copy_out(
		w, r, stream, &src, req->width, req->height, req->depth, &req->destination);
}

CUresult serve_vcudaArrayCopy(struct worker *w, struct request *r)
{
	const struct wire_vcudaArrayCopy *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	CUDA_MEMCPY3D c;

	copy_describe(w, r, worker_in(r, &req->copy, sizeof(struct graph_copy)), &c);
	if (worker_refused(r))
		return r->refused;
	return w->cuda.cuMemcpy3DAsync(&c, stream);
}

/* One row on a device. Host memory that was registered in parts is copied in parts. */
static CUresult copy_row(
	struct worker *w, uint64_t dst, uint64_t src, uint64_t bytes, CUstream stream)
{
	CUresult status = CUDA_SUCCESS;

	for (uint64_t at = 0, n; at < bytes && !status; at += n) {
		n = mirror_part(w, dst + at, mirror_part(w, src + at, bytes - at));
		status = w->cuda.cuMemcpyDtoDAsync(dst + at, src + at, n, stream);
	}
	return status;
}

CUresult serve_vcudaCopy(struct worker *w, struct request *r)
{
	const struct wire_vcudaCopy *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	struct copy_side dst = copy_side(w, r, req->dst, req->dstPitch, req->dstSlice,
		req->width, req->height, req->depth);
	struct copy_side src = copy_side(w, r, req->src, req->srcPitch, req->srcSlice,
		req->width, req->height, req->depth);
	bool between = req->dstDevice != req->srcDevice;
	CUDA_MEMCPY3D c;

	if (req->dstDevice < 0 || (uint32_t)req->dstDevice >= w->device_count ||
		req->srcDevice < 0 || (uint32_t)req->srcDevice >= w->device_count)
		worker_refuse(r, CUDA_ERROR_INVALID_DEVICE);
	if (worker_refused(r))
		return r->refused;
	if (between && copy_captured(w, stream)) {
		CUresult status = peer_captures(w, req->dst, req->src);

		if (status)
			return status;
		between = false;
	}
	if (req->height == 1 && req->depth == 1 && !between)
		return copy_row(w, req->dst, req->src, req->width, stream);
	if (req->height == 1 && req->depth == 1)
		return w->cuda.cuMemcpyPeerAsync(req->dst, w->devices[req->dstDevice].primary,
			req->src, w->devices[req->srcDevice].primary, req->width, stream);
	c = copy_shape(req->width, req->height, req->depth);
	copy_from(&c, &src);
	copy_to(&c, &dst);
	if (between) {
		CUDA_MEMCPY3D_PEER peer;

		memset(&peer, 0, sizeof(peer));
		peer.srcMemoryType = peer.dstMemoryType = CU_MEMORYTYPE_DEVICE;
		peer.srcDevice = c.srcDevice;
		peer.srcPitch = c.srcPitch;
		peer.srcHeight = c.srcHeight;
		peer.srcContext = w->devices[req->srcDevice].primary;
		peer.dstDevice = c.dstDevice;
		peer.dstPitch = c.dstPitch;
		peer.dstHeight = c.dstHeight;
		peer.dstContext = w->devices[req->dstDevice].primary;
		peer.WidthInBytes = c.WidthInBytes;
		peer.Height = c.Height;
		peer.Depth = c.Depth;
		return w->cuda.cuMemcpy3DPeerAsync(&peer, stream);
	}
	return w->cuda.cuMemcpy3DAsync(&c, stream);
}

void copy_describe(
	struct worker *w, struct request *r, const struct graph_copy *from, CUDA_MEMCPY3D *copy)
{
	struct copy_side dst = copy_side_any(w, r, from->dst_array, from->dst, from->dst_pitch,
		from->dst_slice, from->width, from->height, from->depth);
	struct copy_side src = copy_side_any(w, r, from->src_array, from->src, from->src_pitch,
		from->src_slice, from->width, from->height, from->depth);
	CUresult status;

	*copy = copy_shape(from->width, from->height, from->depth);
	if (worker_refused(r))
		return;
	status = peer_captures(w, dst.array ? w->devices[dst.array->device].window : dst.at,
		src.array ? w->devices[src.array->device].window : src.at);
	if (status) {
		worker_refuse(r, status);
		return;
	}
	copy_from(copy, &src);
	copy_to(copy, &dst);
}

void copy_check_fill(struct worker *w, struct request *r, uint64_t at, uint64_t pitch,
	uint32_t element, uint64_t width, uint64_t height)
{
	uint64_t row;

	if ((element == 1 || element == 2 || element == 4) &&
		!__builtin_mul_overflow(width, (uint64_t)element, &row))
		copy_side(w, r, at, pitch, 0, row, height, 1);
	else
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
}

CUresult serve_vcudaFill(struct worker *w, struct request *r)
{
	const struct wire_vcudaFill *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	bool flat = req->height <= 1;

	copy_check_fill(w, r, req->dst, req->pitch, req->element, req->width, req->height);
	if (worker_refused(r))
		return r->refused;
	switch (req->element) {
	case 1:
		return flat ? w->cuda.cuMemsetD8Async(
				      req->dst, (unsigned char)req->value, req->width, stream)
			    : w->cuda.cuMemsetD2D8Async(req->dst, req->pitch,
				      (unsigned char)req->value, req->width, req->height,
				      stream);
	case 2:
		return flat ? w->cuda.cuMemsetD16Async(
				      req->dst, (unsigned short)req->value, req->width, stream)
			    : w->cuda.cuMemsetD2D16Async(req->dst, req->pitch,
				      (unsigned short)req->value, req->width, req->height,
				      stream);
	default:
		return flat ? w->cuda.cuMemsetD32Async(req->dst, req->value, req->width, stream)
			    : w->cuda.cuMemsetD2D32Async(req->dst, req->pitch, req->value,
				      req->width, req->height, stream);
	}
}
