/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a graph that concern the app's side: see graph.h.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/array.h"
#include "shim/driver/callback.h"
#include "shim/driver/copy.h"
#include "shim/driver/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/graph/user_object.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror.h"
#include "shim/driver/stream.h"

/* Either side of a copy as cuMemcpy3D has it; places are in the app's memory or the device's.
 */
struct part_side {
	bool host;
	uint64_t at;
	size_t pitch, slice;
	const struct array *array;
};

static struct part_side side_packed(const struct part *part)
{
	const struct part_copy *c = &part->copy;

	return (struct part_side){
		.at = part->memory, .pitch = c->width, .slice = c->width * c->height};
}

static struct part_side side_device(const struct part_copy *c)
{
	return (struct part_side){.at = c->device,
		.pitch = c->device_pitch,
		.slice = c->device_slice,
		.array = c->device_array};
}

/* Of a copy within the app's memory: where it goes. */
static struct part_side side_within(const struct part_copy *c)
{
	struct part_side side = side_device(c);

	side.host = true;
	return side;
}

static struct part_side side_host(const struct part_copy *c)
{
	return (struct part_side){
		.host = true, .at = c->host, .pitch = c->host_pitch, .slice = c->host_slice};
}

struct part *part_new(enum part_kind kind)
{
	struct part *part = calloc(1, sizeof(*part));

	if (part) {
		part->kind = kind;
		atomic_init(&part->refs, 1);
	}
	return part;
}

void part_get(struct part *part)
{
	atomic_fetch_add(&part->refs, 1);
}

void part_put(struct part *part)
{
	if (!part || atomic_fetch_sub(&part->refs, 1) != 1)
		return;
	/* What still runs keeps its memory until it is done (memory.h). */
	if (part->source)
		part_put(part->source);
	else if (part->memory)
		memory_free(part->memory);
	if (part->kind == PART_HOST)
		callback_node_drop(part->number);
	if (part->held)
		graph_memory_let(part->held);
	if (part->user)
		user_object_let(part->user, (unsigned)part->number);
	free(part);
}

static uint64_t side_end(const struct part_side *s, const struct part_copy *c)
{
	return s->at + (c->depth - 1) * s->slice + (c->height - 1) * s->pitch + c->width;
}

static bool sides_meet(const struct part_side *a, const struct part_copy *ac,
	const struct part_side *b, const struct part_copy *bc)
{
	return a->at < side_end(b, bc) && b->at < side_end(a, ac);
}

/* A copy within the app's memory reads what the graph brings there before it, behind the last
 * host function. */
static bool part_behind(const struct parts *parts, const struct part *part)
{
	struct part_side from = side_host(&part->copy);

	for (size_t i = parts->count; i-- > 0;) {
		const struct part *other = parts->places[i].part;
		struct part_side to = other->kind == PART_OUT ? side_host(&other->copy)
							      : side_within(&other->copy);

		if (other->kind == PART_HOST)
			return false;
		if ((other->kind == PART_OUT ||
			    (other->kind == PART_WITHIN && other->behind)) &&
			sides_meet(&from, &part->copy, &to, &other->copy))
			return true;
	}
	return false;
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
	/* Of a part that is another graph's too it is known. */
	if (part->kind == PART_WITHIN && atomic_load(&part->refs) == 1)
		part->behind = part_behind(parts, part);
	parts->places[parts->count++] =
		(struct part_place){.part = part, .graph = graph, .node = node};
	return true;
}

bool parts_add_captured(
	struct parts *parts, struct part *part, const struct graph *graph, uint64_t stream)
{
	if (!parts_add(parts, part, graph->handle, GRAPH_NO_NODE))
		return false;
	parts->places[parts->count - 1].line = capture_line(stream);
	return true;
}

bool parts_copy(struct parts *to, const struct parts *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct part_place *place = &from->places[i];

		if (!parts_add(to, place->part, place->graph, place->node))
			return false;
		to->places[to->count - 1].line = place->line;
		part_get(place->part);
	}
	return true;
}

bool parts_copy_child(struct parts *to, const struct parts *from)
{
	size_t first = to->count;
	uint64_t known = capture_line_new();

	if (!parts_copy(to, from))
		return false;
	for (size_t i = first; i < to->count; i++) {
		uint64_t old = to->places[i].line, line;

		if (!old || old > known)
			continue;
		line = capture_line_new();
		for (size_t k = i; k < to->count; k++)
			if (to->places[k].line == old)
				to->places[k].line = line;
	}
	return true;
}

