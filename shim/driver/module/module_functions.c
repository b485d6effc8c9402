/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of modules: asked for by name, once, and of graphs that libraries of the
 * agent's were captured into, whose modules the program never had.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/generated/vcuda_ops.h"
#include "protocol/generated/vcuda_wire.h"
#include "shim/driver/context/context.h"
#include "shim/driver/module/module.h"
#include "shim/driver/module/module_state.h"
#include "shim/engine/engine.h"
#include "shim/engine/handle.h"
#include "shim/engine/status.h"
#include "shim/engine/thread.h"

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

/* The worker has told of it, with STATUS; frees it where it is none. */
static CUresult function_made(struct function *function, CUresult status)
{
	if (!status)
		status = layout_rest(function);
	if (!status && !layout_good(function))
		status = status_of(CAUSE_VIOLATION);
	if (!status) {
		function->context = module_context(function->module);
		launch_limits(function);
		return CUDA_SUCCESS;
	}
	if (function->handle)
		shim_unmint(function->handle);
	free(function->layout);
	free(function->name);
	free(function);
	return status;
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
	status = function_made(function, shim_end(&call));
	*out = function;
	return status;
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

/* ---- functions of the agent's libraries ---- */

struct outside {
	const struct context *context;
	struct module *found;
};

static void outside_look(void *object, void *argument)
{
	struct module *module = object;
	struct outside *wanted = argument;

	if (module->outside && module->context == wanted->context &&
		module->context_id == wanted->context->id)
		wanted->found = module;
}

/* What functions of libraries are in: the worker knows nothing of it. NULL: no memory. */
static struct module *module_outside(struct context *context)
{
	struct outside wanted = {.context = context};

	handle_each(KIND_CUmodule, outside_look, &wanted);
	if (!wanted.found) {
		wanted.found = module_new(context, NULL);
		if (wanted.found)
			wanted.found->outside = true;
	}
	return wanted.found;
}

static CUresult function_ask(struct function *function, uint64_t graph, uint32_t node)
{
	const struct wire_vcudaGraphFunction_reply *reply;
	struct wire_vcudaGraphFunction *body;
	struct shim_call call;
	const char *name;
	size_t n = 0;

	body = shim_begin(&call, OP_vcudaGraphFunction, sizeof(*body));
	body->graph = graph;
	body->node = node;
	body->function = function->handle;
	reply = shim_wait(&call, sizeof(*reply));
	if (reply) {
		function->info = reply->info;
		memcpy(function->compiled, reply->info.attributes, sizeof(function->compiled));
		name = shim_run(&call, &reply->text, &n);
		function->name = strndup(name ? name : "", n);
		if (!function->name)
			call.status = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return shim_end(&call);
}

CUresult module_node_function(
	struct context *context, uint64_t graph, uint32_t node, struct function **out)
{
	struct context *before = thread_self.current;
	struct module *module = module_outside(context);
	struct function *function = module ? calloc(1, sizeof(*function)) : NULL;
	CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
	unsigned bucket;

	if (!function)
		return status;
	function->module = module;
	function->handle = shim_mint(KIND_CUfunction, function);
	thread_set(context);
	if (function->handle)
		status = function_ask(function, graph, node);
	status = function_made(function, status);
	thread_set(before);
	if (status)
		return status;
	bucket = bucket_of(function->name);
	pthread_mutex_lock(&module->lock);
	function->next = module->functions[bucket];
	module->functions[bucket] = function;
	pthread_mutex_unlock(&module->lock);
	*out = function;
	return CUDA_SUCCESS;
}
