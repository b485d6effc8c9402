/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: see module.h; their calls stand in module_calls.c, their functions in
 * module_functions.c.
 */
#include "shim/driver/module/module.h"
#include "shim/driver/module/module_state.h"

#include <stdlib.h>
#include <string.h>

#include "shim/generated/cuda_hand.h"
#include "protocol/generated/cuda_ops.h"
#include "protocol/generated/cuda_wire.h"
#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/generated/vcuda_send.h"
#include "shim/driver/context/context.h"
#include "shim/driver/graph/capture.h"
#include "shim/driver/memory/managed/managed.h"
#include "shim/driver/array/reference.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/driver/memory/memory.h"
#include "shim/engine/sha256.h"
#include "shim/engine/status.h"
#include "shim/engine/thread.h"
#include "shim/engine/lock.h"

struct module *module_of(CUmodule hmod)
{
	return shim_object_of((uint64_t)(uintptr_t)hmod, KIND_CUmodule);
}

uint64_t module_handle(const struct module *module)
{
	return module->handle;
}

struct context *module_context(const struct module *module)
{
	return module->context;
}

/* ---- loading ---- */

CUresult module_send_image(const struct image *image, const uint8_t digest[32])
{
	for (size_t at = 0; at < image->size;) {
		size_t n = image->size - at < FRAME_CHUNK ? image->size - at : FRAME_CHUNK;
		struct shim_call call;
		struct wire_vcudaModuleData *body;
		CUresult status;

		body = shim_begin(&call, OP_vcudaModuleData, sizeof(*body));
		body->size = image->size;
		body->offset = at;
		shim_put(&call, &body->digest, digest, 32);
		shim_payload_captured(&call, image->bytes + at, n);
		status = shim_post(&call);
		if (status)
			return status;
		at += n;
	}
	return CUDA_SUCCESS;
}

static CUresult load_once(const struct image *image, const uint8_t digest[32], uint64_t handle,
	struct jit *jit, bool *needed)
{
	struct shim_call call;
	struct wire_vcudaModuleLoad *body;
	const struct wire_vcudaModuleLoad_reply *reply;
	const struct image_option *options;
	const void *log = NULL;
	size_t n = 0;

	*needed = false;
	image_jit_begin(jit);
	body = shim_begin(&call, OP_vcudaModuleLoad, sizeof(*body));
	body->module = handle;
	body->size = image->size;
	body->kind = image->kind;
	shim_put(&call, &body->digest, digest, 32);
	options = jit_options(jit, &body->jit_bytes);
	shim_put(&call, &body->jit, options, body->jit_bytes);
	reply = shim_wait(&call, sizeof(*reply));
	/* The text matters most where the load failed. */
	if (!reply && call.slot && call.reply_bytes >= sizeof(*reply))
		reply = (const void *)call.reply;
	if (reply) {
		*needed = !call.status && reply->needed;
		log = shim_run(&call, &reply->log, &n);
	}
	if (!*needed)
		image_jit_tell(jit, log, n);
	return shim_end(&call);
}

struct module *module_new(struct context *context, struct library *library)
{
	struct module *module = calloc(1, sizeof(*module));

	if (!module)
		return NULL;
	pthread_mutex_init(&module->lock, NULL);
	lock_order_rank(&module->lock, LOCK_MODULE, "module->lock");
	module->context = context;
	module->context_id = context->id;
	module->library = library;
	module->handle = shim_mint(KIND_CUmodule, module);
	if (module->handle)
		return module;
	free(module);
	return NULL;
}

static CUresult module_load_into(struct context *context, const struct image *image,
	struct jit *jit, struct library *library, struct module **out)
{
	struct module *module = module_new(context, library);
	uint8_t digest[32];
	CUresult status = CUDA_SUCCESS;
	bool needed = true;

	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sha256(image->bytes, image->size, digest);
	if (shim_perf & PERF_MODULE_CACHE)
		status = load_once(image, digest, module->handle, jit, &needed);
	for (int n = 0; !status && needed && n < IMAGE_TRIES; n++) {
		status = module_send_image(image, digest);
		if (!status)
			status = load_once(image, digest, module->handle, jit, &needed);
	}
	if (!status && needed)
		status = status_of(CAUSE_VIOLATION);
	if (status) {
		shim_unmint(module->handle);
		free(module);
		return status;
	}
	*out = module;
	return CUDA_SUCCESS;
}

/* The handle stays known as stale; functions and the module's own memory go. */
static void module_free(struct module *module)
{
	for (unsigned i = 0; i < MODULE_BUCKETS; i++)
		while (module->functions[i]) {
			struct function *function = module->functions[i];

			module->functions[i] = function->next;
			handle_retire(function->handle);
			free(atomic_load(&function->old));
			free(function->layout);
			free(function->name);
			free(function);
		}
	pthread_mutex_destroy(&module->lock);
	free(module);
}

CUresult module_unload(struct module *module)
{
	uint64_t handle = module->handle;

	if (!handle_release(handle))
		return CUDA_ERROR_INVALID_HANDLE;
	managed_module_gone(handle);
	reference_module_gone(handle);
	module_free(module);
	return send_vcudaModuleUnload(handle);
}

struct gone {
	struct context *context;
	uint64_t handles[256];
	unsigned count;
};

static void module_gone(void *object, void *argument)
{
	struct module *module = object;
	struct gone *gone = argument;

	if (module->context == gone->context && gone->count < 256)
		gone->handles[gone->count++] = module->handle;
}

void module_reset(struct context *context)
{
	struct gone gone;

	do {
		gone = (struct gone){.context = context};
		handle_each(KIND_CUmodule, module_gone, &gone);
		for (unsigned i = 0; i < gone.count; i++) {
			struct module *module = shim_object_of(gone.handles[i], KIND_CUmodule);

			if (module && handle_release(gone.handles[i]))
				module_free(module);
		}
	} while (gone.count);
	reference_reset(context);
}

/* ---- globals ---- */

CUresult module_global(
	struct module *module, const char *name, CUdeviceptr *address, size_t *bytes)
{
	struct shim_call call;
	struct wire_vcudaGlobalGet *body;
	const struct wire_vcudaGlobalGet_reply *reply;
	struct function *function;
	CUresult status;

	body = shim_begin(&call, OP_vcudaGlobalGet, sizeof(*body));
	body->module = module->handle;
	shim_put_string(&call, &body->name, name);
	/* It may be asked again and again (cudaMemcpyToSymbol): the answer does not change. */
	reply = shim_wait_cached(&call, sizeof(*reply));
	if (reply) {
		if (address)
			*address = reply->address;
		if (bytes)
			*bytes = reply->bytes;
		memory_global(module->context->device, reply->address, reply->bytes);
	}
	status = shim_end(&call);
	/* What has the name is a kernel. */
	if (status == CUDA_ERROR_NOT_FOUND && !module_function(module, name, &function))
		status = CUDA_ERROR_INVALID_VALUE;
	return status;
}

CUresult module_load(const struct image *image, struct jit *jit, struct library *library,
	struct module **out)
{
	struct context *context = context_current();
	CUresult status;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread_set(context->home);
	status = module_load_into(context->home, image, jit, library, out);
	thread_set(context);
	return status;
}

uint64_t function_handle(const struct function *function)
{
	return function->handle;
}

CUresult hand_cuModuleUnload(CUmodule hmod)
{
	struct module *module = module_of(hmod);

	CUresult status;

	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	status = capture_unsafe();
	if (status)
		return status;
	/* A library's module goes with the library. */
	return module->library || module->outside ? CUDA_ERROR_NOT_PERMITTED
						  : module_unload(module);
}
