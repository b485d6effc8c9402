/* SPDX-License-Identifier: Apache-2.0
 *
 * Green contexts: contexts of their own here, on a part of a device, that use the modules of
 * the device's primary context.  What a CUdevResource holds beyond what a program may read is
 * the worker's; there its name is in the padding.
 */
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "protocol/wire/green.h"
#include "shim/driver/context/context.h"
#include "shim/driver/stream/stream.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/thread.h"
#include "shim/generated/cuda_hand.h"

#define RESOURCE_OURS 0x76637564 /* marks a resource that we filled in */

struct resource_name {
	uint32_t ours;
	int32_t device; /* as the worker calls it */
	uint64_t name;
};

static void resource_fill(CUdevResource *to, const struct green_resource *from, int device)
{
	struct resource_name name = {RESOURCE_OURS, device, from->name};

	memset(to, 0, sizeof(*to));
	if (!from->name)
		return; /* CU_DEV_RESOURCE_TYPE_INVALID */
	to->type = CU_DEV_RESOURCE_TYPE_SM;
	memcpy(to->_internal_padding, &name, sizeof(name));
	to->sm.smCount = from->sm_count;
	to->sm.minSmPartitionSize = from->sm_least;
	to->sm.smCoscheduledAlignment = from->sm_alignment;
}

static bool resource_read(const CUdevResource *from, struct resource_name *name)
{
	memcpy(name, from->_internal_padding, sizeof(*name));
	return from->type == CU_DEV_RESOURCE_TYPE_SM && name->ours == RESOURCE_OURS;
}

