/* SPDX-License-Identifier: Apache-2.0
 *
 * Which device reaches whose memory.  All devices share the window, so access between them is a
 * map: for each granule of the window the devices that have none, which kernels look at where
 * there is more than one device.  What a device allocates lies in a part of the window of its
 * own, whose entries change when access is given or taken; what is mapped by cuMemMap has
 * entries of its own.
 */
#include "softgpu/driver/softgpu.h"

#include <string.h>
#include <sys/mman.h>

#include "softgpu/driver/peer.h"

/* NULL: one device. Written under memory_lock. */
static atomic_uchar *denied;
/* How often BY was given access to what OWNER allocates; under memory_lock. */
static unsigned reached[DEVICES_MAX][DEVICES_MAX];

_Static_assert(DEVICES_MAX <= 8, "a bit of a byte for each device");
_Static_assert(GRANULE == (size_t)1 << PTX_DENIED_SHIFT, "the map's unit is what is mapped");

static void deny(uint64_t start, uint64_t size, unsigned char who)
{
	uint64_t first = memory_window.base >> PTX_DENIED_SHIFT;

	for (uint64_t g = start >> PTX_DENIED_SHIFT; g < (start + size) >> PTX_DENIED_SHIFT;
		g++)
		atomic_store_explicit(&denied[g - first], who, memory_order_relaxed);
}

void peer_zone(
	const struct device *device, uint64_t low, uint64_t high, uint64_t *from, uint64_t *to)
{
	uint64_t part, number = device ? (uint64_t)device->ordinal + 1 : 0;

	*from = low;
	*to = high;
	if (settings.devices == 1)
		return;
	low = (low + GRANULE - 1) & ~(GRANULE - 1);
	part = (high - low) / (settings.devices + 1) & ~(GRANULE - 1);
	*from = low + number * part;
	*to = *from + part;
}

static void zone_deny(const struct device *owner)
{
	unsigned char who = 0;
	uint64_t from, to;

	for (unsigned i = 0; i < settings.devices; i++)
		if (i != (unsigned)owner->ordinal && !reached[owner->ordinal][i])
			who |= (unsigned char)(1u << i);
	memory_zone(owner, &from, &to);
	deny(from, to - from, who);
}

bool peer_init(void)
{
	size_t size = (memory_window.span >> PTX_DENIED_SHIFT) + 2;
	void *map;

	if (settings.devices == 1)
		return true;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return false;
	denied = map;
	ptx_denied_set(denied);
	for (unsigned i = 0; i < settings.devices; i++)
		zone_deny(&soft_devices[i]);
	return true;
}

void peer_mapped(uint64_t start, uint64_t size, uint64_t reached_by)
{
	if (denied)
		deny(start, size, (unsigned char)~reached_by);
}

void peer_let(const struct device *owner, const struct device *by, bool in)
{
	unsigned *count = &reached[owner->ordinal][by->ordinal];

	*count += in ? 1 : -1u;
	if (denied && *count == (in ? 1 : 0))
		zone_deny(owner);
}

/* memory_lock held for writing. */
static void context_let(struct CUctx_st *context, const struct device *owner, bool in)
{
	unsigned bit = 1u << owner->ordinal;

	if (in)
		atomic_fetch_or(&context->peers, bit);
	else
		atomic_fetch_and(&context->peers, ~bit);
	peer_let(owner, context->device, in);
}

void peer_context_gone(struct CUctx_st *context, struct CUctx_st *all)
{
	pthread_rwlock_wrlock(&memory_lock);
	for (unsigned i = 0; i < settings.devices; i++)
		if (atomic_load(&context->peers) >> i & 1)
			context_let(context, &soft_devices[i], false);
	/* Who had access to it has it to nothing now. */
	for (; all; all = all->next)
		if (atomic_load(&all->peers) >> context->device->ordinal & 1)
			context_let(all, context->device, false);
	pthread_rwlock_unlock(&memory_lock);
}

/* ---- the calls ---- */

static CUresult devices_check(CUdevice a, CUdevice b)
{
	if (!device_initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	return device_get(a) && device_get(b) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	CUresult ret = devices_check(dev, peerDev);

	if (ret)
		return ret;
	if (!canAccessPeer)
		return CUDA_ERROR_INVALID_VALUE;
	*canAccessPeer = dev != peerDev && !settings.fault_no_peers;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(
	int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice, CUdevice dstDevice)
{
	CUresult ret = devices_check(srcDevice, dstDevice);

	if (ret)
		return ret;
	if (!value || srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attrib) {
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED: *value = 0; break;
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED: *value = 1; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* The current context, and whether the other one is one. */
static CUresult contexts_check(CUcontext peer, struct CUctx_st **context)
{
	CUresult ret = soft_context_current(context);

	return ret ? ret : context_check(peer);
}

/* One for each device: contexts of a device are not told apart. */
static CUresult context_switch(struct CUctx_st *context, const struct device *owner, bool in)
{
	bool has;

	pthread_rwlock_wrlock(&memory_lock);
	has = atomic_load(&context->peers) >> owner->ordinal & 1;
	if (has != in)
		context_let(context, owner, in);
	pthread_rwlock_unlock(&memory_lock);
	if (has != in)
		return CUDA_SUCCESS;
	return in ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult cuCtxEnablePeerAccess(CUcontext peerContext, unsigned int Flags)
{
	struct CUctx_st *context;
	CUresult ret = contexts_check(peerContext, &context);

	if (ret)
		return ret;
	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (peerContext->device == context->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return context_switch(context, peerContext->device, true);
}

CUresult cuCtxDisablePeerAccess(CUcontext peerContext)
{
	struct CUctx_st *context;
	CUresult ret = contexts_check(peerContext, &context);

	if (ret)
		return ret;
	queue_drain(context, 0);
	return context_switch(context, peerContext->device, false);
}
