/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names (include/vcuda/tensor.h): the agent's memory, under a handle of ours,
 * mapped like the program's own memory with a name (memory/virtual/vmm.c).
 */
#include "shim/driver/tensor/tensor.h"

#include <cuda.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/virtual/vmm.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/status.h"
#include "shim/generated/cuda_hand.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_RANK(tensor, lock, LOCK_TENSOR);

void tensor_lock(void)
{
	pthread_mutex_lock(&lock);
}

void tensor_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

_Thread_local char tensor_text[SENTENCE];

EXPORT const char *vcuda_tensor_error(void)
{
	return tensor_text;
}

CUresult tensor_fail(CUresult status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(tensor_text, sizeof(tensor_text), format, arguments);
	va_end(arguments);
	return status;
}

CUresult tensor_plain(CUresult status, const char *what)
{
	const char *name = NULL;

	if (!status)
		return status;
	cuGetErrorName(status, &name);
	return tensor_fail(status, "%s: %s (%d)", what, name ? name : "error", (int)status);
}

CUresult tensor_begin(int *device, const char *what)
{
	CUresult status = cuInit(0);
	const struct context *context;

	tensor_text[0] = 0;
	if (status)
		return tensor_plain(status, what);
	context = context_current();
	if (*device == -1)
		*device = context ? context->device : 0;
	if (*device < 0 || *device >= devices.count)
		return tensor_fail(
			CUDA_ERROR_INVALID_DEVICE, "%s: there is no device %d", what, *device);
	if (!(devices.info.features & OPEN_FEATURE_TENSORS))
		return tensor_fail(CUDA_ERROR_NOT_SUPPORTED,
			"%s: the agent's release knows no tensors with names", what);
	return CUDA_SUCCESS;
}

void tensor_take_text(const struct shim_call *call, const struct wire_run *run)
{
	size_t n = 0;
	const char *told = shim_run(call, run, &n);

	if (told && n)
		snprintf(tensor_text, sizeof(tensor_text), "%.*s", (int)n, told);
}

/* ---- create and get ---- */

static CUresult send_wishes(
	int device, const struct tensor_wish *wishes, uint32_t count, struct tensor_told *told)
{
	struct session_visit visit = device_visit(device);
	const struct wire_vcudaTensorTake_reply *reply;
	struct wire_vcudaTensorTake *body;
	struct shim_call call;
	const void *run;
	CUresult status;
	size_t n = 0;

	body = shim_begin(&call, OP_vcudaTensorTake, sizeof(*body));
	body->device = device_wire(device);
	body->count = count;
	body->bytes = (uint32_t)(count * sizeof(*wishes));
	shim_put(&call, &body->wishes, wishes, count * sizeof(*wishes));
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		run = shim_run(&call, &reply->told, &n);
		if (run && n == count * sizeof(*told))
			memcpy(told, run, n);
		else
			call.status = status_of(CAUSE_VIOLATION);
		tensor_take_text(&call, &reply->text);
	}
	status = shim_end(&call);
	session_leave(visit);
	return status;
}

/* Maps what the agent gave. */
static CUresult map(const struct tensor_about *about, uint64_t handle, int device,
	struct vcuda_tensor *tensor)
{
	CUdeviceptr base = 0;
	CUresult status;

	if (!arguments_sound(about, devices.at[device].open.granularity))
		return status_of(CAUSE_VIOLATION);
	status = memory_reserve(device, about->room, 0, 0, &base);
	if (status)
		return status;
	vmm_tensor_size(handle, about->room);
	status = hand_cuMemMap(base, about->room, 0, handle, 0);
	if (!status) {
		CUmemAccessDesc access = {
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
			.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

		status = hand_cuMemSetAccess(base, about->room, &access, 1);
		if (status)
			hand_cuMemUnmap(base, about->room);
	}
	if (status) {
		memory_unreserve(base, about->room);
		return status;
	}
	arguments_tensor(tensor, about, base, device);
	tensor->reserved[TENSOR_HANDLE_AT] = handle;
	tensor->reserved[TENSOR_BASE_AT] = base;
	tensor->reserved[TENSOR_ROOM_AT] = about->room;
	return CUDA_SUCCESS;
}

CUresult tensor_unmap(struct vcuda_tensor *tensor)
{
	uint64_t base = tensor->reserved[TENSOR_BASE_AT],
		 room = tensor->reserved[TENSOR_ROOM_AT];
	CUresult status = hand_cuMemUnmap(base, room), released;

	hand_cuMemAddressFree(base, room);
	released = hand_cuMemRelease(tensor->reserved[TENSOR_HANDLE_AT]);
	memset(tensor, 0, sizeof(*tensor));
	return status ? status : released;
}

/* Handles for WISHES, and what the agent says of each. After an error none of them is there. */
static CUresult ask(
	int device, struct tensor_wish *wishes, uint32_t count, struct tensor_told *told)
{
	CUresult status = CUDA_SUCCESS;
	bool answered;
	uint32_t made = 0;

	while (!status && made < count) {
		wishes[made].memory = vmm_tensor_new(device);
		if (!wishes[made].memory)
			status = tensor_plain(CUDA_ERROR_OUT_OF_MEMORY, "tensor");
		else
			made++;
	}
	if (!status)
		status = tensor_plain(send_wishes(device, wishes, count, told), "tensor");
	answered = !status;
	for (uint32_t i = 0; answered && i < count; i++) {
		if (told[i].status && !status)
			status = tensor_text[0] ? (CUresult)told[i].status
						: tensor_plain((CUresult)told[i].status,
							  wishes[i].name);
	}
	for (uint32_t i = 0; status && i < made; i++) {
		/* What the agent has of it goes with the handle. */
		if (answered && !told[i].status)
			hand_cuMemRelease(wishes[i].memory);
		else
			vmm_tensor_none(wishes[i].memory);
	}
	return status;
}

CUresult tensor_take(int device, struct tensor_wish *wish, struct vcuda_tensor *tensor)
{
	struct tensor_told told;
	CUresult status = ask(device, wish, 1, &told);

	if (status)
		return status;
	status = tensor_plain(map(&told.about, wish->memory, device, tensor), wish->name);
	if (status)
		hand_cuMemRelease(wish->memory);
	return status;
}

EXPORT int vcuda_tensor_create(const char *name, uint32_t dtype, uint32_t rank,
	const int64_t *shape, int device, uint32_t flags, struct vcuda_tensor *tensor)
{
	CUresult status = tensor_begin(&device, "vcuda_tensor_create");
	struct tensor_wish wish = {0};
	struct tensor_about about;

	if (!status)
		status = (CUresult)arguments_create(
			&about, dtype, rank, shape, flags, tensor, tensor_text);
	if (!status)
		status = (CUresult)arguments_name(wish.name, name, tensor_text);
	if (status)
		return (int)status;
	wish.dtype = dtype;
	wish.rank = rank;
	wish.flags = about.flags;
	memcpy(wish.shape, about.shape, sizeof(wish.shape));
	memset(tensor, 0, sizeof(*tensor));
	tensor_lock();
	status = tensor_take(device, &wish, tensor);
	tensor_unlock();
	return (int)status;
}

/* What the agent gave, and under which handle. */
struct given {
	uint64_t memory;
	struct tensor_about about;
};

static CUresult ask_named(const char *const *names, uint32_t count, int device, uint32_t flags,
	struct given *given)
{
	struct tensor_wish wishes[TENSOR_BATCH];
	struct tensor_told told[TENSOR_BATCH];
	CUresult status = CUDA_SUCCESS;

