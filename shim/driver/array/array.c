/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays: one is made by a call, since only the device knows which it can have; its memory is
 * leased first, so that "out of memory" is told like that of cuMemAlloc.
 * Everything else about them is known here or posted.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/array/array.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/lock.h"
#include "shim/generated/cuda_hand.h"

static struct {
	pthread_mutex_t lock; /* names of levels */
} arrays = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(arrays, arrays.lock, LOCK_ARRAY);

struct array *array_find(uint64_t handle, bool mipmapped)
{
	struct array *array = shim_object_of(handle, KIND_CUarray);

	return array && mipmapped == (array->desc.levels != 0) ? array : NULL;
}

static CUresult array_call_create(const struct array *array)
{
	return send_vcudaArrayCreate(array->handle, &array->desc);
}

static CUresult array_create(const struct array_desc *desc, uint64_t *handle)
{
	struct context *context = context_current();
	struct array *array;
	CUresult status;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	status = capture_unsafe();
	if (status)
		return status;
	if (!array_valid(desc))
		return CUDA_ERROR_INVALID_VALUE;
	array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->context = context;
	array->desc = *desc;
	array->level = array_level(desc);
	array->bytes = array_bytes(desc);
	status = memory_lease(context->device, array->bytes);
	if (!status) {
		array->handle = shim_mint(KIND_CUarray, array);
		status = array->handle ? array_call_create(array) : CUDA_ERROR_OUT_OF_MEMORY;
		if (status && array->handle)
			shim_unmint(array->handle);
		if (status)
			memory_unlease(context->device, array->bytes);
	}
	if (status) {
		free(array);
		return status;
	}
	*handle = array->handle;
	return CUDA_SUCCESS;
}

static struct array_desc array_desc_3d(const CUDA_ARRAY3D_DESCRIPTOR *from)
{
	return (struct array_desc){.width = from->Width,
		.height = from->Height,
		.depth = from->Depth,
		.format = (uint32_t)from->Format,
		.channels = from->NumChannels,
		.flags = from->Flags};
}

CUresult hand_cuArray3DCreate_v2(
	CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	struct array_desc desc;
	uint64_t handle;
	CUresult status;

	if (!pHandle || !pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	desc = array_desc_3d(pAllocateArray);
	status = array_create(&desc, &handle);
	if (!status)
		*pHandle = (CUarray)(uintptr_t)handle;
	return status;
}

CUresult hand_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;

	if (!pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	desc = (CUDA_ARRAY3D_DESCRIPTOR){.Width = pAllocateArray->Width,
		.Height = pAllocateArray->Height,
		.Format = pAllocateArray->Format,
		.NumChannels = pAllocateArray->NumChannels};
	return hand_cuArray3DCreate_v2(pHandle, &desc);
}

/* The largest side halved to 1. */
static uint32_t array_levels_most(const struct array_desc *desc)
{
	uint64_t side = desc->width > desc->height ? desc->width : desc->height;
	uint32_t levels = 1;

	if (!(desc->flags & ARRAY_LAYERED) && desc->depth > side)
		side = desc->depth;
	while (side >>= 1)
		levels++;
	return levels;
}

CUresult hand_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	struct array_desc desc;
	uint64_t handle;
	uint32_t most;
	CUresult status;

	if (!pHandle || !pMipmappedArrayDesc)
		return CUDA_ERROR_INVALID_VALUE;
	desc = array_desc_3d(pMipmappedArrayDesc);
	/* More levels than there can be are as many as there can be, and none are one. */
	most = array_levels_most(&desc);
	desc.levels = numMipmapLevels < most ? numMipmapLevels : most;
	desc.levels += !desc.levels;
	status = array_create(&desc, &handle);
	if (!status)
		*pHandle = (CUmipmappedArray)(uintptr_t)handle;
	return status;
}

/* A level, or plane, under a name of its own. */
static CUresult array_get_part(CUarray *out, struct array *of, unsigned int part)
{
	struct array *array;
	CUresult status = CUDA_SUCCESS;

	if (!of)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || of->parent || part >= array_parts(&of->desc))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&arrays.lock);
	array = of->parts[part];
	if (!array) {
		array = calloc(1, sizeof(*array));
		if (array)
			array->handle = shim_mint(KIND_CUarray, array);
		status = array && array->handle ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
		if (!status) {
			array->context = of->context;
			array->desc = array_part(&of->desc, part);
			array->level = array_level(&array->desc);
			array->parent = of;
			status = send_vcudaArrayLevel(array->handle, of->handle, part);
			if (status)
				shim_unmint(array->handle);
		}
		if (status)
			free(array);
		else
			of->parts[part] = array;
	}
	if (!status)
		*out = (CUarray)(uintptr_t)array->handle;
	pthread_mutex_unlock(&arrays.lock);
	return status;
}

CUresult hand_cuMipmappedArrayGetLevel(
	CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	return array_get_part(
		pLevelArray, array_find((uint64_t)(uintptr_t)hMipmappedArray, true), level);
}

CUresult hand_cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	return array_get_part(
		pPlaneArray, array_find((uint64_t)(uintptr_t)hArray, false), planeIdx);
}

