/* SPDX-License-Identifier: Apache-2.0
 *
 * Sharing between processes of one pod on one agent.
 *
 * The agent gives what an allocation lies in a random name, which the handle carries, and maps
 * it for whoever brings the name, at an address that that process's shim chooses.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/stream/order.h"
#include "shim/engine/engine.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/sharing/share.h"
#include "shim/driver/device/peer.h"
#include "shim/engine/status.h"
#include "shim/driver/stream/stream.h"
#include "shim/driver/tensor/tensor.h"
#include "shim/engine/lock.h"

static const char memory_magic[8] = "vcudaMEM";

struct memory_handle {
	char magic[8];
	uint8_t name[16];
	uint8_t uuid[16]; /* the device's */
	uint64_t bytes;	  /* of all that has the name */
	uint64_t offset;  /* of the allocation in it */
	/* The process that gave it (share_process); of a pool's memory, which pool
	 * (pool_digest). */
	uint64_t giver;
};
_Static_assert(sizeof(struct memory_handle) == sizeof(CUipcMemHandle), "");

/* A pointer that was opened: several allocations may lie in what one name stands for. */
struct opened_pointer {
	uint64_t offset;
	unsigned count; /* times it was opened and not closed */
	bool pooled;	/* of a pool: cuMemFree closes it, and not cuIpcCloseMemHandle */
	struct opened_pointer *next;
};

/* What this process has open: a name is mapped once. */
struct opened {
	uint8_t name[16];
	int device;
	CUdeviceptr base;
	size_t bytes;
	struct opened_pointer *pointers;
	uint64_t peers; /* other devices that it was opened for, a bit for each CUdevice */
	struct opened *next;
};

static struct {
	pthread_mutex_t lock; /* held over the calls, which the worker takes one at a time */
	struct opened *opened;
	_Atomic unsigned count; /* of them; read without the lock too */
	uint64_t process;	/* when it first asked which it is; 0: it did not */
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};
LOCK_RANK(ipc, shared.lock, LOCK_IPC);

void share_lock(void)
{
	pthread_mutex_lock(&shared.lock);
}

void share_unlock(void)
{
	pthread_mutex_unlock(&shared.lock);
}

uint64_t share_process(void)
{
	struct timespec now;

	pthread_mutex_lock(&shared.lock);
	if (!shared.process) {
		clock_gettime(CLOCK_REALTIME, &now);
		shared.process = ((uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec) | 1;
	}
	pthread_mutex_unlock(&shared.lock);
	return shared.process + ((uint64_t)getpid() << 40);
}

static CUresult call_export(const struct memory_range *range, struct memory_handle *handle)
{
	struct session_visit visit = device_visit(range->device);
	struct shim_call call;
	struct wire_vcudaIpcExport *body;
	const struct wire_vcudaIpcExport_reply *reply;
	const void *name;
	size_t n = 0;
	CUresult status;

	body = shim_begin(&call, OP_vcudaIpcExport, sizeof(*body));
	body->device = device_wire(range->device);
	body->address = range->base;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		name = shim_run(&call, &reply->name, &n);
		if (!name || n != sizeof(handle->name) || range->base < reply->base ||
			range->base - reply->base >= reply->bytes) {
			call.status = status_of(CAUSE_VIOLATION);
		} else {
			memcpy(handle->name, name, sizeof(handle->name));
			handle->bytes = reply->bytes;
			handle->offset = range->base - reply->base;
		}
	}
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

/* The allocation around an address, for others. */
static CUresult share_range(
	const struct memory_range *range, const char magic[8], struct memory_handle *handle)
{
	CUresult status = order_share(devices.at[range->device].session);

	if (status)
		return status;
	memset(handle, 0, sizeof(*handle));
	handle->giver = share_process();
	pthread_mutex_lock(&shared.lock);
	memory_shared(range->base);
	status = call_export(range, handle);
	pthread_mutex_unlock(&shared.lock);
	memcpy(handle->magic, magic, sizeof(handle->magic));
	memcpy(handle->uuid, devices.at[range->device].open.uuid, sizeof(handle->uuid));
	return status;
}

CUresult hand_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct memory_handle handle;
	struct managed_range managed;
	struct memory_range range;
	CUresult status;

	/* What IS_LEGACY_CUDA_IPC_CAPABLE says of it too. Another process's is not passed on.
	 */
	if (!pHandle || !memory_find(dptr, &range) || range.async || range.global ||
		range.reserved || managed_find(dptr, &managed) || share_opened(dptr))
		return CUDA_ERROR_INVALID_VALUE;
	/* It comes to lie elsewhere, behind all work: that would end what captures. */
	if (capture_any() && !memory_is_shared(range.base))
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	status = share_range(&range, memory_magic, &handle);
	if (!status)
		memcpy(pHandle, &handle, sizeof(handle));
	return status;
}

