/* SPDX-License-Identifier: Apache-2.0
 *
 * Primary contexts: how often each is retained, and what its reset takes with it.
 */
#include "shim/driver/forms.h"
#include "shim/driver/context/context_state.h"
#include "shim/driver/context/coredump.h"

#include "shim/generated/cuda_hand.h"
#include "shim/generated/vcuda_send.h"
#include "shim/engine/cache.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/pinned/host.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/module/module.h"
#include "shim/driver/graph/memory_node.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/device/peer.h"
#include "shim/driver/stream/stream.h"
#include "shim/driver/memory/virtual/vmm.h"

static void others_look(void *object, void *argument)
{
	const struct context *context = object;
	struct context_others *others = argument;

	if (context->device != others->device || context->primary ||
		!atomic_load(&context->live))
		return;
	if (context != context->home) {
		others->green = true;
		return;
	}
	others->any = true;
	others->first |= context->first;
}

struct context_others context_others(int device)
{
	struct context_others others = {.device = device};

	handle_each(KIND_CUcontext, others_look, &others);
	return others;
}

CUresult hand_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct device *device = device_of(dev);
	struct context *primary;
	CUresult status = CUDA_SUCCESS;

	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	primary = &device->primary;
	pthread_mutex_lock(&contexts.lock);
	if (!primary->handle) {
		primary->number = device_primary(dev);
		primary->primary = true;
		primary->home = primary;
		primary->device = dev;
		primary->session = device->session;
		primary->id = atomic_fetch_add(&contexts.last_id, 1) + 1;
		primary->legacy = stream_legacy(primary);
		if (primary->legacy)
			primary->handle = shim_mint(KIND_CUcontext, primary);
		if (!primary->handle)
			status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!status && !atomic_load(&primary->live) && context_others(dev).first)
		status = CUDA_ERROR_OUT_OF_MEMORY;
	if (!status) {
		atomic_fetch_add(&primary->retained, 1);
		if (!atomic_load(&primary->live))
			atomic_store(&primary->flags, atomic_load(&device->primary_flags));
		atomic_store(&primary->live, true);
		*pctx = context_handle(primary);
	}
	pthread_mutex_unlock(&contexts.lock);
	return status;
}

/* The worker's side of a reset: everything that the context holds is destroyed. */
static CUresult context_reset(struct context *primary)
{
	struct session_visit visit;
	CUresult status;
	bool last;

	host_context_drain(primary);
	order_context_gone(primary);
	visit = session_visit(primary->session);
	status = send_vcudaPrimaryReset(device_wire(primary->device));
	session_leave(visit);
	if (status)
		return status;
	atomic_store(&primary->live, false);
	atomic_store(&devices.at[primary->device].primary_flags, 0);
	atomic_fetch_add(&vcuda_resets, 1);
	graph_context_gone(primary);
	last = !context_others(primary->device).any;
	managed_context_gone(primary);
	peer_access_ends(primary);
	array_reset(primary);
	if (last)
		vmm_reset(primary->device);
	memory_context_gone(primary, last);
	host_context_gone(primary);
	ipc_reset();
	pool_reset(primary->device);
	graph_memory_reset(primary, last);
	coredump_drop(primary);
	module_reset(primary);
	stream_reset(primary);
	cache_drop(primary->number);
	primary->id = atomic_fetch_add(&contexts.last_id, 1) + 1;
	return CUDA_SUCCESS;
}

CUresult hand_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct device *device = device_of(dev);
	struct context *primary;
	CUresult status = CUDA_SUCCESS;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	primary = &device->primary;
	pthread_mutex_lock(&contexts.lock);
	if (!atomic_load(&primary->retained))
		status = CUDA_ERROR_INVALID_CONTEXT;
	else if (atomic_fetch_sub(&primary->retained, 1) == 1 && atomic_load(&primary->live))
		status = context_reset(primary);
	pthread_mutex_unlock(&contexts.lock);
	return status;
}

/* FORGET: none of the references is left. */
static CUresult primary_reset(CUdevice dev, bool forget)
{
	struct device *device = device_of(dev);
	CUresult status = CUDA_SUCCESS;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&contexts.lock);
	if (context_others(dev).green)
		status = CUDA_ERROR_NOT_PERMITTED;
	else
		atomic_store(&device->primary_flags, 0);
	if (!status && device->primary.handle && atomic_load(&device->primary.live))
		status = context_reset(&device->primary);
	if (!status && forget)
		atomic_store(&device->primary.retained, 0);
	pthread_mutex_unlock(&contexts.lock);
	return status;
}

CUresult hand_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	return primary_reset(dev, false);
}

/* Before CUDA 11. */
CUresult primary_reset_first(CUdevice dev)
{
	return primary_reset(dev, true);
}

/* The runtime front's: as natively, cudaDeviceReset gives back the runtime's reference and
 * leaves the program's. */
__attribute__((visibility("default"))) CUresult vcuda_primary_reset(CUdevice dev);
CUresult vcuda_primary_reset(CUdevice dev)
{
	return primary_reset(dev, false);
}

CUresult hand_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct device *device = device_of(dev);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	/* Memory of the host is mapped whatever is asked. */
	if (!context_flags_valid(flags) || flags & CU_CTX_MAP_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	/* They say how the app's threads wait, which the shim decides for itself. */
	atomic_store(&device->primary_flags, flags);
	atomic_store(&device->primary.flags, flags);
	return CUDA_SUCCESS;
}

/* Before CUDA 11 the flags of a context that there is could not change. */
CUresult primary_flags_first(CUdevice dev, unsigned flags)
{
	struct device *device = device_of(dev);

	if (device && context_flags_valid(flags) && !(flags & CU_CTX_MAP_HOST) &&
		atomic_load(&device->primary.live))
		return CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	return hand_cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult hand_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct device *device = device_of(dev);

	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = atomic_load(&device->primary_flags);
	*active = atomic_load(&device->primary.live);
	return CUDA_SUCCESS;
}

int context_wanted(void)
{
	const struct context *context = thread_self.current;

	if (!context)
		return 0;
	return context->primary && !atomic_load(&context->live) ? context->device : -1;
}