bool parts_copy_all(struct parts *to, const struct graph *graph)
{
	if (!parts_copy(to, &graph->parts))
		return false;
	for (const struct graph *body = graph->children; body; body = body->sibling) {
		if (!body->body)
			continue;
		/* What need not run need not write: what is fetched must have been there. */
		for (size_t i = 0; graph->has_conditional && i < body->parts.count; i++)
			body->parts.places[i].part->read = true;
		if (!parts_copy_all(to, body))
			return false;
	}
	return true;
}

void graph_lines_end(struct graph *graph)
{
	for (size_t i = 0; i < graph->parts.count; i++)
		graph->parts.places[i].line = 0;
	graph->line = 0;
}

void parts_remove(struct parts *parts, size_t at)
{
	part_put(parts->places[at].part);
	parts->count--;
	memmove(&parts->places[at], &parts->places[at + 1],
		(parts->count - at) * sizeof(*parts->places));
}

void parts_free(struct parts *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		part_put(parts->places[i].part);
	free(parts->places);
	*parts = (struct parts){0};
}

/* ---- copies ---- */

static struct copy_place place_of(const struct part_side *side)
{
	return (struct copy_place){.side = side->host	 ? SIDE_HOST
					   : side->array ? SIDE_ARRAY
							 : SIDE_DEVICE,
		.array = side->array,
		.at = side->at,
		.pitch = side->pitch,
		.slice = side->slice};
}

/* In stream order; arrays and memory in any pairing. */
static CUresult copy_sides(const struct part_side *dst, const struct part_side *src,
	const struct part_copy *c, CUstream stream)
{
	struct shape s = {
		.src = place_of(src),
		.dst = place_of(dst),
		.width = c->width,
		.height = c->height,
		.depth = c->depth,
	};

	return copy_shape(&s, stream, true);
}

/* The graph's last part behind its last host function that writes what COPY reads of the app's
 * memory. *WHOLE: all of it, in one piece. NULL: none does. */
static struct part *part_writer(
	const struct parts *parts, const struct part_copy *copy, bool *whole)
{
	struct part_side from = side_host(copy);

	for (size_t i = parts ? parts->count : 0; i-- > 0;) {
		struct part *other = parts->places[i].part;
		const struct part_copy *c = &other->copy;
		struct part_side to;

		if (other->kind == PART_HOST)
			return NULL;
		if (other->kind != PART_OUT && (other->kind != PART_WITHIN || !other->behind))
			continue;
		to = other->kind == PART_OUT ? side_host(c) : side_within(c);
		if (!sides_meet(&from, copy, &to, c))
			continue;
		*whole = other->kind == PART_OUT && side_end(&to, c) - to.at == other->bytes &&
			 from.at >= to.at && side_end(&from, copy) <= side_end(&to, c);
		return other;
	}
	return NULL;
}

void parts_context_gone(const struct parts *parts, const struct context *context)
{
	for (size_t i = 0; i < parts->count; i++)
		if (parts->places[i].part->context == context->number)
			parts->places[i].part->memory = 0;
}

