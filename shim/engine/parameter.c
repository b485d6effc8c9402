/* SPDX-License-Identifier: Apache-2.0
 *
 * Parameters that are handles or addresses, as they go into a call's body: see engine.h.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/engine/driver.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/session.h"
#include "shim/engine/thread.h"

uint64_t shim_mint(enum handle_kind kind, void *object)
{
	uint64_t handle = handle_mint(kind, object);

	/* A library's kernel is every context's. */
	if (session_count > 1 && handle && kind != KIND_CUkernel)
		handle_home_set(handle, thread_self.current);
	return handle;
}

void *shim_object_of(uint64_t handle, enum handle_kind kind)
{
	return handle_object(handle, kind);
}

void shim_unmint(uint64_t handle)
{
	handle_release(handle);
}

uint64_t shim_handle(struct shim_call *call, const void *handle, enum handle_kind kind)
{
	uint64_t number = (uint64_t)(uintptr_t)handle;

	if (number && !handle_object(number, kind) && !call->status)
		call->status = CUDA_ERROR_INVALID_HANDLE;
	return number;
}

/* Looking a parameter up may need calls of its own (a thread's stream is created and ordered, a
 * kernel's module loaded), which are built in the same scratch: what CALL has so far is put
 * aside meanwhile. */
struct aside {
	unsigned char small[512];
	unsigned char *bytes;
};

static bool aside_put(struct aside *aside, struct shim_call *call)
{
	aside->bytes = call->body_bytes <= sizeof(aside->small) ? aside->small
								: malloc(call->body_bytes);
	if (!aside->bytes) {
		if (!call->status)
			call->status = CUDA_ERROR_OUT_OF_MEMORY;
		return false;
	}
	memcpy(aside->bytes, call->body, call->body_bytes);
	return true;
}

static void aside_back(struct aside *aside, struct shim_call *call)
{
	memcpy(call->body, aside->bytes, call->body_bytes);
	if (aside->bytes != aside->small)
		free(aside->bytes);
}

uint64_t shim_function(struct shim_call *call, CUfunction function)
{
	struct function *found = handle_object((uint64_t)(uintptr_t)function, KIND_CUfunction);
	struct aside aside;
	CUresult status;

	if (found)
		return function_handle(found);
	if (!aside_put(&aside, call))
		return 0;
	status = function_find(function, &found);
	aside_back(&aside, call);
	if (status && !call->status)
		call->status = status;
	return found ? function_handle(found) : 0;
}

uint64_t shim_address(struct shim_call *call, uint64_t address)
{
	struct aside aside;
	CUresult status;

	if (!aside_put(&aside, call))
		return 0;
	status = pinned_before(&address, sizeof(address));
	if (mirror_apart)
		mirror_addresses(&address, sizeof(address));
	aside_back(&aside, call);
	if (status && !call->status)
		call->status = status;
	return address;
}

uint64_t shim_stream(struct shim_call *call, CUstream stream)
{
	struct aside aside;
	uint64_t number = 0;
	CUresult status;

	/* The legacy one too comes behind copies of another device's. */
	if (!aside_put(&aside, call))
		return 0;
	status = stream_number(stream, &number);
	aside_back(&aside, call);
	if (status && !call->status)
		call->status = status;
	return number;
}
