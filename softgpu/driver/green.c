/* SPDX-License-Identifier: Apache-2.0
 *
 * Green contexts: parts of a device's processors.  A part is a number of them, from one on; the
 * work of a green context runs where that of the primary one does.
 */
#include "softgpu/driver/softgpu.h"

#include <stdlib.h>
#include <string.h>

#define PART_MAGIC 0x6e65657267u
#define LEAST 1u /* processors in a part, and its alignment */

/* What stands in a resource's padding. */
struct part {
	uint64_t magic;
	int device;
	uint32_t split; /* which split it came of; 0: the whole */
};

struct CUdevResourceDesc_st {
	int device;
	unsigned count;
};

struct CUgreenCtx_st {
	struct CUgreenCtx_st *next;
	int device;
	unsigned count;
	unsigned long long id;
};

static struct CUgreenCtx_st *greens; /* under context_lock */
static unsigned long long last_green;
static atomic_uint last_split;

static CUresult part_fill(CUdevResource *to, int device, unsigned count, uint32_t split)
{
	struct part part = {PART_MAGIC, device, split};

	memset(to, 0, sizeof(*to));
	to->type = CU_DEV_RESOURCE_TYPE_SM;
	memcpy(to->_internal_padding, &part, sizeof(part));
	to->sm.smCount = count;
	to->sm.minSmPartitionSize = LEAST;
	to->sm.smCoscheduledAlignment = LEAST;
	return CUDA_SUCCESS;
}

static bool part_read(const CUdevResource *from, struct part *part)
{
	memcpy(part, from->_internal_padding, sizeof(*part));
	return from->type == CU_DEV_RESOURCE_TYPE_SM && part->magic == PART_MAGIC;
}

static bool green_known(CUgreenCtx green)
{
	bool known = false;

	pthread_mutex_lock(&context_lock);
	for (struct CUgreenCtx_st *g = greens; g && !known; g = g->next)
		known = g == green;
	pthread_mutex_unlock(&context_lock);
	return known;
}

CUresult cuDeviceGetDevResource(
	CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (!device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return part_fill(resource, device, device_sm_count(), 0);
}

CUresult cuCtxGetDevResource(CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	CUresult ret = context_check(hCtx);

	return ret ? ret : cuDeviceGetDevResource(hCtx->device->ordinal, resource, type);
}

CUresult cuGreenCtxGetDevResource(
	CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green_known(hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	return part_fill(resource, hCtx->device, hCtx->count, 0);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
	const CUdevResource *input, CUdevResource *remainder, unsigned int flags,
	unsigned int minCount)
{
	unsigned each = minCount > LEAST ? minCount : LEAST, groups;
	struct part part;
	uint32_t split;

	(void)flags; /* no unknown one is refused, as natively */
	if (!nbGroups || !input || (result && !*nbGroups))
		return CUDA_ERROR_INVALID_VALUE;
	if (!part_read(input, &part))
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (part.split || minCount > input->sm.smCount)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	groups = input->sm.smCount / each;
	if (!result) {
		*nbGroups = groups;
		return CUDA_SUCCESS;
	}
	if (groups > *nbGroups)
		groups = *nbGroups;
	split = atomic_fetch_add(&last_split, 1) + 1;
	for (unsigned i = 0; i < groups; i++)
		part_fill(&result[i], part.device, each, split);
	*nbGroups = groups;
	if (!remainder)
		return CUDA_SUCCESS;
	memset(remainder, 0, sizeof(*remainder));
	if (input->sm.smCount > groups * each)
		part_fill(remainder, part.device, input->sm.smCount - groups * each, split);
	return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(
	CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
	struct CUdevResourceDesc_st *made;
	unsigned count = 0;
	struct part first = {0}, part;

	if (!phDesc || !resources || !nbResources)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < nbResources; i++) {
		if (!part_read(&resources[i], &part))
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		if (!i)
			first = part;
		if (part.device != first.device || (i && part.split != first.split))
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		count += resources[i].sm.smCount;
	}
	made = calloc(1, sizeof(*made)); /* CUDA has no call that ends it */
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	made->device = first.device;
	made->count = count;
	*phDesc = made;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(
	CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	struct CUgreenCtx_st *green;
	CUcontext primary;
	CUresult ret;

	if (!phCtx || !desc || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_get(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (desc->device != dev)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	green = calloc(1, sizeof(*green));
	ret = green ? cuDevicePrimaryCtxRetain(&primary, dev) : CUDA_ERROR_OUT_OF_MEMORY;
	if (ret) {
		free(green);
		return ret;
	}
	green->device = dev;
	green->count = desc->count;
	pthread_mutex_lock(&context_lock);
	green->id = ++last_green;
	green->next = greens;
	greens = green;
	pthread_mutex_unlock(&context_lock);
	*phCtx = green;
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	struct CUgreenCtx_st **at;
	CUresult ret;

	pthread_mutex_lock(&context_lock);
	for (at = &greens; *at && *at != hCtx;)
		at = &(*at)->next;
	if (*at)
		*at = hCtx->next;
	else
		hCtx = NULL;
	pthread_mutex_unlock(&context_lock);
	if (!hCtx)
		return CUDA_ERROR_INVALID_CONTEXT;
	ret = cuDevicePrimaryCtxRelease(hCtx->device);
	free(hCtx);
	return ret;
}

/* The primary context: that is where a green one's work runs here. */
CUresult cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green_known(hCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&context_lock);
	*pContext = device_get(hCtx->device)->primary;
	pthread_mutex_unlock(&context_lock);
	return CUDA_SUCCESS;
}

CUresult cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	CUcontext context;
	CUresult ret = cuCtxFromGreenCtx(&context, hCtx);

	return ret ? ret : cuCtxRecordEvent(context, hEvent);
}

CUresult cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	CUcontext context;
	CUresult ret = cuCtxFromGreenCtx(&context, hCtx);

	return ret ? ret : cuCtxWaitEvent(context, hEvent);
}

CUresult cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
	if (!greenCtxId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!green_known(greenCtx))
		return CUDA_ERROR_INVALID_CONTEXT;
	*greenCtxId = greenCtx->id;
	return CUDA_SUCCESS;
}
