/* SPDX-License-Identifier: Apache-2.0
 *
 * What a CUlaunchConfig says, and what is asked of one that is not launched: clusters.
 */
#include "shim/driver/launch/launch_config.h"

#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/module/module.h"
#include "shim/driver/stream/stream.h"

/* Of a launch whose blocks have begun, or have called a trigger. It is recorded when the kernel
 * is done: cuda.h has the first as a best effort, and promises no earlier moment of the other.
 */
static CUresult launch_event(struct launch *l, CUevent event, int flags)
{
	CUresult status = event_of_launch(event, flags);

	if (!status && l->event_count == LAUNCH_EVENTS_MAX)
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		l->events[l->event_count++] = event;
	return status;
}

/* Attributes that ask for nothing are left out. */
static CUresult launch_attribute(struct launch *l, const CUlaunchAttribute *attribute)
{
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_IGNORE)
		return CUDA_SUCCESS;
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
		if (attribute->value.cooperative)
			l->flags |= LAUNCH_COOPERATIVE;
		return CUDA_SUCCESS;
	}
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
		return launch_event(l, attribute->value.launchCompletionEvent.event,
			attribute->value.launchCompletionEvent.flags);
	if (attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
		return launch_event(l, attribute->value.programmaticEvent.event,
			attribute->value.programmaticEvent.flags);
	if (!launch_attribute_travels(attribute->id))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (l->attribute_count == LAUNCH_ATTRIBUTES_MAX - 1) /* one is kept for COOPERATIVE */
		return CUDA_ERROR_INVALID_VALUE;
	l->attributes[l->attribute_count++] = *attribute;
	return CUDA_SUCCESS;
}

/* The last that cuda.h has. */
enum { LAUNCH_ATTRIBUTE_LAST = CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING };

CUresult launch_config(struct launch *l, const CUlaunchConfig *config, CUfunction f)
{
	struct function *function;
	CUresult status;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	status = function_find(f, &function);
	if (status)
		return status;
	l->function = function;
	l->grid[0] = config->gridDimX;
	l->grid[1] = config->gridDimY;
	l->grid[2] = config->gridDimZ;
	l->block[0] = config->blockDimX;
	l->block[1] = config->blockDimY;
	l->block[2] = config->blockDimZ;
	l->shared = config->sharedMemBytes;
	for (unsigned i = 0; !status && i < config->numAttrs; i++)
		status = (unsigned)config->attrs[i].id > (unsigned)LAUNCH_ATTRIBUTE_LAST
				 ? CUDA_ERROR_INVALID_VALUE
				 : launch_attribute(l, &config->attrs[i]);
	return status;
}

/* Asked each time: programs do so once for a kernel. */
static CUresult launch_clusters(
	int *answer, CUfunction f, const CUlaunchConfig *config, bool largest)
{
	struct launch l = {0};
	bool lent = false;
	CUresult status;

	if (!answer || !f || !config)
		return CUDA_ERROR_INVALID_VALUE;
	status = stream_lend(config->hStream, (uintptr_t)f, &lent)
			 ?: context_missing() ?: launch_config(&l, config, f);
	if (!status && config->hStream && config->hStream != CU_STREAM_LEGACY)
		status = capture_node(config->hStream);
	if (!status)
		status = send_vcudaOccupancyClusters(function_handle(l.function), l.grid[0],
			l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2], l.shared,
			largest, (uint32_t)(l.attribute_count * sizeof(l.attributes[0])),
			l.attributes, answer);
	if (lent)
		stream_lent();
	return status;
}

CUresult hand_cuOccupancyMaxActiveClusters(
	int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return launch_clusters(numClusters, func, config, false);
}

CUresult hand_cuOccupancyMaxPotentialClusterSize(
	int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	return launch_clusters(clusterSize, func, config, true);
}