	memset(wishes, 0, sizeof(wishes));
	for (uint32_t i = 0; !status && i < count; i++) {
		wishes[i].flags = flags;
		status = (CUresult)arguments_name(wishes[i].name, names[i], tensor_text);
	}
	if (!status)
		status = ask(device, wishes, count, told);
	for (uint32_t i = 0; !status && i < count; i++)
		given[i] = (struct given){wishes[i].memory, told[i].about};
	return status;
}

/* First all are asked for, then all are mapped, which nobody waits for and the agent's driver
 * takes longer for: a question would stand behind it. */
static CUresult get_some(const char *const *names, uint32_t count, int device, uint32_t flags,
	struct vcuda_tensor *tensors)
{
	struct given *given = calloc(count, sizeof(*given));
	uint32_t held = 0, mapped = 0, n;
	CUresult status = CUDA_SUCCESS;

	if (!given)
		return tensor_plain(CUDA_ERROR_OUT_OF_MEMORY, "tensor");
	for (; !status && held < count; held += status ? 0 : n) {
		n = count - held < TENSOR_BATCH ? count - held : TENSOR_BATCH;
		status = ask_named(names + held, n, device, flags, given + held);
	}
	for (; !status && mapped < held; mapped += !status)
		status = tensor_plain(map(&given[mapped].about, given[mapped].memory, device,
					      &tensors[mapped]),
			names[mapped]);
	for (uint32_t i = 0; status && i < held; i++) {
		if (i < mapped)
			tensor_unmap(&tensors[i]);
		else
			hand_cuMemRelease(given[i].memory);
	}
	free(given);
	return status;
}

EXPORT int vcuda_tensor_get(const char *const *names, size_t count, int device, uint32_t flags,
	struct vcuda_tensor *tensors)
{
	CUresult status = tensor_begin(&device, "vcuda_tensor_get");
	size_t done = 0;

	if (status)
		return (int)status;
	if (!names || !tensors || flags & ~(VCUDA_TENSOR_WRITE | VCUDA_TENSOR_PEER))
		return (int)tensor_fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_get: no names, no place for tensors, or flags 0x%x that "
			"are not get's",
			flags);
	if (!count)
		return 0;
	memset(tensors, 0, count * sizeof(*tensors));
	tensor_lock();
	while (!status && done < count) {
		uint32_t n = count - done < TENSOR_WAITING ? (uint32_t)(count - done)
							   : TENSOR_WAITING;

		status = get_some(names + done, n, device, flags, tensors + done);
		if (!status)
			done += n;
	}
	for (size_t i = 0; status && i < done; i++)
		tensor_unmap(&tensors[i]);
	tensor_unlock();
	return (int)status;
}

EXPORT int vcuda_tensor_close(struct vcuda_tensor *tensor)
{
	CUresult status;
	int device = tensor ? tensor->device : 0;

	if (!tensor || !tensor->reserved[TENSOR_HANDLE_AT])
		return (int)tensor_fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_close: no tensor is open there");
	status = tensor_begin(&device, "vcuda_tensor_close");
	if (status)
		return (int)status;
	if (context_current())
		status = hand_cuCtxSynchronize();
	tensor_lock();
	tensor_unmap(tensor);
	tensor_unlock();
	return (int)tensor_plain(status, "vcuda_tensor_close");
}
