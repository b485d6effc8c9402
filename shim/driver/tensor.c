/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors with names (include/vcuda/tensor.h): the agent's memory, under a handle of ours,
 * mapped like the program's own memory with a name (memory/vmm.c).
 */
#include "include/vcuda/tensor.h"

#include <cuda.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/wait.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "protocol/wire/tensor.h"
#include "shim/driver/context.h"
#include "shim/driver/memory/memory.h"
#include "shim/driver/memory/vmm.h"
#include "shim/engine/engine.h"
#include "shim/engine/lock.h"
#include "shim/engine/status.h"
#include "shim/generated/cuda_hand.h"

#define EXPORT __attribute__((visibility("default")))
/* Between two looks at a tensor that is not sealed yet. */
#define LOOK_MIN_NS 500000u
#define LOOK_MAX_NS 20000000u

_Static_assert((int)VCUDA_BOOL == (int)TENSOR_BOOL && VCUDA_TENSOR_RANK == TENSOR_RANK, "");
_Static_assert(VCUDA_TENSOR_KEEP == TENSOR_KEEP && VCUDA_TENSOR_MADE == TENSOR_MADE, "");
_Static_assert(VCUDA_TENSOR_NEW == TENSOR_NEW && VCUDA_TENSOR_WRITE == TENSOR_WRITE, "");
_Static_assert(sizeof(((struct vcuda_tensor_stat *)0)->name) >= 64 + TENSOR_NAME, "");

/* The agent is asked one thing at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
LOCK_RANK(tensor, lock, LOCK_TENSOR);

static _Thread_local char text[200];

enum { HANDLE, BASE, ROOM }; /* vcuda_tensor.reserved */

EXPORT const char *vcuda_tensor_error(void)
{
	return text;
}

static __attribute__((format(printf, 2, 3))) CUresult fail(
	CUresult status, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return status;
}

/* A failure of CUDA's, or of the session's, without a sentence of its own. */
static CUresult plain(CUresult status, const char *what)
{
	const char *name = NULL;

	if (!status)
		return status;
	cuGetErrorName(status, &name);
	return fail(status, "%s: %s (%d)", what, name ? name : "error", (int)status);
}

/* CUDA is there, and the device; it knows tensors. */
static CUresult begin(int *device, const char *what)
{
	CUresult status = cuInit(0);
	const struct context *context;

	text[0] = 0;
	if (status)
		return plain(status, what);
	context = context_current();
	if (*device == -1)
		*device = context ? context->device : 0;
	if (*device < 0 || *device >= devices.count)
		return fail(
			CUDA_ERROR_INVALID_DEVICE, "%s: there is no device %d", what, *device);
	if (!(devices.info.features & OPEN_FEATURE_TENSORS))
		return fail(CUDA_ERROR_NOT_SUPPORTED,
			"%s: the agent's release knows no tensors with names", what);
	return CUDA_SUCCESS;
}

/* The sentence of an answer. */
static void take_text(const struct shim_call *call, const struct wire_run *run)
{
	size_t n = 0;
	const char *told = shim_run(call, run, &n);

	if (told && n)
		snprintf(text, sizeof(text), "%.*s", (int)n, told);
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
		take_text(&call, &reply->text);
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

	if (!about->room || about->offset >= about->room ||
		about->bytes > about->room - about->offset || about->rank > TENSOR_RANK ||
		about->room % devices.at[device].open.granularity)
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
	*tensor = (struct vcuda_tensor){.data = base + about->offset,
		.bytes = about->bytes,
		.device = device,
		.dtype = about->dtype,
		.rank = about->rank,
		.flags = about->flags |
			 (about->state == TENSOR_SEALED ? VCUDA_TENSOR_SEALED : 0),
		.version = about->version,
		.reserved = {[HANDLE] = handle, [BASE] = base, [ROOM] = about->room}};
	memcpy(tensor->shape, about->shape, sizeof(tensor->shape));
	return CUDA_SUCCESS;
}