/* The device BY reaches it too, for as long as it is open. */
static CUresult open_for(struct opened *o, int by)
{
	CUresult status = CUDA_SUCCESS;

	if (by != o->device && !(o->peers >> by & 1)) {
		status = peer_pool(o->device, by, true);
		if (!status)
			o->peers |= 1ull << by;
	}
	return status;
}

static void opened_free(struct opened *o)
{
	for (int i = 0; i < devices.count; i++)
		if (o->peers >> i & 1)
			peer_pool(o->device, i, false);
	while (o->pointers) {
		struct opened_pointer *next = o->pointers->next;

		free(o->pointers);
		o->pointers = next;
	}
	free(o);
}

/* One more opening of the pointer at OFFSET. */
static CUresult pointer_open(struct opened *o, uint64_t offset, bool pooled)
{
	struct opened_pointer *p = o->pointers;

	while (p && (p->offset != offset || p->pooled != pooled))
		p = p->next;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return CUDA_ERROR_OUT_OF_MEMORY;
		*p = (struct opened_pointer){
			.offset = offset, .pooled = pooled, .next = o->pointers};
		o->pointers = p;
	}
	p->count++;
	return CUDA_SUCCESS;
}

static CUresult open_memory(const struct memory_handle *handle, int device, int by, bool pooled,
	CUdeviceptr *address)
{
	struct opened *o;
	CUresult status;

	for (o = shared.opened; o; o = o->next)
		if (o->device == device && !memcmp(o->name, handle->name, sizeof(o->name))) {
			if (handle->offset >= o->bytes)
				return CUDA_ERROR_INVALID_VALUE;
			status = open_for(o, by);
			if (!status)
				status = pointer_open(o, handle->offset, pooled);
			if (!status)
				*address = o->base + handle->offset;
			return status;
		}
	status = order_share(devices.at[device].session);
	if (status)
		return status;
	o = calloc(1, sizeof(*o));
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	status = memory_import(device, handle->name, handle->bytes, &o->base);
	if (status) {
		free(o);
		return status;
	}
	memcpy(o->name, handle->name, sizeof(o->name));
	o->device = device;
	o->bytes = handle->bytes;
	status = open_for(o, by);
	if (!status)
		status = pointer_open(o, handle->offset, pooled);
	if (status) { /* nobody got its address: nobody would close it */
		memory_free(o->base);
		opened_free(o);
		return status;
	}
	o->next = shared.opened;
	shared.opened = o;
	shared.count++;
	*address = o->base + handle->offset;
	return CUDA_SUCCESS;
}

CUresult hand_cuIpcOpenMemHandle_v2(
	CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct context *context = context_current();
	struct memory_handle memory;
	CUresult status;
	int device;

	memcpy(&memory, &handle, sizeof(memory));
	if (pdptr && !(Flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) &&
		tensor_handle_is(&handle))
		return tensor_handle_open(pdptr, &handle);
	if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return context_missing();
	if (memcmp(memory.magic, memory_magic, sizeof(memory.magic)) ||
		memory.offset >= memory.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	/* A process does not open what it gave itself. */
	if (memory.giver == share_process())
		return CUDA_ERROR_INVALID_CONTEXT;
	device = device_named(memory.uuid, context->device);
	if (device < 0 || (device != context->device && !peer_can(context->device, device)))
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&shared.lock);
	status = open_memory(&memory, device, context->device, false, pdptr);
	pthread_mutex_unlock(&shared.lock);
	return status;
}

void ipc_reset(void)
{
	struct memory_range range;

	pthread_mutex_lock(&shared.lock);
	for (struct opened **at = &shared.opened; *at;) {
		struct opened *o = *at;

		if (memory_find(o->base, &range)) {
			at = &o->next;
			continue;
		}
		*at = o->next;
		shared.count--;
		opened_free(o);
	}
	pthread_mutex_unlock(&shared.lock);
}

/* With the lock held: one opening less of the pointer at OFFSET. False: it is not open so. */
static bool pointer_close(struct opened *o, uint64_t offset, bool pooled)
{
	for (struct opened_pointer **at = &o->pointers; *at; at = &(*at)->next) {
		struct opened_pointer *p = *at;

		if (p->offset != offset || p->pooled != pooled)
			continue;
		if (!--p->count) {
			*at = p->next;
			free(p);
		}
		return true;
	}
	return false;
}

