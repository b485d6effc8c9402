/* SPDX-License-Identifier: Apache-2.0
 *
 * What a launch copies between the app's memory and a graph's stand-ins: before it, around its
 * host functions and behind it.
 */
#include <stdlib.h>

#include "shim/generated/cuda_hand.h"
#include "shim/driver/stream/function_order.h"
#include "shim/driver/stream/host_function.h"
#include "shim/driver/graph/graph.h"
#include "shim/driver/graph/part_side.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"

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
	struct part_side packed = part_side_packed(part), host = part_side_host(&part->copy);
	struct part_side within = part_side_within(&part->copy);

	if (parts->places[at].off)
		return CUDA_SUCCESS;
	if (part->kind == PART_WITHIN) {
		if (part->called || part->behind != (kind == PART_OUT) ||
			(when == WHEN_FILLED && part_has_function(parts, at)))
			return CUDA_SUCCESS;
		return part_sides_copy(&within, &host, &part->copy, stream);
	}
	if (part->kind != kind && !(part->kind == PART_OUT && part->read && kind == PART_IN))
		return CUDA_SUCCESS;
	return kind == PART_OUT ? part_sides_copy(&host, &packed, &part->copy, stream)
				: part_sides_copy(&packed, &host, &part->copy, stream);
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

/* Whether the app's memory is read when the launch is posted. */
static bool parts_read(const struct parts *parts)
{
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = parts->places[i].part;

		if (part->kind == PART_IN || part->read ||
			(part->kind == PART_WITHIN && !part->called))
			return true;
	}
	return false;
}

CUresult parts_fill(const struct parts *parts, CUstream stream)
{
	struct part_runs *runs = NULL;
	CUresult status = CUDA_SUCCESS;
	uint64_t number;

	/* What is before the launch may write what that reads. */
	if (function_outstanding() && parts_read(parts))
		status = hand_cuStreamSynchronize(stream);
	for (size_t i = 0; i < parts->count && !status; i++) {
		const struct part *part = parts->places[i].part;

		if (part->kind != PART_HOST) {
			status = part_move(parts, i, PART_IN, WHEN_FILLED, stream);
			continue;
		}
		if (!runs)
			runs = part_runs_new(parts);
		status = runs ? host_function_node_launched(part->number, parts, i, runs)
			      : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (runs && !stream_plain(stream, &number))
		function_order_issued(number, function_issued());
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
	function_order_recorded(event, number);
	atomic_store(&event->stream, number);
	atomic_store(&event->capture, 0);
	atomic_store(&event->recorded, seq);
	atomic_store(&event->graphed, true);
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