static CUresult part_copy_memory(struct part *part, const struct parts *parts)
{
	const struct part_copy *copy = &part->copy;
	struct context *context = context_current();
	struct part *writer;
	bool whole = false;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (__builtin_mul_overflow(copy->width, copy->height, &part->bytes) ||
		__builtin_mul_overflow(part->bytes, copy->depth, &part->bytes) || !part->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	part->context = context->home->number;
	writer = part->kind == PART_IN ? part_writer(parts, copy, &whole) : NULL;
	if (!writer || !whole)
		return memory_alloc(context->device,
			part->kind == PART_WITHIN ? 2 : part->bytes, false, &part->memory);
	part_get(writer);
	writer->read = true;
	part->kind = PART_THROUGH;
	part->source = writer;
	part->memory = writer->memory + (copy->host - writer->copy.host);
	part->context = writer->context;
	return CUDA_SUCCESS;
}

CUresult part_copy_new(enum part_kind kind, const struct part_copy *copy,
	const struct parts *parts, struct part **out)
{
	struct part *part = part_new(kind);
	CUresult status;

	if (!part)
		return CUDA_ERROR_OUT_OF_MEMORY;
	part->copy = *copy;
	status = part_copy_memory(part, parts);
	if (status)
		free(part);
	else
		*out = part;
	return status;
}

bool part_is(const struct part *part, const struct graph_copy *inside)
{
	switch (part->kind) {
	case PART_IN:
	case PART_WITHIN: return part->memory == inside->src;
	case PART_OUT: return part->memory == inside->dst;
	case PART_THROUGH:
		return part->memory == inside->src && part->copy.device == inside->dst;
	default: return false;
	}
}

void part_inside(const struct part *part, struct graph_copy *inside)
{
	const struct part_copy *c = &part->copy;
	struct part_side packed = side_packed(part), device = side_device(c);
	struct part_side dst = part->kind == PART_OUT ? packed : device;
	struct part_side src = part->kind == PART_OUT ? device : packed;

	/* The writer's stand-in lies as the app's memory does. */
	if (part->kind == PART_THROUGH) {
		src = side_host(c);
		src.at = part->memory;
	}

	/* Its place among the nodes is all that matters: it copies a byte of its own. */
	if (part->kind == PART_WITHIN) {
		*inside = (struct graph_copy){.dst = part->memory + 1,
			.dst_pitch = 1,
			.dst_slice = 1,
			.src = part->memory,
			.src_pitch = 1,
			.src_slice = 1,
			.width = 1,
			.height = 1,
			.depth = 1};
		return;
	}
	*inside = (struct graph_copy){.dst = dst.at,
		.dst_pitch = dst.pitch,
		.dst_slice = dst.slice,
		.dst_array = dst.array ? dst.array->handle : 0,
		.src_array = src.array ? src.array->handle : 0,
		.src = src.at,
		.src_pitch = src.pitch,
		.src_slice = src.slice,
		.width = c->width,
		.height = c->height,
		.depth = c->depth};
}

static void CUDA_CB part_settled(void *unused)
{
	(void)unused;
}

/* A host function: PART's copy from one place of the app's memory to another. The launch holds
 * the part meanwhile. */
static void CUDA_CB part_copy_within(void *part)
{
	const struct part_copy *c = &((const struct part *)part)->copy;
	struct part_side from = side_host(c), to = side_within(c);

	for (size_t z = 0; z < c->depth; z++)
		for (size_t y = 0; y < c->height; y++)
			memmove((void *)(uintptr_t)(to.at + z * to.slice + y * to.pitch),
				(const void *)(uintptr_t)(from.at + z * from.slice +
							  y * from.pitch),
				c->width);
}

/* A copy within the app's memory behind the graph's parts so far: neither before the launch,
 * nor behind the last host function, nor behind the launch is the moment for it. */
static bool part_needs_function(const struct parts *parts, const struct part *part)
{
	struct part_side from = side_host(&part->copy), to = side_within(&part->copy);
	unsigned functions = 0;

	if (mirror_inside(from.at, 1) || mirror_inside(to.at, 1))
		return true; /* kernels may write and read there */
	if (part_behind(parts, part))
		return false;
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *other = parts->places[i].part;
		struct part_side written = other->kind == PART_OUT ? side_host(&other->copy)
								   : side_within(&other->copy);

		functions += other->kind == PART_HOST;
		if ((other->kind == PART_OUT ||
			    (other->kind == PART_WITHIN && other->behind)) &&
			sides_meet(&to, &part->copy, &written, &other->copy))
			return true;
	}
	return functions > 1;
}

CUresult part_copy_captured(
	struct graph *graph, enum part_kind kind, const struct part_copy *copy, CUstream stream)
{
	struct graph_copy inside;
	struct part_side dst, src;
	struct part_copy shape;
	struct part *part;
	bool whole = true;
	uint64_t number;
	CUresult status = CUDA_SUCCESS;

	/* What is written in another shape has to be in the app's memory first: a host function
	 * sees to that. */
	if (kind == PART_IN && part_writer(&graph->parts, copy, &whole) && !whole)
		status = hand_cuLaunchHostFunc(stream, part_settled, NULL);
	if (!status)
		status = part_copy_new(kind, copy, &graph->parts, &part);
	if (status)
		return status;
	part_inside(part, &inside);
	dst = (struct part_side){.at = inside.dst,
		.pitch = inside.dst_pitch,
		.slice = inside.dst_slice,
		.array = inside.dst_array ? copy->device_array : NULL};
	src = (struct part_side){.at = inside.src,
		.pitch = inside.src_pitch,
		.slice = inside.src_slice,
		.array = inside.src_array ? copy->device_array : NULL};
	shape = (struct part_copy){
		.width = inside.width, .height = inside.height, .depth = inside.depth};
	status = copy_sides(&dst, &src, &shape, stream);
	if (!status)
		status = stream_number(stream, &number);
	part->called = kind == PART_WITHIN && part_needs_function(&graph->parts, part);
	if (!status && parts_add_captured(&graph->parts, part, graph, number))
		return part->called ? hand_cuLaunchHostFunc(stream, part_copy_within, part)
				    : CUDA_SUCCESS;
	part_put(part);
	return status ? status : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- a launch ---- */

/* A host function comes before the place: it may write what is copied there. */
static bool part_has_function(const struct parts *parts, size_t at)
{
	while (at-- > 0)
		if (parts->places[at].part->kind == PART_HOST)
			return true;
	return false;
}

/* When a part is moved: before the launch, around a host function, behind the launch. */
enum part_when { WHEN_FILLED, WHEN_AROUND, WHEN_FETCHED };

/* Moves the part at place AT if it is of the kind: one that fills the graph (PART_IN) or that
 * is fetched from it (PART_OUT). */
static CUresult part_move(const struct parts *parts, size_t at, enum part_kind kind,
	enum part_when when, CUstream stream)
{
	const struct part *part = parts->places[at].part;
	struct part_side packed = side_packed(part), host = side_host(&part->copy);
	struct part_side within = side_within(&part->copy);

