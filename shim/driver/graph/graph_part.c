/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a graph that concern the app's side: see graph.h.
 */
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/callback.h"
#include "shim/driver/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/graph.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/stream.h"

struct part *part_new(enum part_kind kind)
{
	struct part *part = calloc(1, sizeof(*part));

	if (part) {
		part->kind = kind;
		atomic_init(&part->refs, 1);
	}
	return part;
}

void part_drop(struct part *part)
{
	if (!part || atomic_fetch_sub(&part->refs, 1) != 1)
		return;
	/* What still runs keeps its memory until it is done (memory.h). */
	if (part->memory)
		memory_give(part->memory);
	if (part->kind == PART_HOST)
		callback_node_drop(part->number);
	free(part);
}

bool parts_add(struct parts *parts, struct part *part, uint64_t graph, uint32_t node)
{
	if (parts->count == parts->room) {
		size_t room = parts->room ? 2 * parts->room : 8;
		struct part_place *places = realloc(parts->places, room * sizeof(*places));

		if (!places)
			return false;
		parts->places = places;
		parts->room = room;
	}
	parts->places[parts->count++] =
		(struct part_place){.part = part, .graph = graph, .node = node};
	return true;
}

bool parts_copy(struct parts *to, const struct parts *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct part_place *place = &from->places[i];

		if (!parts_add(to, place->part, place->graph, place->node))
			return false;
		atomic_fetch_add(&place->part->refs, 1);
	}
	return true;
}

void parts_free(struct parts *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		part_drop(parts->places[i].part);
	free(parts->places);
	*parts = (struct parts){0};
}

/* ---- copies ---- */

/* Either side of a copy as cuMemcpy3D has it; places are in the app's memory or the device's.
 */
struct side {
	bool host;
	uint64_t at;
	size_t pitch, slice;
};

static CUresult copy_sides(const struct side *dst, const struct side *src,
	const struct part_copy *c, CUstream stream)
{
	CUDA_MEMCPY3D copy = {.WidthInBytes = c->width, .Height = c->height, .Depth = c->depth};

	copy.srcMemoryType = src->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	if (src->host)
		copy.srcHost = (const void *)(uintptr_t)src->at;
	else
		copy.srcDevice = src->at;
	copy.srcPitch = src->pitch;
	copy.srcHeight = c->depth > 1 ? src->slice / src->pitch : c->height;
	copy.dstMemoryType = dst->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	if (dst->host)
		copy.dstHost = (void *)(uintptr_t)dst->at;
	else
		copy.dstDevice = dst->at;
	copy.dstPitch = dst->pitch;
	copy.dstHeight = c->depth > 1 ? dst->slice / dst->pitch : c->height;
	return hand_cuMemcpy3DAsync_v2(&copy, stream);
}

static struct side side_packed(const struct part *part)
{
	const struct part_copy *c = &part->copy;

	return (struct side){
		.at = part->memory, .pitch = c->width, .slice = c->width * c->height};
}

static struct side side_device(const struct part_copy *c)
{
	return (struct side){
		.at = c->device, .pitch = c->device_pitch, .slice = c->device_slice};
}

static struct side side_host(const struct part_copy *c)
{
	return (struct side){
		.host = true, .at = c->host, .pitch = c->host_pitch, .slice = c->host_slice};
}

CUresult part_copy_new(bool in, const struct part_copy *copy, struct part **out)
{
	struct context *context = context_current();
	struct part *part;
	CUresult status;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	part = part_new(in ? PART_IN : PART_OUT);
	if (!part)
		return CUDA_ERROR_OUT_OF_MEMORY;
	part->copy = *copy;
	if (__builtin_mul_overflow(copy->width, copy->height, &part->bytes) ||
		__builtin_mul_overflow(part->bytes, copy->depth, &part->bytes) || !part->bytes)
		status = CUDA_ERROR_INVALID_VALUE;
	else
		status = memory_take(context->device, part->bytes, false, &part->memory);
	if (status) {
		free(part);
		return status;
	}
	*out = part;
	return CUDA_SUCCESS;
}

void part_inside(const struct part *part, struct graph_copy *inside)
{
	const struct part_copy *c = &part->copy;
	struct side packed = side_packed(part), device = side_device(c);
	struct side dst = part->kind == PART_IN ? device : packed;
	struct side src = part->kind == PART_IN ? packed : device;

	*inside = (struct graph_copy){.dst = dst.at,
		.dst_pitch = dst.pitch,
		.dst_slice = dst.slice,
		.src = src.at,
		.src_pitch = src.pitch,
		.src_slice = src.slice,
		.width = c->width,
		.height = c->height,
		.depth = c->depth};
}

CUresult part_copy_captured(
	struct graph *graph, bool in, const struct part_copy *copy, CUstream stream)
{
	struct side packed, device = side_device(copy);
	struct part *part;
	CUresult status = part_copy_new(in, copy, &part);

	if (status)
		return status;
	packed = side_packed(part);
	status = in ? copy_sides(&device, &packed, copy, stream)
		    : copy_sides(&packed, &device, copy, stream);
	if (!status && parts_add(&graph->parts, part, graph->handle, GRAPH_NO_NODE))
		return CUDA_SUCCESS;
	part_drop(part);
	return status ? status : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult parts_move(const struct parts *parts, enum part_kind kind, size_t at, CUstream stream)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; i < parts->count && !status; i++) {
		const struct part *part = parts->places[i].part;
		struct side packed = side_packed(part), host = side_host(&part->copy);

		if (part->kind != kind || parts->places[i].off ||
			(kind == PART_OUT) != (i < at))
			continue;
		status = kind == PART_OUT ? copy_sides(&host, &packed, &part->copy, stream)
					  : copy_sides(&packed, &host, &part->copy, stream);
	}
	return status;
}

CUresult parts_fill(const struct parts *parts, CUstream stream)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; i < parts->count && !status; i++) {
		const struct part *part = parts->places[i].part;
		struct side packed = side_packed(part), host = side_host(&part->copy);

		if (part->kind == PART_HOST)
			status = callback_node_launched(part->number, parts, i);
		if (!status && part->kind == PART_IN && !parts->places[i].off)
			status = copy_sides(&packed, &host, &part->copy, stream);
	}
	return status;
}

CUresult parts_fetch(const struct parts *parts, CUstream stream, uint64_t seq)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; i < parts->count && !status; i++) {
		const struct part *part = parts->places[i].part;
		struct side packed = side_packed(part), host = side_host(&part->copy);
		struct event *event;

		if (part->kind == PART_OUT && !parts->places[i].off)
			status = copy_sides(&host, &packed, &part->copy, stream);
		if (part->kind != PART_RECORD)
			continue;
		event = shim_object_of(part->number, KIND_CUevent);
		if (event) {
			uint64_t number = 0;

			stream_plain(stream, &number);
			atomic_store(&event->stream, number);
			atomic_store(&event->capture, 0);
			atomic_store(&event->recorded, seq);
		}
	}
	return status;
}
