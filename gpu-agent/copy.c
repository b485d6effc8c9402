/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and fills.  Every extent is checked against what the session owns before the driver
 * sees an address.
 */
#include <string.h>

#include "gpu-agent/graph.h"

/* Bytes from the first to behind the last byte of depth x height rows of `width`; refuses
 * nonsense (a pitch below the width, a slice that overlaps, an overflow). */
static uint64_t copy_extent(struct request *r, uint64_t pitch, uint64_t slice, uint64_t width,
	uint64_t height, uint64_t depth)
{
	uint64_t rows, slices, n;

	if (!width || !height || !depth || (height > 1 && pitch < width) ||
		(depth > 1 &&
			(slice < pitch || !pitch || slice % pitch || slice / pitch < height)) ||
		__builtin_mul_overflow(height - 1, pitch, &rows) ||
		__builtin_mul_overflow(depth - 1, slice, &slices) ||
		__builtin_add_overflow(rows, slices, &n) ||
		__builtin_add_overflow(n, width, &n)) {
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
		return 0;
	}
	return n;
}

static uint64_t copy_packed(struct request *r, uint64_t width, uint64_t height, uint64_t depth)
{
	uint64_t n;

	if (__builtin_mul_overflow(width, height, &n) || __builtin_mul_overflow(n, depth, &n) ||
		n > FRAME_PAYLOAD_MAX) {
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

static void copy_device_side(CUdeviceptr *address, size_t *pitch, size_t *rows, uint64_t at,
	uint64_t want_pitch, uint64_t slice, uint64_t width, uint64_t height)
{
	*address = at;
	*pitch = height > 1 || want_pitch >= width ? want_pitch : width;
	*rows = slice && *pitch ? slice / *pitch : height;
	if (*rows < height)
		*rows = height;
}

CUresult serve_vcudaCopyIn(struct worker *w, struct request *r)
{
	const struct wire_vcudaCopyIn *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	uint64_t extent =
		copy_extent(r, req->pitch, req->slice, req->width, req->height, req->depth);
	CUresult status;

	worker_range(w, r, req->dst, extent);
	if (copy_packed(r, req->width, req->height, req->depth) != r->payload_bytes)
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	if (worker_refused(r))
		return r->refused;
	w->stats.copies_in_bytes += r->payload_bytes;
	if (req->height == 1 && req->depth == 1) {
		status = w->cuda.cuMemcpyHtoDAsync(
			req->dst, r->payload, req->width, stream->stream);
	} else {
		CUDA_MEMCPY3D c = copy_shape(req->width, req->height, req->depth);

		c.srcMemoryType = CU_MEMORYTYPE_HOST;
		c.srcHost = r->payload;
		c.srcPitch = req->width;
		c.srcHeight = req->height;
		c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
		copy_device_side(&c.dstDevice, &c.dstPitch, &c.dstHeight, req->dst, req->pitch,
			req->slice, req->width, req->height);
		status = w->cuda.cuMemcpy3DAsync(&c, stream->stream);
	}
	if (!status)
		status = staging_busy(w, w->frame_range, stream->context, stream->stream);
	return status;
}

CUresult serve_vcudaCopyOut(struct worker *w, struct request *r)
{
	const struct wire_vcudaCopyOut *req = (const void *)r->body;
	struct worker_stream *stream = worker_stream_object(w, r, req->stream);
	uint64_t extent =
		copy_extent(r, req->pitch, req->slice, req->width, req->height, req->depth);
	uint64_t n = copy_packed(r, req->width, req->height, req->depth);
	struct pending *p;
	CUresult status;

	worker_range(w, r, req->src, extent);
	if (worker_refused(r))
		return r->refused;
	p = fence_new(w, PENDING_COPY_OUT, stream->context);
	if (!p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* The loop has made sure that there is room (loop_can_serve). */
	p->range = staging_take(w, &w->out, (uint32_t)n, &p->bytes);
	if (!p->range) {
		fence_free(w, p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (req->height == 1 && req->depth == 1) {
		status = w->cuda.cuMemcpyDtoHAsync(
			p->bytes, req->src, req->width, stream->stream);
	} else {
		CUDA_MEMCPY3D c = copy_shape(req->width, req->height, req->depth);

		c.dstMemoryType = CU_MEMORYTYPE_HOST;
		c.dstHost = p->bytes;
		c.dstPitch = req->width;
		c.dstHeight = req->height;
		c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
		copy_device_side(&c.srcDevice, &c.srcPitch, &c.srcHeight, req->src, req->pitch,
			req->slice, req->width, req->height);
		status = w->cuda.cuMemcpy3DAsync(&c, stream->stream);
	}
	if (!status)
		status = fence_stream(w, p, stream);
	if (status) {
		staging_done(p->range);
		fence_free(w, p);
		return status;
	}
	p->landing = req->landing;
	p->length = (uint32_t)n;
	p->tag = r->header.tag;
	p->post = r->header.kind == FRAME_POST;
	fence_push(w, p);
	r->later = true;
	return CUDA_SUCCESS;
}

CUresult serve_vcudaCopy(struct worker *w, struct request *r)
{
	const struct wire_vcudaCopy *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	uint64_t dst = copy_extent(
		r, req->dstPitch, req->dstSlice, req->width, req->height, req->depth);
	uint64_t src = copy_extent(
		r, req->srcPitch, req->srcSlice, req->width, req->height, req->depth);
	CUDA_MEMCPY3D c;

	worker_range(w, r, req->dst, dst);
	worker_range(w, r, req->src, src);
	if (req->dstDevice < 0 || (uint32_t)req->dstDevice >= w->device_count ||
		req->srcDevice < 0 || (uint32_t)req->srcDevice >= w->device_count)
		worker_refuse(r, CUDA_ERROR_INVALID_DEVICE);
	if (worker_refused(r))
		return r->refused;
	if (req->height == 1 && req->depth == 1) {
		if (req->dstDevice == req->srcDevice)
			return w->cuda.cuMemcpyDtoDAsync(
				req->dst, req->src, req->width, stream);
		return w->cuda.cuMemcpyPeerAsync(req->dst, w->devices[req->dstDevice].primary,
			req->src, w->devices[req->srcDevice].primary, req->width, stream);
	}
	c = copy_shape(req->width, req->height, req->depth);
	c.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy_device_side(&c.srcDevice, &c.srcPitch, &c.srcHeight, req->src, req->srcPitch,
		req->srcSlice, req->width, req->height);
	copy_device_side(&c.dstDevice, &c.dstPitch, &c.dstHeight, req->dst, req->dstPitch,
		req->dstSlice, req->width, req->height);
	if (req->dstDevice != req->srcDevice) {
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
	uint64_t dst = copy_extent(
		r, from->dst_pitch, from->dst_slice, from->width, from->height, from->depth);
	uint64_t src = copy_extent(
		r, from->src_pitch, from->src_slice, from->width, from->height, from->depth);

	worker_range(w, r, from->dst, dst);
	worker_range(w, r, from->src, src);
	*copy = copy_shape(from->width, from->height, from->depth);
	copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy->dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy_device_side(&copy->srcDevice, &copy->srcPitch, &copy->srcHeight, from->src,
		from->src_pitch, from->src_slice, from->width, from->height);
	copy_device_side(&copy->dstDevice, &copy->dstPitch, &copy->dstHeight, from->dst,
		from->dst_pitch, from->dst_slice, from->width, from->height);
}

CUresult serve_vcudaFill(struct worker *w, struct request *r)
{
	const struct wire_vcudaFill *req = (const void *)r->body;
	CUstream stream = worker_stream(w, r, req->stream);
	bool flat = req->height <= 1;
	uint64_t bytes;

	if (__builtin_mul_overflow(req->width, (uint64_t)req->element, &bytes))
		worker_refuse(r, CUDA_ERROR_INVALID_VALUE);
	worker_range(w, r, req->dst,
		copy_extent(r, req->pitch, 0, worker_refused(r) ? 0 : bytes, req->height, 1));
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
	case 4:
		return flat ? w->cuda.cuMemsetD32Async(req->dst, req->value, req->width, stream)
			    : w->cuda.cuMemsetD2D32Async(req->dst, req->pitch, req->value,
				      req->width, req->height, stream);
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}
