/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules and functions: see module.h; their calls stand in module_calls.c.
 */
#include "shim/driver/module/module.h"

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

#define MODULE_BUCKETS 64

struct module {
	uint64_t handle;
	struct context *context;
	uint64_t context_id;
	struct library *library; /* the one that it was made for, or NULL */
	pthread_mutex_t lock;	 /* the buckets */
	struct function *functions[MODULE_BUCKETS];
};

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
	jit_begin(jit);
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
		jit_tell(jit, log, n);
	return shim_end(&call);
}

static CUresult module_load_into(struct context *context, const struct image *image,
	struct jit *jit, struct library *library, struct module **out)
{
	struct module *module;
	uint8_t digest[32];
	CUresult status = CUDA_SUCCESS;
	bool needed = true;

	module = calloc(1, sizeof(*module));
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&module->lock, NULL);
	lock_order_rank(&module->lock, LOCK_MODULE, "module->lock");
	module->context = context;
	module->context_id = context->id;
	module->library = library;
	module->handle = shim_mint(KIND_CUmodule, module);
	if (!module->handle) {
		free(module);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
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

/* ---- functions ---- */

static unsigned bucket_of(const char *name)
{
	uint32_t hash = 2166136261u;

	while (*name)
		hash = (hash ^ (unsigned char)*name++) * 16777619u;
	return hash % MODULE_BUCKETS;
}

/* What launches rely on: every parameter lies in a block that fits into a frame. */
static bool layout_good(const struct function *function)
{
	if (function->info.param_bytes > FRAME_BODY_MAX / 2)
		return false;
	for (uint32_t i = 0; i < function->layout_count; i++) {
		const struct function_param *p = &function->layout[i];

		if (p->offset > function->info.param_bytes ||
			p->size > function->info.param_bytes - p->offset)
			return false;
	}
	return true;
}

/* The rest of the layout of a function with many parameters. An agent that is older does not
 * tell it: then such a function is launched with `extra` only. */
static CUresult layout_rest(struct function *function)
{
	const uint32_t all = function->info.param_count;
	struct function_param *layout;
	CUresult status = CUDA_SUCCESS;
	uint32_t n = 0;

	if (all <= function->layout_count || all > FUNCTION_PARAMS_ALL)
		return CUDA_SUCCESS;
	layout = realloc(function->layout, all * sizeof(*layout));
	if (!layout)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->layout = layout;
	do {
		const struct wire_vcudaFunctionLayout_reply *reply;
		struct wire_vcudaFunctionLayout *body;
		struct shim_call call;
		const void *more;
		size_t bytes = 0;

		body = shim_begin(&call, OP_vcudaFunctionLayout, sizeof(*body));
		body->function = function->handle;
		body->first = function->layout_count;
		reply = shim_wait(&call, sizeof(*reply));
		more = reply ? shim_run(&call, &reply->layout, &bytes) : NULL;
		n = (uint32_t)(bytes / sizeof(*layout));
		if (n > all - function->layout_count)
			n = all - function->layout_count;
		if (more && n)
			memcpy(layout + function->layout_count, more, n * sizeof(*layout));
		function->layout_count += n;
		status = shim_end(&call);
	} while (!status && n && function->layout_count < all);
	return status == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : status;
}

static CUresult function_get(struct module *module, const char *name, struct function **out)
{
	struct shim_call call;
	struct wire_vcudaFunctionGet *body;
	const struct wire_vcudaFunctionGet_reply *reply;
	struct function *function = calloc(1, sizeof(*function));
	const void *layout;
	size_t n;
	CUresult status;

	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	function->module = module;
	function->name = strdup(name);
	function->handle = shim_mint(KIND_CUfunction, function);
	body = shim_begin(&call, OP_vcudaFunctionGet, sizeof(*body));
	if (!call.status && (!function->name || !function->handle))
		call.status = CUDA_ERROR_OUT_OF_MEMORY;
	body->module = module->handle;
	body->function = function->handle;
	if (function->name)
		shim_put_string(&call, &body->name, name);
	/* The names that C++ gives to templates can be long, but not that long. */
	if (call.status == CUDA_ERROR_NOT_SUPPORTED)
		call.status = CUDA_ERROR_NOT_FOUND;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		function->info = reply->info;
		memcpy(function->compiled, reply->info.attributes, sizeof(function->compiled));
		layout = shim_run(&call, &reply->layout, &n);
		function->layout_count = (uint32_t)(n / sizeof(struct function_param));
		function->layout = malloc(n + 1);
		if (function->layout && n)
			memcpy(function->layout, layout, n);
		if (!function->layout)
			call.status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	status = shim_end(&call);
	if (!status)
		status = layout_rest(function);
	if (!status && !layout_good(function))
		status = status_of(CAUSE_VIOLATION);
	if (status) {
		shim_unmint(function->handle);
		free(function->layout);
		free(function->name);
		free(function);
		return status;
	}
	*out = function;
	return CUDA_SUCCESS;
}

/* With the module's lock held. */
static struct function *function_in(struct module *module, const char *name)
{
	struct function *function = module->functions[bucket_of(name)];

	while (function && strcmp(function->name, name))
		function = function->next;
	return function;
}

struct function *module_function_known(struct module *module, const char *name)
{
	struct function *function;

	pthread_mutex_lock(&module->lock);
	function = function_in(module, name);
	pthread_mutex_unlock(&module->lock);
	return function;
}

CUresult module_function_told(struct module *module, const char *name, struct function **out)
{
	unsigned bucket = bucket_of(name);
	struct function *function;
	CUresult status = CUDA_SUCCESS;

	pthread_mutex_lock(&module->lock);
	function = function_in(module, name);
	if (!function) {
		struct context *before = thread_self.current;

		/* The function lives in the module's context, whichever is current. */
		thread_set(module->context);
		status = function_get(module, name, &function);
		thread_set(before);
		if (!status) {
			atomic_store(&function->unused, true);
			function->next = module->functions[bucket];
			module->functions[bucket] = function;
		}
	}
	pthread_mutex_unlock(&module->lock);
	*out = function;
	return status;
}

CUresult module_function(struct module *module, const char *name, struct function **out)
{
	CUresult status = module_function_told(module, name, out);

	if (!status)
		atomic_store(&(*out)->unused, false);
	return status;
}

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

CUresult module_names(struct module *module, uint32_t first, uint32_t *total,
	void (*each)(const char *name, void *argument), void *argument)
{
	CUresult status;
	uint32_t left;

	do {
		struct shim_call call;
		struct wire_vcudaModuleNames *body;
		const struct wire_vcudaModuleNames_reply *reply;
		const char *names;
		size_t n, at = 0;

		left = 0;
		body = shim_begin(&call, OP_vcudaModuleNames, sizeof(*body));
		body->module = module->handle;
		body->first = first;
		reply = shim_wait_cached(&call, sizeof(*reply));
		if (reply) {
			uint32_t count = reply->count;

			*total = reply->total;
			names = shim_run(&call, &reply->names, &n);
			for (uint32_t i = 0; each && names && i < count && at < n; i++) {
				size_t length = strnlen(names + at, n - at);
				char name[2048];

				if (at + length == n || length >= sizeof(name))
					break;
				memcpy(name, names + at, length + 1);
				each(name, argument);
				at += length + 1;
			}
			first += count;
			left = each && count && first < *total;
		}
		status = shim_end(&call);
	} while (!status && left);
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
	return module->library ? CUDA_ERROR_NOT_PERMITTED : module_unload(module);
}
