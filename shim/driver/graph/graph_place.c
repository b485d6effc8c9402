/* SPDX-License-Identifier: Apache-2.0
 *
 * See graph_place.h.
 */
#include "shim/driver/graph/graph_place.h"

#include "shim/driver/context/context.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/engine.h"

static CUresult managed_get(struct graph_place *place)
{
	struct context *context = context_current();

	context = context && context->device == place->device
			  ? context->home
			  : &devices.at[place->device].primary;
	if (!atomic_load(&context->live))
		return CUDA_ERROR_INVALID_CONTEXT;
	place->context = context->number;
	return managed_pool_alloc(context, place->bytes, &place->address, &place->managed);
}

CUresult graph_place_get(struct graph_place *place, int device, bool managed, size_t bytes)
{
	struct memory_range range;
	CUresult status;

	*place = (struct graph_place){.bytes = bytes, .device = device};
	if (managed)
		return managed_get(place);
	status = memory_alloc(device, bytes, true, &place->address);
	if (!status && memory_find(place->address, &range))
		place->context = range.context;
	return status;
}

void graph_place_put(const struct graph_place *place)
{
	if (place->managed)
		managed_pool_free(place->address, place->managed, true);
	else
		memory_free(place->address);
}