/* The name is released. */
static void array_free(struct array *array)
{
	for (uint32_t i = 0; i < ARRAY_LEVELS; i++)
		if (array->parts[i] && handle_release(array->parts[i]->handle))
			free(array->parts[i]);
	array_unmap(array);
	free(array);
}

static CUresult array_destroy(struct array *array)
{
	CUresult status;

	/* A level goes with its mipmapped array, a plane with its planar one. */
	if (!array || array->parent)
		return CUDA_ERROR_INVALID_HANDLE;
	status = capture_unsafe();
	if (status)
		return status;
	if (!handle_release(array->handle))
		return CUDA_ERROR_INVALID_HANDLE;
	status = send_vcudaArrayDestroy(array->handle);
	/* What is made next comes to the worker after this. */
	memory_unlease(array->context->device, array->bytes);
	array_free(array);
	return status;
}

CUresult hand_cuArrayDestroy(CUarray hArray)
{
	struct array *array = array_find((uint64_t)(uintptr_t)hArray, false);

	/* A level is destroyed with its mipmapped array: natively this is no mistake. */
	return array && array->parent ? CUDA_SUCCESS : array_destroy(array);
}

CUresult hand_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	return array_destroy(array_find((uint64_t)(uintptr_t)hMipmappedArray, true));
}

/* ---- questions ---- */

CUresult hand_cuArray3DGetDescriptor_v2(
	CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	const struct array *array = array_find((uint64_t)(uintptr_t)hArray, false);

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pArrayDescriptor)
		return CUDA_ERROR_INVALID_VALUE;
	*pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR){.Width = array->desc.width,
		.Height = array->desc.height,
		.Depth = array->desc.depth,
		.Format = (CUarray_format)array->desc.format,
		.NumChannels = array->desc.channels,
		.Flags = array->desc.flags};
	return CUDA_SUCCESS;
}

CUresult hand_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUresult status = hand_cuArray3DGetDescriptor_v2(&desc, hArray);

	if (!status && !pArrayDescriptor)
		status = CUDA_ERROR_INVALID_VALUE;
	if (!status)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = desc.Width,
			.Height = desc.Height,
			.Format = desc.Format,
			.NumChannels = desc.NumChannels};
	return status;
}

/* FLAG: what the array must have been made with. */
static CUresult array_call_ask(const struct array *array, uint32_t flag, enum array_ask what,
	int device, void *answer, size_t bytes)
{
	struct shim_call call;
	struct wire_vcudaArrayAsk *body;
	const struct wire_vcudaArrayAsk_reply *reply;
	const void *from;
	size_t got;

	/* As NVIDIA's driver, which asks about the device only then. */
	if (!answer || !array || !(array->desc.flags & flag))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(device))
		return CUDA_ERROR_INVALID_DEVICE;
	body = shim_begin(&call, OP_vcudaArrayAsk, sizeof(*body));
	body->array = array->handle;
	body->what = what;
	body->device = device_wire(device);
	reply = shim_wait(&call, sizeof(*reply));
	from = reply ? shim_run(&call, &reply->answer, &got) : NULL;
	if (from && got >= bytes)
		memcpy(answer, from, bytes);
	return shim_end(&call);
}

CUresult hand_cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	return array_call_ask(array_find((uint64_t)(uintptr_t)array, false), ARRAY_SPARSE,
		ARRAY_ASK_SPARSE, 0, sparseProperties, sizeof(*sparseProperties));
}

CUresult hand_cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	return array_call_ask(array_find((uint64_t)(uintptr_t)mipmap, true), ARRAY_SPARSE,
		ARRAY_ASK_SPARSE, 0, sparseProperties, sizeof(*sparseProperties));
}

CUresult hand_cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
	return array_call_ask(array_find((uint64_t)(uintptr_t)array, false), ARRAY_DEFERRED,
		ARRAY_ASK_REQUIREMENTS, device, memoryRequirements,
		sizeof(*memoryRequirements));
}

CUresult hand_cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
	CUdevice device)
{
	return array_call_ask(array_find((uint64_t)(uintptr_t)mipmap, true), ARRAY_DEFERRED,
		ARRAY_ASK_REQUIREMENTS, device, memoryRequirements,
		sizeof(*memoryRequirements));
}

/* ---- the end of a context ---- */

struct gone {
	const struct context *context;
	struct array *list[256];
	unsigned count;
};

static void array_gone(void *object, void *argument)
{
	struct array *array = object;
	struct gone *gone = argument;

	if (array->context == gone->context && !array->parent && gone->count < 256)
		gone->list[gone->count++] = array;
}

void array_reset(struct context *context)
{
	struct gone gone;

	texture_reset(context);
	do {
		gone = (struct gone){.context = context};
		handle_each(KIND_CUarray, array_gone, &gone);
		for (unsigned i = 0; i < gone.count; i++)
			if (handle_release(gone.list[i]->handle)) {
				memory_unlease(context->device, gone.list[i]->bytes);
				array_free(gone.list[i]);
			}
	} while (gone.count);
}