static CUresult unmap(struct vcuda_tensor *tensor)
{
	uint64_t base = tensor->reserved[BASE], room = tensor->reserved[ROOM];
	CUresult status = hand_cuMemUnmap(base, room), released;

	hand_cuMemAddressFree(base, room);
	released = hand_cuMemRelease(tensor->reserved[HANDLE]);
	memset(tensor, 0, sizeof(*tensor));
	return status ? status : released;
}

/* WISHES become TENSORS, all or none. */
static CUresult take(
	int device, struct tensor_wish *wishes, uint32_t count, struct vcuda_tensor *tensors)
{
	struct tensor_told told[TENSOR_BATCH];
	CUresult status = CUDA_SUCCESS;
	uint32_t made = 0;

	while (!status && made < count) {
		wishes[made].memory = vmm_tensor_new(device);
		if (!wishes[made].memory)
			status = plain(CUDA_ERROR_OUT_OF_MEMORY, "tensor");
		else
			made++;
	}
	if (!status)
		status = plain(send_wishes(device, wishes, count, told), "tensor");
	for (uint32_t i = 0; i < made; i++) {
		CUresult one = status ? status : (CUresult)told[i].status;

		if (!one)
			one = plain(map(&told[i].about, wishes[i].memory, device, &tensors[i]),
				wishes[i].name);
		else if (!text[0])
			plain(one, wishes[i].name);
		if (one) {
			/* What the agent has of it goes with the handle. */
			if (!status && !told[i].status)
				hand_cuMemRelease(wishes[i].memory);
			else
				vmm_tensor_none(wishes[i].memory);
			tensors[i].data = 0;
		}
	}
	for (uint32_t i = 0; !status && i < count; i++)
		status = (CUresult)told[i].status ? (CUresult)told[i].status
			 : tensors[i].data	  ? CUDA_SUCCESS
						  : CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; status && i < made; i++)
		if (tensors[i].data)
			unmap(&tensors[i]);
	return status;
}

static CUresult put_name(struct tensor_wish *wish, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	if (!n || n > TENSOR_NAME_MAX)
		return fail(CUDA_ERROR_INVALID_VALUE,
			"a tensor's name has 1 to %d bytes, not %zu", TENSOR_NAME_MAX, n);
	memcpy(wish->name, name, n);
	return CUDA_SUCCESS;
}

EXPORT int vcuda_tensor_create(const char *name, uint32_t dtype, uint32_t rank,
	const int64_t *shape, int device, uint32_t flags, struct vcuda_tensor *tensor)
{
	struct tensor_wish wish = {.dtype = dtype, .rank = rank};
	CUresult status = begin(&device, "vcuda_tensor_create");

	if (status)
		return (int)status;
	if (!tensor || (rank && !shape) || rank > TENSOR_RANK)
		return (int)fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_create: a shape of 0 to %d numbers, not %u", TENSOR_RANK,
			rank);
	if (!tensor_dtype_bytes(dtype))
		return (int)fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_create: there is no dtype %u", dtype);
	if (flags & ~(VCUDA_TENSOR_KEEP | VCUDA_TENSOR_EVICTABLE | VCUDA_TENSOR_NEW))
		return (int)fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_create: flags 0x%x are not create's", flags);
	if (rank)
		memcpy(wish.shape, shape, rank * sizeof(*shape));
	if (!tensor_shape_bytes(dtype, rank, wish.shape))
		return (int)fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_create: a dimension is not above 0, or all together are "
			"too many bytes");
	wish.flags = flags | TENSOR_MAKE;
	memset(tensor, 0, sizeof(*tensor));
	status = put_name(&wish, name);
	if (!status) {
		pthread_mutex_lock(&lock);
		status = take(device, &wish, 1, tensor);
		pthread_mutex_unlock(&lock);
	}
	return (int)status;
}

EXPORT int vcuda_tensor_get(const char *const *names, size_t count, int device, uint32_t flags,
	struct vcuda_tensor *tensors)
{
	struct tensor_wish wishes[TENSOR_BATCH];
	CUresult status = begin(&device, "vcuda_tensor_get");
	size_t done = 0;

