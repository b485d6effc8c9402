/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked of tensors with names beside create and get (tensor.c): seal, delete, touch,
 * share, and what there is.
 */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/tensor/tensor.h"
#include "shim/engine/engine.h"
#include "shim/engine/status.h"
#include "shim/generated/cuda_hand.h"

static CUresult call_do(
	int device, uint32_t what, uint64_t memory, const char *name, const char *argument)
{
	struct session_visit visit = device_visit(device);
	const struct wire_vcudaTensorDo_reply *reply;
	struct wire_vcudaTensorDo *body;
	CUresult status, told = CUDA_SUCCESS;
	struct shim_call call;

	tensor_lock();
	body = shim_begin(&call, OP_vcudaTensorDo, sizeof(*body));
	body->device = device_wire(device);
	body->what = what;
	body->memory = memory;
	shim_put_string(&call, &body->name, name);
	shim_put_string(&call, &body->argument, argument);
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		told = (CUresult)reply->status;
		tensor_take_text(&call, &reply->text);
	}
	status = shim_end(&call);
	tensor_unlock();
	session_leave(visit);
	status = status ? status : told;
	return status && tensor_text[0] ? status : tensor_plain(status, "tensor");
}

EXPORT int vcuda_tensor_seal(struct vcuda_tensor *tensor, void *stream)
{
	int device = tensor ? tensor->device : 0;
	CUresult status;

	if (!tensor || !tensor->reserved[TENSOR_HANDLE_AT])
		return (int)tensor_fail(
			CUDA_ERROR_INVALID_VALUE, "vcuda_tensor_seal: no tensor is open there");
	status = tensor_begin(&device, "vcuda_tensor_seal");
	if (!status && context_current())
		status = tensor_plain(
			stream ? hand_cuStreamSynchronize(stream) : hand_cuCtxSynchronize(),
			"vcuda_tensor_seal");
	if (!status)
		status = call_do(
			device, TENSOR_DO_SEAL, tensor->reserved[TENSOR_HANDLE_AT], "", "");
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
	CUresult status = tensor_begin(&device, what);

	if (!status)
		status = (CUresult)arguments_name(wish.name, name, tensor_text);
	if (!status && (!argument || strlen(argument) >= 64))
		status = tensor_fail(
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

	tensor_lock();
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
		tensor_take_text(&call, &reply->text);
	}
	status = shim_end(&call);
	tensor_unlock();
	session_leave(visit);
	status = status ? status : told;
	if (status)
		return tensor_text[0] ? status : tensor_plain(status, "tensor");
	*cursor = entry.cursor;
	arguments_stat(stat, &entry.about, entry.name);
	return CUDA_SUCCESS;
}

EXPORT int vcuda_tensor_stat(const char *name, int device, struct vcuda_tensor_stat *stat)
{
	struct tensor_wish wish = {0};
	CUresult status = tensor_begin(&device, "vcuda_tensor_stat");
	uint64_t cursor = 0;

	if (!status && !stat)
		status = tensor_fail(
			CUDA_ERROR_INVALID_VALUE, "vcuda_tensor_stat: no place for it");
	if (!status)
		status = (CUresult)arguments_name(wish.name, name, tensor_text);
	return (int)(status ? status : look(device, false, &cursor, wish.name, stat));
}

EXPORT int vcuda_tensor_list(
	const char *prefix, int device, uint64_t *cursor, struct vcuda_tensor_stat *stat)
{
	CUresult status = tensor_begin(&device, "vcuda_tensor_list");

	if (!status && (!stat || !cursor || !prefix || strlen(prefix) > TENSOR_NAME_MAX))
		status = tensor_fail(CUDA_ERROR_INVALID_VALUE,
			"vcuda_tensor_list: no place, or a prefix of more than %d bytes",
			TENSOR_NAME_MAX);
	return (int)(status ? status : look(device, true, cursor, prefix, stat));
}

EXPORT int vcuda_tensor_wait(
	const char *name, int device, uint32_t ms, struct vcuda_tensor_stat *stat)
{
	return arguments_wait(name, device, ms, stat, tensor_text);
}