/* Of the context; 0: of the whole device. */
static CUresult resource_get(
	int device, uint16_t number, CUdevResource *resource, CUdevResourceType type)
{
	const struct wire_vcudaGreenResource_reply *reply;
	struct wire_vcudaGreenResource *body;
	struct session_visit visit;
	struct shim_call call;
	CUresult status;

	if (!resource)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	visit = device_visit(device);
	body = shim_begin(&call, OP_vcudaGreenResource, sizeof(*body));
	body->device = device_wire(device);
	body->number = session_context(session_here(), number);
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		resource_fill(resource, &reply->resource, device_wire(device));
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

static struct context *green_of(CUgreenCtx green)
{
	return shim_object_of((uint64_t)(uintptr_t)green, KIND_CUgreenCtx);
}

CUresult hand_cuDeviceGetDevResource(
	CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
	if (!device_of(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return resource_get(device, CONTEXT_NONE, resource, type);
}

CUresult hand_cuCtxGetDevResource(
	CUcontext hCtx, CUdevResource *resource, CUdevResourceType type)
{
	struct context *context = context_of(hCtx);

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!atomic_load(&context->live))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return resource_get(context->device, context->number, resource, type);
}

CUresult hand_cuGreenCtxGetDevResource(
	CUgreenCtx hCtx, CUdevResource *resource, CUdevResourceType type)
{
	struct context *context = green_of(hCtx);

	if (type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return resource_get(context->device, context->number, resource, type);
}

CUresult hand_cuDevSmResourceSplitByCount(CUdevResource *result, unsigned int *nbGroups,
	const CUdevResource *input, CUdevResource *remainder, unsigned int flags,
	unsigned int minCount)
{
	const struct wire_vcudaGreenSplit_reply *reply;
	const struct green_resource *parts;
	struct wire_vcudaGreenSplit *body;
	struct resource_name name;
	struct shim_call call;
	size_t n;

	if (!nbGroups || !input || (result && !*nbGroups))
		return CUDA_ERROR_INVALID_VALUE;
	if (!resource_read(input, &name))
		return CUDA_ERROR_INVALID_RESOURCE_TYPE;
	if (minCount > input->sm.smCount)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	body = shim_begin(&call, OP_vcudaGreenSplit, sizeof(*body));
	body->input = name.name;
	body->groups = !result ? 0 : *nbGroups < GREEN_PARTS ? *nbGroups : GREEN_PARTS;
	body->flags = flags;
	body->least = minCount;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply && result) {
		parts = shim_run(&call, &reply->parts, &n);
		n = parts ? n / sizeof(*parts) : 0;
		if (n > *nbGroups)
			n = *nbGroups;
		for (size_t i = 0; i < n; i++)
			resource_fill(&result[i], &parts[i], name.device);
		*nbGroups = (unsigned)n;
		if (remainder)
			resource_fill(remainder, &reply->rest, name.device);
	} else if (reply) {
		*nbGroups = reply->made;
	}
	return shim_end(&call);
}

/* A descriptor is a number of the worker's, and where it is. */
static CUdevResourceDesc descriptor_make(uint64_t number, int device)
{
	return (CUdevResourceDesc)(uintptr_t)(number << 8 | (uint64_t)(device + 1));
}

CUresult hand_cuDevResourceGenerateDesc(
	CUdevResourceDesc *phDesc, CUdevResource *resources, unsigned int nbResources)
{
	const struct wire_vcudaGreenDescriptor_reply *reply;
	struct wire_vcudaGreenDescriptor *body;
	uint64_t names[GREEN_PARTS];
	struct resource_name name;
	struct shim_call call;
	int device = -1;

	if (!phDesc || !resources || !nbResources)
		return CUDA_ERROR_INVALID_VALUE;
	if (nbResources > GREEN_PARTS)
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	for (unsigned i = 0; i < nbResources; i++) {
		if (!resource_read(&resources[i], &name))
			return CUDA_ERROR_INVALID_RESOURCE_TYPE;
		if (i && name.device != device)
			return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
		device = name.device;
		names[i] = name.name;
	}
	body = shim_begin(&call, OP_vcudaGreenDescriptor, sizeof(*body));
	body->count = nbResources;
	shim_put(&call, &body->resources, names, nbResources * sizeof(names[0]));
	reply = shim_wait(&call, sizeof(*reply));
	if (reply)
		*phDesc = descriptor_make(reply->descriptor, device);
	return shim_end(&call);
}

struct green_wish {
	uint64_t descriptor;
	unsigned flags;
};

/* The worker's half of one that is being made. */
static CUresult green_ask(struct context *context, const void *argument)
{
	const struct green_wish *wish = argument;
	struct session_visit visit = session_visit(context->session);
	CUresult status;

	status = send_vcudaGreenCreate(
		context->number, device_wire(context->device), wish->flags, wish->descriptor);
	session_leave(visit);
	return status;
}

/* The descriptor of all that the device has. */
static CUresult descriptor_whole(CUdevice dev, CUdevResourceDesc *desc)
{
	CUdevResource whole;

	return hand_cuDeviceGetDevResource(dev, &whole, CU_DEV_RESOURCE_TYPE_SM)
		       ?: hand_cuDevResourceGenerateDesc(desc, &whole, 1);
}

CUresult hand_cuGreenCtxCreate(
	CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev, unsigned int flags)
{
	struct green_wish wish = {.flags = flags};
	struct context *context;
	uint64_t number;
	CUcontext primary;
	CUresult status;

	if (!phCtx || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device_of(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	status = desc ? CUDA_SUCCESS : descriptor_whole(dev, &desc);
	if (status)
		return status;
	number = (uint64_t)(uintptr_t)desc;
	wish.descriptor = number >> 8;
	if (!wish.descriptor || (int)(number & 0xff) - 1 != device_wire(dev))
		return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
	status = hand_cuDevicePrimaryCtxRetain(&primary, dev);
	if (status)
		return status;
	status = context_make(dev, 0, green_ask, &wish, &context);
	if (!status) {
		context->home = context_of(primary);
		context->green = shim_mint(KIND_CUgreenCtx, context);
		if (!context->green) {
			context_end(context);
			status = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (status) {
		hand_cuDevicePrimaryCtxRelease_v2(dev);
		return status;
	}
	*phCtx = (CUgreenCtx)(uintptr_t)context->green;
	return CUDA_SUCCESS;
}

CUresult hand_cuGreenCtxDestroy(CUgreenCtx hCtx)
{
	struct context *context = green_of(hCtx);
	CUresult status, released;
	CUdevice device;

	if (!context || !handle_release(context->green))
		return CUDA_ERROR_INVALID_CONTEXT;
	device = context->device;
	status = context_end(context);
	released = hand_cuDevicePrimaryCtxRelease_v2(device);
	return status ? status : released;
}

CUresult hand_cuCtxFromGreenCtx(CUcontext *pContext, CUgreenCtx hCtx)
{
	struct context *context = green_of(hCtx);

	if (!pContext)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*pContext = (CUcontext)(uintptr_t)context->handle;
	return CUDA_SUCCESS;
}

CUresult hand_cuGreenCtxGetId(CUgreenCtx greenCtx, unsigned long long *greenCtxId)
{
	struct context *context = greenCtx ? green_of(greenCtx) : context_current();

	if (!greenCtxId)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context || !context->green)
		return CUDA_ERROR_INVALID_CONTEXT;
	*greenCtxId = context->id;
	return CUDA_SUCCESS;
}

CUresult hand_cuGreenCtxStreamCreate(
	CUstream *phStream, CUgreenCtx greenCtx, unsigned int flags, int priority)
{
	struct context *context = green_of(greenCtx), *before = thread_self.current;
	CUresult status;

	if (phStream) /* as NVIDIA's driver leaves it where it fails */
		*phStream = (CUstream)UINTPTR_MAX;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (flags != CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	thread_set(context);
	status = hand_cuStreamCreateWithPriority(phStream, flags, priority);
	thread_set(before);
	return status;
}

CUresult hand_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	struct context *context = green_of(hCtx);

	return context ? event_record_context(context, hEvent) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult hand_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	struct context *context = green_of(hCtx);

	return context ? event_await_context(context, hEvent) : CUDA_ERROR_INVALID_CONTEXT;
}

/* The stream's context; of a special stream the current one. */
static CUresult green_of_stream(CUstream hStream, struct context **context)
{
	CUcontext handle;
	CUresult status = hand_cuStreamGetCtx(hStream, &handle);

	if (!status)
		*context = context_of(handle);
	if (!status && (!*context || !atomic_load(&(*context)->live)))
		status = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	return status;
}

CUresult hand_cuStreamGetGreenCtx(CUstream hStream, CUgreenCtx *phCtx)
{
	struct context *context;
	CUresult status;

	if (!phCtx)
		return CUDA_ERROR_INVALID_VALUE;
	status = green_of_stream(hStream, &context);
	if (!status)
		*phCtx = (CUgreenCtx)(uintptr_t)context->green;
	return status;
}

CUresult hand_cuStreamGetCtx_v2(CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx)
{
	struct context *context;
	CUresult status;

	if (!pCtx && !pGreenCtx)
		return CUDA_ERROR_INVALID_VALUE;
	status = green_of_stream(hStream, &context);
	if (status)
		return status;
	if (pCtx)
		*pCtx = (CUcontext)(uintptr_t)context->home->handle;
	if (pGreenCtx)
		*pGreenCtx = (CUgreenCtx)(uintptr_t)context->green;
	return CUDA_SUCCESS;
}

CUresult hand_cuStreamGetDevResource(
	CUstream hStream, CUdevResource *resource, CUdevResourceType type)
{
	struct context *context;
	CUresult status = green_of_stream(hStream, &context);

	return status ? status : resource_get(context->device, context->number, resource, type);
}
