/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a graph that concern the app's side: see graph.h.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/array/array.h"
#include "shim/driver/stream/host_function.h"
#include "shim/driver/context/context.h"
#include "shim/engine/engine.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/graph/graph.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/graph/part_side.h"
#include "shim/driver/graph/user_object.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/mirror/mirror.h"

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
		host_function_node_drop(part->number);
	if (part->held)
		graph_memory_let(part->held);
	if (part->user)
		user_object_let(part->user, (unsigned)part->number);
	free(part);
}

/* A copy within the app's memory reads what the graph brings there before it, behind the last
 * host function. */
static bool part_behind(const struct parts *parts, const struct part *part)
{
	struct part_side from = part_side_host(&part->copy);

	for (size_t i = parts->count; i-- > 0;) {
		const struct part *other = parts->places[i].part;
		struct part_side to = other->kind == PART_OUT ? part_side_host(&other->copy)
							      : part_side_within(&other->copy);

		if (other->kind == PART_HOST)
			return false;
		if ((other->kind == PART_OUT ||
			    (other->kind == PART_WITHIN && other->behind)) &&
			part_sides_meet(&from, &part->copy, &to, &other->copy))
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
	parts->places[parts->count++] = (struct part_place){
		.part = part, .graph = graph, .node = node, .inside = GRAPH_NO_NODE};
	return true;
}

bool parts_add_line(
	struct parts *parts, struct part *part, uint64_t graph, uint32_t node, uint64_t line)
{
	if (!parts_add(parts, part, graph, node))
		return false;
	parts->places[parts->count - 1].line = line;
	return true;
}

bool parts_add_captured(
	struct parts *parts, struct part *part, const struct graph *graph, uint64_t stream)
{
	return parts_add_line(parts, part, graph->handle, GRAPH_NO_NODE, capture_line(stream));
}

bool parts_copy(struct parts *to, const struct parts *from)
{
	size_t n = from->count; /* TO may be the same */

	for (size_t i = 0; i < n; i++) {
		struct part_place place = from->places[i];

		if (!parts_add_line(to, place.part, place.graph, place.node, place.line))
			return false;
		part_get(place.part);
		to->places[to->count - 1].inside = place.inside;
	}
	return true;
}

bool parts_copy_as_child(struct parts *to, const struct parts *from, uint32_t number)
{
	size_t first = to->count;
	uint64_t known = capture_line_new();

	if (!parts_copy(to, from))
		return false;
	for (size_t i = first; i < to->count; i++) {
		uint64_t old = to->places[i].line, line;

		to->places[i].inside = number;
		if (!old || old > known)
			continue;
		line = capture_line_new();
		for (size_t k = i; k < to->count; k++)
			if (to->places[k].line == old)
				to->places[k].line = line;
	}
	return true;
}

bool parts_copy_child(struct parts *to, const struct graph *child, uint32_t number)
{
	struct parts all = {0};
	bool copied = parts_copy_all(&all, child) && parts_copy_as_child(to, &all, number);

	parts_free(&all);
	return copied;
}

void parts_drop_child(struct parts *parts, uint32_t number)
{
	for (size_t i = parts->count; i-- > 0;)
		if (parts->places[i].inside == number)
			parts_remove(parts, i);
}

bool parts_set_child(struct parts *parts, uint32_t number, const struct graph *child)
{
	struct parts fresh = {0};
	struct part_place *room = NULL;
	size_t at = 0;

	if (parts_copy_child(&fresh, child, number))
		room = realloc(parts->places,
			(parts->count + fresh.count + 1) * sizeof(*parts->places));
	if (!room) {
		parts_free(&fresh);
		return false;
	}
	parts->places = room;
	parts->room = parts->count + fresh.count + 1;
	while (at < parts->count && parts->places[at].inside != number)
		at++;
	parts_drop_child(parts, number);
	memmove(&parts->places[at + fresh.count], &parts->places[at],
		(parts->count - at) * sizeof(*parts->places));
	for (size_t i = 0; i < fresh.count; i++) {
		parts->places[at + i] = fresh.places[i];
		/* A graph may have itself inside, and its own nodes are others. */
		if (fresh.places[i].graph == child->handle)
			parts->places[at + i].graph = 0;
	}
	parts->count += fresh.count;
	free(fresh.places);
	return true;
}

bool parts_copy_all(struct parts *to, const struct graph *graph)
{
	size_t first;

	if (!parts_copy(to, &graph->parts))
		return false;
	/* Of a child graph that was cloned, what was there is among this one's already; the
	 * child has what was added in there since. */
	for (const struct graph *child = graph->children; child; child = child->sibling) {
		/* What need not run need not write: what is fetched must have been there. */
		for (size_t i = 0;
			child->body && graph->has_conditional && i < child->parts.count; i++)
			child->parts.places[i].part->read = true;
		first = to->count;
		if (!parts_copy_all(to, child))
			return false;
		for (size_t i = first; i < to->count; i++)
			to->places[i].inside = child->parent_node;
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

/* The graph's last part behind its last host function that writes what COPY reads of the app's
 * memory. *WHOLE: all of it, in one piece. NULL: none does. */
static struct part *part_writer(
	const struct parts *parts, const struct part_copy *copy, bool *whole)
{
	struct part_side from = part_side_host(copy);

	for (size_t i = parts ? parts->count : 0; i-- > 0;) {
		struct part *other = parts->places[i].part;
		const struct part_copy *c = &other->copy;
		struct part_side to;

		if (other->kind == PART_HOST)
			return NULL;
		if (other->kind != PART_OUT && (other->kind != PART_WITHIN || !other->behind))
			continue;
		to = other->kind == PART_OUT ? part_side_host(c) : part_side_within(c);
		if (!part_sides_meet(&from, copy, &to, c))
			continue;
		*whole = other->kind == PART_OUT &&
			 part_side_end(&to, c) - to.at == other->bytes && from.at >= to.at &&
			 part_side_end(&from, copy) <= part_side_end(&to, c);
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
	struct part_side packed = part_side_packed(part), device = part_side_device(c);
	struct part_side dst = part->kind == PART_OUT ? packed : device;
	struct part_side src = part->kind == PART_OUT ? device : packed;

	/* The writer's stand-in lies as the app's memory does. */
	if (part->kind == PART_THROUGH) {
		src = part_side_host(c);
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

static void CUDA_CB part_drained(void *unused)
{
	(void)unused;
}

/* A host function: PART's copy from one place of the app's memory to another. The launch holds
 * the part meanwhile. */
static void CUDA_CB part_copy_within(void *part)
{
	const struct part_copy *c = &((const struct part *)part)->copy;
	struct part_side from = part_side_host(c), to = part_side_within(c);

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
	struct part_side from = part_side_host(&part->copy), to = part_side_within(&part->copy);
	unsigned functions = 0;

	if (mirror_inside(from.at, 1) || mirror_inside(to.at, 1))
		return true; /* kernels may write and read there */
	if (part_behind(parts, part))
		return false;
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *other = parts->places[i].part;
		struct part_side written = other->kind == PART_OUT
						   ? part_side_host(&other->copy)
						   : part_side_within(&other->copy);

		functions += other->kind == PART_HOST;
		if ((other->kind == PART_OUT ||
			    (other->kind == PART_WITHIN && other->behind)) &&
			part_sides_meet(&to, &part->copy, &written, &other->copy))
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
		status = hand_cuLaunchHostFunc(stream, part_drained, NULL);
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
	status = part_sides_copy(&dst, &src, &shape, stream);
	if (!status)
		status = stream_number(stream, &number);
	part->called = kind == PART_WITHIN && part_needs_function(&graph->parts, part);
	if (!status && parts_add_captured(&graph->parts, part, graph, number))
		return part->called ? hand_cuLaunchHostFunc(stream, part_copy_within, part)
				    : CUDA_SUCCESS;
	part_put(part);
	return status ? status : CUDA_ERROR_OUT_OF_MEMORY;
}