	if (status)
		return (int)status;
	if (!names || !tensors || flags & ~VCUDA_TENSOR_WRITE)
		return (int)fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_get: no names, no place for tensors, or flags 0x%x that "
			"are not get's",
			flags);
	if (!count)
		return 0;
	memset(tensors, 0, count * sizeof(*tensors));
	pthread_mutex_lock(&lock);
	while (!status && done < count) {
		uint32_t n =
			count - done < TENSOR_BATCH ? (uint32_t)(count - done) : TENSOR_BATCH;

		memset(wishes, 0, sizeof(wishes));
		for (uint32_t i = 0; !status && i < n; i++) {
			wishes[i].flags = flags;
			status = put_name(&wishes[i], names[done + i]);
		}
		if (!status)
			status = take(device, wishes, n, tensors + done);
		if (!status)
			done += n;
	}
	for (size_t i = 0; status && i < done; i++)
		unmap(&tensors[i]);
	pthread_mutex_unlock(&lock);
	return (int)status;
}

EXPORT int vcuda_tensor_close(struct vcuda_tensor *tensor)
{
	CUresult status;
	int device = tensor ? tensor->device : 0;

	if (!tensor || !tensor->reserved[HANDLE])
		return (int)fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_close: no tensor is open there");
	status = begin(&device, "vcuda_tensor_close");
	if (status)
		return (int)status;
	if (context_current())
		status = hand_cuCtxSynchronize();
	pthread_mutex_lock(&lock);
	unmap(tensor);
	pthread_mutex_unlock(&lock);
	return (int)plain(status, "vcuda_tensor_close");
}

/* ---- the others ---- */

static CUresult call_do(
	int device, uint32_t what, uint64_t memory, const char *name, const char *argument)
{
	struct session_visit visit = device_visit(device);
	const struct wire_vcudaTensorDo_reply *reply;
	struct wire_vcudaTensorDo *body;
	CUresult status, told = CUDA_SUCCESS;
	struct shim_call call;

	pthread_mutex_lock(&lock);
	body = shim_begin(&call, OP_vcudaTensorDo, sizeof(*body));
	body->device = device_wire(device);
	body->what = what;
	body->memory = memory;
	shim_put_string(&call, &body->name, name);
	shim_put_string(&call, &body->argument, argument);
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		told = (CUresult)reply->status;
		take_text(&call, &reply->text);
	}
	status = shim_end(&call);
	pthread_mutex_unlock(&lock);
	session_leave(visit);
	status = status ? status : told;
	return status && text[0] ? status : plain(status, "tensor");
}

EXPORT int vcuda_tensor_seal(struct vcuda_tensor *tensor, void *stream)
{
	int device = tensor ? tensor->device : 0;
	CUresult status;

	if (!tensor || !tensor->reserved[HANDLE])
		return (int)fail(
			CUDA_ERROR_INVALID_VALUE, "vcuda_tensor_seal: no tensor is open there");
	status = begin(&device, "vcuda_tensor_seal");
	if (!status && context_current())
		status = plain(
			stream ? hand_cuStreamSynchronize(stream) : hand_cuCtxSynchronize(),
			"vcuda_tensor_seal");
	if (!status)
		status = call_do(device, TENSOR_DO_SEAL, tensor->reserved[HANDLE], "", "");
	if (!status) {
		tensor->flags |= VCUDA_TENSOR_SEALED;
		tensor->flags &= ~VCUDA_TENSOR_WRITABLE;
	}
	return (int)status;
}

static CUresult do_named(
	const char *what, uint32_t number, const char *name, const char *argument, int device)
{
	struct tensor_wish wish = {0};
	CUresult status = begin(&device, what);

	if (!status)
		status = put_name(&wish, name);
	if (!status && (!argument || strlen(argument) >= 64))
		status = fail(
			CUDA_ERROR_INVALID_VALUE, "%s: a namespace has 1 to 63 bytes", what);
	return status ? status : call_do(device, number, 0, wish.name, argument);
}

EXPORT int vcuda_tensor_delete(const char *name, int device)
{
	return (int)do_named("vcuda_tensor_delete", TENSOR_DO_DELETE, name, "", device);
}