	if (parts->places[at].off)
		return CUDA_SUCCESS;
	if (part->kind == PART_WITHIN) {
		if (part->called || part->behind != (kind == PART_OUT) ||
			(when == WHEN_FILLED && part_has_function(parts, at)))
			return CUDA_SUCCESS;
		return copy_sides(&within, &host, &part->copy, stream);
	}
	if (part->kind != kind && !(part->kind == PART_OUT && part->read && kind == PART_IN))
		return CUDA_SUCCESS;
	return kind == PART_OUT ? copy_sides(&host, &packed, &part->copy, stream)
				: copy_sides(&packed, &host, &part->copy, stream);
}

/* What is at AT comes before a host function of its line (RUNS: one that has begun): that finds
 * it in the app's memory, and what the function writes there stays. */
static bool part_delivered(const struct parts *parts, size_t at, const struct part_runs *runs)
{
	for (size_t i = at + 1; parts->places[at].line && i < parts->count; i++) {
		const struct part_place *place = &parts->places[i];

		if (place->part->kind == PART_HOST && !place->off &&
			place->line == parts->places[at].line && (!runs || runs->begun[i]))
			return true;
	}
	return false;
}

CUresult parts_move(const struct parts *parts, enum part_kind kind, size_t at,
	const struct part_runs *runs, CUstream stream)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; i < parts->count && !status; i++)
		if (kind == PART_OUT ? i < at && !part_delivered(parts, i, runs) : i >= at)
			status = part_move(parts, i, kind, WHEN_AROUND, stream);
	return status;
}

static struct part_runs *part_runs_new(const struct parts *parts)
{
	struct part_runs *runs = calloc(1, sizeof(*runs) + parts->count);

	if (runs)
		atomic_init(&runs->refs, 1);
	return runs;
}

void part_runs_put(struct part_runs *runs)
{
	if (runs && atomic_fetch_sub(&runs->refs, 1) == 1)
		free(runs);
}

/* Whether the launch reads the app's memory. */
static bool parts_read(const struct parts *parts)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = parts->places[i].part;

		if (part->kind == PART_IN || part->kind == PART_WITHIN || part->read)
			return true;
	}
	return false;
}

CUresult parts_fill(const struct parts *parts, CUstream stream)
{
	struct part_runs *runs = NULL;
	CUresult status = CUDA_SUCCESS;

	/* What is before the launch may write what that reads. */
	if (callback_outstanding() && parts_read(parts))
		status = hand_cuStreamSynchronize(stream);

	for (size_t i = 0; i < parts->count && !status; i++) {
		const struct part *part = parts->places[i].part;

		if (part->kind != PART_HOST) {
			status = part_move(parts, i, PART_IN, WHEN_FILLED, stream);
			continue;
		}
		if (!runs)
			runs = part_runs_new(parts);
		status = runs ? callback_node_launched(part->number, parts, i, runs)
			      : CUDA_ERROR_OUT_OF_MEMORY;
	}
	part_runs_put(runs);
	return status;
}

static void part_recorded(const struct part *part, CUstream stream, uint64_t seq)
{
	struct event *event = shim_object_of(part->number, KIND_CUevent);
	uint64_t number = 0;

	if (!event)
		return;
	stream_plain(stream, &number);
	atomic_store(&event->stream, number);
	atomic_store(&event->capture, 0);
	atomic_store(&event->recorded, seq);
}

CUresult parts_fetch(const struct parts *parts, CUstream stream, uint64_t seq)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; i < parts->count && !status; i++) {
		const struct part *part = parts->places[i].part;

		if (part->kind == PART_RECORD)
			part_recorded(part, stream, seq);
		else if (!part_delivered(parts, i, NULL))
			status = part_move(parts, i, PART_OUT, WHEN_FETCHED, stream);
	}
	return status;
}