static CUresult close_memory(CUdeviceptr address, bool pooled)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	struct opened **at = &shared.opened, *o;

	pthread_mutex_lock(&shared.lock);
	while (*at && address - (*at)->base >= (*at)->bytes)
		at = &(*at)->next;
	o = *at;
	if (o && pointer_close(o, address - o->base, pooled)) {
		status = CUDA_SUCCESS;
		if (!o->pointers) {
			*at = o->next;
			shared.count--;
			status = memory_free(o->base);
			opened_free(o);
		}
	}
	pthread_mutex_unlock(&shared.lock);
	return status;
}

CUresult hand_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	CUresult status;

	if (tensor_handle_close(dptr, &status))
		return status;
	return close_memory(dptr, false);
}

/* ---- for share.c ---- */

void share_pool_name(CUmemoryPool pool, uint8_t name[16])
{
	const uint64_t words[2] = {share_process(), (uint64_t)(uintptr_t)pool};

	memcpy(name, words, sizeof(words));
}

/* Of a pool's name, which has a process and a number in it; of one without a name 0. */
static uint64_t pool_digest(const uint8_t name[16])
{
	uint64_t words[2];

	memcpy(words, name, sizeof(words));
	return words[0] ^ words[1] * 0x9e3779b97f4a7c15ull;
}

CUresult share_pointer(
	CUdeviceptr address, const char magic[8], const uint8_t pool[16], void *out)
{
	struct memory_handle handle;
	struct memory_range range;
	CUresult status;

	if (!memory_find(address, &range))
		return CUDA_ERROR_INVALID_VALUE;
	status = share_range(&range, magic, &handle);
	handle.giver = pool_digest(pool);
	if (!status)
		memcpy(out, &handle, sizeof(handle));
	return status;
}

CUresult share_open_pointer(int device, const char magic[8], const uint8_t pool[16],
	const void *from, CUdeviceptr *address)
{
	const uint64_t digest = pool_digest(pool);
	struct memory_handle memory;
	CUresult status;

	memcpy(&memory, from, sizeof(memory));
	if (memcmp(memory.magic, magic, sizeof(memory.magic)) ||
		memory.offset >= memory.bytes || (digest && memory.giver != digest) ||
		memcmp(memory.uuid, devices.at[device].open.uuid, sizeof(memory.uuid)))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&shared.lock);
	status = open_memory(&memory, device, device, true, address);
	pthread_mutex_unlock(&shared.lock);
	return status;
}

bool share_opened(CUdeviceptr address)
{
	bool opened = false;

	if (!atomic_load_explicit(&shared.count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&shared.lock);
	for (struct opened *o = shared.opened; o && !opened; o = o->next)
		opened = address - o->base < o->bytes;
	pthread_mutex_unlock(&shared.lock);
	return opened;
}

bool share_close_pointer(CUdeviceptr address, CUresult *status)
{
	bool opened = share_opened(address);

	if (opened)
		*status = close_memory(address, true);
	return opened;
}

CUresult share_name(uint64_t handle, uint8_t name[16])
{
	const struct wire_vcudaVmmExport_reply *reply;
	struct wire_vcudaVmmExport *body;
	struct shim_call call;
	const void *told;
	CUresult status = order_share(session_here());
	size_t n = 0;

	if (status)
		return status;
	pthread_mutex_lock(&shared.lock);
	body = shim_begin(&call, OP_vcudaVmmExport, sizeof(*body));
	body->memory = handle;
	reply = shim_wait(&call, sizeof(*reply));
	told = reply ? shim_run(&call, &reply->name, &n) : NULL;
	if (told && n == 16)
		memcpy(name, told, 16);
	else if (reply)
		call.status = status_of(CAUSE_VIOLATION);
	status = shim_end(&call);
	pthread_mutex_unlock(&shared.lock);
	return status;
}

CUresult share_import(uint64_t handle, int device, const uint8_t name[16], uint64_t bytes)
{
	CUresult status = order_share(devices.at[device].session);
	struct session_visit visit;

	if (status)
		return status;
	visit = device_visit(device);
	pthread_mutex_lock(&shared.lock);
	status = send_vcudaVmmImport(handle, device_wire(device), name, bytes);
	pthread_mutex_unlock(&shared.lock);
	session_leave(visit);
	return status;
}
