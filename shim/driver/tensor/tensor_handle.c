/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names as handles of 64 bytes, which Redis has (ipc_handle) and an unchanged
 * program opens by cudaIpcOpenMemHandle.  The store alone says which handles there are.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "shim/driver/context/context.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/driver/stream/order.h"
#include "shim/driver/device/peer.h"
#include "shim/driver/tensor/tensor.h"
#include "shim/engine/engine.h"
#include "shim/generated/cuda_hand.h"

_Static_assert(sizeof(struct tensor_handle) == sizeof(CUipcMemHandle), "");

/* What this process has open: a handle is mapped once. */
struct opened {
	struct tensor_handle handle;
	struct vcuda_tensor tensor;
	unsigned count; /* times it was opened and not closed */
	struct opened *next;
};

/* Under the tensors' lock; the number is read without it too. */
static struct {
	struct opened *list;
	_Atomic unsigned count;
} handles;

bool tensor_handle_is(const CUipcMemHandle *handle)
{
	return !memcmp(handle, TENSOR_HANDLE_MAGIC, sizeof(((struct tensor_handle *)0)->magic));
}

static bool is_mapped(const struct opened *o)
{
	return vmm_mapped(
		o->tensor.reserved[TENSOR_BASE_AT], o->tensor.reserved[TENSOR_ROOM_AT]);
}

static void forget(struct opened **at)
{
	struct opened *o = *at;

	*at = o->next;
	handles.count--;
	free(o);
}

/* What went with a context that was reset is not open any more. */
static void forget_unmapped(void)
{
	for (struct opened **at = &handles.list; *at;) {
		if (is_mapped(*at))
			at = &(*at)->next;
		else
			forget(at);
	}
}

static void put_digits(char *to, const struct tensor_handle *handle)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[sizeof(*handle)];

	memcpy(bytes, handle, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		*to++ = digits[bytes[i] >> 4];
		*to++ = digits[bytes[i] & 15];
	}
	*to = 0;
}

/* BY, another GPU, reaches it too. */
static CUresult open_for(const struct opened *o, int by)
{
	const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, by},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	return by == o->tensor.device ? CUDA_SUCCESS
				      : hand_cuMemSetAccess(o->tensor.reserved[TENSOR_BASE_AT],
						o->tensor.reserved[TENSOR_ROOM_AT], &access, 1);
}

static CUresult open_new(
	const struct tensor_handle *handle, int device, int by, struct opened **opened)
{
	struct tensor_wish wish = {.flags = TENSOR_BY_HANDLE};
	struct opened *o = calloc(1, sizeof(*o));
	CUresult status;

	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->handle = *handle;
	put_digits(wish.name, handle);
	status = tensor_take(device, &wish, &o->tensor);
	if (!status) {
		status = open_for(o, by);
		if (status)
			tensor_unmap(&o->tensor);
	}
	if (status) {
		free(o);
		return status;
	}
	o->next = handles.list;
	handles.list = o;
	handles.count++;
	*opened = o;
	return CUDA_SUCCESS;
}

CUresult tensor_handle_open(CUdeviceptr *address, const CUipcMemHandle *from)
{
	const struct context *context = context_current();
	CUresult status = CUDA_SUCCESS;
	struct tensor_handle handle;
	struct opened *o;
	int device;

	memcpy(&handle, from, sizeof(handle));
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	device = device_named(handle.gpu, context->device);
	if (device < 0 || (device != context->device && !peer_can(context->device, device)))
		return CUDA_ERROR_INVALID_CONTEXT;
	status = tensor_begin(&device, "cuIpcOpenMemHandle");
	if (!status)
		status = order_share(devices.at[device].session);
	if (status)
		return status;
	tensor_lock();
	forget_unmapped();
	o = handles.list;
	while (o && memcmp(&o->handle, &handle, sizeof(handle)))
		o = o->next;
	status = o ? open_for(o, context->device)
		   : open_new(&handle, device, context->device, &o);
	if (!status) {
		o->count++;
		*address = o->tensor.data;
	}
	tensor_unlock();
	return status;
}

static struct opened **opened_at(CUdeviceptr address)
{
	struct opened **at = &handles.list;

	forget_unmapped();
	while (*at && address - (*at)->tensor.data >= (*at)->tensor.bytes)
		at = &(*at)->next;
	return at;
}

bool tensor_handle_close(CUdeviceptr address, CUresult *status)
{
	struct opened **at;
	bool found;

	if (!atomic_load_explicit(&handles.count, memory_order_relaxed))
		return false;
	tensor_lock();
	found = *opened_at(address) != NULL;
	tensor_unlock();
	if (!found)
		return false;
	/* What the program has begun with it ends first. */
	*status = hand_cuCtxSynchronize();
	tensor_lock();
	at = opened_at(address);
	if (*at && !--(*at)->count) {
		tensor_unmap(&(*at)->tensor);
		forget(at);
	}
	tensor_unlock();
	return true;
}