EXPORT int vcuda_tensor_touch(const char *name, int device)
{
	return (int)do_named("vcuda_tensor_touch", TENSOR_DO_TOUCH, name, "", device);
}

EXPORT int vcuda_tensor_share(const char *name, const char *space, int device)
{
	return (int)do_named("vcuda_tensor_share", TENSOR_DO_SHARE, name, space, device);
}

static CUresult look(int device, bool list, uint64_t *cursor, const char *name,
	struct vcuda_tensor_stat *stat)
{
	struct session_visit visit = device_visit(device);
	const struct wire_vcudaTensorLook_reply *reply;
	struct wire_vcudaTensorLook *body;
	CUresult status, told = CUDA_SUCCESS;
	struct tensor_entry entry = {0};
	struct shim_call call;
	const void *run;
	size_t n = 0;

	pthread_mutex_lock(&lock);
	body = shim_begin(&call, OP_vcudaTensorLook, sizeof(*body));
	body->device = device_wire(device);
	body->list = list;
	body->cursor = *cursor;
	shim_put_string(&call, &body->name, name);
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		told = (CUresult)reply->status;
		run = shim_run(&call, &reply->entry, &n);
		if (run && n == sizeof(entry))
			memcpy(&entry, run, n);
		else
			call.status = status_of(CAUSE_VIOLATION);
		take_text(&call, &reply->text);
	}
	status = shim_end(&call);
	pthread_mutex_unlock(&lock);
	session_leave(visit);
	status = status ? status : told;
	if (status)
		return text[0] ? status : plain(status, "tensor");
	*cursor = entry.cursor;
	*stat = (struct vcuda_tensor_stat){.bytes = entry.about.bytes,
		.dtype = entry.about.dtype,
		.rank = entry.about.rank,
		.flags = entry.about.flags |
			 (entry.about.state == TENSOR_SEALED ? VCUDA_TENSOR_SEALED : 0),
		.holders = entry.about.holders,
		.version = entry.about.version,
		.ctime = entry.about.ctime,
		.mtime = entry.about.mtime};
	memcpy(stat->shape, entry.about.shape, sizeof(stat->shape));
	snprintf(stat->name, sizeof(stat->name), "%.*s", (int)sizeof(stat->name) - 1,
		entry.name);
	return CUDA_SUCCESS;
}

EXPORT int vcuda_tensor_stat(const char *name, int device, struct vcuda_tensor_stat *stat)
{
	struct tensor_wish wish = {0};
	CUresult status = begin(&device, "vcuda_tensor_stat");
	uint64_t cursor = 0;

	if (!status && !stat)
		status = fail(CUDA_ERROR_INVALID_VALUE, "vcuda_tensor_stat: no place for it");
	if (!status)
		status = put_name(&wish, name);
	return (int)(status ? status : look(device, false, &cursor, wish.name, stat));
}

EXPORT int vcuda_tensor_list(
	const char *prefix, int device, uint64_t *cursor, struct vcuda_tensor_stat *stat)
{
	CUresult status = begin(&device, "vcuda_tensor_list");

	if (!status && (!stat || !cursor || !prefix || strlen(prefix) > TENSOR_NAME_MAX))
		status = fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_list: no place, or a prefix of more than %d bytes",
			TENSOR_NAME_MAX);
	return (int)(status ? status : look(device, true, cursor, prefix, stat));
}

EXPORT int vcuda_tensor_wait(
	const char *name, int device, uint32_t ms, struct vcuda_tensor_stat *stat)
{
	uint64_t until = wait_now() + ms * 1000000ull, nap = LOOK_MIN_NS;
	int status;

	for (;;) {
		status = vcuda_tensor_stat(name, device, stat);
		if (status || stat->flags & VCUDA_TENSOR_SEALED)
			return status;
		if (wait_now() >= until)
			return (int)fail(CUDA_ERROR_NOT_READY,
				"'%.100s' was not sealed within %u ms", name, ms);
		nanosleep(&(struct timespec){.tv_nsec = (long)nap}, NULL);
		nap = 2 * nap < LOOK_MAX_NS ? 2 * nap : LOOK_MAX_NS;
	}
}
