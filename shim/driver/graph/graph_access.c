/* SPDX-License-Identifier: Apache-2.0
 *
 * See graph_access.h. Graphs' memory is of the same kind as pools', and lies among it.
 */
#include "shim/driver/graph/graph_access.h"

#include <stdbool.h>
#include <stdlib.h>

#include "shim/driver/memory/pools/pool.h"

static bool by_other(const CUmemAccessDesc *access, int device)
{
	return access->location.id != device && access->flags;
}

CUresult graph_access_begin(
	struct graph_access *access, int device, const CUmemAccessDesc *list, size_t count)
{
	CUresult status = CUDA_SUCCESS;

	for (size_t i = 0; !status && i < count; i++)
		status = pool_access_check(device, &list[i]);
	access->list = !status && count ? malloc(count * sizeof(*list)) : NULL;
	if (status || !count)
		return status;
	if (!access->list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++)
		access->list[i] = list[i];
	access->count = count;
	for (; !status && access->reached < count; access->reached += !status)
		if (by_other(&list[access->reached], device))
			status = pool_reach(device, list[access->reached].location.id, true);
	return status;
}

void graph_access_end(struct graph_access *access, int device)
{
	for (size_t i = 0; i < access->reached; i++)
		if (by_other(&access->list[i], device))
			pool_reach(device, access->list[i].location.id, false);
	free(access->list);
}
